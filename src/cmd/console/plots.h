/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plots.h - plots and charts of a run's report, and how figures look: shared by verbs that draw.
 */
#pragma once
#include <stdbool.h>

#include "bench/options/serve_opts.h"
#include "core/opt/opt.h"
#include "out/figure/figure.h"
#include "out/report/report.h"

struct plots {
	bool is_timeline, is_dataset_stats, is_turns;
	double timeline_ms[2]; /* --timeline-itl-thresholds; 0 0: not given */
};

/* Before the run: whether this build can draw them, and their files can be written. */
int plots_check(const struct plots *p, const char *result_path, struct err *e);
/* After the report. What cannot be drawn is a warning, not an error, as in upstream. */
void plots_draw(const struct plots *p, const struct report *r, const char *result_path);

/* ---- --charts: what gnuplot draws on the terminal before the report ---- */

/* Heap; NULL when charts are not wanted, or gnuplot is not there or fails. */
char *charts_draw(const struct serve_opts *o, const struct report *r);

/* ---- How a figure looks: options that all verbs that draw have ---- */

struct plot_look {
	const char *title, *xlabel, *ylabel; /* NULL: the figure's own */
	const char *xlim, *ylim;             /* "LOW:HIGH", either may be empty; NULL: automatic */
	const char *style;
	double width, height;                /* of a panel, inches; 0: the figure's own */
};

extern const char *const plot_styles[];

/* Rows of a struct with a member look; flags: OPT_OURS where upstream has the verb. */
#define PLOT_LOOK_ROWS(type, heading, f)                                                        \
	OPT(type, look.title, "title", .group = (heading), .flags = (f), .arg = "TEXT",         \
	    .help = "title of the figure"),                                                     \
	OPT(type, look.xlabel, "xlabel", .group = (heading), .flags = (f), .arg = "TEXT",       \
	    .help = "text of the x axis"),                                                      \
	OPT(type, look.ylabel, "ylabel", .group = (heading), .flags = (f), .arg = "TEXT",       \
	    .help = "text of the y axis"),                                                      \
	OPT(type, look.xlim, "xlim", .group = (heading), .flags = (f), .arg = "LOW:HIGH",       \
	    .help = "range of the x axis; either number may be missing: 0:, :200"),             \
	OPT(type, look.ylim, "ylim", .group = (heading), .flags = (f), .arg = "LOW:HIGH",       \
	    .help = "range of the y axis"),                                                     \
	OPT(type, look.width, "width", .group = (heading), .flags = (f), .arg = "INCHES",       \
	    .max = 50, .help = "width of a panel; 0: 4:3 of its height"),                       \
	OPT(type, look.height, "height", .group = (heading), .flags = (f), .arg = "INCHES",     \
	    .max = 50, .help = "height of a panel; 0: the default"),                            \
	OPT(type, look.style, "style", .group = (heading), .flags = (f),                        \
	    .choices = plot_styles, .help = "how curves are drawn")

/* Applies it to a figure. ERR_USAGE: invalid limits. */
int plot_look_apply(const struct plot_look *look, struct figure *f, struct err *e);
