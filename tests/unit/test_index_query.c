/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_index_query.c - answers of the index against brute force over single rows, while a writer
 * adds rows and changes flags: every answer must be that of the rows of its own version.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"
#include "index_rig.h"
#include "results/index/index_internal.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TREES 800
#else
#define TREES 5000 /* of each of two orders of ids */
#endif
#define ROWS 700
#define CHANGES_MAX (ROWS * 2)
#define BLOCK_SHIFT 6
#define DICTIONARY_MAX 40

/* What a version did: rows up to rows, and the flags of one of them. */
struct change { uint64_t version; size_t rows, row; unsigned flags; };

struct world {
	struct index *index;
	struct arena arena;
	struct row row[ROWS];
	unsigned first_flags[ROWS];
	size_t by_id[ROWS];              /* rows in the order of their ids */
	struct change change[CHANGES_MAX];
	_Atomic size_t changes;
	_Atomic bool may_go_on;
	struct draw draw;
};

/* ---- the writer ---- */

static void log_change(struct world *w, size_t rows, size_t row, unsigned flags)
{
	size_t n = atomic_load(&w->changes);

	assert_true(n < CHANGES_MAX);
	w->change[n] = (struct change){ index_version(w->index) + 1, rows, row, flags };
	atomic_store(&w->changes, n + 1);
}

static void *write_rows(void *arg)
{
	struct world *w = arg;
	struct draw d = { 77 };
	struct err e = { 0 };
	size_t at = 0;

	while (at < ROWS) {
		size_t n = draw_below(&d, 4) ? 1 : 1 + draw_below(&d, 30);
		size_t old = at ? draw_below(&d, at) : 0;

		while (at > 100 && !atomic_load(&w->may_go_on))
			usleep(100);
		n = n < ROWS - at ? n : ROWS - at;
		log_change(w, at + n, SIZE_MAX, 0);
		if (n == 1)
			index_add(w->index, &w->row[at], w->first_flags[at], &e);
		else
			index_add_all(w->index, &w->row[at], n, &e);
		at += n;
		if (draw_below(&d, 5) == 0) {
			unsigned flags = (unsigned)draw_below(&d, 4);

			log_change(w, at, old, flags);
			index_flag(w->index, w->row[old].id, flags);
		}
		atomic_store(&w->may_go_on, false);
	}
	return NULL;
}

/* ---- brute force ---- */

/* The rows of a version, as the writer's log has them. */
struct truth { size_t n; unsigned flags[ROWS]; };

static void read_log(const struct world *w, uint64_t version, struct truth *t)
{
	size_t n = atomic_load(&w->changes);

	t->n = 0;
	for (size_t i = 0; i < n && w->change[i].version <= version; i++) {
		const struct change *c = &w->change[i];

		for (size_t row = t->n; row < c->rows; row++)
			t->flags[row] = c->rows - t->n == 1 ? w->first_flags[row] : 0;
		t->n = c->rows;
		if (c->row != SIZE_MAX)
			t->flags[c->row] = c->flags;
	}
}

static struct value cell_value(const struct row *r, struct str column)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->cell[i].column, column))
			return r->cell[i].value;
	return (struct value){ 0 };
}

static bool is_missing(struct value v) { return v.kind == VALUE_ABSENT || v.kind == VALUE_NULL; }

/* Whether each row is chosen; the conditions of this column at the top are left out. */
static size_t choose(const struct world *w, const struct truth *t, const struct query *q,
		     const struct str *column, bool *is_in)
{
	struct filter *const whole = (struct filter *)q->filter, *const *part = &whole;
	size_t n = filter_top(q->filter, &part), total = 0;

	for (size_t i = 0; i < t->n; i++) {
		is_in[i] = !(t->flags[i] & ~q->shown) &&
			   (!q->only_flagged || (t->flags[i] & q->shown));
		for (size_t k = 0; k < n && is_in[i]; k++)
			is_in[i] = (column && filter_is_about(part[k], *column)) ||
				   filter_holds(part[k], &w->row[i]);
		total += is_in[i];
	}
	return total;
}

static const struct query *sorted_by;

static int compare_rows(const void *x, const void *y)
{
	const struct row *a = *(const struct row *const *)x, *b = *(const struct row *const *)y;

	for (size_t i = 0; i < sorted_by->n_sorts; i++) {
		struct value u = cell_value(a, sorted_by->sort[i].column);
		struct value v = cell_value(b, sorted_by->sort[i].column);
		int c = value_compare(u, v);

		if (is_missing(u) != is_missing(v))
			return is_missing(u) ? 1 : -1;
		if (c && !is_missing(u))
			return sorted_by->sort[i].is_descending ? -c : c;
	}
	return a->id < b->id ? 1 : -1;
}

/* ---- comparing ---- */

/* The rows of the whole order, read by their ids. */
static void check_order(const struct row *const *want, size_t n, const struct index_view *v,
			const struct query *q, struct arena *a, size_t most)
{
	struct page_row *row;
	size_t found;
	int64_t *id;

	index_order(v, q, most, a, &id, &found);
	assert_int_equal(found, n < most ? n : most);
	row = arena_alloc(a, (found + 1) * sizeof(*row));
	assert_int_equal(index_rows(v, id, found, q->column, q->n_columns, a, row), found);
	for (size_t i = 0; i < found; i++) {
		assert_int_equal(row[i].id, want[i]->id);
		for (size_t k = 0; k < q->n_columns; k++)
			assert_true(value_same(row[i].value[k], cell_value(want[i], q->column[k])));
	}
}

static void check_row(const struct page_row *got, const struct row *want, const struct query *q)
{
	assert_int_equal(got->id, want->id);
	for (size_t i = 0; i < q->n_columns; i++)
		assert_true(value_same(got->value[i], cell_value(want, q->column[i])));
}

static void check_page(struct world *w, const struct truth *t, const bool *is_in,
		       const struct index_view *v, struct query q, const struct answer *first,
		       bool is_walk)
{
	const struct row *want[ROWS];
	struct answer got = *first;
	struct arena a = { 0 };
	struct err e = { 0 };
	size_t n = 0, at = 0;

	for (size_t i = 0; i < t->n; i++)
		if (is_in[i])
			want[n++] = &w->row[i];
	assert_int_equal(got.total, n);
	sorted_by = &q;
	qsort(want, n, sizeof(*want), compare_rows);
	if (is_walk)
		check_order(want, n, v, &q, &a, q.limit ? q.limit : SIZE_MAX);
	for (;;) {
		size_t here = n - at < q.limit ? n - at : q.limit;

		assert_int_equal(got.n_rows, here);
		for (size_t i = 0; i < here; i++)
			check_row(&got.row[i], want[at + i], &q);
		at += here;
		assert_int_equal(got.next.n > 0, at < n && q.limit > 0);
		if (!got.next.n || !is_walk)
			break;
		q.cursor = got.next;
		q.n_facets = q.n_statistics = 0;
		assert_int_equal(index_query(v, &q, &a, &got, &e), 0);
	}
	arena_release(&a);
}

static bool is_wanted(const struct filter *f, struct value v)
{
	bool is = false;

	for (size_t i = 0; f->kind == FILTER_IN && i < f->n_values; i++)
		is |= !is_missing(v) && value_same(f->value[i], v);
	for (size_t i = 0; (f->kind == FILTER_AND || f->kind == FILTER_OR) && i < f->n_parts; i++)
		is |= is_wanted(f->part[i], v);
	return is;
}

static bool is_selected(const struct filter *f, struct str column, struct value v)
{
	struct filter *const whole = (struct filter *)f, *const *part = &whole;
	size_t n = filter_top(f, &part);
	bool is = false;

	for (size_t i = 0; i < n; i++)
		is |= filter_is_about(part[i], column) && is_wanted(part[i], v);
	return is;
}

static void check_bins(const struct world *w, const struct truth *t, const bool *is_in,
		       const struct facet *f)
{
	double least = INFINITY, most = -INFINITY;
	size_t bin[64] = { 0 }, n = 0;

	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < t->n; i++) {
			struct value v = cell_value(&w->row[i], f->column);
			size_t k;

			if (!is_in[i] || v.kind != VALUE_NUMBER || !isfinite(v.number))
				continue;
			n++;
			least = fmin(least, v.number);
			most = fmax(most, v.number);
			if (pass == 0)
				continue;
			k = most > least ? (size_t)((v.number / 2 - least / 2) /
						    (most / 2 - least / 2) * (double)f->n_bins) : 0;
			bin[k < f->n_bins ? k : f->n_bins - 1]++;
		}
	if (!n) {
		assert_int_equal(f->n_bins, 0);
		return;
	}
	assert_true(f->min == least && f->max == most);
	for (size_t k = 0; k < f->n_bins; k++)
		assert_int_equal(f->bin[k], bin[k]);
}

/* The finite numbers among the rows that are counted, and no other row's. */
static void check_ends(const struct world *w, const struct truth *t, const bool *is_in,
		       const struct facet *f)
{
	double least = INFINITY, most = -INFINITY;

	for (size_t i = 0; i < t->n; i++) {
		struct value v = cell_value(&w->row[i], f->column);

		if (!is_in[i] || v.kind != VALUE_NUMBER || !isfinite(v.number))
			continue;
		least = fmin(least, v.number);
		most = fmax(most, v.number);
	}
	assert_true(least <= most ? f->min == least && f->max == most :
				    isnan(f->min) && isnan(f->max));
}

static int compare_counted(const void *x, const void *y)
{
	const struct facet_value *a = x, *b = y;

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return value_compare(a->value, b->value);
}

static int compare_values(const void *x, const void *y)
{
	return value_compare(*(const struct value *)x, *(const struct value *)y);
}

/* Every value of the chosen rows with its rows, most rows first. */
static size_t count_values(const struct world *w, const struct truth *t, const bool *is_in,
			   struct str column, struct facet_value *out, size_t *missing)
{
	struct value value[ROWS];
	size_t n = 0, distinct = 0;

	*missing = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct value v = is_in[i] ? cell_value(&w->row[i], column) : (struct value){ 0 };

		*missing += is_in[i] && is_missing(v);
		if (is_in[i] && !is_missing(v))
			value[n++] = v;
	}
	qsort(value, n, sizeof(*value), compare_values);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || !value_same(value[i - 1], value[i]))
			out[distinct++] = (struct facet_value){ value[i], 0, false };
		out[distinct - 1].count++;
	}
	qsort(out, distinct, sizeof(*out), compare_counted);
	return distinct;
}

static void check_facet(const struct world *w, const struct truth *t, const struct query *q,
			const struct facet *f)
{
	struct facet_value want[ROWS];
	bool is_in[ROWS];
	size_t missing, n, at = 0, others = 0, rows = 0;

	choose(w, t, q, &f->column, is_in);
	n = count_values(w, t, is_in, f->column, want, &missing);
	assert_int_equal(f->missing, missing);
	assert_int_equal(f->distinct, n);
	assert_int_equal(facet_is_constant(f), n + (missing > 0) <= 1);
	assert_false(f->is_unlisted);
	for (size_t i = 0; i < n; i++) {
		want[i].is_selected = is_selected(q->filter, f->column, want[i].value);
		rows += want[i].count;
		if (i >= q->facet_values_max && !want[i].is_selected) {
			others += want[i].count;
			continue;
		}
		assert_true(at < f->n);
		assert_true(value_same(f->value[at].value, want[i].value));
		assert_int_equal(f->value[at].count, want[i].count);
		assert_int_equal(f->value[at].is_selected, want[i].is_selected);
		at++;
	}
	assert_int_equal(f->others, others);
	check_ends(w, t, is_in, f);
	for (; at < f->n; at++) {
		assert_int_equal(f->value[at].count, 0);
		assert_true(is_selected(q->filter, f->column, f->value[at].value));
	}
	if (f->is_range)
		check_bins(w, t, is_in, f);
	if (str_is(f->column, "request_throughput") && q->histogram_bins)
		assert_int_equal(f->is_range, n > q->facet_values_max);
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static void check_statistic(const struct world *w, const struct truth *t, const bool *is_in,
			    bool only_ends, const struct statistic *s)
{
	double x[ROWS], nan = NAN;
	size_t n = 0, total = 0;

	for (size_t k = 0; k < ROWS; k++) {
		size_t i = w->by_id[k];
		struct value v;

		if (i >= t->n || !is_in[i])
			continue;
		total++;
		v = cell_value(&w->row[i], s->column);
		if (v.kind == VALUE_NUMBER && isfinite(v.number))
			x[n++] = v.number;
	}
	assert_int_equal(s->count, n);
	assert_int_equal(s->missing, total - n);
	assert_true(same(s->mean, n && !only_ends ? stats_mean(x, n) : nan));
	assert_true(same(s->std, n && !only_ends ? stats_std(x, n) : nan));
	stats_sort(x, n);
	assert_true(same(s->min, n ? x[0] : nan));
	assert_true(same(s->max, n ? x[n - 1] : nan));
	if (only_ends)
		n = 0;
	assert_true(same(s->p50, n ? stats_percentile(x, n, 50) : nan));
	assert_true(same(s->p90, n ? stats_percentile(x, n, 90) : nan));
	assert_true(same(s->p95, n ? stats_percentile(x, n, 95) : nan));
	assert_true(same(s->p99, n ? stats_percentile(x, n, 99) : nan));
}

static void check_select(const struct world *w, const struct truth *t, const bool *is_in,
			 const struct index_view *v, const struct query *q, struct arena *a)
{
	struct value *value;
	struct err e = { 0 };
	size_t n, at = 0;
	int64_t *id;

	if (q->only_flagged)
		return;
	assert_int_equal(index_select(v, q->filter, q->shown, q->column, q->n_columns, a, &id, &n,
				      &value, &e), 0);
	for (size_t k = 0; k < ROWS; k++) {
		size_t i = w->by_id[k];

		if (i >= t->n || !is_in[i])
			continue;
		assert_true(at < n);
		assert_int_equal(id[at], w->row[i].id);
		for (size_t c = 0; c < q->n_columns; c++)
			assert_true(value_same(value[c * n + at],
					       cell_value(&w->row[i], q->column[c])));
		at++;
	}
	assert_int_equal(at, n);
}

/* ---- random questions ---- */

static struct str any_column(struct draw *d)
{
	size_t i = draw_below(d, RIG_COLUMNS + 1);

	return i < RIG_COLUMNS ? str_of(rig_column[i]) : STR("nowhere");
}

static struct query any_query(struct world *w, struct arena *a, struct str *column)
{
	struct draw *d = &w->draw;
	struct query q = { .column = column, .n_columns = 3, .facet = column, .n_facets = 4,
			   .statistic = column, .n_statistics = 3 };

	for (size_t i = 0; i < 4; i++)
		column[i] = any_column(d);
	q.filter = draw_below(d, 30) ? rig_filter(d, a, ROWS, 5) : NULL;
	q.shown = (unsigned)draw_below(d, 4);
	q.only_flagged = draw_below(d, 8) == 0;
	q.n_sorts = draw_below(d, 4);
	for (size_t i = 0; i < q.n_sorts; i++)
		q.sort[i] = (struct query_sort){ any_column(d), draw_below(d, 2) };
	q.limit = draw_below(d, 4) ? 1 + draw_below(d, 60) : 0;
	q.facet_values_max = draw_below(d, 12);
	q.histogram_bins = draw_below(d, 2) * (1 + draw_below(d, 20));
	q.only_ends = draw_below(d, 5) == 0;
	return q;
}

static void check_query(struct world *w, size_t nth)
{
	struct arena a = { 0 };
	struct index_view *v = index_view(w->index);
	struct str column[4];
	struct query q = any_query(w, &a, column);
	struct answer got;
	struct truth t;
	bool is_in[ROWS];
	struct err e = { 0 };

	assert_int_equal(index_query(v, &q, &a, &got, &e), 0);
	read_log(w, index_view_version(v), &t);
	choose(w, &t, &q, NULL, is_in);
	check_page(w, &t, is_in, v, q, &got, nth % 10 == 0);
	for (size_t i = 0; i < q.n_facets; i++)
		check_facet(w, &t, &q, &got.facet[i]);
	for (size_t i = 0; i < q.n_statistics; i++)
		check_statistic(w, &t, is_in, q.only_ends, &got.statistic[i]);
	if (nth % 10 == 5)
		check_select(w, &t, is_in, v, &q, &a);
	index_view_release(v);
	arena_release(&a);
}

static const struct world *order_of;

static int compare_ids(const void *x, const void *y)
{
	int64_t a = order_of->row[*(const size_t *)x].id, b = order_of->row[*(const size_t *)y].id;

	return (a > b) - (a < b);
}

static void run_world(bool is_ascending)
{
	struct world *w = mem_alloc(sizeof(*w));
	pthread_t writer;

	w->index = index_make_with(BLOCK_SHIFT, DICTIONARY_MAX);
	w->draw.state = is_ascending ? 1 : 2;
	for (size_t i = 0; i < ROWS; i++) {
		size_t id = is_ascending ? i * 3 + 1 : i * 37 % 701 + 1;

		w->row[i] = rig_row(&w->draw, &w->arena, i, (int64_t)id);
		if (draw_below(&w->draw, 10) == 0)
			w->first_flags[i] = (unsigned)draw_below(&w->draw, 4);
		w->by_id[i] = i;
	}
	order_of = w;
	qsort(w->by_id, ROWS, sizeof(*w->by_id), compare_ids);
	assert_int_equal(pthread_create(&writer, NULL, write_rows, w), 0);
	for (size_t i = 0; i < TREES; i++) {
		check_query(w, i);
		atomic_store(&w->may_go_on, true);
	}
	while (pthread_tryjoin_np(writer, NULL) != 0) {
		atomic_store(&w->may_go_on, true);
		usleep(100);
	}
	check_query(w, 0);
	index_free(w->index);
	arena_release(&w->arena);
	free(w);
}

static void test_ascending(void **state)
{
	(void)state;
	run_world(true);
}

static void test_any_order(void **state)
{
	(void)state;
	run_world(false);
}

/* ---- what outlives a question, and what does not ---- */

#define NAMED 200

/* Runs of a name each, too many for a dictionary. */
static struct index *named_runs(void)
{
	struct index *x = index_make_with(BLOCK_SHIFT, DICTIONARY_MAX);
	struct err e = { 0 };

	x->listed_rows_max = 20;
	for (size_t i = 0; i < NAMED; i++) {
		struct arena a = { 0 };
		struct cell cell[] = {
			{ STR("run_id"), text_value(&a, "run-%03zu", i) },
			{ STR("metric"), number_value((double)i) },
			{ i == 7 ? STR("tags.secret") : STR("tags.open"), number_value(1) },
		};
		struct row row = { (int64_t)i + 1, cell, 3 };

		assert_int_equal(index_add(x, &row, 0, &e), 0);
		arena_release(&a);
	}
	return x;
}

/* The names of one run and of none are asked for; their texts are gone when the answer is there. */
static void ask_for_names(struct index *x, struct arena *a, struct answer *out)
{
	static char question[] = "run-123nowhere!"; /* static, else overwriting it may be left out */
	struct value name[] = {
		{ .kind = VALUE_TEXT, .text = { question, 7 } },
		{ .kind = VALUE_TEXT, .text = { question + 7, 8 } },
	};
	struct str column = STR("run_id");
	struct filter f = { .kind = FILTER_IN, .column = column, .value = name, .n_values = 2 };
	struct query q = { .filter = &f, .facet = &column, .n_facets = 1, .facet_values_max = 5 };
	struct index_view *v = index_view(x);
	struct err e = { 0 };

	memcpy(question, "run-123nowhere!", sizeof(question) - 1);
	assert_int_equal(index_query(v, &q, a, out, &e), 0);
	assert_true(out->facet[0].is_unlisted);
	assert_int_equal(out->facet[0].n, 2);
	assert_true(str_is(out->facet[0].value[0].value.text, "run-123"));
	assert_int_equal(out->facet[0].value[0].count, 1);
	assert_true(str_is(out->facet[0].value[1].value.text, "nowhere!"));
	assert_int_equal(out->facet[0].value[1].count, 0);
	index_view_release(v);
	memset(question, '#', sizeof(question));
}

/* An answer that is given again has nothing of the question that it was first given to. */
static void test_given_again(void **state)
{
	struct index *x = named_runs();

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct arena a = { 0 };
		struct answer got;

		ask_for_names(x, &a, &got);
		assert_true(str_is(got.facet[0].value[0].value.text, "run-123"));
		arena_release(&a);
	}
	index_free(x);
}

static void count_call(void *self)
{
	++*(unsigned *)self;
}

/* Columns that are computed, in pages, by ids and of many runs at once. */
static void test_formulas(void **state)
{
	static const struct str column[] = {
		STR("metric"), STR("=2 * metric + 1"), STR("=60 / metric"), STR("=nowhere"), STR("=("),
	};
	enum { COLUMNS = sizeof(column) / sizeof(*column) };
	static const struct { double metric; const double want[COLUMNS]; } row[] = {
		{ 0, { 0, 1, NAN, NAN, NAN } }, { 5, { 5, 11, 12, NAN, NAN } },
		{ 199, { 199, 399, 60.0 / 199, NAN, NAN } },
	};
	struct query q = { .column = column, .n_columns = COLUMNS, .limit = NAMED };
	struct index *x = named_runs();
	struct index_view *v = index_view(x);
	struct arena a = { 0 };
	struct value *value;
	struct answer got;
	struct err e = { 0 };
	int64_t *id;
	size_t n;

	(void)state;
	assert_int_equal(index_query(v, &q, &a, &got, &e), 0);
	assert_int_equal(index_select(v, NULL, 0, column, COLUMNS, &a, &id, &n, &value, &e), 0);
	assert_int_equal(n, NAMED);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		/* By id; in a page the newest come first. */
		const size_t at = (size_t)row[i].metric;
		const int64_t number = (int64_t)at + 1;
		struct page_row one;

		assert_int_equal(index_rows(v, &number, 1, column, COLUMNS, &a, &one), 1);
		assert_int_equal(id[at], number);
		for (size_t c = 0; c < COLUMNS; c++) {
			struct value want = number_value(row[i].want[c]);

			if (isnan(row[i].want[c]))
				want = (struct value){ .kind = VALUE_ABSENT };
			assert_true(value_same(value[c * n + at], want));
			assert_true(value_same(one.value[c], want));
			assert_true(value_same(got.row[NAMED - 1 - at].value[c], want));
		}
	}
	index_view_release(v);
	index_free(x);
	arena_release(&a);
}

/* Whatever is asked for, a removed row is in no answer, and another index has nothing of it. */
static void test_removed(void **state)
{
	const unsigned all = INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED | INDEX_REMOVED;
	struct index *x = named_runs(), *rest;
	struct str metric = STR("metric");
	struct query q = { .shown = all, .facet = &metric, .n_facets = 1, .limit = 1 };
	const int64_t gone[] = { 8, NAMED };
	const unsigned flags[] = { INDEX_REMOVED, INDEX_REMOVED };
	struct arena a = { 0 };
	struct answer got;
	struct index_view *v;
	struct value *none;
	struct row row;
	struct err e = { 0 };
	int64_t *id;
	uint64_t version;
	unsigned calls = 0;
	size_t n;

	(void)state;
	assert_int_equal(index_flag_all(x, gone, flags, 2), 2);
	v = index_view(x);
	assert_int_equal(index_removed(v), 2);
	assert_int_equal(index_query(v, &q, &a, &got, &e), 0);
	assert_int_equal(got.total, NAMED - 2);
	assert_int_equal(got.row[0].id, NAMED - 1);
	assert_true(got.facet[0].min == 0 && got.facet[0].max == NAMED - 2);
	assert_int_equal(index_select(v, NULL, all, NULL, 0, &a, &id, &n, &none, &e), 0);
	assert_int_equal(n, NAMED - 2);
	assert_false(index_row(v, 8, &a, &row, NULL));
	assert_true(index_row(v, 9, &a, &row, NULL));
	got.row = arena_alloc(&a, 3 * sizeof(*got.row));
	assert_int_equal(index_rows(v, (const int64_t[]){ 9, 8, 7 }, 3, &metric, 1, &a, got.row),
			 2);
	rest = index_without_removed(v, count_call, &calls);
	assert_true(calls > 0);
	version = index_view_version(v);
	index_free(x); /* the view is still held, and its answers are good */
	assert_true(index_row(v, 9, &a, &row, NULL));
	assert_int_equal(row.n, 3);
	index_view_release(v);
	assert_true(index_version(rest) > version);
	v = index_view(rest);
	assert_int_equal(index_removed(v), 0);
	assert_int_equal(index_query(v, &q, &a, &got, &e), 0);
	assert_int_equal(got.total, NAMED - 2);
	assert_null(index_column(v, STR("tags.secret")));
	assert_non_null(index_column(v, STR("tags.open")));
	index_view_release(v);
	index_free(rest);
	arena_release(&a);
}

/* Flags of many rows are one version, however they differ, also while a view is held. */
static void test_many_flags(void **state)
{
	struct index *x = named_runs();
	struct index_view *held = index_view(x), *v;
	int64_t id[NAMED], bytes = index_bytes(x);
	unsigned flags[NAMED];
	uint64_t version = index_version(x);

	(void)state;
	for (size_t i = 0; i < NAMED; i++) {
		id[i] = (int64_t)i + 1;
		flags[i] = i % 2 ? INDEX_ARCHIVED : INDEX_EXCLUDED;
	}
	assert_int_equal(index_flag_all(x, id, flags, NAMED), NAMED);
	assert_int_equal(index_version(x), version + 1);
	assert_in_range(index_bytes(x), bytes, bytes + 20000);
	v = index_view(x);
	for (size_t i = 0; i < NAMED; i++) {
		assert_int_equal(view_flags(v, i), flags[i]);
		assert_int_equal(view_flags(held, i), 0);
	}
	index_view_release(v);
	index_view_release(held);
	assert_int_equal(index_last_id(x), NAMED);
	index_go_on_from(x, version + 1000);
	assert_true(index_version(x) > version + 1000);
	index_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ascending),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_given_again),
		cmocka_unit_test(test_removed), cmocka_unit_test(test_formulas),
		cmocka_unit_test(test_many_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
