/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known.h - the columns that a run may have, whether one has them or not, and which questions
 * about runs make sense.
 *
 * The table is generated from schema/ (tools/gen.pl): what a run is, every metric of a
 * result, every option of the load, every argument of the engine. Three rules apply in addition:
 * any percentile is one (p42_ttft_ms), ROLE.NAME is what server.NAME is, and priority.N.NAME of any
 * priority N is what priority.0.NAME is.
 *
 * Keys that users make up (tags.NAME, members of a JSON argument) are not in it: those are
 * known by the runs that have them.
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

/* NULL: the schemas do not know it. */
const struct known_column *known_column(struct str name);
/*
 * Whether it is one of the names that the schemas list: a row, ROLE.NAME for a row server.NAME, or
 * a column that is computed (index/derive.h). Percentiles other than those of the rows are not,
 * because there is no end of them.
 */
bool known_is_listed(struct str name);
size_t known_listed_count(void); /* how many such names there are */
/* A setting of the load or of a server, which a command line may have made a text. */
bool known_is_setting(struct str name);
/* The bit of a value's kind; 0 for null and absent. */
unsigned known_kind_of(struct value v);

/*
 * ERR_USAGE "POINTER: there is no column ..." with the name that was probably meant, when neither a
 * run of the view nor a schema has it.
 */
/* The same of what may be a formula too (index/formula.h): its columns are checked. */
int known_check_value(const struct index_view *v, struct str name, const char *pointer,
		      struct arena *a, struct err *e);
int known_check_column(const struct index_view *v, struct str name, const char *pointer,
		       struct arena *a, struct err *e);
/*
 * Likewise every column of a filter; and a value, range or text that the column's kind cannot have
 * is refused, because its answer would be empty whatever the runs are.
 */
int known_check_filter(const struct index_view *v, const struct filter *f, const char *pointer,
		       struct arena *a, struct err *e);
