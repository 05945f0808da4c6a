/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyse/points.h - the runs of a series in order: by the commit of the engine they measured, by
 * day, or one by one. Private to analyse/.
 *
 * A commit lies where its earliest run does, so that a later run of an old commit does not move
 * it. Runs of one commit are one point, whose value is their median.
 */
#pragma once
#include "analyse/parts.h"

enum axis { AXIS_COMMIT, AXIS_DAY, AXIS_TIME };

/* Where the rows' columns stand that points need. */
struct point_columns { size_t metric, timestamp, commit; enum axis axis; };

struct point {
	double at_s;         /* the earliest run, seconds since 1970 */
	struct str commit;   /* of the first run that has one; empty: none */
	size_t *member;      /* rows */
	size_t n;
	double value, low, high; /* median, smallest and largest */
};

/* Whether a row can be on this axis at all. */
bool points_has(const struct rows *rows, const struct point_columns *c, size_t row);
/* In order; all members of s must have what points_has asks for. */
struct point *points_of(struct arena *a, const struct rows *rows, const struct point_columns *c,
			const struct series *s, size_t *n);
/*
 * Where a run without the metric would stand: at the point of its commit, else at the last one
 * that began no later. SIZE_MAX: nowhere.
 */
size_t points_place(const struct rows *rows, const struct point_columns *c, size_t row,
		    const struct point *p, size_t n);
/* The request's "axis"; without one by commit where any run has one. */
int points_axis(const struct analyse_request *r, enum axis *out, struct err *e);
const char *points_axis_name(enum axis axis);
