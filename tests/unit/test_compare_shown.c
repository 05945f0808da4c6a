/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_compare_shown.c - a comparison of three sides as a page and as text, a folder of sweeps with
 * the starts of its servers, and conditions on the runs of one operand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ANSWERS_MAX 100
#include "core/base/file.h"
#include "out/compare/compare.h"
#include "answers.h"
#include "scratch.h"

#define COUNT(x) (sizeof(x) / sizeof(*(x)))

static const char *result(struct arena *a, double throughput, double ttft, const char *more)
{
	return arena_printf(a, "{\"model_id\": \"m\", \"request_rate\": \"inf\", \"completed\": 100, "
			    "\"failed\": 0, \"total_output_tokens\": 1000, \"output_throughput\": %.3f, "
			    "\"median_ttft_ms\": %.3f%s}", throughput, ttft, more);
}

/* The text up to each of the marks is an answer. */
static void check_pieces(const char *text, const char *const *mark, size_t n)
{
	while (text) {
		const char *end = NULL;

		for (size_t i = 0; i < n; i++) {
			const char *at = strstr(text + 1, mark[i]);

			end = at && (!end || at < end) ? at : end;
		}
		answers_check(text, end ? (size_t)(end - text) : strlen(text));
		text = end;
	}
}

static void check_shown(const char *const *path, size_t n, const struct compare_opts *o)
{
	static const char *const mark[] = { "<h2>", "<svg", "<details>", "<ul>" };
	struct bench_comparison c;
	struct arena a = { 0 };
	struct buf text = { 0 }, page = { 0 };
	struct err e = { 0 };

	if (compare_load(&c, o, path, n, &a, &e) < 0 || compare_judge(&c, &e) < 0)
		fail_msg("%s", e.text);
	compare_text(&c, true, &text);
	answers_release(&text);
	compare_html(&c, &page);
	check_pieces(strstr(page.data, "</head>"), mark, COUNT(mark));
	buf_release(&page);
	compare_release(&c);
	arena_release(&a);
}

/* Two loads of two lengths each: two runs of the first side, three of the second. */
static void three_sides(void **state)
{
	static const char *const side[] = { "old", "new", "other" };
	static const struct compare_opts o = { .alpha = 0.05, .min_effect = -1,
					       .is_each_run = true };
	struct arena a = { 0 };
	const char *path[3];

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		path[k] = arena_printf(&a, "%s/%s", dir, side[k]);
		for (size_t i = 0; i < (k == 2 ? 1 : 4 * (2 + k)); i++) {
			double v = (k ? 1.25 : 1) * (100 + 80 * (double)(i % 4)) *
				   (1 + 0.01 * (double)(i / 4));

			scratch_put(&a, arena_printf(&a, "%s/%zu.json", side[k], i),
			    result(&a, v, 10 + (double)(i % 4) + 0.01 * (double)i,
				   arena_printf(&a, ", \"max_concurrency\": %zu, \"random_input_len\": "
						"%d", k == 2 ? 99 : 4 + 4 * (i % 2),
						i % 4 < 2 ? 128 : 1024)));
		}
	}
	check_shown(path, 2, &o);
	check_shown(path, 3, &o);
	arena_release(&a);
}

/* How many sessions an operand has: the starts, and one for each summary.json. */
static void check_sessions(const char *from, const char *operand, unsigned sessions)
{
	static const struct compare_opts o = { .alpha = 0.05, .min_effect = -1 };
	struct bench_comparison c;
	struct arena a = { 0 };
	struct err e = { 0 };
	char here[4096];

	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(from), 0);
	if (compare_load(&c, &o, &operand, 1, &a, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(chdir(here), 0);
	assert_int_equal(c.side[0].sessions, sessions);
	compare_release(&c);
	arena_release(&a);
}

/* Runs 15 s after each other, the last one at an unknown time. */
static const char *more(struct arena *a, size_t i)
{
	long long start_s = i == 3 ? 0 : 1767225600 + 15 * (long long)i;

	return arena_printf(a, ", \"run_number\": %zu, \"profllm\": {\"start_ns\": %lld}", i,
			    start_s * 1000000000);
}

/* Which start of a server a run belongs to, and how servers were started otherwise. */
static void sweeps(void **state)
{
	static const struct compare_opts o = { .alpha = 0.05, .min_effect = -1 };
	static const char *const servers[] = {
		"[{\"start_ns\": 1767225600000000000, \"command\": [\"serve\", \"m\", \"--port\", \"1\", "
		"\"--max-num-seqs\", \"64\"], \"serve_overrides\": {\"max_num_seqs\": 64}}, "
		"{\"started\": \"2026-01-01T00:00:20Z\"}, {\"started\": \"late\"}, {\"started\": 7}]",
		"[{\"started\": \"2026-01-01T00:00:00Z\", \"command\": [\"serve\", \"m\", \"--port\", \"2\", "
		"\"--max-num-seqs\", \"128\", \"--dtype\", \"half\"], \"serve_overrides\": {}}]",
		"[", "{}", NULL,
	};
	struct arena a = { 0 };
	const char *path[COUNT(servers)];

	(void)state;
	for (size_t k = 0; k < COUNT(servers); k++) {
		struct buf runs = { 0 };

		path[k] = arena_printf(&a, "%s/sweep%zu", dir, k);
		for (size_t i = 0; i < 4; i++)
			buf_printf(&runs, "%s%s", i ? ", " : "[",
				   result(&a, (100 + (double)i) * (1 + 0.1 * (double)k), 10,
					  more(&a, i)));
		buf_add_text(&runs, "]");
		scratch_put(&a, arena_printf(&a, "sweep%zu/SERVE--x=1/summary.json", k), runs.data);
		scratch_put(&a, arena_printf(&a, "sweep%zu/SERVE--x=2/summary.json", k), runs.data);
		/* Next to a run's folder, or in it. */
		if (servers[k])
			scratch_put(&a, arena_printf(&a, k == 1 ? "sweep%zu/SERVE--x=1/servers.json" :
					     "sweep%zu/servers.json", k), servers[k]);
		buf_release(&runs);
	}
	for (size_t k = 1; k < COUNT(servers); k++)
		check_shown((const char *[]){ path[0], path[k] }, 2, &o);
	check_sessions(path[0], ".", 4 + 2);
	check_sessions(path[0], "SERVE--x=1", 4 + 1);
	check_sessions(arena_printf(&a, "%s/SERVE--x=1", path[0]), ".", 4 + 1);
	check_sessions(arena_printf(&a, "%s/SERVE--x=1", path[4]), ".", 1);
	arena_release(&a);
}

/* ---- the runs of one operand ---- */

static void gated(void **state)
{
	static const char *const condition[] = {
		"median_ttft_ms>20", "output_throughput<50", "own.number>1",
		"output_troughput<50", "median_ttft_ms>+5%",
	};
	struct arena a = { 0 };
	const char *path[5];

	(void)state;
	path[0] = scratch_put(&a, "one/a.json", result(&a, 100, 15, ", \"own\": {\"number\": 3}"));
	path[1] = scratch_put(&a, "many/list.json", arena_printf(&a, "[%s, %s, %s]", result(&a, 40, 25, ""),
		  result(&a, 100, 10, ", \"experiment\": \"crowd\""), result(&a, 60, 30, ", \"experiment\": \"b\"")));
	scratch_put(&a, "many/one.json", result(&a, 45, 19, ""));
	scratch_put(&a, "many/profiled.json", result(&a, 1, 999, ", \"profllm\": {\"profiled\": true}"));
	scratch_put(&a, "many/else.json", "{\"a\": 1}");
	path[2] = arena_printf(&a, "%s/many", dir);
	path[3] = "/dev/null/none";
	path[4] = scratch_put(&a, "none/else.json", "{\"a\": 1}");
	for (size_t i = 0; i < COUNT(path); i++)
		for (size_t k = 0; k < COUNT(condition); k++) {
			struct gate_log log = { .a = &a };
			struct buf out = { 0 }, notes = { 0 };
			struct gate gate[2];
			struct err e = { 0 };

			assert_int_equal(gate_parse(&gate[0], str_of(condition[0]), &a, &e), 0);
			assert_int_equal(gate_parse(&gate[1], str_of(condition[k]), &a, &e), 0);
			buf_printf(&out, "%s: %s\n", path[i], condition[k]);
			if (compare_gate_runs(path[i], gate, 2, &log, &notes, &e) < 0)
				buf_printf(&out, "%s\n", e.text);
			for (size_t n = 0; n < log.n; n++)
				buf_printf(&out, "%s, %s, %s: %s\n", log.item[n].condition,
					   log.item[n].where,
					   gate_outcome_name(log.item[n].outcome),
					   log.item[n].text);
			buf_add_str(&out, buf_str(&notes));
			answers_release(&out);
			buf_release(&notes);
		}
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_sides), cmocka_unit_test(sweeps), cmocka_unit_test(gated),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
