/* SPDX-License-Identifier: Apache-2.0 */
/* The error budget: intervals that cover, levels that fit, signs of disturbances, kept files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/metrics/budget.h"
#include "core/base/mem.h"
#include "record_sample.h"

#define MS 1000000ll
#define T0 SAMPLE_START_NS
#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-6)
#define NOW (T0 + 3600 * 1000 * MS)

/* A value whose logarithm is about normal: the sum of twelve uniform draws. */
static double lognormal(struct sample_draw *d, double median, double spread)
{
	double z = -6;

	for (int i = 0; i < 12; i++)
		z += sample_draw(d, 1000000) / 1e6;
	return median * exp(spread * z);
}

/* The next value is inside in at least 95 of 100 cases, and not in all of them at 90 %. */
static void test_predict_covers(void **state)
{
	struct sample_draw d = { 88172645463325252ull };

	(void)state;
	for (double spread = 0.1; spread < 2; spread *= 3) {
		unsigned inside[2] = { 0 };

		for (int i = 0; i < 2000; i++) {
			double v[BUDGET_ROUNDS], next, low, high;

			for (int k = 0; k < BUDGET_ROUNDS; k++)
				v[k] = lognormal(&d, 0.02, spread);
			next = lognormal(&d, 0.02, spread);
			budget_predict(v, BUDGET_ROUNDS, BUDGET_COMPUTED, 1e-9, 0, &low, &high);
			inside[0] += next >= low && next <= high;
			budget_predict(v, BUDGET_ROUNDS, 0.9, 1e-9, 0, &low, &high);
			inside[1] += next >= low && next <= high;
		}
		assert_in_range(inside[0], 1960, 2000);
		assert_in_range(inside[1], 1740, 1860);
	}
}

static struct budget_round round_of(double error, double sign)
{
	struct budget_part p = { error, sign }, none = { NAN, 0 };

	return (struct budget_round){ .ttft_first = p, .ttft_later = none, .e2el_first = p,
				      .e2el_later = none, .itl = p, .ttft_p99 = error,
				      .e2el_p99 = error, .itl_mean = error, .send = error / 4,
				      .kernel = error / 2 };
}

/* A disturbance that the record shows does not widen the interval of an undisturbed client. */
static void test_signs_are_taken_off(void **state)
{
	struct budget_round v[BUDGET_ROUNDS];
	struct budget calm = { 0 }, hit = { 0 }, blind = { 0 };
	const struct budget_signs signs = { .ttft = 1, .e2el = 2, .itl = 3 };
	double high;

	(void)state;
	for (int i = 0; i < BUDGET_ROUNDS; i++)
		v[i] = round_of(0.010 + 0.001 * i, 0);
	budget_of_rounds(&calm, v, BUDGET_ROUNDS, 1);
	assert_true(calm.ttft.low > 0 && calm.ttft.low <= 0.010);
	assert_true(calm.ttft.high >= 0.019 && calm.ttft.high < 0.057);
	NEAR(calm.ttft.mean, 0.0145);
	NEAR(calm.send + calm.kernel + calm.late, calm.ttft.mean);
	v[4] = round_of(9, 9);
	budget_of_rounds(&hit, v, BUDGET_ROUNDS, 1);
	assert_true(hit.itl.high < 0.057);
	v[4] = round_of(9, 0);
	budget_of_rounds(&blind, v, BUDGET_ROUNDS, 1);
	assert_true(blind.itl.high >= 9 && blind.itl.high <= 9 * BUDGET_BEYOND);
	high = calm.itl.high;
	budget_add_signs(&calm, &signs);
	NEAR(calm.itl.high, high + 3);
}

/* One of two requests: written 2 ms late, events 2 and 3 read together 20 ms late. */
static void test_signs_of_a_record(void **state)
{
	struct budget_signs calm, hit;
	struct record r = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 2, 1, 0, true, true, &e), 0);
	record_add_rows(&r, 2);
	for (uint32_t i = 0; i < 2; i++) {
		r.row[i].phase = PHASE_MAIN;
		r.row[i].sent_ns = T0;
		r.row[i].sent_all_ns = T0 + 10000;
		for (int k = 0; k < 10; k++) {
			if (i == 1 && k == 3)
				record_mark(&r.shard[0], &r.row[i], MARK_SHARED, 1);
			sample_event(&r, &r.row[i], i == 0 ? 10 * MS : k == 2 ? 20 * MS :
				     k == 3 ? 0 : 10 * MS, i == 1 && k == 3 ? 20 * MS : 0);
		}
		r.row[i].state = REQ_DONE;
	}
	calm = budget_signs(&r, 0, 1);
	NEAR(calm.ttft, 0);
	NEAR(calm.itl, 0);
	r.row[1].sent_all_ns = T0 + 10000 + 2 * MS;
	hit = budget_signs(&r, 0, 2);
	NEAR(hit.ttft, 0.5); /* 1 ms above the median of the two, of two */
	NEAR(hit.itl, 10);
	record_release(&r);
}

/* A round of three requests after one of others; the first of them, or all, came at once. */
static void test_round_of_a_record(void **state)
{
	static const double ttft_us[] = { 100, -400, 600 }, e2el_us[] = { -10, 30, 40 };
	static const int64_t late_ns[] = { 6 * MS, 0, 0, 2 * MS };
	static const struct {
		uint32_t first;
		double ttft, ttft_later, e2el, e2el_later, sign, sign_later;
	} row[] = {
		{ 1, 0.1, 0.1, -0.01, 0.035, 0, 0.5 },
		{ 2, -0.15, 0.6, 0.01, 0.04, 0, 0 },
		{ 0, 0.1, NAN, 0.02, NAN, 2 / 3.0, 0 },
		{ 3, 0.1, NAN, 0.02, NAN, 2 / 3.0, 0 },
	};
	struct record r = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 4, 1, 0, true, true, &e), 0);
	record_add_rows(&r, 4);
	for (uint32_t i = 0; i < 4; i++) {
		r.row[i].phase = PHASE_MAIN;
		r.row[i].sent_ns = T0;
		r.row[i].sent_all_ns = T0 + late_ns[i] + 10000;
		for (int k = 0; k < 3; k++)
			sample_event(&r, &r.row[i], 10 * MS, 0);
		r.row[i].state = REQ_DONE;
	}
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct oracle_errors errors = { 0 };
		struct budget_round b;

		oracle_errors_init(&errors, 3, 3);
		errors.n_requests = 3;
		errors.n_itl = errors.n_stamp = 4;
		for (size_t k = 0; k < 4; k++) {
			errors.itl[0][k] = (double)(4 - k) * 10;
			errors.itl[1][k] = 0;
			errors.stamp[0][k] = (double)(k * k);
			errors.stamp[1][k] = 0;
		}
		for (size_t k = 0; k < 3; k++) {
			errors.ttft[k] = ttft_us[k];
			errors.e2el[k] = e2el_us[k];
			errors.send[k] = (double)k;
		}
		b = budget_round(&errors, &r, 1, row[i].first);
		NEAR(b.ttft_first.mean, row[i].ttft);
		NEAR(b.e2el_first.mean, row[i].e2el);
		NEAR(b.ttft_first.sign, row[i].sign);
		NEAR(b.e2el_first.sign, row[i].sign);
		NEAR(b.ttft_later.sign, row[i].sign_later);
		NEAR(b.e2el_later.sign, row[i].sign_later);
		assert_int_equal(isnan(b.ttft_later.mean), isnan(row[i].ttft_later));
		if (!isnan(row[i].ttft_later)) {
			NEAR(b.ttft_later.mean, row[i].ttft_later);
			NEAR(b.e2el_later.mean, row[i].e2el_later);
		}
		NEAR(b.ttft_p99, 0.596);
		NEAR(b.e2el_p99, 0.0398);
		NEAR(b.itl.mean, 0.0397);
		NEAR(b.itl.sign, 0);
		NEAR(b.itl_mean, 0.025);
		NEAR(b.send, 0.001);
		NEAR(b.kernel, 0.0025);
		oracle_errors_release(&errors);
	}
	record_release(&r);
}

static void add_request(struct record *r, uint32_t i, int64_t at_ns, int64_t itl_ns, int events)
{
	r->row[i].phase = PHASE_MAIN;
	r->row[i].sent_ns = at_ns;
	for (int k = 0; k < events; k++)
		sample_event(r, &r->row[i], itl_ns, 0);
	r->row[i].end_ns = r->row[i].last_event_ns;
	r->row[i].state = REQ_DONE;
}

/* Three requests of which two overlap, 5 ms between events; then failures and single events. */
static void test_level(void **state)
{
	struct budget_level l = { 0 };
	struct record r = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 4, 1, 0, true, true, &e), 0);
	record_add_rows(&r, 4);
	add_request(&r, 0, T0, 5 * MS, 11);
	add_request(&r, 1, T0 + 20 * MS, 5 * MS, 11);
	add_request(&r, 2, T0 + 75 * MS, 5 * MS, 11); /* as the second ends */
	add_request(&r, 3, T0, 5 * MS, 11);
	r.row[3].state = REQ_FAILED;
	assert_int_equal(budget_level_of(&r, &l, &e), 0);
	assert_int_equal(l.streams, 2);
	assert_int_equal(l.requests, 3);
	assert_int_equal(l.events, 11);
	NEAR(l.events_per_s, 200);
	for (int i = 0; i < 3; i++)
		r.row[i].state = REQ_FAILED;
	assert_int_equal(budget_level_of(&r, &l, &e), -1);
	assert_string_equal(e.text, "no request succeeded");
	add_request(&r, 0, T0, 5 * MS, 1);
	r.row[0].n_events = 1;
	r.row[0].last_event_ns = r.row[0].first_event_ns;
	assert_int_equal(budget_level_of(&r, &l, &e), -1);
	assert_string_equal(e.text, "the answers have no gaps between tokens");
	record_release(&r);
}

/* No round is larger than the run that it estimates, nor longer than a few seconds in all. */
static void test_shape(void **state)
{
	static const struct budget_level levels[] = {
		{ .streams = 1, .requests = 3, .events = 2, .events_per_s = 100, .is_burst = true },
		{ .streams = 1, .requests = 500, .events = 400, .events_per_s = 20 },
		{ .streams = 1000, .requests = 1000, .events = 500, .events_per_s = 100,
		  .is_burst = true },
		{ .streams = 5000, .requests = 50000, .events = 200, .events_per_s = 10,
		  .is_burst = true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		struct budget_shape s = budget_shape(&levels[i]);

		assert_in_range(s.requests, 1, levels[i].requests);
		assert_in_range(s.events, 2, levels[i].events);
		assert_true(isinf(s.rate) == levels[i].is_burst);
		assert_true(s.seconds > 0.1 && s.seconds < 30);
	}
}

static struct budget sample_budget(void)
{
	struct budget_round v[] = { round_of(0.01, 0), round_of(0.02, 0), round_of(0.03, 0) };
	struct budget b = { .at_ns = T0, .level = { .streams = 100, .events_per_s = 50,
			    .requests = 100, .events = 20, .threads = 2, .stamps = BUDGET_USER,
			    .is_burst = true, .is_tls = true } };

	budget_of_rounds(&b, v, 3, 1);
	return b;
}

static void test_fits(void **state)
{
	static const struct {
		double streams, rate;
		uint32_t requests, events;
		bool fits;
	} rows[] = {
		{ 100, 50, 100, 20, true }, { 150, 50, 500, 90, true }, { 151, 50, 500, 90, false },
		{ 67, 50, 100, 20, true }, { 66, 50, 100, 20, false },
		{ 100, 76, 100, 20, false },
		{ 100, 33, 100, 20, false }, { 100, 50, 99, 20, false },
		{ 100, 50, 100, 19, false },
	};
	const struct budget b = sample_budget();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct budget_level l = b.level;

		l.streams = (uint32_t)rows[i].streams;
		l.events_per_s = rows[i].rate;
		l.requests = rows[i].requests;
		l.events = rows[i].events;
		assert_int_equal(budget_fits(&b, &l), rows[i].fits);
		l.stamps = BUDGET_KERNEL;
		assert_false(budget_fits(&b, &l));
	}
	assert_false(budget_fits(&(struct budget){ 0 }, &b.level));
}

/* A kept budget is the one that was written, here, by this build, within a day; else none. */
static void test_kept(void **state)
{
	const struct budget b = sample_budget();
	struct buf text = { 0 };
	struct budget got;

	(void)state;
	budget_write(&b, "here", "1.0", &text);
	assert_int_equal(budget_read(&got, buf_str(&text), "here", "1.0", NOW), BUDGET_USABLE);
	assert_true(got.is_kept && budget_fits(&got, &b.level));
	assert_true(got.ttft.high == b.ttft.high && got.itl.low == b.itl.low && got.late == b.late);
	assert_true(got.level.is_tls && got.level.is_burst && got.level.stamps == BUDGET_USER);
	assert_int_equal(budget_read(&got, buf_str(&text), "there", "1.0", NOW), BUDGET_FOREIGN);
	assert_int_equal(budget_read(&got, buf_str(&text), "here", "1.1", NOW), BUDGET_FOREIGN);
	assert_int_equal(got.rounds, 0);
	assert_int_equal(budget_read(&got, buf_str(&text), "here", "1.0",
				     T0 + 86401ll * 1000 * MS), BUDGET_OLD);
	assert_int_equal(budget_read(&got, buf_str(&text), "here", "1.0", T0 - 1), BUDGET_OLD);
	/* Cut anywhere, or with a member gone wrong, it is damaged and never half used. */
	for (size_t n = 0; n < text.len; n++)
		assert_int_equal(budget_read(&got, (struct str){ text.data, n }, "here", "1.0",
					     NOW), BUDGET_DAMAGED);
	memcpy(strstr(text.data, "\"user\""), "\"uuer\"", 6);
	assert_int_equal(budget_read(&got, buf_str(&text), "here", "1.0", NOW), BUDGET_DAMAGED);
	assert_int_equal(got.rounds, 0);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_predict_covers),
		cmocka_unit_test(test_signs_are_taken_off),
		cmocka_unit_test(test_signs_of_a_record),
		cmocka_unit_test(test_round_of_a_record),
		cmocka_unit_test(test_level),
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
