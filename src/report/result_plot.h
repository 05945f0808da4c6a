/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/result_plot.h - results of any kind as a figure: latency over throughput, a curve for each
 * configuration and a point for each load, or two measures and the results that no other one beats
 * in both.
 *
 * Runs of one configuration at one load (request_rate and max_concurrency) are one point, their
 * mean; the points of a curve are connected in the order of their load, so a server beyond its
 * limit shows as a curve that turns back. Runs in which a drawn metric is INVALID are left out.
 */
#pragma once
#include "report/figure.h"
#include "results/frame.h"

struct result_plot {
	const char *var_x, *var_y;
	bool has_frontier;         /* and curves are points */
	bool has_invalid;          /* INVALID runs are drawn, too */
	/* What makes curves; is_chosen false: every parameter that differs. */
	struct frame_keys curve_by;
	bool is_chosen;
};

/* What became of the records, for telling. */
struct result_plot_told {
	size_t n, n_invalid, n_degraded; /* runs */
	size_t n_incomplete;             /* runs without one of the metrics */
	size_t n_points, n_frontier;
};

/*
 * 1: *out is the figure, in the arena; 0: nothing is left to be drawn. -1: ERR_RUN, no record has
 * one of the metrics; the sentence lists some that there are.
 */
int result_plot_figure(const struct frame *f, const struct result_plot *p, struct figure *out,
		       struct result_plot_told *told, struct arena *a, struct err *e);
