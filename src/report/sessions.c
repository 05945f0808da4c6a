/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - conversations: the result's keys "sessions" and "per_turn_metrics" (vLLM's Rust
 * client has the latter's form), and a block of the terminal report.
 */
#include <math.h>

#include "report/lines.h"
#include "report/put.h"
#include "report/result_parts.h"

#define TURNS_SHOWN 20 /* on a terminal; the result file has all */

/* null when there was nothing to measure. */
static void put_stats(struct json_writer *w, const char *key, const struct metrics_stats *s)
{
	json_key(w, key);
	if (s->n == 0) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	put_int(w, "n", (int64_t)s->n);
	put_real(w, "mean", s->mean);
	put_real(w, "p50", s->p50);
	put_real(w, "p99", s->p99);
	put_real(w, "max", s->max);
	json_end_object(w);
}

static void put_known(struct json_writer *w, const char *key, bool is_known, double v)
{
	json_key(w, key);
	if (is_known)
		json_put_f64(w, v);
	else
		json_put_null(w);
}

void report_sessions_json(struct json_writer *w, const struct metrics *m)
{
	const struct metrics_sessions *s = &m->sessions;
	const struct metrics_stats lag = { s->gap_lag.n, s->gap_lag.mean_ms, s->gap_lag.p50_ms,
					   s->gap_lag.p99_ms, s->gap_lag.max_ms };

	json_begin_object(w);
	put_int(w, "n", s->n);
	put_int(w, "completed", s->completed);
	put_int(w, "failed", s->failed);
	put_int(w, "unfinished", s->unfinished);
	put_int(w, "turns", s->turns);
	put_int(w, "turns_completed", s->turns_completed);
	put_int(w, "turns_failed", s->turns_failed);
	put_int(w, "turns_cancelled", s->turns_dropped);
	put_int(w, "turns_unsent", s->turns_unsent);
	put_int(w, "bad_tool_calls", s->bad_calls);
	put_real(w, "throughput", s->throughput);
	put_known(w, "goodput", m->opts.n_goodput || m->opts.session_limit_ms > 0, s->goodput);
	put_stats(w, "turns_per_session", &s->turns_per_session);
	put_stats(w, "duration_s", &s->duration);
	put_stats(w, "serving_s", &s->serving);
	put_stats(w, "gap_s", &s->gap);
	put_stats(w, "gap_lag_ms", &lag);
	put_stats(w, "later_ttft_ms", &s->later_ttft);
	put_text(w, "context_source", !s->client_counted ? "usage"
		 : s->client_counted < s->turns_completed ? "mixed" : "client");
	put_stats(w, "context_growth_tokens", &s->growth);
	put_known(w, "context_slope_ms", !isnan(s->context_slope_ms), s->context_slope_ms);
	put_known(w, "cached_share", s->is_cache_known, s->cached_share);
	put_stats(w, "cached_share_by_session", &s->cached_by_session);
	put_real(w, "reusable_share", s->reusable_share);
	put_known(w, "reuse_efficiency", s->is_cache_known, s->reuse_efficiency);
	json_end_object(w);
}

static void put_turn(struct json_writer *w, const struct metrics *m, const struct metrics_turn *t)
{
	json_begin_object(w);
	put_int(w, "turn_index", t->turn);
	put_int(w, "num_samples", t->n);
	put_int(w, "completed", t->completed);
	put_int(w, "failed", t->failed);
	put_int(w, "total_input_tokens", t->total_input);
	put_int(w, "total_output_tokens", t->total_output);
	put_real(w, "duration", t->duration_s);
	put_real(w, "request_throughput", t->request_throughput);
	put_real(w, "input_throughput", t->input_throughput);
	put_real(w, "output_throughput", t->output_throughput);
	put_real(w, "total_token_throughput", t->total_token_throughput);
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		report_block_members(w, &m->opts, b, &t->block[b]);
	put_known(w, "cached_share", t->is_cache_known, t->cached_share);
	put_stats(w, "context_tokens", &t->context);
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
	char cached[16] = "-";

	if (t->is_cache_known)
		snprintf(cached, sizeof(cached), "%.1f", t->cached_share * 100);
	buf_printf(out, "%4u %8u %10.2f %10.2f %9.2f %10.2f %9.0f %8s\n", t->turn + 1, t->completed,
		   t->block[BLOCK_TTFT].mean_ms, t->block[BLOCK_TTFT].median_ms,
		   t->block[BLOCK_TPOT].mean_ms, t->block[BLOCK_E2EL].mean_ms, t->context.mean,
		   cached);
}

void report_session_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_sessions *s = &m->sessions;
	size_t shown = s->n_turns < TURNS_SHOWN ? s->n_turns : TURNS_SHOWN;

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
	buf_printf(out, "%4s %8s %10s %10s %9s %10s %9s %8s\n", "Turn", "Requests", "Mean TTFT",
		   "Med. TTFT", "Mean TPOT", "Mean E2EL", "Context", "Cached %");
	for (size_t i = 0; i < shown; i++)
		turn_row(&s->by_turn[i], out);
	if (shown < s->n_turns)
		buf_printf(out, "     (%zu more turns are in the result file)\n",
			   s->n_turns - shown);
}
