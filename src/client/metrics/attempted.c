/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attempted.c - latency over the requests that were attempted, so that a server does not look
 * faster for failing the slow ones.
 *
 * All that is known of a failed or cancelled request is that its latency is at least as long as it
 * ran. No assumption is made about how long it would have taken, because requests often fail for
 * being slow (the censoring depends on the value, which violates the assumption of Kaplan and Meier
 * 1958). So each percentile has a least and a largest possible value (Manski 2003): all such
 * requests ended when they were given up, or never.
 */
#include "client/metrics/metrics_internal.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"

static int64_t first_stamp(const struct request_row *row)
{
	return row->sent_ns ? row->sent_ns : row->connect_ns ? row->connect_ns : row->admitted_ns;
}

/* Something of it was done: a connection, or the request itself. */
static bool is_attempted(const struct request_row *row)
{
	return metrics_is_success(row) || row->state == REQ_FAILED || row->sent_ns ||
	       row->connect_ns;
}

/* How long the request ran; in a record that was cut off, until its last byte. */
static double ran_s(const struct request_row *row)
{
	int64_t begin = first_stamp(row), end = row->end_ns;

	if (!end)
		end = row->last_event_ns > row->first_byte_ns ? row->last_event_ns
							      : row->first_byte_ns;
	return begin && end > begin ? metrics_seconds(end - begin) : 0;
}

/* The value of rank h of n, where only the known ones are finite. */
static double highest(const double *known, size_t n_known, size_t n, double p)
{
	double part;
	size_t k = stats_rank(n, p, &part);

	if (k >= n_known || (part > 0 && k + 1 < n && k + 1 >= n_known))
		return INFINITY;
	return stats_between(known[k], known[k + 1 < n_known ? k + 1 : k], part);
}

/* known and all: at_least values of those known, and of every one. Both are sorted. */
static void percentiles(struct metrics *m, struct metrics_attempted_block *b, double *known,
			double *all)
{
	size_t n = (size_t)b->known + b->censored, count = m->opts.n_percentiles + 1;

	stats_sort(known, b->known);
	stats_sort(all, n);
	b->percentile = arena_alloc(&m->arena, count * sizeof(*b->percentile));
	for (size_t k = 0; k < count; k++) {
		double p = k ? m->opts.percentile[k - 1] : 50;

		b->percentile[k] = (struct metrics_attempted_percentile){
			p, stats_percentile(all, n, p) * 1000,
			n ? highest(known, b->known, n, p) * 1000 : 0,
		};
	}
}

static void block(struct metrics *m, const struct record *r, enum metric_block which,
		  struct metrics_attempted_block *b)
{
	double *known = mem_array(m->n, sizeof(*known)), *all = mem_array(m->n, sizeof(*all));

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		bool is_known = metrics_is_success(row) ||
				(which == BLOCK_TTFT && row->sent_ns && row->first_event_ns);
		double v;

		if (!is_attempted(row))
			continue;
		v = !is_known ? ran_s(row) : which == BLOCK_TTFT ? m->ttft[i] : m->latency[i];
		all[b->known + b->censored] = v;
		if (is_known)
			known[b->known++] = v;
		else
			b->censored++;
	}
	percentiles(m, b, known, all);
	free(known);
	free(all);
}

void metrics_attempted(struct metrics *m, const struct record *r)
{
	struct metrics_attempted *a = &m->attempted;
	uint32_t good = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		bool is_success = metrics_is_success(row);

		if (!is_attempted(row)) {
			a->unsent++;
			continue;
		}
		a->n++;
		a->succeeded += is_success;
		a->failed += row->state == REQ_FAILED;
		good += is_success && metrics_is_good(m, i, row);
		a->with_tpot += is_success && m->output_len[i] > 1;
		a->with_itl += is_success && m->itl_at[i + 1] > m->itl_at[i];
	}
	a->cancelled = a->n - a->succeeded - a->failed;
	a->good_share = m->opts.n_goodput && a->n ? (double)good / a->n : NAN;
	if (!m->opts.is_pooling)
		block(m, r, BLOCK_TTFT, &a->ttft);
	block(m, r, BLOCK_E2EL, &a->e2el);
}
