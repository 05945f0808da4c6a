/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mt19937.h - the Mersenne Twister that CPython and NumPy's older interface share.
 *
 * Only the 32-bit core and the 53-bit double. How integers, shuffles and
 * distributions use it differs: pyrandom.h for CPython, legacy.h for NumPy.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define MT19937_WORDS 624

struct mt19937 {
	uint32_t word[MT19937_WORDS];
	unsigned next; /* MT19937_WORDS: all used, the next draw twists */
};

/* NumPy's seed(): the one-word initialisation. */
void mt19937_seed(struct mt19937 *m, uint32_t seed);
/* CPython's seed(): initialisation from n >= 1 words. */
void mt19937_seed_words(struct mt19937 *m, const uint32_t *words, size_t n);
uint32_t mt19937_u32(struct mt19937 *m);
/* [0, 1) in steps of 2^-53, from two words. */
double mt19937_double(struct mt19937 *m);
