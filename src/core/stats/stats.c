/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - see stats.h. */
#include "core/stats/stats.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "core/base/mem.h"

#define PAIRWISE_BLOCK 128 /* NumPy halves longer arrays before adding */
#define SMALL_SORT 512     /* below this the library's sort is as quick */

/* Adds x[i], or (x[i] - centre)^2 when squares are asked for. */
struct terms {
	const double *x;
	double centre;
	int is_square;
};

static inline double term(const struct terms *t, size_t i)
{
	double d = t->x[i] - t->centre;

	return t->is_square ? d * d : t->x[i];
}

/* Compiled once for each kind of term, because millions are added. */
__attribute__((always_inline))
static inline double add_block(const struct terms *t, size_t from, size_t n)
{
	double r[8], sum;
	size_t i;

	for (i = 0; i < 8; i++)
		r[i] = term(t, from + i);
	for (; i < n - n % 8; i += 8)
		for (size_t k = 0; k < 8; k++)
			r[k] += term(t, from + i + k);
	sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
	for (; i < n; i++)
		sum += term(t, from + i);
	return sum;
}

static double add_pairwise(const struct terms *t, size_t from, size_t n)
{
	size_t half;

	if (n < 8) {
		double sum = -0.0;

		for (size_t i = 0; i < n; i++)
			sum += term(t, from + i);
		return sum;
	}
	if (n <= PAIRWISE_BLOCK) {
		struct terms plain = { .x = t->x }, square = { t->x, t->centre, 1 };

		return t->is_square ? add_block(&square, from, n) : add_block(&plain, from, n);
	}
	half = n / 2 - n / 2 % 8;
	return add_pairwise(t, from, half) + add_pairwise(t, from + half, n - half);
}

double stats_sum(const double *x, size_t n)
{
	struct terms t = { .x = x };

	return 0.0 + add_pairwise(&t, 0, n);
}

double stats_mean(const double *x, size_t n)
{
	return n ? stats_sum(x, n) / (double)n : 0.0;
}

double stats_std(const double *x, size_t n)
{
	return stats_std_around(x, n, stats_mean(x, n));
}

double stats_std_around(const double *x, size_t n, double mean)
{
	struct terms t = { .x = x, .centre = mean, .is_square = 1 };

	return n ? sqrt(add_pairwise(&t, 0, n) / (double)n) : 0.0;
}

static int compare(const void *a, const void *b)
{
	double x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

#define RADIX_BITS 11
#define RADIX (1u << RADIX_BITS)
#define PASSES 6 /* 66 bits, enough for 64 */

/* Bits whose unsigned order is the order of the doubles, and back. */
static uint64_t key_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits ^ (-(bits >> 63) | 1ull << 63);
}

static double value_of(uint64_t key)
{
	uint64_t bits = key ^ (((key >> 63) - 1) | 1ull << 63);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* Least significant digits first; a pass whose digit is the same everywhere is skipped. */
static void sort_radix(double *x, size_t n)
{
	size_t (*count)[RADIX] = mem_array(PASSES, sizeof(*count));
	uint64_t *from = mem_array(n, sizeof(*from)), *to = mem_array(n, sizeof(*to)), *other;

	for (size_t i = 0; i < n; i++) {
		from[i] = key_of(x[i]);
		for (size_t p = 0; p < PASSES; p++)
			count[p][from[i] >> p * RADIX_BITS & (RADIX - 1)]++;
	}
	for (size_t p = 0; p < PASSES; p++) {
		size_t at = 0, here;

		if (count[p][from[0] >> p * RADIX_BITS & (RADIX - 1)] == n)
			continue;
		for (size_t d = 0; d < RADIX; d++, at += here) {
			here = count[p][d];
			count[p][d] = at;
		}
		for (size_t i = 0; i < n; i++)
			to[count[p][from[i] >> p * RADIX_BITS & (RADIX - 1)]++] = from[i];
		other = from;
		from = to;
		to = other;
	}
	for (size_t i = 0; i < n; i++)
		x[i] = value_of(from[i]);
	free(count);
	free(from);
	free(to);
}

void stats_sort(double *x, size_t n)
{
	if (n > SMALL_SORT)
		sort_radix(x, n);
	else if (n)
		qsort(x, n, sizeof(*x), compare);
}

double *stats_sorted(const double *x, size_t n)
{
	double *copy = mem_array(n, sizeof(*copy));

	if (n)
		memcpy(copy, x, n * sizeof(*copy));
	stats_sort(copy, n);
	return copy;
}

/* Hoare's selection: the part that holds the place is cut in two, until it is one value. */
double stats_select(double *x, size_t n, size_t k)
{
	size_t from = 0, to = n - 1;

	assert(k < n);
	while (from < to) {
		double pivot = x[from + (to - from) / 2];
		size_t i = from, j = to;

		for (;; i++, j--) {
			while (x[i] < pivot)
				i++;
			while (pivot < x[j])
				j--;
			if (i >= j)
				break;
			double held = x[i];

			x[i] = x[j];
			x[j] = held;
		}
		/* Up to j none is larger than the pivot, and none is smaller after it. */
		if (k <= j)
			to = j;
		else
			from = j + 1;
	}
	return x[k];
}

double stats_median(const double *sorted, size_t n)
{
	if (!n)
		return 0.0;
	return n % 2 ? sorted[n / 2] : stats_mean(&sorted[n / 2 - 1], 2);
}

size_t stats_rank(size_t n, double p, double *part)
{
	double at = (double)(n - 1) * (p / 100.0);
	size_t k = (size_t)floor(at);

	assert(n && p >= 0 && p <= 100);
	*part = k >= n - 1 ? 0.0 : at - floor(at);
	return k >= n - 1 ? n - 1 : k;
}

double stats_between(double low, double high, double part)
{
	double gap = high - low;

	assert(part >= 0 && part <= 1);
	/* From the nearer end, so that the result never leaves the interval. */
	return part < 0.5 ? low + gap * part : high - gap * (1.0 - part);
}

double stats_percentile(const double *sorted, size_t n, double p)
{
	double part;
	size_t k;

	if (!n)
		return 0.0;
	k = stats_rank(n, p, &part);
	return k + 1 < n ? stats_between(sorted[k], sorted[k + 1], part) : sorted[k];
}

/* ---- Intervals ---- */

double interval_z(double level)
{
	double low = 0, high = 40;

	assert(level > 0 && level < 1);
	/* erfc is exact enough and monotone; halving needs no starting guess. */
	for (int i = 0; i < 80; i++) {
		double mid = (low + high) / 2;

		if (erfc(mid * M_SQRT1_2) > 1 - level)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}

/* ---- Histograms ---- */

#define load(p) __atomic_load_n(p, __ATOMIC_RELAXED)

_Static_assert(sizeof(struct hist) < 32768, "a histogram stays within a first-level cache");

/* The representative value of a bucket: the middle of its range. */
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

	assert(into != from);
	for (unsigned b = 0; b < HIST_BUCKETS; b++)
		into->bucket[b] += load(&from->bucket[b]);
	into->count += load(&from->count);
	into->sum_ns += load(&from->sum_ns);
	if (into->max_ns < max)
		into->max_ns = max;
}
