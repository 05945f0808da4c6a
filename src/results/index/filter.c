/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - see filter.h. */
#include "results/index/filter.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "results/index/index_internal.h"
#include "results/index/row.h"

/* The places of the tree on the way to the one that is read, for pointers in errors. */
struct filter_place {
	const struct filter_place *up;
	struct str key;
	size_t item; /* used when key is empty */
	const char *base;
};

struct filter_reader {
	struct arena *arena;
	struct err *err;
	size_t n_conditions, n_values;
};

static char *pointer_of(const struct filter_place *at, struct arena *a)
{
	if (!at->up)
		return arena_printf(a, "%s", at->base);
	if (at->key.p)
		return arena_printf(a, "%s/%.*s", pointer_of(at->up, a), (int)at->key.n, at->key.p);
	return arena_printf(a, "%s/%zu", pointer_of(at->up, a), at->item);
}

static int refuse(struct filter_reader *r, const struct filter_place *at, const char *wanted)
{
	char *pointer = pointer_of(at, r->arena);

	return err_set(r->err, ERR_USAGE, "%s: %s", *pointer ? pointer : "filter", wanted);
}

static int read_tree(struct filter_reader *r, const struct json_value *v,
		     const struct filter_place *at, unsigned depth, struct filter **out);

static int read_parts(struct filter_reader *r, const struct json_value *list,
		      const struct filter_place *at, unsigned depth, struct filter *f)
{
	if (list->kind != JSON_ARRAY)
		return refuse(r, at, "expected a list of conditions");
	f->part = arena_alloc(r->arena, list->count * sizeof(*f->part));
	f->n_parts = list->count;
	for (size_t i = 0; i < list->count; i++)
		if (read_tree(r, &list->item[i], &(struct filter_place){ .up = at, .item = i },
			      depth, &f->part[i]) < 0)
			return -1;
	return 0;
}

/* "inf", "-inf" and what JSON has for numbers. */
static bool read_number(const struct json_value *v, double *out)
{
	if (v->kind == JSON_INT)
		*out = (double)v->integer;
	else if (v->kind == JSON_REAL)
		*out = v->real;
	else if (v->kind == JSON_STRING && str_is(v->text, "inf"))
		*out = INFINITY;
	else if (v->kind == JSON_STRING && str_is(v->text, "-inf"))
		*out = -INFINITY;
	else
		return false;
	return !isnan(*out);
}

static bool read_value(const struct json_value *v, struct value *out)
{
	double number;

	*out = (struct value){ 0 };
	switch (v->kind) {
	case JSON_NULL:
		out->kind = VALUE_NULL;
		return true;
	case JSON_FALSE:
	case JSON_TRUE:
		out->kind = VALUE_BOOL;
		out->is_true = v->kind == JSON_TRUE;
		return true;
	case JSON_INT:
	case JSON_REAL:
	case JSON_STRING:
		if (read_number(v, &number)) {
			out->kind = VALUE_NUMBER;
			out->number = number;
			return true;
		}
		out->kind = VALUE_TEXT;
		out->text = v->text;
		return v->kind == JSON_STRING;
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	return false;
}

static int read_in(struct filter_reader *r, const struct json_value *list,
		   const struct filter_place *at, struct filter *f)
{
	if (list->kind != JSON_ARRAY)
		return refuse(r, at, "expected a list of values");
	r->n_values += list->count;
	if (r->n_values > FILTER_VALUES_MAX)
		return refuse(r, at, "the lists hold too many values together (FILTER_VALUES_MAX)");
	f->kind = FILTER_IN;
	f->value = arena_alloc(r->arena, list->count * sizeof(*f->value));
	f->n_values = list->count;
	for (size_t i = 0; i < list->count; i++)
		if (!read_value(&list->item[i], &f->value[i]))
			return refuse(r, &(struct filter_place){ .up = at, .item = i },
				      "expected null, true, false, a number or a text");
	return 0;
}

static int read_end(struct filter_reader *r, const struct json_value *range, const char *name,
		    const struct filter_place *at, struct str column, double *out)
{
	const struct json_value *v = json_get(range, name);
	bool is_moment = when_is_column(column);

	if (!v || v->kind == JSON_NULL || read_number(v, out) ||
	    (is_moment && v->kind == JSON_STRING && when_read(v->text, out)))
		return 0;
	return refuse(r, &(struct filter_place){ .up = at, .key = str_of(name) },
		      is_moment ? "expected a time such as 2026-11-22T08:00:00Z, or seconds since 1970" :
				  "expected a number or \"inf\"");
}

static int read_range(struct filter_reader *r, const struct json_value *range,
		      const struct filter_place *at, struct filter *f)
{
	f->kind = FILTER_RANGE;
	f->min = -INFINITY;
	f->max = INFINITY;
	if (range->kind != JSON_OBJECT)
		return refuse(r, at, "expected an object with \"min\", \"max\" or both");
	for (size_t i = 0; i < range->count; i++)
		if (!str_is(range->key[i], "min") && !str_is(range->key[i], "max"))
			return refuse(r, &(struct filter_place){ .up = at, .key = range->key[i] },
				      "expected \"min\" or \"max\"");
	if (read_end(r, range, "min", at, f->column, &f->min) < 0 ||
	    read_end(r, range, "max", at, f->column, &f->max) < 0)
		return -1;
	if (f->min > f->max)
		return refuse(r, at, arena_printf(r->arena, "expected min to be at most max, got %.15g and %.15g",
						  f->min, f->max));
	return 0;
}

static int read_condition(struct filter_reader *r, struct str key, const struct json_value *v,
			  const struct filter_place *at, struct filter *f)
{
	if (str_is(key, "in"))
		return read_in(r, v, at, f);
	if (str_is(key, "range"))
		return read_range(r, v, at, f);
	if (str_is(key, "text")) {
		if (v->kind != JSON_STRING)
			return refuse(r, at, "expected a text");
		f->kind = FILTER_TEXT;
		f->text = v->text;
		return 0;
	}
	if (str_is(key, "missing")) {
		if (v->kind != JSON_TRUE && v->kind != JSON_FALSE)
			return refuse(r, at, "expected true or false");
		f->kind = FILTER_MISSING;
		f->is_missing = v->kind == JSON_TRUE;
		return 0;
	}
	return refuse(r, at, "expected \"in\", \"range\", \"text\" or \"missing\" next to \"column\"");
}

static int read_leaf(struct filter_reader *r, const struct json_value *v,
		     const struct json_value *column, const struct filter_place *at,
		     struct filter *f)
{
	if (column->kind != JSON_STRING || !column->text.n)
		return refuse(r, &(struct filter_place){ .up = at, .key = STR("column") },
			      "expected the name of a column");
	if (v->count != 2)
		return refuse(r, at, "expected \"column\" and one of \"in\", \"range\", \"text\", "
			      "\"missing\"");
	f->column = column->text;
	for (size_t i = 0; i < 2; i++)
		if (!str_is(v->key[i], "column"))
			return read_condition(r, v->key[i], &v->item[i],
					      &(struct filter_place){ .up = at, .key = v->key[i] },
					      f);
	return refuse(r, at, "expected one \"column\" and one condition");
}

static int read_tree(struct filter_reader *r, const struct json_value *v,
		     const struct filter_place *at, unsigned depth, struct filter **out)
{
	static const char *const word[] = { "and", "or", "not" };
	static const enum filter_kind kind[] = { FILTER_AND, FILTER_OR, FILTER_NOT };
	struct filter *f = *out = arena_alloc(r->arena, sizeof(*f));
	const struct json_value *column;

	if (depth > FILTER_DEPTH_MAX)
		return refuse(r, at, "conditions are nested too deep (FILTER_DEPTH_MAX)");
	if (++r->n_conditions > FILTER_CONDITIONS_MAX)
		return refuse(r, at, "too many conditions (FILTER_CONDITIONS_MAX)");
	if (v->kind != JSON_OBJECT)
		return refuse(r, at, "expected an object");
	column = json_get(v, "column");
	if (column)
		return read_leaf(r, v, column, at, f);
	for (size_t i = 0; i < 3; i++) {
		const struct json_value *inner = json_get(v, word[i]);
		struct filter_place here = { .up = at, .key = str_of(word[i]) };

		if (!inner)
			continue;
		if (v->count != 1)
			return refuse(r, at, "expected no other member next to it");
		f->kind = kind[i];
		if (f->kind != FILTER_NOT)
			return read_parts(r, inner, &here, depth + 1, f);
		f->part = arena_alloc(r->arena, sizeof(*f->part));
		f->n_parts = 1;
		return read_tree(r, inner, &here, depth + 1, f->part);
	}
	return refuse(r, at, "expected \"and\", \"or\", \"not\" or \"column\"");
}

int filter_read(const struct json_value *json, const char *pointer, struct arena *a,
		struct filter **out, struct err *e)
{
	struct filter_reader r = { .arena = a, .err = e };
	struct filter_place top = { .base = pointer ? pointer : "" };

	if (json && json->kind != JSON_NULL)
		return read_tree(&r, json, &top, 1, out);
	*out = arena_alloc(a, sizeof(**out));
	(*out)->kind = FILTER_AND;
	return 0;
}

/* An empty "or", which is false and about no column, keeps a filter from being about one column. */
struct filter *filter_closed(const struct filter *f, struct arena *a)
{
	struct filter *none = arena_alloc(a, sizeof(*none));
	struct filter *closed = arena_alloc(a, sizeof(*closed));

	*none = (struct filter){ .kind = FILTER_OR };
	*closed = (struct filter){ .kind = FILTER_OR, .n_parts = 2 };
	closed->part = arena_alloc(a, 2 * sizeof(*closed->part));
	closed->part[0] = (struct filter *)f;
	closed->part[1] = none;
	return closed;
}

/* ---- judging one row ---- */

static bool is_in(const struct filter *f, struct value v)
{
	for (size_t i = 0; i < f->n_values; i++)
		if (value_is_missing(f->value[i]) ? value_is_missing(v)
						  : value_same(f->value[i], v))
			return true;
	return false;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether the text occurs in the value, ignoring the case of A-Z; only texts match. */
static bool holds_text(struct str part, struct value v)
{
	if (v.kind != VALUE_TEXT)
		return false;
	for (size_t i = 0; part.n <= v.text.n && i <= v.text.n - part.n; i++) {
		size_t k = 0;

		while (k < part.n && lower(v.text.p[i + k]) == lower(part.p[k]))
			k++;
		if (k == part.n)
			return true;
	}
	return false;
}

static bool has_text(const struct filter *f, const struct row *r)
{
	if (!str_is(f->column, "*"))
		return holds_text(f->text, row_value(r, f->column));
	for (size_t i = 0; i < r->n; i++)
		if (holds_text(f->text, r->cell[i].value))
			return true;
	return false;
}

/* Judges one value by an in, range, text or missing condition; for the columns of the index. */
static bool filter_takes(const struct filter *f, struct value v)
{
	switch (f->kind) {
	case FILTER_IN:
		return is_in(f, v);
	case FILTER_RANGE:
		return v.kind == VALUE_NUMBER && v.number >= f->min && v.number <= f->max;
	case FILTER_TEXT:
		return holds_text(f->text, v);
	case FILTER_MISSING:
		return value_is_missing(v) == f->is_missing;
	case FILTER_AND:
	case FILTER_OR:
	case FILTER_NOT:
		break;
	}
	return false;
}

bool filter_holds(const struct filter *f, const struct row *r)
{
	switch (f->kind) {
	case FILTER_AND:
		for (size_t i = 0; i < f->n_parts; i++)
			if (!filter_holds(f->part[i], r))
				return false;
		return true;
	case FILTER_OR:
		for (size_t i = 0; i < f->n_parts; i++)
			if (filter_holds(f->part[i], r))
				return true;
		return false;
	case FILTER_NOT:
		return !filter_holds(f->part[0], r);
	case FILTER_TEXT:
		return has_text(f, r);
	case FILTER_IN:
	case FILTER_RANGE:
	case FILTER_MISSING:
		return filter_takes(f, row_value(r, f->column));
	}
	return false;
}

/*
 * Comparisons of many rows at once, as bits; the compiler's vectors, which every
 * machine has, in its own instructions or in several of them.
 */

typedef uint8_t lanes_8 __attribute__((vector_size(16)));
typedef uint32_t lanes_32 __attribute__((vector_size(16)));

/* 0 or all ones in each byte: the upper bit of each as one of sixteen. */
static inline uint64_t lanes_bits(lanes_8 is)
{
	const lanes_8 bit = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	uint64_t half[2];

	is &= bit;
	memcpy(half, &is, sizeof(half));
	/* No two bits are the same, so the sum of eight bytes has no carry. */
	return half[0] * 0x0101010101010101u >> 56 | half[1] * 0x0101010101010101u >> 56 << 8;
}

/* Which of 64 codes are one of n wanted ones. */
static inline uint64_t lanes_any(const uint8_t *code, const uint8_t *wanted, unsigned n)
{
	uint64_t word = 0;

	for (unsigned at = 0; at < 64; at += 16) {
		lanes_8 x, is = { 0 };

		memcpy(&x, code + at, sizeof(x));
		for (unsigned k = 0; k < n; k++)
			is |= (lanes_8)(x == wanted[k]);
		word |= lanes_bits(is) << at;
	}
	return word;
}

/* 64 codes from 32 bytes: the low halves, then the high ones. */
static inline void lanes_unfold(const uint8_t *half, uint8_t code[64])
{
	for (unsigned at = 0; at < 32; at += 16) {
		lanes_8 x, low;

		memcpy(&x, half + at, sizeof(x));
		low = x & 15;
		x >>= 4;
		memcpy(code + at, &low, sizeof(low));
		memcpy(code + 32 + at, &x, sizeof(x));
	}
}

static inline uint64_t lanes_fold(lanes_32 x)
{
	uint64_t half[2];

	memcpy(half, &x, sizeof(half));
	half[0] |= half[1];
	return (half[0] | half[0] >> 32) & 0xffff;
}

/* Which of 64 numbers are from low to low + width, and which are one of both ends. */
static inline uint64_t lanes_between(const uint32_t *number, uint32_t low, uint32_t width,
				     uint64_t *ends)
{
	const lanes_32 bit = { 1, 2, 4, 8 };
	uint64_t word = 0, edge = 0;

	for (unsigned at = 0; at < 64; at += 16) {
		lanes_32 in = { 0 }, on = { 0 };

		for (unsigned k = 0; k < 4; k++) {
			lanes_32 x;

			memcpy(&x, number + at + 4 * k, sizeof(x));
			x -= low;
			in |= (lanes_32)(x <= width) & bit << 4 * k;
			on |= (lanes_32)((x == 0) | (x == width)) & bit << 4 * k;
		}
		word |= lanes_fold(in) << at;
		edge |= lanes_fold(on) << at;
	}
	*ends = edge;
	return word;
}

/* ---- bits ---- */

uint64_t *select_none(const struct index_view *v, struct arena *a)
{
	return arena_alloc(a, (select_words(v) + 1) * sizeof(uint64_t));
}

void select_all(const struct index_view *v, uint64_t *out)
{
	size_t words = select_words(v), rest = v->n_rows % 64;

	memset(out, 0xff, words * sizeof(*out));
	if (rest)
		out[words - 1] = (1ull << rest) - 1;
}

void select_and(const struct index_view *v, const uint64_t *with, uint64_t *out)
{
	size_t words = select_words(v);

	for (size_t i = 0; i < words; i++)
		out[i] &= with[i];
}

static void select_or(const struct index_view *v, const uint64_t *with, uint64_t *out)
{
	size_t words = select_words(v);

	for (size_t i = 0; i < words; i++)
		out[i] |= with[i];
}

static void select_not(const struct index_view *v, uint64_t *out)
{
	size_t words = select_words(v), rest = v->n_rows % 64;

	for (size_t i = 0; i < words; i++)
		out[i] = ~out[i];
	if (rest)
		out[words - 1] &= (1ull << rest) - 1;
}

/* Bits of one block, all alike. */
static void fill(uint64_t *out, size_t n, bool is_in)
{
	memset(out, is_in ? 0xff : 0, n / 64 * sizeof(*out));
	if (n % 64)
		out[n / 64] = is_in ? (1ull << n % 64) - 1 : 0;
}

void select_shown(const struct index_view *v, unsigned shown, bool is_only, uint64_t *out)
{
	shown &= ~(unsigned)INDEX_REMOVED;
	for (size_t block = 0; block < view_blocks(v); block++) {
		size_t n = view_block_rows(v, block);
		uint64_t *to = out + (block << v->index->block_shift) / 64;
		const uint8_t *flags = block < v->n_flags ? v->flags[block] : NULL;

		fill(to, n, !flags && !is_only);
		for (size_t i = 0; flags && i < n; i++) {
			bool is_in = !(flags[i] & ~shown) && (!is_only || flags[i] & shown);

			to[i / 64] |= (uint64_t)is_in << i % 64;
		}
	}
}

/* ---- one condition ---- */

/* A condition made ready: lists sorted, ends as keys. */
struct filter_test {
	const struct filter *f;
	struct value *value; /* in: ascending, without missing ones */
	size_t n;
	bool takes_missing;
	uint64_t min, max;   /* range: keys; min above max: nothing */
};

static struct filter_test make_test(const struct filter *f, struct arena *a)
{
	struct filter_test t = { .f = f };

	t.takes_missing = filter_takes(f, (struct value){ 0 });
	if (f->kind == FILTER_RANGE) {
		/* The index has no -0. */
		t.min = key_of_number(f->min == 0 ? 0 : f->min);
		t.max = key_of_number(f->max == 0 ? 0 : f->max);
	}
	if (f->kind != FILTER_IN)
		return t;
	t.value = arena_alloc(a, f->n_values * sizeof(*t.value));
	for (size_t i = 0; i < f->n_values; i++)
		if (!value_is_missing(f->value[i]))
			t.value[t.n++] = f->value[i];
	qsort(t.value, t.n, sizeof(*t.value), value_order);
	return t;
}

static bool takes(const struct filter_test *t, struct value v)
{
	if (value_is_missing(v))
		return t->takes_missing;
	if (t->f->kind == FILTER_IN)
		return t->n && bsearch(&v, t->value, t->n, sizeof(v), value_order);
	return filter_takes(t->f, v);
}

#define FEW_CODES 6 /* up to this many are compared one by one, more are looked up */

/* The codes that match, when they are few and fit a byte. */
struct few { uint8_t code[FEW_CODES]; unsigned n; bool is_few; };

static struct few find_few(const uint8_t *match, uint32_t n_codes)
{
	struct few few = { .is_few = true };

	for (uint32_t code = 0; code < n_codes && few.is_few; code++) {
		if (!match[code])
			continue;
		few.is_few = few.n < FEW_CODES;
		if (few.is_few && code <= UINT8_MAX)
			few.code[few.n++] = (uint8_t)code;
	}
	return few;
}

static void codes_select(const struct block *b, size_t n, const uint8_t *match,
			 const struct few *few, uint64_t *out)
{
	const uint16_t *wide = b->data;
	uint8_t unfolded[64];

	if (b->form == BLOCK_CODE) {
		fill(out, n, match[b->code]);
		return;
	}
	for (size_t at = 0; at < n; at += 64) {
		const uint8_t *code = (const uint8_t *)b->data + at;
		size_t here = n - at < 64 ? n - at : 64;
		uint64_t word = 0;

		if (b->form == BLOCK_CODE_4) {
			lanes_unfold((const uint8_t *)b->data + at / 2, unfolded);
			code = unfolded;
		}
		if (b->form == BLOCK_CODE_16) {
			for (size_t i = 0; i < here; i++)
				word |= (uint64_t)match[wide[at + i]] << i;
		} else if (here == 64 && few->is_few) {
			word = lanes_any(code, few->code, few->n);
		} else {
			for (size_t i = 0; i < here; i++)
				word |= (uint64_t)match[code[i]] << i;
		}
		out[at / 64] = word;
	}
}

/* The ends of a range in the numbers of a packed block; false: nothing of it can be inside. */
static bool packed_ends(const struct block *b, uint64_t min, uint64_t max, uint64_t *from,
			uint64_t *to)
{
	uint64_t most = b->packed_max - KEY_SPECIALS, low = 0, high;

	if (max < b->base || min > max)
		return false;
	if (min > b->base) {
		low = (min - b->base) >> b->zeros;
		low += low << b->zeros < min - b->base;
	}
	high = (max - b->base) >> b->zeros;
	if (low > most)
		return false;
	*from = low + KEY_SPECIALS;
	*to = (high < most ? high : most) + KEY_SPECIALS;
	return *from <= *to;
}

/* Upper halves that are certainly inside; those at an end are compared completely. */
static uint64_t packed_word(const struct block *b, size_t at, size_t n, uint64_t from, uint64_t to)
{
	const uint32_t *high = (const uint32_t *)b->data + at;
	uint32_t low = (uint32_t)(from >> 8 * b->low_bytes);
	uint32_t width = (uint32_t)(to >> 8 * b->low_bytes) - low;
	uint64_t word = 0, ends = 0;

	if (n == 64) {
		word = lanes_between(high, low, width, &ends);
	} else {
		for (size_t i = 0; i < n; i++) {
			word |= (uint64_t)(high[i] - low <= width) << i;
			ends |= (uint64_t)(high[i] == low || high[i] - low == width) << i;
		}
	}
	for (ends = b->low_bytes ? ends : 0; ends; ends &= ends - 1) {
		unsigned i = (unsigned)__builtin_ctzll(ends);

		if (packed_at(b, at + i) - from > to - from)
			word &= ~(1ull << i);
	}
	return word;
}

static void range_select(const struct block *b, size_t n, const struct filter_test *t,
			 uint64_t *out)
{
	uint64_t from = t->min, to = t->max;

	if (from > to || (b->form == BLOCK_PACKED && !packed_ends(b, t->min, t->max, &from, &to))) {
		fill(out, n, false);
		return;
	}
	if (b->form == BLOCK_PACKED && !b->has_special && from == KEY_SPECIALS &&
	    to == b->packed_max) {
		fill(out, n, true);
		return;
	}
	for (size_t at = 0; at < n; at += 64) {
		const uint64_t *key = (const uint64_t *)b->data + at;
		size_t here = n - at < 64 ? n - at : 64;
		uint64_t word = 0;

		if (b->form == BLOCK_PACKED)
			word = packed_word(b, at, here, from, to);
		else
			for (size_t i = 0; i < here; i++)
				word |= (uint64_t)(key[i] - from <= to - from) << i;
		out[at / 64] = word;
	}
}

static void keys_select(const struct head *h, const struct block *b, size_t n,
			const struct filter_test *t, uint64_t *out)
{
	if (t->f->kind == FILTER_RANGE) {
		range_select(b, n, t, out);
		return;
	}
	if (t->f->kind == FILTER_TEXT && b->form == BLOCK_PACKED && !b->has_text) {
		fill(out, n, false);
		return;
	}
	for (size_t at = 0; at < n; at += 64) {
		size_t here = n - at < 64 ? n - at : 64;
		uint64_t word = 0;

		for (size_t i = 0; i < here; i++)
			word |= (uint64_t)takes(t, value_of_key(h, block_key(b, at + i))) << i;
		out[at / 64] = word;
	}
}

static void column_select(const struct index_view *v, const struct head *h,
			  const struct filter_test *t, struct arena *a, uint64_t *out)
{
	uint8_t *match = arena_alloc(a, h->n_codes);
	struct few few;

	match[0] = t->takes_missing;
	for (uint32_t code = 1; code < h->n_codes; code++)
		match[code] = takes(t, dictionary_value(h->dict, code));
	few = find_few(match, h->n_codes);
	for (size_t block = 0; block < view_blocks(v); block++) {
		const struct block *b = view_block(v, h, block);
		uint64_t *to = out + (block << v->index->block_shift) / 64;

		if (block_is_keys(b))
			keys_select(h, b, view_block_rows(v, block), t, to);
		else
			codes_select(b, view_block_rows(v, block), match, &few, to);
	}
}

/* The text in any column that holds texts. */
static void anywhere_select(const struct index_view *v, const struct filter_test *t,
			    struct arena *a, uint64_t *out)
{
	uint64_t *one = select_none(v, a);

	memset(out, 0, select_words(v) * sizeof(*out));
	for (size_t i = 0; i < v->n_columns; i++) {
		const struct head *h = &v->head[i];
		bool is_there = h->is_keys && v->info[i].has_text;

		if (!v->info[i].has_text)
			continue;
		for (uint32_t code = 1; code < h->n_codes && !is_there; code++)
			is_there = takes(t, dictionary_value(h->dict, code));
		if (!is_there)
			continue;
		column_select(v, h, t, a, one);
		select_or(v, one, out);
	}
}

static void condition_select(const struct index_view *v, const struct filter *f, struct arena *a,
			     uint64_t *out)
{
	struct filter_test t = make_test(f, a);
	size_t column;

	if (f->kind == FILTER_TEXT && str_is(f->column, "*")) {
		anywhere_select(v, &t, a, out);
		return;
	}
	column = view_column(v, f->column);
	if (column != SIZE_MAX)
		column_select(v, &v->head[column], &t, a, out);
	else if (t.takes_missing)
		select_all(v, out);
	else
		memset(out, 0, select_words(v) * sizeof(*out));
}

/* ---- trees ---- */

void select_filter(const struct index_view *v, const struct filter *f, struct arena *a,
		   uint64_t *out)
{
	uint64_t *one;

	switch (f->kind) {
	case FILTER_AND:
	case FILTER_OR:
		select_all(v, out);
		if (f->kind == FILTER_OR)
			memset(out, 0, select_words(v) * sizeof(*out));
		one = f->n_parts ? select_none(v, a) : NULL;
		for (size_t i = 0; i < f->n_parts; i++) {
			select_filter(v, f->part[i], a, one);
			if (f->kind == FILTER_AND)
				select_and(v, one, out);
			else
				select_or(v, one, out);
		}
		return;
	case FILTER_NOT:
		select_filter(v, f->part[0], a, out);
		select_not(v, out);
		return;
	case FILTER_IN:
	case FILTER_RANGE:
	case FILTER_TEXT:
	case FILTER_MISSING:
		condition_select(v, f, a, out);
		return;
	}
}

/* ---- walking ---- */

void choice_make(const struct index_view *v, const uint64_t *word, struct arena *a,
		 struct choice *out)
{
	size_t blocks = view_blocks(v), per_block = block_rows(v->index) / 64;
	uint16_t *place;

	*out = (struct choice){ .word = word };
	out->count = arena_alloc(a, (blocks + 1) * sizeof(*out->count));
	out->place = arena_alloc(a, (blocks + 1) * sizeof(*out->place));
	for (size_t block = 0; block < blocks; block++) {
		size_t n = view_block_rows(v, block), words = (n + 63) / 64;
		const uint64_t *from = word + block * per_block;
		uint32_t count = 0;

		for (size_t i = 0; i < words; i++)
			count += (uint32_t)__builtin_popcountll(from[i]);
		out->count[block] = count;
		out->total += count;
		if (count == 0 || count == n)
			continue;
		place = out->place[block] = arena_alloc(a, count * sizeof(*place));
		for (size_t i = 0; i < words; i++)
			for (uint64_t w = from[i]; w; w &= w - 1)
				*place++ = (uint16_t)(i * 64 + (unsigned)__builtin_ctzll(w));
	}
}

/* ---- numbers ---- */

#define PIECE 1024 /* rows whose keys are made at once */

/* Keys of packed rows from `from` on, or of those at place. */
static void unpack(const struct block *b, const uint16_t *place, size_t from, size_t n,
		   uint64_t *out)
{
	const uint32_t *high = b->data;
	unsigned bits = 8u * b->low_bytes;
	uint32_t low, mask = bits == 32 ? UINT32_MAX : (1u << bits) - 1;

	if (!bits) {
		for (size_t i = 0; i < n; i++)
			out[i] = high[place ? place[i] : from + i];
		return;
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = place ? place[i] : from + i;

		memcpy(&low, b->low + at * b->low_bytes, sizeof(low));
		out[i] = (uint64_t)high[at] << bits | (low & mask);
	}
}

static size_t packed_numbers(const struct block *b, const uint16_t *place, size_t n, double *out)
{
	uint64_t key[PIECE];
	size_t got = 0;

	for (size_t from = 0; from < n; from += PIECE) {
		size_t here = n - from < PIECE ? n - from : PIECE;

		unpack(b, place ? place + from : NULL, from, here, key);
		for (size_t i = 0; i < here; i++) {
			uint64_t whole = key_of_packed(b, key[i]);
			double x = number_of_key(whole);

			/* Keys of other values than numbers decode to NaNs. */
			out[got] = x;
			got += key[i] >= KEY_SPECIALS && fabs(x) <= DBL_MAX;
		}
	}
	return got;
}

static size_t block_numbers(const struct block *b, const uint16_t *place, size_t n,
			    const double *of_code, double *out)
{
	size_t got = 0;

	if (b->form == BLOCK_PACKED)
		return packed_numbers(b, place, n, out);
	for (size_t i = 0; i < n; i++) {
		size_t at = place ? place[i] : i;
		uint64_t key;
		double x;

		if (b->form == BLOCK_KEYS) {
			key = ((const uint64_t *)b->data)[at];
			x = key_is_number(key) ? number_of_key(key) : NAN;
		} else {
			x = of_code[block_code(b, at)];
		}
		out[got] = x;
		got += fabs(x) <= DBL_MAX;
	}
	return got;
}

size_t choice_numbers(const struct index_view *v, const struct choice *c, const struct head *h,
		      struct arena *a, double *out)
{
	double *of_code = arena_alloc(a, h->n_codes * sizeof(*of_code));
	size_t got = 0;

	of_code[0] = NAN;
	for (uint32_t code = 1; code < h->n_codes; code++) {
		struct value value = dictionary_value(h->dict, code);

		of_code[code] = value.kind == VALUE_NUMBER ? value.number : NAN;
	}
	for (size_t block = 0; block < view_blocks(v); block++)
		if (c->count[block])
			got += block_numbers(view_block(v, h, block), c->place[block],
					     c->count[block], of_code, out + got);
	return got;
}
