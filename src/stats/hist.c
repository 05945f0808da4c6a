/* SPDX-License-Identifier: Apache-2.0 */
/* hist.c - see hist.h. */
#include "stats/hist.h"

#include <assert.h>
#include <math.h>

#define load(p) __atomic_load_n(p, __ATOMIC_RELAXED)

_Static_assert(sizeof(struct hist) < 32768, "a histogram stays within a first-level cache");

/* The value a bucket stands for: the middle of what it holds. */
static int64_t middle(unsigned bucket)
{
	unsigned shift = bucket >> HIST_OCTAVE_BITS, low;

	if (shift <= 1)
		return bucket;
	shift--;
	low = bucket - (shift << HIST_OCTAVE_BITS);
	return (int64_t)(((uint64_t)low << shift) + (1ull << shift >> 1));
}

uint64_t hist_count(const struct hist *h)
{
	return load(&h->count);
}

int64_t hist_max(const struct hist *h)
{
	return load(&h->max_ns);
}

double hist_mean(const struct hist *h)
{
	uint64_t n = load(&h->count);

	return n ? (double)load(&h->sum_ns) / (double)n : 0.0;
}

int64_t hist_percentile(const struct hist *h, double p)
{
	uint64_t n = 0, rank, seen = 0;
	int64_t max = load(&h->max_ns), v;

	assert(p >= 0 && p <= 100);
	/* The buckets themselves are counted: a writer may be between bucket and count. */
	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		n += load(&h->bucket[b]);
	rank = (uint64_t)ceil(p / 100.0 * (double)n);
	if (rank >= n)
		return n ? max : 0;
	for (unsigned b = 0; b < HIST_BUCKETS; b++) {
		seen += load(&h->bucket[b]);
		if (seen && seen >= rank) {
			v = middle(b);
			return v < max ? v : max;
		}
	}
	return max;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	int64_t max = load(&from->max_ns);

	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		into->bucket[b] += load(&from->bucket[b]);
	into->count += load(&from->count);
	into->sum_ns += load(&from->sum_ns);
	if (into->max_ns < max)
		into->max_ns = max;
}
