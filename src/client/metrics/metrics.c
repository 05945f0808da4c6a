/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - arrays, totals, rates and the six blocks, and counts per base URL, probe, constraint,
 * priority and second; see metrics.h.
 *
 * The order of every floating-point operation is upstream's, so that a result can be checked to the
 * last bit.
 */
#include "client/metrics/metrics_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/sketch.h"
#include "core/stats/stats.h"

#define MS 1000.0

const char *metric_block_key(enum metric_block block)
{
#define X(name, key) key,
	static const char *const keys[] = { METRIC_BLOCKS(X) };
#undef X

	return keys[block];
}

enum metric_block metric_block_find(struct str key)
{
	enum metric_block b = 0;

	while (b < BLOCK_COUNT && !str_is(key, metric_block_key(b)))
		b++;
	return b;
}

bool metrics_opts_add_goodput(struct metrics_opts *o, struct str name, double limit_ms)
{
	enum metric_block block = metric_block_find(name);
	size_t at = 0;

	if (str_is(name, "session_duration")) {
		o->session_limit_ms = limit_ms;
		return true;
	}
	if (block != BLOCK_TTFT && block != BLOCK_TPOT && block != BLOCK_E2EL)
		return false;
	while (at < o->n_goodput && o->goodput[at].block != block)
		at++;
	o->n_goodput += at == o->n_goodput;
	assert(o->n_goodput <= METRICS_GOODPUT_MAX);
	o->goodput[at] = (struct metrics_goodput){ block, limit_ms };
	return true;
}

char *metrics_percentile_name(char out[FMT_F64_BYTES], double p)
{
	if (p == (double)(int64_t)p)
		snprintf(out, FMT_F64_BYTES, "%lld", (long long)p);
	else
		fmt_f64(out, p);
	return out;
}

static int by_time(const void *a, const void *b)
{
	const struct metrics_moment *x = a, *y = b;
	int order = (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);

	return order ? order : (x->i > y->i) - (x->i < y->i);
}

void metrics_sort_moments(struct metrics_moment *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_time);
}

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void metrics_sort_ints(int64_t *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), by_value);
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
			       : g->block == BLOCK_TPOT ? metrics_tpot(m, i) : m->latency[i];

		if (value > g->limit_ms / MS)
			return false;
		if (g->block == BLOCK_TPOT && !is_tpot_known(m, i, row))
			return false;
	}
	return true;
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
		m->n_cached_known += (row->flags & ROW_HAS_CACHED) != 0;
		m->total_sequences += row->sequences;
		audio_s += (double)row->audio_s;
		good += metrics_is_good(m, i, row);
	}
	m->duration_s = d = metrics_seconds(r->stop_ns - r->start_ns);
	m->request_throughput = metrics_rate(m->completed, d);
	m->request_goodput = m->opts.n_goodput ? metrics_rate(good, d) : 0;
	m->input_throughput = metrics_rate((double)m->total_input, d);
	m->output_throughput = metrics_rate((double)m->total_output, d);
	m->total_token_throughput = metrics_rate((double)(m->total_input + m->total_output), d);
	m->sequence_throughput = metrics_rate((double)m->total_sequences, d);
	m->rtfx = metrics_rate(audio_s, d);
}

/* ---- blocks ---- */

/* Upper bound on the number of values of a block over some elements. */
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
				v[(*n)++] = metrics_tpot(m, i);
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

uint32_t *metrics_time_order(const struct metrics *m, const struct record *r)
{
	struct metrics_moment *begun;
	uint32_t *order, i = 1;

	while (i < m->n && m->start_time[i - 1] <= m->start_time[i])
		i++;
	if (i >= m->n)
		return NULL;
	begun = mem_array(m->n, sizeof(*begun));
	order = mem_array(m->n, sizeof(*order));
	for (i = 0; i < m->n; i++)
		begun[i] = (struct metrics_moment){ r->row[m->row[i]].sent_ns, i };
	metrics_sort_moments(begun, m->n);
	for (i = 0; i < m->n; i++)
		order[i] = begun[i].i;
	free(begun);
	return order;
}

/* How far a block's percentiles can be trusted; 0 and 100 have no interval. */
static struct percentile *bounds_of(const struct metrics *m, const struct record *r,
				    enum metric_block b, const double *sorted)
{
	struct percentile *out = mem_array(m->opts.n_percentiles + 1, sizeof(*out));
	uint32_t *order = metrics_time_order(m, r);
	size_t n;
	double *in_time = block_values(m, r, order, m->n, b, &n);

	for (size_t k = 0; k <= m->opts.n_percentiles; k++) {
		double p = k ? m->opts.percentile[k - 1] : 50;

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
	s->sketch = NULL;
	if (!element && s->n && b <= BLOCK_E2EL && is_defined(&m->opts, b)) {
		s->sketch = mem_array(SKETCH_QUANTILES, sizeof(*s->sketch));
		sketch_quantiles(v, s->n, s->sketch);
	}
	free(v);
}

/* ---- priorities: how requests of each fared, and what priorities cost a class ---- */

/* The distinct priorities in ascending order; to be freed. */
static int64_t *priorities_of(const struct metrics_class_request *v, size_t n, size_t *distinct)
{
	int64_t *all = mem_array(n, sizeof(*all));

	for (size_t i = 0; i < n; i++)
		all[i] = v[i].priority;
	metrics_sort_ints(all, n);
	*distinct = 0;
	for (size_t i = 0; i < n; i++)
		if (i == 0 || all[i] != all[*distinct - 1])
			all[(*distinct)++] = all[i];
	return all;
}

/* Statistics of a class's reported values; room holds n of them. */
static struct metrics_spread spread_of(const struct metrics_class_request *v, size_t n,
				       int64_t priority, size_t offset, double *room)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		double value;

		memcpy(&value, (const char *)&v[i] + offset, sizeof(value));
		if (v[i].priority == priority && v[i].is_completed && !isnan(value))
			room[k++] = value;
	}
	return metrics_spread(room, k);
}

static void fill(struct metrics_class *c, const struct metrics_class_request *v, size_t n,
		 double *room)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].priority != c->priority)
			continue;
		c->requests++;
		c->completed += v[i].is_completed;
		c->failed += v[i].is_failed;
	}
#define SPREAD(member) spread_of(v, n, c->priority,                                        \
				 offsetof(struct metrics_class_request, member), room)
	c->ttft = SPREAD(ttft_s);
	c->tpot = SPREAD(tpot_s);
	c->e2el = SPREAD(e2el_s);
	c->queue = SPREAD(queue_s);
#undef SPREAD
}

size_t metrics_class_split(const struct metrics_class_request *v, size_t n,
			   struct metrics_class out[METRICS_CLASSES_MAX])
{
	size_t distinct;
	int64_t *priority = priorities_of(v, n, &distinct);
	double *room = mem_array(n, sizeof(*room));

	for (size_t k = 0; k < distinct && distinct <= METRICS_CLASSES_MAX; k++) {
		out[k] = (struct metrics_class){ .priority = priority[k] };
		fill(&out[k], v, n, room);
	}
	free(room);
	free(priority);
	return distinct;
}

static double ratio(const struct metrics_spread *with, const struct metrics_spread *without)
{
	return with->n && without->n && without->p50_ms > 0 ? with->p50_ms / without->p50_ms : NAN;
}

struct metrics_class_cost metrics_class_cost(const struct metrics_class *with,
					     const struct metrics_class *without)
{
	return (struct metrics_class_cost){
		.ttft = ratio(&with->ttft, &without->ttft),
		.tpot = ratio(&with->tpot, &without->tpot),
		.e2el = ratio(&with->e2el, &without->e2el),
		.queue = ratio(&with->queue, &without->queue),
	};
}

void metrics_classes(struct metrics *m, const struct record *r)
{
	struct metrics_class_request *v = mem_array(m->n, sizeof(*v));
	struct metrics_class class[METRICS_CLASSES_MAX];
	bool has_tokens = !m->opts.is_pooling;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		double decode_s = m->latency[i] - m->ttft[i];

		v[i] = (struct metrics_class_request){
			.priority = row->priority, .is_completed = metrics_is_success(row),
			.is_failed = row->state == REQ_FAILED,
			.ttft_s = has_tokens ? m->ttft[i] : NAN,
			.tpot_s = has_tokens && m->output_len[i] > 1 ?
				  decode_s / (double)(m->output_len[i] - 1) : NAN,
			.e2el_s = m->latency[i], .queue_s = NAN, /* no API reports it per request */
		};
	}
	m->n_priorities = m->n ? metrics_class_split(v, m->n, class) : 0;
	if (m->n_priorities > 1 && m->n_priorities <= METRICS_CLASSES_MAX) {
		m->class = mem_array(m->n_priorities, sizeof(*m->class));
		memcpy(m->class, class, m->n_priorities * sizeof(*m->class));
	}
	free(v);
}

/* ---- the busiest second, and the most requests at once ---- */

struct peak_window {
	double from;     /* the earliest start of a success */
	size_t seconds;
};

static bool find_window(const struct metrics *m, const struct record *r, struct peak_window *w)
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

static void add_at(double *bucket, const struct peak_window *w, double t, double amount)
{
	double at = t - w->from;

	if (at > -1 && at < (double)w->seconds)
		bucket[(size_t)(at < 0 ? 0 : at)] += amount;
}

static void count_tokens(const struct metrics *m, uint32_t i, const struct peak_window *w,
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
static void count_running(const struct metrics *m, uint32_t i, const struct peak_window *w,
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
	struct peak_window w = { 0 };
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

static void metrics_peaks(struct metrics *m, const struct record *r)
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

/* ---- base URLs ---- */

static void metrics_urls(struct metrics *m, const struct record *r)
{
	for (uint32_t i = 0; i < m->n; i++) {
		size_t endpoint = r->row[m->row[i]].endpoint;

		m->n_urls = endpoint >= m->n_urls ? endpoint + 1 : m->n_urls;
	}
	m->url = mem_array(m->n_urls, sizeof(*m->url));
	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		struct metrics_url *u = &m->url[row->endpoint];

		if (!row->admitted_ns)
			continue;
		u->requests++;
		u->failed += row->state == REQ_FAILED;
		if (!metrics_is_success(row))
			continue;
		u->completed++;
		u->mean_ttft_ms += m->ttft[i];
	}
	for (size_t k = 0; k < m->n_urls; k++)
		if (m->url[k].completed)
			m->url[k].mean_ttft_ms *= 1000.0 / m->url[k].completed;
}

/* ---- probes (serve spec 4.9) ---- */

void metrics_probe(struct metrics *m, const struct record *r)
{
	double *latency = mem_array(r->n_rows, sizeof(*latency));
	size_t n = 0;

	for (uint32_t i = 0; i < r->n_rows; i++) {
		const struct request_row *row = &r->row[i];

		if (row->phase != PHASE_PROBE)
			continue;
		m->probe.failed += row->state == REQ_FAILED;
		if (metrics_is_success(row))
			latency[n++] = metrics_seconds(metrics_end_ns(row) - row->sent_ns);
	}
	stats_sort(latency, n);
	m->probe.completed = (uint32_t)n;
	m->probe.median_ms = stats_median(latency, n) * 1000;
	m->probe.p99_ms = stats_percentile(latency, n, 99) * 1000;
	m->probe.max_ms = n ? latency[n - 1] * 1000 : 0;
	free(latency);
}

/* ---- constraints ---- */

void metrics_correctness(struct metrics *m, const struct record *r)
{
	struct metrics_correctness *c = &m->correctness;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		unsigned bits = row->correctness, wrong = bits >> ROW_WRONG_SHIFT;
		bool is_reported = bits & ROW_CONSTRAINED, is_scored = bits & ROW_SCORED;
		bool is_correct = bits & ROW_CORRECT;

		c->n += (bits & ROW_HAS_CONSTRAINT) != 0;
		c->upstream_scored += (bits & ROW_UPSTREAM_SCORED) != 0;
		c->upstream_correct += (bits & ROW_UPSTREAM_CORRECT) != 0;
		if (!metrics_is_success(row))
			continue;
		c->constrained += is_reported;
		c->constrained_scored += is_reported && is_scored;
		c->constrained_correct += is_reported && is_correct;
		c->free_scored += !is_reported && is_scored;
		c->free_correct += !is_reported && is_correct;
		if (is_reported && wrong < WRONG_COUNT)
			c->wrong[wrong]++;
	}
}

/* ---- all of it ---- */

void metrics_score(struct metrics *m, const struct record *r, const struct metrics_opts *opts)
{
	struct metrics_tokens tokens;
	double *percentile;

	assert(opts->n_goodput <= METRICS_GOODPUT_MAX);
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
	metrics_settled(m, r);
	metrics_attempted(m, r);
	metrics_urls(m, r);
	metrics_sessions(m, r);
	metrics_classes(m, r);
	metrics_client(m, r);
	if (!opts->is_pooling)
		metrics_gaps(m, r);
	metrics_slots(m, r);
	metrics_queue(m, r);
	metrics_start(m, r);
	metrics_outage(m, r);
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
		free(m->block[b].percentile_ms), free(m->block[b].bounds), free(m->block[b].sketch);
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
