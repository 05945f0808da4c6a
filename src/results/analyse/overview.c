/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview.c - the first page: the best configuration of each color of a workload at a low, a
 * middle and a high load, what changed at which commit, and what needs attention.
 *
 * Low and high are the ends of the loads at which at least half of the rows were measured. The
 * default metrics are the speed of a user at low load and the throughput of a GPU at the others. Of
 * INVALID runs only the number is shown, and whether one of them would lead.
 *
 * Changes are those of trends.c: unreviewed ones of three metrics, one per commit, in the newest
 * runs that name a commit, so that this page need not wait for all of a long history. Versions are
 * compared by versions.c.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/analyse/analyse_internal.h"

#define ROWS_SHOWN 8
#define LOADS_SHOWN 3
#define CHANGES_SHOWN 5
#define CHANGES_SEEN 512
#define CHANGES_RUNS_MAX 5000 /* runs with a commit that are examined: the newest */
#define CHANGE_IDS_SHOWN 50
#define LATEST_SHOWN 5

enum { USER, GPU, TTFT_P99, TTFT, USD, KW, OUTPUT, METRICS };

static const struct str metrics[METRICS] = {
	[USER] = { "tokens_per_s_per_user", 21 }, [GPU] = { "tokens_per_s_per_gpu", 20 },
	[TTFT_P99] = { "p99_ttft_ms", 11 }, [TTFT] = { "median_ttft_ms", 14 },
	[USD] = { "usd_per_m_output", 16 }, [KW] = { "tokens_per_s_per_kw", 19 },
	[OUTPUT] = { "output_throughput", 17 },
};

/* The best of a row at a load. */
struct best {
	const struct setup_point *p; /* NULL: nothing counts there */
	const struct setup_point *invalid_at;
	struct folded value, invalid; /* of the ranking metric; the best INVALID one */
	size_t n_invalid;            /* runs */
	bool is_best, would_lead;
};

struct overview {
	const struct analyse_request *r;
	struct setups s;
	bool *keep[METRICS], *is_invalid[METRICS];
	bool *both;                  /* of each row; scratch memory of fold_with */
	struct setup_point *point;   /* with the newest version that has any result */
	struct setup_point *of_metric[METRICS]; /* newest that has the metric; NULL: unread */
	size_t n_points;
	struct str mixed;            /* setups_mixed */
	struct value load_kind;      /* of all loads */
	double load[LOADS_SHOWN];    /* NAN: whatever was measured */
	size_t n_loads, rank[LOADS_SHOWN];
	size_t wanted;               /* the metric that the request ranks by; METRICS: none */
	double need_user, need_ttft_ms; /* NAN: no need */
	size_t row[ROWS_SHOWN], n_rows; /* places in the legend */
	struct best best[ROWS_SHOWN][LOADS_SHOWN];
};

/* ---- the request ---- */

static int read_request(struct overview *o, struct err *e)
{
	static const struct { const char *name; size_t metric; } ranks[] = {
		{ "user", USER }, { "gpu", GPU }, { "kw", KW }, { "ttft", TTFT_P99 }, { "usd", USD },
	};
	const struct json_value *rank = json_get(o->r->body, "rank");
	const struct json_value *need = json_get(o->r->body, "need");

	o->wanted = METRICS;
	for (size_t i = 0; rank && i < sizeof(ranks) / sizeof(*ranks); i++)
		if (str_is(json_text(rank, STR("")), ranks[i].name))
			o->wanted = ranks[i].metric;
	if (rank && rank->kind != JSON_NULL && o->wanted == METRICS)
		return parts_refuse(e, "/rank", "expected user, gpu, kw, ttft or usd");
	if (need && need->kind != JSON_OBJECT && need->kind != JSON_NULL)
		return parts_refuse(e, "/need", "expected an object");
	if (parts_number(need, "/need", "tokens_per_s_per_user", NAN, 0, ANALYSE_NUMBER_MAX,
			 &o->need_user, e) < 0 ||
	    parts_number(need, "/need", "p99_ttft_ms", NAN, 0, ANALYSE_NUMBER_MAX,
			 &o->need_ttft_ms, e) < 0 ||
	    setups_read(o->r, metrics, METRICS, metrics[GPU], NULL, &o->s, e) < 0)
		return -1;
	setups_power(&o->s, KW);
	return setups_price(&o->s, USD, e);
}

static void judge_rows(struct overview *o)
{
	struct setups *s = &o->s;

	o->both = arena_alloc(o->r->arena, s->rows.n + 1);
	for (size_t m = 0; m < METRICS; m++) {
		o->keep[m] = arena_alloc(o->r->arena, s->rows.n + 1);
		o->is_invalid[m] = arena_alloc(o->r->arena, s->rows.n + 1);
		for (size_t i = 0; i < s->rows.n; i++) {
			enum counts counts = counts_for(&s->counting[m], &s->rows.verdicts, i,
							setups_metric(s, m, i));

			o->keep[m][i] = counts == COUNTS;
			o->is_invalid[m][i] = counts == COUNTS_INVALID;
		}
	}
}

static bool has_any(const struct overview *o, size_t metric)
{
	return o->s.rows.n && (memchr(o->keep[metric], 1, o->s.rows.n) ||
			       memchr(o->is_invalid[metric], 1, o->s.rows.n));
}

/* ---- loads ---- */

static size_t color_of(const struct overview *o, const struct setup_point *p)
{
	return o->s.color_of[p->member[0]];
}

static bool has_result(const struct overview *o, const struct setup_point *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (o->keep[USER][p->member[i]] || o->keep[OUTPUT][p->member[i]] ||
		    o->is_invalid[USER][p->member[i]] || o->is_invalid[OUTPUT][p->member[i]])
			return true;
	return false;
}

struct measured { double load; size_t color; };

static int by_load(const void *x, const void *y)
{
	const struct measured *a = x, *b = y;

	if (a->load < b->load || a->load > b->load)
		return a->load < b->load ? -1 : 1;
	return (a->color > b->color) - (a->color < b->color);
}

static bool is_at(const struct setup_point *p, double load)
{
	return isnan(load) || fabs(p->load - load) <= 1e-9 * fabs(load);
}

/* Loads at which at least half of the colors that have any result have one, ascending. */
static double *common_loads(const struct overview *o, size_t *n_common)
{
	struct arena *a = o->r->arena;
	struct measured *m = arena_alloc(a, (o->n_points + 1) * sizeof(*m));
	double *out = arena_alloc(a, (o->n_points + 1) * sizeof(*out));
	bool *is_seen = arena_alloc(a, o->s.n_colors + 1);
	size_t n = 0, colors = 0;

	*n_common = 0;
	for (size_t i = 0; i < o->n_points; i++) {
		size_t color = color_of(o, &o->point[i]);

		if (!has_result(o, &o->point[i]))
			continue;
		colors += !is_seen[color];
		is_seen[color] = true;
		if (!isnan(o->point[i].load))
			m[n++] = (struct measured){ o->point[i].load, color };
	}
	if (n)
		qsort(m, n, sizeof(*m), by_load);
	for (size_t i = 0, to; i < n; i = to) {
		size_t here = 1;

		for (to = i + 1; to < n && m[to].load <= m[i].load; to++)
			here += m[to].color != m[to - 1].color;
		if (2 * here >= colors)
			out[(*n_common)++] = m[i].load;
	}
	return out;
}

/* A column has loads of one kind: points of a kind that is not the most frequent lose theirs. */
static void keep_loads_of_one_kind(struct overview *o, struct setup_point *point)
{
	struct arena *a = o->r->arena;
	struct value *kind = arena_alloc(a, (o->n_points + 1) * sizeof(*kind));
	uint32_t n_codes, usual = 0, *code;
	size_t *points;

	for (size_t i = 0; i < o->n_points; i++)
		kind[i] = setups_fact(&o->s, SETUP_LOAD_KIND, point[i].member[0]);
	code = setups_codes(a, kind, o->n_points, &n_codes);
	points = arena_alloc(a, ((size_t)n_codes + 1) * sizeof(*points));
	for (size_t i = 0; i < o->n_points; i++)
		if (!isnan(point[i].load) && ++points[code[i]] > points[usual])
			usual = code[i];
	for (size_t i = 0; i < o->n_points; i++) {
		if (code[i] != usual)
			point[i].load = NAN;
		else
			o->load_kind = kind[i];
	}
}

/*
 * The points for cells of a metric: where the newest version lacks it, because only this metric is
 * INVALID there, the newest that has it is shown.
 */
static const struct setup_point *points_with(struct overview *o, size_t metric)
{
	size_t n;

	if (!o->of_metric[metric]) {
		o->of_metric[metric] = setups_points(&o->s, o->keep[metric], &n);
		assert(n == o->n_points);
		keep_loads_of_one_kind(o, o->of_metric[metric]);
	}
	return o->of_metric[metric];
}

static void choose_loads(struct overview *o)
{
	size_t kept, nearest = 1;
	const double *load = common_loads(o, &kept);
	double middle;

	o->n_loads = o->n_points > 0;
	o->load[0] = NAN;
	if (!kept)
		return;
	o->load[0] = load[0];
	if (kept > 1)
		o->load[o->n_loads++] = load[kept - 1];
	if (kept < 3)
		return;
	middle = sqrt(load[0] * load[kept - 1]);
	for (size_t i = 1; i + 1 < kept; i++)
		if (fabs(log(load[i] / middle)) < fabs(log(load[nearest] / middle)))
			nearest = i;
	o->load[2] = o->load[1];
	o->load[1] = load[nearest];
	o->n_loads = 3;
}

static void choose_ranks(struct overview *o)
{
	size_t throughput = has_any(o, GPU) ? GPU : OUTPUT;

	for (size_t i = 0; i < o->n_loads; i++) {
		bool is_low = o->n_loads > 1 && i == 0;

		o->rank[i] = is_low && has_any(o, USER) ? USER : throughput;
		if (o->wanted != METRICS)
			o->rank[i] = o->wanted == GPU ? throughput : o->wanted;
	}
}

/* ---- cells ---- */

static bool is_better(const struct overview *o, size_t metric, double a, double b)
{
	return !isnan(a) && (isnan(b) || (o->s.counting[metric].better < 0 ? a < b : a > b));
}

/* A metric of the runs that also count for the one that ranks, so that they are of one version. */
static double fold_with(const struct overview *o, const struct setup_point *p, size_t metric,
			size_t rank)
{
	for (size_t i = 0; i < p->n; i++) {
		size_t row = p->member[i];

		o->both[row] = o->keep[metric][row] && o->keep[rank][row];
	}
	return setups_fold(&o->s, p, metric, o->both).value;
}

static bool meets_need(const struct overview *o, const struct setup_point *p, size_t rank)
{
	if (!isnan(o->need_user) && !(fold_with(o, p, USER, rank) >= o->need_user))
		return false;
	return isnan(o->need_ttft_ms) || fold_with(o, p, TTFT_P99, rank) <= o->need_ttft_ms;
}

/* Whether one of the runs in which the metric is INVALID meets the needs. */
static bool invalid_meets_need(const struct overview *o, const struct setup_point *p, size_t rank)
{
	for (size_t i = 0; i < p->n; i++) {
		size_t row = p->member[i];

		if (o->is_invalid[rank][row] &&
		    (isnan(o->need_user) || setups_metric(&o->s, USER, row) >= o->need_user) &&
		    (isnan(o->need_ttft_ms) ||
		     setups_metric(&o->s, TTFT_P99, row) <= o->need_ttft_ms))
			return true;
	}
	return false;
}

static size_t invalid_runs(const struct overview *o, const struct setup_point *p, size_t metric)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += o->is_invalid[metric][p->member[i]];
	return n;
}

static struct best best_of(struct overview *o, size_t color, double load, size_t metric)
{
	const struct setup_point *point = points_with(o, metric);
	struct best b = { .value.value = NAN, .invalid.value = NAN };

	for (size_t i = 0; i < o->n_points; i++) {
		const struct setup_point *p = &point[i];
		struct folded v;

		if (color_of(o, p) != color || !is_at(p, load))
			continue;
		v = setups_fold(&o->s, p, metric, o->is_invalid[metric]);
		b.n_invalid += invalid_runs(o, p, metric);
		if (is_better(o, metric, v.value, b.invalid.value) &&
		    invalid_meets_need(o, p, metric)) {
			b.invalid = v;
			b.invalid_at = p;
		}
		v = setups_fold(&o->s, p, metric, o->keep[metric]);
		if (is_better(o, metric, v.value, b.value.value) && meets_need(o, p, metric)) {
			b.value = v;
			b.p = p;
		}
	}
	return b;
}

static bool is_degraded(const struct overview *o, const struct setup_point *p, size_t metric)
{
	for (size_t i = 0; i < p->n; i++)
		if (o->keep[metric][p->member[i]] &&
		    counting_is_degraded(&o->s.counting[metric], &o->s.rows.verdicts, p->member[i]))
			return true;
	return false;
}

/* All that are level with the best of a column are the best. */
static void mark_best(struct overview *o, size_t load)
{
	size_t metric = o->rank[load];
	struct folded best = { .value = NAN };

	for (size_t i = 0; i < o->n_rows; i++)
		if (is_better(o, metric, o->best[i][load].value.value, best.value))
			best = o->best[i][load].value;
	for (size_t i = 0; i < o->n_rows; i++) {
		struct best *b = &o->best[i][load];

		b->is_best = b->p && setups_is_level(b->value, best);
		b->would_lead = b->n_invalid && is_better(o, metric, b->invalid.value, best.value);
	}
}

static bool is_row_empty(const struct overview *o, size_t row)
{
	for (size_t load = 0; load < o->n_loads; load++)
		if (o->best[row][load].p || o->best[row][load].n_invalid)
			return false;
	return true;
}

/* Rows without a number tell nothing, such as that of runs which failed; unless all are so. */
static void drop_empty_rows(struct overview *o)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n_rows; i++) {
		if (is_row_empty(o, i))
			continue;
		o->row[n] = o->row[i];
		memmove(o->best[n++], o->best[i], sizeof(o->best[i]));
	}
	o->n_rows = n ? n : o->n_rows;
}

/* Rows in the order of the legend; if there are too many, the best at the highest load. */
static void choose_rows(struct overview *o)
{
	struct best last[ROWS_SHOWN];
	size_t high = o->n_loads ? o->n_loads - 1 : 0;

	for (size_t k = 0; k < o->s.n_colors && o->n_loads; k++) {
		struct best b = best_of(o, k, o->load[high], o->rank[high]);
		size_t at = o->n_rows;

		if (o->n_rows < ROWS_SHOWN) {
			o->row[o->n_rows] = k;
			last[o->n_rows++] = b;
			continue;
		}
		for (size_t i = 0; i < o->n_rows; i++)
			if (is_better(o, o->rank[high], b.value.value, last[i].value.value) &&
			    (at == o->n_rows || is_better(o, o->rank[high], last[at].value.value,
							  last[i].value.value)))
				at = i;
		if (at == o->n_rows)
			continue;
		memmove(o->row + at, o->row + at + 1, (o->n_rows - at - 1) * sizeof(*o->row));
		memmove(last + at, last + at + 1, (o->n_rows - at - 1) * sizeof(*last));
		o->row[o->n_rows - 1] = k;
		last[o->n_rows - 1] = b;
	}
	for (size_t load = 0; load < o->n_loads; load++) {
		for (size_t i = 0; i < o->n_rows; i++)
			o->best[i][load] = best_of(o, o->row[i], o->load[load], o->rank[load]);
		mark_best(o, load);
	}
	if (isnan(o->need_user) && isnan(o->need_ttft_ms))
		drop_empty_rows(o);
}

static const char *row_name(const struct overview *o, size_t row)
{
	struct value gpu;

	if (o->s.color)
		return o->s.legend[o->row[row]].name;
	gpu = setups_fact(&o->s, SETUP_GPU, 0);
	return gpu.kind == VALUE_TEXT ? parts_cell_text(o->r->arena, gpu) : "all runs";
}

/* "0.13.0", "nightly 3f2c1aa"; NULL: all runs have one version, or this one does not say which. */
static const char *version_text(const struct setups *s, size_t row)
{
	const char *out = NULL;

	for (size_t i = 0; i < s->n_versions; i++) {
		struct value v = setups_value(s, s->version[i], row);

		if (!value_is_missing(v))
			out = arena_printf(s->r->arena, "%s%s%s", out ? out : "", out ? " " : "",
					   parts_cell_text(s->r->arena, v));
	}
	return out;
}

static void put_cell(const struct overview *o, struct json_writer *w, size_t row, size_t load)
{
	static const char *const key[] = {
		[USER] = "tokens_per_s_per_user", [GPU] = "tokens_per_s_per_gpu",
		[TTFT_P99] = "p99_ttft_ms", [TTFT] = "median_ttft_ms", [USD] = "usd_per_m_output",
	};
	const struct best *b = &o->best[row][load];
	const struct setup_point *p = b->p ? b->p : b->invalid_at;
	const bool *listed = b->p ? o->keep[o->rank[load]] : o->is_invalid[o->rank[load]];
	size_t n = 0, typical;

	if (!p) {
		json_put_null(w);
		return;
	}
	typical = setups_typical(&o->s, p, o->rank[load], listed);
	assert(typical < p->n);
	json_begin_object(w);
	json_member_int(w, "id", o->s.rows.id[p->member[typical]]);
	json_member_array(w, "ids");
	for (size_t i = 0; i < p->n && n < ANALYSE_IDS_SHOWN_MAX; i++)
		if (listed[p->member[i]]) {
			json_put_int(w, o->s.rows.id[p->member[i]]);
			n++;
		}
	json_end_array(w);
	json_member_text(w, "configuration", setups_name(&o->s, p->member[0], ""));
	json_member_text(w, "version", version_text(&o->s, p->member[typical]));
	for (size_t m = 0; m < sizeof(key) / sizeof(*key); m++)
		parts_put_number(w, key[m], b->p ? fold_with(o, p, m, o->rank[load]) : NAN);
	json_member_bool(w, "is_best", b->is_best);
	json_member_bool(w, "is_degraded", b->p && is_degraded(o, b->p, o->rank[load]));
	parts_put_count(w, "invalid", b->n_invalid);
	json_member_bool(w, "would_lead", b->would_lead);
	json_end_object(w);
}

static void put_rows(const struct overview *o, struct json_writer *w)
{
	static const char *const name[LOADS_SHOWN] = { "low", "middle", "high" };

	json_key(w, "rows_by");
	if (o->s.color)
		json_put_str(w, o->s.color->column);
	else
		json_put_null(w);
	json_member_array(w, "loads");
	for (size_t i = 0; i < o->n_loads; i++) {
		json_begin_object(w);
		json_member_text(w, "name", name[o->n_loads == 2 && i ? 2 : i]);
		parts_put_number(w, "value", o->load[i]);
		json_member_text(w, "label", isnan(o->load[i]) ? "as measured" :
				 arena_printf(o->r->arena, "%s %.10g", o->load_kind.kind == VALUE_TEXT ?
					      parts_cell_text(o->r->arena, o->load_kind) :
					      "load", o->load[i]));
		json_end_object(w);
	}
	json_end_array(w);
	json_member_array(w, "rows");
	for (size_t i = 0; i < o->n_rows; i++) {
		json_begin_object(w);
		json_member_text(w, "name", row_name(o, i));
		json_member_array(w, "cells");
		for (size_t k = 0; k < o->n_loads; k++)
			put_cell(o, w, i, k);
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}

/* The most throughput of a GPU that each row has within the needs, at whatever load. */
static void put_at_need(struct overview *o, struct json_writer *w)
{
	bool has_need = !isnan(o->need_user) || !isnan(o->need_ttft_ms);

	json_member_array(w, "at_need");
	for (size_t i = 0; has_need && i < o->n_rows; i++) {
		struct best b = best_of(o, o->row[i], NAN, GPU);
		size_t k;

		if (!b.p)
			continue;
		k = setups_typical(&o->s, b.p, GPU, o->keep[GPU]);
		json_begin_object(w);
		json_member_text(w, "name", row_name(o, i));
		json_member_int(w, "id", o->s.rows.id[b.p->member[k]]);
		parts_put_number(w, "tokens_per_s_per_gpu", b.value.value);
		json_end_object(w);
	}
	json_end_array(w);
}

/* ---- the sentence ---- */

#define NO_ROW SIZE_MAX

/* "3,725 tokens/s/GPU", "P99 TTFT of 110 ms" */
static const char *value_text(const struct overview *o, size_t load, double v)
{
	size_t metric = o->rank[load];

	return arena_printf(o->r->arena, "%s%s %s", metric == TTFT_P99 ? "a P99 TTFT of " : "",
			    setups_number(o->r->arena, v), column_unit(metrics[metric]));
}

/* " (TP1, DEGRADED)" */
static void add_facts(struct buf *b, const char *name, bool degraded)
{
	if (*name || degraded)
		buf_printf(b, " (%s%s%s)", name, *name && degraded ? ", " : "",
			   degraded ? "DEGRADED" : "");
}

/*
 * "b200 leads at high load with 3,725 tokens/s/GPU (TP1)." *leader: the row that is the only leader
 * at the previous load, or NO_ROW; for it only the further load is mentioned.
 */
static void add_leader(struct buf *b, const struct overview *o, size_t load, size_t *leader)
{
	static const char *const at[LOADS_SHOWN] = { "low", "middle", "high" };
	const struct best *best = NULL;
	size_t n = 0, seen = 0, last = NO_ROW;
	bool is_same;

	for (size_t i = 0; i < o->n_rows; i++) {
		n += o->best[i][load].is_best;
		last = o->best[i][load].is_best ? i : last;
		if (o->best[i][load].is_best &&
		    (!best || is_better(o, o->rank[load], o->best[i][load].value.value,
					best->value.value)))
			best = &o->best[i][load];
	}
	if (!best)
		return;
	is_same = n == 1 && last == *leader;
	*leader = n == 1 ? last : NO_ROW;
	if (is_same)
		b->len--; /* the full stop */
	buf_add_text(b, is_same ? " and" : b->len ? " " : "");
	for (size_t i = 0; i < o->n_rows && !is_same; i++)
		if (o->best[i][load].is_best) {
			const char *name = row_name(o, i);

			buf_printf(b, "%s%s", !seen ? "" : seen + 1 == n ? " and " : ", ",
				   strcmp(name, "all runs") ? name : "The best run");
			seen++;
		}
	if (!is_same)
		buf_add_text(b, n > 1 ? " are level" : o->n_rows == 1 ? " reaches" : " leads");
	if (o->n_rows == 1)
		buf_printf(b, " %s", value_text(o, load, best->value.value));
	if (o->n_loads > 1)
		buf_printf(b, " at %s load", at[o->n_loads == 2 && load ? 2 : load]);
	if (o->n_rows > 1)
		buf_printf(b, " with %s", value_text(o, load, best->value.value));
	if (n == 1)
		add_facts(b, setups_name(&o->s, best->p->member[0], ""),
			  is_degraded(o, best->p, o->rank[load]));
	buf_add_char(b, '.');
}

/* Why no run has the metric that is ranked by. */
static const char *none_text(const struct overview *o)
{
	return o->wanted == USD ? "No price of a GPU hour is set, so nothing can be ranked by cost." :
	       o->wanted == KW ? "The power is not known, so nothing can be ranked by it." :
	       "No run has the metric that is ranked by.";
}

static const char *sentence_of(const struct overview *o)
{
	struct buf b = { 0 };
	size_t leading = 0, leader = NO_ROW;

	if (!o->s.rows.n)
		return "There are no runs.";
	for (size_t i = o->n_loads; i-- > 0;)
		if (i == 0 || i + 1 == o->n_loads)
			add_leader(&b, o, i, &leader);
	if (!b.len)
		buf_add_text(&b, !has_any(o, o->n_loads ? o->rank[0] : OUTPUT) ?
				 none_text(o) : isnan(o->need_user) && isnan(o->need_ttft_ms) ?
				 "No run counts: they failed or are INVALID." :
				 "No run meets the need.");
	for (size_t i = 0; i < o->n_rows; i++)
		for (size_t k = 0; k < o->n_loads; k++)
			leading += o->best[i][k].would_lead;
	if (leading)
		buf_add_text(&b, " INVALID runs that would lead are left out.");
	if (o->wanted == KW && o->s.is_assumed)
		buf_add_text(&b, " Where power was not measured, that of the boards is assumed.");
	if (o->mixed.n)
		buf_printf(&b, " Numbers are medians over runs that differ in %.*s: filter by one value.",
			   (int)o->mixed.n, o->mixed.p);
	return arena_take(o->r->arena, &b).p;
}

/* ---- what changed ---- */

struct change {
	size_t metric;
	const struct json_value *of; /* an item of changes in the answer of trends */
	size_t series_total, series;
	bool is_in;                  /* the largest of its commit */
};

static const char *const change_metrics[] = {
	"output_throughput", "median_ttft_ms", "median_tpot_ms",
};
#define CHANGE_METRICS (sizeof(change_metrics) / sizeof(*change_metrics))

static double effect_of(const struct change *c)
{
	return fabs(json_real(json_get(c->of, "effect"), 0));
}

static int by_effect(const void *x, const void *y)
{
	double a = effect_of(x), b = effect_of(y);

	return a < b ? 1 : a > b ? -1 : 0;
}

static struct str commit_of(const struct change *c)
{
	return json_text(json_get(c->of, "commit"), STR(""));
}


/* The answer of trends for a metric, over the runs since then that name a commit. */
static int ask_trends(const struct overview *o, const char *metric, double from_s,
		      struct json_value **out, struct err *e)
{
	struct arena *a = o->r->arena;
	struct analyse_request r = *o->r;
	struct json_value *body;
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	int rc = json_parse(a, str_of(arena_printf(a, "{\"metric\": \"%s\", \"axis\": \"commit\", "
			    "\"filter\": {\"and\": [{\"column\": \"provenance.engine_commit\", "
			    "\"missing\": false}, {\"column\": \"timestamp\", \"range\": "
			    "{\"min\": %.17g}}]}}", metric, from_s)), &body, e);

	if (rc == 0) {
		r.body = body;
		json_begin_object(&w);
		rc = analyse_trends(&r, &w, e);
	}
	if (rc == 0) {
		json_end_object(&w);
		rc = json_parse(a, arena_str(a, buf_str(&text)), out, e);
	}
	buf_release(&text);
	return rc;
}

static size_t add_changes(struct change *out, size_t n, size_t metric,
			  const struct json_value *trends)
{
	const struct json_value *series = json_get(trends, "series");

	for (size_t i = 0; i < series->count; i++) {
		const struct json_value *changes = json_get(&series->item[i], "changes");

		for (size_t k = 0; k < changes->count && n < CHANGES_SEEN; k++)
			if (!json_bool(json_get(&changes->item[k], "is_marked"), false))
				out[n++] = (struct change){ metric, &changes->item[k],
							    series->count, 1, true };
	}
	return n;
}

/* Keeps the largest change of a commit; counts the others of its metric. */
static void fold_commits(struct change *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i && c[i].is_in; k++) {
			if (!c[k].is_in || !str_eq(commit_of(&c[k]), commit_of(&c[i])))
				continue;
			c[i].is_in = false;
			c[k].series += c[k].metric == c[i].metric;
		}
}

static void put_some_ids(struct json_writer *w, const char *key, const struct json_value *list)
{
	json_member_array(w, key);
	for (size_t i = 0; list && i < list->count && i < CHANGE_IDS_SHOWN; i++)
		json_put_int(w, list->item[i].integer);
	json_end_array(w);
}

static void put_text_or_null(struct json_writer *w, const char *key, struct str text)
{
	json_key(w, key);
	if (text.n)
		json_put_str(w, text);
	else
		json_put_null(w);
}

static void put_change(struct json_writer *w, const struct change *c)
{
	const char *metric = change_metrics[c->metric];
	struct buf label = { 0 };

	column_label(str_of(metric), &label);
	json_begin_object(w);
	json_member_text(w, "metric", metric);
	put_text_or_null(w, "commit", commit_of(c));
	put_text_or_null(w, "previous", json_text(json_get(c->of, "commit_before"), STR("")));
	parts_put_number(w, "effect", json_real(json_get(c->of, "effect"), NAN));
	json_member_str(w, "verdict", json_text(json_get(c->of, "verdict"), STR("")));
	parts_put_count(w, "series", c->series);
	parts_put_count(w, "series_total", c->series_total);
	put_some_ids(w, "before_ids", json_get(c->of, "before_ids"));
	put_some_ids(w, "after_ids", json_get(c->of, "after_ids"));
	json_member_str(w, "name", buf_str(&label));
	json_end_object(w);
	buf_release(&label);
}

static int put_changes(const struct overview *o, struct json_writer *w, struct err *e)
{
	struct change *c = arena_alloc(o->r->arena, CHANGES_SEEN * sizeof(*c));
	struct filter has_commit = { .kind = FILTER_MISSING,
				     .column = STR("provenance.engine_commit") }, *since;
	size_t n = 0, shown = 0, matching;
	double from_s;

	if (parts_newest(o->r, &has_commit, CHANGES_RUNS_MAX, &since, &matching, e) < 0)
		return -1;
	from_s = since ? since->min : 0;
	for (size_t m = 0; m < CHANGE_METRICS; m++) {
		struct json_value *trends;

		if (!index_column(o->r->view, STR("provenance.engine_commit")))
			continue;
		if (ask_trends(o, change_metrics[m], from_s, &trends, e) < 0)
			return -1;
		n = add_changes(c, n, m, trends);
	}
	if (n)
		qsort(c, n, sizeof(*c), by_effect);
	fold_commits(c, n);
	json_member_array(w, "changes");
	for (size_t i = 0; i < n && shown < CHANGES_SHOWN; i++)
		if (c[i].is_in) {
			put_change(w, &c[i]);
			shown++;
		}
	json_end_array(w);
	return 0;
}

/* ---- what needs attention, and what is new ---- */

static size_t count_of(const struct facet *f, const char *value)
{
	for (size_t i = 0; i < f->n; i++)
		if (value_is_text(f->value[i].value, value))
			return f->value[i].count;
	return 0;
}

static int put_attention(const struct overview *o, struct json_writer *w, struct err *e)
{
	static const struct str column[] = { { "verdict", 7 }, { "status", 6 } };
	struct query q = { .facet = column, .n_facets = 2, .facet_values_max = 20 };
	struct answer answer;

	if (index_query(o->r->view, &q, o->r->arena, &answer, e) < 0)
		return -1;
	json_member_object(w, "attention");
	parts_put_count(w, "invalid", count_of(&answer.facet[0], "INVALID"));
	parts_put_count(w, "failed", count_of(&answer.facet[1], "failed"));
	parts_put_count(w, "degraded", count_of(&answer.facet[0], "DEGRADED"));
	json_end_object(w);
	return 0;
}

struct suite { struct value name; size_t runs; double newest_s; };

static int by_newest(const void *x, const void *y)
{
	const struct suite *a = x, *b = y;

	if (isnan(a->newest_s) || isnan(b->newest_s))
		return !isnan(b->newest_s) - !isnan(a->newest_s);
	return a->newest_s < b->newest_s ? 1 : a->newest_s > b->newest_s ? -1 : 0;
}

static int put_latest(const struct overview *o, struct json_writer *w, struct err *e)
{
	static const struct str column[] = { { "suite", 5 }, { "timestamp", 9 } };
	struct arena *a = o->r->arena;
	struct suite *suite;
	struct rows rows;
	uint32_t *code, n;

	if (parts_select_by(o->r, o->s.newest, column, 2, &rows, e) < 0)
		return -1;
	code = setups_codes(a, rows.value, rows.n, &n);
	suite = arena_alloc(a, ((size_t)n + 1) * sizeof(*suite));
	for (size_t i = 0; i < rows.n; i++) {
		struct suite *s = &suite[code[i]];
		double at = parts_number_at(&rows, 1, i);

		s->name = rows.value[i];
		s->newest_s = !s->runs++ ? at : fmax(at, s->newest_s); /* NAN: no run has a time */
	}
	if (n)
		qsort(suite, n, sizeof(*suite), by_newest);
	json_member_array(w, "latest");
	for (size_t i = 0; i < n && i < LATEST_SHOWN; i++) {
		json_begin_object(w);
		put_text_or_null(w, "suite", suite[i].name.kind == VALUE_TEXT ? suite[i].name.text
									     : STR(""));
		parts_put_count(w, "runs", suite[i].runs);
		parts_put_number(w, "time", suite[i].newest_s);
		json_end_object(w);
	}
	json_end_array(w);
	return 0;
}

int analyse_overview(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct overview o = { .r = r };
	bool *counts;

	if (read_request(&o, e) < 0)
		return -1;
	judge_rows(&o);
	counts = arena_alloc(r->arena, o.s.rows.n + 1);
	for (size_t i = 0; i < o.s.rows.n; i++)
		counts[i] = o.keep[USER][i] || o.keep[OUTPUT][i];
	if (setups_legend(&o.s, has_any(&o, GPU) ? GPU : OUTPUT, e) < 0)
		return -1;
	o.point = setups_points(&o.s, counts, &o.n_points);
	o.mixed = setups_mixed(&o.s, o.point, o.n_points, counts);
	keep_loads_of_one_kind(&o, o.point);
	choose_loads(&o);
	choose_ranks(&o);
	choose_rows(&o);
	parts_put_count(w, "runs", o.s.runs);
	parts_put_count(w, "matching", o.s.matching);
	setups_put_workloads(w, &o.s);
	put_rows(&o, w);
	put_at_need(&o, w);
	json_member_text(w, "sentence", sentence_of(&o));
	setups_put_unpriced(w, &o.s);
	if (put_changes(&o, w, e) < 0 || versions_put(r, o.s.newest, w, e) < 0 ||
	    put_attention(&o, w, e) < 0)
		return -1;
	return put_latest(&o, w, e);
}
