/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_opts_internal.h - what the rules between the options of `bench serve` share.
 *
 *   serve_opts.c     the steps in upstream's order, and what several of them need
 *   serve_dataset.c  the dataset and its options
 *   serve_load.c     servers, API, load, conversations, what is measured of server and machine
 *   serve_route.c    proxy, transport, client certificate
 *   serve_rows.c     the rows, and the options that set others
 */
#pragma once
#include "bench/options/serve_opts.h"

struct serve_check {
	struct serve_opts *o;
	struct opt_result *result;
	struct arena *arena;
	struct serve_derived *d; /* NULL: a part of a mix, which is checked by itself */
	struct err *e;
};

bool serve_given(const struct serve_check *c, const char *option);
/* A line in the notes. */
__attribute__((format(printf, 2, 3)))
void serve_warn(const struct serve_check *c, const char *fmt, ...);
/* "--OPTION has no effect" and why (" without --x", ": ..."), for options that were given. */
struct serve_unused { const char *option; bool is_unused; const char *why; };
void serve_warn_unused(const struct serve_check *c, const struct serve_unused *row, size_t n);

/*
 * The dataset and its options: refuses contradictions, notes options without effect; applies
 * shortcuts (--input-len, --output-len) and what upstream forces on.
 */
int serve_check_dataset(const struct serve_check *c);
/* --random-range-ratio into two numbers. */
int serve_check_range_ratio(const struct serve_check *c);

/* The options that become members of the body, in upstream's order. */
#define SERVE_SAMPLING 7
struct serve_sampling {
	const char *option, *key;
	const struct opt_real *real; /* NULL: whole */
	const struct opt_int *whole;
	bool is_set;
};
void serve_sampling(const struct serve_opts *o, struct serve_sampling out[SERVE_SAMPLING]);

/* derived.endpoint, is_chat, is_pooling; --endpoint of an API of ours. */
int serve_choose_backend(const struct serve_check *c);
bool serve_is_openai(const struct serve_check *c); /* upstream forces ignore_eos on for these */
/* Refuses or notes what a backend does not take. */
int serve_check_backend(const struct serve_check *c);
/* derived.base_url, base_urls, api_url. */
int serve_take_urls(const struct serve_check *c);
bool serve_is_any_tls(const struct serve_check *c); /* of these URLs */
/* Client certificate and proxy. */
int serve_check_route(const struct serve_check *c);
/*
 * Limits of time and failures, cancellation, conversations, profiling, /metrics, the steady state,
 * derived.system: refuses contradictions, notes options without effect.
 */
int serve_check_load(const struct serve_check *c);

/* Check for an option's row: seconds or a distribution of them. */
int serve_check_time(const struct opt *o, const void *field, struct err *e);
/*
 * The rules of v0.11, if it is asked for: notes or refuses what it did not have, sets its
 * temperature. Call before the body is assembled.
 */
int serve_check_compat(const struct serve_check *c);
