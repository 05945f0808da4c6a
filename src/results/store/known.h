/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known.h - the columns that a run may have, whether or not one has them, and which questions about
 * runs make sense.
 *
 * The table is generated from schema/ (tools/gen.pl): a run's own columns, every metric of a
 * result, every option of the load, every argument of the engine. Three rules apply in addition:
 * any percentile is valid (p42_ttft_ms), ROLE.NAME is like server.NAME, and priority.N.NAME of any
 * priority N is like priority.0.NAME.
 *
 * Keys that users invent (tags.NAME, members of a JSON argument) are not in it: those are known by
 * the runs that have them.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "results/index/index.h"

enum known_kind { KNOWN_BOOL = 1, KNOWN_NUMBER = 2, KNOWN_TEXT = 4, KNOWN_ANY = 7 };

struct known_column {
	const char *name;
	enum value_kind type; /* of the column in SQL */
	unsigned kinds;       /* of values that it may have, in addition to null */
	double min, max;      /* of its numbers, both included; -INFINITY, INFINITY: open */
};

extern const struct known_column known_columns[]; /* by name */
extern const size_t known_column_count;

/* NULL: not in the schemas. */
const struct known_column *known_column(struct str name);
/*
 * Whether it is one of the names that the schemas list: a row, ROLE.NAME for a row server.NAME, or
 * a computed column (index/derive.h). Percentiles other than those of the rows are not, because
 * there are arbitrarily many.
 */
bool known_is_listed(struct str name);
size_t known_listed_count(void); /* number of such names */
/* A setting of the load or of a server, which may be a text because it came from a command line. */
bool known_is_setting(struct str name);
/* The bit of a value's kind; 0 for null and absent. */
unsigned known_kind_of(struct value v);

/*
 * ERR_USAGE "POINTER: there is no column ..." with the nearest name, if neither a run of the view
 * nor a schema has it.
 */
/* The same for a name that may be a formula (index/formula.h): checks its columns. */
int known_check_value(const struct index_view *v, struct str name, const char *pointer,
		      struct arena *a, struct err *e);
int known_check_column(const struct index_view *v, struct str name, const char *pointer,
		       struct arena *a, struct err *e);
/*
 * The same for every column of a filter; also refuses a value, range or text that the column's kind
 * cannot have, because its answer would always be empty.
 */
int known_check_filter(const struct index_view *v, const struct filter *f, const char *pointer,
		       struct arena *a, struct err *e);
