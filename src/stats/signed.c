/* SPDX-License-Identifier: Apache-2.0 */
/* signed.c - see signed.h. */
#include "stats/signed.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/compare.h"

double sign_test(size_t up, size_t down)
{
	double few = (double)(up < down ? up : down), all = (double)(up + down);

	if (!up && !down)
		return NAN;
	if (up == down)
		return 1;
	/* P(Bin(all, 1/2) <= few) = I_{1/2}(all - few, few + 1) */
	return fmin(1, 2 * beta_regularised(0.5, all - few, few + 1));
}

static int by_size(const void *x, const void *y)
{
	double a = fabs(*(const double *)x), b = fabs(*(const double *)y);

	return (a > b) - (a < b);
}

/* The share of all ways to give signs to ranks whose positive ones add up to at most `few`. */
static double share_up_to(const size_t *rank2, size_t n, size_t few)
{
	size_t sum = 0;
	double *ways, below = 0;

	for (size_t i = 0; i < n; i++)
		sum += rank2[i];
	ways = mem_array(sum + 1, sizeof(*ways));
	ways[0] = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t s = sum; s >= rank2[i]; s--)
			ways[s] += ways[s - rank2[i]];
	for (size_t s = 0; s <= few; s++)
		below += ways[s];
	free(ways);
	return ldexp(below, -(int)n);
}

double signed_rank_test(const double *d, size_t n)
{
	double *x = mem_array(n + 1, sizeof(*x)), ties = 0, p;
	size_t *rank2 = mem_array(n + 1, sizeof(*rank2)), m = 0, up2 = 0, all2, few;

	for (size_t i = 0; i < n; i++)
		if (fabs(d[i]) > 0)
			x[m++] = d[i];
	if (m)
		qsort(x, m, sizeof(*x), by_size);
	for (size_t i = 0, end; i < m; i = end) {
		double t;

		for (end = i + 1; end < m && fabs(x[end]) <= fabs(x[i]); end++)
			;
		t = (double)(end - i);
		ties += t * t * t - t;
		for (size_t k = i; k < end; k++) {
			rank2[k] = i + end + 1; /* twice the mean of ranks i + 1 to end */
			up2 += x[k] > 0 ? rank2[k] : 0;
		}
	}
	all2 = m * (m + 1);
	few = up2 < all2 - up2 ? up2 : all2 - up2;
	if (!m) {
		p = n ? 1 : NAN;
	} else if (m <= SIGNED_EXACT_VALUES) {
		p = 2 * share_up_to(rank2, m, few);
	} else {
		double k = (double)m, far = k * (k + 1) / 4 - (double)few / 2 - 0.5;
		double variance = k * (k + 1) * (2 * k + 1) / 24 - ties / 48;

		p = far <= 0 ? 1 : erfc(far / sqrt(2 * variance));
	}
	free(x);
	free(rank2);
	return p > 1 ? 1 : p; /* NAN stays */
}
