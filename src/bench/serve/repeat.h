/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeat.h - the runs of --num-runs side by side: each is scored by itself and kept; the
 * the one in the middle is in the result file, which also has every run's
 * values and how they spread.
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

/* A new run to be scored into; it stays where it is. */
struct repeat_run *repeat_add(struct repeat *r);
/* Once it is scored and stored: takes the point's record. */
void repeat_take(struct repeat_run *run, struct point *p);
/*
 * Of the total token throughputs (pooling: request throughputs) the median's run, of an even
 * number the lower one's. There is at least one run.
 */
struct repeat_run *repeat_median(const struct repeat *r);
/* A table for people, and the value of the result's key profllm.runs. */
void repeat_table(const struct repeat *r, struct buf *out);
void repeat_json(const struct repeat *r, struct buf *out);
void repeat_release(struct repeat *r);
