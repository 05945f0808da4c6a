/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regression.c - did it get worse: runs against a baseline, series by series, judged by
 * decide/compare.h.
 *
 * The baseline is given by the request: {"ids": [...]} or {"filter": F} (any runs; those are then
 * not candidates), {"commit": C} (candidates are runs of commits first measured after it), or
 * {"last": n} (candidates are the last n points of each series, the baseline up to BASELINE_POINTS
 * before them).
 *
 * Each metric of a series is one comparison of one configuration, adjusted together with all the
 * others that are shown; policy.effect is its least change worth naming, policy.p its alpha. The
 * unit is the server session (provenance.session). If a run does not name its session, it is that
 * of all runs of its point (a commit, a version, a day, or itself): points of a series are
 * different starts of the code under test. Runs that failed have no value, and are failed requests
 * to the guards; INVALID ones are counted and left out.
 *
 * Two rules are added: a verdict needs policy.points_after points (runs, against named runs), and a
 * gain is not comparable when a metric of policy.guards is worse by more than MATCHED_WORK_CHANGE.
 */
#include <math.h>

#include "results/analyse/analyse_internal.h"

#define METRICS_MAX 16
#define GUARDS_MAX 16
#define BASELINE_POINTS 20
#define LAST_POINTS 4          /* candidates, where the request names no baseline */
#define COMMIT_BYTES_MIN 7
#define COLUMNS_NAMED_MAX 5    /* in a note */
#define EFFECT_LEAST 1e-9      /* replaces a policy.effect of 0 */
#define REGRESSION_RUNS_MAX (ANALYSE_CELLS_MAX / 8) /* of all series and metrics together */

enum mode { BY_RUNS, BY_COMMIT, BY_LAST };

/* The part of a row in its series. */
enum part { PART_BASELINE, PART_CANDIDATE, PART_NONE };

/* One metric of one series. */
struct item { size_t series, metric, n[2], points; }; /* runs that count; the candidates' points */

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
	size_t first_work, first_own, first_metric; /* columns: keys, points, work, guards ... */
	struct str *column;
	size_t n_columns;
	struct rows rows;
	bool *is_baseline;         /* of each row, when by runs */
	struct point_columns place;
	enum counts *counts;       /* of each row, for the metric at hand */
	size_t *at;                /* of each row: its point, SIZE_MAX: none */
	bool *is_nameless;         /* of each row used: it does not name a session */
	struct item *item;
	struct matched_spec *spec; /* of each item */
	struct matched *out;       /* of each item */
	size_t n_items, n_runs;
	struct counting counting[METRICS_MAX], guarding[GUARDS_MAX];
	struct notes notes;
};

/* ---- the request ---- */

static int read_policy(struct regression *g, struct err *e)
{
	const struct json_value *policy = json_get(g->r->body, "policy");
	const struct json_value *guards = json_get(policy, "guards");

	if (policy && policy->kind != JSON_OBJECT && policy->kind != JSON_NULL)
		return parts_refuse(e, "/policy", "expected an object");
	if (parts_number(policy, "/policy", "effect", NAN, 0, 10, &g->effect, e) < 0 ||
	    parts_number(policy, "/policy", "p", MATCHED_ALPHA, 1e-9, 0.49, &g->p, e) < 0 ||
	    parts_whole(policy, "/policy", "points_after", 3, 1, 1000, &g->points_after, e) < 0)
		return -1;
	if (!guards || guards->kind == JSON_NULL)
		return 0;
	if (guards->kind != JSON_ARRAY || guards->count > GUARDS_MAX)
		return parts_refuse(e, "/policy/guards", "expected a list of at most %d columns",
				    GUARDS_MAX);
	g->guard = arena_alloc(g->r->arena, (guards->count + 1) * sizeof(*g->guard));
	for (; g->n_guards < guards->count; g->n_guards++) {
		const struct json_value *one = &guards->item[g->n_guards];

		if (one->kind != JSON_STRING || !column_better(one->text))
			return err_set(e, ERR_USAGE, "/policy/guards/%zu: expected a metric of which more "
				       "or less is better", g->n_guards);
		g->guard[g->n_guards] = one->text;
	}
	return 0;
}

static int read_baseline(struct regression *g, struct err *e)
{
	const struct json_value *b = json_get(g->r->body, "baseline"), *commit;

	g->mode = BY_LAST;
	g->last = g->points_after > LAST_POINTS ? g->points_after : LAST_POINTS;
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
			return parts_refuse(e, "/baseline/commit", "expected at least %d characters of a "
					    "commit", COMMIT_BYTES_MIN);
		return 0;
	}
	if (!json_get(b, "last"))
		return parts_refuse(e, "/baseline", "expected ids, filter, commit or last");
	return parts_whole(b, "/baseline", "last", 1, 1, 1000, &g->last, e);
}

static int read_metrics(struct regression *g, struct err *e)
{
	bool is_list = json_get(g->r->body, "metrics") != NULL;

	if (parts_columns(g->r, is_list ? "metrics" : "metric", &g->metric, &g->n_metrics, e) < 0)
		return -1;
	if (!g->n_metrics || g->n_metrics > METRICS_MAX)
		return parts_refuse(e, is_list ? "/metrics" : "/metric", "expected 1 to %d metrics",
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
	g->column = arena_alloc(g->r->arena, (g->key.n + POINT_COLUMNS + WORK_COLUMNS +
					      g->n_guards + g->n_metrics) * sizeof(*g->column));
	add_columns(g, g->key.column, g->key.n);
	g->place.first = g->n_columns;
	add_columns(g, points_columns, POINT_COLUMNS);
	g->first_work = g->n_columns;
	add_columns(g, work_columns, WORK_COLUMNS);
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

/* Appends named baselines to the candidates, even if the filter excludes them. */
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

/* Divides points in order into baseline and candidates; returns the number of candidates. */
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

/* The series' points of a metric; sets which of its rows count, and the point of each. */
static struct point *place_rows(struct regression *g, const struct series *s, size_t metric,
				size_t *n)
{
	struct arena *a = g->r->arena;
	struct series has = { .member = arena_alloc(a, (s->n + 1) * sizeof(size_t)) };
	struct point *p;

	g->place.metric = g->first_metric + metric;
	for (size_t i = 0; i < s->n; i++) {
		size_t row = s->member[i];

		g->at[row] = SIZE_MAX;
		g->counts[row] = counting_see(&g->counting[metric], &g->rows.verdicts, row,
					      parts_number_at(&g->rows, g->place.metric, row));
		if (g->counts[row] == COUNTS && points_has(&g->rows, &g->place, row))
			has.member[has.n++] = row;
	}
	p = points_of(a, &g->rows, &g->place, &has, n);
	for (size_t i = 0; i < *n; i++)
		for (size_t k = 0; k < p[i].n; k++)
			g->at[p[i].member[k]] = i;
	for (size_t i = 0; i < s->n; i++) {
		size_t row = s->member[i];

		if (g->counts[row] == COUNTS_FAILED || g->counts[row] == COUNTS_INVALID)
			g->at[row] = points_place(&g->rows, &g->place, row, p, *n);
	}
	return p;
}

static enum part part_of(const struct regression *g, const enum part *of_point, size_t row)
{
	if (g->counts[row] == COUNTS_MISSING)
		return PART_NONE;
	if (g->mode == BY_RUNS)
		return g->is_baseline[row] ? PART_BASELINE : PART_CANDIDATE;
	return g->at[row] == SIZE_MAX ? PART_NONE : of_point[g->at[row]];
}

/* ---- runs for the engine ---- */

static const char *session_of(struct regression *g, size_t row)
{
	struct value v = g->rows.value[(g->place.first + POINT_SESSION) * g->rows.n + row];

	if (v.kind == VALUE_TEXT && v.text.n)
		return arena_text(g->r->arena, v.text);
	g->is_nameless[row] = true;
	return g->at[row] == SIZE_MAX ? NULL :
		arena_printf(g->r->arena, "\npoint %zu", g->at[row]); /* not a possible name */
}

static struct matched_run run_of(struct regression *g, const struct item *t, size_t row,
				 enum part part)
{
	const struct value *work[WORK_COLUMNS];
	size_t values = 1 + g->n_guards;
	double *value = arena_alloc(g->r->arena, values * sizeof(*value));
	unsigned char *state = arena_alloc(g->r->arena, values);
	enum counts counts = g->counts[row];

	for (size_t c = 0; c < WORK_COLUMNS; c++)
		work[c] = g->rows.value + (g->first_work + c) * g->rows.n;
	value[0] = counts == COUNTS_FAILED ? NAN :
		   parts_number_at(&g->rows, g->first_metric + t->metric, row);
	for (size_t k = 0; k < g->n_guards; k++) {
		double v = parts_number_at(&g->rows, g->first_own + k, row);

		value[1 + k] = counts == COUNTS && counts_for(&g->guarding[k], &g->rows.verdicts,
							      row, v) == COUNTS ? v : NAN;
	}
	memset(state, counts == COUNTS_INVALID ? MATCHED_INVALID : MATCHED_COUNTS, values);
	return (struct matched_run){
		.side = part == PART_CANDIDATE, .config = g->keyed.list.series[t->series].name,
		.session = counts == COUNTS ? session_of(g, row) : NULL, .value = value,
		.state = state, .work = work_at(work, row) };
}

/* The metric that is judged, then those of policy.guards. */
static const struct matched_metric *metrics_of(const struct regression *g, size_t metric)
{
	struct arena *a = g->r->arena;
	struct matched_metric *of = arena_alloc(a, (1 + g->n_guards) * sizeof(*of));

	for (size_t k = 0; k <= g->n_guards; k++) {
		struct str column = k ? g->guard[k - 1] : g->metric[metric];
		const char *unit = column_unit(column);

		of[k] = matched_metric_of(arena_text(a, column), *unit ? unit : NULL,
					  column_better(column));
	}
	if (!isnan(g->effect))
		of[0].effect_min = fmax(g->effect, EFFECT_LEAST);
	return of;
}

/* Items with too few points are adjusted separately, so that they affect no other verdict. */
static int fill_item(struct regression *g, const struct matched_metric *of, struct item *t,
		     struct matched_spec *spec, struct err *e)
{
	static const char *const side[] = { "the baseline", "the candidate" };
	const struct series *s = &g->keyed.list.series[t->series];
	struct matched_run *run;
	size_t n_points, n = 0;
	struct point *p = place_rows(g, s, t->metric, &n_points);
	enum part *part = arena_alloc(g->r->arena, (n_points + 1) * sizeof(*part));

	t->points = part_points(g, p, n_points, part);
	for (size_t i = 0; i < s->n; i++)
		n += part_of(g, part, s->member[i]) != PART_NONE;
	g->n_runs += n;
	if (g->n_runs > REGRESSION_RUNS_MAX)
		return parts_refuse(e, "/baseline", "more than %d runs of all series and metrics are too "
				    "many at once: narrow the filter, or ask for fewer metrics",
				    REGRESSION_RUNS_MAX);
	run = arena_alloc(g->r->arena, (n + 1) * sizeof(*run));
	n = 0;
	for (size_t i = 0; i < s->n; i++) {
		size_t row = s->member[i];
		enum part is = part_of(g, part, row);

		if (is == PART_NONE)
			continue;
		t->n[is] += g->counts[row] == COUNTS;
		run[n++] = run_of(g, t, row, is);
	}
	if (g->mode == BY_RUNS)
		t->points = t->n[1];
	*spec = (struct matched_spec){
		.run = run, .n_runs = n, .metric = of, .n_metrics = 1 + g->n_guards, .side = side,
		.n_sides = 2, .alpha = g->p,
		.primary = t->points >= g->points_after ? 0 : 1 + g->n_guards };
	return 0;
}

/* ---- judging ---- */

/* No number that looks like an answer. */
static void withhold(struct matched_row *row, enum matched_verdict verdict, enum matched_why why,
		     const char *reason)
{
	row->verdict = verdict;
	row->why = why;
	row->reason = reason;
	row->is.interval = (struct interval){ NAN, NAN };
	row->q = NAN;
}

/* The metrics of policy.guards that got worse, in words; NULL: none. */
static const char *worse_guard(const struct regression *g, const struct matched_row *guard)
{
	for (size_t k = 0; k < g->n_guards; k++) {
		const double *v = guard[k].is.value;

		if (guard[k].metric->better * (v[1] - v[0]) < -MATCHED_WORK_CHANGE * fabs(v[0]))
			return arena_printf(g->r->arena, "%s got worse, from %.6g to %.6g",
					    guard[k].metric->name, v[0], v[1]);
	}
	return NULL;
}

/* Applies the policy to the engine's verdict. */
static void apply_policy(const struct regression *g, const struct item *t, const struct matched *m)
{
	const struct matched_pair *pair = &m->pair[0];
	struct matched_row *row = &pair->row[0];
	const char *worse;

	if (pair->refusal) {
		*row = (struct matched_row){ .metric = &m->spec->metric[0],
					     .is = { .value = { NAN, NAN }, .ratio = NAN } };
		withhold(row, MATCHED_NOT_ENOUGH, MATCHED_WHY_MISSING, pair->reason);
		return;
	}
	worse = worse_guard(g, &pair->row[1]);
	if (row->why != MATCHED_WHY_NONE)
		return;
	if (t->points < g->points_after)
		withhold(row, MATCHED_NOT_ENOUGH, MATCHED_WHY_POLICY,
			 arena_printf(g->r->arena, "%zu points after the baseline, but the policy "
				      "requires %zu", t->points, g->points_after));
	else if ((row->verdict == MATCHED_BETTER || row->verdict == MATCHED_BETTER_SMALL) && worse)
		withhold(row, MATCHED_NOT_COMPARABLE, MATCHED_WHY_GUARD, worse);
}

static void put_two(struct json_writer *w, const char *key, const size_t n[2])
{
	json_member_array(w, key);
	for (size_t i = 0; i < 2; i++)
		json_put_int(w, (int64_t)n[i]);
	json_end_array(w);
}

static void put_item(const struct regression *g, struct json_writer *w, size_t i)
{
	const struct item *t = &g->item[i];
	const struct matched_pair *pair = &g->out[i].pair[0];
	const struct matched_row *row = &pair->row[0];
	const struct series_list *l = &g->keyed.list;
	struct str metric = g->metric[t->metric];

	json_begin_object(w);
	json_member_text(w, "series", l->series[t->series].id);
	parts_put_series(w, l, t->series);
	json_member_str(w, "metric", metric);
	parts_put_kind(w, metric);
	json_member_text(w, "verdict", matched_verdict_key(row->verdict));
	json_member_text(w, "words", matched_verdict_words(row, g->r->arena));
	parts_put_number(w, "before", row->is.value[0]);
	parts_put_number(w, "after", row->is.value[1]);
	parts_put_number(w, "effect", row->is.ratio - 1);
	parts_put_interval(w, "interval", row->is.interval.low - 1, row->is.interval.high - 1);
	parts_put_number(w, "p", row->q);
	put_two(w, "n", t->n);
	put_two(w, "sessions", row->sessions);
	parts_put_number(w, "sessions_needed", row->need.sessions ? (double)row->need.sessions : NAN);
	json_key(w, "guard");
	if (row->why == MATCHED_WHY_GUARD) {
		json_begin_object(w);
		json_member_text(w, "text", row->reason);
		json_end_object(w);
	} else {
		json_put_null(w);
	}
	json_member_text(w, "reason", row->reason);
	json_member_text(w, "sentence", matched_sentence(&g->out[i], pair, row, g->r->arena));
	json_end_object(w);
}

static int judge_all(struct regression *g, struct err *e)
{
	struct arena *a = g->r->arena;
	size_t shown = g->keyed.list.shown, cells = shown * g->n_metrics;

	g->counts = arena_alloc(a, (g->rows.n + 1) * sizeof(*g->counts));
	g->at = arena_alloc(a, (g->rows.n + 1) * sizeof(*g->at));
	g->is_nameless = arena_alloc(a, g->rows.n + 1);
	g->item = arena_alloc(a, (cells + 1) * sizeof(*g->item));
	g->spec = arena_alloc(a, (cells + 1) * sizeof(*g->spec));
	g->out = arena_alloc(a, (cells + 1) * sizeof(*g->out));
	for (size_t k = 0; k < g->n_guards; k++)
		g->guarding[k] = counting_of(g->guard[k]);
	for (size_t m = 0; m < g->n_metrics; m++)
		g->counting[m] = counting_of(g->metric[m]);
	for (size_t s = 0; s < shown; s++)
		for (size_t m = 0; m < g->n_metrics; m++) {
			struct item *t = &g->item[g->n_items];

			*t = (struct item){ .series = s, .metric = m };
			if (fill_item(g, metrics_of(g, m), t, &g->spec[g->n_items], e) < 0)
				return -1;
			/* skip a series without this metric */
			g->n_items += t->n[0] || t->n[1];
		}
	matched_compare_all(g->spec, g->n_items, a, g->out);
	for (size_t i = 0; i < g->n_items; i++)
		apply_policy(g, &g->item[i], &g->out[i]);
	return 0;
}

static void note_sessions(struct regression *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->rows.n; i++)
		n += g->is_nameless[i];
	if (n)
		parts_note(&g->notes, "%zu run%s not name the start of the server (provenance.session): %s",
			   n, n == 1 ? " does" : "s do", g->place.axis == AXIS_TIME ?
			   "each counts as a server session of its own, which makes the "
			   "answer too certain if they shared one" :
			   arena_printf(g->r->arena, "those of one %s count as one server session",
					points_axis_name(g->place.axis)));
}

/* Whether one of these sides has a value of a column that the other has not. */
static bool is_apart(struct str column, const struct value_counts *x, const struct value_counts *y,
		     struct value version)
{
	for (size_t i = 0; i < x->n; i++) {
		struct value v = series_value(column, x->of[i].value, version);
		size_t k = 0;

		while (k < y->n &&
		       !series_same_value(v, series_value(column, y->of[k].value, version)))
			k++;
		if (k == y->n)
			return true;
	}
	return false;
}

/*
 * Names what was configured otherwise for named baselines and is not in the key, which has only
 * columns in which the candidates differ, or those that the request names.
 */
static int note_apart(struct regression *g, struct err *e)
{
	const struct value *version = g->rows.value + (g->place.first + POINT_VERSION) * g->rows.n;
	size_t n, n_other = 0, named = 0, first = g->rows.n - g->baseline.n;
	struct str *column = series_columns(g->r, SERIES_KEY, &n);
	struct value_counts *of = arena_alloc(g->r->arena, (2 * n + 1) * sizeof(*of));
	struct side candidates = { .n = first };
	struct filter *given;
	struct buf names = { 0 };

	if (!first || !g->baseline.n)
		return 0;
	for (size_t c = 0; c < n; c++) {
		size_t k = 0;

		while (k < g->key.n && !str_eq(g->key.column[k], column[c]))
			k++;
		if (k == g->key.n)
			column[n_other++] = column[c];
	}
	if (filter_read(json_get(g->r->body, "filter"), "/filter", g->r->arena, &given, e) < 0)
		return -1;
	candidates.filter = parts_both(g->r->arena, given, NULL); /* a side has a filter */
	if (side_counts(g->r, &candidates, column, n_other, of, e) < 0 ||
	    side_counts(g->r, &g->baseline, column, n_other, of + n_other, e) < 0)
		return -1;
	for (size_t c = 0; c < n_other; c++) {
		const struct value_counts *x = &of[c], *y = &of[n_other + c];

		if (x->distinct > x->n || y->distinct > y->n) /* more values than are listed */
			continue;
		if ((is_apart(column[c], x, y, version[0]) ||
		     is_apart(column[c], y, x, version[0])) && named++ < COLUMNS_NAMED_MAX)
			buf_printf(&names, "%s%.*s", names.len ? ", " : "", (int)column[c].n, column[c].p);
	}
	if (named)
		parts_note(&g->notes, "the baseline differs from the runs in %.*s%s", (int)names.len,
			   names.data, named > COLUMNS_NAMED_MAX ? ", ..." : "");
	buf_release(&names);
	return 0;
}

/* A tag in which the runs of one side of a series differ. */
static int note_mixed(struct regression *g, struct err *e)
{
	struct arena *a = g->r->arena;
	const struct series_list *l = &g->keyed.list;
	uint32_t *group = arena_alloc(a, (g->rows.n + 1) * sizeof(*group));
	uint32_t *cell = arena_alloc(a, (g->rows.n + 1) * sizeof(*cell));
	struct str tag[TAGS_MAX];
	size_t n_tags = tags_of(g->r, tag);

	for (size_t i = 0; i < l->shown; i++)
		for (size_t k = 0; k < l->series[i].n; k++) {
			size_t row = l->series[i].member[k];

			group[row] = (uint32_t)i + 1;
			cell[row] = 2 * (uint32_t)i + g->is_baseline[row];
		}
	for (size_t c = 0; c < n_tags; c++) {
		struct value *v, *all;
		struct rows rows;

		if (parts_select(g->r, &tag[c], 1, &rows, e) < 0 ||
		    side_column(g->r, &g->baseline, tag[c], &v, e) < 0)
			return -1;
		all = joined(a, rows.value, rows.n, v, g->baseline.n, NULL);
		if (!tag_is_mixed(group, cell, all, g->rows.n, a))
			continue;
		parts_note(&g->notes, "values are means over runs that differ in %.*s: filter by one value",
			   (int)tag[c].n, tag[c].p);
		break;
	}
	return 0;
}

static void put_all(struct regression *g, struct json_writer *w)
{
	const struct series_list *l = &g->keyed.list;

	json_member_array(w, "items");
	for (size_t i = 0; i < g->n_items; i++)
		put_item(g, w, i);
	json_end_array(w);
	if (l->n > l->shown)
		parts_note(&g->notes, "%zu series; only the %zu with the most runs were looked at", l->n,
			   l->shown);
	if (!g->n_items)
		parts_note(&g->notes, !g->rows.n ? "no run matches the filter" :
			   "none of the %zu runs has a metric that was asked for", g->rows.n);
	note_sessions(g);
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
	if (judge_all(&g, e) < 0)
		return -1;
	if (g.mode == BY_RUNS && (note_apart(&g, e) < 0 || note_mixed(&g, e) < 0))
		return -1;
	put_all(&g, w);
	return 0;
}
