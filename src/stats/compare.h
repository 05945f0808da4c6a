/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - what tests of small samples are made of: Student's t, ranks, several tests at once.
 *
 * Everything supposes that the values of a sample are independent, which repeats inside one server
 * session are not: give session means then. Values are finite; their order does not matter. Where a
 * number does not exist (one value only) it is NAN, and every caller must say so.
 *
 * Not here: whether one side is better than another, which is decide/compare.h; uncertainty of one
 * run's own numbers (stats/interval.h).
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
 * Benjamini and Hochberg (1995): replaces n p-values by those at which each would just be
 * kept when the share of false findings is held (scipy.stats.false_discovery_control). NAN
 * stays NAN and does not count.
 */
void compare_adjust(double *p, size_t n);
