/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - see str.h. */
#include "base/str.h"

#include <stdlib.h>

#include "base/fmt.h"

bool str_starts(struct str s, struct str prefix)
{
	return !prefix.n || (s.n >= prefix.n && memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_ends(struct str s, struct str suffix)
{
	return !suffix.n ||
	       (s.n >= suffix.n && memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
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
