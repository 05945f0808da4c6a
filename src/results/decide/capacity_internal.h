/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity_internal.h - shared by the two files of the capacity search: capacity.c decides what is
 * measured next, capacity_fit.c computes what was learned from it.
 */
#pragma once
#include "results/decide/capacity.h"

#define FITS_MAX (LEVEL_LIMITS_MAX + 1) /* with saturation */

struct capacity_search {
	struct capacity_opts o;
	struct capacity_step step;
	enum capacity_end end;
	/* bracketing */
	double e2e_s, per_s;       /* without load; at saturation, 0: unknown */
	double low, high;          /* bracket; is_low, is_high: a level passed or failed there */
	bool is_low, is_high, is_bracketing;
	bool was_uncarried;        /* the lowest failed level was not carried */
	unsigned raises;
	/* the running level */
	bool is_decided, has_passed, is_cut;
	/* measuring */
	double middle, slope;      /* ln load around which levels are placed */
	unsigned measured;
	size_t first;              /* point of the first measuring level */
	bool has_fit[FITS_MAX];
	struct fit fit[FITS_MAX];
	size_t binding;
	unsigned precise;          /* precise fits in a row */
	uint32_t broken;
	uint64_t requests;
	double spent_s;
	struct capacity_point *point;
	size_t points;
	struct fit_level *chosen;
	struct fit_grid *grid;
};

/* The caller's limits, then the one on failed requests. */
struct capacity_limit capacity_limit_of(const struct capacity_search *s, size_t j);
/* Requests/s expected to finish at a load; seconds that a measuring level takes at it. */
double capacity_rate_of(const struct capacity_search *s, double load);
double capacity_hold_of(const struct capacity_search *s, double load);
bool capacity_is_carried(const struct capacity_search *s, const struct level *l);

/* Adds the running level to the points. */
void capacity_keep_point(struct capacity_search *s, const struct level *l);
/* Fits every limit again and sets which one binds; has_fit of that one can be false. */
void capacity_fit_all(struct capacity_search *s);
/*
 * The crossing of the limit that binds; the ends are the smallest ones of all limits. Saturation
 * only counts when it binds: its curve has one bit per level.
 */
struct fit capacity_combined(const struct capacity_search *s);
/* From the measuring levels, for whole loads, all levels of a load together. */
struct whole_loads {
	double holds;  /* the largest load that surely holds; 0: none */
	double breaks; /* the smallest one that surely breaks; INFINITY: none */
	double seems;  /* the largest whose requests are within the limits so far; 0: none */
};
struct whole_loads capacity_whole_loads(const struct capacity_search *s);
bool capacity_is_precise(const struct capacity_search *s, struct fit f);
