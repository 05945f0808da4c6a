/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve.h - a smooth curve through measured points that never overshoots them, the nearest monotone
 * values to noisy ones, and Pareto frontiers.
 *
 * The curve is the piecewise cubic of Fritsch and Carlson (1980) with the slopes of Fritsch and
 * Butland (1984), as SciPy's PchipInterpolator has it: between two neighbours it is monotone, so
 * it crosses a value exactly when its ends lie on both sides of it. Two points give a line.
 *
 * x ascends strictly; all numbers are finite.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* ---- Monotone curves ---- */

/* The slope of the curve at each of n >= 2 points. */
void monotone_slopes(const double *x, const double *y, size_t n, double *slope);
/* Outside the points the first or last cubic is continued. */
double monotone_at(const double *x, const double *y, const double *slope, size_t n, double at);
/* The smallest x between the first and the last point where the curve is 0; NAN: nowhere. */
double monotone_root(const double *x, const double *y, const double *slope, size_t n);

/*
 * Replaces y by the values that do not descend and are nearest to it by weighted squares
 * (pool adjacent violators; Barlow et al. 1972). Weights are above 0.
 */
void monotone_fit(double *y, const double *weight, size_t n);

/* ---- Pareto frontiers ---- */

/*
 * Which points are not beaten in both of two measures, more being better.
 *
 * Two rules. PARETO_WEAK is upstream's (sweep spec 7.9): points sorted by x and then y, descending;
 * a point is kept when its y is at least the best so far minus 1e-9, so points that only equal a
 * better one in one measure stay. PARETO_STRICT drops those: a point stays when no other one is at
 * least as good in both and better in one. Equal points stay together under both.
 */

enum pareto_rule { PARETO_WEAK, PARETO_STRICT };

/* Sets is_frontier[i] and returns how many there are. Points that hold a NaN are never on it. */
size_t pareto_frontier(const double *x, const double *y, size_t n, enum pareto_rule rule,
		       bool *is_frontier);
