/* SPDX-License-Identifier: Apache-2.0 */
/* swap.h - the few steps that the shuffles and choices of all three generators share. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Exchanges items i and j, each of `size` bytes. */
static inline void rng_swap(void *items, size_t size, size_t i, size_t j)
{
	unsigned char *a = (unsigned char *)items + i * size;
	unsigned char *b = (unsigned char *)items + j * size;
	unsigned char kept[64];

	if (i == j)
		return;
	while (size) {
		size_t n = size < sizeof(kept) ? size : sizeof(kept);

		memcpy(kept, a, n);
		memcpy(a, b, n);
		memcpy(b, kept, n);
		a += n;
		b += n;
		size -= n;
	}
}

/* The smallest 2^k - 1 that is at least max. */
static inline uint64_t rng_mask(uint64_t max)
{
	return max ? UINT64_MAX >> __builtin_clzll(max) : 0;
}

/* The first index whose cumulative value is above u; cdf ascends and ends with 1. */
static inline size_t rng_first_above(const double *cdf, size_t n, double u)
{
	size_t low = 0, high = n - 1;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (cdf[mid] > u)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}
