/* SPDX-License-Identifier: Apache-2.0 */
/* check_parts.h - what the files of experiment/check.h share. */
#pragma once
#include "experiment/check.h"
#include "gpu/gpu.h"

struct checking {
	const struct experiment *x;
	const struct check_opts *o;
	struct check *out;
	struct gpu_set *gpus;
	double download_bytes;   /* that the hub's cache will grow by, as far as known */
};

/* One row; past CHECK_ROWS_MAX nothing happens. */
__attribute__((format(printf, 4, 5)))
void check_add(struct checking *c, enum check_verdict verdict, const char *what,
	       const char *fmt, ...);
/* "server", or "server NAME" where there are several: what a row is about. */
const char *check_of(struct checking *c, size_t server, const char *what);

/* An engine argument in effect: number or a text that is one; otherwise when neither. */
double check_number(const struct experiment_server *s, const char *name, double otherwise);
struct str check_text(const struct experiment_server *s, const char *name);

const atomic_bool *check_cancel(const struct checking *c);

/* The rows about a server's model, and whether it fits (check_model.c). */
void check_model(struct checking *c, size_t server);
