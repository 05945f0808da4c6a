/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_meta.c - what the timeline page knows beside its requests; see timeline.c. */
#include "report/timeline.h"

#include "base/mem.h"
#include "record/series.h"
#include "record/system_series.h"
#include "json/write.h"
#include "stats/stats.h"

#define BINS_MAX 1200 /* of the rates: about as many as a screen has columns */
#define BINS_MIN 100
#define BIN_GAPS 5    /* token events of a stream in one bin, where there is room */

/* JSON has no infinity. */
static void put_number(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	if (isfinite(v))
		json_put_f64(w, v);
	else
		json_put_text(w, "inf");
}

static void put_point(struct json_writer *w, double v)
{
	if (isfinite(v))
		json_put_f64(w, v);
	else
		json_put_null(w);
}

static void put_facts(struct json_writer *w, const struct report_facts *f)
{
	json_member_object(w, "facts");
	json_member_text(w, "date", f->date);
	json_member_text(w, "backend", f->backend);
	json_member_text(w, "label", f->label);
	json_member_text(w, "model", f->model_id);
	json_member_text(w, "tokenizer", f->tokenizer_id);
	json_member_text(w, "dataset", f->dataset);
	put_number(w, "request_rate", f->request_rate);
	put_number(w, "burstiness", f->burstiness);
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
	put_number(w, "mean", s->mean_ms);
	put_number(w, "median", s->median_ms);
	put_number(w, "std", s->std_ms);
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

/* The result's own keys and values, so that the page and the JSON cannot differ. */
static void put_summary(struct json_writer *w, const struct metrics *m)
{
	json_member_object(w, "summary");
	json_member_int(w, "completed", m->completed);
	json_member_int(w, "failed", m->failed);
	json_member_int(w, "cancelled", m->cancelled);
	put_number(w, "duration", m->duration_s);
	json_member_int(w, "total_input_tokens", m->total_input);
	json_member_int(w, "total_output_tokens", m->total_output);
	put_number(w, "request_throughput", m->request_throughput);
	if (m->opts.n_goodput)
		put_number(w, "request_goodput", m->request_goodput);
	put_number(w, "output_throughput", m->output_throughput);
	put_number(w, "total_token_throughput", m->total_token_throughput);
	put_number(w, "max_output_tokens_per_s", m->max_output_tokens_per_s);
	json_member_int(w, "max_concurrent_requests", m->max_concurrent_requests);
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

static void put_categories(struct json_writer *w, const double ms[2])
{
	char text[3][128];

	snprintf(text[0], sizeof(text[0]), "ITL < %.0fms", ms[0]);
	snprintf(text[1], sizeof(text[1]), "%.0fms \xe2\x89\xa4 ITL < %.0fms", ms[0], ms[1]);
	snprintf(text[2], sizeof(text[2]), "ITL \xe2\x89\xa5 %.0fms", ms[1]);
	json_member_array(w, "labels");
	for (int i = 0; i < 3; i++)
		json_put_text(w, text[i]);
	json_end_array(w);
	json_member_array(w, "limits_ms");
	json_put_f64(w, ms[0]);
	json_put_f64(w, ms[1]);
	json_end_array(w);
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

static void put_rates(struct json_writer *w, const struct timeline *t)
{
	double itl_ms = t->r->metrics->block[BLOCK_ITL].median_ms;
	int64_t width = bin_ns(t->to_ns - t->from_ns, itl_ms);
	size_t bins = (size_t)((t->to_ns - t->from_ns) / width) + 1;
	double *tokens = mem_array(bins, sizeof(*tokens)), *most = mem_array(bins, sizeof(*most));

	count_tokens(t, width, bins, tokens);
	count_running(t, width, bins, most);
	json_member_object(w, "rates");
	json_member_int(w, "bin_ns", width);
	put_bins(w, "tokens_per_s", tokens, bins, 1e9 / (double)width);
	put_bins(w, "concurrency", most, bins, 1);
	json_end_object(w);
	free(tokens);
	free(most);
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
		put_point(w, s->point[j].value);
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

void timeline_meta(const struct timeline *t, const double limits_ms[2], struct html *h)
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
	put_categories(&w, limits_ms);
	put_facts(&w, t->r->facts);
	put_summary(&w, t->r->metrics);
	put_verdict(&w, t->r->trust);
	put_rates(&w, t);
	put_series(&w, t);
	put_errors(&w, t);
	json_end_object(&w);
	html_json(h, "meta", buf_str(&json));
	buf_release(&json);
}
