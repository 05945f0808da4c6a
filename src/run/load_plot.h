/* SPDX-License-Identifier: Apache-2.0 */
/* run/load_plot.h - --plot-load-pattern: the plan drawn (report/load_plot.h). */
#pragma once
#include "run/point.h"

/*
 * Writes STEM.load_pattern.dat, .gp and, where gnuplot is installed, .png. STEM is the result's
 * path without its last suffix. line tells where the picture is; note, what is missing. Both
 * are appended to. -1: a file cannot be written.
 */
int run_plot_load(const struct serve_opts *o, const struct point *p, const char *result_path,
		  struct buf *line, struct buf *note, struct err *e);
