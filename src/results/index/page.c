/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - sorting, top-k selection and cursor pagination of chosen rows. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "results/index/index_internal.h"

/* A row on its way into the page. */
struct entry { uint64_t key; size_t row; };

/* ---- keys to sort by ---- */

static int compare_coded(const void *a, const void *b, void *dict)
{
	const uint32_t *x = a, *y = b;

	return value_compare(dictionary_value(dict, *x), dictionary_value(dict, *y));
}

/* Ranks from 1 in the order of values; of missing ones 0. */
static const uint32_t *make_ranks(const struct head *h, struct arena *a)
{
	uint32_t *code = mem_array(h->n_codes, sizeof(*code));
	uint32_t *rank = arena_alloc(a, h->n_codes * sizeof(*rank));
	uint32_t n = 0;

	for (uint32_t i = 1; i < h->n_codes; i++)
		if (dictionary_value(h->dict, i).kind > VALUE_NULL)
			code[n++] = i;
	qsort_r(code, n, sizeof(*code), compare_coded, (void *)h->dict);
	for (uint32_t i = 0; i < n; i++)
		rank[code[i]] = i + 1;
	free(code);
	return rank;
}

/* The first bytes of a text, above all numbers. Equal keys do not imply equal texts. */
static uint64_t key_of_text(struct str s)
{
	uint64_t key = 0;

	for (size_t i = 0; i < 6; i++)
		key = key << 8 | (i < s.n ? (unsigned char)s.p[i] : 0);
	return KEY_TEXT + key;
}

static uint64_t key_of_value(struct value v)
{
	switch (v.kind) {
	case VALUE_BOOL:
		return v.is_true ? KEY_TRUE : KEY_FALSE;
	case VALUE_NUMBER:
		return key_of_number(v.number);
	case VALUE_TEXT:
		return key_of_text(v.text);
	case VALUE_ABSENT:
	case VALUE_NULL:
		break;
	}
	return 0;
}

/* 0: missing. */
static uint64_t plain_key(const struct column_order *o, const struct block *b, size_t i)
{
	uint64_t key;

	if (o->rank)
		return o->rank[block_code(b, i)];
	if (!block_is_keys(b))
		return key_of_value(head_value(o->head, b, i));
	key = block_key(b, i);
	if (key >= KEY_TEXT)
		return key_of_text(texts_at(o->head->column->texts, key));
	return key > KEY_NULL ? key : 0;
}

static uint64_t turned(const struct column_order *by, uint64_t key)
{
	return !key ? KEY_LAST : by->is_descending ? ~key : key;
}

uint64_t order_key(const struct order *o, size_t nth, size_t row)
{
	const struct column_order *by = &o->by[nth];
	unsigned shift = o->view->index->block_shift;

	return turned(by, plain_key(by, view_block(o->view, by->head, row >> shift),
				    row & (block_rows(o->view->index) - 1)));
}

uint64_t order_key_of_number(const struct column_order *by, double v)
{
	return turned(by, key_of_number(v));
}

/* Of a row, or of a group of them where rows are folded. */
static uint64_t key_at(const struct order *o, size_t nth, size_t row)
{
	return o->fold ? o->fold->key[nth][row] : order_key(o, nth, row);
}

static size_t place_of(const struct order *o, size_t row)
{
	return o->fold ? o->fold->newest[row] : row;
}

/* Below 0 when row a comes before row b; first is the order's place to begin at. */
static int compare_rows(const struct order *o, size_t first, size_t a, size_t b)
{
	int64_t id_a, id_b;

	for (size_t i = first; i < o->n; i++) {
		const struct column_order *by = &o->by[i];
		uint64_t x = key_at(o, i, a), y = key_at(o, i, b);
		int c;

		if (x != y)
			return x < y ? -1 : 1;
		if (by->rank || x == KEY_LAST || (o->fold && o->fold->is_computed[i]))
			continue;
		c = value_compare(view_value(o->view, by->head, place_of(o, a)),
				  view_value(o->view, by->head, place_of(o, b)));
		if (c)
			return by->is_descending ? -c : c;
	}
	id_a = view_id(o->view, place_of(o, a));
	id_b = view_id(o->view, place_of(o, b));
	return (id_a < id_b) - (id_a > id_b);
}

static int compare_entries(const struct order *o, const struct entry *a, const struct entry *b)
{
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	/* Equal keys of ranks are equal values; others are compared completely. */
	return compare_rows(o, o->n && o->by[0].rank ? 1 : 0, a->row, b->row);
}

/* Without a column to sort by, later ids come first. */
static uint64_t first_key(const struct order *o, size_t row)
{
	return o->n ? key_at(o, 0, row) : ~(uint64_t)view_id(o->view, place_of(o, row));
}

static struct order make_order(const struct index_view *v, const struct query *q, struct arena *a)
{
	struct order o = { .view = v };

	for (size_t i = 0; i < q->n_sorts; i++) {
		size_t number = view_column(v, q->sort[i].column);
		struct column_order *by = &o.by[o.n];

		if (number == SIZE_MAX)
			continue; /* missing everywhere */
		by->head = &v->head[number];
		by->is_descending = q->sort[i].is_descending;
		by->rank = by->head->is_keys ? NULL : make_ranks(by->head, a);
		o.n++;
	}
	return o;
}

/* ---- the best rows ---- */

/* A heap whose root is the last one of those kept. */
struct best {
	const struct order *order;
	struct entry *entry;
	size_t n, most;
};

static void sink(struct best *b, size_t at)
{
	for (size_t child; (child = at * 2 + 1) < b->n; at = child) {
		struct entry held = b->entry[at];

		if (child + 1 < b->n &&
		    compare_entries(b->order, &b->entry[child + 1], &b->entry[child]) > 0)
			child++;
		if (compare_entries(b->order, &b->entry[child], &held) < 0)
			return;
		b->entry[at] = b->entry[child];
		b->entry[child] = held;
	}
}

static void keep(struct best *b, struct entry it)
{
	if (b->n < b->most) {
		b->entry[b->n++] = it;
		if (b->n == b->most)
			for (size_t i = b->n / 2; i-- > 0;)
				sink(b, i);
	} else if (compare_entries(b->order, &it, &b->entry[0]) < 0) {
		b->entry[0] = it;
		sink(b, 0);
	}
}

static int compare_sorted(const void *a, const void *b, void *order)
{
	return compare_entries(order, a, b);
}

/* The key that the first row of a block cannot come before. */
static uint64_t best_key(const struct column_order *by, const struct block *b)
{
	uint64_t most;

	if (b->form != BLOCK_PACKED || b->has_text || b->has_special)
		return 0;
	most = key_of_packed(b, b->packed_max);
	return by->is_descending ? ~most : b->base;
}

static void block_best(const struct choice *c, struct best *best, const struct entry *after,
		       size_t block)
{
	const struct order *o = best->order;
	const struct column_order *by = &o->by[0];
	const struct block *b = view_block(o->view, by->head, block);
	size_t first = block << o->view->index->block_shift;

	if (best->n == best->most && best_key(by, b) > best->entry[0].key)
		return;
	for (size_t i = c->count[block]; i-- > 0;) {
		struct entry it = { .row = choice_row(c, block, i, first) };

		it.key = turned(by, plain_key(by, b, it.row - first));
		if (best->n == best->most && it.key > best->entry[0].key)
			continue;
		if (!after || compare_entries(o, &it, after) > 0)
			keep(best, it);
	}
}

/* Without a column to sort by: later ids first. */
static void newest(const struct choice *c, struct best *best, const struct entry *after)
{
	const struct index_view *v = best->order->view;

	for (size_t block = view_blocks(v); block-- > 0;)
		for (size_t i = c->count[block]; i-- > 0;) {
			struct entry it = { .row = choice_row(c, block, i,
							      block << v->index->block_shift) };

			it.key = first_key(best->order, it.row);
			if (!after || compare_entries(best->order, &it, after) > 0)
				keep(best, it);
			if (v->is_ascending && best->n == best->most)
				return;
		}
}

static void best_groups(struct best *best, const struct entry *after)
{
	for (size_t group = best->order->fold->n; group-- > 0;) {
		struct entry it = { first_key(best->order, group), group };

		if (best->n == best->most && it.key > best->entry[0].key)
			continue;
		if (!after || compare_entries(best->order, &it, after) > 0)
			keep(best, it);
	}
}

/*
 * The first `most` rows, sorted. Walks the later blocks first: in the usual order, newest first,
 * rows of the others are then quickly rejected.
 */
static struct best find_best(const struct order *o, const struct choice *c, size_t most,
			     const struct entry *after, struct arena *a)
{
	struct best best = { .order = o, .most = most };

	best.entry = arena_alloc(a, most * sizeof(*best.entry));
	if (o->fold)
		best_groups(&best, after);
	else if (!o->n)
		newest(c, &best, after);
	for (size_t block = o->n && !o->fold ? view_blocks(o->view) : 0; block-- > 0;)
		if (c->count[block])
			block_best(c, &best, after, block);
	qsort_r(best.entry, best.n, sizeof(*best.entry), compare_sorted, (void *)o);
	return best;
}

size_t page_order(const struct index_view *v, const struct choice *c, const struct query *q,
		  size_t most, struct arena *a, int64_t *id)
{
	struct order o = make_order(v, q, a);
	struct best best = find_best(&o, c, (most < c->total ? most : c->total) + 1, NULL, a);

	if (best.n > most)
		best.n = most;
	for (size_t i = 0; i < best.n; i++)
		id[i] = view_id(v, best.entry[i].row);
	return best.n;
}

/* ---- rows ---- */

static size_t *column_numbers(const struct index_view *v, const struct str *column, size_t n,
			      struct arena *a)
{
	size_t *number = arena_alloc(a, n * sizeof(*number));

	for (size_t k = 0; k < n; k++)
		number[k] = view_column(v, column[k]);
	return number;
}

static struct page_row read_row(const struct index_view *v, size_t at, const size_t *column,
				const struct str *name, size_t n, struct arena *a)
{
	struct page_row row = { .id = view_id(v, at), .flags = view_flags(v, at) };

	row.value = arena_alloc(a, n * sizeof(*row.value));
	for (size_t k = 0; k < n; k++) {
		struct view_formula f;

		if (column[k] != SIZE_MAX) {
			row.value[k] = view_value(v, &v->head[column[k]], at);
		} else if (formula_is(name[k])) {
			view_formula_make(v, name[k], &f);
			row.value[k] = view_formula_value(v, &f, at);
		}
	}
	return row;
}

size_t index_rows(const struct index_view *v, const int64_t *id, size_t n, const struct str *column,
		  size_t n_columns, struct arena *a, struct page_row *out)
{
	const size_t *number = column_numbers(v, column, n_columns, a);
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		size_t at = view_row_of(v, id[i]);

		if (at != SIZE_MAX && !(view_flags(v, at) & INDEX_REMOVED))
			out[found++] = read_row(v, at, number, column, n_columns, a);
	}
	return found;
}

/* ---- cursors ---- */

/* Identifies a page's sort order by a number; a cursor of another order is refused. */
static uint64_t order_mark(const struct query *q)
{
	uint64_t mark = q->n_sorts + (q->fold.n ? map_hash(q->fold) : 0);

	for (size_t i = 0; i < q->n_sorts; i++)
		mark = (mark * 2 + q->sort[i].is_descending) * 0x9e3779b97f4a7c15u +
		       map_hash(q->sort[i].column);
	return mark;
}

static int read_cursor(const struct order *o, const struct query *q, struct entry *after,
		       struct err *e)
{
	struct str rest = q->cursor, mark = str_cut(&rest, '-');
	uint64_t number = 0;
	int64_t id;
	bool is_good = mark.n == 16 && str_to_i64(rest, &id);

	for (size_t i = 0; i < mark.n && is_good; i++) {
		is_good = str_hex(mark.p[i]) >= 0;
		number = number << 4 | ((unsigned)str_hex(mark.p[i]) & 15);
	}
	if (!is_good)
		return err_set(e, ERR_USAGE, "cursor: expected the \"next\" value of the previous "
					     "page");
	if (number != order_mark(q))
		return err_set(e, ERR_USAGE, "cursor: it belongs to a page that is sorted in another way");
	after->row = view_row_of(o->view, id);
	if (after->row != SIZE_MAX && o->fold)
		after->row = fold_find(o->fold, after->row);
	if (after->row == SIZE_MAX)
		return err_set(e, ERR_USAGE, "cursor: the run it points at, %lld, is not there any more: "
			       "begin at the first page", (long long)id);
	after->key = first_key(o, after->row);
	return 0;
}

int page_make(const struct index_view *v, const struct choice *c, const struct query *q,
	      struct arena *a, struct answer *out, struct err *e)
{
	struct arena scratch = { 0 };
	struct order o = make_order(v, q, a);
	struct entry after;
	struct fold fold;
	struct best best;
	size_t *column;
	int rc = -1;

	out->folded = q->fold.n ? c->total : 0;
	if (q->fold.n && view_column(v, q->fold) != SIZE_MAX) {
		fold_make(v, c, q, &o, &scratch, &fold);
		out->folded = fold.n;
		o.fold = &fold;
	}
	if (q->cursor.n && read_cursor(&o, q, &after, e) < 0)
		goto done;
	rc = 0;
	if (!q->limit)
		goto done;
	best = find_best(&o, c, (q->limit < c->total ? q->limit : c->total) + 1,
			 q->cursor.n ? &after : NULL, a);
	out->n_rows = best.n > q->limit ? q->limit : best.n;
	out->row = arena_alloc(a, out->n_rows * sizeof(*out->row));
	column = column_numbers(v, q->column, q->n_columns, a);
	for (size_t i = 0; i < out->n_rows; i++) {
		size_t at = best.entry[i].row;

		if (o.fold) {
			out->row[i] = fold_row(v, &fold, at, q, column, a);
			continue;
		}
		out->row[i] = read_row(v, at, column, q->column, q->n_columns, a);
		if (q->fold.n)
			out->row[i] = fold_single(out->row[i], q->n_columns, a);
	}
	if (best.n > q->limit)
		out->next = str_of(arena_printf(a, "%016" PRIx64 "-%lld", order_mark(q),
						(long long)out->row[out->n_rows - 1].id));
done:
	arena_release(&scratch);
	return rc;
}
