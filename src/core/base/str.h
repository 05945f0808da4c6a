/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.h - text: borrowed slices, growing buffers, UTF-8, numbers as text, and words of a command.
 */
#pragma once
#include <locale.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct arena;
struct err;

/* ---- Slices ---- */

/*
 * A struct str never owns its bytes and is not NUL-terminated. Number parsers
 * take the whole slice or fail; they accept no surrounding blanks.
 */

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
/* The first occurrence; NULL: none, as always in an empty text. */
const char *str_find(struct str s, struct str what);
bool str_eq_nocase(struct str a, struct str b); /* ASCII only */
struct str str_trim(struct str s);              /* ASCII blanks at both ends */

/* Cuts the part before the first sep from *rest and returns it; without sep, everything. */
struct str str_cut(struct str *rest, char sep);
/* The part after the first occurrence of mark; empty without one. */
struct str str_after(struct str s, const char *mark);

/* Whole-slice numbers: false when malformed or out of range, *out then untouched. */
bool str_to_i64(struct str s, int64_t *out); /* decimal, optional sign */
bool str_to_u64(struct str s, uint64_t *out);
int str_hex(char digit); /* 0..15; -1: not a hexadecimal digit */
/* strtod with a decimal point, whatever locale the program has chosen that uses the library. */
double str_strtod(const char *text, char **end);
bool str_to_f64(struct str s, double *out);  /* decimal, exponent, inf, nan, any case */

/* ---- Buffers: growing bytes with a limit ---- */

/*
 * A zeroed struct buf is a valid empty one with the default limit (BUF_BYTES_MAX). An addition that
 * would cross the limit is dropped and sets is_over, which stays set until buf_reset: writers check
 * it once, at the end. data[len] is always NUL when data is not NULL.
 *
 * A meter is a budget of bytes that several bufs share, from any thread. A buf with a meter counts
 * its capacity from METER_FREE_BYTES on, so that small texts can always be written. When the budget
 * is used up, additions are dropped as above and is_short is also set.
 */

#define METER_FREE_BYTES 65536

struct meter { _Atomic int64_t used; int64_t max; };

struct buf {
	char *data;
	size_t len, cap;
	size_t limit;        /* bytes; 0 means BUF_BYTES_MAX */
	struct meter *meter; /* borrowed; NULL: none */
	bool is_over, is_short;
};

void buf_release(struct buf *b);
void buf_reset(struct buf *b);         /* empty, memory kept */
char *buf_take(struct buf *b);         /* hands the bytes out; caller frees; "" when empty */
void buf_fit(struct buf *b);           /* frees unused capacity */
int buf_reserve(struct buf *b, size_t extra); /* -1 (and is_over) when past the limit */
void buf_add(struct buf *b, const void *src, size_t n);
void buf_add_char(struct buf *b, char c);
void buf_cut(struct buf *b, size_t n); /* drops the first n bytes */
__attribute__((format(printf, 2, 3)))
void buf_printf(struct buf *b, const char *fmt, ...);

static inline void buf_add_str(struct buf *b, struct str s) { buf_add(b, s.p, s.n); }
static inline void buf_add_text(struct buf *b, const char *t) { buf_add(b, t, strlen(t)); }
static inline struct str buf_str(const struct buf *b) { return (struct str){ b->data, b->len }; }

/* ---- UTF-8 ---- */

/*
 * Broken input is replaced as Python's errors="replace" does: one U+FFFD for
 * each maximal ill-formed part.
 */

#define UTF8_BAD UINT32_MAX

/*
 * Decodes one code point from the front of s (s.n > 0). Returns it and its
 * length in *n; for ill-formed input returns UTF8_BAD and the length of the
 * maximal part to replace (1..3). A sequence cut by the end of s is ill-formed.
 */
uint32_t utf8_decode(struct str s, size_t *n);
size_t utf8_encode(uint32_t cp, char out[4]); /* 1..4 bytes */
bool utf8_is_valid(struct str s);
bool utf8_is_one(struct str s); /* exactly one code point */
void utf8_add_lossy(struct buf *out, struct str s); /* appends with replacements */

/* One code point from the front of text known to be valid; its length goes to *n. */
static inline uint32_t utf8_next(const char *p, size_t *n)
{
	const uint8_t *b = (const uint8_t *)p;

	if (b[0] < 0x80) {
		*n = 1;
		return b[0];
	}
	if (b[0] < 0xe0) {
		*n = 2;
		return (b[0] & 0x1fu) << 6 | (b[1] & 0x3fu);
	}
	if (b[0] < 0xf0) {
		*n = 3;
		return (b[0] & 0xfu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
	}
	*n = 4;
	return (b[0] & 7u) << 18 | (b[1] & 0x3fu) << 12 | (b[2] & 0x3fu) << 6 | (b[3] & 0x3fu);
}

/* ---- Numbers as text ---- */

/* Numbers as people and as Python write them, with a decimal point in every locale. */

#define FMT_F64_BYTES 32

/*
 * The shortest decimal that reads back as v, spelled as CPython's repr(float):
 * always with ".0" or an exponent; the exponent form (1e-05, 1e+16) when the
 * decimal exponent is below -4 or at least 16; inf, -inf, nan. Returns out.
 */
char *fmt_f64(char out[FMT_F64_BYTES], double v);

/* 950 ns, 12.3 us, 4.56 ms, 1.23 s. Returns out. */
char *fmt_duration(char out[FMT_F64_BYTES], int64_t ns);
/* 1.5 s, 42 s, 12 min, 3.4 h: for estimates and long times. Returns out. */
char *fmt_rough_time(char out[FMT_F64_BYTES], double s);

/* The C locale: a decimal point, and letters of ASCII. Never freed. */
locale_t fmt_c_locale(void);
/* vsnprintf in that locale; all text that is made (buf_printf, err_set) goes through it. */
__attribute__((format(printf, 3, 0)))
int fmt_vtext(char *out, size_t cap, const char *fmt, va_list ap);

/* ---- Words of a command ---- */

/*
 * Cuts a command line into words as a POSIX shell would, without variables, patterns and comments.
 *
 * Equal to Python's shlex.split: '...' is literal; in "..." a backslash only escapes another one
 * and the quote; outside quotes it escapes anything; blanks are space, tab, CR, LF. Unlike there,
 * and as in a shell, a backslash between words that ends a line continues the command.
 */

/*
 * argv ends with NULL and lives in the arena with its words; n may be NULL. ERR_USAGE with Python's
 * reason ("No closing quotation", "No escaped character") or for a zero byte.
 */
int words_split(struct str text, struct arena *a, char ***argv, size_t *n, struct err *e);

/* Appends word so that a POSIX shell reads it back, quoted if needed; zero bytes are dropped. */
void words_quote(struct buf *out, struct str word);

/* Length of a list that ends with NULL; 0 for NULL. */
static inline size_t words_count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* A growing list of words. v ends with NULL, and is NULL while it is empty. */
struct word_list {
	struct arena *arena;
	char **v;
	size_t n, room;
};
void words_add(struct word_list *w, char *word); /* the word is borrowed */
