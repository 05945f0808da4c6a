/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_html.c - a comparison as one page: the tables of compare_show.c, and for every point a
 * drawing of the changes with their intervals. No script, no font, nothing from elsewhere.
 */
#include <math.h>
#include <string.h>

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

static const char *class_of(enum compare_verdict v)
{
	return v == COMPARE_REGRESSION ? "bad" : v == COMPARE_IMPROVEMENT ? "good" :
	       v == COMPARE_VOID || v == COMPARE_CHANGED ? "fair" : "faint";
}

/* The largest change or end of an interval, so that everything fits; at least 10 %. */
static double reach(const struct comparison *c, size_t point)
{
	double most = 0.1;

	for (size_t m = 0; m < c->n_metrics; m++)
		for (size_t s = 1; s < c->n_sides; s++) {
			const struct compare_cell *cell = compare_cell(c, point, m, s);
			double v[] = { cell->delta, cell->interval.low, cell->interval.high };

			for (size_t i = 0; i < 3; i++)
				if (isfinite(v[i]) && fabs(v[i]) > most)
					most = fabs(v[i]);
		}
	return fmin(most, 1);
}

static double place(double v, double most)
{
	return LABEL_PX + PLOT_PX / 2.0 * (1 + fmax(-1, fmin(1, v / most)));
}

static void draw_row(const struct comparison *c, size_t point, size_t m, size_t s, double most,
		     size_t row, struct buf *out)
{
	const struct compare_cell *cell = compare_cell(c, point, m, s);
	size_t y = row * ROW_PX + ROW_PX;
	const char *class = class_of(cell->verdict);

	buf_printf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">", LABEL_PX - 8, y + 4);
	html_escape(out, c->metric[m].key);
	if (c->n_sides > 2) {
		buf_add_text(out, ", ");
		html_escape(out, c->side[s].name);
	}
	buf_add_text(out, "</text>");
	if (isfinite(cell->interval.low) && isfinite(cell->interval.high))
		buf_printf(out, "<line class=\"%s\" stroke-width=\"2\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%zu\" "
			   "y2=\"%zu\"/>", class, place(cell->interval.low, most),
			   place(cell->interval.high, most), y, y);
	buf_printf(out, "<circle class=\"%s\" r=\"4\" cx=\"%.1f\" cy=\"%zu\"/>\n", class,
		   place(cell->delta, most), y);
}

static void draw(const struct comparison *c, size_t point, struct buf *out)
{
	double most = reach(c, point), mark[] = { -most, -most / 2, 0, most / 2, most };
	size_t rows = 0, height;
	struct buf body = { 0 };

	for (size_t m = 0; m < c->n_metrics; m++)
		for (size_t s = 1; s < c->n_sides; s++)
			if (isfinite(compare_cell(c, point, m, s)->delta))
				draw_row(c, point, m, s, most, rows++, &body);
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

void compare_html(const struct comparison *c, struct buf *out)
{
	struct arena a = { 0 };
	struct str rest = buf_str(&c->notes);
	struct grid g;

	buf_printf(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width\">\n"
		   "<title>Comparison</title>\n<style>%s</style></head><body>\n<h1>Comparison</h1>\n",
		   style);
	compare_sides_grid(c, &g, &a);
	grid_html(&g, out);
	for (size_t p = 0; p < c->n_points; p++) {
		if (!compare_is_paired(c, p))
			continue;
		buf_add_text(out, "<h2>");
		html_escape(out, *c->point[p].name ? c->point[p].name : "Metrics");
		buf_add_text(out, "</h2>\n");
		draw(c, p, out);
		compare_point_grid(c, p, &g, &a);
		grid_html(&g, out);
	}
	buf_add_text(out, rest.n ? "<h2>Notes</h2>\n<ul>\n" : "");
	while (rest.n) {
		buf_add_text(out, "<li>");
		html_escape(out, arena_text(&a, str_cut(&rest, '\n')));
		buf_add_text(out, "</li>\n");
	}
	buf_add_text(out, c->notes.len ? "</ul>\n</body></html>\n" : "</body></html>\n");
	arena_release(&a);
}
