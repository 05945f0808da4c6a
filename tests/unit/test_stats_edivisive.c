/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stats_edivisive.c - change points: exact cases, and how often they are right on seeded
 * series like those of the study (bench/trends.c has more trials and more scenes).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/stats/edivisive.h"

#define POINTS_MAX 2000

static const struct edivisive_opts usual = { 0.001, 0.03, 3, 300 };

/* Steele, Lea and Flood's splitmix64. */
static uint64_t seed;
static double uniform(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(void)
{
	double u = 1 - uniform(), v = uniform();

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Two levels that alternate by a little, so that there is some noise, exactly known. */
static double wave(size_t i, double level)
{
	return level * (i % 2 ? 1.001 : 0.999);
}

static void exact(void **state)
{
	struct change_point p[POINTS_MAX];
	double x[60];

	(void)state;
	for (size_t i = 0; i < 60; i++)
		x[i] = 5;
	assert_int_equal(edivisive(x, 60, &usual, p), 0);
	assert_int_equal(edivisive(x, 0, &usual, p), 0);
	assert_int_equal(edivisive(x, 5, &usual, p), 0);
	for (size_t i = 0; i < 60; i++)
		x[i] = i < 41 ? 5 : 6;
	assert_int_equal(edivisive(x, 60, &usual, p), 1);
	assert_int_equal(p[0].index, 41);
	assert_true(p[0].before == 5 && p[0].after == 6 && p[0].p == 0);
	assert_true(fabs(p[0].effect - 0.2) < 1e-12);
	for (size_t i = 0; i < 60; i++)
		x[i] = wave(i, i < 20 ? 100 : i < 40 ? 110 : 95);
	assert_int_equal(edivisive(x, 60, &usual, p), 2);
	assert_int_equal(p[0].index, 20);
	assert_int_equal(p[1].index, 40);
	assert_true(p[0].effect > 0.09 && p[1].effect < -0.13 && p[0].p < 1e-9);
}

/* Of splits that are equally good the first one is taken. */
static void equal_splits(void **state)
{
	static const struct { double x[20]; size_t n; size_t at[3];
	} row[] = {
		{ { 0, 0, 0, 0, 0, 2, 2, 4, 4, 4, 4, 4, 2, 2, 0, 0, 0, 0, 0 }, 19, { 5, 14 } },
		{ { 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0 },
		  20,
		  { 6, 12, 15 } },
	};
	const struct edivisive_opts o = { 0.1, 0.03, 3, 300 };
	struct change_point p[POINTS_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		size_t n = edivisive(row[i].x, row[i].n, &o, p);

		assert_int_equal(n, row[i].at[2] ? 3 : 2);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(p[k].index, row[i].at[k]);
	}
}

/* A change needs three values after it, and a spike of one or two is none. */
static void at_the_end(void **state)
{
	struct change_point p[POINTS_MAX];
	double x[40];

	(void)state;
	for (size_t after = 0; after <= 4; after++) {
		for (size_t i = 0; i < 40; i++)
			x[i] = wave(i, i < 40 - after ? 100 : 120);
		assert_int_equal(edivisive(x, 40, &usual, p), after >= 3);
		if (after >= 3)
			assert_int_equal(p[0].index, 40 - after);
	}
	for (size_t at = 0; at < 40; at++) {
		for (size_t i = 0; i < 40; i++)
			x[i] = wave(i, i == at ? 120 : 100);
		assert_int_equal(edivisive(x, 40, &usual, p), 0);
	}
}

/* The step is found at its place with a spike of twice its size anywhere near it. */
static void spikes(void **state)
{
	struct change_point p[POINTS_MAX];
	double x[60];

	(void)state;
	for (size_t at = 5; at < 55; at++) {
		for (size_t i = 0; i < 60; i++)
			x[i] = wave(i, i < 30 ? 100 : 110) * (i == at ? 1.2 : 1);
		assert_int_equal(edivisive(x, 60, &usual, p), 1);
		assert_true(p[0].index + 1 >= 30 && p[0].index <= 30);
	}
}

static void least_effect(void **state)
{
	struct edivisive_opts any = usual;
	struct change_point p[POINTS_MAX];
	double x[60];

	(void)state;
	any.effect_min = 0;
	for (size_t i = 0; i < 60; i++)
		x[i] = wave(i, i < 30 ? 100 : 102);
	assert_int_equal(edivisive(x, 60, &usual, p), 0);
	assert_int_equal(edivisive(x, 60, &any, p), 1);
	/* Values of both signs are taken as they are. */
	for (size_t i = 0; i < 60; i++)
		x[i] = (i % 2 ? 0.01 : -0.01) + (i < 30 ? -1 : 1);
	assert_int_equal(edivisive(x, 60, &usual, p), 1);
	assert_int_equal(p[0].index, 30);
	assert_true(fabs(p[0].effect - 2) < 0.05);
	for (size_t i = 0; i < 60; i++)
		x[i] = i < 30 ? 0 : 1;
	assert_int_equal(edivisive(x, 60, &usual, p), 1);
	assert_true(isnan(p[0].effect));
}

/* Longer than a window: the same points, wherever the windows begin; and units do not matter. */
static void windows(void **state)
{
	static double x[POINTS_MAX], y[POINTS_MAX];
	static struct change_point p[POINTS_MAX], q[POINTS_MAX];
	static const size_t step[] = { 140, 450, 451 + 300, 1400 };
	size_t n = 1700;

	(void)state;
	seed = 7;
	for (size_t i = 0; i < n; i++) {
		double level = 100;

		for (size_t k = 0; k < 4; k++)
			level *= i >= step[k] ? 1.1 : 1;
		x[i] = level * exp(0.01 * normal());
		y[i] = 1e-9 * x[i];
	}
	for (size_t window = 50; window <= EDIVISIVE_WINDOW_MAX; window += 95) {
		struct edivisive_opts o = usual;

		o.window = window;
		assert_int_equal(edivisive(x, n, &o, p), 4);
		assert_int_equal(edivisive(y, n, &o, q), 4);
		for (size_t k = 0; k < 4; k++) {
			assert_true(p[k].index + 1 >= step[k] && p[k].index <= step[k] + 1);
			assert_int_equal(p[k].index, q[k].index);
		}
	}
}

/* ---- shares of seeded trials ---- */

#define TRIALS 400
#define COMMITS 60

/* Mean of three runs of one commit: 2 % a run, 1.5 % a commit, 2 % outliers of +20 %. */
static double commit(void)
{
	double session = normal(), sum = 0;

	for (int i = 0; i < 3; i++)
		sum += exp(0.015 * session + 0.02 * normal());
	return sum / 3 * (uniform() < 0.02 ? 1.2 : 1);
}

static void trials(double step, unsigned *found, unsigned *false_points)
{
	size_t at = COMMITS - 20;

	seed = 20261122;
	*found = *false_points = 0;
	for (int t = 0; t < TRIALS; t++) {
		struct change_point p[COMMITS];
		double x[COMMITS];
		bool is_found = false;
		size_t n;

		for (size_t i = 0; i < COMMITS; i++)
			x[i] = 1000 * commit() * (i >= at ? 1 + step : 1);
		n = edivisive(x, COMMITS, &usual, p);
		for (size_t k = 0; k < n; k++)
			is_found |= p[k].index + 2 >= at && p[k].index <= at + 2;
		*found += is_found;
		*false_points += (unsigned)n;
	}
}

/*
 * By the binomial law a detector that finds 85 % finds more than 85 % + 3.1 sigma of 400 steps once
 * in a thousand times; by Poisson's one with 0.3 false points a series has fewer than 120 - 3.1
 * sqrt(120) = 86 of them as rarely.
 */
static void shares(void **state)
{
	unsigned found, false_points;
	double sigma = sqrt(0.85 * 0.15 / TRIALS);

	(void)state;
	trials(0.05, &found, &false_points);
	assert_true((double)found / TRIALS > 0.85 + 3.1 * sigma);
	trials(-0.05, &found, &false_points);
	assert_true((double)found / TRIALS > 0.85 + 3.1 * sigma);
	trials(0, &found, &false_points);
	assert_true(false_points < 86);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact),        cmocka_unit_test(equal_splits),
		cmocka_unit_test(at_the_end),   cmocka_unit_test(spikes),
		cmocka_unit_test(least_effect), cmocka_unit_test(windows),
		cmocka_unit_test(shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
