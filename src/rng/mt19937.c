/* SPDX-License-Identifier: Apache-2.0 */
/* mt19937.c - see mt19937.h; the constants are those of Matsumoto and Nishimura's paper. */
#include "rng/mt19937.h"

#include <assert.h>

#define N MT19937_WORDS
#define M 397

void mt19937_seed(struct mt19937 *m, uint32_t seed)
{
	m->word[0] = seed;
	for (uint32_t k = 1; k < N; k++) {
		uint32_t before = m->word[k - 1];

		m->word[k] = 1812433253u * (before ^ before >> 30) + k;
	}
	m->next = N;
}

void mt19937_seed_words(struct mt19937 *m, const uint32_t *words, size_t n)
{
	uint32_t *w = m->word;
	size_t i = 1, j = 0;

	assert(n > 0);
	mt19937_seed(m, 19650218u);
	for (size_t k = n > N ? n : N; k; k--) {
		w[i] = (w[i] ^ (w[i - 1] ^ w[i - 1] >> 30) * 1664525u) + words[j] + (uint32_t)j;
		if (++i == N) {
			w[0] = w[N - 1];
			i = 1;
		}
		if (++j == n)
			j = 0;
	}
	for (size_t k = N - 1; k; k--) {
		w[i] = (w[i] ^ (w[i - 1] ^ w[i - 1] >> 30) * 1566083941u) - (uint32_t)i;
		if (++i == N) {
			w[0] = w[N - 1];
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

	for (; k < N - M; k++)
		w[k] = twist(w[k], w[k + 1], w[k + M]);
	for (; k < N - 1; k++)
		w[k] = twist(w[k], w[k + 1], w[k + M - N]);
	w[k] = twist(w[k], w[0], w[M - 1]);
	m->next = 0;
}

uint32_t mt19937_u32(struct mt19937 *m)
{
	uint32_t y;

	assert(m->next <= N);
	if (m->next == N)
		refill(m);
	y = m->word[m->next++];
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	return y ^ y >> 18;
}

double mt19937_double(struct mt19937 *m)
{
	uint32_t a = mt19937_u32(m) >> 5, b = mt19937_u32(m) >> 6;

	return (a * 67108864.0 + b) / 9007199254740992.0;
}
