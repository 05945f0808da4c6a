/* SPDX-License-Identifier: Apache-2.0 */
/* test_stats_association.c - analysis of variance and Cramer's V. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/stats/significance.h"

static void near(double got, double want, double off)
{
	if (!(fabs(got - want) <= off))
		fail_msg("%.17g, expected %.17g", got, want);
}

/* F with one and v degrees of freedom is Student's t squared. */
static void f(void **state)
{
	(void)state;
	for (double df = 1; df < 200; df *= 1.7)
		for (double t = 0.1; t < 12; t *= 1.6)
			near(f_tail(t * t, 1, df), 2 * student_cdf(-t, df), 1e-12);
	near(f_tail(0, 3, 9), 1, 0);
	near(f_tail(INFINITY, 3, 9), 0, 0);
	/* 2 and v: (1 + 2 f / v)^(-v / 2) */
	near(f_tail(3.5, 2, 10), pow(1 + 2 * 3.5 / 10, -5), 1e-12);
}

static void one_way(void **state)
{
	/* Means 2, 4, 9 of three each about 5; within 2 + 2 + 8, between 3 * (9 + 1 + 16). */
	static const double x[] = { 1, 2, 3, 3, 4, 5, 7, 9, 11 };
	static const uint8_t code[] = { 0, 0, 0, 4, 4, 4, 2, 2, 2 }, same[9] = { 0 };
	static const uint8_t each[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	static const double flat[] = { 3, 3, 3, 3, 3, 3 };
	struct oneway o = oneway_test(x, code, 9, 5);

	(void)state;
	assert_int_equal(o.groups, 3);
	near(o.df_between, 2, 0);
	near(o.df_within, 6, 0);
	near(o.f, 78 / 2.0 / (12 / 6.0), 1e-12);
	near(o.p, f_tail(19.5, 2, 6), 1e-15);
	near(o.share, 1 - 12 / 6.0 / (90 / 8.0), 1e-12);
	assert_true(isnan(oneway_test(x, same, 9, 1).p));
	assert_true(isnan(oneway_test(x, each, 9, 9).share));
	assert_true(isnan(oneway_test(flat, code, 6, 5).p));
	assert_true(isnan(oneway_test(NULL, NULL, 0, 0).p));
	/* nothing varies within: all of it is explained */
	o = oneway_test((double[]){ 1, 1, 2, 2 }, (uint8_t[]){ 0, 0, 1, 1 }, 4, 2);
	assert_true(o.share == 1 && o.p == 0);
}

/* By chance alone the share is 0 on average, however many groups there are. */
static void share_of_nothing(void **state)
{
	uint32_t seed = 1;
	double sum = 0;

	(void)state;
	for (int t = 0; t < 400; t++) {
		double x[60];
		uint8_t code[60];

		for (int i = 0; i < 60; i++) {
			seed = seed * 1664525u + 1013904223u;
			x[i] = seed >> 8;
			seed = seed * 1664525u + 1013904223u;
			code[i] = (uint8_t)((seed >> 16) % 20);
		}
		sum += oneway_test(x, code, 60, 20).share;
	}
	assert_true(sum / 400 < 0.1); /* what is not cut off at 0; eta squared would give 0.32 */
}

static void cramer(void **state)
{
	uint8_t a[120], b[120], c[120], one[120] = { 0 };
	double chi, v;

	(void)state;
	for (uint8_t i = 0; i < 120; i++) {
		a[i] = i % 3;
		b[i] = (uint8_t)(2 - i % 3);
		c[i] = i / 3 % 2;
	}
	near(cramers_v(a, 3, b, 3, 120), 1, 1e-12);
	near(cramers_v(a, 3, c, 2, 120), 0, 0);
	assert_true(isnan(cramers_v(a, 3, one, 1, 120)));
	assert_true(isnan(cramers_v(a, 3, b, 3, 0)));
	/* two by two, by the formula: n (ad - bc)^2 over the margins' product */
	for (uint8_t i = 0; i < 120; i++) {
		a[i] = i < 70;
		b[i] = i < 40 || i >= 110;
	}
	chi = 120 * pow(40.0 * 40 - 30.0 * 10, 2) / (70.0 * 50 * 50 * 70);
	v = sqrt((chi / 120 - 1 / 119.0) / (2 - 1 / 119.0 - 1));
	near(cramers_v(a, 2, b, 2, 120), v, 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f), cmocka_unit_test(one_way), cmocka_unit_test(share_of_nothing),
		cmocka_unit_test(cramer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
