/* SPDX-License-Identifier: Apache-2.0 */
/* edivisive.c - see edivisive.h. */
#include "core/stats/edivisive.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"

#define OUTLIER_SIGMAS 3.0
#define OUTLIER_WINDOW 5
#define WEAK_TIMES 10
#define WEAK_P_MAX 0.1
#define PASSES_MAX 4 /* of moving and testing again; two are nearly always enough */

struct edivisive_series {
	const double *x;      /* as given */
	double *y;            /* logarithms, outliers pulled in */
	size_t n, min;
	const struct edivisive_opts *o;
	double *area;         /* of one window: sums of distances, (m + 1) by (m + 1) */
	size_t from, m;       /* the window's place in y */
	bool *is_point;       /* n */
	bool is_log;
	double *size;         /* n: of a change here, the smaller of two views of it */
};

/* ---- the values ---- */

static double median_of(const double *x, size_t n)
{
	double *sorted = stats_sorted(x, n), median = stats_median(sorted, n);

	free(sorted);
	return median;
}

/* Standard deviation of values around their level, from neighbours: |a - b| / sqrt(2) / 0.6745. */
static double noise_of(const double *y, size_t n)
{
	double *step = mem_array(n, sizeof(*step)), median;

	for (size_t i = 0; i + 1 < n; i++)
		step[i] = fabs(y[i + 1] - y[i]);
	stats_sort(step, n - 1);
	median = stats_median(step, n - 1);
	free(step);
	return median / 0.9539;
}

void edivisive_pull_outliers(const double *raw, size_t n, double *y)
{
	double reach;

	memcpy(y, raw, n * sizeof(*y));
	if (n < OUTLIER_WINDOW)
		return;
	reach = OUTLIER_SIGMAS * noise_of(raw, n);
	for (size_t i = 0; i < n; i++) {
		size_t from = i < OUTLIER_WINDOW / 2 ? 0 : i - OUTLIER_WINDOW / 2;
		double near[OUTLIER_WINDOW], level;

		from = from + OUTLIER_WINDOW > n ? n - OUTLIER_WINDOW : from;
		memcpy(near, raw + from, sizeof(near));
		stats_sort(near, OUTLIER_WINDOW);
		level = near[OUTLIER_WINDOW / 2];
		y[i] = fmin(fmax(raw[i], level - reach), level + reach);
	}
}

static void make_values(struct edivisive_series *s)
{
	double *raw = mem_array(s->n, sizeof(*raw));
	bool is_positive = true;

	for (size_t i = 0; i < s->n; i++)
		is_positive &= s->x[i] > 0;
	for (size_t i = 0; i < s->n; i++)
		raw[i] = is_positive ? log(s->x[i]) : s->x[i];
	edivisive_pull_outliers(raw, s->n, s->y);
	free(raw);
	s->is_log = is_positive;
}

/* ---- one split ---- */

struct series_sums { double mean, squares; }; /* squares about the mean */

static struct series_sums sums_of(const double *y, size_t n)
{
	struct series_sums s = { stats_mean(y, n), 0 };

	for (size_t i = 0; i < n; i++)
		s.squares += (y[i] - s.mean) * (y[i] - s.mean);
	return s;
}

/* Student's test of y[a..b) against y[b..c); 1 when a side is too short. */
static double test(const struct edivisive_series *s, size_t a, size_t b, size_t c)
{
	double n = (double)(b - a), m = (double)(c - b), error;
	struct series_sums l, r;

	if (b - a < s->min || c - b < s->min)
		return 1;
	l = sums_of(s->y + a, b - a);
	r = sums_of(s->y + b, c - b);
	error = sqrt((l.squares + r.squares) / (n + m - 2) * (1 / n + 1 / m));
	if (fabs(l.mean - r.mean) <= 0)
		return 1;
	/* Differences from rounding are not a change. */
	if (error <= 1e-13 * fmax(fabs(l.mean), fabs(r.mean)))
		return fabs(l.mean - r.mean) > 1e-12 * fmax(fabs(l.mean), fabs(r.mean)) ? 0 : 1;
	return fmin(1, 2 * student_cdf(-fabs(r.mean - l.mean) / error, n + m - 2));
}

static void fill_area(struct edivisive_series *s)
{
	size_t w = s->m + 1;
	const double *y = s->y + s->from;

	memset(s->area, 0, w * sizeof(*s->area));
	for (size_t i = 0; i < s->m; i++) {
		double row = 0;

		s->area[(i + 1) * w] = 0;
		for (size_t k = 0; k < s->m; k++) {
			row += fabs(y[i] - y[k]);
			s->area[(i + 1) * w + k + 1] = s->area[i * w + k + 1] + row;
		}
	}
}

/* The sum of distances between values a..b and c..d of the window. */
static double distances(const struct edivisive_series *s, size_t a, size_t b, size_t c, size_t d)
{
	size_t w = s->m + 1;

	return s->area[b * w + d] - s->area[a * w + d] - s->area[b * w + c] + s->area[a * w + c];
}

struct series_split { size_t at, end; double q; };

static struct series_split best_split(const struct edivisive_series *s, size_t a, size_t b)
{
	struct series_split best = { 0, 0, 0 };

	for (size_t t = a + s->min; t + s->min <= b; t++) {
		double n = (double)(t - a), left = distances(s, a, t, a, t) / (n * (n - 1));

		for (size_t k = t + s->min; k <= b; k++) {
			double m = (double)(k - t);
			double right = distances(s, t, k, t, k) / (m * (m - 1));
			double between = distances(s, a, t, t, k) / (n * m);
			double q = n * m / (n + m) * (2 * between - left - right);

			if (q > best.q)
				best = (struct series_split){ t, k, q };
		}
	}
	return best;
}

/* Marks the points of the window's values a..b. */
static void divide(struct edivisive_series *s, size_t a, size_t b)
{
	double weak = fmin(WEAK_TIMES * s->o->p, fmax(WEAK_P_MAX, s->o->p));
	struct series_split best;

	if (b - a < 2 * s->min)
		return;
	best = best_split(s, a, b);
	if (!best.at || test(s, s->from + a, s->from + best.at, s->from + best.end) > weak)
		return;
	s->is_point[s->from + best.at] = true;
	divide(s, a, best.at);
	divide(s, best.at, b);
}

/* ---- all points together ---- */

static size_t end_of(const struct edivisive_series *s, const struct change_point *c, size_t n,
		     size_t i)
{
	return i < n ? c[i].index : s->n;
}

/*
 * The medians of a short segment may be those of two outliers, the means of pulled values may
 * contain part of one: the smaller of both changes counts.
 */
static void judge(const struct edivisive_series *s, struct change_point *c, size_t n, size_t i)
{
	size_t from = i ? c[i - 1].index : 0, at = c[i].index, to = end_of(s, c, n, i + 1);
	double apart = stats_mean(s->y + at, to - at) - stats_mean(s->y + from, at - from);

	c[i].p = test(s, from, at, to);
	c[i].before = median_of(s->x + from, at - from);
	c[i].after = median_of(s->x + at, to - at);
	c[i].effect = fabs(c[i].before) > 0 ? (c[i].after - c[i].before) / fabs(c[i].before) : NAN;
	apart = s->is_log ? expm1(apart) : apart / fabs(c[i].before);
	s->size[at] = fmin(fabs(c[i].effect), fabs(apart));
}

/* The one that most needs to go; n: none. */
static size_t weakest(const struct edivisive_series *s, const struct change_point *c, size_t n)
{
	size_t worst = n;

	for (size_t i = 0; i < n; i++)
		if (!(c[i].p <= s->o->p) && (worst == n || c[i].p > c[worst].p))
			worst = i;
	if (worst < n)
		return worst;
	for (size_t i = 0; i < n; i++)
		if (s->size[c[i].index] < s->o->effect_min &&
		    (worst == n || s->size[c[i].index] < s->size[c[worst].index]))
			worst = i;
	return worst;
}

static size_t drop_weak(const struct edivisive_series *s, struct change_point *c, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		judge(s, c, n, i);
	while ((i = weakest(s, c, n)) < n) {
		memmove(c + i, c + i + 1, (n - i - 1) * sizeof(*c));
		n--;
		if (i)
			judge(s, c, n, i - 1);
		if (i < n)
			judge(s, c, n, i);
	}
	return n;
}

/* The position between the neighbours with the least squares about the two levels. */
static size_t best_place(const struct edivisive_series *s, size_t from, size_t at, size_t to)
{
	double left = 0, right = 0, most = -1;
	size_t best = at;

	for (size_t i = from; i < to; i++)
		right += s->y[i];
	for (size_t t = from; t + s->min <= to; t++) {
		double n = (double)(t - from), m = (double)(to - t);

		if (t - from >= s->min) {
			double apart = left / n - right / m;
			double gain = n * m / (n + m) * apart * apart;

			/* differences from rounding must not move a point */
			if (gain > most * (1 + 1e-12)) {
				most = gain;
				best = t;
			}
		}
		left += s->y[t];
		right -= s->y[t];
	}
	return best;
}

static size_t settle(const struct edivisive_series *s, struct change_point *c, size_t n)
{
	bool is_moved = true;

	n = drop_weak(s, c, n);
	for (int pass = 0; is_moved && pass < PASSES_MAX; pass++) {
		is_moved = false;
		for (size_t i = 0; i < n; i++) {
			size_t was = c[i].index;

			c[i].index = best_place(s, i ? c[i - 1].index : 0, was,
						end_of(s, c, n, i + 1));
			is_moved |= c[i].index != was;
		}
		n = drop_weak(s, c, n);
	}
	return n;
}

/* Points of overlapping windows may be adjacent: the later tests decide which one stays. */
static size_t collect(const struct edivisive_series *s, struct change_point *out)
{
	size_t n = 0;

	for (size_t i = s->min; i + s->min <= s->n; i++)
		if (s->is_point[i] && (!n || i - out[n - 1].index >= s->min))
			out[n++].index = i;
	return n;
}

size_t edivisive(const double *x, size_t n, const struct edivisive_opts *o,
		 struct change_point *out)
{
	struct edivisive_series s = { .x = x, .n = n, .min = o->segment_min, .o = o };
	size_t found;

	assert(s.min >= EDIVISIVE_SEGMENT_MIN && o->window >= 2 * s.min &&
	       o->window <= EDIVISIVE_WINDOW_MAX && o->p > 0 && o->p < 1);
	if (n < 2 * s.min)
		return 0;
	s.m = n < o->window ? n : o->window;
	s.y = mem_array(n, sizeof(*s.y));
	s.is_point = mem_array(n, sizeof(*s.is_point));
	s.area = mem_array((s.m + 1) * (s.m + 1), sizeof(*s.area));
	s.size = mem_array(n, sizeof(*s.size));
	make_values(&s);
	for (;;) {
		fill_area(&s);
		divide(&s, 0, s.m);
		if (s.from + s.m == n)
			break;
		s.from += s.m / 2;
		s.from = s.from + s.m > n ? n - s.m : s.from;
	}
	found = settle(&s, out, collect(&s, out));
	free(s.y);
	free(s.is_point);
	free(s.size);
	free(s.area);
	return found;
}
