/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - what a version holds: its columns, blocks, ids and single values. */
#include "results/index/part.h"

size_t view_column(const struct index_view *v, struct str name)
{
	const struct names *names = v->names;
	size_t at;

	if (!names)
		return SIZE_MAX;
	for (at = map_hash(name) & (names->cap - 1); names->slot[at];
	     at = (at + 1) & (names->cap - 1))
		if (str_eq(v->info[names->slot[at] - 1].name, name))
			return names->slot[at] - 1;
	return SIZE_MAX;
}

const struct column_info *index_columns(const struct index_view *v, size_t *n)
{
	*n = v->n_columns;
	return v->info;
}

const struct column_info *index_column(const struct index_view *v, struct str name)
{
	size_t column = view_column(v, name);

	return column == SIZE_MAX ? NULL : &v->info[column];
}

size_t view_blocks(const struct index_view *v)
{
	return (v->n_rows + block_rows(v->index) - 1) >> v->index->block_shift;
}

size_t view_block_rows(const struct index_view *v, size_t block)
{
	size_t left = v->n_rows - (block << v->index->block_shift), all = block_rows(v->index);

	return left < all ? left : all;
}

const struct block *view_block(const struct index_view *v, const struct head *h, size_t block)
{
	unsigned part = grow_part(block);

	if (block >= v->n_rows >> v->index->block_shift)
		return &h->tail;
	return &h->column->sealed[part][grow_place(block, part)];
}

struct value value_of_key(const struct head *h, uint64_t key)
{
	if (key_is_number(key))
		return (struct value){ .kind = VALUE_NUMBER, .number = number_of_key(key) };
	if (key >= KEY_TEXT)
		return (struct value){ .kind = VALUE_TEXT,
				       .text = texts_at(h->column->texts, key) };
	if (key == KEY_ABSENT)
		return (struct value){ 0 };
	if (key == KEY_NULL)
		return (struct value){ .kind = VALUE_NULL };
	return (struct value){ .kind = VALUE_BOOL, .is_true = key == KEY_TRUE };
}

struct value head_value(const struct head *h, const struct block *b, size_t i)
{
	uint32_t code;

	if (block_is_keys(b))
		return value_of_key(h, block_key(b, i));
	code = block_code(b, i);
	return code ? dictionary_value(h->dict, code) : (struct value){ 0 };
}

struct value view_value(const struct index_view *v, const struct head *h, size_t row)
{
	unsigned shift = v->index->block_shift;

	return head_value(h, view_block(v, h, row >> shift), row & (block_rows(v->index) - 1));
}

int64_t view_id(const struct index_view *v, size_t row)
{
	size_t block = row >> v->index->block_shift, i = row & (block_rows(v->index) - 1);
	const struct ids *ids = &v->tail_ids;

	if (block < v->n_rows >> v->index->block_shift)
		ids = index_sealed_ids(v->index, block);
	return ids->id ? ids->id[i] : ids->first + (int64_t)i;
}

unsigned view_flags(const struct index_view *v, size_t row)
{
	size_t block = row >> v->index->block_shift;

	if (block >= v->n_flags || !v->flags[block])
		return 0;
	return v->flags[block][row & (block_rows(v->index) - 1)];
}

size_t view_row_of(const struct index_view *v, int64_t id)
{
	size_t from = 0, to = v->n_rows;

	if (!v->is_ascending) {
		while (from < to && view_id(v, from) != id)
			from++;
		return from < to ? from : SIZE_MAX;
	}
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (view_id(v, middle) < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from < v->n_rows && view_id(v, from) == id ? from : SIZE_MAX;
}

size_t index_removed(const struct index_view *v)
{
	size_t n = 0;

	for (size_t block = 0; block < v->n_flags && block < view_blocks(v); block++) {
		const uint8_t *flags = v->flags[block];

		for (size_t i = 0; flags && i < view_block_rows(v, block); i++)
			n += (flags[i] & INDEX_REMOVED) != 0;
	}
	return n;
}

struct row view_cells(const struct index_view *v, size_t row, struct arena *a)
{
	struct row out = { .id = view_id(v, row) };

	out.cell = arena_alloc(a, v->n_columns * sizeof(*out.cell));
	for (size_t i = 0; i < v->n_columns; i++) {
		struct value value = view_value(v, &v->head[i], row);

		if (value.kind != VALUE_ABSENT)
			out.cell[out.n++] = (struct cell){ v->info[i].name, value };
	}
	return out;
}

bool index_row(const struct index_view *v, int64_t id, struct arena *a, struct row *out,
	       unsigned *flags)
{
	size_t row = view_row_of(v, id);

	if (row == SIZE_MAX || view_flags(v, row) & INDEX_REMOVED)
		return false;
	*out = view_cells(v, row, a);
	if (flags)
		*flags = view_flags(v, row);
	return true;
}
