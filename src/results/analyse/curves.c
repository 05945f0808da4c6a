/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curves.c - the performance chart: the configurations of one workload as lines over their loads,
 * the frontier of each color and of all, and a sentence that says which color leads where.
 *
 * A color leads at x when its best y among its points at x or better is the best of all colors:
 * steps between measured points, without interpolation. Colors are level with the best within 2 %
 * of both axes, or where the ranges of the medians of repeats overlap, as on Overview.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/stats/curve.h"
#include "results/analyse/analyse_internal.h"

#define POINTS_SHOWN 2000
#define COMMON_SHOWN 6
#define RANGES_SAID 3
#define LEVEL 0.02
#define LEADERS_MAX 64        /* colors that the sentence names: one bit each */
#define READING_PART 4        /* the reading line is at a quarter of what all colors reach */

enum { X, Y, TTFT, TTFT_P99, E2EL, METRICS };

struct drawn {
	const struct setup_point *p;
	struct folded at[2];
	size_t color;
	bool is_frontier, is_best, is_degraded, is_shown;
	bool is_invalid;           /* of the INVALID runs there: not on frontiers or in sentences */
};

struct curves {
	const struct analyse_request *r;
	struct setups s;
	double sign[2];            /* 1: more is better, -1: less is */
	bool *keep, *is_invalid;   /* of each row; is_invalid: has both numbers, one is INVALID */
	bool has_invalid;          /* also draw INVALID runs */
	struct setup_point *point;
	size_t n_points;
	struct drawn *drawn;       /* points with both metrics, by line and load */
	size_t n_drawn, n_shown;
	double at;                 /* x of the reading line; NAN: none */
	size_t invalid, missing, older;
	bool would_lead;
	struct notes notes;
};

/* ---- the request ---- */

static int read_axis(const struct curves *c, const char *key, const char *otherwise,
		     struct str *out, struct err *e)
{
	const struct json_value *v = json_get(c->r->body, key);

	*out = str_of(otherwise);
	return !v || v->kind == JSON_NULL ? 0 : parts_metric(c->r, key, out, e);
}

static int read_setups(struct curves *c, const struct str axis[2], struct err *e)
{
	struct str metric[METRICS] = {
		[X] = axis[X], [Y] = axis[Y], [TTFT] = STR("median_ttft_ms"),
		[TTFT_P99] = STR("p99_ttft_ms"), [E2EL] = STR("median_e2el_ms"),
	};

	if (setups_read(c->r, metric, METRICS, axis[Y], "color", &c->s, e) < 0)
		return -1;
	for (size_t k = 0; k < 2; k++) {
		if (str_is(axis[k], "usd_per_m_output") && setups_price(&c->s, k, e) < 0)
			return -1;
		setups_power(&c->s, k);
	}
	return 0;
}

static bool has_any(const struct setups *s, size_t metric)
{
	for (size_t i = 0; i < s->rows.n; i++)
		if (!isnan(setups_metric(s, metric, i)))
			return true;
	return false;
}

/* Without a known number of GPUs the default y axis is their total throughput. */
static int read_request(struct curves *c, struct err *e)
{
	const struct json_value *y = json_get(c->r->body, "y");
	struct str axis[2];

	if (read_axis(c, "x", "tokens_per_s_per_user", &axis[X], e) < 0 ||
	    read_axis(c, "y", "tokens_per_s_per_gpu", &axis[Y], e) < 0 ||
	    parts_number(c->r->body, "", "at", NAN, -ANALYSE_NUMBER_MAX, ANALYSE_NUMBER_MAX, &c->at,
			 e) < 0 ||
	    read_setups(c, axis, e) < 0)
		return -1;
	if ((!y || y->kind == JSON_NULL) && c->s.rows.n && !has_any(&c->s, Y)) {
		axis[Y] = STR("output_throughput");
		if (read_setups(c, axis, e) < 0)
			return -1;
	}
	for (size_t k = 0; k < 2; k++)
		c->sign[k] = c->s.counting[k].better < 0 ? -1 : 1;
	return 0;
}

/* ---- points ---- */

static void judge_rows(struct curves *c)
{
	struct setups *s = &c->s;

	c->keep = arena_alloc(c->r->arena, s->rows.n + 1);
	c->is_invalid = arena_alloc(c->r->arena, s->rows.n + 1);
	for (size_t i = 0; i < s->rows.n; i++) {
		enum counts counts[2];

		for (size_t k = 0; k < 2; k++)
			counts[k] = counting_see(&s->counting[k], &s->rows.verdicts, i,
						 setups_metric(s, k, i));
		c->keep[i] = counts[0] == COUNTS && counts[1] == COUNTS;
		c->is_invalid[i] = !c->keep[i] &&
				   (counts[0] == COUNTS || counts[0] == COUNTS_INVALID) &&
				   (counts[1] == COUNTS || counts[1] == COUNTS_INVALID);
		c->invalid += c->is_invalid[i];
		c->missing += !c->keep[i] && !c->is_invalid[i];
	}
}

/* Whether a metric is DEGRADED in one of its runs. */
static bool is_spoiled(const struct curves *c, const struct setup_point *p, size_t metric)
{
	const struct setups *s = &c->s;

	for (size_t i = 0; i < p->n; i++)
		if (c->keep[p->member[i]] &&
		    counting_is_degraded(&s->counting[metric], &s->rows.verdicts, p->member[i]))
			return true;
	return false;
}

/* The rows of its point that it is drawn of. */
static const bool *rows_of(const struct curves *c, const struct drawn *d)
{
	return d->is_invalid ? c->is_invalid : c->keep;
}

static void draw_point(struct curves *c, const struct setup_point *p, bool is_invalid)
{
	struct drawn *d = &c->drawn[c->n_drawn];

	*d = (struct drawn){ .p = p, .color = c->s.color_of[p->member[0]],
			     .is_invalid = is_invalid };
	for (size_t k = 0; k < 2; k++)
		d->at[k] = setups_fold(&c->s, p, k, rows_of(c, d));
	if (!d->at[0].n)
		return;
	d->is_degraded = !is_invalid && (is_spoiled(c, p, X) || is_spoiled(c, p, Y));
	c->n_drawn++;
}

static void draw(struct curves *c)
{
	c->point = setups_points(&c->s, c->keep, &c->n_points);
	c->drawn = arena_alloc(c->r->arena, (2 * c->n_points + 1) * sizeof(*c->drawn));
	for (size_t i = 0; i < c->n_points; i++) {
		c->older += c->point[i].n_older;
		draw_point(c, &c->point[i], false);
		if (c->has_invalid)
			draw_point(c, &c->point[i], true);
	}
}

/* Whether an INVALID point would be on the frontier of all. */
static bool invalid_would_lead(const struct curves *c)
{
	struct arena *a = c->r->arena;
	size_t n = 0, valid = 0;
	double *x = arena_alloc(a, (2 * c->n_points + 1) * sizeof(*x));
	double *y = arena_alloc(a, (2 * c->n_points + 1) * sizeof(*y));
	bool *is_frontier = arena_alloc(a, 2 * c->n_points + 1);
	bool would_lead = false;

	for (size_t i = 0; c->invalid && i < c->n_points; i++) {
		struct folded at[2];

		for (size_t k = 0; k < 2; k++)
			at[k] = setups_fold(&c->s, &c->point[i], k, c->is_invalid);
		if (!at[0].n)
			continue;
		x[n] = c->sign[X] * at[X].value;
		y[n++] = c->sign[Y] * at[Y].value;
	}
	if (!n)
		return false;
	for (size_t i = 0; i < c->n_drawn; i++) {
		if (c->drawn[i].is_invalid)
			continue;
		x[n + valid] = c->sign[X] * c->drawn[i].at[X].value;
		y[n + valid++] = c->sign[Y] * c->drawn[i].at[Y].value;
	}
	pareto_frontier(x, y, n + valid, PARETO_STRICT, is_frontier);
	for (size_t i = 0; i < n; i++)
		would_lead |= is_frontier[i];
	return would_lead;
}

static void find_frontiers(struct curves *c)
{
	struct arena *a = c->r->arena;
	size_t n = c->n_drawn, *of = arena_alloc(a, (n + 1) * sizeof(*of));
	double *x = arena_alloc(a, (n + 1) * sizeof(*x)), *y = arena_alloc(a, (n + 1) * sizeof(*y));
	bool *is_frontier = arena_alloc(a, n + 1);

	/* The last turn is that of all colors. */
	for (size_t color = 0; color <= c->s.n_colors; color++) {
		size_t count = 0;

		for (size_t i = 0; i < n; i++) {
			if (c->drawn[i].is_invalid ||
			    (color < c->s.n_colors && c->drawn[i].color != color))
				continue;
			of[count] = i;
			x[count] = c->sign[X] * c->drawn[i].at[X].value;
			y[count++] = c->sign[Y] * c->drawn[i].at[Y].value;
		}
		pareto_frontier(x, y, count, PARETO_STRICT, is_frontier);
		for (size_t i = 0; i < count; i++)
			if (color < c->s.n_colors)
				c->drawn[of[i]].is_frontier = is_frontier[i];
			else
				c->drawn[of[i]].is_best = is_frontier[i];
	}
}

/* Frontiers are whole; of the other points every k-th is shown. */
static void choose_shown(struct curves *c)
{
	size_t stride = (c->n_drawn + POINTS_SHOWN - 1) / POINTS_SHOWN;

	for (size_t i = 0; i < c->n_drawn; i++) {
		struct drawn *d = &c->drawn[i];

		d->is_shown = d->is_frontier || d->is_best || i % stride == 0;
		c->n_shown += d->is_shown;
	}
}

/* ---- which color leads where ---- */

static bool is_better(const struct curves *c, size_t axis, double a, double b)
{
	return isnan(b) || c->sign[axis] * a > c->sign[axis] * b;
}

/* The best y of a color at x or better, as measured; its value is NAN: it has none there. */
static struct folded best_at(const struct curves *c, size_t color, double x)
{
	struct folded best = { .value = NAN };

	for (size_t i = 0; i < c->n_drawn; i++) {
		const struct drawn *d = &c->drawn[i];

		if (d->color == color && d->is_frontier && !is_better(c, X, x, d->at[X].value) &&
		    is_better(c, Y, d->at[Y].value, best.value))
			best = d->at[Y];
	}
	return best;
}

static int by_first(const void *a, const void *b)
{
	const double *p = a, *q = b;

	return (p[0] > q[0]) - (p[0] < q[0]);
}

/*
 * A color's y on a curve through its frontier, which is monotone between neighbours
 * (core/stats/curve.h); NAN outside the x that were measured.
 */
static double between_at(const struct curves *c, size_t color, double at)
{
	struct arena *a = c->r->arena;
	double (*p)[2] = arena_alloc(a, (c->n_drawn + 1) * sizeof(*p));
	double *x = arena_alloc(a, (c->n_drawn + 1) * sizeof(*x));
	double *y = arena_alloc(a, (c->n_drawn + 1) * sizeof(*y));
	double *slope = arena_alloc(a, (c->n_drawn + 1) * sizeof(*slope));
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < c->n_drawn; i++) {
		if (c->drawn[i].color != color || !c->drawn[i].is_frontier)
			continue;
		p[n][0] = c->drawn[i].at[X].value;
		p[n++][1] = c->drawn[i].at[Y].value;
	}
	qsort(p, n, sizeof(*p), by_first);
	for (size_t i = 0; i < n; i++) {
		if (kept && !(p[i][0] > x[kept - 1]))
			continue;
		x[kept] = p[i][0];
		y[kept++] = p[i][1];
	}
	if (!kept || !(at >= x[0] && at <= x[kept - 1]))
		return NAN;
	if (kept == 1)
		return y[0];
	monotone_slopes(x, y, kept, slope);
	return monotone_at(x, y, slope, kept, at);
}

/* A range of x with the same leaders: from its better end to the next one's. */
struct range { double from; uint64_t leaders; size_t n; };

static int by_number(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static uint64_t leaders_at(const struct curves *c, double x, size_t *leader)
{
	size_t n = c->s.n_colors < LEADERS_MAX ? c->s.n_colors : LEADERS_MAX;
	struct folded best = { .value = NAN };
	uint64_t out = 0;

	for (size_t k = 0; k < n; k++) {
		struct folded y = best_at(c, k, x);

		if (isnan(y.value) || !is_better(c, Y, y.value, best.value))
			continue;
		best = y;
		*leader = k;
	}
	for (size_t k = 0; k < n; k++) {
		struct folded y = best_at(c, k, x);
		struct folded nearby = best_at(c, k, x - c->sign[X] * LEVEL * fabs(x));

		if (setups_is_level(y, best) || setups_is_level(nearby, best) ||
		    is_better(c, Y, nearby.value + c->sign[Y] * LEVEL * fabs(best.value),
			      best.value))
			out |= 1ull << k;
	}
	return out;
}

/*
 * From the best x to the worst. is_single: one color leads in each range, and stays the leader as
 * long as it is level with the best.
 */
static struct range *ranges_of(const struct curves *c, bool is_single, size_t *n)
{
	struct arena *a = c->r->arena;
	double *x = arena_alloc(a, (c->n_drawn + 1) * sizeof(*x));
	struct range *out = arena_alloc(a, (c->n_drawn + 1) * sizeof(*out));
	size_t count = 0;

	*n = 0;
	for (size_t i = 0; i < c->n_drawn; i++)
		if (c->drawn[i].is_frontier)
			x[count++] = c->sign[X] * c->drawn[i].at[X].value;
	if (count)
		qsort(x, count, sizeof(*x), by_number);
	for (size_t i = count; i-- > 0;) {
		size_t leader = 0;
		uint64_t leaders;

		if (i + 1 < count && x[i] >= x[i + 1])
			continue;
		leaders = leaders_at(c, c->sign[X] * x[i], &leader);
		if (is_single && *n && leaders & out[*n - 1].leaders)
			leaders = out[*n - 1].leaders;
		else if (is_single)
			leaders = 1ull << leader;
		if (!*n || out[*n - 1].leaders != leaders)
			out[(*n)++] = (struct range){ c->sign[X] * x[i], leaders, 0 };
		out[*n - 1].n++;
	}
	return out;
}

/* "b200", "b200 and h200". */
static void add_leaders(struct buf *b, const struct curves *c, uint64_t leaders)
{
	size_t n = (size_t)__builtin_popcountll(leaders), seen = 0;

	for (size_t k = 0; k < c->s.n_colors && k < LEADERS_MAX; k++) {
		if (!(leaders >> k & 1))
			continue;
		buf_printf(b, "%s%s", !seen ? "" : seen + 1 == n ? " and " : ", ", c->s.legend[k].name);
		seen++;
	}
}

static const char *label_of(const struct curves *c, struct str column)
{
	struct buf b = { 0 };
	struct str out;

	column_label(column, &b);
	out = arena_take(c->r->arena, &b);
	return out.p;
}

static const char *axis_words(const struct curves *c, size_t axis)
{
	struct str column = c->s.metric[axis];
	const char *unit = column_unit(column);

	return *unit ? unit : label_of(c, column);
}

/* "b200 leads above 120 tokens/s/user, h200 from 60 to 120, and h100 below." */
static void add_ranges(struct buf *b, const struct curves *c, const struct range *range, size_t n)
{
	struct arena *a = c->r->arena;
	const char *more = c->sign[X] > 0 ? "above" : "below";
	const char *less = c->sign[X] > 0 ? "below" : "above";

	for (size_t i = 0; i < n; i++) {
		bool is_one = (range[i].leaders & (range[i].leaders - 1)) == 0;
		bool was_one = i && (range[i - 1].leaders & (range[i - 1].leaders - 1)) == 0;

		buf_add_text(b, !i ? "" : i + 1 == n && n > 2 ? ", and " : ", ");
		add_leaders(b, c, range[i].leaders);
		if (!is_one)
			buf_add_text(b, " are level");
		else if (!i || !was_one)
			buf_add_text(b, " leads");
		if (!i)
			buf_printf(b, " %s %s %s", more, setups_number(a, range[1].from), axis_words(c, X));
		else if (i + 1 == n)
			buf_printf(b, " %s", less);
		else
			buf_printf(b, " from %s to %s", setups_number(a, range[i + 1].from),
				   setups_number(a, range[i].from));
	}
	buf_add_char(b, '.');
}

/* "b200 leads at 5 of 8 values of tokens/s/user, h200 at 3." */
static void add_shares(struct buf *b, const struct curves *c, const struct range *range, size_t n)
{
	size_t total = 0, leads[LEADERS_MAX] = { 0 };

	for (size_t i = 0; i < n; i++) {
		leads[__builtin_ctzll(range[i].leaders)] += range[i].n;
		total += range[i].n;
	}
	for (size_t said = 0;; said++) {
		size_t most = 0;

		for (size_t k = 1; k < LEADERS_MAX; k++)
			if (leads[k] > leads[most])
				most = k;
		if (!leads[most])
			break;
		buf_printf(b, "%s%s%s at %zu", said ? ", " : "", c->s.legend[most].name,
			   said ? "" : " leads", leads[most]);
		if (!said)
			buf_printf(b, " of %zu measured values of %s", total, axis_words(c, X));
		leads[most] = 0;
	}
	buf_add_char(b, '.');
}

static const char *name_of(const struct curves *c, const struct drawn *d)
{
	const char *load = setups_load_text(&c->s, d->p);
	const char *name = setups_name(&c->s, d->p->member[0], "");

	if (c->s.n_colors > 1 && !*name)
		name = c->s.legend[d->color].name;
	if (!*name)
		return *load ? load : arena_printf(c->r->arena, "run %lld",
						   (long long)c->s.rows.id[d->p->member[0]]);
	return arena_printf(c->r->arena, "%s%s%s", name, *load ? " " : "", load);
}

static size_t valid_drawn(const struct curves *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_drawn; i++)
		n += !c->drawn[i].is_invalid;
	return n;
}

/* For a single color: the points at both ends of its frontier. */
static void add_ends(struct buf *b, const struct curves *c)
{
	struct arena *a = c->r->arena;
	const struct drawn *end[2] = { NULL, NULL };

	for (size_t i = 0; i < c->n_drawn; i++)
		for (size_t k = 0; k < 2; k++)
			if (c->drawn[i].is_best && is_better(c, k, c->drawn[i].at[k].value,
							     end[k] ? end[k]->at[k].value : NAN))
				end[k] = &c->drawn[i];
	assert(end[0] && end[1]);
	if (valid_drawn(c) == 1) {
		buf_printf(b, "One configuration is measured: %s %s at %s %s (%s).",
			   setups_number(a, end[Y]->at[Y].value), axis_words(c, Y),
			   setups_number(a, end[Y]->at[X].value), axis_words(c, X),
			   name_of(c, end[Y]));
		return;
	}
	buf_printf(b, "Best: %s %s with %s", setups_number(a, end[Y]->at[Y].value), axis_words(c, Y),
		   name_of(c, end[Y]));
	if (end[X] != end[Y])
		buf_printf(b, "; %s %s with %s", setups_number(a, end[X]->at[X].value),
			   axis_words(c, X), name_of(c, end[X]));
	buf_add_char(b, '.');
}

static size_t colors_drawn(const struct curves *c)
{
	size_t n = 0;

	for (size_t k = 0; k < c->s.n_colors; k++) {
		size_t i = 0;

		while (i < c->n_drawn && (c->drawn[i].color != k || c->drawn[i].is_invalid))
			i++;
		n += i < c->n_drawn;
	}
	return n;
}

static void add_leading(struct buf *b, const struct curves *c)
{
	size_t n;
	const struct range *range = ranges_of(c, false, &n);
	bool is_single = n > RANGES_SAID;

	if (is_single)
		range = ranges_of(c, true, &n);
	if (n > RANGES_SAID) {
		add_shares(b, c, range, n);
	} else if (n > 1) {
		add_ranges(b, c, range, n);
	} else {
		add_leaders(b, c, range[0].leaders);
		buf_add_text(b, range[0].leaders & (range[0].leaders - 1) ? " are level at every " :
				is_single ? " leads or is level at every " : " leads at every ");
		if (str_is(c->s.metric[X], "tokens_per_s_per_user"))
			buf_add_text(b, "speed per user.");
		else
			buf_printf(b, "measured value of %s.", axis_words(c, X));
	}
}

static void add_degraded(struct buf *b, const struct curves *c)
{
	size_t n = 0, degraded = 0;

	for (size_t i = 0; i < c->n_drawn; i++) {
		n += c->drawn[i].is_best;
		degraded += c->drawn[i].is_best && c->drawn[i].is_degraded;
	}
	if (degraded && n == 1)
		buf_add_text(b, " It is DEGRADED.");
	else if (degraded)
		buf_printf(b, " %s of the %s points that lead %s DEGRADED.",
			   arena_count(c->r->arena, degraded), arena_count(c->r->arena, n),
			   degraded == 1 ? "is" : "are");
}

static const char *sentence_of(const struct curves *c)
{
	struct buf b = { 0 };
	const char *out;

	if (!c->s.rows.n)
		buf_add_text(&b, "No run matches.");
	else if (!valid_drawn(c))
		buf_add_text(&b, c->invalid ? "No run counts for both metrics." :
					      "No run has both metrics.");
	else if (colors_drawn(c) == 1)
		add_ends(&b, c);
	else
		add_leading(&b, c);
	add_degraded(&b, c);
	if (c->would_lead)
		buf_printf(&b, " %s INVALID run%s %s, and %s would lead.",
			   arena_count(c->r->arena, c->invalid),
			   c->invalid == 1 ? " is" : "s are",
			   c->has_invalid ? "drawn as crosses" : "left out",
			   c->invalid == 1 ? "it" : "at least one");
	out = arena_text(c->r->arena, buf_str(&b));
	buf_release(&b);
	return out;
}

/* ---- the reading line ---- */

/* The largest of 1, 2 and 5 times a power of ten that is not above v. */
static double round_down(double v)
{
	double power = pow(10, floor(log10(v)));

	return (v / power >= 5 ? 5 : v / power >= 2 ? 2 : 1) * power;
}

static double round_up(double v)
{
	double down = round_down(v);

	if (down >= v)
		return down;
	return down * (round_down(down * 2) > down ? 2 : 2.5);
}

/* An x at which every color has points that are better. */
static double usual_reading(const struct curves *c)
{
	double least = NAN;

	for (size_t k = 0; k < c->s.n_colors; k++) {
		double best = NAN;

		for (size_t i = 0; i < c->n_drawn; i++)
			if (c->drawn[i].color == k && !c->drawn[i].is_invalid &&
			    is_better(c, X, c->drawn[i].at[X].value, best))
				best = c->drawn[i].at[X].value;
		if (!isnan(best) && (isnan(least) || is_better(c, X, least, best)))
			least = best;
	}
	if (!(least > 0))
		return NAN;
	return c->sign[X] > 0 ? round_down(least / READING_PART) : round_up(least * READING_PART);
}

/* ---- out ---- */

static void put_tip(struct json_writer *w, const char *label, const char *value)
{
	json_begin_object(w);
	json_member_text(w, "label", label);
	json_member_text(w, "value", value);
	json_end_object(w);
}

static void put_tip_metric(const struct curves *c, struct json_writer *w, const struct drawn *d,
			   size_t metric)
{
	struct folded f = setups_fold(&c->s, d->p, metric, rows_of(c, d));
	struct str column = c->s.metric[metric];
	const char *unit = column_unit(column);

	if (!isnan(f.value))
		put_tip(w, label_of(c, column), arena_printf(c->r->arena, "%s%s%s",
			setups_number(c->r->arena, f.value), *unit ? " " : "", unit));
}

static void put_tips(const struct curves *c, struct json_writer *w, const struct drawn *d)
{
	static const struct { const char *label; enum setup_fact fact; } from[] = {
		{ "GPUs known from", SETUP_GPUS_FROM }, { "Speed known from", SETUP_SPEED_FROM },
	};
	const struct setups *s = &c->s;
	struct arena *a = c->r->arena;
	size_t row = d->p->member[0];

	json_member_array(w, "tip");
	for (size_t i = 0; i < METRICS; i++) {
		bool is_axis = false;

		for (size_t k = 0; k < 2 && i >= 2; k++)
			is_axis |= str_eq(s->metric[i], s->metric[k]);
		if (!is_axis)
			put_tip_metric(c, w, d, i);
	}
	for (size_t i = 0; i < s->n_versions; i++)
		put_tip(w, label_of(c, s->version[i]->column),
			parts_cell_text(a, setups_value(s, s->version[i], row)));
	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++) {
		struct value v = setups_fact(s, from[i].fact, row);

		if (v.kind == VALUE_TEXT)
			put_tip(w, from[i].label, parts_cell_text(a, v));
	}
	if (s->is_assumed && s->is_assumed[row])
		put_tip(w, "GPU power", "of its boards (assumed, not measured)");
	put_tip(w, "Runs", arena_count(a, d->at[X].n));
	if (d->p->n_older)
		put_tip(w, "Runs of older versions", arena_count(a, d->p->n_older));
	for (size_t k = 0; d->is_degraded && k < 2; k++)
		if (is_spoiled(c, d->p, k))
			put_tip(w, "DEGRADED", axis_words(c, k));
	json_end_array(w);
}

static void put_point(const struct curves *c, struct json_writer *w, const struct drawn *d)
{
	static const char *const key[2][3] = { { "x", "x_min", "x_max" }, { "y", "y_min", "y_max" } };
	size_t shown = 0, typical = setups_typical(&c->s, d->p, 1, rows_of(c, d));

	json_begin_object(w);
	json_member_array(w, "ids"); /* the first is the one that pages open */
	if (typical < d->p->n) {
		json_put_int(w, c->s.rows.id[d->p->member[typical]]);
		shown++;
	}
	for (size_t i = 0; i < d->p->n && shown < ANALYSE_IDS_SHOWN_MAX; i++)
		if (i != typical && rows_of(c, d)[d->p->member[i]]) {
			json_put_int(w, c->s.rows.id[d->p->member[i]]);
			shown++;
		}
	json_end_array(w);
	for (size_t k = 0; k < 2; k++) {
		parts_put_number(w, key[k][0], d->at[k].value);
		parts_put_number(w, key[k][1], d->at[k].sure_low);
		parts_put_number(w, key[k][2], d->at[k].sure_high);
	}
	parts_put_number(w, "load", d->p->load);
	json_member_text(w, "label", d->is_frontier || d->is_best ? name_of(c, d) : setups_load_text(&c->s, d->p));
	json_member_bool(w, "is_frontier", d->is_frontier);
	json_member_bool(w, "is_best", d->is_best);
	json_member_bool(w, "is_degraded", d->is_degraded);
	json_member_bool(w, "is_invalid", d->is_invalid);
	put_tips(c, w, d);
	json_end_object(w);
}

/* In legend order, then as they are. */
static void put_lines(const struct curves *c, struct json_writer *w)
{
	json_member_array(w, "lines");
	for (size_t color = 0; color < c->s.n_colors; color++)
		for (size_t i = 0, to; i < c->n_drawn; i = to) {
			const struct drawn *d = &c->drawn[i];
			bool is_open = false;

			for (to = i; to < c->n_drawn && c->drawn[to].p->line == d->p->line; to++) {
				if (c->drawn[to].color != color || !c->drawn[to].is_shown)
					continue;
				if (!is_open) {
					const char *name = c->s.legend[color].name;

					json_begin_object(w);
					json_member_text(w, "name",
							 setups_name(&c->s, d->p->member[0], name));
					json_member_text(w, "color", name);
					json_member_array(w, "points");
					is_open = true;
				}
				put_point(c, w, &c->drawn[to]);
			}
			if (is_open) {
				json_end_array(w);
				json_end_object(w);
			}
		}
	json_end_array(w);
}

static void put_colors(const struct curves *c, struct json_writer *w)
{
	json_key(w, "color");
	if (c->s.color)
		json_put_str(w, c->s.color->column);
	else
		json_put_null(w);
	json_member_array(w, "configuration");
	for (size_t i = 0; i < c->s.n_configuration; i++)
		json_put_str(w, c->s.configuration[i]->column);
	json_end_array(w);
	json_member_array(w, "colors");
	for (size_t k = 0; k < c->s.n_colors; k++) {
		size_t points = 0;

		for (size_t i = 0; i < c->n_drawn; i++)
			points += c->drawn[i].color == k && !c->drawn[i].is_invalid;
		json_begin_object(w);
		json_member_text(w, "key", c->s.legend[k].name);
		parts_put_count(w, "points", points);
		json_end_object(w);
	}
	json_end_array(w);
}

/* The column that orders points along a line. */
static void put_load(const struct curves *c, struct json_writer *w)
{
	bool has_load = false;

	for (size_t i = 0; i < c->n_points && !has_load; i++)
		has_load = !isnan(c->point[i].load);
	json_member_text(w, "load", has_load ? "load" : NULL);
}

/* What all runs have in common, as far as it matters to a reader of the chart. */
static int put_common(const struct curves *c, struct json_writer *w, struct err *e)
{
	static const char *const wanted[] = {
		"gpu_model", "environment.server.version", "server.quantization", "server.dtype",
		"server.tensor_parallel_size", "benchmark.num_prompts", "benchmark.dataset_name",
		"server.max_num_seqs", NULL,
	};
	size_t n, shown = 0;
	const struct str *column = parts_present(c->r, wanted, &n);

	json_member_array(w, "common");
	for (size_t i = 0; i < n && shown < COMMON_SHOWN && c->s.rows.n; i++) {
		struct side all = { .filter = c->s.filter };
		struct value_counts counts;

		if (side_counts(c->r, &all, &column[i], 1, &counts, e) < 0)
			return -1;
		if (counts.distinct != 1 || value_is_missing(counts.of[0].value))
			continue;
		json_begin_object(w);
		json_member_str(w, "column", column[i]);
		json_member_text(w, "label", label_of(c, column[i]));
		json_member_text(w, "value", parts_cell_text(c->r->arena, counts.of[0].value));
		json_end_object(w);
		shown++;
	}
	json_end_array(w);
	return 0;
}

/* From where to where the frontier of a color was measured. */
static void put_reach(const struct curves *c, size_t color, struct json_writer *w)
{
	double low = NAN, high = NAN;

	for (size_t i = 0; i < c->n_drawn; i++)
		if (c->drawn[i].color == color && c->drawn[i].is_frontier) {
			low = fmin(low, c->drawn[i].at[X].value);
			high = fmax(high, c->drawn[i].at[X].value);
		}
	parts_put_number(w, "low", low);
	parts_put_number(w, "high", high);
}

static void put_reading(const struct curves *c, struct json_writer *w)
{
	json_member_array(w, "reading");
	for (size_t k = 0; k < c->s.n_colors && !isnan(c->at); k++) {
		json_begin_object(w);
		json_member_text(w, "color", c->s.legend[k].name);
		parts_put_number(w, "y", best_at(c, k, c->at).value);
		parts_put_number(w, "between", between_at(c, k, c->at));
		put_reach(c, k, w);
		json_end_object(w);
	}
	json_end_array(w);
	parts_put_number(w, "at", c->at);
}

static size_t rows_assumed(const struct curves *c)
{
	size_t n = 0;

	for (size_t i = 0; c->s.is_assumed && i < c->s.rows.n; i++)
		n += c->s.is_assumed[i];
	return n;
}

static void put_left_out(struct curves *c, struct json_writer *w)
{
	struct str mixed = setups_mixed(&c->s, c->point, c->n_points, c->keep);
	struct arena *a = c->s.r->arena;

	json_member_object(w, "left_out");
	parts_put_count(w, "invalid", c->invalid);
	parts_put_count(w, "missing", c->missing);
	json_member_bool(w, "would_lead", c->would_lead);
	json_end_object(w);
	counting_put(w, c->s.counting, 2);
	counting_notes(c->s.counting, 2, &c->notes);
	if (c->s.newest && c->s.runs < c->s.matching)
		parts_note(&c->notes, "%s runs match; the newest %s of them are shown, and a filter "
			   "shows others", arena_count(a, c->s.matching), arena_count(a, c->s.runs));
	if (rows_assumed(c))
		parts_note(&c->notes, "power was not measured in %s of the runs: that of the boards is "
			   "assumed there", arena_count(a, rows_assumed(c)));
	if (mixed.n)
		parts_note(&c->notes, "points are medians over runs that differ in %.*s: color by it, or "
			   "filter by one value", (int)mixed.n, mixed.p);
	if (c->older)
		parts_note(&c->notes, "Each point shows its newest version; %s run%s of older versions %s "
			   "left out", arena_count(a, c->older), c->older == 1 ? "" : "s",
			   c->older == 1 ? "is" : "are");
	parts_put_notes(w, &c->notes);
	parts_put_count(w, "total", c->n_drawn);
	parts_put_count(w, "shown", c->n_shown);
}

/*
 * The same request without its include_invalid, so that INVALID runs never count: they are drawn
 * next to what counts.
 */
static struct analyse_request only_valid(const struct analyse_request *r)
{
	struct analyse_request out = *r;
	struct json_value *body = arena_alloc(r->arena, sizeof(*body));

	*body = *r->body;
	body->key = arena_alloc(r->arena, (body->count + 1) * sizeof(*body->key));
	for (size_t i = 0; i < body->count; i++)
		body->key[i] = str_is(r->body->key[i], "include_invalid") ? STR("") : r->body->key[i];
	out.body = body;
	return out;
}

int analyse_curves(const struct analyse_request *asked, struct json_writer *w, struct err *e)
{
	const struct analyse_request r = only_valid(asked);
	struct curves c = { .r = &r, .notes.arena = r.arena };

	if (parts_bool(asked->body, "include_invalid", &c.has_invalid, e) < 0 ||
	    read_request(&c, e) < 0)
		return -1;
	judge_rows(&c);
	if (setups_legend(&c.s, Y, e) < 0)
		return -1;
	draw(&c);
	find_frontiers(&c);
	choose_shown(&c);
	c.would_lead = invalid_would_lead(&c);
	if (isnan(c.at))
		c.at = usual_reading(&c);
	setups_put_workloads(w, &c.s);
	parts_put_axis(w, "x", c.s.metric[X]);
	parts_put_axis(w, "y", c.s.metric[Y]);
	put_colors(&c, w);
	put_load(&c, w);
	if (put_common(&c, w, e) < 0)
		return -1;
	put_lines(&c, w);
	json_member_text(w, "sentence", sentence_of(&c));
	put_reading(&c, w);
	put_left_out(&c, w);
	setups_put_unpriced(w, &c.s);
	return 0;
}
