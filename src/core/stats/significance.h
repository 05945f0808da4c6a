/* SPDX-License-Identifier: Apache-2.0 */
/*
 * significance.h - building blocks of tests on small samples: Student's t, ranks, multiple tests.
 *
 * Everything assumes that the values of a sample are independent, which repeats inside one server
 * session are not: pass session means then. Values are finite; their order does not matter. Where a
 * number does not exist (only one value) it is NAN, and every caller must handle that.
 *
 * Not here: whether one side is better than another (decide/compare.h); uncertainty of one run's
 * own numbers (stats/percentile.h).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/stats/stats.h"

/*
 * Student's t with df > 0 degrees of freedom (not only whole ones). The cdf by the
 * regularised incomplete beta function (Abramowitz and Stegun 26.7.1 with 26.5.8's continued
 * fraction), the quantile by halving it; relative error below 1e-11 up to 1,000 degrees of
 * freedom and 1e-9 up to 100,000.
 */
double student_cdf(double t, double df);
double student_quantile(double p, double df); /* 0 < p < 1 */

/* The regularised incomplete beta function I_x(a, b); 0 <= x <= 1, a, b > 0. */
double beta_regularised(double x, double a, double b);

/* Student's interval of one sample's mean; NAN with fewer than two values. */
struct interval student_interval(const double *x, size_t n, double level);

/*
 * Mann and Whitney's test (1947). u counts pairs with a < b, equal ones as one half. Up to
 * COMPARE_EXACT_VALUES values in all, p is exact: every way to deal the pooled values out to
 * the two sides is counted, equal values as they are. Beyond, by the normal distribution with
 * correction for equal values and for continuity. p is two-sided; NAN when a side is empty.
 */
#define COMPARE_EXACT_VALUES 60
struct mann_whitney {
	double u, p;
	bool is_exact;
};
struct mann_whitney mann_whitney_test(const double *a, size_t n, const double *b, size_t m);

/*
 * Kendall's test (1938) whether n values, at most TREND_VALUES_MAX, rise or fall in time: p is
 * two-sided, from all orders of n different values; equal ones count as neither.
 */
#define TREND_VALUES_MAX 20
double trend_test(const double *in_time, size_t n);

/*
 * Benjamini and Hochberg (1995): replaces n p-values by those at which each would just be
 * kept when the share of false findings is held (scipy.stats.false_discovery_control). NAN
 * stays NAN and does not count.
 */
void compare_adjust(double *p, size_t n);

/* ---- Pairs ---- */

/*
 * Tests of paired differences by their signs and by the ranks of their sizes.
 *
 * Both are two-sided tests that differences lie about 0, and neither can reach 5 % with fewer than
 * six of them (2 / 2^n). NAN: no difference to judge by.
 */

/* Exact: `up` of up + down independent differences are above 0; equal ones are left out. */
double sign_test(size_t up, size_t down);

/*
 * Wilcoxon's signed-rank test (1945). Differences of 0 are left out, equal sizes share the mean of
 * their ranks. Exact up to SIGNED_EXACT_VALUES differences, each subset of the ranks counted;
 * beyond, by the normal distribution with corrections for equal sizes and for continuity.
 */
#define SIGNED_EXACT_VALUES 60
double signed_rank_test(const double *d, size_t n);

/* ---- Groups ---- */

/*
 * How much of a variation goes with a grouping, and whether two groupings go together.
 *
 * A grouping is a code below `groups` for each value; groups may be empty. Nothing here shows a
 * cause: in data from an undesigned experiment, everything that changes together looks alike.
 */

#define ASSOCIATION_GROUPS_MAX 64

/*
 * One-way analysis of variance (Fisher). share is the part of the variance that the groups'
 * means explain, 1 - within / total as mean squares, so that chance alone gives 0 whatever the
 * number of groups (epsilon squared, Kelley 1935); not below 0. p is by F; NAN where nothing is
 * left to judge by (fewer than two groups with values, no group with two).
 */
struct oneway {
	size_t groups;  /* that have values */
	double f, df_between, df_within, p, share;
};
struct oneway oneway_test(const double *x, const uint8_t *code, size_t n, size_t groups);

/* The chance of an F this large or larger, f >= 0. */
double f_tail(double f, double df1, double df2);

/*
 * Cramer's V of two groupings, corrected for chance (Bergsma 2013): 0 independent, 1 each decides
 * the other. NAN when either has one group only.
 */
double cramers_v(const uint8_t *a, size_t groups_a, const uint8_t *b, size_t groups_b, size_t n);
