/* SPDX-License-Identifier: Apache-2.0 */
/* significance.c - see significance.h. */
#include "core/stats/significance.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"

/* ---- Student's t ---- */

/*
 * The continued fraction of I_x(a, b) (Abramowitz and Stegun 26.5.8), evaluated by Lentz's
 * method from the front. Converges fast for x < (a + 1) / (a + b + 2).
 */
static double beta_fraction(double x, double a, double b)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), h;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (int m = 1; m < 10000; m++) {
		double k = m, even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
		double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
		double step[2] = { even, odd }, change = 1;

		for (int i = 0; i < 2; i++) {
			d = 1 + step[i] * d;
			c = 1 + step[i] / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			change = d * c;
			h *= change;
		}
		if (fabs(change - 1) < 1e-16)
			break;
	}
	return h;
}

double beta_regularised(double x, double a, double b)
{
	double front;

	assert(a > 0 && b > 0 && x >= 0 && x <= 1);
	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(1 - x, b, a) / b;
}

/* The chance of a value beyond t on one side, exact far out too; t >= 0. */
static double student_tail(double t, double df)
{
	if (isinf(t))
		return 0;
	if (t < 1) /* df / (df + t * t) would round away what t is */
		return 0.5 - 0.5 * beta_regularised(t * t / (df + t * t), 0.5, df / 2);
	return 0.5 * beta_regularised(df / (df + t * t), df / 2, 0.5);
}

double student_cdf(double t, double df)
{
	assert(df > 0);
	return t > 0 ? 1 - student_tail(t, df) : student_tail(-t, df);
}

double student_quantile(double p, double df)
{
	double tail = p < 0.5 ? p : 1 - p, low = 0, high = 1;

	assert(p > 0 && p < 1 && df > 0);
	while (student_tail(high, df) > tail)
		high *= 2;
	for (int i = 0; i < 100; i++) {
		double mid = (low + high) / 2;

		if (mid <= low || mid >= high) /* neighbours: no step changes anything any more */
			break;
		if (student_tail(mid, df) > tail)
			low = mid;
		else
			high = mid;
	}
	return p < 0.5 ? -(low + high) / 2 : (low + high) / 2;
}

/* ---- one sample ---- */

/* The variance of the sample's mean. */
static double mean_variance(const double *x, size_t n)
{
	double std = stats_std(x, n); /* divides by n; the unbiased one by n - 1 */

	return std * std / (double)(n - 1);
}

struct interval student_interval(const double *x, size_t n, double level)
{
	double mean, half;

	assert(level > 0 && level < 1);
	if (n < 2)
		return (struct interval){ NAN, NAN };
	mean = stats_mean(x, n);
	half = student_quantile(0.5 + level / 2, (double)(n - 1)) * sqrt(mean_variance(x, n));
	return (struct interval){ mean - half, mean + half };
}

/* ---- Mann and Whitney ---- */

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/*
 * Twice the middle rank of every pooled value in ascending order (whole numbers, equal values
 * alike), and the sum of t^3 - t over groups of t equal ones.
 */
static double pooled_ranks(const double *sorted, size_t n, unsigned *rank2)
{
	double ties = 0;

	for (size_t i = 0, end; i < n; i = end) {
		double t;

		for (end = i + 1; end < n && !(sorted[end] > sorted[i]); end++)
			;
		t = (double)(end - i);
		ties += t * t * t - t;
		for (size_t k = i; k < end; k++)
			rank2[k] = (unsigned)(i + end + 1);
	}
	return ties;
}

static size_t sum_of(const unsigned *x, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

/*
 * ways[s]: in how many ways k of the n given ascending whole numbers add up to s. The table grows
 * one number at a time, and rows are walked downwards, so that each number is used once. Row r has
 * sums from that of the first r numbers to that of the last r so far, and is 0 elsewhere.
 */
static double *count_sums(const unsigned *x, size_t n, size_t k, size_t *width)
{
	size_t sum = 1 + sum_of(x, n);
	double *ways, *last;

	ways = mem_array((k + 1) * sum, sizeof(*ways));
	ways[0] = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t row = i + 1 < k ? i + 1 : k; row > 0; row--) {
			size_t low = sum_of(x, row - 1), high = sum_of(x + i - (row - 1), row - 1);
			const double *from = ways + (row - 1) * sum;
			double *to = ways + row * sum + x[i];

			for (size_t s = low; s <= high; s++)
				to[s] += from[s];
		}
	last = mem_array(sum, sizeof(*last));
	memcpy(last, ways + k * sum, sum * sizeof(*last));
	free(ways);
	*width = sum;
	return last;
}

/* Two-sided: twice the smaller tail, each with the observed sum in it. */
static double exact_p(const unsigned *rank2, size_t n, size_t k, size_t observed)
{
	size_t width;
	double *ways = count_sums(rank2, n, k, &width), below = 0, above = 0, all = 0;

	for (size_t s = 0; s < width; s++) {
		all += ways[s];
		below += s <= observed ? ways[s] : 0;
		above += s >= observed ? ways[s] : 0;
	}
	free(ways);
	return fmin(1, 2 * fmin(below, above) / all);
}

static double normal_p(double u, double n, double m, double ties)
{
	double all = n + m, middle = n * m / 2;
	double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
	double far = fabs(u - middle) - 0.5; /* continuity */

	return variance <= 0 || far <= 0 ? 1 : erfc(far / sqrt(2 * variance));
}

struct mann_whitney mann_whitney_test(const double *a, size_t n, const double *b, size_t m)
{
	struct mann_whitney r = { NAN, NAN, false };
	size_t all = n + m, sum2 = 0;
	double *pool, ties;
	unsigned *rank2;

	if (!n || !m)
		return r;
	pool = mem_array(all, sizeof(*pool));
	rank2 = mem_array(all, sizeof(*rank2));
	memcpy(pool, a, n * sizeof(*a));
	memcpy(pool + n, b, m * sizeof(*b));
	stats_sort(pool, all);
	ties = pooled_ranks(pool, all, rank2);
	for (size_t i = 0; i < m; i++) {
		const double *at = bsearch(&b[i], pool, all, sizeof(*pool), by_value);

		sum2 += rank2[at - pool];
	}
	/* The rank sum of b exceeds u by what b has against itself. */
	r.u = (double)sum2 / 2 - (double)m * (double)(m + 1) / 2;
	r.is_exact = all <= COMPARE_EXACT_VALUES;
	r.p = r.is_exact ? exact_p(rank2, all, m, sum2)
			 : normal_p(r.u, (double)n, (double)m, ties);
	free(pool);
	free(rank2);
	return r;
}

/* ---- a trend ---- */

double trend_test(const double *in_time, size_t n)
{
	/* The share of the orders of the first values that have k pairs the wrong way round. */
	double share[TREND_VALUES_MAX * (TREND_VALUES_MAX - 1) / 2 + 1] = { 1 };
	int sum = 0, pairs = 0;
	double p = 0;

	assert(n <= TREND_VALUES_MAX);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < i; k++)
			sum += (in_time[i] > in_time[k]) - (in_time[i] < in_time[k]);
		pairs += (int)i;
		for (int k = pairs; k >= 0; k--) {
			double ways = 0;

			for (int j = 0; j <= (int)i && j <= k; j++)
				ways += share[k - j];
			share[k] = ways / (double)(i + 1);
		}
	}
	for (int k = 0; k <= pairs; k++)
		p += abs(pairs - 2 * k) >= abs(sum) ? share[k] : 0;
	return fmin(p, 1);
}

/* ---- several tests ---- */

static int by_pointed(const void *x, const void *y)
{
	return by_value(*(double *const *)x, *(double *const *)y);
}

void compare_adjust(double *p, size_t n)
{
	double **sorted = mem_array(n, sizeof(*sorted)), least = 1;
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(p[i]))
			sorted[count++] = &p[i];
	qsort(sorted, count, sizeof(*sorted), by_pointed);
	for (size_t i = count; i-- > 0;) {
		least = fmin(least, *sorted[i] * (double)count / (double)(i + 1));
		*sorted[i] = least;
	}
	free(sorted);
}

/* ---- Pairs ---- */

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

/* ---- Groups ---- */

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
	/* a remainder within or between groups may be rounding */
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
	for (size_t i = 0; i < n; i++) {
		assert(a[i] < groups_a && b[i] < groups_b);
		table[a[i] * groups_b + b[i]]++;
	}
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
