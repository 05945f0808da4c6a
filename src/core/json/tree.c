/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - the tree of json/read.h.
 *
 * One pass without recursion. The items of every open container wait on one growing stack, in
 * order; when a container closes, its items are the top of that stack and move to the arena as one
 * block, leaving the container itself as an item of its parent. Strings are copied into shared text
 * blocks. In objects with many members a hash table, built at the close, finds duplicate keys.
 */
#include <assert.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/lex.h"
#include "core/json/read.h"

#include <math.h>

#define TEXT_BLOCK_BYTES 65536
#define TEXT_SHARED_MAX 4096 /* longer strings get a block of their own */
#define FEW_MEMBERS 12       /* up to here duplicates are found by comparing all pairs */

struct tree_item {
	struct str key;
	struct json_value value;
};

struct tree_build {
	struct arena *arena;
	struct lex lex;
	struct tree_item *item; /* the stack */
	size_t count, cap;
	size_t open[JSON_DEPTH_MAX]; /* first stack index of each open container */
	unsigned level;
	char *text;        /* what is left of the current text block */
	size_t text_left;
	struct buf scratch;
	uint32_t *slot;    /* hash table: item index + 1, 0 = free */
	size_t slot_cap;
	bool is_strict;
	struct str twice;  /* the key that a strict text has twice in one object */
};

static struct str keep_bytes(struct tree_build *b, struct str s)
{
	char *copy = b->text;

	if (s.n >= TEXT_SHARED_MAX)
		return arena_str(b->arena, s);
	if (b->text_left <= s.n) {
		copy = arena_alloc(b->arena, TEXT_BLOCK_BYTES);
		b->text_left = TEXT_BLOCK_BYTES;
	}
	if (s.n)
		memcpy(copy, s.p, s.n);
	copy[s.n] = 0;
	b->text = copy + s.n + 1;
	b->text_left -= s.n + 1;
	return (struct str){ copy, s.n };
}

/* Valid UTF-8; the ASCII part is checked eight bytes at a time. */
static bool is_plain(struct str s)
{
	uint64_t x;

	for (; s.n >= 8; s.p += 8, s.n -= 8) {
		memcpy(&x, s.p, 8);
		if (x & 0x8080808080808080u)
			break;
	}
	return utf8_is_valid(s);
}

static struct str keep_text(struct tree_build *b, struct str raw, bool is_escaped)
{
	if (is_escaped || !is_plain(raw)) {
		buf_reset(&b->scratch);
		json_unescape(&b->scratch, raw);
		raw = buf_str(&b->scratch);
	}
	return keep_bytes(b, raw);
}

static struct tree_item *push(struct tree_build *b)
{
	if (b->count == b->cap) {
		b->cap = b->cap ? b->cap * 2 : 64;
		b->item = mem_grow(b->item, b->cap, sizeof(*b->item));
	}
	return &b->item[b->count++];
}

static bool is_finite_text(struct str number)
{
	return number.p[number.n - 1] >= '0' && number.p[number.n - 1] <= '9';
}

static void set_number(struct tree_build *b, struct json_value *v, struct json_slice plain)
{
	v->raw = keep_bytes(b, plain.raw);
	v->kind = plain.kind;
	if (plain.kind == JSON_INT && str_to_i64(plain.raw, &v->integer))
		return;
	v->kind = JSON_REAL;
	v->real = lex_f64(plain.raw);
}

/* Reads a value that is not a container into a new item. */
static const char *add_plain(struct tree_build *b, const char *p, struct str key)
{
	const char *from = p;
	struct json_slice plain;
	struct tree_item *item;
	bool is_escaped = false;

	p = lex_plain(&b->lex, p, &plain, &is_escaped);
	if (!p)
		return NULL;
	if (b->is_strict && plain.kind == JSON_REAL && !is_finite_text(plain.raw))
		return lex_fail(&b->lex, from, LEX_NO_VALUE);
	item = push(b);
	*item = (struct tree_item){ key, { .kind = plain.kind } };
	if (plain.kind == JSON_STRING)
		item->value.text = keep_text(b, plain.raw, is_escaped);
	else if (plain.kind == JSON_INT || plain.kind == JSON_REAL)
		set_number(b, &item->value, plain);
	return p;
}

/* The earlier member with item i's key, or i itself. */
static size_t first_of_few(const struct tree_item *item, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (item[k].key.p && str_eq(item[k].key, item[i].key))
			return k;
	return i;
}

static size_t first_of_many(struct tree_build *b, const struct tree_item *item, size_t i)
{
	size_t at = map_hash(item[i].key) >> 32 & (b->slot_cap - 1);

	while (b->slot[at]) {
		size_t k = b->slot[at] - 1;

		if (str_eq(item[k].key, item[i].key))
			return k;
		at = (at + 1) & (b->slot_cap - 1);
	}
	b->slot[at] = (uint32_t)i + 1;
	return i;
}

/* Keeps one member per key: the last value, at the first place. Returns how many are left. */
static size_t drop_duplicates(struct tree_build *b, struct tree_item *item, size_t count)
{
	size_t kept = 0;

	if (count > FEW_MEMBERS) {
		assert(count < UINT32_MAX);
		free(b->slot);
		for (b->slot_cap = 64; b->slot_cap < count * 2;)
			b->slot_cap *= 2;
		b->slot = mem_array(b->slot_cap, sizeof(*b->slot));
	}
	for (size_t i = 0; i < count; i++) {
		size_t first = count > FEW_MEMBERS ? first_of_many(b, item, i) :
			first_of_few(item, i);

		if (first != i) {
			b->twice = item[i].key;
			item[first].value = item[i].value;
			item[i].key.p = NULL;
		}
	}
	for (size_t i = 0; i < count; i++)
		if (item[i].key.p)
			item[kept++] = item[i];
	return kept;
}

static void close_container(struct tree_build *b)
{
	size_t at = b->open[--b->level];
	struct json_value *v = &b->item[at].value;
	struct tree_item *item = &b->item[at + 1];
	size_t count = b->count - at - 1;

	b->count = at + 1;
	if (v->kind == JSON_OBJECT)
		count = drop_duplicates(b, item, count);
	v->count = count;
	if (count == 0)
		return;
	v->item = arena_alloc(b->arena, count * sizeof(*v->item));
	for (size_t i = 0; i < count; i++)
		v->item[i] = item[i].value;
	if (v->kind != JSON_OBJECT)
		return;
	v->key = arena_alloc(b->arena, count * sizeof(*v->key));
	for (size_t i = 0; i < count; i++)
		v->key[i] = item[i].key;
}

static const char *open_container(struct tree_build *b, const char *p, struct str key)
{
	if (b->level == JSON_DEPTH_MAX)
		return lex_fail(&b->lex, p, LEX_TOO_DEEP);
	b->open[b->level++] = b->count;
	*push(b) = (struct tree_item){ key, { .kind = *p == '{' ? JSON_OBJECT : JSON_ARRAY } };
	return p + 1;
}

/* One value with everything in it; it becomes the stack's only item. */
static const char *build_value(struct tree_build *b, const char *p)
{
	struct lex *l = &b->lex;
	struct str key = { 0 }, raw;
	bool is_escaped = false;
	bool is_object, is_first;

	for (;;) { /* p is at a value */
		is_first = *p == '{' || *p == '[';
		p = is_first ? open_container(b, p, key) : add_plain(b, p, key);
		if (!p || b->level == 0)
			return p;
		for (;;) {
			p = lex_blank(l, p);
			is_object = b->item[b->open[b->level - 1]].value.kind == JSON_OBJECT;
			if (p == l->end || *p != LEX_CLOSE(is_object))
				break;
			p++;
			is_first = false;
			close_container(b);
			if (b->is_strict && b->twice.p)
				return lex_fail(l, p - 1, "an object has one key twice");
			if (b->level == 0)
				return p;
		}
		p = lex_next_item(l, p, is_object, is_first, &raw, &is_escaped);
		if (!p)
			return NULL;
		key = is_object ? keep_text(b, raw, is_escaped) : (struct str){ 0 };
	}
}

static int parse(struct arena *a, struct str text, bool is_strict, struct json_value **out,
		 struct err *e)
{
	struct tree_build b = { .arena = a, .is_strict = is_strict };
	const char *p;
	int rc = -1;

	if (!text.p)
		text = STR("");
	b.lex.end = text.p + text.n;
	p = lex_blank(&b.lex, text.p);
	if (p == b.lex.end)
		lex_fail(&b.lex, p, "expected a value, found the end of the text");
	else if ((p = build_value(&b, p)) != NULL) {
		p = lex_blank(&b.lex, p);
		if (p < b.lex.end)
			lex_fail(&b.lex, p, "expected nothing after the value");
		else
			rc = 0;
	}
	if (rc < 0) {
		lex_err(&b.lex, text, e);
		if (e && b.is_strict && strcmp(b.lex.fail_why, LEX_TOO_DEEP) == 0)
			e->code = ERR_LIMIT;
		if (e && b.is_strict && b.twice.p)
			err_add(e, ": '%.*s'", (int)(b.twice.n < 40 ? b.twice.n : 40), b.twice.p);
	} else {
		assert(b.count == 1);
		*out = arena_alloc(a, sizeof(**out));
		**out = b.item[0].value;
	}
	free(b.item);
	free(b.slot);
	buf_release(&b.scratch);
	return rc;
}

int json_parse(struct arena *a, struct str text, struct json_value **out, struct err *e)
{
	return parse(a, text, false, out, e);
}

int json_parse_strict(struct arena *a, struct str text, struct json_value **out, struct err *e)
{
	return parse(a, text, true, out, e);
}

struct json_value *json_get(const struct json_value *v, const char *key)
{
	struct str want = str_of(key);

	if (!v || v->kind != JSON_OBJECT)
		return NULL;
	for (size_t i = 0; i < v->count; i++)
		if (str_eq(v->key[i], want))
			return &v->item[i];
	return NULL;
}

struct str json_text(const struct json_value *v, struct str otherwise)
{
	return v && v->kind == JSON_STRING ? v->text : otherwise;
}

int64_t json_int(const struct json_value *v, int64_t otherwise)
{
	return v && v->kind == JSON_INT ? v->integer : otherwise;
}

double json_real(const struct json_value *v, double otherwise)
{
	if (v && v->kind == JSON_INT)
		return (double)v->integer;
	return v && v->kind == JSON_REAL ? v->real : otherwise;
}

double json_setting(const struct json_value *v, double otherwise)
{
	if (v && v->kind == JSON_STRING && str_is(v->text, "inf"))
		return INFINITY;
	if (v && v->kind == JSON_STRING && str_is(v->text, "-inf"))
		return -INFINITY;
	return json_real(v, otherwise);
}

bool json_bool(const struct json_value *v, bool otherwise)
{
	return v && (v->kind == JSON_TRUE || v->kind == JSON_FALSE) ? v->kind == JSON_TRUE :
		otherwise;
}
