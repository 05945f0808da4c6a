/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - mean, standard deviation, median and percentiles, equal to NumPy's to the last bit.
 *
 * Upstream's reports are NumPy's numbers, so the order of every addition here is
 * NumPy's: pairwise summation, and percentiles by linear interpolation in the
 * two forms that NumPy chooses between. Values are finite; nothing here looks
 * for NaN. An empty array gives 0 everywhere, as upstream prints it.
 *
 * Not here: live counting while load runs (stats/hist.h), uncertainty
 * (stats/interval.h).
 */
#pragma once
#include <stddef.h>

double stats_sum(const double *x, size_t n);  /* numpy.sum */
double stats_mean(const double *x, size_t n); /* numpy.mean */
double stats_std(const double *x, size_t n);  /* numpy.std: of the population, divides by n */
/* The same for values whose mean is known already. */
double stats_std_around(const double *x, size_t n, double mean);

/* Ascending order in place; 10 million values take well under a second. */
void stats_sort(double *x, size_t n);
/* A sorted copy on the heap, for free(); never NULL. */
double *stats_sorted(const double *x, size_t n);

/* numpy.median and numpy.percentile(method="linear") of ascending values; 0 <= p <= 100. */
double stats_median(const double *sorted, size_t n);
double stats_percentile(const double *sorted, size_t n, double p);
/*
 * Its two steps, for those who have two of the values and not all of them sorted: percentile p of n
 * (above 0) values lies *part of the way from the value of rank k (from 0), which is returned, to
 * the one after it; the last value stands for both at the end.
 */
size_t stats_rank(size_t n, double p, double *part);
double stats_between(double low, double high, double part);
