/* SPDX-License-Identifier: Apache-2.0 */
/*
 * percentile.h - how far a percentile of one run's requests can be trusted.
 *
 * Requests of one run are not independent: slow ones come in clumps. So the interval of order
 * statistics is not taken from n values but from n / phi, phi being the batch dispersion: the
 * variance of the number of values above the sample's own percentile in 20 batches of equal count
 * in time order, over what independent values would have, at least 1. With phi above 1 the tails
 * are those of Student's t with 19 degrees of freedom in place of the normal law's, because phi is
 * an estimate from 20 batches. With phi = 1 the interval is the exact one of order statistics.
 *
 * Twenty batches are too few when what clumps the requests lasts longer than a batch: neighbouring
 * batches then resemble each other, and the interval is still too narrow (PERCENTILE_CLUMPED).
 * bench/percentile.c measures all of this.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/stats/stats.h"

#define PERCENTILE_LEVEL 0.95         /* of the intervals that are reported */
#define PERCENTILE_BATCHES 20
#define PERCENTILE_BEYOND 10          /* independent values wanted beyond it */
#define PERCENTILE_CORRELATION 0.3    /* of the batches' counts: above, the interval is marked */

/* ---- batches ---- */

/* Requests in time order cut into equal batches: how many there are, and how many count. */
struct percentile_batches {
	double all[PERCENTILE_BATCHES], counted[PERCENTILE_BATCHES];
};
/* 1 where nothing or everything counts. */
double percentile_dispersion(const struct percentile_batches *b);
/* Lag-1 correlation of the shares that count; 0 where they are all equal. */
double percentile_correlation(const struct percentile_batches *b);

/* ---- how many requests are needed ---- */

enum percentile_need {
	PERCENTILE_INTERVAL,    /* both ends of the two-sided interval are values */
	PERCENTILE_UPPER_BOUND, /* a one-sided upper bound is a value */
	PERCENTILE_UNMARKED,    /* PERCENTILE_BEYOND values beyond the percentile on each side */
};
/* How many requests percentile p, 0 < p < 100, needs; level above 0.5 (not used for UNMARKED). */
size_t percentile_needed(enum percentile_need need, double p, double phi, double level);

/* ---- one percentile ---- */

/*
 * The interval of percentile p, 0 < p < 100, of n >= 1 ascending values as if there were n / phi of
 * them, phi >= 1; its ends are two of the values, infinite where there are too few.
 */
struct interval percentile_ranks(const double *sorted, size_t n, double p, double phi,
				 double level);

enum {
	PERCENTILE_FEW = 1 << 0,     /* fewer requests than PERCENTILE_UNMARKED needs */
	PERCENTILE_CLUMPED = 1 << 1, /* the interval is too narrow */
	PERCENTILE_OPEN = 1 << 2,    /* no upper end: print ">= low" in place of the value */
};

struct percentile {
	double value;            /* NumPy's */
	double low, high;        /* two of the values; infinite where there are too few */
	size_t n;
	double phi, correlation; /* of the batches; 1 and 0 below PERCENTILE_BATCHES values */
	size_t needed;           /* requests for an interval with both ends, at this phi */
	size_t unmarked;         /* requests for a value without PERCENTILE_FEW, at this phi */
	unsigned marks;
};
/* n >= 1 finite values in the order in which the requests arrived, and the same ascending. */
struct percentile percentile_bounds(const double *in_time, const double *sorted, size_t n, double p,
				    double level);
