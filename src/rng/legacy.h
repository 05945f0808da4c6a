/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy.h - numpy.random.RandomState, draw for draw.
 *
 * What numpy.random.seed() and the module-level functions use, and what
 * pandas' sample(random_state=seed) uses: arrival times, prefix_repetition
 * tokens and BurstGPT rows come from it upstream. Doubles are equal to the last
 * bit when both programs use the same C library (log and pow come from there).
 *
 * A plain value: copy it to remember a state. Must be seeded before use.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rng/mt19937.h"

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
