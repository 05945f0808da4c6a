/* SPDX-License-Identifier: Apache-2.0 */
/* latency.c - see latency.h. */
#include "report/latency.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/fmt.h"
#include "base/mem.h"
#include "json/write.h"
#include "report/verdict.h"
#include "stats/compare.h"
#include "stats/stats.h"

static const int percentages[LATENCY_PERCENTILES] = { 10, 25, 50, 75, 90, 99 };

/* ---- numbers ---- */

#define TOKENS_COUNTED 0x1p53 /* a double holds each count below it */

/* A normal variable's standard deviation over the median of its distances from its median. */
#define MAD_SCALE 1.4826

static double median_deviation(const struct latency_runs *r, double median)
{
	double *away = mem_array(r->n, sizeof(*away)), mad;

	for (size_t i = 0; i < r->n; i++)
		away[i] = fabs(r->latency_s[i] - median);
	stats_sort(away, r->n);
	mad = stats_median(away, r->n);
	free(away);
	return mad * MAD_SCALE;
}

static bool is_outlier(double x, double median, double deviation)
{
	const double away = fabs(x - median);

	return away > LATENCY_OUTLIER_DEVIATIONS * deviation &&
	       away > LATENCY_OUTLIER_SHARE * median;
}

static bool is_apart(struct interval a, struct interval b)
{
	return a.high < b.low || b.high < a.low;
}

/* Means of the first and of the last third, and whether they differ beyond chance. */
static void judge_drift(const struct latency_runs *r, struct latency_facts *f)
{
	size_t n = r->n / 3;
	const double *last = r->latency_s + r->n - n;
	struct interval a, b;

	f->first_third_s = stats_mean(r->latency_s, n);
	f->last_third_s = stats_mean(last, n);
	f->drift = f->first_third_s > 0 ? f->last_third_s / f->first_third_s - 1 : 0;
	a = student_interval(r->latency_s, n, 0.95);
	b = student_interval(last, n, 0.95);
	if (fabs(f->drift) > LATENCY_DRIFT_SHARE && is_apart(a, b))
		f->doubts |= LATENCY_DRIFTS;
}

/* Tokens of an iteration: what was counted, else what was asked for. */
static void count_tokens(const struct latency_runs *r, struct latency_facts *f)
{
	double wanted = (double)r->batch_size * (double)r->sequences * (double)r->output_len;
	double n = (double)r->n;

	/* What is beyond any count is asked for by mistake. */
	f->expected_tokens = wanted < TOKENS_COUNTED / n ? (uint64_t)wanted * r->n : UINT64_MAX;
	f->prompt_tokens = (double)r->batch_size * (double)r->input_len;
	f->output_tokens = wanted;
	if (r->has_counts) {
		f->prompt_tokens = (double)r->prompt_tokens / n;
		f->output_tokens = (double)r->output_tokens / n;
		if (r->output_tokens < f->expected_tokens)
			f->doubts |= LATENCY_SHORT;
	}
	if (f->mean_s > 0) {
		f->output_tokens_per_s = f->output_tokens / f->mean_s;
		f->total_tokens_per_s = (f->prompt_tokens + f->output_tokens) / f->mean_s;
	}
	if (r->output_len > 0)
		f->s_per_token = f->mean_s / (double)r->output_len;
}

void latency_facts(const struct latency_runs *r, struct latency_facts *f)
{
	double *sorted, deviation, sum;

	*f = (struct latency_facts){ .doubts = r->n < r->wanted ? LATENCY_STOPPED : 0 };
	if (r->n == 0)
		return;
	sorted = stats_sorted(r->latency_s, r->n);
	f->mean_s = stats_mean(r->latency_s, r->n);
	f->std_s = stats_std(r->latency_s, r->n);
	f->median_s = stats_median(sorted, r->n);
	f->min_s = sorted[0];
	f->max_s = sorted[r->n - 1];
	for (int i = 0; i < LATENCY_PERCENTILES; i++)
		f->percentile_s[i] = stats_percentile(sorted, r->n, percentages[i]);
	f->mean_95 = student_interval(r->latency_s, r->n, 0.95);
	deviation = median_deviation(r, f->median_s);
	for (size_t i = 0; i < r->n; i++)
		f->outliers += is_outlier(r->latency_s[i], f->median_s, deviation);
	if (r->n < LATENCY_JUDGE_MIN) {
		f->doubts |= LATENCY_FEW;
	} else {
		judge_drift(r, f);
		if (f->mean_s > 0 && f->std_s / f->mean_s > LATENCY_SPREAD_SHARE)
			f->doubts |= LATENCY_SPREADS;
		if (r->n_warmup == 0 && r->latency_s[0] > f->median_s &&
		    is_outlier(r->latency_s[0], f->median_s, deviation))
			f->doubts |= LATENCY_FIRST_SLOW;
	}
	count_tokens(r, f);
	sum = stats_sum(r->latency_s, r->n);
	f->outside_share = sum > 0 ? r->outside_s / sum : 0;
	if (f->outside_share > LATENCY_OUTSIDE_SHARE)
		f->doubts |= LATENCY_OUTSIDE;
	free(sorted);
}

/* ---- terminal ---- */

void latency_terminal(const struct latency_facts *f, struct buf *out)
{
	char text[FMT_F64_BYTES];

	buf_printf(out, "Avg latency: %s seconds\n", fmt_f64(text, f->mean_s));
	for (int i = 0; i < LATENCY_PERCENTILES; i++)
		buf_printf(out, "%d%% percentile latency: %s seconds\n", percentages[i],
			   fmt_f64(text, f->percentile_s[i]));
}

/* None of them makes a latency useless: all lower the verdict by one. */
static const struct { enum latency_doubt doubt; const char *code; } doubt_names[] = {
	{ LATENCY_STOPPED, "interrupted" }, { LATENCY_SHORT, "short_answers" },
	{ LATENCY_DRIFTS, "drift" }, { LATENCY_SPREADS, "spread" },
	{ LATENCY_FIRST_SLOW, "no_warmup" }, { LATENCY_FEW, "few" },
	{ LATENCY_OUTSIDE, "outside_the_clock" },
};
#define DOUBTS (sizeof(doubt_names) / sizeof(*doubt_names))

/* One sentence. */
static void explain(const struct latency_runs *r, const struct latency_facts *f,
		    enum latency_doubt doubt, struct buf *out)
{
	if (doubt == LATENCY_STOPPED)
		buf_printf(out, "stopped after %zu of %zu iterations", r->n, r->wanted);
	else if (doubt == LATENCY_SHORT)
		buf_printf(out, "%" PRIu64 " tokens came back where %" PRIu64 " were asked for: the "
			   "latency is that of less work", r->output_tokens, f->expected_tokens);
	else if (doubt == LATENCY_FEW)
		buf_printf(out, "fewer than %d iterations tell nothing of drift and spread",
			   LATENCY_JUDGE_MIN);
	else if (doubt == LATENCY_DRIFTS)
		buf_printf(out, "the last third of the iterations took %+.1f %% of the first third's "
			   "time: more --num-iters-warmup, or a machine whose clock changes",
			   f->drift * 100);
	else if (doubt == LATENCY_SPREADS)
		buf_printf(out, "the standard deviation is %.1f %% of the mean: something else runs "
			   "here", f->std_s / f->mean_s * 100);
	else if (doubt == LATENCY_FIRST_SLOW)
		buf_printf(out, "the first iteration took %.1f times the median: it was the warm-up",
			   r->latency_s[0] / f->median_s);
	else
		buf_printf(out, "%.1f %% were spent between question and answer outside the engine's "
			   "clock", f->outside_share * 100);
}

static struct trust verdict(const struct latency_runs *r, const struct latency_facts *f)
{
	struct trust t = { 0 };
	struct buf text = { 0 };

	for (size_t i = 0; i < DOUBTS; i++) {
		if (!(f->doubts & doubt_names[i].doubt))
			continue;
		buf_reset(&text);
		explain(r, f, doubt_names[i].doubt, &text);
		verdict_doubt(&t, TRUST_DEGRADED, doubt_names[i].code, buf_str(&text));
	}
	buf_release(&text);
	return t;
}

static void show_time(struct buf *out, double s)
{
	char text[FMT_F64_BYTES];

	buf_add_text(out, fmt_duration(text, (int64_t)(s * 1e9)));
}

void latency_terminal_ours(const struct latency_runs *r, const struct latency_facts *f,
			   struct buf *out)
{
	struct trust t;

	if (r->n == 0)
		return;
	buf_add_text(out, "Median latency: ");
	show_time(out, f->median_s);
	buf_add_text(out, ", standard deviation ");
	show_time(out, f->std_s);
	if (r->n > 1) {
		buf_add_text(out, ", mean known to +/- ");
		show_time(out, (f->mean_95.high - f->mean_95.low) / 2);
		buf_add_text(out, " (95 %)");
	}
	buf_printf(out, "\nBatch: %" PRId64 " x %" PRId64 " prompt tokens, %s%" PRId64 " x %" PRId64
		   " answer tokens\n", r->batch_size, r->input_len, r->is_beam ? "beams " : "",
		   r->sequences, r->output_len);
	buf_printf(out, "Output%s: %.2f tokens/s, ", r->has_counts ? "" :
		   " (asked for, not counted)", f->output_tokens_per_s);
	show_time(out, f->s_per_token);
	buf_printf(out, " for each token of an answer; prompt and output: %.2f tokens/s\n",
		   f->total_tokens_per_s);
	if (f->outliers)
		buf_printf(out, "Outliers: %zu of %zu iterations\n", f->outliers, r->n);
	if (r->n > 1 && r->n < LATENCY_TAIL_MIN)
		buf_printf(out, "Note: the 99%% percentile of %zu values lies between the two "
			   "largest.\n", r->n);
	t = verdict(r, f);
	buf_printf(out, "Verdict: %s\n", trust_name(t.verdict));
	verdict_show(&t, out);
}

/* ---- the result file ---- */

static void put_spread(struct json_writer *w, const struct latency_runs *r,
		       const struct latency_facts *f)
{
	json_member_f64(w, "std_latency", f->std_s);
	json_member_f64(w, "median_latency", f->median_s);
	json_member_f64(w, "min_latency", f->min_s);
	json_member_f64(w, "max_latency", f->max_s);
	if (r->n > 1) {
		double ends[] = { f->mean_95.low, f->mean_95.high };

		json_member_f64s(w, "mean_latency_interval_95", ends, 2);
	}
	if (r->n >= LATENCY_JUDGE_MIN) {
		json_member_f64(w, "first_third_latency", f->first_third_s);
		json_member_f64(w, "last_third_latency", f->last_third_s);
		json_member_f64(w, "drift_share", f->drift);
	}
	json_member_int(w, "outliers", (int64_t)f->outliers);
	json_member_f64(w, "outside_clock_s", r->outside_s);
}

static void put_ours(struct json_writer *w, const struct latency_runs *r,
		     const struct latency_facts *f, const struct latency_config *config)
{
	struct trust t = verdict(r, f);

	json_member_object(w, "profllm");
	json_put_members(w, config->ours);
	json_member_int(w, "seed", config->seed);
	json_member_int(w, "batch_size", r->batch_size);
	json_member_int(w, "input_len", r->input_len);
	json_member_int(w, "output_len", r->output_len);
	json_member_int(w, "n", r->sequences);
	json_member_bool(w, "is_beam_search", r->is_beam);
	json_member_int(w, "iterations", (int64_t)r->n);
	json_member_int(w, "iterations_wanted", (int64_t)r->wanted);
	json_member_f64s(w, "warmup_latencies", r->warmup_s, r->n_warmup);
	put_spread(w, r, f);
	json_member_bool(w, "are_tokens_counted", r->has_counts);
	json_member_f64(w, "prompt_tokens_per_iteration", f->prompt_tokens);
	json_member_f64(w, "output_tokens_per_iteration", f->output_tokens);
	json_member_f64(w, "output_throughput", f->output_tokens_per_s);
	json_member_f64(w, "total_token_throughput", f->total_tokens_per_s);
	json_member_f64(w, "latency_per_output_token", f->s_per_token);
	verdict_put(w, &t);
	json_end_object(w);
}

static void put_percentiles(struct json_writer *w, const struct latency_facts *f)
{
	char key[8];

	json_member_object(w, "percentiles");
	for (int i = 0; i < LATENCY_PERCENTILES; i++) {
		snprintf(key, sizeof(key), "%d", percentages[i]);
		json_member_f64(w, key, f->percentile_s[i]);
	}
	json_end_object(w);
}

void latency_values(const struct latency_runs *r, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_array(&w);
	for (size_t i = 0; i < r->n; i++)
		json_put_f64(&w, r->latency_s[i]);
	json_end_array(&w);
}

void latency_extra(const struct latency_facts *f, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_f64(&w, "avg_latency", f->mean_s);
	put_percentiles(&w, f);
	json_end_object(&w);
}

void latency_json(const struct latency_runs *r, const struct latency_facts *f,
		  const struct latency_config *config, struct buf *out)
{
	struct json_writer w = json_writer(out);

	w.indent = 4;
	json_begin_object(&w);
	json_member_text(&w, "model_id", config->model);
	json_member_f64(&w, "avg_latency", f->mean_s);
	json_member_f64s(&w, "latencies", r->latency_s, r->n);
	put_percentiles(&w, f);
	put_ours(&w, r, f, config);
	json_end_object(&w);
}
