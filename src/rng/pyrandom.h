/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyrandom.h - CPython's random.Random, draw for draw.
 *
 * Functions that pick from a list upstream return indices here. Where CPython
 * raises (an empty choice, a sample larger than its population) these assert:
 * callers check their input first.
 *
 * A plain value: copy it to remember a state. Must be seeded before use.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "rng/mt19937.h"

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
