/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stats_compare.c - tests of two samples against SciPy, their corners, and how often they
 * are right on made-up pairs.
 *
 * compare_golden.h (written by tests/peer/golden_compare.py) holds SciPy's answers.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "compare_golden.h"
#include "stats/compare.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void close_to(const char *what, size_t i, double got, double want, double relative)
{
	double off = fabs(got - want), scale = fmax(fabs(want), 1e-300);

	if (isinf(want) ? got == want : off <= relative * scale)
		return;
	fail_msg("%s of row %zu: %.17g, expected %.17g", what, i, got, want);
}

static void student(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(student_golden); i++)
		close_to("cdf", i, student_cdf(student_golden[i].t, student_golden[i].df),
			 student_golden[i].cdf,
			 student_golden[i].df < 1000 ? 1e-11 : 1e-9);
	for (size_t i = 0; i < COUNT(quantile_golden); i++)
		close_to("quantile", i, student_quantile(quantile_golden[i].p, quantile_golden[i].df),
			 quantile_golden[i].t, 1e-9);
}

static void beta(void **state)
{
	(void)state;
	assert_true(beta_regularised(0, 2, 3) == 0);
	assert_true(beta_regularised(1, 2, 3) == 1);
	/* I_x(1, b) = 1 - (1 - x)^b */
	for (double x = 0.05; x < 1; x += 0.05)
		close_to("beta", 0, beta_regularised(x, 1, 3.5), 1 - pow(1 - x, 3.5), 1e-12);
}

static void pairs(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(pair_golden); i++) {
		const double *a = pair_golden[i].a, *b = pair_golden[i].b, *w = pair_golden[i].want;
		size_t n = pair_golden[i].n, m = pair_golden[i].m;
		struct welch t = welch_test(a, n, b, m, 0.95);
		struct ratio r = ratio_test(a, n, b, m, 0.95);
		struct mann_whitney u = mann_whitney_test(a, n, b, m);
		struct interval one = student_interval(a, n, 0.95);

		close_to("difference", i, t.difference, w[GOLDEN_DIFFERENCE], 1e-9);
		close_to("t", i, t.t, w[GOLDEN_T], 1e-9);
		close_to("df", i, t.df, w[GOLDEN_DF], 1e-9);
		close_to("p", i, t.p, w[GOLDEN_P], 1e-9);
		close_to("low", i, t.interval.low, w[GOLDEN_LOW], 1e-7);
		close_to("high", i, t.interval.high, w[GOLDEN_HIGH], 1e-7);
		close_to("ratio", i, r.ratio, w[GOLDEN_RATIO], 1e-12);
		close_to("ratio's p", i, r.p, w[GOLDEN_RATIO_P], 1e-9);
		close_to("ratio's low", i, r.interval.low, w[GOLDEN_RATIO_LOW], 1e-9);
		close_to("ratio's high", i, r.interval.high, w[GOLDEN_RATIO_HIGH], 1e-9);
		close_to("u", i, u.u, w[GOLDEN_U], 1e-12);
		close_to("rank p", i, u.p, w[GOLDEN_RANKS_P], 1e-9);
		close_to("one sample's low", i, one.low, w[GOLDEN_ONE_LOW], 1e-9);
		close_to("one sample's high", i, one.high, w[GOLDEN_ONE_HIGH], 1e-9);
		assert_int_equal(u.is_exact, n + m <= COMPARE_EXACT_VALUES);
	}
}

/* The figures that the smallest samples can reach at all. */
static void smallest_p(void **state)
{
	static const double low[] = { 1, 2, 3, 4, 5 }, high[] = { 6, 7, 8, 9, 10 };

	(void)state;
	close_to("3 against 3", 0, mann_whitney_test(low, 3, high, 3).p, 0.1, 1e-12);
	close_to("4 against 4", 0, mann_whitney_test(low, 4, high, 4).p, 2 / 70.0, 1e-12);
	close_to("5 against 5", 0, mann_whitney_test(low, 5, high, 5).p, 2 / 252.0, 1e-12);
}

static void corners(void **state)
{
	static const double one[] = { 5 }, same[] = { 7, 7, 7, 7 }, other[] = { 8, 8, 8, 8 };
	static const double zero[] = { 0, 1, 2, 3 };
	struct welch w = welch_test(one, 1, same, 4, 0.95);

	(void)state;
	assert_true(isnan(student_interval(one, 1, 0.95).low));
	assert_true(w.difference == 2 && isnan(w.p) && isnan(w.interval.low));
	w = welch_test(same, 4, same, 4, 0.95);
	assert_true(w.p == 1 && w.t == 0);
	w = welch_test(same, 4, other, 4, 0.95);
	assert_true(w.p == 0 && w.interval.low == 1 && w.interval.high == 1);
	assert_true(isnan(ratio_test(zero, 4, same, 4, 0.95).ratio));
	assert_true(isnan(ratio_test(zero, 4, same, 4, 0.95).p));
	assert_true(isnan(mann_whitney_test(NULL, 0, same, 4).p));
	assert_true(mann_whitney_test(same, 4, same, 4).p == 1);
	assert_true(mann_whitney_test(same, 4, same, 4).superiority == 0.5);
}

static void adjust(void **state)
{
	double p[COUNT(adjust_golden) + 1];

	(void)state;
	for (size_t i = 0; i < COUNT(adjust_golden); i++)
		p[i + (i >= 3)] = adjust_golden[i][0];
	p[3] = NAN;
	compare_adjust(p, COUNT(p));
	assert_true(isnan(p[3]));
	for (size_t i = 0; i < COUNT(adjust_golden); i++)
		close_to("adjusted", i, p[i + (i >= 3)], adjust_golden[i][1], 1e-12);
	compare_adjust(NULL, 0);
}

static void repeats(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(repeats_golden); i++) {
		size_t n = compare_repeats_needed(repeats_golden[i].cv, repeats_golden[i].effect,
						  repeats_golden[i].alpha, repeats_golden[i].power);

		assert_int_equal(n, repeats_golden[i].n);
	}
}

/* As many as are found by trying one after the other. */
static void repeats_are_the_fewest(void **state)
{
	(void)state;
	for (double cv = 0; cv < 0.5; cv += 0.017) {
		size_t n = compare_repeats_needed(cv, 0.05, 0.05, 0.8), r = COMPARE_REPEATS_MIN;

		for (; r <= COMPARE_REPEATS_MAX; r++) {
			double df = 2.0 * (double)r - 2;

			if ((student_quantile(0.975, df) + student_quantile(0.8, df)) * cv *
			    sqrt(2 / (double)r) <= log1p(0.05))
				break;
		}
		assert_int_equal(n, r > COMPARE_REPEATS_MAX ? 0 : r);
	}
}

/* A comparison asks once for each of its cells, of which there may be 700. */
static void repeats_cost_little(void **state)
{
	clock_t began = clock();
	double s;

	(void)state;
	for (int i = 0; i < 700; i++)
		assert_int_equal(compare_repeats_needed(2, 0.01, 0.05, 0.8), 0);
	s = (double)(clock() - began) / CLOCKS_PER_SEC;
	print_message("# 700 answers took %.3f s of CPU\n", s);
	assert_true(s < 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student), cmocka_unit_test(beta), cmocka_unit_test(pairs),
		cmocka_unit_test(smallest_p), cmocka_unit_test(corners), cmocka_unit_test(adjust),
		cmocka_unit_test(repeats), cmocka_unit_test(repeats_are_the_fewest),
		cmocka_unit_test(repeats_cost_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
