/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plots.h - results as figures: a sweep's records in facets, tokens per user against tokens
 * per GPU, latency over throughput. Each fills a struct figure; what it points to is in the arena.
 */
#pragma once
#include "core/stats/curve.h"
#include "out/figure/figure.h"
#include "results/read/frame.h"

/* ---- the load of a run ---- */

struct plot_load { double rate, concurrency; }; /* INFINITY: not limited */

struct plot_load plot_load(const struct json_value *record);
/* By rate, then by concurrency, as qsort has it. */
int plot_load_compare(const struct plot_load *a, const struct plot_load *b);
/* "c=16", "4/s", "4/s, c=16", "all at once". */
const char *plot_load_text(const struct plot_load *load, struct arena *a);

/* ---- records of a sweep ---- */

/*
 * Records of a sweep as a figure: facets, curves, points averaged where x is
 * the same, the sample standard deviation as a band (sweep spec 7.8).
 *
 * Where x is itself measured, no two runs have the same x. Then the runs of one configuration at
 * one load are a point, the mean of both, and a configuration's points are connected in the order
 * of their load.
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

/* How many rows and columns upstream prints for these records: from what is not filtered yet. */
int sweep_plot_grid(const struct frame *f, const struct sweep_plot *p, size_t *rows, size_t *cols,
		    struct arena *a, struct err *e);

/*
 * 1: *out is the figure, all of it in the arena; 0: the filters leave nothing that could be drawn;
 * -1: a variable is missing or holds texts, in upstream's words where it has them.
 */
int sweep_plot_figure(const struct frame *f, const struct sweep_plot *p, struct figure *out,
		      struct arena *a, struct err *e);

/* ---- users and GPUs ---- */

/*
 * Tokens per second per user against tokens per second per GPU, and which
 * runs no other run beats in both (sweep spec 7.9, core/stats/curve.h).
 *
 * Keys are looked for as they are, with dashes and with underscores; the first one that a record
 * has counts, even when its value is null. Users: the variable asked for, then request_rate, then
 * the observed peak max_concurrent_requests; 0 is none. GPUs: the variable asked for,
 * then num_gpus or gpu_count, then tensor x pipeline x data parallel size; what is missing is 1.
 */
struct sweep_pareto_opts {
	const char *user_count_var, *gpu_count_var; /* "" and NULL: none */
	struct frame_keys label_by; /* none: the load */
	enum pareto_rule rule;
	bool is_averaged; /* one point for the runs of one point (records with a run_number) */
};

/* Where the number of users came from, for telling. */
enum sweep_users { SWEEP_USERS_ASKED, SWEEP_USERS_RATE, SWEEP_USERS_PEAK, SWEEP_USERS_KINDS };

struct sweep_pareto {
	struct frame points;       /* records with tokens_per_user, tokens_per_gpu, ... added */
	double *per_user, *per_gpu;
	bool *is_frontier;
	size_t n_frontier;
	size_t n_skipped;          /* without users */
	size_t n_by[SWEEP_USERS_KINDS];
};

/* Everything in the arena. -1: no throughput, a number that is none; in upstream's words. */
int sweep_pareto(struct sweep_pareto *out, const struct frame *f,
		 const struct sweep_pareto_opts *o, struct arena *a, struct err *e);
/*
 * A color for each configuration (parameters of the sweep that differ, the load left out).
 * Points without numbers are not in it; the caller sees to it that there are others.
 */
void sweep_pareto_figure(const struct sweep_pareto *p, const struct sweep_pareto_opts *o,
			 struct figure *out, struct arena *a);
/* How many points have both numbers. */
size_t sweep_pareto_usable(const struct sweep_pareto *p);
/* Every point with is_frontier as its last column. */
void sweep_pareto_csv(const struct sweep_pareto *p, struct buf *out);

/* ---- results of any kind ---- */

/*
 * Results of any kind as a figure: latency over throughput, a curve for each
 * configuration and a point for each load, or two measures and the results that no other one beats
 * in both.
 *
 * Runs of one configuration at one load (request_rate and max_concurrency) are one point, their
 * mean; the points of a curve are connected in the order of their load, so a server beyond its
 * limit shows as a curve that turns back. Runs in which a drawn metric is INVALID are left out.
 */
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
