/* SPDX-License-Identifier: Apache-2.0 */
/* percentile.c - see percentile.h. */
#include "core/stats/percentile.h"

#include <assert.h>
#include <math.h>

#include "core/stats/significance.h"
#include "core/stats/stats.h"

/* ---- batches ---- */

static double share(const struct percentile_batches *b)
{
	double all = 0, counted = 0;

	for (size_t i = 0; i < PERCENTILE_BATCHES; i++) {
		assert(b->counted[i] >= 0 && b->counted[i] <= b->all[i]);
		all += b->all[i];
		counted += b->counted[i];
	}
	return all > 0 ? counted / all : 0;
}

double percentile_dispersion(const struct percentile_batches *b)
{
	double p = share(b), squares = 0;

	if (p <= 0 || p >= 1)
		return 1;
	for (size_t i = 0; i < PERCENTILE_BATCHES; i++) {
		double off = b->counted[i] - p * b->all[i];

		if (b->all[i] > 0)
			squares += off * off / (p * (1 - p) * b->all[i]);
	}
	return fmax(1, squares / (PERCENTILE_BATCHES - 1));
}

double percentile_correlation(const struct percentile_batches *b)
{
	double p = share(b), squares = 0, products = 0, before = 0;

	for (size_t i = 0; i < PERCENTILE_BATCHES; i++) {
		double off = b->counted[i] - p * b->all[i];

		squares += off * off;
		products += before * off;
		before = off;
	}
	return squares > 0 ? products / squares : 0;
}

/* ---- how many requests are needed ---- */

/* The probability left out at each end. */
static double tail_of(double level, double phi)
{
	double tail = (1 - level) / 2;

	assert(level > 0 && level < 1 && phi >= 1);
	if (phi <= 1)
		return tail;
	return 0.5 * erfc(student_quantile(1 - tail, PERCENTILE_BATCHES - 1) * M_SQRT1_2);
}

size_t percentile_needed(enum percentile_need need, double p, double phi, double level)
{
	double q = p / 100, tail;

	assert(q > 0 && q < 1);
	if (need == PERCENTILE_UNMARKED) {
		assert(phi >= 1);
		/* A hair less, so that 10 / 0.01 is 1,000 although 1 - 0.99 is not quite 0.01. */
		return (size_t)ceil(PERCENTILE_BEYOND / fmin(q, 1 - q) * phi * (1 - 1e-12));
	}
	if (need == PERCENTILE_UPPER_BOUND) /* both tails of a wider level are left out above */
		return (size_t)ceil(log(tail_of(2 * level - 1, phi)) / log(q) * phi);
	tail = tail_of(level, phi);
	return (size_t)ceil(log(tail) / log(fmax(q, 1 - q)) * phi);
}

/* ---- one percentile ---- */

/*
 * The largest rank r (from 1) with P(Bin(n, q) < r) <= tail; 0: none. n need not be whole:
 * P(Bin(n, q) < r) = I_{1-q}(n - r + 1, r).
 */
static size_t lower_rank(double n, double q, double tail)
{
	size_t low = 0, high = (size_t)n + 1;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		double r = (double)middle;

		if (beta_regularised(1 - q, n - r + 1, r) <= tail)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void cut(const double *in_time, size_t n, double above, struct percentile_batches *b)
{
	*b = (struct percentile_batches){ .all = { 0 } };
	for (size_t i = 0; i < n; i++) {
		/* i * 20 does not overflow, because n values fit into memory. */
		size_t batch = i * PERCENTILE_BATCHES / n;

		b->all[batch]++;
		b->counted[batch] += in_time[i] > above;
	}
}

struct interval percentile_ranks(const double *sorted, size_t n, double p, double phi,
				 double level)
{
	struct interval out = { -INFINITY, INFINITY };
	double tail = tail_of(level, phi), independent = (double)n / phi, q = p / 100;
	size_t from_below, from_above;

	assert(n >= 1 && q > 0 && q < 1);
	from_below = lower_rank(independent, q, tail);
	from_above = lower_rank(independent, 1 - q, tail);
	/* Fewer ranks inwards gives the wider interval, so round down. */
	if (from_below)
		out.low = sorted[(size_t)((double)from_below * phi) - 1];
	if (from_above)
		out.high = sorted[n - 1 - (size_t)((double)(from_above - 1) * phi)];
	return out;
}

struct percentile percentile_bounds(const double *in_time, const double *sorted, size_t n, double p,
				    double level)
{
	struct percentile out = { .n = n, .phi = 1 };
	struct percentile_batches b;
	struct interval ends;

	assert(n >= 1 && p > 0 && p < 100);
	out.value = stats_percentile(sorted, n, p);
	if (n >= PERCENTILE_BATCHES) {
		cut(in_time, n, out.value, &b);
		out.phi = percentile_dispersion(&b);
		out.correlation = percentile_correlation(&b);
	}
	ends = percentile_ranks(sorted, n, p, out.phi, level);
	out.low = ends.low;
	out.high = ends.high;
	out.needed = percentile_needed(PERCENTILE_INTERVAL, p, out.phi, level);
	out.unmarked = percentile_needed(PERCENTILE_UNMARKED, p, out.phi, level);
	if (n < out.unmarked)
		out.marks |= PERCENTILE_FEW;
	if (out.correlation > PERCENTILE_CORRELATION)
		out.marks |= PERCENTILE_CLUMPED;
	if (isinf(out.high))
		out.marks |= PERCENTILE_OPEN;
	return out;
}
