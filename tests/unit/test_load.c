/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver over the null endpoint and the null transport: what it costs
 * nothing to get wrong with a real server. Sockets are in tests/load/.
 *
 * threads: yes
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/load/load.h"
#include "client/load/pressure.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

/* CLOCK_REALTIME as this program reads it, ahead of what the kernel waits by: a clock set back. */
static int64_t real_lead_s;

int clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, id, t);

	if (rc == 0 && id == CLOCK_REALTIME)
		t->tv_sec += real_lead_s;
	return rc;
}

#define NULL_EVENTS 5 /* data events of the null transport that are not [DONE] */

static const char *const base_url[] = { "http://null.invalid" };

struct bench {
	struct plan plan;
	struct prepared prepared;
	struct record record;
	struct load_progress progress;
	struct load_stats stats;
};

static void bench_init(struct bench *b, uint32_t n, unsigned threads)
{
	struct err e = { 0 };

	memset(b, 0, sizeof(*b));
	plan_same(&b->plan, n, 0);
	b->prepared = (struct prepared){ .n = n };
	b->prepared.request = mem_array(n, sizeof(*b->prepared.request));
	for (uint32_t i = 0; i < n; i++)
		b->prepared.request[i] = STR("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
	assert_int_equal(record_init(&b->record, n, threads, n * 8, true, true, &e), 0);
	record_add_rows(&b->record, n);
}

static struct load_opts bench_opts(unsigned threads, uint32_t cap)
{
	return (struct load_opts){
		.transport = &transport_null, .endpoint = endpoint_find("null"),
		.net = { .base_url = base_url, .n_endpoints = 1 },
		.threads = threads, .max_concurrency = cap, .phase = PHASE_MAIN,
	};
}

static void bench_release(struct bench *b)
{
	free(b->prepared.request);
	plan_release(&b->plan);
	record_release(&b->record);
}

static int bench_run(struct bench *b, const struct load_opts *o, const atomic_bool *cancel)
{
	struct err e = { 0 };

	return load_run(o, &b->plan, &b->prepared, &b->record, 0, &b->progress, &b->stats, cancel,
			&e);
}

static void check_rows(const struct bench *b)
{
	for (uint32_t i = 0; i < b->plan.n; i++) {
		const struct request_row *row = &b->record.row[i];
		int64_t gaps[NULL_EVENTS], sum = 0;
		struct buf text = { 0 };

		assert_int_equal(row->state, REQ_DONE);
		assert_int_equal(row->n_events, NULL_EVENTS);
		assert_int_equal(row->status, 200);
		assert_int_equal(row->attempts, 1);
		assert_true(row->admitted_ns >= row->due_ns);
		assert_true(row->sent_ns >= row->admitted_ns);
		assert_true(row->first_event_ns >= row->sent_ns);
		assert_true(row->end_ns >= row->last_event_ns);
		record_gaps(&b->record, row, gaps);
		for (int k = 0; k < NULL_EVENTS; k++)
			sum += gaps[k];
		assert_int_equal(sum, row->last_event_ns - row->sent_ns);
		record_text_of(&b->record, row, &text);
		assert_int_equal(text.len, row->text_bytes);
		assert_true(text.len > 0);
		buf_release(&text);
	}
}

/* Every request ends once, whatever the number of loops and the cap. */
static void every_request_is_recorded(void **state)
{
	static const struct { uint32_t n, cap; unsigned threads; } row[] = {
		{ 1, 0, 1 }, { 500, 0, 1 }, { 500, 1, 1 }, { 500, 7, 1 }, { 500, 7, 2 },
		{ 500, 0, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct load_opts opts = bench_opts(row[i].threads, row[i].cap);
		struct load_totals totals;
		struct bench b;

		bench_init(&b, row[i].n, row[i].threads);
		assert_int_equal(bench_run(&b, &opts, NULL), 0);
		check_rows(&b);
		totals = load_progress_total(&b.progress);
		assert_int_equal(totals.done, row[i].n);
		assert_int_equal(totals.admitted, row[i].n);
		assert_int_equal(totals.failed, 0);
		assert_int_equal(totals.tokens, (uint64_t)row[i].n * NULL_EVENTS);
		assert_true(b.record.stop_ns >= b.record.start_ns && b.record.start_ns > 0);
		bench_release(&b);
	}
}

/* No request is sent before it is due, and admission keeps the plan's order. */
static void due_times_are_kept(void **state)
{
	struct load_opts opts = bench_opts(1, 0);
	struct bench b;

	(void)state;
	bench_init(&b, 100, 1);
	for (uint32_t i = 0; i < b.plan.n; i++)
		b.plan.entry[i].due_s = (double)i * 0.0005;
	assert_int_equal(bench_run(&b, &opts, NULL), 0);
	check_rows(&b);
	for (uint32_t i = 0; i < b.plan.n; i++) {
		const struct request_row *row = &b.record.row[i];

		assert_true(row->due_ns - b.record.start_ns == (int64_t)(row->due_s * 1e9));
		assert_true(row->sent_ns >= row->due_ns);
		if (i)
			assert_true(row->sent_ns >= b.record.row[i - 1].sent_ns);
	}
	bench_release(&b);
}

struct turns { struct bench *b; unsigned built, ended; };

static int build_turn(void *self, uint32_t entry, struct buf *request, struct err *e)
{
	struct turns *t = self;

	(void)e;
	assert_int_equal(t->b->record.row[t->b->plan.entry[entry].after].state, REQ_DONE);
	buf_add_text(request, "Content-Length: 2\r\n\r\n{}");
	t->built++;
	return 0;
}

static int end_turn(void *self, uint32_t entry, const struct request_row *row, struct str head,
		    struct str calls, struct err *e)
{
	struct turns *t = self;
	struct buf text = { 0 };

	(void)e;
	assert_ptr_equal(row, &t->b->record.row[entry]);
	assert_int_equal(row->fail, FAIL_NONE);
	assert_true(str_starts(head, STR("HTTP/1.1 200")));
	assert_int_equal(calls.n, 0);
	record_text_of(&t->b->record, row, &text);
	assert_true(text.len > 0);
	buf_release(&text);
	t->ended++;
	return 0;
}

/* Successors wait for their parent and its think time; their bodies may need its answer. */
static void sessions_run_in_turn(void **state)
{
	enum { SESSIONS = 8, TURNS = 3 };
	struct load_opts opts = bench_opts(1, 4);
	struct bench b;
	struct turns turns = { .b = &b };

	(void)state;
	bench_init(&b, SESSIONS * TURNS, 1);
	b.plan.n_roots = SESSIONS;
	b.prepared.build = build_turn;
	b.prepared.ended = end_turn;
	b.prepared.build_self = &turns;
	for (uint32_t i = SESSIONS; i < b.plan.n; i++) {
		b.plan.entry[i].after = i - SESSIONS;
		b.plan.entry[i].due_s = 0.002;
		b.plan.entry[i].session = i % SESSIONS;
		b.plan.entry[i].turn = (uint16_t)(i / SESSIONS);
		b.prepared.request[i] = (struct str){ 0 };
	}
	assert_int_equal(bench_run(&b, &opts, NULL), 0);
	check_rows(&b);
	assert_int_equal(turns.built, SESSIONS * (TURNS - 1));
	assert_int_equal(turns.ended, SESSIONS * TURNS);
	for (uint32_t i = SESSIONS; i < b.plan.n; i++) {
		const struct request_row *row = &b.record.row[i];

		assert_int_equal(row->parent, i - SESSIONS);
		assert_true(row->sent_ns >= b.record.row[row->parent].end_ns + 2000000);
	}
	bench_release(&b);
}

/* With a cap of one session, conversations do not interleave, whatever they think between turns. */
static void sessions_have_a_cap(void **state)
{
	enum { SESSIONS = 4, TURNS = 3 };
	struct load_opts opts = bench_opts(2, 0);
	struct bench b;

	(void)state;
	opts.max_sessions = 1;
	bench_init(&b, SESSIONS * TURNS, 2);
	b.plan.n_roots = SESSIONS;
	for (uint32_t i = 0; i < b.plan.n; i++) {
		b.plan.entry[i].session = i % SESSIONS;
		if (i < SESSIONS)
			continue;
		b.plan.entry[i].after = i - SESSIONS;
		b.plan.entry[i].due_s = 0.001;
	}
	assert_int_equal(bench_run(&b, &opts, NULL), 0);
	check_rows(&b);
	for (uint32_t i = 1; i < SESSIONS; i++)
		assert_true(b.record.row[i].sent_ns >=
			    b.record.row[(TURNS - 1) * SESSIONS + i - 1].end_ns);
	bench_release(&b);
}

/* Roots of one conversation may be on several loops: the last to end starts their join, once. */
static void a_join_waits_across_loops(void **state)
{
	enum { SESSIONS = 300, ROOTS = 3 };
	struct load_opts opts = bench_opts(3, 0);
	struct bench b;

	(void)state;
	bench_init(&b, SESSIONS * (ROOTS + 1), 3);
	b.plan.n_roots = SESSIONS * ROOTS;
	b.plan.join = mem_array(SESSIONS * (ROOTS - 1), sizeof(*b.plan.join));
	for (uint32_t i = 0; i < SESSIONS; i++) {
		struct plan_entry *join = &b.plan.entry[b.plan.n_roots + i];

		join->after = i * ROOTS;
		join->session = i;
		for (uint32_t k = 0; k < ROOTS; k++)
			b.plan.entry[i * ROOTS + k].session = i;
		for (uint32_t k = 1; k < ROOTS; k++)
			b.plan.join[b.plan.n_joins++] =
				(struct plan_join){ b.plan.n_roots + i, i * ROOTS + k };
	}
	opts.max_sessions = 7;
	assert_int_equal(bench_run(&b, &opts, NULL), 0);
	check_rows(&b);
	for (uint32_t i = 0; i < b.plan.n_roots; i++)
		assert_true(b.record.row[b.plan.n_roots + i / ROOTS].sent_ns >=
			    b.record.row[i].end_ns);
	bench_release(&b);
}

/* Slots are never over-committed, and a loop that waits for one is woken. */
static void loops_share_the_cap(void **state)
{
	enum { SESSIONS = 400, TURNS = 3, CAP = 2 };
	struct load_opts opts = bench_opts(3, CAP);
	struct bench b;
	int64_t began = clock_mono_ns();

	(void)state;
	bench_init(&b, SESSIONS * TURNS, 3);
	b.plan.n_roots = SESSIONS;
	for (uint32_t i = SESSIONS; i < b.plan.n; i++)
		b.plan.entry[i].after = i - SESSIONS;
	assert_int_equal(bench_run(&b, &opts, NULL), 0);
	check_rows(&b);
	for (uint32_t i = 0; i < b.plan.n; i++) {
		uint32_t open = 0;

		for (uint32_t k = 0; k < b.plan.n; k++)
			open += b.record.row[k].admitted_ns <= b.record.row[i].admitted_ns &&
				b.record.row[k].end_ns > b.record.row[i].admitted_ns;
		assert_in_range(open, 1, CAP); /* ends are stamped before their slot is free */
	}
	/* Without waking, each handover could cost a tenth of a second. */
	assert_true(clock_mono_ns() - began < 20000000000);
	bench_release(&b);
}

/* Two runs share a record: rows and shards are separate (probes during a main run). */
static void runs_share_a_record(void **state)
{
	struct load_opts opts = bench_opts(1, 0);
	struct bench b;
	struct err e = { 0 };

	(void)state;
	bench_init(&b, 50, 2);
	assert_int_equal(bench_run(&b, &opts, NULL), 0);
	record_add_rows(&b.record, 50);
	opts.first_shard = 1;
	opts.phase = PHASE_PROBE;
	assert_int_equal(load_run(&opts, &b.plan, &b.prepared, &b.record, 50, &b.progress, &b.stats,
				  NULL, &e), 0);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(b.record.row[i].state, REQ_DONE);
		assert_int_equal(b.record.row[i].shard, i / 50);
		assert_int_equal(b.record.row[i].phase, i < 50 ? PHASE_MAIN : PHASE_PROBE);
	}
	bench_release(&b);
}

/* A cancel keeps what ended and marks the rest; nothing waits for due times. */
static void cancel_keeps_what_was_measured(void **state)
{
	struct load_opts opts = bench_opts(1, 0);
	atomic_bool cancel = false;
	struct bench b;
	uint32_t done = 0, cancelled = 0;

	(void)state;
	bench_init(&b, 10, 1);
	for (uint32_t i = 5; i < 10; i++)
		b.plan.entry[i].due_s = 3600;
	opts.deadline_ns = 50000000;
	assert_int_equal(bench_run(&b, &opts, &cancel), 0);
	for (uint32_t i = 0; i < 10; i++) {
		done += b.record.row[i].state == REQ_DONE;
		cancelled += b.record.row[i].state == REQ_CANCELLED;
	}
	assert_int_equal(done, 5);
	assert_int_equal(cancelled, 5);
	assert_true(b.record.is_interrupted);
	bench_release(&b);
}

static void *run_point_thread(void *arg)
{
	struct load_opts opts = bench_opts(1, 16);
	struct bench *b = arg;

	return bench_run(b, &opts, NULL) == 0 ? b : NULL;
}

/* Nothing is global: two runs in one process do not see each other. */
static void two_points_run_at_once(void **state)
{
	struct bench b[2];
	pthread_t thread[2];
	void *ended;

	(void)state;
	for (int i = 0; i < 2; i++)
		bench_init(&b[i], 2000, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run_point_thread, &b[i]), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], &ended);
		assert_ptr_equal(ended, &b[i]);
		check_rows(&b[i]);
		bench_release(&b[i]);
	}
}

/* A record without room: requests end as ever, and what is counted is what is kept. */
static void a_full_record_stays_consistent(void **state)
{
	struct load_opts opts = bench_opts(1, 1);
	struct bench b;

	(void)state;
	bench_init(&b, 4, 1);
	b.record.shard[0].gaps.count_max = 5; /* two blocks for each of two rows, half of a third */
	assert_int_equal(bench_run(&b, &opts, NULL), 0);
	assert_true(b.record.shard[0].is_full);
	for (uint32_t i = 0; i < 4; i++) {
		const struct request_row *row = &b.record.row[i];

		assert_int_equal(row->state, REQ_DONE);
		assert_int_equal(row->n_events, i < 3 ? NULL_EVENTS : 0);
		assert_true(row->n_answer <= row->n_events);
		assert_true(row->n_reasoning + row->n_shared <= row->n_events);
		assert_true(row->first_event_ns > row->sent_ns);
		assert_true(row->last_event_ns > row->first_event_ns);
	}
	bench_release(&b);
}

static void count_tick(void *self)
{
	++*(unsigned *)self;
}

/* Progress is shown by the monotonic clock: a wall clock that was set back does not stop it. */
static void ticks_come_whatever_the_wall_clock_says(void **state)
{
	struct load_opts opts = bench_opts(1, 0);
	unsigned ticks = 0;
	struct bench b;

	(void)state;
	bench_init(&b, 2, 1);
	b.plan.entry[1].due_s = 0.7;
	opts.tick = count_tick;
	opts.tick_self = &ticks;
	real_lead_s = 3600;
	assert_int_equal(bench_run(&b, &opts, NULL), 0);
	real_lead_s = 0;
	check_rows(&b);
	assert_true(ticks >= 1);
	bench_release(&b);
}

/* Polling before a due time keeps a loop exact; it does not say that the loop is busy. */
static void spinning_is_not_work(void **state)
{
	struct load_opts opts = bench_opts(1, 0);
	struct bench b;

	(void)state;
	bench_init(&b, 20, 1);
	for (uint32_t i = 0; i < b.plan.n; i++)
		b.plan.entry[i].due_s = (double)i * 0.004;
	assert_int_equal(bench_run(&b, &opts, NULL), 0);
	check_rows(&b);
	assert_true(b.stats.net.spun_ns > 0);
	assert_int_equal(b.stats.cpu_ns_max, b.stats.cpu_ns - b.stats.net.spun_ns);
	bench_release(&b);
}

/* What control groups say of a quota, in both versions' words. */
static void throttling_is_read(void **state)
{
	(void)state;
	assert_int_equal(pressure_throttled_in(STR("usage_usec 9\nnr_throttled 4\nthrottled_usec 250\n")),
			 250000);
	assert_int_equal(pressure_throttled_in(STR("nr_periods 8\nthrottled_time 123456\n")), 123456);
	assert_int_equal(pressure_throttled_in(STR("nr_periods 8\n")), 0);
	assert_int_equal(pressure_throttled_in(STR("throttled_usec x\n")), 0);
	assert_true(pressure_wait_ns() >= 0 && pressure_throttled_ns() >= 0);
	assert_true(pressure_ports() <= 65535);
}

/* Two drivers of one run: what each counted adds up, and the worst that either saw stays. */
static void drivers_add_up(void **state)
{
	struct load_stats sum = { .is_tapped = true, .is_kernel_stamped = true };
	struct load_stats one = {
		.net = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
		.end = LOAD_DEADLINE, .used_up_ns = 17, .wall_ns = 18, .cpu_ns = 19,
		.cpu_ns_max = 20, .wait_ns_max = 21, .throttled_ns = 22, .threads = 23,
		.reads_shared = 24, .events_by_segment = 25, .tap = { 26, 27 }, .is_tapped = true,
	};
	struct load_stats less = { .end = LOAD_CANCELLED, .is_kernel_stamped = true };
	const struct transport_stats *n = &sum.net;

	(void)state;
	err_set(&one.no_tap, ERR_USAGE, "no tap");
	load_stats_add(&sum, &one);
	load_stats_add(&sum, &one);
	assert_true(sum.is_tapped);
	load_stats_add(&sum, &less);
	assert_true(n->connects == 2 && n->connect_failures == 4 && n->retries == 6);
	assert_true(n->reads == 8 && n->reads_without_stamp == 10 && n->stale_closed == 12);
	assert_true(n->http2 == 14 && n->spun_ns == 16 && n->no_ports == 18);
	assert_true(n->no_descriptors == 20 && n->connections_most == 22 && n->resent == 24);
	assert_true(n->out_of_order == 26 && n->round_trips == 28 && n->round_trip_ns == 30);
	assert_int_equal(n->resolve_ns, 16);
	assert_true(sum.wall_ns == 18 && sum.cpu_ns == 38 && sum.cpu_ns_max == 20);
	assert_true(sum.wait_ns_max == 21 && sum.throttled_ns == 44 && sum.threads == 46);
	assert_true(sum.reads_shared == 48 && sum.events_by_segment == 50 && sum.used_up_ns == 17);
	assert_true(sum.tap.segments == 52 && sum.tap.dropped == 54);
	assert_int_equal(sum.end, LOAD_DEADLINE);
	assert_string_equal(sum.no_tap.text, "no tap");
	assert_false(sum.is_tapped);
	assert_false(sum.is_kernel_stamped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_is_recorded),
		cmocka_unit_test(due_times_are_kept),
		cmocka_unit_test(sessions_run_in_turn),
		cmocka_unit_test(sessions_have_a_cap),
		cmocka_unit_test(a_join_waits_across_loops),
		cmocka_unit_test(loops_share_the_cap),
		cmocka_unit_test(runs_share_a_record),
		cmocka_unit_test(cancel_keeps_what_was_measured),
		cmocka_unit_test(two_points_run_at_once),
		cmocka_unit_test(a_full_record_stays_consistent),
		cmocka_unit_test(ticks_come_whatever_the_wall_clock_says),
		cmocka_unit_test(spinning_is_not_work),
		cmocka_unit_test(throttling_is_read),
		cmocka_unit_test(drivers_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
