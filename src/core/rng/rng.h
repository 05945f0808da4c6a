/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h - random numbers: upstream's generators draw for draw, generators of our own, and hashes
 * that are the same on every machine.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/str.h"

/* ---- PCG64 ---- */

/*
 * The generator of numpy.random.default_rng(), draw for draw.
 *
 * PCG64 (XSL-RR 128/64) seeded through NumPy's SeedSequence. Every function
 * consumes exactly the random bits that the NumPy method named next to it does,
 * so a dataset built from the same seed is the same dataset. Datasets seed it
 * directly; our own features take a fork.
 *
 * A plain value: copy it to remember a state. Not thread-safe, not secret.
 * Not here: NumPy's ziggurat distributions; nothing upstream draws them.
 */

struct pcg64 {
	unsigned __int128 state, inc;
	uint32_t half;  /* the upper 32 bits of the last word that pcg64_u32 split */
	bool has_half;
};

/* default_rng(seed): one entropy word below 2^32, two above. */
void pcg64_seed(struct pcg64 *g, uint64_t seed);
/* default_rng(SeedSequence(words)): n >= 1 words, the least significant first. */
void pcg64_seed_words(struct pcg64 *g, const uint32_t *words, size_t n);

uint64_t pcg64_u64(struct pcg64 *g);
/* The lower half of a fresh word, then its upper half. Other draws leave the kept half alone. */
uint32_t pcg64_u32(struct pcg64 *g);
/* Generator.random(): [0, 1) in steps of 2^-53. */
double pcg64_double(struct pcg64 *g);
/* Generator.integers(lo, hi, endpoint=True) of int64; lo == hi draws nothing. */
int64_t pcg64_bounded(struct pcg64 *g, int64_t lo, int64_t hi_inclusive);
/* Generator.bytes-like fill: one call of integers(0, 256, n, dtype=uint8). */
void pcg64_fill_u8(struct pcg64 *g, uint8_t *out, size_t n);
/* Generator.permutation(n) into out[n]. */
void pcg64_permutation(struct pcg64 *g, size_t *out, size_t n);

/*
 * Generator.choice(n, p=p) with replacement, in two steps: turn the weights
 * into cdf[n] once (weights non-negative, not all zero; cdf may be the same
 * array), then draw indices. Cumulative sums run left to right.
 */
void pcg64_cdf(const double *weight, double *cdf, size_t n);
size_t pcg64_choose(struct pcg64 *g, const double *cdf, size_t n);

/* ---- Forks ---- */

/*
 * Independent generators named by what they are for.
 *
 * Features that upstream does not have draw from a fork of the run's seed, so
 * that switching one on never changes the draws of another, nor the prompts and
 * arrival times that must equal upstream's (compat_rng). The same seed and
 * purpose give the same stream in every version of the program: a purpose is
 * part of the file formats that quote a seed, so never rename one.
 */

struct pcg64 rng_fork(uint64_t seed, const char *purpose);

/* ---- The Mersenne Twister ---- */

/*
 * The Mersenne Twister that CPython and NumPy's older interface share.
 *
 * Only the 32-bit core and the 53-bit double. How integers, shuffles and
 * distributions use it differs: struct pyrandom for CPython, struct legacy for NumPy.
 */

#define MT19937_WORDS 624

struct mt19937 {
	uint32_t word[MT19937_WORDS];
	unsigned next; /* MT19937_WORDS: all used, the next draw twists */
};

/* ---- CPython's random.Random ---- */

/*
 * CPython's random.Random, draw for draw.
 *
 * Functions that pick from a list upstream return indices here. Where CPython
 * raises (an empty choice, a sample larger than its population) these assert:
 * callers check their input first.
 *
 * A plain value: copy it to remember a state. Must be seeded before use.
 */

struct pyrandom {
	struct mt19937 mt;
};

/* seed(n) of an int: CPython drops the sign. */
void pyrandom_seed(struct pyrandom *g, int64_t seed);
/* seed(n) of an int of any size, as its 32-bit words, the least significant first;
 * zero words at the top are dropped. */
void pyrandom_seed_words(struct pyrandom *g, const uint32_t *words, size_t n);

double pyrandom_double(struct pyrandom *g);                     /* random() */
uint64_t pyrandom_bits(struct pyrandom *g, unsigned bits);      /* getrandbits(bits), <= 64 */
uint64_t pyrandom_below(struct pyrandom *g, uint64_t n);        /* randrange(n), choice: n >= 1 */
/* randint(lo, hi); hi - lo below 2^64 - 1 */
int64_t pyrandom_int(struct pyrandom *g, int64_t lo, int64_t hi_inclusive);
double pyrandom_uniform(struct pyrandom *g, double lo, double hi);  /* uniform(lo, hi) */
size_t pyrandom_choice(struct pyrandom *g, size_t n);           /* choice(): an index below n */
void pyrandom_choices(struct pyrandom *g, size_t n, size_t *out, size_t k); /* choices(k=k) */
void pyrandom_shuffle(struct pyrandom *g, void *items, size_t n, size_t size); /* shuffle() */
void pyrandom_sample(struct pyrandom *g, size_t n, size_t *out, size_t k);  /* sample(k), k <= n */

/* ---- numpy.random.RandomState ---- */

/*
 * Numpy.random.RandomState, draw for draw.
 *
 * What numpy.random.seed() and the module-level functions use, and what
 * pandas' sample(random_state=seed) uses: arrival times, prefix_repetition
 * tokens and BurstGPT rows come from it upstream. Doubles are equal to the last
 * bit when both programs use the same C library (log and pow come from there).
 *
 * A plain value: copy it to remember a state. Must be seeded before use.
 */

struct legacy {
	struct mt19937 mt;
	double gauss; /* the second value of the last polar pair */
	bool has_gauss;
};

/* RandomState(seed); NumPy refuses seeds of more than 32 bits, so they cannot be given. */
void legacy_seed(struct legacy *g, uint32_t seed);

double legacy_double(struct legacy *g);               /* random_sample() */
double legacy_gauss(struct legacy *g);                /* standard_normal() */
double legacy_standard_exponential(struct legacy *g); /* standard_exponential() */
double legacy_gamma(struct legacy *g, double shape, double scale); /* gamma(shape, scale) */
double legacy_uniform(struct legacy *g, double lo, double hi);      /* uniform(lo, hi) */
double legacy_lognormal(struct legacy *g, double mu, double sigma); /* lognormal(mu, sigma) */
#define LEGACY_POISSON_MEAN_MAX 0x1p60
int64_t legacy_poisson(struct legacy *g, double mean); /* poisson(mean), 0 <= mean <= the above */
int64_t legacy_zipf(struct legacy *g, double alpha);   /* zipf(alpha), alpha > 1 */
/* randint(lo, hi_exclusive) of the default int64 type; a range of one draws nothing. */
int64_t legacy_randint(struct legacy *g, int64_t lo, int64_t hi_exclusive);

void legacy_permutation(struct legacy *g, size_t *out, size_t n);          /* permutation(n) */

/*
 * choice(n, k, replace) without weights, which is also the row numbers of
 * pandas' sample(k, replace, random_state) on n rows. out has room for k.
 * Without replacement k <= n, and the whole permutation is drawn whatever k is.
 */
void legacy_choice(struct legacy *g, size_t n, size_t *out, size_t k, bool replace);
/* DataFrame.sample(n=k, replace=replace, random_state=seed) on `rows` rows. */
void legacy_pandas_sample(uint32_t seed, size_t rows, size_t *out, size_t k, bool replace);

/* ---- Upstream's two global generators ---- */

/*
 * The two global generators of upstream's process, as one value.
 *
 * Upstream seeds Python's and NumPy's global generators from --seed; the dataset, the arrival
 * process and the LoRA assignment then draw from them in that order. We make the same draws from
 * one compat_rng, which the run creates and hands to each stage in turn: a stage that draws from it
 * must make upstream's exact sequence of draws. Features that upstream lacks draw from rng_fork.
 */

struct compat_rng {
	struct pyrandom py; /* random.seed(seed) */
	struct legacy np;   /* numpy.random.seed(seed) */
};

/* Upstream allows 0 to 2^32 - 1, NumPy's range; options check it before. */
void compat_rng_seed(struct compat_rng *r, uint32_t seed);

/* ---- Hashes ---- */

/*
 * CPython's hash() of a text when started with PYTHONHASHSEED=0: SipHash-1-3 with a zero key. Equal
 * for ASCII texts; others are hashed as UTF-8, which is stable but not what CPython does.
 */

int64_t pyhash_str(struct str text);

/*
 * The XXH64 hash of some bytes, equal on every machine and in every version.
 *
 * Generators for named things (a block of a trace) are seeded with it, so it is part of what a run
 * sends. Not safe for keys chosen by attackers. Constants and steps are those of the published
 * specification.
 */

uint64_t xxh64(struct str bytes, uint64_t seed);

/* ---- Steps of shuffles and choices ---- */

/* The few steps that the shuffles and choices of all three generators share. */

/* Exchanges items i and j, each of `size` bytes. */
static inline void rng_swap(void *items, size_t size, size_t i, size_t j)
{
	unsigned char *a = (unsigned char *)items + i * size;
	unsigned char *b = (unsigned char *)items + j * size;
	unsigned char kept[64];

	if (i == j)
		return;
	while (size) {
		size_t n = size < sizeof(kept) ? size : sizeof(kept);

		memcpy(kept, a, n);
		memcpy(a, b, n);
		memcpy(b, kept, n);
		a += n;
		b += n;
		size -= n;
	}
}

/* The smallest 2^k - 1 that is at least max. */
static inline uint64_t rng_mask(uint64_t max)
{
	return max ? UINT64_MAX >> __builtin_clzll(max) : 0;
}

/* The first index whose cumulative value is above u; cdf ascends and ends with 1. */
static inline size_t rng_first_above(const double *cdf, size_t n, double u)
{
	size_t low = 0, high = n - 1;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (cdf[mid] > u)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}
