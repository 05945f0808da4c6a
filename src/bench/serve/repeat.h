/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeat.h - the runs of --num-runs: each is scored by itself and kept; the middle one is in the
 * result file, with every run's values and their spread.
 *
 * Spread: sd is the sample standard deviation (n - 1; 0 for one run), CV is sd / |mean|.
 */
#pragma once
#include "bench/serve/score.h"

struct repeat_run {
	struct record record;
	struct scored scored; /* its report borrows from the record, and from the point */
};

/* A zeroed struct is empty. */
struct repeat { struct repeat_run **run; unsigned n; };

/* Adds a run to be scored into; its address does not change. */
struct repeat_run *repeat_add(struct repeat *r);
/* Called once it is scored and stored: takes the point's record. */
void repeat_take(struct repeat_run *run, struct point *p);
/*
 * The run with the median of the total token throughputs (pooling: request throughputs), of an even
 * number the lower one. There is at least one run.
 */
struct repeat_run *repeat_median(const struct repeat *r);
/* A table for people, and the value of the result's key profllm.runs. */
void repeat_table(const struct repeat *r, struct buf *out);
void repeat_json(const struct repeat *r, struct buf *out);
void repeat_release(struct repeat *r);
