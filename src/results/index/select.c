/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - conditions become bits; see select.h. */
#include "results/index/select.h"

#include <float.h>
#include <math.h>

#include "results/index/lanes.h"

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
struct test {
	const struct filter *f;
	struct value *value; /* in: ascending, without missing ones */
	size_t n;
	bool takes_missing;
	uint64_t min, max;   /* range: keys; min above max: nothing */
};

static int compare_values(const void *a, const void *b)
{
	return value_compare(*(const struct value *)a, *(const struct value *)b);
}

static struct test make_test(const struct filter *f, struct arena *a)
{
	struct test t = { .f = f };

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
		if (f->value[i].kind != VALUE_NULL && f->value[i].kind != VALUE_ABSENT)
			t.value[t.n++] = f->value[i];
	qsort(t.value, t.n, sizeof(*t.value), compare_values);
	return t;
}

static bool takes(const struct test *t, struct value v)
{
	if (v.kind == VALUE_ABSENT || v.kind == VALUE_NULL)
		return t->takes_missing;
	if (t->f->kind == FILTER_IN)
		return t->n && bsearch(&v, t->value, t->n, sizeof(v), compare_values);
	return filter_takes(t->f, v);
}

#define FEW_CODES 6 /* so many are compared one by one, all others are looked up */

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

/* Upper halves that are inside for certain; those at an end are looked at whole. */
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

static void range_select(const struct block *b, size_t n, const struct test *t, uint64_t *out)
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
			const struct test *t, uint64_t *out)
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

static void column_select(const struct index_view *v, const struct head *h, const struct test *t,
			  struct arena *a, uint64_t *out)
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
static void anywhere_select(const struct index_view *v, const struct test *t, struct arena *a,
			    uint64_t *out)
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
	struct test t = make_test(f, a);
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

			/* Keys of what is no number are those of NaNs. */
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
