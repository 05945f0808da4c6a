/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaling.c - what more of something brings: for each series the median of a metric at each size,
 * its ratio to that of the series' smallest size, and that ratio over the ratio of sizes.
 *
 *   speedup = value / value at the smallest size (the inverse where lower is better)
 *   efficiency = speedup / (size / smallest size)
 *
 * A series is whatever else makes runs comparable; the size's own column is no part of it.
 */
#include <math.h>

#include "results/analyse/parts.h"

struct sized { double size, value; };

static int by_size(const void *x, const void *y)
{
	const struct sized *a = x, *b = y;
	int order = (a->size > b->size) - (a->size < b->size);

	return order ? order : (a->value > b->value) - (a->value < b->value);
}

static double speedup_of(double value, double first, int better)
{
	if (better < 0)
		return value > 0 && first > 0 ? first / value : NAN;
	return first > 0 && value >= 0 ? value / first : NAN;
}

/* The values of one size lie in order behind each other. */
static void put_points(struct json_writer *w, const struct sized *x, size_t n, int better)
{
	double first = NAN, smallest = NAN;

	json_member_array(w, "points");
	for (size_t i = 0, to; i < n; i = to) {
		double median, speedup;
		size_t count;

		for (to = i + 1; to < n && x[to].size <= x[i].size;)
			to++;
		count = to - i;
		median = (x[i + (count - 1) / 2].value + x[i + count / 2].value) / 2;
		if (isnan(smallest)) {
			smallest = x[i].size;
			first = median;
		}
		speedup = speedup_of(median, first, better);
		json_begin_object(w);
		parts_put_number(w, "x", x[i].size);
		parts_put_count(w, "n", count);
		parts_put_number(w, "median", median);
		parts_put_number(w, "low", x[i].value);
		parts_put_number(w, "high", x[to - 1].value);
		parts_put_number(w, "speedup", speedup);
		parts_put_number(w, "efficiency", smallest > 0 ? speedup * smallest / x[i].size : NAN);
		json_end_object(w);
	}
	json_end_array(w);
}

static size_t count_sizes(const struct sized *x, size_t n)
{
	size_t sizes = n > 0;

	for (size_t i = 1; i < n; i++)
		sizes += x[i].size > x[i - 1].size;
	return sizes;
}

struct scaling {
	const struct analyse_request *r;
	struct str by, metric, *key;
	size_t n_keys;
	struct rows rows;
};

static bool put_series(struct scaling *s, struct json_writer *w, const struct series_list *l,
		       size_t i)
{
	const struct series *one = &l->series[i];
	struct sized *x = arena_alloc(s->r->arena, (one->n + 1) * sizeof(*x));

	for (size_t k = 0; k < one->n; k++) {
		x[k].size = s->rows.value[s->n_keys * s->rows.n + one->member[k]].number;
		x[k].value = s->rows.value[(s->n_keys + 1) * s->rows.n + one->member[k]].number;
	}
	qsort(x, one->n, sizeof(*x), by_size);
	if (count_sizes(x, one->n) < 2)
		return false;
	json_begin_object(w);
	parts_put_series(w, l, i);
	parts_put_count(w, "n", one->n);
	put_points(w, x, one->n, column_better(s->metric));
	json_end_object(w);
	return true;
}

static int read_request(struct scaling *s, struct err *e)
{
	const struct json_value *series = json_get(s->r->body, "series");
	struct str *given;
	size_t n;

	if (parts_column(s->r, "metric", &s->metric, e) < 0 ||
	    parts_column(s->r, "by", &s->by, e) < 0 ||
	    parts_columns(s->r, "series", &given, &n, e) < 0)
		return -1;
	if (!series || series->kind == JSON_NULL)
		given = parts_present(s->r, parts_series_default, &n);
	s->key = arena_alloc(s->r->arena, (n + 2) * sizeof(*s->key));
	for (size_t i = 0; i < n; i++) {
		/* The number of GPUs follows from the sizes. */
		bool is_size = str_eq(given[i], s->by) ||
			       ((!series || series->kind == JSON_NULL) &&
				(str_is(given[i], "hardware.gpus") || str_is(given[i], "gpus")));

		if (!is_size)
			s->key[s->n_keys++] = given[i];
	}
	s->key[s->n_keys] = s->by;
	s->key[s->n_keys + 1] = s->metric;
	return parts_select(s->r, s->key, s->n_keys + 2, &s->rows, e);
}

int analyse_scaling(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct scaling s = { .r = r };
	struct notes notes = { .arena = r->arena };
	struct counting counting;
	struct series_list l;
	size_t shown = 0;
	bool *keep;

	if (read_request(&s, e) < 0)
		return -1;
	counting = counting_of(s.metric);
	keep = arena_alloc(r->arena, s.rows.n + 1);
	for (size_t i = 0; i < s.rows.n; i++)
		keep[i] = !isnan(parts_number_at(&s.rows, s.n_keys, i)) &&
			  counting_see(&counting, &s.rows.verdicts, i,
				       parts_number_at(&s.rows, s.n_keys + 1, i)) == COUNTS;
	parts_series(r->arena, &s.rows, s.key, s.n_keys, keep, &l);
	json_member_str(w, "metric", s.metric);
	parts_put_kind(w, s.metric);
	json_member_str(w, "by", s.by);
	json_member_array(w, "series");
	for (size_t i = 0; i < l.shown; i++)
		shown += put_series(&s, w, &l, i);
	json_end_array(w);
	if (l.shown > shown)
		parts_note(&notes, "%zu series have one size of %.*s only and are left out",
			   l.shown - shown, (int)s.by.n, s.by.p);
	if (l.n > l.shown)
		parts_note(&notes, "%zu series; the %zu with the most runs were looked at", l.n,
			   l.shown);
	counting_put(w, &counting, 1);
	counting_notes(&counting, 1, &notes);
	parts_put_notes(w, &notes);
	return 0;
}
