/* SPDX-License-Identifier: Apache-2.0 */
/* test_stats_monotone.c - curves against SciPy's, monotone fits worked out by hand. */
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

#include "core/stats/curve.h"
#include "monotone_golden.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool is_close(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(monotone_golden); i++) {
		const struct monotone_golden *g = &monotone_golden[i];
		double slope[MONOTONE_POINTS], root;

		monotone_slopes(g->x, g->y, g->n, slope);
		for (unsigned k = 0; k < g->n; k++)
			if (!is_close(slope[k], g->slope[k]))
				fail_msg("row %zu: slope %u is %g", i, k, slope[k]);
		for (unsigned k = 0; k < MONOTONE_PROBES; k++)
			if (!is_close(monotone_at(g->x, g->y, slope, g->n, g->at[k]),
				      g->value[k]))
				fail_msg("row %zu: value at %g", i, g->at[k]);
		root = monotone_root(g->x, g->y, slope, g->n);
		/* Where the curve only touches 0, SciPy's root has half the digits. */
		if (isnan(g->root) ? !isnan(root) :
		    !(fabs(root - g->root) <= 1e-6 * fabs(root)))
			fail_msg("row %zu: root %.17g, not %.17g", i, root, g->root);
	}
}

static const struct fit_row { size_t n; double y[6], weight[6], want[6]; } fit_rows[] = {
	{ 1, { 3 }, { 1 }, { 3 } },
	{ 4, { 1, 2, 2, 5 }, { 1, 1, 1, 1 }, { 1, 2, 2, 5 } },
	{ 3, { 1, 3, 2 }, { 1, 1, 1 }, { 1, 2.5, 2.5 } },
	{ 3, { 1, 3, 2 }, { 1, 1, 3 }, { 1, 2.25, 2.25 } },
	{ 4, { 4, 3, 2, 1 }, { 1, 1, 1, 1 }, { 2.5, 2.5, 2.5, 2.5 } },
	{ 6, { 1, 5, 3, 4, 2, 9 }, { 1, 1, 1, 1, 1, 1 }, { 1, 3.5, 3.5, 3.5, 3.5, 9 } },
};

static void test_fit(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(fit_rows); i++) {
		double y[6];

		memcpy(y, fit_rows[i].y, sizeof(y));
		monotone_fit(y, fit_rows[i].weight, fit_rows[i].n);
		for (size_t k = 0; k < fit_rows[i].n; k++)
			assert_float_equal(y[k], fit_rows[i].want[k], 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
