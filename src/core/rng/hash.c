/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - hashes of texts; see rng.h. */
#include "core/rng/rng.h"

#include <string.h>

/* ---- SipHash-1-3 ---- */

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
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
	sip_round(v);
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
		sip_round(v);
	h = (int64_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
	return h == -1 ? -2 : h;
}

/* ---- XXH64 ---- */

/* Four lanes of 8 bytes, then the remainder, then a final mix. */

#define P1 0x9e3779b185ebca87u
#define P2 0xc2b2ae3d27d4eb4fu
#define P3 0x165667b19e3779f9u
#define P4 0x85ebca77c2b2ae63u
#define P5 0x27d4eb2f165667c5u

/* Little-endian, as the specification has it. */
static uint64_t word(const char *p, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)(unsigned char)p[i] << 8 * i;
	return v;
}

static uint64_t lane_round(uint64_t lane, uint64_t input)
{
	return rotate(lane + input * P2, 31) * P1;
}

static uint64_t merge(uint64_t h, uint64_t lane)
{
	return (h ^ lane_round(0, lane)) * P1 + P4;
}

static uint64_t stripes(struct str *rest, uint64_t seed)
{
	uint64_t lane[4] = { seed + P1 + P2, seed + P2, seed, seed - P1 }, h;

	for (; rest->n >= 32; rest->p += 32, rest->n -= 32)
		for (size_t i = 0; i < 4; i++)
			lane[i] = lane_round(lane[i], word(rest->p + 8 * i, 8));
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
		h = rotate(h ^ lane_round(0, word(rest.p, 8)), 27) * P1 + P4;
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
