/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - see str.h. */
#include "core/base/str.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

/* ---- Slices ---- */

bool str_starts(struct str s, struct str prefix)
{
	return !prefix.n || (s.n >= prefix.n && memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_ends(struct str s, struct str suffix)
{
	return !suffix.n ||
	       (s.n >= suffix.n && memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

const char *str_find(struct str s, struct str what)
{
	return s.n ? memmem(s.p, s.n, what.p, what.n) : NULL;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

/* As isspace() of the C locale. */
static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
	while (s.n && is_blank(s.p[0]))
		s.p++, s.n--;
	while (s.n && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

struct str str_cut(struct str *rest, char sep)
{
	const char *at = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
	struct str head = *rest;

	if (!at) {
		*rest = rest->n ? (struct str){ rest->p + rest->n, 0 } : head;
		return head;
	}
	head.n = (size_t)(at - rest->p);
	rest->n -= head.n + 1;
	rest->p = at + 1;
	return head;
}

bool str_to_u64(struct str s, uint64_t *out)
{
	uint64_t v = 0;

	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, digit, &v))
			return false;
	}
	*out = v;
	return true;
}

struct str str_after(struct str s, const char *mark)
{
	const char *at = s.n ? memmem(s.p, s.n, mark, strlen(mark)) : NULL;

	if (!at)
		return (struct str){ 0 };
	at += strlen(mark);
	return (struct str){ at, (size_t)(s.p + s.n - at) };
}

bool str_to_i64(struct str s, int64_t *out)
{
	bool is_negative = s.n && s.p[0] == '-';
	uint64_t v;

	if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
		s.p++, s.n--;
	if (!str_to_u64(s, &v) || v > (uint64_t)INT64_MAX + is_negative)
		return false;
	*out = is_negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

double str_strtod(const char *text, char **end)
{
	return strtod_l(text, end, fmt_c_locale());
}

bool str_to_f64(struct str s, double *out)
{
	char text[400];
	char *end;
	double v;

	if (s.n == 0 || s.n >= sizeof(text) || is_blank(s.p[0]))
		return false;
	for (size_t i = 0; i < s.n; i++) /* strtod also reads hexadecimal and nan(...) */
		if (s.p[i] == 'x' || s.p[i] == 'X' || s.p[i] == '(' || s.p[i] == 0)
			return false;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	v = str_strtod(text, &end);
	if (*end)
		return false;
	*out = v;
	return true;
}

int str_hex(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

/* ---- Buffers ---- */

/* The part of a capacity that counts against a meter. */
static int64_t metered(size_t cap)
{
	return cap > METER_FREE_BYTES ? (int64_t)cap : 0;
}

/* From the capacity there is to another one; false: the budget does not suffice. */
static bool count(struct buf *b, size_t cap)
{
	int64_t more = b->meter ? metered(cap) - metered(b->cap) : 0;

	if (!more || atomic_fetch_add(&b->meter->used, more) + more <= b->meter->max || more < 0)
		return true;
	atomic_fetch_sub(&b->meter->used, more);
	return false;
}

void buf_release(struct buf *b)
{
	if (!b)
		return;
	count(b, 0);
	free(b->data);
	*b = (struct buf){ .limit = b->limit, .meter = b->meter };
}

void buf_fit(struct buf *b)
{
	if (!b->data || b->cap == b->len + 1)
		return;
	count(b, b->len + 1);
	b->cap = b->len + 1;
	b->data = mem_grow(b->data, b->cap, 1);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->is_over = b->is_short = false;
	if (b->data)
		b->data[0] = 0;
}

char *buf_take(struct buf *b)
{
	char *data = b->data ? b->data : mem_copy("", 0);

	count(b, 0);
	*b = (struct buf){ .limit = b->limit, .meter = b->meter };
	return data;
}

int buf_reserve(struct buf *b, size_t extra)
{
	size_t limit = b->limit ? b->limit : BUF_BYTES_MAX;
	size_t cap;

	assert(b->len <= limit);
	if (extra > limit - b->len) {
		b->is_over = true;
		return -1;
	}
	if (b->cap > extra && b->len < b->cap - extra)
		return 0;
	cap = b->cap ? b->cap * 2 : 64;
	if (cap > limit + 1)
		cap = limit + 1;
	if (cap < b->len + extra + 1)
		cap = b->len + extra + 1;
	if (!count(b, cap)) {
		b->is_over = b->is_short = true;
		return -1;
	}
	b->data = mem_grow(b->data, cap, 1);
	b->cap = cap;
	return 0;
}

void buf_add(struct buf *b, const void *src, size_t n)
{
	if (buf_reserve(b, n) < 0)
		return;
	if (n)
		memcpy(b->data + b->len, src, n);
	b->len += n;
	b->data[b->len] = 0;
}

void buf_add_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_cut(struct buf *b, size_t n)
{
	assert(n <= b->len);
	if (n == 0)
		return;
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = 0;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = fmt_vtext(NULL, 0, fmt, ap);
	va_end(ap);
	assert(n >= 0);
	if (buf_reserve(b, (size_t)n) == 0) {
		(void)fmt_vtext(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

/* ---- UTF-8 ---- */

/* Ranges from the Unicode standard, table 3-7. */

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Length of the sequence a lead byte begins, and the range of its second byte. */
static size_t lead_length(unsigned char c, unsigned char *lo, unsigned char *hi)
{
	*lo = 0x80;
	*hi = 0xbf;
	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf)
		return 2;
	if (c >= 0xe0 && c <= 0xef) {
		if (c == 0xe0)
			*lo = 0xa0;
		if (c == 0xed)
			*hi = 0x9f;
		return 3;
	}
	if (c >= 0xf0 && c <= 0xf4) {
		if (c == 0xf0)
			*lo = 0x90;
		if (c == 0xf4)
			*hi = 0x8f;
		return 4;
	}
	return 0;
}

uint32_t utf8_decode(struct str s, size_t *n)
{
	const unsigned char *p = (const unsigned char *)s.p;
	unsigned char lo, hi;
	size_t want = lead_length(p[0], &lo, &hi), i;
	uint32_t cp;

	*n = 1;
	if (want == 0)
		return UTF8_BAD;
	if (want == 1)
		return p[0];
	cp = p[0] & (0x7fu >> want);
	for (i = 1; i < want; i++) {
		if (i >= s.n || p[i] < lo || p[i] > hi) {
			*n = i;
			return UTF8_BAD;
		}
		cp = cp << 6 | (p[i] & 0x3fu);
		lo = 0x80;
		hi = 0xbf;
	}
	*n = want;
	return cp;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

/* Past ASCII, a word at a time, to the first other byte or a rest shorter than a word. */
static const char *skip_ascii(const char *p, const char *end)
{
	uint64_t word[2];

	while (end - p >= 16) {
		memcpy(word, p, 16);
		if ((word[0] | word[1]) & 0x8080808080808080u)
			break;
		p += 16;
	}
	while (p < end && (unsigned char)*p < 0x80)
		p++;
	return p;
}

/* Past letters of three bytes, five at a time; E0 and ED are left to the decoder. */
static const char *skip_threes(const char *p, const char *end)
{
#ifdef __SSE2__
	const __m128i mask = _mm_set_epi32(0x00c0c0f0, (int)0xc0c0f0c0, (int)0xc0f0c0c0,
		(int)0xf0c0c0f0);
	const __m128i want = _mm_set_epi32(0x008080e0, (int)0x8080e080, (int)0x80e08080,
		(int)0xe08080e0);

	for (; end - p >= 16; p += 15) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i is_fit = _mm_cmpeq_epi8(_mm_and_si128(x, mask), want);
		__m128i is_odd = _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8((char)0xe0)),
			_mm_cmpeq_epi8(x, _mm_set1_epi8((char)0xed)));

		if (_mm_movemask_epi8(is_fit) != 0xffff || (_mm_movemask_epi8(is_odd) & 0x7fff))
			break;
	}
#endif
	while (end - p >= 3 && (p[0] & 0xf0) == 0xe0 && (unsigned char)p[0] != 0xe0 &&
		(unsigned char)p[0] != 0xed && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80)
		p += 3;
	return p;
}

/*
 * Most of the world's text is ASCII and letters of three bytes; these are skipped in runs. All
 * else is decoded, and so are E0 and ED, whose second byte has a narrower range.
 */
bool utf8_is_valid(struct str s)
{
	const char *p = s.p, *end = s.p + s.n;

	while (p < end) {
		size_t n;

		p = skip_threes(skip_ascii(p, end), end);
		if (p == end)
			break;
		if ((unsigned char)*p < 0x80)
			continue;
		if (utf8_decode((struct str){ p, (size_t)(end - p) }, &n) == UTF8_BAD)
			return false;
		p += n;
	}
	return true;
}

bool utf8_is_one(struct str s)
{
	size_t n;

	return s.n > 0 && utf8_decode(s, &n) != UTF8_BAD && n == s.n;
}

void utf8_add_lossy(struct buf *out, struct str s)
{
	const char *good = s.p;
	size_t n;

	while (s.n) {
		bool is_bad = utf8_decode(s, &n) == UTF8_BAD;

		if (is_bad) {
			buf_add(out, good, (size_t)(s.p - good));
			buf_add(out, "\xef\xbf\xbd", 3);
			good = s.p + n;
		}
		s.p += n;
		s.n -= n;
	}
	buf_add(out, good, (size_t)(s.p - good));
}

/* ---- Numbers as text ---- */

/*
 * The shortest form is found by printing with 15, 16 and 17 digits and taking
 * the first that reads back (fewer for subnormals). At 16 digits the correctly
 * rounded decimal can miss while a neighbour reads back (powers of two), so the
 * neighbours are tried before 17 digits are used.
 *
 * The decimal separator between the digits is whatever the locale of the thread makes
 * it: it is skipped, and read back by the strtod of the same locale.
 */

locale_t fmt_c_locale(void)
{
	static _Atomic(locale_t) kept; /* all threads find the same one */
	locale_t c = atomic_load_explicit(&kept, memory_order_acquire);

	if (!c) {
		c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* glibc has one: nothing is allocated */
		assert(c);
		atomic_store_explicit(&kept, c, memory_order_release);
	}
	return c;
}

int fmt_vtext(char *out, size_t cap, const char *fmt, va_list ap)
{
	locale_t before = uselocale(fmt_c_locale());
	int n = vsnprintf(out, cap, fmt, ap);

	uselocale(before);
	return n;
}

__attribute__((format(printf, 2, 3)))
static void put(char out[FMT_F64_BYTES], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fmt_vtext(out, FMT_F64_BYTES, fmt, ap);
	va_end(ap);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Scientific digits of |v|: "d.ddde[+-]xx" with `digits` significant ones. */
static int reads_back(char *sci, size_t cap, int digits, double v)
{
	snprintf(sci, cap, "%.*e", digits - 1, v);
	return strtod(sci, NULL) == v;
}

static int neighbour_reads_back(char *sci, size_t cap, double v)
{
	char up[FMT_F64_BYTES];
	char *e = strchr(sci, 'e');
	int carry = 1;

	snprintf(up, sizeof(up), "%s", sci);
	for (char *p = up + (e - sci) - 1; p >= up && carry; p--) {
		if (!is_digit(*p))
			continue;
		carry = *p == '9';
		*p = carry ? '0' : (char)(*p + 1);
	}
	if (carry || strtod(up, NULL) != v)
		return 0;
	snprintf(sci, cap, "%s", up);
	return 1;
}

static void shortest(char *sci, size_t cap, double v)
{
	if (v < DBL_MIN) {
		for (int digits = 1; digits < 15; digits++)
			if (reads_back(sci, cap, digits, v))
				return;
	}
	if (reads_back(sci, cap, 15, v) || reads_back(sci, cap, 16, v) ||
	    neighbour_reads_back(sci, cap, v))
		return;
	reads_back(sci, cap, 17, v);
}

/* Writes digits with the point after `point` of them; pads with zeros to reach it. */
static char *plain(char *o, const char *digits, int n, int point)
{
	if (point <= 0) {
		*o++ = '0';
		*o++ = '.';
		for (; point < 0; point++)
			*o++ = '0';
		memcpy(o, digits, (size_t)n);
		o += n;
	} else {
		for (int i = 0; i < point; i++)
			*o++ = i < n ? digits[i] : '0';
		*o++ = '.';
		if (n <= point)
			*o++ = '0';
		for (int i = point; i < n; i++)
			*o++ = digits[i];
	}
	*o = 0;
	return o;
}

char *fmt_f64(char out[FMT_F64_BYTES], double v)
{
	char sci[FMT_F64_BYTES], digits[FMT_F64_BYTES];
	char *o = out;
	int n = 0, exponent;

	if (isnan(v))
		return memcpy(out, "nan", 4);
	if (signbit(v))
		*o++ = '-';
	if (isinf(v)) {
		memcpy(o, "inf", 4);
		return out;
	}
	shortest(sci, sizeof(sci), fabs(v));
	exponent = (int)strtol(strchr(sci, 'e') + 1, NULL, 10);
	for (const char *p = sci; *p != 'e'; p++)
		if (is_digit(*p))
			digits[n++] = *p;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	if (exponent >= -4 && exponent < 16) {
		plain(o, digits, n, exponent + 1);
		return out;
	}
	*o++ = digits[0];
	if (n > 1) {
		*o++ = '.';
		memcpy(o, digits + 1, (size_t)n - 1);
		o += n - 1;
	}
	snprintf(o, (size_t)(out + FMT_F64_BYTES - o), "e%c%02d",
		 exponent < 0 ? '-' : '+', abs(exponent));
	return out;
}

char *fmt_duration(char out[FMT_F64_BYTES], int64_t ns)
{
	double v = fabs((double)ns);

	if (v < 1e3)
		put(out, "%lld ns", (long long)ns);
	else if (v < 1e6)
		put(out, "%.3g us", (double)ns / 1e3);
	else if (v < 1e9)
		put(out, "%.3g ms", (double)ns / 1e6);
	else
		put(out, "%.2f s", (double)ns / 1e9);
	return out;
}

char *fmt_rough_time(char out[FMT_F64_BYTES], double s)
{
	if (s < 89.5)
		put(out, "%.*f s", s < 9.95 ? 1 : 0, s);
	else if (s < 5400)
		put(out, "%.0f min", s / 60);
	else
		put(out, "%.1f h", s / 3600);
	return out;
}

/* ---- Words of a command ---- */

static bool is_shell_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* p is just past the opening quote. Returns the closing quote, or NULL and sets *why. */
static const char *quoted(const char *p, const char *end, char quote, struct buf *word,
			  const char **why)
{
	*why = "No closing quotation";
	for (; p < end && *p != quote; p++) {
		if (quote == '"' && *p == '\\') {
			if (p + 1 == end) {
				*why = "No escaped character";
				return NULL;
			}
			p += p[1] == '\\' || p[1] == '"';
		}
		buf_add_char(word, *p);
	}
	return p < end ? p : NULL;
}

/* Parses one word starting at p. Returns the position after it, or NULL and sets *why. */
static const char *next(const char *p, const char *end, struct buf *word, const char **why)
{
	for (; p < end && !is_shell_blank(*p); p++) {
		if (*p == '\'' || *p == '"') {
			p = quoted(p + 1, end, *p, word, why);
			if (!p)
				return NULL;
			continue;
		}
		if (*p == '\\' && ++p == end) {
			*why = "No escaped character";
			return NULL;
		}
		buf_add_char(word, *p);
	}
	return p;
}

/* After a backslash at the end of a line at p, which continues the command; p: there is none. */
static const char *after_continuation(const char *p, const char *end)
{
	if (end - p > 2 && p[0] == '\\' && p[1] == '\r' && p[2] == '\n')
		return p + 3;
	return end - p > 1 && p[0] == '\\' && p[1] == '\n' ? p + 2 : p;
}

int words_split(struct str text, struct arena *a, char ***argv, size_t *n, struct err *e)
{
	const char *p = text.p, *end = text.p + text.n, *why = NULL;
	struct word_list words = { .arena = a };
	struct buf word = { 0 };

	if (!text.n)
		p = end = "";
	if (text.n && memchr(text.p, 0, text.n))
		return err_set(e, ERR_USAGE, "a command cannot contain a zero byte");
	for (;;) {
		while (p < end && (is_shell_blank(*p) || after_continuation(p, end) > p))
			p = is_shell_blank(*p) ? p + 1 : after_continuation(p, end);
		if (p == end)
			break;
		buf_reset(&word);
		p = next(p, end, &word, &why);
		if (!p)
			break;
		words_add(&words, arena_text(a, buf_str(&word)));
	}
	*argv = words.v ? words.v : arena_alloc(a, sizeof(**argv));
	if (n)
		*n = words.n;
	buf_release(&word);
	return p ? 0 : err_set(e, ERR_USAGE, "%s", why);
}

void words_add(struct word_list *w, char *word)
{
	char **more;

	if (w->n + 1 >= w->room) {
		w->room = w->room ? 2 * w->room : 16;
		more = arena_alloc(w->arena, w->room * sizeof(*more));
		if (w->n)
			memcpy(more, w->v, w->n * sizeof(*more));
		w->v = more;
	}
	w->v[w->n++] = word;
	w->v[w->n] = NULL;
}

void words_quote(struct buf *out, struct str word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "@%+=:,./-_";
	bool is_plain = word.n > 0;

	for (size_t i = 0; i < word.n; i++)
		is_plain = is_plain && word.p[i] && strchr(plain, word.p[i]);
	if (is_plain) {
		buf_add_str(out, word);
		return;
	}
	buf_add_char(out, '\'');
	for (size_t i = 0; i < word.n; i++)
		if (word.p[i] == '\'')
			buf_add_text(out, "'\\''");
		else if (word.p[i])
			buf_add_char(out, word.p[i]);
	buf_add_char(out, '\'');
}
