/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.c - conversations, and requests by their place in them; see metrics.h. */
#include "client/metrics/metrics_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"

/* Elements by a key: those of key k are member[start[k]..start[k + 1]), in row order. */
struct groups { uint32_t n, *start, *member; };

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * For each element the index of its session among the existing ones, by ascending number; numbers
 * may have large gaps, in a part of a run or in a damaged file.
 */
static uint32_t *session_keys(const struct metrics *m, const struct record *r)
{
	uint32_t *key = mem_array(m->n, sizeof(*key)), *seen = mem_array(m->n, sizeof(*seen));
	size_t n = 0, distinct = 0;

	for (uint32_t i = 0; i < m->n; i++)
		if (r->row[m->row[i]].session != RECORD_NONE)
			seen[n++] = r->row[m->row[i]].session;
	if (n)
		qsort(seen, n, sizeof(*seen), by_number);
	for (size_t i = 0; i < n; i++)
		if (!distinct || seen[distinct - 1] != seen[i])
			seen[distinct++] = seen[i];
	for (uint32_t i = 0; i < m->n; i++) {
		const uint32_t *session = &r->row[m->row[i]].session;
		const uint32_t *at = *session == RECORD_NONE ? NULL :
			bsearch(session, seen, distinct, sizeof(*seen), by_number);

		key[i] = at ? (uint32_t)(at - seen) : RECORD_NONE;
	}
	free(seen);
	return key;
}

/* For each element that belongs to a session its turn. */
static uint32_t *turn_keys(const struct metrics *m, const struct record *r)
{
	uint32_t *key = mem_array(m->n, sizeof(*key));

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		key[i] = row->session == RECORD_NONE ? RECORD_NONE : row->turn;
	}
	return key;
}

/* Takes the keys of all elements, RECORD_NONE for those of no group. */
static struct groups group(const struct metrics *m, uint32_t *key)
{
	struct groups g = { 0 };

	for (uint32_t i = 0; i < m->n; i++)
		if (key[i] != RECORD_NONE && key[i] >= g.n)
			g.n = key[i] + 1;
	g.start = mem_array((size_t)g.n + 2, sizeof(*g.start));
	g.member = mem_array(m->n, sizeof(*g.member));
	/* Counted two places on and summed up, start[k + 1] is where the next one of key k goes. */
	for (uint32_t i = 0; i < m->n; i++)
		if (key[i] != RECORD_NONE)
			g.start[key[i] + 2]++;
	for (uint32_t k = 2; k < g.n + 2; k++)
		g.start[k] += g.start[k - 1];
	for (uint32_t i = 0; i < m->n; i++)
		if (key[i] != RECORD_NONE)
			g.member[g.start[key[i] + 1]++] = i;
	free(key);
	return g;
}

static void release(struct groups *g)
{
	free(g->start);
	free(g->member);
}

/* ---- by turn ---- */

static void sum_turn(struct metrics_turn *t, const struct metrics *m, const struct record *r,
		     const uint32_t *element)
{
	int64_t first = INT64_MAX, last = 0;
	double prompt = 0, sum = 0, *context = mem_array(t->n, sizeof(*context));
	double *cached = mem_array(t->n, sizeof(*cached));
	size_t n_cached = 0;

	for (uint32_t k = 0; k < t->n; k++) {
		const struct request_row *row = &r->row[m->row[element[k]]];

		if (row->sent_ns && row->sent_ns < first)
			first = row->sent_ns;
		if (row->end_ns > last)
			last = row->end_ns;
		t->failed += row->state == REQ_FAILED;
		if (!metrics_is_success(row))
			continue;
		context[t->completed++] = row->prompt_tokens;
		t->total_input += m->input_len[element[k]];
		t->total_output += m->output_len[element[k]];
		if (row->flags & ROW_HAS_CACHED) {
			cached[n_cached++] = row->cached_tokens;
			sum += row->cached_tokens;
			prompt += row->prompt_tokens;
		}
	}
	t->context = metrics_stats(context, t->completed);
	t->cached = metrics_stats(cached, n_cached);
	t->is_cache_known = n_cached > 0;
	t->cached_share = metrics_share(sum, prompt);
	t->cache_known_tokens = prompt;
	t->duration_s = last > first ? metrics_seconds(last - first) : 0;
	free(context);
	free(cached);
}

/* The turns `from` to `until` - 1; members of neighbouring keys are adjacent. */
static struct metrics_turn score_turn(const struct metrics *m, const struct record *r,
				      const struct groups *g, uint32_t from, uint32_t until)
{
	const uint32_t *element = g->member + g->start[from];
	struct metrics_turn t = { .turn = from, .last_turn = until - 1,
				  .n = g->start[until] - g->start[from] };

	sum_turn(&t, m, r, element);
	t.request_throughput = metrics_rate(t.completed, t.duration_s);
	t.input_throughput = metrics_rate((double)t.total_input, t.duration_s);
	t.output_throughput = metrics_rate((double)t.total_output, t.duration_s);
	t.total_token_throughput = metrics_rate((double)(t.total_input + t.total_output),
						t.duration_s);
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		metrics_summarize(m, r, element, t.n, b, &t.block[b]);
	return t;
}

static void score_ranges(struct metrics *m, const struct record *r, const struct groups *g)
{
	struct metrics_sessions *s = &m->sessions;
	uint32_t width = (g->n - 1 + METRICS_TURN_RANGES_MAX - 2) / (METRICS_TURN_RANGES_MAX - 1);

	s->by_range = mem_array(METRICS_TURN_RANGES_MAX, sizeof(*s->by_range));
	s->by_range[s->n_ranges++] = score_turn(m, r, g, 0, 1);
	for (uint32_t from = 1; from < g->n; from += width)
		s->by_range[s->n_ranges++] =
			score_turn(m, r, g, from, from + width < g->n ? from + width : g->n);
	assert(s->n_ranges <= METRICS_TURN_RANGES_MAX);
}

/*
 * A line through the turns' median TTFT from the second turn on, weighted by their n requests. The
 * variance of such a median is pi/2 times that of a mean, of n normal values. It is estimated from
 * the requests around their turn's mean and from the medians around the line, with n - 2 degrees of
 * freedom in all; if the medians alone say more, the line does not fit, and they count.
 */
static void fit_ttft(struct metrics_sessions *s)
{
	double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0, within = 0;
	double spread, slope, rest, variance;
	uint32_t turns = 0;

	for (size_t k = 1; k < s->n_turns; k++) {
		const struct metrics_summary *ttft = &s->by_turn[k].block[BLOCK_TTFT];
		double weight = s->by_turn[k].completed, turn = (double)k, ms = ttft->median_ms;

		if (!s->by_turn[k].completed)
			continue;
		turns++;
		n += weight;
		x += weight * turn;
		y += weight * ms;
		xx += weight * turn * turn;
		xy += weight * turn * ms;
		yy += weight * ms * ms;
		within += weight * ttft->std_ms * ttft->std_ms;
	}
	spread = n * xx - x * x;
	if (turns < 2 || spread <= 0)
		return;
	s->knows_growth = true;
	s->ttft_growth_per_turn_ms = slope = (n * xy - x * y) / spread;
	s->ttft_growth_error_ms = NAN;
	if (n <= 2)
		return;
	/* Weighted squares that the line leaves; rounding may make them negative. */
	rest = fmax(yy - y * y / n - slope * slope * spread / n, 0);
	variance = (M_PI / 2 * within + rest) / (n - 2);
	if (turns > 2)
		variance = fmax(variance, rest / (turns - 2));
	s->ttft_growth_error_ms = sqrt(variance * n / spread);
	s->is_growth_clear = fabs(slope) > student_quantile(0.975, n - 2) * s->ttft_growth_error_ms;
}

static void score_later_cache(struct metrics_sessions *s)
{
	double cached = 0, prompt = 0;

	for (size_t k = 1; k < s->n_turns; k++) {
		cached += s->by_turn[k].cached_share * s->by_turn[k].cache_known_tokens;
		prompt += s->by_turn[k].cache_known_tokens;
	}
	s->is_later_cache_known = prompt > 0;
	s->later_cached_share = metrics_share(cached, prompt);
}

static void score_turns(struct metrics *m, const struct record *r)
{
	struct metrics_sessions *s = &m->sessions;
	struct groups g = group(m, turn_keys(m, r));

	s->n_turns = g.n;
	s->by_turn = mem_array(g.n, sizeof(*s->by_turn));
	for (uint32_t k = 0; k < g.n; k++)
		s->by_turn[k] = score_turn(m, r, &g, k, k + 1);
	if (g.n > METRICS_TURN_RANGES_MAX)
		score_ranges(m, r, &g);
	fit_ttft(s);
	score_later_cache(s);
	release(&g);
}

/* ---- by session ---- */

struct session_span { int64_t from, to; };

static int by_start(const void *a, const void *b)
{
	const struct session_span *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Time during which at least one of the spans was active; they are sorted. */
static int64_t covered_ns(struct session_span *span, uint32_t n)
{
	int64_t sum = 0, until = INT64_MIN;

	qsort(span, n, sizeof(*span), by_start);
	for (uint32_t i = 0; i < n; i++) {
		int64_t from = span[i].from > until ? span[i].from : until;

		if (span[i].to <= from)
			continue;
		sum += span[i].to - from;
		until = span[i].to;
	}
	return sum;
}

/* Room for the lists collected over all sessions. */
struct lists {
	double *turns, *duration, *serving, *gap, *cached;
	size_t n_began, n_completed, n_cached;
	struct session_span *span;
	uint32_t good;
};

/* The outcome of one session's turns. */
struct session_outcome { uint32_t completed, failed, sent; bool is_good; double cached, prompt; };

static void count_turn(struct metrics *m, const struct record *r, uint32_t i,
		       struct session_outcome *o)
{
	const struct request_row *row = &r->row[m->row[i]];
	struct metrics_sessions *s = &m->sessions;
	bool is_failed = row->state == REQ_FAILED || row->flags & ROW_GIVEN_UP;

	o->sent += row->admitted_ns != 0;
	o->failed += is_failed;
	s->turns_failed += is_failed;
	s->turns_dropped += (row->flags & ROW_DROPPED) != 0;
	s->turns_unsent += !row->admitted_ns && !(row->flags & ROW_DROPPED);
	s->bad_calls += (row->flags & ROW_BAD_CALL) != 0;
	if (!metrics_is_success(row)) {
		o->is_good = false;
		return;
	}
	o->completed++;
	o->is_good = o->is_good && metrics_is_good(m, i, row);
	s->turns_completed++;
	s->client_counted += !(row->flags & ROW_HAS_USAGE);
	if (row->flags & ROW_HAS_CACHED) {
		o->cached += row->cached_tokens;
		o->prompt += row->prompt_tokens;
	}
}

/* For a session whose turns all succeeded: its duration, and whether it was good. */
static void time_session(const struct metrics *m, const struct record *r, const uint32_t *element,
			 uint32_t n, bool is_good, struct lists *l)
{
	int64_t first = INT64_MAX, last = 0, serving;
	double duration_s;

	for (uint32_t k = 0; k < n; k++) {
		const struct request_row *row = &r->row[m->row[element[k]]];

		l->span[k] = (struct session_span){ row->sent_ns, row->end_ns };
		first = row->sent_ns < first ? row->sent_ns : first;
		last = row->end_ns > last ? row->end_ns : last;
	}
	serving = covered_ns(l->span, n);
	duration_s = metrics_seconds(last - first);
	l->duration[l->n_completed] = duration_s;
	l->serving[l->n_completed] = metrics_seconds(serving);
	l->gap[l->n_completed] = metrics_seconds(last - first - serving);
	l->n_completed++;
	l->good += is_good && (!(m->opts.session_limit_ms > 0) ||
			       duration_s * 1000.0 <= m->opts.session_limit_ms);
}

static void score_session(struct metrics *m, const struct record *r, const uint32_t *element,
			  uint32_t n, struct lists *l, struct session_outcome *all)
{
	struct metrics_sessions *s = &m->sessions;
	struct session_outcome o = { .is_good = true };

	for (uint32_t k = 0; k < n; k++)
		o.sent += r->row[m->row[element[k]]].admitted_ns != 0;
	if (!o.sent)
		return; /* cancelled before it began */
	o.sent = 0;
	for (uint32_t k = 0; k < n; k++)
		count_turn(m, r, element[k], &o);
	s->n++;
	s->turns += n;
	l->turns[l->n_began++] = o.sent;
	if (o.prompt > 0)
		l->cached[l->n_cached++] = o.cached / o.prompt;
	all->cached += o.cached;
	all->prompt += o.prompt;
	if (o.completed == n) {
		s->completed++;
		time_session(m, r, element, n, o.is_good, l);
	} else if (o.failed) {
		s->failed++;
	} else {
		s->unfinished++;
	}
}

static void score_each(struct metrics *m, const struct record *r)
{
	struct metrics_sessions *s = &m->sessions;
	struct groups g = group(m, session_keys(m, r));
	struct session_outcome all = { 0 };
	struct lists l = {
		.turns = mem_array(g.n, sizeof(double)), .duration = mem_array(g.n, sizeof(double)),
		.serving = mem_array(g.n, sizeof(double)), .gap = mem_array(g.n, sizeof(double)),
		.cached = mem_array(g.n, sizeof(double)),
		.span = mem_array(m->n, sizeof(*l.span)),
	};

	for (uint32_t k = 0; k < g.n; k++)
		score_session(m, r, g.member + g.start[k], g.start[k + 1] - g.start[k], &l, &all);
	s->turns_per_session = metrics_stats(l.turns, l.n_began);
	s->duration = metrics_stats(l.duration, l.n_completed);
	s->serving = metrics_stats(l.serving, l.n_completed);
	s->gap = metrics_stats(l.gap, l.n_completed);
	s->cached_by_session = metrics_stats(l.cached, l.n_cached);
	s->is_cache_known = all.prompt > 0;
	s->cached_share = metrics_share(all.cached, all.prompt);
	s->throughput = metrics_rate(s->completed, m->duration_s);
	s->goodput = metrics_rate(l.good, m->duration_s);
	free(l.turns);
	free(l.duration);
	free(l.serving);
	free(l.gap);
	free(l.cached);
	free(l.span);
	release(&g);
}

static void score_ttft(struct metrics *m, const struct record *r)
{
	double *first = mem_array(m->n, sizeof(*first)), *later = mem_array(m->n, sizeof(*later));
	size_t n_first = 0, n_later = 0;

	for (uint32_t i = 0; i < m->n && !m->opts.is_pooling; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (row->session == RECORD_NONE || !metrics_is_success(row))
			continue;
		if (row->turn == 0)
			first[n_first++] = m->ttft[i];
		else
			later[n_later++] = m->ttft[i];
	}
	m->sessions.first_ttft = metrics_spread(first, n_first);
	m->sessions.later_ttft = metrics_spread(later, n_later);
	free(first);
	free(later);
}

/* ---- what a turn has of the one that it continues ---- */

static uint32_t reusable_tokens(const struct request_row *before)
{
	uint32_t tokens = before->prompt_tokens + before->output_tokens;

	return tokens / METRICS_BLOCK_TOKENS * METRICS_BLOCK_TOKENS;
}

/*
 * The line of least squares through TTFT over prompt tokens of the turns from the second on that
 * succeeded. First turns have no history: their whole prompt is new, however short it is.
 */
static void fit_context(struct metrics *m, const struct record *r)
{
	double n = 0, x_mean = 0, y_mean = 0, xx = 0, xy = 0, yy = 0, slope;

	m->sessions.context_slope_ms = m->sessions.context_slope_error_ms = NAN;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		double dx = row->prompt_tokens - x_mean, dy = m->ttft[i] - y_mean;

		if (row->session == RECORD_NONE || !row->turn || !metrics_is_success(row))
			continue;
		n++;
		x_mean += dx / n;
		y_mean += dy / n;
		xx += dx * (row->prompt_tokens - x_mean);
		xy += dx * (m->ttft[i] - y_mean);
		yy += dy * (m->ttft[i] - y_mean);
	}
	if (!(xx > 0))
		return;
	slope = xy / xx;
	m->sessions.context_slope_ms = slope * 1e6;
	if (n > 2) {
		m->sessions.context_slope_error_ms =
			sqrt(fmax(yy - slope * xy, 0) / (n - 2) / xx) * 1e6;
		m->sessions.context_margin_ms =
			student_quantile(0.975, n - 2) * m->sessions.context_slope_error_ms;
	}
}

static void score_history(struct metrics *m, const struct record *r)
{
	double *growth = mem_array(m->n, sizeof(*growth)), *lag = mem_array(m->n, sizeof(*lag));
	double reusable = 0, prompt = 0, reusable_known = 0, cached = 0;
	size_t n_growth = 0, n_lag = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]], *before;

		if (row->session == RECORD_NONE)
			continue;
		if (row->parent != RECORD_NONE && row->sent_ns && row->due_ns)
			lag[n_lag++] = metrics_seconds(row->sent_ns - row->due_ns);
		if (!metrics_is_success(row))
			continue;
		prompt += row->prompt_tokens;
		if (row->history == RECORD_NONE || !metrics_is_success(&r->row[row->history]))
			continue;
		before = &r->row[row->history];
		growth[n_growth++] = (double)row->prompt_tokens - (double)before->prompt_tokens;
		reusable += reusable_tokens(before);
		if (row->flags & ROW_HAS_CACHED) {
			reusable_known += reusable_tokens(before);
			cached += row->cached_tokens;
		}
	}
	fit_context(m, r);
	m->sessions.growth = metrics_stats(growth, n_growth);
	m->sessions.gap_lag = metrics_spread(lag, n_lag);
	m->sessions.reusable_share = metrics_share(reusable, prompt);
	m->sessions.reuse_efficiency = metrics_share(cached, reusable_known);
	free(growth);
	free(lag);
}

void metrics_sessions(struct metrics *m, const struct record *r)
{
	bool has_any = false;

	for (uint32_t i = 0; i < m->n && !has_any; i++)
		has_any = r->row[m->row[i]].session != RECORD_NONE;
	if (!has_any)
		return;
	score_each(m, r);
	score_turns(m, r);
	score_ttft(m, r);
	score_history(m, r);
}

static void release_turns(struct metrics_turn *turn, size_t n)
{
	for (size_t k = 0; k < n; k++)
		for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
			free(turn[k].block[b].percentile_ms);
	free(turn);
}

void metrics_sessions_release(struct metrics_sessions *s)
{
	release_turns(s->by_turn, s->n_turns);
	release_turns(s->by_range, s->n_ranges);
}
