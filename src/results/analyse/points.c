/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - see points.h. */
#include "results/analyse/points.h"

#include <ctype.h>
#include <math.h>

#include "core/base/mem.h"
#include "core/stats/edivisive.h"

#define DAY_S 86400.0
#define ENOUGH (2 * EDIVISIVE_SEGMENT_MIN) /* points, for a change among them */

const struct str points_columns[POINT_COLUMNS] = {
	[POINT_TIME] = { "timestamp", 9 },
	[POINT_COMMIT] = { "provenance.engine_commit", 24 },
	[POINT_VERSION] = { "environment.server.version", 26 },
	[POINT_SESSION] = { "provenance.session", 18 },
};

static const struct { const char *name, *order; } axes[] = {
	[AXIS_COMMIT] = { "commit", "A point is a commit of the engine (provenance.engine_commit); "
			  "commits are in the order of their first runs." },
	[AXIS_VERSION] = { "version", "A point is a version of the engine "
			   "(environment.server.version), in the order of version numbers." },
	[AXIS_DAY] = { "day", "A point is a day (UTC), in the order of time." },
	[AXIS_TIME] = { "time", "A point is a run, in the order of time." },
};

const char *points_axis_name(enum axis axis)
{
	return axes[axis].name;
}

const char *points_order(enum axis axis)
{
	return axes[axis].order;
}

int points_axis(const struct analyse_request *r, enum axis *out, struct err *e)
{
	const struct json_value *v = json_get(r->body, "axis");

	*out = AXIS_AUTO;
	if (!v || v->kind == JSON_NULL)
		return 0;
	for (size_t i = 0; v->kind == JSON_STRING && i < AXIS_AUTO; i++)
		if (str_is(v->text, axes[i].name)) {
			*out = (enum axis)i;
			return 0;
		}
	return parts_refuse(e, "/axis", "commit, version, day or time was expected");
}

static struct value value_at(const struct rows *rows, size_t column, size_t row)
{
	return rows->value[column * rows->n + row];
}

static struct str text_at(const struct rows *rows, const struct point_columns *c, size_t column,
			  size_t row)
{
	struct value v = value_at(rows, c->first + column, row);

	return v.kind == VALUE_TEXT ? v.text : (struct str){ 0 };
}

static double time_of(const struct rows *rows, const struct point_columns *c, size_t row)
{
	double t;

	return parts_is_number(value_at(rows, c->first + POINT_TIME, row), &t) ? t : NAN;
}

/* What a point of a named axis is called. */
static struct str name_of(const struct rows *rows, const struct point_columns *c, size_t row)
{
	return text_at(rows, c, c->axis == AXIS_COMMIT ? POINT_COMMIT : POINT_VERSION, row);
}

static bool is_named(enum axis axis)
{
	return axis == AXIS_COMMIT || axis == AXIS_VERSION;
}

bool points_has(const struct rows *rows, const struct point_columns *c, size_t row)
{
	double metric;

	return parts_is_number(value_at(rows, c->metric, row), &metric) &&
	       !isnan(time_of(rows, c, row)) && (!is_named(c->axis) || name_of(rows, c, row).n);
}

/* ---- the axis ---- */

struct told { size_t runs, distinct; };

/* How many rows would be on an axis, and at how many places. */
static struct told told_by(const struct rows *rows, const bool *keep, struct arena *a,
			   struct point_columns c)
{
	struct map seen = { 0 };
	struct told out = { 0 };

	for (size_t i = 0; i < rows->n; i++) {
		struct str name;
		uint64_t at;

		if (!keep[i] || !points_has(rows, &c, i))
			continue;
		name = is_named(c.axis) ? name_of(rows, &c, i) :
		       str_of(arena_printf(a, "%.0f", floor(time_of(rows, &c, i) / DAY_S)));
		out.runs++;
		if (!map_get(&seen, name, &at))
			map_put(&seen, name, 0);
	}
	out.distinct = seen.count;
	map_release(&seen);
	return out;
}

void points_choose(const struct rows *rows, const bool *keep, struct arena *a,
		   struct point_columns *c)
{
	struct told of[AXIS_TIME];

	if (c->axis != AXIS_AUTO)
		return;
	for (enum axis axis = AXIS_COMMIT; axis < AXIS_TIME; axis++)
		of[axis] = told_by(rows, keep, a,
				   (struct point_columns){ c->metric, c->first, axis });
	for (enum axis axis = AXIS_COMMIT; axis <= AXIS_VERSION; axis++) {
		bool is_rare = axis == AXIS_VERSION && of[axis].distinct * POINT_DAYS_A_VERSION <
						       of[AXIS_DAY].distinct;
		bool is_usual = of[axis].distinct > 1 && 2 * of[axis].runs > of[AXIS_DAY].runs;

		if (!is_rare && (is_usual || of[axis].distinct >= ENOUGH)) {
			c->axis = axis;
			return;
		}
	}
	c->axis = of[AXIS_DAY].distinct >= ENOUGH ? AXIS_DAY : AXIS_TIME;
}

/* ---- orders ---- */

static int by_text(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

/* The number that a begins with is taken off; -1: it begins with none. */
static double cut_number(struct str *a)
{
	double n = -1;

	for (; a->n && isdigit((unsigned char)*a->p); a->p++, a->n--)
		n = 10 * fmax(n, 0) + (*a->p - '0');
	return n;
}

/* What follows a release: "rc1", ".dev3" come before it, "+cu129", ".post1" after it. */
static int place_of_rest(struct str rest)
{
	if (!rest.n)
		return 0;
	if (*rest.p == '.' && rest.n > 1 && isalpha((unsigned char)rest.p[1]))
		rest = (struct str){ rest.p + 1, rest.n - 1 };
	return isalpha((unsigned char)*rest.p) && !str_starts(rest, STR("post")) ? -1 : 1;
}

int points_compare_versions(struct str a, struct str b)
{
	struct str whole[2] = { a, b };

	while (a.n && b.n) {
		double n = cut_number(&a), m = cut_number(&b);

		if (n >= 0 && m >= 0 && (n < m || n > m))
			return n < m ? -1 : 1;
		if (!a.n || !b.n || *a.p != *b.p || (n < 0) != (m < 0))
			break;
		a = (struct str){ a.p + 1, a.n - 1 };
		b = (struct str){ b.p + 1, b.n - 1 };
	}
	if (place_of_rest(a) != place_of_rest(b))
		return place_of_rest(a) - place_of_rest(b);
	return by_text(whole[0], whole[1]);
}

/* A run on its way into a point. */
struct placed { struct str name, session; double at_s, bin; size_t row; };

static int by_bin(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;
	int order = (a->bin > b->bin) - (a->bin < b->bin);

	order = order ? order : by_text(a->name, b->name);
	order = order ? order : (a->at_s > b->at_s) - (a->at_s < b->at_s);
	return order ? order : (a->row > b->row) - (a->row < b->row);
}

static int by_session(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;
	int order = by_text(a->session, b->session);

	return order ? order : (a->row > b->row) - (a->row < b->row);
}

static int by_time(const void *x, const void *y)
{
	const struct point *a = x, *b = y;
	int order = (a->at_s > b->at_s) - (a->at_s < b->at_s);

	return order ? order : by_text(a->commit, b->commit);
}

static int by_version(const void *x, const void *y)
{
	const struct point *a = x, *b = y;

	return points_compare_versions(a->version, b->version);
}

/* ---- points ---- */

static bool is_same_point(const struct placed *a, const struct placed *b)
{
	return !(a->bin > b->bin) && !(a->bin < b->bin) && str_eq(a->name, b->name);
}

/* The mean of the sessions' means; run lies in the order of sessions. */
static double value_of(const struct rows *rows, size_t metric, const struct placed *run,
		       struct point *p)
{
	bool is_log = p->low > 0;
	double sum = 0;

	for (size_t i = 0, to; i < p->n; i = to) {
		double of_session = 0;

		for (to = i; to < p->n && (to == i || (run[i].session.n &&
			     str_eq(run[i].session, run[to].session))); to++) {
			double x = value_at(rows, metric, run[to].row).number;

			of_session += is_log ? log(x) : x;
		}
		sum += of_session / (double)(to - i);
		p->sessions++;
	}
	sum /= (double)p->sessions;
	return is_log ? exp(sum) : sum;
}

static void fill_point(const struct rows *rows, const struct point_columns *c, struct placed *run,
		       struct point *p)
{
	p->at_s = run[0].at_s;
	p->low = INFINITY;
	p->high = -INFINITY;
	for (size_t i = 0; i < p->n; i++) {
		double x = value_at(rows, c->metric, run[i].row).number;

		p->member[i] = run[i].row;
		p->at_s = fmin(p->at_s, run[i].at_s);
		p->low = fmin(p->low, x);
		p->high = fmax(p->high, x);
		if (!p->commit.n)
			p->commit = text_at(rows, c, POINT_COMMIT, run[i].row);
		if (!p->version.n)
			p->version = text_at(rows, c, POINT_VERSION, run[i].row);
	}
	qsort(run, p->n, sizeof(*run), by_session);
	p->value = value_of(rows, c->metric, run, p);
}

struct point *points_of(struct arena *a, const struct rows *rows, const struct point_columns *c,
			const struct series *s, size_t *n)
{
	struct placed *run = arena_alloc(a, (s->n + 1) * sizeof(*run));
	struct point *out;

	for (size_t i = 0; i < s->n; i++) {
		size_t row = s->member[i];
		double t = time_of(rows, c, row);

		run[i] = (struct placed){ .at_s = t, .row = row,
					  .session = text_at(rows, c, POINT_SESSION, row) };
		if (is_named(c->axis))
			run[i].name = name_of(rows, c, row);
		else
			run[i].bin = c->axis == AXIS_DAY ? floor(t / DAY_S) : t;
	}
	if (s->n)
		qsort(run, s->n, sizeof(*run), by_bin);
	*n = 0;
	for (size_t i = 0; i < s->n; i++)
		*n += !i || !is_same_point(&run[i - 1], &run[i]);
	out = arena_alloc(a, (*n + 1) * sizeof(*out));
	*n = 0;
	for (size_t i = 0, to; i < s->n; i = to) {
		struct point *p = &out[(*n)++];

		for (to = i + 1; to < s->n && is_same_point(&run[i], &run[to]);)
			to++;
		p->n = to - i;
		p->member = arena_alloc(a, p->n * sizeof(*p->member));
		fill_point(rows, c, run + i, p);
	}
	if (*n)
		qsort(out, *n, sizeof(*out), c->axis == AXIS_VERSION ? by_version : by_time);
	return out;
}

size_t points_place(const struct rows *rows, const struct point_columns *c, size_t row,
		    const struct point *p, size_t n)
{
	double at_s = time_of(rows, c, row);
	size_t place = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		struct str name = c->axis == AXIS_COMMIT ? p[i].commit : p[i].version;

		if (is_named(c->axis) && name.n && str_eq(name_of(rows, c, row), name))
			return i;
		if (p[i].at_s <= at_s && (place == SIZE_MAX || p[place].at_s <= p[i].at_s))
			place = i;
	}
	return place;
}
