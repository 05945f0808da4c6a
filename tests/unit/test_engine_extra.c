/* SPDX-License-Identifier: Apache-2.0 */
/* test_engine_extra.c - help of a server read, compared with the table, kept and read again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "help_sample.h"
#include "host/engine/extra.h"

static void read_sample(struct arena *a, struct engine_extra *out)
{
	struct err e = { 0 };

	if (engine_help_read(str_of(help_sample), a, out, &e) < 0)
		fail_msg("%s", e.text);
}

static void test_help(void **state)
{
	static const struct {
		const char *name, *also, *group;
		enum engine_kind kind;
		const char *initial, *choices, *about;
		unsigned flags;
	} rows[] = {
		{ "headless", "", "Server", ENGINE_FLAG, "false", "", "Run without a server.", 0 },
		{ "api-server-count", "-asc", "Server", ENGINE_INT, "5", "", "Processes.", 0 },
		{ "gpu-memory-utilization", "", "CacheConfig", ENGINE_REAL, "0.92", "",
		  "The share. More text.", 0 },
		{ "enable-warp", "", "CacheConfig", ENGINE_SWITCH, "true", "",
		  "Goes faster: see the page (not here).", 0 },
		{ "warp-factor", "", "CacheConfig", ENGINE_INT, "9", "", "How fast.", 0 },
		{ "warp-ratio", "", "CacheConfig", ENGINE_REAL, "0.5", "", "A share.", 0 },
		{ "warp-mode", "", "CacheConfig", ENGINE_TEXT, "fast", "fast faster", "Which.",
		  ENGINE_NONE },
		{ "warp-form", "-wf", "CacheConfig", ENGINE_TEXT, "a", "a b", "Which.", 0 },
		{ "warp-names", "", "CacheConfig", ENGINE_LIST, NULL, "", "Names.", 0 },
		{ "warp-points", "", "CacheConfig", ENGINE_LIST, "[1]", "1 2", "Points.", 0 },
		{ "warp-token", "", "CacheConfig", ENGINE_TEXT, NULL, "", "A token.",
		  ENGINE_OPTIONAL },
		{ "warp-config", "", "CacheConfig", ENGINE_JSON, "{\"a\": 1}", "",
		  "Should be JSON.", 0 },
		{ "warp-old", "", "CacheConfig", ENGINE_TEXT, NULL, "", "Underscores.", 0 },
		{ "warp-none", "", "CacheConfig", ENGINE_TEXT, NULL, "", "No default at all", 0 },
		{ "dtype", "", "CacheConfig", ENGINE_TEXT, "auto", "auto half warp16",
		  "Data type.", 0 },
		{ "port", "", "CacheConfig", ENGINE_INT, "8000", "", "Port.", 0 },
		{ "enforce-eager", "", "CacheConfig", ENGINE_TEXT, NULL, "",
		  "No longer a switch.", 0 },
	};
	struct engine_extra told;
	struct arena a = { 0 };

	(void)state;
	read_sample(&a, &told);
	assert_int_equal(told.n, sizeof(rows) / sizeof(*rows));
	for (size_t i = 0; i < told.n; i++) {
		const struct engine_arg *arg = &told.arg[i];

		assert_string_equal(arg->name, rows[i].name);
		assert_string_equal(arg->also, rows[i].also);
		assert_string_equal(arg->group, rows[i].group);
		if (arg->kind != rows[i].kind)
			fail_msg("%s: kind %s", arg->name, engine_kind_name(arg->kind));
		assert_true(!arg->initial == !rows[i].initial);
		if (arg->initial)
			assert_string_equal(arg->initial, rows[i].initial);
		assert_string_equal(arg->choices, rows[i].choices);
		assert_true(strncmp(arg->about, rows[i].about, 9) == 0);
		assert_int_equal(arg->flags, rows[i].flags);
	}
	arena_release(&a);
}

static bool has(const struct engine_change *change, size_t n, const char *name, const char *what)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(change[i].arg->name, name) == 0)
			return strcmp(change[i].what, what) == 0;
	return false;
}

static void test_compare(void **state)
{
	struct engine_changes c;
	struct engine_extra told;
	struct arena a = { 0 };

	(void)state;
	read_sample(&a, &told);
	engine_extra_compare(&told, &a, &c);
	assert_int_equal(c.n_added, 11);
	assert_true(has(c.added, c.n_added, "warp-mode", ""));
	assert_false(has(c.added, c.n_added, "port", ""));
	assert_true(has(c.gone, c.n_gone, "tensor-parallel-size", ""));
	assert_false(has(c.gone, c.n_gone, "dtype", ""));
	assert_true(has(c.changed, c.n_changed, "enforce-eager", "a text, was a switch"));
	for (size_t i = 0; i < c.n_changed; i++)
		if (strcmp(c.changed[i].arg->name, "dtype") == 0)
			assert_non_null(strstr(c.changed[i].what, "warp16 is new"));
	arena_release(&a);
}

static void test_kept(void **state)
{
	struct engine_extra told, again;
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	read_sample(&a, &told);
	told.version = "9.9";
	engine_extra_write(&told, &w);
	if (engine_extra_parse(buf_str(&text), &a, &again, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(again.version, "9.9");
	assert_int_equal(again.n, told.n);
	for (size_t i = 0; i < told.n; i++) {
		assert_string_equal(again.arg[i].name, told.arg[i].name);
		assert_string_equal(again.arg[i].choices, told.arg[i].choices);
		assert_string_equal(again.arg[i].also, told.arg[i].also);
	}
	/* One of the table keeps its range, which help does not tell. */
	assert_true(engine_extra_find(&again, STR("gpu_memory_utilization"))->max == 1);
	assert_int_equal(engine_extra_find(&again, STR("enforce_eager"))->kind, ENGINE_TEXT);
	assert_int_equal(engine_extra_find(&again, STR("warp-mode"))->flags, ENGINE_NONE);
	assert_null(engine_extra_find(&again, STR("warp")));
	assert_null(engine_extra_find(NULL, STR("warp-mode")));
	arena_release(&a);
	buf_release(&text);
}

static void test_bad_files(void **state)
{
	static const struct { const char *json, *message; } rows[] = {
		{ "", "JSON" }, { "[]", "expected an object with a list" },
		{ "{\"arguments\": {}}", "expected an object with a list" },
		{ "{\"arguments\": [1]}", "an argument's name is ''" },
		{ "{\"arguments\": [{\"name\": \"A b\"}]}", "an argument's name is 'A b'" },
		{ "{\"arguments\": [{\"name\": \"a\", \"kind\": \"x\"}]}", "a: kind is 'x'" },
		{ "{\"arguments\": [{\"name\": \"a\"}]}", "a: kind is ''" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct engine_extra out;
		struct arena a = { 0 };
		struct err e = { 0 };

		assert_int_equal(engine_extra_parse(str_of(rows[i].json), &a, &out, &e), -1);
		if (i && !strstr(e.text, rows[i].message))
			fail_msg("%s: got %s", rows[i].json, e.text);
		arena_release(&a);
	}
}

static void test_no_help(void **state)
{
	static const char *const texts[] = { "", "\n\n", "vllm: not found\n", "options:\n", "  --x\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct engine_extra out;
		struct arena a = { 0 };
		struct err e = { 0 };

		assert_int_equal(engine_help_read(str_of(texts[i]), &a, &out, &e), -1);
		assert_non_null(strstr(e.text, "no argument is found"));
		arena_release(&a);
	}
}

static void test_value_text(void **state)
{
	static const struct { const char *name, *text; } rows[] = {
		{ "gpu-memory-utilization", "number above 0 to 1" }, { "headless", "flag" },
		{ "enforce-eager", "true or false" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf text = { 0 };

		engine_arg_value_text(engine_arg_find(str_of(rows[i].name)), &text);
		assert_string_equal(text.data, rows[i].text);
		buf_release(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_help),	  cmocka_unit_test(test_compare),
		cmocka_unit_test(test_kept),	  cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_no_help),	  cmocka_unit_test(test_value_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
