/* SPDX-License-Identifier: Apache-2.0 */
/* test_config_document.c - documents of outcomes made by hand; see document_sample.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "core/json/write.h"
#include "document_sample.h"
#include "engine_defaults_golden.h"
#include "experiment/config/document.h"
#include "host/engine/args.h"

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
		{ 0, "config.configured_hash", "123456789abcdef0" },
		{ 0, "config.server_defaults.reason", "another engine" },
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

/* ---- the values that a server used ---- */

/* A vLLM that we started (url: did not start); reported and args are JSON. All may be NULL. */
struct how {
	const char *version, *reported, *args;
	char *const *command, *const *extra;
	enum experiment_mode mode;
	const char *result, *url;
};

static struct json_value *document_of(struct how how, struct arena *a)
{
	static char *command[] = { "vllm", "serve", NULL };
	struct document_sample s;
	struct json_value *v;
	struct buf text = { 0 };

	sample_make(0, &s, a);
	s.server[0].is_vllm = !how.url;
	s.server[0].url = how.url;
	s.server[0].command = how.command ? how.command : command;
	s.server[0].extra_args = how.extra;
	s.server[0].args = tree(a, how.args ? how.args : "{}");
	s.out[0].version = how.version;
	s.out[0].reported = how.reported ? str_of(how.reported) : STR("");
	s.x.mode = how.mode;
	if (how.result)
		s.o.result = str_of(how.result);
	document_write(&s.x, &s.o, &text);
	assert_int_equal(json_parse(a, buf_str(&text), &v, NULL), 0);
	buf_release(&text);
	return v;
}

static const char *json_at(const struct json_value *document, const char *path, struct arena *a)
{
	const struct json_value *v = at(document, path);
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	const char *out;

	if (!v)
		return NULL;
	json_put_value(&w, v);
	out = arena_text(a, buf_str(&text));
	buf_release(&text);
	return out;
}

static void expect_json(const struct json_value *document, const char *path, const char *want)
{
	struct arena a = { 0 };
	const char *got = json_at(document, path, &a);

	if (!got != !want || (got && strcmp(got, want) != 0))
		fail_msg("%s: got %s, not %s", path, got ? got : "nothing", want ? want : "nothing");
	arena_release(&a);
}

/*
 * The 129 arguments of the design, as the servers of two releases have them. What a release does
 * not have is absent: of these, 0.11.0 had lost max_seq_len_to_capture, disable_async_output_proc,
 * override_neuron_config, scheduler_delay_factor and preemption_mode already.
 */
static void test_defaults(void **state)
{
	struct arena a = { 0 };
	const struct json_value *old = document_of((struct how){ .version = "0.11.0" }, &a);
	const struct json_value *now = document_of((struct how){ .version = "0.32.0" }, &a);
	size_t n = sizeof(defaults_golden) / sizeof(*defaults_golden);

	(void)state;
	assert_int_equal(n, 129);
	for (size_t i = 0; i < n; i++) {
		const char *path = arena_printf(&a, "config.server.%s", defaults_golden[i].name);

		expect_json(old, path, defaults_golden[i].old);
		expect_json(now, path, defaults_golden[i].now);
	}
	expect_json(old, "config.server_defaults.version", "\"0.11.0\"");
	expect_json(old, "config.server_defaults.reason", "null");
	/* Arguments that came later are absent, the address is not a default. */
	expect_json(old, "config.server.grpc", NULL);
	expect_json(old, "config.server.aggregate_engine_logging", NULL);
	expect_json(now, "config.server.grpc", "false");
	expect_json(old, "config.server.port", "null");
	assert_true(at(now, "config.server")->count > 290);
	arena_release(&a);
}

/* Where no release is known every default is null, and the document says why. */
static void test_unknown_defaults(void **state)
{
	static const struct { const char *version, *url, *args, *reason; } rows[] = {
		{ NULL, NULL, NULL, "\"not reported\"" },
		{ "0.11.1.dev7+g1a2b3c4", NULL, NULL, "\"development version\"" },
		{ "0.99.0", NULL, NULL, "\"newer than the table\"" },
		{ "0.9.2", NULL, NULL, "\"older than the table\"" },
		{ "profllm-sim", NULL, NULL, "\"not a version of vLLM\"" },
		{ "0.11.0", "http://h:1", NULL, "\"started by others\"" },
		{ "0.11.0", NULL, "{\"config\": \"more.yaml\"}", "\"arguments in a file\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena a = { 0 };
		const struct json_value *v = document_of((struct how){
			.version = rows[i].version, .url = rows[i].url, .args = rows[i].args,
			.reported = "{\"max_model_len\": 4096}" }, &a), *server = at(v, "config.server");

		expect_json(v, "config.server_defaults.reason", rows[i].reason);
		expect_json(v, "config.server_defaults.version", "null");
		expect_json(v, "config.server.max_model_len", "4096");
		for (size_t k = 0; k < server->count; k++)
			if (!str_is(server->key[k], "max_model_len") && !str_is(server->key[k], "config"))
				assert_int_equal(server->item[k].kind, JSON_NULL);
		expect_json(v, "config.server.gpu_memory_utilization", rows[i].url ? NULL : "null");
		arena_release(&a);
	}
}

/* What was configured counts, then what was reported, then the default. */
static void test_sources(void **state)
{
	static char *command[] = { "vllm", "serve", "m", "--block-size", "32", "--seed=1", "--dtype", "half",
				   NULL };
	static char *extra[] = { "--seed", "3", "--no-enable-prefix-caching", "--tomorrow", NULL };
	struct arena a = { 0 };
	const struct json_value *v = document_of((struct how){
		.version = "0.11.0", .command = command, .extra = extra,
		.args = "{\"dtype\": \"auto\", \"seed\": 2, \"max_num_seqs\": 8,"
			" \"kv_transfer_config.kv_role\": \"kv_both\", \"scheduler_delay_factor\": 0.5}",
		.reported = "{\"dtype\": \"bfloat16\", \"max_num_seqs\": 9, \"max_model_len\": 77,"
			" \"gpu_memory_utilization\": 0.91, \"enable_prefix_caching\": false,"
			" \"quantization\": null}" }, &a);

	(void)state;
	expect_json(v, "config.server.model", "\"m\"");
	expect_json(v, "config.server.block_size", "32");
	expect_json(v, "config.server.seed", "3");
	expect_json(v, "config.server.dtype", "\"auto\"");
	expect_json(v, "config.server.max_num_seqs", "8");
	expect_json(v, "config.server.scheduler_delay_factor", "0.5");
	expect_json(v, "config.server.max_model_len", "77");
	expect_json(v, "config.server.gpu_memory_utilization", "0.91");
	expect_json(v, "config.server.enable_prefix_caching", "false");
	expect_json(v, "config.server.swap_space", "4.0");
	expect_json(v, "config.server_defaults.reported.dtype", "\"bfloat16\"");
	/* Quantization was reported: there is none. */
	expect_json(v, "config.server_defaults.not_reported",
		    "[\"kv_cache_dtype\", \"tokenizer\", \"distributed_executor_backend\","
		    " \"max_num_batched_tokens\", \"enable_chunked_prefill\"]");
	arena_release(&a);
}

/* An engine without a server: its worker says what it is. */
static void test_alone(void **state)
{
	static const char result[] =
		"{\"elapsed_time\": 1.0, \"profllm\": {\"engine\": {\"name\": \"%s\", \"version\":"
		" \"0.11.0\", \"told\": {\"dtype\": \"bfloat16\", \"has_prefix_caching\": true,"
		" \"version\": \"0.11.0\"}}}}";
	struct arena a = { 0 };
	const struct json_value *v = document_of((struct how){ .mode = MODE_THROUGHPUT,
		.result = arena_printf(&a, result, "vllm") }, &a);

	(void)state;
	expect_json(v, "config.server.gpu_memory_utilization", "0.9");
	expect_json(v, "config.server.dtype", "\"bfloat16\"");
	expect_json(v, "config.server.enable_prefix_caching", "true");
	expect_json(v, "config.server.port", NULL); /* there is no HTTP server */
	expect_json(v, "config.server_defaults.version", "\"0.11.0\"");
	v = document_of((struct how){ .mode = MODE_THROUGHPUT,
		.result = arena_printf(&a, result, "hf") }, &a);
	expect_json(v, "config.server_defaults.reason", "\"another engine\"");
	expect_json(v, "config.server.gpu_memory_utilization", "null");
	arena_release(&a);
}

static const char *hash_with(const char *version, const char *reported, struct arena *a)
{
	const struct json_value *v = document_of((struct how){ .version = version,
							       .reported = reported }, a);

	expect_json(v, "config.configured_hash", "\"123456789abcdef0\"");
	return json_at(v, "config.hash", a);
}

/* Equal where the same was used, whatever the version is called. */
static void test_hash(void **state)
{
	struct arena a = { 0 };
	const char *hash = hash_with("0.13.0", "{\"max_model_len\": 8}", &a);

	(void)state;
	assert_string_equal(hash, hash_with("0.13.0", "{\"max_model_len\": 8}", &a));
	assert_string_equal(hash, hash_with("0.13.0+cu129", "{\"max_model_len\": 8}", &a));
	assert_string_not_equal(hash, hash_with("0.13.0", "{\"max_model_len\": 9}", &a));
	assert_string_not_equal(hash, hash_with("0.13.0", NULL, &a));
	assert_string_not_equal(hash, hash_with("0.19.0", "{\"max_model_len\": 8}", &a));
	assert_string_not_equal(hash, hash_with(NULL, "{\"max_model_len\": 8}", &a));
	arena_release(&a);
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
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_schema),	     cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_unknown_defaults), cmocka_unit_test(test_sources),
		cmocka_unit_test(test_alone),	     cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, release);
}
