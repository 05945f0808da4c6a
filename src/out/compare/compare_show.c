/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_show.c - writes a comparison as text, Markdown, CSV, JSON and one HTML page; the scaling
 * over GPUs; the short table of two results.
 */
#include "out/compare/compare.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/base/str.h"
#include "core/json/write.h"
#include "core/stats/stats.h"
#include "out/compare/compare.h"
#include "out/report/grid.h"

#define DIGITS_MAX 1e12   /* larger numbers would have too many digits */
#define CONFIGS_SHOWN 12  /* of a metric, where a page or a file would show all */

static const char *value_text(double v, struct arena *a)
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

static const char *percent_text(double share, struct arena *a)
{
	if (isnan(share))
		return "";
	return arena_printf(a, fabs(share) >= DIGITS_MAX ? "%+.6g%%" : "%+.1f%%", share * 100);
}

/* A ratio's interval, as changes. */
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

static const char *interval_head(const struct bench_comparison *c, struct arena *a)
{
	return arena_printf(a, "%.3g %% interval", (1 - c->o->alpha) * 100);
}

static const char *two_counts(size_t x, size_t y, struct arena *a)
{
	return arena_printf(a, "%zu : %zu", x, y);
}

/* ---- the sides ---- */

static void sides_grid(const struct bench_comparison *c, struct grid *g, struct arena *a)
{
	grid_begin(g, a);
	grid_add(g, "side");
	grid_add(g, "runs");
	for (size_t p = 0; p < c->n_params; p++)
		if (c->param[p].kind == COMPARE_BETWEEN)
			grid_add(g, c->param[p].key);
	grid_end_heads(g);
	for (size_t s = 0; s < c->n_sides; s++) {
		const char *name = c->side[s].name, *head = c->side[s].short_name;

		if (head != name && strcmp(head, "baseline") != 0)
			name = arena_printf(a, "%s: %s", head, name);
		grid_add(g, s ? name : arena_printf(a, "%s (baseline)", name));
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

	if (row->why != MATCHED_WHY_DESIGN && row->why != MATCHED_WHY_WIDE)
		return "";
	if (!n->sessions && !n->clusters)
		return "over 1,000 sessions"; /* MATCHED_SESSIONS_MAX */
	return n->sessions ? arena_printf(a, "%s%zu sessions", n->from == MATCHED_FROM_RUNS ?
					  "at least " : "about ", n->sessions) :
		arena_printf(a, "%zu configurations", n->clusters);
}

static void summary_grid(const struct bench_comparison *c, const struct matched_pair *pair,
			  struct grid *g, struct arena *a)
{
	bool is_any_need = false;

	for (size_t m = 0; m < c->n_metrics; m++)
		is_any_need |= *need_text(&pair->row[m], a) != 0;
	grid_begin(g, a);
	grid_add_all(g, "metric", c->side[0].short_name, c->side[pair->side].short_name, "change",
		     interval_head(c, a), "higher : lower", "sessions", NULL);
	if (is_any_need)
		grid_add(g, "needed");
	grid_add(g, "verdict");
	grid_end_heads(g);
	for (size_t m = 0; m < c->n_metrics; m++) {
		const struct matched_row *row = &pair->row[m];
		bool is_answer = row->verdict != MATCHED_NOT_COMPARABLE;
		enum grid_tone tone = tone_of(row);

		if (!is_shown(row))
			continue;
		grid_add_all(g, row->metric->name, value_text(row->is.value[0], a),
			     value_text(row->is.value[1], a), NULL);
		grid_add_toned(g, is_answer ? percent_text(row->is.ratio - 1, a) : "", tone);
		grid_add_all(g, interval_text(row->is.interval, a),
			     is_answer ? two_counts(row->up, row->down, a) : "",
			     two_counts(row->sessions[0], row->sessions[1], a), NULL);
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

	grid_add(g, value_text(is->value[0], a));
	grid_add(g, value_text(is->value[1], a));
	grid_add_toned(g, percent_text(is->ratio - 1, a), tone);
	if (has_interval)
		grid_add(g, interval_text(is->interval, a));
}

static void estimate_heads(const struct bench_comparison *c, const char *first, bool has_interval,
			   struct grid *g, struct arena *a)
{
	grid_begin(g, a);
	grid_add_all(g, first, "baseline", "value", "change", NULL);
	if (has_interval)
		grid_add(g, interval_head(c, a));
}

static void configs_grid(const struct bench_comparison *c, const struct matched_pair *pair,
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

static void loads_grid(const struct bench_comparison *c, const struct matched_row *row,
		       struct grid *g, struct arena *a)
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
static void add_reason(const struct bench_comparison *c, const struct matched_pair *pair, size_t m,
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

const char *compare_remarks(const struct bench_comparison *c, const struct matched_pair *pair,
			    struct arena *a)
{
	const char *confounded = compare_confounded(c, pair->side, a);
	struct buf out = { 0 };

	for (size_t m = 0; !pair->refusal && m < c->n_metrics; m++)
		if (is_shown(&pair->row[m]) && needs_sentence(&pair->row[m]))
			buf_printf(&out, "%s\n", matched_sentence(&c->out, pair, &pair->row[m], a));
	for (size_t m = 0; !pair->refusal && m < c->n_metrics; m++)
		add_reason(c, pair, m, &out, a);
	if (confounded && !pair->refusal)
		buf_printf(&out, "%s\n", confounded);
	buf_add_text(&out, matched_notes(&c->out, pair, a));
	return arena_take(a, &out).p;
}

static const char *const brief[] = {
	[MATCHED_BETTER] = "better", [MATCHED_WORSE] = "worse",
	[MATCHED_BETTER_SMALL] = "slightly better", [MATCHED_WORSE_SMALL] = "slightly worse",
	[MATCHED_CHANGED] = "changed", [MATCHED_CHANGED_SMALL] = "slightly changed",
	[MATCHED_NO_CHANGE] = "no change", [MATCHED_MIXED] = "mixed",
	[MATCHED_NOT_ENOUGH] = "not enough data", [MATCHED_NOT_COMPARABLE] = "not comparable",
};

/* "96 configurations matched, 2 metrics: better 1, not enough data 1" */
static void conclude(const struct bench_comparison *c, const struct matched_pair *pair,
		     struct buf *out)
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

/* The differences of the two forms. */
struct show_form {
	void (*grid)(const struct show_form *f, const struct grid *g, struct buf *out);
	const char *pair, *metric, *after; /* before and after heads */
	const char *line, *above;    /* before a remark; between a table and a line */
	bool is_coloured;
};

static void as_text(const struct show_form *f, const struct grid *g, struct buf *out)
{
	grid_text(g, f->is_coloured, out);
}

static void as_markdown(const struct show_form *f, const struct grid *g, struct buf *out)
{
	(void)f;
	grid_markdown(g, out);
}

static void add_lines(const struct show_form *f, const char *lines, struct buf *out)
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

static void add_tables(const struct show_form *f, const struct bench_comparison *c,
		       const struct matched_pair *pair, const struct matched_row *row,
		       struct buf *out, struct arena *a)
{
	struct grid g;

	buf_printf(out, "\n%s%s by configuration%s", f->metric, row->metric->name, f->after);
	configs_grid(c, pair, row, CONFIGS_SHOWN, &g, a);
	f->grid(f, &g, out);
	if (row->n_configs > CONFIGS_SHOWN)
		buf_printf(out, "%sand %zu more\n", f->above, row->n_configs - CONFIGS_SHOWN);
	if (row->n_loads < 2 || row->n_loads == row->n_configs)
		return;
	buf_printf(out, "\n%s%s by load%s", f->metric, row->metric->name, f->after);
	loads_grid(c, row, &g, a);
	f->grid(f, &g, out);
}

static void add_metrics(const struct show_form *f, const struct bench_comparison *c,
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

static void add_all(const struct show_form *f, const struct bench_comparison *c, struct buf *out)
{
	struct arena a = { 0 };
	struct grid g;

	sides_grid(c, &g, &a);
	f->grid(f, &g, out);
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		const struct matched_pair *pair = &c->out.pair[i];

		buf_add_char(out, '\n');
		if (c->out.n_pairs > 1)
			buf_printf(out, "%s%s against %s%s", f->pair, c->side[pair->side].short_name,
				   c->side[0].short_name, f->after);
		if (!pair->refusal) {
			summary_grid(c, pair, &g, &a);
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

void compare_text(const struct bench_comparison *c, bool is_coloured, struct buf *out)
{
	const struct show_form text = { .grid = as_text, .pair = "", .metric = "", .after = "\n",
				   .line = "note: ", .above = "", .is_coloured = is_coloured };

	add_all(&text, c, out);
}

void compare_markdown(const struct bench_comparison *c, struct buf *out)
{
	const struct show_form markdown = { .grid = as_markdown, .pair = "### ", .metric = "#### ",
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

static void csv_row(const struct bench_comparison *c, const struct matched_pair *pair,
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

	grid_add_all(g, row->metric->name, row->metric->unit, c->side[0].name,
		     c->side[pair->side].name, one ? one->name : "", NULL);
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		grid_add(g, exact(v[i], a));
	for (size_t i = 0; i < sizeof(n) / sizeof(*n); i++)
		grid_add(g, arena_printf(a, "%zu", n[i]));
	grid_add(g, !one ? matched_verdict_key(row->verdict) : one->apart ? "not_comparable" : "");
}

void compare_csv(const struct bench_comparison *c, struct buf *out)
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

/* ---- JSON; numbers that do not exist are null ---- */

#define SCHEMA_VERSION 2 /* 1: points with Welch's test */

static void put_sides(struct json_writer *w, const struct bench_comparison *c)
{
	json_member_array(w, "sides");
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct compare_side *side = &c->side[s];

		json_begin_object(w);
		json_member_text(w, "name", side->name);
		json_member_text(w, "path", side->path);
		json_member_int(w, "runs", (int64_t)side->n);
		json_member_object(w, "parameters");
		for (size_t p = 0; p < c->n_params; p++)
			if (c->param[p].kind == COMPARE_BETWEEN)
				json_member_text(w, c->param[p].key, side->run[0].param[p]);
		json_end_object(w);
		json_end_object(w);
	}
	json_end_array(w);
}

void compare_json(const struct bench_comparison *c, struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct str rest = buf_str(&c->notes);
	struct arena a = { 0 };

	w.indent = 2;
	json_begin_object(&w);
	json_member_int(&w, "schema_version", SCHEMA_VERSION);
	json_member_f64(&w, "alpha", c->o->alpha);
	put_sides(&w, c);
	json_member_array(&w, "comparisons");
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		json_begin_object(&w);
		matched_put(&w, &c->out, &c->out.pair[i], &a);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_member_array(&w, "notes");
	while (rest.n)
		json_put_str(&w, str_cut(&rest, '\n'));
	json_end_array(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
	arena_release(&a);
}

/* ---- HTML: the tables, and a drawing of the changes with their intervals ---- */

#define ROW_PX 22
#define LABEL_PX 260
#define PLOT_PX 420

static const char style[] =
	":root{color-scheme:light dark}"
	"body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
	"h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}"
	"table{border-collapse:collapse;margin:.6rem 0;display:block;overflow-x:auto}"
	"th,td{padding:.25rem .6rem;border-bottom:1px solid #8884;text-align:left;white-space:nowrap}"
	".n{text-align:right;font-variant-numeric:tabular-nums}"
	".good{color:#00796b;font-weight:600}.bad{color:#c62828;font-weight:600}"
	".fair{color:#a16207;font-weight:600}.faint{opacity:.65}"
	"@media(prefers-color-scheme:dark){.good{color:#4fd1b5}.bad{color:#ff8f70}.fair{color:#facc15}}"
	"svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:currentColor}"
	"svg .axis{stroke:currentColor;stroke-opacity:.35}"
	"svg .good{fill:#00796b;stroke:#00796b}svg .bad{fill:#c62828;stroke:#c62828}"
	"svg .fair{fill:#a16207;stroke:#a16207}svg .faint{fill:#64748b;stroke:#64748b}"
	"@media(prefers-color-scheme:dark){svg .good{fill:#4fd1b5;stroke:#4fd1b5}"
	"svg .bad{fill:#ff8f70;stroke:#ff8f70}svg .fair{fill:#facc15;stroke:#facc15}}";

static bool is_drawn(const struct matched_row *row)
{
	return row->verdict != MATCHED_NOT_COMPARABLE && isfinite(row->is.ratio);
}

/* A round number beyond the largest change and end of an interval, so that everything fits. */
static double reach(const struct bench_comparison *c, const struct matched_pair *pair)
{
	static const double round[] = { 0.02, 0.04, 0.1, 0.2, 0.4, 1 };
	double most = 0;
	size_t i = 0;

	for (size_t m = 0; m < c->n_metrics; m++) {
		const struct matched_estimate *is = &pair->row[m].is;
		double v[] = { is->ratio, is->interval.low, is->interval.high };

		for (size_t k = 0; is_drawn(&pair->row[m]) && k < 3; k++)
			if (isfinite(v[k]))
				most = fmax(most, fabs(v[k] - 1));
	}
	while (round[i] < most && i + 1 < sizeof(round) / sizeof(*round))
		i++;
	return round[i];
}

static double place(double change, double most)
{
	return LABEL_PX + PLOT_PX / 2.0 * (1 + fmax(-1, fmin(1, change / most)));
}

static void draw_row(const struct matched_row *r, double most, size_t row, struct buf *out)
{
	const struct matched_estimate *is = &r->is;
	size_t y = row * ROW_PX + ROW_PX;
	const char *class = grid_tone_name(tone_of(r));

	buf_printf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">", LABEL_PX - 8, y + 4);
	html_escape(out, r->metric->name);
	buf_add_text(out, "</text>");
	if (isfinite(is->interval.low) && isfinite(is->interval.high))
		buf_printf(out, "<line class=\"%s\" stroke-width=\"2\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%zu\" "
			   "y2=\"%zu\"/>", class, place(is->interval.low - 1, most),
			   place(is->interval.high - 1, most), y, y);
	buf_printf(out, "<circle class=\"%s\" r=\"4\" cx=\"%.1f\" cy=\"%zu\"/>\n", class,
		   place(is->ratio - 1, most), y);
}

static void draw(const struct bench_comparison *c, const struct matched_pair *pair, struct buf *out,
		 struct arena *a)
{
	double most = reach(c, pair), mark[] = { -most, -most / 2, 0, most / 2, most };
	size_t rows = 0, height;
	struct buf body = { 0 };

	for (size_t m = 0; m < c->n_metrics; m++)
		if (is_drawn(&pair->row[m]))
			draw_row(&pair->row[m], most, rows++, &body);
	height = rows * ROW_PX + 2 * ROW_PX;
	if (rows) {
		buf_printf(out, "<svg role=\"img\" aria-label=\"changes with their intervals\" "
			   "viewBox=\"0 0 %d %zu\" width=\"%d\" height=\"%zu\">\n",
			   LABEL_PX + PLOT_PX + 30, height, LABEL_PX + PLOT_PX + 30, height);
		for (size_t i = 0; i < sizeof(mark) / sizeof(*mark); i++)
			buf_printf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"8\" y2=\"%zu\"/>"
				   "<text x=\"%.1f\" y=\"%zu\" text-anchor=\"middle\">%s</text>\n",
				   place(mark[i], most), place(mark[i], most), height - ROW_PX,
				   place(mark[i], most), height - 6,
				   i == 2 ? "0 %" : arena_printf(a, "%+.3g %%", mark[i] * 100));
		buf_add_str(out, buf_str(&body));
		buf_add_text(out, "</svg>\n");
	}
	buf_release(&body);
}

static void add_head(const char *level, const char *text, struct buf *out)
{
	buf_printf(out, "<%s>", level);
	html_escape(out, text);
	buf_printf(out, "</%s>\n", level);
}

/* A metric's table by configuration, folded. */
static void add_configs(const struct bench_comparison *c, const struct matched_pair *pair,
			const struct matched_row *row, struct buf *out, struct arena *a)
{
	struct grid g;

	if (row->n_configs < 2)
		return;
	buf_add_text(out, "<details>");
	add_head("summary", arena_printf(a, "%s by configuration (%zu)", row->metric->name,
					 row->n_configs), out);
	configs_grid(c, pair, row, SIZE_MAX, &g, a);
	grid_html(&g, out);
	if (row->n_loads > 1 && row->n_loads < row->n_configs) {
		loads_grid(c, row, &g, a);
		grid_html(&g, out);
	}
	buf_add_text(out, "</details>\n");
}

static void add_notes(const char *lines, struct buf *out, struct arena *a)
{
	struct str rest = str_of(lines);

	if (!rest.n)
		return;
	buf_add_text(out, "<ul>\n");
	while (rest.n) {
		buf_add_text(out, "<li>");
		html_escape(out, arena_text(a, str_cut(&rest, '\n')));
		buf_add_text(out, "</li>\n");
	}
	buf_add_text(out, "</ul>\n");
}

void compare_html(const struct bench_comparison *c, struct buf *out)
{
	struct arena a = { 0 };
	struct grid g;

	buf_printf(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width\">\n"
		   "<title>Comparison</title>\n<style>%s</style></head><body>\n<h1>Comparison</h1>\n",
		   style);
	sides_grid(c, &g, &a);
	grid_html(&g, out);
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		const struct matched_pair *pair = &c->out.pair[i];

		add_head("h2", arena_printf(&a, "%s against %s", c->side[pair->side].short_name,
					    c->side[0].short_name), out);
		if (!pair->refusal) {
			summary_grid(c, pair, &g, &a);
			grid_html(&g, out);
			draw(c, pair, out, &a);
		}
		add_notes(compare_remarks(c, pair, &a), out, &a);
		for (size_t m = 0; !pair->refusal && m < c->n_metrics; m++)
			add_configs(c, pair, &pair->row[m], out, &a);
	}
	add_notes(c->notes.len ? c->notes.data : "", out, &a);
	buf_add_text(out, "</body></html>\n");
	arena_release(&a);
}

/* ---- what more GPUs bring ---- */

/* The spellings of one factor of the number of GPUs. */
static const char *const total[] = { "num_gpus", "gpu_count", NULL };
static const char *const tensor[] = { "tensor_parallel_size", "tp_size", "tp", NULL };
static const char *const pipeline[] = { "pipeline_parallel_size", "pp_size", "pp", NULL };
static const char *const data[] = { "data_parallel_size", "dp_size", "dp", NULL };

static bool is_one_of(const char *key, const char *const *names)
{
	while (*names && strcmp(key, *names) != 0)
		names++;
	return *names != NULL;
}

static bool is_size(const char *key)
{
	return is_one_of(key, total) || is_one_of(key, tensor) || is_one_of(key, pipeline) ||
	       is_one_of(key, data);
}

static double factor(const struct bench_comparison *c, const struct compare_run *run,
		     const char *const *names, double otherwise)
{
	double v;

	for (size_t p = 0; p < c->n_params; p++)
		if (run->param[p] && is_one_of(c->param[p].key, names) &&
		    str_to_f64(str_of(run->param[p]), &v) && v >= 1)
			return v;
	return otherwise;
}

static double gpus_of(const struct bench_comparison *c, const struct compare_run *run)
{
	double n = factor(c, run, total, 0);

	return n > 0 ? n : factor(c, run, tensor, 1) * factor(c, run, pipeline, 1) *
				   factor(c, run, data, 1);
}

static bool is_alike(const struct bench_comparison *c, const struct compare_run *x,
		     const struct compare_run *y)
{
	for (size_t p = 0; p < c->n_params; p++) {
		const char *a = x->param[p], *b = y->param[p];

		if (!is_size(c->param[p].key) && a != b && (!a || !b || strcmp(a, b) != 0))
			return false;
	}
	return true;
}

static const char *rest_of(const struct bench_comparison *c, const struct compare_run *run,
			   struct arena *a)
{
	const char *text = "";

	for (size_t p = 0; p < c->n_params; p++)
		if (c->param[p].kind != COMPARE_SAME && !is_size(c->param[p].key) && run->param[p])
			text = arena_printf(a, "%s%s%s=%s", text, *text ? " " : "", c->param[p].key,
					    run->param[p]);
	return text;
}

struct sized_run { const struct compare_run *run; double gpus, v; bool is_done; };

/* The median of the runs like this one with its number of GPUs. */
static double median_at(const struct bench_comparison *c, struct sized_run *all, size_t n,
			const struct compare_run *like, double gpus, struct arena *a)
{
	double *v = arena_alloc(a, n * sizeof(*v));
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (fabs(all[i].gpus - gpus) < 0.5 && is_alike(c, all[i].run, like)) {
			v[count++] = all[i].v;
			all[i].is_done = true;
		}
	stats_sort(v, count);
	return stats_median(v, count);
}

/* The least number of GPUs above one among runs like this one; 0: none. */
static double next_size(const struct bench_comparison *c, const struct sized_run *all, size_t n,
			const struct compare_run *like, double above)
{
	double least = 0;

	for (size_t i = 0; i < n; i++)
		if (all[i].gpus > above + 0.5 && (least <= 0 || all[i].gpus < least) &&
		    is_alike(c, all[i].run, like))
			least = all[i].gpus;
	return least;
}

static size_t add_family(const struct bench_comparison *c, struct sized_run *all, size_t n,
			 const struct compare_run *like, struct grid *g, struct arena *a)
{
	double smallest = next_size(c, all, n, like, 0), first = 0;
	size_t lines = 0;

	for (double k = smallest; k > 0; k = next_size(c, all, n, like, k)) {
		double v = median_at(c, all, n, like, k, a), speedup;

		first = lines++ ? first : v;
		speedup = v / first;
		grid_add_all(g, rest_of(c, like, a), arena_printf(a, "%.0f", k), value_text(v, a),
			     value_text(v / k, a), arena_printf(a, "%.3f", speedup),
			     arena_printf(a, "%.1f%%", 100 * speedup * smallest / k), NULL);
	}
	return lines > 1 ? lines : 0;
}

size_t compare_scaling(const struct bench_comparison *c, const char *metric, bool is_markdown,
		       struct buf *out)
{
	struct arena a = { 0 };
	struct sized_run *all;
	struct grid g;
	size_t n = 0, lines = 0;

	for (size_t s = 0; s < c->n_sides; s++)
		n += c->side[s].n;
	all = arena_alloc(&a, n * sizeof(*all));
	n = 0;
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			const struct compare_run *run = &c->side[s].run[i];

			if (compare_number(run->record, metric, &all[n].v)) {
				all[n].run = run;
				all[n++].gpus = gpus_of(c, run);
			}
		}
	grid_begin(&g, &a);
	grid_add_all(&g, "point", "GPUs", metric, "per GPU", "speed-up", "efficiency", NULL);
	grid_end_heads(&g);
	for (size_t i = 0; i < n; i++)
		if (!all[i].is_done)
			lines += add_family(c, all, n, all[i].run, &g, &a);
	if (is_markdown)
		grid_markdown(&g, out);
	else
		grid_text(&g, false, out);
	arena_release(&a);
	return lines;
}

int compare_two(const char *a, const char *b, struct buf *out, struct err *e)
{
	static const struct compare_opts opts = { .alpha = MATCHED_ALPHA, .min_effect = -1,
						  .is_all = true, .is_any_model = true };
	const char *const path[] = { a, b };
	struct arena arena = { 0 };
	struct bench_comparison c;
	struct grid g;
	int rc = compare_load(&c, &opts, path, 2, &arena, e);

	grid_begin(&g, &arena);
	grid_add_all(&g, "metric", a, b, "change", NULL);
	grid_end_heads(&g);
	for (size_t m = 0; rc == 0 && m < c.n_metrics; m++) {
		double x, y;

		if (!compare_number(c.side[0].run[0].record, c.metric[m].name, &x) ||
		    !compare_number(c.side[1].run[0].record, c.metric[m].name, &y))
			continue;
		grid_add_all(&g, c.metric[m].name, value_text(x, &arena), value_text(y, &arena),
			     fabs(x) > 0 ? percent_text((y - x) / fabs(x), &arena) : "", NULL);
	}
	if (rc == 0)
		grid_text(&g, false, out);
	compare_release(&c);
	arena_release(&arena);
	return rc;
}
