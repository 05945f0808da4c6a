/* SPDX-License-Identifier: Apache-2.0 */
/* test_compare_tables.c - folders of results as the tables of vLLM's dashboard scripts. */
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
#include "core/base/limits.h"
#include "out/compare/compare.h"
#include "out/compare/markdown.h"
#include "answers.h"
#include "scratch.h"

/* Without the table of the machine that a report ends with. */
static void check_file(struct arena *a, const char *name)
{
	struct err e = { 0 };
	struct str text = { 0 };
	const char *machine, *after;

	if (file_map(arena_printf(a, "%s/%s", dir, name), &text, &e) < 0)
		fail_msg("%s", e.text);
	machine = memmem(text.p, text.n, "## Platform", 11);
	after = machine ? memmem(text.p, text.n, "## json", 7) : NULL;
	answers_check(text.p, after ? (size_t)(machine - text.p) : text.n);
	if (after)
		answers_check(after, text.n - (size_t)(after - text.p));
	file_unmap(text);
}

/* A row as the script for Markdown makes them. */
static const char *row(struct arena *a, const char *model, int in, int tp, int users, double tput,
		       double ttft, double tpot)
{
	return arena_printf(a, "{\"Model\": \"%s\", \"Dataset Name\": \"random\", \"Input Len\": %d, "
			    "\"Output Len\": 128, \"TP Size\": %d, \"PP Size\": 1, "
			    "\"# of max concurrency.\": %d, \"qps\": \"inf\", "
			    "\"Output Tput (tok/s)\": %g, \"Median TTFT (ms)\": %g, "
			    "\"Median\": %g, \"P99 TTFT (ms)\": %g, \"P99\": %g, "
			    "\"Test name\": \"serving_%s_tp%d\"}", model, in, tp, users, tput, ttft, tpot,
			    2 * ttft, 2 * tpot, model, tp);
}

static const char *rows(struct arena *a, double factor)
{
	struct buf text = { 0 };
	const char *out;

	buf_add_text(&text, "[");
	for (int i = 0; i < 12; i++)
		buf_printf(&text, "%s%s", i ? "," : "",
			   row(a, i < 8 ? "m" : "n", i % 8 < 4 ? 128 : 2048, i < 8 ? 1 : 2,
			       1 << i % 4, factor * 100 * (1 + i % 4), 500.0 * (1 << i % 4),
			       30.0 * (1 + i % 4)));
	buf_add_text(&text, "]");
	out = arena_text(a, buf_str(&text));
	buf_release(&text);
	return out;
}

static void tables(void **state)
{
	static const char *const latency[] = { "median,p99", "p99", "median" };
	struct arena a = { 0 };
	const char *path[3];

	(void)state;
	path[0] = scratch_put(&a, "old/benchmark_results.json", rows(&a, 1));
	path[1] = scratch_put(&a, "new/benchmark_results.json", rows(&a, 1.25));
	path[2] = scratch_put(&a, "none/benchmark_results.json", "[]");
	for (size_t i = 0; i < 3; i++)
		for (size_t n = 1; n <= 2; n++) {
			struct tables_opts o = {
				.xaxis = "# of max concurrency.", .latency = latency[i],
				.ttft_max_ms = 3000, .tpot_max_ms = 100, .ttft_slack_pct = 5,
				.tpot_slack_pct = i == 1 ? 20 : 0, .is_debug = i == 1,
				.csv_dir = arena_printf(&a, "%s/csv%zu%zu", dir, i, n),
				.html_dir = arena_printf(&a, "%s/html%zu%zu", dir, i, n),
			};
			struct buf out = { 0 };
			struct err e = { 0 };

			assert_int_equal(file_mkdirs(o.csv_dir, &e), 0);
			assert_int_equal(file_mkdirs(o.html_dir, &e), 0);
			if (tables_compare(&o, path, n, &a, &out, &e) < 0)
				fail_msg("%s", e.text);
			answers_release(&out);
			check_file(&a, arena_printf(&a, "html%zu%zu/perf_comparison.html", i, n));
		}
	for (size_t n = 1; n <= 2; n++) {
		struct tables_opts o = { .xaxis = n == 1 ? "# of max concurrency." : "no column",
					 .latency = "p99", .csv_dir = "", .html_dir = dir,
					 .ttft_max_ms = 1, .tpot_max_ms = 1 };
		struct buf out = { 0 };
		struct err e = { 0 };

		if (tables_compare(&o, n == 1 ? path + 2 : path, n, &a, &out, &e) < 0)
			buf_add_text(&out, e.text);
		answers_release(&out);
	}
	arena_release(&a);
}

/* What one comparison says, and its page of all groups. */
static void check_tables(struct arena *a, const struct tables_opts *o, const char *const *path,
			 size_t n)
{
	struct buf out = { 0 }, page = { 0 };
	struct err e = { 0 };
	int rc = tables_compare(o, path, n, a, &out, &e);

	if (rc < 0)
		buf_add_text(&out, e.text);
	answers_release(&out);
	if (rc < 0)
		return;
	assert_int_equal(file_read(arena_printf(a, "%s/perf_comparison.html", o->html_dir), 1 << 20, &page,
				   &e), 0);
	for (char *at = page.data, *end; at; at = end) {
		end = strstr(at + 1, "<h3>");
		answers_check(at, end ? (size_t)(end - at) : strlen(at));
	}
	buf_release(&page);
}

/* Folders of results and tables with other spellings of the columns, drawn. */
static void folders(void **state)
{
	static const char record[] =
		"{\"backend\": \"vllm\", \"model_id\": \"org/a-model-of-a-rather-long-name-no-%d\", "
		"\"request_rate\": \"inf\", \"max_concurrency\": %d, \"num_prompts\": 100, "
		"\"completed\": 100, \"failed\": 0, \"duration\": 10.5, \"total_input_tokens\": 12800, "
		"\"total_output_tokens\": 6400, \"request_throughput\": 9.5, \"output_throughput\": %d, "
		"\"total_token_throughput\": 1828.5, \"mean_ttft_ms\": 20.5, \"median_ttft_ms\": %d, "
		"\"p99_ttft_ms\": 40.25, \"mean_tpot_ms\": 8.5, \"median_tpot_ms\": %d.25, "
		"\"p99_tpot_ms\": 12.5}";
	struct tables_opts o = { .xaxis = "Concurrency", .latency = "Median", .ttft_max_ms = 30,
				 .tpot_max_ms = 100, .is_plotted = true, .csv_dir = "" };
	struct arena a = { 0 };
	const char *path[3];

	(void)state;
	path[0] = arena_printf(&a, "%s/one", dir);
	path[1] = arena_printf(&a, "%s/two", dir);
	for (int i = 0; i < 12; i++)
		scratch_put(&a, arena_printf(&a, "%s/r%d.json", i % 2 ? "one" : "two", i),
		    arena_printf(&a, record, i / 6, 4 << i / 2 % 3, 100 + 10 * i, 10 + 3 * i,
				 5 + i));
	o.html_dir = arena_printf(&a, "%s/folders", dir);
	o.csv_dir = arena_printf(&a, "%s/sheets", dir);
	check_tables(&a, &o, path, 2);
	check_file(&a, "sheets/a-model-of-a-rather-long-name-n__Median.csv");
	check_file(&a, "sheets/a-model-of-a-rather-long-na_2__Median.csv");
	path[0] = scratch_put(&a, "spelt/a.json",
		      "[{\"Model\": \"m\", \"tp_size\": 2, \"max_concurrency\": 4, \"Output Tput (tok/s)\": 90, "
		      "\"Median TTFT (ms)\": 25, \"Median\": 8, \"P99\": 9}, "
		      "{\"Model\": \"m\", \"tp_size\": 2, \"max_concurrency\": 16.0, "
		      "\"Output Tput (tok/s)\": 190, \"Median TTFT (ms)\": 35, \"Median\": 18, \"P99\": 19}, "
		      "{\"Model\": \"m\", \"tp_size\": 2, \"max_concurrency\": 8, \"Output Tput (tok/s)\": 140}, "
		      "{\"Model\": \"m\", \"tp_size\": 2, \"max_concurrency\": null, \"Output Tput (tok/s)\": 7}, "
		      "{\"Model\": \"m\", \"tp_size\": 2, \"max_concurrency\": \"all\", "
		      "\"Output Tput (tok/s)\": 8, \"Median TTFT (ms)\": 1, \"Median\": 2, \"P99\": 3}]");
	path[1] = scratch_put(&a, "spelt/b.json",
		      "[{\"Model\": \"m\", \"TP Size\": 4, \"Concurrency\": 4, \"Output Tput (tok/s)\": 99, "
		      "\"Median TTFT (ms)\": 20, \"Median\": 7, \"P99\": 9}, "
		      "{\"Model\": \"m\", \"TP Size\": 4, \"Concurrency\": 16, \"Output Tput (tok/s)\": 199, "
		      "\"Median TTFT (ms)\": 29.5, \"Median\": 120, \"P99\": 130}]");
	path[2] = scratch_put(&a, "spelt/c.json", "[{\"tp\": 1}]");
	o.csv_dir = "";
	check_tables(&a, &o, path, 2);
	o.xaxis = "TP Size";
	o.ttft_max_ms = 70; /* a limit is drawn up to twice what was measured */
	check_tables(&a, &o, path, 2);
	o.ttft_max_ms = 70.5;
	check_tables(&a, &o, path, 1);
	check_tables(&a, &o, path, 3);
	path[2] = "/dev/null/none";
	check_tables(&a, &o, path, 3);
	check_tables(&a, &o, path + 2, 1);
	check_tables(&a, &o, NULL, COMPARE_SIDES_MAX + 1);
	arena_release(&a);
}

/* A table of more sizes than there are columns for, and one of no serving tests. */
static void sizes(void **state)
{
	struct tables_opts o = { .xaxis = "qps", .latency = "p99", .csv_dir = "", .html_dir = dir };
	struct arena a = { 0 };
	struct buf text = { 0 };

	(void)state;
	for (int i = 0; i <= COMPARE_SIDES_MAX; i++)
		buf_printf(&text, "%s%s", i ? "," : "[",
			   row(&a, "m", 8, COMPARE_SIDES_MAX + 1 - i, 1, 9, 8, 7));
	buf_add_text(&text, "]");
	check_tables(&a, &o, (const char *[]){ scratch_put(&a, "sizes/65.json", text.data) }, 1);
	check_file(&a, "splits/tp16_pp1/benchmark_results.json");
	check_tables(&a, &o, (const char *[]){ scratch_put(&a, "sizes/none.json", "[{\"Test name\": "
					       "\"latency_m\"}]") }, 1);
	buf_release(&text);
	arena_release(&a);
}

static void markdown(void **state)
{
	static const char record[] =
		"{\"backend\": \"vllm\", \"model_id\": \"m\", \"request_rate\": \"inf\", "
		"\"max_concurrency\": 8, \"num_prompts\": 100, \"completed\": 100, \"failed\": 0, "
		"\"duration\": 10.5, \"total_input_tokens\": 12800, \"total_output_tokens\": 6400, "
		"\"request_throughput\": 9.5, \"output_throughput\": 609.5, "
		"\"total_token_throughput\": 1828.5, \"mean_ttft_ms\": 20.5, \"median_ttft_ms\": 19.5, "
		"\"p99_ttft_ms\": 40.25, \"mean_tpot_ms\": 8.5, \"median_tpot_ms\": 8.25, "
		"\"p99_tpot_ms\": 12.5, \"mean_itl_ms\": 8.75, \"median_itl_ms\": 8, "
		"\"p99_itl_ms\": 15.25}";
	static const char *const commands =
		"{\"client_command\": \"vllm bench serve --dataset-name random --random-input-len 128 "
		"--random-output-len 64\", \"server_command\": \"vllm serve m -tp 2 -pp 1\", "
		"\"gpu_type\": \"H100\"}";
	struct arena a = { 0 };
	struct buf lines = { 0 };
	struct err e = { 0 };

	(void)state;
	scratch_put(&a, "md/serving_m_tp2_qps_inf.json", record);
	scratch_put(&a, "md/serving_m_tp2_qps_inf.commands", commands);
	scratch_put(&a, "md/serving_without.json", record);
	scratch_put(&a, "md/latency_m.json", "{\"avg_latency\": 1.5, \"latencies\": [1.25, 1.75], "
	    "\"percentiles\": {\"10\": 1.25, \"50\": 1.5, \"90\": 1.75, \"99\": 1.75}}");
	scratch_put(&a, "md/latency_m.commands", "{\"latency_command\": \"vllm bench latency\", "
	    "\"gpu_type\": \"H100\"}");
	scratch_put(&a, "md/throughput_m.json", "{\"elapsed_time\": 2.5, \"num_requests\": 100, "
	    "\"total_num_tokens\": 20000, \"requests_per_second\": 40, \"tokens_per_second\": 8000}");
	scratch_put(&a, "md/throughput_m.commands", "{\"throughput_command\": \"vllm bench throughput\", "
	    "\"gpu_type\": \"H100\"}");
	scratch_put(&a, "md/odd.json", "{\"a\": 1}");
	scratch_put(&a, "md/broken.json", "{");
	scratch_put(&a, "md/summary.json", arena_printf(&a, "[%s]", record));
	scratch_put(&a, "md/at_8/summary.json", arena_printf(&a, "[%s]", record));
	if (markdown_report(arena_printf(&a, "%s/md", dir), &lines, &e) < 0)
		fail_msg("%s", e.text);
	answers_release(&lines);
	check_file(&a, "md/benchmark_results.md");
	check_file(&a, "md/benchmark_results.json");
	assert_int_equal(markdown_report("/dev/null/none", &lines, &e), -1);
	answers_check(e.text, strlen(e.text));
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables), cmocka_unit_test(markdown), cmocka_unit_test(folders),
		cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
