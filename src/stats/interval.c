/* SPDX-License-Identifier: Apache-2.0 */
/* interval.c - see interval.h. */
#include "stats/interval.h"

#include <assert.h>
#include <math.h>

double interval_z(double level)
{
	double low = 0, high = 40;

	assert(level > 0 && level < 1);
	/* erfc is exact enough and monotone; halving needs no starting guess. */
	for (int i = 0; i < 80; i++) {
		double mid = (low + high) / 2;

		if (erfc(mid * M_SQRT1_2) > 1 - level)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}

struct interval interval_mean(double mean, double std, size_t n, double level)
{
	double half;

	if (n < 2)
		return (struct interval){ -INFINITY, INFINITY };
	/* std divides by n; the unbiased variance divides by n - 1. */
	half = interval_z(level) * std / sqrt((double)(n - 1));
	return (struct interval){ mean - half, mean + half };
}

/* log of the chance that exactly k of n values are below the percentile. */
static double log_binomial(double n, double k, double q)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(q) +
	       (n - k) * log1p(-q);
}

/*
 * The largest rank r (from 1) such that fewer than r values lie below the
 * percentile q with a chance of at most `tail`; 0 when even r = 1 exceeds it.
 * The sum starts far enough below the mean that what is left out is nothing.
 */
static size_t lower_rank(size_t n, double q, double tail)
{
	double count = (double)n, mean = count * q, sd = sqrt(mean * (1 - q));
	double k = fmax(0, floor(mean - 12 * sd - 50)), below = 0;
	double chance = exp(log_binomial(count, k, q));

	while (k < count && below + chance <= tail) {
		below += chance;
		chance *= (count - k) / (k + 1) * (q / (1 - q));
		k++;
	}
	return (size_t)k;
}

struct interval interval_percentile(const double *sorted, size_t n, double p, double level)
{
	double q = p / 100, tail = (1 - level) / 2;
	struct interval i = { -INFINITY, INFINITY };
	size_t r;

	assert(p >= 0 && p <= 100);
	assert(level > 0 && level < 1);
	if (!n || q <= 0 || q >= 1)
		return i;
	r = lower_rank(n, q, tail);
	if (r > 0)
		i.low = sorted[r - 1];
	/* The upper end is the lower one of the mirrored sample. */
	r = lower_rank(n, 1 - q, tail);
	if (r > 0)
		i.high = sorted[n - r];
	return i;
}
