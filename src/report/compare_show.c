/* SPDX-License-Identifier: Apache-2.0 */
/* compare_show.c - a comparison as text, Markdown and CSV. */
#include <math.h>
#include <string.h>

#include "base/fmt.h"
#include "report/compare.h"
#include "report/grid.h"

#define HEAD_CHARS_MAX 24 /* longer names would make tables wider than screens */
#define DIGITS_MAX 1e12   /* and so would all digits of larger numbers */

const char *compare_value(double v, struct arena *a)
{
	if (isnan(v))
		return "";
	if (fabs(v) >= DIGITS_MAX)
		return arena_printf(a, "%.6g", v);
	if (fabs(v) >= 1000)
		return arena_printf(a, "%.1f", v);
	if (fabs(v) >= 1)
		return arena_printf(a, "%.2f", v);
	return arena_printf(a, "%.4g", v);
}

const char *compare_percent(double share, struct arena *a)
{
	if (isnan(share))
		return "";
	return arena_printf(a, fabs(share) >= DIGITS_MAX ? "%+.6g%%" : "%+.1f%%", share * 100);
}

static const char *probability(double p, struct arena *a)
{
	if (isnan(p))
		return "";
	return p < 0.0001 ? "<0.0001" : arena_printf(a, "%.4f", p);
}

static const char *interval_text(struct interval i, struct arena *a)
{
	if (!isfinite(i.low) || !isfinite(i.high))
		return "";
	if (fmax(fabs(i.low), fabs(i.high)) >= DIGITS_MAX)
		return arena_printf(a, "%+.6g..%+.6g%%", i.low * 100, i.high * 100);
	return arena_printf(a, "%+.1f..%+.1f%%", i.low * 100, i.high * 100);
}

static enum grid_tone tone_of(enum compare_verdict v)
{
	switch (v) {
	case COMPARE_REGRESSION:
		return GRID_BAD;
	case COMPARE_IMPROVEMENT:
		return GRID_GOOD;
	case COMPARE_CHANGED:
	case COMPARE_VOID:
		return GRID_FAIR;
	default:
		return GRID_FAINT;
	}
}

static const char *count_text(const struct compare_cell *cell, struct arena *a)
{
	if (cell->n == cell->n_runs)
		return arena_printf(a, "%zu", cell->n);
	return arena_printf(a, "%zu in %zu", cell->n_runs, cell->n);
}

/* What heads a side's columns: its name if that is short for all sides. */
static const char *head_of(const struct comparison *c, size_t side, struct arena *a)
{
	for (size_t s = 0; s < c->n_sides; s++)
		if (grid_width(c->side[s].name) > HEAD_CHARS_MAX)
			return side ? arena_printf(a, "side %zu", side + 1) : "baseline";
	return c->side[side].name;
}

static void point_heads(const struct comparison *c, struct grid *g, struct arena *a)
{
	grid_begin(g, a);
	grid_add(g, "metric");
	grid_add(g, head_of(c, 0, a));
	if (c->n_sides > 2) {
		grid_add(g, "side");
		grid_add(g, "value");
	} else {
		grid_add(g, head_of(c, 1, a));
	}
	grid_add(g, "change");
	grid_add(g, arena_printf(a, "%.3g %% interval", c->o->level * 100));
	grid_add(g, "q");
	grid_add(g, "runs");
	grid_add(g, "verdict");
	grid_end_heads(g);
}

/* One point's table: a row for each metric and further side. */
void compare_point_grid(const struct comparison *c, size_t point, struct grid *g,
			struct arena *a)
{
	point_heads(c, g, a);
	for (size_t m = 0; m < c->n_metrics; m++)
		for (size_t s = 1; s < c->n_sides; s++) {
			const struct compare_cell *base = compare_cell(c, point, m, 0);
			const struct compare_cell *cell = compare_cell(c, point, m, s);
			enum grid_tone tone = tone_of(cell->verdict);

			if (!base->n_runs && !cell->n_runs)
				continue;
			grid_add(g, c->metric[m].key);
			grid_add(g, compare_value(base->median, a));
			if (c->n_sides > 2)
				grid_add(g, head_of(c, s, a));
			grid_add(g, compare_value(cell->median, a));
			grid_add_toned(g, compare_percent(cell->delta, a), tone);
			grid_add(g, interval_text(cell->interval, a));
			grid_add(g, probability(cell->q, a));
			grid_add(g, arena_printf(a, "%s : %s", count_text(base, a), count_text(cell, a)));
			grid_add_toned(g, compare_verdict_name(cell->verdict), tone);
		}
}

/* Whether both the baseline and another side have runs at the point. */
bool compare_is_paired(const struct comparison *c, size_t point)
{
	bool is_base = false, is_other = false;

	for (size_t s = 0; s < c->n_sides; s++)
		if (c->side[s].first[point] < c->side[s].first[point + 1]) {
			is_base |= s == 0;
			is_other |= s > 0;
		}
	return is_base && is_other;
}

void compare_sides_grid(const struct comparison *c, struct grid *g, struct arena *a)
{
	grid_begin(g, a);
	grid_add(g, "side");
	grid_add(g, "runs");
	for (size_t p = 0; p < c->n_params; p++)
		if (c->param[p].kind == COMPARE_BETWEEN)
			grid_add(g, c->param[p].key);
	grid_end_heads(g);
	for (size_t s = 0; s < c->n_sides; s++) {
		const char *head = s ? head_of(c, s, a) : "baseline";

		grid_add(g, head == c->side[s].name ? head :
				    arena_printf(a, "%s (%s)", c->side[s].name, head));
		grid_add(g, arena_printf(a, "%zu", c->side[s].n));
		for (size_t p = 0; p < c->n_params; p++)
			if (c->param[p].kind == COMPARE_BETWEEN)
				grid_add(g, c->side[s].run[0].param[p] ? c->side[s].run[0].param[p] : "");
	}
}

static void summary_line(const struct comparison *c, struct buf *out)
{
	static const enum compare_verdict order[] = { COMPARE_REGRESSION, COMPARE_IMPROVEMENT,
						      COMPARE_VOID, COMPARE_CHANGED,
						      COMPARE_NO_EVIDENCE, COMPARE_NOT_ENOUGH };
	size_t points = 0, n[COMPARE_VOID + 1] = { 0 };
	const char *sep = "";

	for (size_t p = 0; p < c->n_points; p++) {
		points += compare_is_paired(c, p);
		for (size_t m = 0; m < c->n_metrics; m++)
			for (size_t s = 1; s < c->n_sides; s++)
				n[compare_cell(c, p, m, s)->verdict]++;
	}
	buf_printf(out, "%zu point%s, %zu metric%s: ", points, points == 1 ? "" : "s", c->n_metrics,
		   c->n_metrics == 1 ? "" : "s");
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		if (n[order[i]]) {
			buf_printf(out, "%s%s %zu", sep, compare_verdict_name(order[i]), n[order[i]]);
			sep = ", ";
		}
	buf_add_text(out, "\n");
}

static void unpaired(const struct comparison *c, const char *before, const char *after,
		     struct buf *out)
{
	for (size_t p = 0; p < c->n_points; p++) {
		size_t s = 0;

		if (compare_is_paired(c, p))
			continue;
		for (size_t k = 0; k < c->n_sides; k++)
			s = c->side[k].first[p] < c->side[k].first[p + 1] ? k : s;
		buf_printf(out, "%sonly in %s: %s%s\n", before, c->side[s].name,
			   *c->point[p].name ? c->point[p].name : "its only point", after);
	}
}

void compare_text(const struct comparison *c, bool is_coloured, struct buf *out)
{
	struct arena a = { 0 };
	struct str rest = buf_str(&c->notes);
	struct grid g;

	compare_sides_grid(c, &g, &a);
	grid_text(&g, is_coloured, out);
	for (size_t p = 0; p < c->n_points; p++) {
		if (!compare_is_paired(c, p))
			continue;
		buf_printf(out, "\n%s%s", c->point[p].name, *c->point[p].name ? "\n" : "");
		compare_point_grid(c, p, &g, &a);
		grid_text(&g, is_coloured, out);
	}
	buf_add_char(out, '\n');
	unpaired(c, "", "", out);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		buf_printf(out, "note: %.*s\n", (int)line.n, line.p);
	}
	summary_line(c, out);
	arena_release(&a);
}

void compare_markdown(const struct comparison *c, struct buf *out)
{
	struct arena a = { 0 };
	struct str rest = buf_str(&c->notes);
	struct grid g;

	buf_add_text(out, "## Comparison\n\n");
	compare_sides_grid(c, &g, &a);
	grid_markdown(&g, out);
	for (size_t p = 0; p < c->n_points; p++) {
		if (!compare_is_paired(c, p))
			continue;
		buf_printf(out, "\n%s%s%s", *c->point[p].name ? "### " : "", c->point[p].name,
			   *c->point[p].name ? "\n\n" : "");
		compare_point_grid(c, p, &g, &a);
		grid_markdown(&g, out);
	}
	buf_add_char(out, '\n');
	unpaired(c, "- ", "", out);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		buf_printf(out, "- %.*s\n", (int)line.n, line.p);
	}
	buf_add_text(out, "\n");
	summary_line(c, out);
	arena_release(&a);
}

static const char *exact(double v, struct arena *a)
{
	char text[FMT_F64_BYTES];

	return isnan(v) ? "" : arena_text(a, str_of(fmt_f64(text, v)));
}

void compare_csv(const struct comparison *c, struct buf *out)
{
	static const char *const heads[] = {
		"metric", "unit", "baseline", "side", "baseline_median", "median", "delta",
		"delta_low", "delta_high", "p_welch", "p_mann_whitney", "q", "baseline_runs", "runs",
		"verdict",
	};
	struct arena a = { 0 };
	struct grid g;

	grid_begin(&g, &a);
	grid_add(&g, "point");
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		grid_add(&g, heads[i]);
	grid_end_heads(&g);
	for (size_t p = 0; p < c->n_points; p++)
		for (size_t m = 0; m < c->n_metrics; m++)
			for (size_t s = 1; s < c->n_sides; s++) {
				const struct compare_cell *base = compare_cell(c, p, m, 0);
				const struct compare_cell *cell = compare_cell(c, p, m, s);
				double v[] = { base->median, cell->median, cell->delta,
					       cell->interval.low, cell->interval.high, cell->p,
					       cell->p_ranks, cell->q };

				grid_add(&g, c->point[p].name);
				grid_add(&g, c->metric[m].key);
				grid_add(&g, c->metric[m].unit);
				grid_add(&g, c->side[0].name);
				grid_add(&g, c->side[s].name);
				for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
					grid_add(&g, exact(v[i], &a));
				grid_add(&g, arena_printf(&a, "%zu", base->n_runs));
				grid_add(&g, arena_printf(&a, "%zu", cell->n_runs));
				grid_add(&g, compare_verdict_key(cell->verdict));
			}
	grid_csv(&g, out);
	arena_release(&a);
}
