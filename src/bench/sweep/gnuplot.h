/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gnuplot.h - the one place that starts gnuplot: scripts that exist, and figures
 * (figure/figure.h) whose script and table are written next to their pictures.
 */
#pragma once
#include <stdbool.h>

#include "bench/serve/point.h"
#include "core/base/err.h"
#include "core/base/str.h"
#include "out/figure/figure.h"

enum gnuplot_format { GNUPLOT_PNG = 1, GNUPLOT_SVG = 2, GNUPLOT_PDF = 4, GNUPLOT_TERMINAL = 8 };

bool gnuplot_exists(void);

/* "png,svg" into bits of enum gnuplot_format; ERR_USAGE with the option's name. */
int gnuplot_formats(const char *option, const char *list, unsigned *formats, struct err *e);

/* Runs a script file. -1: gnuplot is missing, or failed with this message. */
int gnuplot_draw(const char *script_path, struct err *e);
/* Runs a script's text without the user's own settings; what it draws on a terminal goes to out. */
int gnuplot_draw_text(struct str script, struct buf *out, struct err *e);

/*
 * Writes STEM.gp and STEM.dat (atomically) and draws STEM.png, .svg, .pdf as formats asks; for
 * GNUPLOT_TERMINAL the figure as text is appended to screen, columns wide (0: 100). The folder
 * must exist. Where gnuplot is not installed script and table are still written, and the error
 * says so.
 */
int gnuplot_figure(const struct figure *f, const char *stem, unsigned formats, unsigned columns,
		   struct buf *screen, struct err *e);

/* --plot-load-pattern: a figure of the plan (page/plot.h). */

/*
 * Writes STEM.load_pattern.dat, .gp and, if gnuplot is installed, .png. STEM is the result's path
 * without its last suffix. Appends to line where the picture is, and to note what is missing. -1: a
 * file cannot be written.
 */
int run_plot_load(const struct serve_opts *o, const struct point *p, const char *result_path,
		  struct buf *line, struct buf *note, struct err *e);
