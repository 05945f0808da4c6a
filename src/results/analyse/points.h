/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.h - the runs of a series in order: by the commit of the engine they measured, by
 * its version, by day, or one by one. Private to analyse/.
 *
 * A commit lies where its earliest run does, so that a later run of an old commit does not move
 * it; versions lie in the order of their numbers; a day is one in UTC. All runs of a commit, a
 * version or a day are one point: its value is the mean over server sessions of each session's
 * mean, of logarithms where all values are above 0. A run whose session is not known is one of its
 * own.
 */
#pragma once
#include "results/analyse/parts.h"

enum axis { AXIS_COMMIT, AXIS_VERSION, AXIS_DAY, AXIS_TIME, AXIS_AUTO };

/* Columns that points need beside the metric, in this order. */
enum { POINT_TIME, POINT_COMMIT, POINT_VERSION, POINT_SESSION, POINT_COLUMNS };
extern const struct str points_columns[POINT_COLUMNS];

/* Where they stand in rows: the metric's, the first of points_columns. */
struct point_columns { size_t metric, first; enum axis axis; };

struct point {
	double at_s;         /* the earliest run, seconds since 1970 */
	struct str commit, version; /* of the first run that has one; empty: none */
	size_t *member;      /* rows */
	size_t n, sessions;
	double value, low, high; /* as above; the smallest and the largest run */
};

/* The request's "axis"; AXIS_AUTO without one, which points_choose then makes another. */
int points_axis(const struct analyse_request *r, enum axis *out, struct err *e);
/*
 * By the data: commits, else versions, when there are enough of them to find a change or most runs
 * name one; versions must not be rarer than every POINT_DAYS_A_VERSION days. Else days when there
 * are enough, else run by run. Leaves any axis but AXIS_AUTO as it is.
 */
#define POINT_DAYS_A_VERSION 3
void points_choose(const struct rows *rows, const bool *keep, struct arena *a,
		   struct point_columns *c);
const char *points_axis_name(enum axis axis);
const char *points_order(enum axis axis); /* a sentence: what a point is, what orders them */

/* Whether a row can be on this axis at all. */
bool points_has(const struct rows *rows, const struct point_columns *c, size_t row);
/* In order; all members of s must have what points_has asks for. */
struct point *points_of(struct arena *a, const struct rows *rows, const struct point_columns *c,
			const struct series *s, size_t *n);
/*
 * Where a run without the metric would stand: at the point of its commit or version, else at the
 * last one that began no later. SIZE_MAX: nowhere.
 */
size_t points_place(const struct rows *rows, const struct point_columns *c, size_t row,
		    const struct point *p, size_t n);
/* "0.9.2" is before "0.11.0rc1", which is before "0.11.0". */
int points_compare_versions(struct str a, struct str b);
