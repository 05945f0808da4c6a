/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lex.h - the grammar of JSON, shared by the reader, the tree and the key scanner.
 *
 * Private to src/json. Each call gets the place where a piece begins and
 * returns the place after it, or NULL after noting in struct lex where and
 * why. Nothing here allocates. Strings are read 16 bytes at a time where SSE2
 * is part of the architecture, else 8.
 *
 * Invariant: the three users accept exactly the same texts, because none of
 * them recognises a string, a number or a word by itself.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/json/read.h"

struct lex {
	const char *end;
	const char *fail_at;
	const char *fail_why; /* set together with fail_at */
};

#define LEX_TOO_DEEP "nested deeper than JSON_DEPTH_MAX"
#define LEX_CLOSE(is_object) ((is_object) ? '}' : ']')

const char *lex_fail(struct lex *l, const char *at, const char *why); /* NULL */
#define LEX_NO_VALUE "expected a value"
/* Appends the noted failure and what was found there; returns -1. */
int lex_add_why(const struct lex *l, struct err *e);
/* Turns the noted failure into "line L, column C: why" (both from 1; columns count bytes). */
int lex_err(const struct lex *l, struct str text, struct err *e);

/* p is at the backslash. */
const char *lex_escape(struct lex *l, const char *p);
/* A number or a word; p < l->end. */
const char *lex_scalar(struct lex *l, const char *p, enum json_kind *kind);
/* p is at { or [; depth containers are open around it. */
const char *lex_container(struct lex *l, const char *p, unsigned depth);

/* Whether a key spelled with escapes equals a plain ASCII name. */
bool lex_key_is_escaped(struct str key, const char *name, size_t n);
/* The value of any spelling lex_scalar took as a number. */
double lex_f64(struct str number);

/*
 * Steps over the plain bytes at p, a word at a time: returns the place of the
 * first quote, backslash or control character, or of a rest shorter than a word.
 */
#if defined(__SSE2__)
static inline const char *lex_words(const char *p, const char *end)
{
	const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
	const __m128i control = _mm_set1_epi8(0x1f);

	for (; end - p >= 16; p += 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i is_stop = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(x, control), x),
			_mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, slash)));
		unsigned stop = (unsigned)_mm_movemask_epi8(is_stop);

		if (stop)
			return p + __builtin_ctz(stop);
	}
	return p;
}
#else
/*
 * A subtraction on the whole word raises the high bit of the first byte that
 * stops (and perhaps of later ones, which does not matter). On big-endian
 * machines the first byte is not the lowest, and lex_string's byte loop does
 * the work.
 */
#define LEX_WORD (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 8 : PTRDIFF_MAX)
#define LEX_BYTES(c) (0x0101010101010101u * (unsigned char)(c))
static inline const char *lex_words(const char *p, const char *end)
{
	uint64_t x, stop;

	for (; end - p >= LEX_WORD; p += LEX_WORD) {
		memcpy(&x, p, 8);
		stop = ((x ^ LEX_BYTES('"')) - LEX_BYTES(1)) |
			((x ^ LEX_BYTES('\\')) - LEX_BYTES(1)) | (x - LEX_BYTES(0x20));
		stop &= ~x & LEX_BYTES(0x80);
		if (stop)
			return p + (__builtin_ctzll(stop) >> 3);
	}
	return p;
}
#endif

/* p is after the opening quote; returns the closing one. Sets *is_escaped at a backslash. */
static inline const char *lex_string(struct lex *l, const char *p, bool *is_escaped)
{
	*is_escaped = false;
	for (;;) {
		p = lex_words(p, l->end);
		while (p < l->end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
			p++;
		if (p == l->end)
			return lex_fail(l, p, "the text ends inside a string");
		if (*p == '"')
			return p;
		if (*p != '\\')
			return lex_fail(l, p, "a control character inside a string; "
					"expected it escaped");
		*is_escaped = true;
		p = lex_escape(l, p);
		if (!p)
			return NULL;
	}
}

/* Skips blanks, many at a time: files written for people are mostly indentation. */
static inline const char *lex_blanks(const char *p, const char *end)
{
#ifdef __SSE2__
	for (; end - p >= 16; p += 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i is_blank = _mm_or_si128(
			_mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8(' ')),
				_mm_cmpeq_epi8(x, _mm_set1_epi8('\n'))),
			_mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8('\t')),
				_mm_cmpeq_epi8(x, _mm_set1_epi8('\r'))));
		unsigned stop = (unsigned)_mm_movemask_epi8(is_blank) ^ 0xffff;

		if (stop)
			return p + __builtin_ctz(stop);
	}
#endif
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

static inline const char *lex_blank(const struct lex *l, const char *p)
{
	if (p < l->end && (unsigned char)*p > ' ')
		return p;
	if (l->end - p >= 2 && *p == ' ' && (unsigned char)p[1] > ' ')
		return p + 1;
	return lex_blanks(p, l->end);
}

/* A string, number or word; p < l->end and not at { or [. Returns the position after it. */
static inline const char *lex_plain(struct lex *l, const char *p, struct json_slice *out,
				    bool *is_escaped)
{
	const char *from = p;

	if (*p == '"') {
		p = lex_string(l, ++from, is_escaped);
		if (!p)
			return NULL;
		*out = (struct json_slice){ JSON_STRING, { from, (size_t)(p - from) } };
		return p + 1;
	}
	if (l->end - p >= 4 && memcmp(p, "null", 4) == 0) { /* most events hold several */
		*out = (struct json_slice){ JSON_NULL, { p, 4 } };
		return p + 4;
	}
	p = lex_scalar(l, p, &out->kind);
	if (p)
		out->raw = (struct str){ from, (size_t)(p - from) };
	return p;
}

/* Any value; p < l->end. raw as in struct json_slice. Returns the position after it. */
static inline const char *lex_value(struct lex *l, const char *p, unsigned depth,
				    struct json_slice *out)
{
	const char *from = p;
	bool is_escaped;

	if (*p != '{' && *p != '[')
		return lex_plain(l, p, out, &is_escaped);
	out->kind = *p == '{' ? JSON_OBJECT : JSON_ARRAY;
	p = lex_container(l, p, depth);
	if (p)
		out->raw = (struct str){ from, (size_t)(p - from) };
	return p;
}

/*
 * The front of a member: a key, blanks, the colon, blanks. The key should begin at p. Returns where
 * the value begins, which is before l->end.
 */
static inline const char *lex_key(struct lex *l, const char *p, struct str *key, bool *is_escaped)
{
	const char *from = p + 1;

	if (p == l->end || *p != '"')
		return lex_fail(l, p, "expected a key in double quotes");
	p = lex_string(l, from, is_escaped);
	if (!p)
		return NULL;
	key->p = from;
	key->n = (size_t)(p - from);
	if (l->end - p >= 3 && p[1] == ':' && (unsigned char)p[2] > ' ') /* no blanks: most texts */
		return p + 2;
	p = lex_blank(l, p + 1);
	if (p == l->end || *p != ':')
		return lex_fail(l, p, "expected ':' after the key");
	p = lex_blank(l, p + 1);
	if (p == l->end)
		return lex_fail(l, p, LEX_NO_VALUE);
	return p;
}

/*
 * Inside a container that does not end at p: the comma unless this is the
 * first item, and an object's key. Returns where the item's value begins.
 */
static inline const char *lex_next_item(struct lex *l, const char *p, bool is_object,
					bool is_first, struct str *key, bool *is_escaped)
{
	if (p == l->end)
		return lex_fail(l, p, "the text ends inside an array or object");
	if (!is_first) {
		if (*p != ',')
			return lex_fail(l, p, is_object ? "expected ',' or '}'" :
					"expected ',' or ']'");
		p = lex_blank(l, p + 1);
	}
	if (is_object)
		return lex_key(l, p, key, is_escaped);
	if (p == l->end)
		return lex_fail(l, p, LEX_NO_VALUE);
	return p;
}
