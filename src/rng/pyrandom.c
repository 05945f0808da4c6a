/* SPDX-License-Identifier: Apache-2.0 */
/* pyrandom.c - see pyrandom.h. */
#include "rng/pyrandom.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "rng/swap.h"

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

/* Puts v + 1 into an open-addressed table (0 is empty); false when it was there. */
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
