/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_index_fold.c - repeats as one row: what it shows, its place in the order, and that pages
 * hold each row once, against a slow count of the same.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "index_rig.h"
#include "results/index/index_internal.h"

#define KEY "configuration"

static void add(struct index *x, int64_t id, double key, const char *verdict, double ttft,
		double timestamp, unsigned flags)
{
	struct err e = { 0 };
	struct cell cell[] = {
		{ STR("name"), { .kind = VALUE_TEXT, .text = str_of(verdict) } },
		{ STR("verdict"), { .kind = VALUE_TEXT, .text = str_of(verdict) } },
		{ STR("timestamp"), number_value(timestamp) },
		{ STR("benchmark.max_concurrency"), number_value(8) },
		{ STR("median_ttft_ms"), isnan(ttft) ? (struct value){ .kind = VALUE_NULL } :
						       number_value(ttft) },
		{ STR(KEY), number_value(key) },
	};
	struct row r = { .id = id, .cell = cell, .n = key > 0 ? 6 : 5 };

	assert_int_equal(index_add(x, &r, flags, &e), 0);
}

static const struct str columns[] = {
	STR("verdict"), STR("timestamp"), STR("benchmark.max_concurrency"), STR("median_ttft_ms"),
	STR("=1000 / median_ttft_ms"), STR("=nothing"),
};

static struct answer ask(struct index *x, struct query q, struct arena *a)
{
	struct index_view *v = index_view(x);
	struct answer out;
	struct err e = { 0 };

	q.column = columns;
	q.n_columns = sizeof(columns) / sizeof(*columns);
	q.fold = STR(KEY);
	assert_int_equal(index_query(v, &q, a, &out, &e), 0);
	index_view_release(v);
	return out;
}

static void check_ids(const struct page_row *r, size_t n, const int64_t *id)
{
	assert_int_equal(r->n, n);
	assert_int_equal(r->n_ids, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(r->ids[i], id[i]);
}

/* Three repeats of 100, 110 and 130 ms, two of 50 and 70, and a run without a configuration. */
static struct index *known(void)
{
	struct index *x = index_make();

	add(x, 1, 7, "VALID", 100, 1000, 0);
	add(x, 2, 9, "VALID", 70, 1001, 0);
	add(x, 3, 7, "DEGRADED", 130, 1002, 0);
	add(x, 4, 9, "VALID", 50, 5000, 0);
	add(x, 5, 7, "VALID", 110, 1003, 0);
	add(x, 6, 0, "VALID", 60, 1004, 0);
	add(x, 7, 7, "VALID", 900, 1005, INDEX_EXCLUDED);
	return x;
}

static void test_values(void **state)
{
	const struct query_sort up = { STR("median_ttft_ms"), false };
	struct query q = { .limit = 10, .n_sorts = 1 };
	struct index *x = known();
	struct arena a = { 0 };
	struct answer got;

	(void)state;
	q.sort[0] = up;
	got = ask(x, q, &a);
	assert_int_equal(got.total, 6);
	assert_int_equal(got.folded, 3);
	assert_int_equal(got.n_rows, 3);
	/* Of 50 and 70 the median is 60; of the two rows with 60 the newer one is first. */
	check_ids(&got.row[0], 1, (int64_t[]){ 6 });
	check_ids(&got.row[1], 2, (int64_t[]){ 4, 2 });
	check_ids(&got.row[2], 3, (int64_t[]){ 5, 3, 1 });
	assert_true(got.row[1].value[3].number == 60 && got.row[1].spread[3] == 10);
	assert_true(got.row[2].value[3].number == 110 && got.row[2].spread[3] == 15);
	assert_true(value_is_text(got.row[2].value[0], "DEGRADED"));
	assert_true(got.row[2].value[1].number == 1003);
	assert_true(got.row[2].value[2].number == 8 && isnan(got.row[2].spread[2]));
	assert_true(isnan(got.row[0].spread[3]));
	/* What is computed has the median of what each run has. */
	assert_true(fabs(got.row[0].value[4].number - 1000 / 60.0) < 1e-9);
	assert_true(isnan(got.row[0].spread[4]));
	assert_true(fabs(got.row[2].value[4].number - 1000 / 110.0) < 1e-9);
	assert_true(fabs(got.row[2].spread[4] - (10 - 1000 / 130.0) / 2) < 1e-9);
	assert_int_equal(got.row[0].value[5].kind, VALUE_ABSENT);
	assert_int_equal(got.row[2].value[5].kind, VALUE_ABSENT);
	/* An excluded repeat is a row of its own where such runs are shown. */
	q.shown = INDEX_EXCLUDED;
	got = ask(x, q, &a);
	assert_int_equal(got.folded, 4);
	check_ids(&got.row[3], 1, (int64_t[]){ 7 });
	arena_release(&a);
	index_free(x);
}

/* Sorted by time, the newest repeat counts; a filter folds what is left. */
static void test_order(void **state)
{
	const struct value wanted[] = { number_value(100), number_value(110), number_value(70) };
	struct filter f = { .kind = FILTER_IN, .column = STR("median_ttft_ms"),
			    .value = (struct value *)wanted, .n_values = 3 };
	struct query q = { .limit = 10, .n_sorts = 1 };
	struct index *x = known();
	struct arena a = { 0 };
	struct answer got;

	(void)state;
	q.sort[0] = (struct query_sort){ STR("timestamp"), true };
	got = ask(x, q, &a);
	check_ids(&got.row[0], 2, (int64_t[]){ 4, 2 });
	check_ids(&got.row[1], 1, (int64_t[]){ 6 });
	q.filter = &f;
	got = ask(x, q, &a);
	assert_int_equal(got.total, 3);
	assert_int_equal(got.folded, 2);
	check_ids(&got.row[0], 2, (int64_t[]){ 5, 1 });
	assert_true(got.row[0].value[3].number == 105);
	arena_release(&a);
	index_free(x);
}

static void test_missing(void **state)
{
	struct query q = { .limit = 10, .n_sorts = 1 };
	struct index *x = index_make();
	struct arena a = { 0 };
	struct answer got;

	(void)state;
	add(x, 1, 7, "VALID", NAN, 1, 0);
	add(x, 2, 7, "VALID", NAN, 2, 0);
	add(x, 3, 8, "VALID", NAN, 3, 0);
	add(x, 4, 8, "VALID", 5, 4, 0);
	q.sort[0] = (struct query_sort){ STR("median_ttft_ms"), true };
	got = ask(x, q, &a);
	check_ids(&got.row[0], 2, (int64_t[]){ 4, 3 });
	assert_true(got.row[0].value[3].number == 5 && isnan(got.row[0].spread[3]));
	check_ids(&got.row[1], 2, (int64_t[]){ 2, 1 });
	assert_int_equal(got.row[1].value[3].kind, VALUE_NULL);
	arena_release(&a);
	index_free(x);
}

/* ---- many ---- */

#define MANY 700
struct many { int64_t id; double key, ttft; unsigned flags; };

static size_t count_groups(const struct many *m, size_t n)
{
	size_t groups = 0;

	for (size_t i = 0; i < n; i++) {
		bool is_new = true;

		for (size_t k = 0; k < i && m[i].key > 0 && is_new; k++)
			is_new = m[k].key != m[i].key;
		groups += is_new;
	}
	return groups;
}

static double median_of(const struct many *m, size_t n, double key)
{
	double list[MANY];
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (m[i].key == key)
			list[count++] = m[i].ttft;
	for (size_t i = 1; i < count; i++)
		for (size_t k = i; k > 0 && list[k] < list[k - 1]; k--) {
			double held = list[k];

			list[k] = list[k - 1];
			list[k - 1] = held;
		}
	return (list[(count - 1) / 2] + list[count / 2]) / 2;
}

/* All pages one after the other, in blocks and dictionaries of these sizes. */
static void walk(unsigned shift, uint32_t dictionary, size_t limit, bool is_descending)
{
	struct index *x = index_make_with(shift, dictionary);
	struct draw d = { 77 + limit };
	struct arena a = { 0 };
	struct many m[MANY];
	bool is_seen[MANY + 1] = { false };
	struct query q = { .limit = limit, .n_sorts = 2 };
	double before = is_descending ? INFINITY : -INFINITY;
	size_t rows = 0, runs = 0;

	for (size_t i = 0; i < MANY; i++) {
		m[i] = (struct many){ .id = (int64_t)i + 1, .key = (double)draw_below(&d, 200),
				      .ttft = (double)draw_below(&d, 30) };
		add(x, m[i].id, m[i].key, "VALID", m[i].ttft, (double)i, 0);
	}
	q.sort[0] = (struct query_sort){ STR("median_ttft_ms"), is_descending };
	q.sort[1] = (struct query_sort){ STR("name"), false };
	do {
		struct answer got = ask(x, q, &a);

		assert_int_equal(got.folded, count_groups(m, MANY));
		assert_true(got.n_rows <= limit);
		for (size_t i = 0; i < got.n_rows; i++) {
			const struct page_row *r = &got.row[i];
			double v = r->value[3].number, key = m[r->id - 1].key;

			assert_true(is_descending ? v <= before : v >= before);
			assert_true(v == (key > 0 ? median_of(m, MANY, key) : m[r->id - 1].ttft));
			for (size_t k = 0; k < r->n_ids; k++) {
				assert_false(is_seen[r->ids[k]]);
				is_seen[r->ids[k]] = true;
				assert_true(m[r->ids[k] - 1].key == key);
			}
			before = v;
			runs += r->n;
		}
		rows += got.n_rows;
		q.cursor = got.next;
	} while (q.cursor.n);
	assert_int_equal(rows, count_groups(m, MANY));
	assert_int_equal(runs, MANY);
	arena_release(&a);
	index_free(x);
}

static void test_pages(void **state)
{
	(void)state;
	walk(INDEX_BLOCK_SHIFT, INDEX_DICTIONARY_MAX, 7, true);
	walk(6, 65535, 50, false);
	walk(6, 40, 13, true); /* some blocks hold codes, others keys */
	walk(6, 40, 1000, false);
}

/* A cursor goes on at the same place after a run has come, and is of one kind of page only. */
static void test_cursor(void **state)
{
	struct query q = { .limit = 1, .n_sorts = 1 };
	struct index *x = known();
	struct arena a = { 0 };
	struct err e = { 0 };
	struct answer got, plain;
	struct index_view *v;

	(void)state;
	q.sort[0] = (struct query_sort){ STR("median_ttft_ms"), true };
	got = ask(x, q, &a);
	check_ids(&got.row[0], 3, (int64_t[]){ 5, 3, 1 });
	q.cursor = got.next;
	add(x, 8, 7, "VALID", 110, 1006, 0);
	got = ask(x, q, &a);
	check_ids(&got.row[0], 1, (int64_t[]){ 6 });
	v = index_view(x);
	assert_int_equal(index_query(v, &q, &a, &plain, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	index_view_release(v);
	arena_release(&a);
	index_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values), cmocka_unit_test(test_order),
		cmocka_unit_test(test_missing), cmocka_unit_test(test_pages),
		cmocka_unit_test(test_cursor),
	};

	return cmocka_run_group_tests_name("index_fold", tests, NULL, NULL);
}
