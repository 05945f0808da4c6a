/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peaks.c - the busiest second, and the most requests at once.
 *
 * Two forms of concurrency: upstream's, which counts a request in every second
 * it touches and so over-counts, and the exact one, a sweep over starts and
 * ends. Times are the doubles of the result file, added up as upstream adds.
 */
#include "metrics/parts.h"

#include <math.h>

#include "base/mem.h"
#include "stats/stats.h"

struct window {
	double from;     /* the earliest start of a success */
	size_t seconds;
};

static bool find_window(const struct metrics *m, const struct record *r, struct window *w)
{
	double to = 0;
	bool is_first = true;

	for (uint32_t i = 0; i < m->n; i++) {
		double end = m->start_time[i] + m->latency[i];

		if (!metrics_is_success(&r->row[m->row[i]]))
			continue;
		if (is_first || m->start_time[i] < w->from)
			w->from = m->start_time[i];
		if (is_first || end > to)
			to = end;
		is_first = false;
	}
	if (is_first || to - w->from < 0 || to - w->from > METRICS_SECONDS_MAX)
		return false;
	w->seconds = (size_t)ceil(to - w->from) + 1;
	return true;
}

static void add_at(double *bucket, const struct window *w, double t, double amount)
{
	double at = t - w->from;

	if (at > -1 && at < (double)w->seconds)
		bucket[(size_t)(at < 0 ? 0 : at)] += amount;
}

static void count_tokens(const struct metrics *m, uint32_t i, const struct window *w,
			 double *bucket)
{
	double t = m->start_time[i] + m->ttft[i], amount = 1;
	size_t events = m->itl_at[i + 1] - m->itl_at[i] + 1;

	if (m->opts.is_peak_in_tokens)
		amount = (double)m->output_len[i] / (double)events;
	add_at(bucket, w, t, amount);
	for (size_t k = m->itl_at[i]; k < m->itl_at[i + 1]; k++) {
		t += m->itl[k];
		add_at(bucket, w, t, amount);
	}
}

/* Seconds from the start to the end, both included; as differences, summed up later. */
static void count_running(const struct metrics *m, uint32_t i, const struct window *w,
			  int64_t *change)
{
	size_t from = (size_t)(m->start_time[i] - w->from);
	double end = m->start_time[i] + m->latency[i] - w->from;
	size_t to = end > 0 ? (size_t)end : 0;

	if (from >= w->seconds)
		return;
	if (to >= w->seconds)
		to = w->seconds - 1;
	change[from]++;
	if (to >= from)
		change[to + 1]--;
	else
		change[from]--;
}

/* Ends come before starts of the same instant. */
static int64_t exact_peak(const struct metrics *m, const struct record *r)
{
	double *start = mem_array(m->n, sizeof(*start)), *end = mem_array(m->n, sizeof(*end));
	size_t n = 0, ended = 0;
	int64_t peak = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		if (!metrics_is_success(&r->row[m->row[i]]))
			continue;
		start[n] = m->start_time[i];
		end[n++] = m->start_time[i] + m->latency[i];
	}
	stats_sort(start, n);
	stats_sort(end, n);
	for (size_t i = 0; i < n; i++) {
		while (ended < i && end[ended] <= start[i])
			ended++;
		if ((int64_t)(i + 1 - ended) > peak)
			peak = (int64_t)(i + 1 - ended);
	}
	free(start);
	free(end);
	return peak;
}

void metrics_by_second(struct metrics_by_second *out, const struct metrics *m,
		       const struct record *r)
{
	struct window w = { 0 };
	int64_t running = 0;

	*out = (struct metrics_by_second){ 0 };
	if (!find_window(m, r, &w))
		return;
	out->n = w.seconds;
	out->tokens = mem_array(w.seconds, sizeof(*out->tokens));
	out->running = mem_array(w.seconds + 1, sizeof(*out->running));
	for (uint32_t i = 0; i < m->n; i++) {
		if (!metrics_is_success(&r->row[m->row[i]]))
			continue;
		count_tokens(m, i, &w, out->tokens);
		count_running(m, i, &w, out->running);
	}
	for (size_t s = 0; s < w.seconds; s++)
		out->running[s] = running += out->running[s];
}

void metrics_by_second_release(struct metrics_by_second *s)
{
	free(s->tokens);
	free(s->running);
	*s = (struct metrics_by_second){ 0 };
}

void metrics_peaks(struct metrics *m, const struct record *r)
{
	struct metrics_by_second second;

	metrics_by_second(&second, m, r);
	for (size_t s = 0; s < second.n; s++) {
		if (second.tokens[s] > m->max_output_tokens_per_s)
			m->max_output_tokens_per_s = second.tokens[s];
		if (second.running[s] > m->max_concurrent_requests)
			m->max_concurrent_requests = second.running[s];
	}
	if (second.n && m->opts.is_peak_exact)
		m->max_concurrent_requests = exact_peak(m, r);
	metrics_by_second_release(&second);
}
