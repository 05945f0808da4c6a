/* SPDX-License-Identifier: Apache-2.0 */
/* test_experiment_config.c - configurations: what is read, what is refused and in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/limits.h"
#include "config_params.h"
#include "experiment/config.h"
#include "json/write.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct made {
	struct arena a;
	struct config c;
	struct experiment x;
	struct config_findings f;
	struct err e;
	int rc;
};

static void make_with(struct made *m, const char *text, const char *const *sets, size_t n_sets,
		      const struct config_know *know)
{
	*m = (struct made){ 0 };
	m->rc = config_parse(str_of(text), "exp.yaml", sets, n_sets, &m->a, &m->c, &m->e);
	if (m->rc == 0)
		m->rc = config_experiment(&m->c, m->c.tree, know, &m->a, &m->x, &m->f);
}

static void make(struct made *m, const char *text)
{
	make_with(m, text, NULL, 0, NULL);
}

static void drop(struct made *m)
{
	config_findings_release(&m->f);
	arena_release(&m->a);
}

static const char *errors(const struct made *m)
{
	return m->e.code ? m->e.text : m->f.errors.data ? m->f.errors.data : "";
}

/* All that differs is shown before a test fails. */
static int differing;

static void expect(const char *what, const char *got, const char *want)
{
	if (strcmp(got, want) == 0)
		return;
	print_error("%s:\n got  %s\n want %s\n", what, got, want);
	differing++;
}

static void none_differs(void)
{
	int n = differing;

	differing = 0;
	assert_int_equal(n, 0);
}

static char *words_of(const struct made *m)
{
	char *const *words = config_server_words(m->x.server, (struct arena *)(uintptr_t)&m->a);
	static char text[4096];
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; words[i]; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "", words[i]);
	return text;
}

/* ---- the table ---- */

static const char *with_line(const struct param *p)
{
	return *p->with ? "\n  " : "";
}

static void check_refused(const char *section, const struct param *p, const char *head)
{
	char text[2048], want[2048];
	struct made m;

	if (!*p->bad)
		return;
	snprintf(text, sizeof(text), "%s\n  %s: %s%s%s\n", head, p->key, p->bad, with_line(p),
		 p->with);
	make(&m, text);
	snprintf(want, sizeof(want), "exp.yaml:%d:%zu: %s.%s: %s\n",
		 strcmp(section, "server") == 0 ? 4 : 3, strlen(p->key) + 5, section, p->key,
		 p->message);
	expect(p->key, errors(&m), want);
	drop(&m);
}

static void test_server_params(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(server_params); i++) {
		const struct param *p = &server_params[i];
		char text[2048];
		struct made m;

		snprintf(text, sizeof(text), "server:\n  command: vllm serve\n  %s: %s%s%s\n", p->key,
			 p->good, with_line(p), p->with);
		make(&m, text);
		expect(p->key, errors(&m), "");
		expect(p->key, words_of(&m), p->made);
		assert_non_null(json_get(m.x.server->values, p->key));
		drop(&m);
		check_refused("server", p, "benchmark: {}\nserver:\n  command: vllm serve");
	}
	none_differs();
}

static void test_bench_params(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(bench_params); i++) {
		const struct param *p = &bench_params[i];
		struct buf json = { 0 };
		struct json_writer w = json_writer(&json);
		char text[2048];
		struct made m;

		snprintf(text, sizeof(text), "server: {}\nbenchmark:\n  %s: %s%s%s\n", p->key, p->good,
			 with_line(p), p->with);
		make(&m, text);
		expect(p->key, errors(&m), "");
		json_put_value(&w, json_get(m.x.benchmark, p->key));
		expect(p->key, json.data, p->made);
		buf_release(&json);
		drop(&m);
		check_refused("benchmark", p, "server: {}\nbenchmark:");
	}
	none_differs();
	assert_true(COUNT(server_params) + COUNT(bench_params) >= 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server_params), cmocka_unit_test(test_bench_params),
	};

	return cmocka_run_group_tests_name("experiment_config", tests, NULL, NULL);
}
