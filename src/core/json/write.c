/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - see json/write.h. */
#include "core/json/write.h"

#include <assert.h>
#include <math.h>

#include "core/base/str.h"

struct json_writer json_writer(struct buf *out)
{
	assert(out);
	return (struct json_writer){ .out = out };
}

static void new_line(struct json_writer *w)
{
	buf_add_char(w->out, '\n');
	for (unsigned i = 0; i < w->depth * w->indent; i++)
		buf_add_char(w->out, ' ');
}

/* The comma and blanks in front of an item or a key. */
static void separate(struct json_writer *w)
{
	if (w->depth == 0)
		return;
	if (w->has_item[w->depth - 1])
		buf_add(w->out, ", ", w->is_compact || w->indent ? 1 : 2);
	w->has_item[w->depth - 1] = true;
	if (w->indent)
		new_line(w);
}

static void begin_value(struct json_writer *w)
{
	if (w->is_after_key) {
		w->is_after_key = false;
		return;
	}
	assert(w->depth == 0 || !w->is_object[w->depth - 1]);
	separate(w);
}

static void begin(struct json_writer *w, bool is_object)
{
	begin_value(w);
	assert(w->depth < JSON_DEPTH_MAX);
	buf_add_char(w->out, is_object ? '{' : '[');
	w->has_item[w->depth] = false;
	w->is_object[w->depth++] = is_object;
}

static void end(struct json_writer *w, bool is_object)
{
	assert(w->depth > 0);
	assert(!w->is_after_key);
	w->depth--;
	assert(w->is_object[w->depth] == is_object);
	if (w->has_item[w->depth] && w->indent)
		new_line(w);
	buf_add_char(w->out, is_object ? '}' : ']');
}

void json_begin_object(struct json_writer *w) { begin(w, true); }
void json_end_object(struct json_writer *w) { end(w, true); }
void json_begin_array(struct json_writer *w) { begin(w, false); }
void json_end_array(struct json_writer *w) { end(w, false); }

void json_key(struct json_writer *w, const char *key)
{
	json_key_str(w, str_of(key));
}

void json_key_str(struct json_writer *w, struct str key)
{
	assert(w->depth > 0);
	assert(w->is_object[w->depth - 1]);
	assert(!w->is_after_key);
	separate(w);
	json_quote(w->out, key, w->is_raw_utf8);
	buf_add(w->out, ": ", w->is_compact ? 1 : 2);
	w->is_after_key = true;
}

void json_put_null(struct json_writer *w)
{
	json_put_raw(w, STR("null"));
}

void json_put_bool(struct json_writer *w, bool v)
{
	json_put_raw(w, v ? STR("true") : STR("false"));
}

void json_put_int(struct json_writer *w, int64_t v)
{
	char digits[20], *p = digits + sizeof(digits);
	uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do
		*--p = (char)('0' + left % 10);
	while (left /= 10);
	if (v < 0)
		*--p = '-';
	json_put_raw(w, (struct str){ p, (size_t)(digits + sizeof(digits) - p) });
}

void json_put_f64(struct json_writer *w, double v)
{
	char text[FMT_F64_BYTES];

	if (isfinite(v))
		json_put_raw(w, str_of(fmt_f64(text, v)));
	else if (!w->is_python)
		json_put_null(w);
	else if (isnan(v))
		json_put_raw(w, STR("NaN"));
	else
		json_put_raw(w, v < 0 ? STR("-Infinity") : STR("Infinity"));
}

void json_put_setting(struct json_writer *w, double v)
{
	if (isinf(v) && !w->is_python)
		json_put_text(w, v < 0 ? "-inf" : "inf");
	else
		json_put_f64(w, v);
}

void json_put_str(struct json_writer *w, struct str text)
{
	begin_value(w);
	json_quote(w->out, text, w->is_raw_utf8);
}

void json_put_text(struct json_writer *w, const char *text)
{
	if (text)
		json_put_str(w, str_of(text));
	else
		json_put_null(w);
}

void json_put_raw(struct json_writer *w, struct str json)
{
	begin_value(w);
	buf_add_str(w->out, json);
}

/* ---- foreign JSON ---- */

static const struct { struct str python; const char *strict; } odd[] = {
	{ { "NaN", 3 }, "null" }, { { "-Infinity", 9 }, "\"-inf\"" }, { { "Infinity", 8 }, "\"inf\"" },
};

/* Length of a non-finite Python number at rest's start, else 0; *strict: its strict spelling. */
static size_t odd_at(struct str rest, const char **strict)
{
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		if (str_starts(rest, odd[i].python)) {
			*strict = odd[i].strict;
			return odd[i].python.n;
		}
	return 0;
}

void json_put_foreign(struct json_writer *w, struct str json)
{
	struct buf out = { .limit = w->out->limit };
	size_t copied = 0;
	bool is_text = false;

	for (size_t i = 0; i < json.n; i++) {
		const char *strict;
		size_t n;

		if (is_text && json.p[i] == '\\') {
			i++;
			continue;
		}
		is_text ^= json.p[i] == '"';
		n = is_text ? 0 : odd_at((struct str){ json.p + i, json.n - i }, &strict);
		if (!n)
			continue;
		buf_add(&out, json.p + copied, i - copied);
		buf_add_text(&out, strict);
		copied = i + n;
		i = copied - 1;
	}
	if (copied) {
		buf_add(&out, json.p + copied, json.n - copied);
		json = buf_str(&out);
	}
	json_put_raw(w, json);
	buf_release(&out);
}

/* Integers too long for int64_t live as reals; their spelling tells them apart. */
static bool is_long_integer(struct str raw)
{
	if (raw.n < 19)
		return false;
	for (size_t i = raw.p[0] == '-'; i < raw.n; i++)
		if (raw.p[i] < '0' || raw.p[i] > '9')
			return false;
	return true;
}

static void put_container(struct json_writer *w, const struct json_value *v)
{
	bool is_object = v->kind == JSON_OBJECT;

	begin(w, is_object);
	for (size_t i = 0; i < v->count; i++) {
		if (is_object)
			json_key_str(w, v->key[i]);
		json_put_value(w, &v->item[i]);
	}
	end(w, is_object);
}

/* Recursion ends: begin() asserts the depth, and no tree is deeper. */
void json_put_value(struct json_writer *w, const struct json_value *v)
{
	switch (v ? v->kind : JSON_NULL) {
	case JSON_NULL:
		json_put_null(w);
		break;
	case JSON_FALSE:
	case JSON_TRUE:
		json_put_bool(w, v->kind == JSON_TRUE);
		break;
	case JSON_INT:
		json_put_int(w, v->integer);
		break;
	case JSON_REAL:
		if (is_long_integer(v->raw))
			json_put_raw(w, v->raw);
		else
			json_put_setting(w, v->real);
		break;
	case JSON_STRING:
		json_put_str(w, v->text);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		put_container(w, v);
		break;
	}
}

static void add_hex(struct buf *out, uint32_t unit)
{
	static const char hex[] = "0123456789abcdef";
	char text[6] = { '\\', 'u', hex[unit >> 12], hex[unit >> 8 & 15], hex[unit >> 4 & 15],
		hex[unit & 15] };

	buf_add(out, text, sizeof(text));
}

static void add_escape(struct buf *out, uint32_t cp)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *found = cp && cp < 0x80 ? strchr(from, (int)cp) : NULL;

	if (found) {
		char text[2] = { '\\', to[found - from] };

		buf_add(out, text, sizeof(text));
	} else if (cp < 0x10000) {
		add_hex(out, cp);
	} else {
		add_hex(out, 0xd800 + ((cp - 0x10000) >> 10));
		add_hex(out, 0xdc00 + ((cp - 0x10000) & 0x3ff));
	}
}

void json_quote(struct buf *out, struct str text, bool is_raw_utf8)
{
	const char *p = text.n ? text.p : "", *end = p + text.n, *plain = p;
	size_t n;

	buf_add_char(out, '"');
	while (p < end) {
		unsigned char c = (unsigned char)*p;
		uint32_t cp;

		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
			p++;
			continue;
		}
		cp = utf8_decode((struct str){ p, (size_t)(end - p) }, &n);
		if (is_raw_utf8 && c >= 0x7f && cp != UTF8_BAD) {
			p += n;
			continue;
		}
		buf_add(out, plain, (size_t)(p - plain));
		p += n;
		plain = p;
		if (cp != UTF8_BAD)
			add_escape(out, cp);
		else if (is_raw_utf8)
			buf_add(out, "\xef\xbf\xbd", 3);
		else
			add_escape(out, 0xfffd);
	}
	buf_add(out, plain, (size_t)(p - plain));
	buf_add_char(out, '"');
}

void json_member_null(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_put_null(w);
}

void json_member_bool(struct json_writer *w, const char *key, bool v)
{
	json_key(w, key);
	json_put_bool(w, v);
}

void json_member_int(struct json_writer *w, const char *key, int64_t v)
{
	json_key(w, key);
	json_put_int(w, v);
}

void json_member_f64(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	json_put_f64(w, v);
}

void json_member_f64s(struct json_writer *w, const char *key, const double *v, size_t n)
{
	json_member_array(w, key);
	for (size_t i = 0; i < n; i++)
		json_put_f64(w, v[i]);
	json_end_array(w);
}

void json_member_setting(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	json_put_setting(w, v);
}

void json_member_str(struct json_writer *w, const char *key, struct str text)
{
	json_key(w, key);
	json_put_str(w, text);
}

void json_member_text(struct json_writer *w, const char *key, const char *text)
{
	json_key(w, key);
	json_put_text(w, text);
}

void json_member_texts(struct json_writer *w, const char *key, const char *const *v)
{
	json_member_array(w, key);
	for (; v && *v; v++)
		json_put_text(w, *v);
	json_end_array(w);
}

void json_member_raw(struct json_writer *w, const char *key, struct str json)
{
	json_key(w, key);
	json_put_raw(w, json);
}

void json_member_foreign(struct json_writer *w, const char *key, struct str json)
{
	json_key(w, key);
	json_put_foreign(w, json);
}

void json_member_value(struct json_writer *w, const char *key, const struct json_value *v)
{
	json_key(w, key);
	json_put_value(w, v);
}

void json_member_object(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_begin_object(w);
}

void json_member_array(struct json_writer *w, const char *key)
{
	json_key(w, key);
	json_begin_array(w);
}

void json_put_members_raw(struct json_writer *w, struct str members)
{
	assert(w->depth > 0 && w->is_object[w->depth - 1] && !w->is_after_key);
	separate(w);
	buf_add_str(w->out, members);
}

void json_put_members(struct json_writer *w, struct str object)
{
	struct json_value *v;
	struct arena a = { 0 };

	if (json_parse(&a, object, &v, NULL) == 0 && v->kind == JSON_OBJECT)
		for (size_t i = 0; i < v->count; i++) {
			json_key_str(w, v->key[i]);
			json_put_value(w, &v->item[i]);
		}
	arena_release(&a);
}
