/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/sweep_plot.h - records of a sweep as a figure: facets, curves, points averaged where x is
 * the same, the sample standard deviation as a band (sweep spec 7.8).
 */
#pragma once
#include "report/figure.h"
#include "results/frame.h"

struct sweep_plot {
	struct frame_keys row_by, col_by, curve_by;
	const char *var_x, *var_y;
	struct frame_filters filter_by;
	struct frame_bins bin_by;
	enum figure_scale scale_x, scale_y;
	bool has_errors;      /* bands */
	const char *title;    /* NULL: none */
	double height_in;     /* of a panel; 0: the default */
	unsigned dpi;         /* 0: the default */
};

/* How many rows and columns upstream prints for these records: from what is not filtered yet. */
int sweep_plot_grid(const struct frame *f, const struct sweep_plot *p, size_t *rows, size_t *cols,
		    struct arena *a, struct err *e);

/*
 * 1: *out is the figure, all of it in the arena; 0: the filters leave nothing that could be drawn;
 * -1: a variable is missing or holds texts, in upstream's words where it has them.
 */
int sweep_plot_figure(const struct frame *f, const struct sweep_plot *p, struct figure *out,
		      struct arena *a, struct err *e);
