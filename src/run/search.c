/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - see search.h. */
#include "run/search.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "stats/compare.h"
#include "stats/monotone.h"

const char *const search_kinds[] = { "fitted", "bisect", "interpolate", NULL };
const char *const search_ends[] = { "found", "none_passes", "all_pass", "undecided", NULL };

/* Bounds of a step while only one side of the bracket is known. */
#define DOWN_MIN 0.25
#define DOWN_MAX 0.9
#define UP_MIN 1.15
#define UP_MAX 2.0
#define BEYOND 1.15           /* how far past the crossing its slope says, to have both sides */
#define BELOW_SATURATION 0.7  /* latencies grow before throughput ends: the first guess */
/* Past the curve's crossing by a share of the bracket, later of what the crossing moved by. */
#define DOUBT_FIRST 0.02
#define DOUBT 0.15

void search_init(struct search *s, const struct search_opts *o)
{
	assert(o->max >= 2);
	*s = (struct search){ .o = *o, .crossing = NAN,
			      .width = { INFINITY, INFINITY, INFINITY } };
}

/* ---- the bracket ---- */

static const struct search_point *point_of(const struct search *s, int64_t level)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->point[i].level == level)
			return &s->point[i];
	return NULL;
}

/* The largest level that passed, 0: none. */
static int64_t passing(const struct search *s)
{
	for (size_t i = s->n; i > 0; i--)
		if (s->point[i - 1].v.passes)
			return s->point[i - 1].level;
	return 0;
}

/* The smallest level above that one that failed, 0: none. */
static int64_t failing(const struct search *s)
{
	int64_t from = passing(s);

	for (size_t i = 0; i < s->n; i++)
		if (s->point[i].level > from && !s->point[i].v.passes)
			return s->point[i].level;
	return 0;
}

static bool is_narrow(const struct search *s, int64_t low, int64_t high)
{
	return high - low <= 1 ||
	       (low > 0 && (double)(high - low) <= s->o.tolerance * (double)high);
}

static int64_t clamp(double level, int64_t low, int64_t high)
{
	return level <= (double)low ? low : level >= (double)high ? high : (int64_t)level;
}

/* ---- upstream's recipes ---- */

static int64_t bisect(const struct search *s, int64_t low, int64_t high)
{
	const struct search_point *infinite = point_of(s, s->o.max);
	int64_t level = clamp(ceil(infinite->v.estimate), 1, s->o.max - 1);

	/* Doubling goes on while everything passed; whatever failed, or is infinite, ends it. */
	for (; level < s->o.max; level *= 2) {
		const struct search_point *p = point_of(s, level);

		if (!p)
			return level;
		if (!p->v.passes)
			break;
	}
	return (low + high) / 2;
}

static int64_t interpolate(const struct search *s, int64_t low, int64_t high)
{
	double x[SEARCH_LEVELS_MAX], y[SEARCH_LEVELS_MAX], slope[SEARCH_LEVELS_MAX], root;
	int64_t level;

	if (s->n == 1)
		return 1;
	if (point_of(s, high)->v.is_by_failures)
		return (low + high) / 2;
	for (size_t i = 0; i < s->n; i++) {
		x[i] = (double)s->point[i].level;
		y[i] = s->point[i].v.margin;
	}
	monotone_slopes(x, y, s->n, slope);
	root = monotone_root(x, y, slope, s->n);
	level = isnan(root) ? (low + high) / 2 : (int64_t)root;
	if (point_of(s, level))
		level++;
	level = clamp((double)level, 1, s->o.max);
	/* Margins that are not monotone lead upstream in circles; we halve. */
	return level > low && level < high ? level : (low + high) / 2;
}

/* ---- ours ---- */

/*
 * The curve of gaps over ln(level). Infinite load is not on it where another level failed: its
 * place on the axis means nothing. Returns the number of points.
 */
static size_t curve(const struct search *s, double shift, double *x, double *y)
{
	double weight[SEARCH_LEVELS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct search_point *p = &s->point[i];

		if (p->level == s->o.max && s->n > 2)
			continue;
		x[n] = log((double)p->level);
		y[n] = p->v.gap + shift * (isnan(p->v.noise) ? 0 : p->v.noise);
		/* A strict limit met exactly has failed; so has a mean that only just has. */
		if (shift == 0 && !p->v.passes)
			y[n] = fmax(y[n], 1e-9);
		weight[n++] = p->v.runs ? p->v.runs : 1;
	}
	if (n > 1)
		monotone_fit(y, weight, n);
	return n;
}

/* Where the curve of these points is 0, as a level; NAN: nowhere between them. */
static double crossing(const struct search *s, double shift)
{
	double x[SEARCH_LEVELS_MAX], y[SEARCH_LEVELS_MAX], slope[SEARCH_LEVELS_MAX];
	size_t n = curve(s, shift, x, y);

	if (n < 2)
		return NAN;
	monotone_slopes(x, y, n, slope);
	return exp(monotone_root(x, y, slope, n));
}

double search_gap_at(const struct search *s, double level)
{
	double x[SEARCH_LEVELS_MAX], y[SEARCH_LEVELS_MAX], slope[SEARCH_LEVELS_MAX];
	size_t n = curve(s, 0, x, y);

	if (n < 2)
		return NAN;
	monotone_slopes(x, y, n, slope);
	return monotone_at(x, y, slope, n, fmin(fmax(log(level), x[0]), x[n - 1]));
}

/* The gap's growth with ln(level) between the two levels nearest to an end of the bracket. */
static double end_slope(const struct search *s, int64_t level, bool is_upwards)
{
	const struct search_point *p = point_of(s, level);
	size_t i = (size_t)(p - s->point);
	const struct search_point *q;

	if (is_upwards ? i == 0 : i + 1 >= s->n || p[1].level == s->o.max)
		return 1;
	q = is_upwards ? p - 1 : p + 1;
	return fmin(fmax((p->v.gap - q->v.gap) /
			 (log((double)p->level) - log((double)q->level)), 0.3), 20);
}

static double first_guess(const struct search *s)
{
	const struct search_point *infinite = point_of(s, s->o.max);
	double level = infinite->v.estimate * BELOW_SATURATION;

	if (!(level >= 1))
		level = 1;
	return s->o.hint >= 1 ? fmin(level, s->o.hint) : level;
}

/* By ratio where the ends are far apart. */
static int64_t halve(int64_t low, int64_t high)
{
	double middle = sqrt((double)low * (double)high);

	return high > 4 * low && low > 0 ? clamp(middle, low + 1, high - 1) : (low + high) / 2;
}

static int64_t fitted(const struct search *s, int64_t low, int64_t high)
{
	double cross, doubt, at;

	if (low == 0 && high == s->o.max)
		return clamp(first_guess(s), 1, high - 1);
	if (low == 0) { /* only failures: down, by what their slope says */
		const struct search_point *p = point_of(s, high);
		double factor = exp(-BEYOND * p->v.gap / end_slope(s, high, false));

		return clamp((double)high * fmin(fmax(factor, DOWN_MIN), DOWN_MAX), 1, high - 1);
	}
	if (high == s->o.max) {
		const struct search_point *p = point_of(s, low);
		double factor = exp(-BEYOND * p->v.gap / end_slope(s, low, true));

		return clamp(ceil((double)low * fmin(fmax(factor, UP_MIN), UP_MAX)), low + 1,
			     high - 1);
	}
	cross = crossing(s, 0);
	if (!(cross > (double)low && cross < (double)high) || s->width[0] > s->width[2] / 2)
		return halve(low, high);
	doubt = isnan(s->crossing) ? DOUBT_FIRST * (double)(high - low) :
					 DOUBT * fabs(cross - s->crossing);
	/* A step past the crossing, so that the wider side is what falls away. */
	if (cross - (double)low < (double)high - cross)
		at = floor(cross + fmin(doubt, ((double)high - cross) / 2)) + 1;
	else
		at = floor(cross - fmin(doubt, (cross - (double)low) / 2));
	return clamp(at, low + 1, high - 1);
}

/* ---- any ---- */

void search_tell(struct search *s, int64_t level, const struct search_verdict *v)
{
	size_t at = 0;

	assert(level >= 1 && level <= s->o.max);
	s->crossing = crossing(s, 0);
	while (at < s->n && s->point[at].level < level)
		at++;
	if (at == s->n || s->point[at].level != level) {
		assert(s->n < SEARCH_LEVELS_MAX);
		memmove(&s->point[at + 1], &s->point[at], (s->n - at) * sizeof(s->point[0]));
		s->n++;
		s->levels++;
	}
	s->point[at] = (struct search_point){ level, *v };
	s->runs += v->runs;
	s->width[2] = s->width[1];
	s->width[1] = s->width[0];
	s->width[0] = failing(s) ? (double)(failing(s) - passing(s)) : INFINITY;
}

bool search_next(const struct search *s, int64_t *level)
{
	int64_t low = passing(s), high = failing(s);

	if (s->n == 0) {
		*level = s->o.max;
		return true;
	}
	if (high == 0 || is_narrow(s, low, high) || s->n == SEARCH_LEVELS_MAX)
		return false;
	if (s->o.kind == SEARCH_BISECT)
		*level = bisect(s, low, high);
	else if (s->o.kind == SEARCH_INTERPOLATE)
		*level = interpolate(s, low, high);
	else
		*level = fitted(s, low, high);
	return true;
}

struct search_outcome search_outcome(const struct search *s, double confidence)
{
	struct search_outcome o = {
		.passing = passing(s), .failing = failing(s), .levels = s->levels,
		.runs = s->runs, .is_monotone = true,
	};
	double z = interval_z(confidence), low, high;

	o.end = !s->n ? SEARCH_UNDECIDED : !o.failing ? SEARCH_ALL_PASS :
		!is_narrow(s, o.passing, o.failing) ? SEARCH_UNDECIDED :
		o.passing ? SEARCH_FOUND : SEARCH_NONE_PASSES;
	for (size_t i = 0; i + 1 < s->n; i++)
		if (!s->point[i].v.passes && s->point[i].level < o.passing)
			o.is_monotone = false;
	o.low = (double)o.passing;
	o.high = o.failing ? (double)o.failing : INFINITY;
	if (o.end == SEARCH_FOUND) {
		low = crossing(s, z);
		high = crossing(s, -z);
		o.low = isnan(low) ? o.low : fmin(o.low, low);
		o.high = isnan(high) ? o.high : fmax(o.high, high);
	}
	return o;
}

/* ---- how many runs ---- */

static double mean_of(const double *value, size_t step, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += value[i * step];
	return sum / n;
}

/* Sample standard deviation; 0 for one value. */
static double deviation(const double *value, size_t step, unsigned n, double mean)
{
	double squares = 0;

	for (unsigned i = 0; i < n; i++)
		squares += (value[i * step] - mean) * (value[i * step] - mean);
	return n > 1 ? sqrt(squares / (n - 1)) : 0;
}

static double gap_squares(const struct sla_limit *l, const double *value, size_t step, unsigned n)
{
	double mean = 0, squares = 0;

	for (unsigned i = 0; i < n; i++)
		mean += sla_gap(l, value[i * step]) / n;
	for (unsigned i = 0; i < n; i++)
		squares += pow(sla_gap(l, value[i * step]) - mean, 2);
	return squares;
}

struct search_verdict settle_verdict(const struct settle *s, const struct sla *sla,
				     const double *value, unsigned runs)
{
	struct search_verdict v = { .passes = true, .margin = -INFINITY, .gap = -INFINITY,
				    .noise = NAN, .estimate = NAN, .runs = runs };

	assert(runs > 0 && sla->n <= SLA_ALL_MAX);
	for (size_t k = 0; k < sla->n; k++) {
		const struct sla_limit *l = &sla->limit[k];
		double mean = mean_of(value + k, sla->n, runs), gap = sla_gap(l, mean);
		double squares = s->pool[k].squares + gap_squares(l, value + k, sla->n, runs);
		unsigned df = s->pool[k].df + runs - 1;

		if (!sla_holds(l, mean)) {
			v.is_by_failures = v.passes && l->is_failures;
			v.passes = false;
		}
		if (!l->is_failures || !sla_holds(l, mean))
			v.margin = fmax(v.margin, sla_margin(l, mean));
		if (gap > v.gap) {
			v.gap = gap;
			v.noise = df ? sqrt(squares / df / runs) : NAN;
		}
	}
	return v;
}

/* -1: fails, 1: holds, 0: could be either. */
static int settled(const struct settle *s, size_t k, const struct sla *sla, const double *value,
		   unsigned runs)
{
	const struct sla_limit *l = &sla->limit[k];
	double mean = mean_of(value + k, sla->n, runs), gap = sla_gap(l, mean), far = SETTLE_GAP;
	double p = (1 + s->confidence) / 2;
	int side = sla_holds(l, mean) ? 1 : -1;

	if (runs > 1) {
		double half = student_quantile(p, runs - 1) / sqrt(runs) *
			      deviation(value + k, sla->n, runs, mean);

		if (fabs(mean - l->limit) > half)
			return side;
	}
	if (s->pool[k].df >= SETTLE_DF_MIN)
		far = SETTLE_FAR * student_quantile(p, s->pool[k].df) *
		      sqrt(s->pool[k].squares / s->pool[k].df);
	return fabs(gap) > far / sqrt(runs) ? side : 0;
}

bool settle_is_settled(const struct settle *s, const struct sla *sla, const double *value,
		       unsigned runs)
{
	bool all = true;

	for (size_t k = 0; k < sla->n; k++) {
		int side = settled(s, k, sla, value, runs);

		if (side < 0)
			return true;
		all = all && side > 0;
	}
	return all;
}

void settle_learn(struct settle *s, const struct sla *sla, const double *value, unsigned runs)
{
	for (size_t k = 0; k < sla->n; k++) {
		s->pool[k].squares += gap_squares(&sla->limit[k], value + k, sla->n, runs);
		s->pool[k].df += runs - 1;
	}
}
