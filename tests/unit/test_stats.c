/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stats.c - statistics against NumPy, to the last bit.
 *
 * Both sides make the same numbers from one small congruential generator;
 * stats_golden.h (written by tests/peer/golden_rng.py) holds NumPy's answers.
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

#include "core/base/mem.h"
#include "core/stats/stats.h"
#include "stats_golden.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t bits_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static uint64_t lcg(uint64_t *x)
{
	return *x = *x * 6364136223846793005u + 1442695040888963407u;
}

/* 0: [0, 1); 1: both signs over forty octaves; 2: fifty values, so many are equal. */
static double *sequence(int kind, size_t n)
{
	uint64_t x = 1000003u * n + (uint64_t)kind;
	double *out = mem_array(n, sizeof(*out));

	for (size_t i = 0; i < n; i++) {
		double u = (double)(lcg(&x) >> 11) * 0x1p-53;

		out[i] = kind == 0 ? u : kind == 1 ? ldexp(u - 0.25, (int)((x >> 5) % 40) - 30) :
						     floor(u * 50.0) / 1000.0;
	}
	return out;
}

static uint64_t percentiles_hash(const double *sorted, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t k = 0; k < COUNT(percentile_golden); k++)
		h = (h ^ bits_of(stats_percentile(sorted, n, percentile_golden[k]))) *
		    0x100000001b3u;
	return h;
}

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(stats_golden); i++) {
		const struct stats_golden *want = &stats_golden[i];
		double *x = sequence(want->kind, want->n), *s = stats_sorted(x, want->n);

		if (bits_of(stats_mean(x, want->n)) != bits_of(want->mean) ||
		    bits_of(stats_std(x, want->n)) != bits_of(want->std) ||
		    bits_of(stats_median(s, want->n)) != bits_of(want->median) ||
		    percentiles_hash(s, want->n) != want->hash)
			fail_msg("kind %d, n %zu differs from NumPy", want->kind, want->n);
		free(x);
		free(s);
	}
}

static void test_empty(void **state)
{
	double *s = stats_sorted(NULL, 0);

	(void)state;
	assert_true(bits_of(stats_sum(NULL, 0)) == 0);
	assert_true(bits_of(stats_mean(NULL, 0)) == 0);
	assert_true(bits_of(stats_std(NULL, 0)) == 0);
	assert_true(bits_of(stats_median(s, 0)) == 0);
	assert_true(bits_of(stats_percentile(s, 0, 99)) == 0);
	assert_true(bits_of(stats_mean((double[]){ -0.0 }, 1)) == 0);
	free(s);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Both sorting methods, either side of the size where one takes over. */
static void test_sort(void **state)
{
	static const size_t count[] = { 0, 1, 2, 511, 512, 513, 514, 4096, 100000 };

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		for (size_t k = 0; k < COUNT(count); k++) {
			size_t n = count[k];
			double *x = sequence(kind % 3, n), *got;

			if (kind == 3)
				for (size_t i = 0; i < n; i++)
					x[i] = i % 7 ? x[i] : i % 2 ? -INFINITY : 5e-324;
			got = stats_sorted(x, n);
			qsort(x, n, sizeof(*x), compare);
			for (size_t i = 0; i < n; i++)
				assert_true(bits_of(x[i]) == bits_of(got[i]));
			free(x);
			free(got);
		}
	}
}

static void test_select(void **state)
{
	static const size_t count[] = { 1, 2, 3, 10, 513, 5000 };

	(void)state;
	for (int kind = 0; kind < 4; kind++)
		for (size_t i = 0; i < COUNT(count); i++)
			for (size_t part = 0; part <= 8; part++) {
				size_t n = count[i], k = part * (n - 1) / 8;
				double *x = sequence(kind % 3, n), *sorted;

				for (size_t at = 0; kind == 3 && at < n; at++)
					x[at] = (double)(at % 3); /* few values, many times */
				sorted = stats_sorted(x, n);
				assert_true(stats_select(x, n, k) == sorted[k]);
				for (size_t at = 0; at < n; at++)
					assert_true(at < k ? x[at] <= x[k] : x[at] >= x[k]);
				stats_sort(x, n);
				assert_memory_equal(x, sorted, n * sizeof(*x));
				free(x);
				free(sorted);
			}
}

/* ---- histogram ---- */

static void check_bucket(int64_t v)
{
	struct hist h = { 0 };
	int64_t got;

	hist_add(&h, v);
	hist_add(&h, INT64_MAX); /* so that the bucket's middle is not cut at the maximum */
	got = hist_percentile(&h, 50);
	assert_true(hist_bucket(v) < HIST_BUCKETS);
	assert_true(llabs(got - v) <= (v < 128 ? 0 : v / 100));
}

static void test_hist_error(void **state)
{
	(void)state;
	for (int64_t v = 0; v < 3000; v++)
		check_bucket(v);
	for (int shift = 10; shift < 63; shift++)
		for (int64_t near = -2; near <= 2; near++)
			check_bucket(((int64_t)1 << shift) + near);
	check_bucket(INT64_MAX);
	check_bucket(INT64_MAX / 3);
	for (int64_t v = 1; v < 1 << 20; v++)
		assert_true(hist_bucket(v) - hist_bucket(v - 1) <= 1);
}

static void test_hist_percentiles(void **state)
{
	static const double p[] = { 0, 1, 25, 50, 90, 99, 99.9, 100 };
	struct hist h = { 0 }, half[2] = { { { 0 }, 0, 0, 0 } }, sum = { 0 };
	const size_t n = 20000;
	double *x = mem_array(n, sizeof(*x));
	uint64_t seed = 7;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		int64_t ns = (int64_t)(lcg(&seed) >> (20 + seed % 17));

		x[i] = (double)ns;
		hist_add(&h, ns);
		hist_add(&half[i % 3 == 0], ns);
	}
	stats_sort(x, n);
	for (size_t k = 0; k < COUNT(p); k++) {
		size_t rank = (size_t)ceil(p[k] / 100 * (double)n);
		double want = x[rank ? rank - 1 : 0], got = (double)hist_percentile(&h, p[k]);

		assert_true(fabs(got - want) <= 0.008 * want + 0.5);
	}
	assert_true(hist_count(&h) == n);
	assert_true((double)hist_max(&h) == x[n - 1]);
	assert_true(hist_percentile(&h, 100) == hist_max(&h));
	hist_merge(&sum, &half[0]);
	hist_merge(&sum, &half[1]);
	assert_memory_equal(&sum, &h, sizeof(h));
	free(x);
}

static void test_hist_edges(void **state)
{
	struct hist h = { 0 };

	(void)state;
	assert_int_equal(hist_percentile(&h, 50), 0);
	assert_true(hist_mean(&h) == 0);
	hist_add(&h, -5);
	assert_int_equal(hist_max(&h), 0);
	assert_int_equal(hist_bucket(0), 0);
	hist_add(&h, 1000000007);
	assert_int_equal(hist_percentile(&h, 100), 1000000007);
	assert_int_equal(hist_percentile(&h, 50), 0);
	assert_true(hist_mean(&h) == 500000003.5);
	assert_int_equal(hist_bucket(INT64_MAX), HIST_BUCKETS - 1);
}

/* ---- intervals ---- */

static void test_z(void **state)
{
	static const struct { double level, z; } row[] = {
		{ 0.5, 0.6744897501960817 }, { 0.9, 1.6448536269514722 },
		{ 0.95, 1.959963984540054 }, { 0.99, 2.5758293035489004 },
		{ 0.999999, 4.891638475699412 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		assert_true(fabs(interval_z(row[i].level) - row[i].z) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_select),
		cmocka_unit_test(test_hist_error),
		cmocka_unit_test(test_hist_percentiles),
		cmocka_unit_test(test_hist_edges),
		cmocka_unit_test(test_z),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
