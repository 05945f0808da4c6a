/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - do two samples differ, by how much, and can that be known at all?
 *
 * A value is one run's number (a run's p99, its throughput); a sample is the repeats of one
 * point, so samples are small: three to thirty values. Everything supposes that the values of
 * a sample are independent, which repeats inside one server session are not: give session
 * means then. Values are finite; the order within a sample does not matter.
 *
 * Where a number does not exist (one value only, no spread at all) it is NAN, and every
 * caller must say so instead of a verdict.
 *
 * Not here: uncertainty of one run's own numbers (stats/interval.h), what a metric's better
 * direction is (schema/), the wording of verdicts (decide/compare.h).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "stats/interval.h"

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

/*
 * Welch's test: difference of means with unequal variances (Welch 1947; degrees of freedom
 * by Welch and Satterthwaite). p is two-sided. With fewer than two values on a side everything
 * but the difference is NAN. When neither side has any spread, p is 1 for equal means and 0
 * for others, and the interval is the difference itself.
 */
struct welch {
	double difference; /* mean(b) - mean(a) */
	double t, df, p;
	struct interval interval; /* of the difference, at the level asked for */
};
struct welch welch_test(const double *a, size_t n, const double *b, size_t m, double level);

/* Student's interval of one sample's mean; NAN with fewer than two values. */
struct interval student_interval(const double *x, size_t n, double level);

/*
 * The same on logarithms: a ratio of geometric means with its interval, which suits times and
 * rates, whose noise is a share of them. All values must be above 0; else ratio and p are NAN.
 */
struct ratio {
	double ratio; /* geometric mean of b over that of a */
	double df, p;
	struct interval interval;
};
struct ratio ratio_test(const double *a, size_t n, const double *b, size_t m, double level);

/*
 * Mann and Whitney's test (1947). u counts pairs with a < b, equal ones as one half. Up to
 * COMPARE_EXACT_VALUES values in all, p is exact: every way to deal the pooled values out to
 * the two sides is counted, equal values as they are. Beyond, by the normal distribution with
 * correction for equal values and for continuity. p is two-sided; NAN when a side is empty.
 */
#define COMPARE_EXACT_VALUES 60
struct mann_whitney {
	double u, p;
	double superiority; /* u / (n m): the chance that a value of b exceeds one of a */
	bool is_exact;
};
struct mann_whitney mann_whitney_test(const double *a, size_t n, const double *b, size_t m);

/*
 * Benjamini and Hochberg (1995): replaces n p-values by those at which each would just be
 * kept when the share of false findings is held (scipy.stats.false_discovery_control). NAN
 * stays NAN and does not count.
 */
void compare_adjust(double *p, size_t n);

/*
 * How many repeats per side a two-sided test at `alpha` needs to see a relative change
 * `effect` with probability `power` (one half at least), when single runs scatter by the
 * relative standard deviation `cv` on both sides: the smallest r with
 * r >= 2 ((t_{1-alpha/2} + t_{power}) cv / ln(1 + effect))^2, t with 2 r - 2 degrees of
 * freedom. At least COMPARE_REPEATS_MIN, at most COMPARE_REPEATS_MAX; 0: more than that.
 */
#define COMPARE_REPEATS_MIN 4
#define COMPARE_REPEATS_MAX 1000
size_t compare_repeats_needed(double cv, double effect, double alpha, double power);
