/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.c - repeats as one row: groups chosen rows by equal values, and computes what a group shows.
 *
 * Three passes over the chosen rows: the group of each, the rows of each group next to each other,
 * and one number per group for each sort column. Medians are computed only for the page's rows.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"
#include "results/index/index_internal.h"
#include "results/index/names.h"

#define SLOTS_FIRST 1024u
#define FEW_NUMBERS 32 /* of a group: on the stack */

/* The value that a group shows for its rows in a column. */
enum shows { SHOWS_NEWEST, SHOWS_MEDIAN, SHOWS_LATEST, SHOWS_WORST };

static enum shows shows(struct str column)
{
	if (when_is_column(column))
		return SHOWS_LATEST;
	if (str_is(column, "verdict"))
		return SHOWS_WORST;
	return column_name(column).is_metric ? SHOWS_MEDIAN : SHOWS_NEWEST;
}

/* ---- groups ---- */

struct grouping {
	uint32_t *slot, slots; /* 1 + group by key, open addressing */
	uint64_t *key;         /* of each group; 0: a single row */
	uint32_t *count;
	size_t n;
};

static size_t slot_of(const struct grouping *g, uint64_t key)
{
	uint64_t hash = key * 0x9e3779b97f4a7c15u;
	size_t at = (hash ^ hash >> 32) & (g->slots - 1);

	while (g->slot[at] && g->key[g->slot[at] - 1] != key)
		at = (at + 1) & (g->slots - 1);
	return at;
}

static void grow_slots(struct grouping *g, struct arena *a)
{
	g->slots *= 2;
	g->slot = arena_alloc(a, g->slots * sizeof(*g->slot));
	for (size_t i = 0; i < g->n; i++)
		if (g->key[i])
			g->slot[slot_of(g, g->key[i])] = (uint32_t)i + 1;
}

static size_t group_of(struct grouping *g, uint64_t key, struct arena *a)
{
	size_t at;

	if (!key) {
		g->key[g->n] = 0;
		return g->n++;
	}
	if (2 * g->n >= g->slots)
		grow_slots(g, a);
	at = slot_of(g, key);
	if (!g->slot[at]) {
		g->key[g->n] = key;
		g->slot[at] = (uint32_t)++g->n;
	}
	return g->slot[at] - 1;
}

/* The keys of codes; 0: no number. */
static uint64_t *keys_of_codes(const struct head *h, struct arena *a)
{
	uint64_t *key = arena_alloc(a, (h->n_codes + 1) * sizeof(*key));

	for (uint32_t code = 1; code < h->n_codes; code++) {
		struct value v = dictionary_value(h->dict, code);

		key[code] = v.kind == VALUE_NUMBER ? key_of_number(v.number) : 0;
	}
	return key;
}

/* Equal for equal numbers in any form of block; 0: not a number. */
static uint64_t number_key(const uint64_t *of_code, const struct block *b, size_t i)
{
	uint64_t key;

	if (!block_is_keys(b))
		return of_code[block_code(b, i)];
	key = block_key(b, i);
	return key_is_number(key) ? key : 0;
}

static void find_groups(const struct index_view *v, const struct choice *c, struct str column,
			struct arena *a, struct grouping *g, struct fold *out)
{
	const struct head *h = &v->head[view_column(v, column)];
	const uint64_t *of_code = keys_of_codes(h, a);
	size_t n = 0;

	for (size_t block = 0; block < view_blocks(v); block++) {
		size_t first = block << v->index->block_shift;
		const struct block *b = view_block(v, h, block);

		for (size_t i = 0; i < c->count[block]; i++) {
			size_t row = choice_row(c, block, i, first), group;
			uint64_t key = number_key(of_code, b, row - first);

			/* Rows with other flags are not repeats. */
			if (key)
				key ^= (uint64_t)view_flags(v, row) << 1;
			group = group_of(g, key, a);
			g->count[group]++;
			if (v->is_ascending || g->count[group] == 1 ||
			    view_id(v, row) > view_id(v, out->newest[group]))
				out->newest[group] = (uint32_t)row;
			out->row[n] = (uint32_t)row;
			out->group[n++] = (uint32_t)group;
		}
	}
	assert(n == c->total);
}

/* Rows of a group next to each other, in the order of rows. */
static void lay_out(const struct grouping *g, struct arena *a, struct fold *f)
{
	uint32_t *next = arena_alloc(a, (f->n + 1) * sizeof(*next)), at = 0;

	f->first = arena_alloc(a, (f->n + 1) * sizeof(*f->first));
	f->member = arena_alloc(a, (f->n_rows + 1) * sizeof(*f->member));
	for (size_t i = 0; i < f->n; i++) {
		f->first[i] = next[i] = at;
		at += g->count[i];
	}
	f->first[f->n] = at;
	for (size_t i = 0; i < f->n_rows; i++)
		f->member[next[f->group[i]]++] = f->row[i];
}

/* ---- one number for a group ---- */

static struct value number_value(double v)
{
	return (struct value){ .kind = VALUE_NUMBER, .number = v };
}

struct summary { size_t n; double median, spread, max; };

/* number is put into another order. */
static struct summary summary_of(double *number, size_t n, enum shows what)
{
	struct summary s = { n, NAN, NAN, NAN };
	double min, upper = INFINITY;

	if (!n)
		return s;
	min = s.max = number[0];
	for (size_t i = 1; i < n; i++) {
		min = number[i] < min ? number[i] : min;
		s.max = number[i] > s.max ? number[i] : s.max;
	}
	if (n > 1)
		s.spread = (s.max - min) / 2;
	if (what != SHOWS_MEDIAN)
		return s;
	s.median = stats_select(number, n, (n - 1) / 2);
	for (size_t i = n / 2; i < n; i++)
		upper = number[i] < upper ? number[i] : upper;
	s.median = (s.median + (n % 2 ? s.median : upper)) / 2;
	return s;
}

/* Of a column, or of a formula. */
static struct summary summarise(const struct index_view *v, const struct fold *f, size_t group,
				const struct head *h, const struct view_formula *formula,
				enum shows what)
{
	const uint32_t *member = &f->member[f->first[group]];
	size_t all = f->first[group + 1] - f->first[group], n = 0;
	double few[FEW_NUMBERS], *number = few;
	struct summary s;

	assert(h || formula);
	if (all > FEW_NUMBERS)
		number = mem_array(all, sizeof(*number));
	for (size_t i = 0; i < all; i++) {
		struct value x = h ? view_value(v, h, member[i]) :
				     view_formula_value(v, formula, member[i]);

		if (x.kind == VALUE_NUMBER && isfinite(x.number))
			number[n++] = x.number;
	}
	s = summary_of(number, n, what);
	if (number != few)
		free(number);
	return s;
}

static void make_keys(const struct index_view *v, const struct order *o, const struct str *column,
		      size_t nth, struct arena *a, struct fold *f)
{
	const struct column_order *by = &o->by[nth];
	enum shows what = shows(*column);
	uint64_t *key = arena_alloc(a, (f->n + 1) * sizeof(*key));
	bool is_number = what == SHOWS_MEDIAN || what == SHOWS_LATEST;

	for (size_t i = 0; i < f->n; i++) {
		struct value one;
		struct summary s;

		if (!is_number) {
			key[i] = order_key(o, nth, f->newest[i]);
			continue;
		}
		/* Only numbers are sorted; other values come last. */
		s = summarise(v, f, i, by->head, NULL, what);
		one = s.n ? number_value(what == SHOWS_MEDIAN ? s.median : s.max) :
			    view_value(v, by->head, f->newest[i]);
		key[i] = one.kind == VALUE_NUMBER ? order_key_of_number(by, one.number) : KEY_LAST;
	}
	f->key[nth] = key;
	f->is_computed[nth] = is_number;
}

void fold_make(const struct index_view *v, const struct choice *c, const struct query *q,
	       const struct order *o, struct arena *a, struct fold *out)
{
	size_t n = c->total + 1, nth = 0;
	struct grouping g = { .slots = SLOTS_FIRST };

	assert(view_column(v, q->fold) != SIZE_MAX);
	*out = (struct fold){ .n_rows = c->total };
	out->row = arena_alloc(a, n * sizeof(*out->row));
	out->group = arena_alloc(a, n * sizeof(*out->group));
	out->newest = arena_alloc(a, n * sizeof(*out->newest));
	g.key = arena_alloc(a, n * sizeof(*g.key));
	g.count = arena_alloc(a, n * sizeof(*g.count));
	g.slot = arena_alloc(a, g.slots * sizeof(*g.slot));
	find_groups(v, c, q->fold, a, &g, out);
	out->n = g.n;
	lay_out(&g, a, out);
	for (size_t i = 0; i < q->n_sorts; i++)
		if (view_column(v, q->sort[i].column) != SIZE_MAX)
			make_keys(v, o, &q->sort[i].column, nth++, a, out);
	assert(nth == o->n);
}

size_t fold_find(const struct fold *f, size_t row)
{
	for (size_t i = 0; i < f->n_rows; i++)
		if (f->row[i] == row)
			return f->group[i];
	return SIZE_MAX;
}

/* ---- what a group shows ---- */

static int badness(struct value v)
{
	return value_is_text(v, "INVALID") ? 3 : value_is_text(v, "DEGRADED") ? 2 :
		v.kind == VALUE_TEXT;
}

static struct value worst(const struct index_view *v, const struct fold *f, size_t group,
			  const struct head *h)
{
	struct value found = view_value(v, h, f->newest[group]);

	for (size_t i = f->first[group]; i < f->first[group + 1]; i++) {
		struct value other = view_value(v, h, f->member[i]);

		if (badness(other) > badness(found))
			found = other;
	}
	return found;
}

static int newest_first(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x < y) - (x > y);
}

static void list_ids(const struct index_view *v, const struct fold *f, size_t group,
		     struct arena *a, struct page_row *row)
{
	const uint32_t *end = &f->member[f->first[group + 1]];
	int64_t *id = mem_array(row->n, sizeof(*id));

	for (size_t i = 0; i < row->n; i++)
		id[i] = view_id(v, end[-1 - (ptrdiff_t)i]);
	if (!v->is_ascending)
		qsort(id, row->n, sizeof(*id), newest_first);
	row->n_ids = row->n < FOLD_IDS_MAX ? row->n : FOLD_IDS_MAX;
	row->ids = arena_alloc(a, row->n_ids * sizeof(*row->ids));
	memcpy(row->ids, id, row->n_ids * sizeof(*row->ids));
	free(id);
}

struct page_row fold_single(struct page_row row, size_t n_columns, struct arena *a)
{
	row.n = row.n_ids = 1;
	row.ids = arena_alloc(a, sizeof(*row.ids));
	row.ids[0] = row.id;
	row.spread = arena_alloc(a, n_columns * sizeof(*row.spread));
	for (size_t k = 0; k < n_columns; k++)
		row.spread[k] = NAN;
	return row;
}

struct page_row fold_row(const struct index_view *v, const struct fold *f, size_t group,
			 const struct query *q, const size_t *column, struct arena *a)
{
	size_t at = f->newest[group], n = f->first[group + 1] - f->first[group];
	const struct head *by = &v->head[view_column(v, q->fold)];
	struct page_row row = { .id = view_id(v, at), .flags = view_flags(v, at), .n = n };

	assert(group < f->n && n > 0);
	row.value = arena_alloc(a, q->n_columns * sizeof(*row.value));
	row.spread = arena_alloc(a, q->n_columns * sizeof(*row.spread));
	list_ids(v, f, group, a, &row);
	row.fold = view_value(v, by, at);
	for (size_t k = 0; k < q->n_columns; k++) {
		const struct head *h = column[k] == SIZE_MAX ? NULL : &v->head[column[k]];
		enum shows what = n > 1 ? shows(q->column[k]) : SHOWS_NEWEST;
		struct view_formula formula;
		struct summary s = { 0 };

		row.spread[k] = NAN;
		if (!h && formula_is(q->column[k])) {
			view_formula_make(v, q->column[k], &formula);
			s = summarise(v, f, group, NULL, &formula, SHOWS_MEDIAN);
			if (s.n)
				row.value[k] = number_value(s.median);
			row.spread[k] = s.spread;
		}
		if (!h)
			continue;
		row.value[k] = what == SHOWS_WORST ? worst(v, f, group, h) : view_value(v, h, at);
		if (what == SHOWS_MEDIAN || what == SHOWS_LATEST)
			s = summarise(v, f, group, h, NULL, what);
		if (!s.n)
			continue;
		row.value[k] = number_value(what == SHOWS_LATEST ? s.max : s.median);
		if (what == SHOWS_MEDIAN)
			row.spread[k] = s.spread;
	}
	return row;
}
