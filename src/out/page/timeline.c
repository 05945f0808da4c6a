/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.c - the data of the timeline page.
 *
 * One JSON value "meta": facts, summary, verdict, labels of the categories, rates over time,
 * series, distinct errors; then columns of whole numbers, one value per request in sample order
 * (web/src/timeline/data.ts reads them):
 *
 *   start   sent (of a failure before that: connecting), from the first request's; differences,
 *           signed; 0 when never sent
 *   lead    due to sent
 *   ttft    sent to first token event
 *   whole   sent to the end of the attempt
 *   answer  sent to first answer text after reasoning, plus 1; 0 for none
 *   gaps    how many gaps between token events
 *   prompt, output   tokens
 *   session conversation, plus 1; 0 for none; turn: place in it, from 0. Both only where
 *           meta.n_sessions is not 0
 *   state   0 succeeded, 1 failed, 2 cancelled, 3 never sent; plus 4 times (index of the
 *           error + 1), 0 for no text
 *
 * and all gaps in blocks of whole requests, column "gaps-0", "gaps-1"... Times are in units of
 * meta.unit_ns: 1 while the run has few gaps, so that the page shows exact values, else 1000. A gap
 * is the difference of two rounded instants since the first token, so that rounding errors do not
 * add up along a request.
 */
#include "out/page/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/record/series.h"
#include "client/record/system_series.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "core/stats/stats.h"
#include "out/page/html.h"

#define TIMELINE_ERRORS_MAX 64     /* distinct texts; more become the last one */
#define TIMELINE_RUN_GAPS (1u << 20) /* gaps in one column: what the page reads at once */

struct bin_rates { int64_t width_ns; size_t bins; double *tokens, *running; };

struct timeline {
	const struct report *r;
	int64_t from_ns, to_ns;    /* first request sent, last one ended */
	int64_t unit_ns;
	struct bin_rates rates;
	int64_t peak;              /* the most requests in flight at once */
	struct buf error[TIMELINE_ERRORS_MAX];
	unsigned n_errors;
};

static const struct request_row *timeline_row(const struct timeline *t, uint32_t i)
{
	return &t->r->record->row[t->r->metrics->row[i]];
}

static int64_t timeline_ns(double seconds)
{
	return llround(seconds * 1e9);
}

/* When request i begins on the page: sent; of a failure before that, what came first. 0: never. */
static int64_t timeline_start_ns(const struct timeline *t, uint32_t i)
{
	const struct request_row *row = timeline_row(t, i);

	if (row->sent_ns || row->state != REQ_FAILED)
		return row->sent_ns;
	return row->connect_ns ? row->connect_ns : row->admitted_ns ? row->admitted_ns
								    : row->due_ns;
}

static int64_t positive(int64_t v)
{
	return v > 0 ? v : 0;
}

/* The width of request i on the page, from its begin. */
static int64_t timeline_whole_ns(const struct timeline *t, uint32_t i)
{
	const struct metrics *m = t->r->metrics;
	const struct request_row *row = timeline_row(t, i);
	int64_t end = row->end_ns > row->last_event_ns ? row->end_ns : row->last_event_ns;
	int64_t first = timeline_ns(m->ttft[i]);

	end = end ? end - timeline_start_ns(t, i) : 0;
	return positive(end > first ? end : first);
}

/* ---- meta: what the page knows besides its requests ---- */

#define BINS_MAX 1200 /* of the rates: about as many as a screen has columns */
#define BINS_MIN 100
#define BIN_GAPS 5    /* token events of a stream in one bin, where there is room */

static void put_facts(struct json_writer *w, const struct report_facts *f)
{
	json_member_object(w, "facts");
	json_member_text(w, "date", f->date);
	json_member_text(w, "backend", f->backend);
	json_member_text(w, "label", f->label);
	json_member_text(w, "model", f->model_id);
	json_member_text(w, "tokenizer", f->tokenizer_id);
	json_member_text(w, "dataset", f->dataset);
	json_member_setting(w, "request_rate", f->request_rate);
	json_member_setting(w, "burstiness", f->burstiness);
	json_member_int(w, "max_concurrency", f->max_concurrency);
	json_member_text(w, "version", f->version);
	json_member_text(w, "request_id_prefix", f->request_id_prefix);
	json_end_object(w);
}

static void put_block(struct json_writer *w, const struct metrics *m, enum metric_block b)
{
	const struct metrics_summary *s = &m->block[b];
	char name[FMT_F64_BYTES];

	json_begin_object(w);
	json_member_text(w, "name", metric_block_key(b));
	json_member_setting(w, "mean", s->mean_ms);
	json_member_setting(w, "median", s->median_ms);
	json_member_setting(w, "std", s->std_ms);
	json_member_array(w, "percentiles");
	for (size_t k = 0; k < m->opts.n_percentiles; k++) {
		json_begin_array(w);
		json_put_text(w, metrics_percentile_name(name, m->opts.percentile[k]));
		json_put_f64(w, s->percentile_ms[k]);
		json_end_array(w);
	}
	json_end_array(w);
	json_end_object(w);
}

/*
 * The result's own keys and values, so that the page and the JSON cannot differ. But the result's
 * max_concurrent_requests counts a request in every second that it touches, which is more than
 * were ever in flight: the page has the peak of its own curve.
 */
static void put_summary(struct json_writer *w, const struct timeline *t)
{
	const struct metrics *m = t->r->metrics;

	json_member_object(w, "summary");
	json_member_int(w, "completed", m->completed);
	json_member_int(w, "failed", m->failed);
	json_member_int(w, "cancelled", m->cancelled);
	json_member_setting(w, "duration", m->duration_s);
	json_member_int(w, "total_input_tokens", m->total_input);
	json_member_int(w, "total_output_tokens", m->total_output);
	json_member_setting(w, "request_throughput", m->request_throughput);
	if (m->opts.n_goodput)
		json_member_setting(w, "request_goodput", m->request_goodput);
	json_member_setting(w, "output_throughput", m->output_throughput);
	json_member_setting(w, "total_token_throughput", m->total_token_throughput);
	json_member_setting(w, "max_output_tokens_per_s", m->max_output_tokens_per_s);
	json_member_int(w, "peak_concurrency", t->peak);
	json_member_array(w, "blocks");
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		if (m->block[b].is_reported)
			put_block(w, m, b);
	json_end_array(w);
	json_end_object(w);
}

static void put_verdict(struct json_writer *w, const struct trust *t)
{
	json_member_object(w, "verdict");
	json_member_text(w, "name", trust_name(t->verdict));
	json_member_array(w, "reasons");
	for (size_t i = 0; i < t->n_reasons && t->reason[i].level != TRUST_VALID; i++) {
		json_begin_object(w);
		json_member_text(w, "level", trust_name(t->reason[i].level));
		json_member_text(w, "text", t->reason[i].text);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
}

/* To two digits, so that a limit can be read. */
static double rounded(double v)
{
	double unit = pow(10, floor(log10(v)) - 1);

	return round(v / unit) * unit;
}

/*
 * Default limits come from the run, or a page of a fast server would have only one color. A run
 * without gaps has upstream's.
 */
static bool choose_limits(const struct metrics *m, double ms[2])
{
	double median_ms = m->block[BLOCK_ITL].median_ms;
	bool has_gaps = median_ms > 0 && isfinite(median_ms);

	ms[0] = has_gaps ? rounded(2 * median_ms) : 25;
	ms[1] = has_gaps ? rounded(4 * median_ms) : 50;
	return has_gaps;
}

static void put_categories(struct json_writer *w, const struct metrics *m, const double asked_ms[2])
{
	double ms[2] = { asked_ms[0], asked_ms[1] };
	bool is_asked = ms[0] < ms[1], is_of_run = !is_asked && choose_limits(m, ms);
	char text[3][128], limit[2][40];

	for (int i = 0; i < 2; i++) /* requested limits as upstream writes them */
		snprintf(limit[i], sizeof(limit[i]), is_of_run ? "%.4gms" : "%.0fms", ms[i]);
	snprintf(text[0], sizeof(text[0]), "ITL < %s%s", limit[0],
		 is_of_run ? " (2 \xc3\x97 median)" : "");
	snprintf(text[1], sizeof(text[1]), "%s \xe2\x89\xa4 ITL < %s", limit[0], limit[1]);
	snprintf(text[2], sizeof(text[2]), "ITL \xe2\x89\xa5 %s%s", limit[1],
		 is_of_run ? " (4 \xc3\x97 median)" : "");
	json_member_array(w, "labels");
	for (int i = 0; i < 3; i++)
		json_put_text(w, text[i]);
	json_end_array(w);
	json_member_f64s(w, "limits_ms", ms, 2);
}

/* ---- rates over time ---- */

/*
 * The shortest of 1, 2, 5, 10... ms that needs no more than BINS_MAX and holds some token
 * events of each stream, or the rate would show their rhythm.
 */
static int64_t bin_ns(int64_t span_ns, double itl_ms)
{
	double least = itl_ms * BIN_GAPS * 1e6;
	int64_t ns = 1000000;

	for (int step = 0; span_ns / ns >= BINS_MAX ||
			   ((double)ns < least && span_ns / ns > BINS_MIN); step++)
		ns = step % 3 == 1 ? ns / 2 * 5 : ns * 2;
	return ns;
}

/* A request's tokens are spread evenly over its events: an event may carry several. */
static void count_tokens(const struct timeline *t, int64_t width, size_t bins, double *tokens)
{
	const struct metrics *m = t->r->metrics;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = timeline_row(t, i);
		size_t gaps = m->itl_at[i + 1] - m->itl_at[i];
		int64_t at = row->sent_ns - t->from_ns + timeline_ns(m->ttft[i]);
		double amount = 1;

		if (!row->first_event_ns)
			continue;
		if (m->output_len[i] > 0)
			amount = (double)m->output_len[i] / (double)(gaps + 1);
		for (size_t k = 0; k <= gaps; k++) {
			if (k)
				at += timeline_ns(m->itl[m->itl_at[i] + k - 1]);
			if (at >= 0 && (size_t)(at / width) < bins)
				tokens[at / width] += amount;
		}
	}
}

/* The most requests at once in each bin; one that ends when another begins is not counted. */
static void count_running(const struct timeline *t, int64_t width, size_t bins, double *most)
{
	const struct metrics *m = t->r->metrics;
	double *start = mem_array(m->n, sizeof(*start)), *end = mem_array(m->n, sizeof(*end));
	size_t n = 0, s = 0, e = 0, at = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		int64_t sent = timeline_start_ns(t, i) - t->from_ns;

		if (!timeline_start_ns(t, i))
			continue;
		start[n] = (double)sent;
		end[n++] = (double)(sent + timeline_whole_ns(t, i));
	}
	stats_sort(start, n);
	stats_sort(end, n);
	for (at = 0; at < bins; at++) {
		double until = (double)((int64_t)(at + 1) * width);
		size_t top = s - e;

		while (s < n && start[s] < until) {
			while (e < n && end[e] <= start[s] && e < s)
				e++;
			s++;
			top = s - e > top ? s - e : top;
		}
		while (e < s && end[e] < until)
			e++;
		most[at] = (double)top;
	}
	free(start);
	free(end);
}

static void put_bins(struct json_writer *w, const char *key, const double *v, size_t n,
		     double factor)
{
	json_member_array(w, key);
	for (size_t i = 0; i < n; i++)
		json_put_f64(w, (double)llround(v[i] * factor * 1000) / 1000);
	json_end_array(w);
}

static void find_rates(struct timeline *t)
{
	struct bin_rates *r = &t->rates;

	r->width_ns = bin_ns(t->to_ns - t->from_ns, t->r->metrics->block[BLOCK_ITL].median_ms);
	r->bins = (size_t)((t->to_ns - t->from_ns) / r->width_ns) + 1;
	r->tokens = mem_array(r->bins, sizeof(*r->tokens));
	r->running = mem_array(r->bins, sizeof(*r->running));
	count_tokens(t, r->width_ns, r->bins, r->tokens);
	count_running(t, r->width_ns, r->bins, r->running);
	for (size_t i = 0; i < r->bins; i++)
		t->peak = (int64_t)r->running[i] > t->peak ? (int64_t)r->running[i] : t->peak;
}

static void put_rates(struct json_writer *w, const struct bin_rates *r)
{
	json_member_object(w, "rates");
	json_member_int(w, "bin_ns", r->width_ns);
	put_bins(w, "tokens_per_s", r->tokens, r->bins, 1e9 / (double)r->width_ns);
	put_bins(w, "concurrency", r->running, r->bins, 1);
	json_end_object(w);
}

static void put_one_series(struct json_writer *w, const struct record_series *s, int64_t from_ns)
{
	json_begin_object(w);
	json_member_text(w, "name", s->name);
	json_member_text(w, "labels", s->labels);
	json_member_array(w, "points");
	for (size_t j = 0; j < s->n; j++) {
		json_begin_array(w);
		json_put_f64(w, (double)((s->point[j].at_ns - from_ns) / 1000) / 1000);
		json_put_f64(w, s->point[j].value);
		json_end_array(w);
	}
	json_end_array(w);
	json_end_object(w);
}

static void put_series_named(struct json_writer *w, const struct timeline *t, const char *name)
{
	const struct record *record = t->r->record;

	for (size_t i = 0; i < record->n_series; i++) {
		const struct record_series *s = record->series[i];

		if (strcmp(s->name, name) == 0 && s->n)
			put_one_series(w, s, t->from_ns);
	}
}

/* Gauges of servers and GPUs: [milliseconds from the start, value]. */
static void put_series(struct json_writer *w, const struct timeline *t)
{
	static const enum series_id servers[] = { SERIES_RUNNING, SERIES_WAITING, SERIES_KV_USAGE };
	static const enum system_series gpus[] = { SYSTEM_GPU_UTILIZATION, SYSTEM_GPU_MEMORY,
						   SYSTEM_GPU_POWER };

	json_member_array(w, "series");
	for (size_t k = 0; k < sizeof(servers) / sizeof(*servers); k++)
		put_series_named(w, t, series_name(servers[k]));
	for (size_t k = 0; k < sizeof(gpus) / sizeof(*gpus); k++)
		put_series_named(w, t, system_series_name(gpus[k]));
	json_end_array(w);
}

static void put_errors(struct json_writer *w, const struct timeline *t)
{
	json_member_array(w, "errors");
	for (unsigned k = 0; k < t->n_errors; k++)
		json_put_str(w, buf_str(&t->error[k]));
	json_end_array(w);
}

static void write_meta(const struct timeline *t, const double limits_ms[2], struct html *h)
{
	struct buf json = { 0 };
	struct json_writer w = json_writer(&json);

	json_begin_object(&w);
	json_member_int(&w, "format", 1);
	json_member_int(&w, "n", t->r->metrics->n);
	json_member_int(&w, "n_sessions", t->r->metrics->sessions.n);
	json_member_int(&w, "n_gaps", (int64_t)t->r->metrics->itl_at[t->r->metrics->n]);
	json_member_int(&w, "run_gaps", TIMELINE_RUN_GAPS);
	json_member_int(&w, "unit_ns", t->unit_ns);
	json_member_int(&w, "span_ns", t->to_ns - t->from_ns);
	put_categories(&w, t->r->metrics, limits_ms);
	put_facts(&w, t->r->facts);
	put_summary(&w, t);
	put_verdict(&w, t->r->trust);
	put_rates(&w, &t->rates);
	put_series(&w, t);
	put_errors(&w, t);
	json_end_object(&w);
	html_json(h, "meta", buf_str(&json));
	buf_release(&json);
}

/* ---- columns ---- */

#define EXACT_GAPS_MAX (1u << 20)  /* above it: microseconds, or the page would be too large */
#define ERROR_BYTES 300

enum bar_state { STATE_DONE, STATE_FAILED, STATE_CANCELLED, STATE_UNSENT };

static enum bar_state state_of(const struct timeline *t, uint32_t i)
{
	const struct request_row *row = timeline_row(t, i);

	if (!timeline_start_ns(t, i))
		return STATE_UNSENT;
	return row->state == REQ_DONE ? STATE_DONE : row->state == REQ_FAILED ? STATE_FAILED
									      : STATE_CANCELLED;
}

static bool find_span(struct timeline *t)
{
	const struct metrics *m = t->r->metrics;
	bool is_any = false;

	for (uint32_t i = 0; i < m->n; i++) {
		int64_t sent = timeline_start_ns(t, i), end = sent + timeline_whole_ns(t, i);

		if (!sent)
			continue;
		t->from_ns = !is_any || sent < t->from_ns ? sent : t->from_ns;
		t->to_ns = !is_any || end > t->to_ns ? end : t->to_ns;
		is_any = true;
	}
	t->unit_ns = m->itl_at[m->n] > EXACT_GAPS_MAX ? 1000 : 1;
	return is_any;
}

static uint64_t in_units(const struct timeline *t, int64_t ns)
{
	return (uint64_t)((positive(ns) + t->unit_ns / 2) / t->unit_ns);
}

/* ---- errors ---- */

/* The first line; equal texts share an index. */
static unsigned error_index(struct timeline *t, uint32_t i)
{
	struct buf text = { 0 };
	char *end;
	unsigned k;

	record_error_of(t->r->record, timeline_row(t, i), &text);
	if (text.len == 0)
		return 0;
	end = memchr(text.data, '\n', text.len);
	if (end)
		text.len = (size_t)(end - text.data);
	if (text.len > ERROR_BYTES)
		text.len = ERROR_BYTES;
	for (k = 0; k < t->n_errors; k++)
		if (str_eq(buf_str(&t->error[k]), buf_str(&text)))
			break;
	if (k == t->n_errors && k < TIMELINE_ERRORS_MAX) {
		buf_add_str(&t->error[k], k < TIMELINE_ERRORS_MAX - 1 ? buf_str(&text) :
			    STR("an error of another text; the result file has all of them"));
		t->n_errors++;
	}
	buf_release(&text);
	return (k < TIMELINE_ERRORS_MAX ? k : TIMELINE_ERRORS_MAX - 1) + 1;
}

/* ---- columns ---- */

static void write_states(struct timeline *t, struct html *h)
{
	html_column(h, "state");
	for (uint32_t i = 0; i < t->r->metrics->n; i++) {
		unsigned error = timeline_row(t, i)->state == REQ_FAILED ? error_index(t, i) : 0;

		html_uint(h, (uint64_t)state_of(t, i) + 4 * (uint64_t)error);
	}
	html_column_end(h);
}

static int64_t answer_ns(const struct request_row *row)
{
	return row->first_reasoning_ns && row->first_answer_ns > row->first_reasoning_ns
		       ? row->first_answer_ns - row->sent_ns : -1;
}

static void write_times(const struct timeline *t, struct html *h)
{
	const struct metrics *m = t->r->metrics;
	int64_t last = 0;

	html_column(h, "start");
	for (uint32_t i = 0; i < m->n; i++) {
		int64_t sent = timeline_start_ns(t, i);
		int64_t at = sent ? (int64_t)in_units(t, sent - t->from_ns) : 0;

		html_int(h, at - last);
		last = at;
	}
	html_column_end(h);
	html_column(h, "lead");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, in_units(t, timeline_ns(m->queue_time[i])));
	html_column_end(h);
	html_column(h, "ttft");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, in_units(t, timeline_ns(m->ttft[i])));
	html_column_end(h);
	html_column(h, "whole");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, timeline_start_ns(t, i) ? in_units(t, timeline_whole_ns(t, i)) : 0);
	html_column_end(h);
	html_column(h, "answer");
	for (uint32_t i = 0; i < m->n; i++) {
		int64_t at = answer_ns(timeline_row(t, i));

		html_uint(h, at < 0 ? 0 : in_units(t, at) + 1);
	}
	html_column_end(h);
}

static void write_counts(const struct timeline *t, struct html *h)
{
	const struct metrics *m = t->r->metrics;

	html_column(h, "gaps");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, m->itl_at[i + 1] - m->itl_at[i]);
	html_column_end(h);
	html_column(h, "prompt");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, (uint64_t)m->input_len[i]);
	html_column_end(h);
	html_column(h, "output");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, (uint64_t)m->output_len[i]);
	html_column_end(h);
}

static void write_turns(const struct timeline *t, struct html *h)
{
	const struct metrics *m = t->r->metrics;

	if (!m->sessions.n)
		return;
	html_column(h, "session");
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t session = timeline_row(t, i)->session;

		html_uint(h, session == RECORD_NONE ? 0 : (uint64_t)session + 1);
	}
	html_column_end(h);
	html_column(h, "turn");
	for (uint32_t i = 0; i < m->n; i++)
		html_uint(h, timeline_row(t, i)->turn);
	html_column_end(h);
}

static void write_gaps(const struct timeline *t, struct html *h)
{
	const struct metrics *m = t->r->metrics;
	char id[32];
	unsigned run = 0;

	for (uint32_t i = 0; i < m->n; run++) {
		size_t stop = m->itl_at[i] + TIMELINE_RUN_GAPS;

		snprintf(id, sizeof(id), "gaps-%u", run);
		html_column(h, id);
		for (; i < m->n && m->itl_at[i] < stop; i++) {
			int64_t at_ns = 0;
			uint64_t at = 0, next;

			for (size_t k = m->itl_at[i]; k < m->itl_at[i + 1]; k++, at = next) {
				at_ns += positive(timeline_ns(m->itl[k]));
				next = in_units(t, at_ns);
				html_uint(h, next - at);
			}
		}
		html_column_end(h);
	}
}

enum plot_outcome plot_timeline(const struct report *r, const double threshold_ms[2],
				const char *path, struct err *e)
{
	struct timeline t = { .r = r };
	struct html html;
	int rc;

	if (r->metrics->opts.is_pooling || r->metrics->n == 0)
		return PLOT_NOT_DETAILED;
	if (!find_span(&t))
		return PLOT_EMPTY;
	if (html_begin(&html, "timeline.html", path, e) < 0)
		return PLOT_FAILED;
	find_rates(&t);
	write_states(&t, &html);
	write_meta(&t, threshold_ms, &html);
	write_times(&t, &html);
	write_counts(&t, &html);
	write_turns(&t, &html);
	write_gaps(&t, &html);
	rc = html_end(&html, e);
	free(t.rates.tokens);
	free(t.rates.running);
	for (unsigned k = 0; k < t.n_errors; k++)
		buf_release(&t.error[k]);
	return rc < 0 ? PLOT_FAILED : PLOT_WRITTEN;
}
