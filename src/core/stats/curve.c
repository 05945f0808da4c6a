/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c - see curve.h. */
#include "core/stats/curve.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"

/* ---- Monotone curves ---- */

static double sign(double v)
{
	return v > 0 ? 1 : v < 0 ? -1 : 0;
}

/* At an end: three points, held back where that would overshoot (Moler 2004, section 3.6). */
static double end_slope(double h0, double h1, double m0, double m1)
{
	double d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1);

	if (sign(d) != sign(m0))
		return 0;
	return sign(m0) != sign(m1) && fabs(d) > 3 * fabs(m0) ? 3 * m0 : d;
}

static double inner_slope(double h0, double h1, double m0, double m1)
{
	double w1 = 2 * h1 + h0, w2 = h1 + 2 * h0;

	if (sign(m0) != sign(m1) || m0 == 0 || m1 == 0)
		return 0;
	return 1 / ((w1 / m0 + w2 / m1) / (w1 + w2));
}

void monotone_slopes(const double *x, const double *y, size_t n, double *slope)
{
	double *h = mem_array(n, sizeof(*h)), *m = mem_array(n, sizeof(*m));

	assert(n >= 2);
	for (size_t i = 0; i + 1 < n; i++) {
		h[i] = x[i + 1] - x[i];
		assert(h[i] > 0);
		m[i] = (y[i + 1] - y[i]) / h[i];
	}
	slope[0] = n == 2 ? m[0] : end_slope(h[0], h[1], m[0], m[1]);
	for (size_t i = 1; i + 1 < n; i++)
		slope[i] = inner_slope(h[i - 1], h[i], m[i - 1], m[i]);
	slope[n - 1] = n == 2 ? m[0] : end_slope(h[n - 2], h[n - 3], m[n - 2], m[n - 3]);
	free(h);
	free(m);
}

/* The cubic between points i and i + 1, in powers of the distance from i. */
static double piece_at(const double *x, const double *y, const double *slope, size_t i, double at)
{
	double h = x[i + 1] - x[i], m = (y[i + 1] - y[i]) / h, t = at - x[i];
	double bend = (slope[i] + slope[i + 1] - 2 * m) / h;

	return y[i] + t * (slope[i] + t * ((m - slope[i]) / h - bend + t * bend / h));
}

double monotone_at(const double *x, const double *y, const double *slope, size_t n, double at)
{
	size_t i = 0;

	assert(n >= 2);
	while (i + 2 < n && at >= x[i + 1])
		i++;
	return piece_at(x, y, slope, i, at);
}

double monotone_root(const double *x, const double *y, const double *slope, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double low, high;

		if (y[i] == 0)
			return x[i];
		if (i + 1 == n || y[i + 1] == 0 || (y[i] < 0) == (y[i + 1] < 0))
			continue;
		low = x[i];
		high = x[i + 1];
		/* Monotone between its ends: halving ends at the last bit. */
		for (double mid = (low + high) / 2; mid > low && mid < high;
		     mid = (low + high) / 2) {
			if ((piece_at(x, y, slope, i, mid) < 0) == (y[i] < 0))
				low = mid;
			else
				high = mid;
		}
		return high;
	}
	return NAN;
}

void monotone_fit(double *y, const double *weight, size_t n)
{
	double *value = mem_array(n, sizeof(*value)), *sum = mem_array(n, sizeof(*sum));
	size_t *count = mem_array(n, sizeof(*count)), blocks = 0, at = 0;

	for (size_t i = 0; i < n; i++) {
		assert(weight[i] > 0);
		value[blocks] = y[i];
		sum[blocks] = weight[i];
		count[blocks++] = 1;
		while (blocks > 1 && value[blocks - 2] > value[blocks - 1]) {
			size_t a = blocks - 2, b = blocks - 1;

			value[a] = (value[a] * sum[a] + value[b] * sum[b]) / (sum[a] + sum[b]);
			sum[a] += sum[b];
			count[a] += count[b];
			blocks--;
		}
	}
	for (size_t b = 0; b < blocks; b++)
		for (size_t k = 0; k < count[b]; k++)
			y[at++] = value[b];
	free(value);
	free(sum);
	free(count);
}

/* ---- Pareto frontiers ---- */

#define EPSILON 1e-9 /* upstream's */

struct curve_point { double x, y; size_t at; };

/* Greater x first, then greater y. */
static int from_the_right(const void *a, const void *b)
{
	const struct curve_point *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? 1 : -1;
	if (p->y != q->y)
		return p->y < q->y ? 1 : -1;
	return p->at < q->at ? -1 : 1;
}

size_t pareto_frontier(const double *x, const double *y, size_t n, enum pareto_rule rule,
		       bool *is_frontier)
{
	struct curve_point *p = mem_array(n, sizeof(*p));
	size_t known = 0, count = 0, last = 0;
	double best = -INFINITY;

	for (size_t i = 0; i < n; i++) {
		is_frontier[i] = false;
		if (!isnan(x[i]) && !isnan(y[i]))
			p[known++] = (struct curve_point){ x[i], y[i], i };
	}
	if (known)
		qsort(p, known, sizeof(*p), from_the_right);
	for (size_t i = 0; i < known; i++) {
		bool is_twin = count && p[i].x == p[last].x && p[i].y == p[last].y;

		if (rule == PARETO_WEAK ? !(p[i].y >= best - EPSILON) :
		    !is_twin && count && !(p[i].y > best))
			continue;
		is_frontier[p[i].at] = true;
		best = p[i].y > best ? p[i].y : best;
		last = i;
		count++;
	}
	free(p);
	return count;
}
