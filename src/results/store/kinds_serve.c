/* SPDX-License-Identifier: Apache-2.0 */
/* store/kinds_serve.c - see kinds.h: results of the verbs, nightlies, PyTorch records. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/schema/schema.h"
#include "results/index/names.h"
#include "results/store/kinds.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* Keys of what was run, with the options' names. "": not a cell. */
static const struct rename setup[] = {
	{ "date", "" }, { "endpoint_type", "" }, { "backend", "benchmark.backend" },
	{ "label", "label" }, { "model_id", "server.model" }, { "tokenizer_id", "benchmark.tokenizer" },
	{ "num_prompts", "benchmark.num_prompts" }, { "request_rate", "benchmark.request_rate" },
	{ "burstiness", "benchmark.burstiness" },
	{ "max_concurrency", "benchmark.max_concurrency" },
	{ "ramp_up_strategy", "benchmark.ramp_up_strategy" },
	{ "ramp_up_start_rps", "benchmark.ramp_up_start_rps" },
	{ "ramp_up_end_rps", "benchmark.ramp_up_end_rps" }, { "rps_change_events", "" },
	{ "completed_requests", "completed" }, { "failed_requests", "failed" },
	/* As they are, and not looked up as others. */
	{ "duration", "duration" }, { "completed", "completed" }, { "failed", "failed" },
	{ "total_input_tokens", "total_input_tokens" },
	{ "total_output_tokens", "total_output_tokens" },
	{ "request_throughput", "request_throughput" },
	{ "request_goodput", "request_goodput" }, { "output_throughput", "output_throughput" },
	{ "total_token_throughput", "total_token_throughput" },
	{ "max_output_tokens_per_s", "max_output_tokens_per_s" },
	{ "max_concurrent_requests", "max_concurrent_requests" }, { "rtfx", "rtfx" },
	{ "total_requests", "total_requests" }, { "num_warmups", "benchmark.num_warmups" },
	{ "run_number", "repeat" }, { "_benchmark_name", "name" },
	{ "spec_decode_per_position_acceptance_rates", "" },
	/* Of vLLM's script for structured output. */
	{ "correct_rate(%)", "correctness.correct_rate_upstream" }, { "outputs", "" },
	{ "ttft_description", "" }, { "tpot_description", "" },
	/* Per request, or per iteration: kept with the arrays. */
	{ "input_lens", "" }, { "output_lens", "" }, { "ttfts", "" }, { "itls", "" },
	{ "latencies", "" }, { "start_times", "" }, { "queue_times", "" }, { "generated_texts", "" },
	{ "errors", "" },
};

/* "percentiles_ttft_ms": [[50, x], ...] */
static bool put_list_of_percentiles(struct reading *r, struct str key, const struct json_value *v)
{
	char name[64];
	struct str head = STR("percentiles_");

	if (!str_starts(key, head) || key.n - head.n >= sizeof(name))
		return false;
	memcpy(name, key.p + head.n, key.n - head.n);
	name[key.n - head.n] = 0;
	put_percentiles(r, "", name, v);
	return true;
}

/*
 * A search for the largest load has separate numbers for its answer, which holds under its limits
 * on latency: "p99_ttft_ms<200,p99_tpot_ms<30".
 */
static bool put_search(struct reading *r, struct str key, const struct json_value *v)
{
	const struct json_value *list = json_get(v, "limits");
	struct buf text = { 0 };

	if (!str_is(key, "capacity") || v->kind != JSON_OBJECT)
		return false;
	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++) {
		struct str limit = json_text(json_get(&list->item[i], "limit"), STR(""));

		/* the last one is on failed requests: it is in words */
		if (limit.n && !memchr(limit.p, ' ', limit.n))
			buf_printf(&text, "%s%.*s", text.len ? "," : "", (int)limit.n, limit.p);
	}
	if (text.len)
		cells_put_text(r->cells, "capacity_limits",
			       arena_str(r->cells->arena, buf_str(&text)));
	buf_release(&text);
	return true;
}

static bool is_result(struct str key, const struct json_value *v)
{
	bool is_number = v->kind == JSON_INT || v->kind == JSON_REAL || v->kind == JSON_NULL;
	char name[96];

	if (is_number && str_ends(key, STR("_ms")))
		return true;
	if (key.n >= sizeof(name) || !key.n)
		return false;
	memcpy(name, key.p, key.n);
	name[key.n] = 0;
	if (!memchr(name, '.', key.n) && schema_field_find(name))
		return true;
	return is_number && is_metric_name(key);
}

/* "2xH100", or a line for each GPU. */
static void put_gpu(struct reading *r, struct str gpu)
{
	struct str rest = gpu, name = str_cut(&rest, '\n');
	double gpus = 1;
	size_t digits = 0;

	while (digits < name.n && name.p[digits] >= '0' && name.p[digits] <= '9')
		digits++;
	if (digits && digits < 4 && digits < name.n && name.p[digits] == 'x') {
		str_to_f64((struct str){ name.p, digits }, &gpus);
		name = (struct str){ name.p + digits + 1, name.n - digits - 1 };
	}
	while (rest.n)
		gpus += str_cut(&rest, '\n').n > 0;
	if (!name.n)
		return;
	cells_put_text(r->cells, "hardware.gpu", name);
	cells_put_number(r->cells, "hardware.gpus", gpus);
}

/*
 * What vLLM's performance suite left next to a result (result_add_commands): the server's command
 * and the GPU. That of the load is in the document; its options are in the result.
 */
static bool put_suite(struct reading *r, const struct json_value *result, struct str key,
		      const struct json_value *v)
{
	static const struct rename member[] = {
		{ "test_name", "name" }, { "client_command", "" }, { "latency_command", "" },
		{ "throughput_command", "" },
	};
	struct json_value words = { .kind = JSON_ARRAY };
	char **word;

	if (!json_get(result, "test_name") || v->kind != JSON_STRING)
		return false;
	if (str_is(key, "gpu_type")) {
		put_gpu(r, v->text);
		return true;
	}
	if (!str_is(key, "server_command"))
		return put_renamed(r, member, COUNT(member), key, v);
	if (words_split(v->text, r->scratch, &word, &words.count, NULL) < 0)
		return true;
	words.item = arena_alloc(r->scratch, (words.count + 1) * sizeof(*words.item));
	for (size_t i = 0; i < words.count; i++)
		words.item[i] = (struct json_value){ .kind = JSON_STRING, .text = str_of(word[i]) };
	put_engine_args(r, &words);
	return true;
}

int put_serve(struct reading *r, const struct json_value *v, struct err *e)
{
	const struct json_value *ours = json_get(v, "profllm"), *date = json_get(v, "date");

	(void)e;
	cells_put_text(r->cells, "mode", STR("serve"));
	put_ours(r, ours);
	put_date(r, date);
	for (size_t i = 0; i < v->count; i++) {
		struct str key = v->key[i];
		const struct json_value *m = &v->item[i];

		if (str_is(key, "profllm") || put_suite(r, v, key, m) ||
		    put_renamed(r, setup, COUNT(setup), key, m) ||
		    put_list_of_percentiles(r, key, m) || put_search(r, key, m))
			continue;
		if (is_result(key, m))
			put_metric(r, key, m);
		else
			put_parameter(r, key, m);
	}
	return 0;
}

/* ---- throughput, latency, startup, mm-processor; ours and vLLM's ---- */


/* Members of results of any verb that are not metrics. */
static const struct rename common[] = {
	{ "model_id", "server.model" }, { "run_number", "repeat" }, { "_benchmark_name", "name" },
	{ "latencies", "" }, { "warmup_latencies", "" }, { "profllm", "" }, { "timestamp", "" },
};

static void put_member(struct reading *r, const struct json_value *result, struct str key,
		       const struct json_value *v)
{
	if (put_suite(r, result, key, v) || put_renamed(r, common, COUNT(common), key, v))
		return;
	if (is_metric_name(key) && v->kind != JSON_STRING)
		put_metric(r, key, v);
	else
		put_parameter(r, key, v);
}

/* The run's own options, which take precedence over other sources. */
static void put_setup(struct reading *r, const struct json_value *v)
{
	put_date(r, json_get(v, "timestamp"));
	put_ours(r, json_get(v, "profllm"));
}

/* ---- throughput ---- */

/* Verbs whose results are those of throughput with additions. */
static struct str verb_of(const struct json_value *v)
{
	static const char *const verb[] = { "prioritization", "prefix-caching", "long-document-qa" };
	struct str command = json_text(json_get(json_get(v, "profllm"), "command"), STR(""));

	for (size_t i = 0; i < COUNT(verb); i++)
		if (str_is(command, verb[i]))
			return command;
	return STR("throughput");
}

int put_throughput(struct reading *r, const struct json_value *v, struct err *e)
{
	static const struct rename result[] = {
		{ "elapsed_time", "duration" }, { "num_requests", "completed" },
		{ "total_num_tokens", "total_tokens" },
		{ "requests_per_second", "request_throughput" },
		{ "tokens_per_second", "total_token_throughput" },
	};

	(void)e;
	cells_put_text(r->cells, "mode", verb_of(v));
	for (size_t i = 0; i < v->count; i++)
		if (!put_renamed(r, result, COUNT(result), v->key[i], &v->item[i]))
			put_member(r, v, v->key[i], &v->item[i]);
	put_setup(r, v);
	return 0;
}

/* ---- latency ---- */

int put_latency(struct reading *r, const struct json_value *v, struct err *e)
{
	(void)e;
	cells_put_text(r->cells, "mode", STR("latency"));
	put_percentiles(r, "", "latency", json_get(v, "percentiles"));
	for (size_t i = 0; i < v->count; i++)
		if (!str_is(v->key[i], "percentiles"))
			put_member(r, v, v->key[i], &v->item[i]);
	put_setup(r, v);
	return 0;
}

/* ---- startup ---- */

int put_startup(struct reading *r, const struct json_value *v, struct err *e)
{
	struct str tail = STR("_percentiles");
	char name[128];

	(void)e;
	cells_put_text(r->cells, "mode", STR("startup"));
	for (size_t i = 0; i < v->count; i++) {
		struct str key = v->key[i];

		if (str_ends(key, tail) && key.n < sizeof(name)) {
			snprintf(name, sizeof(name), "%.*s_time", (int)(key.n - tail.n), key.p);
			put_percentiles(r, "", name, &v->item[i]);
		} else if (!str_ends(key, STR("_times"))) {
			put_member(r, v, key, &v->item[i]);
		}
	}
	put_setup(r, v);
	return 0;
}

/* ---- mm-processor ---- */

/* {stage: {"mean": x, "p99.0": y}} as mean_STAGE, p99_STAGE. */
static void put_stages(struct reading *r, const struct json_value *stages)
{
	char name[192];

	for (size_t i = 0; i < stages->count; i++) {
		const struct json_value *stage = &stages->item[i];

		for (size_t k = 0; stage->kind == JSON_OBJECT && k < stage->count; k++) {
			struct str stat = stage->key[k], of = stages->key[i];

			if (str_ends(stat, STR(".0")))
				stat.n -= 2;
			snprintf(name, sizeof(name), "%.*s_%.*s", (int)(stat.n < 32 ? stat.n : 32), stat.p,
				 (int)(of.n < 96 ? of.n : 96), of.p);
			put_metric(r, str_of(name), &stage->item[k]);
		}
	}
}

int put_mm_processor(struct reading *r, const struct json_value *v, struct err *e)
{
	static const struct rename result[] = {
		{ "completed", "completed" }, { "failed", "failed" }, { "mm_processor_stats", "" },
		{ "encoder_summary", "" }, { "config", "" },
	};
	const struct json_value *config = json_get(v, "config");

	(void)e;
	cells_put_text(r->cells, "mode", STR("mm-processor"));
	cells_put_json(r->cells, NULL, STR("server.model"), json_get(config, "model"));
	cells_put_members(r->cells, "benchmark", config);
	cells_put_json(r->cells, NULL, STR("encoder_calls"),
		       json_get(json_get(v, "encoder_summary"), "total_encoder_calls"));
	put_stages(r, json_get(v, "mm_processor_stats"));
	put_percentiles(r, "", "e2el_ms", json_get(v, "percentiles_e2el_ms"));
	for (size_t i = 0; i < v->count; i++)
		if (!put_renamed(r, result, COUNT(result), v->key[i], &v->item[i]) &&
		    !str_starts(v->key[i], STR("percentiles_")))
			put_member(r, v, v->key[i], &v->item[i]);
	put_setup(r, v);
	return 0;
}

/*
 * A record of vLLM's benchmark_results.json, whose keys are the
 * heads of the tables that people read.
 */


static const struct rename head[] = {
	{ "Test name", "name" }, { "Model", "server.model" },
	{ "Dataset Name", "benchmark.dataset_name" }, { "Input Len", "benchmark.random_input_len" },
	{ "Output Len", "benchmark.random_output_len" }, { "TP Size", "server.tensor_parallel_size" },
	{ "PP Size", "server.pipeline_parallel_size" }, { "dtype", "server.dtype" },
	{ "# of req.", "completed" }, { "qps", "benchmark.request_rate" },
	{ "# of max concurrency.", "benchmark.max_concurrency" },
	{ "Tput (req/s)", "request_throughput" },
	{ "Total Token Tput (tok/s)", "total_token_throughput" },
	{ "Tput (tok/s)", "total_token_throughput" }, { "Output Tput (tok/s)", "output_throughput" },
	{ "Mean TTFT (ms)", "mean_ttft_ms" }, { "P99 TTFT (ms)", "p99_ttft_ms" },
	{ "STD TTFT (ms)", "std_ttft_ms" }, { "Mean TPOT (ms)", "mean_tpot_ms" },
	{ "P99", "p99_tpot_ms" }, { "STD TPOT (ms)", "std_tpot_ms" },
	{ "Mean ITL (ms)", "mean_itl_ms" }, { "P99 ITL (ms)", "p99_itl_ms" },
	{ "Total # of tokens", "total_tokens" }, { "Elapsed time (s)", "duration" },
	{ "Mean cold startup (s)", "avg_cold_startup_time" },
	{ "Mean cold compilation (s)", "avg_cold_compilation_time" },
	{ "Mean warm startup (s)", "avg_warm_startup_time" },
	{ "Mean warm compilation (s)", "avg_warm_compilation_time" },
};
static const struct rename median[] = {
	{ "Median TTFT (ms)", "median_ttft_ms" }, { "Median", "median_tpot_ms" },
	{ "Median ITL (ms)", "median_itl_ms" },
};
/* Milliseconds that everywhere else are seconds. */
static const struct rename seconds[] = {
	{ "Mean latency (ms)", "avg_latency" }, { "Median latency (ms)", "median_latency" },
	{ "P99 latency (ms)", "p99_latency" },
};

static bool put_seconds(struct reading *r, struct str key, const struct json_value *v)
{
	struct value one = value_of(v);

	for (size_t i = 0; i < COUNT(seconds); i++) {
		if (!str_is(key, seconds[i].key))
			continue;
		if (one.kind == VALUE_NUMBER)
			one.number /= 1000;
		put_metric_value(r, str_of(seconds[i].column), one);
		return true;
	}
	return false;
}

static bool put_median(struct reading *r, struct str key, const struct json_value *v)
{
	for (size_t i = 0; i < COUNT(median); i++)
		if (str_is(key, median[i].key)) {
			put_metric(r, str_of(median[i].column), v);
			return true;
		}
	return false;
}

/* What was measured, by the heads that only its table has; a table of another kind: NULL. */
static const char *nightly_mode(const struct json_value *v)
{
	return json_get(v, "Mean TTFT (ms)") || json_get(v, "Median TTFT (ms)") ? "serve" :
	       json_get(v, "Mean latency (ms)") ? "latency" :
	       json_get(v, "Mean cold startup (s)") || json_get(v, "Mean warm startup (s)") ? "startup" :
	       json_get(v, "Elapsed time (s)") ? "throughput" : NULL;
}

int put_nightly(struct reading *r, const struct json_value *v, struct err *e)
{
	const char *mode = nightly_mode(v);

	(void)e;
	if (mode)
		cells_put_text(r->cells, "mode", str_of(mode));
	for (size_t i = 0; i < v->count; i++) {
		struct str key = v->key[i];
		const struct json_value *m = &v->item[i];

		if (str_is(key, "GPU") && m->kind == JSON_STRING)
			put_gpu(r, m->text);
		else if (!put_renamed(r, head, COUNT(head), key, m) && !put_median(r, key, m) &&
			 !put_seconds(r, key, m))
			put_parameter(r, key, m);
	}
	return 0;
}

/*
 * The list of records written with SAVE_TO_PYTORCH_BENCHMARK_FORMAT: one run as a record per
 * metric.
 */

static const struct json_value *path(const struct json_value *v, const char *a, const char *b)
{
	return json_get(json_get(v, a), b);
}

/* One value, or the mean of several; NAN: none. */
static double mean_of(const struct json_value *list)
{
	double sum = 0;

	if (!list || list->kind != JSON_ARRAY || !list->count)
		return NAN;
	for (size_t i = 0; i < list->count; i++)
		sum += json_real(&list->item[i], NAN);
	return sum / (double)list->count;
}

/* The result that the records were made from: their metrics, then the first one's extra_info. */
static struct json_value gather(struct reading *r, const struct json_value *list)
{
	const struct json_value *extra = json_get(json_get(&list->item[0], "metric"), "extra_info");
	struct json_value out = { .kind = JSON_OBJECT };
	size_t room = list->count + (extra && extra->kind == JSON_OBJECT ? extra->count : 0);

	out.key = arena_alloc(r->scratch, (room + 1) * sizeof(*out.key));
	out.item = arena_alloc(r->scratch, (room + 1) * sizeof(*out.item));
	for (size_t i = 0; i < list->count; i++) {
		struct str name = json_text(path(&list->item[i], "metric", "name"), STR(""));
		double v = mean_of(path(&list->item[i], "metric", "benchmark_values"));

		if (!name.n)
			continue;
		out.key[out.count] = str_is(name, "latency") ? STR("avg_latency") : name;
		out.item[out.count++] = (struct json_value){ .kind = JSON_REAL, .real = v };
	}
	for (size_t i = 0; i < room - list->count; i++) {
		out.key[out.count] = extra->key[i];
		out.item[out.count++] = extra->item[i];
	}
	return out;
}

/* Every option of the command; what both a server and the load have is the server's offline. */
static void put_args(struct reading *r, const struct json_value *args, bool is_serving)
{
	static const char *const inside[] = {
		"subparser", "bench_type", "dispatch_function", "config", "output_json",
		"result_filename", "result_dir", "save_result", "save_detailed", "metadata",
		"request_id_prefix", "logging_config",
	};

	for (size_t i = 0; args && args->kind == JSON_OBJECT && i < args->count; i++) {
		struct str key = args->key[i];
		bool is_inside = false;

		for (size_t k = 0; k < sizeof(inside) / sizeof(*inside); k++)
			is_inside |= str_is(key, inside[k]);
		if (is_inside)
			continue;
		if (is_serving && !str_is(key, "tensor_parallel_size"))
			cells_put_json(r->cells, "benchmark", key, &args->item[i]);
		else
			put_parameter(r, key, &args->item[i]);
	}
}

int put_pytorch(struct reading *r, const struct json_value *v, struct err *e)
{
	const struct json_value *first = &v->item[0], *info, *model;
	struct json_value result = gather(r, v);
	enum result_kind kind = result_kind(&result);

	info = json_get(json_get(first, "benchmark"), "extra_info");
	model = path(first, "model", "name");
	if (model && model->kind == JSON_STRING)
		cells_put_json(r->cells, NULL, STR("server.model"), model);
	cells_put_json(r->cells, NULL, STR("server.compilation_config.mode"),
		       json_get(info, "compilation_config.mode"));
	cells_put_json(r->cells, NULL, STR("server.optimization_level"),
		       json_get(info, "optimization_level"));
	put_args(r, json_get(info, "args"), kind == RESULT_SERVE);
	return put_kind(r, kind == RESULT_NONE ? RESULT_SERVE : kind, &result, e);
}
