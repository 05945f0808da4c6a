/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trends.c - a metric over commits or time, a series for each configuration, and where its level
 * changed (stats/edivisive.h).
 *
 * The least effect is that of verdicts (stats/judge.h): 3 %, 5 % for a p99 and beyond. A gain that
 * a guard speaks against (guard.h) is only a change. Runs that failed are no points, but failed
 * requests to the guard.
 */
#include <math.h>

#include "analyse/guard.h"
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
	size_t n_keys, first_guard; /* columns: keys of series, metric, time, commit, guards */
	struct edivisive_opts opts;
	struct rows rows;
	struct counting counting;
	enum counts *counts;       /* of each row */
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

static bool is_at(const struct json_value *at, const struct point *p)
{
	double seconds = json_real(at, NAN);

	if (at && at->kind == JSON_STRING) {
		if (p->commit.n && str_eq(at->text, p->commit))
			return true;
		str_to_f64(at->text, &seconds);
	}
	return fabs(seconds - p->at_s) < 0.5;
}

/*
 * The mark that somebody set on this change of this metric; NULL: none. Marks of before they named
 * a metric have none: such a one is found last, and nobody knows which metric it judged.
 */
static const struct json_value *mark_of(const struct trends *t, const struct series *s,
					const struct point *p, bool *is_judged)
{
	const struct json_value *marks = t->r->marks, *old = NULL;

	*is_judged = false;
	for (size_t i = 0; marks && marks->kind == JSON_ARRAY && i < marks->count; i++) {
		const struct json_value *m = &marks->item[i];
		struct str metric = json_text(json_get(m, "metric"), STR(""));

		if (!str_is(json_text(json_get(m, "series"), STR("")), s->id) ||
		    !is_at(json_get(m, "at"), p))
			continue;
		if (str_eq(metric, t->metric)) {
			*is_judged = true;
			return m;
		}
		old = metric.n ? old : m;
	}
	return old;
}

static void put_mark(const struct trends *t, struct json_writer *w, const struct series *s,
		     const struct point *p)
{
	static const char *const keys[] = { "id", "metric", "kind", "text", "who" };
	bool is_judged;
	const struct json_value *m = mark_of(t, s, p, &is_judged);

	json_key(w, "is_marked");
	json_put_bool(w, is_judged);
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

/* ---- changes ---- */

static bool has_keys_of(const struct trends *t, const struct series *s, size_t row)
{
	for (size_t k = 0; k < t->n_keys; k++) {
		const struct value *v = t->rows.value + k * t->rows.n;
		bool is_missing = parts_is_missing(v[row]);

		if (is_missing ? !parts_is_missing(v[s->row]) : !value_same(v[row], v[s->row]))
			return false;
	}
	return true;
}

/* The work of the points from one to another, with the failed runs that stand among them. */
static struct work work_of_points(const struct trends *t, const struct series *s,
				  const struct point *p, size_t n, size_t from, size_t to)
{
	const struct value *value[GUARD_COLUMNS];
	size_t most = s->n + t->counting.failed, count = 0;
	size_t *member = arena_alloc(t->r->arena, (most + 1) * sizeof(*member));

	for (size_t c = 0; c < GUARD_COLUMNS; c++)
		value[c] = t->rows.value + (t->first_guard + c) * t->rows.n;
	for (size_t i = from; i < to; i++)
		for (size_t k = 0; k < p[i].n; k++)
			member[count++] = p[i].member[k];
	for (size_t row = 0; row < t->rows.n; row++) {
		size_t place = SIZE_MAX;

		if (t->counts[row] == COUNTS_FAILED && has_keys_of(t, s, row))
			place = points_place(&t->rows, &t->columns, row, p, n);
		if (place >= from && place < to)
			member[count++] = row;
	}
	return work_of(value, member, count);
}

/* NULL: nothing speaks against what changed at c[at]. */
static const char *guard_of(const struct trends *t, const struct series *s, const struct point *p,
			    size_t n, const struct change_point *c, size_t n_changes, size_t at)
{
	size_t from = at ? c[at - 1].index : 0, to = at + 1 < n_changes ? c[at + 1].index : n;
	struct work before = work_of_points(t, s, p, n, from, c[at].index);
	struct work after = work_of_points(t, s, p, n, c[at].index, to);

	return guard_against(t->r->arena, &before, &after);
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
		const struct point *at = &p[c[i].index];
		bool is_gain = better && (c[i].after > c[i].before) == (better > 0);
		const char *guard = is_gain ? guard_of(t, s, p, n, c, count, i) : NULL;

		json_begin_object(w);
		parts_put_count(w, "index", c[i].index);
		parts_put_number(w, "at", at->at_s);
		put_commit(w, at->commit);
		parts_put_number(w, "before", c[i].before);
		parts_put_number(w, "after", c[i].after);
		parts_put_number(w, "effect", c[i].effect);
		parts_put_number(w, "p", c[i].p);
		put_mark(t, w, s, at);
		parts_put_text(w, "verdict", !better || guard ? "changed" :
			       is_gain ? "better" : "worse");
		parts_put_text(w, "guard", guard);
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
	counting_notes(&t->counting, 1, &t->notes);
	parts_put_count(w, "left_out", t->rows.n - shown);
	counting_put(w, &t->counting, 1);
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
	all = arena_alloc(r->arena, (n + 3 + GUARD_COLUMNS) * sizeof(*all));
	if (n)
		memcpy(all, column, n * sizeof(*all));
	t.n_keys = t.columns.metric = n;
	t.columns.timestamp = n + 1;
	t.columns.commit = n + 2;
	t.first_guard = n + 3;
	all[n] = t.metric;
	all[n + 1] = STR("timestamp");
	all[n + 2] = STR("provenance.engine_commit");
	memcpy(all + t.first_guard, guard_columns, GUARD_COLUMNS * sizeof(*all));
	if (parts_select(r, all, n + 3 + GUARD_COLUMNS, &t.rows, e) < 0)
		return -1;
	t.counting = counting_of(t.metric);
	t.counts = arena_alloc(r->arena, (t.rows.n + 1) * sizeof(*t.counts));
	keep = arena_alloc(r->arena, t.rows.n + 1);
	for (size_t i = 0; i < t.rows.n; i++) {
		t.counts[i] = counting_see(&t.counting, &t.rows.verdicts, i,
					   parts_number_at(&t.rows, n, i));
		keep[i] = t.counts[i] == COUNTS && points_has(&t.rows, &t.columns, i);
		missing += !keep[i] && t.counts[i] <= COUNTS_MISSING;
	}
	parts_series(r->arena, &t.rows, column, n, keep, &l);
	put_all(&t, w, &l, missing);
	return 0;
}
