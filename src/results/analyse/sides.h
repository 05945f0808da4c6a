/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sides.h - groups of runs that a request names, by their numbers or by a filter. Private
 * to analyse/.
 *
 *   {"name"?, "ids": [number or run_id, ...]}   also runs that are excluded or archived
 *   {"name"?, "filter": F}                      usual runs
 */
#pragma once
#include "results/analyse/parts.h"

#define SIDES_MAX 12
#define SIDE_IDS_MAX 2000
#define SIDES_IDS_MAX 10000 /* of all groups together: their rows are looked at whole */

struct side {
	const char *name;          /* as given, else "A", "B" ... */
	size_t n;
	int64_t *id;               /* ascending, each once */
	struct filter *filter;     /* NULL: by ids */
	struct row *row;           /* by ids: whole rows */
};

/* One group; pointer is where json stands ("/groups/0"). */
int side_read(const struct analyse_request *r, const struct json_value *json, const char *pointer,
	      const char *name, struct side *out, struct err *e);
/* The value of every run in a column, in the order of id. */
int side_column(const struct analyse_request *r, const struct side *s, struct str column,
		struct value **out, struct err *e);
/* What the runs say of themselves, in the order of id. */
int side_verdicts(const struct analyse_request *r, const struct side *s, struct verdicts *out,
		struct err *e);

/* ---- what values a column has, and how often ---- */

struct value_count { struct value value; size_t count; }; /* absent: no value, or null */
struct value_counts {
	struct value_count *of;    /* most first */
	size_t n, distinct;        /* n: at most SIDE_VALUES_MAX of all */
};
#define SIDE_VALUES_MAX 20

/* out[i] is of column[i]. */
int side_counts(const struct analyse_request *r, const struct side *s, const struct str *column,
		size_t n, struct value_counts *out, struct err *e);
