/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - a version of the index as one file; see index_internal.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "results/index/index_internal.h"

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

struct snapshot_writer {
	struct buf table;
	struct piece *piece;
	size_t n, cap;
	size_t bytes; /* of all pieces, padded */
};

static void put(struct snapshot_writer *o, uint64_t number)
{
	buf_add(&o->table, &number, sizeof(number));
}

static void put_text(struct snapshot_writer *o, struct str s)
{
	put(o, s.n);
	buf_add_str(&o->table, s);
}

static void put_piece(struct snapshot_writer *o, const void *p, size_t bytes)
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

static void put_block(struct snapshot_writer *o, const struct block *b, size_t rows)
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

static void put_value(struct snapshot_writer *o, struct value v)
{
	put(o, v.kind);
	if (v.kind == VALUE_BOOL)
		put(o, v.is_true);
	else if (v.kind == VALUE_NUMBER)
		buf_add(&o->table, &v.number, sizeof(v.number));
	else if (v.kind == VALUE_TEXT)
		put_text(o, v.text);
}

static void put_texts(struct snapshot_writer *o, const struct texts *t, uint64_t used)
{
	size_t chunk = (size_t)1 << TEXTS_CHUNK_SHIFT;

	put(o, used);
	for (uint64_t at = 0; at < used; at += chunk)
		put_piece(o, t->chunk[at >> TEXTS_CHUNK_SHIFT],
			  used - at < chunk ? (size_t)(used - at) : chunk);
}

static void put_column(struct snapshot_writer *o, const struct index_view *v, size_t number,
		       uint64_t texts)
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

static void put_rows(struct snapshot_writer *o, const struct index_view *v)
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

static int write_pieces(int fd, const struct snapshot_writer *o)
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

static int write_file(const char *path, const struct snapshot_head *head,
		      const struct snapshot_writer *o, struct err *e)
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

/* Bytes of each column's texts. The writer may append; existing ones never change. */
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
	struct snapshot_writer o = { .table.limit = BUF_BYTES_MAX };
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
	rest = index_without_removed(v, NULL, NULL);
	shown = index_view(rest);
	rc = save(shown, path, sequence, e);
	index_view_release(shown);
	index_free(rest);
	return rc;
}

/* ---- a file becomes an index again, after everything in it is checked ---- */

struct placed_piece { struct str bytes; uint64_t sum; };

/* A block, and its permitted values. */
struct judged {
	const struct block *block;
	size_t rows;
	uint32_t n_codes;
	const struct texts *texts;
};

struct snapshot_reader {
	struct index *x;
	struct str table, pieces;
	size_t at;
	bool is_bad;
	struct placed_piece *piece;
	size_t n, cap;
	struct judged *judged;
	size_t n_judged, cap_judged;
};

static uint64_t get(struct snapshot_reader *in)
{
	uint64_t number = 0;

	if (in->table.n - in->at < sizeof(number)) {
		in->is_bad = true;
		return 0;
	}
	memcpy(&number, in->table.p + in->at, sizeof(number));
	in->at += sizeof(number);
	return number;
}

static uint64_t get_below(struct snapshot_reader *in, uint64_t limit)
{
	uint64_t number = get(in);

	if (number >= limit) {
		in->is_bad = true;
		return 0;
	}
	return number;
}

static double get_real(struct snapshot_reader *in)
{
	uint64_t bits = get(in);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static struct str get_text(struct snapshot_reader *in)
{
	size_t n = get_below(in, INDEX_TEXT_BYTES_MAX + 1);
	struct str s = { in->table.p + in->at, n };

	if (in->table.n - in->at < n) {
		in->is_bad = true;
		return STR("");
	}
	in->at += n;
	return s;
}

/* NULL: outside the file. */
static void *get_piece(struct snapshot_reader *in, size_t bytes)
{
	uint64_t offset = get(in), sum = get(in);

	if (in->is_bad || offset % SNAPSHOT_ALIGN || offset > in->pieces.n ||
	    in->pieces.n - offset < bytes) {
		in->is_bad = true;
		return NULL;
	}
	if (in->n == in->cap) {
		in->cap = in->cap ? in->cap * 2 : 1024;
		in->piece = mem_grow(in->piece, in->cap, sizeof(*in->piece));
	}
	in->piece[in->n++] = (struct placed_piece){ { in->pieces.p + offset, bytes }, sum };
	return (void *)(uintptr_t)(in->pieces.p + offset);
}

/* A piece that will be written to: in memory of room bytes. */
static void *get_copy(struct snapshot_reader *in, size_t bytes, size_t room)
{
	const void *from = get_piece(in, bytes);
	void *to = from ? index_alloc(in->x, room) : NULL;

	if (to && bytes)
		memcpy(to, from, bytes);
	return to;
}

/* ---- columns ---- */

static bool get_value(struct snapshot_reader *in, struct value *v)
{
	*v = (struct value){ .kind = (enum value_kind)get_below(in, VALUE_TEXT + 1) };
	if (v->kind == VALUE_BOOL)
		v->is_true = get_below(in, 2);
	else if (v->kind == VALUE_NUMBER)
		v->number = get_real(in);
	else if (v->kind == VALUE_TEXT)
		v->text = get_text(in);
	if (v->kind == VALUE_ABSENT || (v->kind == VALUE_NUMBER && isnan(v->number)))
		in->is_bad = true;
	return !in->is_bad;
}

static void get_dictionary(struct snapshot_reader *in, struct column *c)
{
	uint32_t n = (uint32_t)get_below(in, (uint64_t)in->x->dictionary_max + 2);
	struct value v;

	if (n > 1)
		c->dict = dictionary_new(in->x);
	for (uint32_t code = 1; code < n && get_value(in, &v); code++)
		dictionary_add(in->x, c->dict, v);
}

static void get_texts(struct snapshot_reader *in, struct column *c)
{
	uint64_t used = get_below(in, (uint64_t)TEXTS_CHUNKS_MAX << TEXTS_CHUNK_SHIFT);
	size_t chunk = (size_t)1 << TEXTS_CHUNK_SHIFT;

	if (!used)
		return;
	c->texts = index_alloc(in->x, sizeof(*c->texts));
	c->texts->used = used;
	for (uint64_t at = 0; at < used && !in->is_bad; at += chunk)
		c->texts->chunk[at >> TEXTS_CHUNK_SHIFT] =
			used - at >= chunk ? get_piece(in, chunk) :
					     get_copy(in, (size_t)(used - at), chunk);
}

static void judge_later(struct snapshot_reader *in, const struct block *b, size_t rows,
			const struct column *c)
{
	if (in->n_judged == in->cap_judged) {
		in->cap_judged = in->cap_judged ? in->cap_judged * 2 : 1024;
		in->judged = mem_grow(in->judged, in->cap_judged, sizeof(*in->judged));
	}
	in->judged[in->n_judged++] = (struct judged){ b, rows, c->dict ? c->dict->n : 1, c->texts };
}

static void get_block(struct snapshot_reader *in, struct column *c, struct block *out, size_t rows)
{
	struct block b = { .form = (uint8_t)get_below(in, BLOCK_PACKED + 1) };
	bool is_tail = out == &c->tail;
	uint64_t has;

	/* Only columns of keys have keys, and a tail without rows is empty. */
	in->is_bad |= (block_is_keys(&b) && !c->is_keys) || (!rows && b.form != BLOCK_CODE);
	if (in->is_bad)
		return;

	if (b.form == BLOCK_CODE)
		b.code = (uint32_t)get_below(in, c->dict ? c->dict->n : 1);
	if (b.form == BLOCK_PACKED) {
		b.low_bytes = (uint8_t)get_below(in, 5);
		b.zeros = (uint8_t)get_below(in, 64);
		has = get_below(in, 4);
		b.has_text = has & 1;
		b.has_special = has >> 1;
		b.base = get(in);
		b.packed_max = get(in);
		in->is_bad |= is_tail;
	}
	in->is_bad |= is_tail && b.form == BLOCK_CODE_4;
	if (b.form != BLOCK_CODE && is_tail)
		b.data = get_copy(in, block_bytes(b.form, rows),
				  block_bytes(b.form, in->x->tail_cap));
	else if (b.form != BLOCK_CODE)
		b.data = get_piece(in, block_bytes(b.form, rows));
	if (b.low_bytes)
		b.low = get_piece(in, rows * b.low_bytes + 3);
	*out = b;
	if (in->is_bad)
		return;
	c->has_sealed_codes |= !is_tail && !block_is_keys(&b) && (b.form != BLOCK_CODE || b.code);
	judge_later(in, out, rows, c);
}

static void get_column(struct snapshot_reader *in)
{
	struct index *x = in->x;
	struct str name = get_text(in);
	uint64_t has = get_below(in, 32);
	size_t sealed = x->n_rows >> x->block_shift, rows = block_rows(x);
	struct column *c;
	size_t number;

	if (in->is_bad || map_get(&x->column_by_name, name, NULL)) {
		in->is_bad = true;
		return;
	}
	number = index_add_column(x, name);
	c = x->column[number];
	c->info.has_bool = has & 1;
	c->info.has_number = has >> 1 & 1;
	c->info.has_text = has >> 2 & 1;
	c->info.has_null = has >> 3 & 1;
	c->is_keys = has >> 4 & 1;
	c->info.distinct = get(in);
	c->info.present = get(in);
	c->info.min = get_real(in);
	c->info.max = get_real(in);
	get_dictionary(in, c);
	get_texts(in, c);
	for (size_t i = 0; i < sealed && !in->is_bad; i++)
		get_block(in, c, column_sealed(c, i), rows);
	if (!in->is_bad)
		get_block(in, c, &c->tail, x->n_rows & (rows - 1));
	if (in->is_bad)
		return;
	/* The tail of a column of keys holds keys, that of one of codes codes. */
	in->is_bad |= c->tail.form != BLOCK_CODE && block_is_keys(&c->tail) != c->is_keys;
	in->is_bad |= c->is_keys && c->tail.form == BLOCK_CODE && c->tail.code;
	if (c->is_keys && c->dict)
		dictionary_close(x, c);
}

/* ---- rows ---- */

static void get_rows(struct snapshot_reader *in)
{
	struct index *x = in->x;
	size_t rows = block_rows(x), sealed = x->n_rows >> x->block_shift;

	for (size_t i = 0; i < sealed && !in->is_bad; i++) {
		unsigned part = grow_part(i);
		struct ids *ids;

		if (!x->ids[part])
			x->ids[part] = index_alloc(x, ((size_t)GROW_FIRST << part) * sizeof(*ids));
		ids = index_sealed_ids(x, i);
		ids->first = (int64_t)get(in);
		in->is_bad |= ids->first > INT64_MAX - (int64_t)rows;
		if (get_below(in, 2))
			ids->id = get_piece(in, rows * sizeof(*ids->id));
	}
	x->tail_id = get_copy(in, (x->n_rows & (rows - 1)) * sizeof(int64_t),
			      x->tail_cap * sizeof(int64_t));
	x->n_flags = get_below(in, sealed + 2);
	x->flags = index_alloc(x, x->n_flags * sizeof(*x->flags));
	for (size_t i = 0; i < x->n_flags && !in->is_bad; i++)
		if (get_below(in, 2))
			x->flags[i] = get_copy(in, i < sealed ? rows : x->n_rows & (rows - 1),
					       rows);
}

static void get_sizes(struct snapshot_reader *in)
{
	struct index *x = in->x;
	size_t tail;

	x->n_rows = get_below(in, INDEX_ROWS_MAX + 1ull);
	x->tail_cap = 0;
	tail = x->n_rows & (block_rows(x) - 1);
	for (size_t cap = TAIL_ROWS_FIRST; tail && !x->tail_cap; cap *= TAIL_GROWTH) {
		if (cap > block_rows(x))
			cap = block_rows(x);
		if (cap >= tail)
			x->tail_cap = cap;
	}
}

/* Ids are above 0, and ascending if the file says so. */
static bool has_good_ids(struct index *x)
{
	const struct index_view v = { .index = x, .n_rows = x->n_rows,
				      .tail_ids = { 0, x->tail_id } };
	bool is_ascending = true;

	x->last_id = 0;
	for (size_t row = 0; row < x->n_rows; row++) {
		int64_t id = view_id(&v, row);

		if (id <= 0)
			return false;
		is_ascending &= id > x->last_id;
		x->last_id = id > x->last_id ? id : x->last_id;
	}
	return is_ascending || !x->is_ascending;
}

/* ---- judging ---- */

static bool is_good_key(const struct judged *j, uint64_t key)
{
	uint64_t at = key - KEY_TEXT, chunk = 1u << TEXTS_CHUNK_SHIFT;
	uint64_t left = chunk - (at & (chunk - 1));

	if (key < KEY_SPECIALS ||
	    (key >= key_of_number(-INFINITY) && key <= key_of_number(INFINITY)))
		return true;
	if (key < KEY_TEXT || !j->texts || at >= j->texts->used || left < sizeof(uint32_t) ||
	    j->texts->used - at < sizeof(uint32_t))
		return false;
	left = left < j->texts->used - at ? left : j->texts->used - at;
	return texts_at(j->texts, key).n <= left - sizeof(uint32_t);
}

static bool is_good_packed(const struct judged *j)
{
	const struct block *b = j->block;
	uint64_t top = b->has_text ? UINT64_MAX : key_of_number(INFINITY), most = 0;

	if (b->packed_max < KEY_SPECIALS || b->base > top || b->base < KEY_SPECIALS ||
	    (!b->has_text && b->base < key_of_number(-INFINITY)) ||
	    b->packed_max - KEY_SPECIALS > (top - b->base) >> b->zeros)
		return false;
	for (size_t i = 0; i < j->rows; i++) {
		uint64_t packed = packed_at(b, i);

		most = packed > most ? packed : most;
		if (b->has_text && !is_good_key(j, key_of_packed(b, packed)))
			return false;
		if (packed < KEY_SPECIALS && !b->has_special)
			return false;
	}
	return most <= b->packed_max;
}

static bool is_good_block(void *self, size_t item, unsigned worker)
{
	const struct judged *j = &((const struct snapshot_reader *)self)->judged[item];
	const struct block *b = j->block;
	uint32_t most = 0;

	(void)worker;
	switch (b->form) {
	case BLOCK_CODE_4:
	case BLOCK_CODE_8:
	case BLOCK_CODE_16:
		for (size_t i = 0; i < j->rows; i++) {
			uint32_t code = block_code(b, i);

			most = code > most ? code : most;
		}
		return most < j->n_codes;
	case BLOCK_KEYS:
		for (size_t i = 0; i < j->rows; i++)
			if (!is_good_key(j, ((const uint64_t *)b->data)[i]))
				return false;
		return true;
	case BLOCK_PACKED:
		return is_good_packed(j);
	default:
		return true;
	}
}

static bool is_good_piece(void *self, size_t item, unsigned worker)
{
	const struct placed_piece *p = &((const struct snapshot_reader *)self)->piece[item];

	(void)worker;
	return snapshot_sum(p->bytes) == p->sum;
}

/* ---- the file ---- */

static int check_head(const char *path, struct str file, struct snapshot_head *head, struct err *e)
{
	if (file.n < sizeof(*head))
		return err_set(e, ERR_PARSE, "%s: not a snapshot of an index: it has %zu "
					     "bytes", path, file.n);
	memcpy(head, file.p, sizeof(*head));
	if (memcmp(head->magic, SNAPSHOT_MAGIC, sizeof(head->magic)) != 0)
		return err_set(e, ERR_PARSE, "%s: not a snapshot of an index", path);
	if (head->form != SNAPSHOT_FORM || head->order != SNAPSHOT_ORDER)
		return err_set(e, ERR_PARSE, "%s: a snapshot of another version of this program or of "
			       "another kind of machine", path);
	if (head->head_sum != snapshot_sum((struct str){ file.p, offsetof(struct snapshot_head,
									  head_sum) }))
		return err_set(e, ERR_PARSE, "%s: the snapshot is damaged at its head", path);
	if (head->file_bytes != file.n || head->table_bytes > file.n - sizeof(*head) ||
	    head->table_bytes % SNAPSHOT_ALIGN)
		return err_set(e, ERR_PARSE, "%s: the snapshot has %zu bytes, %llu are expected", path,
			       file.n, (unsigned long long)head->file_bytes);
	if (head->table_sum !=
	    snapshot_sum((struct str){ file.p + sizeof(*head), head->table_bytes }))
		return err_set(e, ERR_PARSE, "%s: the snapshot is damaged in its table", path);
	return 0;
}

static int fill(struct snapshot_reader *in, size_t n_columns, const char *path, struct err *e)
{
	struct index *x = in->x;

	get_rows(in);
	for (size_t i = 0; i < n_columns && !in->is_bad; i++)
		get_column(in);
	if (!in->is_bad && parallel_for(0, in->n, is_good_piece, in) < in->n)
		return err_set(e, ERR_PARSE, "%s: the snapshot is damaged", path);
	if (in->is_bad || parallel_for(0, in->n_judged, is_good_block, in) < in->n_judged ||
	    !has_good_ids(x))
		return err_set(e, ERR_PARSE, "%s: the snapshot has impossible values", path);
	return 0;
}

int index_load(const char *path, struct index **out, int64_t *sequence, struct err *e)
{
	struct snapshot_head head;
	struct snapshot_reader in = { 0 };
	struct str file;
	size_t n_columns, block_shift, dictionary_max, rows_at;
	uint64_t number;
	int rc;

	/* A colleague's, who shares the store, is not taken: it is made again. */
	if (file_load_own(path, &file) < 0) {
		err_set(e, ERR_IO, "%s: not a file that only this user can have written", path);
		return 0;
	}
	if (check_head(path, file, &head, e) < 0) {
		file_unmap(file);
		return 0;
	}
	in.table = (struct str){ file.p + sizeof(head), head.table_bytes };
	in.pieces = (struct str){ in.table.p + in.table.n, file.n - sizeof(head) - in.table.n };
	rows_at = in.at;
	get(&in);
	n_columns = get_below(&in, INDEX_COLUMNS_MAX + 1);
	block_shift = get_below(&in, INDEX_BLOCK_SHIFT + 1);
	dictionary_max = get_below(&in, INDEX_DICTIONARY_MAX + 1);
	in.is_bad |= block_shift < 6 || !dictionary_max;
	in.x = index_make_with(in.is_bad ? INDEX_BLOCK_SHIFT : (unsigned)block_shift,
			       (uint32_t)dictionary_max);
	in.x->mapping = file;
	in.x->is_ascending = get_below(&in, 2);
	number = get(&in);
	if (number > in.x->number)
		in.x->number = number; /* the clock may have been put back */
	in.at = rows_at;
	get_sizes(&in);
	in.at += 5 * sizeof(uint64_t);
	rc = fill(&in, n_columns, path, e);
	free(in.piece);
	free(in.judged);
	if (rc < 0) {
		index_free(in.x);
		return 0;
	}
	index_make_names(in.x);
	index_publish(in.x);
	*out = in.x;
	*sequence = head.sequence;
	return 1;
}
