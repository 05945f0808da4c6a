/* SPDX-License-Identifier: Apache-2.0 */
/* Reader, tree and writer: accepted and refused texts, values, and CPython's own spellings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "core/json/read.h"
#include "core/json/write.h"
#include "json_golden.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static void accepts(void **state)
{
	static const char *const text[] = {
		"null", " true ", "\t\r\n false", "0", "-0", "-12", "1.5e+3", "1E5", "0.0e-0", "NaN",
		"Infinity", "-Infinity", "\"\"", "\"\\u00e9\\\\\\\"\\/\\b\\f\\n\\r\\t\"", "[]", "[ ]", "{}",
		"{ }", "[[],{},[{}]]", "[1,2 , 3]", "{\"a\":1, \"b\" : [null]}", "\"\x7f\"",
		"\"\xff\xc3\"", "\"\\ud800\"", "\"01234567\"", "\"0123456\\\"\"",
		"123456789012345678901234567890", "{\"\":{\"\":{}}}",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(text); i++) {
		struct json_scan s = { .text = str_of(text[i]) };
		struct json_value *v = NULL;
		struct json_slice slice;
		struct arena a = { 0 };
		struct err e = { 0 };

		if (json_next(&s, &slice, &e) < 0 || json_parse(&a, s.text, &v, &e) < 0)
			fail_msg("%s: %s", text[i], e.text);
		assert_true(json_at_end(&s));
		assert_non_null(v);
		arena_release(&a);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *text, *error;
	} row[] = {
		{ "", "line 1, column 1: expected a value, found the end of the text" },
		{ " \n ", "line 2, column 2: expected a value, found the end of the text" },
		{ "nul", "line 1, column 1: expected a value, found 'nul'" },
		{ "True", "line 1, column 1: expected a value, found 'True'" },
		{ "01", "line 1, column 1: a number with a leading zero" },
		{ "-", "line 1, column 2: the text ends in the middle of a value" },
		{ "-x", "line 1, column 2: expected a digit" },
		{ "+1", "line 1, column 1: expected a value, found '+1'" },
		{ "1.", "line 1, column 3: the text ends in the middle of a value" },
		{ ".5", "line 1, column 1: expected a value, found '.5'" },
		{ "1e", "line 1, column 3: the text ends in the middle of a value" },
		{ "1e+", "line 1, column 4: the text ends in the middle of a value" },
		{ "1.x", "line 1, column 3: expected a digit after the point" },
		{ "{\"a\"", "line 1, column 5: the text ends in the middle of a value" },
		{ "[not json here, truly]", "line 1, column 2: expected a value, found 'not json here, truly'..." },
		{ "[a\x1b[2Jb]", "line 1, column 2: expected a value, found 'a'" },
		{ "-Inf", "line 1, column 2: expected a value, found 'Inf'" },
		{ "\"abc", "line 1, column 5: the text ends inside a string" },
		{ "\"abc\\", "line 1, column 6: the text ends inside a string" },
		{ "\"a\\x\"", "line 1, column 3: unknown escape in a string" },
		{ "\"\\u12g4\"", "line 1, column 2: expected four hexadecimal digits after \\u" },
		{ "\"\\u12", "line 1, column 2: expected four hexadecimal digits after \\u" },
		{ "\"a\tb\"", "line 1, column 3: a control character inside a string; "
		  "expected it escaped" },
		{ "\"abcdefghij\x01klmnopqrst\"", "line 1, column 12: a control character inside a "
		  "string; expected it escaped" },
		{ "[", "line 1, column 2: the text ends inside an array or object" },
		{ "[1", "line 1, column 3: the text ends inside an array or object" },
		{ "[1,", "line 1, column 4: the text ends in the middle of a value" },
		{ "[1,]", "line 1, column 4: expected a value, found ']'" },
		{ "[1 2]", "line 1, column 4: expected ',' or ']'" },
		{ "[1}", "line 1, column 3: expected ',' or ']'" },
		{ "[,1]", "line 1, column 2: expected a value, found ',1]'" },
		{ "{\n\"a\" 1}", "line 2, column 5: expected ':' after the key" },
		{ "{\"a\":", "line 1, column 6: the text ends in the middle of a value" },
		{ "{\"a\":}", "line 1, column 6: expected a value, found '}'" },
		{ "{\"a\":1,}", "line 1, column 8: expected a key in double quotes" },
		{ "{a:1}", "line 1, column 2: expected a key in double quotes" },
		{ "{\"a\":1 \"b\":2}", "line 1, column 8: expected ',' or '}'" },
		{ "{\"a\":1]", "line 1, column 7: expected ',' or '}'" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct json_scan s = { .text = str_of(row[i].text) };
		struct json_value *v = NULL;
		struct json_slice slice;
		struct arena a = { 0 };
		struct err e = { 0 };

		assert_int_equal(json_parse(&a, s.text, &v, &e), -1);
		assert_string_equal(e.text, row[i].error);
		assert_int_equal(e.code, ERR_PARSE);
		assert_null(v);
		if (json_next(&s, &slice, &e) == 0) /* a prefix was a value */
			assert_false(json_at_end(&s));
		else
			assert_string_equal(e.text, row[i].error);
		arena_release(&a);
	}
}

static void refuses_what_follows(void **state)
{
	static const char *const text[] = { "1 2", "{} x", "[]]", "null,", "1.5.5", "00" };
	struct arena a = { 0 };
	struct json_value *v;

	(void)state;
	for (size_t i = 0; i < COUNT(text); i++)
		assert_int_equal(json_parse(&a, str_of(text[i]), &v, NULL), -1);
	arena_release(&a);
}

static void limits_depth(void **state)
{
	(void)state;
	for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
		struct buf text = { 0 };
		struct json_slice slice;
		struct json_scan s;
		struct json_value *v;
		struct arena a = { 0 };
		struct err e = { 0 };
		int want = depth <= JSON_DEPTH_MAX ? 0 : -1;

		for (size_t i = 0; i < depth; i++)
			buf_add_text(&text, i % 2 ? "{\"k\":" : "[");
		buf_add_char(&text, '1');
		for (size_t i = depth; i-- > 0;)
			buf_add_char(&text, i % 2 ? '}' : ']');
		s = (struct json_scan){ .text = buf_str(&text) };
		assert_int_equal(json_parse(&a, s.text, &v, &e), want);
		assert_int_equal(json_next(&s, &slice, &e), want);
		if (want < 0)
			assert_non_null(strstr(e.text, "JSON_DEPTH_MAX"));
		arena_release(&a);
		buf_release(&text);
	}
}

static void unescapes(void **state)
{
	static const struct {
		const char *raw;
		struct str text;
	} row[] = {
		{ "", STR("") },
		{ "plain", STR("plain") },
		{ "\\n\\t\\r\\b\\f\\/\\\\\\\"", STR("\n\t\r\b\f/\\\"") },
		{ "a\\u0000b", STR("a\0b") },
		{ "\\u00e9\\u00E9", STR("\xc3\xa9\xc3\xa9") },
		{ "\\u4e2d", STR("\xe4\xb8\xad") },
		{ "\\ud83d\\ude00!", STR("\xf0\x9f\x98\x80!") },
		{ "\\uD834\\uDD1E", STR("\xf0\x9d\x84\x9e") },
		{ "\\ud83d", STR("\xef\xbf\xbd") },
		{ "\\ud83dx", STR("\xef\xbf\xbdx") },
		{ "\\ud83d\\n", STR("\xef\xbf\xbd\n") },
		{ "\\ude00", STR("\xef\xbf\xbd") },
		{ "\\ud83d\\ud83d\\ude00", STR("\xef\xbf\xbd\xf0\x9f\x98\x80") },
		{ "\\ud83d\\u0041", STR("\xef\xbf\xbd" "A") },
		{ "\xff" "a\xe2\x82", STR("\xef\xbf\xbd" "a\xef\xbf\xbd") },
		{ "\xe2\x82\xac", STR("\xe2\x82\xac") },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf out = { 0 }, quoted = { 0 };
		struct json_value *v;
		struct arena a = { 0 };

		json_unescape(&out, str_of(row[i].raw));
		assert_int_equal(out.len, row[i].text.n);
		assert_true(out.len == 0 || memcmp(out.data, row[i].text.p, out.len) == 0);
		buf_printf(&quoted, "\"%s\"", row[i].raw);
		assert_int_equal(json_parse(&a, buf_str(&quoted), &v, NULL), 0);
		assert_true(str_eq(v->text, row[i].text));
		assert_int_equal(v->text.p[v->text.n], 0);
		arena_release(&a);
		buf_release(&out);
		buf_release(&quoted);
	}
}

static struct json_slice slice_of(const char *text)
{
	struct json_scan s = { .text = str_of(text) };
	struct json_slice v;

	assert_int_equal(json_next(&s, &v, NULL), 0);
	return v;
}

static void converts(void **state)
{
	static const struct {
		const char *text;
		bool is_int;
		int64_t integer;
		bool is_real;
		double real;
		bool truth;
	} row[] = {
		{ "0", true, 0, true, 0, false },
		{ "-0", true, 0, true, -0.0, false },
		{ "7", true, 7, true, 7, true },
		{ "-9223372036854775808", true, INT64_MIN, true, -0x1p63, true },
		{ "9223372036854775807", true, INT64_MAX, true, 0x1p63, true },
		{ "9223372036854775808", false, 0, true, 0x1p63, true },
		{ "5.0", true, 5, true, 5, true },
		{ "1e3", true, 1000, true, 1000, true },
		{ "5.5", false, 0, true, 5.5, true },
		{ "0.1", false, 0, true, 0.1, true },
		{ "-0.30000000000000004", false, 0, true, -0.30000000000000004, true },
		{ "123456.789012345", false, 0, true, 123456.789012345, true },
		{ "9007199254740993", true, 9007199254740993, true, 9007199254740992.0, true },
		{ "0.0", true, 0, true, 0, false },
		{ "1e400", false, 0, true, (double)INFINITY, true },
		{ "-Infinity", false, 0, true, -(double)INFINITY, true },
		{ "1e-400", true, 0, true, 0, false },
		{ "\"\"", false, 0, false, 0, false },
		{ "\"0\"", false, 0, false, 0, true },
		{ "null", false, 0, false, 0, false },
		{ "false", false, 0, false, 0, false },
		{ "true", false, 0, false, 0, true },
		{ "[ ]", false, 0, false, 0, false },
		{ "[0]", false, 0, false, 0, true },
		{ "{}", false, 0, false, 0, false },
		{ "{\"\":0}", false, 0, false, 0, true },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct json_slice v = slice_of(row[i].text);
		int64_t integer = 0;
		double real = 0;

		assert_int_equal(json_to_i64(v, &integer), row[i].is_int);
		assert_int_equal(integer, row[i].integer);
		assert_int_equal(json_to_f64(v, &real), row[i].is_real);
		assert_memory_equal(&real, &row[i].real, sizeof(real));
		assert_int_equal(json_truthy(v), row[i].truth);
	}
	assert_true(json_truthy(slice_of("NaN")));
}

static void long_numbers(void **state)
{
	char text[602] = "0.";
	struct json_value *v;
	struct arena a = { 0 };

	(void)state;
	memset(text + 2, '3', 599);
	assert_int_equal(json_parse(&a, str_of(text), &v, NULL), 0);
	assert_true(json_real(v, 0) == 1.0 / 3);
	memset(text, '9', 601);
	assert_int_equal(json_parse(&a, str_of(text), &v, NULL), 0);
	assert_int_equal(v->kind, JSON_REAL);
	assert_true(isinf(v->real));
	arena_release(&a);
}

/* A large member is entered, not parsed; errors in it, or after it, are still detected. */
static void enters(void **state)
{
	static const struct {
		const char *text;
		int inside, behind; /* what ends the walks */
		int64_t sum;
	} row[] = {
		{ "{\"a\": 1, \"in\" : { \"x\": 10, \"y\": [20, 5] , \"z\":30} , \"b\": 2}", 0, 0, 43 },
		{ "{\"in\":[10,20],\"b\":2}", 0, 0, 32 },
		{ "{\"in\":{}}", 0, 0, 0 },
		{ "{\"in\":{\"x\":10,},\"b\":2}", -1, 0, 10 },
		{ "{\"in\":{\"x\":10", -1, 0, 10 },
		{ "{\"in\":[10}", -1, 0, 10 },
		{ "{\"in\":{\"x\":10} \"b\":2}", 0, -1, 10 },
		{ "{\"in\":{\"x\":10}", 0, -1, 10 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct json_iter it = json_iter((struct json_slice){ JSON_OBJECT,
			str_of(row[i].text) }), inner;
		struct json_slice v;
		struct str key;
		int64_t sum = 0, n;
		int rc, inside = 0;

		while ((rc = json_step(&it, &key)) > 0) {
			if (!str_is(key, "in")) {
				assert_int_equal(json_take(&it, &v), 1);
				sum += json_to_i64(v, &n) ? n : 0;
				continue;
			}
			assert_true(json_open(&it, &inner));
			while ((inside = json_each(&inner, NULL, &v)) > 0)
				sum += json_to_i64(v, &n) ? n : 0;
			if (inside < 0)
				break;
			json_close(&it, &inner);
		}
		assert_int_equal(inside, row[i].inside);
		assert_true(inside < 0 || rc == row[i].behind);
		assert_int_equal(sum, row[i].sum);
	}
}

static void iterates(void **state)
{
	struct json_slice o = slice_of("{\"a\": 1, \"b\\\"\": [true, {}, \"x]\"], \"\\u0063\":{\"d\":2.5}}");
	struct json_iter it = json_iter(o);
	struct json_slice v;
	struct str key;
	double real;

	(void)state;
	assert_int_equal(json_each(&it, &key, &v), 1);
	assert_true(str_is(key, "a"));
	assert_int_equal(v.kind, JSON_INT);
	assert_int_equal(json_each(&it, &key, &v), 1);
	assert_true(str_is(key, "b\\\""));
	assert_true(str_is(v.raw, "[true, {}, \"x]\"]"));
	assert_int_equal(json_each(&it, &key, &v), 1);
	assert_int_equal(json_each(&it, &key, &v), 0);
	assert_int_equal(json_each(&it, &key, &v), 0);

	assert_true(json_path(o, &v, "c", "d", NULL));
	assert_true(json_to_f64(v, &real));
	assert_true(real == 2.5);
	assert_false(json_path(o, &v, "a", "d", NULL));
	assert_false(json_member(o, "d", &v));
	assert_true(json_member(o, "b\"", &v));
	it = json_iter(v);
	assert_int_equal(json_each(&it, &key, &v), 1);
	assert_int_equal(key.n, 0);
	assert_int_equal(v.kind, JSON_TRUE);
	assert_int_equal(json_each(&it, NULL, &v), 1);
	assert_int_equal(json_each(&it, NULL, &v), 1);
	assert_true(str_is(v.raw, "x]"));
	assert_int_equal(json_each(&it, NULL, &v), 0);

	it = json_iter(slice_of("17"));
	assert_int_equal(json_each(&it, NULL, &v), 0);
	it = json_iter((struct json_slice){ JSON_OBJECT, STR("{\"a\":1") });
	assert_int_equal(json_each(&it, &key, &v), 1);
	assert_int_equal(json_each(&it, &key, &v), -1);
}

static void duplicates(void **state)
{
	struct buf text = { 0 };
	struct json_value *v;
	struct arena a = { 0 };

	(void)state;
	assert_int_equal(json_parse(&a, STR("{\"a\":1,\"b\":2,\"\\u0061\":{\"x\":1},\"b\":[]}"), &v,
				    NULL), 0);
	assert_int_equal(v->count, 2);
	assert_true(str_is(v->key[0], "a"));
	assert_int_equal(v->item[0].kind, JSON_OBJECT);
	assert_int_equal(json_get(v, "b")->kind, JSON_ARRAY);

	/* Enough members for the hash table: every third key comes twice. */
	buf_add_char(&text, '{');
	for (int i = 0; i < 3000; i++)
		buf_printf(&text, "%s\"key %d\":%d", i ? "," : "", i % 2000, i);
	buf_add_char(&text, '}');
	assert_int_equal(json_parse(&a, buf_str(&text), &v, NULL), 0);
	assert_int_equal(v->count, 2000);
	for (int i = 0; i < 2000; i++) {
		char key[32];

		snprintf(key, sizeof(key), "key %d", i);
		assert_true(str_is(v->key[i], key));
		assert_int_equal(v->item[i].integer, i < 1000 ? i + 2000 : i);
	}
	buf_release(&text);
	arena_release(&a);
}

static void tree_access(void **state)
{
	struct json_value *v;
	struct arena a = { 0 };

	(void)state;
	assert_int_equal(json_parse(&a, STR("{\"s\":\"x\",\"i\":3,\"r\":1.5,\"b\":true,\"n\":null}"),
				    &v, NULL), 0);
	assert_true(str_is(json_text(json_get(v, "s"), STR("-")), "x"));
	assert_true(str_is(json_text(json_get(v, "i"), STR("-")), "-"));
	assert_int_equal(json_int(json_get(v, "i"), -1), 3);
	assert_int_equal(json_int(json_get(v, "r"), -1), -1);
	assert_true(json_real(json_get(v, "i"), 0) == 3);
	assert_true(json_real(json_get(v, "r"), 0) == 1.5);
	assert_true(json_real(json_get(v, "s"), 9) == 9);
	assert_true(json_bool(json_get(v, "b"), false));
	assert_true(json_bool(json_get(v, "n"), true));
	assert_null(json_get(v, "missing"));
	assert_null(json_get(NULL, "s"));
	assert_null(json_get(json_get(v, "s"), "s"));
	assert_int_equal(json_int(NULL, 4), 4);
	assert_true(str_is(json_get(v, "r")->raw, "1.5"));
	arena_release(&a);
}

static void writes_as_python(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(json_goldens); i++) {
		const struct json_golden *g = &json_goldens[i];
		struct json_value *v;
		struct arena a = { 0 };
		struct err e = { 0 };
		struct buf out = { 0 };
		struct json_writer w = json_writer(&out);

		w.is_python = true; /* the rows are Python's */
		if (json_parse(&a, str_of(g->text), &v, &e) < 0)
			fail_msg("row %zu: %s", i, e.text);
		json_put_value(&w, v);
		assert_string_equal(out.data, g->dumped);
		buf_reset(&out);
		w = json_writer(&out);
		w.indent = 2;
		w.is_raw_utf8 = w.is_python = true;
		json_put_value(&w, v);
		assert_string_equal(out.data, g->indented);
		buf_reset(&out);
		w = json_writer(&out);
		w.is_compact = w.is_python = true;
		json_put_value(&w, v);
		assert_string_equal(out.data, g->compact);
		buf_release(&out);
		arena_release(&a);
	}
}

/* What is not finite is never written as Python would, unless that is asked for. */
static void writes_what_is_not_finite(void **state)
{
	static const char python[] = "[NaN, Infinity, -Infinity, {\"a\": [Infinity]}, \"NaN \\\" Infinity\"]";
	struct json_value *v;
	struct arena a = { 0 };
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	(void)state;
	json_begin_array(&w);
	json_put_f64(&w, (double)NAN);
	json_put_f64(&w, (double)INFINITY);
	json_put_f64(&w, -(double)INFINITY);
	json_put_setting(&w, (double)NAN);
	json_put_setting(&w, (double)INFINITY);
	json_put_setting(&w, -(double)INFINITY);
	json_put_setting(&w, 0.5);
	json_put_foreign(&w, str_of(python));
	assert_int_equal(json_parse(&a, str_of(python), &v, NULL), 0);
	json_put_value(&w, v);
	json_end_array(&w);
	assert_string_equal(out.data, "[null, null, null, null, \"inf\", \"-inf\", 0.5, "
		"[null, \"inf\", \"-inf\", {\"a\": [\"inf\"]}, \"NaN \\\" Infinity\"], "
		"[null, \"inf\", \"-inf\", {\"a\": [\"inf\"]}, \"NaN \\\" Infinity\"]]");
	assert_int_equal(json_parse(&a, buf_str(&out), &v, NULL), 0);
	assert_true(isinf(json_setting(&v->item[4], 1)) && json_setting(&v->item[4], 1) > 0);
	assert_true(isinf(json_setting(&v->item[5], 1)) && json_setting(&v->item[5], 1) < 0);
	assert_true(json_setting(&v->item[6], 1) == 0.5 && json_setting(&v->item[0], 7) == 7);
	buf_reset(&out);
	w = json_writer(&out);
	w.is_python = true;
	json_put_setting(&w, -(double)INFINITY);
	assert_string_equal(out.data, "-Infinity");
	buf_release(&out);
	arena_release(&a);
}

static void writes_by_hand(void **state)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	(void)state;
	json_begin_object(&w);
	json_key(&w, "a\n");
	json_begin_array(&w);
	json_put_int(&w, INT64_MIN);
	json_put_f64(&w, 1e16);
	json_put_bool(&w, true);
	json_put_null(&w);
	json_put_text(&w, NULL);
	json_put_text(&w, "\xff\x7f");
	json_put_raw(&w, STR("{\"raw\": 1}"));
	json_begin_object(&w);
	json_end_object(&w);
	json_end_array(&w);
	json_key_str(&w, STR("k"));
	json_put_str(&w, STR("a\0b"));
	json_end_object(&w);
	assert_string_equal(out.data, "{\"a\\n\": [-9223372036854775808, 1e+16, true, null, null, "
			    "\"\\ufffd\\u007f\", {\"raw\": 1}, {}], \"k\": \"a\\u0000b\"}");
	buf_reset(&out);
	json_quote(&out, STR("\xff\x7f\xe4\xb8\xad\x01"), true);
	assert_string_equal(out.data, "\"\xef\xbf\xbd\x7f\xe4\xb8\xad\\u0001\"");
	buf_release(&out);
}

static void empty_slices(void **state)
{
	struct json_scan s = { 0 };
	struct json_slice v;
	struct json_value *tree;
	struct arena a = { 0 };
	struct err e = { 0 };
	struct buf out = { 0 };

	(void)state;
	assert_true(json_at_end(&s));
	assert_int_equal(json_next(&s, &v, &e), -1);
	assert_int_equal(json_parse(&a, (struct str){ 0 }, &tree, &e), -1);
	json_quote(&out, (struct str){ 0 }, false);
	assert_string_equal(out.data, "\"\"");
	buf_release(&out);
	arena_release(&a);
}

/* What RFC 8259 does not have, or leaves open. */
static void strict_refuses_more(void **state)
{
	static const struct { const char *text, *error; enum err_code code; } row[] = {
		{ "{\"a\": [1, {\"a\": 1.5e3}], \"A\": \"NaN\"}", "", ERR_NONE },
		{ "[NaN]", "line 1, column 2: expected a value, found 'NaN]'", ERR_PARSE },
		{ "-Infinity", "line 1, column 1: expected a value, found '-Infinity'", ERR_PARSE },
		{ "{\"a\": 1, \"\\u0061\": 2}",
			"line 1, column 21: an object has one key twice: 'a'", ERR_PARSE },
		{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
			"line 1, column 65: nested deeper than JSON_DEPTH_MAX", ERR_LIMIT },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct arena a = { 0 };
		struct json_value *v;
		struct err e = { 0 };
		int rc = json_parse_strict(&a, str_of(row[i].text), &v, &e);

		assert_int_equal(rc, row[i].code == ERR_NONE ? 0 : -1);
		assert_int_equal(e.code, row[i].code);
		assert_string_equal(e.text, row[i].error);
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts),
		cmocka_unit_test(refuses),
		cmocka_unit_test(strict_refuses_more),
		cmocka_unit_test(refuses_what_follows),
		cmocka_unit_test(limits_depth),
		cmocka_unit_test(unescapes),
		cmocka_unit_test(converts),
		cmocka_unit_test(long_numbers),
		cmocka_unit_test(iterates),
		cmocka_unit_test(enters),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(tree_access),
		cmocka_unit_test(writes_as_python),
		cmocka_unit_test(writes_what_is_not_finite), cmocka_unit_test(writes_by_hand),
		cmocka_unit_test(empty_slices),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
