/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.h - borrowed slices of bytes and the numbers written in them.
 *
 * A struct str never owns its bytes and is not NUL-terminated. Number parsers
 * take the whole slice or fail; they accept no surrounding blanks.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

#define STR(lit) ((struct str){ "" lit, sizeof(lit) - 1 })

static inline struct str str_of(const char *text)
{
	return (struct str){ text, text ? strlen(text) : 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_is(struct str a, const char *text)
{
	return str_eq(a, str_of(text));
}

bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
bool str_eq_nocase(struct str a, struct str b); /* ASCII only */
struct str str_trim(struct str s);              /* ASCII blanks at both ends */

/* Cuts the part before the first sep from *rest and returns it; without sep, everything. */
struct str str_cut(struct str *rest, char sep);
/* What follows the first mark; empty where there is none. */
struct str str_after(struct str s, const char *mark);

/* Whole-slice numbers: false when malformed or out of range, *out then untouched. */
bool str_to_i64(struct str s, int64_t *out); /* decimal, optional sign */
bool str_to_u64(struct str s, uint64_t *out);
int str_hex(char digit); /* 0..15; -1: not a hexadecimal digit */
/* strtod with a decimal point, whatever locale the host program of the library has chosen. */
double str_strtod(const char *text, char **end);
bool str_to_f64(struct str s, double *out);  /* decimal, exponent, inf, nan, any case */
