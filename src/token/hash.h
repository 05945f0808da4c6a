/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/hash.h - short byte strings as three words, and a hash of any.
 *
 * Words and tokens are a few bytes long, so both the vocabulary and the word
 * cache work on the first 24 bytes at once instead of byte by byte.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_KEY_BYTES 24

struct hash_key {
	uint64_t w[3]; /* the bytes, then zeros */
};

static inline uint64_t hash_load8(const char *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* 0..8 bytes in one word, zeros behind. Reads nothing outside p[0..n). */
static inline uint64_t hash_load(const char *p, size_t n)
{
	uint32_t low, high;

	if (n == 8)
		return hash_load8(p);
	if (n >= 4) {
		memcpy(&low, p, 4);
		memcpy(&high, p + n - 4, 4);
		return low | (uint64_t)high << 8 * (n - 4);
	}
	if (n == 0)
		return 0;
	return (uint64_t)(uint8_t)p[0] | (uint64_t)(uint8_t)p[n / 2] << 8 * (n / 2) |
		(uint64_t)(uint8_t)p[n - 1] << 8 * (n - 1);
}

/* n <= HASH_KEY_BYTES. */
static inline struct hash_key hash_key(const char *p, size_t n)
{
	if (n <= 8)
		return (struct hash_key){ { hash_load(p, n), 0, 0 } };
	if (n <= 16)
		return (struct hash_key){ { hash_load8(p), hash_load(p + 8, n - 8), 0 } };
	return (struct hash_key){ { hash_load8(p), hash_load8(p + 8), hash_load(p + 16, n - 16) } };
}

static inline uint64_t hash_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	return h ^ h >> 32;
}

static inline uint64_t hash_of_key(struct hash_key k, size_t n)
{
	return hash_mix(k.w[0] * 0x9e3779b97f4a7c15u + k.w[1] * 0xc2b2ae3d27d4eb4fu +
		k.w[2] * 0x165667b19e3779f9u + n);
}

static inline uint64_t hash_bytes(const char *p, size_t n)
{
	uint64_t h = n;

	for (; n > HASH_KEY_BYTES; p += HASH_KEY_BYTES, n -= HASH_KEY_BYTES)
		h = hash_mix(h + hash_of_key(hash_key(p, HASH_KEY_BYTES), HASH_KEY_BYTES));
	return hash_mix(h + hash_of_key(hash_key(p, n), n));
}
