/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monotone.h - a smooth curve through measured points that never overshoots them, and the
 * nearest monotone values to noisy ones.
 *
 * The curve is the piecewise cubic of Fritsch and Carlson (1980) with the slopes of Fritsch and
 * Butland (1984), as SciPy's PchipInterpolator has it: between two neighbours it is monotone, so
 * it crosses a value exactly when its ends lie on both sides of it. Two points give a line.
 *
 * x ascends strictly; all numbers are finite.
 */
#pragma once
#include <stddef.h>

/* The slope of the curve at each of n >= 2 points. */
void monotone_slopes(const double *x, const double *y, size_t n, double *slope);
/* Outside the points the first or last cubic goes on. */
double monotone_at(const double *x, const double *y, const double *slope, size_t n, double at);
/* The smallest x between the first and the last point where the curve is 0; NAN: nowhere. */
double monotone_root(const double *x, const double *y, const double *slope, size_t n);

/*
 * Replaces y by the values that do not descend and are nearest to it by weighted squares
 * (pool adjacent violators; Barlow et al. 1972). Weights are above 0.
 */
void monotone_fit(double *y, const double *weight, size_t n);
