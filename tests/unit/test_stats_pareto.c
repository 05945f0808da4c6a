/* SPDX-License-Identifier: Apache-2.0 */
/* test_stats_pareto.c - frontiers, against upstream's own (tests/peer/sweep/golden_plot.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/stats/curve.h"
#include "sweep_plot_golden.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void frontiers(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(frontier_golden); i++) {
		bool weak[16], strict[16];
		size_t n = frontier_golden[i].n, count = 0;
		const double *x = frontier_golden[i].x, *y = frontier_golden[i].y;

		pareto_frontier(x, y, n, PARETO_STRICT, strict);
		assert_true(pareto_frontier(x, y, n, PARETO_WEAK, weak) <= n);
		for (size_t k = 0; k < n; k++) {
			bool is_beaten = false;

			for (size_t j = 0; j < n; j++)
				is_beaten |= x[j] >= x[k] && y[j] >= y[k] &&
					     (x[j] > x[k] || y[j] > y[k]);
			if (weak[k] != (frontier_golden[i].kept[k] == '1'))
				fail_msg("set %zu, point %zu: %d, upstream %c", i, k, weak[k],
					 frontier_golden[i].kept[k]);
			assert_int_equal(strict[k], !is_beaten);
			count += strict[k];
		}
		assert_true(count > 0);
	}
}

static void frontier_without_numbers(void **state)
{
	const double x[] = { NAN, 1, 2, INFINITY }, y[] = { 9, NAN, 1, 0 };
	bool kept[4];

	(void)state;
	assert_int_equal(pareto_frontier(x, y, 4, PARETO_WEAK, kept), 2);
	assert_true(!kept[0] && !kept[1] && kept[2] && kept[3]);
	assert_int_equal(pareto_frontier(x, y, 0, PARETO_STRICT, kept), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frontiers),
		cmocka_unit_test(frontier_without_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
