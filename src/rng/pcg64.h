/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pcg64.h - the generator behind numpy.random.default_rng(), draw for draw.
 *
 * PCG64 (XSL-RR 128/64) seeded through NumPy's SeedSequence. Every function
 * consumes exactly the random bits that the NumPy method named beside it does,
 * so a dataset built from the same seed is the same dataset. Datasets seed it
 * directly; our own features take a fork (rng/fork.h).
 *
 * A plain value: copy it to remember a state. Not thread-safe, not secret.
 * Not here: NumPy's ziggurat distributions; nothing upstream draws them.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
