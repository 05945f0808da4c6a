/* SPDX-License-Identifier: Apache-2.0 */
/* xxh64.c - see xxh64.h. Four lanes of 8 bytes, then what is left, then a final mix. */
#include "rng/xxh64.h"

#include <string.h>

#define P1 0x9e3779b185ebca87u
#define P2 0xc2b2ae3d27d4eb4fu
#define P3 0x165667b19e3779f9u
#define P4 0x85ebca77c2b2ae63u
#define P5 0x27d4eb2f165667c5u

static uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

/* Little-endian, as the specification has it. */
static uint64_t word(const char *p, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)(unsigned char)p[i] << 8 * i;
	return v;
}

static uint64_t round_of(uint64_t lane, uint64_t input)
{
	return rotate(lane + input * P2, 31) * P1;
}

static uint64_t merge(uint64_t h, uint64_t lane)
{
	return (h ^ round_of(0, lane)) * P1 + P4;
}

static uint64_t stripes(struct str *rest, uint64_t seed)
{
	uint64_t lane[4] = { seed + P1 + P2, seed + P2, seed, seed - P1 }, h;

	for (; rest->n >= 32; rest->p += 32, rest->n -= 32)
		for (size_t i = 0; i < 4; i++)
			lane[i] = round_of(lane[i], word(rest->p + 8 * i, 8));
	h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
	for (size_t i = 0; i < 4; i++)
		h = merge(h, lane[i]);
	return h;
}

uint64_t xxh64(struct str bytes, uint64_t seed)
{
	struct str rest = bytes;
	uint64_t h = bytes.n >= 32 ? stripes(&rest, seed) : seed + P5;

	h += bytes.n;
	for (; rest.n >= 8; rest.p += 8, rest.n -= 8)
		h = rotate(h ^ round_of(0, word(rest.p, 8)), 27) * P1 + P4;
	if (rest.n >= 4) {
		h = rotate(h ^ word(rest.p, 4) * P1, 23) * P2 + P3;
		rest.p += 4;
		rest.n -= 4;
	}
	for (; rest.n; rest.p++, rest.n--)
		h = rotate(h ^ (unsigned char)*rest.p * P5, 11) * P1;
	h = (h ^ h >> 33) * P2;
	h = (h ^ h >> 29) * P3;
	return h ^ h >> 32;
}
