/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stats_compare.c - tests of small samples against SciPy, and their corners.
 *
 * compare_golden.h (written by tests/peer/golden_compare.py) holds SciPy's answers.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "compare_golden.h"
#include "core/stats/significance.h"

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
		struct mann_whitney u = mann_whitney_test(a, n, b, m);
		struct interval one = student_interval(a, n, 0.95);

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
	static const double one[] = { 5 }, same[] = { 7, 7, 7, 7 };

	(void)state;
	assert_true(isnan(student_interval(one, 1, 0.95).low));
	assert_true(isnan(mann_whitney_test(NULL, 0, same, 4).p));
	assert_true(mann_whitney_test(same, 4, same, 4).p == 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student), cmocka_unit_test(beta), cmocka_unit_test(pairs),
		cmocka_unit_test(smallest_p), cmocka_unit_test(corners), cmocka_unit_test(adjust),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
