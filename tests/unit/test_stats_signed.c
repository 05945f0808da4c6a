/* SPDX-License-Identifier: Apache-2.0 */
/* test_stats_signed.c - sign and signed-rank tests against counts by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/stats/significance.h"

#define MANY (SIGNED_EXACT_VALUES + 1)

static void near_by(double got, double want, double off)
{
	if (!(fabs(got - want) <= off))
		fail_msg("%.17g, expected %.17g", got, want);
}
#define NEAR(got, want) near_by(got, want, 1e-12)

static void signs(void **state)
{
	(void)state;
	NEAR(trend_test((double[]){ 1, 2, 3, 4 }, 4), 2 / 24.0);
	NEAR(trend_test((double[]){ 4, 2, 3, 1 }, 4), 2 * 4 / 24.0); /* one pair is in order */
	NEAR(trend_test((double[]){ 5, 5, 5 }, 3), 1);
	NEAR(trend_test((double[]){ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, 10), 2 / 3628800.0);
	NEAR(sign_test(8, 2), 2 * (1 + 10 + 45) / 1024.0);
	NEAR(sign_test(2, 8), 2 * (1 + 10 + 45) / 1024.0);
	NEAR(sign_test(5, 0), 0.0625);
	NEAR(sign_test(0, 6), 0.03125);
	NEAR(sign_test(3, 3), 1);
	NEAR(sign_test(1, 0), 1);
	assert_true(isnan(sign_test(0, 0)));
	assert_true(sign_test(96, 0) < 1e-28 && sign_test(96, 0) > 0);
	/* Many: the normal distribution with continuity, within a hundredth. */
	NEAR(round(100 * sign_test(50500, 49500)), round(100 * erfc(499.5 / sqrt(50000.0))));
}

static void ranks(void **state)
{
	static const double five[] = { 1, 2, 3, 4, -5 }, up[] = { 1, 2, 3, 4, 5 };
	static const double same[] = { 1, 1, -1 }, zeros[] = { 0, 0 }, mixed[] = { 0, 3, 0, -1, 2 };

	(void)state;
	NEAR(signed_rank_test(up, 5), 2 / 32.0);
	NEAR(signed_rank_test(five, 5), 20 / 32.0); /* ten subsets of 1..5 add up to at most 5 */
	NEAR(signed_rank_test(same, 3), 1);         /* every rank is 2 */
	NEAR(signed_rank_test(mixed, 5), 0.5);      /* 2 of 8 subsets reach at most 1 */
	NEAR(signed_rank_test(zeros, 2), 1);
	assert_true(isnan(signed_rank_test(zeros, 0)));
}

/* The first size that is not exact, against all sums of the ranks 1 to MANY. */
static void ranks_of_many(void **state)
{
	static double ways[MANY * (MANY + 1) / 2 + 1];
	double d[MANY], below = 0, all = 0;
	size_t negative = 0;

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		d[i] = (double)(i + 1) * (i % 3 ? 1 : -1);
		negative += i % 3 ? 0 : i + 1;
	}
	ways[0] = 1;
	for (size_t rank = 1; rank <= MANY; rank++)
		for (size_t s = MANY * (MANY + 1) / 2; s >= rank; s--)
			ways[s] += ways[s - rank];
	for (size_t s = 0; s <= MANY * (MANY + 1) / 2; s++) {
		below += s <= negative ? ways[s] : 0;
		all += ways[s];
	}
	assert_true(2 * below / all > 0.01 && 2 * below / all < 0.1);
	near_by(signed_rank_test(d, MANY), 2 * below / all, 0.025 * 2 * below / all);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(signs), cmocka_unit_test(ranks), cmocka_unit_test(ranks_of_many),
	};

	return cmocka_run_group_tests_name("stats_signed", tests, NULL, NULL);
}
