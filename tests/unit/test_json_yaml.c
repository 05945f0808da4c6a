/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_yaml.c - YAML texts against the JSON that PyYAML and Python's json make of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "json/write.h"
#include "json/yaml.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void check(const char *yaml, const char *want)
{
	struct arena a = { 0 };
	struct err e = { 0 };
	struct json_value *v = NULL;
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	if (yaml_parse(&a, str_of(yaml), &v, &e) < 0)
		print_error("%s: %s\n", yaml, e.text);
	assert_int_equal(e.code, ERR_NONE);
	json_put_value(&w, v);
	assert_string_equal(out.data, want);
	buf_release(&out);
	arena_release(&a);
}

static void test_words(void **state)
{
	static const char *const rows[][2] = {
		{ "yes", "true" }, { "Off", "false" }, { "TRUE", "true" }, { "~", "null" },
		{ "Null", "null" }, { "nO", "\"nO\"" }, { "y", "\"y\"" },
		{ "12", "12" }, { "-1_000", "-1000" }, { "+7", "7" }, { "0", "0" }, { "017", "15" },
		{ "018", "\"018\"" }, { "0x1f", "31" }, { "0b101", "5" }, { "1:30", "90" },
		{ "0o17", "\"0o17\"" }, { "1:75", "\"1:75\"" },
		{ "1.5", "1.5" }, { "0.50", "0.5" }, { "1.", "1.0" }, { ".5", "0.5" },
		{ "1e5", "\"1e5\"" }, { "1.0e5", "\"1.0e5\"" }, { "1.0e+5", "100000.0" },
		{ "1.5e-3", "0.0015" }, { "1_0.5", "10.5" }, { ".inf", "\"inf\"" },
		{ "-.Inf", "\"-inf\"" }, { ".nan", "null" }, { ".", "\".\"" }, { "1.2.3", "\"1.2.3\"" },
		{ "0.32.0", "\"0.32.0\"" }, { "32k", "\"32k\"" }, { "'12'", "\"12\"" },
		{ "\"yes\"", "\"yes\"" }, { "2024-01-01", "\"2024-01-01\"" }, { "", "null" },
		{ "# nothing", "null" }, { "a b  c", "\"a b  c\"" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		check(rows[i][0], rows[i][1]);
}

static void test_shapes(void **state)
{
	(void)state;
	check("a: 1\nb: [x, 2, {c: d}]\n", "{\"a\": 1, \"b\": [\"x\", 2, {\"c\": \"d\"}]}");
	check("- 1\n- - 2\n  - 3\n-\n", "[1, [2, 3], null]");
	check("a: &x {k: 1}\nb: *x\n", "{\"a\": {\"k\": 1}, \"b\": {\"k\": 1}}");
	check("a: 1\nb: 2\na: 3\n", "{\"a\": 3, \"b\": 2}");
	check("1: x\ntrue: y\n", "{\"1\": \"x\", \"true\": \"y\"}");
	check("a: |\n  one\n  two\nb: >-\n  one\n  two\n",
	      "{\"a\": \"one\\ntwo\\n\", \"b\": \"one two\"}");
	check("---\na: {}\n...\n", "{\"a\": {}}");
}

static void refuse(const char *yaml, enum err_code code, const char *part)
{
	struct arena a = { 0 };
	struct err e = { 0 };
	struct json_value *v;

	assert_int_equal(yaml_parse(&a, str_of(yaml), &v, &e), -1);
	assert_int_equal(e.code, code);
	if (!strstr(e.text, part))
		print_error("%s\n", e.text);
	assert_non_null(strstr(e.text, part));
	arena_release(&a);
}

static void test_refused(void **state)
{
	struct buf deep = { 0 };

	(void)state;
	refuse("a: [1, 2\nb: 3\n", ERR_PARSE, "line ");
	refuse("a: *nothing\n", ERR_PARSE, "line 1");
	refuse("a: !!python/object:os.system x\n", ERR_PARSE, "line 1, column 4: a tag");
	refuse("x: &x {k: 1}\ny:\n  <<: *x\n", ERR_PARSE, "line 3, column 3: merge keys");
	refuse("? [a]\n: 1\n", ERR_PARSE, "a key that is no text");
	refuse("a: 1\n---\nb: 2\n", ERR_PARSE, "a second document");
	refuse("&a [*a]\n", ERR_LIMIT, "JSON_DEPTH_MAX");
	for (int i = 0; i < 100; i++)
		buf_add_text(&deep, "[");
	for (int i = 0; i < 100; i++)
		buf_add_text(&deep, "]");
	refuse(deep.data, ERR_LIMIT, "JSON_DEPTH_MAX");
	buf_reset(&deep);
	/* Nine lists of ten times the one before: 10^9 values. */
	buf_add_text(&deep, "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 9; i++) {
		buf_printf(&deep, "l%d: &l%d [", i, i);
		for (int k = 0; k < 10; k++)
			buf_printf(&deep, "%s*l%d", k ? ", " : "", i - 1);
		buf_add_text(&deep, "]\n");
	}
	refuse(deep.data, ERR_LIMIT, "YAML_VALUES_MAX");
	buf_release(&deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words), cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("json_yaml", tests, NULL, NULL);
}
