/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - the pull scanner of json/read.h, and conversions of its slices. */
#include "core/json/read.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>

#include "core/base/str.h"
#include "core/json/lex.h"

int json_next(struct json_scan *s, struct json_slice *out, struct err *e)
{
	struct lex l;
	const char *p;

	assert(s->at <= s->text.n);
	if (!s->text.p)
		s->text = STR("");
	l = (struct lex){ .end = s->text.p + s->text.n };
	p = lex_blank(&l, s->text.p + s->at);
	if (p == l.end)
		lex_fail(&l, p, "expected a value, found the end of the text");
	else if ((p = lex_value(&l, p, 0, out)) != NULL) {
		s->at = (size_t)(p - s->text.p);
		return 0;
	}
	return lex_err(&l, s->text, e);
}

bool json_at_end(struct json_scan *s)
{
	struct lex l = { .end = s->text.p + s->text.n };

	if (s->text.n == 0)
		return true;
	s->at = (size_t)(lex_blank(&l, s->text.p + s->at) - s->text.p);
	return s->at == s->text.n;
}

struct json_iter json_iter(struct json_slice container)
{
	struct json_iter it = { .is_object = container.kind == JSON_OBJECT };

	if (container.kind != JSON_OBJECT && container.kind != JSON_ARRAY)
		return it;
	assert(container.raw.n >= 2);
	it.rest = (struct str){ container.raw.p + 1, container.raw.n - 1 };
	return it;
}

int json_step(struct json_iter *it, struct str *key)
{
	struct str name = STR("");
	struct lex l;
	const char *p;
	bool is_escaped;

	if (key)
		*key = name;
	if (!it->rest.p)
		return 0;
	l = (struct lex){ .end = it->rest.p + it->rest.n };
	p = lex_blank(&l, it->rest.p);
	if (p == l.end)
		return -1;
	it->rest = (struct str){ p, (size_t)(l.end - p) };
	if (*p == LEX_CLOSE(it->is_object))
		return 0;
	p = lex_next_item(&l, p, it->is_object, !it->is_started, &name, &is_escaped);
	if (key)
		*key = name;
	if (!p)
		return -1;
	it->is_started = true;
	it->rest = (struct str){ p, (size_t)(l.end - p) };
	return 1;
}

int json_take(struct json_iter *it, struct json_slice *value)
{
	struct lex l = { .end = it->rest.p + it->rest.n };
	const char *p = lex_value(&l, it->rest.p, 0, value);

	if (!p)
		return -1;
	it->rest = (struct str){ p, (size_t)(l.end - p) };
	return 1;
}

int json_each(struct json_iter *it, struct str *key, struct json_slice *value)
{
	int rc = json_step(it, key);

	return rc == 1 ? json_take(it, value) : rc;
}

bool json_open(const struct json_iter *it, struct json_iter *inner)
{
	char c = *it->rest.p;

	assert(it->rest.n > 0);
	*inner = (struct json_iter){ .rest = { it->rest.p + 1, it->rest.n - 1 },
		.is_object = c == '{' };
	return c == '{' || c == '[';
}

void json_close(struct json_iter *it, const struct json_iter *inner)
{
	assert(*inner->rest.p == LEX_CLOSE(inner->is_object));
	it->rest = (struct str){ inner->rest.p + 1, inner->rest.n - 1 };
}

bool json_member(struct json_slice object, const char *name, struct json_slice *value)
{
	struct json_iter it = json_iter(object);
	struct str want = str_of(name), key;
	struct json_slice v;

	if (object.kind != JSON_OBJECT)
		return false;
	while (json_each(&it, &key, &v) == 1) {
		if (!str_eq(key, want) && !(memchr(key.p, '\\', key.n) &&
					    lex_key_is_escaped(key, name, want.n)))
			continue;
		*value = v;
		return true;
	}
	return false;
}

bool json_path(struct json_slice object, struct json_slice *value, ...)
{
	struct json_slice at = object;
	const char *name;
	bool is_found = true;
	va_list ap;

	va_start(ap, value);
	while (is_found && (name = va_arg(ap, const char *)) != NULL)
		is_found = json_member(at, name, &at);
	va_end(ap);
	if (is_found)
		*value = at;
	return is_found;
}

static unsigned hex4(const char *p)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++) {
		unsigned c = (unsigned char)p[i];

		v = v << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return v;
}

/* p is at the u of \u; appends one code point, joining a surrogate pair. */
static const char *unescape_hex(struct buf *out, const char *p, const char *end)
{
	uint32_t cp = hex4(p + 1), low;
	char bytes[4];

	p += 5;
	if (cp >= 0xd800 && cp < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
		low = hex4(p + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
			p += 6;
		}
	}
	if (cp >= 0xd800 && cp < 0xe000)
		cp = 0xfffd;
	buf_add(out, bytes, utf8_encode(cp, bytes));
	return p;
}

void json_unescape(struct buf *out, struct str raw)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p = raw.p, *end = p + raw.n;

	while (p < end) {
		const char *slash = memchr(p, '\\', (size_t)(end - p));
		const char *stop = slash ? slash : end;

		utf8_add_lossy(out, (struct str){ p, (size_t)(stop - p) });
		if (!slash)
			return;
		assert(end - slash >= 2);
		if (slash[1] == 'u') {
			assert(end - slash >= 6);
			p = unescape_hex(out, slash + 1, end);
			continue;
		}
		p = strchr(from, slash[1]);
		assert(p && *p);
		buf_add_char(out, to[p - from]);
		p = slash + 2;
	}
}

bool json_to_f64(struct json_slice v, double *out)
{
	if (v.kind != JSON_INT && v.kind != JSON_REAL)
		return false;
	*out = lex_f64(v.raw);
	return true;
}

bool json_to_i64(struct json_slice v, int64_t *out)
{
	double real;

	if (v.kind == JSON_INT)
		return str_to_i64(v.raw, out);
	if (!json_to_f64(v, &real) || real != floor(real) ||
	    !(real >= -0x1p63 && real < 0x1p63))
		return false;
	*out = (int64_t)real;
	return true;
}

bool json_truthy(struct json_slice v)
{
	struct json_iter it;
	struct json_slice item;

	switch (v.kind) {
	case JSON_NULL:
	case JSON_FALSE:
		return false;
	case JSON_TRUE:
		return true;
	case JSON_INT:
	case JSON_REAL:
		return lex_f64(v.raw) != 0;
	case JSON_STRING:
		return v.raw.n > 0;
	case JSON_ARRAY:
	case JSON_OBJECT:
		it = json_iter(v);
		return json_each(&it, NULL, &item) == 1;
	}
	return false;
}
