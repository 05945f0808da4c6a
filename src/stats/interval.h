/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interval.h - how far a mean or a percentile can be trusted.
 *
 * Confidence intervals without resampling: the normal one for a mean, and the
 * distribution-free one of order statistics for a percentile. Both suppose
 * independent values; latencies of one run are correlated, so read them as a
 * lower bound on the uncertainty. Level is a fraction, such as 0.95.
 */
#pragma once
#include <stddef.h>

struct interval {
	double low, high; /* minus or plus infinity: the sample is too small to say */
};

/* The z for which a normal variable is within +-z with probability `level`, 0 < level < 1. */
double interval_z(double level);
/* Of a mean, from the population standard deviation (stats_std) of n values. */
struct interval interval_mean(double mean, double std, size_t n, double level);
/* Of percentile p of ascending values; its ends are two of the values. */
struct interval interval_percentile(const double *sorted, size_t n, double p, double level);
