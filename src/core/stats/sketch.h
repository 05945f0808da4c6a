/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch.h - condenses many values for plots: quantiles, a sample, and a quantity over time in
 * bins.
 *
 * A quantity over time keeps the mean, minimum and maximum of each bin, so a spike survives however
 * short it is. Bins have a round width: 1 s, or the longest shorter width that gives a short run 60
 * bins, or the shortest longer width that gives a long run at most SKETCH_POINTS_MAX; the last bin
 * is up to half a width longer or shorter. Times are seconds from the beginning of the grid.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define SKETCH_POINTS_MAX 600 /* of one quantity over time */
#define SKETCH_QUANTILES 203  /* every half percent, 0.1 % and 99.9 % */
#define SKETCH_PAIRS_MAX 2000 /* of a sample */

/* ---- quantiles and samples ---- */

double sketch_p(size_t i); /* ascending from 0 to 1; i < SKETCH_QUANTILES */
/* Of n ascending values; writes nothing when n is 0. */
void sketch_quantiles(const double *sorted, size_t n, double out[static SKETCH_QUANTILES]);
/*
 * Which of n elements are element i of the sample: one from each of sketch_sample_size(n) equal
 * parts, at a place that follows from i, so that no period of the elements is picked up.
 */
size_t sketch_sample_size(size_t n);
size_t sketch_sample(size_t n, size_t i);

/* ---- over time ---- */

struct sketch_grid { double duration_s, step_s; size_t n; }; /* n 0: no duration */
struct sketch_grid sketch_grid(double duration_s);
double sketch_grid_at(const struct sketch_grid *g, size_t i); /* the middle of a bin */

/* For sketch_track_release. */
struct sketch_track {
	size_t n;                 /* at most SKETCH_POINTS_MAX; 0: nothing is known */
	double *t_s;              /* NULL: the middles of the grid's bins */
	double *y, *low, *high;   /* of each point: mean, minimum, maximum */
};
void sketch_track_release(struct sketch_track *t);
/* Whether a minimum or maximum differs from its mean. */
bool sketch_track_has_range(const struct sketch_track *t);

/* Tokens over time, added request by request. Bins above 1 s keep the rates of up to ten parts. */
struct sketch_tokens { struct sketch_grid grid; size_t parts; double *count; };
void sketch_tokens_init(struct sketch_tokens *k, const struct sketch_grid *g);
/*
 * A request's tokens, shared equally among its events: the first at first_s, the others after
 * gaps. tokens 0 counts an event as one.
 */
void sketch_tokens_add(struct sketch_tokens *k, double first_s, const double *gap_s, size_t n_gaps,
		       double tokens);
/* Tokens per second; k is released. */
void sketch_tokens_end(struct sketch_tokens *k, struct sketch_track *out);

/*
 * How many of n intervals cover an instant: mean, minimum and maximum of each bin. Both lists are
 * sorted in place; no interval ends before it begins.
 */
void sketch_running(const struct sketch_grid *g, double *begin_s, double *end_s, size_t n,
		    struct sketch_track *out);

/* Irregular readings of something, by ascending time. */
struct sketch_series { const double *t_s, *value; size_t n; };
/*
 * Combines several series of one kind (GPUs, servers): their sum, or the mean with the minimum and
 * maximum of all. Up to SKETCH_POINTS_MAX readings stay as they are, at their own times; more are
 * binned by the grid, and bins without a reading are left out.
 */
void sketch_combine(const struct sketch_grid *g, const struct sketch_series *s, size_t n_series,
		    bool is_sum, struct sketch_track *out);
