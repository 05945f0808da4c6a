/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - one question to a version, from its filter to its answer. */
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "results/index/cache.h"
#include "results/index/query.h"

/* Rows for a facet whose own conditions are left out. */
struct without { struct str column; struct choice choice; };

/* The bits of conditions about one column at the filter's top, all together. */
struct own { struct str column; uint64_t *word; };

/* What the filter's top is made of: the facets' own conditions, and all others. */
struct split {
	uint64_t *common;
	struct own *own;
	size_t n_own;
	struct choice all;
	struct choice *without; /* of each own */
};

static const struct str *own_column(const struct query *q, const struct filter *part)
{
	for (size_t i = 0; i < q->n_facets; i++)
		if (filter_is_about(part, q->facet[i]))
			return &q->facet[i];
	return NULL;
}

static uint64_t *own_words(const struct index_view *v, struct split *s, struct str column,
			   struct arena *a)
{
	for (size_t i = 0; i < s->n_own; i++)
		if (str_eq(s->own[i].column, column))
			return s->own[i].word;
	s->own[s->n_own] = (struct own){ column, select_none(v, a) };
	select_all(v, s->own[s->n_own].word);
	return s->own[s->n_own++].word;
}

static uint64_t *copy_words(const struct index_view *v, const uint64_t *word, struct arena *a)
{
	uint64_t *copy = select_none(v, a);

	memcpy(copy, word, select_words(v) * sizeof(*copy));
	return copy;
}

static void split_make(const struct index_view *v, const struct query *q, struct arena *a,
		       struct split *s)
{
	struct filter *const whole = (struct filter *)q->filter, *const *part = &whole;
	size_t n = filter_top(q->filter, &part);
	uint64_t *one = select_none(v, a), *all;

	*s = (struct split){ .common = select_none(v, a) };
	s->own = arena_alloc(a, n * sizeof(*s->own));
	select_shown(v, q->shown, q->only_flagged, s->common);
	for (size_t i = 0; i < n; i++) {
		const struct str *column = own_column(q, part[i]);

		select_filter(v, part[i], a, one);
		select_and(v, one, column ? own_words(v, s, *column, a) : s->common);
	}
	all = copy_words(v, s->common, a);
	for (size_t i = 0; i < s->n_own; i++)
		select_and(v, s->own[i].word, all);
	choice_make(v, all, a, &s->all);
	s->without = arena_alloc(a, s->n_own * sizeof(*s->without));
	for (size_t i = 0; i < s->n_own; i++) {
		uint64_t *rest = copy_words(v, s->common, a);

		for (size_t k = 0; k < s->n_own; k++)
			if (k != i)
				select_and(v, s->own[k].word, rest);
		choice_make(v, rest, a, &s->without[i]);
	}
}

static const struct choice *facet_rows(const struct split *s, struct str column)
{
	for (size_t i = 0; i < s->n_own; i++)
		if (str_eq(s->own[i].column, column))
			return &s->without[i];
	return &s->all;
}

/* ---- facets and statistics, by several threads when that pays ---- */

#define PARALLEL_ROWS 3000000 /* rows to look at; with fewer a thread costs more than it helps */
#define PARALLEL_THREADS 2    /* others ask at the same time */

double *scratch_numbers(struct scratch *s, size_t n)
{
	if (n >= s->n_numbers) {
		free(s->number);
		s->number = mem_grow(NULL, n + 1, sizeof(*s->number));
		s->n_numbers = n + 1;
	}
	return s->number;
}

struct work {
	const struct index_view *view;
	const struct query *query;
	const struct split *split;
	struct answer *out;
	struct wanted *wanted;
	struct scratch scratch[PARALLEL_THREADS];
};

/* Statistics first: they take longest. */
static bool work_on(void *self, size_t item, unsigned worker)
{
	struct work *w = self;
	struct scratch *s = &w->scratch[worker];
	size_t facet = item - w->out->n_statistics;

	if (item < w->out->n_statistics)
		statistic_make(w->view, &w->split->all, w->query->statistic[item], s,
			       &w->out->statistic[item]);
	else
		facet_count(w->view, facet_rows(w->split, w->out->facet[facet].column), w->query,
			    &w->wanted[facet], s, &w->out->facet[facet]);
	arena_release(&s->arena);
	return true;
}

static void count_all(const struct index_view *v, const struct query *q, const struct split *s,
		      struct arena *a, struct arena *scratch, struct answer *out)
{
	struct work w = { .view = v, .query = q, .split = s, .out = out };
	size_t n = q->n_facets + q->n_statistics;
	bool pays = s->all.total * n > PARALLEL_ROWS;

	out->n_facets = q->n_facets;
	out->facet = arena_alloc(a, q->n_facets * sizeof(*out->facet));
	out->n_statistics = q->n_statistics;
	out->statistic = arena_alloc(a, q->n_statistics * sizeof(*out->statistic));
	w.wanted = arena_alloc(scratch, q->n_facets * sizeof(*w.wanted));
	for (size_t i = 0; i < q->n_facets; i++)
		facet_begin(q, q->facet[i], a, &out->facet[i], &w.wanted[i]);
	parallel_for(pays ? PARALLEL_THREADS : 1, n, work_on, &w);
	for (size_t i = 0; i < PARALLEL_THREADS; i++)
		free(w.scratch[i].number);
}

static int check(const struct query *q, struct err *e)
{
	static const char text[] = "%s: %zu asked for, at most %d are given";

	if (q->limit > QUERY_LIMIT_MAX)
		return err_set(e, ERR_USAGE, text, "limit", q->limit, QUERY_LIMIT_MAX);
	if (q->n_facets > QUERY_FACETS_MAX)
		return err_set(e, ERR_USAGE, text, "facets", q->n_facets, QUERY_FACETS_MAX);
	if (q->n_statistics > QUERY_STATISTICS_MAX)
		return err_set(e, ERR_USAGE, text, "statistics", q->n_statistics,
			       QUERY_STATISTICS_MAX);
	if (q->n_sorts > QUERY_SORTS_MAX)
		return err_set(e, ERR_USAGE, text, "sort", q->n_sorts, QUERY_SORTS_MAX);
	if (q->facet_values_max > QUERY_LIMIT_MAX)
		return err_set(e, ERR_USAGE, text, "facet_values", q->facet_values_max,
			       QUERY_LIMIT_MAX);
	if (q->histogram_bins > QUERY_LIMIT_MAX)
		return err_set(e, ERR_USAGE, text, "bins", q->histogram_bins, QUERY_LIMIT_MAX);
	return 0;
}

int index_query(const struct index_view *v, const struct query *q, struct arena *a,
		struct answer *out, struct err *e)
{
	struct arena scratch = { 0 };
	struct split s;
	struct str key;
	int rc;

	*out = (struct answer){ 0 };
	if (check(q, e) < 0)
		return -1;
	key = cache_key(q, &scratch);
	if (cache_get(v->index->cache, v->number, key, q, a, out)) {
		arena_release(&scratch);
		return 0;
	}
	split_make(v, q, &scratch, &s);
	out->total = s.all.total;
	rc = page_make(v, &s.all, q, a, out, e);
	if (rc == 0)
		count_all(v, q, &s, a, &scratch, out);
	if (rc == 0)
		cache_put(v->index->cache, v->number, key, q, out);
	arena_release(&scratch);
	return rc;
}

/* ---- rows one after the other ---- */

void index_order(const struct index_view *v, const struct query *q, size_t most, struct arena *a,
		 int64_t **id, size_t *n)
{
	const struct query rows = { .filter = q->filter, .shown = q->shown,
				    .only_flagged = q->only_flagged };
	struct arena scratch = { 0 };
	struct split s;

	split_make(v, &rows, &scratch, &s);
	most = most < s.all.total ? most : s.all.total;
	*id = arena_alloc(a, most * sizeof(**id));
	*n = page_order(v, &s.all, q, most, &scratch, *id);
	arena_release(&scratch);
}

/* ---- columns for analysis ---- */

struct row_id { int64_t id; size_t row; };

static int compare_ids(const void *a, const void *b)
{
	int64_t x = ((const struct row_id *)a)->id, y = ((const struct row_id *)b)->id;

	return (x > y) - (x < y);
}

static struct row_id *rows_by_id(const struct index_view *v, const struct choice *c,
				 struct arena *a)
{
	struct row_id *all = arena_alloc(a, c->total * sizeof(*all));
	size_t n = 0;

	for (size_t block = 0; block < view_blocks(v); block++)
		for (size_t i = 0; i < c->count[block]; i++) {
			size_t row = choice_row(c, block, i, block << v->index->block_shift);

			all[n++] = (struct row_id){ view_id(v, row), row };
		}
	if (!v->is_ascending)
		qsort(all, n, sizeof(*all), compare_ids);
	return all;
}

int index_select(const struct index_view *v, const struct filter *f, unsigned shown,
		 const struct str *column, size_t n_columns, struct arena *a, int64_t **id,
		 size_t *n, struct value **values, struct err *e)
{
	const struct query q = { .filter = f, .shown = shown };
	struct arena scratch = { 0 };
	struct row_id *row;
	struct split s;

	split_make(v, &q, &scratch, &s);
	*n = s.all.total;
	if (n_columns && *n > INDEX_CELLS_MAX / n_columns) {
		arena_release(&scratch);
		return err_set(e, ERR_LIMIT, "%zu runs with %zu columns each are too many at once: at "
			       "most %zu values are given (INDEX_CELLS_MAX); choose fewer runs", *n,
			       n_columns, (size_t)INDEX_CELLS_MAX);
	}
	row = rows_by_id(v, &s.all, &scratch);
	*id = arena_alloc(a, *n * sizeof(**id));
	*values = arena_alloc(a, *n * n_columns * sizeof(**values));
	for (size_t i = 0; i < *n; i++)
		(*id)[i] = row[i].id;
	for (size_t c = 0; c < n_columns; c++) {
		size_t number = view_column(v, column[c]);

		for (size_t i = 0; i < *n && number != SIZE_MAX; i++)
			(*values)[c * *n + i] = view_value(v, &v->head[number], row[i].row);
	}
	arena_release(&scratch);
	return 0;
}
