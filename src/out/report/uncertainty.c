/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uncertainty.c - what the numbers of one run prove: intervals of percentiles (stats/percentile.h),
 * means of the settled part with theirs (stats/settled.h), and latency over the requests that were
 * attempted (metrics_attempted). As rows of the report and members of "profllm".
 */
#include "out/report/report_internal.h"

#include <math.h>
#include <stdio.h>

#include "core/json/write.h"

/* ---- how far percentiles can be trusted ---- */

#define LABEL_BYTES 80
#define NAME_BYTES (FMT_F64_BYTES + 8)
#define CORRELATED 2.0 /* times as many requests needed as independent ones */
#define MS 1000 /* bounds are seconds, as the record's arrays are */

/* "median_ttft_ms", "p99_ttft_ms": k 0 is the median, then the requested percentiles. */
static void percentile_key(char out[LABEL_BYTES], const struct metrics *m, size_t k,
			   const char *metric)
{
	char p[FMT_F64_BYTES];

	if (k)
		snprintf(out, LABEL_BYTES, "p%s_%s_ms",
			 metrics_percentile_name(p, m->opts.percentile[k - 1]), metric);
	else
		snprintf(out, LABEL_BYTES, "median_%s_ms", metric);
}

/* "12.30 to 15.84", or only the lower end and how many requests would bound it. */
static void say_bounds(const struct percentile *p, const char *name, struct buf *out)
{
	if (!isinf(p->low) && !isinf(p->high))
		buf_printf(out, "%.2f to %.2f", p->low * MS, p->high * MS);
	else if (!isinf(p->low))
		buf_printf(out, ">= %.2f, n = %zu cannot bound %s from above (%zu needed)",
			   p->low * MS, p->n, name, p->needed);
	else if (!isinf(p->high))
		buf_printf(out, "<= %.2f, n = %zu cannot bound %s from below (%zu needed)",
			   p->high * MS, p->n, name, p->needed);
	else
		buf_printf(out, "n = %zu cannot bound %s (%zu needed)", p->n, name, p->needed);
	if (p->marks & PERCENTILE_CLUMPED)
		buf_add_text(out, ", too narrow: slow requests come in long clumps");
}

/* "Median" or "P99.9", of the k-th of a block's bounds. Returns out. */
static const char *bound_name(const struct metrics *m, size_t k, char out[NAME_BYTES])
{
	char p[FMT_F64_BYTES];

	if (k)
		snprintf(out, NAME_BYTES, "P%s",
			 metrics_percentile_name(p, m->opts.percentile[k - 1]));
	else
		snprintf(out, NAME_BYTES, "Median");
	return out;
}

/* The numbers whose values are least independent, where that matters. */
static void say_correlation(const struct percentile *worst, const char *name, struct buf *out)
{
	struct buf text = { 0 };

	if (!worst || worst->phi < CORRELATED)
		return;
	buf_printf(&text, "%s: %zu values tell as much as %.0f independent ones", name, worst->n,
		   (double)worst->n / worst->phi);
	line_text(out, "Correlated requests, at worst:", text.data);
	buf_release(&text);
}

void report_bounds_rows(const struct metrics *m, struct buf *out)
{
	const struct percentile *worst = NULL;
	char name[NAME_BYTES], label[LABEL_BYTES], worst_name[LABEL_BYTES];

	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		for (size_t k = 0; m->block[b].bounds && k <= m->opts.n_percentiles; k++) {
			const struct percentile *p = &m->block[b].bounds[k];
			struct buf text = { 0 };

			if (!p->n)
				continue;
			snprintf(label, sizeof(label), "%s %s, %g %% interval (ms):",
				 bound_name(m, k, name), report_block_name(b),
				 100 * PERCENTILE_LEVEL);
			say_bounds(p, name, &text);
			line_text(out, label, text.data);
			buf_release(&text);
			if (worst && worst->phi >= p->phi)
				continue;
			worst = p;
			snprintf(worst_name, sizeof(worst_name), "%s %s", name,
				 report_block_name(b));
		}
	say_correlation(worst, worst_name, out);
}

static void put_marks(struct json_writer *w, unsigned marks)
{
	static const char *const names[] = { "few", "clumped", "open" }; /* by their bits */

	json_member_array(w, "marks");
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (marks & 1u << i)
			json_put_text(w, names[i]);
	json_end_array(w);
}

void report_bounds_json(const struct metrics *m, struct json_writer *w)
{
	json_member_array(w, "percentiles");
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		for (size_t k = 0; m->block[b].bounds && k <= m->opts.n_percentiles; k++) {
			const struct percentile *p = &m->block[b].bounds[k];
			char key[LABEL_BYTES];

			if (!p->n)
				continue;
			percentile_key(key, m, k, metric_block_key(b));
			json_begin_object(w);
			json_member_text(w, "metric", key);
			json_member_int(w, "n", (int64_t)p->n);
			json_member_f64(w, "low_ms", p->low * MS);
			json_member_f64(w, "high_ms", p->high * MS);
			json_member_int(w, "n_needed", (int64_t)p->needed);
			json_member_f64(w, "dispersion", p->phi);
			json_member_f64(w, "correlation", p->correlation);
			put_marks(w, p->marks);
			json_end_object(w);
		}
	json_end_array(w);
}

/* ---- the settled part ---- */

static const char *const settled_key[] = {
#define X(name, key) key,
	METRICS_SETTLED(X)
#undef X
};

static const char *const settled_label[] = {
	[METRICS_SETTLED_TTFT] = "Settled mean TTFT (ms):",
	[METRICS_SETTLED_TPOT] = "Settled mean TPOT (ms):",
	[METRICS_SETTLED_ITL] = "Settled mean ITL (ms):",
	[METRICS_SETTLED_E2EL] = "Settled mean E2EL (ms):",
	[METRICS_SETTLED_REQUESTS] = "Settled requests (req/s):",
	[METRICS_SETTLED_OUTPUT] = "Settled output tokens (tok/s):",
};

/* Faults of the whole run. */
static bool say_burst(const struct metrics_settled *s, struct buf *out)
{
	if (s->is_burst)
		buf_printf(out, "none: all requests were sent within %.2f s, less than one takes",
			   s->end_s);
	return s->is_burst;
}

static void say_mean(const struct settled_mean *v, struct buf *out)
{
	buf_printf(out, "%.2f ", v->mean);
	if (v->state == SETTLED_KNOWN)
		buf_printf(out, "(%.2f to %.2f)", v->low, v->high);
	else if (v->state == SETTLED_DRIFTING)
		buf_add_text(out, "(no interval: it drifts as long as the run lasts)");
	else
		buf_printf(out, "(no interval: too short, at least %zu requests are needed)",
			   v->needed);
}

void report_settled_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_settled *s = &m->settled;
	size_t known = 0, most = 0;
	struct buf text = { 0 };

	if (!s->is_reported)
		return;
	for (int k = 0; k < METRICS_SETTLED_COUNT; k++) {
		known += s->mean[k].state == SETTLED_KNOWN || s->mean[k].state == SETTLED_DRIFTING;
		most = s->mean[k].needed > most ? s->mean[k].needed : most;
	}
	line_heading(out, '-', "Settled Part, 95 % Intervals");
	if (!say_burst(s, &text) && !known)
		buf_printf(&text, "none: too short, at least %zu requests are needed", most);
	if (text.len) {
		line_text(out, "Settled means:", text.data);
		buf_release(&text);
		return;
	}
	buf_printf(&text, "%u / %u", s->left_out_start, s->left_out_end);
	line_text(out, "Requests left out at start/end:", text.data);
	for (int k = 0; k < METRICS_SETTLED_COUNT; k++) {
		if (s->mean[k].state == SETTLED_UNKNOWN)
			continue;
		buf_reset(&text);
		say_mean(&s->mean[k], &text);
		line_text(out, settled_label[k], text.data);
	}
	buf_release(&text);
}

static void put_mean(struct json_writer *w, const char *key, const struct settled_mean *v)
{
	static const char *const state[] = { NULL, "known", "too_short", "drifting" };

	if (v->state == SETTLED_UNKNOWN)
		return;
	json_member_object(w, key);
	json_member_f64(w, "mean", v->mean);
	json_member_f64(w, "low", v->low);
	json_member_f64(w, "high", v->high);
	json_member_int(w, "n", (int64_t)v->n);
	json_member_f64(w, "n_effective", v->effective);
	json_member_int(w, "n_needed", (int64_t)v->needed);
	json_member_text(w, "state", state[v->state]);
	json_end_object(w);
}

void report_settled_json(const struct metrics *m, struct json_writer *w)
{
	const struct metrics_settled *s = &m->settled;
	struct buf problem = { 0 };

	if (!s->is_reported)
		return;
	json_member_object(w, "settled");
	json_member_int(w, "requests", s->n);
	json_member_int(w, "left_out_start", s->left_out_start);
	json_member_int(w, "left_out_end", s->left_out_end);
	json_member_f64(w, "start_s", s->start_s);
	json_member_f64(w, "end_s", s->end_s);
	json_member_text(w, "problem", say_burst(s, &problem) ? problem.data : NULL);
	buf_release(&problem);
	for (int k = 0; k < METRICS_SETTLED_COUNT; k++)
		put_mean(w, settled_key[k], &s->mean[k]);
	json_end_object(w);
}

/* ---- attempted requests ---- */

/* "41.20", "41.20 to 55.10" where it is only known between these, "> 41.20". */
static void say_between(const struct metrics_attempted_percentile *p, struct buf *out)
{
	if (isinf(p->high_ms))
		buf_printf(out, "> %.2f", p->low_ms);
	else if (p->high_ms > p->low_ms)
		buf_printf(out, "%.2f to %.2f", p->low_ms, p->high_ms);
	else
		buf_printf(out, "%.2f", p->high_ms);
}

static void attempted_rows(const struct metrics *m, const struct metrics_attempted_block *b,
			   const char *name, struct buf *out)
{
	struct buf text = { 0 };

	for (size_t k = 0; b->percentile && k <= m->opts.n_percentiles; k++) {
		char label[LABEL_BYTES], p[NAME_BYTES];

		snprintf(label, sizeof(label), "%s %s of attempted (ms):", bound_name(m, k, p), name);
		buf_reset(&text);
		say_between(&b->percentile[k], &text);
		line_text(out, label, text.data);
	}
	buf_release(&text);
}

/* If all succeeded, these are the usual numbers; if none did, only failures count. */
void report_attempted_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_attempted *a = &m->attempted;
	struct buf text = { 0 };

	if (a->n == a->succeeded || !a->succeeded)
		return;
	buf_printf(&text, "%u / %u / %u / %u", a->n, a->succeeded, a->failed, a->cancelled);
	line_text(out, "Attempted/succeeded/failed/cancelled:", text.data);
	buf_release(&text);
	if (a->ttft.percentile && m->opts.has_tokenizer)
		attempted_rows(m, &a->ttft, "TTFT", out);
	attempted_rows(m, &a->e2el, "E2EL", out);
	if (!isnan(a->good_share))
		line_real(out, "Good of attempted (%):", 100 * a->good_share);
}

static void put_attempted(struct json_writer *w, const struct metrics *m, const char *name,
			  const struct metrics_attempted_block *b)
{
	for (size_t k = 0; b->percentile && k <= m->opts.n_percentiles; k++) {
		const struct metrics_attempted_percentile *p = &b->percentile[k];
		char key[LABEL_BYTES];

		percentile_key(key, m, k, name);
		json_begin_object(w);
		json_member_text(w, "metric", key);
		json_member_f64(w, "low_ms", p->low_ms);
		json_member_f64(w, "high_ms", p->high_ms);
		json_end_object(w);
	}
}

void report_attempted_json(const struct metrics *m, struct json_writer *w)
{
	const struct metrics_attempted *a = &m->attempted;

	json_member_object(w, "attempted");
	json_member_int(w, "requests", a->n);
	json_member_int(w, "succeeded", a->succeeded);
	json_member_int(w, "failed", a->failed);
	json_member_int(w, "cancelled", a->cancelled);
	json_member_int(w, "unsent", a->unsent);
	json_member_f64(w, "good_share", a->good_share);
	json_member_int(w, "requests_in_tpot", a->with_tpot);
	json_member_int(w, "requests_in_itl", a->with_itl);
	json_member_int(w, "ttft_known", a->ttft.known);
	json_member_int(w, "ttft_censored", a->ttft.censored);
	json_member_int(w, "e2el_known", a->e2el.known);
	json_member_int(w, "e2el_censored", a->e2el.censored);
	json_member_array(w, "percentiles");
	if (m->opts.has_tokenizer)
		put_attempted(w, m, metric_block_key(BLOCK_TTFT), &a->ttft);
	put_attempted(w, m, metric_block_key(BLOCK_E2EL), &a->e2el);
	json_end_array(w);
	json_end_object(w);
}
