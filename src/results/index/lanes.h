/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - comparisons of many rows at once, as bits; the compiler's vectors, which every
 * machine has, in its own instructions or in several of them.
 */
#pragma once
#include <stdint.h>
#include <string.h>

typedef uint8_t lanes_8 __attribute__((vector_size(16)));
typedef uint32_t lanes_32 __attribute__((vector_size(16)));

/* 0 or all ones in each byte: the upper bit of each as one of sixteen. */
static inline uint64_t lanes_bits(lanes_8 is)
{
	const lanes_8 bit = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	uint64_t half[2];

	is &= bit;
	memcpy(half, &is, sizeof(half));
	/* No two bits are the same, so the sum of eight bytes has no carry. */
	return half[0] * 0x0101010101010101u >> 56 | half[1] * 0x0101010101010101u >> 56 << 8;
}

/* Which of 64 codes are one of n wanted ones. */
static inline uint64_t lanes_any(const uint8_t *code, const uint8_t *wanted, unsigned n)
{
	uint64_t word = 0;

	for (unsigned at = 0; at < 64; at += 16) {
		lanes_8 x, is = { 0 };

		memcpy(&x, code + at, sizeof(x));
		for (unsigned k = 0; k < n; k++)
			is |= (lanes_8)(x == wanted[k]);
		word |= lanes_bits(is) << at;
	}
	return word;
}

/* 64 codes from 32 bytes: the low halves, then the high ones. */
static inline void lanes_unfold(const uint8_t *half, uint8_t code[64])
{
	for (unsigned at = 0; at < 32; at += 16) {
		lanes_8 x, low;

		memcpy(&x, half + at, sizeof(x));
		low = x & 15;
		x >>= 4;
		memcpy(code + at, &low, sizeof(low));
		memcpy(code + 32 + at, &x, sizeof(x));
	}
}

static inline uint64_t lanes_fold(lanes_32 x)
{
	uint64_t half[2];

	memcpy(half, &x, sizeof(half));
	half[0] |= half[1];
	return (half[0] | half[0] >> 32) & 0xffff;
}

/* Which of 64 numbers are from low to low + width, and which are one of both ends. */
static inline uint64_t lanes_between(const uint32_t *number, uint32_t low, uint32_t width,
				     uint64_t *ends)
{
	const lanes_32 bit = { 1, 2, 4, 8 };
	uint64_t word = 0, edge = 0;

	for (unsigned at = 0; at < 64; at += 16) {
		lanes_32 in = { 0 }, on = { 0 };

		for (unsigned k = 0; k < 4; k++) {
			lanes_32 x;

			memcpy(&x, number + at + 4 * k, sizeof(x));
			x -= low;
			in |= (lanes_32)(x <= width) & bit << 4 * k;
			on |= (lanes_32)((x == 0) | (x == width)) & bit << 4 * k;
		}
		word |= lanes_fold(in) << at;
		edge |= lanes_fold(on) << at;
	}
	*ends = edge;
	return word;
}
