/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady.c - the part of a closed loop in which it was as full as intended, and how full it was as
 * a whole; and of an open loop, whether the server kept up with the arrivals (at the end).
 *
 * The window begins when as many requests are in flight as the threshold asks for, and ends when
 * their number falls below it for the last time; it may fall below it in between. The rules are
 * those of upstream's Rust client (serve spec 10): only successes count, ends come before starts of
 * the same instant, and an instant belongs to the window from its start up to, not including, its
 * end. Prompts, TTFT and TPOT are of requests that start in it, the request count is of those that
 * end in it, and output of token events in it. Unlike there, an event counts as its answer's tokens
 * per event, so that the rate is one of tokens.
 */
#include "client/metrics/metrics_internal.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"

struct stretch { int64_t start_ns, end_ns; };

static struct stretch interval_of(const struct request_row *row)
{
	return (struct stretch){ row->sent_ns, metrics_end_ns(row) };
}

/* Walks starts and ends in order of time; both ascending, n each. */
static void find_window(struct metrics_steady *s, const int64_t *start, const int64_t *end,
			size_t n)
{
	size_t started = 0, ended = 0;

	while (ended < n) {
		int64_t running = (int64_t)(started - ended);

		if (started == n || end[ended] <= start[started]) {
			if (running == s->threshold_requests)
				s->end_ns = end[ended];
			ended++;
			continue;
		}
		if (running + 1 > s->observed_peak)
			s->observed_peak = running + 1;
		if (running + 1 >= s->threshold_requests && !s->is_reached) {
			s->is_reached = true;
			s->start_ns = start[started];
		}
		started++;
	}
}

static void look(struct metrics *m, const struct record *r)
{
	struct metrics_steady *s = &m->steady;
	int64_t *start = mem_array(m->n, sizeof(*start)), *end = mem_array(m->n, sizeof(*end));
	size_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (!metrics_is_success(row))
			continue;
		start[n] = interval_of(row).start_ns;
		end[n++] = interval_of(row).end_ns;
	}
	metrics_sort_ints(start, n);
	metrics_sort_ints(end, n);
	s->total = (uint32_t)n;
	s->first_ns = n ? start[0] : 0;
	find_window(s, start, end, n);
	free(start);
	free(end);
}

static bool is_inside(const struct metrics_steady *s, int64_t at_ns)
{
	return at_ns >= s->start_ns && at_ns < s->end_ns;
}

static double tokens_inside(const struct metrics *m, uint32_t i, const struct request_row *row)
{
	size_t gaps = m->itl_at[i + 1] - m->itl_at[i];
	int64_t at = row->first_event_ns;
	uint64_t n = at != 0 && is_inside(&m->steady, at);

	for (size_t k = m->itl_at[i]; k < m->itl_at[i + 1] && at < m->steady.end_ns; k++) {
		at += llround(m->itl[k] * 1e9);
		n += is_inside(&m->steady, at);
	}
	return (double)n * (double)m->output_len[i] / (double)(gaps + 1);
}

static void describe(struct metrics *m, double *ttft, size_t n_ttft, double *tpot, size_t n_tpot)
{
	struct metrics_steady *s = &m->steady;

	s->mean_ttft_ms = stats_mean(ttft, n_ttft) * 1000;
	s->mean_tpot_ms = stats_mean(tpot, n_tpot) * 1000;
	stats_sort(ttft, n_ttft);
	stats_sort(tpot, n_tpot);
	s->median_ttft_ms = stats_median(ttft, n_ttft) * 1000;
	s->median_tpot_ms = stats_median(tpot, n_tpot) * 1000;
	s->p90_tpot_ms = stats_percentile(tpot, n_tpot, 90) * 1000;
	s->p99_tpot_ms = stats_percentile(tpot, n_tpot, 99) * 1000;
	for (size_t k = 0; k < m->opts.n_percentiles; k++)
		s->percentile_ttft_ms[k] =
			stats_percentile(ttft, n_ttft, m->opts.percentile[k]) * 1000;
}

static void measure(struct metrics *m, const struct record *r)
{
	struct metrics_steady *s = &m->steady;
	double *ttft = mem_array(m->n, sizeof(*ttft)), *tpot = mem_array(m->n, sizeof(*tpot));
	double duration = s->duration_s > 1e-9 ? s->duration_s : 1e-9;
	size_t n_ttft = 0, n_tpot = 0;
	uint64_t input = 0;
	double output = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (!metrics_is_success(row))
			continue;
		s->completed += is_inside(s, interval_of(row).end_ns);
		output += m->opts.is_pooling ? 0 : tokens_inside(m, i, row);
		if (!is_inside(s, row->sent_ns))
			continue;
		s->started++;
		input += (uint64_t)m->input_len[i];
		if (m->opts.is_pooling)
			continue;
		ttft[n_ttft++] = m->ttft[i];
		if (m->output_len[i] > 1)
			tpot[n_tpot++] = (m->latency[i] - m->ttft[i]) /
					 (double)(m->output_len[i] - 1);
	}
	s->request_throughput = s->completed / duration;
	s->input_throughput = (double)input / duration;
	s->output_throughput = output / duration;
	s->total_token_throughput = s->input_throughput + s->output_throughput;
	describe(m, ttft, n_ttft, tpot, n_tpot);
	free(ttft);
	free(tpot);
}

void metrics_steady(struct metrics *m, const struct record *r)
{
	struct metrics_steady *s = &m->steady;
	double shortest = m->opts.steady_min_window_s;

	s->percentile_ttft_ms = arena_alloc(&m->arena, m->opts.n_percentiles * sizeof(double));
	for (size_t k = 0; k < m->opts.n_percentiles; k++)
		s->percentile_ttft_ms[k] = 0;
	s->is_wanted = m->opts.finds_steady_state && m->opts.max_concurrency > 0 &&
		       !m->opts.is_rate_finite;
	if (!s->is_wanted)
		return;
	s->threshold_requests = (int64_t)ceil(m->opts.steady_threshold *
					      (double)m->opts.max_concurrency);
	if (s->threshold_requests < 1)
		s->threshold_requests = 1;
	s->run_s = m->duration_s;
	look(m, r);
	if (!s->is_reached)
		return;
	s->duration_s = metrics_seconds(s->end_ns - s->start_ns);
	measure(m, r);
	if (shortest <= 0)
		shortest = fmax(STEADY_WINDOW_S, STEADY_WINDOW_SHARE * s->run_s);
	s->is_short = s->duration_s < shortest;
}

/* Failures, too, keep a slot until they end. */
void metrics_slots(struct metrics *m, const struct record *r)
{
	struct metrics_slots *s = &m->client.slots;
	int64_t first = 0, last = 0;
	double busy_s = 0;

	if (m->opts.max_concurrency <= 0 || m->opts.is_rate_finite ||
	    m->client.mean_interarrival_s > 0)
		return;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (!row->sent_ns || row->end_ns < row->sent_ns)
			continue;
		s->requests++;
		busy_s += metrics_seconds(row->end_ns - row->sent_ns);
		first = s->requests == 1 || row->sent_ns < first ? row->sent_ns : first;
		last = row->end_ns > last ? row->end_ns : last;
	}
	s->is_known = s->requests > 0 && last > first;
	if (s->is_known && m->sessions.n)
		s->requests = m->sessions.n; /* whose pauses leave slots empty on purpose */
	else if (s->is_known)
		s->in_flight_mean = busy_s / metrics_seconds(last - first);
}

/* ---- an open loop ---- */

#define QUEUE_REQUESTS_MIN 30
#define THIRD_REQUESTS_MIN 10
#define TREND_PARTS 10
#define LONGER_PROMPTS 1.2 /* mean prompt of the last third over the first: TTFT may well grow */

/*
 * Of the median TTFT of consecutive parts. Requests that wait in one queue resemble each other, so
 * those of two thirds are no independent values: a stable queue that is long for a while would be
 * called a growing one.
 */
static double trend_p(const struct metrics *m, const struct record *r,
		      const struct metrics_moment *v, size_t n)
{
	double *ttft = mem_array(n, sizeof(*ttft)), median[TREND_PARTS];
	size_t count = 0;

	for (size_t j = 0; j < n; j++)
		if (metrics_is_success(&r->row[m->row[v[j].i]]) && m->ttft[v[j].i] > 0)
			ttft[count++] = m->ttft[v[j].i];
	for (size_t k = 0; k < TREND_PARTS; k++) {
		size_t from = count * k / TREND_PARTS, until = count * (k + 1) / TREND_PARTS;

		stats_sort(ttft + from, until - from);
		median[k] = stats_median(ttft + from, until - from);
	}
	free(ttft);
	return trend_test(median, TREND_PARTS);
}

/* TTFT of the first third to arrive and of the last; prompts alike in length. */
static void growth(struct metrics_queue *q, const struct metrics *m, const struct record *r,
		   const struct metrics_moment *v, size_t n)
{
	size_t third = n / 3, count[2] = { 0 };
	double *ttft[2], tokens[2] = { 0 };

	for (int k = 0; k < 2; k++) {
		ttft[k] = mem_array(third, sizeof(double));
		for (size_t j = 0; j < third; j++) {
			uint32_t i = v[k ? n - third + j : j].i;

			if (!metrics_is_success(&r->row[m->row[i]]) || m->ttft[i] <= 0)
				continue;
			tokens[k] += (double)m->input_len[i];
			ttft[k][count[k]++] = m->ttft[i];
		}
		stats_sort(ttft[k], count[k]);
	}
	q->knows_growth = count[0] >= THIRD_REQUESTS_MIN && count[1] >= THIRD_REQUESTS_MIN &&
			  tokens[1] / (double)count[1] <=
			  LONGER_PROMPTS * tokens[0] / (double)count[0];
	if (q->knows_growth) {
		q->ttft_first_ms = 1000 * stats_median(ttft[0], count[0]);
		q->ttft_last_ms = 1000 * stats_median(ttft[1], count[1]);
		q->growth_p = trend_p(m, r, v, n);
	}
	free(ttft[0]);
	free(ttft[1]);
}

/*
 * Requests without a first event, as each arrival finds them: where priorities change the order,
 * TTFT depends on the class more than on the time, and later requests may well wait shorter.
 */
static void waiting(struct metrics_queue *q, const struct metrics *m, const struct record *r,
		    const struct metrics_moment *v, size_t n)
{
	int64_t *first = mem_array(n, sizeof(*first));
	double part[TREND_PARTS] = { 0 }, third[2] = { 0 };
	size_t answered = 0;

	for (size_t j = 0; j < n; j++) {
		const struct request_row *row = &r->row[m->row[v[j].i]];

		first[j] = row->first_event_ns ? row->first_event_ns : row->end_ns;
	}
	metrics_sort_ints(first, n);
	for (size_t j = 0; j < n; j++) {
		while (answered < n && first[answered] <= v[j].at_ns)
			answered++;
		part[j * TREND_PARTS / n] += (double)j - (double)answered;
		if (j < n / 3 || j >= n - n / 3)
			third[j >= n / 3] += (double)j - (double)answered;
	}
	for (size_t k = 0; k < TREND_PARTS; k++) /* means: parts may differ by one request */
		part[k] /= (double)((n * (k + 1) + TREND_PARTS - 1) / TREND_PARTS -
				    (n * k + TREND_PARTS - 1) / TREND_PARTS);
	q->waiting_first = third[0] / (double)(n / 3);
	q->waiting_last = third[1] / (double)(n / 3);
	q->waiting_p = trend_test(part, TREND_PARTS);
	free(first);
}

static size_t count_between(const struct metrics *m, const struct record *r, int64_t from_ns,
			    int64_t to_ns)
{
	size_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		int64_t end = r->row[m->row[i]].end_ns;

		n += end > from_ns && end <= to_ns;
	}
	return n;
}

/*
 * Mean time that the first requests to arrive ran beyond fill_ns, at most until span_ns. A server
 * that keeps up has so many requests more in flight, for each one that arrives in a second, at
 * span_ns than at fill_ns: those with long answers. The later requests of a growing queue run
 * longer, so they have no part in it.
 */
static double longer_s(const struct metrics *m, const struct record *r,
		       const struct metrics_moment *v, size_t n, int64_t fill_ns, int64_t span_ns)
{
	double sum = 0;

	for (size_t j = 0; j < n; j++) {
		const struct request_row *row = &r->row[m->row[v[j].i]];
		int64_t ran = row->end_ns - row->due_ns;

		ran = ran < span_ns ? ran : span_ns;
		sum += ran > fill_ns ? metrics_seconds(ran - fill_ns) : 0;
	}
	return n ? sum / (double)n : 0;
}

void metrics_queue(struct metrics *m, const struct record *r)
{
	struct metrics_queue *q = &m->client.queue;
	struct metrics_moment *v = mem_array(m->n, sizeof(*v));
	int64_t from, to, fill = (int64_t)(m->block[BLOCK_E2EL].median_ms * 1e6);
	size_t n = 0, at = 0;

	for (uint32_t i = 0; i < m->n; i++)
		if (r->row[m->row[i]].sent_ns && r->row[m->row[i]].due_ns)
			v[n++] = (struct metrics_moment){ r->row[m->row[i]].due_ns, i };
	metrics_sort_moments(v, n);
	if (!m->opts.is_rate_finite || n < QUEUE_REQUESTS_MIN)
		goto done;
	from = v[0].at_ns + fill;
	to = v[n - 1].at_ns;
	while (at < n && v[at].at_ns <= from)
		at++;
	q->is_known = true;
	q->knows_waiting = m->class != NULL;
	if (q->knows_waiting)
		waiting(q, m, r, v, n);
	if (to - from < fill || n - at < QUEUE_REQUESTS_MIN) {
		/* Too short for two rates; a growing TTFT can still be detected. */
		growth(q, m, r, v, n);
		goto done;
	}
	q->arrived = (uint32_t)(n - at);
	q->answered = (uint32_t)count_between(m, r, from, to);
	q->in_flight_before = (uint32_t)(at - count_between(m, r, 0, from));
	q->in_flight_after = (uint32_t)(n - count_between(m, r, 0, to));
	q->offered_rps = q->arrived / metrics_seconds(to - from);
	q->carried_rps = q->answered / metrics_seconds(to - from);
	q->longer = q->offered_rps * longer_s(m, r, v, n / 3, fill, to - v[0].at_ns);
	growth(q, m, r, v + at, n - at);
done:
	free(v);
}
