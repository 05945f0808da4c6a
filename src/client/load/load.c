/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - the driver: one worker thread per loop; see load.h.
 *
 * A worker's life is one loop: admit what is due, poll the transport until the
 * next due time, repeat until the plan is used up and nothing is in flight.
 * What a request goes through is in flight.c; this file decides when.
 *
 * Shared between workers: next (plan entry to claim), in_flight (slots under
 * the cap) and stop. Everything else belongs to one worker until join.
 */
#include "client/load/load.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "client/load/follow.h"
#include "client/load/pressure.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

#define IDLE_WAIT_NS 100000000 /* longest sleep: how fast a cancel is noticed */
#define HERD_STEPS 32          /* requests started in a row before sockets are read again */
#define TICK_NS 200000000
#define CLOCK_TRIES 8          /* readings of both clocks at the start; the tightest pair counts */

static int64_t due_mono(const struct driver *d, double due_s)
{
	return d->start_mono_ns + clock_span_ns(due_s);
}

/* Takes one slot of a cap (0: any number); false if none is free. */
static bool take_one(atomic_uint *taken, uint32_t cap)
{
	uint32_t n = atomic_load(taken);

	do {
		if (cap && n >= cap)
			return false;
	} while (!atomic_compare_exchange_weak(taken, &n, n + 1));
	return true;
}

static bool take_slot(struct driver *d)
{
	return take_one(&d->in_flight, d->opts->max_concurrency);
}

/* Whether a root is its session's first entry, which needs a place under max_sessions. */
static bool opens_session(const struct driver *d, uint32_t root)
{
	const struct plan_entry *entry = &d->plan->entry[root];

	return d->session_left && entry->session != PLAN_NONE &&
	       (root == 0 || entry[-1].session != entry->session);
}

static void stop(struct driver *d, enum load_end why)
{
	if (!atomic_exchange(&d->stop, true))
		d->end = why;
}

/* Whether this completes REFUSED_FIRST equal refusals of the first requests. */
static bool is_refused(struct driver *d, const struct flight *f)
{
	unsigned status = f->row->status, common = 0;

	/* 408, 425, 429: not now. */
	if (f->entry >= REFUSED_FIRST || status / 100 != 4 || status == 408 || status == 425 ||
	    status == 429)
		return false;
	if (!atomic_compare_exchange_strong(&d->refused_status, &common, status) &&
	    common != status)
		return false;
	return atomic_fetch_add(&d->n_refused, 1) + 1 == REFUSED_FIRST;
}

void worker_failed(struct worker *w, const struct flight *f)
{
	struct driver *d = w->driver;
	const struct load_opts *o = d->opts;
	uint32_t failed, ended = 0;

	if (!o->failures_max && !o->is_failure_share_limited && !o->is_ended_by_refusals)
		return;
	failed = atomic_fetch_add(&d->n_failed, 1) + 1;
	for (unsigned i = 0; i < d->n_workers; i++)
		ended += atomic_load_explicit(&d->worker[i].lane->done, memory_order_relaxed);
	if (o->failures_max && failed >= o->failures_max)
		stop(d, LOAD_FAILURES);
	else if (o->is_ended_by_refusals && is_refused(d, f))
		stop(d, LOAD_REFUSED);
	else if (o->is_failure_share_limited && ended >= FAILURE_SHARE_ENDED &&
		 (double)failed > o->failure_share_max * (double)ended)
		stop(d, LOAD_FAILURE_SHARE);
	else
		return;
	for (unsigned i = 0; i < d->n_workers; i++)
		if (&d->worker[i] != w)
			o->transport->wake(d->worker[i].transport);
}

void worker_free_slot(struct worker *w)
{
	struct driver *d = w->driver;
	uint32_t used = atomic_fetch_sub(&d->in_flight, 1);

	assert(used > 0);
	(void)used;
	w->next_due_real_ns = 0; /* look before the next sleep, and at the next read */
	/* Successors wait on their parent's loop, which may be asleep until a slot is free. */
	for (unsigned i = 0; d->is_followed && i < d->n_workers; i++)
		if (&d->worker[i] != w && atomic_load(&d->worker[i].is_waiting))
			d->opts->transport->wake(d->worker[i].transport);
}

/* No more admissions: the time for them is over, or the caller has ended them. */
bool worker_is_over(const struct driver *d)
{
	const struct load_opts *o = d->opts;

	return atomic_load_explicit(&d->stop, memory_order_relaxed) ||
	       (o->admission_ns && clock_mono_ns() - d->start_mono_ns >= o->admission_ns) ||
	       (o->close && atomic_load_explicit(o->close, memory_order_relaxed));
}

/* The next root of this process; those before it are passed over. */
static uint32_t next_root(struct driver *d)
{
	const bool *elsewhere = d->opts->elsewhere;
	uint32_t next = atomic_load(&d->next);

	while (elsewhere && next < d->plan->n_roots && elsewhere[next])
		if (atomic_compare_exchange_weak(&d->next, &next, next + 1))
			next++;
	return next;
}

/* Claims the next root when it is due and a slot is free: its index, or PLAN_NONE. */
static uint32_t claim(struct driver *d, int64_t now_mono)
{
	for (;;) {
		uint32_t next = next_root(d);
		bool opens;

		if (next >= d->plan->n_roots || due_mono(d, d->plan->entry[next].due_s) > now_mono)
			return PLAN_NONE;
		opens = opens_session(d, next);
		if (opens && !take_one(&d->n_sessions, d->opts->max_sessions))
			return PLAN_NONE;
		if (take_slot(d)) {
			if (atomic_compare_exchange_strong(&d->next, &next, next + 1))
				return next;
			atomic_fetch_sub(&d->in_flight, 1);
		} else {
			next = PLAN_NONE;
		}
		if (opens)
			atomic_fetch_sub(&d->n_sessions, 1);
		if (next == PLAN_NONE)
			return PLAN_NONE;
	}
}

/* Starts the earliest successor that is due and has a slot. */
static bool start_follower(struct worker *w, int64_t now_mono)
{
	const struct pending *first = follow_first(w);

	if (!first || first->due_mono_ns > now_mono || !take_slot(w->driver))
		return false;
	flight_start(w, follow_take(w));
	return true;
}

static bool is_root_blocked(const struct driver *d, uint32_t root)
{
	return opens_session(d, root) && atomic_load(&d->n_sessions) >= d->opts->max_sessions;
}

/* The earliest time at which a request may start; never while no slot is free. */
static int64_t next_due(const struct worker *w)
{
	struct driver *d = w->driver;
	const struct pending *first = follow_first(w);
	uint32_t next = next_root(d), cap = d->opts->max_concurrency;
	int64_t due = INT64_MAX;

	if (cap && atomic_load(&d->in_flight) >= cap)
		return due;
	if (next < d->plan->n_roots && !is_root_blocked(d, next))
		due = due_mono(d, d->plan->entry[next].due_s);
	if (first && first->due_mono_ns < due)
		due = first->due_mono_ns;
	return due;
}

int64_t worker_admit(struct worker *w, int steps)
{
	struct driver *d = w->driver;
	int64_t due;

	for (int step = 0; step < steps; step++) {
		int64_t now_mono = clock_mono_ns();
		uint32_t entry;

		if (worker_is_over(d))
			break;
		if (start_follower(w, now_mono))
			continue;
		entry = claim(d, now_mono);
		if (entry == PLAN_NONE)
			break;
		assert(due_mono(d, d->plan->entry[entry].due_s) <= now_mono);
		flight_start(w, (struct pending){
			.due_mono_ns = due_mono(d, d->plan->entry[entry].due_s), .entry = entry,
			.client = PLAN_NONE });
	}
	/* Set before the slots are checked: a slot freed later wakes this loop. */
	atomic_store(&w->is_waiting, w->n_pending > 0);
	due = worker_is_over(d) ? INT64_MAX : next_due(w);
	w->next_due_real_ns = due == INT64_MAX ? due
			      : due + (d->start_real_ns - d->start_mono_ns);
	return due;
}

static bool is_finished(const struct worker *w)
{
	const struct driver *d = w->driver;

	if (w->n_live)
		return false;
	if (worker_is_over(d))
		return true;
	return w->n_pending == 0 && atomic_load(&d->next) >= d->plan->n_roots;
}

static void check_stop(struct worker *w)
{
	struct driver *d = w->driver;
	const struct load_opts *o = d->opts;

	if ((d->cancel && atomic_load_explicit(d->cancel, memory_order_relaxed)) ||
	    (o->abandon && atomic_load_explicit(o->abandon, memory_order_relaxed)))
		stop(d, LOAD_CANCELLED);
	if (o->deadline_ns && clock_mono_ns() - d->start_mono_ns > o->deadline_ns)
		stop(d, LOAD_DEADLINE);
	if (atomic_load_explicit(&d->stop, memory_order_relaxed) && !w->is_cancelled) {
		w->is_cancelled = true;
		flight_cancel_all(w);
	}
}

static void run_worker(struct worker *w)
{
	const struct transport *t = w->driver->opts->transport;

	for (;;) {
		int64_t due, until;

		check_stop(w);
		if (w->give_up_first) /* before others are admitted: their slots become free */
			flight_give_up(w, clock_mono_ns());
		due = worker_admit(w, HERD_STEPS);
		if (is_finished(w))
			break;
		if (w->give_up_first && w->give_up_first->give_up_mono_ns < due)
			due = w->give_up_first->give_up_mono_ns;
		until = clock_mono_ns() + IDLE_WAIT_NS;
		t->poll(w->transport, due < until ? due : until, due < until, &w->stats.net);
	}
}

/* Threads gather here; the clock starts when all are there. */
static void wait_for_start(struct driver *d)
{
	pthread_mutex_lock(&d->lock);
	d->n_ready++;
	pthread_cond_broadcast(&d->changed);
	while (!d->is_started)
		pthread_cond_wait(&d->changed, &d->lock);
	pthread_mutex_unlock(&d->lock);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct driver *d = w->driver;
	int64_t cpu, waited;

	if (d->opts->cpu)
		pressure_run_on(d->opts->cpu[w - d->worker]);
	pressure_wake_soon();
	wait_for_start(d);
	for (size_t i = 0; i < w->n_pending; i++) /* the first picks, which count from the start */
		w->pending[i].due_mono_ns += d->start_mono_ns;
	waited = pressure_wait_ns();
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	run_worker(w);
	w->stats.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	w->stats.cpu_ns_max = w->stats.cpu_ns > w->stats.net.spun_ns
			      ? w->stats.cpu_ns - w->stats.net.spun_ns : 0;
	w->stats.wall_ns = clock_mono_ns() - d->start_mono_ns;
	w->stats.wait_ns_max = pressure_wait_ns() - waited;
	pthread_mutex_lock(&d->lock);
	d->n_running--;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static void wait_for_workers(struct driver *d)
{
	pthread_mutex_lock(&d->lock);
	while (d->n_running) {
		struct timespec at;
		int64_t until = clock_mono_ns() + TICK_NS;

		at.tv_sec = until / 1000000000;
		at.tv_nsec = until % 1000000000;
		if (pthread_cond_timedwait(&d->changed, &d->lock, &at) == ETIMEDOUT &&
		    d->opts->tick) {
			pthread_mutex_unlock(&d->lock);
			d->opts->tick(d->opts->tick_self);
			pthread_mutex_lock(&d->lock);
		}
	}
	pthread_mutex_unlock(&d->lock);
}

/*
 * One instant on both clocks. CLOCK_REALTIME is read first, so the offset is never too large and a
 * due time is never after the clock reading that found it due; the largest of several tries is the
 * one with the least interruption.
 */
static void start_clock(struct driver *d, int64_t at_mono_ns)
{
	int64_t offset = INT64_MIN;

	for (int i = 0; i < CLOCK_TRIES; i++) {
		int64_t real = clock_real_ns(), one = real - clock_mono_ns();

		offset = one > offset ? one : offset;
	}
	d->start_mono_ns = at_mono_ns ? at_mono_ns : clock_mono_ns();
	d->start_real_ns = d->start_mono_ns + offset;
	if (d->opts->phase == PHASE_MAIN)
		d->record->start_ns = d->start_real_ns;
}

/* The threads that exist begin; with stop set they end at once. */
static void release_workers(struct driver *d, unsigned n)
{
	const struct load_opts *o = d->opts;
	int64_t at = 0;

	pthread_mutex_lock(&d->lock);
	while (d->n_ready < n)
		pthread_cond_wait(&d->changed, &d->lock);
	d->n_running = n;
	if (o->start_at && !atomic_load(&d->stop) && !(at = o->start_at(o->started_self)))
		stop(d, LOAD_CANCELLED);
	start_clock(d, at);
	d->is_started = true;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

/* Threads are created, and their connections opened, before the clock starts. */
static int run_threads(struct driver *d, struct err *e)
{
	unsigned started = 0;
	pthread_condattr_t clock;
	int error = 0;

	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &clock);
	pthread_condattr_destroy(&clock);
	while (started < d->n_workers && !error) {
		error = pthread_create(&d->worker[started].thread, NULL, worker_main,
				       &d->worker[started]);
		started += !error;
	}
	if (error)
		stop(d, LOAD_CANCELLED);
	release_workers(d, started);
	if (d->opts->started && !error)
		d->opts->started(d->opts->started_self);
	wait_for_workers(d);
	for (unsigned i = 0; i < started; i++)
		pthread_join(d->worker[i].thread, NULL);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->changed);
	if (error)
		return err_set(e, ERR_LIMIT, "cannot start thread %u of %u: %s", started + 1,
			       d->n_workers, strerror(error));
	return 0;
}

static void add_worker(struct load_stats *sum, const struct load_stats *one)
{
	sum->net.connects += one->net.connects;
	sum->net.connect_failures += one->net.connect_failures;
	sum->net.retries += one->net.retries;
	sum->net.reads += one->net.reads;
	sum->net.reads_without_stamp += one->net.reads_without_stamp;
	sum->net.stale_closed += one->net.stale_closed;
	sum->net.http2 += one->net.http2;
	sum->net.spun_ns += one->net.spun_ns;
	sum->net.no_ports += one->net.no_ports;
	sum->net.no_descriptors += one->net.no_descriptors;
	sum->net.connections_most += one->net.connections_most;
	sum->net.resent += one->net.resent;
	sum->net.out_of_order += one->net.out_of_order;
	sum->net.round_trips += one->net.round_trips;
	sum->net.round_trip_ns += one->net.round_trip_ns;
	sum->net.resolve_ns = one->net.resolve_ns > sum->net.resolve_ns ? one->net.resolve_ns
									 : sum->net.resolve_ns;
	sum->reads_shared += one->reads_shared;
	sum->events_by_segment += one->events_by_segment;
	sum->cpu_ns += one->cpu_ns;
	if (one->cpu_ns_max > sum->cpu_ns_max)
		sum->cpu_ns_max = one->cpu_ns_max;
	if (one->wait_ns_max > sum->wait_ns_max)
		sum->wait_ns_max = one->wait_ns_max;
	if (one->wall_ns > sum->wall_ns)
		sum->wall_ns = one->wall_ns;
}

void load_stats_add(struct load_stats *sum, const struct load_stats *one)
{
	add_worker(sum, one);
	if (sum->end == LOAD_WHOLE)
		sum->end = one->end;
	if (one->used_up_ns > sum->used_up_ns)
		sum->used_up_ns = one->used_up_ns;
	sum->threads += one->threads;
	sum->throttled_ns += one->throttled_ns;
	sum->tap.segments += one->tap.segments;
	sum->tap.dropped += one->tap.dropped;
	sum->is_tapped &= one->is_tapped;
	if (!sum->no_tap.code)
		sum->no_tap = one->no_tap;
	sum->is_kernel_stamped &= one->is_kernel_stamped;
}

/* Which sessions have begun: by index; NULL without any sessions. */
static bool *begun_sessions(const struct driver *d)
{
	const struct plan *plan = d->plan;
	uint32_t n = 0;
	bool *begun;

	for (uint32_t i = 0; i < plan->n; i++)
		if (plan->entry[i].session != PLAN_NONE && plan->entry[i].session >= n)
			n = plan->entry[i].session + 1;
	if (!n)
		return NULL;
	begun = mem_array(n, sizeof(*begun));
	for (uint32_t i = 0; i < plan->n; i++)
		if (plan->entry[i].session != PLAN_NONE &&
		    d->record->row[d->first_row + i].admitted_ns)
			begun[plan->entry[i].session] = true;
	return begun;
}

/* Whether another process sends an entry, as given for its root. */
static bool is_elsewhere(const struct driver *d, uint32_t entry)
{
	return d->opts->elsewhere && d->opts->elsewhere[plan_root(d->plan, entry)];
}

/*
 * Rows of entries that were never started: cancelled before admission, or no part of the run.
 * The rest of a session that has begun is part of the run: it is unfinished.
 */
static void close_rows(struct driver *d, struct load_stats *stats)
{
	const struct load_opts *o = d->opts;
	bool is_open_ended = o->admission_ns || o->close;
	bool *begun = is_open_ended ? begun_sessions(d) : NULL;
	uint32_t n_roots = d->plan->n_roots;
	int64_t last = d->start_real_ns;

	stats->end = d->end;
	while (n_roots && o->elsewhere && o->elsewhere[n_roots - 1])
		n_roots--; /* the last one that was ours */
	if (n_roots && atomic_load(&d->next) >= n_roots)
		stats->used_up_ns = d->record->row[d->first_row + n_roots - 1].admitted_ns -
				    d->start_real_ns;

	for (uint32_t i = 0; i < d->plan->n; i++) {
		struct request_row *row = &d->record->row[d->first_row + i];

		if (row->state == REQ_WAITING) {
			bool is_rest = begun && row->session != RECORD_NONE && begun[row->session];
			/* An entry that has failed before waits for its next attempt. */
			bool is_left = is_open_ended && !is_rest && !row->attempts;

			row->fail = FAIL_CANCELLED;
			record_finish(row, is_left || is_elsewhere(d, i) ? REQ_UNSENT
									 : REQ_CANCELLED);
		}
		if (row->end_ns > last)
			last = row->end_ns;
	}
	free(begun);
	if (d->opts->phase == PHASE_MAIN) {
		d->record->stop_ns = last;
		d->record->is_interrupted |= d->end == LOAD_CANCELLED ||
					     (d->end == LOAD_DEADLINE && !o->admission_ns);
	}
}

static void fill_rows(struct driver *d)
{
	for (uint32_t i = 0; i < d->plan->n; i++) {
		const struct plan_entry *entry = &d->plan->entry[i];
		struct request_row *row = &d->record->row[d->first_row + i];

		row->phase = (uint8_t)d->opts->phase;
		row->due_s = entry->due_s;
		row->sample = entry->sample;
		row->session = entry->session;
		row->turn = entry->turn;
		row->lora = entry->lora;
		row->endpoint = entry->endpoint;
		row->parent = entry->after == PLAN_NONE ? RECORD_NONE : d->first_row + entry->after;
		row->history = entry->history == PLAN_NONE ? RECORD_NONE
							   : d->first_row + entry->history;
	}
}

static int open_worker(struct driver *d, unsigned i, struct load_lane *lane, struct err *e)
{
	const struct load_opts *o = d->opts;
	struct worker *w = &d->worker[i];

	w->driver = d;
	w->shard_index = (uint16_t)(o->first_shard + i);
	w->shard = &d->record->shard[w->shard_index];
	w->lane = lane;
	if (slab_init(&w->flights, sizeof(struct flight), d->plan->n + 1, e) < 0)
		return -1;
	w->transport = o->transport->open(&d->net, e);
	return w->transport ? 0 : -1;
}

static void close_worker(struct worker *w)
{
	for (size_t i = 0; i < w->flights.count; i++)
		flight_release(slab_at(&w->flights, i));
	if (w->transport)
		w->driver->opts->transport->close(w->transport, &w->stats.net);
	slab_release(&w->flights);
	free(w->pending);
	buf_release(&w->built);
}

/* One tap for all loops, which they open their connections with. */
static int open_tap(struct driver *d, struct load_stats *stats, struct err *e)
{
	enum load_tap wanted = d->opts->tap;

	if (wanted == LOAD_TAP_OFF || d->opts->phase != PHASE_MAIN)
		return 0;
	if (d->opts->transport != &transport_native) {
		err_set(&stats->no_tap, ERR_USAGE, "the %s transport gives no access to its connections",
			d->opts->transport->name);
		return 0;
	}
	d->net.tap = tap_open(&stats->no_tap);
	stats->is_tapped = d->net.tap != NULL;
	if (stats->is_tapped || wanted == LOAD_TAP_ALLOWED)
		return 0;
	*e = stats->no_tap;
	return -1;
}

int load_run(const struct load_opts *o, const struct plan *plan, const struct prepared *prepared,
	     struct record *record, uint32_t first_row, struct load_progress *progress,
	     struct load_stats *stats, const atomic_bool *cancel, struct err *e)
{
	struct driver d = { .opts = o, .plan = plan, .prepared = prepared, .record = record,
			    .first_row = first_row, .cancel = cancel, .n_workers = o->threads,
			    .net = o->net };
	int64_t throttled = pressure_throttled_ns();
	int rc;

	assert(o->threads >= 1 && o->threads <= THREADS_MAX);
	assert(o->first_shard + o->threads <= record->n_shards);
	assert(prepared->n == plan->n);
	*stats = (struct load_stats){ 0 };
	d.worker = mem_array(o->threads, sizeof(*d.worker));
	fill_rows(&d);
	rc = open_tap(&d, stats, e);
	for (unsigned i = 0; rc == 0 && i < o->threads; i++)
		rc = open_worker(&d, i, &progress->lane[i], e);
	if (rc == 0) {
		follow_init(&d);
		rc = run_threads(&d, e);
	}
	if (rc == 0)
		close_rows(&d, stats);
	for (unsigned i = 0; i < o->threads; i++) {
		if (!d.worker[i].driver)
			continue;
		close_worker(&d.worker[i]);
		add_worker(stats, &d.worker[i].stats);
	}
	if (d.net.tap)
		stats->tap = tap_stats(d.net.tap);
	tap_close(d.net.tap);
	stats->threads = o->threads;
	stats->throttled_ns = pressure_throttled_ns() - throttled;
	stats->is_kernel_stamped = stats->net.reads > stats->net.reads_without_stamp;
	free(d.worker);
	follow_release(&d);
	return rc;
}

struct load_totals load_progress_total(const struct load_progress *p)
{
	struct load_totals sum = { 0 };

	for (unsigned i = 0; i < THREADS_MAX; i++) {
		const struct load_lane *lane = &p->lane[i];

		/* Backwards in a request's life: never more done than admitted. */
		sum.failed += atomic_load_explicit(&lane->failed, memory_order_acquire);
		sum.done += atomic_load_explicit(&lane->done, memory_order_acquire);
		sum.tokens += atomic_load_explicit(&lane->tokens, memory_order_relaxed);
		sum.admitted += atomic_load_explicit(&lane->admitted, memory_order_relaxed);
	}
	return sum;
}
