/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/kinds_foreign.c - see kinds.h: results of other tools' load generators.
 *
 * A figure only gets one of our columns if it means the same (docs/guide/store.md has a table for
 * each tool); all others stay in the document. A tool is described by tables: where its figures
 * are, the column of each, and its unit.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/store/kinds.h"
#include "results/store/read.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define NAME_BYTES 96

/* ---- what the tools have in common ---- */

enum unit { AS_IT_IS, S_IN_MS, NS_IN_MS, NS_IN_S };
/* Multiplied and divided, so that one rounding is all that a conversion costs. */
static const struct { double times, over; } scale[] = {
	[AS_IT_IS] = { 1, 1 }, [S_IN_MS] = { 1000, 1 }, [NS_IN_MS] = { 1, 1e6 },
	[NS_IN_S] = { 1, 1e9 },
};

/* One value: its members' names with dots between, and its column. */
struct figure { const char *path, *column; enum unit unit; };
/* An object with an average and percentiles: as mean_NAME, p99_NAME ... */
struct timing { const char *path, *name; enum unit unit; };

static const struct json_value *first_of(const struct json_value *list)
{
	return list && list->kind == JSON_ARRAY && list->count ? &list->item[0] : NULL;
}

/* "metrics.request_latency.successful"; NULL: it is not there. */
static const struct json_value *at(const struct json_value *v, const char *path)
{
	struct str rest = str_of(path);
	char key[NAME_BYTES];

	while (v && rest.n) {
		struct str name = str_cut(&rest, '.');

		snprintf(key, sizeof(key), "%.*s", (int)name.n, name.p);
		v = json_get(v, key);
	}
	return v;
}

static struct value in_unit(const struct json_value *v, enum unit unit)
{
	struct value one = value_of(v);

	if (one.kind == VALUE_NUMBER)
		one.number = one.number * scale[unit].times / scale[unit].over;
	return one;
}

static void put_figures(struct reading *r, const struct json_value *v, const struct figure *table,
			size_t n)
{
	for (size_t i = 0; i < n; i++)
		cells_put(r->cells, str_of(table[i].column),
			  in_unit(at(v, table[i].path), table[i].unit));
}

/*
 * "p99", "99.00", "99.9" and "p999" as "p99" and "p99.9": three digits without a point have one
 * before the last. false: not the name of a percentile.
 */
static bool percentile_name(struct str key, char out[16])
{
	size_t from = key.n && key.p[0] == 'p', n = key.n - from;
	char digits[8], *end;
	double p;

	if (!n || n >= sizeof(digits))
		return false;
	for (size_t i = from; i < key.n; i++)
		if (key.p[i] != '.' && (key.p[i] < '0' || key.p[i] > '9'))
			return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)n, key.p + from);
	p = str_strtod(digits, &end);
	if (*end)
		return false;
	if (n == 3 && !strchr(digits, '.'))
		p /= 10;
	snprintf(out, 16, "p%g", p);
	return p >= 0 && p <= 100;
}

/*
 * "avg": x, "std": y, "p99": z, "percentiles": {"99.0": z}; other members have no column. A
 * standard deviation of the sample, which divides by n - 1, is ignored.
 */
static void put_statistics(struct reading *r, const struct json_value *of, const char *name,
			   enum unit unit)
{
	static const struct { const char *key, *stat; } known[] = {
		{ "avg", "mean" }, { "mean", "mean" }, { "median", "median" }, { "std", "std" },
	};
	char column[NAME_BYTES], stat[16];

	for (size_t i = 0; of && of->kind == JSON_OBJECT && i < of->count; i++) {
		struct str key = of->key[i];
		bool is_known = percentile_name(key, stat);

		if (str_is(key, "percentiles")) {
			put_statistics(r, &of->item[i], name, unit);
			continue;
		}
		for (size_t k = 0; !is_known && k < COUNT(known); k++) {
			is_known = str_is(key, known[k].key);
			snprintf(stat, sizeof(stat), "%s", known[k].stat);
		}
		if (!is_known)
			continue;
		snprintf(column, sizeof(column), "%s_%s", stat, name);
		put_metric_value(r, str_of(column), in_unit(&of->item[i], unit));
	}
}

static void put_timings(struct reading *r, const struct json_value *v, const struct timing *table,
			size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_statistics(r, at(v, table[i].path), table[i].name, table[i].unit);
}

/* Failed: no request succeeded; partial: some did not. NAN: unknown, and taken as none. */
static void put_status(struct reading *r, double completed, double failed)
{
	cells_put_text(r->cells, "mode", STR("serve"));
	cells_put_text(r->cells, "status", completed <= 0 ? STR("failed") :
		       failed > 0 ? STR("partial") : STR("completed"));
}

/* From the API's name or path: the backend with the same requests. */
static void put_backend(struct reading *r, struct str api)
{
	if (str_is(api, "completions") || str_ends(api, STR("/v1/completions")))
		cells_put_text(r->cells, "benchmark.backend", STR("openai"));
	else if (str_is(api, "chat") || str_ends(api, STR("/v1/chat/completions")))
		cells_put_text(r->cells, "benchmark.backend", STR("openai-chat"));
}

static void put_random(struct reading *r, const struct json_value *input,
		       const struct json_value *output)
{
	if (!input)
		return;
	cells_put_text(r->cells, "benchmark.dataset_name", STR("random"));
	cells_put_json(r->cells, NULL, STR("benchmark.random_input_len"), input);
	cells_put_json(r->cells, NULL, STR("benchmark.random_output_len"), output);
}

/* Whatever is not measured is sent when a slot is free. */
static void put_all_at_once(struct reading *r)
{
	cells_put_number(r->cells, "benchmark.request_rate", INFINITY);
}

static int no_object(const char *tool, const char *key, struct err *e)
{
	return err_set(e, ERR_PARSE, "%s's result has no object \"%s\", so there is nothing to "
		       "ingest; expected the file as %s wrote it", tool, key, tool);
}

/* ---- aiperf's profile_export_aiperf.json, genai-perf's profile_export_genai_perf.json ---- */

static const struct timing perf_timings[] = {
	{ "time_to_first_token", "ttft_ms", AS_IT_IS },
	/* A request's (latency - TTFT) / (tokens - 1). */
	{ "inter_token_latency", "tpot_ms", AS_IT_IS },
	/* Between the events of a stream; only aiperf has it. */
	{ "inter_chunk_latency", "itl_ms", AS_IT_IS },
	{ "request_latency", "e2el_ms", AS_IT_IS },
};

/* {"unit": UNIT, "avg": x}, in units of the column; or: the other word for the same unit. */
static const struct { const char *key, *unit, *or, *column; } perf_single[] = {
	{ "request_throughput", "requests/sec", "", "request_throughput" },
	{ "goodput", "requests/sec", "", "request_goodput" },
	{ "request_goodput", "requests/sec", "", "request_goodput" },
	{ "output_token_throughput", "tokens/sec", "", "output_throughput" },
	{ "total_token_throughput", "tokens/sec", "", "total_token_throughput" },
	{ "benchmark_duration", "sec", "", "duration" },
	{ "request_count", "requests", "count", "completed" },
	{ "error_request_count", "requests", "", "failed" },
	{ "total_isl", "tokens", "", "total_input_tokens" },
	{ "total_osl", "tokens", "", "total_output_tokens" },
};

/* A metric in the expected unit; NULL: missing, or another unit, which is noted. */
static const struct json_value *perf_metric(struct reading *r, const char *tool,
					    const struct json_value *metric, const char *key,
					    const char *unit, const char *or)
{
	struct str has = json_text(json_get(metric, "unit"), STR(""));
	char text[160];

	if (!metric || str_is(has, unit) || (*or && str_is(has, or)))
		return metric;
	snprintf(text, sizeof(text), "%s's %s has no column, because its unit is not \"%s\".", tool,
		 key, unit);
	note(r, text);
	return NULL;
}

static void put_perf(struct reading *r, const char *tool, const struct json_value *v)
{
	for (size_t i = 0; i < COUNT(perf_single); i++) {
		const char *key = perf_single[i].key;
		const struct json_value *metric =
			perf_metric(r, tool, json_get(v, key), key, perf_single[i].unit,
				    perf_single[i].or);

		cells_put_json(r->cells, NULL, str_of(perf_single[i].column),
			       json_get(metric, "avg"));
	}
	for (size_t i = 0; i < COUNT(perf_timings); i++)
		put_statistics(r, perf_metric(r, tool, json_get(v, perf_timings[i].path),
					      perf_timings[i].path, "ms", ""),
			       perf_timings[i].name, AS_IT_IS);
}

/* The phase that is measured; others warm the server up. */
static const struct json_value *measured_phase(const struct json_value *phases)
{
	for (size_t i = 0; phases && phases->kind == JSON_ARRAY && i < phases->count; i++)
		if (str_is(json_text(json_get(&phases->item[i], "kind"), STR("")), "profiling"))
			return &phases->item[i];
	return NULL;
}

static void put_aiperf_load(struct reading *r, const struct json_value *config)
{
	const struct json_value *endpoint = json_get(config, "endpoint");
	const struct json_value *phase = measured_phase(json_get(config, "phases"));
	const struct json_value *set = first_of(json_get(config, "datasets"));
	const struct json_value *prompts = json_get(set, "prompts");

	cells_put_json(r->cells, NULL, STR("server.model"),
		       json_get(first_of(json_get(json_get(config, "models"), "items")), "name"));
	cells_put_json(r->cells, NULL, STR("benchmark.tokenizer"),
		       json_get(json_get(config, "tokenizer"), "name"));
	put_backend(r, json_text(json_get(endpoint, "type"), STR("")));
	cells_put_json(r->cells, NULL, STR("benchmark.num_prompts"), json_get(phase, "requests"));
	cells_put_json(r->cells, NULL, STR("benchmark.max_concurrency"),
		       json_get(phase, "concurrency"));
	cells_put_json(r->cells, NULL, STR("benchmark.request_rate"), json_get(phase, "rate"));
	if (str_is(json_text(json_get(phase, "type"), STR("")), "concurrency"))
		put_all_at_once(r);
	if (str_is(json_text(json_get(set, "type"), STR("")), "synthetic"))
		put_random(r, at(prompts, "isl.mean"), at(prompts, "osl.mean"));
}

int put_aiperf(struct reading *r, const struct json_value *v, struct err *e)
{
	double completed = json_real(at(v, "request_count.avg"), 0);
	double failed = json_real(at(v, "error_request_count.avg"), 0);

	(void)e;
	put_status(r, completed, json_bool(json_get(v, "was_cancelled"), false) ? 1 : failed);
	cells_put_json(r->cells, NULL, STR("environment.aiperf"), json_get(v, "aiperf_version"));
	put_date(r, json_get(v, "start_time"));
	put_aiperf_load(r, json_get(v, "input_config"));
	put_perf(r, "aiperf", v);
	/* Counts of 0 are not in the file. */
	cells_put_number(r->cells, "completed", completed);
	cells_put_number(r->cells, "failed", failed);
	return 0;
}

/* It has no version, time or number of failed requests. */
int put_genai_perf(struct reading *r, const struct json_value *v, struct err *e)
{
	static const struct figure load[] = {
		{ "tokenizer.name", "benchmark.tokenizer", AS_IT_IS },
		{ "perf_analyzer.stimulus.concurrency", "benchmark.max_concurrency", AS_IT_IS },
		{ "perf_analyzer.stimulus.request_rate", "benchmark.request_rate", AS_IT_IS },
	};
	const struct json_value *config = json_get(v, "input_config");
	const struct json_value *measured = at(config, "perf_analyzer.measurement");

	(void)e;
	put_status(r, json_real(at(v, "request_count.avg"), NAN), NAN);
	cells_put_json(r->cells, NULL, STR("server.model"), first_of(json_get(config, "model_names")));
	put_figures(r, config, load, COUNT(load));
	put_backend(r, json_text(at(config, "endpoint.type"), STR("")));
	if (at(config, "perf_analyzer.stimulus.concurrency"))
		put_all_at_once(r);
	if (str_is(json_text(json_get(measured, "mode"), STR("")), "request_count"))
		cells_put_json(r->cells, NULL, STR("benchmark.num_prompts"), json_get(measured, "num"));
	if (str_is(json_text(at(config, "input.prompt_source"), STR("")), "synthetic"))
		put_random(r, at(config, "input.synthetic_tokens.mean"),
			   at(config, "input.output_tokens.mean"));
	put_perf(r, "genai-perf", v);
	return 0;
}

/* ---- guidellm: {"guidellm": of the file, "benchmark": one of it}, as read.c cuts it ---- */

static const struct timing guidellm_timings[] = {
	{ "time_to_first_token_ms.successful", "ttft_ms", AS_IT_IS },
	{ "request_latency.successful", "e2el_ms", S_IN_MS },
};
static const struct figure guidellm_deviations[] = {
	{ "time_to_first_token_ms.successful.std_dev", "std_ttft_ms", AS_IT_IS },
	{ "request_latency.successful.std_dev", "std_e2el_ms", S_IN_MS },
};
static const struct figure guidellm_figures[] = {
	{ "request_totals.successful", "completed", AS_IT_IS },
	{ "request_totals.errored", "failed", AS_IT_IS },
	{ "requests_per_second.successful.mean", "request_throughput", AS_IT_IS },
	{ "request_goodput.successful.mean", "request_goodput", AS_IT_IS },
	{ "output_tokens_per_second.successful.mean", "output_throughput", AS_IT_IS },
	{ "tokens_per_second.successful.mean", "total_token_throughput", AS_IT_IS },
	{ "prompt_token_count.successful.total_sum", "total_input_tokens", AS_IT_IS },
	{ "output_token_count.successful.total_sum", "total_output_tokens", AS_IT_IS },
};

static void put_guidellm_load(struct reading *r, const struct json_value *file,
			      const struct json_value *config)
{
	static const struct figure load[] = {
		{ "backend.model", "server.model", AS_IT_IS },
		{ "strategy.max_concurrency", "benchmark.max_concurrency", AS_IT_IS },
		{ "strategy.rate", "benchmark.request_rate", AS_IT_IS },
		{ "constraints.max_requests.args.count", "benchmark.num_prompts", AS_IT_IS },
	};
	const struct json_value *data = first_of(at(file, "spec.data"));
	const struct json_value *rate = at(config, "strategy.rate");

	put_figures(r, config, load, COUNT(load));
	cells_put_json(r->cells, NULL, STR("benchmark.tokenizer"), at(file, "spec.tokenizer.model"));
	put_backend(r, json_text(at(config, "backend.request_format"), STR("")));
	if (!rate && at(config, "strategy.max_concurrency"))
		put_all_at_once(r);
	if (str_is(json_text(json_get(data, "kind"), STR("")), "synthetic_text"))
		put_random(r, json_get(data, "prompt_tokens"), json_get(data, "output_tokens"));
}

int put_guidellm(struct reading *r, const struct json_value *v, struct err *e)
{
	const struct json_value *file = json_get(v, "guidellm"), *run = json_get(v, "benchmark");
	const struct json_value *metrics = json_get(run, "metrics");
	double one_token = json_real(at(metrics, "iter_tokens_per_iteration.successful.max"), NAN);

	if (!metrics || metrics->kind != JSON_OBJECT)
		return no_object("guidellm", "metrics", e);
	put_status(r, json_real(at(metrics, "request_totals.successful"), NAN),
		   json_real(at(metrics, "request_totals.errored"), NAN));
	cells_put_json(r->cells, NULL, STR("environment.guidellm"),
		       at(file, "metadata.guidellm_version"));
	r->timestamp_s = json_real(json_get(run, "start_time"), NAN);
	put_guidellm_load(r, file, json_get(run, "config"));
	put_figures(r, metrics, guidellm_figures, COUNT(guidellm_figures));
	cells_put_json(r->cells, NULL, STR("duration"), json_get(run, "duration"));
	put_timings(r, metrics, guidellm_timings, COUNT(guidellm_timings));
	put_figures(r, metrics, guidellm_deviations, COUNT(guidellm_deviations));
	/*
	 * A request's mean gap, as often as it has gaps: its mean is that of all gaps where each
	 * event brings one token; its other statistics are neither those of TPOT nor those of ITL.
	 */
	if (one_token <= 1)
		cells_put_json(r->cells, NULL, STR("mean_itl_ms"),
			       at(metrics, "inter_token_latency_ms.successful.mean"));
	return 0;
}

/* ---- MLPerf LoadGen: the log as one object, see mlperf_log.c ---- */

struct mlperf_row { const char *head, *tail, *name; };

/* HEAD, a percentile, TAIL. due: in Server, whose clock starts when a query was due. */
static const struct { struct mlperf_row always, due; } mlperf_percentile[] = {
	{ { "result_", "_percentile_latency_ns", "e2el_ms" },
	  { "result_", "_percentile_latency_ns", "e2el_from_due_ms" } },
	{ { "result_first_token_", "_percentile_latency_ns", "ttft_ms" },
	  { "result_first_token_", "_percentile_latency_ns", "ttft_from_due_ms" } },
	{ { "result_time_per_output_token_", "_percentile_ns", "tpot_ms" },
	  { "result_time_per_output_token_", "_percentile_ns", "tpot_ms" } },
};
static const struct figure mlperf_means[2][3] = {
	{ { "result_mean_latency_ns", "mean_e2el_ms", NS_IN_MS },
	  { "result_first_token_mean_latency_ns", "mean_ttft_ms", NS_IN_MS },
	  { "result_time_to_output_token_mean", "mean_tpot_ms", NS_IN_MS } },
	{ { "result_mean_latency_ns", "mean_e2el_from_due_ms", NS_IN_MS },
	  { "result_first_token_mean_latency_ns", "mean_ttft_from_due_ms", NS_IN_MS },
	  { "result_time_to_output_token_mean", "mean_tpot_ms", NS_IN_MS } },
};
static const struct figure mlperf_figures[] = {
	{ "result_completed_samples_per_sec", "request_throughput", AS_IT_IS },
	{ "result_samples_per_second", "request_throughput", AS_IT_IS },
	{ "result_qps_with_loadgen_overhead", "request_throughput", AS_IT_IS },
	{ "result_tokens_per_second", "output_throughput", AS_IT_IS },
	{ "loadgen_version", "environment.loadgen", AS_IT_IS },
	{ "sut_name", "tags.sut", AS_IT_IS },
	{ "effective_scenario", "tags.mlperf_scenario", AS_IT_IS },
	{ "result_validity", "tags.mlperf_result", AS_IT_IS },
};

static void put_mlperf_percentile(struct reading *r, struct str key, bool is_server,
				  const struct json_value *v)
{
	char stat[16], column[NAME_BYTES];

	for (size_t i = COUNT(mlperf_percentile); i-- > 0;) {
		const struct mlperf_row *row = is_server ? &mlperf_percentile[i].due :
							   &mlperf_percentile[i].always;
		size_t head = strlen(row->head), tail = strlen(row->tail);

		if (key.n <= head + tail || !str_starts(key, str_of(row->head)) ||
		    !str_ends(key, str_of(row->tail)) ||
		    !percentile_name((struct str){ key.p + head, key.n - head - tail }, stat))
			continue;
		snprintf(column, sizeof(column), "%s_%s", stat, row->name);
		put_metric_value(r, str_of(column), in_unit(v, NS_IN_MS));
		return;
	}
}

int put_mlperf(struct reading *r, const struct json_value *v, struct err *e)
{
	const struct json_value *log = json_get(v, "mlperf_loadgen");
	struct str scenario = json_text(json_get(log, "effective_scenario"), STR(""));
	struct str mode = json_text(json_get(log, "effective_test_mode"), STR("PerformanceOnly"));
	struct str result = json_text(json_get(log, "result_validity"), STR(""));
	bool is_server = str_is(scenario, "Server");
	double queries = json_real(json_get(log, "result_query_count"), NAN);
	double samples = json_real(json_get(log, "effective_samples_per_query"), 1);

	if (str_is(mode, "AccuracyOnly"))
		return err_set(e, ERR_RUN, READ_NOTHING_KNOWN ": this is the log of an accuracy "
			       "run of MLPerf's LoadGen, which measures no times. Ingest the log "
			       "of the performance run");
	if (!result.n)
		return err_set(e, ERR_PARSE, "MLPerf's log has no result_validity, so the test did not end "
			       "or the file is cut off; expected the whole log of a test that ended");
	put_status(r, NAN, NAN);
	put_date(r, json_get(log, "test_datetime"));
	put_figures(r, log, mlperf_figures, COUNT(mlperf_figures));
	if (is_server)
		cells_put_json(r->cells, NULL, STR("output_throughput"),
			       json_get(log, "result_completed_tokens_per_second"));
	cells_put_number(r->cells, "benchmark.request_rate",
			 is_server ? json_real(json_get(log, "effective_target_qps"), NAN) : INFINITY);
	if (str_is(scenario, "SingleStream"))
		cells_put_number(r->cells, "benchmark.max_concurrency", 1);
	if (!isnan(queries))
		cells_put_number(r->cells, "completed", queries * samples);
	for (size_t i = 0; i < log->count; i++)
		put_mlperf_percentile(r, log->key[i], is_server, &log->item[i]);
	put_figures(r, log, mlperf_means[is_server], COUNT(mlperf_means[0]));
	if (str_is(result, "INVALID"))
		note(r, "MLPerf's own result of this run is INVALID (column tags.mlperf_result): its "
			"log says which of MLPerf's conditions the run did not meet.");
	return 0;
}

/* ---- MLCommons endpoints: performance/result_summary.json ---- */

static const struct timing endpoints_timings[] = {
	{ "ttft", "ttft_ms", NS_IN_MS }, { "tpot", "tpot_ms", NS_IN_MS },
	{ "latency", "e2el_ms", NS_IN_MS },
};
static const struct figure endpoints_figures[] = {
	{ "version", "environment.mlperf_endpoints", AS_IT_IS },
	{ "n_samples_completed", "completed", AS_IT_IS },
	{ "n_samples_failed", "failed", AS_IT_IS },
	{ "duration_ns", "duration", NS_IN_S },
	{ "qps", "request_throughput", AS_IT_IS },
	{ "tps", "output_throughput", AS_IT_IS },
	{ "input_sequence_lengths.total", "total_input_tokens", AS_IT_IS },
	{ "output_sequence_lengths.total", "total_output_tokens", AS_IT_IS },
	{ "run_config.load_pattern.target_concurrency", "benchmark.max_concurrency", AS_IT_IS },
};

int put_endpoints(struct reading *r, const struct json_value *v, struct err *e)
{
	const struct json_value *rate = at(v, "run_config.load_pattern.target_qps");
	bool is_whole = str_is(json_text(json_get(v, "state"), STR("complete")), "complete");

	(void)e;
	put_status(r, json_real(json_get(v, "n_samples_completed"), NAN),
		   is_whole ? json_real(json_get(v, "n_samples_failed"), NAN) : 1);
	put_figures(r, v, endpoints_figures, COUNT(endpoints_figures));
	cells_put_number(r->cells, "benchmark.request_rate", json_real(rate, INFINITY));
	put_timings(r, v, endpoints_timings, COUNT(endpoints_timings));
	return 0;
}

/* ---- InferenceX: agg_NAME.json, a row of agg_bmk.json ---- */

static const struct figure inferencex_figures[] = {
	{ "model", "server.model", AS_IT_IS }, { "conc", "benchmark.max_concurrency", AS_IT_IS },
	{ "isl", "benchmark.random_input_len", AS_IT_IS },
	{ "osl", "benchmark.random_output_len", AS_IT_IS },
	{ "tp", "server.tensor_parallel_size", AS_IT_IS },
	{ "pp", "server.pipeline_parallel_size", AS_IT_IS }, { "ep", "tags.ep", AS_IT_IS },
	{ "prefill_tp", "prefill.tensor_parallel_size", AS_IT_IS },
	{ "prefill_pp", "prefill.pipeline_parallel_size", AS_IT_IS },
	{ "prefill_num_workers", "prefill.servers", AS_IT_IS },
	{ "decode_tp", "decode.tensor_parallel_size", AS_IT_IS },
	{ "decode_pp", "decode.pipeline_parallel_size", AS_IT_IS },
	{ "decode_num_workers", "decode.servers", AS_IT_IS },
	{ "hw", "tags.gpu", AS_IT_IS }, { "framework", "tags.framework", AS_IT_IS },
	{ "precision", "tags.precision", AS_IT_IS }, { "image", "tags.image", AS_IT_IS },
	{ "spec_decoding", "tags.spec_decoding", AS_IT_IS }, { "disagg", "tags.disagg", AS_IT_IS },
	{ "dp_attention", "tags.dp_attention", AS_IT_IS },
};

/* "p99_ttft": seconds that are milliseconds everywhere else. */
static void put_inferencex_time(struct reading *r, struct str key, const struct json_value *v)
{
	static const char *const metric[] = { "_ttft", "_tpot", "_itl", "_e2el" };
	char column[NAME_BYTES];

	for (size_t i = 0; i < COUNT(metric); i++)
		if (str_ends(key, str_of(metric[i])) && key.n < sizeof(column) - 4) {
			snprintf(column, sizeof(column), "%.*s_ms", (int)key.n, key.p);
			put_metric_value(r, str_of(column), in_unit(v, S_IN_MS));
		}
}

/* Throughputs are per GPU: of all GPUs, of the decoding and of the prefilling ones. */
static void put_inferencex_rates(struct reading *r, const struct json_value *v)
{
	bool is_split = json_get(v, "num_prefill_gpu") != NULL;
	double prefill = json_real(json_get(v, "num_prefill_gpu"), 0);
	double decode = json_real(json_get(v, "num_decode_gpu"), 0);
	double gpus = is_split ? prefill + decode :
		json_real(json_get(v, "tp"), NAN) * json_real(json_get(v, "pp"), 1) *
		json_real(json_get(v, "pcp_size"), 1);
	double total = json_real(json_get(v, "tput_per_gpu"), NAN);
	double output = json_real(json_get(v, "output_tput_per_gpu"), NAN);

	cells_put_number(r->cells, "derived.total_token_throughput_per_gpu", total);
	if (!is_split)
		cells_put_number(r->cells, "derived.output_throughput_per_gpu", output);
	if (!(gpus > 0))
		return;
	cells_put_number(r->cells, "gpus", gpus);
	cells_put_number(r->cells, "total_token_throughput", total * gpus);
	cells_put_number(r->cells, "output_throughput",
			 output * (is_split && decode > 0 ? decode : gpus));
}

/* Neither the time of the run nor its requests are in the file. */
int put_inferencex(struct reading *r, const struct json_value *v, struct err *e)
{
	(void)e;
	put_status(r, NAN, NAN);
	put_figures(r, v, inferencex_figures, COUNT(inferencex_figures));
	cells_put_text(r->cells, "benchmark.dataset_name", STR("random"));
	put_all_at_once(r);
	put_inferencex_rates(r, v);
	for (size_t i = 0; i < v->count; i++)
		put_inferencex_time(r, v->key[i], &v->item[i]);
	return 0;
}
