/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gaps.c - the cause of slow gaps between events: the server, delivery, or this client.
 *
 * The unit is an arrival: events that came together, the gap before them, when they were read. Its
 * events come within a twentieth of the mean gap (1 ms at most) of each other; those of one read
 * share a stamp. The typical gap is the median over the events of their arrival's gap / its events,
 * which batching does not change. An arrival is slow when its gap is above the larger of twice the
 * typical one and the typical one plus 1 ms; its cause is then
 *
 *   client     with user-space stamps: without the part that late reading added it is not slow; or
 *              its events shared a read for which the client came late, so that they have one stamp
 *              (the kernel's, of the last bytes) where each would have had its own
 *   delivery   its events came together although the client was prompt: minus one typical gap for
 *              each event but the first, it is not slow. They were held back and passed on
 *              together, by the server's writes, a proxy, interrupts or a lost segment
 *   server     all else
 *
 * An arrival with no more events than promptly read arrivals usually have is not the client's
 * fault. Whether the client came late is judged over all reads of its loop, because one late read
 * proves nothing: bytes that waited for a lost segment have old stamps, yet the loop read other
 * streams promptly meanwhile; and after a stopped client resumes, the last bytes of some stream
 * have just arrived while the other streams' are old.
 */
#include "client/metrics/metrics_internal.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"

#define TOGETHER_SHARE 0.05     /* of the mean gap: events that are closer came together */
#define TOGETHER_NS_MAX 1000000
#define SIZES_MAX 256           /* events of an arrival that are distinguished */

/* Marks of the elements of the ITL array. */
enum { SLOW_CAUSE = 7, SLOW_FOLLOWS = 8 }; /* cause + 1 on the first of an arrival, 8 on the rest */

struct walk {
	struct metrics *m;
	const struct record *r;
	int64_t *gap, *skew; /* of one row */
	uint32_t *tokens;
	uint8_t *shared;     /* enum record_shared of each event; 0: it has a stamp of its own */
	int64_t together_ns, limit_ns, late_ns;
	double typical_ns;
	uint32_t usual;      /* events of an arrival that was read promptly: the median */
	uint8_t *mark;       /* for each element of m->itl */
};

/* An arrival: events first to first + n - 1. */
struct arrival {
	uint32_t first, n;
	int64_t gap_ns;      /* from the event before to its last event */
	int64_t at_ns;       /* its first event */
	uint32_t read;       /* its last event with the stamp of a read that it shares; 0: none */
};

/* A read of a loop, and an arrival whose cause depends on others' reads. */
struct gap_read { int64_t at_ns; uint32_t shard; bool is_late; };
struct gap_doubt { size_t element; int64_t stamp_ns, read_ns; uint32_t shard, n; };
struct doubts { struct gap_doubt *v; size_t n, room; };

static bool is_walked(const struct request_row *row)
{
	return metrics_is_success(row) && row->n_events > 1;
}

/* Every read's lateness is known. */
static bool knows_reads(const struct request_row *row)
{
	return row->skew_head && !(row->flags & ROW_USER_STAMPS);
}

static void load_row(struct walk *w, const struct request_row *row)
{
	const struct record_mark *mark = NULL;

	record_gaps(w->r, row, w->gap);
	if (knows_reads(row))
		record_skews(w->r, row, w->skew);
	for (uint32_t k = 0; k < row->n_events; k++) {
		w->tokens[k] = 1;
		w->shared[k] = 0;
	}
	while ((mark = record_marks(w->r, row, mark))) {
		if (mark->event >= row->n_events)
			continue;
		if (mark->kind == MARK_SHARED)
			w->shared[mark->event] = mark->value == SHARED_SEGMENT ? SHARED_SEGMENT
									       : SHARED_READ;
		else if (mark->kind == MARK_EMPTY)
			w->tokens[mark->event] = 0;
		else if (mark->kind == MARK_TOKENS)
			w->tokens[mark->event] = mark->value;
	}
}

/* The arrival that begins with event first; at_ns is that event's. */
static struct arrival arrival_at(const struct walk *w, const struct request_row *row,
				 uint32_t first, int64_t at_ns)
{
	struct arrival a = { .first = first, .n = 1, .gap_ns = w->gap[first], .at_ns = at_ns,
			     .read = w->shared[first] == SHARED_READ ? first : 0 };

	while (first + a.n < row->n_events && w->gap[first + a.n] <= w->together_ns) {
		a.gap_ns += w->gap[first + a.n];
		if (w->shared[first + a.n] == SHARED_READ)
			a.read = first + a.n;
		a.n++;
	}
	return a;
}

/* ---- the three ITLs, and what is typical ---- */

/* A gap for each of so many tokens. */
struct token_gap { double s, tokens; };

static int by_gap(const void *a, const void *b)
{
	const struct token_gap *x = a, *y = b;

	return (x->s > y->s) - (x->s < y->s);
}

/* The least gap that p percent of the tokens do not pass. */
static double token_percentile(const struct token_gap *v, size_t n, double all, double p)
{
	double sum = 0;
	size_t i = 0;

	for (; i + 1 < n; i++) {
		sum += v[i].tokens;
		if (sum >= all * p / 100)
			break;
	}
	return v[i].s * 1000;
}

/* is_one: each event has one token, so that it is the spread of gaps like any other. */
static struct metrics_spread token_spread(struct token_gap *v, size_t n, bool is_one)
{
	struct metrics_spread s = { 0 };
	double sum = 0, all = 0, *gaps;

	if (is_one || n == 0) {
		gaps = mem_array(n, sizeof(*gaps));
		for (size_t i = 0; i < n; i++)
			gaps[i] = v[i].s;
		s = metrics_spread(gaps, n);
		free(gaps);
		return s;
	}
	for (size_t i = 0; i < n; i++) {
		sum += v[i].s * v[i].tokens;
		all += v[i].tokens;
	}
	qsort(v, n, sizeof(*v), by_gap);
	s.n = (size_t)llround(all);
	s.mean_ms = sum / all * 1000;
	s.p50_ms = token_percentile(v, n, all, 50);
	s.p99_ms = token_percentile(v, n, all, 99);
	s.max_ms = v[n - 1].s * 1000;
	return s;
}

struct itls {
	double *event, *segment;
	struct token_gap *token;
	size_t n, n_segments, n_tokens;
	bool is_one;         /* each event with tokens has one */
};

/* Tokens that only usage reports are distributed over the events in proportion. */
static double token_scale(const struct walk *w, const struct request_row *row)
{
	uint64_t known = 0, empty = 0, usage = metrics_usage(row);

	for (uint32_t k = 0; k < row->n_events; k++) {
		known += w->tokens[k];
		empty += w->tokens[k] == 0;
	}
	return known && usage > known + empty ? (double)usage / (double)known : 1;
}

static void add_itls(struct walk *w, const struct request_row *row, struct itls *v)
{
	double scale = token_scale(w, row);
	bool has_token = w->tokens[0] > 0;
	int64_t carried = 0;

	for (uint32_t k = 1; k < row->n_events; k++) {
		v->event[v->n++] = metrics_seconds(w->gap[k]);
		if (w->gap[k] > 0)
			v->segment[v->n_segments++] = metrics_seconds(w->gap[k]);
		carried += w->gap[k];
		if (w->tokens[k] == 0)
			continue;
		if (has_token) {
			double tokens = w->tokens[k] * scale;

			v->token[v->n_tokens++] = (struct token_gap){
				metrics_seconds(carried) / tokens, tokens };
			v->is_one &= tokens == 1;
		}
		has_token = true;
		carried = 0;
	}
}

/* The median over events of their arrival's gap / its events; pace: room for one of each. */
static double median_pace(struct walk *w, double *pace)
{
	const struct metrics *m = w->m;
	struct arrival a;
	size_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &w->r->row[m->row[i]];

		if (!is_walked(row))
			continue;
		load_row(w, row);
		for (uint32_t k = 1; k < row->n_events; k += a.n) {
			a = arrival_at(w, row, k, 0);
			for (uint32_t e = 0; e < a.n; e++)
				pace[n++] = (double)a.gap_ns / a.n;
		}
	}
	stats_sort(pace, n);
	return stats_median(pace, n);
}

/* Fills event, token and segment ITL, then the typical gap and the slow limit. */
static void describe(struct walk *w)
{
	struct metrics *m = w->m;
	size_t all = m->itl_at[m->n];
	struct itls v = { .event = mem_array(all, sizeof(double)),
			  .segment = mem_array(all, sizeof(double)),
			  .token = mem_array(all, sizeof(*v.token)), .is_one = true };
	double mean;

	for (uint32_t i = 0; i < m->n; i++)
		if (is_walked(&w->r->row[m->row[i]])) {
			load_row(w, &w->r->row[m->row[i]]);
			add_itls(w, &w->r->row[m->row[i]], &v);
		}
	/* Most runs have no events that came together: one sorted array is all three then. */
	m->gaps.event = metrics_spread(v.event, v.n);
	m->gaps.segment = v.n_segments == v.n ? m->gaps.event :
			  metrics_spread(v.segment, v.n_segments);
	m->gaps.token = v.n_tokens == v.n && v.is_one ? m->gaps.event :
			token_spread(v.token, v.n_tokens, v.is_one);
	mean = m->gaps.event.mean_ms * 1e6;
	w->together_ns = (int64_t)fmin(mean * TOGETHER_SHARE, TOGETHER_NS_MAX);
	w->typical_ns = m->gaps.event.p50_ms * 1e6;
	if (v.n && v.event[0] * 1e9 <= (double)w->together_ns)
		w->typical_ns = median_pace(w, v.event);
	free(v.event);
	free(v.segment);
	free(v.token);
	m->gaps.typical_ms = w->typical_ns / 1e6;
	m->gaps.limit_ms = fmax(METRICS_SLOW_FACTOR * m->gaps.typical_ms,
				m->gaps.typical_ms + METRICS_SLOW_FLOOR_MS);
	w->limit_ns = (int64_t)(m->gaps.limit_ms * 1e6);
	w->late_ns = (int64_t)(fmax(METRICS_LATE_SHARE * m->gaps.typical_ms,
				    METRICS_LATE_FLOOR_MS) * 1e6);
}

/* How many events usually come together in prompt reads; 1 if no read is prompt. */
static void find_usual(struct walk *w)
{
	const struct metrics *m = w->m;
	uint64_t of_size[SIZES_MAX + 1] = { 0 }, n = 0, below = 0;
	struct arrival a;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &w->r->row[m->row[i]];

		if (!is_walked(row) || !knows_reads(row))
			continue;
		load_row(w, row);
		for (uint32_t k = 1; k < row->n_events; k += a.n) {
			a = arrival_at(w, row, k, 0);
			if (k + a.n == row->n_events || (a.read && w->skew[a.read] > w->late_ns))
				continue; /* the last arrival of an answer may be a part of one */
			of_size[a.n < SIZES_MAX ? a.n : SIZES_MAX]++;
			n++;
		}
	}
	w->usual = 1;
	for (uint32_t size = 1; n && size <= SIZES_MAX; size++) {
		w->usual = size;
		below += of_size[size];
		if (2 * below >= n)
			break;
	}
}

/* ---- causes ---- */

/* GAP_CAUSES: it depends on the other reads of the loop. */
static enum gap_cause cause_of(const struct walk *w, const struct request_row *row,
			       const struct arrival *a)
{
	bool is_last = a->first + a->n == row->n_events;
	/* Had the answer gone on, more would have come with its last events. */
	uint32_t n = is_last && a->n < w->usual ? w->usual : a->n;
	bool is_explained = (double)a->gap_ns - (n - 1) * w->typical_ns <= (double)w->limit_ns;
	int64_t moved;

	if (row->flags & ROW_USER_STAMPS)
		return GAP_UNKNOWN;
	if (w->m->opts.is_user_stamps && knows_reads(row)) {
		moved = w->skew[a->first] - w->skew[a->first - 1];
		if (moved > 0 && a->gap_ns - moved <= w->limit_ns)
			return GAP_CLIENT;
	}
	if (!is_explained || n == 1)
		return GAP_SERVER;
	if (!a->read)
		return GAP_DELIVERY; /* their stamps are true: their own, or that of one segment */
	return knows_reads(row) ? GAP_CAUSES : GAP_UNKNOWN;
}

static void doubt(struct doubts *d, const struct gap_doubt *one)
{
	d->v = mem_room(d->v, d->n, &d->room, sizeof(*d->v));
	d->v[d->n++] = *one;
}

static void find_slow(struct walk *w, uint32_t i, const struct request_row *row,
		      struct doubts *open)
{
	int64_t at = row->sent_ns + w->gap[0];
	struct arrival a;

	for (uint32_t k = 1; k < row->n_events; k += a.n) {
		size_t element = w->m->itl_at[i] + k - 1;
		enum gap_cause cause;

		at += w->gap[k];
		a = arrival_at(w, row, k, at);
		at += a.gap_ns - w->gap[k];
		w->m->gaps.n++;
		if (a.gap_ns <= w->limit_ns)
			continue;
		w->m->gaps.n_slow++;
		cause = cause_of(w, row, &a);
		w->mark[element] = (uint8_t)(cause + 1);
		for (uint32_t e = 1; e < a.n; e++)
			w->mark[element + e] = SLOW_FOLLOWS;
		if (cause == GAP_CAUSES) { /* the stamp of the shared read is its last event's */
			int64_t skew = w->skew[a.read], stamp = at;

			for (uint32_t e = a.first + a.n - 1; e > a.read; e--)
				stamp -= w->gap[e];
			if (w->m->opts.is_user_stamps)
				stamp -= skew;
			doubt(open, &(struct gap_doubt){ element, stamp, stamp + skew, row->shard,
							a.n });
		}
	}
}

static void add_reads(const struct walk *w, const struct request_row *row, struct gap_read *v,
		      size_t *n)
{
	int64_t at = row->sent_ns;

	for (uint32_t k = 0; k < row->n_events; k++) {
		at += w->gap[k];
		if (!w->shared[k])
			v[(*n)++] = (struct gap_read){
				w->m->opts.is_user_stamps ? at : at + w->skew[k], row->shard,
				w->skew[k] > w->late_ns };
	}
}

static int by_read(const void *a, const void *b)
{
	const struct gap_read *x = a, *y = b;

	if (x->shard != y->shard)
		return x->shard < y->shard ? -1 : 1;
	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* The first read of the loop at or after at_ns. */
static size_t first_read(const struct gap_read *v, size_t n, uint32_t shard, int64_t at_ns)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (v[mid].shard < shard || (v[mid].shard == shard && v[mid].at_ns < at_ns))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* More late than prompt reads from..to, the one at own_ns left out; ties: is_tied. */
static bool are_late(const struct gap_read *v, size_t n, const size_t *late,
		     const struct gap_doubt *d, int64_t from_ns, int64_t to_ns, bool is_tied)
{
	size_t first = first_read(v, n, d->shard, from_ns);
	size_t end = first_read(v, n, d->shard, to_ns + 1);
	size_t own = first_read(v, n, d->shard, d->read_ns);
	size_t n_late = late[end] - late[first], n_all = end - first;

	if (own >= first && own < end && v[own].at_ns == d->read_ns) {
		n_all--;
		n_late -= v[own].is_late;
	}
	return 2 * n_late == n_all ? is_tied : 2 * n_late > n_all;
}

static void settle(struct walk *w, const struct doubts *open)
{
	struct metrics *m = w->m;
	size_t events = 0, n = 0, *late;
	struct gap_read *v;

	for (uint32_t i = 0; i < m->n; i++)
		events += knows_reads(&w->r->row[m->row[i]]) ? w->r->row[m->row[i]].n_events : 0;
	v = mem_array(events, sizeof(*v));
	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &w->r->row[m->row[i]];

		if (!knows_reads(row) || !row->n_events)
			continue;
		load_row(w, row);
		add_reads(w, row, v, &n);
	}
	qsort(v, n, sizeof(*v), by_read);
	late = mem_array(n + 1, sizeof(*late)); /* how many of the first ones are */
	for (size_t i = 0; i < n; i++)
		late[i + 1] = late[i] + v[i].is_late;
	for (size_t i = 0; i < open->n; i++) {
		const struct gap_doubt *d = &open->v[i];
		bool is_late = d->read_ns - d->stamp_ns > w->late_ns, is_client;

		if (d->n <= w->usual) /* as many come when the client is prompt */
			is_client = false;
		/* Late itself: was the loop away, or did it read others promptly meanwhile? */
		else if (is_late)
			is_client = are_late(v, n, late, d, d->stamp_ns + w->late_ns, d->read_ns,
					     true);
		else /* Prompt, perhaps by luck: were those around it late? */
			is_client = are_late(v, n, late, d, d->read_ns - w->late_ns,
					     d->read_ns + w->late_ns, false);
		w->mark[d->element] = (uint8_t)((is_client ? GAP_CLIENT : GAP_DELIVERY) + 1);
	}
	free(v);
	free(late);
}

/* ---- what each cause does to ITL ---- */

/* Moves the value of rank k (from 0) to v[k], smaller ones before it, larger ones after it. */
static void put_in_place(double *v, size_t n, size_t k)
{
	size_t low = 0, high = n - 1;

	while (low < high) {
		double pivot = v[low + (high - low) / 2];
		size_t i = low, j = high;

		for (;;) {
			while (v[i] < pivot)
				i++;
			while (pivot < v[j])
				j--;
			if (i >= j)
				break;
			double moved = v[i];

			v[i++] = v[j];
			v[j--] = moved;
		}
		if (k <= j)
			high = j;
		else
			low = j + 1;
	}
}

/* As stats_percentile, of values in any order, which it moves. */
static double percentile_99(double *v, size_t n)
{
	double part, next = INFINITY;
	size_t k = stats_rank(n, 99, &part);

	put_in_place(v, n, k);
	for (size_t i = k + 1; i < n; i++)
		next = fmin(next, v[i]);
	return k + 1 < n ? stats_between(v[k], next, part) : v[k];
}

/* ITL without one cause: its events spread evenly; single ones, and the server's, left out. */
static double p99_without(const struct walk *w, enum gap_cause cause)
{
	const struct metrics *m = w->m;
	double *v = mem_array(m->itl_at[m->n], sizeof(*v)), p99;
	size_t n = 0, end;

	for (uint32_t i = 0; i < m->n; i++) {
		if (!is_walked(&w->r->row[m->row[i]]))
			continue;
		for (size_t k = m->itl_at[i]; k < m->itl_at[i + 1]; k = end) {
			double sum = m->itl[k];

			end = k + 1;
			while (end < m->itl_at[i + 1] && w->mark[end] & SLOW_FOLLOWS)
				sum += m->itl[end++];
			if ((w->mark[k] & SLOW_CAUSE) != cause + 1)
				for (size_t e = k; e < end; e++)
					v[n++] = m->itl[e];
			else if (cause != GAP_SERVER && cause != GAP_UNKNOWN && end - k > 1)
				for (size_t e = k; e < end; e++)
					v[n++] = sum / (double)(end - k);
		}
	}
	p99 = n ? percentile_99(v, n) * 1000 : NAN;
	free(v);
	return p99;
}

void metrics_gaps(struct metrics *m, const struct record *r)
{
	struct walk w = { .m = m, .r = r };
	struct metrics_gaps *g = &m->gaps;
	struct doubts open = { 0 };
	uint32_t most = 0;

	for (uint32_t i = 0; i < m->n; i++)
		most = r->row[m->row[i]].n_events > most ? r->row[m->row[i]].n_events : most;
	w.gap = mem_array(most, sizeof(*w.gap));
	w.skew = mem_array(most, sizeof(*w.skew));
	w.tokens = mem_array(most, sizeof(*w.tokens));
	w.shared = mem_array(most, sizeof(*w.shared));
	w.mark = mem_array(m->itl_at[m->n], sizeof(*w.mark));
	describe(&w);
	find_usual(&w);
	for (uint32_t i = 0; i < m->n; i++)
		if (is_walked(&r->row[m->row[i]])) {
			load_row(&w, &r->row[m->row[i]]);
			find_slow(&w, i, &r->row[m->row[i]], &open);
		}
	if (open.n)
		settle(&w, &open);
	for (size_t k = 0; k < m->itl_at[m->n]; k++)
		if (w.mark[k] & SLOW_CAUSE)
			g->cause[(w.mark[k] & SLOW_CAUSE) - 1].n++;
	for (enum gap_cause c = 0; c < GAP_CAUSES; c++)
		g->cause[c].p99_without_ms = g->cause[c].n ? p99_without(&w, c) : g->event.p99_ms;
	free(open.v);
	free(w.gap);
	free(w.skew);
	free(w.tokens);
	free(w.shared);
	free(w.mark);
}

const char *gap_cause_name(enum gap_cause c)
{
#define X(name, text) text,
	static const char *const names[] = { GAP_CAUSES_LIST(X) };
#undef X

	return names[c];
}
