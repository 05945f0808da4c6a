/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figure_internal.h - layout computed by figure.c for figure_script.c: ranges of the axes, sizes
 * and positions. Private to figure/.
 */
#pragma once
#include "out/figure/figure.h"

#define FIGURE_FONT_PT 11.0
#define FIGURE_LABEL_PT 8.0
#define FIGURE_LETTER_IN(pt) ((pt) * 0.61 / 72) /* a letter of a common sans-serif, on average */
#define FIGURE_LINE_IN(pt) ((pt) * 1.3 / 72)

struct figure_range { double low, high; }; /* of an axis, with some space at both ends */

/* Inches from the left and the bottom of the picture. */
struct figure_layout {
	double width, height;
	double left, bottom, panel_width, panel_height;
	double gap_x, gap_y;      /* between panels */
	double legend_x;          /* 0: no legend */
	double legend_pt;
	size_t legend_rows;
	struct figure_range x, y;
};

/* The position of a value on a scale: equal distances on paper are equal differences of it. */
double figure_place(enum figure_scale scale, double v);
/* Whether the scale can show a value at all. */
bool figure_fits(enum figure_scale scale, double v);

struct figure_layout figure_layout(const struct figure *f);

/* The legend's curves: the first of each title. Returns their number; out may be NULL. */
size_t figure_legend(const struct figure *f, const struct figure_curve **out);

size_t figure_lines(const char *text);

/* Position of a label, chosen to avoid overlaps: dx, dy inches from the point. */
struct figure_spot {
	const struct figure_curve *curve;
	size_t point;
	double dx, dy;
	bool is_left; /* the text is to the left of its point */
	bool is_far;  /* a line leads from the point to the text, which ends at to_x, to_y */
	double to_x, to_y;
};
/* Returns the number of labels; *out is on the heap. */
size_t figure_labels(const struct figure_panel *p, const struct figure *f,
		     const struct figure_layout *l, struct figure_spot **out);
