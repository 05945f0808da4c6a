/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - conversations: the result's keys "sessions" and "per_turn_metrics" (vLLM's Rust
 * client has the latter's form), and a block of the terminal report.
 */
#include <math.h>

#include "report/lines.h"
#include "json/write.h"
#include "report/result_parts.h"

#define TREND_ERRORS 2 /* standard errors of a slope beyond which it is one */

/* null when there was nothing to measure. */
static void put_stats(struct json_writer *w, const char *key, const struct metrics_stats *s)
{
	json_key(w, key);
	if (s->n == 0) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_member_int(w, "n", (int64_t)s->n);
	json_member_f64(w, "mean", s->mean);
	json_member_f64(w, "p50", s->p50);
	json_member_f64(w, "p99", s->p99);
	json_member_f64(w, "max", s->max);
	json_end_object(w);
}

static void put_spread(struct json_writer *w, const char *key, const struct metrics_spread *s)
{
	const struct metrics_stats in_ms = { s->n, s->mean_ms, s->p50_ms, s->p99_ms, s->max_ms };

	put_stats(w, key, &in_ms);
}

static void put_known(struct json_writer *w, const char *key, bool is_known, double v)
{
	json_key(w, key);
	if (is_known)
		json_put_f64(w, v);
	else
		json_put_null(w);
}

static void add_growth(const struct metrics_sessions *s, size_t last, struct buf *out)
{
	double growth = s->ttft_growth_per_turn_ms, low = INFINITY, high = 0;

	for (size_t k = 1; k < last; k++) {
		double ms = s->by_turn[k].block[BLOCK_TTFT].median_ms;

		if (!s->by_turn[k].completed)
			continue;
		low = ms < low ? ms : low;
		high = ms > high ? ms : high;
	}
	buf_printf(out, "From turn 2 to turn %zu the median TTFT ", last);
	if (fabs(growth) > TREND_ERRORS * s->ttft_growth_error_ms)
		buf_printf(out, "%s by %.2f ms per turn; ", growth < 0 ? "falls" : "grows",
			   fabs(growth));
	else
		buf_printf(out, "shows no trend (%.2f to %.2f ms); ", low, high);
}

/*
 * What the turns show, as one sentence: "From turn 2 to turn 8 the median TTFT grows by 1.20 ms per
 * turn; cached tokens cover 81.4 % of the prompt." Nothing where no conversation goes on.
 */
static void add_summary(const struct metrics_sessions *s, struct buf *out)
{
	size_t last = s->n_turns;

	while (last > 1 && !s->by_turn[last - 1].completed)
		last--;
	if (last < 2)
		return;
	if (s->knows_growth)
		add_growth(s, last, out);
	else
		buf_printf(out, "The median TTFT is %.2f ms at turn 1 and %.2f ms at turn %zu; ",
			   s->by_turn[0].block[BLOCK_TTFT].median_ms,
			   s->by_turn[last - 1].block[BLOCK_TTFT].median_ms, last);
	if (s->is_later_cache_known)
		buf_printf(out, "cached tokens cover %.1f %% of the prompt%s.",
			   s->later_cached_share * 100, s->knows_growth ? "" : " from turn 2 on");
	else
		buf_add_text(out, "the server does not report cached tokens.");
}

void report_sessions_json(struct json_writer *w, const struct metrics *m)
{
	const struct metrics_sessions *s = &m->sessions;
	struct buf text = { 0 };

	json_begin_object(w);
	json_member_int(w, "n", s->n);
	json_member_int(w, "completed", s->completed);
	json_member_int(w, "failed", s->failed);
	json_member_int(w, "unfinished", s->unfinished);
	json_member_int(w, "turns", s->turns);
	json_member_int(w, "turns_completed", s->turns_completed);
	json_member_int(w, "turns_failed", s->turns_failed);
	json_member_int(w, "turns_cancelled", s->turns_dropped);
	json_member_int(w, "turns_unsent", s->turns_unsent);
	json_member_int(w, "bad_tool_calls", s->bad_calls);
	json_member_f64(w, "throughput", s->throughput);
	put_known(w, "goodput", m->opts.n_goodput || m->opts.session_limit_ms > 0, s->goodput);
	put_stats(w, "turns_per_session", &s->turns_per_session);
	put_stats(w, "duration_s", &s->duration);
	put_stats(w, "serving_s", &s->serving);
	put_stats(w, "gap_s", &s->gap);
	put_spread(w, "gap_lag_ms", &s->gap_lag);
	put_spread(w, "ttft_first_turn_ms", &s->first_ttft);
	put_spread(w, "ttft_later_turns_ms", &s->later_ttft);
	json_member_text(w, "context_source", !s->client_counted ? "usage"
		 : s->client_counted < s->turns_completed ? "mixed" : "client");
	put_stats(w, "context_growth_tokens", &s->growth);
	put_known(w, "context_slope_ms", !isnan(s->context_slope_ms), s->context_slope_ms);
	put_known(w, "cached_share", s->is_cache_known, s->cached_share);
	put_stats(w, "cached_share_by_session", &s->cached_by_session);
	json_member_f64(w, "reusable_share", s->reusable_share);
	put_known(w, "reuse_efficiency", s->is_cache_known, s->reuse_efficiency);
	put_known(w, "ttft_growth_per_turn_ms", s->knows_growth, s->ttft_growth_per_turn_ms);
	put_known(w, "ttft_growth_error_per_turn_ms", s->knows_growth, s->ttft_growth_error_ms);
	put_known(w, "later_cached_share", s->is_later_cache_known, s->later_cached_share);
	add_summary(s, &text);
	json_member_text(w, "turns_summary", text.len ? text.data : NULL);
	buf_release(&text);
	json_end_object(w);
}

static void put_turn(struct json_writer *w, const struct metrics *m, const struct metrics_turn *t)
{
	json_begin_object(w);
	json_member_int(w, "turn_index", t->turn);
	json_member_int(w, "num_samples", t->n);
	json_member_int(w, "completed", t->completed);
	json_member_int(w, "failed", t->failed);
	json_member_int(w, "total_input_tokens", t->total_input);
	json_member_int(w, "total_output_tokens", t->total_output);
	json_member_f64(w, "duration", t->duration_s);
	json_member_f64(w, "request_throughput", t->request_throughput);
	json_member_f64(w, "input_throughput", t->input_throughput);
	json_member_f64(w, "output_throughput", t->output_throughput);
	json_member_f64(w, "total_token_throughput", t->total_token_throughput);
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		report_block_members(w, &m->opts, b, &t->block[b]);
	put_known(w, "cached_share", t->is_cache_known, t->cached_share);
	put_stats(w, "context_tokens", &t->context);
	put_stats(w, "cached_tokens", &t->cached);
	json_end_object(w);
}

void report_turns_json(struct json_writer *w, const struct metrics *m)
{
	json_begin_array(w);
	for (size_t i = 0; i < m->sessions.n_turns; i++)
		put_turn(w, m, &m->sessions.by_turn[i]);
	json_end_array(w);
}

/* ---- terminal ---- */

static void line_stats(struct buf *out, const char *label, const struct metrics_stats *s)
{
	char text[80];

	if (s->n == 0)
		return;
	snprintf(text, sizeof(text), "%.3f / %.3f / %.3f", s->p50, s->p99, s->max);
	line_text(out, label, text);
}

static void turn_row(const struct metrics_turn *t, struct buf *out)
{
	char turn[24], cached[32] = "-", share[16] = "-";

	if (t->turn == t->last_turn)
		snprintf(turn, sizeof(turn), "%u", t->turn + 1);
	else
		snprintf(turn, sizeof(turn), "%u-%u", t->turn + 1, t->last_turn + 1);
	if (t->is_cache_known) {
		snprintf(cached, sizeof(cached), "%.0f", t->cached.mean);
		snprintf(share, sizeof(share), "%.1f", t->cached_share * 100);
	}
	buf_printf(out, "%9s %8u %9.2f %9.2f %9.2f %10.2f %9.0f %8s %8s\n", turn, t->completed,
		   t->block[BLOCK_TTFT].mean_ms, t->block[BLOCK_TTFT].median_ms,
		   t->block[BLOCK_TPOT].mean_ms, t->block[BLOCK_E2EL].mean_ms, t->context.mean,
		   cached, share);
}

/* Times in milliseconds, context and cached as mean prompt tokens; many turns as ranges. */
static void turn_table(const struct metrics_sessions *s, struct buf *out)
{
	const struct metrics_turn *row = s->by_range ? s->by_range : s->by_turn;
	size_t n = s->by_range ? s->n_ranges : s->n_turns;
	struct buf text = { 0 };

	line_heading(out, '-', "By turn (ms, tokens)");
	buf_printf(out, "%9s %8s %9s %9s %9s %10s %9s %8s %8s\n", "Turn", "Requests", "Mean TTFT",
		   "Med. TTFT", "Mean TPOT", "Mean E2EL", "Context", "Cached", "Cached %");
	for (size_t i = 0; i < n; i++)
		turn_row(&row[i], out);
	add_summary(s, &text);
	if (text.len)
		buf_printf(out, "%s\n", text.data);
	buf_release(&text);
}

void report_session_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_sessions *s = &m->sessions;

	if (!s->n)
		return;
	line_heading(out, '-', "Conversations");
	line_int(out, "Conversations completed:", s->completed);
	line_int(out, "Conversations with a failed turn:", s->failed);
	line_int(out, "Conversations unfinished:", s->unfinished);
	line_int(out, "Turns completed:", s->turns_completed);
	if (s->turns_dropped)
		line_int(out, "Turns cancelled after a failed one:", s->turns_dropped);
	if (s->turns_unsent)
		line_int(out, "Turns unsent when the run was over:", s->turns_unsent);
	if (s->bad_calls)
		line_int(out, "Turns with malformed tool calls:", s->bad_calls);
	line_real(out, "Conversations per second:", s->throughput);
	if (m->opts.n_goodput || m->opts.session_limit_ms > 0)
		line_real(out, "Conversation goodput (1/s):", s->goodput);
	line_stats(out, "Duration p50/p99/max (s):", &s->duration);
	line_stats(out, "Of it pauses p50/p99/max (s):", &s->gap);
	if (!isnan(s->context_slope_ms))
		line_real(out, "TTFT per 1000 prompt tokens (ms):", s->context_slope_ms);
	line_spread(out, "Lag of later turns p50/p99/max (ms):", &s->gap_lag);
	if (s->is_cache_known) {
		line_real(out, "Prompt tokens cached (%):", s->cached_share * 100);
		line_real(out, "Of the reusable ones (%):", s->reuse_efficiency * 100);
	}
	turn_table(s, out);
}
