/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/sweep_pareto.h - tokens per second per user against tokens per second per GPU, and which
 * runs no other run beats in both (sweep spec 7.9, stats/curve.h).
 *
 * Keys are looked for as they are, with dashes and with underscores; the first one that a record
 * has counts, even when its value is null. Users: the variable asked for, then request_rate, then
 * the observed peak max_concurrent_requests; 0 is none. GPUs: the variable asked for,
 * then num_gpus or gpu_count, then tensor x pipeline x data parallel size; what is missing is 1.
 */
#pragma once
#include "report/figure.h"
#include "results/frame.h"
#include "stats/curve.h"

struct sweep_pareto_opts {
	const char *user_count_var, *gpu_count_var; /* "" and NULL: none */
	struct frame_keys label_by;
	enum pareto_rule rule;
	bool is_averaged; /* one point for the runs of one point (records with a run_number) */
};

/* Where the number of users came from, for telling. */
enum sweep_users { SWEEP_USERS_ASKED, SWEEP_USERS_RATE, SWEEP_USERS_PEAK, SWEEP_USERS_KINDS };

struct sweep_pareto {
	struct frame points;       /* records with tokens_per_user, tokens_per_gpu, ... added */
	double *per_user, *per_gpu;
	bool *is_frontier;
	size_t n_frontier;
	size_t n_skipped;          /* without users */
	size_t n_by[SWEEP_USERS_KINDS];
};

/* Everything in the arena. -1: no throughput, a number that is none; in upstream's words. */
int sweep_pareto(struct sweep_pareto *out, const struct frame *f,
		 const struct sweep_pareto_opts *o, struct arena *a, struct err *e);
/* Points without numbers are not in it; the caller sees to it that there are others. */
void sweep_pareto_figure(const struct sweep_pareto *p, const struct sweep_pareto_opts *o,
			 struct figure *out, struct arena *a);
/* How many points have both numbers. */
size_t sweep_pareto_usable(const struct sweep_pareto *p);
/* Every point with is_frontier as its last column. */
void sweep_pareto_csv(const struct sweep_pareto *p, struct buf *out);
