/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settled.c - means of a run without its warm-up and its end; see core/stats/settled.h.
 *
 * All numbers use the same part of the run: without the longest warm-up that TTFT, TPOT or E2EL of
 * the successes show, in the order of their start, and without the same at the end, searched
 * backwards. Latencies are of requests that start in it. Rates count ends and tokens in bins of
 * equal time, from the first kept start, or one median E2EL after the first of all if that is later
 * (until then the server only fills), up to the last kept start (then it only empties).
 */
#include "client/metrics/metrics_internal.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"

#define BINS_MAX 256
#define REQUESTS_PER_BIN 2 /* at least, on average */

/* The successes in the order of their start. */
static uint32_t successes(const struct metrics *m, const struct record *r, uint32_t *out)
{
	uint32_t *order = metrics_time_order(m, r), n = 0;

	for (uint32_t at = 0; at < m->n; at++) {
		uint32_t i = order ? order[at] : at;

		if (metrics_is_success(&r->row[m->row[i]]))
			out[n++] = i;
	}
	free(order);
	return n;
}

static bool has_tokens(const struct metrics *m)
{
	return !m->opts.is_pooling && m->opts.has_tokenizer;
}

/* A latency of element i; false: it has none. */
static bool value_of(const struct metrics *m, enum metrics_settled_value k, uint32_t i, double *out)
{
	switch (k) {
	case METRICS_SETTLED_TTFT:
		*out = m->ttft[i];
		return has_tokens(m);
	case METRICS_SETTLED_TPOT:
		*out = metrics_tpot(m, i);
		return has_tokens(m) && m->output_len[i] > 1;
	default:
		*out = m->latency[i];
		return true;
	}
}

/* How many elements the warm-up of one latency has, counted from the first or the last one. */
static uint32_t warm_up(const struct metrics *m, const uint32_t *element, uint32_t n,
			enum metrics_settled_value k, bool is_backwards, double *v, uint32_t *from)
{
	size_t count = 0, cut;

	for (uint32_t at = 0; at < n; at++)
		if (value_of(m, k, element[is_backwards ? n - 1 - at : at], &v[count]))
			from[count++] = at;
	cut = settled_warm_up(v, count);
	return cut ? from[cut] : 0;
}

static void cut(struct metrics *m, const uint32_t *element, uint32_t n)
{
	static const enum metrics_settled_value looked_at[] = {
		METRICS_SETTLED_TTFT, METRICS_SETTLED_TPOT, METRICS_SETTLED_E2EL,
	};
	struct metrics_settled *s = &m->settled;
	uint32_t *from = mem_array(n, sizeof(*from)), left_out[2] = { 0 };
	double *v = mem_array((size_t)n + 1, sizeof(*v)); /* one may be tried beyond the last */

	for (size_t k = 0; k < sizeof(looked_at) / sizeof(*looked_at); k++)
		for (int end = 0; end < 2; end++) {
			uint32_t more = warm_up(m, element, n, looked_at[k], end, v, from);

			left_out[end] = more > left_out[end] ? more : left_out[end];
		}
	s->left_out_start = left_out[0];
	s->left_out_end = left_out[0] + left_out[1] < n ? left_out[1] : 0;
	s->n = n - s->left_out_start - s->left_out_end;
	free(from);
	free(v);
}

static struct settled_mean scaled(struct settled_mean v, double factor)
{
	v.mean *= factor;
	v.low *= factor;
	v.high *= factor;
	return v;
}

/* element: the kept ones. */
static void latencies(struct metrics *m, const uint32_t *element, uint32_t n)
{
	double *v = mem_array((size_t)n + 1, sizeof(*v)), *gaps = mem_array(n, sizeof(*gaps));
	size_t count;

	for (enum metrics_settled_value k = 0; k <= METRICS_SETTLED_E2EL; k++) {
		if (k == METRICS_SETTLED_ITL)
			continue;
		count = 0;
		for (uint32_t at = 0; at < n; at++)
			count += value_of(m, k, element[at], &v[count]);
		m->settled.mean[k] = scaled(settled_mean(v, NULL, count, PERCENTILE_LEVEL), 1000);
	}
	/* Each gap counts alike, but those of one answer are not independent. */
	count = 0;
	for (uint32_t at = 0; at < n && has_tokens(m); at++) {
		size_t first = m->itl_at[element[at]], end = m->itl_at[element[at] + 1];

		v[count] = stats_sum(m->itl + first, end - first);
		gaps[count++] = (double)(end - first);
	}
	m->settled.mean[METRICS_SETTLED_ITL] =
		scaled(settled_mean(v, gaps, count, PERCENTILE_LEVEL), 1000);
	free(v);
	free(gaps);
}

struct stretch { double from, to; size_t bins; };

/*
 * Spreads an amount evenly between two instants. Events at regular times would otherwise beat with
 * the bins, and the beat would look like a drift.
 */
static void spread(double *bin, const struct stretch *s, double from, double to, double amount)
{
	double per_s = (double)s->bins / (s->to - s->from), bins = (double)s->bins;
	double a = (from - s->from) * per_s, b = (to - s->from) * per_s, length = b - a;

	if (b < 0 || a >= bins)
		return;
	if (length <= 0) {
		bin[(size_t)a] += amount;
		return;
	}
	b = fmin(b, bins);
	for (a = fmax(a, 0); a < b; a = floor(a) + 1)
		bin[(size_t)a] += amount * (fmin(b, floor(a) + 1) - a) / length;
}

/* sorted: the ends of requests. Each came in the time since the one before. */
static void add_ends(const double *sorted, size_t n, const struct stretch *s, double *bin)
{
	for (size_t i = 0; i < n; i++)
		spread(bin, s, sorted[i ? i - 1 : 0], sorted[i], 1);
}

static void add_tokens(const struct metrics *m, uint32_t i, const struct stretch *s, double *bin)
{
	double at = m->start_time[i] + m->ttft[i];
	double each = (double)m->output_len[i] / (double)(m->itl_at[i + 1] - m->itl_at[i] + 1);

	spread(bin, s, at, at, each);
	for (size_t k = m->itl_at[i]; k < m->itl_at[i + 1]; k++) {
		spread(bin, s, at, at + m->itl[k], each);
		at += m->itl[k];
	}
}

/* The rate from amounts in bins in which this many requests ended. */
static struct settled_mean rate(const double *bin, const struct stretch *s, size_t requests)
{
	double per_bin = (double)requests / (double)s->bins;
	struct settled_mean v = settled_mean(bin, NULL, s->bins, PERCENTILE_LEVEL);

	v.n = requests;
	v.effective *= per_bin;
	v.needed = (size_t)ceil((double)v.needed * per_bin);
	return scaled(v, (double)s->bins / (s->to - s->from));
}

/* element: all n successes, of which the kept ones are consecutive. */
static void rates(struct metrics *m, const uint32_t *element, uint32_t n)
{
	const struct metrics_settled *kept = &m->settled;
	double first = m->start_time[element[0]], fill = m->block[BLOCK_E2EL].median_ms / 1000;
	struct stretch s = {
		fmax(m->start_time[element[kept->left_out_start]], first + fill),
		m->start_time[element[kept->left_out_start + kept->n - 1]], 0,
	};
	double *end = mem_array(n, sizeof(*end)), *ended, *tokens;
	size_t requests = 0;

	for (uint32_t at = 0; at < n; at++) {
		end[at] = m->start_time[element[at]] + m->latency[element[at]];
		requests += end[at] >= s.from && end[at] < s.to;
	}
	s.bins = requests / REQUESTS_PER_BIN;
	if (s.bins == 0) {
		free(end);
		return;
	}
	if (s.bins > BINS_MAX)
		s.bins = BINS_MAX;
	ended = mem_array(s.bins, sizeof(*ended));
	tokens = mem_array(s.bins, sizeof(*tokens));
	stats_sort(end, n);
	add_ends(end, n, &s, ended);
	for (uint32_t at = 0; at < n && has_tokens(m); at++)
		add_tokens(m, element[at], &s, tokens);
	m->settled.mean[METRICS_SETTLED_REQUESTS] = rate(ended, &s, requests);
	if (has_tokens(m))
		m->settled.mean[METRICS_SETTLED_OUTPUT] = rate(tokens, &s, requests);
	free(end);
	free(ended);
	free(tokens);
}

void metrics_settled(struct metrics *m, const struct record *r)
{
	struct metrics_settled *s = &m->settled;
	uint32_t *element = mem_array(m->n, sizeof(*element)), n = successes(m, r, element);
	double first, last;

	s->is_reported = n > 0;
	for (int k = 0; k < METRICS_SETTLED_COUNT; k++)
		s->mean[k].low = s->mean[k].high = NAN;
	if (!n)
		goto done;
	first = m->start_time[element[0]];
	last = m->start_time[element[n - 1]];
	s->n = n;
	s->end_s = last - first;
	s->is_burst = last - first <= m->block[BLOCK_E2EL].median_ms / 1000;
	if (s->is_burst)
		goto done;
	cut(m, element, n);
	s->start_s = m->start_time[element[s->left_out_start]] - first;
	s->end_s = m->start_time[element[s->left_out_start + s->n - 1]] - first;
	latencies(m, element + s->left_out_start, s->n);
	rates(m, element, n);
done:
	free(element);
}
