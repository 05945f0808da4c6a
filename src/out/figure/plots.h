/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plots.h - results as figures: a sweep's records in facets, tokens per user against tokens per
 * GPU, latency over throughput. Each fills a struct figure, whose data is in the arena.
 */
#pragma once
#include "core/stats/curve.h"
#include "out/figure/figure.h"
#include "results/read/frame.h"

/* ---- the load of a run ---- */

struct plot_load { double rate, concurrency; }; /* INFINITY: unlimited */

struct plot_load plot_load(const struct json_value *record);
/* By rate, then by concurrency, for qsort. */
int plot_load_compare(const struct plot_load *a, const struct plot_load *b);
/* "c=16", "4/s", "4/s, c=16", "all at once". */
const char *plot_load_text(const struct plot_load *load, struct arena *a);

/* ---- records of a sweep ---- */

/*
 * Records of a sweep as a figure: facets, curves, points averaged where x is the same, the sample
 * standard deviation as a band (sweep spec 7.8).
 *
 * If x is itself measured, no two runs have the same x. Then the runs of one configuration at one
 * load are one point, the mean in both directions, and a configuration's points are connected in
 * the order of their load.
 */
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

/* The numbers of rows and columns that upstream prints for these records, before filtering. */
int sweep_plot_grid(const struct frame *f, const struct sweep_plot *p, size_t *rows, size_t *cols,
		    struct arena *a, struct err *e);

/*
 * 1: *out is the figure, all of it in the arena; 0: the filters leave nothing to draw; -1: a
 * variable is missing or has texts, in upstream's words if it has any.
 */
int sweep_plot_figure(const struct frame *f, const struct sweep_plot *p, struct figure *out,
		      struct arena *a, struct err *e);

/* ---- users and GPUs ---- */

/*
 * Tokens per second per user against tokens per second per GPU, and which runs are not beaten in
 * both by another run (sweep spec 7.9, core/stats/curve.h).
 *
 * Keys are looked up as given, with dashes and with underscores; the first one that a record has
 * counts, even when its value is null. Users: the requested variable, then request_rate, then the
 * observed peak max_concurrent_requests; 0 counts as missing. GPUs: the requested variable, then
 * num_gpus or gpu_count, then tensor x pipeline x data parallel size; missing sizes are 1.
 */
struct sweep_pareto_opts {
	const char *user_count_var, *gpu_count_var; /* "" and NULL: none */
	struct frame_keys label_by; /* none: the load */
	enum pareto_rule rule;
	bool is_averaged; /* average repeats (records with a run_number) to one point */
};

/* Source of the number of users, for messages. */
enum sweep_users { SWEEP_USERS_ASKED, SWEEP_USERS_RATE, SWEEP_USERS_PEAK, SWEEP_USERS_KINDS };

struct sweep_pareto {
	struct frame points;       /* records with tokens_per_user, tokens_per_gpu, ... added */
	double *per_user, *per_gpu;
	bool *is_frontier;
	size_t n_frontier;
	size_t n_skipped;          /* without users */
	size_t n_invalid;          /* left out: output_throughput is INVALID */
	size_t n_degraded;         /* runs that count although it is DEGRADED */
	size_t n_by[SWEEP_USERS_KINDS];
};

/* Everything in the arena. -1: no throughput, or not a number; in upstream's words. */
int sweep_pareto(struct sweep_pareto *out, const struct frame *f,
		 const struct sweep_pareto_opts *o, struct arena *a, struct err *e);
/*
 * A color for each configuration (parameters of the sweep that differ, without the load). Points
 * without numbers are left out; the caller makes sure that there are others.
 */
void sweep_pareto_figure(const struct sweep_pareto *p, const struct sweep_pareto_opts *o,
			 struct figure *out, struct arena *a);
/* How many points have both numbers. */
size_t sweep_pareto_usable(const struct sweep_pareto *p);
/* Every point, with is_frontier as its last column. */
void sweep_pareto_csv(const struct sweep_pareto *p, struct buf *out);

/* ---- results of any kind ---- */

/*
 * Results of any kind as a figure: latency over throughput, a curve for each configuration and a
 * point for each load, or two measures and the results that are not beaten in both.
 *
 * Runs of one configuration at one load (request_rate and max_concurrency) are one point, their
 * mean; the points of a curve are connected in the order of their load, so a server beyond its
 * limit is visible as a curve that turns back. Runs in which a drawn metric is INVALID are left
 * out.
 */
struct result_plot {
	const char *var_x, *var_y;
	bool has_frontier;         /* draw the frontier; curves are points */
	bool has_invalid;          /* also draw INVALID runs */
	/* Parameters that define curves; is_chosen false: every one that differs. */
	struct frame_keys curve_by;
	bool is_chosen;
};

/* Statistics on the records, for messages. */
struct result_plot_told {
	size_t n, n_invalid, n_degraded; /* runs */
	size_t n_incomplete;             /* runs without one of the metrics */
	size_t n_points, n_frontier;
};

/*
 * 1: *out is the figure, in the arena; 0: nothing is left to draw. -1: ERR_RUN, no record has one
 * of the metrics; the message lists some that exist.
 */
int result_plot_figure(const struct frame *f, const struct result_plot *p, struct figure *out,
		       struct result_plot_told *told, struct arena *a, struct err *e);
