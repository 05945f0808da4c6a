/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_read.c - a file becomes an index again, after everything in it is checked. */
#include <math.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "results/index/part.h"
#include "results/index/snapshot.h"

struct piece { struct str bytes; uint64_t sum; };

/* A block, and what it may say. */
struct judged {
	const struct block *block;
	size_t rows;
	uint32_t n_codes;
	const struct texts *texts;
};

struct in {
	struct index *x;
	struct str table, pieces;
	size_t at;
	bool is_bad;
	struct piece *piece;
	size_t n, cap;
	struct judged *judged;
	size_t n_judged, cap_judged;
};

static uint64_t get(struct in *in)
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

static uint64_t get_below(struct in *in, uint64_t limit)
{
	uint64_t number = get(in);

	if (number >= limit) {
		in->is_bad = true;
		return 0;
	}
	return number;
}

static double get_real(struct in *in)
{
	uint64_t bits = get(in);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static struct str get_text(struct in *in)
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

/* NULL: it does not lie in the file. */
static void *get_piece(struct in *in, size_t bytes)
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
	in->piece[in->n++] = (struct piece){ { in->pieces.p + offset, bytes }, sum };
	return (void *)(uintptr_t)(in->pieces.p + offset);
}

/* A piece that will be written to: in memory of room bytes. */
static void *get_copy(struct in *in, size_t bytes, size_t room)
{
	const void *from = get_piece(in, bytes);
	void *to = from ? index_alloc(in->x, room) : NULL;

	if (to && bytes)
		memcpy(to, from, bytes);
	return to;
}

/* ---- columns ---- */

static bool get_value(struct in *in, struct value *v)
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

static void get_dictionary(struct in *in, struct column *c)
{
	uint32_t n = (uint32_t)get_below(in, (uint64_t)in->x->dictionary_max + 2);
	struct value v;

	if (n > 1)
		c->dict = dictionary_new(in->x);
	for (uint32_t code = 1; code < n && get_value(in, &v); code++)
		dictionary_add(in->x, c->dict, v);
}

static void get_texts(struct in *in, struct column *c)
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

static void judge_later(struct in *in, const struct block *b, size_t rows, const struct column *c)
{
	if (in->n_judged == in->cap_judged) {
		in->cap_judged = in->cap_judged ? in->cap_judged * 2 : 1024;
		in->judged = mem_grow(in->judged, in->cap_judged, sizeof(*in->judged));
	}
	in->judged[in->n_judged++] = (struct judged){ b, rows, c->dict ? c->dict->n : 1, c->texts };
}

static void get_block(struct in *in, struct column *c, struct block *out, size_t rows)
{
	struct block b = { .form = (uint8_t)get_below(in, BLOCK_PACKED + 1) };
	bool is_tail = out == &c->tail;
	uint64_t has;

	/* Keys are for columns of keys alone, and a tail without rows has nothing. */
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

static void get_column(struct in *in)
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

static void get_rows(struct in *in)
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

static void get_sizes(struct in *in)
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

/* Ids above 0, and in order where that is said. */
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
	const struct judged *j = &((const struct in *)self)->judged[item];
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
	const struct piece *p = &((const struct in *)self)->piece[item];

	(void)worker;
	return snapshot_sum(p->bytes) == p->sum;
}

/* ---- the file ---- */

static int check_head(const char *path, struct str file, struct snapshot_head *head, struct err *e)
{
	if (file.n < sizeof(*head))
		return err_set(e, ERR_PARSE, "%s: no snapshot of an index: it has %zu bytes", path, file.n);
	memcpy(head, file.p, sizeof(*head));
	if (memcmp(head->magic, SNAPSHOT_MAGIC, sizeof(head->magic)) != 0)
		return err_set(e, ERR_PARSE, "%s: no snapshot of an index", path);
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

static int fill(struct in *in, size_t n_columns, const char *path, struct err *e)
{
	struct index *x = in->x;

	get_rows(in);
	for (size_t i = 0; i < n_columns && !in->is_bad; i++)
		get_column(in);
	if (!in->is_bad && parallel_for(0, in->n, is_good_piece, in) < in->n)
		return err_set(e, ERR_PARSE, "%s: the snapshot is damaged", path);
	if (in->is_bad || parallel_for(0, in->n_judged, is_good_block, in) < in->n_judged ||
	    !has_good_ids(x))
		return err_set(e, ERR_PARSE, "%s: the snapshot says what cannot be", path);
	return 0;
}

int index_load(const char *path, struct index **out, int64_t *sequence, struct err *e)
{
	struct snapshot_head head;
	struct in in = { 0 };
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
