/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - arrays, totals, rates and the six blocks; see metrics.h.
 *
 * The order of every floating-point operation is upstream's, so that a result
 * can be checked to the last bit.
 */
#include "metrics/metrics.h"

#include <stdlib.h>

#include "base/mem.h"
#include "metrics/parts.h"
#include "stats/stats.h"

#define MS 1000.0

const char *metric_block_key(enum metric_block block)
{
#define X(name, key) key,
	static const char *const keys[] = { METRIC_BLOCKS(X) };
#undef X

	return keys[block];
}

unsigned metric_block_bit(struct str key)
{
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		if (str_is(key, metric_block_key(b)))
			return BLOCK_BIT(b);
	return 0;
}

char *metrics_percentile_name(char out[FMT_F64_BYTES], double p)
{
	if (p == (double)(int64_t)p)
		snprintf(out, FMT_F64_BYTES, "%lld", (long long)p);
	else
		fmt_f64(out, p);
	return out;
}

struct metrics_spread metrics_spread(double *seconds, size_t n)
{
	struct metrics_spread s = { .n = n };

	if (n == 0)
		return s;
	s.mean_ms = stats_mean(seconds, n) * MS;
	stats_sort(seconds, n);
	s.p50_ms = stats_percentile(seconds, n, 50) * MS;
	s.p99_ms = stats_percentile(seconds, n, 99) * MS;
	s.max_ms = seconds[n - 1] * MS;
	return s;
}

struct metrics_stats metrics_stats(double *v, size_t n)
{
	struct metrics_stats s = { .n = n };

	if (n == 0)
		return s;
	s.mean = stats_mean(v, n);
	stats_sort(v, n);
	s.p50 = stats_percentile(v, n, 50);
	s.p99 = stats_percentile(v, n, 99);
	s.max = v[n - 1];
	return s;
}

/* ---- arrays ---- */

static void pick_rows(struct metrics *m, const struct record *r)
{
	size_t events = 0;

	m->row = mem_array(r->n_rows, sizeof(*m->row));
	for (uint32_t i = 0; i < r->n_rows; i++) {
		if (r->row[i].phase != PHASE_MAIN || r->row[i].state == REQ_UNSENT)
			continue;
		m->row[m->n++] = i;
		events += r->row[i].n_events;
	}
	m->input_len = mem_array(m->n, sizeof(*m->input_len));
	m->output_len = mem_array(m->n, sizeof(*m->output_len));
	m->ttft = mem_array(m->n, sizeof(*m->ttft));
	m->latency = mem_array(m->n, sizeof(*m->latency));
	m->start_time = mem_array(m->n, sizeof(*m->start_time));
	m->queue_time = mem_array(m->n, sizeof(*m->queue_time));
	m->itl_at = mem_array((size_t)m->n + 1, sizeof(*m->itl_at));
	m->itl = mem_array(events, sizeof(*m->itl));
}

/* Tokens of a success: the server's count, else ours, else one. */
static int64_t output_len(const struct request_row *row)
{
	if (row->output_tokens == 0 && !(row->flags & ROW_COUNTED))
		return 1;
	return row->output_tokens;
}

static void fill_row(struct metrics *m, uint32_t i, const struct request_row *row)
{
	bool is_success = metrics_is_success(row);
	int64_t end = metrics_end_ns(row);

	m->input_len[i] = m->opts.is_prompt_from_sample && !m->opts.is_pooling ?
			  row->sample_prompt_tokens : row->prompt_tokens;
	if (m->opts.is_pooling && !is_success)
		m->input_len[i] = 0;
	m->output_len[i] = is_success && !m->opts.is_pooling ? output_len(row) : 0;
	if (!row->sent_ns)
		return;
	m->start_time[i] = metrics_instant(row->sent_ns);
	if (row->due_ns)
		m->queue_time[i] = metrics_seconds(row->sent_ns - row->due_ns);
	if (row->first_event_ns)
		m->ttft[i] = metrics_seconds(row->first_event_ns - row->sent_ns);
	/* A failed stream has no latency; a failed pooling request whose body came has one. */
	if (end && (is_success || row->flags & ROW_IS_POOLING))
		m->latency[i] = metrics_seconds(end - row->sent_ns);
}

static void fill_arrays(struct metrics *m, const struct record *r)
{
	int64_t *gaps = NULL;
	size_t cap = 0, at = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		fill_row(m, i, row);
		if (row->n_events > cap) {
			cap = row->n_events;
			gaps = mem_grow(gaps, cap, sizeof(*gaps));
		}
		if (row->n_events > 1) {
			record_gaps(r, row, gaps);
			for (uint32_t k = 1; k < row->n_events; k++)
				m->itl[at++] = metrics_seconds(gaps[k]);
		}
		m->itl_at[i + 1] = at;
	}
	free(gaps);
}

/* ---- totals and rates ---- */

static double tpot_of(const struct metrics *m, uint32_t i)
{
	if (m->output_len[i] <= 1)
		return 0;
	return (m->latency[i] - m->ttft[i]) / (double)(m->output_len[i] - 1);
}

/* One token or none by our own count, but several events with something in them: who knows. */
static bool is_tpot_known(const struct metrics *m, uint32_t i, const struct request_row *row)
{
	return m->output_len[i] > 1 || !(row->flags & (ROW_COUNTED | ROW_COUNT_UNKNOWN)) ||
	       row->n_answer + row->n_reasoning + row->n_other <= 1;
}

bool metrics_is_good(const struct metrics *m, uint32_t i, const struct request_row *row)
{
	for (size_t k = 0; k < m->opts.n_goodput; k++) {
		const struct metrics_goodput *g = &m->opts.goodput[k];
		double value = g->block == BLOCK_TTFT ? m->ttft[i]
			       : g->block == BLOCK_TPOT ? tpot_of(m, i) : m->latency[i];

		if (value > g->limit_ms / MS)
			return false;
		if (g->block == BLOCK_TPOT && !is_tpot_known(m, i, row))
			return false;
	}
	return true;
}

static double rate(double amount, double duration_s)
{
	return duration_s > 0 ? amount / duration_s : 0;
}

static void fill_totals(struct metrics *m, const struct record *r)
{
	double audio_s = 0, d;
	uint32_t good = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (!metrics_is_success(row)) {
			m->failed += row->state == REQ_FAILED;
			m->given_up += (row->flags & ROW_GIVEN_UP) != 0;
			m->cancelled += row->state != REQ_FAILED &&
					!(row->flags & ROW_GIVEN_UP);
			continue;
		}
		m->completed++;
		m->total_input += m->input_len[i];
		m->total_output += m->output_len[i];
		m->total_cached += row->cached_tokens;
		m->total_sequences += row->sequences;
		audio_s += (double)row->audio_s;
		good += metrics_is_good(m, i, row);
	}
	m->duration_s = d = metrics_seconds(r->stop_ns - r->start_ns);
	m->request_throughput = rate(m->completed, d);
	m->request_goodput = m->opts.n_goodput ? rate(good, d) : 0;
	m->input_throughput = rate((double)m->total_input, d);
	m->output_throughput = rate((double)m->total_output, d);
	m->total_token_throughput = rate((double)(m->total_input + m->total_output), d);
	m->sequence_throughput = rate((double)m->total_sequences, d);
	m->rtfx = rate(audio_s, d);
}

/* ---- blocks ---- */

/* How many values a block of some elements has at most. */
static size_t values_max(const struct metrics *m, const uint32_t *element, uint32_t n,
			 enum metric_block block)
{
	size_t sum = 0;

	if (block != BLOCK_ITL)
		return n;
	if (!element)
		return m->itl_at[m->n];
	for (uint32_t k = 0; k < n; k++)
		sum += m->itl_at[element[k] + 1] - m->itl_at[element[k]];
	return sum;
}

/* The values of a block over the successes among the elements, in their order. */
static double *block_values(const struct metrics *m, const struct record *r,
			    const uint32_t *element, uint32_t n_elements,
			    enum metric_block block, size_t *n)
{
	double *v = mem_array(values_max(m, element, n_elements, block), sizeof(*v));

	*n = 0;
	for (uint32_t at = 0; at < n_elements; at++) {
		uint32_t i = element ? element[at] : at;

		if (!metrics_is_success(&r->row[m->row[i]]))
			continue;
		switch (block) {
		case BLOCK_TTFT:
			v[(*n)++] = m->ttft[i];
			break;
		case BLOCK_TPOT:
			if (m->output_len[i] > 1)
				v[(*n)++] = tpot_of(m, i);
			break;
		case BLOCK_ITL:
			for (size_t k = m->itl_at[i]; k < m->itl_at[i + 1]; k++)
				v[(*n)++] = m->itl[k];
			break;
		case BLOCK_E2EL:
			v[(*n)++] = m->latency[i];
			break;
		case BLOCK_QUEUE_TIME:
			v[(*n)++] = m->queue_time[i];
			break;
		default:
			v[(*n)++] = m->latency[i] + m->queue_time[i];
			break;
		}
	}
	return v;
}

static bool is_defined(const struct metrics_opts *o, enum metric_block block)
{
	switch (block) {
	case BLOCK_E2EL:
		return true;
	case BLOCK_QUEUE_TIME:
		return o->max_concurrency > 0;
	case BLOCK_E2EL_WITH_QUEUE:
		return o->max_concurrency > 0 && o->is_rate_finite;
	default:
		return !o->is_pooling && o->has_tokenizer;
	}
}

struct begun { double start_time; uint32_t element; };

static int by_start(const void *a, const void *b)
{
	const struct begun *x = a, *y = b;
	int by_time = (x->start_time > y->start_time) - (x->start_time < y->start_time);

	return by_time ? by_time : (x->element > y->element) - (x->element < y->element);
}

/* The elements by their start, NULL: they are in that order. For free(). */
static uint32_t *time_order(const struct metrics *m)
{
	struct begun *begun;
	uint32_t *order, i = 1;

	while (i < m->n && m->start_time[i - 1] <= m->start_time[i])
		i++;
	if (i >= m->n)
		return NULL;
	begun = mem_array(m->n, sizeof(*begun));
	order = mem_array(m->n, sizeof(*order));
	for (i = 0; i < m->n; i++)
		begun[i] = (struct begun){ m->start_time[i], i };
	qsort(begun, m->n, sizeof(*begun), by_start);
	for (i = 0; i < m->n; i++)
		order[i] = begun[i].element;
	free(begun);
	return order;
}

/* How far a block's percentiles can be trusted; 0 and 100 have no interval. */
static struct percentile *bounds_of(const struct metrics *m, const struct record *r,
				    enum metric_block b, const double *sorted)
{
	struct percentile *out = mem_array(m->opts.n_percentiles, sizeof(*out));
	uint32_t *order = time_order(m);
	size_t n;
	double *in_time = block_values(m, r, order, m->n, b, &n);

	for (size_t k = 0; k < m->opts.n_percentiles; k++) {
		double p = m->opts.percentile[k];

		if (p > 0 && p < 100)
			out[k] = percentile_bounds(in_time, sorted, n, p, PERCENTILE_LEVEL);
	}
	free(order);
	free(in_time);
	return out;
}

void metrics_summarize(const struct metrics *m, const struct record *r, const uint32_t *element,
		       uint32_t n, enum metric_block b, struct metrics_summary *s)
{
	double *v = block_values(m, r, element, n, b, &s->n);

	s->is_reported = m->opts.selected & BLOCK_BIT(b) && is_defined(&m->opts, b);
	s->mean_ms = stats_mean(v, s->n) * MS;
	s->std_ms = stats_std(v, s->n) * MS;
	stats_sort(v, s->n);
	s->median_ms = stats_median(v, s->n) * MS;
	s->percentile_ms = mem_array(m->opts.n_percentiles, sizeof(*s->percentile_ms));
	for (size_t k = 0; k < m->opts.n_percentiles; k++)
		s->percentile_ms[k] = stats_percentile(v, s->n, m->opts.percentile[k]) * MS;
	s->bounds = !element && s->is_reported && s->n ? bounds_of(m, r, b, v) : NULL;
	free(v);
}

void metrics_score(struct metrics *m, const struct record *r, const struct metrics_opts *opts)
{
	struct metrics_tokens tokens;
	double *percentile;

	*m = (struct metrics){ .opts = *opts };
	percentile = arena_alloc(&m->arena, opts->n_percentiles * sizeof(*percentile));
	for (size_t i = 0; i < opts->n_percentiles; i++)
		percentile[i] = opts->percentile[i];
	m->opts.percentile = percentile;
	pick_rows(m, r);
	fill_arrays(m, r);
	fill_totals(m, r);
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		metrics_summarize(m, r, NULL, m->n, b, &m->block[b]);
	if (!opts->is_pooling)
		metrics_peaks(m, r);
	metrics_probe(m, r);
	metrics_engine(m, r);
	metrics_steady(m, r);
	metrics_urls(m, r);
	metrics_sessions(m, r);
	metrics_classes(m, r);
	metrics_client(m, r);
	metrics_queue(m, r);
	metrics_correctness(m, r);
	metrics_failures(m, r);
	tokens = (struct metrics_tokens){ (double)m->total_input, (double)m->total_output };
	metrics_system(&m->system, r, &tokens, &m->arena);
}

void metrics_release(struct metrics *m)
{
	if (!m)
		return;
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		free(m->block[b].percentile_ms), free(m->block[b].bounds);
	free(m->row);
	free(m->input_len);
	free(m->output_len);
	free(m->ttft);
	free(m->latency);
	free(m->start_time);
	free(m->queue_time);
	free(m->itl);
	free(m->itl_at);
	free(m->url);
	metrics_sessions_release(&m->sessions);
	free(m->class);
	arena_release(&m->arena);
	*m = (struct metrics){ 0 };
}
