/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.h - the results of several runs in one table: a line for each point of a sweep or member
 * of a suite, and which of them is the best.
 *
 * Everything is borrowed. A number missing in the record is an empty cell.
 */
#pragma once
#include <stdbool.h>

#include "out/report/grid.h"
#include "results/read/kind.h"

struct points_line {
	const char *name;
	const char *group;                /* name that its repeats share; NULL: it has none */
	const char *const *value;         /* of its parameters, in the table's order */
	const struct json_value *record;  /* NULL: no result */
	const char *more;                 /* for the column more_title; NULL: empty */
	const char *state;                /* replaces the verdict if there is no result */
};

struct points_column { const char *title, *key; };

struct points_table {
	const char *name_title;
	const char *const *param;         /* titles of the parameters that differ */
	size_t n_params;
	const struct points_column *column; /* columns that no record has are left out */
	size_t n_columns;
	const char *more_title;           /* of a column before the verdict; NULL: none */
	const struct points_line *line;
	size_t n;
	bool has_sessions;                /* each repeat had a server of its own */
};

/* A table with the verdict in its last column. digits: after the decimal point; -1: all. */
void points_grid(const struct points_table *p, int digits, struct arena *a, struct grid *out);

struct points_best {
	size_t at;        /* of the lines; SIZE_MAX: none */
	double value;
	size_t n;         /* lines that have the metric */
	size_t n_invalid; /* of those, left out because INVALID */
	size_t leader;    /* the INVALID one that would have been best; SIZE_MAX: none */
	double leader_value;
};

/* The line with the highest value of a metric; of equal ones the last. */
struct points_best points_best(const struct points_table *p, const char *key);
/*
 * What two runs of one server can differ by: repeats have a standard deviation of about 1 %, so
 * 95 % of the differences between two are below 1.96 sqrt(2) 1 % = 2.8 %.
 */
#define POINTS_LEVEL 0.03
/*
 * Appends sentences: "Highest throughput: 64.64 req/s at rate=80", which other points are within
 * POINTS_LEVEL (or, of a metric with an interval in KEY_low and KEY_high, how much more it is
 * than the next one), and what was left out. what: "throughput", unit: "req/s".
 */
void points_say_best(const struct points_table *p, const struct points_best *best, const char *key,
		     const char *what, const char *unit, struct arena *a, struct buf *out);
