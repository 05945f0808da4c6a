/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trends.c - a metric over commits or time, a series for each configuration, and where its level
 * changed (stats/edivisive.h).
 *
 * The least effect is that of verdicts (stats/judge.h): 3 %, 5 % for a p99 and beyond.
 */
#include <math.h>

#include "analyse/points.h"
#include "stats/edivisive.h"
#include "stats/judge.h"

#define TRENDS_POINTS_MAX 5000 /* of one series; the latest ones */
#define TRENDS_P 0.001
#define TRENDS_WINDOW 300

struct trends {
	const struct analyse_request *r;
	struct str metric;
	struct point_columns columns;
	struct edivisive_opts opts;
	struct rows rows;
	struct notes notes;
};

static int read_options(struct trends *t, struct err *e)
{
	const struct json_value *body = t->r->body;

	t->opts.segment_min = EDIVISIVE_SEGMENT_MIN;
	if (parts_column(t->r, "metric", &t->metric, e) < 0 ||
	    points_axis(t->r, &t->columns.axis, e) < 0 ||
	    parts_number(body, "", "level", TRENDS_P, 1e-12, 0.1, &t->opts.p, e) < 0 ||
	    parts_number(body, "", "effect", judge_effect_min(arena_text(t->r->arena, t->metric)), 0,
			 10, &t->opts.effect_min, e) < 0 ||
	    parts_whole(body, "", "window", TRENDS_WINDOW, 2 * EDIVISIVE_SEGMENT_MIN,
			EDIVISIVE_WINDOW_MAX, &t->opts.window, e) < 0)
		return -1;
	return 0;
}

/* The mark that somebody set on this change; NULL: none. */
static const struct json_value *mark_of(const struct trends *t, const struct series *s,
					const struct point *p)
{
	const struct json_value *marks = t->r->marks;

	for (size_t i = 0; marks && marks->kind == JSON_ARRAY && i < marks->count; i++) {
		const struct json_value *m = &marks->item[i], *at = json_get(m, "at");
		struct str series = json_text(json_get(m, "series"), STR("")), text = { 0 };
		double seconds = NAN;

		if (!str_is(series, s->id) && !str_is(series, s->name))
			continue;
		if (at && at->kind == JSON_STRING) {
			text = at->text;
			str_to_f64(text, &seconds);
		} else {
			seconds = json_real(at, NAN);
		}
		if ((p->commit.n && str_eq(text, p->commit)) || fabs(seconds - p->at_s) < 0.5)
			return m;
	}
	return NULL;
}

static void put_mark(struct json_writer *w, const struct json_value *m)
{
	static const char *const keys[] = { "id", "kind", "text", "who" };

	json_key(w, "is_marked");
	json_put_bool(w, m != NULL);
	json_key(w, "mark");
	if (!m) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (json_get(m, keys[i])) {
			json_key(w, keys[i]);
			json_put_value(w, json_get(m, keys[i]));
		}
	json_end_object(w);
}

static void put_commit(struct json_writer *w, struct str commit)
{
	json_key(w, "commit");
	if (commit.n)
		json_put_str(w, commit);
	else
		json_put_null(w);
}

static void put_points(const struct trends *t, struct json_writer *w, const struct point *p,
		       size_t n)
{
	json_key(w, "points");
	json_begin_array(w);
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		parts_put_number(w, "at", p[i].at_s);
		put_commit(w, p[i].commit);
		parts_put_ids(w, &t->rows, p[i].member, p[i].n);
		parts_put_count(w, "n", p[i].n);
		parts_put_number(w, "value", p[i].value);
		parts_put_number(w, "low", p[i].low);
		parts_put_number(w, "high", p[i].high);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_changes(const struct trends *t, struct json_writer *w, const struct series *s,
			const struct point *p, size_t n)
{
	struct change_point *c = arena_alloc(t->r->arena, (n + 1) * sizeof(*c));
	double *x = arena_alloc(t->r->arena, (n + 1) * sizeof(*x));
	int better = column_better(t->metric);
	size_t count;

	for (size_t i = 0; i < n; i++)
		x[i] = p[i].value;
	count = edivisive(x, n, &t->opts, c);
	json_key(w, "changes");
	json_begin_array(w);
	for (size_t i = 0; i < count; i++) {
		bool is_more = c[i].after > c[i].before;

		json_begin_object(w);
		parts_put_count(w, "index", c[i].index);
		parts_put_number(w, "at", p[c[i].index].at_s);
		put_commit(w, p[c[i].index].commit);
		parts_put_number(w, "before", c[i].before);
		parts_put_number(w, "after", c[i].after);
		parts_put_number(w, "effect", c[i].effect);
		parts_put_number(w, "p", c[i].p);
		put_mark(w, mark_of(t, s, &p[c[i].index]));
		parts_put_text(w, "verdict", !better ? "changed" :
			       is_more == (better > 0) ? "better" : "worse");
		json_end_object(w);
	}
	json_end_array(w);
}

/* Returns how many runs are shown. */
static size_t put_series(struct trends *t, struct json_writer *w, const struct series_list *l,
			 size_t i)
{
	const struct series *s = &l->series[i];
	size_t n, shown = 0;
	struct point *p = points_of(t->r->arena, &t->rows, &t->columns, s, &n);

	if (n > TRENDS_POINTS_MAX) {
		parts_note(&t->notes, "%s has %zu points; the latest %d are shown", s->name, n,
			   TRENDS_POINTS_MAX);
		p += n - TRENDS_POINTS_MAX;
		n = TRENDS_POINTS_MAX;
	}
	for (size_t k = 0; k < n; k++)
		shown += p[k].n;
	json_begin_object(w);
	parts_put_text(w, "id", s->id);
	parts_put_series(w, l, i);
	put_points(t, w, p, n);
	put_changes(t, w, s, p, n);
	json_end_object(w);
	return shown;
}

static void put_all(struct trends *t, struct json_writer *w, const struct series_list *l,
		    size_t missing)
{
	size_t shown = 0;

	json_key(w, "metric");
	json_put_str(w, t->metric);
	parts_put_kind(w, t->metric);
	parts_put_text(w, "axis", points_axis_name(t->columns.axis));
	json_key(w, "series");
	json_begin_array(w);
	for (size_t i = 0; i < l->shown; i++)
		shown += put_series(t, w, l, i);
	json_end_array(w);
	if (l->n > l->shown)
		parts_note(&t->notes, "%zu series; the %zu with the most runs are shown", l->n,
			   l->shown);
	if (missing)
		parts_note(&t->notes, "%zu of %zu runs have no finite %.*s, no time%s", missing,
			   t->rows.n, (int)t->metric.n, t->metric.p,
			   t->columns.axis == AXIS_COMMIT ? " or no provenance.engine_commit" : "");
	parts_put_count(w, "left_out", t->rows.n - shown);
	parts_put_notes(w, &t->notes);
}

int analyse_trends(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct trends t = { .r = r, .notes.arena = r->arena };
	struct str *column, *all;
	struct series_list l;
	size_t n, missing = 0;
	bool *keep;

	if (read_options(&t, e) < 0 || parts_columns(r, "series", &column, &n, e) < 0)
		return -1;
	if (!json_get(r->body, "series") || json_get(r->body, "series")->kind == JSON_NULL)
		column = parts_present(r, parts_series_default, &n);
	all = arena_alloc(r->arena, (n + 3) * sizeof(*all));
	if (n)
		memcpy(all, column, n * sizeof(*all));
	t.columns.metric = n;
	t.columns.timestamp = n + 1;
	t.columns.commit = n + 2;
	all[n] = t.metric;
	all[n + 1] = STR("timestamp");
	all[n + 2] = STR("provenance.engine_commit");
	if (parts_select(r, all, n + 3, &t.rows, e) < 0)
		return -1;
	keep = arena_alloc(r->arena, t.rows.n + 1);
	for (size_t i = 0; i < t.rows.n; i++) {
		keep[i] = points_has(&t.rows, &t.columns, i);
		missing += !keep[i];
	}
	parts_series(r->arena, &t.rows, column, n, keep, &l);
	put_all(&t, w, &l, missing);
	return 0;
}
