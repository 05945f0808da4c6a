/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/load_plot.h - when requests are due, drawn by gnuplot: arrivals over time and a histogram
 * of the intervals between them. What is drawn is a table, how is a script; both are kept beside
 * the picture, so that it can be drawn again in another way.
 */
#pragma once
#include <stddef.h>

#include "base/str.h"

struct load_plot {
	const double *due_s;   /* ascending, seconds from the start */
	size_t n;              /* 1 and more */
	const char *title;
	const char *data, *picture; /* files the script names */
};

/*
 * Two tables, two blank lines between them. First: middle of a span of time (s), requests due
 * in it, requests due by its end. Second: middle of a span of intervals (s), their number.
 */
void load_plot_data(const struct load_plot *p, struct buf *out);
/* A gnuplot script that draws them into a PNG, or an SVG when the picture's name ends so. */
void load_plot_script(const struct load_plot *p, struct buf *out);
