/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - mean, standard deviation, median and percentiles, equal to NumPy's to the last bit.
 *
 * Upstream's reports are NumPy's numbers, so the order of every addition here is
 * NumPy's: pairwise summation, and percentiles by linear interpolation in the
 * two forms that NumPy chooses between. Values are finite; nothing here looks
 * for NaN. An empty array gives 0 everywhere, as upstream prints it.
 *
 * For live counting while load runs there are histograms; uncertainty is judged by
 * stats/percentile.h and stats/significance.h.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

double stats_sum(const double *x, size_t n);  /* numpy.sum */
double stats_mean(const double *x, size_t n); /* numpy.mean */
double stats_std(const double *x, size_t n);  /* numpy.std: of the population, divides by n */
/* The same for values whose mean is known already. */
double stats_std_around(const double *x, size_t n, double mean);

/* Ascending order in place; 10 million values take well under a second. */
void stats_sort(double *x, size_t n);
/* A sorted copy on the heap, for free(); never NULL. */
double *stats_sorted(const double *x, size_t n);
/*
 * The value that ascending order has at k < n. x is put into another order: no value before place k
 * is larger than it, and none after it is smaller. No NaN.
 */
double stats_select(double *x, size_t n, size_t k);

/* numpy.median and numpy.percentile(method="linear") of ascending values; 0 <= p <= 100. */
double stats_median(const double *sorted, size_t n);
double stats_percentile(const double *sorted, size_t n, double p);
/*
 * The two steps of stats_percentile, for callers that have only the two values: percentile p of n
 * (above 0) values is *part of the way from the value of rank k (from 0), which is returned, to the
 * next one; after the last value there is none, so use it twice.
 */
size_t stats_rank(size_t n, double p, double *part);
double stats_between(double low, double high, double part);

/* ---- Intervals ---- */

/*
 * An interval of numbers, and the normal law's z of one; intervals of percentiles are
 * made in stats/percentile.h. Level is a fraction, such as 0.95.
 */

struct interval {
	double low, high; /* minus or plus infinity: the sample is too small to say */
};

/* The z for which a normal variable is within +-z with probability `level`, 0 < level < 1. */
double interval_z(double level);

/* ---- Histograms ---- */

/*
 * A running distribution of durations in fixed memory.
 *
 * Buckets are linear within each power of two: 64 to an octave, so a value read
 * back is within 0.8 % of one that was added, from 1 ns to 292 years. Values
 * below 128 ns are exact. Adding costs a few instructions and no branch that
 * depends on the data, so it is called once per token while load runs.
 *
 * One thread writes. Another may read at the same time (fields are relaxed
 * atomics) and then sees some recent state, whose counts may be one apart.
 * A zeroed struct hist is a valid empty one; 29 KiB. Final figures are not
 * taken from here: those are exact, from the record (stats/stats.h).
 */

#define HIST_OCTAVE_BITS 6
#define HIST_BUCKETS ((63 - HIST_OCTAVE_BITS + 1) << HIST_OCTAVE_BITS)

struct hist {
	uint64_t bucket[HIST_BUCKETS];
	uint64_t count;
	uint64_t sum_ns; /* wraps after 584 years of summed time */
	int64_t max_ns;
};

/* The bucket of a value >= 0. */
static inline unsigned hist_bucket(int64_t v)
{
	unsigned top = 63u - (unsigned)__builtin_clzll((uint64_t)v | 1u << HIST_OCTAVE_BITS);
	unsigned shift = top - HIST_OCTAVE_BITS;

	return (shift << HIST_OCTAVE_BITS) + (unsigned)((uint64_t)v >> shift);
}

/* Negative values, which only a stepping clock can give, count as 0. */
static inline void hist_add(struct hist *h, int64_t ns)
{
	int64_t v = ns & ~(ns >> 63), max = __atomic_load_n(&h->max_ns, __ATOMIC_RELAXED);
	uint64_t *b = &h->bucket[hist_bucket(v)];

	__atomic_store_n(b, __atomic_load_n(b, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&h->sum_ns, h->sum_ns + (uint64_t)v, __ATOMIC_RELAXED);
	__atomic_store_n(&h->max_ns, v > max ? v : max, __ATOMIC_RELAXED);
	__atomic_store_n(&h->count, h->count + 1, __ATOMIC_RELAXED);
}

uint64_t hist_count(const struct hist *h);
int64_t hist_max(const struct hist *h);    /* exact */
double hist_mean(const struct hist *h);    /* exact; 0 when empty */
/* The smallest value that at least p percent do not exceed, within 0.8 %; 0 when empty. */
int64_t hist_percentile(const struct hist *h, double p);
void hist_merge(struct hist *into, const struct hist *from);
