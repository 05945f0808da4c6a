/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal.c - upstream's report, character for character, then ours.
 *
 * Rows are a label of 40 columns, a blank, and a value of 10; other people's tools match labels up
 * to the colon, so none is ever reworded.
 */
#include "out/report/report_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "core/base/str.h"
#include "out/report/derived.h"
#include "out/report/priorities.h"
#include "out/report/report.h"
#include "out/report/system.h"
#include "out/report/verdict.h"

/* ---- lines ---- */

#define WIDTH 50

/* Centred between fill characters; the odd one goes on the right. */
void line_heading(struct buf *out, char fill, const char *text)
{
	size_t n = strlen(text), left = n < WIDTH ? (WIDTH - n) / 2 : 0;

	for (size_t i = 0; i < left; i++)
		buf_add_char(out, fill);
	buf_add_text(out, text);
	for (size_t i = left + n; i < WIDTH; i++)
		buf_add_char(out, fill);
	buf_add_char(out, '\n');
}

void line_text(struct buf *out, const char *label, const char *value)
{
	buf_printf(out, "%-40s %-10s\n", label, value);
}

void line_int(struct buf *out, const char *label, int64_t v)
{
	buf_printf(out, "%-40s %-10lld\n", label, (long long)v);
}

void line_real(struct buf *out, const char *label, double v)
{
	char text[400]; /* the longest double has 309 digits before the point */

	snprintf(text, sizeof(text), "%.2f", v);
	line_text(out, label, text);
}

/* Text from a server: control characters, which a terminal would obey, are shown as '?'. */
void line_add_safe(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		buf_add_char(out, (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f
			     ? '?' : (char)c);
	}
}

void line_stats(struct buf *out, const char *label, const struct metrics_stats *s)
{
	char text[80];

	if (s->n == 0)
		return;
	snprintf(text, sizeof(text), "%.3f / %.3f / %.3f", s->p50, s->p99, s->max);
	line_text(out, label, text);
}

void line_spread(struct buf *out, const char *label, const struct metrics_spread *s)
{
	line_stats(out, label, &(struct metrics_stats){ s->n, s->mean_ms, s->p50_ms, s->p99_ms,
							s->max_ms });
}

/* A percentage, or "-" when there was nothing to look at. */
static void line_share(struct buf *out, const char *label, uint64_t part, uint64_t whole)
{
	if (whole)
		line_real(out, label, 100.0 * (double)part / (double)whole);
	else
		line_text(out, label, "-");
}

/* ---- probes, engine, servers, steady state ---- */

/* ---- upstream's blocks ---- */

static void report_probe_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_probe *p = &m->probe;

	if (p->completed == 0)
		return;
	line_heading(out, '-', "Probe Requests");
	line_int(out, "Probe requests completed:", p->completed);
	line_int(out, "Probe requests failed:", p->failed);
	line_real(out, "Median probe E2EL (ms):", p->median_ms);
	line_real(out, "P99 probe E2EL (ms):", p->p99_ms);
	line_real(out, "Max probe E2EL (ms):", p->max_ms);
}

static void diffusion_rows(const struct metrics_diffusion *d, struct buf *out)
{
	line_heading(out, '-', "Diffusion Decoding");
	line_real(out, "Committed throughput (tok/s):", d->committed_throughput);
	line_real(out, "Denoising steps per canvas:", d->steps_per_canvas);
	line_real(out, "Committed per denoising step:", d->committed_per_step);
	line_int(out, "Committed tokens:", d->committed_tokens);
	line_int(out, "Denoising steps:", metrics_whole(d->denoising_steps));
	line_int(out, "Canvas positions evaluated:", d->canvas_positions);
}

static void spec_rows(const struct metrics_spec *s, struct buf *out)
{
	char label[40];

	line_heading(out, '-', "Speculative Decoding");
	line_real(out, "Acceptance rate (%):", s->acceptance_rate);
	line_real(out, "Acceptance length:", s->acceptance_length);
	line_int(out, "Drafts:", s->drafts);
	line_int(out, "Draft tokens:", s->draft_tokens);
	line_int(out, "Accepted tokens:", s->accepted_tokens);
	if (s->n_positions)
		buf_add_text(out, "Per-position acceptance (%):\n");
	for (size_t i = 0; i < s->n_positions; i++) {
		snprintf(label, sizeof(label), "  Position %zu:", i);
		line_real(out, label, s->position_rate[i] * 100);
	}
}

static void report_engine_rows(const struct metrics *m, struct buf *out)
{
	if (m->diffusion.is_reported)
		diffusion_rows(&m->diffusion, out);
	else if (m->spec.is_reported)
		spec_rows(&m->spec, out);
}

/* ---- ours ---- */

/* Whole requests, and hundredths of a percent; a mean has two places in both. */
static void gauge_row(struct buf *out, const char *label, const struct metrics_gauge *g,
		      bool is_share)
{
	double factor = is_share ? 100 : 1;
	int places = is_share ? 2 : 0;
	char text[200];

	if (g->n == 0)
		return;
	snprintf(text, sizeof(text), "%.*f / %.2f / %.*f / %.*f", places, g->min * factor,
		 g->mean * factor, places, g->max * factor, places, g->last * factor);
	line_text(out, label, text);
}

void report_preemptions(const struct metrics *m, struct buf *out)
{
	const struct metrics_growth *p = &m->servers.preemptions;
	int64_t n = p->is_reported ? metrics_whole(p->value) : 0;

	if (n <= 0)
		return;
	buf_printf(out, "The KV cache was too small for the requests in the batch: %lld time%s one was "
		   "thrown out and computed again, which is in the latencies. Usual remedies: more "
		   "memory for the cache (--gpu-memory-utilization, --tensor-parallel-size, "
		   "--pipeline-parallel-size, --kv-cache-dtype fp8) or fewer requests in it "
		   "(--max-num-seqs, --max-num-batched-tokens, --max-concurrency of the load).",
		   (long long)n, n == 1 ? "" : "s");
}

static void report_server_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_server *s = &m->servers;
	char text[60];
	size_t at;

	if (s->scrapes == 0)
		return;
	line_heading(out, '-', "Server Metrics");
	gauge_row(out, "Running requests min/mean/max/last:", &s->running, false);
	gauge_row(out, "Waiting requests min/mean/max/last:", &s->waiting, false);
	gauge_row(out, "KV cache use min/mean/max/last (%):", &s->kv_usage, true);
	if (s->prefix_queries.is_reported && s->prefix_hits.is_reported &&
	    s->prefix_queries.value > 0)
		line_real(out, "Prefix cache hit rate (%):",
			  100 * s->prefix_hits.value / s->prefix_queries.value);
	if (s->preemptions.is_reported)
		line_int(out, "Preemptions:", metrics_whole(s->preemptions.value));
	snprintf(text, sizeof(text), "%u / %u", s->scrapes, s->failed_scrapes);
	line_text(out, "Readings of /metrics, done/failed:", text);
	at = out->len;
	report_preemptions(m, out);
	if (out->len > at)
		buf_add_char(out, '\n');
}

void report_steady_warning(const struct metrics *m, struct buf *out)
{
	const struct metrics_steady *s = &m->steady;

	if (!s->is_wanted)
		return;
	if (!s->is_reached)
		buf_printf(out, "There was no steady state: never more than %lld requests were in "
			   "flight, and it takes %lld.", (long long)s->observed_peak,
			   (long long)s->threshold_requests);
	else if (s->is_short)
		buf_printf(out, "The steady state lasted %.1f s (%.1f %% of the run), which may be too "
			   "short to represent it.", s->duration_s,
			   s->run_s > 0 ? 100 * s->duration_s / s->run_s : 0);
}

/* Labels begin with "Steady", or a search for upstream's would find them too. */
static void steady_numbers(const struct metrics *m, struct buf *out)
{
	const struct metrics_steady *s = &m->steady;
	char label[80], text[80], p[FMT_F64_BYTES];

	snprintf(text, sizeof(text), "%.2f / %.2f", (double)(s->start_ns - s->first_ns) / 1e9,
		 (double)(s->end_ns - s->first_ns) / 1e9);
	line_text(out, "Steady from/to (s after first start):", text);
	snprintf(text, sizeof(text), "%u / %u", s->started, s->completed);
	line_text(out, "Steady requests started/completed:", text);
	line_real(out, "Steady requests (req/s):", s->request_throughput);
	line_real(out, "Steady input tokens (tok/s):", s->input_throughput);
	if (m->opts.is_pooling)
		return;
	line_real(out, "Steady output tokens (tok/s):", s->output_throughput);
	line_real(out, "Steady mean TTFT (ms):", s->mean_ttft_ms);
	line_real(out, "Steady median TTFT (ms):", s->median_ttft_ms);
	for (size_t i = 0; i < m->opts.n_percentiles; i++) {
		snprintf(label, sizeof(label), "Steady P%s TTFT (ms):",
			 metrics_percentile_name(p, m->opts.percentile[i]));
		line_real(out, label, s->percentile_ttft_ms[i]);
	}
	if (s->mean_tpot_ms <= 0)
		return; /* answers of one token */
	line_real(out, "Steady mean TPOT (ms):", s->mean_tpot_ms);
	line_real(out, "Steady median TPOT (ms):", s->median_tpot_ms);
	line_real(out, "Steady P90 TPOT (ms):", s->p90_tpot_ms);
	line_real(out, "Steady P99 TPOT (ms):", s->p99_tpot_ms);
}

static void report_steady_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_steady *s = &m->steady;
	char text[80];

	if (!s->is_wanted)
		return;
	line_heading(out, '-', "Steady State");
	snprintf(text, sizeof(text), "%lld / %lld", (long long)s->threshold_requests,
		 (long long)s->observed_peak);
	line_text(out, "Steady concurrency needed/peak:", text);
	if (s->is_reached)
		steady_numbers(m, out);
	report_steady_warning(m, out);
	if (!s->is_reached || s->is_short)
		buf_add_char(out, '\n');
}

/* ---- the report ---- */

#define FAILURES_SHOWN 10
#define CONNECT_SHOWN_MS 1.0 /* above this p99 TTFT is shown with and without connecting */

static const struct { const char *heading, *name; } blocks[BLOCK_COUNT] = {
	[BLOCK_TTFT] = { "Time to First Token", "TTFT" },
	[BLOCK_TPOT] = { "Time per Output Token (excl. 1st token)", "TPOT" },
	[BLOCK_ITL] = { "Inter-token Latency", "ITL" },
	[BLOCK_E2EL] = { "End-to-end Latency", "E2EL" },
	[BLOCK_QUEUE_TIME] = { "Client-side Queueing", "Client Queue Time" },
	[BLOCK_E2EL_WITH_QUEUE] = { "Queue-inclusive End-to-end Latency",
				    "E2EL incl. Client Queue" },
};

const char *report_block_name(enum metric_block b)
{
	assert((size_t)b < BLOCK_COUNT);
	return blocks[b].name;
}

/* ---- upstream's part ---- */

static void failed_requests(const struct report *r, struct buf *out)
{
	struct buf text = { 0 };
	unsigned shown = 0;

	buf_printf(out, "Failed requests during benchmark run detected (capping to %d):\n",
		   FAILURES_SHOWN);
	for (uint32_t i = 0; i < r->metrics->n && shown < FAILURES_SHOWN; i++) {
		const struct request_row *row = &r->record->row[r->metrics->row[i]];

		struct str rest;

		if (row->state != REQ_FAILED)
			continue;
		buf_reset(&text);
		record_error_of(r->record, row, &text);
		buf_printf(out, "Error %u: ", shown++);
		rest = buf_str(&text);
		line_add_safe(out, str_cut(&rest, '\n'));
		buf_add_char(out, '\n');
	}
	buf_release(&text);
}

static void totals(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;
	bool has_lengths = m->opts.has_tokenizer || r->facts->is_v011;
	bool is_pooling = m->opts.is_pooling, has_tokens = !is_pooling && has_lengths;

	line_int(out, "Successful requests:", m->completed);
	line_int(out, "Failed requests:", m->failed);
	if (r->facts->max_concurrency)
		line_int(out, "Maximum request concurrency:", r->facts->max_concurrency);
	if (m->opts.is_rate_finite)
		line_real(out, "Request rate configured (RPS):", r->facts->request_rate);
	line_real(out, "Benchmark duration (s):", m->duration_s);
	line_int(out, "Total input tokens:", m->total_input);
	if (m->opts.reports_cached_tokens && m->n_cached_known)
		line_int(out, "Total cached tokens:", m->total_cached);
	else if (m->opts.reports_cached_tokens)
		line_text(out, "Total cached tokens:", "not reported");
	if (has_tokens)
		line_int(out, "Total generated tokens:", m->total_output);
	line_real(out, "Request throughput (req/s):", m->request_throughput);
	if (is_pooling)
		line_real(out, "Input throughput (inputs/s):", m->sequence_throughput);
	if (!is_pooling && m->opts.n_goodput)
		line_real(out, "Request goodput (req/s):", m->request_goodput);
	if (has_tokens) {
		line_real(out, "Output token throughput (tok/s):", m->output_throughput);
		line_real(out, "Peak output token throughput (tok/s):", m->max_output_tokens_per_s);
	}
	if (!is_pooling)
		line_real(out, "Peak concurrent requests:", (double)m->max_concurrent_requests);
	if (!is_pooling && m->rtfx > 0)
		line_real(out, "RTFx (Inverse Real-Time Factor):", m->rtfx);
	if (has_lengths)
		line_real(out, "Total token throughput (tok/s):", m->total_token_throughput);
}

static void block(const struct metrics *m, enum metric_block b, struct buf *out)
{
	const struct metrics_summary *s = &m->block[b];
	char label[80], p[FMT_F64_BYTES];

	if (!s->is_reported)
		return;
	line_heading(out, '-', blocks[b].heading);
	snprintf(label, sizeof(label), "Mean %s (ms):", blocks[b].name);
	line_real(out, label, s->mean_ms);
	snprintf(label, sizeof(label), "Median %s (ms):", blocks[b].name);
	line_real(out, label, s->median_ms);
	for (size_t i = 0; i < m->opts.n_percentiles; i++) {
		snprintf(label, sizeof(label), "P%s %s (ms):",
			 metrics_percentile_name(p, m->opts.percentile[i]), blocks[b].name);
		line_real(out, label, s->percentile_ms[i]);
	}
}

/* ---- our part ---- */

static void failures(const struct metrics *m, struct buf *out)
{
	char label[80];

	for (int c = 0; c < FAIL_COUNT; c++) {
		const struct metrics_failures *f = &m->failures[c];

		if (f->count == 0)
			continue;
		snprintf(label, sizeof(label), "Failed, %s:", fail_name((enum fail_category)c));
		line_int(out, label, f->count);
		for (uint32_t k = 0; k < f->n_examples; k++) {
			buf_printf(out, "  %u x ", f->example[k].count);
			line_add_safe(out, f->example[k].text);
			buf_add_char(out, '\n');
		}
		if (f->n_others)
			buf_printf(out, "  %u x other texts\n", f->n_others);
	}
}

/* Values where upstream's figures are not the best known ones. */
static void best_known(const struct metrics *m, struct buf *out)
{
	const struct metrics_client *c = &m->client;

	if (c->best_input != m->total_input)
		line_int(out, "Input tokens, best known:", c->best_input);
	if (c->best_output == m->total_output)
		return;
	line_int(out, "Output tokens, best known:", c->best_output);
	if (m->duration_s > 0)
		line_real(out, "Output tok/s, best known:",
			  (double)c->best_output / m->duration_s);
	line_spread(out, "TPOT, best known p50/p99/max (ms):", &c->best_tpot);
}

/* "length 98, stop 1": nothing where no answer has one. */
static void finish_reasons(const struct metrics_client *c, struct buf *out)
{
	struct buf text = { 0 };

	for (enum finish_reason k = FINISH_NONE + 1; k < FINISH_COUNT; k++)
		if (c->finishes[k])
			buf_printf(&text, "%s%s %u", text.len ? ", " : "", finish_name(k),
				   c->finishes[k]);
	if (text.len && c->finishes[FINISH_NONE])
		buf_printf(&text, ", none %u", c->finishes[FINISH_NONE]);
	if (text.len)
		line_text(out, "Finish reasons:", text.data);
	buf_release(&text);
}

static void tokens(const struct metrics *m, struct buf *out)
{
	const struct metrics_client *c = &m->client;

	if (m->opts.is_pooling)
		return;
	line_share(out, "Events sharing a read (%):", c->n_shared, c->n_events_with_text);
	line_share(out, "Events of not one token (%):", c->n_not_one_token, c->n_events);
	if (c->n_events_with_usage)
		line_real(out, "Tokens per event:",
			 (double)c->n_tokens_with_usage / (double)c->n_events_with_usage);
	line_share(out, "Token count unlike usage (% of req.):", c->n_count_unlike_usage,
		   c->n_usage);
	if (c->n_usage_refused)
		line_int(out, "Requests with impossible counts:", c->n_usage_refused);
	if (c->n_counted)
		line_int(out, "Requests with tokens counted by us:", c->n_counted);
	if (c->n_count_unknown)
		line_int(out, "Requests taken as one token:", c->n_count_unknown);
	best_known(m, out);
	finish_reasons(c, out);
}

/* Values beyond the record's range are not numbers. */
static void skew(const struct metrics_spread *s, struct buf *out)
{
	static const char label[] = "Kernel-to-user skew p50/p99/max (ms):";
	const double ms[] = { s->p50_ms, s->p99_ms, s->max_ms };
	struct buf text = { 0 };

	if (s->n == 0 || s->max_ms < METRICS_SKEW_MAX_MS) {
		line_spread(out, label, s);
		return;
	}
	for (size_t i = 0; i < sizeof(ms) / sizeof(*ms); i++)
		buf_printf(&text, ms[i] < METRICS_SKEW_MAX_MS ? "%s%.3f" : "%s>%.3f", i ? " / " : "",
			   ms[i] < METRICS_SKEW_MAX_MS ? ms[i] : METRICS_SKEW_MAX_MS);
	line_text(out, label, text.data);
	buf_release(&text);
}

/* ITL by event, token and segment, and who made the slow gaps. */
static void gaps(const struct metrics_gaps *g, struct buf *out)
{
	struct buf text = { 0 };

	if (!g->n)
		return;
	line_spread(out, "ITL per event p50/p99/max (ms):", &g->event);
	line_spread(out, "ITL per token p50/p99/max (ms):", &g->token);
	line_spread(out, "ITL per segment p50/p99/max (ms):", &g->segment);
	buf_printf(&text, "%llu of %llu (above %.3f ms)", (unsigned long long)g->n_slow,
		   (unsigned long long)g->n, g->limit_ms);
	line_text(out, "Slow gaps:", text.data);
	buf_reset(&text);
	for (enum gap_cause c = 0; c < GAP_UNKNOWN; c++)
		buf_printf(&text, "%s%llu", c ? " / " : "", (unsigned long long)g->cause[c].n);
	if (g->cause[GAP_UNKNOWN].n)
		buf_printf(&text, ", unknown %llu", (unsigned long long)g->cause[GAP_UNKNOWN].n);
	line_text(out, "Slow by server/delivery/client:", text.data);
	buf_reset(&text);
	for (enum gap_cause c = 0; c < GAP_UNKNOWN; c++)
		if (isnan(g->cause[c].p99_without_ms))
			buf_printf(&text, "%s-", c ? " / " : "");
		else
			buf_printf(&text, "%s%.3f", c ? " / " : "", g->cause[c].p99_without_ms);
	line_text(out, "ITL p99 without each of them (ms):", text.data);
	buf_release(&text);
}

/* The network's part of each TTFT, independent of the server. */
static void network(const struct report *r, struct buf *out)
{
	char text[32];

	if (r->facts->round_trip_ms <= 0)
		return;
	snprintf(text, sizeof(text), "%.3f", r->facts->round_trip_ms);
	line_text(out, "Network round trip (ms):", text);
}

static void client(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;
	const struct metrics_client *c = &m->client;

	if (!r->facts->capture.source) { /* another client's are not known */
		line_spread(out, "Client lag p50/p99/max (ms):", &c->lag);
		line_spread(out, "Send lag p50/p99/max (ms):", &c->send_lag);
		skew(&c->skew, out);
	}
	line_int(out, "New connections:", c->n_new_connections);
	line_spread(out, "Connect time p50/p99/max (ms):", &c->connect);
	network(r, out);
	if (c->connect.p99_ms > CONNECT_SHOWN_MS && !m->opts.is_pooling) {
		char text[80];

		snprintf(text, sizeof(text), "%.3f / %.3f", c->ttft_connect.mean_ms,
			 m->block[BLOCK_TTFT].mean_ms);
		line_text(out, "Mean TTFT with/without connect (ms):", text);
	}
	line_spread(out, "TTFT to content p50/p99/max (ms):", &c->ttft_content);
	line_spread(out, "TTFT to answer p50/p99/max (ms):", &c->ttft_answer);
	line_spread(out, "E2EL from due p50/p99/max (ms):", &c->from_due);
	gaps(&m->gaps, out);
	tokens(m, out);
	line_int(out, "Retries:", (int64_t)c->retries);
}

/* "98.50 (of 200; wrong: schema 2, parse 1)". */
static void correctness(const struct metrics_correctness *c, struct buf *out)
{
	struct buf text = { 0 };
	bool is_first = true;

	if (!c->n)
		return;
	if (c->constrained_scored)
		buf_printf(&text, "%.2f (of %u", 100.0 * c->constrained_correct / c->constrained_scored,
			   c->constrained_scored);
	else
		buf_printf(&text, "- (none of %u was scored", c->constrained);
	for (enum row_wrong k = WRONG_NONE + 1; k < WRONG_COUNT; k++) {
		if (!c->wrong[k])
			continue;
		buf_printf(&text, "%s %s %u", is_first ? "; wrong:" : ",", wrong_name(k), c->wrong[k]);
		is_first = false;
	}
	buf_add_char(&text, ')');
	line_text(out, "Constrained answers correct (%):", text.data);
	if (c->free_scored)
		line_share(out, "Unconstrained answers correct (%):", c->free_correct, c->free_scored);
	/* The line correct_rate(%) at the very end has this number, too. */
	if (c->upstream_scored && (uint64_t)c->upstream_correct * c->constrained_scored !=
				  (uint64_t)c->constrained_correct * c->upstream_scored) {
		buf_reset(&text);
		buf_printf(&text, "%.2f (of all %u requests; any JSON is correct)",
			   100.0 * c->upstream_correct / c->upstream_scored, c->upstream_scored);
		line_text(out, "correct_rate(%) by vLLM's rule:", text.data);
	}
	buf_release(&text);
}

/* What a run that was stopped left: requests without an answer, and those that never began. */
static void cancelled(const struct metrics *m, struct buf *out)
{
	uint32_t unsent = m->attempted.unsent < m->cancelled ? m->attempted.unsent : m->cancelled;

	if (m->cancelled > unsent)
		line_int(out, "Cancelled while they ran:", m->cancelled - unsent);
	if (unsent)
		line_int(out, "Never sent:", unsent);
}

/* What did not succeed, and the kind of run. */
static void outcome(const struct report *r, struct buf *out)
{
	failures(r->metrics, out);
	if (r->metrics->probe.completed == 0 && r->metrics->probe.failed)
		line_int(out, "Probe requests failed:", r->metrics->probe.failed); /* upstream has no row */
	report_attempted_rows(r->metrics, out);
	correctness(&r->metrics->correctness, out);
	cancelled(r->metrics, out);
	report_load_rows(r, out);
	derived_rows(r, out);
}

/* Whose clock, and what has a stamp of its own. */
static const char *stamps(const struct report *r)
{
	const struct metrics *m = r->metrics;

	if (m->opts.is_user_stamps || (m->n && m->client.n_user_stamped == m->n))
		return "user";
	if (m->client.n_user_stamped)
		return "mixed";
	if (r->facts->capture.source)
		return "packets of the capture";
	if (r->facts->segments.events)
		return r->facts->segments.events >= m->client.n_events ? "kernel, each segment"
								       : "kernel, most segments";
	return "kernel";
}

static void verdict(const struct report *r, struct buf *out)
{
	line_text(out, "Verdict:", trust_name(r->trust->verdict));
	verdict_show(r->trust, out);
	line_heading(out, '=', "");
}

/* Traffic of another client: what was seen, and what of it is not in the numbers. */
static void capture(const struct report_capture *c, struct buf *out)
{
	const struct { const char *label; uint64_t n; } rows[] = {
		{ "Packets dropped by the capture:", c->dropped },
		{ "Packets cut by the capture:", c->cut_packets },
		{ "Places where packets are missing:", c->holes },
		{ "Requests lost with them:", c->lost },
		{ "Requests cut by the capture's end:", c->cut },
		{ "Requests given up by their client:", c->abandoned },
		{ "Requests to other paths, left out:", c->other },
		{ "Requests beyond the limits, left out:", c->beyond },
		{ "Answers in one piece:", c->whole },
		{ "Answers in one piece, left out:", c->unread },
		{ "Requests without token counts:", c->without_usage },
		{ "Packets of TLS, not read:", c->tls },
		{ "Packets of HTTP/2, not read:", c->http2 },
	};

	if (!c->source)
		return;
	line_heading(out, '-', "Captured Traffic");
	line_text(out, "Source:", c->source);
	line_int(out, "Packets:", (int64_t)c->packets);
	line_int(out, "Connections begun:", (int64_t)c->connections);
	line_int(out, "Connections entered in their middle:", (int64_t)c->joined);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].n)
			line_int(out, rows[i].label, (int64_t)rows[i].n);
}

static void ours(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;
	const struct report_facts *f = r->facts;

	report_session_rows(m, out);
	report_server_rows(m, out);
	report_system_rows(&m->system, out);
	report_steady_rows(m, out);
	report_settled_rows(m, out);
	report_classes(m, out);
	capture(&f->capture, out);
	line_heading(out, '-', "Measurement Quality");
	report_bounds_rows(m, out);
	line_text(out, "Time stamps:", stamps(r));
	client(r, out);
	report_budget_rows(r, out);
	outcome(r, out);
	line_text(out, "Transport:", f->transport ? f->transport : "-");
	if (f->processes) {
		line_int(out, "Processes:", f->processes);
		buf_printf(out, "%-40s %-10.3f\n", "Clocks differ by at most (ms):",
			   f->clock_error_ms);
	}
	if (f->http_version && strcmp(f->http_version, "1.1") != 0)
		line_text(out, "HTTP version:", f->http_version);
	if (f->version)
		line_text(out, "Version:", f->version);
	if (f->build && *f->build)
		line_text(out, "Build:", f->build);
	verdict(r, out);
}

/* If nothing succeeded, every figure is zero: only the failures are shown. */
static void nothing_but_failures(const struct report *r, struct buf *out)
{
	line_heading(out, '=', " Serving Benchmark Result ");
	line_int(out, "Successful requests:", 0);
	line_int(out, "Failed requests:", r->metrics->failed);
	outcome(r, out);
	verdict(r, out);
}

/* " at 20 requests/s, at most 8 at once"; a rate of conversations is that of their starts. */
static void add_load(const struct report *r, struct buf *out)
{
	const struct report_facts *f = r->facts;
	const char *what = r->metrics->sessions.n ? "conversations" : "requests";
	uint32_t sessions = r->metrics->opts.max_sessions;

	if (f->ramp_strategy)
		buf_printf(out, " at %lld to %lld %s/s (%s ramp)", (long long)f->ramp_start_rps,
			   (long long)f->ramp_end_rps, what, f->ramp_strategy);
	else if (f->user_rate > 0)
		buf_printf(out, " at %g requests/s by %lld user%s", f->user_rate, (long long)f->users,
			   f->users == 1 ? "" : "s");
	else if (r->metrics->opts.is_rate_finite)
		buf_printf(out, " at %g %s/s", f->request_rate, what);
	if (sessions)
		buf_printf(out, ", at most %u conversation%s", sessions, sessions == 1 ? "" : "s");
	if (f->max_concurrency)
		buf_printf(out, sessions ? " and %lld request%s at once" : ", at most %lld at once",
			   (long long)f->max_concurrency, f->max_concurrency == 1 ? "" : "s");
	else if (sessions)
		buf_add_text(out, " at once");
	else if (!f->ramp_strategy && !(f->user_rate > 0) &&
		 !r->metrics->opts.is_rate_finite && !f->capture.source && !f->load.is_replay)
		buf_add_text(out, ", all at once");
}

void report_summary(const struct report *r, struct buf *out)
{
	static const enum metric_block shown[] = { BLOCK_TTFT, BLOCK_TPOT, BLOCK_E2EL };
	const struct metrics *m = r->metrics;
	uint32_t cancelled = m->attempted.cancelled, sent = m->completed + m->failed + cancelled;
	size_t top = 0; /* the highest percentile, wherever the list has it */
	const char *sep = ": ";
	char p[FMT_F64_BYTES];

	if (!m->completed)
		return;
	for (size_t i = 1; i < m->opts.n_percentiles; i++)
		top = m->opts.percentile[i] > m->opts.percentile[top] ? i : top;
	buf_printf(out, "%u request%s", sent, sent == 1 ? "" : "s");
	if (r->facts->model_id) {
		buf_add_text(out, " to ");
		if (r->facts->load.adapters)
			buf_printf(out, "%u LoRA adapter%s of ", r->facts->load.adapters,
				   r->facts->load.adapters == 1 ? "" : "s");
		line_add_safe(out, str_of(r->facts->model_id));
	}
	add_load(r, out);
	buf_printf(out, ": %u succeeded, %u failed", m->completed, m->failed);
	if (cancelled)
		buf_printf(out, ", %u cancelled", cancelled);
	buf_printf(out, ", in %.1f s\n", m->duration_s);
	for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
		const struct metrics_summary *s = &m->block[shown[i]];

		if (!s->is_reported || !s->n) /* as TPOT of answers of one token */
			continue;
		buf_printf(out, "%s median %.2f ms", blocks[shown[i]].name, s->median_ms);
		if (m->opts.n_percentiles)
			buf_printf(out, ", P%s %.2f ms", metrics_percentile_name(p,
				   m->opts.percentile[top]), s->percentile_ms[top]);
		buf_add_text(out, "; ");
	}
	if (!m->opts.is_pooling && (m->opts.has_tokenizer || m->total_output))
		buf_printf(out, "%.1f output tokens/s, ", m->output_throughput);
	buf_printf(out, "%.2f requests/s\n", m->request_throughput);
	buf_printf(out, "The measurement is %s", trust_name(r->trust->verdict));
	for (size_t i = 0; i < r->trust->n_reasons; i++)
		if (r->trust->reason[i].level != TRUST_VALID) {
			buf_printf(out, "%s%s", sep, r->trust->reason[i].code);
			sep = ", ";
		}
	buf_add_text(out, ".\n");
}

/* Our part in short: the load, the failures, and where to find the rest. */
static void ours_short(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;
	size_t at;

	report_session_rows(m, out);
	report_classes(m, out);
	capture(&r->facts->capture, out);
	at = out->len;
	report_preemptions(m, out);
	if (out->len > at)
		buf_add_char(out, '\n');
	report_budget_rows(r, out);
	outcome(r, out);
	verdict(r, out);
	buf_add_text(out, "Server metrics, intervals and the client's own lag: --report full\n");
}

void report_terminal(const struct report *r, enum report_detail detail, struct buf *out)
{
	const struct metrics *m = r->metrics;
	size_t at = out->len;

	if (m->completed == 0 && m->failed && !r->facts->is_v011) {
		nothing_but_failures(r, out);
		return;
	}
	if (!m->opts.is_pooling && m->failed)
		failed_requests(r, out);
	if (r->charts)
		buf_add_text(out, r->charts);
	else if (!m->opts.is_pooling && m->completed && r->facts->has_plot_tip)
		buf_add_text(out, "tip: install termplotlib and gnuplot to plot the metrics\n");
	if (!r->facts->is_v011)
		report_summary(r, out);
	line_heading(out, '=', " Serving Benchmark Result ");
	totals(r, out);
	report_probe_rows(m, out);
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		block(m, b, out);
	report_engine_rows(m, out);
	line_heading(out, '=', "");
	if (r->facts->is_v011)
		report_as_v011(out, at);
	if (detail == REPORT_SHORT)
		ours_short(r, out);
	else
		ours(r, out);
}

/* ---- the two charts that upstream prints before its report ---- */

#define LINES 20 /* of each chart */

/* One point a second. A single one would have no range, and gnuplot would warn of it. */
static void add_chart(struct buf *out, const char *title, size_t n, const double *real,
		      const int64_t *whole)
{
	char number[FMT_F64_BYTES];

	buf_printf(out, "set title \"%s\"\nset xrange [0:%zu]\nplot \"-\" with lines\n", title,
		   n > 1 ? n - 1 : 1);
	for (size_t i = 0; i < n; i++) {
		if (real)
			buf_printf(out, "%zu %s\n", i, fmt_f64(number, real[i]));
		else
			buf_printf(out, "%zu %lld\n", i, (long long)whole[i]);
	}
	buf_add_text(out, "e\n");
}

void report_charts_script(const struct report *r, unsigned columns, struct buf *out)
{
	struct metrics_by_second s;

	assert(columns > 0);
	if (r->metrics->opts.is_pooling)
		return;
	metrics_by_second(&s, r->metrics, r->record);
	if (s.n) {
		buf_printf(out, "set terminal dumb size %u, %d\nunset key\nset yrange [0:*]\n",
			   columns, LINES);
		add_chart(out, "Output tokens per second", s.n, s.tokens, NULL);
		add_chart(out, "Concurrent requests per second", s.n, NULL, s.running);
	}
	metrics_by_second_release(&s);
}

void report_charts_trim(struct str drawn, struct buf *out)
{
	while (drawn.n) {
		struct str line = str_cut(&drawn, '\n');

		/* The terminal feeds a form between two plots. */
		while (line.n && (line.p[line.n - 1] == ' ' || line.p[line.n - 1] == '\f'))
			line.n--;
		if (line.n && *line.p == '\f')
			line.p++, line.n--;
		if (line.n == 0)
			continue;
		buf_add_str(out, line);
		buf_add_char(out, '\n');
	}
}
