/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_metrics_settled.c - a server that fails requests, above all its slow ones, must not look
 * faster; and means of a whole run's settled part.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "client/metrics/metrics.h"
#include "core/rng/rng.h"
#include "record_sample.h"

#define T0 SAMPLE_START_NS
#define MS 1000000ll
#define N 200

static const double percentiles[] = { 99 };

static void begin(struct record *r, uint32_t n)
{
	struct err e;

	assert_int_equal(record_init(r, n, 1, 0, false, false, &e), 0);
	record_add_rows(r, n);
	r->start_ns = r->stop_ns = T0;
}

/* Sent at sent_ms; three events, the first after ttft_ms, the others after tpot_ms each. */
static void answer(struct record *r, uint32_t i, double sent_ms, double ttft_ms, double tpot_ms)
{
	struct request_row *row = &r->row[i];

	row->due_ns = row->admitted_ns = row->sent_ns = T0 + (int64_t)(sent_ms * MS);
	row->prompt_tokens = 10;
	row->output_tokens = 3;
	row->state = REQ_DONE;
	sample_event(r, row, (int64_t)(ttft_ms * MS), 0);
	sample_event(r, row, (int64_t)(tpot_ms * MS), 0);
	sample_event(r, row, (int64_t)(tpot_ms * MS), 0);
	row->end_ns = row->last_event_ns;
	if (row->end_ns > r->stop_ns)
		r->stop_ns = row->end_ns;
}

static void give_up(struct record *r, uint32_t i, double sent_ms, double after_ms,
		    enum request_state state)
{
	struct request_row *row = &r->row[i];

	row->due_ns = row->admitted_ns = row->sent_ns = T0 + (int64_t)(sent_ms * MS);
	row->end_ns = row->sent_ns + (int64_t)(after_ms * MS);
	row->state = (uint8_t)state;
	row->fail = state == REQ_FAILED ? FAIL_TIMEOUT : FAIL_CANCELLED;
}

static struct metrics_opts usual(void)
{
	return (struct metrics_opts){ .percentile = percentiles, .n_percentiles = 1,
				      .has_tokenizer = true, .selected = ~0u,
				      .is_rate_finite = true, .n_goodput = 1,
				      .goodput = { { BLOCK_TTFT, 150 } } };
}

/* TTFT of request i, 1 to 200 ms in no order. */
static double ttft_of(uint32_t i)
{
	return 1 + (i * 77) % N;
}

enum server { HONEST, DROPS, TIMES_OUT };

static void score(struct metrics *m, enum server server)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };

	begin(&r, N);
	for (uint32_t i = 0; i < N; i++) {
		double ttft = ttft_of(i);

		if (server == DROPS && i % 20 == 0)
			give_up(&r, i, 10 * i, 1, REQ_FAILED);
		else if (server == TIMES_OUT && ttft > 0.9 * N)
			give_up(&r, i, 10 * i, 500, REQ_FAILED);
		else
			answer(&r, i, 10 * i, ttft, 5);
	}
	metrics_score(m, &r, &o);
	record_release(&r);
}

static void failing_does_not_look_faster(void **state)
{
	const struct metrics_attempted_percentile *p;
	struct metrics honest, drops, times_out;
	double p99;

	(void)state;
	score(&honest, HONEST);
	p99 = honest.block[BLOCK_TTFT].percentile_ms[0];
	p = honest.attempted.ttft.percentile;
	assert_true(p[1].p == 99 && p[1].low_ms == p99 && p[1].high_ms == p99);
	assert_true(p[0].p == 50 && p[0].low_ms == honest.block[BLOCK_TTFT].median_ms);
	assert_true(p[0].high_ms == p[0].low_ms);
	assert_int_equal(honest.attempted.n, N);
	assert_true(honest.attempted.good_share == 0.75);

	/* Dropping 5 % at once: P99 is unknown. */
	score(&drops, DROPS);
	p = drops.attempted.ttft.percentile;
	assert_int_equal(drops.attempted.failed, N / 20);
	assert_int_equal(drops.attempted.ttft.censored, N / 20);
	assert_true(isinf(p[1].high_ms) && p[1].low_ms <= p99 && p[1].low_ms > 0.9 * p99);
	assert_true(p[0].low_ms < p[0].high_ms);
	assert_true(p[0].high_ms >= drops.block[BLOCK_TTFT].median_ms);
	assert_true(drops.attempted.good_share < honest.attempted.good_share);

	/* The slowest tenth times out after 500 ms: P99 of the rest falls, the honest one rises. */
	score(&times_out, TIMES_OUT);
	p = times_out.attempted.ttft.percentile;
	assert_true(times_out.block[BLOCK_TTFT].percentile_ms[0] < p99 - 15);
	assert_true(p[1].low_ms == 500 && isinf(p[1].high_ms));
	assert_true(times_out.attempted.e2el.percentile[1].low_ms == 500);
	assert_true(p[0].low_ms == honest.block[BLOCK_TTFT].median_ms);
	assert_true(p[0].high_ms == p[0].low_ms);
	metrics_release(&honest);
	metrics_release(&drops);
	metrics_release(&times_out);
}

/* Who counts as what, and what is known of whom. */
static void every_request_is_counted_once(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	const struct metrics_attempted *a;
	struct metrics m;

	(void)state;
	begin(&r, 8);
	answer(&r, 0, 0, 10, 5);
	answer(&r, 1, 0, 20, 5);
	r.row[1].output_tokens = 1;             /* no TPOT */
	give_up(&r, 2, 0, 300, REQ_FAILED);
	give_up(&r, 3, 0, 40, REQ_CANCELLED);
	answer(&r, 4, 0, 30, 5);                /* the stream breaks after its first tokens */
	r.row[4].state = REQ_FAILED;
	r.row[5].state = REQ_CANCELLED;         /* never sent */
	r.row[6].admitted_ns = T0;              /* refused */
	r.row[6].connect_ns = T0 + 10 * MS;
	r.row[6].end_ns = T0 + 12 * MS;
	r.row[6].state = REQ_FAILED;
	r.row[7].state = REQ_UNSENT;            /* no part of the run */
	metrics_score(&m, &r, &o);
	a = &m.attempted;
	assert_int_equal(a->n, 6);
	assert_int_equal(a->succeeded, 2);
	assert_int_equal(a->failed, 3);
	assert_int_equal(a->cancelled, 1);
	assert_int_equal(a->unsent, 1);
	assert_int_equal(a->with_tpot, 1);
	assert_int_equal(a->with_itl, 2);
	assert_int_equal(a->ttft.known, 3);
	assert_int_equal(a->ttft.censored, 3);
	assert_int_equal(a->e2el.known, 2);
	assert_int_equal(a->e2el.censored, 4);
	/* At least 2, 10, 20, 30, 40, 300 ms; known are 10, 20 and 30: the median lies beyond. */
	assert_true(fabs(a->ttft.percentile[0].low_ms - 25) < 1e-9);
	assert_true(isinf(a->ttft.percentile[0].high_ms));
	assert_true(fabs(a->good_share - 2.0 / 6) < 1e-12);
	metrics_release(&m);
	record_release(&r);
}

static void nothing_succeeded(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	begin(&r, 2);
	give_up(&r, 0, 0, 100, REQ_FAILED);
	give_up(&r, 1, 0, 200, REQ_FAILED);
	metrics_score(&m, &r, &o);
	assert_true(fabs(m.attempted.e2el.percentile[0].low_ms - 150) < 1e-9);
	assert_true(isinf(m.attempted.e2el.percentile[0].high_ms));
	assert_false(m.settled.is_reported);
	metrics_release(&m);
	record_release(&r);
}

/* Slow requests that come together tell less than as many that come alone. */
static void clumped_percentiles_have_wider_intervals(void **state)
{
	struct metrics_opts o = usual();
	struct percentile got[2];

	(void)state;
	for (int is_clumped = 0; is_clumped < 2; is_clumped++) {
		const struct metrics_summary *s;
		struct record r = { 0 };
		struct metrics m;

		begin(&r, 2000);
		for (uint32_t i = 0; i < 2000; i++) {
			bool is_slow = is_clumped ? i % 400 < 40 : i * 7919 % 2000 < 200;

			answer(&r, i, 10 * i, is_slow ? 300 + i * 31 % 997 : 20 + i * 31 % 17, 5);
		}
		metrics_score(&m, &r, &o);
		s = &m.block[BLOCK_TTFT];
		assert_true(s->bounds[0].value * 1000 == s->median_ms);
		assert_true(s->bounds[0].low <= s->bounds[0].value);
		got[is_clumped] = s->bounds[1];
		metrics_release(&m);
		record_release(&r);
	}
	assert_true(got[0].phi < 2 && got[1].phi > 2);
	assert_true(got[1].needed > 2 * got[0].needed);
	assert_true(got[1].low < got[0].low);
}

/* ---- the settled part ---- */

static struct pcg64 rng;

static double exponential(double mean)
{
	return -mean * log(1 - pcg64_double(&rng));
}

/* A closed loop of 8: the first requests wait for a cold server, the others 20 ms on average. */
static void closed_loop(struct record *r, uint32_t n, uint32_t n_cold)
{
	double free_ms[8] = { 0 };

	begin(r, n);
	for (uint32_t i = 0; i < n; i++) {
		size_t slot = 0;
		double ttft = (i < n_cold ? 400 : 10) + exponential(10);

		for (size_t k = 1; k < 8; k++)
			slot = free_ms[k] < free_ms[slot] ? k : slot;
		answer(r, i, free_ms[slot], ttft, 5);
		free_ms[slot] += ttft + 10;
	}
}

/* A multiple of 100. */
#define TIMES 1000u

static void settled_mean_is_without_warm_up(void **state)
{
	struct metrics_opts o = usual();
	unsigned held[4] = { 0 }, no_cut = 0;

	(void)state;
	o.is_rate_finite = false;
	o.max_concurrency = 8;
	pcg64_seed(&rng, 20266);
	for (unsigned t = 0; t < TIMES; t++) {
		struct record warm = { 0 }, cold = { 0 };
		const struct metrics_settled *s;
		struct metrics m;

		closed_loop(&warm, 600, 0);
		metrics_score(&m, &warm, &o);
		s = &m.settled;
		no_cut += s->left_out_start == 0 && s->left_out_end == 0;
		assert_int_equal(s->mean[METRICS_SETTLED_TTFT].state, SETTLED_KNOWN);
		held[0] += s->mean[METRICS_SETTLED_TTFT].low < 20 &&
			   20 < s->mean[METRICS_SETTLED_TTFT].high;
		metrics_release(&m);
		record_release(&warm);

		closed_loop(&cold, 600, 40);
		metrics_score(&m, &cold, &o);
		s = &m.settled;
		assert_in_range(s->left_out_start, 36, 300);
		assert_true(m.block[BLOCK_TTFT].mean_ms > 40);
		held[1] += s->mean[METRICS_SETTLED_TTFT].low < 20 &&
			   20 < s->mean[METRICS_SETTLED_TTFT].high;
		/* 8 at once of 30 ms each. */
		held[2] += s->mean[METRICS_SETTLED_REQUESTS].low < 8 / 0.03 &&
			   8 / 0.03 < s->mean[METRICS_SETTLED_REQUESTS].high;
		held[3] += s->mean[METRICS_SETTLED_OUTPUT].low < 24 / 0.03 &&
			   24 / 0.03 < s->mean[METRICS_SETTLED_OUTPUT].high;
		assert_true(fabs(s->mean[METRICS_SETTLED_ITL].mean - 5) < 1e-6);
		metrics_release(&m);
		record_release(&cold);
	}
	print_message("no cut %u; held %u %u %u %u of %u\n", no_cut, held[0], held[1], held[2],
		      held[3], TIMES);
	assert_true(no_cut >= TIMES / 100 * 95);
	for (int k = 0; k < 4; k++)
		assert_in_range(held[k], TIMES / 100 * 90, TIMES / 100 * 99);
}

/* One answer every 5 ms, to requests that come twice as often. */
static void regular_ends_do_not_drift(void **state)
{
	struct metrics_opts o = usual();

	(void)state;
	for (uint32_t n = 600; n <= 1000; n += 37) {
		const struct settled_mean *rate;
		struct record r = { 0 };
		struct metrics m;

		begin(&r, n);
		for (uint32_t i = 0; i < n; i++)
			answer(&r, i, 2.5 * i, 2.5 * i + 3, 1);
		metrics_score(&m, &r, &o);
		rate = &m.settled.mean[METRICS_SETTLED_REQUESTS];
		assert_int_equal(rate->state, SETTLED_KNOWN);
		assert_true(rate->low <= 200.001 && rate->high >= 199.999);
		assert_true(rate->high - rate->low < 2);
		/* First tokens come at regular instants and beat with the bins: short at worst. */
		assert_true(m.settled.mean[METRICS_SETTLED_OUTPUT].state != SETTLED_DRIFTING);
		assert_int_equal(m.settled.mean[METRICS_SETTLED_TTFT].state, SETTLED_DRIFTING);
		metrics_release(&m);
		record_release(&r);
	}
}

static void a_burst_does_not_settle(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	begin(&r, 100);
	for (uint32_t i = 0; i < 100; i++)
		answer(&r, i, 0.01 * i, 10 + i, 5);
	metrics_score(&m, &r, &o);
	assert_true(m.settled.is_reported && m.settled.is_burst);
	assert_int_equal(m.settled.mean[METRICS_SETTLED_TTFT].state, SETTLED_UNKNOWN);
	metrics_release(&m);
	record_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failing_does_not_look_faster),
		cmocka_unit_test(every_request_is_counted_once),
		cmocka_unit_test(nothing_succeeded),
		cmocka_unit_test(clumped_percentiles_have_wider_intervals),
		cmocka_unit_test(settled_mean_is_without_warm_up),
		cmocka_unit_test(regular_ends_do_not_drift),
		cmocka_unit_test(a_burst_does_not_settle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
