/* SPDX-License-Identifier: Apache-2.0 */
/* run/serve_check.h - what serve_opts.c and serve_dataset.c share. Private to run/. */
#pragma once
#include "endpoint/endpoint.h"
#include "run/serve_opts.h"

struct check {
	struct serve_opts *o;
	struct opt_result *result;
	struct arena *arena;
	struct serve_derived *d;
	struct err *e;
};

bool serve_given(const struct check *c, const char *option);
/* A line in the notes. */
__attribute__((format(printf, 2, 3)))
void serve_warn(const struct check *c, const char *fmt, ...);

/*
 * The dataset and its options: what does not fit together is refused, what has no effect
 * is noted; shortcuts (--input-len, --output-len) and what upstream forces on are applied.
 */
int serve_check_dataset(const struct check *c);
/*
 * Limits of time and failures, cancellation, several servers, profiling, repeats: what
 * does not fit together is refused, what has no effect is noted.
 */
int serve_check_load(const struct check *c);
/* derived.base_urls, once derived.base_url is there. */
void serve_take_urls(const struct check *c);
bool serve_is_any_tls(const struct check *c); /* of these URLs */
/* Conversations: caps, users, headers (run/serve_sessions.c). */
int serve_check_sessions(const struct check *c);
/* Of an option's row: seconds or a law of them. */
int serve_check_time(const struct opt *o, const void *field, struct err *e);
/* /metrics and the steady state (run/serve_measure.c). */
int serve_check_measure(const struct check *c);
/* derived.system (run/serve_system.c). */
int serve_check_system(const struct check *c);
/* Client certificate and proxy (run/travel.c). */
int serve_check_travel(const struct check *c);
/* derived.endpoint, is_chat; --endpoint of an API of ours (run/choose_backend.c). */
int serve_choose_backend(const struct check *c);
bool serve_is_openai(const struct check *c); /* upstream forces ignore_eos on for these */
/* derived.is_pooling; what a backend does not take is refused or noted. */
void serve_find_backend(const struct check *c);
int serve_check_backend(const struct check *c);
/* --random-range-ratio into two numbers. */
int serve_check_range_ratio(const struct check *c);
