/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.h - the results of several runs next to each other: a line for each point of a
 * sweep or member of a suite, and which of them is the best.
 *
 * Everything is borrowed. A number that the record lacks is an empty cell.
 */
#pragma once
#include "out/report/grid.h"
#include "results/read/kind.h"

struct points_line {
	const char *name;
	const char *const *value;         /* of its parameters, in the table's order */
	const struct json_value *record;  /* NULL: no result */
	const char *more;                 /* in the column more_title; NULL: empty */
	const char *state;                /* in place of the verdict, where there is no result */
};

struct points_column { const char *title, *key; };

struct points_table {
	const char *name_title;
	const char *const *param;         /* titles of the parameters that differ */
	size_t n_params;
	const struct points_column *column; /* those that no record has are left out */
	size_t n_columns;
	const char *more_title;           /* of a column before the verdict; NULL: none */
	const struct points_line *line;
	size_t n;
};

/* A table with the verdict in its last column. digits: behind the decimal point; -1: all. */
void points_grid(const struct points_table *p, int digits, struct arena *a, struct grid *out);

struct points_best {
	size_t at;        /* of the lines; SIZE_MAX: none */
	double value;
	size_t n;         /* lines that have the metric */
	size_t n_invalid; /* of those, left out because it is INVALID in them */
	size_t leader;    /* one of them that would have been the best; SIZE_MAX: none */
	double leader_value;
};

/* The line with the highest value of a metric; of equal ones the last. */
struct points_best points_best(const struct points_table *p, const char *key);
/*
 * Sentences: "Best throughput: 64.64 req/s at rate=80", and what was left out. what: "throughput",
 * unit: "req/s".
 */
void points_say_best(const struct points_table *p, const struct points_best *best, const char *key,
		     const char *what, const char *unit, struct buf *out);
