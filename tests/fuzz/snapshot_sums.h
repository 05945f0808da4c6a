/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_sums.h - makes every checksum of a changed snapshot right again, so that its reader gets
 * to what was changed: for the fuzz target and for the unit test. It walks the table as far as that
 * makes sense, by rules of its own, and leaves the rest as it is.
 */
#pragma once
#include <stddef.h>
#include <string.h>

#include "results/index/index_internal.h"

struct sums {
	char *table, *pieces;
	size_t n_table, n_pieces, at;
	bool is_lost; /* nothing after it can be read */
};

static uint64_t sums_get(struct sums *s)
{
	uint64_t v = 0;

	if (s->is_lost || s->n_table - s->at < sizeof(v)) {
		s->is_lost = true;
		return 0;
	}
	memcpy(&v, s->table + s->at, sizeof(v));
	s->at += sizeof(v);
	return v;
}

static void sums_skip_text(struct sums *s)
{
	uint64_t n = sums_get(s);

	if (n > s->n_table - s->at)
		s->is_lost = true;
	else
		s->at += n;
}

static void sums_piece(struct sums *s, size_t bytes)
{
	uint64_t offset = sums_get(s), sum;

	if (s->is_lost || offset > s->n_pieces || s->n_pieces - offset < bytes ||
	    s->n_table - s->at < sizeof(sum)) {
		s->is_lost = true;
		return;
	}
	sum = snapshot_sum((struct str){ s->pieces + offset, bytes });
	memcpy(s->table + s->at, &sum, sizeof(sum));
	s->at += sizeof(sum);
}

static void sums_block(struct sums *s, size_t rows)
{
	uint64_t form = sums_get(s), low = 0;

	if (form == BLOCK_CODE) {
		sums_get(s);
		return;
	}
	if (form > BLOCK_PACKED) {
		s->is_lost = true;
		return;
	}
	if (form == BLOCK_PACKED) {
		low = sums_get(s);
		s->at += 4 * sizeof(uint64_t); /* zeros, has, base, packed_max */
		s->is_lost |= s->at > s->n_table || low > 4;
	}
	if (!s->is_lost)
		sums_piece(s, block_bytes((enum block_form)form, rows));
	if (!s->is_lost && low)
		sums_piece(s, rows * low + 3);
}

static void sums_column(struct sums *s, uint64_t n_rows, size_t rows)
{
	size_t chunk = (size_t)1 << TEXTS_CHUNK_SHIFT;
	uint64_t codes, used;

	sums_skip_text(s);
	for (int i = 0; i < 5; i++) /* has, distinct, present, min, max */
		sums_get(s);
	codes = sums_get(s);
	for (uint64_t code = 1; code < codes && !s->is_lost; code++) {
		uint64_t kind = sums_get(s);

		if (kind == VALUE_TEXT)
			sums_skip_text(s);
		else if (kind == VALUE_BOOL || kind == VALUE_NUMBER)
			sums_get(s);
	}
	used = sums_get(s);
	for (uint64_t at = 0; at < used && !s->is_lost; at += chunk)
		sums_piece(s, used - at < chunk ? (size_t)(used - at) : chunk);
	for (uint64_t i = 0; i < n_rows / rows && !s->is_lost; i++)
		sums_block(s, rows);
	if (!s->is_lost)
		sums_block(s, n_rows % rows);
}

static void sums_pieces(struct sums *s)
{
	uint64_t n_rows = sums_get(s), n_columns = sums_get(s), shift = sums_get(s);
	uint64_t rows = shift <= INDEX_BLOCK_SHIFT ? 1ull << shift : 1, n_flags;

	s->at += 3 * sizeof(uint64_t); /* dictionary_max, is_ascending, number */
	s->is_lost |= s->at > s->n_table;
	for (uint64_t i = 0; i < n_rows / rows && !s->is_lost; i++) {
		sums_get(s);
		if (sums_get(s))
			sums_piece(s, rows * sizeof(int64_t));
	}
	if (!s->is_lost)
		sums_piece(s, n_rows % rows * sizeof(int64_t));
	n_flags = sums_get(s);
	for (uint64_t i = 0; i < n_flags && !s->is_lost; i++)
		if (sums_get(s))
			sums_piece(s, i < n_rows / rows ? rows : n_rows % rows);
	for (uint64_t i = 0; i < n_columns && !s->is_lost; i++)
		sums_column(s, n_rows, rows);
}

/* p: n bytes that begin as a snapshot does; others stay as they are. */
static void snapshot_mend(char *p, size_t n)
{
	struct snapshot_head head;
	struct sums s = { 0 };

	if (n < sizeof(head))
		return;
	memcpy(&head, p, sizeof(head));
	memcpy(head.magic, SNAPSHOT_MAGIC, sizeof(head.magic));
	head.form = SNAPSHOT_FORM;
	head.order = SNAPSHOT_ORDER;
	head.file_bytes = n;
	if (head.table_bytes > n - sizeof(head) || head.table_bytes % SNAPSHOT_ALIGN)
		head.table_bytes = (n - sizeof(head)) / SNAPSHOT_ALIGN * SNAPSHOT_ALIGN;
	s.table = p + sizeof(head);
	s.n_table = head.table_bytes;
	s.pieces = s.table + s.n_table;
	s.n_pieces = n - sizeof(head) - s.n_table;
	sums_pieces(&s);
	head.table_sum = snapshot_sum((struct str){ s.table, s.n_table });
	head.head_sum = snapshot_sum((struct str){ (const char *)&head,
						   offsetof(struct snapshot_head, head_sum) });
	memcpy(p, &head, sizeof(head));
}
