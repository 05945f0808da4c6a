/* SPDX-License-Identifier: Apache-2.0 */
/* Combinations of parameters: files, command lines, names, folders; rows are upstream's answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/sweep/params.h"
#include "core/base/limits.h"
#include "core/json/write.h"
#include "answers.h"
#include "params_golden.h"

#define ROWS(x) (sizeof(x) / sizeof(*(x)))

static struct arena arena;

static int release(void **state)
{
	(void)state;
	arena_release(&arena);
	arena = (struct arena){ 0 };
	return 0;
}

static struct json_value *parse(const char *text)
{
	struct json_value *v;
	struct err e = { 0 };

	if (json_parse(&arena, str_of(text), &v, &e) < 0)
		fail_msg("%s: %s", text, e.text);
	return v;
}

static char *dump(const struct json_value *v)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	char *text;

	json_put_value(&w, v);
	text = arena_text(&arena, buf_str(&out));
	answers_release(&out);
	return text;
}

static char **argv_of(const char *list)
{
	const struct json_value *v = parse(list);
	char **argv = arena_alloc(&arena, (v->count + 1) * sizeof(*argv));

	for (size_t i = 0; i < v->count; i++)
		argv[i] = arena_text(&arena, v->item[i].text);
	return argv;
}

static char *argv_text(char *const *argv)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	char *text;

	json_begin_array(&w);
	for (; *argv; argv++)
		json_put_text(&w, *argv);
	json_end_array(&w);
	text = arena_text(&arena, buf_str(&out));
	answers_release(&out);
	return text;
}

static char *applied(const char *command, const char *comb)
{
	return argv_text(params_apply(parse(comb), argv_of(command), &arena));
}

static char *name_of(const struct json_value *comb, const char *sep)
{
	struct buf out = { 0 };
	char *text;

	if (sep)
		params_text(comb, sep, &out);
	else
		params_name(comb, &out);
	text = arena_text(&arena, buf_str(&out));
	answers_release(&out);
	return text;
}

static void command_lines_are_upstreams(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS(params_golden); i++) {
		const struct params_golden *g = &params_golden[i];
		const struct json_value *comb = parse(g->comb);
		const char *got = applied(g->command, g->comb);

		if (!g->is_ours_other && (!g->want || strcmp(got, g->want) != 0))
			fail_msg("%s with %s:\n%s\nnot\n%s", g->command, g->comb, got, g->want);
		assert_string_equal(name_of(comb, NULL), g->name);
		assert_string_equal(name_of(comb, ", "), g->text);
	}
}

/* Where upstream writes over the next option, fails, or adds what is there already. */
static void command_lines_are_mended(void **state)
{
	static const struct { const char *command, *comb, *want; } rows[] = {
		{ "[\"v\", \"--flag\", \"--next\", \"1\"]", "{\"flag\": \"x\"}",
		  "[\"v\", \"--flag\", \"x\", \"--next\", \"1\"]" },
		{ "[\"v\", \"--flag\", \"-tp\", \"1\"]", "{\"flag\": 2}",
		  "[\"v\", \"--flag\", \"2\", \"-tp\", \"1\"]" },
		{ "[\"v\", \"--flag\"]", "{\"flag\": 2}", "[\"v\", \"--flag\", \"2\"]" },
		{ "[\"v\", \"--seed\", \"-1\"]", "{\"seed\": 2}", "[\"v\", \"--seed\", \"2\"]" },
		{ "[\"v\", \"--x\", \"-.5\"]", "{\"x\": 2}", "[\"v\", \"--x\", \"2\"]" },
		{ "[\"v\", \"--x\", \"-\"]", "{\"x\": 2}", "[\"v\", \"--x\", \"2\"]" },
		{ "[\"v\", \"--a-b=8\", \"--c\", \"1\"]", "{\"a_b\": 32}",
		  "[\"v\", \"--a-b=32\", \"--c\", \"1\"]" },
		{ "[\"v\", \"--a_b=8\"]", "{\"a-b\": 32}", "[\"v\", \"--a-b=32\"]" },
		{ "[\"v\", \"--a_b=8\"]", "{\"a-b\": \"\"}", "[\"v\", \"--a-b=\"]" },
		{ "[\"v\", \"--a.b=true\"]", "{\"a.b\": false}", "[\"v\", \"--a.b=false\"]" },
		{ "[\"v\", \"--a.b=1\"]", "{\"a.b\": 2}", "[\"v\", \"--a.b=2\"]" },
		{ "[\"v\", \"--x=1\"]", "{\"x\": true}", "[\"v\", \"--x\"]" },
		{ "[\"v\", \"--xy=1\"]", "{\"x\": 2}", "[\"v\", \"--xy=1\", \"--x\", \"2\"]" },
		{ "[\"v\", \"--x=1\", \"--x\", \"2\"]", "{\"x\": 3}",
		  "[\"v\", \"--x=1\", \"--x\", \"3\"]" },
		{ "[]", "{\"x\": 3}", "[\"--x\", \"3\"]" },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++)
		assert_string_equal(applied(rows[i].command, rows[i].comb), rows[i].want);
}

static void read_as(const char *text, const char *want, const char *error)
{
	struct params p;
	struct err e = { 0 };
	struct buf got = { 0 };

	if (params_parse(str_of(text), &arena, &p, &e) < 0) {
		assert_int_equal(e.code, ERR_RUN);
		assert_null(want);
		assert_string_equal(e.text, error);
		return;
	}
	buf_add_char(&got, '[');
	for (size_t i = 0; i < p.n; i++)
		buf_printf(&got, "%s%s", i ? ", " : "", dump(&p.item[i]));
	buf_add_char(&got, ']');
	assert_string_equal(got.data, want);
	answers_release(&got);
}

static void files_are_upstreams(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS(params_golden_files); i++) {
		const struct params_golden_file *g = &params_golden_files[i];
		const char *error = g->error;
		char mended[128];

		/* Upstream looks for a name in what is no object before it looks what it is. */
		if (error && strncmp(error, "argument of type '", 18) == 0) {
			snprintf(mended, sizeof(mended), "Each item in the parameter sweep should "
				 "be a dictionary, but found type: <class '%.*s'>",
				 (int)strcspn(error + 18, "'"), error + 18);
			error = mended;
		}
		read_as(g->text, g->want, error);
	}
	read_as("{\"a\": 3}", NULL, "'int' object is not a mapping (a)");
	read_as("{\"a\": \"x\"}", NULL, "'str' object is not a mapping (a)");
	read_as("[{\"a\": \"x\\u0000\"}]", NULL,
		"a key or value with a zero byte cannot be passed on a command line");
	read_as("[{\"_benchmark_name\": \"x\"}, {\"_benchmark_name\": \"y\"}, "
		"{\"_benchmark_name\": \"x\"}, {\"_benchmark_name\": \"y\"}]", NULL,
		"Duplicate _benchmark_name values found: {'x', 'y'}. "
		"All _benchmark_name values must be unique.");
}

static void values_compare_as_in_python(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS(params_golden_links); i++) {
		const struct params_golden_link *g = &params_golden_links[i];

		if (params_equal(parse(g->x), parse(g->y)) != g->is_equal ||
		    params_equal(parse(g->y), parse(g->x)) != g->is_equal)
			fail_msg("%s == %s should be %d", g->x, g->y, g->is_equal);
	}
}

static char *folder_of(const char *serve, const char *bench, const char *const *extra)
{
	return params_folder((struct params_side){ "SERVE-", parse(serve) },
			     (struct params_side){ "BENCH-", parse(bench) }, extra, &arena);
}

static void folders_are_upstreams(void **state)
{
	static const char *const extra[] = { "WL-", "request_rate=7", NULL };

	(void)state;
	for (size_t i = 0; i < ROWS(params_golden_folders); i++)
		assert_string_equal(folder_of(params_golden_folders[i].serve,
					      params_golden_folders[i].bench, NULL),
				    params_golden_folders[i].want);
	for (size_t i = 0; i < ROWS(params_golden_file_names); i++)
		assert_string_equal(params_file_name(str_of(params_golden_file_names[i].text),
						     &arena), params_golden_file_names[i].want);
	assert_string_equal(folder_of("{}", "{\"a\": 1}", extra), "BENCH--a=1-WL--request_rate=7");
	assert_string_equal(folder_of("{}", "{}", NULL), "");
	assert_string_equal(params_folder_single_dash(parse("{\"x\": 1, \"y\": \"/\"}"),
						      parse("{}"), &arena),
			    "SERVE-x=1-y=_-BENCH-");
}

static void folders_fit_file_systems(void **state)
{
	char comb[1200] = "{\"k\": \"", *a, *b;

	(void)state;
	for (size_t i = 0; i < 300; i++) /* 600 bytes, cut within a character or not */
		memcpy(comb + 7 + 2 * i, "\303\251", 2);
	memcpy(comb + 7 + 600, "\"}", 2);
	a = folder_of(comb, "{}", NULL);
	assert_true(strlen(a) <= FILE_NAME_BYTES_MAX && strlen(a) > FILE_NAME_BYTES_MAX - 3);
	assert_int_equal(a[strlen(a) - 17], '~');
	assert_memory_equal(a, "SERVE--k=\303\251", 11);
	assert_true((size_t)(strchr(a, '~') - a) % 2 == 9 % 2); /* whole characters */
	b = folder_of(comb, "{\"x\": 1}", NULL);
	assert_memory_equal(a, b, strlen(a) - 17);
	assert_string_not_equal(a, b);
	assert_string_equal(params_file_name(STR("a\tb\n\177"), &arena), "a%09b%0A%7F");
	assert_string_equal(params_file_name_ending(STR("a"), ".log", &arena), "a.log");
	a = params_file_name_ending((struct str){ comb, 300 }, ".log", &arena);
	assert_int_equal(strlen(a) <= FILE_NAME_BYTES_MAX, 1);
	assert_string_equal(a + strlen(a) - 4, ".log");
}

static void combinations_add_up(void **state)
{
	const struct json_value *x = parse("{\"a\": 1, \"b-c\": 2, \"d_e.f_g\": 3}");

	(void)state;
	assert_string_equal(dump(params_or(x, parse("{\"z\": 0, \"a\": 9}"), &arena)),
			    "{\"a\": 9, \"b-c\": 2, \"d_e.f_g\": 3, \"z\": 0}");
	assert_string_equal(dump(params_with_int(x, "a", -5, &arena)),
			    "{\"a\": -5, \"b-c\": 2, \"d_e.f_g\": 3}");
	assert_string_equal(dump(params_with_text(parse("{}"), "n", "t", &arena)), "{\"n\": \"t\"}");
	assert_true(params_has(x, "a") && params_has(x, "b_c") && params_has(x, "b-c"));
	assert_true(params_has(x, "d-e.f_g") && params_has(x, "d_e.f_g"));
	assert_false(params_has(x, "d-e.f-g") || params_has(x, "z"));
	assert_null(json_get(x, "b_c"));
	assert_int_equal(json_int(json_get(x, "b-c"), 0), 2);
}

static void no_file_is_one_empty_combination(void **state)
{
	struct params p;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(params_read(NULL, &arena, &p, &e), 0);
	assert_int_equal(p.n, 1);
	assert_string_equal(dump(p.item), "{}");
	assert_int_equal(params_read("/nowhere.json", &arena, &p, &e), -1);
	assert_non_null(strstr(e.text, "/nowhere.json"));
	assert_int_equal(params_read(" [{\"a\": 1}, {\"a\": 2}]", &arena, &p, &e), 0);
	assert_int_equal(p.n, 2);
	assert_int_equal(params_read("{\"x\": {\"a\": 1}}", &arena, &p, &e), 0);
	assert_int_equal(p.n, 1);
	assert_int_equal(params_read("[{]", &arena, &p, &e), -1);
	assert_true(str_starts(str_of(e.text), STR("[{]: ")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(command_lines_are_upstreams, release),
		cmocka_unit_test_teardown(command_lines_are_mended, release),
		cmocka_unit_test_teardown(files_are_upstreams, release),
		cmocka_unit_test_teardown(values_compare_as_in_python, release),
		cmocka_unit_test_teardown(folders_are_upstreams, release),
		cmocka_unit_test_teardown(folders_fit_file_systems, release),
		cmocka_unit_test_teardown(combinations_add_up, release),
		cmocka_unit_test_teardown(no_file_is_one_empty_combination, release),
	};

	return cmocka_run_group_tests_name("run_params", tests, NULL, NULL);
}
