/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - how well the client did its part, and what the events carried.
 *
 * Send lag: a request may be sent when it is due and a slot under the cap is free. With FIFO
 * admission the i-th admitted request (from 0) finds a slot once i - cap + 1 answers have arrived,
 * so the earliest possible instant is max(due, the (i - cap)-th smallest arrival). The time from
 * there to sent, minus the time spent connecting, is the client's own delay. An answer has arrived
 * by the kernel's stamp: a client that reads late also sends the next request late. The first
 * request of a conversation waits for a place under --max-sessions, too, in the same way.
 */
#include "client/metrics/metrics_internal.h"

#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"

/* A growing list of seconds. */
struct values { double *v; size_t n; };

static void add(struct values *to, int64_t ns)
{
	to->v[to->n++] = metrics_seconds(ns);
}

static int64_t connecting_ns(const struct request_row *row)
{
	return row->connect_ns && row->connected_ns > row->connect_ns
		? row->connected_ns - row->connect_ns : 0;
}

/* ---- lag ---- */

/* The client's delay between the earliest possible instant and its first byte. */
static int64_t own_delay(const struct request_row *row, int64_t could_go_ns)
{
	int64_t ns = row->sent_ns - could_go_ns;

	if (row->sent_ns > row->connect_ns)
		ns -= connecting_ns(row); /* not with user stamps: sent is then the connect */
	return ns > 0 ? ns : 0;
}

/* The end of the answer, less how late its last event was read. 0: it has not ended. */
static int64_t arrived_ns(const struct request_row *row)
{
	int64_t late = row->user_last_event_ns - row->last_event_ns;

	return row->end_ns && row->last_event_ns && late > 0 ? row->end_ns - late : row->end_ns;
}

static bool has_schedule(const struct metrics *m)
{
	return m->opts.is_rate_finite || m->client.mean_interarrival_s > 0;
}

/* waits: seconds that requests waited for a slot. */
static void held(struct metrics *m, double *waits, size_t n)
{
	struct metrics_held *h = &m->client.held;
	size_t waited = 0;

	if ((m->opts.max_concurrency <= 0 && !m->opts.max_sessions) || !has_schedule(m) || n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		waited += waits[i] * 1e9 > METRICS_LATE_NS;
	*h = (struct metrics_held){ n, 1000 * stats_mean(waits, n), (double)waited / (double)n };
}

/* When each session ended, ascending; marks the rows that began one. Numbers sort like times. */
static int64_t *session_ends(const struct metrics *m, const struct record *r, bool *opens,
			     size_t *n)
{
	struct metrics_moment *by_session = mem_array(m->n, sizeof(*by_session));
	int64_t *end = mem_array(m->n, sizeof(*end));
	size_t rows = 0;

	*n = 0;
	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (row->session != RECORD_NONE && row->admitted_ns)
			by_session[rows++] = (struct metrics_moment){ row->session, m->row[i] };
	}
	metrics_sort_moments(by_session, rows);
	for (size_t k = 0; k < rows;) {
		int64_t session = by_session[k].at_ns, last = 0;
		uint32_t first = by_session[k].i;

		for (; k < rows && by_session[k].at_ns == session; k++) {
			uint32_t i = by_session[k].i;
			int64_t ended = arrived_ns(&r->row[i]);

			if (r->row[i].admitted_ns < r->row[first].admitted_ns)
				first = i;
			last = ended > last ? ended : last;
		}
		opens[first] = true;
		if (last)
			end[(*n)++] = last;
	}
	metrics_sort_ints(end, *n);
	free(by_session);
	return end;
}

/* When the `at`-th one under a cap finds a place; 0: at once. */
static int64_t place_ns(const int64_t *end, size_t n_ends, size_t cap, size_t at)
{
	return cap && at >= cap && at - cap < n_ends ? end[at - cap] : 0;
}

/* After interarrival. */
static void send_lag(struct metrics *m, const struct record *r)
{
	struct metrics_moment *order = mem_array(m->n, sizeof(*order));
	int64_t *end = mem_array(m->n, sizeof(*end));
	struct values lag = { mem_array(m->n, sizeof(double)), 0 };
	struct values wait = { mem_array(m->n, sizeof(double)), 0 };
	size_t n = 0, n_ends = 0, n_session_ends, n_opened = 0;
	size_t cap = (size_t)m->opts.max_concurrency, session_cap = m->opts.max_sessions;
	bool *opens = mem_array((size_t)r->n_rows + 1, sizeof(*opens));
	int64_t *session_end = session_ends(m, r, opens, &n_session_ends);

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (!row->admitted_ns)
			continue;
		order[n++] = (struct metrics_moment){ row->admitted_ns, m->row[i] };
		if (row->end_ns)
			end[n_ends++] = arrived_ns(row);
	}
	metrics_sort_moments(order, n);
	metrics_sort_ints(end, n_ends);
	for (size_t i = 0; i < n; i++) {
		const struct request_row *row = &r->row[order[i].i];
		int64_t could_go = row->due_ns, slot = place_ns(end, n_ends, cap, i), place = 0;

		if (opens[order[i].i])
			place = place_ns(session_end, n_session_ends, session_cap, n_opened++);
		slot = place > slot ? place : slot;
		if ((cap || session_cap) && m->opts.n_hosts > 1)
			could_go = row->admitted_ns; /* each host has its own slots */
		else if (slot > could_go)
			could_go = slot;
		if (!row->sent_ns || !row->due_ns)
			continue;
		add(&lag, own_delay(row, could_go));
		add(&wait, could_go - row->due_ns);
	}
	m->client.send_lag = metrics_spread(lag.v, lag.n);
	held(m, wait.v, wait.n);
	free(lag.v);
	free(wait.v);
	free(order);
	free(end);
	free(opens);
	free(session_end);
}

static void interarrival(struct metrics *m, const struct record *r)
{
	double first = 0, last = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (row->parent != RECORD_NONE)
			continue;
		first = n == 0 || row->due_s < first ? row->due_s : first;
		last = n == 0 || row->due_s > last ? row->due_s : last;
		n++;
	}
	m->client.mean_interarrival_s = n > 1 ? (last - first) / (n - 1) : 0;
}

static void stretch(double span[2], double at, bool is_first)
{
	span[0] = is_first || at < span[0] ? at : span[0];
	span[1] = is_first || at > span[1] ? at : span[1];
}

static void schedule(struct metrics *m, const struct record *r)
{
	struct metrics_schedule *s = &m->client.schedule;
	double due[2] = { 0 }, sent[2] = { 0 };
	uint32_t roots = 0, late = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (!row->due_ns || !row->sent_ns)
			continue;
		s->n++;
		late += row->sent_ns - row->due_ns > METRICS_LATE_NS;
		if (row->parent != RECORD_NONE)
			continue;
		stretch(due, row->due_s, roots == 0);
		stretch(sent, metrics_seconds(row->sent_ns - r->start_ns), roots == 0);
		roots++;
	}
	s->planned_span_s = due[1] - due[0];
	s->sent_span_s = sent[1] - sent[0];
	s->late_share = s->n ? (double)late / s->n : 0;
}

/* ---- what the best known counts say ---- */

#define ROLE_FIRST_NS 1000000   /* a role this much before the content, and more than */
#define ROLE_FIRST_SHARE 0.10   /* this share of the time to the content, is not its start */

/* Files of earlier versions have no such stamp of their own. */
static int64_t first_content_ns(const struct request_row *row)
{
	if (row->first_content_ns)
		return row->first_content_ns;
	if (!row->first_reasoning_ns || !row->first_answer_ns)
		return row->first_reasoning_ns + row->first_answer_ns;
	return row->first_reasoning_ns < row->first_answer_ns ? row->first_reasoning_ns
							      : row->first_answer_ns;
}

/* TTFT ends with an event that only has a role, and the content came noticeably later. */
static bool is_role_first(const struct request_row *row)
{
	int64_t content = first_content_ns(row), early = content - row->first_event_ns;

	return row->flags & ROW_ROLE_FIRST && content && early > ROLE_FIRST_NS &&
	       (double)early > ROLE_FIRST_SHARE * (double)(content - row->sent_ns);
}

/* Usage is what output_tokens comes from. */
static bool is_usage_taken(const struct request_row *row)
{
	return row->flags & ROW_HAS_USAGE && row->output_tokens &&
	       !(row->flags & (ROW_COUNTED | ROW_COUNT_UNKNOWN));
}

uint32_t metrics_usage(const struct request_row *row)
{
	return is_usage_taken(row) ? row->output_tokens : row->ignored_output_tokens;
}

/* with_text: events with content, each of which is at least one token. */
static uint32_t best_output(const struct request_row *row, uint32_t with_text)
{
	uint32_t best = metrics_usage(row);

	if (best)
		return best;
	best = row->output_tokens > row->all_text_tokens ? row->output_tokens
							 : row->all_text_tokens;
	return best > with_text ? best : with_text;
}

static void compare_with_asked(struct metrics_client *c, const struct metrics_opts *o,
			       const struct request_row *row, uint32_t with_text)
{
	uint32_t usage = metrics_usage(row), least = usage ? usage : with_text;

	if (!row->asked_tokens)
		return;
	c->n_longer_than_asked += least > row->asked_tokens;
	c->n_shorter_than_asked += usage && usage < row->asked_tokens &&
				   (o->is_eos_ignored || row->finish == FINISH_LENGTH);
}

/* ---- spreads ---- */

enum { LAG, CONNECT, FROM_DUE, ANSWER, CONTENT, WITH_CONNECT, WRITE, SPREADS };

static void add_row(struct metrics_client *c, struct values *v, const struct request_row *row)
{
	if (row->sent_ns && row->due_ns)
		add(&v[LAG], row->sent_ns - row->due_ns);
	if (row->sent_ns && row->due_ns > METRICS_EARLY_NS &&
	    row->sent_ns < row->due_ns - METRICS_EARLY_NS)
		c->n_sent_early++;
	if (connecting_ns(row)) {
		add(&v[CONNECT], connecting_ns(row));
		c->n_new_connections++;
	}
	if (!metrics_is_success(row))
		return;
	if (row->sent_all_ns > row->sent_ns && row->request_bytes <= WRITE_BYTES_MAX &&
	    row->connect_ns < row->sent_ns) /* not with user stamps: sent is then the connect */
		add(&v[WRITE], row->sent_all_ns - row->sent_ns);
	if (row->due_ns && metrics_end_ns(row))
		add(&v[FROM_DUE], metrics_end_ns(row) - row->due_ns);
	if (row->first_answer_ns)
		add(&v[ANSWER], row->first_answer_ns - row->sent_ns);
	if (first_content_ns(row))
		add(&v[CONTENT], first_content_ns(row) - row->sent_ns);
	if (row->first_event_ns)
		add(&v[WITH_CONNECT], row->first_event_ns -
		    (connecting_ns(row) && row->connect_ns < row->sent_ns ? row->connect_ns
		     : row->sent_ns));
}

static void spreads(struct metrics *m, const struct record *r)
{
	struct metrics_client *c = &m->client;
	struct metrics_spread *to[SPREADS] = {
		[LAG] = &c->lag, [CONNECT] = &c->connect, [FROM_DUE] = &c->from_due,
		[ANSWER] = &c->ttft_answer, [CONTENT] = &c->ttft_content,
		[WITH_CONNECT] = &c->ttft_connect, [WRITE] = &c->write,
	};
	struct values v[SPREADS] = { 0 };

	for (int k = 0; k < SPREADS; k++)
		v[k].v = mem_array(m->n, sizeof(double));
	for (uint32_t i = 0; i < m->n; i++)
		add_row(c, v, &r->row[m->row[i]]);
	for (int k = 0; k < SPREADS; k++) {
		*to[k] = metrics_spread(v[k].v, v[k].n);
		free(v[k].v);
	}
}

/* ---- skew ---- */

/* The lag of all events; of successes, what user-space stamps add (struct metrics_shift). */
enum { ALL, FIRST, LAST, GAP, PER_TOKEN, SKEWS };

static void add_shift(struct values v[SKEWS], const int64_t *skew, uint32_t n)
{
	add(&v[FIRST], skew[0]);
	add(&v[LAST], skew[n - 1]);
	for (uint32_t k = 1; k < n; k++)
		add(&v[GAP], llabs(skew[k] - skew[k - 1]));
	if (n > 1)
		add(&v[PER_TOKEN], llabs(skew[n - 1] - skew[0]) / (n - 1));
}

/* Every event's lag when the record has that lane, else the first and the last event's. */
static void add_skew(struct metrics *m, const struct record *r, const struct request_row *row,
		     struct values v[SKEWS], int64_t *scratch)
{
	if (row->n_events == 0 || row->flags & ROW_USER_STAMPS)
		return;
	if (row->skew_head) {
		record_skews(r, row, scratch);
		for (uint32_t k = 0; k < row->n_events; k++)
			add(&v[ALL], scratch[k]);
		if (metrics_is_success(row))
			add_shift(v, scratch, row->n_events);
	} else if (!m->opts.is_user_stamps && row->user_first_event_ns) {
		add(&v[ALL], row->user_first_event_ns - row->first_event_ns);
		if (row->n_events > 1)
			add(&v[ALL], row->user_last_event_ns - row->last_event_ns);
	}
}

static void skew(struct metrics *m, const struct record *r, int64_t *scratch)
{
	struct metrics_client *c = &m->client;
	struct metrics_spread spread[SKEWS];
	struct values v[SKEWS] = { 0 };
	size_t events = 0;

	for (uint32_t i = 0; i < m->n; i++)
		events += r->row[m->row[i]].n_events;
	for (int k = 0; k < SKEWS; k++)
		v[k].v = mem_array(k == ALL || k == GAP ? events : m->n, sizeof(double));
	for (uint32_t i = 0; i < m->n; i++)
		add_skew(m, r, &r->row[m->row[i]], v, scratch);
	for (int k = 0; k < SKEWS; k++) {
		spread[k] = metrics_spread(v[k].v, v[k].n);
		free(v[k].v);
	}
	c->skew = spread[ALL];
	c->shift = (struct metrics_shift){ spread[FIRST].n, spread[FIRST].p99_ms,
		spread[LAST].p99_ms, spread[GAP].p99_ms, spread[PER_TOKEN].p99_ms };
}

/* ---- events and tokens ---- */

struct seen { uint64_t empty, multi, extra, shared, late, with_first, joined; };

/* Events that came in one read: a first one without the mark, then those with it. */
struct read_run {
	uint32_t last;        /* event; UINT32_MAX: no run */
	bool has_text, had_text; /* with content: including and excluding the last event */
};

static void join_read(struct read_run *run, struct seen *s, uint32_t event, uint32_t last_empty,
		      bool is_late)
{
	if (run->last == UINT32_MAX || run->last + 1 != event)
		run->has_text = last_empty == UINT32_MAX || last_empty + 1 != event;
	run->last = event;
	run->had_text = run->has_text;
	run->has_text = true;
	s->shared += run->had_text;
	s->late += run->had_text && is_late;
	s->with_first += is_late && event == s->with_first + 1; /* in the first event's read */
}

/* Read so late that its stamp may be another event's; the stamp of a segment is its own. */
static bool is_smeared(const struct record_mark *shared, const int64_t *skew, int64_t late_ns)
{
	return shared->value != SHARED_SEGMENT && (!skew || skew[shared->event] > late_ns);
}

/*
 * One walk over the marks; those of one event are adjacent, MARK_SHARED before MARK_EMPTY. Sharing
 * a read with an event without text does not count, because it changes no gap between tokens. A
 * read is late when it came more than late_ns after its last bytes: a prompt client might have had
 * a stamp for each event. Events in a prompt read arrived together, as did those of one segment,
 * whenever it was read. skew: per event; NULL: unknown, all count as late.
 */
static struct seen look_at_marks(const struct record *r, const struct request_row *row,
				 const int64_t *skew, int64_t late_ns)
{
	struct read_run run = { .last = UINT32_MAX };
	const struct record_mark *mark = NULL;
	uint32_t last_empty = UINT32_MAX;
	bool was_smeared = false;
	struct seen s = { 0 };

	while ((mark = record_marks(r, row, mark))) {
		if (mark->event >= row->n_events)
			continue;
		if (mark->kind == MARK_TOKENS && mark->value > 1) {
			s.multi++;
			s.extra += mark->value - 1;
		} else if (mark->kind == MARK_SHARED) {
			was_smeared = is_smeared(mark, skew, late_ns);
			s.joined += mark->value == SHARED_SEGMENT;
			join_read(&run, &s, mark->event, last_empty, was_smeared);
		} else if (mark->kind == MARK_EMPTY) {
			s.empty++;
			last_empty = mark->event;
			if (run.last != mark->event)
				continue;
			s.shared -= run.had_text;
			s.late -= run.had_text && was_smeared;
			run.has_text = run.had_text;
		}
	}
	return s;
}

/* How late a read may be before its events count as late: a share of the median ITL. */
static int64_t late_after_ns(const struct metrics *m)
{
	double ms = m->block[BLOCK_ITL].median_ms * METRICS_LATE_SHARE;

	return (int64_t)((ms > METRICS_LATE_FLOOR_MS ? ms : METRICS_LATE_FLOOR_MS) * 1e6);
}

/* The tokens of element i, a success; its TPOT is added to tpot. */
static void look_at_tokens(struct metrics *m, uint32_t i, const struct request_row *row,
			   const struct seen *s, struct values *tpot)
{
	struct metrics_client *c = &m->client;
	uint32_t with_text = row->n_events - (uint32_t)s->empty, usage = metrics_usage(row);
	uint32_t best = best_output(row, with_text);
	uint64_t tokens = with_text + s->extra;
	bool is_counted = row->flags & ROW_COUNTED, differs;
	int64_t first = is_role_first(row) ? first_content_ns(row) : row->first_event_ns;

	c->finishes[row->finish]++;
	c->n_usage_refused += (row->flags & ROW_USAGE_REFUSED) != 0;
	c->n_role_first += is_role_first(row);
	c->n_counted += is_counted;
	c->n_count_short += is_counted && row->output_tokens < with_text;
	c->n_count_unknown += !is_counted && (row->output_tokens == 0 ||
					      row->flags & ROW_COUNT_UNKNOWN);
	c->best_output += best;
	c->best_input += !(row->flags & ROW_HAS_USAGE) && row->ignored_prompt_tokens
			 ? row->ignored_prompt_tokens : m->input_len[i];
	c->n_at_once += best > 1 && first == row->last_event_ns;
	if (best > 1 && first)
		tpot->v[tpot->n++] = metrics_seconds(row->last_event_ns - first) / (best - 1);
	compare_with_asked(c, &m->opts, row, with_text);
	if (!usage)
		return;
	c->n_usage++;
	c->n_usage_ignored += !is_usage_taken(row);
	c->n_events_with_usage += row->n_events;
	c->n_tokens_with_usage += usage;
	/* An event without text may or may not have carried a token (a special one). */
	differs = usage < tokens || usage > tokens + s->empty;
	c->n_usage_differs += differs;
	c->n_count_unlike_usage += differs || usage != row->output_tokens;
}

static void look_at_events(struct metrics *m, const struct record *r, int64_t *skews)
{
	struct values tpot = { mem_array(m->n, sizeof(double)), 0 };
	struct values first = { mem_array(m->n, sizeof(double)), 0 };
	struct values per_token = { mem_array(m->n, sizeof(double)), 0 };
	int64_t late_ns = late_after_ns(m);
	struct metrics_client *c = &m->client;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];
		bool knows_skew = row->skew_head && !(row->flags & ROW_USER_STAMPS);
		struct seen s;

		if (knows_skew && row->n_shared)
			record_skews(r, row, skews);
		s = look_at_marks(r, row, knows_skew ? skews : NULL, late_ns);
		c->n_events += row->n_events;
		c->n_events_with_text += row->n_events - s.empty;
		c->n_shared += s.shared;
		c->n_shared_late += s.late;
		c->n_joined += s.joined;
		c->n_not_one_token += s.empty + s.multi;
		c->retries += row->attempts > 1 ? row->attempts - 1u : 0;
		c->n_user_stamped += (row->flags & ROW_USER_STAMPS) != 0;
		if (!metrics_is_success(row) || m->opts.is_pooling)
			continue;
		first.v[first.n] = (double)s.with_first * m->block[BLOCK_ITL].mean_ms / 1000;
		if (m->output_len[i] > 1)
			per_token.v[per_token.n++] = first.v[first.n] /
						     (double)(m->output_len[i] - 1);
		first.n++;
		look_at_tokens(m, i, row, &s, &tpot);
	}
	c->best_tpot = metrics_spread(tpot.v, tpot.n);
	c->first_late = metrics_spread(first.v, first.n);
	c->tpot_late = metrics_spread(per_token.v, per_token.n);
	free(tpot.v);
	free(first.v);
	free(per_token.v);
}

void metrics_client(struct metrics *m, const struct record *r)
{
	uint32_t most = 0;
	int64_t *skews; /* of one row */

	for (uint32_t i = 0; i < m->n; i++)
		most = r->row[m->row[i]].n_events > most ? r->row[m->row[i]].n_events : most;
	skews = mem_array(most, sizeof(*skews));
	spreads(m, r);
	interarrival(m, r);
	send_lag(m, r);
	schedule(m, r);
	skew(m, r, skews);
	look_at_events(m, r, skews);
	free(skews);
	for (uint32_t i = 0; i < r->n_shards; i++)
		m->client.is_full |= r->shard[i].is_full;
}

/* ---- failures ---- */

static void add_failure(struct metrics *m, struct metrics_failures *f, struct str text)
{
	f->count++;
	for (uint32_t k = 0; k < f->n_examples; k++) {
		if (str_eq(f->example[k].text, text)) {
			f->example[k].count++;
			return;
		}
	}
	if (f->n_examples == ERROR_EXAMPLES_MAX) {
		f->n_others++;
		return;
	}
	f->example[f->n_examples++] = (struct metrics_error){ arena_str(&m->arena, text), 1 };
}

/* Joins the reason and the server's message into one line. */
static void join_lines(struct buf *text)
{
	struct str rest = buf_str(text), reason = str_cut(&rest, '\n');
	struct buf joined = { 0 };

	rest = str_trim(rest);
	if (rest.n == 0)
		return;
	buf_printf(&joined, "%.*s: %.*s", (int)reason.n, reason.p, (int)rest.n, rest.p);
	buf_release(text);
	*text = joined;
}

void metrics_failures(struct metrics *m, const struct record *r)
{
	struct buf text = { 0 };

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->row[m->row[i]];

		if (row->state != REQ_FAILED)
			continue;
		buf_reset(&text);
		record_error_of(r, row, &text);
		join_lines(&text);
		add_failure(m, &m->failures[row->fail < FAIL_COUNT ? row->fail : FAIL_NONE],
			    buf_str(&text));
	}
	buf_release(&text);
}
