/* SPDX-License-Identifier: Apache-2.0 */
/* test_config_names.c - keys with dots, and how deep a configuration may be nested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/json/write.h"
#include "experiment/config/config.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define DEEP "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"
#define OBJECTS "{a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: " \
		"{a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: "
#define ENDS "}}}}}}}}}}}}}}}}}}}}}}}}}"
#define TOO_DEEP "nested deeper than the 48 levels of EXPERIMENT_DEPTH_MAX"

/* What is written with dots in a file is the object that --set and other files change. */
static void test_dots(void **state)
{
	static const struct { const char *text, *set, *tree; } rows[] = {
		{ "server: {env.A: 1, env: {B: 2}, ready.log: x, a.b: 1}\n", "server.env.A=3",
		  "{\"server\": {\"env\": {\"B\": 2, \"A\": 3}, \"ready\": {\"log\": \"x\"}, "
		  "\"a.b\": 1}}" },
		{ "benchmark: {extra_body: '{\"a\": 1}', extra_body.b.c: 2, extra_body.b.d: 3}\n",
		  "output.upload.url=u", "{\"benchmark\": {\"extra_body\": {\"a\": 1, \"b\": "
		  "{\"c\": 2, \"d\": 3}}}, \"output\": {\"upload\": {\"url\": \"u\"}}}" },
		{ "experiments: [{servers: [{env.A: 1}]}]\n", "benchmark.extra_body={\"a\": 2}",
		  "{\"experiments\": [{\"servers\": [{\"env\": {\"A\": 1}}]}], \"benchmark\": "
		  "{\"extra_body\": {\"a\": 2}}}" },
		{ "output: {upload.url: x}\n", "output.upload=null", "{\"output\": {\"upload\": null}}" },
		{ "server: {env.A: 1, env: {A: 2}}\n", "a=1",
		  "exp.yaml:1:17: server.env: A is given twice; remove one of the two" },
		{ "server: {ready.log: x, ready: port}\n", "a=1", "exp.yaml:1:21: server.ready: is the "
		  "text 'port', and is also given by its members; remove one of the two" },
		{ "output: {upload..url: x}\n", "a=1",
		  "exp.yaml:1:23: output: upload..url: a key is empty" },
		{ "a: 1\n", "b." DEEP "." DEEP "=1", "--set b." DEEP "." DEEP "=1: b." DEEP
		  ".a.a.a.a.a.a.a.a.a.a.a.a.a.a.: " TOO_DEEP },
		{ "server: " OBJECTS OBJECTS "1" ENDS ENDS "\n", "a=1", "exp.yaml:1:197: " TOO_DEEP },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct arena a = { 0 };
		struct buf out = { 0 };
		struct json_writer w = json_writer(&out);
		struct config c;
		struct err e = { 0 };

		w.is_python = true;
		if (config_parse(str_of(rows[i].text), "exp.yaml", &rows[i].set, 1, &a, &c, &e) < 0)
			buf_add_text(&out, e.text);
		else
			json_put_value(&w, c.tree);
		assert_string_equal(out.data, rows[i].tree);
		buf_release(&out);
		arena_release(&a);
	}
}

static void test_experiment(void **state)
{
	static const struct { const char *text, *found; } rows[] = {
		{ "server: {}\nbenchmark.num_prompts: 3\n", "exp.yaml:2:1: benchmark.num_prompts: a path "
		  "with dots is for --set and matrix; write benchmark: {num_prompts: ...}" },
		{ "server: {}\ntags: {a: " OBJECTS "1" ENDS "}\nprovenance: {a: " OBJECTS "\"${tags.a}\""
		  ENDS "}\n", TOO_DEEP },
		{ "server: {extra_args: [a]}\n", "server.env.A: write env: {A: ...}" },
	};
	static const char *const sets[] = { "server={env.A: 1}" };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct config_findings f = { 0 };
		struct arena a = { 0 };
		struct experiment x;
		struct config c;
		struct err e = { 0 };

		assert_int_equal(config_parse(str_of(rows[i].text), "exp.yaml", sets, i == 2, &a, &c, &e),
				 0);
		assert_int_equal(config_experiment(&c, c.tree, NULL, &a, &x, &f), -1);
		assert_non_null(strstr(f.errors.data, rows[i].found));
		config_findings_release(&f);
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dots), cmocka_unit_test(test_experiment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
