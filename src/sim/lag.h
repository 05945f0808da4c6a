/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lag.h - a small histogram of nanoseconds for judging our own pacing.
 *
 * Sixteen buckets for each power of two, so a quantile is within 6.25 %.
 * Negative values count as 0.
 */
#pragma once
#include <stdint.h>

#define LAG_BUCKETS (16 * 60)

struct lag {
	uint64_t bucket[LAG_BUCKETS];
	uint64_t count;
	int64_t max_ns;
};

static inline unsigned lag_index(uint64_t ns)
{
	unsigned power;

	if (ns < 16)
		return (unsigned)ns;
	power = 63 - (unsigned)__builtin_clzll(ns);
	return (power - 3) * 16 + (unsigned)(ns >> (power - 4) & 15);
}

static inline void lag_add(struct lag *l, int64_t ns)
{
	l->bucket[lag_index(ns > 0 ? (uint64_t)ns : 0)]++;
	l->count++;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

/* The lower edge of the bucket that holds quantile q; 0 when empty. */
static inline int64_t lag_quantile(const struct lag *l, double q)
{
	uint64_t want = (uint64_t)(q * (double)l->count), seen = 0;

	for (unsigned i = 0; i < LAG_BUCKETS; i++) {
		seen += l->bucket[i];
		if (seen > want)
			return i < 16 ? i : (int64_t)(16 + i % 16) << (i / 16 - 1);
	}
	return l->max_ns;
}
