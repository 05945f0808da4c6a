/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decide_percentile.c - needed numbers and ends of percentile intervals against exact
 * binomial sums; dispersion and correlation of batches by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/rng/rng.h"
#include "core/stats/percentile.h"
#include "core/stats/stats.h"
#include "ranks_golden.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void near(double got, double want, double within)
{
	if (!(fabs(got - want) <= within))
		fail_msg("%.12g, expected %.12g", got, want);
}

/* The table of the study: two-sided interval, upper bound, value without a mark. */
static void needed(void **state)
{
	static const struct { double p; size_t both, upper, unmarked; } row[] = {
		{ 50, 6, 5, 20 }, { 90, 36, 29, 100 }, { 95, 72, 59, 200 },
		{ 99, 368, 299, 1000 }, { 99.9, 3688, 2995, 10000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		double p = row[i].p;

		assert_int_equal(percentile_needed(PERCENTILE_INTERVAL, p, 1, 0.95), row[i].both);
		assert_int_equal(percentile_needed(PERCENTILE_UPPER_BOUND, p, 1, 0.95),
				 row[i].upper);
		assert_int_equal(percentile_needed(PERCENTILE_UNMARKED, p, 1, 0.95),
				 row[i].unmarked);
		/* The first number is the one at which all below the percentile are rare enough. */
		assert_true(pow(p / 100, (double)row[i].both) <= 0.025);
		assert_true(pow(p / 100, (double)row[i].both - 1) > 0.025);
		assert_int_equal(percentile_needed(PERCENTILE_INTERVAL, 100 - p, 1, 0.95),
				 row[i].both);
	}
	/* Clumps of four: four times as many, and the tail of t with 19 degrees of freedom. */
	assert_int_equal(percentile_needed(PERCENTILE_UNMARKED, 99, 4, 0.95), 4000);
	assert_int_equal(percentile_needed(PERCENTILE_INTERVAL, 99, 4, 0.95), 1596);
}

static double *ramp(size_t n)
{
	double *x = calloc(n, sizeof(*x));

	assert_non_null(x);
	for (size_t i = 0; i < n; i++)
		x[i] = (double)(i + 1);
	return x;
}

/* Values 1 to n dealt out so that every batch has its share of the largest: phi is 1. */
static double *dealt(const double *sorted, size_t n)
{
	double *x = calloc(n, sizeof(*x));
	size_t at = 0;

	assert_non_null(x);
	for (size_t first = 0; first < PERCENTILE_BATCHES; first++)
		for (size_t i = first; i < n; i += PERCENTILE_BATCHES)
			x[at++] = sorted[i];
	return x;
}

/* P(Bin(n, q) < r), added up. */
static double below(size_t n, double q, size_t r)
{
	double sum = 0;

	for (size_t k = 0; k < r; k++)
		sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) -
			   lgamma((double)(n - k) + 1) + (double)k * log(q) +
			   (double)(n - k) * log1p(-q));
	return sum;
}

static void exact_ends(void **state)
{
	static const struct { size_t n; double p; } row[] = {
		{ 1, 50 }, { 5, 50 }, { 6, 50 }, { 40, 50 }, { 400, 90 }, { 400, 99 },
		{ 1000, 99 }, { 2000, 1 }, { 1000, 95 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		size_t n = row[i].n;
		double q = row[i].p / 100, *sorted = ramp(n), *x = dealt(sorted, n);
		struct percentile got = percentile_bounds(x, sorted, n, row[i].p, 0.95);

		assert_true(got.phi == 1);
		/* A value is its rank here. */
		if (isinf(got.low)) {
			assert_true(below(n, q, 1) > 0.025);
		} else {
			assert_true(below(n, q, (size_t)got.low) <= 0.025);
			assert_true(below(n, q, (size_t)got.low + 1) > 0.025);
		}
		if (isinf(got.high)) {
			assert_true(pow(q, (double)n) > 0.025);
		} else {
			assert_true(1 - below(n, q, (size_t)got.high) <= 0.025);
			assert_true(1 - below(n, q, (size_t)got.high - 1) > 0.025);
		}
		assert_int_equal(isinf(got.high), !!(got.marks & PERCENTILE_OPEN));
		if (q >= 0.5)
			assert_int_equal(isinf(got.high), n < got.needed);
		free(x);
		free(sorted);
	}
}

/* With values 1..n the interval's ends are its ranks; exact fractions have them. */
static void golden_ranks(void **state)
{
	double *x = ramp(1000);

	(void)state;
	for (size_t k = 0; k < COUNT(rank_golden); k++) {
		const struct rank_golden *want = &rank_golden[k];
		struct interval got = percentile_ranks(x, want->n, want->p, 1, want->level);

		assert_true(got.low == (want->low ? (double)want->low : (double)-INFINITY));
		assert_true(got.high == (want->high ? (double)want->high : (double)INFINITY));
	}
	free(x);
}

/* Many values: the ranks are those of the normal approximation, and it is quick. */
static void many(void **state)
{
	const size_t n = 2000000;
	double *x = ramp(n);
	struct interval i = percentile_ranks(x, n, 99, 1, 0.95);

	(void)state;
	near(i.low, 1980000 - 1.96 * sqrt(19800), 2);
	near(i.high, 1980000 + 1.96 * sqrt(19800), 2);
	near(percentile_ranks(x, n, 50, 1, 0.95).low, 1000000 - 1.96 * sqrt(500000), 2);
	free(x);
}

/* The exact ranks where nothing is clumped, for large samples too. */
static void agrees_with_ranks(void **state)
{
	static const size_t count[] = { 367, 368, 999, 1000, 5000, 300000 };

	(void)state;
	for (size_t i = 0; i < COUNT(count); i++) {
		size_t n = count[i];
		double *sorted = ramp(n), *x = dealt(sorted, n);
		struct percentile got = percentile_bounds(x, sorted, n, 99, 0.95);
		struct interval want = percentile_ranks(sorted, n, 99, 1, 0.95);

		assert_true(got.low == want.low);
		assert_true(got.high == want.high);
		assert_true(isinf(got.high) == (n < 368));
		assert_true(got.value == stats_percentile(sorted, n, 99));
		assert_int_equal(!!(got.marks & PERCENTILE_FEW), n < 1000);
		free(x);
		free(sorted);
	}
}

static void batches_by_hand(void **state)
{
	struct percentile_batches b;

	(void)state;
	/* One of ten in every batch: less scatter than chance has, so 1; nothing to correlate. */
	for (size_t i = 0; i < PERCENTILE_BATCHES; i++)
		b.all[i] = 10, b.counted[i] = 1;
	near(percentile_dispersion(&b), 1, 0);
	near(percentile_correlation(&b), 0, 0);
	/*
	 * All 20 in the first two: p = 0.1, offs 9, 9 and 18 times -1, squares 180 over
	 * 19 * 0.1 * 0.9 * 10 = 17.1. Products: 81 - 9 + 17 = 89, over 180.
	 */
	for (size_t i = 0; i < PERCENTILE_BATCHES; i++)
		b.counted[i] = i < 2 ? 10 : 0;
	near(percentile_dispersion(&b), 180 / 17.1, 1e-12);
	near(percentile_correlation(&b), 89.0 / 180, 1e-12);
	for (size_t i = 0; i < PERCENTILE_BATCHES; i++)
		b.counted[i] = 0;
	near(percentile_dispersion(&b), 1, 0);
}

static void clumps_widen(void **state)
{
	enum { N = 2000 };
	double *sorted = ramp(N), *even = dealt(sorted, N);
	struct percentile spread = percentile_bounds(even, sorted, N, 99, 0.95);
	/* In time order as they are: all slow requests at the end, in one batch. */
	struct percentile clumped = percentile_bounds(sorted, sorted, N, 99, 0.95);

	(void)state;
	assert_true(isfinite(spread.high));
	assert_false(spread.marks & (PERCENTILE_OPEN | PERCENTILE_FEW | PERCENTILE_CLUMPED));
	/* 20 of 2,000 above: p = 0.01; squares 19^2 + 19 over 19 * 0.01 * 0.99 * 100. */
	near(clumped.phi, (19 * 19 + 19) / (19 * 0.99), 1e-9);
	assert_true(clumped.low < spread.low);
	assert_true(isinf(clumped.high));
	assert_int_equal(clumped.marks & (PERCENTILE_OPEN | PERCENTILE_FEW),
			 PERCENTILE_OPEN | PERCENTILE_FEW);
	assert_true(clumped.needed > N && clumped.unmarked > N);
	free(even);
	free(sorted);
}

/* A slow sine: neighbouring batches resemble each other, which is said. */
static void long_clumps_are_marked(void **state)
{
	enum { N = 4000 };
	double *x = calloc(N, sizeof(*x)), *sorted;
	struct percentile got;
	struct pcg64 rng;

	(void)state;
	assert_non_null(x);
	pcg64_seed(&rng, 5);
	for (size_t i = 0; i < N; i++)
		x[i] = 2 + sin(6.283185307 * (double)i / N) + 0.5 * pcg64_double(&rng);
	sorted = stats_sorted(x, N);
	got = percentile_bounds(x, sorted, N, 90, 0.95);
	assert_true(got.correlation > PERCENTILE_CORRELATION);
	assert_true(got.marks & PERCENTILE_CLUMPED);
	free(sorted);
	free(x);
}

static void equal_values(void **state)
{
	double x[400];
	struct percentile got;

	(void)state;
	for (size_t i = 0; i < COUNT(x); i++)
		x[i] = 7;
	got = percentile_bounds(x, x, COUNT(x), 99, 0.95);
	assert_true(got.value == 7 && got.low == 7 && got.high == 7);
	assert_true(got.phi == 1 && got.correlation == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(needed),
		cmocka_unit_test(exact_ends),
		cmocka_unit_test(golden_ranks),
		cmocka_unit_test(many),
		cmocka_unit_test(agrees_with_ranks),
		cmocka_unit_test(batches_by_hand),
		cmocka_unit_test(clumps_widen),
		cmocka_unit_test(long_clumps_are_marked),
		cmocka_unit_test(equal_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
