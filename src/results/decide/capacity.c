/* SPDX-License-Identifier: Apache-2.0 */
/* capacity.c - see capacity.h: decides what to measure next. capacity_fit.c has the curves. */
#include "results/decide/capacity.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"
#include "results/decide/capacity_internal.h"

/* Range of the search. */
#define TOP_SHARE 1.1          /* of the throughput at saturation */
#define TOP_AT_ONCE 2.0        /* times what runs at once */
#define BOTTOM_SHARE 50.0      /* times below the top */
#define QUIET_IN_FLIGHT 0.1    /* requests at once, on average: no load is asked for below */
#define RAISES_MAX 8           /* doublings of a top that never failed */
#define BRACKET_RATIO 1.2
#define SATURATE_REQUESTS 200
/* Levels that bracket: seconds, requests, end-to-end times without load. */
#define SHORT_PART 6.0         /* of the shortest measuring level */
#define SHORT_E2E 8.0
#define SHORT_REQUESTS 100.0
#define LONG_REQUESTS 400.0
#define LONG_TIMES 3.0
#define BRACKET_BUDGET 0.4     /* of the budget; then measuring starts with this bracket */
#define LOOK_STEP 0.5          /* of the first look's time */
/* Levels that measure. */
#define WARMUP_S 2.0
#define GIVE_UP_PART 3.0       /* checked after this part of the time */
/*
 * Overload, as shares of slow requests at a p99 limit: in some batches, and in a whole level. At
 * other quantiles as many logits above the share allowed.
 */
#define BATCH_SHARE 0.1
#define BATCHES_SLOW 3
#define GIVE_UP_SHARE 0.3
#define P99_SHARE 0.01
/* Placement of the next level: offsets of the curve's argument, distance from the crossing. */
#define OFFSET_BELOW (-0.5)
#define OFFSET_ABOVE 0.8
#define OFFSET_MAX 0.25
#define OFFSET_MAX_MEANS 0.06  /* their errors are small, and their curves bend */
#define SLOPE_FIRST 8.0
#define FREE_LEVELS 4          /* levels from which a curve alone says where to measure */
/* When it is enough. */
#define PRECISE_FITS 2

/* ---- limits ---- */

/* Converts a share of slow requests at p99 to another quantile; never below that at p99. */
static double share_like(double at_p99, double quantile)
{
	double shift = log(at_p99 / (1 - at_p99)) - log(P99_SHARE / (1 - P99_SHARE));
	double t = log((1 - quantile) / quantile) + shift;

	return fmax(at_p99, 1 / (1 + exp(-t)));
}

static bool is_broken(const struct capacity_search *s, const struct level *l, size_t j)
{
	struct capacity_limit limit = capacity_limit_of(s, j);
	struct level_count c = level_count(l, j);
	double mean;

	if (!limit.is_mean)
		return c.n > 0 && c.slow / c.n > 1 - limit.quantile;
	mean = level_mean(l, j).mean;
	return limit.is_at_least ? mean < limit.value : mean > limit.value;
}

static bool is_any_broken(const struct capacity_search *s, const struct level *l)
{
	for (size_t j = 0; j < capacity_limits(s); j++)
		if (is_broken(s, l, j))
			return true;
	return false;
}

static enum holds judge(const struct capacity_search *s, const struct level *l, size_t j)
{
	struct capacity_limit limit = capacity_limit_of(s, j);
	struct level_count c = level_count(l, j);

	if (limit.is_mean)
		return holds_mean(l, j, limit.value, limit.is_at_least).verdict;
	return holds_share(c.n, c.slow, level_dispersion(l, j), limit.quantile).verdict;
}

/* Every limit surely holds, or one surely does not. */
static enum holds judge_all(const struct capacity_search *s, const struct level *l)
{
	enum holds all = HOLDS_PASSES;

	for (size_t j = 0; j < capacity_limits(s); j++) {
		enum holds one = judge(s, l, j);

		if (one == HOLDS_FAILS)
			return HOLDS_FAILS;
		if (one == HOLDS_OPEN)
			all = HOLDS_OPEN;
	}
	return all;
}

static bool is_overloaded(const struct capacity_search *s, const struct level *l)
{
	if (!capacity_is_carried(s, l))
		return true;
	if (holds_ttft_grows(l) && is_any_broken(s, l))
		return true;
	for (size_t j = 0; j < capacity_limits(s); j++) {
		struct capacity_limit limit = capacity_limit_of(s, j);
		unsigned slow = 0;

		if (limit.is_mean || l->batches < LEVEL_BATCHES)
			continue;
		for (size_t b = 0; b < l->batches; b++)
			slow += l->batch[b].slow[j] >
				share_like(BATCH_SHARE, limit.quantile) * l->batch[b].n[j];
		if (slow >= BATCHES_SLOW)
			return true;
	}
	return false;
}

static bool is_hopeless(const struct capacity_search *s, const struct level *l)
{
	for (size_t j = 0; j < capacity_limits(s); j++) {
		struct capacity_limit limit = capacity_limit_of(s, j);
		struct level_count c = level_count(l, j);

		if (!limit.is_mean && c.slow > share_like(GIVE_UP_SHARE, limit.quantile) * c.n)
			return true;
	}
	return false;
}

/* ---- what a level is like ---- */

static void finish(struct capacity_search *s, enum capacity_end end)
{
	s->end = end;
	s->step = (struct capacity_step){ .ask = CAPACITY_DONE };
}

static bool is_whole(const struct capacity_search *s)
{
	return s->o.load == CAPACITY_CONCURRENCY;
}

static double rounded(const struct capacity_search *s, double load)
{
	return is_whole(s) ? fmax(1, round(load)) : load;
}

/* is_full: as long as a measuring level, and does not stop because it passes. */
static void ask_short(struct capacity_search *s, double load, bool is_full)
{
	double rate = capacity_rate_of(s, load);
	double first = fmax(s->o.level_s / SHORT_PART, SHORT_E2E * s->e2e_s);

	first = fmax(first, SHORT_REQUESTS / rate);
	s->step = (struct capacity_step){
		.ask = CAPACITY_LEVEL, .load = load, .look_s = first, .is_bracketing = true,
		.hold_s = fmax(LONG_TIMES * first, LONG_REQUESTS / rate), .warmup_s = WARMUP_S,
	};
	if (is_full)
		s->step.hold_s = fmax(s->step.hold_s, capacity_hold_of(s, load));
	s->is_decided = s->is_cut = s->has_passed = false;
	if (s->spent_s + first > s->o.budget_s)
		finish(s, CAPACITY_BUDGET);
	else
		s->step.hold_s = fmin(s->step.hold_s, s->o.budget_s - s->spent_s);
}

/*
 * For concurrencies, which may break at a step: the curve through the first levels may cross
 * anywhere, while short levels have bracketed the crossing. A measuring level that contradicts an
 * end of the bracket removes that end. (Rates are better off with levels further apart: of 80
 * engines in bench/capacity the error at the 90th percentile was 10.8 % without this, 20.6 % with.)
 */
static double in_bracket(const struct capacity_search *s, double load)
{
	double low = s->low, high = s->high;

	if (s->measured >= FREE_LEVELS)
		return load;
	for (size_t i = s->first; i < s->points; i++) {
		const struct capacity_point *p = &s->point[i];

		if (p->load <= low && !p->has_passed)
			low = 0;
		if (p->load >= high && p->has_passed)
			high = INFINITY;
	}
	return fmax(low, fmin(high, load));
}

static void ask_long(struct capacity_search *s)
{
	bool is_below = s->measured % 2 == 0;
	double offset = (is_below ? OFFSET_BELOW : OFFSET_ABOVE) / s->slope, load;
	bool is_of_mean = s->measured > 1 && s->binding < s->o.limits &&
			  s->o.limit[s->binding].is_mean;
	double most = is_of_mean ? OFFSET_MAX_MEANS : OFFSET_MAX;

	load = exp(s->middle + fmax(-most, fmin(most, offset)));
	if (is_whole(s)) {
		/* A load that is neither sure to hold nor sure to break, if there is one. */
		struct whole_loads w = capacity_whole_loads(s);

		load = fmax(1, is_below ? floor(load) : ceil(load));
		load = in_bracket(s, load);
		if (w.holds + 1 < w.breaks)
			load = fmax(w.holds + 1, fmin(w.breaks - 1, load));
	}
	if (s->o.load_max > 0)
		load = fmin(load, s->o.load_max);
	load = fmax(load, s->o.load_min);
	s->step = (struct capacity_step){
		.ask = CAPACITY_LEVEL, .load = load, .hold_s = capacity_hold_of(s, load),
		.warmup_s = WARMUP_S, .look_s = capacity_hold_of(s, load) / GIVE_UP_PART,
	};
	s->is_decided = s->is_cut = s->has_passed = false;
	if (s->spent_s + s->step.hold_s > s->o.budget_s || s->points == CAPACITY_LEVELS_MAX)
		finish(s, CAPACITY_BUDGET);
}

/* ---- bracketing ---- */

static bool is_narrow(const struct capacity_search *s)
{
	return s->high <= BRACKET_RATIO * s->low || (is_whole(s) && s->high - s->low <= 1);
}

static void begin_measuring(struct capacity_search *s)
{
	s->is_bracketing = false;
	s->first = s->points;
	s->middle = (log(s->low) + log(s->high)) / 2;
	s->slope = SLOPE_FIRST;
	ask_long(s);
}

/* The bracket is narrow, but one of its ends was never measured. */
static void ask_end(struct capacity_search *s)
{
	if (!s->is_low) {
		ask_short(s, s->low, false);
	} else if (s->o.load_max > 0 && s->high >= s->o.load_max) {
		s->high = s->o.load_max;
		ask_short(s, s->high, true);
	} else {
		s->raises++;
		s->high = fmin(2 * s->high, CAPACITY_LOAD_MAX);
		if (s->o.load_max > 0)
			s->high = fmin(s->high, s->o.load_max);
		ask_short(s, rounded(s, s->high), false);
	}
}

static void ask_inside(struct capacity_search *s)
{
	double ratio = s->high / s->low, part = 0.6, load;

	if (!s->is_low && !s->is_high)
		part = 0.75;
	else if (ratio < 3)
		part = 0.5;
	load = rounded(s, s->low * pow(ratio, part));
	if (is_whole(s))
		load = fmax(s->low + 1, fmin(s->high - 1, load));
	ask_short(s, load, false);
}

/* Without a saturation test, loads double until one fails. */
static void ask_double(struct capacity_search *s)
{
	double load = s->is_low ? 2 * s->low : fmax(1, s->o.load_min);

	if (s->o.load_max > 0 && load >= s->o.load_max)
		ask_short(s, s->high = s->o.load_max, true);
	else
		ask_short(s, load, false);
}

/*
 * The smallest load failed: the bracket reaches down again, until requests hardly meet. Throughput
 * at saturation that was measured too high starts the search far above the capacity.
 */
static void reach_down(struct capacity_search *s)
{
	double least = s->e2e_s > 0 ? QUIET_IN_FLIGHT / s->e2e_s : s->low;

	if (!is_whole(s) && !(s->o.load_min > 0))
		s->low = fmin(s->low, fmax(least, s->low / BOTTOM_SHARE));
}

static void next_short(struct capacity_search *s)
{
	bool is_top = s->o.load_max > 0 && s->low >= s->o.load_max;

	if (s->is_high && s->high <= s->low)
		reach_down(s);
	if (s->points == CAPACITY_LEVELS_MAX)
		finish(s, CAPACITY_BUDGET);
	else if (s->is_low && !s->is_high &&
		 (is_top || s->raises >= RAISES_MAX || s->low >= CAPACITY_LOAD_MAX / 2))
		finish(s, CAPACITY_ALL_PASS);
	else if (s->is_high && s->high <= s->low)
		finish(s, s->was_uncarried ? CAPACITY_NEVER_CARRIED : CAPACITY_NONE_PASSES);
	else if (!s->o.has_saturation && !s->is_high)
		ask_double(s);
	else if ((is_narrow(s) && s->is_low && s->is_high) ||
		 (s->is_high && s->spent_s > BRACKET_BUDGET * s->o.budget_s))
		begin_measuring(s);
	else if (!is_narrow(s))
		ask_inside(s);
	else
		ask_end(s);
}

/* saturated: requests/s, or at once, that saturate the server; 0: unknown. */
static void begin_bracketing(struct capacity_search *s, double saturated)
{
	double top = is_whole(s) ? TOP_AT_ONCE : TOP_SHARE;

	s->is_bracketing = true;
	s->high = s->o.has_saturation ? top * saturated : 1;
	if (s->o.load_max > 0)
		s->high = fmin(s->high, s->o.load_max);
	s->low = s->high / BOTTOM_SHARE;
	if (s->o.load_min > 0)
		s->low = s->o.load_min;
	if (is_whole(s)) {
		s->low = fmax(1, floor(s->o.load_min));
		s->high = fmax(2, ceil(s->high));
	}
	if (s->high <= s->low)
		s->high = s->low * BRACKET_RATIO;
	next_short(s);
}

static void next_long(struct capacity_search *s)
{
	struct fit f;

	capacity_fit_all(s);
	s->measured++;
	if (!s->has_fit[s->binding]) { /* only means, and no batch had one */
		ask_long(s);
		return;
	}
	f = capacity_combined(s);
	s->precise = capacity_is_precise(s, f) ? s->precise + 1 : 0;
	s->middle = f.at;
	s->slope = f.slope;
	if (s->precise >= PRECISE_FITS)
		finish(s, CAPACITY_PRECISE);
	else
		ask_long(s);
}

/* ---- the caller's side ---- */

struct capacity_search *capacity_new(const struct capacity_opts *o)
{
	struct capacity_search *s = mem_alloc(sizeof(*s));

	assert(o->limits >= 1 && o->limits <= CAPACITY_LIMITS_MAX);
	for (size_t j = 0; j < o->limits; j++) {
		const struct capacity_limit *l = &o->limit[j];

		assert(l->is_mean ? l->value > 0 : l->quantile > 0 && l->quantile < 1);
	}
	assert(o->failed_share >= 0 && o->failed_share < 1);
	assert(o->precision > 0 && o->precision < 1 && o->budget_s > 0);
	assert(o->load_min >= 0 && o->load_max >= 0 && o->load_max <= CAPACITY_LOAD_MAX);
	assert(!(o->load_max > 0) || o->load_min < o->load_max);
	s->o = *o;
	if (!(s->o.level_s > 0))
		s->o.level_s = CAPACITY_LEVEL_S;
	if (!(s->o.failed_share > 0))
		s->o.failed_share = CAPACITY_FAILED_SHARE;
	s->step = (struct capacity_step){ .ask = CAPACITY_PROBE };
	s->point = mem_array(CAPACITY_LEVELS_MAX, sizeof(*s->point));
	s->chosen = mem_array(CAPACITY_LEVELS_MAX, sizeof(*s->chosen));
	s->grid = mem_alloc(sizeof(*s->grid));
	s->binding = SIZE_MAX;
	return s;
}

void capacity_free(struct capacity_search *s)
{
	if (!s)
		return;
	free(s->point);
	free(s->chosen);
	free(s->grid);
	free(s);
}

struct capacity_step capacity_next(const struct capacity_search *s)
{
	return s->step;
}

static void spend(struct capacity_search *s, uint64_t requests, double spent_s)
{
	assert(spent_s >= 0);
	s->requests += requests;
	s->spent_s += spent_s;
}

void capacity_tell_probe(struct capacity_search *s, bool is_answered, double spent_s)
{
	assert(s->step.ask == CAPACITY_PROBE);
	spend(s, 1, spent_s);
	s->step = (struct capacity_step){ .ask = CAPACITY_UNLOADED_REQUESTS,
					  .requests = CAPACITY_UNLOADED };
	if (!is_answered)
		finish(s, CAPACITY_UNREACHABLE);
}

void capacity_tell_unloaded(struct capacity_search *s, const struct level *l)
{
	assert(s->step.ask == CAPACITY_UNLOADED_REQUESTS);
	spend(s, l->requests, l->spent_s);
	for (size_t j = 0; j < capacity_limits(s); j++)
		if (judge(s, l, j) == HOLDS_FAILS)
			s->broken |= 1u << j;
	s->e2e_s = l->e2e_s > 0 ? l->e2e_s : 0;
	if (s->broken) {
		finish(s, CAPACITY_BROKEN_UNLOADED);
	} else if (s->o.has_saturation) {
		s->step = (struct capacity_step){ .ask = CAPACITY_SATURATE,
						  .requests = SATURATE_REQUESTS };
	} else {
		begin_bracketing(s, 0);
	}
}

void capacity_tell_saturation(struct capacity_search *s, const struct capacity_saturation *m)
{
	assert(s->step.ask == CAPACITY_SATURATE);
	assert(m->per_s > 0 && (!is_whole(s) || m->at_once >= 1));
	spend(s, m->requests, m->spent_s);
	s->per_s = m->per_s;
	begin_bracketing(s, is_whole(s) ? m->at_once : m->per_s);
}

enum capacity_look capacity_look(struct capacity_search *s, const struct level *l, double at_s,
				 double *next_s)
{
	bool is_full = s->step.hold_s > LONG_TIMES * s->step.look_s;
	enum holds sure;

	assert(s->step.ask == CAPACITY_LEVEL && !s->is_decided);
	*next_s = INFINITY;
	if (!s->is_bracketing) {
		s->is_decided = s->is_cut = is_hopeless(s, l);
		return s->is_cut ? CAPACITY_STOP_CANCEL : CAPACITY_GO_ON;
	}
	*next_s = at_s + LOOK_STEP * s->step.look_s;
	if (*next_s >= s->step.hold_s)
		*next_s = INFINITY;
	sure = is_overloaded(s, l) ? HOLDS_FAILS : judge_all(s, l);
	if (sure == HOLDS_OPEN || (sure == HOLDS_PASSES && is_full))
		return CAPACITY_GO_ON;
	s->is_decided = true;
	s->has_passed = sure == HOLDS_PASSES;
	s->is_cut = !s->has_passed;
	return s->is_cut ? CAPACITY_STOP_CANCEL : CAPACITY_STOP_DRAIN;
}

void capacity_tell_level(struct capacity_search *s, const struct level *l)
{
	double load = s->step.load;

	assert(s->step.ask == CAPACITY_LEVEL);
	spend(s, l->requests, l->spent_s);
	if (!s->is_decided)
		s->has_passed = !is_any_broken(s, l) && capacity_is_carried(s, l);
	capacity_keep_point(s, l);
	if (!s->is_bracketing) {
		next_long(s);
		return;
	}
	if (s->has_passed) {
		s->low = fmax(s->low, load);
		s->high = fmax(s->high, load);
		s->is_low = true;
	} else {
		s->high = load;
		s->is_high = true;
		s->was_uncarried = !capacity_is_carried(s, l);
	}
	next_short(s);
}

void capacity_stop(struct capacity_search *s)
{
	if (s->end == CAPACITY_RUNNING)
		finish(s, CAPACITY_STOPPED);
}

#define WARMUP_E2E 3.0         /* end-to-end times left out */
#define CARRIED_SHARE 0.95
#define CARRIED_Z 2.33
#define TREND_TAU 0.6
#define TREND_GROWTH 1.5
#define TREND_ENDS 3
#define DECIDE_Z 1.645         /* one-sided 95 % */

/* ---- a level from its requests ---- */

/* Mean end-to-end time of what has finished; NAN: nothing has. */
static double mean_e2e(const struct level_request *r, size_t n)
{
	double sum = 0;
	size_t finished = 0;

	for (size_t i = 0; i < n; i++)
		if (!r[i].is_failed && isfinite(r[i].end_s)) {
			sum += r[i].end_s - r[i].due_s;
			finished++;
		}
	return finished ? sum / (double)finished : NAN;
}

static void take_batch(struct level_batch *b, const struct level_request *r, size_t n,
		       size_t limits)
{
	double sum[LEVEL_LIMITS_MAX] = { 0 };
	size_t values[LEVEL_LIMITS_MAX] = { 0 };

	for (size_t i = 0; i < n; i++) {
		bool has_value = r[i].value && !r[i].is_failed && isfinite(r[i].end_s);

		for (size_t j = 0; j < limits; j++) {
			bool is_slow = r[i].is_failed || (r[i].slow >> j & 1);

			b->n[j] += is_slow || !(r[i].open >> j & 1);
			b->slow[j] += is_slow;
			if (has_value && !isnan(r[i].value[j])) {
				sum[j] += r[i].value[j];
				values[j]++;
			}
		}
	}
	for (size_t j = 0; j < limits; j++)
		b->mean[j] = values[j] ? sum[j] / (double)values[j] : NAN;
}

/* Mean TTFT of blocks of equal count; a block without any gives none at all. */
static void take_blocks(struct level *out, const struct level_request *r, size_t n)
{
	for (size_t k = 0; k < LEVEL_BLOCKS; k++) {
		double sum = 0;
		size_t count = 0;

		for (size_t i = n * k / LEVEL_BLOCKS; i < n * (k + 1) / LEVEL_BLOCKS; i++)
			if (!isnan(r[i].ttft_s)) {
				sum += r[i].ttft_s;
				count++;
			}
		if (!count)
			return;
		out->ttft_s[k] = sum / (double)count;
	}
	out->blocks = LEVEL_BLOCKS;
}

double level_warmup_s(const struct level_request *r, size_t n, double least_s, double sent_s)
{
	double e2e_s = mean_e2e(r, n);

	assert(least_s >= 0 && sent_s >= 0);
	return fmin(fmax(least_s, isnan(e2e_s) ? 0 : WARMUP_E2E * e2e_s), sent_s / 2);
}

void level_take(struct level *out, const struct level_request *r, size_t n, size_t limits,
		double warmup_s, double sent_s)
{
	double load = out->load, spent_s = out->spent_s, middle;
	size_t first = 0;

	assert(limits <= LEVEL_LIMITS_MAX && warmup_s >= 0 && warmup_s <= sent_s);
	memset(out, 0, sizeof(*out));
	out->load = load;
	out->spent_s = spent_s;
	while (n && r[n - 1].due_s > sent_s)
		n--;
	out->requests = n;
	out->e2e_s = mean_e2e(r, n);
	out->warmup_s = warmup_s;
	out->hold_s = sent_s - out->warmup_s;
	middle = out->warmup_s + out->hold_s / 2;
	while (first < n && r[first].due_s < out->warmup_s)
		first++;
	for (size_t i = 0; i < n; i++) {
		assert(!i || r[i].due_s >= r[i - 1].due_s);
		out->due_late += r[i].due_s >= middle;
		out->done_late += !r[i].is_failed && r[i].end_s >= middle && r[i].end_s <= sent_s;
		out->failed += i >= first && r[i].is_failed;
	}
	r += first;
	n -= first;
	out->attempted = n;
	out->batches = n < LEVEL_BATCHES ? n : LEVEL_BATCHES;
	for (size_t b = 0; b < out->batches; b++) {
		size_t from = n * b / out->batches, to = n * (b + 1) / out->batches;

		take_batch(&out->batch[b], r + from, to - from, limits);
	}
	if (n >= LEVEL_BLOCKS)
		take_blocks(out, r, n);
}

struct level_count level_count(const struct level *l, size_t limit)
{
	struct level_count c = { 0, 0 };

	assert(limit < LEVEL_LIMITS_MAX && l->batches <= LEVEL_BATCHES);
	for (size_t b = 0; b < l->batches; b++) {
		assert(l->batch[b].slow[limit] <= l->batch[b].n[limit]);
		c.n += l->batch[b].n[limit];
		c.slow += l->batch[b].slow[limit];
	}
	return c;
}

double level_dispersion(const struct level *l, size_t limit)
{
	struct level_count c = level_count(l, limit);
	double p = c.n > 0 ? c.slow / c.n : 0, squares = 0, batches = (double)l->batches;

	if (!(p > 0 && p < 1) || l->batches < 2)
		return 1;
	for (size_t b = 0; b < l->batches; b++) {
		double off = l->batch[b].slow[limit] - p * l->batch[b].n[limit];

		squares += off * off;
	}
	return fmax(1, squares / (batches - 1) / (p * (1 - p) * c.n / batches));
}

double level_dispersion_joined(const struct level *l, size_t limit)
{
	double weight = fmin(level_count(l, limit).slow, LEVEL_DISPERSION_COUNT_MAX);

	return (LEVEL_DISPERSION_PRIOR * LEVEL_DISPERSION_WEIGHT +
		weight * level_dispersion(l, limit)) / (LEVEL_DISPERSION_WEIGHT + weight);
}

struct level_mean level_mean(const struct level *l, size_t limit)
{
	double mean[LEVEL_BATCHES];
	size_t n = 0;

	assert(limit < LEVEL_LIMITS_MAX && l->batches <= LEVEL_BATCHES);
	for (size_t b = 0; b < l->batches; b++)
		if (!isnan(l->batch[b].mean[limit]))
			mean[n++] = l->batch[b].mean[limit];
	if (n < 2)
		return (struct level_mean){ NAN, NAN };
	return (struct level_mean){ stats_mean(mean, n),
				    stats_std(mean, n) / sqrt((double)(n - 1)) };
}

/* ---- tests of a level ---- */

bool holds_carried(const struct level *l)
{
	double done = (double)l->done_late, due = (double)l->due_late;

	return done + CARRIED_Z * sqrt(due) >= CARRIED_SHARE * due;
}

double holds_tau(const double *x, size_t n)
{
	double sum = 0;

	assert(n >= 2);
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			sum += (x[k] > x[i]) - (x[k] < x[i]);
	return sum / ((double)n * (double)(n - 1) / 2);
}

bool holds_ttft_grows(const struct level *l)
{
	const double *x = l->ttft_s;

	if (l->blocks != LEVEL_BLOCKS)
		return false;
	return holds_tau(x, LEVEL_BLOCKS) > TREND_TAU &&
	       stats_mean(x + LEVEL_BLOCKS - TREND_ENDS, TREND_ENDS) >
		       TREND_GROWTH * stats_mean(x, TREND_ENDS);
}

/* ---- a fixed load ---- */

double holds_binomial_cdf(double k, double n, double p)
{
	assert(n > 0 && p > 0 && p < 1);
	if (k < 0)
		return 0;
	return k >= n ? 1 : beta_regularised(1 - p, n - k, k + 1);
}

/*
 * How many requests decide a share this far from the limit; without slow ones, as many as the
 * binomial test needs.
 */
static double requests_needed(double share, double phi, double quantile)
{
	double off = share - (1 - quantile);
	double n = phi * DECIDE_Z * DECIDE_Z * (1 - quantile) * quantile / (off * off);

	if (fabs(off) < 1e-9)
		return INFINITY;
	return share > 0 ? n : fmax(n, phi * log(HOLDS_ALPHA) / log(quantile));
}

struct holds_answer holds_share(double n, double slow, double phi, double quantile)
{
	struct holds_answer a = { .verdict = HOLDS_OPEN, .share = NAN, .phi = phi,
				  .p_above = 1, .p_below = 1 };

	assert(quantile > 0 && quantile < 1 && phi >= 1 && slow >= 0 && slow <= n);
	a.requests_more = ceil(requests_needed(0, phi, quantile));
	if (!(n > 0))
		return a;
	a.share = slow / n;
	a.p_below = holds_binomial_cdf(slow / phi, n / phi, 1 - quantile);
	a.p_above = 1 - holds_binomial_cdf(slow / phi - 1, n / phi, 1 - quantile);
	if (a.p_below < HOLDS_ALPHA)
		a.verdict = HOLDS_PASSES;
	else if (a.p_above < HOLDS_ALPHA)
		a.verdict = HOLDS_FAILS;
	a.requests_more = 0;
	if (a.verdict == HOLDS_OPEN) /* the tail is discrete: never less than a quarter again */
		a.requests_more = ceil(fmax(requests_needed(a.share, phi, quantile) - n, n / 4));
	return a;
}

struct holds_answer holds_mean(const struct level *l, size_t limit, double value,
			       bool is_at_least)
{
	struct holds_answer a = { .verdict = HOLDS_OPEN, .share = NAN, .phi = 1, .p_above = 1,
				  .p_below = 1, .requests_more = INFINITY };
	struct level_mean m = level_mean(l, limit);
	double off = is_at_least ? value - m.mean : m.mean - value, z, df;

	assert(value > 0);
	if (isnan(m.mean))
		return a;
	df = fmax(1, (double)l->batches - 1);
	z = m.se > 0 ? off / m.se : copysign(INFINITY, off);
	a.p_below = student_cdf(z, df);
	a.p_above = student_cdf(-z, df);
	if (a.p_below < HOLDS_ALPHA)
		a.verdict = HOLDS_PASSES;
	else if (a.p_above < HOLDS_ALPHA)
		a.verdict = HOLDS_FAILS;
	else
		a.requests_more = ceil((double)l->attempted *
				       fmax(0.25, DECIDE_Z * DECIDE_Z / (z * z) - 1));
	if (a.verdict != HOLDS_OPEN)
		a.requests_more = 0;
	return a;
}
