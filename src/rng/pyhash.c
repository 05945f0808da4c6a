/* SPDX-License-Identifier: Apache-2.0 */
/* pyhash.c - see pyhash.h. */
#include "rng/pyhash.h"

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void round_of(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static void take_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	round_of(v);
	v[0] ^= word;
}

int64_t pyhash_str(struct str text)
{
	uint64_t v[4] = { 0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261,
			  0x7465646279746573 };
	uint64_t last = (uint64_t)text.n << 56;
	size_t i = 0;
	int64_t h;

	if (text.n == 0)
		return 0;
	for (; i + 8 <= text.n; i += 8) {
		uint64_t word = 0;

		for (unsigned k = 0; k < 8; k++)
			word |= (uint64_t)(unsigned char)text.p[i + k] << 8 * k;
		take_word(v, word);
	}
	for (unsigned k = 0; i + k < text.n; k++)
		last |= (uint64_t)(unsigned char)text.p[i + k] << 8 * k;
	take_word(v, last);
	v[2] ^= 0xff;
	for (int k = 0; k < 3; k++)
		round_of(v);
	h = (int64_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
	return h == -1 ? -2 : h;
}
