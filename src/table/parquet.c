/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet.c - Parquet files as tables.
 *
 * A row is put together by one walk over the tree of wanted columns. Every node asks the
 * levels of its first leaf whether it is null, empty, or has another item; the other leaves
 * below it must agree, or the file is damaged. Each step takes an entry from every leaf
 * concerned and writes something, so that a row's limit bounds the walk.
 */
#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"
#include "table/parquet_column.h"
#include "table/parquet_spell.h"

struct parquet {
	struct parquet_file file;
	struct parquet_column *column; /* one for each wanted leaf */
	struct buf text;               /* the current row */
	size_t places_left;
	uint32_t group;                /* of the row before */
};

static int put(struct parquet *q, const struct parquet_node *node, struct err *e);

static int damaged(const struct parquet_column *c, struct err *e)
{
	return column_fail(c, e, ERR_PARSE, "row %llu of the group: its levels contradict those of "
			   "a column beside it or the schema",
			   (unsigned long long)c->row);
}

/* Every leaf of a null or an empty list has one entry for it, below the level it needs. */
static int pass_absent(struct parquet *q, const struct parquet_node *node, unsigned def,
		       struct err *e)
{
	for (uint32_t i = 0; i < node->leaf_count; i++) {
		struct parquet_column *c = &q->column[node->first_leaf + i];

		if (column_peek(c, e) < 0)
			return -1;
		if (!c->has_entry || c->def >= def)
			return damaged(c, e);
		column_drop(c);
	}
	return 0;
}

static int put_value(struct parquet *q, struct parquet_column *c, struct err *e)
{
	struct str value;

	if (!c->has_entry || c->def != c->leaf->max_def)
		return damaged(c, e);
	if (column_value(c, &value, e) < 0)
		return -1;
	if (parquet_spell(c->leaf, value, &q->text, e) < 0)
		return column_fail(c, e, ERR_NONE, "row %llu of the group",
				   (unsigned long long)c->row - 1);
	return 0;
}

static int put_object(struct parquet *q, const struct parquet_node *first, struct err *e)
{
	buf_add_char(&q->text, '{');
	for (const struct parquet_node *n = first; n; n = n->next) {
		if (n != first)
			buf_add(&q->text, ", ", 2);
		buf_add_str(&q->text, n->key);
		if (put(q, n, e) < 0)
			return -1;
	}
	buf_add_char(&q->text, '}');
	return 0;
}

/* A map's key and value as a member; a key that is null, which none should be, is "null". */
static int put_member(struct parquet *q, const struct parquet_node *map, struct err *e)
{
	size_t at = q->text.len;

	if (put(q, map->child, e) < 0)
		return -1;
	if (!q->text.is_over && q->text.data[at] != '"') {
		q->text.len = at;
		buf_add_text(&q->text, "\"null\"");
	}
	buf_add_text(&q->text, ": ");
	return put(q, map->child->next, e);
}

static int put_item(struct parquet *q, const struct parquet_node *list, struct err *e)
{
	if (list->shape == SHAPE_LIST)
		return put(q, list->child, e);
	return list->has_text_keys ? put_member(q, list, e) : put_object(q, list->child, e);
}

/* Whether the list goes on: 1, 0, or -1. All its leaves must say the same. */
static int has_more(struct parquet *q, const struct parquet_node *list, struct err *e)
{
	const struct parquet_column *first = &q->column[list->first_leaf];

	for (uint32_t i = 0; i < list->leaf_count; i++) {
		struct parquet_column *c = &q->column[list->first_leaf + i];

		if (column_peek(c, e) < 0)
			return -1;
		if (c->rep > list->rep || (c->rep == list->rep) != (first->rep == list->rep))
			return damaged(c, e);
	}
	return first->rep == list->rep;
}

static int put_list(struct parquet *q, const struct parquet_node *list, struct err *e)
{
	const struct parquet_column *first = &q->column[list->first_leaf];
	const char *ends = list->has_text_keys ? "{}" : "[]";
	int more;

	buf_add_char(&q->text, ends[0]);
	if (first->def < list->filled) {
		if (pass_absent(q, list, list->filled, e) < 0)
			return -1;
	} else {
		do {
			if (put_item(q, list, e) < 0)
				return -1;
			more = has_more(q, list, e);
			if (more < 0)
				return -1;
			if (more)
				buf_add(&q->text, ", ", 2);
			if (q->text.is_over)
				return column_fail(first, e, ERR_LIMIT,
						   "row %llu of the group has more than %llu bytes",
						   (unsigned long long)first->row - 1,
						   TABLE_ROW_BYTES_MAX);
		} while (more);
	}
	buf_add_char(&q->text, ends[1]);
	return 0;
}

/* One value, object, list or null. Recursion ends: the tree is as deep as JSON may be. */
static int put(struct parquet *q, const struct parquet_node *node, struct err *e)
{
	struct parquet_column *first = &q->column[node->first_leaf];

	if (column_peek(first, e) < 0)
		return -1;
	if (first->def < node->present) {
		buf_add_text(&q->text, "null");
		return pass_absent(q, node, node->present, e);
	}
	if (node->shape == SHAPE_VALUE)
		return put_value(q, first, e);
	if (node->shape == SHAPE_OBJECT)
		return put_object(q, node->child, e);
	return put_list(q, node, e);
}

/* ---- the format ---- */

static void parquet_close(void *state)
{
	struct parquet *q = state;

	if (!q)
		return;
	for (uint32_t i = 0; i < q->file.leaf_count; i++)
		column_release(&q->column[i]);
	free(q->column);
	parquet_file_release(&q->file);
	buf_release(&q->text);
	free(q);
}

static void *parquet_open(const struct table_bytes *bytes, const struct table_opts *o,
			  struct err *e)
{
	struct parquet *q = mem_alloc(sizeof *q);

	if (parquet_file_open(&q->file, bytes, o ? o->columns : NULL, e) < 0) {
		free(q);
		return NULL;
	}
	q->text.limit = TABLE_ROW_BYTES_MAX;
	q->places_left = PARQUET_PLACES_MAX;
	q->column = mem_array(q->file.leaf_count, sizeof *q->column);
	for (uint32_t i = 0; i < q->file.leaf_count; i++)
		column_init(&q->column[i], &q->file, i, o ? o->cancel : NULL, &q->places_left);
	if (o && o->progress)
		o->progress(o->self, bytes->all.n, bytes->all.n);
	return q;
}

static size_t parquet_rows(const void *state)
{
	const struct parquet *q = state;

	return (size_t)q->file.rows;
}

/* The group that a row is in; mostly the one of the row before. */
static uint32_t group_of(const struct parquet *q, size_t row)
{
	const struct parquet_group *group = q->file.group, *last = &group[q->group];
	uint32_t low = 0, high = q->file.group_count;

	if (row >= last->first_row && row - last->first_row < last->rows)
		return q->group;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (group[middle].first_row <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int parquet_row(void *state, size_t row, struct json_slice *out, struct err *e)
{
	struct parquet *q = state;
	uint64_t first;
	int rc = 0;

	assert(row < q->file.rows);
	q->group = group_of(q, row);
	first = q->file.group[q->group].first_row;
	for (uint32_t i = 0; i < q->file.leaf_count && rc == 0; i++)
		rc = column_seek(&q->column[i], q->group, row - first, e);
	buf_reset(&q->text);
	if (rc == 0)
		rc = put_object(q, q->file.top, e);
	if (rc == 0 && q->text.is_over)
		rc = err_set(e, ERR_LIMIT, "%s: row %zu has more than %llu bytes as JSON",
			     q->file.name, row, TABLE_ROW_BYTES_MAX);
	if (rc < 0) {
		for (uint32_t i = 0; i < q->file.leaf_count; i++)
			column_lose(&q->column[i]);
		return -1;
	}
	*out = (struct json_slice){ JSON_OBJECT, buf_str(&q->text) };
	return 0;
}

const struct table_format table_parquet = {
	.name = "parquet",
	.open = parquet_open,
	.close = parquet_close,
	.rows = parquet_rows,
	.row = parquet_row,
};
