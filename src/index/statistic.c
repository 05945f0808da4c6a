/* SPDX-License-Identifier: Apache-2.0 */
/* statistic.c - exact figures over the chosen rows of a column. */
#include <math.h>

#include "index/query.h"
#include "stats/stats.h"

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

void statistic_make(const struct index_view *v, const struct choice *c, struct str column,
		    struct arena *a, struct statistic *out)
{
	size_t number = view_column(v, column);
	double *x;

	*out = (struct statistic){ .column = column, .missing = c->total, .min = NAN, .max = NAN,
				   .mean = NAN, .std = NAN, .p50 = NAN, .p90 = NAN, .p95 = NAN,
				   .p99 = NAN };
	if (number == SIZE_MAX || !c->total)
		return;
	x = arena_alloc(a, c->total * sizeof(*x));
	if (v->is_ascending)
		out->count = choice_numbers(v, c, &v->head[number], a, x);
	else
		out->count = numbers_by_id(v, c, &v->head[number], a, x);
	out->missing = c->total - out->count;
	if (!out->count)
		return;
	out->mean = stats_mean(x, out->count);
	out->std = stats_std(x, out->count);
	stats_sort(x, out->count);
	out->min = x[0];
	out->max = x[out->count - 1];
	out->p50 = stats_percentile(x, out->count, 50);
	out->p90 = stats_percentile(x, out->count, 90);
	out->p95 = stats_percentile(x, out->count, 95);
	out->p99 = stats_percentile(x, out->count, 99);
}
