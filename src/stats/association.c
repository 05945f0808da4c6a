/* SPDX-License-Identifier: Apache-2.0 */
/* association.c - see association.h. */
#include "stats/association.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"
#include "stats/compare.h"
#include "stats/stats.h"

double f_tail(double f, double df1, double df2)
{
	assert(f >= 0 && df1 > 0 && df2 > 0);
	if (isinf(f))
		return 0;
	return beta_regularised(df2 / (df2 + df1 * f), df2 / 2, df1 / 2);
}

struct oneway oneway_test(const double *x, const uint8_t *code, size_t n, size_t groups)
{
	struct oneway out = { 0, NAN, NAN, NAN, NAN, NAN };
	double sum[ASSOCIATION_GROUPS_MAX] = { 0 }, count[ASSOCIATION_GROUPS_MAX] = { 0 };
	double mean = stats_mean(x, n), total = 0, within = 0;

	assert(groups <= ASSOCIATION_GROUPS_MAX);
	for (size_t i = 0; i < n; i++) {
		assert(code[i] < groups);
		sum[code[i]] += x[i] - mean; /* from the mean, so that large values lose nothing */
		count[code[i]]++;
		total += (x[i] - mean) * (x[i] - mean);
	}
	for (size_t g = 0; g < groups; g++) {
		out.groups += count[g] > 0;
		sum[g] = count[g] > 0 ? sum[g] / count[g] : 0;
	}
	if (out.groups < 2 || n <= out.groups)
		return out;
	for (size_t i = 0; i < n; i++) {
		double off = x[i] - mean - sum[code[i]];

		within += off * off;
	}
	out.df_between = (double)(out.groups - 1);
	out.df_within = (double)(n - out.groups);
	if (total <= 0)
		return out;
	out.share = fmax(0, 1 - within / out.df_within / (total / (double)(n - 1)));
	/* what is left within, or between, may be rounding alone */
	out.f = within <= total * 1e-28 ? INFINITY :
		total - within <= total * 1e-14 ? 0 :
		(total - within) / out.df_between / (within / out.df_within);
	out.p = f_tail(out.f, out.df_between, out.df_within);
	return out;
}

double cramers_v(const uint8_t *a, size_t groups_a, const uint8_t *b, size_t groups_b, size_t n)
{
	double in_a[ASSOCIATION_GROUPS_MAX] = { 0 }, in_b[ASSOCIATION_GROUPS_MAX] = { 0 };
	double all = (double)n, chi = 0, rows = 0, columns = 0, phi, r, c;
	uint32_t *table = mem_array(groups_a * groups_b + 1, sizeof(*table));

	assert(groups_a <= ASSOCIATION_GROUPS_MAX && groups_b <= ASSOCIATION_GROUPS_MAX);
	for (size_t i = 0; i < n; i++)
		table[a[i] * groups_b + b[i]]++;
	for (size_t i = 0; i < groups_a; i++)
		for (size_t k = 0; k < groups_b; k++) {
			in_a[i] += table[i * groups_b + k];
			in_b[k] += table[i * groups_b + k];
		}
	for (size_t i = 0; i < groups_a; i++)
		rows += in_a[i] > 0;
	for (size_t k = 0; k < groups_b; k++)
		columns += in_b[k] > 0;
	/* chi squared over n is the sum of cell^2 / (row column) - 1 */
	for (size_t i = 0; i < groups_a; i++)
		for (size_t k = 0; k < groups_b; k++) {
			double cell = table[i * groups_b + k];

			if (cell > 0)
				chi += cell / in_a[i] * (cell / in_b[k]);
		}
	free(table);
	if (rows < 2 || columns < 2)
		return NAN;
	phi = fmax(0, chi - 1 - (rows - 1) * (columns - 1) / (all - 1));
	r = rows - (rows - 1) * (rows - 1) / (all - 1);
	c = columns - (columns - 1) * (columns - 1) / (all - 1);
	if (fmin(r, c) <= 1)
		return 0;
	return fmin(1, sqrt(phi / (fmin(r, c) - 1)));
}
