/* SPDX-License-Identifier: Apache-2.0 */
/* kind.c - see kind.h. */
#include "results/read/kind.h"

#include <assert.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define NIGHTLY_HEADS_MIN 2

static bool is_document(const struct json_value *v)
{
	return json_get(v, "config") &&
	       (json_get(v, "results") || json_get(v, "status") || json_get(v, "schema_version"));
}

static bool is_pytorch(const struct json_value *v)
{
	const struct json_value *first, *metric;

	if (!v || v->kind != JSON_ARRAY || !v->count)
		return false;
	first = &v->item[0];
	metric = json_get(first, "metric");
	return json_get(first, "benchmark") && json_get(metric, "name") &&
	       json_get(metric, "benchmark_values");
}

static bool is_aiperf(const struct json_value *v)
{
	return json_get(v, "aiperf_version") && json_get(v, "input_config");
}

static bool is_genai_perf(const struct json_value *v)
{
	return json_get(json_get(v, "input_config"), "perf_analyzer") &&
	       !json_get(v, "aiperf_version");
}

static bool is_guidellm(const struct json_value *v)
{
	return json_get(v, "guidellm") && json_get(v, "benchmark");
}

static bool is_mlperf(const struct json_value *v)
{
	const struct json_value *log = json_get(v, "mlperf_loadgen");

	return log && log->kind == JSON_OBJECT;
}

static bool is_endpoints(const struct json_value *v)
{
	return json_get(v, "n_samples_issued") && json_get(v, "ttft") && json_get(v, "latency");
}

static bool is_inferencex(const struct json_value *v)
{
	return json_get(v, "tput_per_gpu") && json_get(v, "hw") && json_get(v, "conc");
}

static bool is_mm_processor(const struct json_value *v)
{
	const struct json_value *stats = json_get(v, "mm_processor_stats");

	return stats && stats->kind == JSON_OBJECT;
}

static bool has_one_of(const struct json_value *v, const char *const *key, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (json_get(v, key[i]))
			return true;
	return false;
}

static bool is_serve(const struct json_value *v)
{
	static const char *const sign[] = {
		"request_throughput", "input_sequence_throughput", "mean_ttft_ms", "mean_e2el_ms",
	};

	return has_one_of(v, sign, COUNT(sign)) && !json_get(v, "mm_processor_stats");
}

static bool is_throughput(const struct json_value *v)
{
	return json_get(v, "requests_per_second") || json_get(v, "elapsed_time");
}

static bool is_latency(const struct json_value *v)
{
	return json_get(v, "avg_latency") != NULL;
}

static bool is_startup(const struct json_value *v)
{
	for (size_t i = 0; v && v->kind == JSON_OBJECT && i < v->count; i++)
		if ((str_starts(v->key[i], STR("avg_cold_")) ||
		     str_starts(v->key[i], STR("avg_warm_"))) && str_ends(v->key[i], STR("_time")))
			return true;
	return json_get(v, "total_startup_time") != NULL;
}

/* A row of the tables that people read: its keys are their heads. */
static bool is_nightly(const struct json_value *v)
{
	static const char *const ending[] = { "(ms)", "(s)", "(req/s)", "(tok/s)" };
	static const char *const head[] = {
		"Model", "Dataset Name", "Input Len", "Output Len", "TP Size", "PP Size", "dtype",
		"# of req.", "qps", "# of max concurrency.", "P99", "Total # of tokens", "Test name",
	};
	size_t known = 0;

	for (size_t i = 0; v && v->kind == JSON_OBJECT && i < v->count; i++) {
		for (size_t k = 0; k < COUNT(head); k++)
			known += str_is(v->key[i], head[k]);
		for (size_t k = 0; k < COUNT(ending); k++)
			known += str_ends(v->key[i], str_of(ending[k]));
	}
	return known >= NIGHTLY_HEADS_MIN && (json_get(v, "Test name") || json_get(v, "GPU"));
}

/* In the order they are tried: what could be taken for another comes first. */
static const struct {
	const char *name;
	bool (*is)(const struct json_value *v);
} kinds[RESULT_KINDS] = {
	[RESULT_DOCUMENT] = { "profllm", is_document },
	[RESULT_PYTORCH] = { "pytorch", is_pytorch },
	[RESULT_AIPERF] = { "aiperf", is_aiperf },
	[RESULT_GENAI_PERF] = { "genai-perf", is_genai_perf },
	[RESULT_GUIDELLM] = { "guidellm", is_guidellm },
	[RESULT_MLPERF] = { "mlperf-loadgen", is_mlperf },
	[RESULT_ENDPOINTS] = { "mlperf-endpoints", is_endpoints },
	[RESULT_INFERENCEX] = { "inferencex", is_inferencex },
	[RESULT_MM_PROCESSOR] = { "mm-processor", is_mm_processor },
	[RESULT_SERVE] = { "serve", is_serve },
	[RESULT_THROUGHPUT] = { "throughput", is_throughput },
	[RESULT_LATENCY] = { "latency", is_latency },
	[RESULT_STARTUP] = { "startup", is_startup },
	[RESULT_NIGHTLY] = { "nightly", is_nightly },
};

enum result_kind result_kind(const struct json_value *v)
{
	enum result_kind kind = RESULT_NONE + 1;

	while (kind < RESULT_KINDS && !kinds[kind].is(v))
		kind++;
	return kind < RESULT_KINDS ? kind : RESULT_NONE;
}

const char *result_kind_name(enum result_kind kind)
{
	assert(kind > RESULT_NONE && kind < RESULT_KINDS);
	return kinds[kind].name;
}

bool result_is_record(const struct json_value *v)
{
	enum result_kind kind = result_kind(v);

	return (kind >= RESULT_MM_PROCESSOR && kind <= RESULT_STARTUP) ||
	       (kind == RESULT_NONE && json_get(v, "output_throughput"));
}

/* ---- lists of them ---- */

const struct json_value *result_suite(const struct json_value *v)
{
	const struct json_value *list = json_get(v, "experiments");

	return json_get(v, "schema_version") && list && list->kind == JSON_ARRAY ? list : NULL;
}

bool result_is_wrapper(struct str key)
{
	static const char *const wrapper[] = { "results", "serving_results", "benchmarks", "data" };

	for (size_t i = 0; i < COUNT(wrapper); i++)
		if (str_is(key, wrapper[i]))
			return true;
	return false;
}

const struct json_value *result_wrapped(const struct json_value *v)
{
	if (!v || v->kind != JSON_OBJECT || json_get(v, "config") || json_get(v, "schema_version"))
		return NULL;
	for (size_t i = v->count; i-- > 0;)
		if (v->item[i].kind == JSON_ARRAY && result_is_wrapper(v->key[i]))
			return &v->item[i];
	return NULL;
}
