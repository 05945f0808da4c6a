/* SPDX-License-Identifier: Apache-2.0 */
/*
 * episodes.c - unusual parts of a run: slow first requests (a cold server), and a time in which the
 * server accepted no connections.
 *
 * The first requests. If all n requests were alike, each order of their TTFTs would be equally
 * likely, so the number of the first k among the k slowest would follow the hypergeometric
 * distribution of k draws from n with k marked. k is 2, 4, 8 ... up to a quarter of n; the smallest
 * of their tails times their number is the probability (Bonferroni), which in at most P of all runs
 * without a cold start is below P. Equal values count as if the later ones were slower. One slow
 * request cannot be distinguished from chance: it is the slowest of n in one of n runs.
 */
#include "client/metrics/metrics_internal.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"

#define START_REQUESTS_MIN 40
#define START_PROMPTS 1.2 /* mean prompt of the first over that of the rest: TTFT may be longer */
#define OUTAGE_REQUESTS 3 /* lost one after the other; fewer are failures like any others */

static double log_choose(double n, double k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

double metrics_overlap_p(uint32_t n, uint32_t k, uint32_t overlap)
{
	double all = log_choose(n, k), p = 0;

	for (uint32_t x = overlap; x <= k; x++)
		if (k - x <= n - k)
			p += exp(log_choose(k, x) + log_choose(n - k, k - x) - all);
	return p < 1 ? p : 1;
}

struct start { double ttft_s; uint32_t at; }; /* at: its place in the order of sending */

static int slower_first(const void *left, const void *right)
{
	const struct start *a = left, *b = right;

	if (a->ttft_s != b->ttft_s)
		return a->ttft_s < b->ttft_s ? 1 : -1;
	return a->at < b->at ? 1 : -1;
}

/* rank[i]: how many are slower than the request that was sent i-th. */
static void rank_by_ttft(const double *ttft, uint32_t n, uint32_t *rank)
{
	struct start *v = mem_array(n, sizeof(*v));

	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct start){ ttft[i], i };
	qsort(v, n, sizeof(*v), slower_first);
	for (uint32_t i = 0; i < n; i++)
		rank[v[i].at] = i;
	free(v);
}

/* Sorts both parts of ttft, whose first q->first are the ones that are compared. */
static void compare_first(struct metrics_start *s, double *ttft, uint32_t n)
{
	uint32_t k = s->first;

	stats_sort(ttft, k);
	stats_sort(ttft + k, n - k);
	s->ttft_first_ms = 1000 * stats_median(ttft, k);
	s->ttft_rest_ms = 1000 * stats_median(ttft + k, n - k);
	s->mean_rest_ms = 1000 * stats_mean(ttft + k, n - k);
	s->mean_ms = (1000 * stats_sum(ttft, k) + s->mean_rest_ms * (n - k)) / n;
}

void metrics_start(struct metrics *m, const struct record *r)
{
	struct metrics_start *s = &m->client.start;
	struct metrics_moment *v = mem_array(m->n + 1, sizeof(*v));
	double *ttft = mem_array(m->n + 1, sizeof(*ttft)), tokens[2] = { 0 };
	uint32_t *rank = mem_array(m->n + 1, sizeof(*rank)), n = 0, tried = 0;

	for (uint32_t i = 0; i < m->n; i++)
		if (metrics_is_success(&r->row[m->row[i]]) && m->ttft[i] > 0)
			v[n++] = (struct metrics_moment){ r->row[m->row[i]].sent_ns, i };
	if (n < START_REQUESTS_MIN)
		goto done;
	metrics_sort_moments(v, n);
	for (uint32_t i = 0; i < n; i++)
		ttft[i] = m->ttft[v[i].i];
	rank_by_ttft(ttft, n, rank);
	s->p = 1;
	for (uint32_t k = 2; k <= n / 4; k *= 2, tried++) {
		uint32_t overlap = 0;
		double p;

		for (uint32_t i = 0; i < k; i++)
			overlap += rank[i] < k;
		p = metrics_overlap_p(n, k, overlap);
		if (p < s->p) {
			s->p = p;
			s->first = k;
		}
	}
	s->p = fmin(1, s->p * tried);
	if (!s->first)
		goto done;
	for (uint32_t i = 0; i < n; i++)
		tokens[i >= s->first] += (double)m->input_len[v[i].i];
	s->is_known = tokens[0] / s->first <= START_PROMPTS * tokens[1] / (n - s->first);
	s->n = n;
	compare_first(s, ttft, n);
done:
	free(v);
	free(ttft);
	free(rank);
}

static bool is_lost(const struct request_row *row)
{
	return row->state == REQ_FAILED && (row->fail == FAIL_CONNECT || row->fail == FAIL_RESET ||
					    row->fail == FAIL_TRUNCATED);
}

/* The longest run of lost requests with a refused connection in it and successes around it. */
void metrics_outage(struct metrics *m, const struct record *r)
{
	struct metrics_outage *worst = &m->client.outage, one = { 0 };
	struct metrics_moment *v = mem_array(m->n + 1, sizeof(*v));
	bool is_after_success = false, is_refused = false;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n; i++)
		if (r->row[m->row[i]].end_ns)
			v[n++] = (struct metrics_moment){ r->row[m->row[i]].end_ns, i };
	metrics_sort_moments(v, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct request_row *row = &r->row[m->row[v[i].i]];

		if (is_lost(row)) {
			if (!one.requests++)
				one.start_s = metrics_seconds(v[i].at_ns - r->start_ns);
			is_refused |= row->fail == FAIL_CONNECT;
			continue;
		}
		one.duration_s = metrics_seconds(v[i].at_ns - r->start_ns) - one.start_s;
		if (metrics_is_success(row) && is_after_success && is_refused &&
		    one.requests >= OUTAGE_REQUESTS && one.requests > worst->requests)
			*worst = one;
		one = (struct metrics_outage){ 0 };
		is_refused = false;
		is_after_success |= metrics_is_success(row);
	}
	free(v);
}
