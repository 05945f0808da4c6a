/* SPDX-License-Identifier: Apache-2.0 */
/* Which files hold results, what a piece of JSON is, and which values are INVALID. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "results/read/files.h"
#include "results/read/kind.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void put_file(const char *name)
{
	struct err e = { 0 };
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write_atomic(path, STR("{}"), &e), 0);
}

static void names(void **state)
{
	static const struct { const char *name; bool is_result; } rows[] = {
		{ "a.json", true }, { "a.json.gz", true }, { "a.jsonl.zst", true }, { "a.ndjson", true },
		{ "a.csv", false }, { ".a.json", false }, { "servers.json", false },
		{ "two_servers.json", true }, { "warmup.json", false }, { "capacity.json", false },
		{ "run=1.failure.json", false }, { "SLA--x.json", false },
		{ "a_qps_1_sla_summary.json", false }, { "x.trace.json", false },
		{ "a.pytorch.json", false }, { "a.avg.pytorch.json", false },
		{ "alone.pytorch.json", true }, { "run=0.json", false }, { "summary.json", true },
	};

	(void)state;
	put_file("a.json");
	put_file("summary.json");
	for (size_t i = 0; i < COUNT(rows); i++)
		if (result_file_is(dir, rows[i].name) != rows[i].is_result)
			fail_msg("%s", rows[i].name);
}

/* A sweep's summaries represent the folder; without any, its own results do. */
static void folders(void **state)
{
	struct result_files files = { 0 };
	struct err e = { 0 };
	bool is_sweep = false;
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/below", dir);
	assert_int_equal(file_mkdirs(path, &e), 0);
	put_file("below/b.json");
	put_file("below/servers.json");
	assert_int_equal(result_files_of(path, &files, &is_sweep, &e), 0);
	assert_int_equal(files.n, 1);
	assert_false(is_sweep);
	assert_string_equal(result_file_name(files.path[0]), "b.json");
	result_files_release(&files);
	put_file("below/summary.json");
	assert_int_equal(result_files_of(dir, &files, &is_sweep, &e), 0);
	assert_true(is_sweep && files.n >= 1);
	result_files_release(&files);
	assert_int_equal(result_files_of("/nonexistent", &files, &is_sweep, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	result_files_release(&files);
}

static void kinds(void **state)
{
	static const struct { const char *json; enum result_kind kind; bool is_record; } rows[] = {
		{ "{\"mean_ttft_ms\": 1}", RESULT_SERVE, true },
		{ "{\"requests_per_second\": 1}", RESULT_THROUGHPUT, true },
		{ "{\"avg_latency\": 1}", RESULT_LATENCY, true },
		{ "{\"avg_warm_startup_time\": 1}", RESULT_STARTUP, true },
		{ "{\"total_startup_time\": 1}", RESULT_STARTUP, true },
		{ "{\"mm_processor_stats\": {}, \"mean_e2el_ms\": 1}", RESULT_MM_PROCESSOR, true },
		{ "{\"config\": {}, \"status\": \"completed\"}", RESULT_DOCUMENT, false },
		{ "[{\"benchmark\": {}, \"metric\": {\"name\": \"x\", \"benchmark_values\": [1]}}]",
		  RESULT_PYTORCH, false },
		{ "{\"aiperf_version\": \"0.13.0\", \"input_config\": {}, \"request_throughput\": {}}",
		  RESULT_AIPERF, false },
		{ "{\"input_config\": {\"perf_analyzer\": {}}, \"request_throughput\": {}}",
		  RESULT_GENAI_PERF, false },
		{ "{\"guidellm\": {}, \"benchmark\": {}}", RESULT_GUIDELLM, false },
		{ "{\"mlperf_loadgen\": {}}", RESULT_MLPERF, false },
		{ "{\"mlperf_loadgen\": 1}", RESULT_NONE, false },
		{ "{\"n_samples_issued\": 1, \"ttft\": {}, \"latency\": {}}", RESULT_ENDPOINTS, false },
		{ "{\"hw\": \"h200\", \"conc\": 4, \"tput_per_gpu\": 1, \"mean_ttft\": 1}",
		  RESULT_INFERENCEX, false },
		{ "{\"Test name\": \"a\", \"Mean TTFT (ms)\": 1}", RESULT_NIGHTLY, false },
		{ "{\"output_throughput\": 1}", RESULT_NONE, true },
		{ "{\"a\": 1}", RESULT_NONE, false }, { "[1]", RESULT_NONE, false },
		{ "7", RESULT_NONE, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct arena a = { 0 };
		struct json_value *v;

		assert_int_equal(json_parse(&a, str_of(rows[i].json), &v, NULL), 0);
		if (result_kind(v) != rows[i].kind || result_is_record(v) != rows[i].is_record)
			fail_msg("%s: kind %d", rows[i].json, result_kind(v));
		arena_release(&a);
	}
}

#define ITL "\"reasons\": [{\"level\": \"INVALID\", \"spoils\": [\"itl\"]}]"
#define ALL "\"verdicts\": {\"ttft\": \"INVALID\", \"itl\": \"INVALID\"}"

static void verdicts(void **state)
{
	static const struct { const char *json, *key; enum result_verdict want; } rows[] = {
		{ "{}", "p99_ttft_ms", RESULT_VALID },
		{ "{\"profllm\": {\"verdict\": \"INVALID\"}}", "p99_ttft_ms", RESULT_INVALID },
		{ "{\"profllm\": {\"verdict\": \"INVALID\"}}", "failed", RESULT_VALID },
		{ "{\"profllm\": {\"verdict\": \"INVALID\", " ITL "}}", "p99_itl_ms", RESULT_INVALID },
		{ "{\"profllm\": {\"verdict\": \"INVALID\", " ITL "}}", "p99_ttft_ms", RESULT_VALID },
		{ "{\"profllm\": {\"verdict\": \"INVALID\", " ITL "}}", "duration", RESULT_VALID },
		{ "{\"profllm\": {" ALL "}}", "median_ttft_ms", RESULT_INVALID },
		{ "{\"profllm\": {" ALL "}}", "duration", RESULT_INVALID },
		{ "{\"profllm\": {\"verdicts\": {\"ttft\": \"INVALID\", \"itl\": \"DEGRADED\"}}}", "duration",
		  RESULT_DEGRADED },
		{ "{\"profllm\": {\"verdicts\": {\"output_throughput\": \"DEGRADED\"}}}",
		  "max_output_tokens_per_s", RESULT_DEGRADED },
		{ "{\"profllm\": {\"verdicts\": {\"tpot\": \"INVALID\", \"output_throughput\": \"VALID\"}}}",
		  "derived.output_throughput_per_user", RESULT_INVALID },
		{ "{\"verdict\": \"INVALID\", \"trust.invalid\": \"ttft,itl\"}", "p99_itl_ms",
		  RESULT_INVALID },
		{ "{\"verdict\": \"INVALID\", \"trust.invalid\": \"ttft,itl\"}", "p99_tpot_ms",
		  RESULT_VALID },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct arena a = { 0 };
		struct json_value *v;

		assert_int_equal(json_parse(&a, str_of(rows[i].json), &v, NULL), 0);
		if (result_verdict(v, str_of(rows[i].key)) != rows[i].want)
			fail_msg("%s of %s: %d", rows[i].key, rows[i].json,
				 result_verdict(v, str_of(rows[i].key)));
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names), cmocka_unit_test(folders), cmocka_unit_test(kinds),
		cmocka_unit_test(verdicts),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
