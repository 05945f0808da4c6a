/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trends.c - a metric over commits, versions or time, a series for each configuration, and where
 * its level changed (stats/edivisive.h).
 *
 * The test is repeated every night, so the p of a change is small: on 50 noisy series 1e-5 gives
 * 13.5 false alarms a year (bench/trends.c), the usual 1e-3 gives 56. The least effect is that of
 * verdicts (decide/compare.h): 3 %, 5 % for a p99 and beyond. A gain that a guard of comparisons
 * contradicts is only a change. Runs that failed are not points; to guards they are failed
 * requests.
 *
 * A series that begins where another one has ended, because the configuration changed, says so; the
 * step between the two is shown and not tested.
 */
#include <assert.h>
#include <math.h>

#include "core/stats/edivisive.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"
#include "results/analyse/analyse_internal.h"

#define TRENDS_POINTS_MAX 5000 /* of one series; the latest ones */
#define TRENDS_P 1e-5
#define TRENDS_WINDOW 90
#define TRENDS_IDS_NEAR 60     /* runs on each side that are searched for other changes */
#define BEGINS_DAYS_MIN 3      /* the series before must have had as many, or points that long */
#define BEGINS_CHANGES_MAX 4   /* changed keys; more is another experiment */
#define BEGINS_POINTS 10       /* on each side, for the size of the step */
#define DAY_S 86400.0
#define NOISE_MADS 2           /* half of the band about a level */
#define INTERVAL_LEVEL 0.95

/* A series as it is drawn. */
struct drawn {
	const struct series *s;
	struct point *p;
	size_t n, n_changes;
	struct change_point *change;
	bool *is_new;
};

struct trends {
	const struct analyse_request *r;
	struct str metric;
	struct matched_metric usual; /* D and guards of the metric */
	struct series_key key;
	struct point_columns columns;
	size_t first_work; /* columns: keys of series, metric, points, work */
	struct edivisive_opts opts;
	size_t news;               /* points; a change is new if it was not there before them */
	struct rows rows;
	struct keyed keyed;
	struct counting counting;
	enum counts *counts;       /* of each row */
	struct drawn *drawn;       /* of each series that is shown */
	struct map there, changed; /* series that have a point, a change, at a place */
	struct notes notes;
};

static int read_options(struct trends *t, struct err *e)
{
	const struct json_value *body = t->r->body;

	t->opts.segment_min = EDIVISIVE_SEGMENT_MIN;
	if (parts_metric(t->r, "metric", &t->metric, e) < 0)
		return -1;
	t->usual = matched_metric_of(arena_text(t->r->arena, t->metric), NULL, 0);
	if (points_axis(t->r, &t->columns.axis, e) < 0 ||
	    parts_number(body, "", "level", TRENDS_P, 1e-12, 0.1, &t->opts.p, e) < 0 ||
	    parts_number(body, "", "effect", t->usual.effect_min, 0, 10, &t->opts.effect_min, e) < 0 ||
	    parts_whole(body, "", "window", TRENDS_WINDOW, 2 * EDIVISIVE_SEGMENT_MIN,
			EDIVISIVE_WINDOW_MAX, &t->opts.window, e) < 0 ||
	    parts_whole(body, "", "news", 0, 0, TRENDS_POINTS_MAX, &t->news, e) < 0)
		return -1;
	return 0;
}

/* ---- points and changes ---- */

/* Whether it had already been found before the newest points. */
static bool was_there(const struct change_point *old, size_t n, const struct change_point *c)
{
	for (size_t i = 0; i < n; i++) {
		size_t apart = old[i].index > c->index ? old[i].index - c->index
						       : c->index - old[i].index;

		if (apart <= EDIVISIVE_SEGMENT_MIN &&
		    (old[i].after > old[i].before) == (c->after > c->before))
			return true;
	}
	return false;
}

static void find_changes(const struct trends *t, struct drawn *d)
{
	struct arena *a = t->r->arena;
	double *x = arena_alloc(a, (d->n + 1) * sizeof(*x));
	struct change_point *old = arena_alloc(a, (d->n + 1) * sizeof(*old));
	size_t n_old = 0;

	for (size_t i = 0; i < d->n; i++)
		x[i] = d->p[i].value;
	d->change = arena_alloc(a, (d->n + 1) * sizeof(*d->change));
	d->is_new = arena_alloc(a, d->n + 1);
	d->n_changes = edivisive(x, d->n, &t->opts, d->change);
	if (t->news && t->news < d->n)
		n_old = edivisive(x, d->n - t->news, &t->opts, old);
	for (size_t i = 0; i < d->n_changes; i++)
		d->is_new[i] = t->news && !was_there(old, n_old, &d->change[i]);
}

static void draw(struct trends *t, const struct series *s, struct drawn *d)
{
	*d = (struct drawn){ .s = s };
	d->p = points_of(t->r->arena, &t->rows, &t->columns, s, &d->n);
	if (d->n > TRENDS_POINTS_MAX) {
		parts_note(&t->notes, "%s has %zu points; the latest %d are shown", s->name, d->n,
			   TRENDS_POINTS_MAX);
		d->p += d->n - TRENDS_POINTS_MAX;
		d->n = TRENDS_POINTS_MAX;
	}
	find_changes(t, d);
}

/* ---- marks ---- */

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
 * The mark that a user set on this change of this metric; NULL: none. Old marks do not name a
 * metric: such a mark is used last, because it may have been about another one.
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

	json_member_bool(w, "is_marked", is_judged);
	json_key(w, "mark");
	if (!m) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (json_get(m, keys[i]))
			json_member_value(w, keys[i], json_get(m, keys[i]));
	json_end_object(w);
}

static void put_name(struct json_writer *w, const char *key, struct str name)
{
	json_key(w, key);
	if (name.n)
		json_put_str(w, name);
	else
		json_put_null(w);
}

static void put_points(const struct trends *t, struct json_writer *w, const struct drawn *d)
{
	json_member_array(w, "points");
	for (size_t i = 0; i < d->n; i++) {
		const struct point *p = &d->p[i];

		json_begin_object(w);
		parts_put_number(w, "at", p->at_s);
		put_name(w, "commit", p->commit);
		put_name(w, "version", p->version);
		parts_put_ids(w, &t->rows, p->member, p->n);
		parts_put_count(w, "n", p->n);
		parts_put_count(w, "sessions", p->sessions);
		parts_put_number(w, "value", p->value);
		parts_put_number(w, "low", p->low);
		parts_put_number(w, "high", p->high);
		json_end_object(w);
	}
	json_end_array(w);
}

/* ---- changes ---- */

/* The work of the points from one to another, and of the failed runs among them. */
static struct matched_work *work_of_points(const struct trends *t, const struct drawn *d,
					   size_t from, size_t to, size_t *n)
{
	const struct value *value[WORK_COLUMNS];
	struct matched_work *out;
	size_t most = t->counting.failed;

	assert(from <= to && to <= d->n);
	for (size_t i = from; i < to; i++)
		most += d->p[i].n;
	out = arena_alloc(t->r->arena, (most + 1) * sizeof(*out));
	*n = 0;
	for (size_t c = 0; c < WORK_COLUMNS; c++)
		value[c] = t->rows.value + (t->first_work + c) * t->rows.n;
	for (size_t i = from; i < to; i++)
		for (size_t k = 0; k < d->p[i].n; k++)
			out[(*n)++] = work_at(value, d->p[i].member[k]);
	for (size_t row = 0; row < t->rows.n; row++) {
		size_t place = SIZE_MAX;

		if (t->counts[row] == COUNTS_FAILED && series_is_same(&t->keyed, row, d->s->row))
			place = points_place(&t->rows, &t->columns, row, d->p, d->n);
		if (place >= from && place < to)
			out[(*n)++] = work_at(value, row);
	}
	return out;
}

/* The level that ends, or begins, with a change: from one change to the next. */
static size_t level_from(const struct drawn *d, size_t at)
{
	return at ? d->change[at - 1].index : 0;
}

static size_t level_to(const struct drawn *d, size_t at)
{
	return at + 1 < d->n_changes ? d->change[at + 1].index : d->n;
}

/* The objection of a guard; NULL: none. */
static const char *guard_of(const struct trends *t, const struct drawn *d, size_t at)
{
	size_t middle = d->change[at].index, n[2];
	const struct matched_work *before, *after;

	before = work_of_points(t, d, level_from(d, at), middle, &n[0]);
	after = work_of_points(t, d, middle, level_to(d, at), &n[1]);
	return matched_guard_gain(&t->usual, before, n[0], after, n[1], t->r->arena);
}

/* The runs of some points, at most `most`: those next to a change first. */
static int64_t *ids_of(const struct trends *t, const struct drawn *d, size_t from, size_t to,
		       bool is_backward, size_t most, size_t *n)
{
	int64_t *id = arena_alloc(t->r->arena, (most + 1) * sizeof(*id));

	*n = 0;
	for (size_t i = 0; i < to - from; i++) {
		const struct point *p = &d->p[is_backward ? to - 1 - i : from + i];

		for (size_t k = 0; k < p->n && *n < most; k++)
			id[(*n)++] = t->rows.id[p->member[k]];
	}
	return id;
}

static void put_ids(struct json_writer *w, const char *key, const int64_t *id, size_t n)
{
	json_member_array(w, key);
	for (size_t i = 0; i < n; i++)
		json_put_int(w, id[i]);
	json_end_array(w);
}

static void put_sides(const struct trends *t, struct json_writer *w, const struct drawn *d,
		      size_t at)
{
	size_t middle = d->change[at].index, n;
	const int64_t *id = ids_of(t, d, level_from(d, at), middle, true, ANALYSE_IDS_SHOWN_MAX,
				   &n);

	put_ids(w, "before_ids", id, n);
	id = ids_of(t, d, middle, level_to(d, at), false, ANALYSE_IDS_SHOWN_MAX, &n);
	put_ids(w, "after_ids", id, n);
}

/* Writes what happened there, in words, and how to verify it. */
static void put_step(const struct trends *t, struct json_writer *w, const struct drawn *d,
		     size_t at)
{
	const struct change_point *c = &d->change[at];
	size_t from = level_from(d, at), to = level_to(d, at), n[2];
	size_t near = c->index - from < STEP_POINTS ? from : c->index - STEP_POINTS;
	size_t far = to - c->index < STEP_POINTS ? to : c->index + STEP_POINTS;
	const int64_t *before = ids_of(t, d, near, c->index, true, TRENDS_IDS_NEAR, &n[0]);
	const int64_t *after = ids_of(t, d, c->index, far, false, TRENDS_IDS_NEAR, &n[1]);
	struct step s = {
		.metric = t->metric, .axis = t->columns.axis, .value = { c->before, c->after },
		.before = &d->p[c->index - 1], .after = &d->p[c->index],
	};

	s.also = series_changes(t->r, before, n[0], after, n[1], &s.n_also);
	step_put_also(w, s.also, s.n_also);
	json_member_text(w, "text", step_text(t->r->arena, &s));
	json_member_text(w, "command", step_command(t->r, &s, after[0]));
}

/*
 * Student's interval (Welch) of the change of the geometric mean from one level to the next, with
 * outliers pulled in as they were to find it; the levels were found in the same points, so that
 * it is a little too narrow.
 */
static void put_change_interval(const struct trends *t, struct json_writer *w,
				const struct drawn *d, size_t at)
{
	size_t bound[3] = { level_from(d, at), d->change[at].index, level_to(d, at) };
	double mean[2], part[2], df = 0, half = NAN;
	double *raw = arena_alloc(t->r->arena, d->n * sizeof(*raw));
	double *ln = arena_alloc(t->r->arena, d->n * sizeof(*ln));

	for (size_t i = 0; i < d->n; i++)
		raw[i] = log(d->p[i].value); /* NAN at or below 0: then there is no interval */
	edivisive_pull_outliers(raw, d->n, ln);
	for (int s = 0; s < 2; s++) {
		size_t n = bound[s + 1] - bound[s];
		double sd = stats_std(ln + bound[s], n);

		mean[s] = stats_mean(ln + bound[s], n);
		part[s] = n > 1 ? sd * sd / (double)(n - 1) : NAN;
		df += part[s] * part[s] / (double)(n - 1);
	}
	df = (part[0] + part[1]) * (part[0] + part[1]) / df;
	if (isfinite(df) && df > 0)
		half = sqrt(part[0] + part[1]) * student_quantile((1 + INTERVAL_LEVEL) / 2, df);
	parts_put_interval(w, "interval", expm1(mean[1] - mean[0] - half),
			   expm1(mean[1] - mean[0] + half));
}

/* The position that a point shares with those of other series; empty on the axis of single runs. */
static struct str place_of(const struct trends *t, const struct point *p)
{
	return t->columns.axis == AXIS_COMMIT ? p->commit :
	       t->columns.axis == AXIS_VERSION ? p->version :
	       t->columns.axis == AXIS_TIME ? STR("") :
	       str_of(arena_printf(t->r->arena, "%.0f", floor(p->at_s / DAY_S)));
}

static void count_up(struct map *m, struct str place)
{
	uint64_t n = 0;

	if (!place.n)
		return;
	map_get(m, place, &n);
	map_put(m, place, n + 1);
}

static void count_places(struct trends *t)
{
	for (size_t i = 0; i < t->keyed.list.shown; i++) {
		const struct drawn *d = &t->drawn[i];

		for (size_t k = 0; k < d->n; k++)
			count_up(&t->there, place_of(t, &d->p[k]));
		for (size_t k = 0; k < d->n_changes; k++)
			count_up(&t->changed, place_of(t, &d->p[d->change[k].index]));
	}
}

/* How many series changed there, including this one, and how many have a point there. */
static void put_elsewhere(const struct trends *t, struct json_writer *w, const struct point *p)
{
	uint64_t there = 1, changed = 1;

	map_get(&t->there, place_of(t, p), &there);
	map_get(&t->changed, place_of(t, p), &changed);
	parts_put_count(w, "also_in", changed);
	parts_put_count(w, "also_of", there);
}

static void put_change(const struct trends *t, struct json_writer *w, const struct drawn *d,
		       size_t i)
{
	const struct change_point *c = &d->change[i];
	const struct point *at = &d->p[c->index];
	int better = column_better(t->metric);
	bool is_gain = better && (c->after > c->before) == (better > 0);
	const char *guard = is_gain ? guard_of(t, d, i) : NULL;

	json_begin_object(w);
	parts_put_count(w, "index", c->index);
	parts_put_number(w, "at", at->at_s);
	put_name(w, "commit", at->commit);
	put_name(w, "commit_before", at[-1].commit);
	put_name(w, "version", at->version);
	parts_put_number(w, "before", c->before);
	parts_put_number(w, "after", c->after);
	parts_put_number(w, "effect", c->effect);
	put_change_interval(t, w, d, i);
	parts_put_number(w, "p", c->p);
	put_elsewhere(t, w, at);
	json_member_bool(w, "is_new", d->is_new[i]);
	put_mark(t, w, d->s, at);
	json_member_text(w, "verdict", !better || guard ? "changed" : is_gain ? "better" : "worse");
	json_member_text(w, "guard", guard);
	put_step(t, w, d, i);
	put_sides(t, w, d, i);
	json_end_object(w);
}

/* ---- where a series begins ---- */

static double level_of(const struct point *p, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += p[i].value;
	return sum / (double)n;
}

static size_t keys_apart(const struct keyed *k, size_t row, size_t other)
{
	const struct rows *rows = &k->rows;
	size_t n = 0;

	for (size_t i = 0; i < k->list.n_keys; i++)
		n += !series_same_value(rows->value[i * rows->n + row],
					rows->value[i * rows->n + other]);
	return n;
}

/* Whether it is long enough for its end to be one: a sweep's points are also neighbours in time. */
static bool is_history(const struct drawn *d)
{
	return d->n >= BEGINS_DAYS_MIN &&
	       d->p[d->n - 1].at_s - d->p[0].at_s >= (BEGINS_DAYS_MIN - 1) * DAY_S;
}

/* The series that one takes the place of; NULL: none. */
static const struct drawn *before_it(const struct trends *t, const struct drawn *d)
{
	const struct drawn *best = NULL;
	size_t least = BEGINS_CHANGES_MAX + 1;

	for (size_t i = 0; i < t->keyed.list.shown; i++) {
		const struct drawn *o = &t->drawn[i];
		size_t apart;

		if (o == d || !is_history(o) || !d->n || o->p[o->n - 1].at_s >= d->p[0].at_s)
			continue;
		apart = keys_apart(&t->keyed, o->s->row, d->s->row);
		if (apart < least || (best && apart == least &&
				      o->p[o->n - 1].at_s > best->p[best->n - 1].at_s)) {
			best = o;
			least = apart;
		}
	}
	return best;
}

static void put_key_changes(const struct trends *t, struct json_writer *w, size_t before,
			    size_t after, struct buf *text)
{
	const struct rows *rows = &t->rows, *keys = &t->keyed.rows;
	const struct value *version = rows->value + (t->columns.first + POINT_VERSION) * rows->n;

	json_member_array(w, "changes");
	for (size_t k = 0; k < t->key.n; k++) {
		struct value a = rows->value[k * rows->n + before];
		struct value b = rows->value[k * rows->n + after];
		struct str column = t->key.column[k];

		if (series_same_value(keys->value[k * rows->n + before],
				      keys->value[k * rows->n + after]))
			continue;
		json_begin_object(w);
		json_member_str(w, "column", column);
		parts_put_value(w, "before", a);
		parts_put_value(w, "after", b);
		json_end_object(w);
		buf_printf(text, "%s%.*s %s -> %s", text->len ? ", " : "", (int)column.n, column.p,
			   series_text(t->r->arena, column, a, version[before]),
			   series_text(t->r->arena, column, b, version[after]));
	}
	json_end_array(w);
}

static void put_begin(const struct trends *t, struct json_writer *w, const struct drawn *d)
{
	const struct drawn *o = before_it(t, d);
	double level[2];
	struct buf text = { 0 };

	json_key(w, "begins");
	if (!o) {
		json_put_null(w);
		return;
	}
	level[0] = level_of(o->p + (o->n > BEGINS_POINTS ? o->n - BEGINS_POINTS : 0),
			    o->n > BEGINS_POINTS ? BEGINS_POINTS : o->n);
	level[1] = level_of(d->p, d->n > BEGINS_POINTS ? BEGINS_POINTS : d->n);
	json_begin_object(w);
	json_member_text(w, "series", o->s->id);
	parts_put_number(w, "at", d->p[0].at_s);
	put_name(w, "commit", d->p[0].commit);
	parts_put_number(w, "before", level[0]);
	parts_put_number(w, "after", level[1]);
	parts_put_number(w, "effect", fabs(level[0]) > 0 ? (level[1] - level[0]) / fabs(level[0])
							 : NAN);
	put_key_changes(t, w, o->s->row, d->s->row, &text);
	json_member_text(w, "text", arena_printf(t->r->arena, "a new series begins at %s: %s",
					       step_place(t->r->arena, t->columns.axis, &d->p[0]),
					       arena_text(t->r->arena, buf_str(&text))));
	json_end_object(w);
	buf_release(&text);
}

/* ---- noise ---- */

/*
 * Puts "levels": the median between changes, and about it twice the median of all distances from
 * their medians, as shares of these.
 */
static void put_levels(const struct trends *t, struct json_writer *w, const struct drawn *d)
{
	struct arena *a = t->r->arena;
	double *away = arena_alloc(a, (d->n + 1) * sizeof(*away));
	double *x = arena_alloc(a, (d->n + 1) * sizeof(*x));
	double *median = arena_alloc(a, (d->n_changes + 1) * sizeof(*median)), noise;

	for (size_t k = 0; k <= d->n_changes && d->n; k++) {
		size_t from = k ? d->change[k - 1].index : 0;
		size_t to = k < d->n_changes ? d->change[k].index : d->n;

		for (size_t i = from; i < to; i++)
			x[i - from] = d->p[i].value;
		median[k] = parts_median(x, to - from);
		for (size_t i = from; i < to; i++)
			away[i] = fabs(median[k]) > 0 ? fabs(d->p[i].value / median[k] - 1) : 0;
	}
	noise = NOISE_MADS * parts_median(away, d->n);
	json_member_array(w, "levels");
	for (size_t k = 0; k <= d->n_changes && d->n; k++) {
		json_begin_object(w);
		parts_put_count(w, "from", k ? d->change[k - 1].index : 0);
		parts_put_count(w, "to", k < d->n_changes ? d->change[k].index : d->n);
		parts_put_number(w, "value", median[k]);
		parts_put_number(w, "low", median[k] - noise * fabs(median[k]));
		parts_put_number(w, "high", median[k] + noise * fabs(median[k]));
		json_end_object(w);
	}
	json_end_array(w);
}

/* ---- everything ---- */

/* Puts "axes": those on which the runs are at several places. */
static void put_axes(const struct trends *t, struct json_writer *w)
{
	static const enum axis axis[] = { AXIS_COMMIT, AXIS_VERSION, AXIS_DAY };
	bool *keep = arena_alloc(t->r->arena, t->rows.n + 1);

	for (size_t i = 0; i < t->rows.n; i++)
		keep[i] = t->counts[i] == COUNTS;
	json_member_array(w, "axes");
	for (size_t i = 0; i < sizeof(axis) / sizeof(*axis); i++) {
		struct axis_use use = points_on(&t->rows, keep, t->r->arena, t->columns, axis[i]);

		if (use.places < 2)
			continue;
		json_begin_object(w);
		json_member_text(w, "axis", points_axis_name(axis[i]));
		parts_put_count(w, "runs", use.runs);
		parts_put_count(w, "places", use.places);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_series(const struct trends *t, struct json_writer *w, size_t i)
{
	const struct drawn *d = &t->drawn[i];

	json_begin_object(w);
	json_member_text(w, "id", d->s->id);
	parts_put_series(w, &t->keyed.list, i);
	put_begin(t, w, d);
	put_points(t, w, d);
	put_levels(t, w, d);
	json_member_array(w, "changes");
	for (size_t k = 0; k < d->n_changes; k++)
		put_change(t, w, d, k);
	json_end_array(w);
	json_end_object(w);
}

/* Why there are no points. */
static const char *why_empty(const struct trends *t)
{
	struct arena *a = t->r->arena;
	struct str m = t->metric;
	size_t counted = 0;

	for (size_t i = 0; i < t->rows.n; i++)
		counted += t->counts[i] == COUNTS;
	if (!t->rows.n)
		return "no run matches the filter";
	if (counted)
		return arena_printf(a, "none of the %s runs with %.*s has a time%s", arena_count(a, counted),
				    (int)m.n, m.p, t->columns.axis == AXIS_COMMIT ?
				    " and provenance.engine_commit; axis day needs no commit" :
				    t->columns.axis == AXIS_VERSION ?
				    " and environment.server.version; axis day needs no version" : "");
	if (t->counting.failed + t->counting.invalid)
		return arena_printf(a, "no run counts for %.*s: %s failed, in %s it is INVALID, and "
				    "%s have none", (int)m.n, m.p, arena_count(a, t->counting.failed),
				    arena_count(a, t->counting.invalid),
				    arena_count(a, t->rows.n - t->counting.failed -
						   t->counting.invalid));
	return arena_printf(a, "none of the %s runs has a finite %.*s", arena_count(a, t->rows.n),
			    (int)m.n, m.p);
}

/* A probability without an exponent: "0.00001". */
static const char *plain_text(struct arena *a, double p)
{
	char *text = arena_printf(a, "%.12f", p); /* the least one that can be asked for */
	size_t n = strlen(text);

	while (n > 1 && text[n - 1] == '0')
		text[--n] = '\0';
	return text;
}

/* Why no change is reported; NULL: one is. is_judged: because none was found. */
static const char *why_none(const struct trends *t, bool *is_judged)
{
	size_t most = 0, enough = 0, min = 2 * EDIVISIVE_SEGMENT_MIN;
	struct arena *a = t->r->arena;
	bool has_change = false;

	for (size_t i = 0; i < t->keyed.list.shown; i++) {
		const struct drawn *d = &t->drawn[i];

		most = d->n > most ? d->n : most;
		enough += d->n >= min;
		has_change |= d->n_changes > 0;
	}
	*is_judged = enough > 0;
	if (has_change)
		return NULL;
	if (!most)
		return why_empty(t);
	if (!enough)
		return arena_printf(a, "there are too few points to judge: %zu in the longest series, and "
				    "a change needs %zu, %d on each side", most, min,
				    EDIVISIVE_SEGMENT_MIN);
	return arena_printf(a, "nothing changed by %.3g %% or more (p < %s) in %zu series of at least "
			    "%zu points", 100 * t->opts.effect_min, plain_text(a, t->opts.p), enough,
			    min);
}

static void put_reason(const struct trends *t, struct json_writer *w)
{
	bool is_judged;
	const char *why = why_none(t, &is_judged);

	json_member_text(w, "reason", why);
	json_member_bool(w, "is_judged", is_judged);
}

/* Runs in no series, because their value or their place on the axis is missing. */
struct missing { size_t metric, place; };

static struct str mixed_of(const struct trends *t)
{
	uint32_t *group = arena_alloc(t->r->arena, (t->rows.n + 1) * sizeof(*group)), points = 0;

	for (size_t i = 0; i < t->keyed.list.shown; i++)
		for (size_t k = 0; k < t->drawn[i].n; k++) {
			const struct point *p = &t->drawn[i].p[k];

			points++;
			for (size_t m = 0; m < p->n; m++)
				group[p->member[m]] = points;
		}
	return tags_mixed(t->r, NULL, group, NULL, t->rows.n);
}

static void put_all(struct trends *t, struct json_writer *w, struct missing missing)
{
	const struct series_list *l = &t->keyed.list;
	struct str mixed = mixed_of(t);
	struct arena *a = t->r->arena;
	size_t shown = 0;

	json_member_str(w, "metric", t->metric);
	parts_put_kind(w, t->metric);
	json_member_text(w, "axis", points_axis_name(t->columns.axis));
	json_member_text(w, "order", points_order(t->columns.axis));
	parts_put_number(w, "level", t->opts.p);
	parts_put_number(w, "effect", t->opts.effect_min);
	put_reason(t, w);
	put_axes(t, w);
	json_member_array(w, "series");
	for (size_t i = 0; i < l->shown; i++) {
		put_series(t, w, i);
		for (size_t k = 0; k < t->drawn[i].n; k++)
			shown += t->drawn[i].p[k].n;
	}
	json_end_array(w);
	if (l->n > l->shown)
		parts_note(&t->notes, "%zu series; only the %zu with the most runs were looked at", l->n,
			   l->shown);
	if (missing.metric)
		parts_note(&t->notes, "%s of %s runs have no %.*s", arena_count(a, missing.metric),
			   arena_count(a, t->rows.n), (int)t->metric.n, t->metric.p);
	if (missing.place)
		parts_note(&t->notes, "%s of %s runs have no %s and are not drawn on this axis",
			   arena_count(a, missing.place), arena_count(a, t->rows.n),
			   t->columns.axis == AXIS_COMMIT ? "provenance.engine_commit or no time" :
			   t->columns.axis == AXIS_VERSION ? "environment.server.version or no time" :
			   "time");
	if (mixed.n)
		parts_note(&t->notes, "points are means over runs that differ in %.*s: add it to the "
			   "series, or filter by one value", (int)mixed.n, mixed.p);
	counting_notes(&t->counting, 1, &t->notes);
	parts_put_count(w, "left_out", t->rows.n - shown);
	counting_put(w, &t->counting, 1);
	parts_put_notes(w, &t->notes);
}

static int load(struct trends *t, struct err *e)
{
	size_t n = t->key.n;
	struct str *all = arena_alloc(t->r->arena, (n + 1 + POINT_COLUMNS + WORK_COLUMNS) *
				      sizeof(*all));

	t->columns.metric = n;
	t->columns.first = n + 1;
	t->first_work = n + 1 + POINT_COLUMNS;
	if (n)
		memcpy(all, t->key.column, n * sizeof(*all));
	all[n] = t->metric;
	memcpy(all + n + 1, points_columns, sizeof(points_columns));
	memcpy(all + t->first_work, work_columns, WORK_COLUMNS * sizeof(*all));
	return parts_select(t->r, all, t->first_work + WORK_COLUMNS, &t->rows, e);
}

int analyse_trends(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct trends t = { .r = r, .notes.arena = r->arena };
	struct missing missing = { 0, 0 };
	bool *keep;

	if (read_options(&t, e) < 0 || series_key(r, &t.key, e) < 0 || load(&t, e) < 0)
		return -1;
	t.counting = counting_of(t.metric);
	t.counts = arena_alloc(r->arena, (t.rows.n + 1) * sizeof(*t.counts));
	keep = arena_alloc(r->arena, t.rows.n + 1);
	for (size_t i = 0; i < t.rows.n; i++) {
		t.counts[i] = counting_see(&t.counting, &t.rows.verdicts, i,
					   parts_number_at(&t.rows, t.columns.metric, i));
		keep[i] = t.counts[i] == COUNTS;
	}
	points_choose(&t.rows, keep, r->arena, &t.columns);
	for (size_t i = 0; i < t.rows.n; i++) {
		keep[i] = keep[i] && points_has(&t.rows, &t.columns, i);
		missing.metric += t.counts[i] == COUNTS_MISSING;
		missing.place += t.counts[i] == COUNTS && !keep[i];
	}
	series_make(r, &t.key, &t.rows, t.columns.first + POINT_VERSION, keep, &t.keyed);
	counting_narrow(&t.counting, &t.rows.verdicts, &t.keyed.list);
	t.drawn = arena_alloc(r->arena, (t.keyed.list.shown + 1) * sizeof(*t.drawn));
	for (size_t i = 0; i < t.keyed.list.shown; i++)
		draw(&t, &t.keyed.list.series[i], &t.drawn[i]);
	count_places(&t);
	put_all(&t, w, missing);
	map_release(&t.there);
	map_release(&t.changed);
	return 0;
}
