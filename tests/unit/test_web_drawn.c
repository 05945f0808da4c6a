/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_web_drawn.c - what the page of a run draws: series and distributions that a result has, or
 * that its arrays give; reasons and tags; runs folded by configuration; what GPUs cost.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define ANSWERS_MAX 200
#define ANSWER_HEAD_BYTES 6000
#include "web_rig.h"

/* As `bench serve` saves one; more of its members follow. */
#define RESULT(model, more) "{'date': '20260101-000000', 'backend': 'vllm', 'model_id': '" model "', " \
	"'num_prompts': 4, 'request_rate': 2, 'duration': 2.5, 'completed': 4, 'request_throughput': 2, " \
	"'output_throughput': 5" more "}"
#define DOCUMENT(id, results, more) "{'schema_version': 1, 'run_id': '" id "', 'status': 'completed', " \
	"'timestamp': '2026-01-01T00:00:00Z', 'config': {'name': 'x', 'mode': 'serve', 'hash': 'abc', " \
	"'server': {'model': 'm'}}, 'results': " results more "}"
#define TRACK(key, more) "{'key': '" key "'" more "}"

/* Run 1, 2, ... */
static const char *const result[] = {
	/* all that is kept, and lists that are not as long as their times, or empty, or of text */
	RESULT("m1", ", 'profllm': {'start_ns': 1770000000000000000, 'stop_ns': 1770000003000000000, "
	       "'series': {'step_s': 0.5, 'failed_s': [1, 2.5, null], 'tracks': ["
	       TRACK("output_tokens_per_s", ", 'y': [1, 2.5, null, 'x']") ", "
	       TRACK("requests_running", ", 't_s': [0.25, 1], 'y': [3, 4, 5], 'min': [1, 2, 3], 'max': [7]")
	       ", " TRACK("requests_waiting", ", 'y': []") ", " TRACK("kv_cache_percent", ", 'y': 3") ", "
	       TRACK("gpu_util_percent", "") ", " TRACK("gpu_power_w", ", 'y': [300], 't_s': 1, 'min': 2")
	       ", " TRACK("server_requests_running", ", 'y': [1]") ", " TRACK("odd", ", 'y': [1]") ", 7]}, "
	       "'sketches': {'p': [0, 0.5, 1], 'metrics': [{'metric': 'ttft', 'n': 5, 'value_ms': [1, 2, 3]}, "
	       "{'metric': 'ttft', 'n': 6, 'value_ms': [4, 5, 6]}, {'metric': 'odd', 'value_ms': [1, 2, 3]}, "
	       "{'metric': 'tpot', 'value_ms': [1, 2]}, {'metric': 'itl', 'n': -4, 'value_ms': [1, null, 3]}, "
	       "{'metric': 'e2el', 'value_ms': 3}], 'by_prompt': {'prompt_tokens': [10, 20.5, 'x'], "
	       "'ttft_ms': [1.5, null, 2]}}, 'verdict': 'INVALID', 'reasons': [{'level': 'DEGRADED', "
	       "'code': 'c1', 'text': 'One.', 'spoils': ['ttft', 'itl']}, {'level': 'INVALID', 'code': 'c2', "
	       "'text': 'Two.', 'spoils': ['ttft']}, {'level': 'INVALID', 'code': 'c3', 'spoils': []}, "
	       "{'level': 'ODD', 'code': 'c4', 'spoils': ['itl']}, {'level': 'DEGRADED', 'code': 'c5', "
	       "'spoils': 'itl'}]}, 'per_turn_metrics': [{'turn_index': 0, 'median_ttft_ms': 5.5, "
	       "'completed': 4}, {'turn_index': 1, 'completed': 4}, {'turn_index': 2, 'median_ttft_ms': 1, "
	       "'completed': 0}, {'turn_index': 3, 'median_ttft_ms': null, 'completed': 1}]"),
	/* reasons of an older result, which do not say what they spoil; why there are no series */
	RESULT("m2", ", 'profllm': {'server': {'not_read': 'it refused. . \\nmore'}, 'system': "
	       "{'not_watched': 'no GPU.'}, 'series': {'tracks': [" TRACK("output_tokens_per_s", ", 'y': [1]")
	       "]}, 'sketches': {'p': [0.5], 'metrics': [{'metric': 'e2el', 'n': 3, 'value_ms': [9]}], "
	       "'by_prompt': {'prompt_tokens': [1], 'ttft_ms': [1, 2]}}, 'reasons': [{'level': 'DEGRADED', "
	       "'code': 'c1'}, {'level': 'INVALID', 'code': 'c2'}]}, 'per_turn_metrics': []"),
	/* the server's queue, but not its cache; no tokens */
	RESULT("m3", ", 'profllm': {'series': {'tracks': [" TRACK("requests_running", ", 'y': [1]") ", "
	       TRACK("server_requests_running", ", 'y': [1]") ", " TRACK("gpu_power_w", ", 'y': [1]")
	       "]}, 'sketches': {'p': 1, 'metrics': [{'metric': 'ttft', 'value_ms': [1]}]}}"),
	/* from arrays: two fail, one has no gaps; times since 1970 */
	RESULT("m4", ", 'start_times': [1770000000, 1770000000.5, 1770000001, 1770000002.25], 'ttfts': "
	       "[0.1, 0.2, 0.3, 0.4], 'itls': [[0.01, 0.02], [0.05], [], [0.5, 0.25, 0.25, 0.5]], "
	       "'input_lens': [10, 20, 30, 40], 'output_lens': [3, 2, 1, 5], 'errors': ['', 'reset', '', '']"),
	/* latencies in place of gaps; a list that is too short; the reason in our own column */
	RESULT("m5", ", 'start_times': [5, 6, 7, 8], 'ttfts': [0.1, 0.2, 0.3], 'latencies': [1, 2, 0.5, 0], "
	       "'input_lens': [10, 20, 30, 40], 'output_lens': [3, 2, 1, 5], 'requests': {'end_ns': "
	       "[6500000000, 0, null, 8000000000], 'failure': [null, '', 'broken', null]}"),
	/* latencies of the first tokens alone */
	RESULT("m6", ", 'ttfts': [0.1, 0.2, 0.3, 0.4], 'output_lens': [1, 1, 1, 1]"),
	RESULT("m7", ""),
	DOCUMENT("d1", "{'completed': 4, 'request_throughput': 2, 'latency': {'profllm': {'reasons': "
		 "[{'level': 'DEGRADED', 'code': 'slow', 'text': 'Slow.', 'spoils': ['e2el', 3]}]}}}",
		 ", 'system': {'not_watched': 'its driver is missing'}"),
	DOCUMENT("d2", "{'completed': 4, 'request_throughput': 3}",
		 ", 'trust': {'verdict': 'DEGRADED', 'reasons': [{'level': 'DEGRADED', 'code': 'x'}, {}]}"),
};

static void put_all(const char *const *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct buf reply = rig_ask("POST /api/upload/raw", text[i]);

		if (!strstr(reply.data, " 201 "))
			fail_msg("%zu: %s", i + 1, reply.data);
		buf_release(&reply);
	}
}

static void runs(void **state)
{
	static const struct rig_request request[] = {
		{ "GET /api/data/experiments/99/series", NULL },
		{ "GET /api/data/experiments/d1/sketches", NULL },
		{ "GET /api/data/experiments/x/sketches", NULL },
		{ "GET /api/data/experiments/1/series?x=1", NULL },
	};
	struct arena a = { 0 };

	(void)state;
	rig_start("drawn", (struct web_opts){ .has_no_auth = true });
	put_all(result, COUNT(result));
	for (size_t i = 0; i < COUNT(result); i++) {
		const struct rig_request drawn[] = {
			{ arena_printf(&a, "GET /api/data/experiments/%zu/series", i + 1), NULL },
			{ arena_printf(&a, "GET /api/data/experiments/%zu/sketches", i + 1), NULL },
		};

		rig_check_all(drawn, COUNT(drawn));
	}
	for (size_t i = 0; i < COUNT(result); i += 7) {
		struct buf reply = rig_ask(arena_printf(&a, "GET /api/data/experiments/%zu", i + 1), NULL);
		struct buf part = { 0 };
		const char *from = strstr(reply.data, "\"badges\"");

		assert_non_null(from);
		buf_add_text(&part, from);
		rig_clean(&part);
		answers_release(&part);
		buf_release(&reply);
	}
	rig_check_all(request, COUNT(request));
	rig_stop();
	arena_release(&a);
}

/* Tags in filters; runs of one configuration as one row. */
static void many_runs(void **state)
{
	static const char *const text[] = {
		RESULT("a", ", 'mean_ttft_ms': 10"), RESULT("a", ", 'mean_ttft_ms': 12"),
		RESULT("a", ", 'mean_ttft_ms': 20"), RESULT("b", ", 'mean_ttft_ms': 5, 'note': 'n'"),
		RESULT("c", ""), DOCUMENT("r1", "{'completed': 4, 'mean_ttft_ms': 10}", ""),
		DOCUMENT("r2", "{'completed': 4, 'mean_ttft_ms': 12}", ""),
		DOCUMENT("r3", "{'completed': 5, 'mean_ttft_ms': 20}", ", 'verdict': 'x'"),
	};
	static const struct rig_request request[] = {
		{ "POST /api/data/bulk", "{'ids': [1, 4], 'action': 'tag', 'text': 'nightly', 'who': 'Ada'}" },
		{ "POST /api/data/bulk", "{'ids': [2], 'action': 'tag', 'text': 'old'}" },
		{ "GET /api/tags", NULL },
#define APPLY(filter) { "POST /api/filters/apply", "{'limit': 9, 'sort': [{'column': 'run_id'}], " \
			"'columns': ['server.model'], 'filter': " filter "}" }
		APPLY("{'column': 'tag', 'in': ['nightly']}"), APPLY("{'column': 'tag', 'in': ['nightly', "
								     "'old', 7]}"),
		APPLY("{'column': 'tag', 'in': ['none']}"), APPLY("{'column': 'tag', 'in': []}"),
		APPLY("{'and': [{'not': {'column': 'tag', 'in': ['old']}}, {'column': 'server.model', "
		      "'in': ['a']}]}"),
		APPLY("{'column': 'tag', 'text': 'old'}"),
		{ "GET /api/data/experiments?filter=%7B%22column%22:%22tag%22,%22in%22:[%22old%22]%7D&columns="
		  "server.model", NULL },
#define FOLDED(more) { "POST /api/filters/apply", "{'limit': 9, 'group': 'configuration', 'columns': " \
		       "['server.model', 'mean_ttft_ms', 'tags.note']" more "}" }
		FOLDED(""), FOLDED(", 'sort': [{'column': 'mean_ttft_ms', 'descending': true}]"),
		FOLDED(", 'group': 'odd'"), FOLDED(", 'limit': 1"),
		{ "POST /api/filters/apply", "{'limit': 9, 'group': 'odd'}" },
		{ "POST /api/filters/apply", "{'limit': 9, 'group': 7}" },
		{ "POST /api/export/csv", "{'columns': ['run_id', 'server.model', 'tags.note', "
		  "'mean_ttft_ms']}" },
		{ "POST /api/export/csv", "{'format': 'jsonl', 'columns': ['mean_ttft_ms', 'server.model']}" },
	};

	(void)state;
	rig_start("many", (struct web_opts){ .has_no_auth = true });
	put_all(text, COUNT(text));
	rig_check_all(request, COUNT(request));
	rig_stop();
}

/* The longest name of a board that all its words are in decides. */
static void prices(void **state)
{
	static const char *const text[] = {
		RESULT("a", ", 'gpu_model': 'NVIDIA H100 80GB HBM3'"), RESULT("b", ", 'gpu_model': 'H100 PCIe'"),
		RESULT("c", ", 'gpu_model': 'NVIDIA H100 NVL'"), RESULT("d", ", 'gpu_model': 'NVIDIA H200'"),
		RESULT("e", ", 'gpu_model': 'NVIDIA H200 NVL'"), RESULT("f", ", 'gpu_model': 'B200'"),
		RESULT("g", ", 'gpu_model': 'NVIDIA A100 80GB PCIe'"),
		RESULT("h", ", 'gpu_model': 'NVIDIA A100-PCIE-80GB'"),
		RESULT("i", ", 'gpu_model': 'A100 PCIe 40GB'"),
		RESULT("j", ", 'gpu_model': 'NVIDIA A100-SXM4-80GB'"), RESULT("k", ", 'gpu_model': 'L40S'"),
		RESULT("l", ", 'gpu_model': 'L40'"), RESULT("m", ", 'gpu_model': 'Tesla L4'"),
		RESULT("n", ", 'gpu_model': 'A10'"), RESULT("o", ", 'gpu_model': 'Tesla T4'"),
		RESULT("p", ", 'gpu_model': 'AMD Instinct MI325X'"),
		RESULT("q", ", 'gpu_model': 'AMD Instinct MI300X'"), RESULT("r", ", 'gpu_model': 'MI210'"),
		RESULT("s", ", 'gpu_model': 'Abacus'"), RESULT("t", ""),
	};
	static const struct rig_request request[] = {
		{ "GET /api/settings/prices", NULL },
		{ "PUT /api/settings/prices/h200", "{'usd_per_hour': 3.5, 'who': 'Ada'}" },
		{ "PUT /api/settings/prices/h200", "{'power_w': 650}" },
		{ "PUT /api/settings/prices/elsewhere", "{'usd_per_hour': 1000000, 'power_w': 1000000}" },
		{ "PUT /api/settings/prices/mi210", "{'usd_per_hour': 1000001}" },
		{ "PUT /api/settings/prices/mi210", "{'power_w': 0}" },
		{ "PUT /api/settings/prices/mi210", "{'power_w': 'x'}" },
		{ "PUT /api/settings/prices/mi210", "{'price': 1}" },
		{ "PUT /api/settings/prices/mi210", "{'usd_per_hour': null}" },
		{ "PUT /api/settings/prices/%61bacus", "{'usd_per_hour': 0.5}" },
		{ "GET /api/settings/prices", NULL },
		{ "POST /api/analysis/capacity", "{'rate': 10}" },
		{ "PUT /api/settings/prices/h200", "{'usd_per_hour': null}" },
		{ "PUT /api/settings/prices/h200", "{'power_w': null}" },
		{ "PUT /api/settings/prices/h200", "{'power_w': null}" },
		{ "GET /api/settings/prices", NULL },
	};

	(void)state;
	rig_start("prices", (struct web_opts){ .has_no_auth = true });
	put_all(text, COUNT(text));
	rig_check_all(request, COUNT(request));
	rig_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs), cmocka_unit_test(many_runs), cmocka_unit_test(prices),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
