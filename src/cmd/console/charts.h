/* SPDX-License-Identifier: Apache-2.0 */
/* charts.h - --charts: what gnuplot draws on the terminal before the report. */
#pragma once
#include "bench/options/serve_opts.h"
#include "out/report/report.h"

/* Heap; NULL when charts are not wanted, or gnuplot is not there or fails. */
char *charts_draw(const struct serve_opts *o, const struct report *r);
