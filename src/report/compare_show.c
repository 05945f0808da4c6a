/* SPDX-License-Identifier: Apache-2.0 */
/* compare_show.c - a comparison as text, Markdown and CSV. */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "report/compare.h"
#include "report/grid.h"

#define HEAD_CHARS_MAX 24 /* longer names would make tables wider than screens */
#define DIGITS_MAX 1e12   /* and so would all digits of larger numbers */
#define CONFIGS_SHOWN 12  /* of a metric, where a page or a file would show all */

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

/* Of a ratio, as changes. */
static const char *interval_text(struct interval i, struct arena *a)
{
	i.low -= 1;
	i.high -= 1;
	if (!isfinite(i.low) || !isfinite(i.high))
		return "";
	if (fmax(fabs(i.low), fabs(i.high)) >= DIGITS_MAX)
		return arena_printf(a, "%+.6g..%+.6g%%", i.low * 100, i.high * 100);
	return arena_printf(a, "%+.1f..%+.1f%%", i.low * 100, i.high * 100);
}

static enum grid_tone tone_of(const struct matched_row *row)
{
	switch (row->verdict) {
	case MATCHED_WORSE:
	case MATCHED_WORSE_SMALL:
		return GRID_BAD;
	case MATCHED_BETTER:
	case MATCHED_BETTER_SMALL:
		return GRID_GOOD;
	case MATCHED_CHANGED:
	case MATCHED_CHANGED_SMALL:
	case MATCHED_MIXED:
	case MATCHED_NOT_COMPARABLE:
		return GRID_FAIR;
	default:
		return GRID_FAINT;
	}
}

/* What heads a side's columns: its name if that is short for all sides. */
static const char *head_of(const struct comparison *c, size_t side, struct arena *a)
{
	for (size_t s = 0; s < c->n_sides; s++)
		if (grid_width(c->side[s].name) > HEAD_CHARS_MAX)
			return side ? arena_printf(a, "side %zu", side + 1) : "baseline";
	return c->side[side].name;
}

static const char *interval_head(const struct comparison *c, struct arena *a)
{
	return arena_printf(a, "%.3g %% interval", (1 - c->o->alpha) * 100);
}

static const char *two_counts(size_t x, size_t y, struct arena *a)
{
	return arena_printf(a, "%zu : %zu", x, y);
}

/* ---- the sides ---- */

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

/* ---- a line for each metric ---- */

static bool is_shown(const struct matched_row *row)
{
	return row->runs[0] || row->runs[1] || row->invalid[0] || row->invalid[1];
}

static const char *need_text(const struct matched_row *row, struct arena *a)
{
	const struct matched_need *n = &row->need;

	if (row->verdict != MATCHED_NOT_ENOUGH || (!n->sessions && !n->clusters))
		return "";
	return n->sessions ? arena_printf(a, "%s%zu sessions", n->from == MATCHED_FROM_RUNS ?
					  "at least " : "", n->sessions) :
		arena_printf(a, "%zu configurations", n->clusters);
}

void compare_summary_grid(const struct comparison *c, const struct matched_pair *pair,
			  struct grid *g, struct arena *a)
{
	bool is_any_need = false;

	for (size_t m = 0; m < c->n_metrics; m++)
		is_any_need |= *need_text(&pair->row[m], a) != 0;
	grid_begin(g, a);
	grid_add(g, "metric");
	grid_add(g, head_of(c, 0, a));
	grid_add(g, head_of(c, pair->side, a));
	grid_add(g, "change");
	grid_add(g, interval_head(c, a));
	grid_add(g, "higher : lower");
	grid_add(g, "sessions");
	if (is_any_need)
		grid_add(g, "would do");
	grid_add(g, "verdict");
	grid_end_heads(g);
	for (size_t m = 0; m < c->n_metrics; m++) {
		const struct matched_row *row = &pair->row[m];
		bool is_answer = row->verdict != MATCHED_NOT_COMPARABLE;
		enum grid_tone tone = tone_of(row);

		if (!is_shown(row))
			continue;
		grid_add(g, row->metric->name);
		grid_add(g, compare_value(row->is.value[0], a));
		grid_add(g, compare_value(row->is.value[1], a));
		grid_add_toned(g, is_answer ? compare_percent(row->is.ratio - 1, a) : "", tone);
		grid_add(g, interval_text(row->is.interval, a));
		grid_add(g, is_answer ? two_counts(row->up, row->down, a) : "");
		grid_add(g, two_counts(row->sessions[0], row->sessions[1], a));
		if (is_any_need)
			grid_add(g, need_text(row, a));
		grid_add_toned(g, matched_verdict_words(row, a), tone);
	}
}

/* ---- by configuration, by load ---- */

static void add_estimate(struct grid *g, const struct matched_estimate *is, int evident, int better,
			 bool has_interval, struct arena *a)
{
	enum grid_tone tone = !evident ? GRID_FAINT : !better ? GRID_FAIR :
			      evident * better > 0 ? GRID_GOOD : GRID_BAD;

	grid_add(g, compare_value(is->value[0], a));
	grid_add(g, compare_value(is->value[1], a));
	grid_add_toned(g, compare_percent(is->ratio - 1, a), tone);
	if (has_interval)
		grid_add(g, interval_text(is->interval, a));
}

static void estimate_heads(const struct comparison *c, const char *first, bool has_interval,
			   struct grid *g, struct arena *a)
{
	grid_begin(g, a);
	grid_add(g, first);
	grid_add(g, "baseline");
	grid_add(g, "value");
	grid_add(g, "change");
	if (has_interval)
		grid_add(g, interval_head(c, a));
}

void compare_configs_grid(const struct comparison *c, const struct matched_pair *pair,
			  const struct matched_row *row, size_t most, struct grid *g,
			  struct arena *a)
{
	bool has_interval = false;

	for (size_t i = 0; i < row->n_configs; i++)
		has_interval |= isfinite(row->config[i].is.interval.low);
	estimate_heads(c, "configuration", has_interval, g, a);
	grid_add(g, "runs");
	if (row->apart)
		grid_add(g, "not comparable");
	grid_end_heads(g);
	for (size_t i = 0; i < row->n_configs && i < most; i++) {
		const struct matched_config *one = &row->config[i];

		grid_add(g, pair->config[one->index]);
		add_estimate(g, &one->is, one->evident, row->metric->better, has_interval, a);
		grid_add(g, two_counts(one->runs[0], one->runs[1], a));
		if (row->apart)
			grid_add(g, one->apart ? one->apart : "");
	}
}

void compare_loads_grid(const struct comparison *c, const struct matched_row *row, struct grid *g,
			struct arena *a)
{
	estimate_heads(c, "load", true, g, a);
	grid_add(g, "configurations");
	grid_end_heads(g);
	for (size_t i = 0; i < row->n_loads; i++) {
		const struct matched_load *load = &row->load[i];

		grid_add(g, load->name);
		add_estimate(g, &load->is, load->evident, row->metric->better, true, a);
		grid_add(g, arena_printf(a, "%zu", load->is.configs));
	}
}

/* ---- sentences ---- */

static bool needs_sentence(const struct matched_row *row)
{
	return row->is_primary || row->do_effects_differ || row->do_ranks_disagree;
}

static bool is_same_reason(const struct matched_row *x, const struct matched_row *y)
{
	return is_shown(y) && !needs_sentence(y) && y->reason && x->verdict == y->verdict &&
	       strcmp(x->reason, y->reason) == 0;
}

/* "not enough data for a, b: ...": metrics that have no answer for the same reason. */
static void add_reason(const struct comparison *c, const struct matched_pair *pair, size_t m,
		       struct buf *out, struct arena *a)
{
	const struct matched_row *row = &pair->row[m];
	const char *sep = "";

	if (!is_shown(row) || needs_sentence(row) || !row->reason)
		return;
	for (size_t k = 0; k < m; k++)
		if (is_same_reason(row, &pair->row[k]))
			return;
	buf_printf(out, "%s (", matched_verdict_words(row, a));
	for (size_t k = m; k < c->n_metrics; k++)
		if (is_same_reason(row, &pair->row[k])) {
			buf_printf(out, "%s%s", sep, c->metric[k].name);
			sep = ", ";
		}
	buf_printf(out, "): %s\n", row->reason);
}

const char *compare_remarks(const struct comparison *c, const struct matched_pair *pair,
			    struct arena *a)
{
	const char *confounded = compare_confounded(c, pair->side, a), *text;
	struct buf out = { 0 };

	for (size_t m = 0; !pair->refusal && m < c->n_metrics; m++)
		if (is_shown(&pair->row[m]) && needs_sentence(&pair->row[m]))
			buf_printf(&out, "%s\n", matched_sentence(&c->out, pair, &pair->row[m], a));
	for (size_t m = 0; !pair->refusal && m < c->n_metrics; m++)
		add_reason(c, pair, m, &out, a);
	if (confounded && !pair->refusal)
		buf_printf(&out, "%s\n", confounded);
	buf_add_text(&out, matched_notes(&c->out, pair, a));
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

static const char *const brief[] = {
	[MATCHED_BETTER] = "better", [MATCHED_WORSE] = "worse",
	[MATCHED_BETTER_SMALL] = "slightly better", [MATCHED_WORSE_SMALL] = "slightly worse",
	[MATCHED_CHANGED] = "changed", [MATCHED_CHANGED_SMALL] = "slightly changed",
	[MATCHED_NO_CHANGE] = "no change", [MATCHED_MIXED] = "mixed",
	[MATCHED_NOT_ENOUGH] = "not enough data", [MATCHED_NOT_COMPARABLE] = "not comparable",
};

/* "96 configurations matched, 2 metrics: better 1, not enough data 1" */
static void conclude(const struct comparison *c, const struct matched_pair *pair, struct buf *out)
{
	size_t n[MATCHED_NOT_COMPARABLE + 1] = { 0 }, metrics = 0;
	const char *sep = "";

	if (pair->refusal)
		return;
	for (size_t m = 0; m < c->n_metrics; m++)
		if (is_shown(&pair->row[m])) {
			metrics++;
			n[pair->row[m].verdict]++;
		}
	buf_printf(out, "%zu configuration%s matched, %zu metric%s: ", pair->n_configs,
		   pair->n_configs == 1 ? "" : "s", metrics, metrics == 1 ? "" : "s");
	for (size_t v = 0; v <= MATCHED_NOT_COMPARABLE; v++)
		if (n[v]) {
			buf_printf(out, "%s%s %zu", sep, brief[v], n[v]);
			sep = ", ";
		}
	buf_add_text(out, "\n");
}

/* ---- text and Markdown ---- */

/* How the two forms differ. */
struct form {
	void (*grid)(const struct form *f, const struct grid *g, struct buf *out);
	const char *pair, *metric, *after; /* before and after heads */
	const char *line, *above;    /* before a remark; between a table and a line */
	bool is_coloured;
};

static void as_text(const struct form *f, const struct grid *g, struct buf *out)
{
	grid_text(g, f->is_coloured, out);
}

static void as_markdown(const struct form *f, const struct grid *g, struct buf *out)
{
	(void)f;
	grid_markdown(g, out);
}

static void add_lines(const struct form *f, const char *lines, struct buf *out)
{
	struct str rest = str_of(lines);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		buf_printf(out, "%s%.*s\n", f->line, (int)line.n, line.p);
	}
}

/*
 * With many configurations, tables of all metrics would hide the answer: then those of the primary
 * metric (else the first), and of metrics whose effects differ.
 */
static bool has_table(const struct matched_pair *pair, size_t m, bool is_first)
{
	const struct matched_row *row = &pair->row[m];

	return row->n_configs > 1 && (row->n_configs <= CONFIGS_SHOWN || row->is_primary ||
				      row->do_effects_differ || is_first);
}

static void add_tables(const struct form *f, const struct comparison *c,
		       const struct matched_pair *pair, const struct matched_row *row,
		       struct buf *out, struct arena *a)
{
	struct grid g;

	buf_printf(out, "\n%s%s by configuration%s", f->metric, row->metric->name, f->after);
	compare_configs_grid(c, pair, row, CONFIGS_SHOWN, &g, a);
	f->grid(f, &g, out);
	if (row->n_configs > CONFIGS_SHOWN)
		buf_printf(out, "%sand %zu more\n", f->above, row->n_configs - CONFIGS_SHOWN);
	if (row->n_loads < 2 || row->n_loads == row->n_configs)
		return;
	buf_printf(out, "\n%s%s by load%s", f->metric, row->metric->name, f->after);
	compare_loads_grid(c, row, &g, a);
	f->grid(f, &g, out);
}

static void add_metrics(const struct form *f, const struct comparison *c,
			const struct matched_pair *pair, struct buf *out, struct arena *a)
{
	bool is_first = c->spec.primary == c->n_metrics, is_cut = false;

	for (size_t m = 0; m < c->n_metrics; m++) {
		if (has_table(pair, m, is_first)) {
			add_tables(f, c, pair, &pair->row[m], out, a);
			is_first = false;
		}
		is_cut |= pair->row[m].n_configs > CONFIGS_SHOWN;
	}
	if (is_cut)
		buf_printf(out, "\n%s--format html, csv or json shows every configuration of every "
			   "metric\n", f->line);
}

static void add_all(const struct form *f, const struct comparison *c, struct buf *out)
{
	struct arena a = { 0 };
	struct grid g;

	compare_sides_grid(c, &g, &a);
	f->grid(f, &g, out);
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		const struct matched_pair *pair = &c->out.pair[i];

		buf_add_char(out, '\n');
		if (c->out.n_pairs > 1)
			buf_printf(out, "%s%s against %s%s", f->pair, c->side[pair->side].name,
				   c->side[0].name, f->after);
		if (!pair->refusal) {
			compare_summary_grid(c, pair, &g, &a);
			f->grid(f, &g, out);
			add_metrics(f, c, pair, out, &a);
		}
		buf_add_char(out, '\n');
		add_lines(f, compare_remarks(c, pair, &a), out);
		if (i + 1 == c->out.n_pairs && c->notes.len)
			add_lines(f, c->notes.data, out);
		if (*f->above)
			buf_add_char(out, '\n');
		conclude(c, pair, out);
	}
	arena_release(&a);
}

void compare_text(const struct comparison *c, bool is_coloured, struct buf *out)
{
	const struct form text = { .grid = as_text, .pair = "", .metric = "", .after = "\n",
				   .line = "note: ", .above = "", .is_coloured = is_coloured };

	add_all(&text, c, out);
}

void compare_markdown(const struct comparison *c, struct buf *out)
{
	const struct form markdown = { .grid = as_markdown, .pair = "### ", .metric = "#### ",
				       .after = "\n\n", .line = "- ", .above = "\n" };

	buf_add_text(out, "## Comparison\n\n");
	add_all(&markdown, c, out);
}

/* ---- CSV ---- */

static const char *exact(double v, struct arena *a)
{
	char text[FMT_F64_BYTES];

	return isfinite(v) ? arena_text(a, str_of(fmt_f64(text, v))) : "";
}

static void csv_row(const struct comparison *c, const struct matched_pair *pair,
		    const struct matched_row *row, const struct matched_config *one, struct grid *g,
		    struct arena *a)
{
	const struct matched_estimate *is = one ? &one->is : &row->is;
	const size_t *runs = one ? one->runs : row->runs;
	const size_t *sessions = one ? one->sessions : row->sessions;
	bool is_answer = one ? !one->apart : row->verdict != MATCHED_NOT_COMPARABLE;
	double v[] = { is->value[0], is->value[1], is_answer ? is->ratio - 1 : NAN,
		       is->interval.low - 1, is->interval.high - 1, is->p, one ? NAN : row->q };
	size_t n[] = { is->configs, runs[0], runs[1], sessions[0], sessions[1] };

	grid_add(g, row->metric->name);
	grid_add(g, row->metric->unit);
	grid_add(g, c->side[0].name);
	grid_add(g, c->side[pair->side].name);
	grid_add(g, one ? one->name : "");
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		grid_add(g, exact(v[i], a));
	for (size_t i = 0; i < sizeof(n) / sizeof(*n); i++)
		grid_add(g, arena_printf(a, "%zu", n[i]));
	grid_add(g, !one ? matched_verdict_key(row->verdict) : one->apart ? "not_comparable" : "");
}

void compare_csv(const struct comparison *c, struct buf *out)
{
	static const char *const heads[] = {
		"metric", "unit", "baseline", "side", "configuration", "baseline_value", "value",
		"change", "change_low", "change_high", "p", "q", "configurations", "baseline_runs",
		"runs", "baseline_sessions", "sessions", "verdict",
	};
	struct arena a = { 0 };
	struct grid g;

	grid_begin(&g, &a);
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		grid_add(&g, heads[i]);
	grid_end_heads(&g);
	for (size_t i = 0; i < c->out.n_pairs; i++)
		for (size_t m = 0; m < c->n_metrics; m++) {
			const struct matched_pair *pair = &c->out.pair[i];
			const struct matched_row *row = &pair->row[m];

			if (pair->refusal || !is_shown(row))
				continue;
			csv_row(c, pair, row, NULL, &g, &a);
			for (size_t k = 0; row->n_configs > 1 && k < row->n_configs; k++)
				csv_row(c, pair, row, &row->config[k], &g, &a);
		}
	grid_csv(&g, out);
	arena_release(&a);
}
