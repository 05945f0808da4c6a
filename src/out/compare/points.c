/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - see points.h. */
#include "out/compare/points.h"

#include <math.h>
#include <stdint.h>

#include "client/metrics/trust.h"
#include "core/base/str.h"
#include "results/read/frame.h"
#include "results/read/kind.h"

#define WHOLE_MAX 1e15 /* below it a whole number has no exponent */
#define LEVEL_NAMES_MAX 3
#define RATE_CARRIED 0.9 /* of a rate; the end of a short run is slower than the rest */

/* NAN: unknown. */
static double number(const struct points_line *line, const char *key)
{
	double v;

	if (!line->record || !frame_number(frame_value(line->record, str_of(key)), &v))
		return NAN;
	return !isfinite(v) || result_is_unmeasured(line->record, str_of(key)) ? NAN : v;
}

static bool is_known(const struct points_table *p, const char *key)
{
	for (size_t i = 0; i < p->n; i++)
		if (!isnan(number(&p->line[i], key)))
			return true;
	return false;
}

static const char *number_text(double v, int digits, struct arena *a)
{
	char text[FMT_F64_BYTES];

	if (isnan(v))
		return "";
	if (digits < 0 && v == floor(v) && fabs(v) < WHOLE_MAX)
		return arena_printf(a, "%.0f", v);
	return digits < 0 ? arena_text(a, str_of(fmt_f64(text, v)))
			  : arena_printf(a, "%.*f", digits, v);
}

/* A search for the largest load has no verdict, but an interval, and levels that have verdicts. */
static void add_search(const struct json_value *record, struct buf *out)
{
	const struct json_value *capacity = frame_value(record, STR("capacity"));
	double width = json_real(json_get(capacity, "half_width"), NAN);
	long long doubtful = (long long)json_int(json_get(capacity, "levels_degraded"), 0);

	if (isnan(width))
		return;
	if (json_bool(json_get(capacity, "is_precise"), false))
		buf_add_text(out, "precise");
	else if (width <= json_real(json_get(capacity, "precision"), 0))
		buf_add_text(out, "too few levels");
	else
		buf_printf(out, "+-%.0f %%, not precise", 100 * width);
	if (isnan(json_real(json_get(capacity, "safe"), NAN)))
		buf_add_text(out, ", no measured load held");
	if (doubtful)
		buf_printf(out, ", %lld level%s DEGRADED", doubtful, doubtful == 1 ? "" : "s");
}

static void add_verdict(const struct points_line *line, struct arena *a, struct grid *out)
{
	struct buf text = { 0 };

	if (line->record)
		result_verdict_text(line->record, &text);
	else
		buf_add_text(&text, line->state ? line->state : "");
	if (line->record && !text.len)
		add_search(line->record, &text);
	grid_add(out, arena_take(a, &text).p);
}

void points_grid(const struct points_table *p, int digits, struct arena *a, struct grid *out)
{
	grid_begin(out, a);
	grid_add(out, p->name_title);
	for (size_t k = 0; k < p->n_params; k++)
		grid_add(out, p->param[k]);
	for (size_t k = 0; k < p->n_columns; k++)
		if (is_known(p, p->column[k].key))
			grid_add(out, p->column[k].title);
	if (p->more_title)
		grid_add(out, p->more_title);
	grid_add(out, "Verdict");
	grid_end_heads(out);
	for (size_t i = 0; i < p->n; i++) {
		const struct points_line *line = &p->line[i];

		grid_add(out, line->name);
		for (size_t k = 0; k < p->n_params; k++)
			grid_add(out, line->value[k]);
		for (size_t k = 0; k < p->n_columns; k++) {
			double v = number(line, p->column[k].key);

			if (is_known(p, p->column[k].key))
				grid_add(out, number_text(v, digits, a));
		}
		if (p->more_title)
			grid_add(out, line->more ? line->more : "");
		add_verdict(line, a, out);
	}
}

struct points_best points_best(const struct points_table *p, const char *key)
{
	struct points_best best = { .at = SIZE_MAX, .leader = SIZE_MAX, .value = -INFINITY,
				    .leader_value = -INFINITY };

	for (size_t i = 0; i < p->n; i++) {
		double v = number(&p->line[i], key);
		bool is_invalid;

		if (isnan(v))
			continue;
		is_invalid = result_verdict(p->line[i].record, str_of(key)) == RESULT_INVALID;
		best.n++;
		best.n_invalid += is_invalid;
		if (is_invalid && v >= best.leader_value) {
			best.leader_value = v;
			best.leader = i;
		} else if (!is_invalid && v >= best.value) {
			best.value = v;
			best.at = i;
		}
	}
	if (best.at != SIZE_MAX && best.leader_value <= best.value)
		best.leader = SIZE_MAX;
	return best;
}

/* NAN: unknown or INVALID. */
static double counted(const struct points_line *line, const char *key)
{
	double v = number(line, key);

	return !isnan(v) && result_verdict(line->record, str_of(key)) == RESULT_INVALID ? NAN : v;
}

static bool is_repeat(const struct points_line *a, const struct points_line *b)
{
	return a->group && b->group && strcmp(a->group, b->group) == 0;
}

/* For metrics with an interval: how far the best is ahead of the next one. */
static void say_lead(const struct points_table *p, const struct points_best *best, const char *key,
		     double low, const char *high, struct buf *out)
{
	const struct points_line *next = NULL;

	for (size_t i = 0; i < p->n; i++)
		if (i != best->at && !is_repeat(&p->line[i], &p->line[best->at]) &&
		    !isnan(counted(&p->line[i], key)) &&
		    (!next || counted(&p->line[i], key) > number(next, key)))
			next = &p->line[i];
	if (next)
		buf_printf(out, "It is %.3g %% more than at %s; the 95 %% intervals %s\n",
			   100 * (best->value / number(next, key) - 1), next->name,
			   low > number(next, high)
			   ? "do not overlap" : "overlap, so this is not certain");
}

static bool is_level(const struct points_table *p, const struct points_best *best, const char *key,
		     size_t line)
{
	return counted(&p->line[line], key) >= best->value * (1 - POINTS_LEVEL);
}

/* For others: which others single runs do not tell apart from it, each with its repeats once. */
static void say_level(const struct points_table *p, const struct points_best *best, const char *key,
		      struct buf *out)
{
	struct buf names = { 0 };
	bool has_repeats = false;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct points_line *line = &p->line[i];
		bool is_own = is_repeat(line, &p->line[best->at]);
		bool is_known = i == best->at || is_own;

		has_repeats |= is_own && i != best->at;
		for (size_t k = 0; k < i; k++)
			is_known |= is_repeat(line, &p->line[k]) && is_level(p, best, key, k);
		if (!is_known && is_level(p, best, key, i) && n++ < LEVEL_NAMES_MAX)
			buf_printf(&names, "%s%s", n > 1 ? ", " : "",
				   line->group ? line->group : line->name);
	}
	if (n > LEVEL_NAMES_MAX)
		buf_printf(&names, " and %zu more", n - LEVEL_NAMES_MAX);
	if (n)
		buf_printf(out, "Within %.0f %% of it: %s. Two runs of the same server can differ as "
			   "much%s\n", 100 * POINTS_LEVEL, names.data, has_repeats && p->has_sessions
			   ? "; bench compare judges by the repeats"
			   : ", so this order is not certain");
	buf_release(&names);
}

/*
 * For a load of which three values were measured, the best at the highest: that it is where the
 * measurement ended, not where the server's throughput does. A rate far above the throughput has
 * shown the server's.
 */
static void say_edge(const struct points_table *p, const struct points_best *best, const char *key,
		     const char *load, const char *what, struct buf *out)
{
	double at = number(&p->line[best->at], load), below = -INFINITY, most = -INFINITY;
	double lowest = INFINITY;

	for (size_t i = 0; i < p->n; i++) {
		double v = number(&p->line[i], load);

		if (p->line[i].record && !(v <= at))
			return;
		below = v < at ? fmax(below, v) : below;
		lowest = fmin(lowest, v);
	}
	for (size_t i = 0; i < p->n; i++)
		if (number(&p->line[i], load) == below)
			most = fmax(most, counted(&p->line[i], key));
	if (strcmp(load, "request_rate") == 0 &&
	    number(&p->line[best->at], "request_throughput") < RATE_CARRIED * at)
		return;
	if (lowest < below && isfinite(most) && most <= best->value * (1 - POINTS_LEVEL))
		buf_printf(out, "The %s still rises at the highest %s measured (+%.3g %% from %g to %g), "
			   "so a higher one may give more\n", what, load,
			   100 * (best->value / most - 1), below, at);
}

void points_say_best(const struct points_table *p, const struct points_best *best, const char *key,
		     const char *what, const char *unit, struct arena *a, struct buf *out)
{
	double low, failed;

	if (!best->n)
		return;
	if (best->at == SIZE_MAX) {
		buf_printf(out, "No highest %s: %s is INVALID in all %zu results\n", what, key, best->n);
		return;
	}
	failed = number(&p->line[best->at], "failed");
	failed /= failed + number(&p->line[best->at], "completed");
	buf_printf(out, "Highest %s: %.2f %s at %s", what, best->value, unit, p->line[best->at].name);
	if (result_verdict(p->line[best->at].record, str_of(key)) == RESULT_DEGRADED)
		buf_add_text(out, failed > TRUST_FAILED_DEGRADED
			     ? arena_printf(a, " (DEGRADED: %.1f %% of its requests failed)", 100 * failed)
			     : " (DEGRADED)");
	buf_add_char(out, '\n');
	low = number(&p->line[best->at], arena_printf(a, "%s_low", key));
	if (isnan(low)) {
		say_level(p, best, key, out);
		say_edge(p, best, key, "max_concurrency", what, out);
		say_edge(p, best, key, "request_rate", what, out);
	} else {
		say_lead(p, best, key, low, arena_printf(a, "%s_high", key), out);
	}
	if (!best->n_invalid)
		return;
	buf_printf(out, "Left out: %zu of %zu results, in which %s is INVALID; ", best->n_invalid,
		   best->n, key);
	if (best->leader == SIZE_MAX)
		buf_add_text(out, "none of them would have led\n");
	else
		buf_printf(out, "%s would have led with %.2f %s\n", p->line[best->leader].name,
			   best->leader_value, unit);
}
