/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/charts.h - --charts: what gnuplot draws on the terminal before the report. */
#pragma once
#include "report/report.h"
#include "run/serve_opts.h"

/* Heap; NULL when charts are not wanted, or gnuplot is not there or fails. */
char *charts_draw(const struct serve_opts *o, const struct report *r);
