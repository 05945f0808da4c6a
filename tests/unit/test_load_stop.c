/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run ends before its plan does, and what the client does on purpose: time
 * limits, limits of failures, giving up, the choice of a URL. Over a transport of its own
 * whose answers take a set time or fail.
 *
 * threads: yes
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "client/load/load.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

#define MS 1000000

/* What the server does; set before a run. */
static struct {
	int64_t answer_ns;      /* from sending to the whole answer */
	unsigned fail_from, fail_every; /* the exchanges (by number) that are reset; 0: none */
	atomic_uint n_sent;
} server;

struct slot { struct exchange *x; int64_t at_ns; unsigned number; };
struct client { struct slot slot[4096]; size_t n; atomic_bool is_woken; };

static void *client_open(const struct transport_opts *o, struct err *e)
{
	(void)o;
	(void)e;
	return mem_alloc(sizeof(struct client));
}

static void client_start(void *self, struct exchange *x)
{
	struct client *c = self;

	assert_true(c->n < sizeof(c->slot) / sizeof(*c->slot));
	c->slot[c->n++] = (struct slot){ x, clock_mono_ns() + server.answer_ns,
					 atomic_fetch_add(&server.n_sent, 1) };
	x->attempts = 1;
	x->sink->on_send(x, clock_real_ns());
	x->sink->on_sent(x, clock_real_ns());
}

static struct slot take(struct client *c, size_t i)
{
	struct slot s = c->slot[i];

	c->slot[i] = c->slot[--c->n];
	return s;
}

static void client_cancel(void *self, struct exchange *x)
{
	struct client *c = self;
	size_t i = 0;

	while (c->slot[i].x != x)
		i++;
	take(c, i);
	x->sink->on_end(x, FAIL_CANCELLED, "cancelled", clock_real_ns());
}

static void answer(struct slot s)
{
	static const char event[] = "data: {\"choices\":[{\"text\":\" one\"}]}\n\ndata: [DONE]\n\n";
	int64_t now = clock_real_ns();

	if (server.fail_every && s.number >= server.fail_from &&
	    s.number % server.fail_every == 0) {
		s.x->sink->on_end(s.x, FAIL_RESET, "reset", now);
		return;
	}
	s.x->sink->on_head(s.x, 200, true, STR("HTTP/1.1 200 OK\r\n\r\n"), now, now);
	s.x->sink->on_body(s.x, (struct str){ event, sizeof(event) - 1 }, now, now);
	s.x->sink->on_end(s.x, FAIL_NONE, "", now);
}

static void client_poll(void *self, int64_t until_mono_ns, bool is_exact,
			struct transport_stats *stats)
{
	struct client *c = self;

	(void)is_exact;
	stats->reads++;
	for (;;) {
		int64_t now = clock_mono_ns();
		struct timespec pause = { 0, MS / 5 };

		for (size_t i = 0; i < c->n; i++) {
			if (c->slot[i].at_ns <= now) {
				answer(take(c, i));
				return;
			}
		}
		if (now >= until_mono_ns || atomic_exchange(&c->is_woken, false))
			return;
		nanosleep(&pause, NULL);
	}
}

static void client_wake(void *self)
{
	atomic_store(&((struct client *)self)->is_woken, true);
}

static void client_close(void *self, struct transport_stats *stats)
{
	(void)stats;
	free(self);
}

static const struct transport timed = {
	.name = "timed", .open = client_open, .start = client_start, .cancel = client_cancel,
	.poll = client_poll, .wake = client_wake, .close = client_close,
};

static const char *const urls[] = { "http://a.invalid", "http://b.invalid", "http://c.invalid" };

struct bench {
	struct load_opts opts;
	struct plan plan;
	struct prepared prepared;
	struct record record;
	struct load_progress progress;
	struct load_stats stats;
};

static void bench_init(struct bench *b, uint32_t n, unsigned threads, uint32_t cap,
		       int64_t answer_ns)
{
	struct err e = { 0 };

	memset(b, 0, sizeof(*b));
	memset(&server, 0, sizeof(server));
	server.answer_ns = answer_ns;
	plan_same(&b->plan, n, 0);
	b->prepared = (struct prepared){ .n = n };
	b->prepared.request = mem_array(n, sizeof(*b->prepared.request));
	for (uint32_t i = 0; i < n; i++)
		b->prepared.request[i] = STR("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
	assert_int_equal(record_init(&b->record, n, threads, n, false, false, &e), 0);
	record_add_rows(&b->record, n);
	b->opts = (struct load_opts){
		.transport = &timed, .endpoint = endpoint_find("null"),
		.net = { .base_url = urls, .n_endpoints = 1 },
		.threads = threads, .max_concurrency = cap, .phase = PHASE_MAIN,
	};
}

static void bench_run(struct bench *b)
{
	struct err e = { 0 };

	assert_int_equal(load_run(&b->opts, &b->plan, &b->prepared, &b->record, 0, &b->progress,
				  &b->stats, NULL, &e), 0);
}

static uint32_t count(const struct bench *b, enum request_state state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->plan.n; i++)
		n += b->record.row[i].state == state;
	return n;
}

static void bench_release(struct bench *b)
{
	free(b->prepared.request);
	plan_release(&b->plan);
	record_release(&b->record);
}

/* After the time is over nothing is admitted; what is in flight ends by itself. */
static void admission_ends_with_the_time(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 2; threads++) {
		struct bench b;
		uint32_t done;

		bench_init(&b, 4000, threads, 4, 20 * MS);
		b.opts.admission_ns = 150 * MS;
		bench_run(&b);
		done = count(&b, REQ_DONE);
		assert_in_range(done, 4, 40);
		assert_int_equal(count(&b, REQ_UNSENT), 4000 - done);
		for (uint32_t i = 0; i < 4000; i++) {
			const struct request_row *row = &b.record.row[i];

			assert_int_equal(row->state, i < done ? REQ_DONE : REQ_UNSENT);
			if (i < done)
				assert_true(row->admitted_ns - b.record.start_ns <= 200 * MS);
		}
		assert_int_equal(b.stats.end, LOAD_WHOLE);
		assert_int_equal(b.stats.used_up_ns, 0);
		assert_false(b.record.is_interrupted);
		assert_true(b.record.stop_ns - b.record.start_ns >= 150 * MS);
		bench_release(&b);
	}
}

/* The grace over, the rest is cancelled; that is no interruption. */
static void grace_ends_what_is_in_flight(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 100, 1, 4, 60000LL * MS);
	b.opts.admission_ns = 50 * MS;
	b.opts.deadline_ns = 100 * MS;
	bench_run(&b);
	assert_int_equal(count(&b, REQ_CANCELLED), 4);
	assert_int_equal(count(&b, REQ_UNSENT), 96);
	assert_int_equal(b.stats.end, LOAD_DEADLINE);
	assert_false(b.record.is_interrupted);
	bench_release(&b);
}

/* A plan that ends before its time says when it did. */
static void a_plan_used_up_says_when(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 8, 1, 2, 10 * MS);
	b.opts.admission_ns = 60000LL * MS;
	bench_run(&b);
	assert_int_equal(count(&b, REQ_DONE), 8);
	assert_true(b.stats.used_up_ns >= 30 * MS && b.stats.used_up_ns < 60000LL * MS);
	bench_release(&b);
}

static void *close_soon(void *close)
{
	struct timespec pause = { 0, 50 * MS };

	nanosleep(&pause, NULL);
	atomic_store((atomic_bool *)close, true);
	return NULL;
}

/* Another thread ends a chain: the one in flight ends, its successors never start. */
static void a_chain_is_closed_from_outside(void **state)
{
	atomic_bool close = false;
	pthread_t thread;
	struct bench b;
	uint32_t done;

	(void)state;
	bench_init(&b, 1000, 1, 0, 5 * MS);
	b.plan.n_roots = 1;
	for (uint32_t i = 1; i < 1000; i++) {
		b.plan.entry[i].after = i - 1;
		b.plan.entry[i].due_s = 0.002;
	}
	b.opts.close = &close;
	assert_int_equal(pthread_create(&thread, NULL, close_soon, &close), 0);
	bench_run(&b);
	pthread_join(thread, NULL);
	done = count(&b, REQ_DONE);
	assert_in_range(done, 1, 30);
	assert_int_equal(count(&b, REQ_UNSENT), 1000 - done);
	bench_release(&b);
}

/* One failure too many ends the run; everything that had ended stays. */
static void failures_end_the_run(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 2; threads++) {
		struct bench b;
		uint32_t failed;

		bench_init(&b, 2000, threads, 8, MS);
		server.fail_every = 4;
		b.opts.failures_max = 5;
		bench_run(&b);
		failed = count(&b, REQ_FAILED);
		assert_in_range(failed, 5, 5 + 8); /* others may fail before they are cancelled */
		if (threads == 1)
			assert_int_equal(failed, 5);
		assert_true(count(&b, REQ_DONE) >= 10);
		assert_int_equal(count(&b, REQ_UNSENT), 0);
		assert_int_equal(count(&b, REQ_DONE) + failed + count(&b, REQ_CANCELLED), 2000);
		assert_int_equal(b.stats.end, LOAD_FAILURES);
		assert_false(b.record.is_interrupted);
		bench_release(&b);
	}
}

/* A share needs some requests to be a share of. */
static void a_share_of_failures_ends_the_run(void **state)
{
	struct bench b;
	uint32_t ended;

	(void)state;
	bench_init(&b, 500, 1, 1, 0);
	server.fail_every = 2;
	b.opts.is_failure_share_limited = true;
	b.opts.failure_share_max = 0.4;
	bench_run(&b);
	ended = count(&b, REQ_DONE) + count(&b, REQ_FAILED);
	assert_in_range(ended, FAILURE_SHARE_ENDED, FAILURE_SHARE_ENDED + 1);
	assert_int_equal(b.stats.end, LOAD_FAILURE_SHARE);
	bench_release(&b);

	bench_init(&b, 500, 1, 1, 0);
	server.fail_every = 2;
	b.opts.is_failure_share_limited = true;
	b.opts.failure_share_max = 0.6;
	bench_run(&b);
	assert_int_equal(count(&b, REQ_FAILED), 250);
	assert_int_equal(b.stats.end, LOAD_WHOLE);
	bench_release(&b);
}

/* Entries that are to be given up are, so long after they were sent; quick ones succeed. */
static void marked_entries_are_given_up(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 60, 1, 10, 80 * MS);
	for (uint32_t i = 0; i < 60; i += 3)
		b.plan.entry[i].flags = PLAN_GIVES_UP;
	b.opts.give_up_ns = 30 * MS;
	bench_run(&b);
	for (uint32_t i = 0; i < 60; i++) {
		const struct request_row *row = &b.record.row[i];
		bool is_marked = i % 3 == 0;

		assert_int_equal(row->state, is_marked ? REQ_CANCELLED : REQ_DONE);
		assert_int_equal(!!(row->flags & ROW_GIVEN_UP), is_marked);
		if (is_marked)
			assert_in_range(row->end_ns - row->sent_ns, 30 * MS - MS, 80 * MS);
	}
	assert_int_equal(load_progress_total(&b.progress).failed, 0);
	assert_false(b.record.is_interrupted);
	bench_release(&b);

	bench_init(&b, 30, 1, 10, 2 * MS);
	for (uint32_t i = 0; i < 30; i++)
		b.plan.entry[i].flags = PLAN_GIVES_UP;
	b.opts.give_up_ns = 5000LL * MS;
	bench_run(&b);
	assert_int_equal(count(&b, REQ_DONE), 30);
	bench_release(&b);
}

/* The slot of one that was given up is the next one's at once. */
static void giving_up_frees_a_slot(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 10, 1, 1, 60000LL * MS);
	for (uint32_t i = 0; i < 10; i++)
		b.plan.entry[i].flags = PLAN_GIVES_UP;
	b.opts.give_up_ns = 10 * MS;
	bench_run(&b);
	assert_int_equal(count(&b, REQ_CANCELLED), 10);
	assert_in_range(b.record.stop_ns - b.record.start_ns, 100 * MS, 600 * MS);
	bench_release(&b);
}

/* With a head for each URL, in one that answers slowly fewer requests pile up. */
static void the_least_loaded_url_is_taken(void **state)
{
	static const struct str heads[] = { { "A\r\n", 3 }, { "long B\r\n", 8 }, { "C\r\n", 3 } };
	char text[90][16];
	uint32_t n[3] = { 0 };
	struct bench b;

	(void)state;
	bench_init(&b, 90, 2, 9, 3 * MS);
	b.opts.net.n_endpoints = 3;
	b.opts.is_least_loaded = true;
	b.prepared.head = heads;
	b.prepared.head_room = 8;
	for (uint32_t i = 0; i < 90; i++) {
		memcpy(text[i], "........\r\n{}", 13);
		b.prepared.request[i] = (struct str){ text[i], 12 };
	}
	bench_run(&b);
	for (uint32_t i = 0; i < 90; i++) {
		const struct request_row *row = &b.record.row[i];
		const struct str head = heads[row->endpoint];

		n[row->endpoint]++;
		assert_int_equal(row->request_bytes, head.n + 4);
		assert_memory_equal(text[i] + 8 - head.n, head.p, head.n);
		assert_memory_equal(text[i] + 8, "\r\n{}", 4);
	}
	for (int i = 0; i < 3; i++)
		assert_in_range(n[i], 20, 40);
	bench_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(admission_ends_with_the_time),
		cmocka_unit_test(grace_ends_what_is_in_flight),
		cmocka_unit_test(a_plan_used_up_says_when),
		cmocka_unit_test(a_chain_is_closed_from_outside),
		cmocka_unit_test(failures_end_the_run),
		cmocka_unit_test(a_share_of_failures_ends_the_run),
		cmocka_unit_test(marked_entries_are_given_up),
		cmocka_unit_test(giving_up_frees_a_slot),
		cmocka_unit_test(the_least_loaded_url_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
