/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - the writer's side of a column: turns values into codes or keys, seals full tails. */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "results/index/index_internal.h"

#define SLOTS_FIRST 16

/* ---- dictionaries ---- */

static uint32_t hash_of(struct value v)
{
	uint64_t h = (uint64_t)v.kind << 1 | (v.kind == VALUE_BOOL && v.is_true);

	if (v.kind == VALUE_TEXT)
		return (uint32_t)(map_hash(v.text) >> 32);
	if (v.kind == VALUE_NUMBER)
		h = key_of_number(v.number);
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32);
}

static void slot_put(struct dictionary *d, struct value v, uint32_t code)
{
	uint32_t i = hash_of(v) & (d->slots - 1);

	while (d->slot[i])
		i = (i + 1) & (d->slots - 1);
	d->slot[i] = code;
}

static void slots_grow(struct index *x, struct dictionary *d)
{
	size_t old = d->slots * sizeof(*d->slot);

	d->slots = d->slots ? d->slots * 2 : SLOTS_FIRST;
	index_drop(x, d->slot, old);
	d->slot = index_alloc(x, d->slots * sizeof(*d->slot));
	for (uint32_t code = 1; code < d->n; code++)
		slot_put(d, dictionary_value(d, code), code);
}

/* 0: it is not there. */
static uint32_t dictionary_find(const struct dictionary *d, struct value v)
{
	uint32_t i;

	if (!d->slots)
		return 0;
	i = hash_of(v) & (d->slots - 1);
	while (d->slot[i] && !value_same(dictionary_value(d, d->slot[i]), v))
		i = (i + 1) & (d->slots - 1);
	return d->slot[i];
}

uint32_t dictionary_add(struct index *x, struct dictionary *d, struct value v)
{
	uint32_t code = d->n;
	unsigned part = grow_part(code);

	if (!d->part[part])
		d->part[part] = index_alloc(x, ((size_t)GROW_FIRST << part) * sizeof(v));
	if (v.kind == VALUE_TEXT)
		v.text = index_text(x, v.text);
	d->part[part][grow_place(code, part)] = v;
	d->n++;
	if (d->n * 2 > d->slots)
		slots_grow(x, d);
	else
		slot_put(d, v, code);
	return code;
}

struct dictionary *dictionary_new(struct index *x)
{
	struct dictionary *d = index_alloc(x, sizeof(*d));

	d->part[0] = index_alloc(x, GROW_FIRST * sizeof(struct value));
	d->n = 1; /* absent */
	return d;
}

static void dictionary_retire(struct index *x, struct dictionary *d)
{
	for (unsigned part = 0; part < GROW_PARTS && d->part[part]; part++)
		index_retire(x, d->part[part], ((size_t)GROW_FIRST << part) * sizeof(struct value));
	index_retire(x, d, sizeof(*d));
}

static void slots_drop(struct index *x, struct dictionary *d)
{
	index_drop(x, d->slot, d->slots * sizeof(*d->slot));
	d->slot = NULL;
	d->slots = 0;
}

void dictionary_close(struct index *x, struct column *c)
{
	slots_drop(x, c->dict);
	if (c->has_sealed_codes)
		return;
	dictionary_retire(x, c->dict);
	c->dict = NULL;
}

/* ---- texts of keys ---- */

static uint64_t texts_add(struct index *x, struct texts *t, struct str s)
{
	uint64_t chunk_bytes = 1u << TEXTS_CHUNK_SHIFT, need = s.n + sizeof(uint32_t), at;
	uint32_t n = (uint32_t)s.n;
	char *p;

	if (chunk_bytes - (t->used & (chunk_bytes - 1)) < need)
		t->used = (t->used | (chunk_bytes - 1)) + 1;
	at = t->used;
	assert(at >> TEXTS_CHUNK_SHIFT < TEXTS_CHUNKS_MAX);
	if (!t->chunk[at >> TEXTS_CHUNK_SHIFT])
		t->chunk[at >> TEXTS_CHUNK_SHIFT] = index_alloc(x, chunk_bytes);
	p = t->chunk[at >> TEXTS_CHUNK_SHIFT] + (at & (chunk_bytes - 1));
	memcpy(p, &n, sizeof(n));
	if (n)
		memcpy(p + sizeof(n), s.p, n);
	t->used += need;
	return KEY_TEXT + at;
}

static uint64_t key_of(struct index *x, struct column *c, struct value v)
{
	switch (v.kind) {
	case VALUE_NULL:
		return KEY_NULL;
	case VALUE_BOOL:
		return v.is_true ? KEY_TRUE : KEY_FALSE;
	case VALUE_NUMBER:
		return key_of_number(v.number);
	case VALUE_TEXT:
		if (!c->texts)
			c->texts = index_alloc(x, sizeof(*c->texts));
		return texts_add(x, c->texts, v.text);
	case VALUE_ABSENT:
		break;
	}
	return KEY_ABSENT;
}

/* ---- tails ---- */

/* Another array of the same form, with room for cap rows; the old one may still be in use. */
void column_make_room(struct index *x, struct column *c, size_t cap)
{
	size_t bytes = block_bytes(c->tail.form, x->tail_cap);
	void *old = c->tail.data;

	if (!old)
		return;
	c->tail.data = index_alloc(x, block_bytes(c->tail.form, cap));
	memcpy(c->tail.data, old, bytes);
	index_retire(x, old, bytes);
}

/* The tail's first t rows in a wider form of codes. */
static void widen(struct index *x, struct column *c, size_t t, bool is_16)
{
	struct block old = c->tail;
	uint8_t *narrow;
	uint16_t *wide;

	c->tail.form = is_16 ? BLOCK_CODE_16 : BLOCK_CODE_8;
	c->tail.data = index_alloc(x, block_bytes(c->tail.form, x->tail_cap));
	narrow = c->tail.data;
	wide = c->tail.data;
	for (size_t i = 0; i < t; i++) {
		if (is_16)
			wide[i] = (uint16_t)block_code(&old, i);
		else
			narrow[i] = (uint8_t)old.code;
	}
	if (old.data)
		index_retire(x, old.data, block_bytes(old.form, x->tail_cap));
}

static void put_code(struct index *x, struct column *c, size_t t, uint32_t code)
{
	struct block *tail = &c->tail;

	if (tail->form == BLOCK_CODE) {
		if (t == 0)
			tail->code = code;
		if (code == tail->code)
			return;
		widen(x, c, t, code > UINT8_MAX || tail->code > UINT8_MAX);
	} else if (tail->form == BLOCK_CODE_8 && code > UINT8_MAX) {
		widen(x, c, t, true);
	}
	if (tail->form == BLOCK_CODE_8)
		((uint8_t *)tail->data)[t] = (uint8_t)code;
	else
		((uint16_t *)tail->data)[t] = (uint16_t)code;
}

static void put_key(struct index *x, struct column *c, size_t t, uint64_t key)
{
	struct block *tail = &c->tail;

	if (tail->form != BLOCK_KEYS) { /* all absent so far */
		assert(tail->form == BLOCK_CODE && tail->code == 0);
		tail->form = BLOCK_KEYS;
		tail->data = index_alloc(x, x->tail_cap * sizeof(key));
	}
	((uint64_t *)tail->data)[t] = key;
}

/* From codes to keys: the tail's t rows become keys, and values get no more codes. */
static void change_over(struct index *x, struct column *c, size_t t)
{
	struct block old = c->tail;

	c->is_keys = true;
	c->tail = (struct block){ 0 };
	for (size_t i = 0; i < t; i++) {
		uint32_t code = block_code(&old, i);

		if (code)
			put_key(x, c, i, key_of(x, c, dictionary_value(c->dict, code)));
	}
	if (old.data)
		index_retire(x, old.data, block_bytes(old.form, x->tail_cap));
	dictionary_close(x, c);
	c->info.distinct = (size_t)x->dictionary_max + 1;
}

/* ---- adding ---- */

static void note(struct column_info *info, struct value v)
{
	info->present++;
	info->has_null |= v.kind == VALUE_NULL;
	info->has_bool |= v.kind == VALUE_BOOL;
	info->has_text |= v.kind == VALUE_TEXT;
	if (v.kind != VALUE_NUMBER)
		return;
	info->has_number = true;
	if (!isfinite(v.number))
		return;
	if (!(info->min <= v.number))
		info->min = v.number;
	if (!(info->max >= v.number))
		info->max = v.number;
}

static uint32_t code_of(struct index *x, struct column *c, struct value v)
{
	uint32_t code;

	if (!c->dict)
		c->dict = dictionary_new(x);
	if (c->last_code && value_same(dictionary_value(c->dict, c->last_code), v))
		return c->last_code;
	code = dictionary_find(c->dict, v);
	if (!code && c->dict->n <= x->dictionary_max) {
		code = dictionary_add(x, c->dict, v);
		c->info.distinct++;
	}
	c->last_code = code;
	return code;
}

void column_add(struct index *x, struct column *c, size_t row, struct value v)
{
	size_t t = row & (block_rows(x) - 1);

	if (c->touched == row + 1)
		return; /* the first one counts */
	if (v.kind == VALUE_NUMBER && isnan(v.number))
		v = (struct value){ .kind = VALUE_NULL };
	if (v.kind == VALUE_NUMBER && v.number == 0)
		v.number = 0; /* never -0 */
	if (v.kind == VALUE_ABSENT)
		return;
	c->touched = row + 1;
	note(&c->info, v);
	if (!c->is_keys) {
		uint32_t code = code_of(x, c, v);

		if (code) {
			put_code(x, c, t, code);
			return;
		}
		change_over(x, c, t);
	}
	put_key(x, c, t, key_of(x, c, v));
}

/* ---- sealing ---- */

/* Fills in how the block packs; false: it does not. */
static bool plan_packing(const uint64_t *key, size_t n, struct block *b)
{
	uint64_t least = UINT64_MAX, most = 0, differing = 0, first = 0;
	unsigned bits;

	for (size_t i = 0; i < n; i++) {
		if (key[i] < KEY_SPECIALS) {
			b->has_special = true;
			continue;
		}
		if (!first)
			first = key[i];
		differing |= key[i] ^ first;
		least = key[i] < least ? key[i] : least;
		most = key[i] > most ? key[i] : most;
	}
	if (!first)
		least = most = key_of_number(0);
	b->zeros = differing ? (uint8_t)__builtin_ctzll(differing) : 0;
	b->base = least;
	b->has_text = most >= KEY_TEXT;
	b->packed_max = (most - least) >> b->zeros;
	if (b->packed_max > UINT64_MAX - KEY_SPECIALS)
		return false;
	b->packed_max += KEY_SPECIALS;
	bits = 64u - (unsigned)__builtin_clzll(b->packed_max);
	b->low_bytes = bits <= 32 ? 0 : (uint8_t)((bits - 32 + 7) / 8);
	return true;
}

static void pack(struct index *x, struct block *b)
{
	size_t n = block_rows(x);
	uint64_t *key = b->data;
	struct block packed = { .form = BLOCK_PACKED };
	uint32_t *high;

	if (!plan_packing(key, n, &packed))
		return;
	high = packed.data = index_alloc(x, n * sizeof(*high));
	if (packed.low_bytes)
		packed.low = index_alloc(x, n * packed.low_bytes + 3);
	for (size_t i = 0; i < n; i++) {
		uint64_t v = key[i] < KEY_SPECIALS ? key[i] :
			     ((key[i] - packed.base) >> packed.zeros) + KEY_SPECIALS;

		high[i] = (uint32_t)(v >> 8 * packed.low_bytes);
		for (unsigned k = 0; k < packed.low_bytes; k++)
			packed.low[i * packed.low_bytes + k] = (uint8_t)(v >> 8 * k);
	}
	index_retire(x, key, n * sizeof(*key));
	*b = packed;
}

/* Two codes in a byte, where all are below 16. */
static void halve(struct index *x, struct block *b)
{
	size_t n = block_rows(x);
	const uint8_t *code = b->data;
	uint8_t most = 0, *half;

	for (size_t i = 0; i < n; i++)
		most = code[i] > most ? code[i] : most;
	if (most > 15)
		return;
	half = index_alloc(x, block_bytes(BLOCK_CODE_4, n));
	for (size_t i = 0; i < n; i += 64)
		for (size_t k = 0; k < 32; k++)
			half[i / 2 + k] = (uint8_t)(code[i + k] | code[i + 32 + k] << 4);
	index_retire(x, b->data, n);
	b->form = BLOCK_CODE_4;
	b->data = half;
}

struct block *column_sealed(struct column *c, size_t i)
{
	unsigned part = grow_part(i);

	return &c->sealed[part][grow_place(i, part)];
}

void column_make_sealed(struct index *x, struct column *c, size_t blocks)
{
	for (unsigned part = 0; part <= grow_part(blocks); part++)
		if (!c->sealed[part])
			c->sealed[part] = index_alloc(x, ((size_t)GROW_FIRST << part) *
							 sizeof(struct block));
}

void column_pass(struct index *x, struct column *c, size_t rows)
{
	size_t t = (rows - 1) & (block_rows(x) - 1), block = (rows - 1) >> x->block_shift;

	if (c->touched != rows && c->tail.form == BLOCK_CODE && c->tail.code)
		widen(x, c, t, c->tail.code > UINT8_MAX);
	if (t + 1 < block_rows(x))
		return;
	assert(x->tail_cap == block_rows(x));
	if (c->tail.form == BLOCK_KEYS)
		pack(x, &c->tail);
	else
		c->has_sealed_codes |= c->tail.form != BLOCK_CODE || c->tail.code;
	if (c->tail.form == BLOCK_CODE_8)
		halve(x, &c->tail);
	column_make_sealed(x, c, block);
	*column_sealed(c, block) = c->tail;
	c->tail = (struct block){ 0 };
}

static void block_drop(struct index *x, struct block *b, size_t cap)
{
	index_drop(x, b->data, block_bytes(b->form, cap));
	index_drop(x, b->low, cap * b->low_bytes + 3);
}

void column_free(struct index *x, struct column *c)
{
	size_t blocks = x->n_rows >> x->block_shift;

	for (size_t i = 0; i < blocks; i++)
		block_drop(x, column_sealed(c, i), block_rows(x));
	for (unsigned part = 0; part < GROW_PARTS; part++)
		index_drop(x, c->sealed[part], ((size_t)GROW_FIRST << part) * sizeof(struct block));
	block_drop(x, &c->tail, x->tail_cap);
	if (c->dict) {
		slots_drop(x, c->dict);
		for (unsigned part = 0; part < GROW_PARTS; part++)
			index_drop(x, c->dict->part[part],
				   ((size_t)GROW_FIRST << part) * sizeof(struct value));
		index_drop(x, c->dict, sizeof(*c->dict));
	}
	for (size_t i = 0; c->texts && i < TEXTS_CHUNKS_MAX && c->texts->chunk[i]; i++)
		index_drop(x, c->texts->chunk[i], (size_t)1 << TEXTS_CHUNK_SHIFT);
	index_drop(x, c->texts, sizeof(*c->texts));
	index_drop(x, c, sizeof(*c));
}

/* ---- what a version holds: its columns, blocks, ids and single values ---- */

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

/*
 * Texts of stored values live as long as the index. Everything else in an answer is in memory of
 * its question: selected values that no row has, and cursors, are copied both ways; names of
 * columns are those of the question being answered.
 */

struct kept {
	struct str key;
	uint64_t used; /* time of last use */
	struct answer answer;
	struct arena arena;
};

struct cache {
	pthread_mutex_t lock;
	uint64_t version, now;
	size_t bytes, bytes_max, n;
	struct kept *kept[CACHE_ANSWERS_MAX];
};

struct cache *cache_new(size_t bytes_max)
{
	struct cache *c = mem_alloc(sizeof(*c));

	pthread_mutex_init(&c->lock, NULL);
	c->bytes_max = bytes_max;
	return c;
}

static void drop(struct cache *c, size_t i)
{
	struct kept *k = c->kept[i];

	c->bytes -= k->arena.bytes;
	c->kept[i] = c->kept[--c->n];
	arena_release(&k->arena);
	free(k);
}

/* Until one more fits. */
static void make_room(struct cache *c)
{
	while (c->n && (c->bytes > c->bytes_max || c->n == CACHE_ANSWERS_MAX)) {
		size_t oldest = 0;

		for (size_t i = 1; i < c->n; i++)
			if (c->kept[i]->used < c->kept[oldest]->used)
				oldest = i;
		drop(c, oldest);
	}
}

void cache_limit(struct cache *c, size_t bytes_max)
{
	pthread_mutex_lock(&c->lock);
	c->bytes_max = bytes_max;
	make_room(c);
	while (c->n && !bytes_max)
		drop(c, c->n - 1);
	pthread_mutex_unlock(&c->lock);
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	cache_limit(c, 0);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- keys ---- */

static void add_number(struct buf *b, uint64_t n)
{
	buf_add(b, &n, sizeof(n));
}

static void add_text(struct buf *b, struct str s)
{
	add_number(b, s.n);
	buf_add_str(b, s);
}

static void add_texts(struct buf *b, const struct str *s, size_t n)
{
	add_number(b, n);
	for (size_t i = 0; i < n; i++)
		add_text(b, s[i]);
}

static void add_value(struct buf *b, struct value v)
{
	add_number(b, v.kind);
	if (v.kind == VALUE_BOOL)
		add_number(b, v.is_true);
	else if (v.kind == VALUE_NUMBER)
		buf_add(b, &v.number, sizeof(v.number));
	else if (v.kind == VALUE_TEXT)
		add_text(b, v.text);
}

static void add_filter(struct buf *b, const struct filter *f)
{
	add_number(b, f ? 1 : 0);
	if (!f)
		return;
	add_number(b, f->kind);
	add_text(b, f->column);
	add_number(b, f->n_parts);
	for (size_t i = 0; i < f->n_parts; i++)
		add_filter(b, f->part[i]);
	add_number(b, f->n_values);
	for (size_t i = 0; i < f->n_values; i++)
		add_value(b, f->value[i]);
	buf_add(b, &f->min, sizeof(f->min));
	buf_add(b, &f->max, sizeof(f->max));
	add_text(b, f->text);
	add_number(b, f->is_missing);
}

struct str cache_key(const struct query *q, struct arena *a)
{
	struct buf b = { 0 };
	struct str key;

	add_filter(&b, q->filter);
	add_number(&b, (uint64_t)q->shown << 1 | q->only_flagged);
	add_number(&b, q->n_sorts);
	for (size_t i = 0; i < q->n_sorts; i++) {
		add_text(&b, q->sort[i].column);
		add_number(&b, q->sort[i].is_descending);
	}
	add_number(&b, q->limit);
	add_text(&b, q->cursor);
	add_texts(&b, q->column, q->n_columns);
	add_texts(&b, q->facet, q->n_facets);
	add_number(&b, q->facet_values_max);
	add_number(&b, q->histogram_bins);
	add_texts(&b, q->statistic, q->n_statistics);
	add_number(&b, q->only_ends);
	add_text(&b, q->fold);
	key = arena_str(a, buf_str(&b));
	buf_release(&b);
	return key;
}

/* ---- answers ---- */

static void *copy(const void *from, size_t bytes, struct arena *a)
{
	void *to = arena_alloc(a, bytes);

	if (bytes)
		memcpy(to, from, bytes);
	return to;
}

static struct facet copy_facet(const struct facet *f, struct arena *a)
{
	struct facet to = *f;

	to.column = (struct str){ 0 };
	to.value = copy(f->value, f->n * sizeof(*f->value), a);
	to.bin = copy(f->bin, f->n_bins * sizeof(*f->bin), a);
	for (size_t i = 0; i < to.n; i++)
		if (!to.value[i].count && to.value[i].value.kind == VALUE_TEXT)
			to.value[i].value.text = arena_str(a, to.value[i].value.text);
	return to;
}

/* Without the names of its columns. */
static struct answer copy_answer(const struct answer *from, const struct query *q, struct arena *a)
{
	struct answer to = *from;

	to.row = copy(from->row, from->n_rows * sizeof(*to.row), a);
	for (size_t i = 0; i < to.n_rows; i++) {
		struct page_row *row = &to.row[i];

		row->value = copy(row->value, q->n_columns * sizeof(*row->value), a);
		if (!q->fold.n)
			continue;
		row->ids = copy(row->ids, row->n_ids * sizeof(*row->ids), a);
		row->spread = copy(row->spread, q->n_columns * sizeof(*row->spread), a);
	}
	to.next = arena_str(a, from->next);
	to.facet = arena_alloc(a, to.n_facets * sizeof(*to.facet));
	for (size_t i = 0; i < to.n_facets; i++)
		to.facet[i] = copy_facet(&from->facet[i], a);
	to.statistic = copy(from->statistic, to.n_statistics * sizeof(*to.statistic), a);
	for (size_t i = 0; i < to.n_statistics; i++)
		to.statistic[i].column = (struct str){ 0 };
	return to;
}

static void put_names(struct answer *to, const struct query *q)
{
	for (size_t i = 0; i < to->n_facets; i++)
		to->facet[i].column = q->facet[i];
	for (size_t i = 0; i < to->n_statistics; i++)
		to->statistic[i].column = q->statistic[i];
}

static size_t find(const struct cache *c, struct str key)
{
	size_t i = 0;

	while (i < c->n && !str_eq(c->kept[i]->key, key))
		i++;
	return i;
}

bool cache_get(struct cache *c, uint64_t version, struct str key, const struct query *q,
	       struct arena *a, struct answer *out)
{
	size_t i = SIZE_MAX;

	pthread_mutex_lock(&c->lock);
	if (c->version == version) {
		i = find(c, key);
		if (i < c->n) {
			c->kept[i]->used = ++c->now;
			*out = copy_answer(&c->kept[i]->answer, q, a);
			put_names(out, q);
		} else {
			i = SIZE_MAX;
		}
	}
	pthread_mutex_unlock(&c->lock);
	return i != SIZE_MAX;
}

void cache_put(struct cache *c, uint64_t version, struct str key, const struct query *q,
	       const struct answer *answer)
{
	struct kept *k;

	pthread_mutex_lock(&c->lock);
	if (version > c->version) {
		while (c->n)
			drop(c, c->n - 1);
		c->version = version;
	}
	if (c->bytes_max && version == c->version && q->limit <= CACHE_ROWS_MAX &&
	    find(c, key) == c->n) {
		make_room(c);
		k = mem_alloc(sizeof(*k));
		k->key = arena_str(&k->arena, key);
		k->answer = copy_answer(answer, q, &k->arena);
		k->used = ++c->now;
		c->kept[c->n++] = k;
		c->bytes += k->arena.bytes;
		make_room(c);
	}
	pthread_mutex_unlock(&c->lock);
}
