/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figure.h - a figure as data: panels in rows and columns with curves, points, bands, labels and
 * limit lines. It is written as two texts, a table of everything drawn and a gnuplot script that
 * draws it, which stay next to the picture so that a reader can restyle it.
 *
 * Draws nothing itself (bench/sweep/gnuplot.h does). Everything in a figure is borrowed. All panels
 * share their axes' ranges and one legend: to the right of them, in text output below them.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

enum figure_style { FIGURE_LINE_POINTS, FIGURE_LINE, FIGURE_POINTS, FIGURE_STEPS };
enum figure_scale {
	FIGURE_LINEAR, FIGURE_LOG, FIGURE_SQRT, FIGURE_SYMLOG, FIGURE_ASINH, FIGURE_LOGIT,
};

/* Curves with the same number have the same look in every panel. */
struct figure_look {
	unsigned color;    /* 0, 1, ...: distinct and safe for the colour-blind */
	unsigned dash;     /* 0 solid, then dashes and dots; the marker changes with it */
	unsigned width;    /* 0 normal, then wider */
	bool is_muted;     /* grey and drawn first: context, not the subject */
	bool is_ink;       /* dark grey: a line over all colors, such as a frontier */
};

struct figure_curve {
	const char *title;         /* in the legend, once per figure; NULL: not in it */
	enum figure_style style;
	struct figure_look look;
	size_t n;
	const double *x, *y;       /* points that no axis can show are left out */
	const double *low, *high;  /* a band (NaN: none at that point); NULL: no band */
	const size_t *count;       /* number of values per point, for the table; or NULL */
	const char *const *label;  /* text next to each point, lines ended by \n; NULL: none */
};

struct figure_limit {
	double at;
	bool is_vertical;          /* at an x; else at a y */
	const char *title;         /* next to the line; NULL: none */
};

struct figure_panel {
	const char *title;         /* NULL: none; lines ended by \n */
	const struct figure_curve *curve;
	size_t n_curves;           /* 0: an empty frame */
	const struct figure_limit *limit;
	size_t n_limits;
};

/* Range of an axis: NAN is as far as the points reach; 0 0 is NAN NAN. */
struct figure_limits { double low, high; };

struct figure {
	const char *title;         /* over all panels; NULL: none */
	const char *x_label, *y_label;
	const char *legend_title;  /* the parameter in the curves' titles; NULL: none */
	enum figure_scale x_scale, y_scale;
	const struct figure_panel *panel; /* rows * cols, row by row */
	size_t rows, cols;         /* at least 1 */
	double panel_height_in;    /* inches; 0: FIGURE_HEIGHT_IN */
	double panel_width_in;     /* inches; 0: 4:3 */
	struct figure_limits x_limits, y_limits;
	enum figure_style style;   /* of curves that are FIGURE_LINE_POINTS */
	unsigned dpi;              /* of a PNG; 0: FIGURE_DPI */
};

#define FIGURE_HEIGHT_IN 4.8
#define FIGURE_DPI 150

/* "linear", "log", ...; NULL and "": linear. */
extern const char *const figure_scale_names[]; /* NULL at the end */
int figure_scale_parse(enum figure_scale *out, const char *text, struct err *e);

/* "median_ttft_ms (ms)": the variable with its unit from schema/result.json, if any. */
void figure_axis_label(struct buf *out, const char *variable);

/* How many points were left out: not finite, or not on the axis (0 on a logarithmic one). */
size_t figure_left_out(const struct figure *f);

/* A block per curve, two blank lines between them: x y low high count, and the label if any. */
void figure_data(const struct figure *f, struct buf *out);
/*
 * stem is the name, without folder and suffix, of script, table and pictures, which are in one
 * folder, where the script is run. The gnuplot variable `format` selects the output: png (default),
 * svg, pdf, or terminal (text on standard output, of `columns` by `lines` characters when these are
 * set).
 */
void figure_script(const struct figure *f, const char *stem, struct buf *out);
