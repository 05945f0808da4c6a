/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - see search.h. */
#include "bench/sweep/search.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/stats/curve.h"

const char *const search_kinds[] = { "bisect", "interpolate", NULL };
const char *const search_ends[] = { "found", "none_passes", "all_pass", "undecided", NULL };

void search_init(struct search *s, const struct search_opts *o)
{
	assert(o->max >= 2);
	*s = (struct search){ .o = *o };
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

	/* Doubling continues while everything passed; a failure, or an infinite value, ends it. */
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
	/* Margins that are not monotone make upstream loop; we halve. */
	return level > low && level < high ? level : (low + high) / 2;
}

/* ---- any ---- */

void search_tell(struct search *s, int64_t level, const struct search_verdict *v)
{
	size_t at = 0;

	assert(level >= 1 && level <= s->o.max);
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
	*level = s->o.kind == SEARCH_BISECT ? bisect(s, low, high) : interpolate(s, low, high);
	return true;
}

struct search_outcome search_outcome(const struct search *s)
{
	struct search_outcome o = {
		.passing = passing(s), .failing = failing(s), .levels = s->levels,
		.runs = s->runs, .is_monotone = true,
	};

	o.end = !s->n ? SEARCH_UNDECIDED : !o.failing ? SEARCH_ALL_PASS :
		!is_narrow(s, o.passing, o.failing) ? SEARCH_UNDECIDED :
		o.passing ? SEARCH_FOUND : SEARCH_NONE_PASSES;
	for (size_t i = 0; i + 1 < s->n; i++)
		if (!s->point[i].v.passes && s->point[i].level < o.passing)
			o.is_monotone = false;
	return o;
}

/* ---- a level ---- */

struct search_verdict search_judge(const struct sla *sla, const double *value, unsigned runs)
{
	struct search_verdict v = { .passes = true, .margin = -INFINITY, .gap = -INFINITY,
				    .estimate = NAN, .runs = runs };

	assert(runs > 0 && sla->n <= SLA_ALL_MAX);
	for (size_t k = 0; k < sla->n; k++) {
		const struct sla_limit *l = &sla->limit[k];
		double mean = 0;

		for (unsigned i = 0; i < runs; i++)
			mean += value[i * sla->n + k];
		mean /= runs;
		if (!sla_holds(l, mean)) {
			v.is_by_failures = v.passes && l->is_failures;
			v.passes = false;
		}
		if (!l->is_failures || !sla_holds(l, mean))
			v.margin = fmax(v.margin, sla_margin(l, mean));
		v.gap = fmax(v.gap, sla_gap(l, mean));
	}
	return v;
}

void hover_init(struct hover *h, double capacity, int64_t max)
{
	*h = (struct hover){ .capacity = fmax(capacity, 1), .max = max };
}

int64_t hover_level(const struct hover *h)
{
	double level = round(h->capacity);

	return level < 1 ? 1 : level > (double)h->max ? h->max : (int64_t)level;
}

void hover_tell(struct hover *h, double gap, bool passes)
{
	double move = fmin(fmax(HOVER_STEP * fabs(gap), HOVER_MOVE_MIN), HOVER_MOVE_MAX);

	h->capacity *= exp(passes ? move : -move);
	h->capacity = fmin(fmax(h->capacity, 0.5), (double)h->max);
}
