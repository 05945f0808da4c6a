/* SPDX-License-Identifier: Apache-2.0 */
/* What the verdict is made of: late reads, and a server that does not keep up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/metrics/metrics.h"
#include "client/metrics/trust.h"
#include "core/rng/rng.h"
#include "record_sample.h"

#define MS 1000000ll
#define T0 SAMPLE_START_NS

static struct metrics_opts usual(void)
{
	return (struct metrics_opts){ .has_tokenizer = true, .is_rate_finite = true };
}

/* What user-space stamps add: of the first event, the last, between neighbours, for each token. */
static void test_shift(void **state)
{
	static const int64_t skew[] = { 1 * MS, 4 * MS, 2 * MS };
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 2, 1, 0, true, true, &e), 0);
	record_add_rows(&r, 2);
	for (uint32_t i = 0; i < 2; i++) {
		r.row[i].sent_ns = T0;
		for (size_t k = 0; k < 3; k++)
			sample_event(&r, &r.row[i], 10 * MS, skew[k]);
		r.row[i].state = i ? REQ_FAILED : REQ_DONE; /* failures have no latency */
	}
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.shift.n, 1);
	assert_float_equal(m.client.shift.ttft_p99_ms, 1, 1e-9);
	assert_float_equal(m.client.shift.e2el_p99_ms, 2, 1e-9);
	assert_float_equal(m.client.shift.itl_p99_ms, 2.99, 1e-9); /* of 3 and 2 */
	assert_float_equal(m.client.shift.tpot_p99_ms, 0.5, 1e-9);
	assert_int_equal(m.client.skew.n, 6);
	metrics_release(&m);
	record_release(&r);
}

/* Events that share a read: what a prompt client reads together arrived together. */
static void test_shared_late(void **state)
{
	static const struct {
		int64_t skew_ns; bool keeps_skew; uint32_t shared; uint64_t late;
	} cases[] = {
		{ MS / 100, true, SHARED_READ, 0 }, { MS - 1, true, SHARED_READ, 0 },
		{ MS + 1, true, SHARED_READ, 1 }, { 0, false, SHARED_READ, 1 },
		/* In one segment they arrived together, however late that was read. */
		{ MS + 1, true, SHARED_SEGMENT, 0 }, { 0, false, SHARED_SEGMENT, 0 },
	};
	struct metrics_opts o = usual();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct record r = { 0 };
		struct metrics m;
		struct err e;

		assert_int_equal(record_init(&r, 1, 1, 0, cases[i].keeps_skew, true, &e), 0);
		record_add_rows(&r, 1);
		r.row[0].sent_ns = T0;
		for (size_t k = 0; k < 6; k++) {
			bool is_shared = k == 4;

			if (is_shared) {
				record_mark(&r.shard[0], &r.row[0], MARK_SHARED,
					    cases[i].shared);
				r.row[0].n_shared++;
			}
			/* The median gap is 10 ms: a read is late after 1 ms. */
			sample_event(&r, &r.row[0], is_shared ? 0 : 10 * MS,
				     is_shared ? cases[i].skew_ns : 5 * MS);
		}
		r.row[0].state = REQ_DONE;
		metrics_score(&m, &r, &o);
		assert_int_equal(m.client.n_shared, 1);
		assert_int_equal(m.client.n_shared_late, cases[i].late);
		assert_int_equal(m.client.n_joined, cases[i].shared == SHARED_SEGMENT);
		assert_float_equal(m.client.first_late.max_ms, 0, 0);
		metrics_release(&m);
		record_release(&r);
	}
}

/*
 * Three events in the first read, which was late: TTFT is two gaps too long, and TPOT shorter by as
 * much over the six gaps of seven tokens.
 */
static void test_first_late(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 1, 1, 0, true, true, &e), 0);
	record_add_rows(&r, 1);
	r.row[0].sent_ns = T0;
	for (size_t k = 0; k < 7; k++) {
		bool is_shared = k == 1 || k == 2 || k == 5;

		if (is_shared) {
			record_mark(&r.shard[0], &r.row[0], MARK_SHARED, 1);
			r.row[0].n_shared++;
		}
		sample_event(&r, &r.row[0], is_shared ? 0 : 20 * MS, 15 * MS);
	}
	r.row[0].state = REQ_DONE;
	r.row[0].flags |= ROW_HAS_USAGE;
	r.row[0].output_tokens = 7;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.n_shared_late, 3);
	assert_float_equal(m.client.first_late.max_ms, 20, 1e-9); /* the mean gap is 10 ms */
	assert_float_equal(m.client.tpot_late.max_ms, 20.0 / 6, 1e-9);
	metrics_release(&m);
	record_release(&r);
}

/* 400 arrivals at 100/s; the i-th is answered after 50 ms plus i times what the server lacks. */
static void open_loop(struct record *r, int64_t lacks_ns)
{
	struct err e;

	assert_int_equal(record_init(r, 400, 1, 0, true, true, &e), 0);
	record_add_rows(r, 400);
	r->start_ns = T0;
	for (uint32_t i = 0; i < 400; i++) {
		struct request_row *row = &r->row[i];

		row->due_ns = row->admitted_ns = row->sent_ns = T0 + 10 * MS * i;
		row->prompt_tokens = 100;
		row->output_tokens = 2;
		row->flags = ROW_HAS_USAGE;
		sample_event(r, row, 25 * MS + lacks_ns * i, 0);
		sample_event(r, row, 25 * MS, 0);
		row->end_ns = row->last_event_ns;
		row->state = REQ_DONE;
	}
	r->stop_ns = r->row[399].end_ns;
}

/*
 * n arrivals at random times at a server that takes 10 ms for each, one after the other, and is
 * busy for that share of the time; whether TTFT is said to grow.
 */
static bool grows(uint32_t n, double busy, struct pyrandom *rng)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;
	double at_s = 0, free_s = 0;
	struct err e;
	bool is_growing;

	assert_int_equal(record_init(&r, n, 1, 0, true, true, &e), 0);
	record_add_rows(&r, n);
	r.start_ns = T0;
	for (uint32_t i = 0; i < n; i++) {
		struct request_row *row = &r.row[i];

		at_s += -0.01 / busy * log(1 - pyrandom_double(rng));
		free_s = 0.01 + (free_s > at_s ? free_s : at_s);
		row->due_ns = row->admitted_ns = row->sent_ns = T0 + (int64_t)(at_s * 1e9);
		row->output_tokens = 1;
		row->flags = ROW_HAS_USAGE;
		sample_event(&r, row, (int64_t)((free_s - at_s) * 1e9), 0);
		row->end_ns = row->last_event_ns;
		row->state = REQ_DONE;
		r.stop_ns = row->end_ns;
	}
	metrics_score(&m, &r, &o);
	is_growing = m.client.queue.knows_growth && m.client.queue.growth_p < 0.001 &&
		     m.client.queue.ttft_last_ms > 1.5 * m.client.queue.ttft_first_ms;
	metrics_release(&m);
	record_release(&r);
	return is_growing;
}

/*
 * The same with two priorities: whatever waits with the lower value is served next. Whether the
 * number of waiting requests is said to grow.
 */
static bool grows_by_class(uint32_t n, double busy, double urgent, struct pyrandom *rng)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;
	double at_s[1000], free_s = 0;
	struct err e;
	bool is_growing;

	assert_int_equal(record_init(&r, n, 1, 0, true, true, &e), 0);
	record_add_rows(&r, n);
	r.start_ns = T0;
	for (uint32_t i = 0; i < n; i++) {
		struct request_row *row = &r.row[i];

		at_s[i] = (i ? at_s[i - 1] : 0) - 0.01 / busy * log(1 - pyrandom_double(rng));
		row->due_ns = row->admitted_ns = row->sent_ns = T0 + (int64_t)(at_s[i] * 1e9);
		row->priority = pyrandom_double(rng) < urgent ? 0 : 5;
		row->output_tokens = 1;
		row->flags = ROW_HAS_USAGE;
	}
	for (uint32_t done = 0, from = 0; done < n; done++) {
		uint32_t next;

		while (r.row[from].state == REQ_DONE)
			from++;
		next = from; /* the first to arrive, or an urgent one of those that wait */
		for (uint32_t i = from; i < n && at_s[i] <= free_s; i++)
			if (r.row[i].state != REQ_DONE && r.row[i].priority < r.row[next].priority)
				next = i;
		free_s = 0.01 + (free_s > at_s[next] ? free_s : at_s[next]);
		sample_event(&r, &r.row[next], (int64_t)((free_s - at_s[next]) * 1e9), 0);
		r.row[next].end_ns = r.row[next].last_event_ns;
		r.row[next].state = REQ_DONE;
	}
	r.stop_ns = T0 + (int64_t)(free_s * 1e9);
	metrics_score(&m, &r, &o);
	assert_true(m.client.queue.knows_waiting);
	is_growing = m.client.queue.waiting_p < 0.001 &&
		     m.client.queue.waiting_last > 1.5 * m.client.queue.waiting_first;
	metrics_release(&m);
	record_release(&r);
	return is_growing;
}

static void test_growth_of_classes(void **state)
{
	static const struct { uint32_t n; double busy, urgent; int least, most; } cases[] = {
		{ 300, 0.5, 0.2, 0, 4 }, { 300, 0.8, 0.5, 0, 10 }, { 1000, 0.8, 0.8, 0, 4 },
		{ 1000, 0.9, 0.5, 0, 12 }, { 60, 2, 0.5, 190, 200 }, { 120, 2, 0.5, 196, 200 },
		{ 120, 1.6, 0.7, 180, 200 }, { 300, 1.5, 0.2, 196, 200 },
		{ 1000, 1.3, 0.8, 196, 200 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		struct pyrandom rng;
		int named = 0;

		pyrandom_seed(&rng, (int64_t)k + 1);
		for (int i = 0; i < 200; i++)
			named += grows_by_class(cases[k].n, cases[k].busy, cases[k].urgent, &rng);
		if (named < cases[k].least || named > cases[k].most)
			fail_msg("%u requests, busy %g, urgent %g: %d of 200 grow", cases[k].n,
				 cases[k].busy, cases[k].urgent, named);
	}
}

/* A queue that is long for a while does not grow. */
static void test_growth_of_queues(void **state)
{
	static const struct { uint32_t n; double busy; int least, most; } cases[] = {
		{ 300, 0.5, 0, 4 }, { 300, 0.8, 0, 10 }, { 1000, 0.8, 0, 4 }, { 1000, 0.9, 0, 12 },
		{ 40, 2, 150, 200 }, { 300, 1.5, 196, 200 }, { 1000, 1.3, 196, 200 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		struct pyrandom rng;
		int named = 0;

		pyrandom_seed(&rng, (int64_t)k + 1);
		for (int i = 0; i < 200; i++)
			named += grows(cases[k].n, cases[k].busy, &rng);
		if (named < cases[k].least || named > cases[k].most)
			fail_msg("%u requests, busy %g: %d of 200 grow", cases[k].n, cases[k].busy, named);
	}
}

static void test_queue(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;
	const struct metrics_queue *q = &m.client.queue;

	(void)state;
	open_loop(&r, 0);
	metrics_score(&m, &r, &o);
	assert_true(q->is_known && q->knows_growth);
	assert_int_equal(q->arrived, q->answered);
	assert_float_equal(q->offered_rps, 100, 0.5);
	assert_float_equal(q->ttft_first_ms, 25, 1e-6);
	assert_float_equal(q->ttft_last_ms, 25, 1e-6);
	assert_true(q->growth_p > 0.5);
	metrics_release(&m);
	o.is_rate_finite = false;
	metrics_score(&m, &r, &o);
	assert_false(q->is_known);
	metrics_release(&m);
	record_release(&r);

	/* Each answer 1 ms later than the one before: 100/s arrive, 100/1.1 are answered. */
	o.is_rate_finite = true;
	open_loop(&r, MS);
	metrics_score(&m, &r, &o);
	assert_true(q->is_known && q->knows_growth);
	assert_float_equal(q->carried_rps, 90.9, 1);
	assert_int_equal(q->in_flight_after - q->in_flight_before, q->arrived - q->answered);
	assert_true(q->ttft_last_ms > 2 * q->ttft_first_ms && q->growth_p < 1e-6);
	metrics_release(&m);
	assert_true(q->longer < 1);
	/* So much more than it carries that the median answer takes longer than the arrivals do. */
	record_release(&r);
	open_loop(&r, 30 * MS);
	metrics_score(&m, &r, &o);
	assert_true(q->is_known && q->knows_growth);
	assert_int_equal(q->arrived, 0);
	assert_true(q->ttft_last_ms > 2 * q->ttft_first_ms && q->growth_p < 1e-6);
	metrics_release(&m);
	record_release(&r);
	/*
	 * Every second answer takes 2 s: when the first short ones have ended, the number of long
	 * ones still grows, which is no growing queue.
	 */
	open_loop(&r, 0);
	for (uint32_t i = 0; i < 400; i += 2)
		r.row[i].end_ns += 2000 * MS;
	metrics_score(&m, &r, &o);
	assert_true(q->arrived - q->answered > 80);
	assert_true(fabs(q->longer - (q->arrived - q->answered)) < 3);
	metrics_release(&m);
	record_release(&r);
	open_loop(&r, MS);
	/* Longer prompts may take longer. */
	for (uint32_t i = 200; i < 400; i++)
		r.row[i].prompt_tokens = 200;
	metrics_score(&m, &r, &o);
	assert_true(q->is_known);
	assert_false(q->knows_growth);
	metrics_release(&m);
	record_release(&r);
}

/* ---- parts of a run that are unlike the rest (episodes.c) ---- */

/* n open-loop requests, one every 10 ms, with TTFTs of exponential law around 20 ms. */
static void chance_loop(struct record *r, uint32_t n, uint64_t seed)
{
	struct pcg64 rng = rng_fork(seed, "episodes");
	struct err e;

	assert_int_equal(record_init(r, n, 1, 0, true, true, &e), 0);
	record_add_rows(r, n);
	r->start_ns = T0;
	for (uint32_t i = 0; i < n; i++) {
		struct request_row *row = &r->row[i];
		double chance = pcg64_double(&rng);

		row->due_ns = row->admitted_ns = row->sent_ns = T0 + 10 * MS * i;
		row->prompt_tokens = 100;
		row->output_tokens = 1;
		row->flags = ROW_HAS_USAGE;
		sample_event(r, row, 5 * MS + (int64_t)(-15e6 * log(1 - chance)), 0);
		row->end_ns = row->last_event_ns;
		row->state = REQ_DONE;
	}
	r->stop_ns = r->row[n - 1].end_ns;
}

static struct metrics_start start_of(struct record *r)
{
	struct metrics_opts o = usual();
	struct metrics_start s;
	struct metrics m;

	metrics_score(&m, r, &o);
	s = m.client.start;
	metrics_release(&m);
	return s;
}

/* The first `slow` requests take 100 ms longer. */
static struct metrics_start cold_start(uint32_t n, uint32_t slow, uint64_t seed)
{
	struct record r = { 0 };
	struct metrics_start s;

	chance_loop(&r, n, seed);
	for (uint32_t i = 0; i < slow; i++) {
		r.row[i].first_event_ns += 200 * MS;
		r.row[i].last_event_ns += 200 * MS;
	}
	s = start_of(&r);
	record_release(&r);
	return s;
}

/* Of runs without a cold start, a share of at most P is below P: here 50 of 1,000 at 5 %. */
static void test_start_false_alarms(void **state)
{
	unsigned below = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++)
		below += cold_start(200, 0, seed).p < 0.05;
	assert_true(below <= 50);
}

static void test_start(void **state)
{
	struct record r = { 0 };
	struct metrics_start s;

	(void)state;
	/* 10 balls, 3 of them marked; 3 drawn: (C(3,2) C(7,1) + C(3,3)) / C(10,3) */
	assert_float_equal(metrics_overlap_p(10, 3, 2), 22.0 / 120, 1e-12);
	assert_float_equal(metrics_overlap_p(10, 3, 0), 1, 1e-12);
	for (uint64_t seed = 0; seed < 50; seed++) {
		static const uint32_t slow[] = { 2, 5, 20, 50 };

		for (size_t k = 0; k < 4; k++) {
			s = cold_start(200, slow[k], seed);
			assert_true(s.is_known && s.p < 0.001);
			assert_true(s.ttft_first_ms > 3 * s.ttft_rest_ms);
			assert_true(s.mean_ms > s.mean_rest_ms);
		}
		assert_true(cold_start(200, 1, seed).p > 0.001); /* the slowest of 200 may be any */
	}
	assert_false(cold_start(39, 10, 1).is_known);
	/* The first prompts are longer: they may well take longer. */
	chance_loop(&r, 200, 7);
	for (uint32_t i = 0; i < 10; i++) {
		r.row[i].first_event_ns += 200 * MS;
		r.row[i].prompt_tokens = 1000;
	}
	assert_false(start_of(&r).is_known);
	record_release(&r);
}

/* Ends in order: o an answer, x a refused connection, r a lost one, 5 a status. */
static struct metrics_outage outage_of(const char *ends)
{
	struct metrics_opts o = usual();
	uint32_t n = (uint32_t)strlen(ends);
	struct metrics_outage found;
	struct record r = { 0 };
	struct metrics m;

	chance_loop(&r, n, 1);
	for (uint32_t i = 0; i < n; i++) {
		struct request_row *row = &r.row[i];

		row->end_ns = T0 + 1000 * MS * (i + 1);
		if (ends[i] == 'o')
			continue;
		row->state = REQ_FAILED;
		row->fail = ends[i] == 'x' ? FAIL_CONNECT :
			    ends[i] == 'r' ? FAIL_RESET : FAIL_STATUS;
	}
	metrics_score(&m, &r, &o);
	found = m.client.outage;
	metrics_release(&m);
	record_release(&r);
	return found;
}

static void test_outage(void **state)
{
	static const struct {
		const char *ends;
		uint32_t requests;
		double start_s, duration_s;
	} cases[] = {
		{ "oooo", 0, 0, 0 },
		{ "oorrxoo", 3, 3, 3 },
		{ "ooxxoo", 0, 0, 0 },      /* too few */
		{ "oorrroo", 0, 0, 0 },     /* connections were made */
		{ "xxxoo", 0, 0, 0 },       /* it was not up yet */
		{ "ooxxx", 0, 0, 0 },       /* it did not come back */
		{ "oxx5xxo", 0, 0, 0 },     /* it answered in between */
		{ "oxxxoxxxxxo", 5, 6, 5 }, /* the longest */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct metrics_outage found = outage_of(cases[i].ends);

		assert_int_equal(found.requests, cases[i].requests);
		assert_float_equal(found.start_s, cases[i].start_s, 1e-9);
		assert_float_equal(found.duration_s, cases[i].duration_s, 1e-9);
	}
}

/* A run of 100 s at a rate: a note when the last answers take more than a fifth of it. */
static void test_long_end(void **state)
{
	static const struct {
		double sent_s;
		uint32_t answered; /* of 1,000 that arrived */
		uint32_t sessions;
		const char *code;
	} row[] = {
		{ 80, 1000, 0, NULL }, { 79.9, 1000, 0, "long_end" },
		{ 50, 800, 0, "rate_not_carried" }, { 50, 1000, 9, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct metrics m = { .completed = 1000, .duration_s = 100, .opts = usual() };
		struct trust_facts facts = { 0 };
		struct trust t;

		m.block[BLOCK_TTFT].mean_ms = m.block[BLOCK_TTFT].median_ms = 100;
		m.block[BLOCK_E2EL].mean_ms = m.block[BLOCK_E2EL].median_ms = 1000;
		m.client.n_usage = 1000;
		m.sessions.n = row[i].sessions;
		m.client.schedule = (struct metrics_schedule){ .n = 1000,
							       .sent_span_s = row[i].sent_s };
		m.client.queue = (struct metrics_queue){
			.is_known = true, .arrived = 1000, .answered = row[i].answered,
			.in_flight_after = 1000 - row[i].answered };
		trust_judge(&t, &m, &facts);
		assert_int_equal(t.n_reasons, row[i].code != NULL);
		if (!row[i].code)
			continue;
		assert_string_equal(t.reason[0].code, row[i].code);
		assert_int_equal(t.reason[0].level, strcmp(row[i].code, "long_end") == 0 ? TRUST_VALID :
				 TRUST_DEGRADED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shift), cmocka_unit_test(test_shared_late),
		cmocka_unit_test(test_first_late), cmocka_unit_test(test_queue),
		cmocka_unit_test(test_growth_of_queues),
		cmocka_unit_test(test_growth_of_classes),
		cmocka_unit_test(test_start_false_alarms), cmocka_unit_test(test_start),
		cmocka_unit_test(test_outage), cmocka_unit_test(test_long_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
