/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/columns.h - the numbers of columns, and what each is called in benchmark_runs. Private
 * to store/.
 *
 * A column is numbered when a run first has it; those that the schemas know (known.h) are numbered
 * from the start, so that a question in SQL names a column that is there. In SQL it has its own
 * name, unless that is too long for PostgreSQL (63 bytes), differs from another one's in upper and
 * lower case alone (SQLite takes them for one), or is taken: then it is cut and ends in "~" and 8
 * digits of its hash. A column that no schema knows gets its SQL column with its first value that
 * is not null, of that value's kind.
 *
 * Those that people usually ask for have an index in SQL (columns.c lists them).
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
/* Of a text with an index: PostgreSQL takes 2,704 there. Longer ones are in `rest`. */
#define COLUMN_INDEXED_BYTES_MAX 2000

struct column {
	struct str name;
	struct str sql;         /* empty: benchmark_runs has none */
	enum value_kind kind;   /* of the SQL column */
	size_t place;           /* among those that benchmark_runs has */
};

struct columns {
	struct column *at;      /* by number */
	size_t n, n_wide, room;
	struct map numbers;     /* by name */
	struct map taken;       /* SQL names in lower case */
	struct arena texts;
	struct buf insert;      /* wide.c's statement, of when there were n_insert places */
	size_t n_insert;
};

void columns_release(struct columns *c);
/* What the table has beyond the list, and the SQL columns it gained. */
int columns_read(struct columns *c, struct db *d, struct err *e);
/* benchmark_runs anew, empty, with the SQL columns of all that have one. */
int columns_make(const struct columns *c, struct db *d, struct err *e);
/*
 * Every column that the schemas know, and the indexes, when the store was last opened by a program
 * with other schemas; a single question otherwise. In a transaction of its own, or within one that
 * is open: then the list must be read already.
 */
int columns_know(struct columns *c, struct db *d, struct err *e);
void columns_quote(struct buf *text, struct str name); /* as SQL writes a name */
/* Whether it has an index, so that its texts may not be long. */
bool columns_is_indexed(struct str name);
/* Everything anew: after a transaction that added some was rolled back. */
int columns_again(struct columns *c, struct db *d, struct err *e);
/*
 * The number of each cell's column, into number[r->n]: new ones are added, within a transaction;
 * -1: the name cannot be kept, or there are INDEX_COLUMNS_MAX. *n_left_out counts those.
 */
int columns_number(struct columns *c, struct db *d, const struct row *r, int64_t *number,
		   size_t *n_left_out, struct err *e);
struct str columns_name(const void *columns, uint64_t number); /* for unpack_row */
