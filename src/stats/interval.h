/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interval.h - an interval of numbers, and the normal law's z of one; intervals of percentiles are
 * made in decide/percentile.h. Level is a fraction, such as 0.95.
 */
#pragma once

struct interval {
	double low, high; /* minus or plus infinity: the sample is too small to say */
};

/* The z for which a normal variable is within +-z with probability `level`, 0 < level < 1. */
double interval_z(double level);
