/* SPDX-License-Identifier: Apache-2.0 */
/* kinds_offline.c - see kinds.h: throughput, latency, startup, mm-processor; ours and vLLM's. */
#include <stdio.h>
#include <string.h>

#include "results/store/kinds.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* Members of a result that are no metric of it, whichever verb it is of. */
static const struct rename common[] = {
	{ "model_id", "server.model" }, { "run_number", "repeat" }, { "_benchmark_name", "name" },
	{ "latencies", "" }, { "warmup_latencies", "" }, { "profllm", "" }, { "timestamp", "" },
};

static void put_member(struct reading *r, struct str key, const struct json_value *v)
{
	if (put_renamed(r, common, COUNT(common), key, v))
		return;
	if (is_metric_name(key) && v->kind != JSON_STRING)
		put_metric(r, key, v);
	else
		put_parameter(r, key, v);
}

/* Options of the run, before what is known of them from elsewhere. */
static void put_setup(struct reading *r, const struct json_value *v)
{
	put_date(r, json_get(v, "timestamp"));
	put_ours(r, json_get(v, "profllm"));
}

/* ---- throughput ---- */

/* Verbs whose results are those of throughput with more beside them. */
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
			put_member(r, v->key[i], &v->item[i]);
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
			put_member(r, v->key[i], &v->item[i]);
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
			put_member(r, key, &v->item[i]);
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
			put_member(r, v->key[i], &v->item[i]);
	put_setup(r, v);
	return 0;
}
