/* SPDX-License-Identifier: Apache-2.0 */
/* capacity_fit.c - see capacity_fit.h. */
#include "results/decide/capacity_fit.h"

#include <assert.h>
#include <math.h>

#include "core/stats/significance.h"
#include "results/decide/holds.h"

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
 * elsewhere. In a row the likelihood is concave, so every COARSE-th cell tells where.
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
	/* In full: how much a level can be off by chance is what the dispersion is about. */
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
		if (sum >= total / 2) /* its mass lies around it, half on either side */
			return slope_of(o, k) *
			       pow(slope_of(o, k + 1) / slope_of(o, k), part - 0.5);
	}
	return slope_of(o, k);
}

/* Each cell's mass lies evenly around it. */
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
