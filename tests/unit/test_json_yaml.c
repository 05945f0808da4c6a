/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_yaml.c - YAML texts against the JSON that PyYAML and Python's json make of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "core/json/write.h"
#include "core/json/yaml.h"

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
	/* Merge keys: the object's own keys win, then the first of what is merged. */
	check("x: &x {k: 1, l: 2}\ny:\n  <<: *x\n  l: 3\n",
	      "{\"x\": {\"k\": 1, \"l\": 2}, \"y\": {\"l\": 3, \"k\": 1}}");
	check("x: &x {k: 1}\ny: &y {<<: *x, k: 2, m: 3}\nz: {<<: [*x, *y]}\n",
	      "{\"x\": {\"k\": 1}, \"y\": {\"k\": 2, \"m\": 3}, \"z\": {\"k\": 1, \"m\": 3}}");
	check("\"<<\": 1\n", "{\"<<\": 1}");
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
	refuse("x: &x 1\ny:\n  <<: *x\n", ERR_PARSE, "line 1, column 4: expected what << merges");
	refuse("x: &x {k: 1}\ny: {<<: [*x, 2]}\n", ERR_PARSE, "line 2, column 14: expected what");
	refuse("x: &x\n  <<: *x\n", ERR_LIMIT, "JSON_DEPTH_MAX");
	refuse("? [a]\n: 1\n", ERR_PARSE, "a key that is not a text");
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
	/* Nine objects, each of which merges the one before ten times. */
	buf_reset(&deep);
	buf_add_text(&deep, "l0: &l0 {k: 1}\n");
	for (int i = 1; i < 9; i++) {
		buf_printf(&deep, "l%d: &l%d {<<: [", i, i);
		for (int k = 0; k < 10; k++)
			buf_printf(&deep, "%s*l%d", k ? ", " : "", i - 1);
		buf_add_text(&deep, "]}\n");
	}
	refuse(deep.data, ERR_LIMIT, "YAML_VALUES_MAX");
	buf_release(&deep);
}

/* ---- what texts cost ---- */

#ifdef __SANITIZE_ADDRESS__
#define SHORT_BYTES 10000  /* ten times slower there */
#define TRIES 2
#else
#define SHORT_BYTES 100000
#define TRIES 5
#endif
#define LONG_BYTES (10 * SHORT_BYTES)
#define REFUSED_S_MAX 0.2 /* of CPU time */
#define GROWTH_MAX 40     /* from SHORT to LONG: 10 is linear, 100 quadratic */
#define NOISE_S 0.05

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct shape {
	const char *first, *unit;  /* %d in a unit is the number of the repeat */
	const char *limit;         /* refused by this limit; NULL: whatever comes of it */
};

static void make(const struct shape *s, size_t bytes, struct buf *out)
{
	buf_reset(out);
	buf_add_text(out, s->first);
	for (int i = 0; out->len < bytes; i++) {
		const char *number = strstr(s->unit, "%d");

		if (number)
			buf_printf(out, "%.*s%d%s", (int)(number - s->unit), s->unit, i, number + 2);
		else
			buf_add_text(out, s->unit);
	}
}

/* The least CPU time of a few tries. */
static double cost_of(struct str text, const char *limit)
{
	double least = 1e9;

	for (int i = 0; i < TRIES; i++) {
		struct arena a = { 0 };
		struct json_value *v;
		struct err e = { 0 };
		double began = cpu_s(), took;
		int rc = yaml_parse(&a, text, &v, &e);

		took = cpu_s() - began;
		least = took < least ? took : least;
		if (limit) {
			assert_int_equal(rc, -1);
			assert_int_equal(e.code, ERR_LIMIT);
			assert_non_null(strstr(e.text, limit));
			assert_true(strncmp(e.text, "line ", 5) == 0);
		}
		arena_release(&a);
	}
	return least;
}

static void test_nesting_is_limited_while_it_is_read(void **state)
{
	static const struct shape shapes[] = {
		{ "a: ", "[", "JSON_DEPTH_MAX" }, { "a: ", "{", "JSON_DEPTH_MAX" },
		{ "a: ", "[{", "JSON_DEPTH_MAX" }, { "a: ", "{a: ", "JSON_DEPTH_MAX" },
		{ "a: ", "[a, [", "JSON_DEPTH_MAX" }, { "a: ", "[\n", "JSON_DEPTH_MAX" },
		{ "", "- ", "JSON_DEPTH_MAX" }, { "", "? ", "JSON_DEPTH_MAX" },
		{ "", "- ? ", "JSON_DEPTH_MAX" }, { "a: ", "{? [", "JSON_DEPTH_MAX" },
		{ "a: ", "&a%d [", "JSON_DEPTH_MAX" }, { "", "- &a%d\n  - ", NULL },
		{ "- &a x\n- ", "[*a, {b: ", "JSON_DEPTH_MAX" },
		{ "a: [", "&a%d x, ", "YAML_ANCHORS_MAX" },
		{ "a: [", "&a%d [], ", "YAML_ANCHORS_MAX" },
		{ "", "%TAG !t%d! tag:x,2000:\n", "YAML_DIRECTIVES_MAX" },
	};
	struct buf text = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(shapes); i++) {
		double took_s;

		make(&shapes[i], LONG_BYTES, &text);
		took_s = cost_of(buf_str(&text), shapes[i].limit);
		print_message("# %.20s: %.1f ms\n", text.data, took_s * 1e3);
		assert_true(took_s < REFUSED_S_MAX);
	}
	/* Blocks, each further in than the one around it. */
	buf_reset(&text);
	for (int depth = 0; text.len < LONG_BYTES; depth++)
		buf_printf(&text, "%*sa:\n", depth, "");
	assert_true(cost_of(buf_str(&text), "JSON_DEPTH_MAX") < REFUSED_S_MAX);
	buf_release(&text);
}

static void test_cost_grows_with_length(void **state)
{
	static const struct shape shapes[] = {
		{ "a: ", "x", NULL }, { "a: ", "x ", NULL }, { "a: ", "x\n ", NULL },
		{ "a: \"", "x\\n", NULL }, { "a: '", "''", NULL }, { "a: |\n", " x\n", NULL },
		{ "# ", "#", NULL }, { "", "# x\n", NULL }, { "", "\n", NULL }, { "a: ", " ", NULL },
		{ "a: [", "x, ", NULL }, { "a: [", "[], ", NULL }, { "a: [", "{a: b}, ", NULL },
		{ "a: [", "x: y, ", NULL }, { "a: {", "? k%d : v, ", NULL },
		{ "", "k%d: v\n", NULL }, { "", "? k%d\n: v\n", NULL }, { "", "- x\n", NULL },
		{ "", "- [x, {y: z}]\n", NULL }, { "- &a x\n", "- *a\n", NULL },
		{ "", "--- x\n", NULL }, { "a: b\n", "...\n---\n", NULL }, { "a: [", "!t x, ", NULL },
		{ "", "]", NULL }, { "", "}", NULL }, { "a: ", ": ", NULL }, { "", "x: ", NULL },
		{ "&", "a", NULL }, { "a: !", "a", NULL }, { "a: \"", "\n", NULL }, { "a: ", "\t", NULL },
		{ "%", "a", NULL }, { "a: |", "\n", NULL }, { "k: [", "\"x\":y,", NULL },
	};
	struct buf text = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(shapes); i++) {
		double few_s, many_s;

		make(&shapes[i], SHORT_BYTES, &text);
		few_s = cost_of(buf_str(&text), NULL);
		make(&shapes[i], LONG_BYTES, &text);
		many_s = cost_of(buf_str(&text), NULL);
		if (many_s >= few_s * GROWTH_MAX + NOISE_S)
			print_error("%.20s: %g s, then %g s\n", text.data, few_s, many_s);
		assert_true(many_s < few_s * GROWTH_MAX + NOISE_S);
	}
	/* As many aliases as there may be values, of as many anchors as there may be. */
	buf_reset(&text);
	buf_add_text(&text, "a: [");
	for (int i = 0; i < 256; i++)
		buf_printf(&text, "&anchor%d x, ", i);
	while (text.len < LONG_BYTES)
		buf_add_text(&text, "*anchor255, ");
	buf_add_text(&text, "]");
	print_message("# aliases: %.1f ms\n", cost_of(buf_str(&text), NULL) * 1e3);
	assert_true(cost_of(buf_str(&text), NULL) < 1);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words), cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nesting_is_limited_while_it_is_read),
		cmocka_unit_test(test_cost_grows_with_length),
	};

	return cmocka_run_group_tests_name("json_yaml", tests, NULL, NULL);
}
