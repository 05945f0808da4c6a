/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decide_settled.c - whether warm-ups are found and intervals of means hold the true one, on
 * series made up so that their mean is known: 1,000 seeded series of each kind.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/rng/rng.h"
#include "core/stats/settled.h"
#include "core/stats/stats.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SERIES 1000

static struct pcg64 rng;

static double normal(void)
{
	double u = 1 - pcg64_double(&rng), v = pcg64_double(&rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static double exponential(void)
{
	return -log(1 - pcg64_double(&rng));
}

enum kind { NORMAL, LOGNORMAL, QUEUE };

/* Stationary from the first value on. Returns the true mean. */
static double make(enum kind kind, double r, double *x, size_t n)
{
	double a = normal(), wait = pcg64_double(&rng) < r ? exponential() / (1 - r) : 0;

	for (size_t i = 0; i < n; i++) {
		double service = exponential();

		if (kind == QUEUE) { /* times in an M/M/1 system with utilisation r */
			x[i] = wait + service;
			wait = fmax(0, x[i] - exponential() / r);
			continue;
		}
		if (i)
			a = r * a + sqrt(1 - r * r) * normal();
		x[i] = kind == NORMAL ? 10 + a : exp(0.5 * a);
	}
	return kind == QUEUE ? 1 / (1 - r) : kind == NORMAL ? 10 : exp(0.125);
}

struct outcome { unsigned given, held, cut; };

static struct outcome look(enum kind kind, double r, size_t n, double warm_up_sigmas)
{
	double *x = mem_array(n, sizeof(*x));
	struct outcome out = { 0 };

	pcg64_seed(&rng, 20265);
	for (unsigned t = 0; t < SERIES; t++) {
		double mean = make(kind, r, x, n);
		struct settled_mean got;
		size_t cut;

		for (size_t i = 0; i < n; i++)
			x[i] += warm_up_sigmas * exp(-50.0 * (double)i / (double)n);
		cut = settled_warm_up(x, n);
		out.cut += cut > 0;
		got = settled_mean(x + cut, NULL, n - cut, 0.95);
		if (got.state != SETTLED_KNOWN)
			continue;
		out.given++;
		out.held += got.low <= mean && mean <= got.high;
	}
	free(x);
	return out;
}

/*
 * Where most series get an interval, 90 to 99 % of the intervals hold the mean. Where few do, the
 * run is too short, and wrong intervals are rare in all.
 */
static void intervals_hold_the_mean(void **state)
{
	static const struct { enum kind kind; double r; size_t n; bool is_long; } row[] = {
		{ NORMAL, 0, 60, true },     { NORMAL, 0, 1000, true },
		{ NORMAL, 0.5, 100, false }, { NORMAL, 0.5, 1000, true },
		{ NORMAL, 0.9, 300, false }, { NORMAL, 0.9, 1000, false },
		{ NORMAL, 0.9, 4000, true }, { NORMAL, 0.98, 1000, false },
		{ NORMAL, -0.5, 300, true }, { LOGNORMAL, 0, 100, true },
		{ LOGNORMAL, 0.9, 4000, true },
		{ QUEUE, 0.5, 100, false },  { QUEUE, 0.5, 2000, true },
		{ QUEUE, 0.8, 1000, false }, { QUEUE, 0.9, 3000, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct outcome got = look(row[i].kind, row[i].r, row[i].n, 0);
		double given = 1.0 * got.given / SERIES;
		double held = got.given ? 1.0 * got.held / got.given : 1;

		print_message("kind %d r %5.2f n %5zu: %5.1f %% given, %5.1f %% hold, "
			      "%.1f %% cut\n", row[i].kind, row[i].r, row[i].n, 100 * given,
			      100 * held, 100.0 * got.cut / SERIES);
		if (row[i].is_long) {
			assert_true(given >= 0.6);
			assert_true(held >= 0.90 && held <= 0.99);
		} else {
			assert_true(given <= 0.10);
		}
		assert_true(got.given - got.held <= SERIES * 6 / 100);
		assert_true(got.cut <= SERIES * 5 / 100);
	}
}

static void warm_ups_are_left_out(void **state)
{
	static const struct { enum kind kind; double r; size_t n; } row[] = {
		{ NORMAL, 0, 1000 }, { NORMAL, 0.5, 2000 }, { LOGNORMAL, 0, 1000 },
		{ LOGNORMAL, 0.5, 2000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct outcome got = look(row[i].kind, row[i].r, row[i].n, 5);
		double held = 1.0 * got.held / got.given;

		print_message("kind %d r %.2f n %zu, warm-up: %.1f %% cut, %.1f %% hold\n",
			      row[i].kind, row[i].r, row[i].n, 100.0 * got.cut / SERIES,
			      100 * held);
		assert_true(got.cut >= SERIES * 95 / 100);
		assert_true(held >= 0.90 && held <= 0.99);
	}
}

/* A burst at the start of a closed loop: 16 slow requests, then steady ones. */
static void the_cut_is_where_the_level_changes(void **state)
{
	double x[400], reversed[COUNT(x)];
	struct settled_mean all, rest;
	size_t cut;

	(void)state;
	pcg64_seed(&rng, 1);
	for (size_t i = 0; i < COUNT(x); i++)
		x[i] = (i < 16 ? 300 : 40) + 2 * normal();
	cut = settled_warm_up(x, COUNT(x));
	assert_in_range(cut, 15, 20);
	for (size_t i = 0; i < COUNT(x); i++)
		reversed[i] = x[COUNT(x) - 1 - i];
	assert_int_equal(settled_warm_up(reversed, COUNT(x)), 0);
	all = settled_mean(x, NULL, COUNT(x), 0.95);
	rest = settled_mean(x + cut, NULL, COUNT(x) - cut, 0.95);
	assert_true(rest.state == SETTLED_KNOWN);
	assert_true(rest.low < 40 && 40 < rest.high && rest.high - rest.low < 1);
	assert_true(all.state != SETTLED_KNOWN || all.high - all.low > 10);
}

/* A queue that grows as long as the run lasts has no mean. */
static void growth_has_no_interval(void **state)
{
	double x[500];

	(void)state;
	pcg64_seed(&rng, 2);
	for (size_t i = 0; i < COUNT(x); i++)
		x[i] = (double)i + 20 * normal();
	assert_int_equal(settled_warm_up(x, COUNT(x)), 0);
	assert_int_equal(settled_mean(x, NULL, COUNT(x), 0.95).state, SETTLED_DRIFTING);
}

static void edges(void **state)
{
	double x[100] = { 0 }, weight[COUNT(x)];
	struct settled_mean got;

	(void)state;
	assert_int_equal(settled_warm_up(x, 0), 0);
	assert_int_equal(settled_mean(x, NULL, 0, 0.95).state, SETTLED_UNKNOWN);
	for (size_t i = 0; i < COUNT(x); i++)
		x[i] = 3;
	assert_int_equal(settled_warm_up(x, COUNT(x)), 0);
	got = settled_mean(x, NULL, COUNT(x), 0.95);
	assert_int_equal(got.state, SETTLED_KNOWN);
	assert_true(got.mean == 3 && got.low == 3 && got.high == 3 && got.n == COUNT(x));
	got = settled_mean(x, NULL, 10, 0.95);
	assert_int_equal(got.state, SETTLED_SHORT);
	assert_true(got.mean == 3 && isnan(got.low) && got.needed == SETTLED_NEEDED);

	/* Sums over 1 and 3 things whose mean is 2: of the things, not of the sums. */
	pcg64_seed(&rng, 3);
	for (size_t i = 0; i < COUNT(x); i++) {
		weight[i] = i % 2 ? 3 : 1;
		x[i] = 2 * weight[i] + 0.1 * normal();
	}
	got = settled_mean(x, weight, COUNT(x), 0.95);
	assert_int_equal(got.state, SETTLED_KNOWN);
	assert_true(got.low < 2 && 2 < got.high && got.high - got.low < 0.1);
}

/* A run of as many values as were asked for has an interval. */
static void needed_is_enough(void **state)
{
	double *x = mem_array(20000, sizeof(*x));
	unsigned enough = 0;

	(void)state;
	pcg64_seed(&rng, 4);
	for (unsigned t = 0; t < 100; t++) {
		struct settled_mean got;
		size_t n = 1000;

		make(NORMAL, 0.9, x, 20000);
		got = settled_mean(x, NULL, n, 0.95);
		if (got.state == SETTLED_SHORT)
			n = got.needed < 10000 ? 2 * got.needed : 20000;
		enough += settled_mean(x, NULL, n, 0.95).state == SETTLED_KNOWN;
	}
	assert_true(enough >= 90);
	free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_hold_the_mean),
		cmocka_unit_test(warm_ups_are_left_out),
		cmocka_unit_test(the_cut_is_where_the_level_changes),
		cmocka_unit_test(growth_has_no_interval),
		cmocka_unit_test(edges),
		cmocka_unit_test(needed_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
