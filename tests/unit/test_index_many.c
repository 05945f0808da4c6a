/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_index_many.c - an index of its usual sizes, with enough rows for sealed blocks, columns of
 * keys, order statistics by buckets and facets that are not listed, against plain arrays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"
#include "index_rig.h"
#include "results/index/index_internal.h"

#define ROWS 150000 /* two sealed blocks and a tail */
#define BATCH 1000
#define BYTES_PER_ROW 90 /* with the room that the tail has */

enum { METRIC, NAME, GROUP, TIME, SAME, COLUMNS };
static const char *const column[COLUMNS] = { "metric", "name", "group", "time", "same" };

static struct index *filled;
static double *metric;
static uint16_t *group;

static void fill(struct row *row, size_t nth, struct draw *d, struct arena *a)
{
	struct value v[COLUMNS];

	metric[nth] = exp(draw_unit(d) * 3 + draw_unit(d) * 3) * (nth % 97 ? 1 : -1);
	group[nth] = (uint16_t)(draw_below(d, 1 + draw_below(d, 300)));
	v[METRIC] = nth % 1000 == 7 ? (struct value){ .kind = VALUE_NULL } :
				      number_value(metric[nth]);
	v[NAME] = text_value(a, "run-%012zx", nth * 2654435761 % 1000000007);
	v[GROUP] = text_value(a, "group %zu", group[nth]);
	v[TIME] = number_value(1.7e9 + (double)nth * 30);
	v[SAME] = number_value(1);
	*row = (struct row){ .id = (int64_t)nth + 1, .n = COLUMNS };
	row->cell = arena_alloc(a, sizeof(struct cell) * COLUMNS);
	for (size_t i = 0; i < COLUMNS; i++)
		row->cell[i] = (struct cell){ str_of(column[i]), v[i] };
}

static int make(void **state)
{
	struct draw d = { 5 };
	struct row row[BATCH];
	struct err e;

	(void)state;
	filled = index_make();
	metric = mem_array(ROWS, sizeof(*metric));
	group = mem_array(ROWS, sizeof(*group));
	for (size_t at = 0; at < ROWS; at += BATCH) {
		struct arena a = { 0 };

		for (size_t i = 0; i < BATCH; i++)
			fill(&row[i], at + i, &d, &a);
		if (index_add_all(filled, row, BATCH, &e) < 0)
			return -1;
		arena_release(&a);
	}
	return 0;
}

static int drop(void **state)
{
	(void)state;
	index_free(filled);
	free(metric);
	free(group);
	return 0;
}

static bool has_metric(size_t nth) { return nth % 1000 != 7; }

/* What the query gives, and the view that it belongs to. */
static struct index_view *ask(const struct query *q, struct arena *a, struct answer *out)
{
	struct index_view *v = index_view(filled);
	struct err e;

	assert_int_equal(index_query(v, q, a, out, &e), 0);
	return v;
}

static void check_statistic(const struct statistic *s, double *x, size_t n)
{
	assert_int_equal(s->count, n);
	assert_true(s->mean == stats_mean(x, n) && s->std == stats_std(x, n));
	stats_sort(x, n);
	assert_true(s->min == x[0] && s->max == x[n - 1]);
	assert_true(s->p50 == stats_percentile(x, n, 50) && s->p90 == stats_percentile(x, n, 90));
	assert_true(s->p95 == stats_percentile(x, n, 95) && s->p99 == stats_percentile(x, n, 99));
}

/* Ranges of every width, with ends that are values: counts and statistics. */
static void test_ranges(void **state)
{
	struct str name = str_of(column[METRIC]);
	double *x = mem_array(ROWS, sizeof(*x));
	struct draw d = { 11 };

	(void)state;
	for (size_t k = 0; k < 40; k++) {
		struct filter f = { .kind = FILTER_RANGE, .column = name };
		struct query q = { .filter = &f, .statistic = &name, .n_statistics = 1 };
		struct arena a = { 0 };
		struct answer got;
		size_t n = 0;

		f.min = k ? metric[draw_below(&d, ROWS)] : -INFINITY;
		f.max = k ? f.min + fabs(f.min) * draw_unit(&d) * (k % 2 ? 1e-4 : 10) : INFINITY;
		for (size_t i = 0; i < ROWS; i++)
			if (has_metric(i) && metric[i] >= f.min && metric[i] <= f.max)
				x[n++] = metric[i];
		index_view_release(ask(&q, &a, &got));
		assert_int_equal(got.total, n);
		if (n)
			check_statistic(&got.statistic[0], x, n);
		arena_release(&a);
	}
	free(x);
}

/* One in a hundred thousand is found by its exact value, and by a piece of its name. */
static void test_needles(void **state)
{
	struct draw d = { 13 };

	(void)state;
	for (size_t k = 0; k < 10; k++) {
		size_t nth = draw_below(&d, ROWS / 1000) * 1000 + 8;
		struct arena a = { 0 };
		struct value v = number_value(metric[nth]);
		struct filter in = { .kind = FILTER_IN, .column = str_of(column[METRIC]),
				     .value = &v, .n_values = 1 };
		struct filter text = { .kind = FILTER_TEXT, .column = STR("*") };
		struct query q = { .filter = &in, .limit = 3 };
		struct answer got;

		index_view_release(ask(&q, &a, &got));
		assert_int_equal(got.total, 1);
		assert_int_equal(got.row[0].id, nth + 1);
		text.text = text_value(&a, "RUN-%012zX", nth * 2654435761 % 1000000007).text;
		q.filter = &text;
		index_view_release(ask(&q, &a, &got));
		assert_int_equal(got.total, 1);
		assert_int_equal(got.row[0].id, nth + 1);
		arena_release(&a);
	}
}

/* Too many values for a list: a histogram, what is missing, and what is selected. */
static void test_unlisted(void **state)
{
	struct str name = str_of(column[METRIC]);
	struct value wanted[2] = { number_value(metric[0]), number_value(1e99) };
	struct filter f = { .kind = FILTER_IN, .column = name, .value = wanted, .n_values = 2 };
	struct query q = { .filter = &f, .facet = &name, .n_facets = 1, .facet_values_max = 10,
			   .histogram_bins = 24 };
	struct arena a = { 0 };
	struct answer got;
	const struct facet *facet;
	size_t rows = 0;

	(void)state;
	index_view_release(ask(&q, &a, &got));
	facet = &got.facet[0];
	assert_int_equal(got.total, 1);
	assert_true(facet->is_unlisted && facet->is_range);
	assert_false(facet_is_constant(facet)); /* though distinct is 0 */
	assert_int_equal(facet->missing, ROWS / 1000);
	assert_int_equal(facet->n, 2);
	assert_true(facet->value[0].is_selected && facet->value[0].count == 1);
	assert_true(facet->value[1].is_selected && facet->value[1].count == 0);
	assert_int_equal(facet->others, ROWS - ROWS / 1000 - 1);
	for (size_t i = 0; i < facet->n_bins; i++)
		rows += facet->bin[i];
	assert_int_equal(rows, ROWS - ROWS / 1000);
	arena_release(&a);
}

/* Groups by the hundred, codes of one and of two bytes in the same column. */
static void test_groups(void **state)
{
	struct str name = str_of(column[GROUP]);
	struct query q = { .facet = &name, .n_facets = 1, .facet_values_max = 1000 };
	size_t count[300] = { 0 }, distinct = 0;
	struct arena a = { 0 };
	struct answer got;

	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		distinct += !count[group[i]]++;
	index_view_release(ask(&q, &a, &got));
	assert_int_equal(got.facet[0].distinct, distinct);
	assert_int_equal(got.facet[0].n, distinct);
	for (size_t i = 0; i < distinct; i++) {
		struct str text = got.facet[0].value[i].value.text;
		int64_t nth;

		assert_true(str_to_i64((struct str){ text.p + 6, text.n - 6 }, &nth));
		assert_int_equal(got.facet[0].value[i].count, count[nth]);
	}
	arena_release(&a);
}

/* Ids in the order of the metric, page by page, however deep. */
static void check_order(bool is_descending, const double *sorted, size_t n)
{
	struct query q = { .sort = { { str_of(column[METRIC]), is_descending } }, .n_sorts = 1,
			   .limit = 9000 };
	struct arena a = { 0 };
	struct answer got;
	size_t at = 0;

	do {
		index_view_release(ask(&q, &a, &got));
		for (size_t i = 0; i < got.n_rows; i++, at++) {
			size_t nth = (size_t)got.row[i].id - 1;

			assert_int_equal(has_metric(nth), at < n);
			if (at < n)
				assert_true(metric[nth] == sorted[is_descending ? n - 1 - at : at]);
		}
		q.cursor = got.next;
	} while (got.next.n);
	assert_int_equal(at, ROWS);
	arena_release(&a);
}

static void test_order(void **state)
{
	double *sorted = mem_array(ROWS, sizeof(*sorted));
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		if (has_metric(i))
			sorted[n++] = metric[i];
	stats_sort(sorted, n);
	check_order(false, sorted, n);
	check_order(true, sorted, n);
	free(sorted);
}

static void test_memory(void **state)
{
	(void)state;
	assert_in_range(index_bytes(filled), ROWS * 20, ROWS * BYTES_PER_ROW);
}

/* The same question about the same version has the same answer, about a later one it has not. */
static void test_again(void **state)
{
	struct str name = str_of(column[SAME]);
	struct query q = { .facet = &name, .n_facets = 1, .facet_values_max = 5, .limit = 2 };
	struct row row;
	struct draw d = { 1 };
	struct arena a = { 0 };
	struct answer first, again, later;
	struct err e;
	uint64_t version = index_version(filled);

	(void)state;
	index_view_release(ask(&q, &a, &first));
	index_view_release(ask(&q, &a, &again));
	assert_int_equal(again.total, first.total);
	assert_int_equal(again.facet[0].value[0].count, first.facet[0].value[0].count);
	assert_int_equal(again.row[1].id, first.row[1].id);
	assert_true(str_eq(again.next, first.next));
	metric = mem_grow(metric, ROWS + 1, sizeof(*metric));
	group = mem_grow(group, ROWS + 1, sizeof(*group));
	fill(&row, ROWS, &d, &a);
	assert_int_equal(index_add(filled, &row, 0, &e), 0);
	assert_true(index_version(filled) > version);
	index_view_release(ask(&q, &a, &later));
	assert_int_equal(later.total, first.total + 1);
	assert_int_equal(later.facet[0].value[0].count, first.facet[0].value[0].count + 1);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_needles),
		cmocka_unit_test(test_unlisted),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
