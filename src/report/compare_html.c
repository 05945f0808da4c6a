/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_html.c - a comparison as one page: the tables of compare_show.c, and for every side a
 * drawing of the changes with their intervals. No script, no font, nothing from elsewhere.
 */
#include <math.h>
#include <stdint.h>

#include "report/compare.h"
#include "report/grid.h"

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
	".good{color:#15803d;font-weight:600}.bad{color:#c2410c;font-weight:600}"
	".fair{color:#a16207;font-weight:600}.faint{opacity:.65}"
	"@media(prefers-color-scheme:dark){.good{color:#4ade80}.bad{color:#fb923c}.fair{color:#facc15}}"
	"svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:currentColor}"
	"svg .axis{stroke:currentColor;stroke-opacity:.35}"
	"svg .good{fill:#15803d;stroke:#15803d}svg .bad{fill:#c2410c;stroke:#c2410c}"
	"svg .fair{fill:#a16207;stroke:#a16207}svg .faint{fill:#64748b;stroke:#64748b}";

static const char *class_of(const struct matched_row *row)
{
	switch (row->verdict) {
	case MATCHED_WORSE:
	case MATCHED_WORSE_SMALL:
		return "bad";
	case MATCHED_BETTER:
	case MATCHED_BETTER_SMALL:
		return "good";
	case MATCHED_CHANGED:
	case MATCHED_CHANGED_SMALL:
	case MATCHED_MIXED:
		return "fair";
	default:
		return "faint";
	}
}

static bool is_drawn(const struct matched_row *row)
{
	return row->verdict != MATCHED_NOT_COMPARABLE && isfinite(row->is.ratio);
}

/* A round number beyond the largest change and end of an interval, so that everything fits. */
static double reach(const struct comparison *c, const struct matched_pair *pair)
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
	const char *class = class_of(r);

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

static void draw(const struct comparison *c, const struct matched_pair *pair, struct buf *out)
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
				   "<text x=\"%.1f\" y=\"%zu\" text-anchor=\"middle\">%+.3g %%</text>\n",
				   place(mark[i], most), place(mark[i], most), height - ROW_PX,
				   place(mark[i], most), height - 6, mark[i] * 100);
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
static void add_configs(const struct comparison *c, const struct matched_pair *pair,
			const struct matched_row *row, struct buf *out, struct arena *a)
{
	struct grid g;

	if (row->n_configs < 2)
		return;
	buf_add_text(out, "<details>");
	add_head("summary", arena_printf(a, "%s by configuration (%zu)", row->metric->name,
					 row->n_configs), out);
	compare_configs_grid(c, pair, row, SIZE_MAX, &g, a);
	grid_html(&g, out);
	if (row->n_loads > 1 && row->n_loads < row->n_configs) {
		compare_loads_grid(c, row, &g, a);
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

void compare_html(const struct comparison *c, struct buf *out)
{
	struct arena a = { 0 };
	struct grid g;

	buf_printf(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width\">\n"
		   "<title>Comparison</title>\n<style>%s</style></head><body>\n<h1>Comparison</h1>\n",
		   style);
	compare_sides_grid(c, &g, &a);
	grid_html(&g, out);
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		const struct matched_pair *pair = &c->out.pair[i];

		add_head("h2", arena_printf(&a, "%s against %s", c->side[pair->side].name,
					    c->side[0].name), out);
		if (!pair->refusal) {
			compare_summary_grid(c, pair, &g, &a);
			grid_html(&g, out);
			draw(c, pair, out);
		}
		add_notes(compare_remarks(c, pair, &a), out, &a);
		for (size_t m = 0; !pair->refusal && m < c->n_metrics; m++)
			add_configs(c, pair, &pair->row[m], out, &a);
	}
	add_notes(c->notes.len ? c->notes.data : "", out, &a);
	buf_add_text(out, "</body></html>\n");
	arena_release(&a);
}
