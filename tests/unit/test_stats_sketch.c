/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of many values: quantiles, samples, quantities over time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/stats/sketch.h"
#include "core/stats/stats.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static void is_near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want))))
		fail_msg("got %.12g, want %.12g", got, want);
}

/* The percentiles that people quote are in the list and equal those of all values. */
static void quantiles(void **state)
{
	static const double quoted[] = { 0, 0.1, 1, 5, 50, 90, 95, 99, 99.5, 99.9, 100 };
	double v[1000], out[SKETCH_QUANTILES];

	(void)state;
	for (size_t i = 0; i < COUNT(v); i++)
		v[i] = pow((double)i, 1.5);
	sketch_quantiles(v, COUNT(v), out);
	for (size_t i = 1; i < SKETCH_QUANTILES; i++) {
		assert_true(sketch_p(i) > sketch_p(i - 1));
		assert_true(out[i] >= out[i - 1]);
	}
	for (size_t k = 0; k < COUNT(quoted); k++) {
		size_t i = 0;

		while (i < SKETCH_QUANTILES && fabs(sketch_p(i) - quoted[k] / 100) > 1e-12)
			i++;
		assert_true(i < SKETCH_QUANTILES);
		is_near(out[i], stats_percentile(v, COUNT(v), quoted[k]));
	}
}

/* Ascending, all of few, from everywhere of many, and no period is picked up. */
static void samples(void **state)
{
	static const size_t sizes[] = { 0, 1, 1999, 2000, 2001, 5000, 1000000 };

	(void)state;
	for (size_t k = 0; k < COUNT(sizes); k++) {
		size_t n = sizes[k], parts = sketch_sample_size(n), even = 0;

		assert_int_equal(parts, n < SKETCH_PAIRS_MAX ? n : SKETCH_PAIRS_MAX);
		for (size_t i = 0; i < parts; i++) {
			size_t at = sketch_sample(n, i);

			assert_true(at < n && (i == 0 || at > sketch_sample(n, i - 1)));
			even += at % 2 == 0;
		}
		if (n > 10000)
			assert_true(even > parts * 4 / 10 && even < parts * 6 / 10);
	}
}

static void grids(void **state)
{
	static const struct { double duration_s, step_s; size_t n; } row[] = {
		{ 0, 1, 0 }, { -1, 1, 0 }, { 0.001, 0.01, 1 }, { 1, 0.01, 100 }, { 2, 0.02, 100 },
		{ 10, 0.1, 100 }, { 29, 0.2, 145 }, { 30, 0.5, 60 }, { 59.9, 0.5, 120 },
		{ 60, 1, 60 }, { 600, 1, 600 }, { 600.4, 2, 300 }, { 1201, 5, 240 },
		{ 3601, 10, 360 }, { 86400, 200, 432 }, { 1e7, 20000, 500 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct sketch_grid g = sketch_grid(row[i].duration_s);

		is_near(g.step_s, row[i].step_s);
		assert_int_equal(g.n, row[i].n);
		for (size_t k = 1; k < g.n; k++)
			assert_true(sketch_grid_at(&g, k) > sketch_grid_at(&g, k - 1));
	}
}

/* What comes in is what comes out: the track's mean times the duration is the number of tokens. */
static void tokens_add_up(void **state)
{
	static const double durations[] = { 0.004, 3, 77.3, 599.6, 4000, 100000 };

	(void)state;
	for (size_t k = 0; k < COUNT(durations); k++) {
		struct sketch_grid g = sketch_grid(durations[k]);
		struct sketch_tokens tokens;
		struct sketch_track t;
		double gap[99], sum = 0;

		for (size_t i = 0; i < COUNT(gap); i++)
			gap[i] = durations[k] / 100;
		sketch_tokens_init(&tokens, &g);
		sketch_tokens_add(&tokens, 0, gap, COUNT(gap), 250);
		sketch_tokens_add(&tokens, durations[k] / 2, NULL, 0, 0);
		sketch_tokens_end(&tokens, &t);
		assert_int_equal(t.n, g.n);
		for (size_t i = 0; i < t.n; i++) {
			double end_s = i + 1 == t.n ? g.duration_s : (double)(i + 1) * g.step_s;

			assert_true(t.low[i] <= t.y[i] && t.y[i] <= t.high[i]);
			sum += t.y[i] * (end_s - (double)i * g.step_s);
		}
		is_near(sum, 251);
		sketch_track_release(&t);
	}
}

/* One second without tokens in an hour of 100 a second shows in the least value of its bin. */
static void a_stall_survives(void **state)
{
	struct sketch_grid g = sketch_grid(3600);
	struct sketch_tokens tokens;
	struct sketch_track t;

	(void)state;
	sketch_tokens_init(&tokens, &g);
	for (int s = 0; s < 3600; s++)
		for (int i = 0; i < 100 && s != 1234; i++)
			sketch_tokens_add(&tokens, s + (i + 0.5) / 100, NULL, 0, 1);
	sketch_tokens_end(&tokens, &t);
	assert_int_equal(t.n, 360);
	is_near(t.y[123], 90);
	is_near(t.low[123], 0);
	is_near(t.high[123], 100);
	is_near(t.low[122], 100);
	assert_true(sketch_track_has_range(&t));
	sketch_track_release(&t);
}

/* One request from 0 to 10 s, another from 4 to 6 s, a third that begins and ends at 5 s. */
static void requests_running(void **state)
{
	double begin[] = { 4, 0, 5 }, end[] = { 5, 6, 10 };
	struct sketch_grid g = sketch_grid(10);
	struct sketch_track t;

	(void)state;
	sketch_running(&g, begin, end, COUNT(begin), &t);
	assert_int_equal(t.n, 100);
	is_near(t.y[0], 1);
	is_near(t.y[39], 1);
	is_near(t.y[40], 2);
	is_near(t.y[59], 2);
	is_near(t.y[60], 1);
	is_near(t.y[99], 1);
	assert_false(sketch_track_has_range(&t));
	sketch_track_release(&t);

	/* In wide bins half of a bin with 4 more is a mean of 2 with its extremes. */
	double begins[] = { 1000, 1000, 1000, 1000 }, ends[] = { 1001, 1001, 1001, 1001 };

	g = sketch_grid(1200);
	sketch_running(&g, begins, ends, COUNT(begins), &t);
	is_near(t.y[500], 2);
	is_near(t.low[500], 0);
	is_near(t.high[500], 4);
	is_near(t.y[501], 0);
	sketch_track_release(&t);
	sketch_running(&g, NULL, NULL, 0, &t);
	is_near(t.y[0], 0);
	sketch_track_release(&t);
}

/* Few readings stay as they are; of two GPUs the power adds up and the utilization is a mean. */
static void few_readings(void **state)
{
	const double t0[] = { 1, 2, 3 }, t1[] = { 1.01, 2.01, 3.01 };
	const double a[] = { 100, 700, 100 }, b[] = { 50, NAN, 60 };
	const struct sketch_series s[] = { { t0, a, 3 }, { t1, b, 3 } };
	struct sketch_grid g = sketch_grid(4);
	struct sketch_track t;

	(void)state;
	sketch_combine(&g, s, 2, true, &t);
	assert_int_equal(t.n, 3);
	is_near(t.t_s[1], 2);
	is_near(t.y[0], 150);
	is_near(t.y[1], 750); /* what was not read is as it was */
	is_near(t.y[2], 160);
	assert_false(sketch_track_has_range(&t));
	sketch_track_release(&t);
	sketch_combine(&g, s, 2, false, &t);
	is_near(t.y[1], 375);
	is_near(t.low[1], 50);
	is_near(t.high[1], 700);
	sketch_track_release(&t);
	sketch_combine(&g, s, 0, false, &t);
	assert_int_equal(t.n, 0);
	sketch_track_release(&t);
}

/* Of ten readings a second for 20 minutes, one of 700 W stays the greatest value of its bin. */
static void a_spike_survives(void **state)
{
	const size_t n = 12000;
	double *at = mem_array(n, sizeof(*at)), *watts = mem_array(n, sizeof(*watts));
	const struct sketch_series s = { at, watts, n };
	struct sketch_grid g = sketch_grid(1200);
	struct sketch_track t;
	size_t spikes = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		at[i] = 0.1 * (double)i;
		watts[i] = i == 7777 ? 700 : 100;
	}
	sketch_combine(&g, &s, 1, true, &t);
	assert_int_equal(t.n, 600);
	assert_null(t.t_s);
	for (size_t i = 0; i < t.n; i++) {
		is_near(t.low[i], 100);
		if (t.high[i] < 200)
			continue;
		spikes++;
		is_near(t.high[i], 700);
		is_near(t.y[i], 130);
		assert_true(fabs(sketch_grid_at(&g, i) - 777.7) <= 1);
	}
	assert_int_equal(spikes, 1);
	sketch_track_release(&t);
	free(at);
	free(watts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles), cmocka_unit_test(samples), cmocka_unit_test(grids),
		cmocka_unit_test(tokens_add_up), cmocka_unit_test(a_stall_survives),
		cmocka_unit_test(requests_running), cmocka_unit_test(few_readings),
		cmocka_unit_test(a_spike_survives),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
