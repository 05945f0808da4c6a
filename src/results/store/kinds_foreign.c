/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/kinds_foreign.c - see kinds.h: results of other tools' load generators.
 *
 * A figure gets a column of ours only where it means the same (docs/guide/store.md has the table);
 * all others stay in the document.
 */
#include <math.h>
#include <stdio.h>

#include "results/store/kinds.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* ---- aiperf: profile_export_aiperf.json ---- */

/* {"unit": "ms", "avg": x, "std": y, "p99": z ...} as mean_NAME, std_NAME, p99_NAME. */
static const struct rename aiperf_times[] = {
	{ "time_to_first_token", "ttft_ms" },
	/* A request's (latency - TTFT) / (tokens - 1). */
	{ "inter_token_latency", "tpot_ms" },
	/* Between the events of a stream. */
	{ "inter_chunk_latency", "itl_ms" },
	{ "request_latency", "e2el_ms" },
};

/* {"unit": UNIT, "avg": x}, in units of the column. */
static const struct { const char *key, *unit, *column; } aiperf_single[] = {
	{ "request_throughput", "requests/sec", "request_throughput" },
	{ "goodput", "requests/sec", "request_goodput" },
	{ "output_token_throughput", "tokens/sec", "output_throughput" },
	{ "total_token_throughput", "tokens/sec", "total_token_throughput" },
	{ "benchmark_duration", "sec", "duration" },
	{ "request_count", "requests", "completed" },
	{ "error_request_count", "requests", "failed" },
	{ "total_isl", "tokens", "total_input_tokens" },
	{ "total_osl", "tokens", "total_output_tokens" },
};

static const struct json_value *first_of(const struct json_value *list)
{
	return list && list->kind == JSON_ARRAY && list->count ? &list->item[0] : NULL;
}

/* A metric in the unit that is expected; NULL: it has none, or another one, which is noted. */
static const struct json_value *aiperf_metric(struct reading *r, const struct json_value *v,
					      const char *key, const char *unit)
{
	const struct json_value *metric = json_get(v, key);
	char text[160];

	if (!metric || str_is(json_text(json_get(metric, "unit"), STR("")), unit))
		return metric;
	snprintf(text, sizeof(text), "aiperf's %s has no column, because its unit is not \"%s\".",
		 key, unit);
	note(r, text);
	return NULL;
}

static void put_aiperf_time(struct reading *r, const struct json_value *metric, const char *name)
{
	char column[64];

	for (size_t i = 0; metric && metric->kind == JSON_OBJECT && i < metric->count; i++) {
		struct str stat = metric->key[i];
		bool is_percentile = stat.n > 1 && stat.n < 8 && stat.p[0] == 'p' &&
				     stat.p[1] >= '0' && stat.p[1] <= '9';

		if (str_is(stat, "avg"))
			stat = STR("mean");
		else if (!str_is(stat, "std") && !is_percentile)
			continue;
		snprintf(column, sizeof(column), "%.*s_%s", (int)stat.n, stat.p, name);
		put_metric(r, str_of(column), &metric->item[i]);
	}
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
	struct str type = json_text(json_get(endpoint, "type"), STR(""));

	cells_put_json(r->cells, NULL, STR("server.model"),
		       json_get(first_of(json_get(json_get(config, "models"), "items")), "name"));
	cells_put_json(r->cells, NULL, STR("benchmark.tokenizer"),
		       json_get(json_get(config, "tokenizer"), "name"));
	if (str_is(type, "completions") || str_is(type, "chat"))
		cells_put_text(r->cells, "benchmark.backend",
			       str_is(type, "chat") ? STR("openai-chat") : STR("openai"));
	cells_put_json(r->cells, NULL, STR("benchmark.num_prompts"), json_get(phase, "requests"));
	cells_put_json(r->cells, NULL, STR("benchmark.max_concurrency"),
		       json_get(phase, "concurrency"));
	cells_put_json(r->cells, NULL, STR("benchmark.request_rate"), json_get(phase, "rate"));
	if (str_is(json_text(json_get(phase, "type"), STR("")), "concurrency"))
		cells_put_number(r->cells, "benchmark.request_rate", INFINITY);
	if (!str_is(json_text(json_get(set, "type"), STR("")), "synthetic"))
		return;
	cells_put_text(r->cells, "benchmark.dataset_name", STR("random"));
	cells_put_json(r->cells, NULL, STR("benchmark.random_input_len"),
		       json_get(json_get(prompts, "isl"), "mean"));
	cells_put_json(r->cells, NULL, STR("benchmark.random_output_len"),
		       json_get(json_get(prompts, "osl"), "mean"));
}

int put_aiperf(struct reading *r, const struct json_value *v, struct err *e)
{
	double completed = json_real(json_get(json_get(v, "request_count"), "avg"), 0);
	double failed = json_real(json_get(json_get(v, "error_request_count"), "avg"), 0);

	(void)e;
	cells_put_text(r->cells, "mode", STR("serve"));
	cells_put_text(r->cells, "status",
		       completed <= 0 ? STR("failed") :
		       failed > 0 || json_bool(json_get(v, "was_cancelled"), false) ?
		       STR("partial") : STR("completed"));
	cells_put_json(r->cells, NULL, STR("environment.aiperf"), json_get(v, "aiperf_version"));
	put_date(r, json_get(v, "start_time"));
	put_aiperf_load(r, json_get(v, "input_config"));
	for (size_t i = 0; i < COUNT(aiperf_single); i++) {
		const struct json_value *metric =
			aiperf_metric(r, v, aiperf_single[i].key, aiperf_single[i].unit);

		cells_put_json(r->cells, NULL, str_of(aiperf_single[i].column),
			       json_get(metric, "avg"));
	}
	/* Counts of 0 are not in the file. */
	cells_put_number(r->cells, "completed", completed);
	cells_put_number(r->cells, "failed", failed);
	for (size_t i = 0; i < COUNT(aiperf_times); i++)
		put_aiperf_time(r, aiperf_metric(r, v, aiperf_times[i].key, "ms"),
				aiperf_times[i].column);
	return 0;
}
