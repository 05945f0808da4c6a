/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_internal.h - the steps of metrics_score, in order. Private to metrics/. */
#pragma once
#include "client/metrics/metrics.h"

#define METRICS_SECONDS_MAX 10000000 /* longest run whose peaks are computed: 115 days */

static inline double metrics_seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* An instant since the epoch; dividing the whole ns would round them to 256 ns first. */
static inline double metrics_instant(int64_t ns)
{
	return (double)(ns / 1000000000) + (double)(ns % 1000000000) / 1e9;
}

static inline bool metrics_is_success(const struct request_row *row)
{
	return row->state == REQ_DONE;
}

/* When the answer ended for E2EL: the last token event, or the whole body (pooling). 0: never. */
static inline int64_t metrics_end_ns(const struct request_row *row)
{
	return row->last_event_ns;
}

static inline double metrics_rate(double amount, double duration_s)
{
	return duration_s > 0 ? amount / duration_s : 0;
}

static inline double metrics_share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* Sorts in ascending order; moments of the same time by their elements. */
struct metrics_moment { int64_t at_ns; uint32_t i; };
void metrics_sort_moments(struct metrics_moment *v, size_t n);
void metrics_sort_ints(int64_t *v, size_t n);

/* Sorts values and describes them; factor 1000 last. */
struct metrics_spread metrics_spread(double *seconds, size_t n);

/* As metrics_spread, in the values' own unit; sorts them. */
struct metrics_stats metrics_stats(double *values, size_t n);
/* Whether element i, a success, meets every objective. */
bool metrics_is_good(const struct metrics *m, uint32_t i, const struct request_row *row);
/*
 * Summarises a block over the successes among some elements (NULL: all n), in that order. The
 * caller frees its percentiles.
 */
void metrics_summarize(const struct metrics *m, const struct record *r, const uint32_t *element,
		       uint32_t n, enum metric_block b, struct metrics_summary *out);

/* TPOT of element i; 0 where it has at most one token. */
static inline double metrics_tpot(const struct metrics *m, uint32_t i)
{
	return m->output_len[i] > 1 ? (m->latency[i] - m->ttft[i]) / (double)(m->output_len[i] - 1)
				    : 0;
}
/* The elements in order of their start; NULL: they already are. For free(). */
uint32_t *metrics_time_order(const struct metrics *m, const struct record *r);

void metrics_probe(struct metrics *m, const struct record *r);
void metrics_engine(struct metrics *m, const struct record *r);
void metrics_steady(struct metrics *m, const struct record *r);
void metrics_slots(struct metrics *m, const struct record *r); /* after metrics_client, sessions */
void metrics_queue(struct metrics *m, const struct record *r); /* after metrics_client */
void metrics_start(struct metrics *m, const struct record *r);
void metrics_outage(struct metrics *m, const struct record *r);
void metrics_settled(struct metrics *m, const struct record *r);   /* after the blocks */
void metrics_attempted(struct metrics *m, const struct record *r); /* after the totals */
void metrics_sessions(struct metrics *m, const struct record *r); /* after the arrays */
void metrics_sessions_release(struct metrics_sessions *s);
void metrics_classes(struct metrics *m, const struct record *r);
void metrics_client(struct metrics *m, const struct record *r);
void metrics_gaps(struct metrics *m, const struct record *r);
/* Output tokens reported by the server, even if ignored; 0: not reported. */
uint32_t metrics_usage(const struct request_row *row);
void metrics_failures(struct metrics *m, const struct record *r);
void metrics_correctness(struct metrics *m, const struct record *r);
