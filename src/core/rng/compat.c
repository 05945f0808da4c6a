/* SPDX-License-Identifier: Apache-2.0 */
/* compat.c - the generators of upstream's process, both on the Mersenne Twister; see rng.h. */
#include "core/rng/rng.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "core/base/mem.h"

/* ---- The Mersenne Twister ---- */

/* The constants are those of Matsumoto and Nishimura's paper. */

#define FAR 397

/* NumPy's seed(): the one-word initialisation. */
static void mt19937_seed(struct mt19937 *m, uint32_t seed)
{
	m->word[0] = seed;
	for (uint32_t k = 1; k < MT19937_WORDS; k++) {
		uint32_t before = m->word[k - 1];

		m->word[k] = 1812433253u * (before ^ before >> 30) + k;
	}
	m->next = MT19937_WORDS;
}

/* CPython's seed(): initialisation from n >= 1 words. */
static void mt19937_seed_words(struct mt19937 *m, const uint32_t *words, size_t n)
{
	uint32_t *w = m->word;
	size_t i = 1, j = 0;

	assert(n > 0);
	mt19937_seed(m, 19650218u);
	for (size_t k = n > MT19937_WORDS ? n : MT19937_WORDS; k; k--) {
		w[i] = (w[i] ^ (w[i - 1] ^ w[i - 1] >> 30) * 1664525u) + words[j] + (uint32_t)j;
		if (++i == MT19937_WORDS) {
			w[0] = w[MT19937_WORDS - 1];
			i = 1;
		}
		if (++j == n)
			j = 0;
	}
	for (size_t k = MT19937_WORDS - 1; k; k--) {
		w[i] = (w[i] ^ (w[i - 1] ^ w[i - 1] >> 30) * 1566083941u) - (uint32_t)i;
		if (++i == MT19937_WORDS) {
			w[0] = w[MT19937_WORDS - 1];
			i = 1;
		}
	}
	w[0] = 0x80000000u;
}

static uint32_t twist(uint32_t high, uint32_t low, uint32_t far)
{
	uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);

	return far ^ y >> 1 ^ (-(y & 1) & 0x9908b0dfu);
}

static void refill(struct mt19937 *m)
{
	uint32_t *w = m->word;
	size_t k = 0;

	for (; k < MT19937_WORDS - FAR; k++)
		w[k] = twist(w[k], w[k + 1], w[k + FAR]);
	for (; k < MT19937_WORDS - 1; k++)
		w[k] = twist(w[k], w[k + 1], w[k + FAR - MT19937_WORDS]);
	w[k] = twist(w[k], w[0], w[FAR - 1]);
	m->next = 0;
}

static uint32_t mt19937_u32(struct mt19937 *m)
{
	uint32_t y;

	assert(m->next <= MT19937_WORDS);
	if (m->next == MT19937_WORDS)
		refill(m);
	y = m->word[m->next++];
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	return y ^ y >> 18;
}

/* [0, 1) in steps of 2^-53, from two words. */
static double mt19937_double(struct mt19937 *m)
{
	uint32_t a = mt19937_u32(m) >> 5, b = mt19937_u32(m) >> 6;

	return (a * 67108864.0 + b) / 9007199254740992.0;
}

/* ---- CPython's random.Random ---- */

void pyrandom_seed_words(struct pyrandom *g, const uint32_t *words, size_t n)
{
	static const uint32_t zero;

	while (n && !words[n - 1])
		n--;
	mt19937_seed_words(&g->mt, n ? words : &zero, n ? n : 1);
}

void pyrandom_seed(struct pyrandom *g, int64_t seed)
{
	uint64_t size = seed < 0 ? -(uint64_t)seed : (uint64_t)seed;
	const uint32_t words[2] = { (uint32_t)size, (uint32_t)(size >> 32) };

	pyrandom_seed_words(g, words, 2);
}

double pyrandom_double(struct pyrandom *g)
{
	return mt19937_double(&g->mt);
}

uint64_t pyrandom_bits(struct pyrandom *g, unsigned bits)
{
	uint64_t low;

	assert(bits <= 64);
	if (!bits)
		return 0;
	if (bits <= 32)
		return mt19937_u32(&g->mt) >> (32 - bits);
	low = mt19937_u32(&g->mt);
	return low | (uint64_t)(mt19937_u32(&g->mt) >> (64 - bits)) << 32;
}

uint64_t pyrandom_below(struct pyrandom *g, uint64_t n)
{
	unsigned bits;
	uint64_t r;

	assert(n > 0);
	bits = 64 - (unsigned)__builtin_clzll(n);
	do
		r = pyrandom_bits(g, bits);
	while (r >= n);
	return r;
}

int64_t pyrandom_int(struct pyrandom *g, int64_t lo, int64_t hi_inclusive)
{
	assert(lo <= hi_inclusive);
	return (int64_t)((uint64_t)lo +
			 pyrandom_below(g, (uint64_t)hi_inclusive - (uint64_t)lo + 1));
}

double pyrandom_uniform(struct pyrandom *g, double lo, double hi)
{
	return lo + (hi - lo) * pyrandom_double(g);
}

size_t pyrandom_choice(struct pyrandom *g, size_t n)
{
	return pyrandom_below(g, n);
}

void pyrandom_choices(struct pyrandom *g, size_t n, size_t *out, size_t k)
{
	assert(n > 0 || k == 0);
	for (size_t i = 0; i < k; i++)
		out[i] = (size_t)floor(pyrandom_double(g) * (double)n);
}

void pyrandom_shuffle(struct pyrandom *g, void *items, size_t n, size_t size)
{
	assert(size > 0);
	for (size_t i = n; i-- > 1;)
		rng_swap(items, size, i, pyrandom_below(g, i + 1));
}

/* For a population not much larger than the sample: draw from a shrinking copy. */
static void sample_pool(struct pyrandom *g, size_t n, size_t *out, size_t k)
{
	size_t *pool = mem_array(n, sizeof(*pool));

	for (size_t i = 0; i < n; i++)
		pool[i] = i;
	for (size_t i = 0; i < k; i++) {
		size_t j = pyrandom_below(g, n - i);

		out[i] = pool[j];
		pool[j] = pool[n - i - 1];
	}
	free(pool);
}

/* Puts v + 1 into an open-addressed table (0 is empty); false if it is there already. */
static bool set_add(size_t *table, size_t mask, size_t v)
{
	size_t at = (size_t)((uint64_t)v * 0x9e3779b97f4a7c15u >> 20) & mask;

	while (table[at]) {
		if (table[at] == v + 1)
			return false;
		at = (at + 1) & mask;
	}
	table[at] = v + 1;
	return true;
}

/* For a large population: draw again whatever was drawn before. */
static void sample_set(struct pyrandom *g, size_t n, size_t *out, size_t k)
{
	size_t cap = 16, *seen;

	while (cap < 2 * k)
		cap *= 2;
	seen = mem_array(cap, sizeof(*seen));
	for (size_t i = 0; i < k; i++) {
		do
			out[i] = pyrandom_below(g, n);
		while (!set_add(seen, cap - 1, out[i]));
	}
	free(seen);
}

void pyrandom_sample(struct pyrandom *g, size_t n, size_t *out, size_t k)
{
	double set_bytes = 21; /* CPython weighs the memory of a set against that of a list */

	assert(k <= n);
	if (k > 5)
		set_bytes += pow(4.0, ceil(log((double)k * 3.0) / log(4.0)));
	if ((double)n <= set_bytes)
		sample_pool(g, n, out, k);
	else
		sample_set(g, n, out, k);
}

/* ---- numpy.random.RandomState ---- */

/*
 * The order of floating-point operations is part of the contract: the unit
 * tests compare hashes of long runs with NumPy's, so do not simplify.
 */

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

/* ---- Both ---- */

void compat_rng_seed(struct compat_rng *r, uint32_t seed)
{
	pyrandom_seed(&r->py, seed);
	legacy_seed(&r->np, seed);
}
