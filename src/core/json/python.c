/* SPDX-License-Identifier: Apache-2.0 */
/* python.c - see python.h. */
#include "core/json/python.h"

#include "core/base/str.h"

static void add_escape(struct buf *out, uint32_t cp)
{
	if (cp < 0x100)
		buf_printf(out, "\\x%02x", cp);
	else
		buf_printf(out, "\\u%04x", cp);
}

/* Code points without a picture: controls, separators other than the blank, the soft hyphen. */
static bool is_unprintable(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp <= 0xa0) || cp == 0xad || cp == 0x1680 ||
	       (cp >= 0x2000 && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202f) ||
	       (cp >= 0x205f && cp <= 0x206f) || cp == 0x3000 || cp == 0xfeff ||
	       (cp >= 0xe000 && cp <= 0xf8ff);
}

void json_repr_str(struct buf *out, struct str s)
{
	bool has_single = s.n && memchr(s.p, '\'', s.n), has_double = s.n && memchr(s.p, '"', s.n);
	char quote = has_single && !has_double ? '"' : '\'';

	buf_add_char(out, quote);
	while (s.n) {
		size_t n;
		uint32_t cp = utf8_decode(s, &n);

		if (cp == UTF8_BAD) /* how Python shows undecodable bytes of an argument */
			for (size_t i = 0; i < n; i++)
				buf_printf(out, "\\udc%02x", (unsigned char)s.p[i]);
		else if (cp == '\n' || cp == '\r' || cp == '\t')
			buf_printf(out, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
		else if (cp == '\\' || cp == (unsigned char)quote)
			buf_printf(out, "\\%c", (char)cp);
		else if (is_unprintable(cp))
			add_escape(out, cp);
		else
			buf_add(out, s.p, n);
		s.p += n;
		s.n -= n;
	}
	buf_add_char(out, quote);
}

static bool is_integer(struct str raw)
{
	for (size_t i = 0; i < raw.n; i++)
		if ((raw.p[i] < '0' || raw.p[i] > '9') && (i || raw.p[i] != '-'))
			return false;
	return raw.n > 0;
}

void json_repr(struct buf *out, const struct json_value *v)
{
	bool is_object = v->kind == JSON_OBJECT;
	char real[FMT_F64_BYTES];

	switch (v->kind) {
	case JSON_NULL:
		buf_add_text(out, "None");
		return;
	case JSON_FALSE:
	case JSON_TRUE:
		buf_add_text(out, v->kind == JSON_TRUE ? "True" : "False");
		return;
	case JSON_INT:
		if (v->raw.n)
			buf_add_str(out, v->raw);
		else
			buf_printf(out, "%lld", (long long)v->integer);
		return;
	case JSON_REAL:
		if (is_integer(v->raw)) /* beyond 64 bits; Python's have no end */
			buf_add_str(out, v->raw);
		else
			buf_add_text(out, fmt_f64(real, v->real));
		return;
	case JSON_STRING:
		json_repr_str(out, v->text);
		return;
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	buf_add_char(out, is_object ? '{' : '[');
	for (size_t i = 0; i < v->count; i++) {
		if (i)
			buf_add_text(out, ", ");
		if (is_object) {
			json_repr_str(out, v->key[i]);
			buf_add_text(out, ": ");
		}
		json_repr(out, &v->item[i]);
	}
	buf_add_char(out, is_object ? '}' : ']');
}

void json_python_str(struct buf *out, const struct json_value *v)
{
	if (v->kind == JSON_STRING)
		buf_add_str(out, v->text);
	else
		json_repr(out, v);
}
