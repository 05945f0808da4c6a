/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - a version of the index as one file; see snapshot.h. */
#include "results/index/snapshot.h"

#include <errno.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "results/index/part.h"

_Static_assert(sizeof(struct snapshot_head) == SNAPSHOT_ALIGN, "the head is one unit");

#define WRITE_BYTES (1u << 20)

static uint64_t turn(uint64_t lane, uint64_t word, unsigned by)
{
	lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
	return lane << by | lane >> (64 - by);
}

uint64_t snapshot_sum(struct str bytes)
{
	uint64_t lane[4] = { 1, 2, 3, 4 }, word[4], sum = bytes.n;
	size_t at = 0;

	for (; at + sizeof(word) <= bytes.n; at += sizeof(word)) {
		memcpy(word, bytes.p + at, sizeof(word));
		for (unsigned i = 0; i < 4; i++)
			lane[i] = turn(lane[i], word[i], 29);
	}
	memset(word, 0, sizeof(word));
	if (at < bytes.n)
		memcpy(word, bytes.p + at, bytes.n - at);
	for (unsigned i = 0; i < 4; i++) {
		lane[i] = turn(lane[i], word[i], 29);
		sum = turn(sum, lane[i], 31);
	}
	return sum ^ sum >> 32;
}

/* ---- writing ---- */

struct piece { const void *p; size_t bytes; };

struct out {
	struct buf table;
	struct piece *piece;
	size_t n, cap;
	size_t bytes; /* of all pieces, padded */
};

static void put(struct out *o, uint64_t number)
{
	buf_add(&o->table, &number, sizeof(number));
}

static void put_text(struct out *o, struct str s)
{
	put(o, s.n);
	buf_add_str(&o->table, s);
}

static void put_piece(struct out *o, const void *p, size_t bytes)
{
	put(o, o->bytes);
	put(o, snapshot_sum((struct str){ p, bytes }));
	if (o->n == o->cap) {
		o->cap = o->cap ? o->cap * 2 : 1024;
		o->piece = mem_grow(o->piece, o->cap, sizeof(*o->piece));
	}
	o->piece[o->n++] = (struct piece){ p, bytes };
	o->bytes += snapshot_align(bytes);
}

static void put_block(struct out *o, const struct block *b, size_t rows)
{
	put(o, b->form);
	if (b->form == BLOCK_CODE) {
		put(o, b->code);
		return;
	}
	if (b->form == BLOCK_PACKED) {
		put(o, b->low_bytes);
		put(o, b->zeros);
		put(o, (uint64_t)b->has_text | (uint64_t)b->has_special << 1);
		put(o, b->base);
		put(o, b->packed_max);
	}
	put_piece(o, b->data, block_bytes(b->form, rows));
	if (b->form == BLOCK_PACKED && b->low_bytes)
		put_piece(o, b->low, rows * b->low_bytes + 3);
}

static void put_value(struct out *o, struct value v)
{
	put(o, v.kind);
	if (v.kind == VALUE_BOOL)
		put(o, v.is_true);
	else if (v.kind == VALUE_NUMBER)
		buf_add(&o->table, &v.number, sizeof(v.number));
	else if (v.kind == VALUE_TEXT)
		put_text(o, v.text);
}

static void put_texts(struct out *o, const struct texts *t, uint64_t used)
{
	size_t chunk = (size_t)1 << TEXTS_CHUNK_SHIFT;

	put(o, used);
	for (uint64_t at = 0; at < used; at += chunk)
		put_piece(o, t->chunk[at >> TEXTS_CHUNK_SHIFT],
			  used - at < chunk ? (size_t)(used - at) : chunk);
}

static void put_column(struct out *o, const struct index_view *v, size_t number, uint64_t texts)
{
	const struct head *h = &v->head[number];
	const struct column_info *info = &v->info[number];
	size_t mask = block_rows(v->index) - 1, sealed = v->n_rows >> v->index->block_shift;

	put_text(o, info->name);
	put(o, (uint64_t)info->has_bool | (uint64_t)info->has_number << 1 |
	       (uint64_t)info->has_text << 2 | (uint64_t)info->has_null << 3 |
	       (uint64_t)h->is_keys << 4);
	put(o, info->distinct);
	put(o, info->present);
	buf_add(&o->table, &info->min, sizeof(info->min));
	buf_add(&o->table, &info->max, sizeof(info->max));
	put(o, h->n_codes);
	for (uint32_t code = 1; code < h->n_codes; code++)
		put_value(o, dictionary_value(h->dict, code));
	put_texts(o, texts ? h->column->texts : NULL, texts);
	for (size_t i = 0; i < sealed; i++)
		put_block(o, view_block(v, h, i), mask + 1);
	put_block(o, &h->tail, v->n_rows & mask);
}

static void put_rows(struct out *o, const struct index_view *v)
{
	size_t rows = block_rows(v->index), sealed = v->n_rows >> v->index->block_shift;

	for (size_t i = 0; i < sealed; i++) {
		const struct ids *ids = index_sealed_ids(v->index, i);

		put(o, (uint64_t)ids->first);
		put(o, ids->id != NULL);
		if (ids->id)
			put_piece(o, ids->id, rows * sizeof(*ids->id));
	}
	put_piece(o, v->tail_ids.id, (v->n_rows & (rows - 1)) * sizeof(int64_t));
	put(o, v->n_flags);
	for (size_t i = 0; i < v->n_flags; i++) {
		put(o, v->flags[i] != NULL);
		if (v->flags[i])
			put_piece(o, v->flags[i], i < view_blocks(v) ? view_block_rows(v, i) : 0);
	}
}

static int write_pieces(int fd, const struct out *o)
{
	static const char padding[SNAPSHOT_ALIGN];
	struct buf some = { 0 };
	int rc = 0;

	for (size_t i = 0; i < o->n && rc == 0; i++) {
		struct str bytes = { o->piece[i].p, o->piece[i].bytes };

		if (bytes.n)
			buf_add_str(&some, bytes);
		buf_add(&some, padding, snapshot_align(bytes.n) - bytes.n);
		if (some.len < WRITE_BYTES && i + 1 < o->n)
			continue;
		rc = file_write_all(fd, buf_str(&some));
		buf_reset(&some);
	}
	buf_release(&some);
	return rc;
}

static int write_file(const char *path, const struct snapshot_head *head, const struct out *o,
		      struct err *e)
{
	struct file_swap swap;
	bool is_good;

	if (file_swap_begin_mode(&swap, path, 0600) < 0)
		return err_set(e, ERR_IO, "cannot write %s: %s", path, strerror(errno));
	is_good = file_write_all(swap.fd, (struct str){ (const char *)head, sizeof(*head) }) == 0 &&
		  file_write_all(swap.fd, buf_str(&o->table)) == 0 && write_pieces(swap.fd, o) == 0;
	if (file_swap_end(&swap, is_good) < 0)
		return err_set(e, ERR_IO, "cannot write %s: %s", path, strerror(errno));
	return 0;
}

/* Bytes of each column's texts. The writer may add to them; those that are there never change. */
static uint64_t *texts_used(const struct index_view *v)
{
	uint64_t *texts = mem_array(v->n_columns, sizeof(*texts));

	pthread_mutex_lock(&v->index->write);
	for (size_t i = 0; i < v->n_columns; i++)
		if (v->head[i].is_keys && v->head[i].column->texts)
			texts[i] = v->head[i].column->texts->used;
	pthread_mutex_unlock(&v->index->write);
	return texts;
}

static int save(const struct index_view *v, const char *path, int64_t sequence, struct err *e)
{
	struct out o = { .table.limit = BUF_BYTES_MAX };
	struct snapshot_head head = { .magic = SNAPSHOT_MAGIC, .form = SNAPSHOT_FORM,
				      .order = SNAPSHOT_ORDER, .sequence = sequence };
	uint64_t *texts = texts_used(v);
	int rc;

	put(&o, v->n_rows);
	put(&o, v->n_columns);
	put(&o, v->index->block_shift);
	put(&o, v->index->dictionary_max);
	put(&o, v->is_ascending);
	put(&o, v->number);
	put_rows(&o, v);
	for (size_t i = 0; i < v->n_columns; i++)
		put_column(&o, v, i, texts[i]);
	while (o.table.len % SNAPSHOT_ALIGN)
		buf_add_char(&o.table, 0);
	head.table_bytes = o.table.len;
	head.table_sum = snapshot_sum(buf_str(&o.table));
	head.file_bytes = sizeof(head) + o.table.len + o.bytes;
	head.head_sum = snapshot_sum((struct str){ (const char *)&head,
						   offsetof(struct snapshot_head, head_sum) });
	if (o.table.is_over)
		rc = err_set(e, ERR_LIMIT, "%s: the table of the snapshot is above %llu bytes", path,
			     (unsigned long long)BUF_BYTES_MAX);
	else
		rc = write_file(path, &head, &o, e);
	buf_release(&o.table);
	free(o.piece);
	free(texts);
	return rc;
}

int index_save(const struct index_view *v, const char *path, int64_t sequence, struct err *e)
{
	struct index *rest;
	struct index_view *shown;
	int rc;

	if (!index_removed(v))
		return save(v, path, sequence, e);
	rest = index_without_removed(v);
	shown = index_view(rest);
	rc = save(shown, path, sequence, e);
	index_view_release(shown);
	index_free(rest);
	return rc;
}
