/* SPDX-License-Identifier: Apache-2.0 */
/* suite_search_tell.c - see suite_search.h: the plan of a search, and its result. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/schema/schema.h"
#include "experiment/suite/suite_search.h"
#include "out/compare/points.h"
#include "out/report/grid.h"
#include "results/decide/compare.h"
#include "results/read/document.h"
#include "results/read/frame.h"
#include "results/read/read.h"

#define ROWS_MAX 10     /* experiments in the table */
#define REASONS_MAX 5   /* different ones that are listed */

static const char *unit_of(const char *metric)
{
	const struct schema_field *field = schema_field_find(metric);

	return field ? field->unit : "";
}

/* "5120 tokens/s". */
static const char *value_text(const struct suite_search *q, double v, struct arena *a)
{
	const char *unit = unit_of(q->metric);

	return arena_printf(a, "%.4g%s%s", v, *unit ? " " : "", unit);
}

static const char *length_text(const struct suite_search *q, unsigned round, struct arena *a)
{
	double length = q->halving.length[round];

	return q->is_seconds ? arena_printf(a, "%.4g s", length) :
			       arena_printf(a, "%.0f prompts", fmax(1, rint(length)));
}

/* ---- before ---- */

void suite_search_plan(const struct suite *s, struct buf *out)
{
	const struct suite_search *q = s->search;
	const struct halving *h = &q->halving;
	struct arena a = { 0 };
	char time[FMT_F64_BYTES];

	buf_printf(out, "Search for the %s %s among %zu experiments, by rounds of\n",
		   h->opts.is_highest ? "highest" : "lowest", q->metric, q->n);
	for (unsigned r = 0; r < h->rounds; r++)
		buf_printf(out, "  %s%zu of %s%s\n",
			   !r ? "" : h->target[r] > HALVING_LEAST ? "about " : "at least ",
			   h->target[r] < q->n ? h->target[r] : q->n, length_text(q, r, &a),
			   r + h->opts.repeats > h->rounds ? ", on restarted servers" : "");
	buf_printf(out, "for at most %.0f %% of the load that all of them at full length would be",
		   100 * h->opts.share);
	if (isfinite(h->opts.budget_s))
		buf_printf(out, ", and at most %s", fmt_rough_time(time, h->opts.budget_s));
	buf_add_text(out, ". The first round:\n");
	arena_release(&a);
}

/* ---- in the document ---- */

static const char *fate_name(const struct halving *h, size_t i)
{
	static const char *const name[] = {
		[HALVING_IN] = "in", [HALVING_BELOW] = "below", [HALVING_FORCED] = "budget",
		[HALVING_OUT] = "out",
	};

	return name[h->item[i].fate];
}

static void put_rounds(const struct suite_search *q, struct json_writer *w)
{
	json_member_array(w, "rounds");
	for (unsigned r = 0; r < q->rounds; r++) {
		json_begin_object(w);
		json_member_f64(w, "length", q->halving.length[r]);
		json_member_int(w, "measured", (int64_t)q->round[r].measured);
		json_member_int(w, "kept", (int64_t)q->round[r].kept);
		json_member_int(w, "kept_by_interval", (int64_t)q->round[r].n_overlap);
		json_member_int(w, "dropped_for_budget", (int64_t)q->round[r].n_forced);
		json_member_f64(w, "cut", q->round[r].cut);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_candidates(const struct suite_search *q, struct json_writer *w)
{
	const struct halving *h = &q->halving;

	json_member_array(w, "candidates");
	for (size_t i = 0; i < q->n; i++) {
		const struct halving_item *x = &h->item[i];

		json_begin_object(w);
		json_member_text(w, "name", q->candidate[i].label);
		json_member_text(w, "fate", fate_name(h, i));
		json_member_int(w, "round", (int64_t)x->round + 1);
		json_member_f64(w, "value", x->value);
		json_member_f64(w, "low", isfinite(x->half) ? x->value * exp(-x->half) : NAN);
		json_member_f64(w, "high", isfinite(x->half) ? x->value * exp(x->half) : NAN);
		json_member_text(w, "reason", q->why[i]);
		json_end_object(w);
	}
	json_end_array(w);
}

void suite_search_put(const struct suite *s, struct json_writer *w)
{
	const struct suite_search *q = s->search;
	const struct halving *h = &q->halving;
	const struct suite_member *best = suite_found(s);

	json_member_object(w, "search");
	json_member_text(w, "metric", q->metric);
	json_member_text(w, "better", h->opts.is_highest ? "highest" : "lowest");
	json_member_text(w, "unit", q->is_seconds ? "s" : "prompts");
	json_member_bool(w, "is_over", h->is_over);
	json_member_text(w, "best", best ? best->x.name : NULL);
	json_member_f64(w, "spent_s", h->spent_s);
	json_member_f64(w, "full_s", halving_full_s(h));
	json_member_f64(w, "load_share", halving_load_share(h));
	put_rounds(q, w);
	put_candidates(q, w);
	json_end_object(w);
}

/* ---- the table ---- */

static const char *fate_text(const struct suite_search *q, size_t i, size_t place, struct arena *a)
{
	const struct halving_item *x = &q->halving.item[i];
	unsigned round = x->round + 1;

	switch (x->fate) {
	case HALVING_BELOW:
		return arena_printf(a, "below the cut of round %u", round);
	case HALVING_FORCED:
		return arena_printf(a, "dropped for the budget after round %u", round);
	case HALVING_OUT:
		return q->why[i];
	default:
		return place == 0 && q->halving.is_over ? "best" : "stayed to the end";
	}
}

static void add_row(const struct suite_search *q, size_t i, size_t place, struct grid *grid,
		    struct arena *a)
{
	const struct halving_item *x = &q->halving.item[i];
	bool has_interval = isfinite(x->half);

	grid_add(grid, q->candidate[i].label);
	grid_add(grid, arena_printf(a, "%.5g", x->value));
	grid_add(grid, has_interval ? arena_printf(a, "%.5g", x->value * exp(-x->half)) : "");
	grid_add(grid, has_interval ? arena_printf(a, "%.5g", x->value * exp(x->half)) : "");
	grid_add(grid, arena_printf(a, "%u", x->round + 1));
	grid_add(grid, fate_text(q, i, place, a));
}

/* n: the maximum number of rows. */
static void put_grid(const struct suite_search *q, size_t n, bool is_csv, struct arena *a,
		     struct buf *out)
{
	const struct halving *h = &q->halving;
	size_t known = halving_order(h);
	struct grid grid;

	grid_begin(&grid, a);
	grid_add(&grid, is_csv ? "experiment" : "Experiment");
	grid_add(&grid, q->metric);
	grid_add(&grid, is_csv ? "low" : "95 % from");
	grid_add(&grid, is_csv ? "high" : "to");
	grid_add(&grid, is_csv ? "round" : "Round");
	grid_add(&grid, is_csv ? "end" : "");
	grid_end_heads(&grid);
	for (size_t k = 0; k < known && k < n; k++)
		add_row(q, h->order[k], k, &grid, a);
	for (size_t i = 0; is_csv && i < q->n; i++)
		if (h->item[i].fate == HALVING_OUT)
			add_row(q, i, 1, &grid, a);
	if (is_csv)
		grid_csv(&grid, out);
	else
		grid_text(&grid, false, out);
}

/* ---- the best one and the one after it ---- */

/* All its measurements, as runs of a side: those of a round have the same requests. */
static size_t add_runs(const struct suite *s, size_t candidate, size_t side, struct arena *a,
		       struct matched_run *out)
{
	const struct suite_search *q = s->search;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct suite_member *m = &s->member[i];
		const struct json_value *v, *row, *server;
		double *value;

		if (!suite_search_is_full(s, m) ||
		    strcmp(m->x.name, q->candidate[candidate].x.name) != 0)
			continue;
		v = result_json(m->path, DOCUMENT_BYTES_MAX, a, NULL);
		row = v ? document_row(v, a) : NULL;
		value = arena_alloc(a, sizeof(*value));
		if (!row || !frame_number(frame_value(row, str_of(q->metric)), value))
			continue;
		server = json_get(json_get(v, "config"), "servers");
		server = server && server->kind == JSON_ARRAY && server->count ? server->item :
										NULL;
		out[n++] = (struct matched_run){
			.side = side, .value = value,
			.config = arena_printf(a, "repeat %u", m->x.repeat),
			.session = json_text(json_get(server, "started_by"), (struct str){ 0 }).p,
			.id = json_text(json_get(v, "run_id"), (struct str){ 0 }).p,
			.work = { NAN, NAN, NAN, NAN, NAN, NAN },
		};
	}
	return n;
}

static void say_lead(const struct suite *s, size_t best, size_t second, struct arena *a,
		     struct buf *out)
{
	static const char *const sides[] = { "runner-up", "best" };
	const struct suite_search *q = s->search;
	const struct halving *h = &q->halving;
	struct matched_run *run = arena_alloc(a, 2 * (s->n + 1) * sizeof(*run));
	struct matched_metric metric = matched_metric_of(q->metric, unit_of(q->metric),
							 h->opts.is_highest ? 1 : -1);
	struct matched_spec spec = { .run = run, .metric = &metric, .n_metrics = 1, .side = sides,
				     .n_sides = 2, .primary = 0, .alpha = MATCHED_ALPHA };
	double ratio = h->item[best].value / h->item[second].value;
	const struct matched_row *row = NULL;
	struct matched m = { 0 };
	double low, high;

	spec.n_runs = add_runs(s, second, 0, a, run);
	spec.n_runs += add_runs(s, best, 1, a, run + spec.n_runs);
	buf_printf(out, "It is %.3g %% %s than the runner-up, %s", 100 * fabs(ratio - 1),
		   h->opts.is_highest ? "higher" : "lower", q->candidate[second].label);
	if (spec.n_runs >= 2 * MATCHED_CLUSTERS_MIN)
		matched_compare(&spec, a, &m);
	if (m.n_pairs && m.pair[0].refusal == MATCHED_ACCEPTED)
		row = &m.pair[0].row[0];
	if (!row || !isfinite(row->is.interval.low)) {
		buf_printf(out, "; whether that is sure is not known, because each needs at least %d "
			   "measurements at full length (repeat)\n", MATCHED_CLUSTERS_MIN);
		return;
	}
	low = 100 * (row->is.interval.low - 1);
	high = 100 * (row->is.interval.high - 1);
	buf_printf(out, " (95 %% interval of the change: %+.3g to %+.3g %%): ", low, high);
	if (row->is.p <= MATCHED_ALPHA)
		buf_add_text(out, "the difference is certain\n");
	else if (fmax(fabs(low), fabs(high)) > 100 * POINTS_LEVEL)
		buf_add_text(out, "the difference is not sure; a larger repeat measures both more often\n");
	else
		buf_printf(out, "the difference is not sure; the two are level within %.2g %%, so either "
			   "of them will do\n", fmax(fabs(low), fabs(high)));
}

static void say_best(const struct suite *s, size_t known, struct arena *a, struct buf *out)
{
	const struct suite_search *q = s->search;
	const struct halving *h = &q->halving;
	const size_t *order = h->order;
	const struct halving_item *x = &h->item[order[0]];

	buf_printf(out, "Best %s: %s", q->metric, value_text(q, x->value, a));
	if (isfinite(x->half))
		buf_printf(out, ", 95 %% interval [%.4g, %.4g]", x->value * exp(-x->half),
			   x->value * exp(x->half));
	buf_printf(out, ", at %s", q->candidate[order[0]].label);
	if (x->times)
		buf_printf(out, ", measured %u time%s at full length\n", x->times,
			   x->times == 1 ? "" : "s");
	else
		buf_printf(out, ", by a round of %s\n", length_text(q, x->round, a));
	if (known > 1)
		say_lead(s, order[0], order[1], a, out);
}

/* ---- what else a reader must know ---- */

static void say_forced(const struct suite_search *q, size_t known, struct buf *out)
{
	const struct halving *h = &q->halving;
	size_t n = 0, first = 0;

	for (size_t k = known; k-- > 0;)
		if (h->item[h->order[k]].fate == HALVING_FORCED) {
			first = h->order[k];
			n++;
		}
	if (n)
		buf_printf(out, "%zu experiment%s dropped for the budget and may be better than %s cut "
			   "was; the first of them is %s. A larger search.share or search.first makes "
			   "it surer\n", n, n == 1 ? " was" : "s were", n == 1 ? "its" : "their",
			   q->candidate[first].label);
}

static void say_out(const struct suite_search *q, struct buf *out)
{
	size_t n = 0, told = 0;

	for (size_t i = 0; i < q->n; i++)
		n += q->halving.item[i].fate == HALVING_OUT;
	if (n)
		buf_printf(out, "Out: %zu experiment%s\n", n, n == 1 ? "" : "s");
	for (size_t i = 0; n && i < q->n && told < REASONS_MAX; i++) {
		size_t same = 0;
		bool is_first = q->halving.item[i].fate == HALVING_OUT;

		for (size_t k = 0; is_first && k < q->n; k++) {
			bool is_same = q->halving.item[k].fate == HALVING_OUT &&
				       strcmp(q->why[k], q->why[i]) == 0;

			is_first = !(is_same && k < i);
			same += is_same;
		}
		if (!is_first)
			continue;
		buf_printf(out, "  %s", q->candidate[i].label);
		if (same > 1)
			buf_printf(out, " and %zu more", same - 1);
		buf_printf(out, ": %s\n", q->why[i]);
		told++;
	}
}

static void say_cost(const struct suite *s, struct buf *out)
{
	const struct halving *h = &s->search->halving;
	char spent[FMT_F64_BYTES], full[FMT_F64_BYTES];

	buf_printf(out, "Cost: %zu runs in %s, %.0f %% of the load and %.0f %% of the %s that all %zu "
		   "at full length would take\n", s->n, fmt_rough_time(spent, h->spent_s),
		   100 * halving_load_share(h), 100 * h->spent_s / halving_full_s(h),
		   fmt_rough_time(full, halving_full_s(h)), s->search->n);
}

static void add_next(const struct suite *s, const struct suite_tally *tally, size_t known,
		     struct buf *out)
{
	const struct suite_search *q = s->search;

	if (!q->halving.is_over || tally->left)
		buf_add_text(out, "Next: run the same command with --resume to continue from the "
				  "documents\n");
	else if (!known)
		buf_printf(out, "Next: no experiment can be the answer; \"search\" in %s says why\n",
			   s->output);
	else
		buf_printf(out, "Next: profllm run --config %s --only '%s' --output best.json\n",
			   s->config->path, q->candidate[q->halving.order[0]].label);
}

void suite_search_table(const struct suite *s, const struct suite_tally *tally,
			struct suite_table *out)
{
	const struct suite_search *q = s->search;
	struct arena a = { 0 };
	size_t known = halving_order(&q->halving);

	put_grid(q, SIZE_MAX, true, &a, &out->csv);
	if (known)
		put_grid(q, ROWS_MAX, false, &a, &out->text);
	if (known > ROWS_MAX)
		buf_printf(&out->text, "and %zu more in the table\n", known - ROWS_MAX);
	say_out(q, &out->text);
	if (q->halving.is_over && known) {
		say_best(s, known, &a, &out->text);
		say_forced(q, known, &out->text);
	}
	if (q->rounds)
		say_cost(s, &out->text);
	add_next(s, tally, known, &out->next);
	arena_release(&a);
}
