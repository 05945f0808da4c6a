/* SPDX-License-Identifier: Apache-2.0 */
/* The steady-state window: where it begins and ends, and what counts in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "client/metrics/metrics.h"
#include "record_sample.h"

#define T0 SAMPLE_START_NS
#define MS 1000000ll

static const double percentiles[] = { 50, 99 };

struct request { int start_ms, end_ms; };

static void run(struct record *r, const struct request *q, uint32_t n)
{
	struct err e;

	assert_int_equal(record_init(r, n, 1, 0, false, false, &e), 0);
	record_add_rows(r, n);
	r->start_ns = r->stop_ns = T0;
	for (uint32_t i = 0; i < n; i++) {
		struct request_row *row = &r->row[i];

		row->due_ns = row->admitted_ns = row->sent_ns = T0 + q[i].start_ms * MS;
		row->prompt_tokens = 10;
		row->output_tokens = 3;
		row->state = REQ_DONE;
		/* TTFT is half of the latency, two more events share the rest. */
		sample_event(r, row, (q[i].end_ms - q[i].start_ms) * MS / 2, 0);
		sample_event(r, row, (q[i].end_ms - q[i].start_ms) * MS / 4, 0);
		sample_event(r, row, T0 + q[i].end_ms * MS - row->last_event_ns, 0);
		row->end_ns = row->last_event_ns;
		if (row->end_ns > r->stop_ns)
			r->stop_ns = row->end_ns;
	}
}

static struct metrics_opts usual(int64_t cap, double threshold)
{
	return (struct metrics_opts){ .percentile = percentiles, .n_percentiles = 2,
				      .has_tokenizer = true, .max_concurrency = cap,
				      .finds_steady_state = true, .steady_threshold = threshold };
}

static void test_window(void **state)
{
	static const struct {
		struct request q[6];
		uint32_t n;
		int64_t cap;
		double threshold;
		bool is_reached;
		int start_ms, end_ms;
		int64_t peak, threshold_requests;
		uint32_t started, completed;
	} cases[] = {
		/* Up one by one, then down: full from the third start to the first end. */
		{ { { 0, 300 }, { 10, 310 }, { 20, 320 } }, 3, 3, 1, true, 20, 300, 3, 3, 1, 0 },
		{ { { 0, 300 }, { 10, 310 }, { 20, 320 } }, 3, 3, 0.5, true, 10, 310, 3, 2, 2, 1 },
		{ { { 0, 300 }, { 10, 310 }, { 20, 320 } }, 3, 3, 0, true, 0, 320, 3, 1, 3, 2 },
		/* A dip in between belongs to it. */
		{ { { 0, 100 }, { 0, 400 }, { 200, 500 } }, 3, 2, 0.95, true, 0, 400, 2, 2, 3, 1 },
		/* One ends as another starts: never three. */
		{ { { 0, 100 }, { 0, 200 }, { 100, 300 } }, 3, 3, 1, false, 0, 0, 2, 3, 0, 0 },
		{ { { 0, 100 }, { 0, 200 }, { 100, 300 } }, 3, 2, 1, true, 0, 200, 2, 2, 3, 1 },
		/* Never so many at once. */
		{ { { 0, 10 }, { 20, 30 }, { 40, 50 } }, 3, 2, 1, false, 0, 0, 1, 2, 0, 0 },
		{ { { 0, 10 } }, 0, 2, 1, false, 0, 0, 0, 2, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct metrics_opts o = usual(cases[i].cap, cases[i].threshold);
		struct record r = { 0 };
		struct metrics m;

		run(&r, cases[i].q, cases[i].n);
		metrics_score(&m, &r, &o);
		assert_true(m.steady.is_wanted);
		assert_int_equal(m.steady.is_reached, cases[i].is_reached);
		assert_int_equal(m.steady.observed_peak, cases[i].peak);
		assert_int_equal(m.steady.threshold_requests, cases[i].threshold_requests);
		assert_int_equal(m.steady.total, cases[i].n);
		assert_int_equal(m.steady.started, cases[i].started);
		assert_int_equal(m.steady.completed, cases[i].completed);
		if (cases[i].is_reached) {
			assert_true(m.steady.start_ns == T0 + cases[i].start_ms * MS);
			assert_true(m.steady.end_ns == T0 + cases[i].end_ms * MS);
		}
		metrics_release(&m);
		record_release(&r);
	}
}

/* Requests of 400 ms each: TTFT 200 ms, then events after 100 and 100 ms. */
static void test_numbers(void **state)
{
	static const struct request q[] = { { 0, 400 }, { 100, 500 }, { 400, 800 }, { 500, 900 } };
	struct metrics_opts o = usual(2, 1);
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	run(&r, q, 4);
	r.row[1].output_tokens = 12;
	r.row[3].output_tokens = 1; /* no TPOT */
	o.steady_min_window_s = 0.7;
	metrics_score(&m, &r, &o);
	/* 100 to 800 ms. Starts in it: 100, 400, 500. Ends: 400, 500. */
	assert_true(m.steady.duration_s == 0.7 && !m.steady.is_short);
	assert_int_equal(m.steady.started, 3);
	assert_int_equal(m.steady.completed, 2);
	assert_true(m.steady.request_throughput == 2 / 0.7);
	assert_true(m.steady.input_throughput == 30 / 0.7);
	/*
	 * Events at 200 300 400, 300 400 500 (of four tokens each), 600 700 (800 is out), 700 (of a
	 * third; 800 and 900 are out).
	 */
	assert_true(fabs(m.steady.output_throughput - (17 + 1 / 3.0) / 0.7) < 1e-9);
	assert_true(fabs(m.steady.total_token_throughput - (47 + 1 / 3.0) / 0.7) < 1e-9);
	assert_true(fabs(m.steady.mean_ttft_ms - 200) < 1e-9);
	assert_true(fabs(m.steady.median_ttft_ms - 200) < 1e-9);
	assert_true(fabs(m.steady.percentile_ttft_ms[1] - 200) < 1e-9);
	assert_true(fabs(m.steady.mean_tpot_ms - (200 / 11.0 + 100) / 2) < 1e-9);
	assert_true(fabs(m.steady.p90_tpot_ms - (20 / 11.0 + 90)) < 1e-9);
	metrics_release(&m);
	o.steady_min_window_s = 0; /* 10 s, or a tenth of the run */
	metrics_score(&m, &r, &o);
	assert_true(m.steady.is_short);
	metrics_release(&m);
	/* A failure is not looked at: with it the second place was never taken. */
	r.row[1].state = r.row[2].state = REQ_FAILED;
	metrics_score(&m, &r, &o);
	assert_false(m.steady.is_reached);
	assert_int_equal(m.steady.total, 2);
	metrics_release(&m);
	record_release(&r);
}

static void test_when(void **state)
{
	static const struct request q[] = { { 0, 400 } };
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	run(&r, q, 1);
	for (int i = 0; i < 4; i++) {
		struct metrics_opts o = usual(1, 1);

		o.max_concurrency = i == 1 ? 0 : 1;
		o.is_rate_finite = i == 2;
		o.finds_steady_state = i != 3;
		metrics_score(&m, &r, &o);
		assert_int_equal(m.steady.is_wanted, i == 0);
		assert_int_equal(m.steady.is_reached, i == 0);
		metrics_release(&m);
	}
	record_release(&r);
}

/* How full a closed loop was over the whole run, failures included. */
static void test_slots(void **state)
{
	static const struct request q[] = { { 0, 100 }, { 0, 200 }, { 100, 300 } };
	struct metrics_opts o = usual(2, 1);
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	run(&r, q, 3);
	r.row[2].state = REQ_FAILED;
	metrics_score(&m, &r, &o);
	assert_true(m.client.slots.is_known);
	assert_int_equal(m.client.slots.requests, 3);
	assert_true(fabs(m.client.slots.in_flight_mean - 500.0 / 300) < 1e-9);
	metrics_release(&m);
	r.row[2].sent_ns = 0; /* it never began */
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.slots.requests, 2);
	assert_true(fabs(m.client.slots.in_flight_mean - 1.5) < 1e-9);
	metrics_release(&m);
	for (int i = 0; i < 3; i++) { /* no cap, a rate, requests with due times of their own */
		o.max_concurrency = i == 0 ? 0 : 2;
		o.is_rate_finite = i == 1;
		r.row[1].due_s = i == 2 ? 0.1 : 0;
		metrics_score(&m, &r, &o);
		assert_false(m.client.slots.is_known);
		metrics_release(&m);
	}
	record_release(&r);
}

/* What requests with due times waited for a slot, without the client's own delay. */
static void test_held(void **state)
{
	static const struct request q[] = { { 0, 100 }, { 10, 200 }, { 105, 300 }, { 300, 400 } };
	static const int due_ms[] = { 0, 10, 20, 290 };
	struct metrics_opts o = usual(2, 1);
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	run(&r, q, 4);
	for (int i = 0; i < 4; i++) {
		r.row[i].due_ns = T0 + due_ms[i] * MS;
		r.row[i].due_s = due_ms[i] / 1000.0;
		r.row[i].user_last_event_ns = r.row[i].last_event_ns;
	}
	for (int i = 0; i < 2; i++) {
		o.is_rate_finite = i == 1; /* a trace has due times without a rate */
		metrics_score(&m, &r, &o);
		assert_int_equal(m.client.held.n, 4);
		assert_true(fabs(m.client.held.mean_ms - 80.0 / 4) < 1e-9);
		assert_true(m.client.held.share == 0.25);
		metrics_release(&m);
	}
	o.max_concurrency = 0;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.held.n, 0);
	metrics_release(&m);
	record_release(&r);
}

static void test_pooling(void **state)
{
	static const struct request q[] = { { 0, 400 }, { 0, 400 } };
	struct metrics_opts o = usual(2, 1);
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	run(&r, q, 2);
	o.is_pooling = true;
	r.row[0].flags = r.row[1].flags = ROW_IS_POOLING;
	metrics_score(&m, &r, &o);
	assert_true(m.steady.is_reached && m.steady.input_throughput == 50);
	assert_true(m.steady.output_throughput == 0 && m.steady.mean_ttft_ms == 0);
	metrics_release(&m);
	record_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_when),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_pooling),
	};

	return cmocka_run_group_tests_name("metrics_steady", tests, NULL, NULL);
}
