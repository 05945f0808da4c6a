/* SPDX-License-Identifier: Apache-2.0 */
/* structured.c - see structured.h. */
#include "out/report/structured.h"

#include <math.h>
#include <stdlib.h>

#include "client/record/record.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/stats/stats.h"

void structured_file_name(const struct structured_name *n, struct buf *out)
{
	const char *slash = strrchr(n->model, '/');
	char number[FMT_F64_BYTES];

	if (n->has_ratio)
		buf_add_text(out, fmt_f64(number, n->ratio));
	else
		buf_add_char(out, '0');
	buf_printf(out, "so_%s_%sqps_", n->backend,
		   isinf(n->request_rate) ? "inf" : fmt_f64(number, n->request_rate));
	buf_printf(out, "%s_%s_%lld_out%lld.txt", slash ? slash + 1 : n->model, n->dataset,
		   (long long)n->num_prompts, (long long)n->output_len);
}

static size_t count(const struct json_value *v)
{
	return v && v->kind == JSON_ARRAY ? v->count : 0;
}

/* The script's value of correct: null where its rule does not score. */
static void put_correctness(struct json_writer *w, unsigned bits)
{
	unsigned wrong = bits >> ROW_WRONG_SHIFT;

	json_key(w, "correctness_upstream");
	if (bits & ROW_UPSTREAM_SCORED)
		json_put_bool(w, bits & ROW_UPSTREAM_CORRECT);
	else
		json_put_null(w);
	json_key(w, "correctness");
	if (bits & ROW_SCORED)
		json_put_bool(w, bits & ROW_CORRECT);
	else
		json_put_null(w);
	json_member_bool(w, "constrained", bits & ROW_CONSTRAINED);
	json_member_text(w, "why", wrong && wrong < WRONG_COUNT ? wrong_name(wrong) : NULL);
}

static void put_outputs(struct json_writer *w, const struct json_value *result,
			const struct json_value *requests)
{
	const struct json_value *texts = json_get(result, "generated_texts");
	const struct json_value *bits = json_get(requests, "correctness");

	json_member_array(w, "outputs");
	for (size_t i = 0; i < count(texts); i++) {
		json_begin_object(w);
		json_member_value(w, "generated", &texts->item[i]);
		json_member_null(w, "expected");
		put_correctness(w, i < count(bits) ? (unsigned)json_int(&bits->item[i], 0) : 0);
		json_end_object(w);
	}
	json_end_array(w);
}

/* As a data frame describes a column: the standard deviation is of a sample. */
static void put_description(struct json_writer *w, const char *key, double *x, size_t n)
{
	static const struct { const char *name; double p; } at[] = {
		{ "min", 0 }, { "25%", 25 }, { "50%", 50 }, { "75%", 75 }, { "max", 100 },
	};
	double std = n > 1 ? stats_std(x, n) * sqrt((double)n / (double)(n - 1)) : NAN;
	double mean = n ? stats_mean(x, n) : NAN;

	json_member_object(w, key);
	json_member_f64(w, "count", (double)n);
	json_member_f64(w, "mean", mean);
	json_member_f64(w, "std", std);
	stats_sort(x, n);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		json_member_f64(w, at[i].name, n ? stats_percentile(x, n, at[i].p) : NAN);
	json_end_object(w);
}

/* Of successes, in seconds. */
static void put_descriptions(struct json_writer *w, const struct json_value *result)
{
	const struct json_value *ttfts = json_get(result, "ttfts");
	const struct json_value *latencies = json_get(result, "latencies");
	const struct json_value *lens = json_get(result, "output_lens");
	const struct json_value *errors = json_get(result, "errors");
	size_t n = count(ttfts), n_ttft = 0, n_tpot = 0;
	double *ttft = mem_array(n + 1, sizeof(*ttft)), *tpot = mem_array(n + 1, sizeof(*tpot));

	for (size_t i = 0; i < n && i < count(errors) && i < count(lens); i++) {
		int64_t tokens = json_int(&lens->item[i], 0);

		if (json_text(&errors->item[i], STR("")).n)
			continue;
		ttft[n_ttft++] = json_real(&ttfts->item[i], 0);
		tpot[n_tpot++] = 0; /* for an answer of one token, as upstream */
		if (tokens > 1 && i < count(latencies))
			tpot[n_tpot - 1] = (json_real(&latencies->item[i], 0) - ttft[n_ttft - 1]) /
					   (double)(tokens - 1);
	}
	put_description(w, "ttft_description", ttft, n_ttft);
	put_description(w, "tpot_description", tpot, n_tpot);
	free(ttft);
	free(tpot);
}

/* mean_ttft_ms, p99_itl_ms ... in the order of the result. */
static void put_blocks(struct json_writer *w, const struct json_value *result)
{
	for (size_t i = 0; i < result->count; i++) {
		struct str key = result->key[i];
		bool is_percentile = key.n > 1 && key.p[0] == 'p' && key.p[1] >= '0' &&
				     key.p[1] <= '9';

		if (!str_ends(key, STR("_ms")) ||
		    !(is_percentile || str_starts(key, STR("mean_")) ||
		      str_starts(key, STR("median_")) || str_starts(key, STR("std_"))))
			continue;
		json_key_str(w, key);
		json_put_value(w, &result->item[i]);
	}
}

void structured_json(const struct json_value *result, struct buf *out)
{
	static const char *const head[] = { "backend", "model_id", "tokenizer_id", "num_prompts",
		"request_rate", "burstiness", "max_concurrency" };
	static const char *const totals[] = { "duration", "completed", "total_input_tokens",
		"total_output_tokens", "request_throughput", "output_throughput",
		"total_token_throughput" };
	static const char *const arrays[] = { "input_lens", "output_lens", "ttfts", "itls",
		"errors" };
	const struct json_value *ours = json_get(result, "profllm");
	struct json_writer w = json_writer(out);

	w.indent = 4;
	json_begin_object(&w);
	put_outputs(&w, result, json_get(ours, "requests"));
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		json_member_value(&w, head[i], json_get(result, head[i]));
	json_member_value(&w, "correct_rate(%)",
			  json_get(json_get(ours, "correctness"), "correct_rate_upstream"));
	for (size_t i = 0; i < sizeof(totals) / sizeof(*totals); i++)
		json_member_value(&w, totals[i], json_get(result, totals[i]));
	put_descriptions(&w, result);
	for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++)
		json_member_value(&w, arrays[i], json_get(result, arrays[i]));
	put_blocks(&w, result);
	json_member_value(&w, "request_goodput", json_get(result, "request_goodput"));
	json_member_value(&w, "profllm", ours);
	json_end_object(&w);
}

void structured_rate_line(const struct json_value *result, struct buf *out)
{
	const struct json_value *rate = json_get(json_get(json_get(result, "profllm"),
							  "correctness"),
						 "correct_rate_upstream");
	char number[FMT_F64_BYTES];

	buf_printf(out, "correct_rate(%%) %s ",
		   rate && rate->kind != JSON_NULL ? fmt_f64(number, json_real(rate, 0)) : "None");
}
