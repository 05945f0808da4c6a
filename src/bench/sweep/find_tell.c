/* SPDX-License-Identifier: Apache-2.0 */
/* find_tell.c - see find.h. */
#include <math.h>

#include "bench/sweep/find.h"
#include "bench/sweep/gnuplot.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "out/figure/figure.h"

#define CURVE_POINTS 61
#define CURVE_REACH 0.35 /* ln load on either side of the capacity */

static const char *const end_names[] = {
	[CAPACITY_RUNNING] = "running", [CAPACITY_UNREACHABLE] = "unreachable",
	[CAPACITY_BROKEN_UNLOADED] = "broken_unloaded", [CAPACITY_PRECISE] = "precise",
	[CAPACITY_BUDGET] = "budget", [CAPACITY_NONE_PASSES] = "none_passes",
	[CAPACITY_NEVER_CARRIED] = "never_carried", [CAPACITY_ALL_PASS] = "all_pass",
	[CAPACITY_STOPPED] = "stopped",
};

static double failed_share(const struct find_opts *o)
{
	return o->failed_share > 0 ? o->failed_share : CAPACITY_FAILED_SHARE;
}

static const char *limit_text(const struct find *f, size_t j)
{
	const struct slo *slo = &f->opts->slo;

	return j < slo->n ? slo->limit[j].text : j == slo->n ? "failed requests" : "saturation";
}

/* "88.1", "32": a load without superfluous digits. */
static const char *load_text(char out[FMT_F64_BYTES], double load)
{
	snprintf(out, FMT_F64_BYTES, load >= 1000 ? "%.0f" : "%.4g", load);
	return out;
}

bool find_has_answer(const struct find *f)
{
	return capacity_answer(f->search).has_interval;
}

/* ---- while it runs ---- */

void find_tell_begin(const struct find_opts *o, struct buf *out)
{
	buf_printf(out, "Searching for the largest %s with ",
		   o->load == CAPACITY_RATE ? "request rate" : "number of requests at once");
	for (size_t j = 0; j < o->slo.n; j++)
		buf_printf(out, "%s%s", j ? ", " : "", o->slo.limit[j].text);
	buf_printf(out, " and at most %g %% failed requests.", 100 * failed_share(o));
}

/* A level's result for one limit: "p99_ttft_ms<200: 0.42 % slow (1 % allowed)". */
static void tell_limit(const struct find *f, const struct capacity_point *p, size_t j,
		       struct buf *out)
{
	const struct slo *slo = &f->opts->slo;
	const struct fit_level *l = &p->limit[j];

	if (j < slo->n && slo->limit[j].is_mean) {
		if (l->se > 0)
			buf_printf(out, "%s: %.4g ms; ", limit_text(f, j),
				   exp(l->y) * slo->limit[j].limit_s * 1000);
	} else if (l->n > 0) {
		double allowed = j < slo->n ? 1 - slo->limit[j].quantile : failed_share(f->opts);

		buf_printf(out, "%s: %.2f %% slow, %.3g %% allowed; ", limit_text(f, j),
			   100 * l->slow / l->n, 100 * allowed);
	}
}

static void tell_level(const struct find *f, struct buf *out)
{
	struct capacity_answer a = capacity_answer(f->search);
	char load[FMT_F64_BYTES], time[FMT_F64_BYTES], low[FMT_F64_BYTES], high[FMT_F64_BYTES];
	const struct capacity_point *p;
	size_t n;

	if (f->spoilt) {
		buf_printf(out, "%s %s is measured again: %s", load_text(load, f->step.load),
			   find_unit(f->opts->load), f->why_spoilt);
		return;
	}
	p = capacity_points(f->search, &n);
	p += n - 1;
	buf_printf(out, "%s %zu: %s %s, %llu request%s in %s; ", p->is_bracketing ? "Bracket" : "Level",
		   n, load_text(load, p->load), find_unit(f->opts->load),
		   (unsigned long long)f->level.requests, f->level.requests == 1 ? "" : "s",
		   fmt_rough_time(time, p->spent_s));
	for (size_t j = 0; j < f->opts->slo.n; j++)
		tell_limit(f, p, j, out);
	if (p->failed)
		buf_printf(out, "%llu failed; ", (unsigned long long)p->failed);
	if (!p->is_carried)
		buf_add_text(out, p->is_growing ? "TTFT kept growing; " : "the rate was not carried; ");
	if (p->is_bracketing)
		buf_add_text(out, p->has_passed ? "passes" : p->is_cut ? "fails, stopped" : "fails");
	else if (a.has_interval)
		buf_printf(out, "capacity so far %s, 95 %% interval [%s, %s]",
			   load_text(load, a.load), load_text(low, a.low), load_text(high, a.high));
	else
		buf_add_text(out, p->is_cut ? "stopped: far too slow" : "measured");
}

void find_tell_step(const struct find *f, struct buf *out)
{
	char a[FMT_F64_BYTES], b[FMT_F64_BYTES];

	switch (f->step.ask) {
	case CAPACITY_UNLOADED_REQUESTS:
		buf_printf(out, "Without load: mean E2EL %s over %d requests one at a time.",
			   fmt_duration(a, (int64_t)(f->level.e2e_s * 1e9)), CAPACITY_UNLOADED);
		break;
	case CAPACITY_SATURATE:
		buf_printf(out, "Saturated: %s requests/s with %s request%s at once.",
			   load_text(a, f->saturation.per_s), load_text(b, f->saturation.at_once),
			   f->saturation.at_once == 1 ? "" : "s");
		break;
	case CAPACITY_LEVEL:
		tell_level(f, out);
		break;
	default:
		break;
	}
}

void find_tell_cost(const struct find *f, struct buf *out)
{
	struct capacity_answer a = capacity_answer(f->search);
	double left = f->opts->budget_s - a.spent_s;
	char more[FMT_F64_BYTES], budget[FMT_F64_BYTES];

	if (!isfinite(a.seconds_more) || a.end != CAPACITY_RUNNING)
		return;
	buf_printf(out, "About %s and %.0f requests more for +-%.3g %% at this load",
		   fmt_rough_time(more, a.seconds_more), a.requests_more,
		   100 * f->opts->precision);
	if (a.seconds_more > left)
		buf_printf(out, "; the budget leaves %s and will end the search first",
			   fmt_rough_time(budget, fmax(0, left)));
	buf_add_char(out, '.');
}

/* ---- the answer ---- */

static void tell_crossing(const struct find *f, const struct capacity_answer *a, struct buf *out)
{
	const struct slo *slo = &f->opts->slo;
	/* A rate is where the limit is reached, a number of requests the last one below it. */
	const char *where = f->opts->load == CAPACITY_CONCURRENCY ? "With one more at once" : "At this load";

	if (a->binding == slo->n) {
		buf_printf(out, "Limiting factor: failed requests. %s more than %g %% of the requests "
			   "would fail in a run that never ends.", where, 100 * failed_share(f->opts));
	} else if (a->binding > slo->n) {
		buf_add_text(out, "Limiting factor: saturation. No limit is broken at this load, "
				  "but a higher rate is not carried.");
	} else {
		const struct slo_limit *l = &slo->limit[a->binding];

		buf_printf(out, "Limiting factor: %s. %s %s would exceed %.6g ms in a run that never "
			   "ends.", l->text, where, l->key, l->limit_s * 1000);
		buf_printf(out, " 5 %% more load multiplies %s by %.2f.",
			   l->is_mean ? "it" : "the slow requests", a->slow_factor);
	}
	buf_add_char(out, '\n');
}

/* A curve has a crossing outside of what was measured, too. */
static void tell_range(const struct find *f, const struct capacity_answer *a, struct buf *out)
{
	double low = INFINITY, high = 0;
	size_t n;
	const struct capacity_point *p = capacity_points(f->search, &n);
	char load[FMT_F64_BYTES];

	for (size_t i = 0; i < n; i++) {
		low = fmin(low, p[i].load);
		high = fmax(high, p[i].load);
	}
	if (a->load < low)
		buf_printf(out, "This is extrapolated: the lowest load that was measured, %s %s, did not "
			   "hold, and perhaps none does.\n", load_text(load, low),
			   find_unit(f->opts->load));
	else if (a->load > high)
		buf_printf(out, "This is extrapolated: the highest load that was measured is %s %s.\n",
			   load_text(load, high), find_unit(f->opts->load));
}

/*
 * Short levels do not enter the answer, but their bracket is often much narrower than the interval
 * of a few levels.
 */
static void tell_short(const struct find *f, const struct capacity_answer *a, struct buf *out)
{
	char low[FMT_F64_BYTES], high[FMT_F64_BYTES];

	if (a->is_precise || !(a->passing > a->low || a->failing < a->high))
		return;
	buf_printf(out, "In short levels, which only say where to look, ");
	if (a->passing > 0)
		buf_printf(out, "%s %s held%s", load_text(low, a->passing), find_unit(f->opts->load),
			   isfinite(a->failing) ? " and " : "");
	if (isfinite(a->failing))
		buf_printf(out, "%s did not", load_text(high, a->failing));
	buf_add_text(out, ".\n");
}

/* Levels that the search could not but use, although their own verdict doubts them. */
static void tell_doubts(const struct find *f, const struct capacity_answer *a, struct buf *out)
{
	const struct find_doubts *d = &f->doubts;

	if (!d->degraded && !d->invalid)
		return;
	if (d->degraded)
		buf_printf(out, "%u of the %u measuring level%s %s DEGRADED for a metric with a limit",
			   d->degraded, a->levels, a->levels == 1 ? "" : "s",
			   d->degraded == 1 ? "was" : "were");
	if (d->invalid)
		buf_printf(out, "%s%u level%s %s INVALID for one and measured again",
			   d->degraded ? ", and " : "", d->invalid, d->invalid == 1 ? "" : "s",
			   d->invalid == 1 ? "was" : "were");
	buf_printf(out, ", so %s. The last reason: %s\nWhat to do: remove the cause and search again "
		   "(profllm help %s).\n", d->degraded ? "the capacity may be wrong, too" :
		   "the capacity is that of the others", d->why, d->code);
}

static void tell_cost(const struct find *f, const struct capacity_answer *a, struct buf *out)
{
	char time[FMT_F64_BYTES], more[FMT_F64_BYTES], budget[FMT_F64_BYTES];
	double precision = 100 * f->opts->precision;

	buf_printf(out, "Spent: %s, %llu request%s, %u measuring level%s.",
		   fmt_rough_time(time, a->spent_s), (unsigned long long)a->requests,
		   a->requests == 1 ? "" : "s", a->levels, a->levels == 1 ? "" : "s");
	if (a->is_precise)
		buf_printf(out, " The precision of +-%.3g %% was reached.", precision);
	else if (a->half_width <= f->opts->precision && isfinite(a->seconds_more))
		buf_printf(out, " The interval is as narrow as +-%.3g %%, but %u measuring level%s close to "
			   "the capacity are too few to rely on it: about %s more are needed (--budget %s).",
			   precision, a->levels_near, a->levels_near == 1 ? "" : "s",
			   fmt_rough_time(more, a->seconds_more),
			   load_text(budget, ceil(1.1 * (a->spent_s + a->seconds_more) / 60) * 60));
	else if (isfinite(a->seconds_more))
		buf_printf(out, " The precision of +-%.3g %% was not reached: about %s more are needed "
			   "(--budget %s).", precision, fmt_rough_time(more, a->seconds_more),
			   load_text(budget, ceil(1.1 * (a->spent_s + a->seconds_more) / 60) * 60));
	else if (a->end == CAPACITY_STOPPED || a->end == CAPACITY_BUDGET)
		buf_printf(out, " The precision of +-%.3g %% was not reached.", precision);
	buf_add_char(out, '\n');
}

static void tell_bracket(const struct find *f, const struct capacity_answer *a, struct buf *out)
{
	const char *unit = find_unit(f->opts->load);
	char low[FMT_F64_BYTES], high[FMT_F64_BYTES];

	buf_add_text(out, "No capacity yet");
	if (a->passing > 0 && isfinite(a->failing))
		buf_printf(out, ": %s %s passed and %s failed, in short levels that only say where to "
			   "look", load_text(low, a->passing), unit, load_text(high, a->failing));
	else if (a->passing > 0)
		buf_printf(out, ": %s %s passed in a short level", load_text(low, a->passing), unit);
	else if (isfinite(a->failing))
		buf_printf(out, ": %s %s failed in a short level", load_text(high, a->failing), unit);
	buf_add_text(out, a->end == CAPACITY_BUDGET ? "; the budget is spent, give a longer --budget.\n"
						    : ".\n");
}

static void tell_none(const struct find *f, const struct capacity_answer *a, struct buf *out)
{
	const char *unit = find_unit(f->opts->load);
	char load[FMT_F64_BYTES];

	switch (a->end) {
	case CAPACITY_BROKEN_UNLOADED:
		for (size_t j = 0; j <= f->opts->slo.n; j++)
			if (a->broken >> j & 1)
				buf_printf(out, "%s cannot be met even without load: one request at a "
					   "time breaks it.\n", limit_text(f, j));
		break;
	case CAPACITY_NONE_PASSES:
		buf_printf(out, "No load holds: even %s %s does not meet the limits.\n",
			   load_text(load, a->failing), unit);
		break;
	case CAPACITY_NEVER_CARRIED:
		buf_printf(out, "No load holds: even %s %s is not carried.\n",
			   load_text(load, a->failing), unit);
		break;
	case CAPACITY_ALL_PASS:
		buf_printf(out, "Every load meets the limits, even %s %s: they do not bind.%s\n",
			   load_text(load, a->passing), unit,
			   f->opts->load == CAPACITY_CONCURRENCY &&
			   a->passing >= find_load_max(f->opts) &&
			   find_load_max(f->opts) != f->opts->load_max ?
			   " This process may not open more connections (ulimit -n)." : "");
		break;
	case CAPACITY_UNREACHABLE:
		break;
	default:
		tell_bracket(f, a, out);
	}
}

void find_tell_answer(const struct find *f, struct buf *out)
{
	struct capacity_answer a = capacity_answer(f->search);
	char load[FMT_F64_BYTES], low[FMT_F64_BYTES], high[FMT_F64_BYTES];
	const char *unit = find_unit(f->opts->load);
	const char *option = f->opts->load == CAPACITY_RATE ? "--request-rate" : "--max-concurrency";

	if (a.has_interval) {
		buf_printf(out, "Capacity: %s %s, 95 %% interval [%s, %s] (+-%.1f %%).\n",
			   load_text(load, a.load), unit, load_text(low, a.low),
			   load_text(high, a.high), 100 * a.half_width);
		tell_range(f, &a, out);
		tell_short(f, &a, out);
		tell_crossing(f, &a, out);
		if (isnan(a.safe))
			buf_printf(out, "Safe to configure: no load, because none that was measured held; "
				   "find out why, with one run at a low %s.\n", option);
		else
			buf_printf(out, "Safe to configure: %s %s, the lower end (%s %s).\n",
				   load_text(load, a.safe), unit, option, load);
	} else {
		tell_none(f, &a, out);
	}
	for (size_t j = 0; j < f->opts->slo.n; j++)
		if (a.is_decreasing >> j & 1)
			buf_printf(out, "%s became easier with more load, so it has no capacity.\n",
				   limit_text(f, j));
	tell_doubts(f, &a, out);
	if (a.requests)
		tell_cost(f, &a, out);
}

/* ---- JSON ---- */

static void put_answer(const struct find *f, const struct capacity_answer *a, struct json_writer *w)
{
	json_key(w, "outcome"), json_put_text(w, end_names[a->end]);
	json_member_text(w, "variable", f->opts->load == CAPACITY_RATE ? "request_rate" :
			 "max_concurrency");
	json_member_f64(w, "capacity", a->load);
	json_member_array(w, "interval");
	for (int i = 0; a->has_interval && i < 2; i++)
		json_put_f64(w, i ? a->high : a->low);
	json_end_array(w);
	json_member_f64(w, "confidence", 0.95);
	json_member_f64(w, "safe", a->safe);
	json_member_f64(w, "half_width", a->half_width);
	json_member_f64(w, "precision", f->opts->precision);
	json_key(w, "is_precise"), json_put_bool(w, a->is_precise);
	json_member_text(w, "binding", a->has_interval ? limit_text(f, a->binding) : NULL);
	json_member_f64(w, "slope", a->slope);
	json_member_f64(w, "slow_factor", a->slow_factor);
	json_member_f64(w, "passing", a->passing > 0 ? a->passing : NAN);
	json_member_f64(w, "failing", a->failing);
	json_key(w, "requests"), json_put_int(w, (int64_t)a->requests);
	json_member_f64(w, "spent_s", a->spent_s);
	json_member_f64(w, "requests_more", a->requests_more);
	json_member_f64(w, "seconds_more", a->seconds_more);
	json_key(w, "levels_degraded"), json_put_int(w, f->doubts.degraded);
	json_key(w, "levels_invalid"), json_put_int(w, f->doubts.invalid);
	json_member_text(w, "doubt", f->doubts.code ? f->doubts.why : NULL);
}

static void put_limits(const struct find *f, const struct capacity_answer *a, struct json_writer *w)
{
	const struct slo *slo = &f->opts->slo;

	json_member_array(w, "limits");
	for (size_t j = 0; j <= slo->n; j++) {
		bool is_share = j == slo->n || !slo->limit[j].is_mean;

		json_begin_object(w);
		json_key(w, "limit"), json_put_text(w, limit_text(f, j));
		json_member_f64(w, "share_allowed", !is_share ? NAN : j < slo->n ? 1 - slo->limit[j].quantile
								    : failed_share(f->opts));
		json_key(w, "binds"), json_put_bool(w, a->has_interval && a->binding == j);
		json_key(w, "is_broken_unloaded"), json_put_bool(w, a->broken >> j & 1);
		json_key(w, "is_easier_with_load"), json_put_bool(w, a->is_decreasing >> j & 1);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_points(const struct find *f, struct json_writer *w)
{
	size_t n;
	const struct capacity_point *p = capacity_points(f->search, &n);

	json_member_array(w, "points");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		json_member_f64(w, "load", p[i].load);
		json_key(w, "kind"), json_put_text(w, p[i].is_bracketing ? "bracket" : "level");
		json_key(w, "passed"), json_put_bool(w, p[i].has_passed);
		json_key(w, "carried"), json_put_bool(w, p[i].is_carried);
		json_key(w, "stopped"), json_put_bool(w, p[i].is_cut);
		json_key(w, "requests"), json_put_int(w, (int64_t)p[i].attempted);
		json_key(w, "failed"), json_put_int(w, (int64_t)p[i].failed);
		json_member_f64(w, "spent_s", p[i].spent_s);
		json_member_array(w, "limits");
		for (size_t j = 0; j <= f->opts->slo.n; j++) {
			const struct fit_level *l = &p[i].limit[j];
			bool is_mean = j < f->opts->slo.n && f->opts->slo.limit[j].is_mean;

			json_begin_object(w);
			if (is_mean) {
				json_member_f64(w, "mean_over_limit", l->se > 0 ? exp(l->y) : NAN);
				json_member_f64(w, "error", l->se > 0 ? l->se : NAN);
			} else {
				json_member_f64(w, "requests", l->n);
				json_member_f64(w, "slow", l->slow);
			}
			json_end_object(w);
		}
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}

static double curve_load(const struct capacity_answer *a, size_t i)
{
	return a->load * exp(CURVE_REACH * (2.0 * (double)i / (CURVE_POINTS - 1) - 1));
}

/* Per limit, that on failures last: expected share of slow requests, of a mean value / limit. */
static void put_curve(const struct find *f, const struct capacity_answer *a, struct json_writer *w)
{
	json_member_array(w, "curve");
	for (size_t i = 0; a->has_interval && i < CURVE_POINTS; i++) {
		json_begin_object(w);
		json_member_f64(w, "load", curve_load(a, i));
		json_member_array(w, "limits");
		for (size_t j = 0; j <= f->opts->slo.n; j++) {
			double y = capacity_curve_at(f->search, j, curve_load(a, i));

			if (isfinite(y))
				json_put_f64(w, y);
			else
				json_put_null(w);
		}
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}

void find_put(const struct find *f, struct json_writer *w)
{
	struct capacity_answer a = capacity_answer(f->search);

	put_answer(f, &a, w);
	put_limits(f, &a, w);
	put_points(f, w);
	put_curve(f, &a, w);
}

/* ---- the figure ---- */

static double drawn_value(const struct find *f, const struct capacity_point *p, size_t j)
{
	const struct fit_level *l = &p->limit[j];

	if (j < f->opts->slo.n && f->opts->slo.limit[j].is_mean)
		return l->se > 0 ? exp(l->y) : NAN;
	return l->n > 0 ? 100 * l->slow / l->n : NAN;
}

int find_draw(const struct find *f, const char *stem, struct err *e)
{
	struct capacity_answer a = capacity_answer(f->search);
	const struct slo *slo = &f->opts->slo;
	size_t j = a.binding < slo->n ? a.binding : slo->n, n, shown = 0;
	const struct capacity_point *p = capacity_points(f->search, &n);
	bool is_mean = j < slo->n && slo->limit[j].is_mean;
	double x[CURVE_POINTS], y[CURVE_POINTS], scale = is_mean ? 1 : 100;
	double *at = mem_array(n + 1, sizeof(*at)), *value = mem_array(n + 1, sizeof(*value));
	struct figure_curve curve[2] = {
		{ .style = FIGURE_LINE, .n = CURVE_POINTS, .x = x, .y = y, .title = "fitted curve" },
		{ .style = FIGURE_POINTS, .look.color = 1, .x = at, .y = value,
		  .title = "measured levels" },
	};
	struct figure_limit line[] = {
		{ .at = is_mean ? 1 : 100 * (j < slo->n ? 1 - slo->limit[j].quantile
							: failed_share(f->opts)),
		  .title = limit_text(f, j) },
		{ .at = a.load, .is_vertical = true, .title = "capacity" },
		{ .at = a.low, .is_vertical = true }, { .at = a.high, .is_vertical = true },
	};
	struct figure_panel panel = { .curve = curve, .n_curves = 2, .limit = line, .n_limits = 4 };
	struct figure fig = { .x_label = find_unit(f->opts->load), .panel = &panel, .rows = 1,
			      .cols = 1, .y_label = is_mean ? "mean / limit" : "slow requests (%)",
			      .title = "Capacity within limits" };
	int rc;

	for (size_t i = 0; i < CURVE_POINTS; i++) {
		x[i] = curve_load(&a, i);
		y[i] = scale * capacity_curve_at(f->search, j, x[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (!p[i].is_bracketing && isfinite(drawn_value(f, &p[i], j))) {
			at[shown] = p[i].load;
			value[shown++] = drawn_value(f, &p[i], j);
		}
	curve[1].n = shown;
	rc = gnuplot_figure(&fig, stem, GNUPLOT_PNG, 0, NULL, e);
	free(at);
	free(value);
	return rc;
}

#define WARMUP_S 2.0

/* Keeps the worst: one that fails, else one that is open. */
static void worsen(enum holds *all, enum holds one)
{
	if (one == HOLDS_FAILS || (one == HOLDS_OPEN && *all == HOLDS_PASSES))
		*all = one;
}

/* Requests of a run that decides; its warm-up takes no larger part of them. 0: not known. */
static double requests_needed(const struct holds_answer *a, const struct level *l)
{
	if (a->verdict != HOLDS_OPEN || !isfinite(a->requests_more) || a->requests_more <= 0)
		return 0;
	return ceil((double)l->requests * (1 + a->requests_more / (double)l->attempted));
}

/* What is known of all limits of one run. */
struct holding {
	enum holds verdict;
	double needed;      /* requests that decide every open limit for which that is known */
	bool has_unknown;   /* an open limit for which it is not: exactly at the limit */
	bool is_unmeasured; /* a limit on what no answer has */
};

static void tell_verdict(struct holding *h, const struct holds_answer *a, const struct level *l,
			 struct buf *out)
{
	static const char *const words[] = {
		[HOLDS_PASSES] = "holds", [HOLDS_FAILS] = "does not hold",
		[HOLDS_OPEN] = "not enough requests",
	};
	double needed = requests_needed(a, l);

	buf_printf(out, "%s.\n", words[a->verdict]);
	h->needed = fmax(h->needed, needed);
	h->has_unknown |= a->verdict == HOLDS_OPEN && needed <= 0;
	worsen(&h->verdict, a->verdict);
}

/* Answers of one token have no TPOT: more of them decide nothing. */
static bool tell_unmeasured(struct holding *h, const char *text, const struct level *l, size_t j,
			    struct buf *out)
{
	if (level_count(l, j).n > 0)
		return false;
	buf_printf(out, "  %s: no answer has a value of it.\n", text);
	worsen(&h->verdict, HOLDS_OPEN);
	h->is_unmeasured = true;
	return true;
}

static void tell_share(struct holding *h, const char *text, double quantile, const struct level *l,
		       size_t j, struct buf *out)
{
	struct level_count c = level_count(l, j);
	struct holds_answer a = holds_share(c.n, c.slow, level_dispersion_joined(l, j), quantile);

	buf_printf(out, "  %s: %.0f of %.0f request%s %s beyond it (%.2f %%, %.3g %% allowed): ", text,
		   c.slow, c.n, c.n == 1 ? "" : "s", c.slow == 1 ? "is" : "are",
		   c.n > 0 ? 100 * c.slow / c.n : 0, 100 * (1 - quantile));
	tell_verdict(h, &a, l, out);
}

static void tell_mean(struct holding *h, const struct slo_limit *limit, const struct level *l,
		      size_t j, struct buf *out)
{
	struct holds_answer a = holds_mean(l, j, limit->limit_s, false);

	buf_printf(out, "  %s: mean %.4g ms: ", limit->text, 1000 * level_mean(l, j).mean);
	tell_verdict(h, &a, l, out);
}

/* One number that is enough for all limits; none where one of them already fails. */
static void tell_needed(const struct holding *h, const struct level *l, struct buf *out)
{
	if (h->verdict == HOLDS_OPEN && h->needed > 0 && !h->is_unmeasured)
		buf_printf(out, "  About %.0f more requests decide %s (--num-prompts %.0f).\n",
			   h->needed - (double)l->requests, h->has_unknown ?
			   "it, but for a limit that is met almost exactly" : "it", h->needed);
}

static enum holds tell_limits(const struct slo *slo, const struct serve_opts *o,
			      const struct level *l, struct buf *out)
{
	struct holding h = { .verdict = HOLDS_PASSES };

	for (size_t j = 0; j < slo->n; j++)
		if (tell_unmeasured(&h, slo->limit[j].text, l, j, out))
			continue;
		else if (slo->limit[j].is_mean)
			tell_mean(&h, &slo->limit[j], l, j, out);
		else
			tell_share(&h, slo->limit[j].text, slo->limit[j].quantile, l, j, out);
	if (l->failed)
		tell_share(&h, "failed requests", 1 - CAPACITY_FAILED_SHARE, l, slo->n, out);
	if (!isinf(o->request_rate) && !holds_carried(l)) {
		worsen(&h.verdict, HOLDS_FAILS);
		buf_add_text(out, "  The offered rate was not carried.\n");
	} else if (!isinf(o->request_rate) && h.verdict == HOLDS_PASSES && holds_ttft_grows(l)) {
		worsen(&h.verdict, HOLDS_OPEN);
		buf_add_text(out, "  TTFT still grew while the run lasted; give it more --num-prompts.\n");
	}
	tell_needed(&h, l, out);
	return h.verdict;
}

static const struct trust_reason *spoiling(const struct slo *slo, const struct trust *t)
{
	for (size_t i = 0; i < t->n_reasons; i++)
		if (t->reason[i].level == TRUST_INVALID &&
		    t->reason[i].spoils & slo_trust_bits(slo) && !find_is_by_load(&t->reason[i]))
			return &t->reason[i];
	return NULL;
}

enum holds hold_tell(const struct slo *slo, const struct serve_opts *o, const struct point *p,
		     const struct scored *scored, struct buf *out)
{
	static const char *const words[] = {
		[HOLDS_PASSES] = "holds within the limits",
		[HOLDS_FAILS] = "does not hold within the limits",
		[HOLDS_OPEN] = "holds within the limits cannot be decided yet",
	};
	char load[FMT_F64_BYTES + sizeof(" conversations/s")] = "This load";
	const struct trust_reason *spoilt = spoiling(slo, &scored->trust);
	struct buf limits = { 0 };
	struct level l = { .load = o->request_rate };
	bool is_closed = isinf(o->request_rate) || p->plan.n != p->plan.n_roots;
	enum holds all;

	find_level_of(slo, p, &scored->metrics, is_closed, WARMUP_S, INFINITY, &l);
	all = l.attempted ? tell_limits(slo, o, &l, &limits) : HOLDS_OPEN;
	if (spoilt) {
		buf_reset(&limits);
		buf_printf(&limits, "  %s\n", spoilt->text);
		all = HOLDS_OPEN;
	}
	if (!isinf(o->request_rate))
		snprintf(load, sizeof(load), "%.4g %s/s", o->request_rate,
			 p->workload.sessions ? "conversations" : "requests");
	else if (all == HOLDS_OPEN)
		load[0] = 't';
	buf_printf(out, "%s%s %s, by %llu request%s after the warm-up:\n",
		   all == HOLDS_OPEN ? "Whether " : "", load, words[all],
		   (unsigned long long)l.attempted, l.attempted == 1 ? "" : "s");
	buf_add_str(out, buf_str(&limits));
	buf_release(&limits);
	return all;
}
