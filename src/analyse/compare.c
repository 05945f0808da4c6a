/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - groups of runs against a baseline: parameters that differ, and for each metric the
 * change with an interval and a verdict, by the policy of `bench compare` (stats/judge.h).
 *
 * effect is the change of the median, interval that of the geometric mean (Welch on logarithms;
 * of the mean where a value is not above 0), p_adjusted Benjamini and Hochberg's over every cell
 * with enough values, needed how many runs a side would show the least change worth naming at
 * this scatter.
 */
#include <math.h>

#include "analyse/differ.h"
#include "analyse/guard.h"
#include "analyse/sides.h"
#include "base/map.h"
#include "stats/compare.h"
#include "stats/judge.h"
#include "stats/stats.h"

#define COMPARE_METRICS_MAX 64
#define COMPARE_RUNS_MAX (ANALYSE_CELLS_MAX / 48) /* of all groups together */

static const char *const usual[] = {
	"request_throughput", "request_goodput", "output_throughput", "total_token_throughput",
	"median_ttft_ms", "p99_ttft_ms", "median_tpot_ms", "p99_tpot_ms", "median_itl_ms",
	"p99_itl_ms", "median_e2el_ms", "p99_e2el_ms", "requests_per_second", "tokens_per_second",
	"avg_latency", "p99_latency", "avg_cold_startup_time", "avg_warm_startup_time",
	"system.j_per_token", "system.peak_gpu_memory_gb", "system.avg_gpu_utilization", NULL,
};

/* One metric of one side. */
struct measure {
	double *value;            /* tested: runs, or means of suites */
	size_t n, n_runs;
	double mean, median, std, min, max; /* of the runs; NAN without */
	struct contrast change;   /* against the baseline */
	double q;
	enum judged verdict;
};

struct comparison {
	const struct analyse_request *r;
	struct side side[SIDES_MAX];
	size_t n_sides, baseline;
	double level;
	bool is_by_suite;
	struct value *suite[SIDES_MAX];
	struct verdicts verdicts[SIDES_MAX];
	const char *guard[SIDES_MAX];
	struct str *metric;
	struct counting *counting;   /* of each metric */
	size_t n_metrics;
	struct measure *cell;        /* [metric * n_sides + side] */
	struct notes notes;
};

/* ---- the request ---- */

static int read_groups(struct comparison *c, struct err *e)
{
	const struct json_value *list = json_get(c->r->body, "groups");
	size_t runs = 0, by_number = 0;

	if (!list || list->kind != JSON_ARRAY || !list->count || list->count > SIDES_MAX)
		return parts_refuse(e, "/groups", "a list of 1 to %d groups was expected",
				    SIDES_MAX);
	for (; c->n_sides < list->count; c->n_sides++) {
		size_t i = c->n_sides;
		const char *pointer = arena_printf(c->r->arena, "/groups/%zu", i);
		const char *name = arena_printf(c->r->arena, "%c", (int)('A' + i));

		if (side_read(c->r, &list->item[i], pointer, name, &c->side[i], e) < 0)
			return -1;
		runs += c->side[i].n;
		by_number += c->side[i].filter ? 0 : c->side[i].n;
		if (by_number > SIDES_IDS_MAX)
			return parts_refuse(e, pointer, "more than %d runs by number are too many in all "
					    "groups together (SIDES_IDS_MAX): name some groups by a filter",
					    SIDES_IDS_MAX);
	}
	if (runs > COMPARE_RUNS_MAX)
		return parts_refuse(e, "/groups", "%zu runs are more than can be compared at once "
				    "(%d): narrow the filters", runs, COMPARE_RUNS_MAX);
	return 0;
}

static int read_options(struct comparison *c, struct err *e)
{
	const struct json_value *by = json_get(c->r->body, "by");

	if (read_groups(c, e) < 0 ||
	    parts_whole(c->r->body, "", "baseline", 0, 0, c->n_sides - 1, &c->baseline, e) < 0 ||
	    parts_number(c->r->body, "", "level", JUDGE_LEVEL, 0.5, 0.9999, &c->level, e) < 0)
		return -1;
	if (by && by->kind != JSON_NULL && !str_is(json_text(by, STR("")), "run") &&
	    !str_is(json_text(by, STR("")), "suite"))
		return parts_refuse(e, "/by", "run or suite was expected");
	c->is_by_suite = str_is(json_text(by, STR("run")), "suite");
	return 0;
}

/* ---- values ---- */

/* Runs of one suite become their mean; runs of none stay alone. */
static void tested_values(struct comparison *c, size_t side, struct measure *cell,
			  const double *x, const size_t *row)
{
	struct value *suite = c->suite[side];
	struct map seen = { 0 };
	double *count = arena_alloc(c->r->arena, (cell->n_runs + 1) * sizeof(*count));

	cell->value = arena_alloc(c->r->arena, (cell->n_runs + 1) * sizeof(*cell->value));
	for (size_t i = 0; i < cell->n_runs; i++) {
		struct value name = c->is_by_suite ? suite[row[i]] : (struct value){ 0 };
		uint64_t k;

		if (name.kind != VALUE_TEXT || !map_get(&seen, name.text, &k)) {
			k = cell->n++;
			if (name.kind == VALUE_TEXT)
				map_put(&seen, name.text, k);
		}
		cell->value[k] += x[i];
		count[k]++;
	}
	for (size_t k = 0; k < cell->n; k++)
		cell->value[k] /= count[k];
	map_release(&seen);
}

static int fill_cell(struct comparison *c, size_t metric, size_t side, struct err *e)
{
	struct measure *cell = &c->cell[metric * c->n_sides + side];
	const struct side *s = &c->side[side];
	double *x = arena_alloc(c->r->arena, (s->n + 1) * sizeof(*x));
	size_t *row = arena_alloc(c->r->arena, (s->n + 1) * sizeof(*row));
	struct value *value;

	*cell = (struct measure){ .mean = NAN, .median = NAN, .std = NAN, .min = NAN, .max = NAN,
			       .q = NAN };
	if (side_column(c->r, s, c->metric[metric], &value, e) < 0)
		return -1;
	for (size_t i = 0; i < s->n; i++) {
		double v;

		if (!parts_is_number(value[i], &v))
			v = NAN;
		if (counting_see(&c->counting[metric], &c->verdicts[side], i, v) != COUNTS)
			continue;
		x[cell->n_runs] = v;
		row[cell->n_runs++] = i;
	}
	if (!cell->n_runs)
		return 0;
	tested_values(c, side, cell, x, row);
	cell->mean = stats_mean(x, cell->n_runs);
	cell->std = stats_std(x, cell->n_runs);
	cell->median = parts_median(x, cell->n_runs);
	cell->min = x[0];
	cell->max = x[cell->n_runs - 1];
	return 0;
}

/* Metrics that no one asked for by name are left out where only one side has them, or all are 0. */
static bool is_telling(const struct comparison *c, size_t metric)
{
	bool is_any = false;

	for (size_t s = 0; s < c->n_sides; s++) {
		const struct measure *cell = &c->cell[metric * c->n_sides + s];

		if (!cell->n_runs && c->side[s].n)
			return false;
		is_any |= cell->n_runs && (fabs(cell->min) > 0 || fabs(cell->max) > 0);
	}
	return is_any;
}

static int fill_metrics(struct comparison *c, struct err *e)
{
	const struct json_value *asked = json_get(c->r->body, "metrics");
	bool is_asked = asked && asked->kind != JSON_NULL;
	size_t n = 0;

	if (is_asked) {
		if (parts_columns(c->r, "metrics", &c->metric, &c->n_metrics, e) < 0)
			return -1;
	} else {
		c->metric = parts_present(c->r, usual, &c->n_metrics);
	}
	c->cell = arena_alloc(c->r->arena, (c->n_metrics + 1) * c->n_sides * sizeof(*c->cell));
	c->counting = arena_alloc(c->r->arena, (c->n_metrics + 1) * sizeof(*c->counting));
	for (size_t m = 0; m < c->n_metrics; m++) {
		c->metric[n] = c->metric[m];
		c->counting[n] = counting_of(c->metric[m]);
		for (size_t s = 0; s < c->n_sides; s++)
			if (fill_cell(c, n, s, e) < 0)
				return -1;
		n += is_asked || is_telling(c, n);
	}
	c->n_metrics = n;
	return 0;
}

/* ---- verdicts ---- */

static void test_cells(struct comparison *c)
{
	double *p = arena_alloc(c->r->arena, (c->n_metrics * c->n_sides + 1) * sizeof(*p));
	struct measure **tested = arena_alloc(c->r->arena, (c->n_metrics * c->n_sides + 1) *
					   sizeof(struct measure *));
	size_t n = 0;

	for (size_t m = 0; m < c->n_metrics; m++)
		for (size_t s = 0; s < c->n_sides; s++) {
			struct measure *a = &c->cell[m * c->n_sides + c->baseline];
			struct measure *b = &c->cell[m * c->n_sides + s];

			if (s == c->baseline)
				continue;
			b->change = contrast_test(a->value, a->n, a->median, b->value, b->n,
						  b->median, c->level);
			if (!judge_is_enough(a->n, b->n))
				continue;
			p[n] = b->change.p;
			tested[n++] = b;
		}
	compare_adjust(p, n);
	for (size_t i = 0; i < n; i++)
		tested[i]->q = p[i];
}

static const char *const verdict_names[] = {
	[JUDGED_MISSING] = "missing", [JUDGED_NOT_ENOUGH] = "not enough data",
	[JUDGED_NO_EVIDENCE] = "no evidence", [JUDGED_WORSE] = "worse", [JUDGED_BETTER] = "better",
	[JUDGED_CHANGED] = "changed",
};

static void put_delta(struct comparison *c, struct json_writer *w, size_t metric, size_t side)
{
	const struct measure *a = &c->cell[metric * c->n_sides + c->baseline];
	const struct measure *b = &c->cell[metric * c->n_sides + side];
	double least = judge_effect_min(arena_text(c->r->arena, c->metric[metric]));
	enum judged v = judge_change(&b->change, b->q, a->median, b->median, a->n, b->n,
				     column_better(c->metric[metric]), least, JUDGE_ALPHA);
	bool is_void = v == JUDGED_BETTER && c->guard[side];
	bool is_enough = judge_is_enough(a->n, b->n);
	size_t needed = 0;

	if (isfinite(b->change.cv) && (v == JUDGED_NOT_ENOUGH || v == JUDGED_NO_EVIDENCE))
		needed = compare_repeats_needed(b->change.cv, least, JUDGE_ALPHA, JUDGE_POWER);
	json_begin_object(w);
	parts_put_count(w, "group", side);
	parts_put_number(w, "effect", b->change.delta);
	parts_put_interval(w, "interval", b->change.interval.low, b->change.interval.high);
	parts_put_number(w, "p", is_enough ? b->change.p : NAN);
	parts_put_number(w, "p_adjusted", b->q);
	parts_put_number(w, "p_ranks", is_enough ? b->change.p_ranks : NAN);
	parts_put_text(w, "method", b->change.is_ratio ? "Welch's test on logarithms"
						       : "Welch's test");
	parts_put_text(w, "verdict", verdict_names[is_void ? JUDGED_NO_EVIDENCE : v]);
	parts_put_text(w, "guard", is_void ? c->guard[side] : NULL);
	parts_put_number(w, "needed", needed ? (double)needed : NAN);
	json_end_object(w);
}

static void put_metric(struct comparison *c, struct json_writer *w, size_t m)
{
	json_begin_object(w);
	json_key(w, "column");
	json_put_str(w, c->metric[m]);
	parts_put_kind(w, c->metric[m]);
	json_key(w, "groups");
	json_begin_array(w);
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct measure *cell = &c->cell[m * c->n_sides + s];

		json_begin_object(w);
		parts_put_count(w, "n", cell->n_runs);
		parts_put_number(w, "mean", cell->mean);
		parts_put_number(w, "median", cell->median);
		parts_put_number(w, "std", cell->std);
		parts_put_number(w, "min", cell->min);
		parts_put_number(w, "max", cell->max);
		json_end_object(w);
	}
	json_end_array(w);
	json_key(w, "deltas");
	json_begin_array(w);
	for (size_t s = 0; s < c->n_sides; s++)
		if (s != c->baseline)
			put_delta(c, w, m, s);
	json_end_array(w);
	json_end_object(w);
}

/* ---- guards, notes ---- */

static int fill_guards(struct comparison *c, struct err *e)
{
	struct work work[SIDES_MAX];

	for (size_t s = 0; s < c->n_sides; s++) {
		const struct value *value[GUARD_COLUMNS];

		for (size_t i = 0; i < GUARD_COLUMNS; i++) {
			struct value *v;

			if (side_column(c->r, &c->side[s], guard_columns[i], &v, e) < 0)
				return -1;
			value[i] = v;
		}
		work[s] = work_of(value, NULL, c->side[s].n);
		if (side_column(c->r, &c->side[s], STR("suite"), &c->suite[s], e) < 0 ||
		    side_verdicts(c->r, &c->side[s], &c->verdicts[s], e) < 0)
			return -1;
	}
	for (size_t s = 0; s < c->n_sides; s++) {
		if (s == c->baseline)
			continue;
		c->guard[s] = guard_against(c->r->arena, &work[c->baseline], &work[s]);
		if (c->guard[s])
			parts_note(&c->notes, "%s: %s", c->side[s].name, c->guard[s]);
	}
	return 0;
}

static size_t count_text(const struct value *v, size_t n, const char *text)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += v[i].kind == VALUE_TEXT && str_is(v[i].text, text);
	return count;
}

static int note_sides(struct comparison *c, struct err *e)
{
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct side *side = &c->side[s];
		struct value *verdict, *source;
		size_t bad, loose;

		if (side_column(c->r, side, STR("verdict"), &verdict, e) < 0 ||
		    side_column(c->r, side, STR("source"), &source, e) < 0)
			return -1;
		bad = count_text(verdict, side->n, "INVALID");
		if (bad)
			parts_note(&c->notes, "%s: %zu of %zu runs judged themselves INVALID",
				   side->name, bad, side->n);
		loose = side->n - count_text(source, side->n, "profllm");
		if (loose > 1 && !c->is_by_suite)
			parts_note(&c->notes, "%s: nothing tells which of %zu runs shared a server's "
				   "life; they count as independent, and repeats within one are not "
				   "(about 40 %% false alarms)", side->name, loose);
	}
	return 0;
}

static void note_overlap(struct comparison *c)
{
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t t = s + 1; t < c->n_sides; t++) {
			const struct side *a = &c->side[s], *b = &c->side[t];
			size_t both = 0;

			for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
				both += a->id[i] == b->id[k];
				if (a->id[i] <= b->id[k])
					i++;
				else
					k++;
			}
			if (both)
				parts_note(&c->notes, "%zu of the runs are in %s and in %s", both, a->name,
					   b->name);
		}
}

/* ---- everything ---- */

static void put_groups(const struct comparison *c, struct json_writer *w)
{
	json_key(w, "groups");
	json_begin_array(w);
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct side *side = &c->side[s];

		json_begin_object(w);
		parts_put_text(w, "name", side->name);
		parts_put_count(w, "n", side->n);
		json_key(w, "ids");
		json_begin_array(w);
		for (size_t i = 0; i < side->n && i < ANALYSE_IDS_SHOWN_MAX; i++)
			json_put_int(w, side->id[i]);
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}

int analyse_compare(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct comparison c = { .r = r, .notes.arena = r->arena };

	if (read_options(&c, e) < 0 || fill_guards(&c, e) < 0 || fill_metrics(&c, e) < 0 ||
	    note_sides(&c, e) < 0)
		return -1;
	test_cells(&c);
	counting_notes(c.counting, c.n_metrics, &c.notes);
	note_overlap(&c);
	put_groups(&c, w);
	if (differ_put(r, c.side, c.n_sides, &c.notes, w, e) < 0)
		return -1;
	json_key(w, "metrics");
	json_begin_array(w);
	for (size_t m = 0; m < c.n_metrics; m++)
		put_metric(&c, w, m);
	json_end_array(w);
	counting_put(w, c.counting, c.n_metrics);
	parts_put_notes(w, &c.notes);
	return 0;
}
