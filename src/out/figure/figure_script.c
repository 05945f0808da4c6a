/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figure_script.c - the gnuplot script of a figure; see figure.h.
 *
 * For gnuplot 5.4. Texts are in single quotes, in which gnuplot expands nothing, line by line.
 * Colors and markers: the eight of the dashboard (web/src/app/colour.ts), checked for every kind of
 * color blindness; for more curves, steps of one ramp from dark blue to yellow. In text output
 * every curve has a letter of its own and the legend is a list below the panels, because the
 * terminal's key covers the first letters of its titles.
 */
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "out/figure/figure_internal.h"

#define COLORS 8
#define DASHES 5
#define MARKERS 8
#define LETTERS 26
#define LETTER_SINGLE 15 /* O, of a curve without a title */
#define TICS_MAX 12 /* values on a logarithmic axis that are marked one by one */
#define TIC_APART 0.065 /* of the axis: minimum distance for their texts */
#define MUTED "#9a9a9a"
#define INK "#333333"

struct figure_script {
	const struct figure *f;
	struct figure_layout l;
	const struct figure_curve **legend;
	size_t n_legend;
	struct buf *out;
	unsigned colors;          /* number of looks */
	bool has_dashes;          /* markers follow the dashes, else the colours */
};

static void add_quoted(struct buf *out, const char *text)
{
	buf_add_char(out, '\'');
	for (; text && *text; text++) {
		if (*text == '\n')
			buf_add_text(out, "'.\"\\n\".'");
		else if (*text == '\'')
			buf_add_text(out, "''");
		else
			buf_add_char(out, (unsigned char)*text < ' ' ? ' ' : *text);
	}
	buf_add_char(out, '\'');
}

static const char *number(char out[FMT_F64_BYTES], double v)
{
	return fmt_f64(out, v);
}

/* ---- looks ---- */

static void add_color(const struct figure_script *s, const struct figure_look *look)
{
	static const char *const few[COLORS] = {
		"#0f4dd6", "#da7931", "#0ca38d", "#9f0258", "#7f5e05", "#ab71f9", "#1d562d",
		"#801002",
	};
	static const double ramp[][3] = {
		{ 68, 1, 84 }, { 65, 68, 135 }, { 42, 120, 142 },
		{ 34, 168, 132 }, { 122, 209, 81 }, { 216, 200, 30 },
	};
	double at, part;
	unsigned rgb[3];
	size_t i;

	if (look->is_muted || look->is_ink) {
		buf_add_text(s->out, look->is_ink ? "'" INK "'" : "'" MUTED "'");
		return;
	}
	if (s->colors <= COLORS) {
		buf_printf(s->out, "'%s'", few[look->color % COLORS]);
		return;
	}
	at = (double)look->color / (s->colors - 1) * 5;
	i = at >= 5 ? 4 : (size_t)at;
	part = at - (double)i;
	for (size_t k = 0; k < 3; k++)
		rgb[k] = (unsigned)lround(ramp[i][k] + (ramp[i + 1][k] - ramp[i][k]) * part);
	buf_printf(s->out, "'#%02x%02x%02x'", rgb[0], rgb[1], rgb[2]);
}

/* The marker as text: gnuplot's point type n is the n-th letter there. */
static size_t letter(const struct figure_script *s, const struct figure_curve *c)
{
	size_t n = 0;

	for (size_t i = 0; c->title && i < s->n_legend; i++) {
		if (strcmp(s->legend[i]->title, c->title) == 0)
			return n % LETTERS + 1;
		n += !s->legend[i]->look.is_muted && s->legend[i]->style != FIGURE_LINE;
	}
	return LETTER_SINGLE;
}

/* with linespoints lc ... lw ... dt ... pt ... ps ... */
static void add_style(const struct figure_script *s, const struct figure_curve *c)
{
	static const char *const style[] = {
		[FIGURE_LINE_POINTS] = "linespoints", [FIGURE_LINE] = "lines",
		[FIGURE_POINTS] = "points", [FIGURE_STEPS] = "steps",
	};
	static const char *const dash[DASHES] = {
		"solid", "(9,4)", "(2,3)", "(10,3,2,3)", "(14,5)",
	};
	static const int marker[MARKERS] = { 7, 5, 9, 13, 11, 15, 2, 3 };
	const struct figure_look *look = &c->look;
	unsigned mark = s->has_dashes ? look->dash : look->color;
	enum figure_style how = c->style == FIGURE_LINE_POINTS ? s->f->style : c->style;
	bool has_line = how != FIGURE_POINTS;
	bool has_points = how == FIGURE_POINTS || how == FIGURE_LINE_POINTS;

	buf_printf(s->out, " with %s lc rgb ", style[how]);
	add_color(s, look);
	if (has_line)
		buf_printf(s->out, " lw %.1f dt %s", 1.8 + 1.4 * look->width, dash[look->dash % DASHES]);
	if (has_points)
		buf_printf(s->out, " pt (is_text ? %zu : %d) ps %s", letter(s, c),
			   marker[look->is_muted ? 0 : mark % MARKERS], look->is_muted ? "0.7" : "0.9");
}

/* ---- the head ---- */

static void add_terminals(const struct figure_script *s, const char *stem)
{
	const struct figure_layout *l = &s->l;
	unsigned dpi = s->f->dpi ? s->f->dpi : FIGURE_DPI;
	double scale = dpi / 96.0;

	buf_printf(s->out, "if (!exists('format')) format = 'png'\n"
		   "is_text = format eq 'terminal'\n"
		   "if (format eq 'png') {\n"
		   "\tset terminal pngcairo noenhanced size %ld,%ld font 'DejaVu Sans,%g' "
		   "fontscale %.4g linewidth %.4g pointscale %.4g\n}\n",
		   lround(l->width * dpi), lround(l->height * dpi), FIGURE_FONT_PT, scale, scale,
		   scale);
	buf_printf(s->out, "if (format eq 'svg') {\n"
		   "\tset terminal svg noenhanced size %ld,%ld dynamic font 'DejaVu Sans,%g' "
		   "fontscale 1.333 background '#ffffff'\n}\n", lround(l->width * 96),
		   lround(l->height * 96), FIGURE_FONT_PT);
	buf_printf(s->out, "if (format eq 'pdf') {\n"
		   "\tset terminal pdfcairo noenhanced size %.4gin,%.4gin font 'DejaVu Sans,%g' "
		   "fontscale 0.75 linewidth 1 pointscale 0.7\n}\n", l->width, l->height, FIGURE_FONT_PT);
	buf_printf(s->out, "if (!exists('columns')) columns = 100\n"
		   "if (!exists('lines')) lines = %zu\n"
		   "if (is_text) {\n"
		   "\tset terminal dumb noenhanced size columns,lines\n"
		   "} else {\n\tset output ", 26 * s->f->rows);
	add_quoted(s->out, stem);
	buf_add_text(s->out, ".'.'.format\n}\n");
}

static void add_head(const struct figure_script *s, const char *stem)
{
	buf_add_text(s->out, "# A figure by profllm. In this folder: gnuplot ");
	add_quoted(s->out, stem);
	buf_add_text(s->out, ".gp, or with another format:\n#   gnuplot -e \"format='svg'\" ... "
		     "(png, svg, pdf, terminal)\n");
	add_terminals(s, stem);
	buf_add_text(s->out, "data = ");
	add_quoted(s->out, stem);
	buf_add_text(s->out, ".'.dat'\n"
		     "set border 3 lc rgb '#555555'\n"
		     "set tics nomirror out scale 0.6 tc rgb '#333333'\n"
		     "set grid lt 1 lw 0.6 lc rgb '#e2e2e2'\n"
		     "if (is_text) { unset grid }\n"
		     "set style fill transparent solid 0.15 noborder\n"
		     "set bars small\n");
}

/* ---- axes ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The different x of all curves when they are few, as of concurrency 1, 2, 4, 8. */
static size_t few_values(const struct figure *f, double value[TICS_MAX])
{
	double place[TICS_MAX];
	size_t n = 0;

	for (size_t p = 0; p < f->rows * f->cols; p++)
		for (size_t k = 0; k < f->panel[p].n_curves; k++)
			for (size_t i = 0; i < f->panel[p].curve[k].n; i++) {
				double v = f->panel[p].curve[k].x[i];
				size_t at = 0;

				while (at < n && value[at] != v)
					at++;
				if (at < n || !figure_fits(f->x_scale, v))
					continue;
				if (n == TICS_MAX)
					return 0;
				value[n++] = v;
			}
	if (n)
		qsort(value, n, sizeof(*value), by_value);
	for (size_t i = 0; i < n; i++)
		place[i] = figure_place(f->x_scale, value[i]);
	for (size_t i = 1; i < n; i++)
		if (place[i] - place[i - 1] < TIC_APART * (place[n - 1] - place[0]))
			return 0;
	return n;
}

/* Decades, with 2 and 5 between them where there are few; and their likes below 0. */
static void add_decades(struct buf *out, enum figure_scale scale, struct figure_range r)
{
	static const double step[] = { 1, 2, 5 };
	double low = r.low > 0 ? r.low : scale == FIGURE_LOG ? r.high / 1e6 : 1;
	int from = (int)floor(log10(low)), to = (int)ceil(log10(fmax(fabs(r.low), r.high)));
	int every = (to - from + 9) / 10;
	char text[FMT_F64_BYTES];
	bool is_dense = to - from <= 4;

	if (scale != FIGURE_LOG)
		buf_add_text(out, "0");
	else
		buf_printf(out, "'' %s 1", number(text, pow(10, from)));
	for (int k = from; k <= to; k += every > 0 ? every : 1)
		for (size_t i = 0; i < (is_dense ? 3 : 1); i++) {
			double v = step[i] * pow(10, k);

			buf_printf(out, ", %.10g", v);
			if (scale != FIGURE_LOG && r.low < 0)
				buf_printf(out, ", -%.10g", v);
		}
}

static void add_scale(const struct figure_script *s, char axis, enum figure_scale scale,
		      struct figure_range r)
{
	static const char *const via[][2] = {
		[FIGURE_SQRT] = { "sqrt(%c)", "%c > 0 ? %c*%c : 0" },
		[FIGURE_SYMLOG] = { "sgn(%c)*log10(1+abs(%c))", "sgn(%c)*(10**abs(%c)-1)" },
		[FIGURE_ASINH] = { "asinh(%c)", "sinh(%c)" },
		[FIGURE_LOGIT] = { "log10(%c/(1-%c))", "1/(1+10**(-%c))" },
	};
	char low[FMT_F64_BYTES], high[FMT_F64_BYTES];

	buf_printf(s->out, "set %crange [%s:%s]\n", axis, number(low, r.low), number(high, r.high));
	if (scale == FIGURE_LOG) {
		buf_printf(s->out, "set logscale %c\n", axis);
	} else if (scale != FIGURE_LINEAR) {
		buf_printf(s->out, "set nonlinear %c via ", axis);
		for (size_t k = 0; k < 2; k++) {
			for (const char *p = via[scale][k]; *p; p++)
				if (*p == '%')
					buf_add_char(s->out, axis), p++;
				else
					buf_add_char(s->out, *p);
			buf_add_text(s->out, k ? "\n" : " inverse ");
		}
	}
}

static void add_tics(const struct figure_script *s, char axis, enum figure_scale scale,
		     struct figure_range r)
{
	double value[TICS_MAX], most = fmax(fabs(r.low), fabs(r.high));
	size_t n = axis == 'x' && scale == FIGURE_LOG ? few_values(s->f, value) : 0;

	buf_printf(s->out, "set format %c '%s'\n", axis, most >= 1e5 ? "%.3s%c" : "%.6g");
	if (most >= 1e5)
		buf_printf(s->out, "set format %c '%%.%ds%%c'\n", axis,
			   most >= 1e5 && (r.high - r.low) < most / 20 ? 2 : 0);
	if (n) {
		for (size_t i = 0; i < n; i++)
			buf_printf(s->out, "%s%.10g", i ? ", " : axis == 'x' ? "set xtics (" : "set ytics (",
				   value[i]);
		buf_add_text(s->out, ")\n");
	} else if (scale == FIGURE_LOG || scale == FIGURE_SYMLOG || scale == FIGURE_ASINH) {
		buf_printf(s->out, "set %ctics (", axis);
		add_decades(s->out, scale, r);
		buf_add_text(s->out, ")\n");
	} else if (scale == FIGURE_LOGIT) {
		buf_printf(s->out, "set %ctics (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)\n", axis);
	}
}

static void add_axes(const struct figure_script *s)
{
	add_scale(s, 'x', s->f->x_scale, s->l.x);
	add_scale(s, 'y', s->f->y_scale, s->l.y);
	add_tics(s, 'x', s->f->x_scale, s->l.x);
	add_tics(s, 'y', s->f->y_scale, s->l.y);
}

/* ---- panels ---- */

/* Text output has no vertical text: the label of y is above the panel, where room is made. */
#define TEXT_TOP " - (is_text ? 2.0 / lines : 0)"

static void add_margins(const struct figure_script *s, size_t row, size_t col)
{
	const struct figure_layout *l = &s->l;
	double left = l->left + (double)col * (l->panel_width + l->gap_x);
	double bottom = l->bottom + (double)(s->f->rows - 1 - row) * (l->panel_height + l->gap_y);

	buf_printf(s->out, "set lmargin at screen %.5f * wide\nset rmargin at screen %.5f * wide\n"
		   "set bmargin at screen %.5f\nset tmargin at screen %.5f%s\n", left / l->width,
		   (left + l->panel_width) / l->width, bottom / l->height,
		   (bottom + l->panel_height) / l->height, TEXT_TOP);
}

/* Only the outer panels have axis labels, since all share their ranges. */
static void add_outer(const struct figure_script *s, size_t row, size_t col)
{
	if (row + 1 == s->f->rows) {
		buf_add_text(s->out, "set xlabel ");
		add_quoted(s->out, s->f->x_label);
		buf_add_text(s->out, " tc rgb '#111111'\n");
		add_tics(s, 'x', s->f->x_scale, s->l.x);
	} else {
		buf_add_text(s->out, "unset xlabel\nset format x ''\n");
	}
	if (col == 0) {
		buf_add_text(s->out, "set ylabel ");
		add_quoted(s->out, s->f->y_label);
		buf_add_text(s->out, " tc rgb '#111111'\n");
		add_tics(s, 'y', s->f->y_scale, s->l.y);
	} else {
		buf_add_text(s->out, "unset ylabel\nset format y ''\n");
	}
}

static void add_limits(const struct figure_script *s, const struct figure_panel *p)
{
	char at[FMT_F64_BYTES];

	for (size_t i = 0; i < p->n_limits; i++) {
		const struct figure_limit *m = &p->limit[i];

		number(at, m->at);
		if (m->is_vertical)
			buf_printf(s->out, "set arrow from first %s, graph 0 to first %s, graph 1", at, at);
		else
			buf_printf(s->out, "set arrow from graph 0, first %s to graph 1, first %s", at, at);
		buf_add_text(s->out, " nohead dt (6,4) lw 1.3 lc rgb '#333333'\n");
		if (!m->title)
			continue;
		buf_add_text(s->out, "set label ");
		add_quoted(s->out, m->title);
		if (m->is_vertical)
			buf_printf(s->out, " at first %s, graph 0.98 right rotate by 90 offset -0.8,0", at);
		else
			buf_printf(s->out, " at graph 0.99, first %s right offset 0,0.6", at);
		buf_printf(s->out, " font ',%g' tc rgb '#333333'\n", FIGURE_LABEL_PT + 1);
	}
}

static void add_labels(const struct figure_script *s, const struct figure_panel *p)
{
	struct figure_spot *spot;
	size_t n = figure_labels(p, s->f, &s->l, &spot);
	char x[FMT_F64_BYTES], y[FMT_F64_BYTES];

	for (size_t i = 0; i < n; i++) {
		const struct figure_curve *c = spot[i].curve;
		size_t lines = figure_lines(c->label[spot[i].point]);

		/* The text's first line is at the given place, the others are below. */
		double dy = spot[i].dy + (double)(lines - 1) / 2 * FIGURE_LINE_IN(FIGURE_LABEL_PT);

		buf_add_text(s->out, "set label ");
		add_quoted(s->out, c->label[spot[i].point]);
		buf_printf(s->out, " at %s,%s %s offset screen %.5f, screen %.5f font ',%g' front "
			   "tc rgb '#222222'\n", number(x, c->x[spot[i].point]),
			   number(y, c->y[spot[i].point]), spot[i].is_left ? "right" : "left",
			   spot[i].dx / s->l.width, dy / s->l.height, FIGURE_LABEL_PT);
		if (spot[i].is_far)
			buf_printf(s->out, "set arrow from %s,%s to %.9g,%.9g nohead lw 0.7 lc rgb '" MUTED
				   "'\n", x, y, spot[i].to_x, spot[i].to_y);
	}
	free(spot);
}

static void add_legend(const struct figure_script *s)
{
	for (size_t i = 0; i < s->n_legend; i++) {
		buf_add_text(s->out, ", \\\n     keyentry");
		add_style(s, s->legend[i]);
		buf_add_text(s->out, " title ");
		add_quoted(s->out, s->legend[i]->title);
	}
}

/* "A  b200, 8" line by line, below the panels. */
static void add_text_legend(const struct figure_script *s)
{
	if (!s->n_legend)
		return;
	buf_add_text(s->out, "if (is_text) {\n\tset print '-'\n");
	if (s->f->legend_title) {
		buf_add_text(s->out, "\tprint '  '.");
		add_quoted(s->out, s->f->legend_title);
		buf_add_char(s->out, '\n');
	}
	for (size_t i = 0; i < s->n_legend; i++) {
		const struct figure_curve *c = s->legend[i];

		buf_printf(s->out, "\tprint ' %c%c  '.", c->style == FIGURE_LINE ? '-' : ' ',
			   c->style == FIGURE_LINE ? '-' : c->look.is_muted ? '.' :
			   (char)('A' + letter(s, c) - 1));
		add_quoted(s->out, c->title);
		buf_add_char(s->out, '\n');
	}
	buf_add_text(s->out, "}\n");
}

static void add_bands(const struct figure_script *s, const struct figure_panel *p, size_t block)
{
	for (size_t k = 0; k < p->n_curves; k++) {
		const struct figure_curve *c = &p->curve[k];

		if (!c->low || !c->high)
			continue;
		buf_printf(s->out, ", \\\n     data index %zu using 1:(held($3)):(held($4)) "
			   "with filledcurves lc rgb ", block + k);
		add_color(s, &c->look);
		buf_printf(s->out, " notitle, \\\n     data index %zu using 1:2:(held($3)):(held($4)) "
			   "with yerrorbars pt -1 lw 1 lc rgb ", block + k);
		add_color(s, &c->look);
		buf_add_text(s->out, " notitle");
	}
}

static void add_curves(const struct figure_script *s, const struct figure_panel *p, size_t block,
		       bool is_muted)
{
	for (size_t k = 0; k < p->n_curves; k++) {
		if (p->curve[k].look.is_muted != is_muted)
			continue;
		buf_printf(s->out, ", \\\n     data index %zu using 1:%s", block + k,
			   is_muted ? "(is_text ? NaN : $2)" : "2");
		add_style(s, &p->curve[k]);
		buf_add_text(s->out, " notitle");
		if (is_muted)
			buf_printf(s->out, ", \\\n     data index %zu using 1:(is_text ? $2 : NaN) "
				   "with dots notitle", block + k);
	}
}

/* To the right of the panels. gnuplot's own title of a key lies on its first entry. */
static void add_key(const struct figure_script *s)
{
	double x = s->l.legend_x / s->l.width, y = 1 - 0.3 / s->l.height;

	if (s->f->legend_title) {
		buf_add_text(s->out, "if (!is_text) {\n\tset label ");
		add_quoted(s->out, s->f->legend_title);
		buf_printf(s->out, " at screen %.5f, screen %.5f left font ',%g' tc rgb '#555555'\n}\n",
			   x + 0.1 / s->l.width, y, s->l.legend_pt);
		y -= 1.1 * FIGURE_LINE_IN(s->l.legend_pt) / s->l.height;
	}
	buf_printf(s->out, "set key at screen %.5f, screen %.5f left top Left reverse samplen 2.5 "
		   "spacing 1.15 font ',%g' maxrows %zu\nif (is_text) { unset key }\n", x, y,
		   s->l.legend_pt, s->l.legend_rows);
}

static void add_panel(const struct figure_script *s, size_t at, size_t block)
{
	const struct figure_panel *p = &s->f->panel[at];

	add_margins(s, at / s->f->cols, at % s->f->cols);
	add_outer(s, at / s->f->cols, at % s->f->cols);
	buf_add_text(s->out, "set title ");
	add_quoted(s->out, p->title);
	buf_add_text(s->out, " offset 0,-0.4\nif (is_text) { set title ");
	add_quoted(s->out, s->f->y_label);
	if (p->title && *p->title) {
		buf_add_text(s->out, ".\"\\n\".");
		add_quoted(s->out, p->title);
	}
	buf_add_text(s->out, "; unset ylabel }\nunset arrow\nunset label\n");
	add_limits(s, p);
	add_labels(s, p);
	if (at == 0 && s->l.legend_x > 0) {
		add_key(s);
	} else {
		buf_add_text(s->out, "unset key\n");
	}
	buf_add_text(s->out, "plot NaN notitle");
	add_curves(s, p, block, true);
	add_bands(s, p, block);
	add_curves(s, p, block, false);
	if (at == 0)
		add_legend(s);
	buf_add_char(s->out, '\n');
}

static void find_looks(struct figure_script *s)
{
	for (size_t p = 0; p < s->f->rows * s->f->cols; p++)
		for (size_t k = 0; k < s->f->panel[p].n_curves; k++) {
			const struct figure_look *look = &s->f->panel[p].curve[k].look;

			s->has_dashes |= look->dash > 0;
			if (!look->is_muted && !look->is_ink && look->color >= s->colors)
				s->colors = look->color + 1;
		}
}

/* In a locale of ASCII gnuplot complains of the encoding, so it is named only where needed. */
static bool is_ascii(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] >= 0x80)
			return false;
	return true;
}

static void add_body(const struct figure_script *s)
{
	const struct figure *f = s->f;
	char low[FMT_F64_BYTES];
	size_t block = 0;

	add_axes(s);
	/* A band below the axis, or in text output, would spoil the drawing. */
	number(low, s->l.y.low);
	buf_printf(s->out, "wide = is_text ? %.5f : 1\n",
		   s->l.legend_x > 0 ? s->l.width / s->l.legend_x : 1.0);
	buf_printf(s->out, "held(v) = is_text ? NaN : v < %s ? %s : v\nset multiplot", low, low);
	if (f->title) {
		buf_add_text(s->out, " title ");
		add_quoted(s->out, f->title);
		buf_printf(s->out, " font ',%g'", FIGURE_FONT_PT + 2);
	}
	buf_add_char(s->out, '\n');
	for (size_t p = 0; p < f->rows * f->cols; p++) {
		add_panel(s, p, block);
		block += f->panel[p].n_curves;
	}
	buf_add_text(s->out, "unset multiplot\nset output\n");
	add_text_legend(s);
}

void figure_script(const struct figure *f, const char *stem, struct buf *out)
{
	struct buf body = { 0 };
	struct figure_script s = { .f = f, .l = figure_layout(f), .out = &body,
			    .n_legend = figure_legend(f, NULL) };

	s.legend = mem_array(s.n_legend + 1, sizeof(struct figure_curve *));
	figure_legend(f, s.legend);
	find_looks(&s);
	add_body(&s);
	s.out = out;
	add_head(&s, stem);
	if (!is_ascii(buf_str(&body)) || !is_ascii(str_of(stem)))
		buf_add_text(out, "set encoding utf8\n");
	buf_add_str(out, buf_str(&body));
	out->is_over |= body.is_over;
	buf_release(&body);
	free(s.legend);
}
