/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy.c - see legacy.h.
 *
 * The order of floating-point operations is part of the contract: the unit
 * tests compare hashes of long runs with NumPy's, so do not simplify.
 */
#include "rng/legacy.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"
#include "rng/swap.h"

#define POISSON_MAX 0x1p62 /* beyond any value of a mean up to LEGACY_POISSON_MEAN_MAX */

void legacy_seed(struct legacy *g, uint32_t seed)
{
	mt19937_seed(&g->mt, seed);
	g->gauss = 0;
	g->has_gauss = false;
}

double legacy_double(struct legacy *g)
{
	return mt19937_double(&g->mt);
}

double legacy_gauss(struct legacy *g)
{
	double x1, x2, r2, f;

	if (g->has_gauss) {
		g->has_gauss = false;
		return g->gauss;
	}
	do {
		x1 = 2.0 * legacy_double(g) - 1.0;
		x2 = 2.0 * legacy_double(g) - 1.0;
		r2 = x1 * x1 + x2 * x2;
	} while (r2 >= 1.0 || r2 == 0.0);
	f = sqrt(-2.0 * log(r2) / r2);
	g->gauss = f * x1;
	g->has_gauss = true;
	return f * x2;
}

double legacy_standard_exponential(struct legacy *g)
{
	return -log(1.0 - legacy_double(g));
}

static double gamma_below_one(struct legacy *g, double shape)
{
	for (;;) {
		double u = legacy_double(g), v = legacy_standard_exponential(g), x, y;

		if (u <= 1.0 - shape) {
			x = pow(u, 1.0 / shape);
			if (x <= v)
				return x;
		} else {
			y = -log((1.0 - u) / shape);
			x = pow(1.0 - shape + shape * y, 1.0 / shape);
			if (x <= v + y)
				return x;
		}
	}
}

static double gamma_above_one(struct legacy *g, double shape)
{
	double b = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * b);

	for (;;) {
		double x, v, u;

		do {
			x = legacy_gauss(g);
			v = 1.0 + c * x;
		} while (v <= 0.0);
		v = v * v * v;
		u = legacy_double(g);
		if (u < 1.0 - 0.0331 * (x * x) * (x * x))
			return b * v;
		/* log(0) is minus infinity and accepts, as it does upstream. */
		if (log(u) < 0.5 * x * x + b * (1.0 - v + log(v)))
			return b * v;
	}
}

static double standard_gamma(struct legacy *g, double shape)
{
	assert(shape >= 0);
	if (shape == 1.0)
		return legacy_standard_exponential(g);
	if (shape == 0.0)
		return 0.0;
	return shape < 1.0 ? gamma_below_one(g, shape) : gamma_above_one(g, shape);
}

double legacy_gamma(struct legacy *g, double shape, double scale)
{
	return scale * standard_gamma(g, shape);
}

double legacy_uniform(struct legacy *g, double lo, double hi)
{
	return lo + (hi - lo) * legacy_double(g);
}

double legacy_lognormal(struct legacy *g, double mu, double sigma)
{
	return exp(mu + sigma * legacy_gauss(g));
}

/* How many uniform factors keep the product above exp(-mean): mean + 1 draws on average. */
static int64_t poisson_by_product(struct legacy *g, double mean)
{
	double end = exp(-mean), product = 1.0;
	int64_t k = 0;

	while ((product *= legacy_double(g)) > end)
		k++;
	return k;
}

/* Transformed rejection with squeeze (Hormann 1993, PTRS): two draws a try, whatever the mean. */
static int64_t poisson_by_rejection(struct legacy *g, double mean)
{
	double log_mean = log(mean), b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
	double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);

	for (;;) {
		double u = legacy_double(g) - 0.5, v = legacy_double(g), us = 0.5 - fabs(u), k;
		int sign;

		k = floor((2 * a / us + b) * u + mean + 0.43);
		if (us >= 0.07 && v <= v_r)
			return (int64_t)k;
		if (!(k >= 0) || k > POISSON_MAX || (us < 0.013 && v > us))
			continue;
		if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <=
		    -mean + k * log_mean - lgamma_r(k + 1, &sign))
			return (int64_t)k;
	}
}

int64_t legacy_poisson(struct legacy *g, double mean)
{
	assert(mean >= 0 && mean <= LEGACY_POISSON_MEAN_MAX);
	if (mean >= 10)
		return poisson_by_rejection(g, mean);
	return mean > 0 ? poisson_by_product(g, mean) : 0;
}

int64_t legacy_zipf(struct legacy *g, double alpha)
{
	double less = alpha - 1.0, b = pow(2.0, less);

	assert(alpha > 1.0);
	for (;;) {
		double u = 1.0 - legacy_double(g), v = legacy_double(g), x, t;

		x = floor(pow(u, -1.0 / less));
		if (x < 1.0 || x >= 0x1p63)
			continue;
		t = pow(1.0 + 1.0 / x, less);
		if (v * x * (t - 1.0) / (b - 1.0) <= t / b)
			return (int64_t)x;
	}
}

/* Uniform in [0, max] by masking and refusing; 64-bit words come high half first. */
static uint64_t interval(struct legacy *g, uint64_t max)
{
	uint64_t mask = rng_mask(max), r;

	if (!max)
		return 0;
	do {
		r = mt19937_u32(&g->mt);
		if (max > UINT32_MAX)
			r = r << 32 | mt19937_u32(&g->mt);
		r &= mask;
	} while (r > max);
	return r;
}

int64_t legacy_randint(struct legacy *g, int64_t lo, int64_t hi_exclusive)
{
	assert(lo < hi_exclusive);
	return (int64_t)((uint64_t)lo + interval(g, (uint64_t)hi_exclusive - (uint64_t)lo - 1));
}

static void shuffle(struct legacy *g, void *items, size_t n, size_t size)
{
	for (size_t i = n; i-- > 1;)
		rng_swap(items, size, i, interval(g, i));
}

void legacy_permutation(struct legacy *g, size_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = i;
	shuffle(g, out, n, sizeof(*out));
}

void legacy_choice(struct legacy *g, size_t n, size_t *out, size_t k, bool replace)
{
	size_t *all;

	if (replace) {
		assert(n > 0 || k == 0);
		for (size_t i = 0; i < k; i++)
			out[i] = interval(g, n - 1);
		return;
	}
	assert(k <= n);
	all = mem_array(n, sizeof(*all));
	legacy_permutation(g, all, n);
	if (k)
		memcpy(out, all, k * sizeof(*out));
	free(all);
}

void legacy_pandas_sample(uint32_t seed, size_t rows, size_t *out, size_t k, bool replace)
{
	struct legacy g;

	legacy_seed(&g, seed);
	legacy_choice(&g, rows, out, k, replace);
}
