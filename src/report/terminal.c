/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal.c - upstream's report, character for character, then ours.
 *
 * Rows are a label of 40 columns, a blank, and a value of 10; tools in the wild
 * match labels up to the colon, so none is ever reworded.
 */
#include "report/classes.h"
#include "report/derived.h"
#include "report/release.h"
#include "report/lines.h"
#include "report/system.h"
#include "report/verdict.h"

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
	if (m->opts.reports_cached_tokens)
		line_int(out, "Total cached tokens:", m->total_cached);
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

/* Where upstream's figures are not the best that is known. */
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

/* What is beyond the record's lane is not a number. */
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

static void client(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;
	const struct metrics_client *c = &m->client;

	line_spread(out, "Client lag p50/p99/max (ms):", &c->lag);
	line_spread(out, "Send lag p50/p99/max (ms):", &c->send_lag);
	skew(&c->skew, out);
	line_int(out, "New connections:", c->n_new_connections);
	line_spread(out, "Connect time p50/p99/max (ms):", &c->connect);
	if (c->connect.p99_ms > CONNECT_SHOWN_MS && !m->opts.is_pooling) {
		char text[80];

		snprintf(text, sizeof(text), "%.3f / %.3f", c->ttft_connect.mean_ms,
			 m->block[BLOCK_TTFT].mean_ms);
		line_text(out, "Mean TTFT with/without connect (ms):", text);
	}
	line_spread(out, "TTFT to content p50/p99/max (ms):", &c->ttft_content);
	line_spread(out, "TTFT to answer p50/p99/max (ms):", &c->ttft_answer);
	line_spread(out, "E2EL from due p50/p99/max (ms):", &c->from_due);
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
	buf_release(&text);
}

/* What did not succeed, and what the run was. */
static void outcome(const struct report *r, struct buf *out)
{
	failures(r->metrics, out);
	correctness(&r->metrics->correctness, out);
	if (r->metrics->cancelled)
		line_int(out, "Cancelled requests:", r->metrics->cancelled);
	report_load_rows(r, out);
	derived_rows(r, out);
}

static void verdict(const struct report *r, struct buf *out)
{
	line_text(out, "Verdict:", trust_name(r->trust->verdict));
	verdict_show(r->trust, out);
	line_heading(out, '=', "");
}

static void ours(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;
	const struct report_facts *f = r->facts;

	report_session_rows(m, out);
	report_server_rows(m, out);
	report_system_rows(&m->system, out);
	report_steady_rows(m, out);
	report_classes(m, out);
	line_heading(out, '-', "Measurement Quality");
	report_bounds_rows(m, out);
	line_text(out, "Time stamps:", m->opts.is_user_stamps ? "user"
		 : m->client.n_user_stamped == 0 ? "kernel"
		 : m->client.n_user_stamped < m->n ? "mixed" : "user");
	client(r, out);
	outcome(r, out);
	line_text(out, "Transport:", f->transport ? f->transport : "-");
	if (f->http_version && strcmp(f->http_version, "1.1") != 0)
		line_text(out, "HTTP version:", f->http_version);
	if (f->version)
		line_text(out, "Version:", f->version);
	if (f->build && *f->build)
		line_text(out, "Build:", f->build);
	verdict(r, out);
}

/* Where nothing succeeded, every figure is zero: only what failed is shown. */
static void nothing_but_failures(const struct report *r, struct buf *out)
{
	line_heading(out, '=', " Serving Benchmark Result ");
	line_int(out, "Successful requests:", 0);
	line_int(out, "Failed requests:", r->metrics->failed);
	outcome(r, out);
	verdict(r, out);
}

void report_terminal(const struct report *r, struct buf *out)
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
	line_heading(out, '=', " Serving Benchmark Result ");
	totals(r, out);
	report_probe_rows(m, out);
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		block(m, b, out);
	report_engine_rows(m, out);
	line_heading(out, '=', "");
	if (r->facts->is_v011)
		release_terminal(out, at);
	ours(r, out);
}
