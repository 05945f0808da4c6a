/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.h - the one policy by which two samples of a metric are called better, worse or neither.
 *
 * A change is called one when Benjamini and Hochberg's q over everything shown together is at
 * most alpha and the change of the medians is at least the metric's least one; with fewer than
 * COMPARE_REPEATS_MIN values on a side it is not enough data. Which values are independent, what
 * guards speak against a gain, and words are the caller's. The dashboard's comparisons and its
 * regression reports judge by this; `bench compare` by decide/compare.h.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "stats/interval.h"

#define JUDGE_ALPHA 0.05
#define JUDGE_LEVEL 0.95
#define JUDGE_EFFECT_MIN 0.03
#define JUDGE_EFFECT_MIN_TAIL 0.05     /* percentiles from 99 on */
#define JUDGE_POWER 0.8                /* for the number of repeats that would do */
#define JUDGE_FAILED_SHARE 0.001       /* more failures than this void a gain */
#define JUDGE_GUARD_CHANGE 0.05        /* likewise tokens per request, goodput */

/* Sample b against baseline a. NAN: does not exist. */
struct contrast {
	double delta;             /* change of the median, as a share of the baseline's size */
	struct interval interval; /* of the relative change */
	double p, p_ranks;        /* Welch's (on logarithms if all are above 0), Mann-Whitney's */
	double superiority;       /* the chance that a value of b exceeds one of a */
	double cv;                /* relative standard deviation of one value, from both samples */
	bool is_ratio;            /* the interval is of the ratio of geometric means */
};

/* median_a and median_b are the ones shown, which may rest on more values than are tested. */
struct contrast contrast_test(const double *a, size_t n, double median_a, const double *b, size_t m,
			      double median_b, double level);

enum judged {
	JUDGED_MISSING,     /* a side has no value */
	JUDGED_NOT_ENOUGH, JUDGED_NO_EVIDENCE, JUDGED_WORSE, JUDGED_BETTER,
	JUDGED_CHANGED,     /* no direction of the metric is the better one */
};

/* better: +1 higher, -1 lower, 0 neither. q: p after adjustment. */
enum judged judge_change(const struct contrast *c, double q, double median_a, double median_b,
			 size_t n, size_t m, int better, double effect_min, double alpha);
bool judge_is_enough(size_t n, size_t m);
/* The least change worth naming of a metric, by its name: p99_ttft_ms, percentiles.99. */
double judge_effect_min(const char *metric);
