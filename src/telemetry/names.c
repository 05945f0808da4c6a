/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - see names.h. */
#include "telemetry/names.h"

#include <float.h>
#include <math.h>

#include "http/prometheus.h"

enum rule { SUM, MEAN };

/*
 * What each server calls it; a trailing "_total" is left out here, because exporters
 * differ in it. Of the names of one thing the first that a server has counts:
 * some versions export an old and a new name side by side.
 */
static const struct name_row {
	enum series_id metric;
	enum rule rule;
	const char *name;
} rows[] = {
	{ SERIES_RUNNING, SUM, "vllm:num_requests_running" },
	{ SERIES_RUNNING, SUM, "sglang:num_running_reqs" },
	{ SERIES_RUNNING, SUM, "tgi_batch_current_size" },
	{ SERIES_RUNNING, SUM, "llamacpp:requests_processing" },
	{ SERIES_WAITING, SUM, "vllm:num_requests_waiting" },
	{ SERIES_WAITING, SUM, "sglang:num_queue_reqs" },
	{ SERIES_WAITING, SUM, "tgi_queue_size" },
	{ SERIES_WAITING, SUM, "llamacpp:requests_deferred" },
	{ SERIES_KV_USAGE, MEAN, "vllm:kv_cache_usage_perc" },
	{ SERIES_KV_USAGE, MEAN, "vllm:gpu_cache_usage_perc" },
	{ SERIES_KV_USAGE, MEAN, "sglang:token_usage" },
	{ SERIES_KV_USAGE, MEAN, "llamacpp:kv_cache_usage_ratio" },
	{ SERIES_PROCESS_START, SUM, "process_start_time_seconds" },
	{ SERIES_PREFIX_QUERIES, SUM, "vllm:prefix_cache_queries" },
	{ SERIES_PREFIX_QUERIES, SUM, "vllm:gpu_prefix_cache_queries" },
	{ SERIES_PREFIX_QUERIES, SUM, "sglang:prompt_tokens" },
	{ SERIES_PREFIX_HITS, SUM, "vllm:prefix_cache_hits" },
	{ SERIES_PREFIX_HITS, SUM, "vllm:gpu_prefix_cache_hits" },
	{ SERIES_PREFIX_HITS, SUM, "sglang:cached_tokens" },
	{ SERIES_PREEMPTIONS, SUM, "vllm:num_preemptions" },
	{ SERIES_PREEMPTIONS, SUM, "sglang:num_retractions" },
	{ SERIES_PROMPT_TOKENS, SUM, "vllm:prompt_tokens" },
	{ SERIES_PROMPT_TOKENS, SUM, "sglang:prompt_tokens" },
	{ SERIES_PROMPT_TOKENS, SUM, "tgi_request_input_length_sum" },
	{ SERIES_PROMPT_TOKENS, SUM, "llamacpp:prompt_tokens" },
	{ SERIES_GENERATION_TOKENS, SUM, "vllm:generation_tokens" },
	{ SERIES_GENERATION_TOKENS, SUM, "sglang:generation_tokens" },
	{ SERIES_GENERATION_TOKENS, SUM, "tgi_request_generated_tokens_sum" },
	{ SERIES_GENERATION_TOKENS, SUM, "llamacpp:tokens_predicted" },
};
#define ROWS (sizeof(rows) / sizeof(*rows))

/* Counters that vLLM's client finds by a part of their name; the first part that fits. */
#define PER_POSITION SERIES_COUNT
static const struct part_row {
	const char *prefix, *part;
	enum series_id metric; /* or PER_POSITION */
} parts[] = {
	{ "vllm:spec_decode", "num_drafts", SERIES_DRAFTS },
	{ "vllm:spec_decode", "num_draft_tokens", SERIES_DRAFT_TOKENS },
	{ "vllm:spec_decode", "num_accepted_tokens_per_pos", PER_POSITION },
	{ "vllm:spec_decode", "num_accepted_tokens", SERIES_ACCEPTED_TOKENS },
	{ "vllm:diffusion", "num_denoising_steps", SERIES_DIFFUSION_STEPS },
	{ "vllm:diffusion", "num_canvas_positions", SERIES_DIFFUSION_POSITIONS },
	{ "vllm:diffusion", "num_committed_tokens", SERIES_DIFFUSION_COMMITTED },
};

static bool contains(struct str text, const char *part)
{
	return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

static bool total_cut(struct str *name)
{
	static const struct str total = { "_total", 6 };

	if (name->n <= total.n || memcmp(name->p + name->n - total.n, total.p, total.n) != 0)
		return false;
	name->n -= total.n;
	return true;
}

/* A sum of numbers that are finite stays so. */
static double bounded(double sum)
{
	return fmax(-DBL_MAX, fmin(sum, DBL_MAX));
}

static void add_position(struct telemetry_values *out, const struct prometheus_sample *s)
{
	struct str text;
	int64_t k;

	if (!prometheus_label(s->labels, "position", &text) || !str_to_i64(text, &k) || k < 0 ||
	    k >= SPEC_POSITIONS_MAX)
		return;
	out->n_told += !out->is_position_told[k];
	out->is_position_told[k] = true;
	out->position[k] = bounded(out->position[k] + trunc(s->value));
}

/* Whole numbers, line by line, as upstream adds them up. */
static void read_by_part(struct telemetry_values *out, const struct prometheus_sample *s,
			 struct str name)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		enum series_id m = parts[i].metric;

		if (!str_starts(name, str_of(parts[i].prefix)) || !contains(name, parts[i].part))
			continue;
		if (m == PER_POSITION) {
			add_position(out, s);
			return;
		}
		out->n_told += !out->is_told[m];
		out->is_told[m] = true;
		out->value[m] = bounded(out->value[m] + trunc(s->value));
		return;
	}
}

static void read_by_name(double *sum, uint32_t *n, struct str name, double value)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (str_is(name, rows[i].name)) {
			sum[i] = bounded(sum[i] + value);
			n[i]++;
		}
	}
}

void telemetry_read(struct str text, struct telemetry_values *out)
{
	struct prometheus_sample sample;
	double sum[ROWS] = { 0 };
	uint32_t n[ROWS] = { 0 };
	struct err ignored;
	int rc;

	*out = (struct telemetry_values){ 0 };
	while ((rc = prometheus_next(&text, &sample, &ignored)) != 0) {
		struct str name = sample.name;

		if (rc < 0 || !isfinite(sample.value))
			continue;
		if (total_cut(&name))
			read_by_part(out, &sample, name);
		read_by_name(sum, n, name, sample.value);
	}
	for (size_t i = 0; i < ROWS; i++) {
		enum series_id m = rows[i].metric;

		if (n[i] == 0 || out->is_told[m])
			continue;
		out->is_told[m] = true;
		out->n_told += m != SERIES_PROCESS_START; /* any program says that */
		out->value[m] = rows[i].rule == MEAN ? sum[i] / n[i] : sum[i];
	}
}
