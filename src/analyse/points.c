/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - see points.h. */
#include "analyse/points.h"

#include <math.h>

#define DAY_S 86400.0

static const char *const axis_names[] = {
	[AXIS_COMMIT] = "commit", [AXIS_DAY] = "day", [AXIS_TIME] = "time",
};

const char *points_axis_name(enum axis axis)
{
	return axis_names[axis];
}

int points_axis(const struct analyse_request *r, enum axis *out, struct err *e)
{
	const struct json_value *v = json_get(r->body, "axis");

	*out = index_column(r->view, STR("provenance.engine_commit")) ? AXIS_COMMIT : AXIS_TIME;
	if (!v || v->kind == JSON_NULL)
		return 0;
	for (size_t i = 0; v->kind == JSON_STRING && i < 3; i++)
		if (str_is(v->text, axis_names[i])) {
			*out = (enum axis)i;
			return 0;
		}
	return parts_refuse(e, "/axis", "commit, day or time was expected");
}

static struct value value_at(const struct rows *rows, size_t column, size_t row)
{
	return rows->value[column * rows->n + row];
}

static double time_of(const struct rows *rows, const struct point_columns *c, size_t row)
{
	double t;

	return parts_is_number(value_at(rows, c->timestamp, row), &t) ? t : NAN;
}

bool points_has(const struct rows *rows, const struct point_columns *c, size_t row)
{
	struct value commit = value_at(rows, c->commit, row);
	double metric;

	return parts_is_number(value_at(rows, c->metric, row), &metric) &&
	       !isnan(time_of(rows, c, row)) &&
	       (c->axis != AXIS_COMMIT || (commit.kind == VALUE_TEXT && commit.text.n));
}

/* A run on its way into a point. */
struct placed { struct str commit; double at_s, bin; size_t row; };

static int by_text(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int by_bin(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;
	int order = (a->bin > b->bin) - (a->bin < b->bin);

	order = order ? order : by_text(a->commit, b->commit);
	order = order ? order : (a->at_s > b->at_s) - (a->at_s < b->at_s);
	return order ? order : (a->row > b->row) - (a->row < b->row);
}

static int by_time(const void *x, const void *y)
{
	const struct point *a = x, *b = y;
	int order = (a->at_s > b->at_s) - (a->at_s < b->at_s);

	return order ? order : by_text(a->commit, b->commit);
}

static bool is_same_point(const struct placed *a, const struct placed *b, enum axis axis)
{
	return axis == AXIS_COMMIT ? str_eq(a->commit, b->commit)
				   : !(a->bin > b->bin) && !(a->bin < b->bin);
}

static void fill_point(const struct rows *rows, const struct point_columns *c,
		       const struct placed *run, double *x, struct point *p)
{
	p->at_s = run[0].at_s;
	for (size_t i = 0; i < p->n; i++) {
		p->member[i] = run[i].row;
		x[i] = value_at(rows, c->metric, run[i].row).number;
		p->at_s = fmin(p->at_s, run[i].at_s);
		if (!p->commit.n)
			p->commit = run[i].commit;
	}
	p->value = parts_median(x, p->n);
	p->low = x[0];
	p->high = x[p->n - 1];
}

struct point *points_of(struct arena *a, const struct rows *rows, const struct point_columns *c,
			const struct series *s, size_t *n)
{
	struct placed *run = arena_alloc(a, (s->n + 1) * sizeof(*run));
	double *x = arena_alloc(a, (s->n + 1) * sizeof(*x));
	struct point *out;

	for (size_t i = 0; i < s->n; i++) {
		struct value commit = value_at(rows, c->commit, s->member[i]);
		double t = time_of(rows, c, s->member[i]);

		run[i] = (struct placed){ { 0 }, t, c->axis == AXIS_DAY ? floor(t / DAY_S) :
						    c->axis == AXIS_TIME ? t : 0, s->member[i] };
		if (commit.kind == VALUE_TEXT)
			run[i].commit = commit.text;
	}
	if (s->n)
		qsort(run, s->n, sizeof(*run), by_bin);
	*n = 0;
	for (size_t i = 0; i < s->n; i++)
		*n += !i || !is_same_point(&run[i - 1], &run[i], c->axis);
	out = arena_alloc(a, (*n + 1) * sizeof(*out));
	*n = 0;
	for (size_t i = 0, to; i < s->n; i = to) {
		struct point *p = &out[(*n)++];

		for (to = i + 1; to < s->n && is_same_point(&run[i], &run[to], c->axis);)
			to++;
		p->n = to - i;
		p->member = arena_alloc(a, p->n * sizeof(*p->member));
		fill_point(rows, c, run + i, x, p);
	}
	if (*n)
		qsort(out, *n, sizeof(*out), by_time);
	return out;
}

size_t points_place(const struct rows *rows, const struct point_columns *c, size_t row,
		    const struct point *p, size_t n)
{
	struct value commit = value_at(rows, c->commit, row);
	double at_s = time_of(rows, c, row);
	size_t place = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		if (c->axis == AXIS_COMMIT && commit.kind == VALUE_TEXT &&
		    str_eq(commit.text, p[i].commit))
			return i;
		if (p[i].at_s <= at_s)
			place = i;
	}
	return place;
}
