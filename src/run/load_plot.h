/* SPDX-License-Identifier: Apache-2.0 */
/* run/load_plot.h - --plot-load-pattern: the plan drawn (report/load_plot.h). */
#pragma once
#include "run/point.h"

/*
 * Writes STEM.load_pattern.dat, .gp and, where gnuplot is installed, .png. STEM is the result's
 * name without its last suffix. line tells where the picture is; note, what is missing. Both
 * are appended to. end_ns: when the saved run ended, which its name tells; 0: there is none.
 * -1: a file cannot be written.
 */
int run_plot_load(const struct serve_opts *o, const struct serve_derived *d,
		  const struct point *p, int64_t end_ns, struct buf *line, struct buf *note,
		  struct err *e);
