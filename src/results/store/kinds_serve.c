/* SPDX-License-Identifier: Apache-2.0 */
/* kinds_serve.c - see kinds.h: a result of `bench serve`, of ours, of vLLM's, of a sweep's run. */
#include <string.h>

#include "core/schema/schema.h"
#include "results/index/names.h"
#include "results/store/kinds.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* What was run, under the names the options have. "": no cell of its own. */
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

		if (str_is(key, "profllm") || put_renamed(r, setup, COUNT(setup), key, m) ||
		    put_list_of_percentiles(r, key, m))
			continue;
		if (is_result(key, m))
			put_metric(r, key, m);
		else
			put_parameter(r, key, m);
	}
	return 0;
}
