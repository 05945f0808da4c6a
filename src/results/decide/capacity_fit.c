/* SPDX-License-Identifier: Apache-2.0 */
/* capacity_fit.c - see capacity.h: fits curves to levels, and answers a search from them. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/stats/significance.h"
#include "results/decide/capacity.h"
#include "results/decide/capacity_internal.h"

#define TAIL 0.025
#define EDGE_CELLS 8          /* the posterior reaches an end of the grid ... */
#define WIDEN_STEP 0.916      /* ... which is then moved by ln 2.5 ... */
#define WIDENINGS_MAX 6       /* ... so often at most */
#define BETWEEN_LEVELS_MIN 4  /* levels from which their own scatter is judged */
#define OUTLIER 50.0          /* times phi: the largest squared residual */
#define PRIOR_LEVELS 2.0      /* levels that the prior of the scatter counts for */
#define LEVELS_DF_MIN 3.0
#define NORMAL_975 1.959964
#define COARSE ((FIT_CROSSINGS - 1) / (FIT_COARSE - 1))
#define DEPTH 30.0            /* logarithms below the highest cell that still count, times phi */

static double logit(double p)
{
	return log(p / (1 - p));
}

static double logistic(double t)
{
	return t > 0 ? 1 / (1 + exp(-t)) : exp(t) / (1 + exp(t));
}

static double slope_of(const struct fit_opts *o, size_t k)
{
	double low = log(o->is_mean ? FIT_SLOPE_MIN_MEANS : FIT_SLOPE_MIN);

	return exp(low + (log(FIT_SLOPE_MAX) - low) * (double)k / (FIT_SLOPES - 1));
}

/* The argument of the curve is the logit of the slow share, or ln(value / limit). */
static double term_at(const struct fit_term *m, double t)
{
	if (t >= m->top)
		return m->at_top;
	if (m->is_mean)
		return -(m->y - t) * (m->y - t) * m->weight / 2;
	return m->slow * t - m->n * (t > 30 ? t : log1p(exp(t)));
}

static struct fit_term term_of(const struct fit_level *l, const struct fit_opts *o)
{
	struct fit_term m = { o->is_mean, l->y, 0, l->n, l->slow, INFINITY, 0 };
	double most = logistic(logit(o->share) + FIT_FAR);

	if (o->is_mean) {
		m.weight = 1 / (l->se * l->se);
		m.y = fmin(l->y, FIT_FAR_MEANS);
		m.top = l->y > m.y ? m.y : INFINITY;
	} else if (l->slow > most * l->n) {
		m.slow = most * l->n;
		m.top = logit(most);
	}
	if (isfinite(m.top)) {
		double top = m.top;

		m.top = INFINITY;
		m.at_top = term_at(&m, top);
		m.top = top;
	}
	return m;
}

/* Adds the term to n cells, t falling by `step` from one to the next. */
static void add_term(double *row, size_t n, const struct fit_term *m, double t, double step)
{
	double shrink = exp(-step), e = 0;
	bool is_carried_on = false; /* e is exp(t) by multiplication, with few logarithms to take */

	for (size_t c = 0; c < n; c++, t -= step, e *= shrink) {
		if (m->is_mean || t >= m->top || t > 30) {
			row[c] += term_at(m, t);
			continue;
		}
		if (!is_carried_on)
			e = exp(t);
		is_carried_on = true;
		row[c] += m->slow * t;
		if (e > 1e-12)
			row[c] -= m->n * log1p(e);
	}
}

struct rows {
	const struct fit_level *level;
	size_t n;
	const struct fit_opts *o;
	double low, cell;
};

/*
 * Log likelihood of n cells of a row, every `stride`-th from cell `from` on, before it is divided
 * by the dispersion.
 */
static void fill_cells(const struct rows *r, const struct fit_term *m, double slope, double *row,
		       size_t from, size_t stride, size_t n)
{
	double first = r->low + r->cell * (double)from, step = slope * r->cell * (double)stride;
	double zero = r->o->is_mean ? 0 : logit(r->o->share);

	for (size_t c = 0; c < n; c++)
		row[c] = 0;
	for (size_t i = 0; i < r->n; i++)
		add_term(row, n, &m[i], zero + slope * (r->level[i].x - first), step);
}

/*
 * The most that a concave row reaches between coarse cells k and k + 1: no more than the lines
 * through its neighbours on either side, prolonged.
 */
static double bound(const double *coarse, size_t k)
{
	double left = coarse[k], right = coarse[k + 1];

	if (k > 0)
		left += fmax(0, coarse[k] - coarse[k - 1]);
	else
		left = INFINITY;
	if (k + 2 < FIT_COARSE)
		right += fmax(0, coarse[k + 1] - coarse[k + 2]);
	else
		right = INFINITY;
	return fmin(left, right);
}

/*
 * Fills the surface where it is less than `depth` below its highest cell and leaves -INFINITY
 * elsewhere. The likelihood of a row is concave, so every COARSE-th cell shows where.
 */
static void fill(const struct rows *r, double depth, struct fit_grid *g)
{
	double most = -INFINITY;

	for (size_t i = 0; i < r->n; i++)
		g->term[i] = term_of(&r->level[i], r->o);
	for (size_t k = 0; k < FIT_SLOPES; k++) {
		fill_cells(r, g->term, slope_of(r->o, k), g->coarse[k], 0, COARSE, FIT_COARSE);
		for (size_t c = 0; c < FIT_COARSE; c++)
			most = fmax(most, g->coarse[k][c]);
	}
	for (size_t k = 0; k < FIT_SLOPES; k++) {
		double *row = g->surface[k];
		size_t from = 0, to;

		for (size_t c = 0; c < FIT_CROSSINGS; c++)
			row[c] = -INFINITY;
		for (size_t c = 0; c + 1 < FIT_COARSE; c = to + 1) {
			for (to = c; to + 1 < FIT_COARSE && bound(g->coarse[k], to) > most - depth;)
				to++;
			from = c * COARSE;
			if (to > c)
				fill_cells(r, g->term, slope_of(r->o, k), row + from, from, 1,
					   (to - c) * COARSE + 1);
		}
	}
}

static double slope_prior(const struct fit_opts *o, size_t k)
{
	double off = log(slope_of(o, k) / (o->is_mean ? FIT_SLOPE_MEANS : FIT_SLOPE_COUNTS)) /
		     FIT_SLOPE_SD;

	return -off * off / 2;
}

/* Pooled dispersion within levels. */
static double within(const struct fit_level *level, size_t n, const struct fit_opts *o)
{
	double sum = LEVEL_DISPERSION_PRIOR * LEVEL_DISPERSION_WEIGHT;
	double weights = LEVEL_DISPERSION_WEIGHT;

	if (o->is_mean)
		return 1;
	for (size_t i = 0; i < n; i++) {
		double weight = fmin(level[i].slow, LEVEL_DISPERSION_COUNT_MAX);

		sum += weight * level[i].phi;
		weights += weight;
	}
	return sum / weights;
}

static double residual(const struct fit_level *l, const struct fit_opts *o, double slope, double u)
{
	double t = slope * (l->x - u), f;
	struct fit_term m = term_of(l, o);

	if (o->is_mean)
		return t >= m.top ? 0 : (l->y - t) * (l->y - t) * m.weight;
	t += logit(o->share);
	if (t >= m.top)
		return 0;
	f = fmin(fmax(logistic(t), 1e-12), 1 - 1e-12);
	/* Not capped as in fit_term: dispersion is the full chance error of a level. */
	return (l->slow - l->n * f) * (l->slow - l->n * f) / (l->n * f * (1 - f));
}

/* The larger one of the dispersions within and between levels, the latter at the best cell. */
static double dispersion(const struct fit_level *level, size_t n, const struct fit_opts *o,
			 double low, double cell, const struct fit_grid *g)
{
	double phi = within(level, n, o), best = -INFINITY, slope = 0, u = low, sum;

	if (n < BETWEEN_LEVELS_MIN)
		return phi;
	for (size_t k = 0; k < FIT_SLOPES; k++) {
		double prior = slope_prior(o, k);

		for (size_t c = 0; c < FIT_CROSSINGS; c++)
			if (g->surface[k][c] / phi + prior > best) {
				best = g->surface[k][c] / phi + prior;
				slope = slope_of(o, k);
				u = low + cell * (double)c;
			}
	}
	sum = PRIOR_LEVELS * phi;
	for (size_t i = 0; i < n; i++)
		sum += fmin(OUTLIER * phi, residual(&level[i], o, slope, u));
	return fmax(phi, sum / (double)n);
}

/* Marginal of the crossing, summing to 1, and the median slope. */
static double marginals(const struct fit_opts *o, double phi, struct fit_grid *g)
{
	double most = -INFINITY, total = 0, slope_mass[FIT_SLOPES], sum = 0;
	size_t k;

	for (k = 0; k < FIT_SLOPES; k++) {
		double prior = slope_prior(o, k);

		for (size_t c = 0; c < FIT_CROSSINGS; c++) {
			g->surface[k][c] = g->surface[k][c] / phi + prior;
			most = fmax(most, g->surface[k][c]);
		}
	}
	for (size_t c = 0; c < FIT_CROSSINGS; c++)
		g->marginal[c] = 0;
	for (k = 0; k < FIT_SLOPES; k++) {
		slope_mass[k] = 0;
		for (size_t c = 0; c < FIT_CROSSINGS; c++) {
			double off = g->surface[k][c] - most, mass = off > -DEPTH ? exp(off) : 0;

			g->marginal[c] += mass;
			slope_mass[k] += mass;
		}
		total += slope_mass[k];
	}
	for (size_t c = 0; c < FIT_CROSSINGS; c++)
		g->marginal[c] /= total;
	for (k = 0; k < FIT_SLOPES - 1; k++) {
		double part = (total / 2 - sum) / slope_mass[k];

		sum += slope_mass[k];
		if (sum >= total / 2) /* its mass is half on either side */
			return slope_of(o, k) *
			       pow(slope_of(o, k + 1) / slope_of(o, k), part - 0.5);
	}
	return slope_of(o, k);
}

/* Each cell's mass is spread evenly around it. */
static double quantile(const struct fit_grid *g, double low, double cell, double p)
{
	double sum = 0;

	for (size_t c = 0; c < FIT_CROSSINGS; c++) {
		if (sum + g->marginal[c] >= p)
			return low + cell * ((double)c - 0.5 + (p - sum) / g->marginal[c]);
		sum += g->marginal[c];
	}
	return low + cell * (FIT_CROSSINGS - 1);
}

struct fit fit_levels(const struct fit_level *level, size_t n, const struct fit_opts *o,
		      struct fit_grid *g)
{
	double low = o->low, high = o->high, cell, q025, q975, widen, phi, shift;
	struct fit f = { .levels = n };

	assert(n <= FIT_LEVELS_MAX && low < high && (o->is_mean || (o->share > 0 && o->share < 1)));
	if (!n)
		return f;
	for (int widened = 0;; widened++) {
		cell = (high - low) / (FIT_CROSSINGS - 1);
		f.phi = within(level, n, o);
		do {
			phi = f.phi;
			fill(&(struct rows){ level, n, o, low, cell }, DEPTH * phi, g);
			f.phi = dispersion(level, n, o, low, cell, g);
		} while (f.phi > 2 * phi); /* then it is flatter than was thought */
		f.slope = marginals(o, f.phi, g);
		q025 = quantile(g, low, cell, TAIL);
		q975 = quantile(g, low, cell, 1 - TAIL);
		if (widened == WIDENINGS_MAX ||
		    (q025 > low + EDGE_CELLS * cell && q975 < high - EDGE_CELLS * cell))
			break;
		if (q025 <= low + EDGE_CELLS * cell)
			low -= WIDEN_STEP;
		if (q975 >= high - EDGE_CELLS * cell)
			high += WIDEN_STEP;
	}
	f.at = quantile(g, low, cell, 0.5);
	widen = FIT_WIDEN * student_quantile(1 - TAIL, fmax(LEVELS_DF_MIN, (double)n - 2)) /
		NORMAL_975;
	f.low = f.at - widen * (f.at - q025);
	f.high = f.at + widen * (q975 - f.at);
	/* The mean of logarithms is below the logarithm of the mean, by half their variance. */
	shift = o->is_mean ? f.phi * level[0].se * level[0].se / 2 / f.slope : 0;
	f.at -= shift;
	f.low -= shift;
	f.high -= shift;
	f.least = quantile(g, low, cell, erfc(widen * NORMAL_975 / M_SQRT2) / 2);
	return f;
}

double fit_at(const struct fit *f, const struct fit_opts *o, double x)
{
	double t = f->slope * (x - f->at);

	return o->is_mean ? exp(t) : logistic(t + logit(o->share));
}

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
#define FORECAST_WASTE 1.2     /* many levels are not close to the crossing */
#define FORECAST_WEIGHT 8.0    /* levels that what is usual counts for */
#define FORECAST_PHI 6.0       /* usual dispersion */
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
	bool is_carried = capacity_is_carried(s, l);
	bool is_growing = is_carried && s->o.load == CAPACITY_RATE && holds_ttft_grows(l);

	*p = (struct capacity_point){
		.load = s->step.load, .spent_s = l->spent_s, .is_bracketing = s->is_bracketing,
		.has_passed = s->has_passed, .is_cut = s->is_cut, .attempted = l->attempted,
		.failed = l->failed,
		.is_carried = is_carried && !is_growing, .is_growing = is_growing,
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
 * Measuring levels within `width` of `at` with known results. Means all get the root of their mean
 * squared error: a level that happened to be short also has a small one, and would weigh too much.
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
	/* A limit that was never broken crosses nowhere near, unless there is no other. */
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

/* +1: a level has more slow requests than chance explains; -1: fewer. */
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

/* All measuring levels of the i-th one's load together; false: an earlier one has that load. */
static bool pool_load(const struct capacity_search *s, size_t i, struct capacity_point *out)
{
	*out = s->point[i];
	for (size_t k = s->first; k < s->points; k++) {
		const struct capacity_point *p = &s->point[k];

		if (k == i || fabs(p->load - out->load) > 0.5)
			continue;
		if (k < i)
			return false;
		for (size_t j = 0; j < capacity_limits(s); j++) {
			out->limit[j].n += p->limit[j].n;
			out->limit[j].slow += p->limit[j].slow;
			out->limit[j].phi = fmax(out->limit[j].phi, p->limit[j].phi);
		}
	}
	return true;
}

/* Enough requests for a share, and no limit's share above what it allows. */
static bool seems_to_hold(const struct capacity_search *s, const struct capacity_point *p)
{
	for (size_t j = 0; j < capacity_limits(s); j++) {
		struct capacity_limit limit = capacity_limit_of(s, j);
		double share = 1 - limit.quantile;

		if (limit.is_mean || p->limit[j].n * share < 1 ||
		    p->limit[j].slow > share * p->limit[j].n)
			return false;
	}
	return true;
}

struct whole_loads capacity_whole_loads(const struct capacity_search *s)
{
	struct whole_loads w = { .breaks = INFINITY };

	for (size_t i = s->first; i < s->points; i++) {
		struct capacity_point all;
		int sure;

		if (!pool_load(s, i, &all))
			continue;
		sure = is_sure(s, &all);
		if (sure < 0)
			w.holds = fmax(w.holds, all.load);
		if (sure > 0)
			w.breaks = fmin(w.breaks, all.load);
		if (seems_to_hold(s, &all))
			w.seems = fmax(w.seems, all.load);
	}
	return w;
}

/*
 * The largest whole load that holds: by the curve, rounded outwards, unless the levels of a load
 * itself are better evidence. A server that refuses whatever exceeds its slots is a step, which a
 * curve smooths: there a measured load that held counts more than the curve.
 */
static void make_whole(const struct capacity_search *s, struct capacity_answer *a)
{
	struct whole_loads w = capacity_whole_loads(s);

	a->low = floor(a->low);
	a->high = ceil(a->high);
	if (w.holds < w.breaks) {
		a->low = fmax(a->low, w.holds);
		a->high = fmax(a->low, fmin(a->high, w.breaks - 1));
	}
	a->load = fmax(a->low, fmin(a->high, fmax(w.seems, floor(a->load))));
}

bool capacity_is_precise(const struct capacity_search *s, struct fit f)
{
	struct capacity_answer a = { .load = exp(f.at), .low = exp(f.low), .high = exp(f.high) };

	if (s->o.load == CAPACITY_CONCURRENCY) {
		struct whole_loads w = capacity_whole_loads(s);

		if (w.holds < w.breaks && w.holds + 1 >= w.breaks)
			return true;
		make_whole(s, &a);
	}
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

		if (s->point[i].is_cut) /* a growing queue is not a clump */
			continue;
		sum += weight * l->phi;
		w += weight;
	}
	return sum / w;
}

/* What n levels say, at first mostly what levels of most servers say. */
static double settled(double now, double n, double usual)
{
	return exp((n * log(now) + FORECAST_WEIGHT * log(usual)) / (n + FORECAST_WEIGHT));
}

/*
 * Requests for the precision: n = phi / (share (slope se)^2). The width itself says little before
 * there are many levels: it includes the doubt about the slope, which further levels remove.
 */
static double requests_of_share(const struct capacity_search *s, double phi, double share,
				double slope)
{
	double wide = FIT_WIDEN * student_quantile(0.975, FORECAST_LEVELS - 2);
	double se = slope * s->o.precision / wide;

	return FORECAST_WASTE * phi / (share * se * se);
}

/* The same before there is an interval. */
static double requests_at_first(const struct capacity_search *s)
{
	double phi = 0, share = 1;

	for (size_t j = 0; j < s->o.limits; j++)
		if (!s->o.limit[j].is_mean) {
			phi = fmax(phi, phi_short(s, j));
			share = fmin(share, 1 - s->o.limit[j].quantile);
		}
	return requests_of_share(s, phi, share, s->slope);
}

/* The remaining cost of the requested precision. */
static void forecast(const struct capacity_search *s, struct capacity_answer *a)
{
	double used = 0, needed, rate = capacity_rate_of(s, exp(s->middle)), n;
	const struct fit *f = &s->fit[a->has_interval ? s->binding : 0];
	struct fit_opts o = fit_opts_of(s, a->has_interval ? s->binding : 0);

	a->requests_more = a->seconds_more = NAN;
	if (!s->points || s->is_bracketing || s->end == CAPACITY_PRECISE)
		return;
	for (size_t i = s->first; i < s->points; i++)
		used += (double)s->point[i].attempted;
	n = fmax(1, (double)a->levels_near);
	if (!a->has_interval) {
		needed = fmax(requests_at_first(s),
			      PRECISE_LEVELS * rate * capacity_hold_of(s, exp(s->middle)));
	} else {
		double ratio = a->half_width / s->o.precision;
		double then = student_quantile(0.975, FORECAST_LEVELS - 2);

		/* Of few levels the interval is wider by Student's t, which further ones lower. */
		needed = then / student_quantile(0.975, fmax(LEVELS_DF_MIN, n - 2));
		needed = used * pow(ratio * fmin(1, needed), 2);
		if (ratio > 1 && !o.is_mean && s->binding < capacity_limits(s))
			needed = fmin(needed, requests_of_share(
				s, settled(f->phi, n, FORECAST_PHI), o.share,
				settled(f->slope, n, FIT_SLOPE_COUNTS)));
		needed = fmax(needed, used * fmax(ratio, PRECISE_LEVELS / n));
		/* It ends with a level that confirms the precision. */
		needed = fmax(needed, used + rate * capacity_hold_of(s, exp(s->middle)));
	}
	a->requests_more = ceil(fmax(0, needed - used));
	a->seconds_more = a->requests_more / rate;
}

/*
 * The limit to name. Failed requests count as slow under every limit, so the limits' curves only
 * differ by chance if nothing but failures breaks them; then the failures bind.
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

/* Every load that was measured is above this one and did not hold. */
static bool is_below_all(const struct capacity_search *s, double load)
{
	for (size_t i = 0; i < s->points; i++)
		if (s->point[i].load <= load)
			return false;
	return !s->is_low;
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
		a.safe = is_below_all(s, a.load) ? NAN : a.low;
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
