/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edivisive.h - where the level of a series changed: segmentation by energy distance.
 *
 * E-divisive (Matteson and James 2014) on a series in order, one value per commit or day: the
 * split t of a segment, with a right part that may end before the segment does at k, that makes
 * q = nm / (n + m) (2 mean|left - right| - mean|left - left| - mean|right - right|) largest; all
 * means come from prefix sums of the distance matrix, and the first of equal splits counts. In
 * place of permutations a split is kept when Student's two-sample t-test with pooled variance
 * passes, first with ten times p; then both sides are split again. At the end each point is moved
 * to where the squares about the two means are least between its neighbours, and tested there with
 * p itself; the weakest is dropped until all pass, and so is a change smaller than effect_min, by
 * medians or by means.
 *
 * Values above 0 are taken as logarithms, so that a change is a share; series with others are
 * taken as they are. Single outliers neither make points nor hide them: before anything, a value
 * is pulled to within OUTLIER_SIGMAS of the median of the five around it (Hampel 1974), sigma
 * being the median distance of neighbours over 0.954 (which steps do not inflate), and no segment
 * is shorter than segment_min. `before`, `after` and `effect` are of the values as given.
 *
 * Time grows with the square of the window; longer series are split in overlapping windows, and
 * the last pass is over all of it. Values are finite.
 */
#pragma once
#include <stddef.h>

#define EDIVISIVE_WINDOW_MAX 1000
#define EDIVISIVE_SEGMENT_MIN 3

struct edivisive_opts {
	double p;           /* of the last test: 0.001 */
	double effect_min;  /* least change of the median, as a share; 0: any */
	size_t segment_min; /* points; at least EDIVISIVE_SEGMENT_MIN */
	size_t window;      /* points; 2 * segment_min to EDIVISIVE_WINDOW_MAX */
};

struct change_point {
	size_t index;         /* the first value of the new level */
	double before, after; /* medians of the segments on both sides */
	double effect;        /* after / before - 1 (over |before|); NAN when before is 0 */
	double p;             /* Student's, two-sided, between the two segments */
};

/* Points in order; out has room for n / segment_min of them. Returns how many. */
size_t edivisive(const double *x, size_t n, const struct edivisive_opts *o,
		 struct change_point *out);

/*
 * y: the n values with single outliers pulled in, to three standard deviations from the median of
 * the five around. Both hold n.
 */
void edivisive_pull_outliers(const double *raw, size_t n, double *y);
