/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regression.c - did it get worse: runs against a baseline, series by series, with a verdict by
 * policy.
 *
 * The baseline is what the request names: {"ids": [...]} or {"filter": F} (any runs; those are no
 * candidates then), {"commit": C} (candidates are runs of commits first measured after it), or
 * {"last": n} (candidates are the last n points of each series, the baseline up to
 * BASELINE_POINTS before them). A regression needs evidence (q of Benjamini and Hochberg over
 * everything shown at most policy.p), size (the medians differ by at least policy.effect) and
 * enough data (stats/judge.h, and policy.points_after commits or runs). A gain is none when a guard
 * speaks against it (guard.h, and any of policy.guards that is worse by more than 5 %). Runs that
 * failed have no part in medians; to the guard they are requests that failed.
 */
#include <math.h>

#include "analyse/guard.h"
#include "analyse/points.h"
#include "analyse/series.h"
#include "analyse/sides.h"
#include "stats/compare.h"
#include "stats/judge.h"

#define METRICS_MAX 16
#define GUARDS_MAX 16
#define BASELINE_POINTS 20
#define COMMIT_BYTES_MIN 7

enum mode { BY_RUNS, BY_COMMIT, BY_LAST };

/* What a row is to its series. */
enum part { PART_NONE, PART_BASELINE, PART_CANDIDATE };

struct item {
	size_t series, metric;
	size_t n[2], points;       /* runs of both sides; points of the candidates */
	double median[2];
	struct contrast change;
	double q;
};

struct regression {
	const struct analyse_request *r;
	struct str *metric, *guard, commit;
	size_t n_metrics, n_guards;
	struct series_key key;
	struct keyed keyed;
	enum mode mode;
	struct side baseline;
	double effect, p;          /* effect NAN: the metric's own */
	size_t last, points_after;
	size_t first_guard, first_own, first_metric; /* columns: keys, time, commit, guards ... */
	struct str *column;
	size_t n_columns;
	struct rows rows;
	bool *is_baseline;         /* rows, when by runs */
	struct point_columns place;
	struct item *item;
	size_t n_items;
	struct counting counting[METRICS_MAX];
	struct notes notes;
};

/* ---- the request ---- */

static int read_policy(struct regression *g, struct err *e)
{
	const struct json_value *policy = json_get(g->r->body, "policy");
	const struct json_value *guards = json_get(policy, "guards");

	if (policy && policy->kind != JSON_OBJECT && policy->kind != JSON_NULL)
		return parts_refuse(e, "/policy", "an object was expected");
	if (parts_number(policy, "/policy", "effect", NAN, 0, 10, &g->effect, e) < 0 ||
	    parts_number(policy, "/policy", "p", JUDGE_ALPHA, 1e-9, 0.5, &g->p, e) < 0 ||
	    parts_whole(policy, "/policy", "points_after", 3, 1, 1000, &g->points_after, e) < 0)
		return -1;
	if (!guards || guards->kind == JSON_NULL)
		return 0;
	if (guards->kind != JSON_ARRAY || guards->count > GUARDS_MAX)
		return parts_refuse(e, "/policy/guards", "a list of at most %d columns was expected",
				    GUARDS_MAX);
	g->guard = arena_alloc(g->r->arena, (guards->count + 1) * sizeof(*g->guard));
	for (; g->n_guards < guards->count; g->n_guards++) {
		const struct json_value *one = &guards->item[g->n_guards];

		if (one->kind != JSON_STRING || !column_better(one->text))
			return err_set(e, ERR_USAGE, "/policy/guards/%zu: a metric of which more or less "
				       "is better was expected", g->n_guards);
		g->guard[g->n_guards] = one->text;
	}
	return 0;
}

static int read_baseline(struct regression *g, struct err *e)
{
	const struct json_value *b = json_get(g->r->body, "baseline"), *commit;

	g->mode = BY_LAST;
	g->last = g->points_after > COMPARE_REPEATS_MIN ? g->points_after : COMPARE_REPEATS_MIN;
	if (!b || b->kind == JSON_NULL)
		return 0;
	commit = json_get(b, "commit");
	if (json_get(b, "ids") || json_get(b, "filter")) {
		g->mode = BY_RUNS;
		return side_read(g->r, b, "/baseline", "baseline", &g->baseline, e);
	}
	if (commit) {
		g->mode = BY_COMMIT;
		g->commit = json_text(commit, STR(""));
		if (g->commit.n < COMMIT_BYTES_MIN)
			return parts_refuse(e, "/baseline/commit", "at least %d characters of a commit "
					    "were expected", COMMIT_BYTES_MIN);
		return 0;
	}
	if (!json_get(b, "last"))
		return parts_refuse(e, "/baseline", "ids, filter, commit or last was expected");
	return parts_whole(b, "/baseline", "last", 1, 1, 1000, &g->last, e);
}

static int read_metrics(struct regression *g, struct err *e)
{
	bool is_list = json_get(g->r->body, "metrics") != NULL;

	if (parts_columns(g->r, is_list ? "metrics" : "metric", &g->metric, &g->n_metrics, e) < 0)
		return -1;
	if (!g->n_metrics || g->n_metrics > METRICS_MAX)
		return parts_refuse(e, is_list ? "/metrics" : "/metric", "1 to %d metrics were expected",
				    METRICS_MAX);
	return 0;
}

static void add_columns(struct regression *g, const struct str *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		g->column[g->n_columns++] = from[i];
}

static int read_request(struct regression *g, struct err *e)
{
	if (read_metrics(g, e) < 0 || read_policy(g, e) < 0 || read_baseline(g, e) < 0 ||
	    points_axis(g->r, &g->place.axis, e) < 0 || series_key(g->r, &g->key, e) < 0)
		return -1;
	g->column = arena_alloc(g->r->arena, (g->key.n + POINT_COLUMNS + GUARD_COLUMNS +
					      g->n_guards + g->n_metrics) * sizeof(*g->column));
	add_columns(g, g->key.column, g->key.n);
	g->place.first = g->n_columns;
	add_columns(g, points_columns, POINT_COLUMNS);
	g->first_guard = g->n_columns;
	add_columns(g, guard_columns, GUARD_COLUMNS);
	g->first_own = g->n_columns;
	add_columns(g, g->guard, g->n_guards);
	g->first_metric = g->n_columns;
	add_columns(g, g->metric, g->n_metrics);
	return 0;
}

/* ---- rows ---- */

static bool has_id(const struct side *s, int64_t id)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->id[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->n && s->id[low] == id;
}

static struct value *joined(struct arena *a, const struct value *x, size_t n, const struct value *y,
			    size_t m, struct value *out)
{
	out = out ? out : arena_alloc(a, (n + m + 1) * sizeof(*out));
	if (n)
		memcpy(out, x, n * sizeof(*out));
	if (m)
		memcpy(out + n, y, m * sizeof(*out));
	return out;
}

/* Named baselines come behind the candidates, whatever the filter says of them. */
static int add_baseline(struct regression *g, struct err *e)
{
	struct arena *a = g->r->arena;
	struct rows all = { .n = g->rows.n + g->baseline.n };
	struct verdicts named;

	if (all.n * g->n_columns > ANALYSE_CELLS_MAX)
		return parts_refuse(e, "/baseline", "%zu runs are more than can be looked at at once",
				    all.n);
	all.id = arena_alloc(a, (all.n + 1) * sizeof(*all.id));
	all.value = arena_alloc(a, (all.n * g->n_columns + 1) * sizeof(*all.value));
	g->is_baseline = arena_alloc(a, all.n + 1);
	for (size_t i = 0; i < all.n; i++) {
		g->is_baseline[i] = i >= g->rows.n;
		all.id[i] = g->is_baseline[i] ? g->baseline.id[i - g->rows.n] : g->rows.id[i];
	}
	for (size_t c = 0; c < g->n_columns; c++) {
		struct value *v;

		if (side_column(g->r, &g->baseline, g->column[c], &v, e) < 0)
			return -1;
		joined(a, g->rows.value + c * g->rows.n, g->rows.n, v, g->baseline.n,
		       all.value + c * all.n);
	}
	if (side_verdicts(g->r, &g->baseline, &named, e) < 0)
		return -1;
	all.verdicts.is_everything = named.is_everything;
	for (size_t c = 0; c < COUNTED_COLUMNS; c++)
		all.verdicts.value[c] = joined(a, g->rows.verdicts.value[c], g->rows.n,
					     named.value[c], g->baseline.n, NULL);
	g->rows = all;
	return 0;
}

static int load(struct regression *g, bool **keep, struct err *e)
{
	size_t n;

	if (parts_select(g->r, g->column, g->n_columns, &g->rows, e) < 0)
		return -1;
	n = g->rows.n;
	if (g->mode == BY_RUNS && add_baseline(g, e) < 0)
		return -1;
	*keep = arena_alloc(g->r->arena, g->rows.n + 1);
	for (size_t i = 0; i < g->rows.n; i++)
		(*keep)[i] = g->mode != BY_RUNS || i >= n || !has_id(&g->baseline, g->rows.id[i]);
	return 0;
}

/* ---- sides of a series ---- */

static bool is_commit(const struct regression *g, struct str commit)
{
	return commit.n && str_starts(commit, g->commit);
}

/* Points in order: which are baseline, and which candidates. */
static size_t part_points(const struct regression *g, const struct point *p, size_t n,
			  enum part *part)
{
	size_t candidates = 0, from = n > g->last ? n - g->last : 0;
	bool is_after = false;

	for (size_t i = 0; i < n; i++) {
		enum part *at = &part[i];

		*at = PART_NONE;
		if (g->mode == BY_COMMIT) {
			bool is_base = is_commit(g, p[i].commit);

			*at = is_base ? PART_BASELINE : is_after ? PART_CANDIDATE : PART_NONE;
			is_after |= is_base;
		} else if (i >= from) {
			*at = PART_CANDIDATE;
		} else if (i + BASELINE_POINTS >= from) {
			*at = PART_BASELINE;
		}
		candidates += *at == PART_CANDIDATE;
	}
	return candidates;
}

/* Rows of both sides of a series. */
struct sides {
	size_t *member[2], n[2];   /* that count for the metric */
	size_t *all[2], n_all[2];  /* and those that failed, for the guard */
	size_t points;             /* of the candidates */
};

static void add_row(struct sides *s, bool is_candidate, size_t row, bool is_counted)
{
	s->all[is_candidate][s->n_all[is_candidate]++] = row;
	if (is_counted)
		s->member[is_candidate][s->n[is_candidate]++] = row;
}

static void sides_by_runs(const struct regression *g, const struct series *s,
			  const enum counts *counts, struct sides *out)
{
	for (size_t i = 0; i < s->n; i++) {
		size_t row = s->member[i];

		if (counts[i] == COUNTS || counts[i] == COUNTS_FAILED)
			add_row(out, !g->is_baseline[row], row, counts[i] == COUNTS);
	}
	out->points = out->n[1];
}

static void sides_by_points(const struct regression *g, const struct series *s,
			    const enum counts *counts, struct sides *out)
{
	struct arena *a = g->r->arena;
	struct series has = { .member = arena_alloc(a, (s->n + 1) * sizeof(size_t)) };
	struct point *p;
	enum part *part;
	size_t n;

	for (size_t i = 0; i < s->n; i++)
		if (counts[i] == COUNTS && points_has(&g->rows, &g->place, s->member[i]))
			has.member[has.n++] = s->member[i];
	p = points_of(a, &g->rows, &g->place, &has, &n);
	part = arena_alloc(a, (n + 1) * sizeof(*part));
	out->points = part_points(g, p, n, part);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; part[i] != PART_NONE && k < p[i].n; k++)
			add_row(out, part[i] == PART_CANDIDATE, p[i].member[k], true);
	for (size_t i = 0; i < s->n; i++) {
		size_t at = counts[i] != COUNTS_FAILED ? SIZE_MAX :
			    points_place(&g->rows, &g->place, s->member[i], p, n);

		if (at != SIZE_MAX && part[at] != PART_NONE)
			add_row(out, part[at] == PART_CANDIDATE, s->member[i], false);
	}
}

static struct sides sides_of(struct regression *g, const struct series *s, size_t metric)
{
	struct arena *a = g->r->arena;
	enum counts *counts = arena_alloc(a, (s->n + 1) * sizeof(*counts));
	struct sides out = { 0 };

	g->place.metric = g->first_metric + metric;
	for (int i = 0; i < 2; i++) {
		out.member[i] = arena_alloc(a, (s->n + 1) * sizeof(size_t));
		out.all[i] = arena_alloc(a, (s->n + 1) * sizeof(size_t));
	}
	for (size_t i = 0; i < s->n; i++)
		counts[i] = counting_see(&g->counting[metric], &g->rows.verdicts, s->member[i],
					 parts_number_at(&g->rows, g->place.metric, s->member[i]));
	if (g->mode == BY_RUNS)
		sides_by_runs(g, s, counts, &out);
	else
		sides_by_points(g, s, counts, &out);
	return out;
}

/* The values of those rows that count for the column. */
static double *values_of(const struct regression *g, size_t column, const size_t *member, size_t n,
			 size_t *count)
{
	const struct counting c = counting_of(g->column[column]);
	double *x = arena_alloc(g->r->arena, (n + 1) * sizeof(*x));

	*count = 0;
	for (size_t i = 0; i < n; i++) {
		double v = parts_number_at(&g->rows, column, member[i]);

		if (counts_for(&c, &g->rows.verdicts, member[i], v) == COUNTS)
			x[(*count)++] = v;
	}
	return x;
}

static const char *guard_of(const struct regression *g, const struct sides *s)
{
	const struct value *value[GUARD_COLUMNS];
	struct work work[2];
	const char *text;

	for (size_t i = 0; i < GUARD_COLUMNS; i++)
		value[i] = g->rows.value + (g->first_guard + i) * g->rows.n;
	for (int i = 0; i < 2; i++)
		work[i] = work_of(value, s->all[i], s->n_all[i]);
	text = guard_against(g->r->arena, &work[0], &work[1]);
	for (size_t k = 0; !text && k < g->n_guards; k++) {
		double median[2];

		for (int i = 0; i < 2; i++) {
			size_t count;
			double *x = values_of(g, g->first_own + k, s->member[i], s->n[i], &count);

			median[i] = parts_median(x, count);
		}
		if (column_better(g->guard[k]) * (median[1] - median[0]) <
		    -JUDGE_GUARD_CHANGE * fabs(median[0]))
			text = arena_printf(g->r->arena, "%.*s got worse, from %.6g to %.6g",
					    (int)g->guard[k].n, g->guard[k].p, median[0],
					    median[1]);
	}
	return text;
}

/* ---- judging ---- */

static const char *test_item(struct regression *g, const struct series_list *l, struct item *t)
{
	struct sides s = sides_of(g, &l->series[t->series], t->metric);
	double *x[2];
	size_t count;

	t->points = s.points;
	for (int i = 0; i < 2; i++) {
		t->n[i] = s.n[i];
		x[i] = values_of(g, g->first_metric + t->metric, s.member[i], s.n[i], &count);
		t->median[i] = parts_median(x[i], t->n[i]);
	}
	t->change = contrast_test(x[0], t->n[0], t->median[0], x[1], t->n[1], t->median[1],
				  JUDGE_LEVEL);
	t->q = NAN;
	return guard_of(g, &s);
}

static bool is_enough(const struct regression *g, const struct item *t)
{
	return judge_is_enough(t->n[0], t->n[1]) && t->points >= g->points_after;
}

static void adjust(struct regression *g)
{
	double *p = arena_alloc(g->r->arena, (g->n_items + 1) * sizeof(*p));
	size_t n = 0;

	for (size_t i = 0; i < g->n_items; i++)
		if (is_enough(g, &g->item[i]))
			p[n++] = g->item[i].change.p;
	compare_adjust(p, n);
	n = 0;
	for (size_t i = 0; i < g->n_items; i++)
		if (is_enough(g, &g->item[i]))
			g->item[i].q = p[n++];
}

static const char *reason_of(const struct regression *g, const struct item *t, enum judged v,
			     double effect, const char *guard)
{
	struct arena *a = g->r->arena;

	if (!t->n[0] || !t->n[1])
		return !t->n[1] ? "no runs to judge in this series" : "no baseline in this series";
	if (!judge_is_enough(t->n[0], t->n[1]))
		return arena_printf(a, "%zu runs against %zu; at least %d a side are needed", t->n[1],
				    t->n[0], COMPARE_REPEATS_MIN);
	if (!is_enough(g, t))
		return arena_printf(a, "%zu points after the baseline; the policy asks for %zu",
				    t->points, g->points_after);
	if (v == JUDGED_BETTER && guard)
		return arena_printf(a, "better, but %s", guard);
	if (v != JUDGED_NO_EVIDENCE)
		return arena_printf(a, "q = %.2g, and a change of at least %.3g %%", t->q, effect * 100);
	if (t->q <= g->p)
		return arena_printf(a, "the change is below %.3g %%", effect * 100);
	return arena_printf(a, "q = %.2g is above %.3g", t->q, g->p);
}

static void put_item(const struct regression *g, struct json_writer *w, const struct series_list *l,
		     const struct item *t, const char *guard)
{
	static const char *const names[] = {
		[JUDGED_MISSING] = "not enough data", [JUDGED_NOT_ENOUGH] = "not enough data",
		[JUDGED_NO_EVIDENCE] = "no evidence of change", [JUDGED_WORSE] = "regression",
		[JUDGED_BETTER] = "improvement", [JUDGED_CHANGED] = "changed",
	};
	struct str metric = g->metric[t->metric];
	double effect = isnan(g->effect) ? judge_effect_min(arena_text(g->r->arena, metric))
					 : g->effect;
	enum judged v = judge_change(&t->change, t->q, t->median[0], t->median[1], t->n[0], t->n[1],
				     column_better(metric), effect, g->p);
	bool is_void = v == JUDGED_BETTER && guard;

	if (v > JUDGED_NOT_ENOUGH && !is_enough(g, t))
		v = JUDGED_NOT_ENOUGH;
	json_begin_object(w);
	parts_put_text(w, "series", l->series[t->series].id);
	parts_put_series(w, l, t->series);
	json_key(w, "metric");
	json_put_str(w, metric);
	parts_put_kind(w, metric);
	parts_put_text(w, "verdict", names[is_void ? JUDGED_NO_EVIDENCE : v]);
	parts_put_number(w, "before", t->median[0]);
	parts_put_number(w, "after", t->median[1]);
	parts_put_number(w, "effect", t->change.delta);
	parts_put_interval(w, "interval", t->change.interval.low, t->change.interval.high);
	parts_put_number(w, "p", t->q);
	json_key(w, "n");
	json_begin_array(w);
	json_put_int(w, (int64_t)t->n[0]);
	json_put_int(w, (int64_t)t->n[1]);
	json_end_array(w);
	json_key(w, "guard");
	if (guard) {
		json_begin_object(w);
		parts_put_text(w, "text", guard);
		json_end_object(w);
	} else {
		json_put_null(w);
	}
	parts_put_text(w, "reason", reason_of(g, t, v, effect, guard));
	json_end_object(w);
}

static void judge_all(struct regression *g, struct json_writer *w, const struct series_list *l)
{
	const char **guard = arena_alloc(g->r->arena, (l->shown * g->n_metrics + 1) *
					 sizeof(const char *));

	g->item = arena_alloc(g->r->arena, (l->shown * g->n_metrics + 1) * sizeof(*g->item));
	for (size_t m = 0; m < g->n_metrics; m++)
		g->counting[m] = counting_of(g->metric[m]);
	for (size_t s = 0; s < l->shown; s++)
		for (size_t m = 0; m < g->n_metrics; m++) {
			struct item *t = &g->item[g->n_items];

			*t = (struct item){ .series = s, .metric = m };
			guard[g->n_items] = test_item(g, l, t);
			/* a series that has this metric nowhere says nothing */
			g->n_items += t->n[0] || t->n[1];
		}
	adjust(g);
	json_key(w, "items");
	json_begin_array(w);
	for (size_t i = 0; i < g->n_items; i++)
		put_item(g, w, l, &g->item[i], guard[i]);
	json_end_array(w);
	if (l->n > l->shown)
		parts_note(&g->notes, "%zu series; the %zu with the most runs were looked at", l->n,
			   l->shown);
	if (!g->n_items)
		parts_note(&g->notes, !g->rows.n ? "no run matches the filter" :
			   "none of the %zu runs has a metric that was asked for", g->rows.n);
	counting_put(w, g->counting, g->n_metrics);
	counting_notes(g->counting, g->n_metrics, &g->notes);
	parts_put_notes(w, &g->notes);
}

int analyse_regression(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct regression g = { .r = r, .notes.arena = r->arena };
	bool *keep;

	if (read_request(&g, e) < 0 || load(&g, &keep, e) < 0)
		return -1;
	g.place.metric = g.first_metric;
	points_choose(&g.rows, keep, r->arena, &g.place);
	series_make(r, &g.key, &g.rows, g.place.first + POINT_VERSION, keep, &g.keyed);
	judge_all(&g, w, &g.keyed.list);
	return 0;
}
