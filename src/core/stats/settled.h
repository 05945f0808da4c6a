/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settled.h - the mean of one run's correlated values: where the run has settled, and how far the
 * mean from there on can be trusted.
 *
 * Warm-up. MSER-5 (White 1997): of all starts in the first half, in steps of 5 values, the one that
 * makes the standard error of the rest least. On values without any warm-up it leaves something
 * out in most series, so it only proposes. The values before its start are left out when their mean
 * differs from that of the rest by SETTLED_SIGMAS standard errors, and the rest is worth
 * SETTLED_NEEDED independent values. Both steps look at ranks, which a few long answers do
 * not move.
 *
 * Interval. The variance of a mean of correlated values is their spectrum at frequency 0. Here it
 * is the mean square of the first SETTLED_WAVES cosine transforms, which makes the mean follow
 * Student's t with as many degrees of freedom (Mueller 2004; Lazarus, Lewis, Stock and Watson
 * 2018). Unlike means of batches it needs no batch length, and is less wrong for the same degrees
 * of freedom. Skewed values give an interval with a longer side (Johnson 1978 by Hall's 1992
 * transformation; the skewness is that of SETTLED_WAVES batch means).
 *
 * Too short. phi is that variance over the one that independent values would give, and n / phi
 * their effective number. Below SETTLED_NEEDED (1 + SETTLED_NEEDED_LOG ln phi) effective values
 * there is no interval, because phi itself is underestimated then; up to there the interval is
 * widened for the same reason. Drifting: the slowest wave alone is larger than the others allow.
 *
 * tests/unit/test_decide_settled.c measures all of this on series of known mean. Values are finite.
 */
#pragma once
#include <stddef.h>

#define SETTLED_WAVES 20
#define SETTLED_STEP 5          /* values in a batch of MSER-5 */
#define SETTLED_SIGMAS 4.0
#define SETTLED_NEEDED 50       /* effective values, where values are independent */
#define SETTLED_NEEDED_LOG 0.5
#define SETTLED_WIDER 2.0
#define SETTLED_DRIFT_P 0.001
#define SETTLED_DRIFT_SHARE 0.01 /* of the mean: smaller swings of the slowest wave are ignored */

enum settled_state {
	SETTLED_UNKNOWN,        /* no values */
	SETTLED_KNOWN,          /* the interval can be quoted */
	SETTLED_SHORT,          /* too few effective values */
	SETTLED_DRIFTING,       /* the level still changes */
};

/*
 * How many of n values in time order belong to the warm-up; 0: none, or one that does not end in
 * the first half, which settled_mean reports as a drift.
 */
size_t settled_warm_up(const double *in_time, size_t n);

struct settled_mean {
	enum settled_state state;
	double mean;
	double low, high;       /* NAN unless the state is SETTLED_KNOWN */
	size_t n;
	double effective;       /* independent values with as much information; at most n */
	size_t needed;          /* values needed for an interval at this correlation */
};
/*
 * The mean of n values in time order. With weights value i is a sum over weight[i] things, and the
 * mean is that of all things, sum(value) / sum(weight). NULL: each weighs 1.
 */
struct settled_mean settled_mean(const double *in_time, const double *weight, size_t n,
				 double level);
