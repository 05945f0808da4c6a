/* SPDX-License-Identifier: Apache-2.0 */
/* capacity_curve.c - see capacity_internal.h. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/stats/significance.h"
#include "results/decide/capacity_internal.h"

/* Levels that measure. */
#define HOLD_MAX 3.0           /* times the shortest one */
#define HOLD_E2E 30.0
#define HOLD_REQUESTS 1000.0
#define LEAST_E2E 8.0
/* Curves. */
#define PRIOR_WIDTH 0.916291   /* ln 2.5 */
#define NEAR_SLOPES 3.0
#define NEAR_MIN 0.12
#define NEAR_MAX 0.6
#define NEAR_LEVELS_MIN 4
#define PRECISE_LEVELS 8
#define FORECAST_LEVELS 20
#define FORECAST_WASTE 1.2     /* levels lie beside the crossing */
#define MORE_LOAD 1.05
#define SURELY 3.0             /* standard deviations */

/* ---- limits and levels ---- */

size_t capacity_limits(const struct capacity_search *s)
{
	return s->o.limits + 1;
}

/* The caller's limits, then that on failed requests. */
struct capacity_limit capacity_limit_of(const struct capacity_search *s, size_t j)
{
	assert(j < capacity_limits(s));
	if (j < s->o.limits)
		return s->o.limit[j];
	return (struct capacity_limit){ .quantile = 1 - s->o.failed_share };
}

/* Requests/s that a load is expected to finish. */
double capacity_rate_of(const struct capacity_search *s, double load)
{
	double rate = s->e2e_s > 0 ? load / s->e2e_s : load;

	if (s->o.load == CAPACITY_RATE)
		return load;
	return s->per_s > 0 ? fmin(rate, s->per_s) : rate;
}

double capacity_hold_of(const struct capacity_search *s, double load)
{
	double hold = fmax(s->o.level_s, HOLD_E2E * s->e2e_s);

	hold = fmin(HOLD_MAX * s->o.level_s, fmax(hold, HOLD_REQUESTS / capacity_rate_of(s, load)));
	return fmax(hold, LEAST_E2E * s->e2e_s); /* servers that take minutes for one answer */
}

bool capacity_is_carried(const struct capacity_search *s, const struct level *l)
{
	return s->o.load == CAPACITY_CONCURRENCY || holds_carried(l);
}

/* ---- points and fits ---- */

void capacity_keep_point(struct capacity_search *s, const struct level *l)
{
	struct capacity_point *p = &s->point[s->points++];

	*p = (struct capacity_point){
		.load = s->step.load, .spent_s = l->spent_s, .is_bracketing = s->is_bracketing,
		.has_passed = s->has_passed, .is_cut = s->is_cut, .attempted = l->attempted,
		.failed = l->failed,
		.is_carried = capacity_is_carried(s, l) && !(s->o.load == CAPACITY_RATE &&
						    holds_ttft_grows(l)),
	};
	for (size_t j = 0; j < capacity_limits(s); j++) {
		struct capacity_limit limit = capacity_limit_of(s, j);
		struct level_count c = level_count(l, j);
		struct fit_level *f = &p->limit[j];

		*f = (struct fit_level){ .x = log(p->load), .n = c.n, .slow = c.slow,
					 .phi = level_dispersion(l, j) };
		if (limit.is_mean) {
			struct level_mean m = level_mean(l, j);
			bool is_known = m.mean > 0 && !isnan(m.se);

			f->n = 0;
			f->y = is_known ? log(m.mean / limit.value) : 0;
			f->y = limit.is_at_least ? -f->y : f->y;
			/* A mean of batches that agree by chance is not known to a thousandth. */
			f->se = is_known ? fmax(m.se / m.mean, 1e-3) : 0;
		}
	}
}

/* Saturation is a limit whose every level counts as one request. */
static struct fit_opts fit_opts_of(const struct capacity_search *s, size_t j)
{
	struct fit_opts o = { .share = 0.5, .low = log(s->low) - PRIOR_WIDTH,
			      .high = log(s->high) + PRIOR_WIDTH };

	if (j < capacity_limits(s)) {
		o.is_mean = capacity_limit_of(s, j).is_mean;
		o.share = o.is_mean ? 0 : 1 - capacity_limit_of(s, j).quantile;
	}
	return o;
}

static struct fit_level fit_level_of(const struct capacity_search *s, size_t i, size_t j)
{
	const struct capacity_point *p = &s->point[i];

	if (j < capacity_limits(s))
		return p->limit[j];
	return (struct fit_level){ .x = log(p->load), .n = 1, .slow = p->is_carried ? 0 : 1,
				   .phi = 1 };
}

/*
 * Measuring levels within `width` of `at`; those of which nothing is known are left out. Means all
 * get the root of their mean squared error: a level that happened to be quick also has a small
 * one, and would count for more.
 */
static size_t choose(struct capacity_search *s, size_t j, double at, double width)
{
	bool is_mean = fit_opts_of(s, j).is_mean;
	double squares = 0;
	size_t n = 0;

	for (size_t i = s->first; i < s->points; i++) {
		struct fit_level l = fit_level_of(s, i, j);

		if ((is_mean ? l.se > 0 : l.n > 0) && fabs(l.x - at) <= width) {
			s->chosen[n++] = l;
			squares += l.se * l.se;
		}
	}
	for (size_t i = 0; is_mean && i < n; i++)
		s->chosen[i].se = sqrt(squares / (double)n);
	return n;
}

/* Through all levels, then through those near the crossing: chosen by load, never by outcome. */
static void fit_limit(struct capacity_search *s, size_t j)
{
	struct fit_opts o = fit_opts_of(s, j);
	size_t n = choose(s, j, 0, INFINITY);
	double width;

	s->has_fit[j] = n > 0;
	if (!n)
		return;
	s->fit[j] = fit_levels(s->chosen, n, &o, s->grid);
	width = fmax(NEAR_MIN, fmin(NEAR_MAX, NEAR_SLOPES / s->fit[j].slope));
	if (choose(s, j, s->fit[j].at, width) == n)
		return;
	n = choose(s, j, s->fit[j].at, width);
	if (n >= NEAR_LEVELS_MIN)
		s->fit[j] = fit_levels(s->chosen, n, &o, s->grid);
	else
		s->fit[j].levels = n;
}

/* Whether any measuring level has a slow request or a mean. */
static bool has_evidence(const struct capacity_search *s, size_t j)
{
	for (size_t i = s->first; i < s->points; i++)
		if (s->point[i].limit[j].slow > 0 || s->point[i].limit[j].se > 0)
			return true;
	return false;
}

static bool is_point_broken(const struct capacity_search *s, const struct capacity_point *p)
{
	for (size_t j = 0; j < capacity_limits(s); j++) {
		struct capacity_limit limit = capacity_limit_of(s, j);

		if (limit.is_mean ? p->limit[j].se > 0 && p->limit[j].y > 0 :
				    p->limit[j].slow > (1 - limit.quantile) * p->limit[j].n)
			return true;
	}
	return false;
}

/* Rates were not carried although no limit was broken. */
static bool has_saturated(const struct capacity_search *s)
{
	for (size_t i = s->first; i < s->points; i++)
		if (!s->point[i].is_carried && !is_point_broken(s, &s->point[i]))
			return true;
	return false;
}

void capacity_fit_all(struct capacity_search *s)
{
	size_t n = capacity_limits(s);
	bool has_any = false;

	memset(s->has_fit, 0, sizeof(s->has_fit));
	for (size_t j = 0; j < n; j++)
		has_any |= has_evidence(s, j);
	/* One that nothing has broken crosses nowhere near, unless there is no other. */
	for (size_t j = 0; j < n; j++)
		if (!has_any || has_evidence(s, j))
			fit_limit(s, j);
	if (has_saturated(s))
		fit_limit(s, n);
	s->binding = n;
	for (size_t j = 0; j <= n; j++)
		if (s->has_fit[j] && (!s->has_fit[s->binding] ||
				      s->fit[j].at < s->fit[s->binding].at))
			s->binding = j;
}

struct fit capacity_combined(const struct capacity_search *s)
{
	struct fit f = s->fit[s->binding];

	for (size_t j = 0; j < capacity_limits(s); j++)
		if (s->has_fit[j] && j != s->binding) {
			f.low = fmin(f.low, s->fit[j].least);
			f.high = fmin(f.high, s->fit[j].high);
		}
	return f;
}

static double half_width(struct fit f)
{
	return (exp(f.high - f.at) - exp(f.low - f.at)) / 2;
}

/* +1: chance does not explain that so many of a level's requests are slow; -1: that so few are. */
static int is_sure(const struct capacity_search *s, const struct capacity_point *p)
{
	int all = -1;

	for (size_t j = 0; j < capacity_limits(s); j++) {
		struct capacity_limit limit = capacity_limit_of(s, j);
		const struct fit_level *l = &p->limit[j];
		double share = 1 - limit.quantile, more = l->slow - share * l->n;
		double chance = SURELY * sqrt(l->phi * share * (1 - share) * l->n);

		if (!limit.is_mean && more > chance)
			return 1;
		if (limit.is_mean || more > -chance)
			all = 0;
	}
	return all;
}

/*
 * The largest whole load that holds: what the curve says, rounded outwards, unless a level of a
 * neighbouring load says more.
 */
static void make_whole(const struct capacity_search *s, struct capacity_answer *a)
{
	double holds = 0, breaks = INFINITY;

	for (size_t i = s->first; i < s->points; i++) {
		int sure = is_sure(s, &s->point[i]);

		if (sure < 0)
			holds = fmax(holds, s->point[i].load);
		if (sure > 0)
			breaks = fmin(breaks, s->point[i].load);
	}
	a->low = floor(a->low);
	a->high = ceil(a->high);
	if (holds < breaks) {
		a->low = fmax(a->low, holds);
		a->high = fmax(a->low, fmin(a->high, breaks - 1));
	}
	a->load = fmax(a->low, fmin(a->high, floor(a->load)));
}

bool capacity_is_precise(const struct capacity_search *s, struct fit f)
{
	struct capacity_answer a = { .load = exp(f.at), .low = exp(f.low), .high = exp(f.high) };

	if (s->o.load == CAPACITY_CONCURRENCY)
		make_whole(s, &a);
	return f.levels >= PRECISE_LEVELS &&
	       (a.low >= a.high || half_width(f) <= s->o.precision);
}

/* ---- answers ---- */

/* The line of a mean, or of shares of a limit, falls with the load beyond doubt. */
static bool is_falling(const struct capacity_search *s, size_t j)
{
	double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, slope, se;

	if (!capacity_limit_of(s, j).is_mean)
		return false;
	for (size_t i = 0; i < s->points; i++) {
		const struct fit_level *l = &s->point[i].limit[j];
		double weight = l->se > 0 ? 1 / (l->se * l->se) : 0;

		w += weight;
		wx += weight * l->x;
		wy += weight * l->y;
		wxx += weight * l->x * l->x;
		wxy += weight * l->x * l->y;
	}
	if (s->points < 3 || !(w > 0) || !(wxx - wx * wx / w > 0))
		return false;
	slope = (wxy - wx * wy / w) / (wxx - wx * wx / w);
	se = 1 / sqrt(wxx - wx * wx / w);
	return slope < -3 * se;
}

/* Dispersion of the limit that broke last while bracketing. */
static double phi_short(const struct capacity_search *s, size_t j)
{
	double sum = LEVEL_DISPERSION_PRIOR * LEVEL_DISPERSION_WEIGHT, w = LEVEL_DISPERSION_WEIGHT;

	for (size_t i = 0; i < s->points; i++) {
		const struct fit_level *l = &s->point[i].limit[j];
		double weight = fmin(l->slow, LEVEL_DISPERSION_COUNT_MAX);

		if (s->point[i].is_cut) /* a queue that grows is no clump */
			continue;
		sum += weight * l->phi;
		w += weight;
	}
	return sum / w;
}

/*
 * What the precision asked for still costs: in proportion to the square of the width, or before
 * there is one by the delta method, n = phi / (share (slope se)^2).
 */
static void forecast(const struct capacity_search *s, struct capacity_answer *a)
{
	double used = 0, needed, rate, phi = 0, share = 1;

	a->requests_more = a->seconds_more = NAN;
	if (!s->points || s->is_bracketing || s->end == CAPACITY_PRECISE)
		return;
	rate = capacity_rate_of(s, exp(s->middle));
	for (size_t i = s->first; i < s->points; i++)
		used += (double)s->point[i].attempted;
	if (a->has_interval) {
		double ratio = a->half_width / s->o.precision;
		double least = used * PRECISE_LEVELS / fmax(1, (double)a->levels_near);

		needed = fmax(used * ratio * ratio, least);
	} else {
		double wide = FIT_WIDEN * student_quantile(0.975, FORECAST_LEVELS - 2);
		double se = s->slope * s->o.precision / wide;

		for (size_t j = 0; j < s->o.limits; j++)
			if (!s->o.limit[j].is_mean) {
				phi = fmax(phi, phi_short(s, j));
				share = fmin(share, 1 - s->o.limit[j].quantile);
			}
		needed = FORECAST_WASTE * phi / (share * se * se);
		needed = fmax(needed, PRECISE_LEVELS * rate * capacity_hold_of(s, exp(s->middle)));
	}
	a->requests_more = ceil(fmax(0, needed - used));
	a->seconds_more = a->requests_more / rate;
}

/*
 * The limit to name. Failed requests count as slow under every limit, so their curves differ by
 * chance alone where nothing but failures breaks a limit; then it is the failures that bind.
 */
static size_t binding_of(const struct capacity_search *s)
{
	size_t failed = s->o.limits, broken = 0;
	double share;

	if (s->binding >= failed || s->o.limit[s->binding].is_mean || !s->has_fit[failed])
		return s->binding;
	share = 1 - s->o.limit[s->binding].quantile;
	for (size_t i = s->first; i < s->points; i++) {
		const struct fit_level *all = &s->point[i].limit[s->binding];
		const struct fit_level *fail = &s->point[i].limit[failed];

		if (all->slow - fail->slow > share * (all->n - fail->slow))
			return s->binding;
		broken += all->slow > share * all->n;
	}
	return broken ? failed : s->binding;
}

struct capacity_answer capacity_answer(const struct capacity_search *s)
{
	struct capacity_answer a = {
		.end = s->end, .load = NAN, .low = NAN, .high = NAN, .half_width = NAN,
		.safe = NAN, .slope = NAN, .slow_factor = NAN, .failing = INFINITY,
		.broken = s->broken, .requests = s->requests, .spent_s = s->spent_s,
	};
	struct fit f;

	a.passing = s->is_low ? s->low : 0;
	a.failing = s->is_high ? s->high : INFINITY;
	for (size_t j = 0; j < s->o.limits; j++)
		a.is_decreasing |= (uint32_t)is_falling(s, j) << j;
	a.levels = s->measured;
	a.has_interval = s->measured > 1 && s->has_fit[s->binding];
	if (a.has_interval) {
		f = capacity_combined(s);
		a.load = exp(f.at);
		a.low = exp(f.low);
		a.high = exp(f.high);
		a.half_width = half_width(f);
		a.is_precise = capacity_is_precise(s, f);
		a.binding = binding_of(s);
		a.slope = f.slope;
		a.slow_factor = pow(MORE_LOAD, f.slope);
		a.levels_near = (unsigned)f.levels;
		if (s->o.load == CAPACITY_CONCURRENCY) {
			make_whole(s, &a);
			a.half_width = (a.high - a.low) / (2 * fmax(1, a.load));
		}
		a.safe = a.low;
	}
	forecast(s, &a);
	return a;
}

const struct capacity_point *capacity_points(const struct capacity_search *s, size_t *n)
{
	*n = s->points;
	return s->point;
}

double capacity_curve_at(const struct capacity_search *s, size_t limit, double load)
{
	struct fit_opts o;

	assert(limit <= capacity_limits(s) && load > 0);
	if (!s->measured || !s->has_fit[limit])
		return NAN;
	o = fit_opts_of(s, limit);
	return fit_at(&s->fit[limit], &o, log(load));
}
