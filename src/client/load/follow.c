/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - see follow.h. */
#include "client/load/follow.h"

#include <assert.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

/* n_waits of an entry that is not sent; counting down from there never comes near 0. */
#define WAITS_DROPPED (1u << 31)
#define RETRY_FIRST_NS 1000000000ll
#define RETRY_DOUBLINGS_MAX 6       /* no pause before a retry is longer than a minute or so */

/* ---- what waits for its time: a heap by due time ---- */

static bool is_before(const struct pending *a, const struct pending *b)
{
	if (a->due_mono_ns != b->due_mono_ns)
		return a->due_mono_ns < b->due_mono_ns;
	return (int32_t)(a->order - b->order) < 0;
}

static void queue(struct worker *w, struct pending p)
{
	size_t at = w->n_pending++;

	p.order = w->n_queued++;
	if (w->n_pending > w->pending_cap) {
		w->pending_cap = w->pending_cap ? w->pending_cap * 2 : 64;
		w->pending = mem_grow(w->pending, w->pending_cap, sizeof(*w->pending));
	}
	for (; at > 0 && is_before(&p, &w->pending[(at - 1) / 2]); at = (at - 1) / 2)
		w->pending[at] = w->pending[(at - 1) / 2];
	w->pending[at] = p;
}

const struct pending *follow_first(const struct worker *w)
{
	return w->n_pending ? w->pending : NULL;
}

struct pending follow_take(struct worker *w)
{
	struct pending first = w->pending[0], last;
	size_t at = 0, below;

	assert(w->n_pending > 0);
	last = w->pending[--w->n_pending];
	while ((below = 2 * at + 1) < w->n_pending) {
		if (below + 1 < w->n_pending &&
		    is_before(&w->pending[below + 1], &w->pending[below]))
			below++;
		if (!is_before(&w->pending[below], &last))
			break;
		w->pending[at] = w->pending[below];
		at = below;
	}
	w->pending[at] = last;
	return first;
}

/* ---- successors of the plan ---- */

/* One entry of its session is over; with the last one its place under max_sessions is free. */
static void leave_session(struct driver *d, uint32_t entry)
{
	uint32_t session = d->plan->entry[entry].session;

	if (d->session_left && session != PLAN_NONE &&
	    atomic_fetch_sub(&d->session_left[session], 1) == 1)
		atomic_fetch_sub(&d->n_sessions, 1);
}

/* True only for the first caller. */
static bool drop(struct driver *d, uint32_t entry)
{
	struct request_row *row = &d->record->row[d->first_row + entry];

	if (atomic_exchange(&d->n_waits[entry], WAITS_DROPPED) > WAITS_DROPPED / 2)
		return false;
	row->fail = FAIL_CANCELLED;
	row->flags |= ROW_DROPPED;
	record_finish(row, REQ_CANCELLED);
	leave_session(d, entry);
	return true;
}

/* Drops every entry that waits for this one, directly or indirectly. */
static void drop_successors(struct driver *d, uint32_t entry)
{
	uint32_t next = entry;

	do { /* a loop, because a chain of turns may be long */
		uint32_t last = d->first_edge[next + 1];

		entry = next;
		next = PLAN_NONE;
		for (uint32_t i = d->first_edge[entry]; i < last; i++) {
			if (!drop(d, d->edge[i]))
				continue;
			if (next != PLAN_NONE)
				drop_successors(d, next);
			next = d->edge[i];
		}
	} while (next != PLAN_NONE);
}

/* When an entry is due whose last wait ends now. */
static int64_t due_at(const struct driver *d, uint32_t entry, int64_t now_mono)
{
	const struct plan_entry *next = &d->plan->entry[entry];
	int64_t gap = clock_span_ns(next->due_s), due;
	const struct request_row *before = &d->record->row[d->first_row + next->after];

	if (!(next->flags & (PLAN_FROM_START | PLAN_FROM_PHASE)))
		return now_mono + gap;
	due = d->start_mono_ns + gap;
	if (next->flags & PLAN_FROM_START)
		due += (before->sent_ns ? before->sent_ns : before->admitted_ns) - d->start_real_ns;
	return due > now_mono ? due : now_mono;
}

static void queue_successors(struct worker *w, uint32_t entry)
{
	struct driver *d = w->driver;
	int64_t now = clock_mono_ns();

	for (uint32_t i = d->first_edge[entry]; i < d->first_edge[entry + 1]; i++)
		if (atomic_fetch_sub(&d->n_waits[d->edge[i]], 1) == 1)
			queue(w, (struct pending){ .due_mono_ns = due_at(d, d->edge[i], now),
						   .entry = d->edge[i], .client = PLAN_NONE });
}

/* ---- the same request again ---- */

/* Resets a row to its state before sending, except for the attempts. */
static void empty_row(struct request_row *row)
{
	*row = (struct request_row){
		.phase = row->phase, .due_s = row->due_s, .sample = row->sample,
		.session = row->session, .turn = row->turn, .lora = row->lora,
		.endpoint = row->endpoint, .parent = row->parent, .history = row->history,
		.prompt_tokens = row->sample_prompt_tokens,
		.sample_prompt_tokens = row->sample_prompt_tokens,
		.asked_tokens = row->asked_tokens, .sequences = row->sequences,
		.audio_s = row->audio_s, .attempts = row->attempts,
	};
}

/* Its attempt after this one, gap_ns from now. */
static void try_again(struct flight *f, int64_t gap_ns)
{
	empty_row(f->row);
	queue(f->worker, (struct pending){ .due_mono_ns = clock_mono_ns() + gap_ns,
					   .entry = f->entry, .client = f->client,
					   .n_retries = f->n_retries + 1 });
}

static bool has_attempts_left(const struct flight *f)
{
	return f->is_failed && f->row->fail != FAIL_CANCELLED &&
	       f->n_retries < f->worker->driver->opts->retries;
}

static int64_t retry_pause_ns(const struct flight *f)
{
	return RETRY_FIRST_NS << (f->n_retries < RETRY_DOUBLINGS_MAX ? f->n_retries
								     : RETRY_DOUBLINGS_MAX);
}

/* ---- closed loops ---- */

static uint32_t pick(struct driver *d, uint32_t client, uint32_t ended,
		     const struct request_row *row, int64_t *gap_ns)
{
	double gap_s = 0;
	uint32_t entry = d->opts->pick(d->opts->pick_self, client, ended, row, &gap_s);

	assert(entry == PLAN_NONE || entry < d->plan->n);
	*gap_ns = clock_span_ns(gap_s);
	return entry;
}

/* Whether the client wants the same request again. */
static bool pick_next(struct flight *f, bool is_over)
{
	struct worker *w = f->worker;
	struct request_row *next;
	int64_t gap_ns;
	uint32_t entry = pick(w->driver, f->client, f->entry, f->row, &gap_ns);

	if (entry == PLAN_NONE || is_over)
		return false;
	if (entry == f->entry) {
		try_again(f, gap_ns);
		return true;
	}
	next = &w->driver->record->row[w->driver->first_row + entry];
	next->parent = w->driver->first_row + f->entry;
	next->due_s = (double)gap_ns / 1e9;
	queue(w, (struct pending){ .due_mono_ns = clock_mono_ns() + gap_ns, .entry = entry,
				   .client = f->client });
	return false;
}

/* ---- for the driver ---- */

bool follow_ended(struct flight *f)
{
	struct driver *d = f->worker->driver;
	bool is_over = worker_is_over(d);

	if (d->opts->pick)
		return pick_next(f, is_over);
	if (!is_over && has_attempts_left(f)) {
		try_again(f, retry_pause_ns(f));
		return true;
	}
	if (d->first_edge && !is_over) {
		if (f->is_failed && d->opts->is_chain_dropped)
			drop_successors(d, f->entry);
		else
			queue_successors(f->worker, f->entry);
	}
	leave_session(d, f->entry);
	return false;
}

/* Counts the waits of each entry and its successors. */
static void add_edge(struct driver *d, uint32_t from, uint32_t to)
{
	assert(from < to);
	atomic_fetch_add(&d->n_waits[to], 1);
	d->edge[d->first_edge[from]++] = to;
}

/*
 * Edges in the order of their entries: counted, summed up, filled in. While they are filled in
 * first_edge[i] is where the next edge of entry i goes, which in the end is where i + 1 begins.
 */
static void link_entries(struct driver *d)
{
	const struct plan *plan = d->plan;
	uint32_t n_edges = plan->n - plan->n_roots + (uint32_t)plan->n_joins, at = 0;

	d->first_edge = mem_array((size_t)plan->n + 1, sizeof(*d->first_edge));
	d->edge = mem_array(n_edges, sizeof(*d->edge));
	d->n_waits = mem_array(plan->n, sizeof(*d->n_waits));
	for (uint32_t i = plan->n_roots; i < plan->n; i++)
		d->first_edge[plan->entry[i].after]++;
	for (size_t i = 0; i < plan->n_joins; i++)
		d->first_edge[plan->join[i].waits_for]++;
	for (uint32_t i = 0; i <= plan->n; i++) {
		uint32_t n = d->first_edge[i];

		d->first_edge[i] = at;
		at += n;
	}
	for (uint32_t i = plan->n_roots; i < plan->n; i++)
		add_edge(d, plan->entry[i].after, i);
	for (size_t i = 0; i < plan->n_joins; i++)
		add_edge(d, plan->join[i].waits_for, plan->join[i].entry);
	memmove(d->first_edge + 1, d->first_edge, plan->n * sizeof(*d->first_edge));
	d->first_edge[0] = 0;
}

static void count_sessions(struct driver *d)
{
	const struct plan *plan = d->plan;
	uint32_t n = 0;

	for (uint32_t i = 0; i < plan->n; i++)
		if (plan->entry[i].session != PLAN_NONE && plan->entry[i].session >= n)
			n = plan->entry[i].session + 1;
	d->session_left = mem_array(n, sizeof(*d->session_left));
	for (uint32_t i = 0; i < plan->n; i++)
		if (plan->entry[i].session != PLAN_NONE)
			atomic_fetch_add(&d->session_left[plan->entry[i].session], 1);
}

static void ask_clients(struct driver *d)
{
	for (uint32_t c = 0; c < d->opts->n_clients; c++) {
		int64_t gap_ns;
		uint32_t entry = pick(d, c, PLAN_NONE, NULL, &gap_ns);

		if (entry != PLAN_NONE)
			queue(&d->worker[c % d->n_workers],
			      (struct pending){ .due_mono_ns = gap_ns, .entry = entry,
						.client = c });
	}
}

void follow_init(struct driver *d)
{
	const struct load_opts *o = d->opts;
	const struct plan *plan = d->plan;

	assert(!o->pick == !o->n_clients);
	assert(!o->pick || (plan->n_roots == 0 && !o->max_sessions && !o->retries));
	d->is_followed = o->pick || plan->n > plan->n_roots || o->retries || o->max_sessions;
	if (!o->pick && plan->n > plan->n_roots)
		link_entries(d);
	if (o->max_sessions)
		count_sessions(d);
	if (o->pick)
		ask_clients(d);
}

void follow_release(struct driver *d)
{
	free(d->first_edge);
	free(d->edge);
	free(d->n_waits);
	free(d->session_left);
}
