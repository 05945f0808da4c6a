/* SPDX-License-Identifier: Apache-2.0 */
/* report/compare_tables_parts.h - what compare_tables*.c share. Private to them. */
#pragma once
#include "report/compare_tables.h"
#include "results/frame.h"

#define TABLES_KEYS_MAX 7 /* the six of upstream and another x axis */

enum { TABLES_TPUT, TABLES_TTFT, TABLES_TPOT, TABLES_METRICS };

struct tables_file { const char *label, *path; struct frame rows; };

/* One combination of the key columns, in any of the files. */
struct tables_level {
	const char *text[TABLES_KEYS_MAX];
	double number[TABLES_KEYS_MAX];         /* NAN: the text is no number */
	double *value[TABLES_METRICS];          /* per file; NAN: none */
	double *count[TABLES_METRICS];          /* rows behind it */
	const char **name;                      /* per file: the test's */
};

struct tables {
	const struct tables_opts *o;
	struct arena *a;
	struct buf *out;
	struct tables_file *file;
	size_t n;
	const char *metric[TABLES_METRICS];
	const char *key[TABLES_KEYS_MAX];
	size_t n_keys, n_groups, x;             /* the first n_groups make groups; x: the axis */
	struct tables_level *level;             /* sorted by group, then x */
	size_t n_levels;
};

/* Of one file in one group: upstream's three numbers, then ours. NAN: none. */
struct tables_capacity {
	double ttft, tpot, both;
	double first_failure;                   /* the least level at which a limit is passed */
	double same_row;                        /* the highest level below it that keeps both */
	const struct tables_level *at_both, *at_same_row; /* NULL: none */
};

bool tables_passes(const struct tables *t, const struct tables_level *l, size_t metric,
		   size_t file);
void tables_capacity(const struct tables *t, size_t from, size_t to, size_t file,
		     struct tables_capacity *c);
/* Pages, CSV files, and the tables as text. */
int tables_write(const struct tables *t, struct err *e);
