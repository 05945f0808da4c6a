/* SPDX-License-Identifier: Apache-2.0 */
/* lex.c - see lex.h. */
#include "core/json/lex.h"

#include <assert.h>

#include "core/base/limits.h"
#include "core/base/mem.h"

_Static_assert(JSON_DEPTH_MAX <= 64, "one bit per open container in a uint64_t");

const char *lex_fail(struct lex *l, const char *at, const char *why)
{
	l->fail_at = at;
	l->fail_why = why;
	return NULL;
}

int lex_err(const struct lex *l, struct str text, struct err *e)
{
	const char *line = text.p;
	size_t lines = 1;

	assert(l->fail_why);
	if (!e)
		return -1;
	for (const char *p = text.p; p < l->fail_at; p++) {
		if (*p == '\n') {
			line = p + 1;
			lines++;
		}
	}
	err_set(e, ERR_PARSE, "line %zu, column %zu: ", lines, (size_t)(l->fail_at - line) + 1);
	return lex_add_why(l, e);
}

#define FOUND_BYTES_MAX 20

/* Appends what was found instead of a value, to the line's end, without control characters. */
static void add_found(const struct lex *l, struct err *e)
{
	char found[FOUND_BYTES_MAX + 1];
	size_t n = 0;

	while (n < FOUND_BYTES_MAX && l->fail_at + n < l->end && l->fail_at[n] >= ' ' &&
	       l->fail_at[n] <= '~') {
		found[n] = l->fail_at[n];
		n++;
	}
	found[n] = 0;
	if (n)
		err_add(e, ", found '%s'%s", found, n == FOUND_BYTES_MAX ? "..." : "");
}

int lex_add_why(const struct lex *l, struct err *e)
{
	bool is_value = strcmp(l->fail_why, LEX_NO_VALUE) == 0;

	if (l->fail_at == l->end && strncmp(l->fail_why, "expected ", 9) == 0 &&
	    !strstr(l->fail_why, "the end of the text"))
		return err_add(e, "the text ends in the middle of a value");
	err_add(e, "%s", l->fail_why);
	if (is_value)
		add_found(l, e);
	return -1;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}

const char *lex_escape(struct lex *l, const char *p)
{
	if (l->end - p < 2)
		return lex_fail(l, l->end, "the text ends inside a string");
	switch (p[1]) {
	case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
		return p + 2;
	case 'u':
		for (int i = 2; i < 6; i++)
			if (p + i >= l->end || hex_digit(p[i]) < 0)
				return lex_fail(l, p, "expected four hexadecimal digits after \\u");
		return p + 6;
	default:
		return lex_fail(l, p, "unknown escape in a string");
	}
}

static const char *digits(const struct lex *l, const char *p)
{
	while (p < l->end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

static const char *word(struct lex *l, const char *p, const char *text, size_t n)
{
	if ((size_t)(l->end - p) < n || memcmp(p, text, n) != 0)
		return lex_fail(l, p, LEX_NO_VALUE);
	return p + n;
}

static const char *number(struct lex *l, const char *p, enum json_kind *kind)
{
	const char *from;

	*kind = JSON_INT;
	if (*p == '-')
		p++;
	from = p;
	if (p < l->end && *p == 'I') {
		*kind = JSON_REAL;
		return word(l, p, "Infinity", 8);
	}
	p = digits(l, p);
	if (p == from)
		return lex_fail(l, p, "expected a digit");
	if (*from == '0' && p > from + 1)
		return lex_fail(l, from, "a number with a leading zero");
	if (p < l->end && *p == '.') {
		*kind = JSON_REAL;
		from = ++p;
		p = digits(l, p);
		if (p == from)
			return lex_fail(l, p, "expected a digit after the point");
	}
	if (p < l->end && (*p | 0x20) == 'e') {
		*kind = JSON_REAL;
		p++;
		if (p < l->end && (*p == '+' || *p == '-'))
			p++;
		from = p;
		p = digits(l, p);
		if (p == from)
			return lex_fail(l, p, "expected a digit in the exponent");
	}
	return p;
}

const char *lex_scalar(struct lex *l, const char *p, enum json_kind *kind)
{
	switch (*p) {
	case 'n':
		*kind = JSON_NULL;
		return word(l, p, "null", 4);
	case 't':
		*kind = JSON_TRUE;
		return word(l, p, "true", 4);
	case 'f':
		*kind = JSON_FALSE;
		return word(l, p, "false", 5);
	case 'N':
		*kind = JSON_REAL;
		return word(l, p, "NaN", 3);
	case '-': case 'I': case '0': case '1': case '2': case '3': case '4':
	case '5': case '6': case '7': case '8': case '9':
		return number(l, p, kind);
	default:
		return lex_fail(l, p, LEX_NO_VALUE);
	}
}

const char *lex_container(struct lex *l, const char *p, unsigned depth)
{
	uint64_t is_object = 0; /* one bit per open container, the innermost lowest */
	unsigned level = 0;
	bool is_escaped;
	struct json_slice plain;
	struct str key;
	bool is_first;

	for (;;) { /* p is at a value */
		is_first = *p == '{' || *p == '[';
		if (is_first) {
			if (depth + level == JSON_DEPTH_MAX)
				return lex_fail(l, p, LEX_TOO_DEEP);
			is_object = is_object << 1 | (*p == '{');
			level++;
			p++;
		} else {
			p = lex_plain(l, p, &plain, &is_escaped);
			if (!p)
				return NULL;
		}
		for (p = lex_blank(l, p); p < l->end && *p == LEX_CLOSE(is_object & 1);
		     p = lex_blank(l, p)) {
			p++;
			if (--level == 0)
				return p;
			is_object >>= 1;
			is_first = false;
		}
		p = lex_next_item(l, p, is_object & 1, is_first, &key, &is_escaped);
		if (!p)
			return NULL;
	}
}

/* The character that an escape sequence spells, if it is ASCII; moves *p past it. */
static int ascii_escape(const char **p)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = *p, *found;

	if (at[1] == 'u') {
		*p = at + 6;
		if (at[2] != '0' || at[3] != '0' || at[4] > '7')
			return -1;
		return hex_digit(at[4]) << 4 | hex_digit(at[5]);
	}
	*p = at + 2;
	found = strchr(from, at[1]);
	assert(found);
	return to[found - from];
}

bool lex_key_is_escaped(struct str key, const char *name, size_t n)
{
	const char *p = key.p, *end = key.p + key.n;
	size_t i = 0;

	while (p < end && i < n) {
		int c = *p == '\\' ? ascii_escape(&p) : (unsigned char)*p++;

		if (c != (unsigned char)name[i++])
			return false;
	}
	return p == end && i == n;
}

/* Beyond what str_to_f64 holds; such spellings are legal and very rare. */
static double long_f64(struct str number)
{
	char *text = mem_copy(number.p, number.n);
	double v = str_strtod(text, NULL);

	free(text);
	return v;
}

/*
 * Decimal digits and a power of ten that are both exact in a double give a
 * correctly rounded result with one multiplication or division; anything
 * longer goes through strtod.
 */
double lex_f64(struct str number)
{
	static const double power[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
		1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	const char *p = number.p, *end = p + number.n, *point = NULL;
	uint64_t mantissa = 0;
	double v;

	if (number.n > 0 && number.n <= 17) {
		p += *p == '-';
		for (; p < end && (*p == '.' || (*p >= '0' && *p <= '9')); p++) {
			if (*p == '.')
				point = p + 1;
			else
				mantissa = mantissa * 10 + (uint64_t)(*p - '0');
		}
		if (p == end && mantissa <= 1ull << 53) {
			v = (double)mantissa / power[point ? end - point : 0];
			return *number.p == '-' ? -v : v;
		}
	}
	return str_to_f64(number, &v) ? v : long_f64(number);
}
