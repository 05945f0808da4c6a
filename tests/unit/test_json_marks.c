/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_json_marks.c - positions of values in YAML and JSON, and results for texts that are neither.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/json/marks.h"
#include "core/json/write.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct doc {
	struct arena a;
	struct json_marks m;
	struct json_value *v;
	struct err e;
	int rc;
};

static void read_doc(struct doc *d, const char *text, bool is_json)
{
	*d = (struct doc){ 0 };
	d->m.arena = &d->a;
	d->rc = (is_json ? json_parse_marked : yaml_parse_marked)(&d->a, str_of(text), "f", &d->m,
								  &d->v, &d->e);
}

/* "a.b.0": down to a value. */
static const struct json_value *at(const struct json_value *v, const char *path)
{
	struct str rest = str_of(path);

	while (rest.n) {
		struct str key = str_cut(&rest, '.');
		char name[32];
		int64_t place;

		snprintf(name, sizeof(name), "%.*s", (int)key.n, key.p);
		v = v->kind == JSON_ARRAY && str_to_i64(key, &place) ? &v->item[place] :
			json_get(v, name);
		assert_non_null(v);
	}
	return v;
}

static void test_places(void **state)
{
	static const char yaml[] = "# head\na: 1\nb:\n  - x\n  - {c: 'two', \"d\":   [3]}\ne: |\n  text\n"
				   "f: &f {g: 1}\nh: *f\n\xc3\xa4: z\n";
	static const char json[] = "{\"a\": 1,\n \"b\": [\"x\",\n  {\"c\": \"t\\\"wo\", \"d\" :  [3]}],\n"
				   "\"n\": null, \"t\": true}";
	static const struct {
		bool is_json;
		const char *path;
		unsigned line, column, key_line, key_column;
	} rows[] = {
		{ false, "a", 2, 4, 2, 1 }, { false, "b", 4, 3, 3, 1 }, { false, "b.0", 4, 5, 0, 0 },
		{ false, "b.1", 5, 5, 0, 0 }, { false, "b.1.c", 5, 9, 5, 6 },
		{ false, "b.1.d", 5, 23, 5, 16 }, { false, "b.1.d.0", 5, 24, 0, 0 },
		{ false, "e", 6, 4, 6, 1 }, { false, "f.g", 8, 11, 8, 8 }, { false, "h.g", 8, 11, 8, 8 },
		{ false, "\xc3\xa4", 10, 4, 10, 1 }, { false, "", 2, 1, 0, 0 },
		{ true, "", 1, 1, 0, 0 }, { true, "a", 1, 7, 1, 2 }, { true, "b", 2, 7, 2, 2 },
		{ true, "b.0", 2, 8, 0, 0 }, { true, "b.1", 3, 3, 0, 0 }, { true, "b.1.c", 3, 9, 3, 4 },
		{ true, "b.1.d", 3, 25, 3, 18 }, { true, "b.1.d.0", 3, 26, 0, 0 },
		{ true, "n", 4, 6, 4, 1 }, { true, "t", 4, 17, 4, 12 },
	};
	struct doc d[2];

	(void)state;
	read_doc(&d[0], yaml, false);
	read_doc(&d[1], json, true);
	assert_true(d[0].rc == 0 && d[1].rc == 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct doc *of = &d[rows[i].is_json];
		struct json_mark m = json_marks_get(&of->m, at(of->v, rows[i].path));

		if (m.line != rows[i].line || m.column != rows[i].column ||
		    m.key_line != rows[i].key_line || m.key_column != rows[i].key_column)
			fail_msg("%s: %u:%u, key %u:%u", rows[i].path, m.line, m.column, m.key_line,
				 m.key_column);
		assert_string_equal(m.file, "f");
	}
	assert_string_equal(at(d[1].v, "b.1.c")->text.p, "t\"wo");
	arena_release(&d[0].a);
	arena_release(&d[1].a);
}

static void test_refused(void **state)
{
	static const struct { bool is_json; const char *text, *want; } rows[] = {
		{ false, "a: 1\nb: {c: 1, c: 2}\n", "2:11: the key 'c' appears twice; it is also at 2:5" },
		{ false, "a:\n\tb: 1\n", "2:1: a tab; YAML is indented with blanks" },
		{ false, "a: [1\n", "2:1: did not find expected ',' or ']'" },
		{ false, "a: \xff\n", "1:1: byte 3: " },
		{ false, "x: 1\n? [a]\n: 1\n", "2:3: a key that is not a text" },
		{ true, "", "1:1: expected a value, found the end of the text" },
		{ true, "{\"a\": 1,\n\"a\": 2}", "2:1: the key 'a' appears twice; it is also at 1:2" },
		{ true, "{\"a\": 1}\nx", "2:1: expected nothing after the value" },
		{ true, "[1,\n 2\n 3]", "3:2: expected ',' or ']'" },
		{ true, "{\"a\" 1}", "1:6: expected ':' after the key" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct doc d;

		read_doc(&d, rows[i].text, rows[i].is_json);
		assert_int_equal(d.rc, -1);
		if (!strstr(d.e.text, rows[i].want))
			fail_msg("%s: %s", rows[i].text, d.e.text);
		arena_release(&d.a);
	}
}

/* "off" may be a word where words are chosen among. */
static void test_words_keep_their_spelling(void **state)
{
	struct doc d;

	(void)state;
	read_doc(&d, "a: off\nb: Yes\nc: 'off'\nd: ~\n", false);
	assert_true(str_is(at(d.v, "a")->raw, "off") && at(d.v, "a")->kind == JSON_FALSE);
	assert_true(str_is(at(d.v, "b")->raw, "Yes") && at(d.v, "b")->kind == JSON_TRUE);
	assert_int_equal(at(d.v, "c")->kind, JSON_STRING);
	assert_int_equal(at(d.v, "d")->raw.n, 0);
	arena_release(&d.a);
}

static void test_many(void **state)
{
	struct buf text = { 0 };
	struct json_value moved;
	struct doc d;

	(void)state;
	buf_add_char(&text, '[');
	for (int i = 0; i < 100000; i++)
		buf_printf(&text, "%s%d", i ? ",\n" : "", i % 10);
	buf_add_char(&text, ']');
	read_doc(&d, text.data, true);
	assert_int_equal(d.rc, 0);
	for (unsigned i = 0; i < 100000; i += 997)
		assert_int_equal(json_marks_get(&d.m, &d.v->item[i]).line, i + 1);
	moved = d.v->item[7];
	assert_null(json_marks_get(&d.m, &moved).file);
	json_marks_copy(&d.m, &d.v->item[7], &moved);
	assert_int_equal(json_marks_get(&d.m, &moved).line, 8);
	arena_release(&d.a);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_words_keep_their_spelling), cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests_name("json_marks", tests, NULL, NULL);
}
