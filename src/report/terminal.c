/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal.c - upstream's report, character for character, then ours.
 *
 * Rows are a label of 40 columns, a blank, and a value of 10; tools in the wild
 * match labels up to the colon, so none is ever reworded.
 */
#include "report/report.h"

#define WIDTH 50
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

/* Centred between fill characters; the odd one goes on the right. */
static void heading(struct buf *out, char fill, const char *text)
{
	size_t n = strlen(text), left = n < WIDTH ? (WIDTH - n) / 2 : 0;

	for (size_t i = 0; i < left; i++)
		buf_add_char(out, fill);
	buf_add_text(out, text);
	for (size_t i = left + n; i < WIDTH; i++)
		buf_add_char(out, fill);
	buf_add_char(out, '\n');
}

static void row_text(struct buf *out, const char *label, const char *value)
{
	buf_printf(out, "%-40s %-10s\n", label, value);
}

static void row_int(struct buf *out, const char *label, int64_t v)
{
	buf_printf(out, "%-40s %-10lld\n", label, (long long)v);
}

static void row_real(struct buf *out, const char *label, double v)
{
	char text[400]; /* the longest double has 309 digits before the point */

	snprintf(text, sizeof(text), "%.2f", v);
	row_text(out, label, text);
}

/* Text from a server: control characters, which a terminal would obey, are shown as '?'. */
static void add_safe(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		buf_add_char(out, (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f
			     ? '?' : (char)c);
	}
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
		add_safe(out, str_cut(&rest, '\n'));
		buf_add_char(out, '\n');
	}
	buf_release(&text);
}

static void totals(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;
	bool is_pooling = m->opts.is_pooling, has_tokens = !is_pooling && m->opts.has_tokenizer;

	row_int(out, "Successful requests:", m->completed);
	row_int(out, "Failed requests:", m->failed);
	if (r->facts->max_concurrency)
		row_int(out, "Maximum request concurrency:", r->facts->max_concurrency);
	if (m->opts.is_rate_finite)
		row_real(out, "Request rate configured (RPS):", r->facts->request_rate);
	row_real(out, "Benchmark duration (s):", m->duration_s);
	row_int(out, "Total input tokens:", m->total_input);
	if (has_tokens)
		row_int(out, "Total generated tokens:", m->total_output);
	row_real(out, "Request throughput (req/s):", m->request_throughput);
	if (is_pooling)
		row_real(out, "Input throughput (inputs/s):", m->sequence_throughput);
	if (!is_pooling && m->opts.n_goodput)
		row_real(out, "Request goodput (req/s):", m->request_goodput);
	if (has_tokens) {
		row_real(out, "Output token throughput (tok/s):", m->output_throughput);
		row_real(out, "Peak output token throughput (tok/s):", m->max_output_tokens_per_s);
	}
	if (!is_pooling)
		row_real(out, "Peak concurrent requests:", (double)m->max_concurrent_requests);
	if (!is_pooling && m->rtfx > 0)
		row_real(out, "RTFx (Inverse Real-Time Factor):", m->rtfx);
	if (m->opts.has_tokenizer)
		row_real(out, "Total token throughput (tok/s):", m->total_token_throughput);
}

static void block(const struct metrics *m, enum metric_block b, struct buf *out)
{
	const struct metrics_summary *s = &m->block[b];
	char label[80], p[FMT_F64_BYTES];

	if (!s->is_reported)
		return;
	heading(out, '-', blocks[b].heading);
	snprintf(label, sizeof(label), "Mean %s (ms):", blocks[b].name);
	row_real(out, label, s->mean_ms);
	snprintf(label, sizeof(label), "Median %s (ms):", blocks[b].name);
	row_real(out, label, s->median_ms);
	for (size_t i = 0; i < m->opts.n_percentiles; i++) {
		snprintf(label, sizeof(label), "P%s %s (ms):",
			 metrics_percentile_name(p, m->opts.percentile[i]), blocks[b].name);
		row_real(out, label, s->percentile_ms[i]);
	}
}

/* ---- our part ---- */

static void row_spread(struct buf *out, const char *label, const struct metrics_spread *s)
{
	char text[80];

	if (s->n == 0)
		return;
	snprintf(text, sizeof(text), "%.3f / %.3f / %.3f", s->p50_ms, s->p99_ms, s->max_ms);
	row_text(out, label, text);
}

/* A percentage, or "-" when there was nothing to look at. */
static void row_share(struct buf *out, const char *label, uint64_t part, uint64_t whole)
{
	if (whole)
		row_real(out, label, 100.0 * (double)part / (double)whole);
	else
		row_text(out, label, "-");
}

static void failures(const struct metrics *m, struct buf *out)
{
	char label[80];

	for (int c = 0; c < FAIL_COUNT; c++) {
		const struct metrics_failures *f = &m->failures[c];

		if (f->count == 0)
			continue;
		snprintf(label, sizeof(label), "Failed, %s:", fail_name((enum fail_category)c));
		row_int(out, label, f->count);
		for (uint32_t k = 0; k < f->n_examples; k++) {
			buf_printf(out, "  %u x ", f->example[k].count);
			add_safe(out, f->example[k].text);
			buf_add_char(out, '\n');
		}
		if (f->n_others)
			buf_printf(out, "  %u x other texts\n", f->n_others);
	}
}

static void tokens(const struct metrics *m, struct buf *out)
{
	const struct metrics_client *c = &m->client;

	if (m->opts.is_pooling)
		return;
	row_share(out, "Events sharing a read (%):", c->n_shared, c->n_events_with_text);
	row_share(out, "Events of not one token (%):", c->n_not_one_token, c->n_events);
	if (c->n_events_with_usage)
		row_real(out, "Tokens per event:",
			 (double)c->n_tokens_with_usage / (double)c->n_events_with_usage);
	row_share(out, "Token count unlike usage (% of req.):", c->n_usage_differs, c->n_usage);
	if (c->n_counted)
		row_int(out, "Requests with tokens counted by us:", c->n_counted);
	if (c->n_count_unknown)
		row_int(out, "Requests taken as one token:", c->n_count_unknown);
}

static void client(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;
	const struct metrics_client *c = &m->client;

	row_spread(out, "Client lag p50/p99/max (ms):", &c->lag);
	row_spread(out, "Send lag p50/p99/max (ms):", &c->send_lag);
	row_spread(out, "Kernel-to-user skew p50/p99/max (ms):", &c->skew);
	row_int(out, "New connections:", c->n_new_connections);
	row_spread(out, "Connect time p50/p99/max (ms):", &c->connect);
	if (c->connect.p99_ms > CONNECT_SHOWN_MS && !m->opts.is_pooling) {
		char text[80];

		snprintf(text, sizeof(text), "%.3f / %.3f", c->ttft_connect.mean_ms,
			 m->block[BLOCK_TTFT].mean_ms);
		row_text(out, "Mean TTFT with/without connect (ms):", text);
	}
	row_spread(out, "TTFT to answer p50/p99/max (ms):", &c->ttft_answer);
	row_spread(out, "E2EL from due p50/p99/max (ms):", &c->from_due);
	tokens(m, out);
	row_int(out, "Retries:", (int64_t)c->retries);
}

static void ours(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;
	const struct report_facts *f = r->facts;

	heading(out, '-', "Measurement Quality");
	row_text(out, "Time stamps:", m->opts.is_user_stamps ? "user"
		 : m->client.n_user_stamped == 0 ? "kernel"
		 : m->client.n_user_stamped < m->n ? "mixed" : "user");
	client(r, out);
	failures(m, out);
	if (m->cancelled)
		row_int(out, "Cancelled requests:", m->cancelled);
	report_load_rows(r, out);
	row_text(out, "Transport:", f->transport ? f->transport : "-");
	if (f->version)
		row_text(out, "Version:", f->version);
	if (f->build && *f->build)
		row_text(out, "Build:", f->build);
	row_text(out, "Verdict:", trust_name(r->trust->verdict));
	for (size_t i = 0; i < r->trust->n_reasons; i++)
		buf_printf(out, "  %s: %s\n", trust_name(r->trust->reason[i].level),
			   r->trust->reason[i].text);
	heading(out, '=', "");
}

void report_terminal(const struct report *r, struct buf *out)
{
	const struct metrics *m = r->metrics;

	if (!m->opts.is_pooling && m->failed)
		failed_requests(r, out);
	if (!m->opts.is_pooling && m->completed && r->facts->has_plot_tip)
		buf_add_text(out, "tip: install termplotlib and gnuplot to plot the metrics\n");
	heading(out, '=', " Serving Benchmark Result ");
	totals(r, out);
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		block(m, b, out);
	heading(out, '=', "");
	ours(r, out);
}
