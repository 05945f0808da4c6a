/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistic.c - exact figures over the chosen rows of a column.
 *
 * Percentiles need a handful of order statistics, not a sorted array: values are counted in
 * buckets that are narrow in the order of their bits, and only those of the buckets in which
 * a wanted rank lies are sorted.
 */
#include <math.h>

#include "core/stats/stats.h"
#include "results/index/query.h"

#define SORTED_MAX 4096   /* so few are sorted whole */
#define BUCKET_BITS 12   /* counters that stay in the nearest cache */
#define PERCENTILES 4
#define RANKS (PERCENTILES * 2)

struct numbered { int64_t id; double number; };

static int compare_ids(const void *a, const void *b)
{
	int64_t x = ((const struct numbered *)a)->id, y = ((const struct numbered *)b)->id;

	return (x > y) - (x < y);
}

/* Rows that did not come in the order of their ids. */
static size_t numbers_by_id(const struct index_view *v, const struct choice *c,
			    const struct head *h, struct arena *a, double *out)
{
	struct numbered *all = arena_alloc(a, c->total * sizeof(*all));
	size_t n = 0;

	for (size_t block = 0; block < view_blocks(v); block++)
		for (size_t i = 0; i < c->count[block]; i++) {
			size_t row = choice_row(c, block, i, block << v->index->block_shift);
			struct value value = view_value(v, h, row);

			if (value.kind == VALUE_NUMBER && isfinite(value.number))
				all[n++] = (struct numbered){ view_id(v, row), value.number };
		}
	qsort(all, n, sizeof(*all), compare_ids);
	for (size_t i = 0; i < n; i++)
		out[i] = all[i].number;
	return n;
}

/* ---- order statistics ---- */

struct ranks {
	size_t rank[RANKS]; /* ascending */
	double value[RANKS];
};

/* Values of the buckets that hold a wanted rank, and how many smaller ones are left out. */
struct picked {
	uint32_t *count;     /* of each bucket; then whether its values are taken */
	size_t skipped[RANKS];
	size_t n;
};

static void pick_buckets(struct picked *p, const struct ranks *r)
{
	size_t before = 0, skipped = 0, wanted = 0;

	for (size_t b = 0; b < (size_t)1 << BUCKET_BITS; b++) {
		size_t here = p->count[b], first = wanted;

		while (wanted < RANKS && r->rank[wanted] < before + here)
			p->skipped[wanted++] = skipped;
		p->count[b] = wanted > first;
		before += here;
		if (wanted > first)
			p->n += here;
		else
			skipped += here;
	}
}

/* x is left as it is. */
static void find_ranks(const double *x, size_t n, double min, double max, struct ranks *r,
		       struct arena *a)
{
	uint64_t least = key_of_number(min), width = key_of_number(max) - least;
	unsigned bits = 64u - (unsigned)__builtin_clzll(width | 1);
	unsigned shift = bits > BUCKET_BITS ? bits - BUCKET_BITS : 0;
	struct picked p = { .count = arena_alloc(a, sizeof(*p.count) << BUCKET_BITS) };
	double *some;
	size_t got = 0;

	for (size_t i = 0; i < n; i++)
		p.count[(key_of_number(x[i]) - least) >> shift]++;
	pick_buckets(&p, r);
	some = arena_alloc(a, (p.n + 1) * sizeof(*some));
	for (size_t i = 0; i < n; i++) {
		some[got] = x[i];
		got += p.count[(key_of_number(x[i]) - least) >> shift];
	}
	stats_sort(some, p.n);
	for (size_t k = 0; k < RANKS; k++)
		r->value[k] = some[r->rank[k] - p.skipped[k]];
}

static void find_percentiles(double *x, size_t n, struct statistic *out, struct arena *a)
{
	static const double percent[PERCENTILES] = { 50, 90, 95, 99 };
	double *to[PERCENTILES] = { &out->p50, &out->p90, &out->p95, &out->p99 };
	double part[PERCENTILES];
	struct ranks r;

	if (n <= SORTED_MAX) {
		stats_sort(x, n);
		for (size_t k = 0; k < PERCENTILES; k++)
			*to[k] = stats_percentile(x, n, percent[k]);
		return;
	}
	for (size_t k = 0; k < PERCENTILES; k++) {
		r.rank[k * 2] = stats_rank(n, percent[k], &part[k]);
		r.rank[k * 2 + 1] = r.rank[k * 2] + 1 < n ? r.rank[k * 2] + 1 : n - 1;
	}
	find_ranks(x, n, out->min, out->max, &r, a);
	for (size_t k = 0; k < PERCENTILES; k++)
		*to[k] = stats_between(r.value[k * 2], r.value[k * 2 + 1], part[k]);
}

#define LANES 8 /* so that one comparison need not wait for the other */

static void find_ends(const double *x, size_t n, double *min, double *max)
{
	double least[LANES], most[LANES];
	size_t i = 0;

	for (size_t k = 0; k < LANES; k++)
		least[k] = most[k] = x[0];
	for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 8
		for (size_t k = 0; k < LANES; k++) {
			least[k] = x[i + k] < least[k] ? x[i + k] : least[k];
			most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
		}
	for (; i < n; i++) {
		least[0] = x[i] < least[0] ? x[i] : least[0];
		most[0] = x[i] > most[0] ? x[i] : most[0];
	}
	*min = least[0];
	*max = most[0];
	for (size_t k = 1; k < LANES; k++) {
		*min = least[k] < *min ? least[k] : *min;
		*max = most[k] > *max ? most[k] : *max;
	}
}

void statistic_make(const struct index_view *v, const struct choice *c, struct str column,
		    struct scratch *s, struct statistic *out)
{
	size_t number = view_column(v, column);
	double *x;

	*out = (struct statistic){ .column = column, .missing = c->total, .min = NAN, .max = NAN,
				   .mean = NAN, .std = NAN, .p50 = NAN, .p90 = NAN, .p95 = NAN,
				   .p99 = NAN };
	if (number == SIZE_MAX || !c->total)
		return;
	x = scratch_numbers(s, c->total);
	if (v->is_ascending)
		out->count = choice_numbers(v, c, &v->head[number], &s->arena, x);
	else
		out->count = numbers_by_id(v, c, &v->head[number], &s->arena, x);
	out->missing = c->total - out->count;
	if (!out->count)
		return;
	out->mean = stats_mean(x, out->count);
	out->std = stats_std_around(x, out->count, out->mean);
	find_ends(x, out->count, &out->min, &out->max);
	find_percentiles(x, out->count, out, &s->arena);
}
