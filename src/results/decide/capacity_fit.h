/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity_fit.h - one curve through the levels of a search: where a limit is crossed.
 *
 * Counts: logit f(load) = logit(share) + slope * (ln load - u), f the stationary share of slow
 * requests and exp(u) the load at which it is `share`. Means: ln(value / limit) = slope *
 * (ln load - u). Both are fitted on a grid of u and ln slope with a prior on the slope; the
 * likelihood is divided by the dispersion (quasi-binomial, McCullagh and Nelder 1989), the larger
 * one of that within levels (batches) and that between levels. The interval is the posterior's,
 * widened by FIT_WIDEN and Student's t: constants are from simulation on 120 modelled engines.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define FIT_CROSSINGS 801
#define FIT_LEVELS_MAX 1024
#define FIT_COARSE 51
#define FIT_SLOPES 48
#define FIT_WIDEN 1.2
#define FIT_SLOPE_COUNTS 8.0 /* median of the prior; ln slope has the deviation FIT_SLOPE_SD */
#define FIT_SLOPE_MEANS 2.0
#define FIT_SLOPE_SD 1.2
#define FIT_SLOPE_MIN 0.5
#define FIT_SLOPE_MAX 100.0
#define FIT_SLOPE_MIN_MEANS 0.1
#define FIT_FAR 3.75      /* logits above the limit (30 % slow at p99) that count as just far */
#define FIT_FAR_MEANS 0.7 /* the same of a mean: twice its limit */

struct fit_level {
	double x;       /* ln load */
	double n, slow; /* counts; of a mean: unused */
	double phi;     /* own dispersion, at least 1 */
	double y, se;   /* of a mean: ln(value / limit), above 0 when broken; its error > 0,
			   is best the same for all levels: a quick one's own is too small */
};

struct fit_opts {
	bool is_mean;
	double share;     /* counts: slow requests allowed, 0 < share < 1 */
	double low, high; /* ln load: where the crossing is looked for first, low < high */
};

struct fit {
	double at, low, high; /* ln load: posterior median, 95 % interval */
	double least;         /* lower end by a quantile as far out as a widened normal one: for a
				 limit far from crossing, whose posterior is lopsided */
	double slope;         /* posterior median */
	double phi;           /* dispersion that was used */
	size_t levels;
};

/*
 * What a level adds to the log likelihood where the curve's argument is t. A level far above the
 * limit says no more than that the curve is as far above it there: how far it goes beyond says
 * nothing about where it crosses.
 */
struct fit_term {
	bool is_mean;
	double y, weight;   /* means: 1 / se^2 */
	double n, slow;
	double top, at_top; /* argument from which nothing changes (INFINITY: none); term there */
};

/* Scratch of a fit: 400 KB, of the caller, contents irrelevant. */
struct fit_grid {
	double surface[FIT_SLOPES][FIT_CROSSINGS];
	double coarse[FIT_SLOPES][FIT_COARSE];
	double marginal[FIT_CROSSINGS];
	struct fit_term term[FIT_LEVELS_MAX];
};

/*
 * n is at most FIT_LEVELS_MAX; with n = 0 there is no curve. The range is widened while the
 * posterior reaches its ends.
 */
struct fit fit_levels(const struct fit_level *level, size_t n, const struct fit_opts *o,
		      struct fit_grid *g);
/* The share of slow requests, or value / limit of a mean, that the fit expects at ln load x. */
double fit_at(const struct fit *f, const struct fit_opts *o, double x);
