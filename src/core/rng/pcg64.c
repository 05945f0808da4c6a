/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pcg64.c - PCG64 and its forks; see rng.h.
 *
 * The constants are those of the published algorithms: SeedSequence mixes the
 * seed's words into a pool of four and stretches the pool to the 256 bits that
 * PCG64 takes as state and stream.
 */
#include "core/rng/rng.h"

#include <assert.h>

#define POOL 4
#define STATE_WORDS 8

static const unsigned __int128 multiplier =
	(unsigned __int128)0x2360ed051fc65da4u << 64 | 0x4385df649fccf645u;

/* Hashes v with a multiplier that changes at each call. */
static uint32_t hashmix(uint32_t v, uint32_t *h, uint32_t by)
{
	v ^= *h;
	*h *= by;
	v *= *h;
	return v ^ v >> 16;
}

static uint32_t mix(uint32_t x, uint32_t y)
{
	uint32_t r = 0xca01f9ddu * x - 0x4973f715u * y;

	return r ^ r >> 16;
}

static void seed_sequence(const uint32_t *words, size_t n, uint32_t out[STATE_WORDS])
{
	const uint32_t mix_step = 0x931e8875u, out_step = 0x58f38dedu;
	uint32_t pool[POOL], h = 0x43b0d7e5u;

	for (size_t k = 0; k < POOL; k++)
		pool[k] = hashmix(k < n ? words[k] : 0, &h, mix_step);
	for (size_t a = 0; a < POOL; a++)
		for (size_t b = 0; b < POOL; b++)
			if (a != b)
				pool[b] = mix(pool[b], hashmix(pool[a], &h, mix_step));
	for (size_t k = POOL; k < n; k++)
		for (size_t b = 0; b < POOL; b++)
			pool[b] = mix(pool[b], hashmix(words[k], &h, mix_step));
	h = 0x8b51f9ddu;
	for (size_t k = 0; k < STATE_WORDS; k++)
		out[k] = hashmix(pool[k % POOL], &h, out_step);
}

static unsigned __int128 join(const uint32_t w[4])
{
	uint64_t high = w[0] | (uint64_t)w[1] << 32, low = w[2] | (uint64_t)w[3] << 32;

	return (unsigned __int128)high << 64 | low;
}

static void step(struct pcg64 *g)
{
	g->state = g->state * multiplier + g->inc;
}

void pcg64_seed_words(struct pcg64 *g, const uint32_t *words, size_t n)
{
	uint32_t w[STATE_WORDS];

	assert(n > 0);
	seed_sequence(words, n, w);
	*g = (struct pcg64){ .inc = join(w + 4) << 1 | 1 };
	step(g);
	g->state += join(w);
	step(g);
}

void pcg64_seed(struct pcg64 *g, uint64_t seed)
{
	const uint32_t words[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };

	pcg64_seed_words(g, words, words[1] ? 2 : 1);
}

uint64_t pcg64_u64(struct pcg64 *g)
{
	unsigned turn;
	uint64_t x;

	step(g);
	turn = (unsigned)(g->state >> 122);
	x = (uint64_t)(g->state >> 64) ^ (uint64_t)g->state;
	return x >> turn | x << (-turn & 63);
}

uint32_t pcg64_u32(struct pcg64 *g)
{
	uint64_t x;

	if (g->has_half) {
		g->has_half = false;
		return g->half;
	}
	x = pcg64_u64(g);
	g->has_half = true;
	g->half = (uint32_t)(x >> 32);
	return (uint32_t)x;
}

double pcg64_double(struct pcg64 *g)
{
	return (double)(pcg64_u64(g) >> 11) * 0x1p-53;
}

/* Lemire's multiplication with rejection: uniform in [0, span], span < 2^32 - 1. */
static uint32_t below_32(struct pcg64 *g, uint32_t span)
{
	uint32_t count = span + 1, refuse;
	uint64_t m = (uint64_t)pcg64_u32(g) * count;

	if ((uint32_t)m < count) {
		refuse = (UINT32_MAX - span) % count;
		while ((uint32_t)m < refuse)
			m = (uint64_t)pcg64_u32(g) * count;
	}
	return (uint32_t)(m >> 32);
}

static uint64_t below_64(struct pcg64 *g, uint64_t span)
{
	uint64_t count = span + 1, refuse;
	unsigned __int128 m = (unsigned __int128)pcg64_u64(g) * count;

	if ((uint64_t)m < count) {
		refuse = (UINT64_MAX - span) % count;
		while ((uint64_t)m < refuse)
			m = (unsigned __int128)pcg64_u64(g) * count;
	}
	return (uint64_t)(m >> 64);
}

int64_t pcg64_bounded(struct pcg64 *g, int64_t lo, int64_t hi_inclusive)
{
	uint64_t span, r;

	assert(lo <= hi_inclusive);
	span = (uint64_t)hi_inclusive - (uint64_t)lo;
	if (!span)
		r = 0;
	else if (span < UINT32_MAX)
		r = below_32(g, (uint32_t)span);
	else if (span == UINT32_MAX)
		r = pcg64_u32(g);
	else
		r = span == UINT64_MAX ? pcg64_u64(g) : below_64(g, span);
	return (int64_t)((uint64_t)lo + r);
}

void pcg64_fill_u8(struct pcg64 *g, uint8_t *out, size_t n)
{
	uint32_t word = 0;

	for (size_t i = 0; i < n; i++, word >>= 8) {
		if (i % 4 == 0)
			word = pcg64_u32(g);
		out[i] = (uint8_t)word;
	}
}

/* Uniform in [0, max] by masking and refusing: what NumPy's shuffles use. */
static uint64_t interval(struct pcg64 *g, uint64_t max)
{
	uint64_t mask = rng_mask(max), r;

	do
		r = (max <= UINT32_MAX ? pcg64_u32(g) : pcg64_u64(g)) & mask;
	while (r > max);
	return r;
}

static void shuffle(struct pcg64 *g, void *items, size_t n, size_t size)
{
	for (size_t i = n; i-- > 1;)
		rng_swap(items, size, i, interval(g, i));
}

void pcg64_permutation(struct pcg64 *g, size_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = i;
	shuffle(g, out, n, sizeof(*out));
}

void pcg64_cdf(const double *weight, double *cdf, size_t n)
{
	double sum = 0;

	assert(n > 0);
	for (size_t i = 0; i < n; i++) {
		sum += weight[i];
		cdf[i] = sum;
	}
	assert(sum > 0);
	for (size_t i = 0; i < n; i++)
		cdf[i] /= sum;
}

size_t pcg64_choose(struct pcg64 *g, const double *cdf, size_t n)
{
	assert(n > 0);
	return rng_first_above(cdf, n, pcg64_double(g));
}

/* ---- Forks ---- */

/* The entropy is the seed's two words and a 64-bit hash of the purpose. */

struct pcg64 rng_fork(uint64_t seed, const char *purpose)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
	struct pcg64 g;

	assert(purpose && *purpose);
	for (const char *p = purpose; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	const uint32_t words[4] = { (uint32_t)seed, (uint32_t)(seed >> 32),
				    (uint32_t)h, (uint32_t)(h >> 32) };
	pcg64_seed_words(&g, words, 4);
	return g;
}
