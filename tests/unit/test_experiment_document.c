/* SPDX-License-Identifier: Apache-2.0 */
/* test_experiment_document.c - documents of outcomes made by hand; see document_sample.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "document_sample.h"
#include "experiment/document.h"

#define FOLDER "tests/unit/documents"

static struct buf made[SAMPLES];

static void make(size_t i)
{
	struct arena a = { 0 };
	struct document_sample s;

	if (made[i].len)
		return;
	sample_make(i, &s, &a);
	document_write(&s.x, &s.o, &made[i]);
	arena_release(&a);
}

static struct json_value *document(size_t i, struct arena *a)
{
	struct json_value *v;

	make(i);
	assert_int_equal(json_parse(a, buf_str(&made[i]), &v, NULL), 0);
	return v;
}

static const struct json_value *at(const struct json_value *v, const char *path)
{
	struct str rest = str_of(path);

	while (v && rest.n) {
		char name[64];
		struct str key = str_cut(&rest, '.');

		if (v->kind == JSON_ARRAY) {
			size_t i = strtoul(key.p, NULL, 10);

			v = i < v->count ? &v->item[i] : NULL;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)key.n, key.p);
		v = json_get(v, name);
	}
	return v;
}

static void compare(const char *name, struct str text)
{
	struct buf kept = { 0 };
	struct err e = { 0 };
	char path[128];

	snprintf(path, sizeof(path), FOLDER "/%s.json", name);
	if (getenv("UPDATE_GOLDEN"))
		assert_int_equal(file_write_atomic(path, text, &e), 0);
	if (file_read(path, BUF_BYTES_MAX, &kept, &e) < 0)
		fail_msg("%s", e.text);
	if (!str_eq(buf_str(&kept), text))
		fail_msg("%s is not what is written now; UPDATE_GOLDEN=1 writes it", path);
	buf_release(&kept);
}

static void test_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		struct arena a = { 0 };
		struct document_sample s;

		sample_make(i, &s, &a);
		make(i);
		compare(s.name, buf_str(&made[i]));
		arena_release(&a);
	}
}

/* Text at a path, or the value's kind. */
static void test_values(void **state)
{
	static const struct { size_t sample; const char *path, *text; } rows[] = {
		{ 0, "run_id", "exp_20261122_064132_0a1b2c" },
		{ 0, "timestamp", "2026-11-22T06:41:32.516Z" },
		{ 0, "config.hash", "123456789abcdef0" },
		{ 0, "config.benchmark.request_rate", "inf" },
		{ 0, "config.benchmark.dataset_name", "random" },
		{ 0, "config.server.model", "m" },
		{ 0, "config.servers.0.env.A", "2" },
		{ 0, "config.servers.0.env.TOKENIZERS_PARALLELISM", "false" },
		{ 0, "config.servers.0.log", "results.d/one/server.log" },
		{ 0, "config.resources.gpus", "auto" },
		{ 0, "results.request_rate", "inf" },
		{ 0, "results.who", "me" },
		{ 0, "trust.verdict", "DEGRADED" },
		{ 0, "trust.reasons.0.code", "skew" },
		{ 0, "provenance.engine_commit", "abcdef0" },
		{ 0, "files.record", "results.d/one/record.plr" },
		{ 0, "status", "completed" },
		{ 1, "status", "partial" },
		{ 1, "error.stage", "benchmark" },
		{ 2, "error.stage", "config" },
		{ 2, "run_id", "exp_20261122_064132_0a1b2c" },
		{ 3, "error.category", "gpus busy" },
		{ 5, "error.log_tail", "started with ***\nCUDA out of memory\n" },
		{ 6, "error.category", "interrupted" },
		{ 11, "profiling.trace_file_path", "/elsewhere/b.gz" },
		{ 11, "config.resources.wait_s", "inf" },
		{ 11, "config.servers.2.after.1", "decode" },
		{ 11, "warnings.0", "Traces hold ***." },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena a = { 0 };
		const struct json_value *v = at(document(rows[i].sample, &a), rows[i].path);

		if (!str_is(json_text(v, STR("?")), rows[i].text))
			fail_msg("%s: got '%s'", rows[i].path, json_text(v, STR("?")).p);
		arena_release(&a);
	}
}

static void test_numbers(void **state)
{
	static const struct { size_t sample; const char *path; double value; } rows[] = {
		{ 0, "schema_version", 1 }, { 0, "duration", 12.5 },
		{ 0, "results.completed_requests", 19 }, { 0, "results.failed_requests", 1 },
		{ 0, "results.median_ttft_ms", 5.25 }, { 0, "results.p95_tpot_ms", NAN },
		{ 0, "results.request_goodput", NAN }, { 0, "config.servers.0.port", NAN },
		{ 0, "system.peak_gpu_memory_gb", 70.5 }, { 0, "system.tokens_per_s_per_w", NAN },
		{ 0, "trust.error_budget.client_lag_ms.p99", 7 },
		{ 0, "config.server.gpu_memory_utilization", 0.9 },
		{ 0, "config.servers.0.gpus.0.index", 3 },
		{ 8, "results.request_throughput", 201.5 },
		{ 8, "results.output_throughput", 1005.5 },
		{ 8, "results.completed_requests", 20 },
		{ 8, "results.throughput.tokens_per_second", 5028.5 },
		{ 9, "results.output_throughput", 640 },
		{ 9, "results.latency.avg_latency", 1.5 },
		{ 10, "results.startup.avg_cold_startup_time", 0.5 },
		{ 11, "profiling.trace_file_size_mb", 2.5 },
		{ 11, "config.servers.1.ready_timeout_s", NAN },
		{ 11, "config.resources.gpus", 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena a = { 0 };
		double v = json_real(at(document(rows[i].sample, &a), rows[i].path), NAN);

		if (v != rows[i].value && !(isnan(v) && isnan(rows[i].value)))
			fail_msg("%s: got %g", rows[i].path, v);
		arena_release(&a);
	}
}

static void test_absent(void **state)
{
	struct arena a = { 0 };

	(void)state;
	assert_null(at(document(0, &a), "results.latencies"));
	assert_non_null(at(document(11, &a), "results.latencies"));
	assert_null(at(document(0, &a), "results.profllm.verdict"));
	assert_null(at(document(0, &a), "results.profllm.options"));
	assert_int_equal(at(document(0, &a), "error")->kind, JSON_NULL);
	assert_int_equal(at(document(2, &a), "config.server")->kind, JSON_NULL);
	assert_int_equal(at(document(2, &a), "results")->kind, JSON_NULL);
	assert_int_equal(at(document(2, &a), "trust")->kind, JSON_NULL);
	assert_int_equal(at(document(11, &a), "config.servers.2.command")->kind, JSON_NULL);
	assert_int_equal(at(document(8, &a), "trust.error_budget")->kind, JSON_NULL);
	arena_release(&a);
}

/* No secret and no number that is none, anywhere. */
static void test_clean(void **state)
{
	static const char *const never[] = {
		"sk-very-secret", "hf_abcdef", "abc-def-ghi", "NaN", "Infinity",
	};

	(void)state;
	for (size_t i = 0; i < SAMPLES; i++) {
		make(i);
		for (size_t k = 0; k < sizeof(never) / sizeof(*never); k++)
			if (memmem(made[i].data, made[i].len, never[k], strlen(never[k])))
				fail_msg("sample %zu holds %s", i, never[k]);
	}
}

static void test_secret_names(void **state)
{
	static const struct { const char *name; bool is_secret; } rows[] = {
		{ "HF_TOKEN", true }, { "api_key", true }, { "api-key", true },
		{ "OPENAI_APIKEY", true }, { "AWS_SECRET_ACCESS_KEY", true },
		{ "DB_PASSWORD", true }, { "Authorization", true }, { "VLLM_API_KEY", true },
		{ "TOKENIZERS_PARALLELISM", false }, { "max_num_batched_tokens", false },
		{ "HF_TOKEN_2", true }, { "token_counts", false }, { "secret_of_it", true },
		{ "tokenizer", false }, { "", false }, { "keyboard", false }, { "MODEL", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (document_is_secret(str_of(rows[i].name)) != rows[i].is_secret)
			fail_msg("%s", rows[i].name);
}

static void test_schema(void **state)
{
	struct arena a = { 0 };
	struct json_value *v;

	(void)state;
	assert_int_equal(json_parse(&a, document_schema(), &v, NULL), 0);
	assert_string_equal(json_text(json_get(v, "$schema"), STR("")).p,
			    "https://json-schema.org/draft/2020-12/schema");
	assert_non_null(at(v, "$defs.experiment.properties.config.properties.server.properties"
			      ".tensor_parallel_size"));
	arena_release(&a);
}

static int release(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLES; i++)
		buf_release(&made[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),	     cmocka_unit_test(test_values),
		cmocka_unit_test(test_numbers),	     cmocka_unit_test(test_absent),
		cmocka_unit_test(test_clean),	     cmocka_unit_test(test_secret_names),
		cmocka_unit_test(test_schema),
	};

	return cmocka_run_group_tests(tests, NULL, release);
}
