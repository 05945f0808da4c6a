/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/columns.h - the numbers of columns, and what each is called in benchmark_runs. Private
 * to store/.
 *
 * A column is numbered when a run first has it. In SQL it has its own name, unless that is too long
 * for PostgreSQL (63 bytes), differs from another one's in upper and lower case alone (SQLite takes
 * them for one), or is taken: then it is cut and ends in "~" and 8 digits of its hash.
 * It gets an SQL column with its first value that is not null, of that value's kind.
 *
 * The list in memory follows the table: columns_read takes over what is new there.
 */
#pragma once
#include "base/arena.h"
#include "base/map.h"
#include "index/row.h"
#include "store/db.h"

#define COLUMN_NAME_BYTES_MAX 512   /* longer ones are kept in the document alone */
#define COLUMN_SQL_BYTES_MAX 60
#define COLUMNS_WIDE_MAX 1500       /* PostgreSQL takes 1,600 in a table, SQLite 2,000 */

struct column {
	struct str name;
	struct str sql;         /* empty: benchmark_runs has none */
	enum value_kind kind;   /* of the SQL column */
};

struct columns {
	struct column *at;      /* by number */
	size_t n, n_wide, room;
	struct map numbers;     /* by name */
	struct map taken;       /* SQL names in lower case */
	struct arena texts;
};

void columns_release(struct columns *c);
/* What the table has beyond the list, and the SQL columns it gained. */
int columns_read(struct columns *c, struct db *d, struct err *e);
/* The SQL columns of all that have one, in a table that is as it begins. */
int columns_make(const struct columns *c, struct db *d, struct err *e);
/* Everything anew: after a transaction that added some was rolled back. */
int columns_again(struct columns *c, struct db *d, struct err *e);
/*
 * The number of each cell's column, into number[r->n]: new ones are added, within a transaction;
 * -1: the name cannot be kept, or there are INDEX_COLUMNS_MAX. *n_left_out counts those.
 */
int columns_number(struct columns *c, struct db *d, const struct row *r, int64_t *number,
		   size_t *n_left_out, struct err *e);
struct str columns_name(const void *columns, uint64_t number); /* for unpack_row */
