/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json/lex.h - the grammar of JSON, shared by the reader, the tree and the key scanner.
 *
 * Private to src/json. Each call gets the place where a piece begins and
 * returns the place behind it, or NULL after noting in struct lex where and
 * why. Nothing here allocates. Strings are read eight bytes at a time: a
 * subtract on the whole word raises the high bit of the first byte that ends a
 * plain run (a quote, a backslash or a control character).
 *
 * Invariant: the three users accept exactly the same texts, because none of
 * them recognises a string, a number or a word by itself.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "json/read.h"

struct lex {
	const char *end;
	const char *fail_at;
	const char *fail_why; /* set together with fail_at */
};

#define LEX_TOO_DEEP "nested deeper than JSON_DEPTH_MAX"
#define LEX_CLOSE(is_object) ((is_object) ? '}' : ']')

#define LEX_ESCAPED 1u   /* the string holds a backslash */
#define LEX_NOT_ASCII 2u /* the string holds bytes above 0x7f */

const char *lex_fail(struct lex *l, const char *at, const char *why); /* NULL */
/* Turns the noted failure into "line L, column C: why" (both from 1; columns count bytes). */
int lex_err(const struct lex *l, struct str text, struct err *e);

/* p stands on the backslash. */
const char *lex_escape(struct lex *l, const char *p);
/* A number or a word; p < l->end. */
const char *lex_scalar(struct lex *l, const char *p, enum json_kind *kind);
/* p stands on { or [ and `depth` containers are open around it. */
const char *lex_container(struct lex *l, const char *p, unsigned depth);

/* Whether a key spelled with escapes equals a plain ASCII name. */
bool lex_key_is_escaped(struct str key, const char *name, size_t n);
/* The value of any spelling lex_scalar took as a number. */
double lex_f64(struct str number);

#define LEX_BYTES(c) (0x0101010101010101u * (unsigned char)(c))

/* On big-endian machines the word loop is left out: the first byte is not the lowest there. */
#define LEX_HAS_WORDS (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

static inline uint64_t lex_stops(uint64_t x)
{
	uint64_t quote = (x ^ LEX_BYTES('"')) - LEX_BYTES(1);
	uint64_t slash = (x ^ LEX_BYTES('\\')) - LEX_BYTES(1);
	uint64_t control = x - LEX_BYTES(0x20);

	return (quote | slash | control) & ~x & LEX_BYTES(0x80);
}

/* p stands behind the opening quote; returns the closing one. */
static inline const char *lex_string(struct lex *l, const char *p, unsigned *marks)
{
	uint64_t high = 0;

	*marks = 0;
	for (;;) {
		while (LEX_HAS_WORDS && l->end - p >= 8) {
			uint64_t x, stop;

			memcpy(&x, p, 8);
			stop = lex_stops(x);
			if (stop) {
				/* Keep the bytes in front of the stop only. */
				high |= x & ((stop & -stop) - 1);
				p += __builtin_ctzll(stop) >> 3;
				break;
			}
			high |= x;
			p += 8;
		}
		while (p < l->end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
			high |= (unsigned char)*p++;
		if (p == l->end)
			return lex_fail(l, p, "the text ends inside a string");
		if (*p == '"')
			break;
		if (*p != '\\')
			return lex_fail(l, p, "a control character inside a string; "
					"expected it escaped");
		*marks |= LEX_ESCAPED;
		p = lex_escape(l, p);
		if (!p)
			return NULL;
	}
	if (high & LEX_BYTES(0x80))
		*marks |= LEX_NOT_ASCII;
	return p;
}

static inline const char *lex_blank(const struct lex *l, const char *p)
{
	if (p < l->end && (unsigned char)*p > ' ')
		return p;
	while (p < l->end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* A string, number or word; p < l->end and not on { or [. Returns the place behind it. */
static inline const char *lex_plain(struct lex *l, const char *p, struct json_slice *out,
				    unsigned *marks)
{
	const char *from = p;

	if (*p == '"') {
		p = lex_string(l, ++from, marks);
		if (!p)
			return NULL;
		*out = (struct json_slice){ JSON_STRING, { from, (size_t)(p - from) } };
		return p + 1;
	}
	p = lex_scalar(l, p, &out->kind);
	if (p)
		out->raw = (struct str){ from, (size_t)(p - from) };
	return p;
}

/* Any value; p < l->end. raw as in struct json_slice. Returns the place behind it. */
static inline const char *lex_value(struct lex *l, const char *p, unsigned depth,
				    struct json_slice *out)
{
	const char *from = p;
	unsigned marks;

	if (*p != '{' && *p != '[')
		return lex_plain(l, p, out, &marks);
	out->kind = *p == '{' ? JSON_OBJECT : JSON_ARRAY;
	p = lex_container(l, p, depth);
	if (p)
		out->raw = (struct str){ from, (size_t)(p - from) };
	return p;
}

/*
 * The front of a member: a key, blanks, the colon, blanks. p stands where the
 * key should begin. Returns where the value begins, which is before l->end.
 */
static inline const char *lex_key(struct lex *l, const char *p, struct str *key, unsigned *marks)
{
	const char *from = p + 1;

	if (p == l->end || *p != '"')
		return lex_fail(l, p, "expected a key in double quotes");
	p = lex_string(l, from, marks);
	if (!p)
		return NULL;
	*key = (struct str){ from, (size_t)(p - from) };
	p = lex_blank(l, p + 1);
	if (p == l->end || *p != ':')
		return lex_fail(l, p, "expected ':' after the key");
	p = lex_blank(l, p + 1);
	if (p == l->end)
		return lex_fail(l, p, "expected a value");
	return p;
}

/*
 * Inside a container that does not end at p: the comma unless this is the
 * first item, and an object's key. Returns where the item's value begins.
 */
static inline const char *lex_next_item(struct lex *l, const char *p, bool is_object,
					bool is_first, struct str *key, unsigned *marks)
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
		return lex_key(l, p, key, marks);
	if (p == l->end)
		return lex_fail(l, p, "expected a value");
	return p;
}
