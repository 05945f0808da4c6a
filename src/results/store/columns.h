/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - the numbers of columns, and what each is called in benchmark_runs. Private
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
 * A column that no run has any more is given back, unless it is one of those from the start: its
 * number goes to the next new name. Its SQL column stays in benchmark_runs, where it is NULL in
 * every row, until the name comes back, or the table is full and a new column of its kind takes it
 * over and renames it: dropping it would rewrite the table in SQLite, and count against a table's
 * 1,600 columns for ever in PostgreSQL.
 *
 * Names that no schema lists are limited, so that none of the others is ever shut out: to what is
 * left beside all that the schemas list, and for a run and an upload to a share of what is still
 * left. What is beyond stays in the document alone.
 *
 * The list in memory follows the table: columns_read takes over what is new there. A number is only
 * valid together with the table's edition, which grows when a number or an SQL column changes
 * hands.
 */
#pragma once
#include "core/base/mem.h"
#include "results/index/row.h"
#include "results/store/db.h"

#define COLUMN_NAME_BYTES_MAX 512   /* longer ones are kept in the document alone */
#define COLUMN_SQL_BYTES_MAX 60
#define COLUMNS_WIDE_MAX 1500       /* PostgreSQL takes 1,600 in a table, SQLite 2,000 */
/* Of a text with an index: PostgreSQL takes 2,704 there. Longer ones are in `rest`. */
#define COLUMN_INDEXED_BYTES_MAX 2000

/*
 * What a run, and an upload of many runs, may add in names that no schema lists, at most. Documents
 * of `profllm run` bring 14 to 27, with every argument of several servers and telemetry; vLLM's own
 * result of a nightly 56; the runs of a sweep share theirs. As the store fills up it is a share of
 * what is left: then hundreds of uploads are needed to use it up, and not one.
 */
#define COLUMNS_NEW_RUN_MAX 300
#define COLUMNS_NEW_UPLOAD_MAX 600
#define COLUMNS_NEW_RUN_SHARE 16    /* a sixteenth of what is left */
#define COLUMNS_NEW_UPLOAD_SHARE 8
#define COLUMNS_WIDE_SHARE 8        /* of the SQL columns that are left, for a run */
#define COLUMNS_WIDE_KEPT 100       /* of benchmark_runs, for names that no schema lists */
#define COLUMNS_LEFT_SHOWN 3        /* names in a note */

struct column {
	struct str name;        /* empty: given back; its SQL column may be taken over */
	struct str sql;         /* empty: benchmark_runs has none */
	enum value_kind kind;   /* of the SQL column */
	size_t place;           /* among those that benchmark_runs has */
	bool is_in_rest;        /* no SQL column was left when it came: its values are in `rest` */
};

struct columns {
	struct column *at;      /* by number */
	size_t n, n_wide, room;
	size_t n_free;          /* numbers without a name */
	size_t n_own;           /* names that no schema lists */
	int64_t edition;
	bool is_edited;         /* in this transaction: the edition is a new one already */
	struct map numbers;     /* by name */
	struct map taken;       /* SQL names in lower case */
	struct arena texts;
	struct buf insert;      /* wide.c's statement, of when there were n_insert places */
	size_t n_insert;
};

void columns_release(struct columns *c);
/* The table, when the list is of another edition. */
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
/* Numbers and SQL columns change hands in this transaction: whoever has the list reads it again. */
int columns_edit(struct columns *c, struct db *d, struct err *e);
size_t columns_own_max(void); /* how many names of their own all runs together may have */

/* What a run may still add. */
struct columns_room {
	size_t names; /* that no schema lists */
	size_t wide;  /* SQL columns for them */
};
/* Of a run that is part of an upload that has added so many names by now. */
struct columns_room columns_room(const struct columns *c, size_t upload_names);

/* Cells of a run that have no column, and the names of the first. */
struct columns_left {
	size_t n_bad; /* whose names cannot be kept */
	size_t n;     /* others, for which there was no room */
	struct str name[COLUMNS_LEFT_SHOWN];
	size_t n_names;
};
/*
 * The number of each cell's column, into number[r->n]: new ones are added, within a transaction,
 * while there is room; -1: it has none, and is counted in left. The names there are borrowed from
 * r.
 */
int columns_number(struct columns *c, struct db *d, const struct row *r, struct columns_room *room,
		   int64_t *number, struct columns_left *left, struct err *e);
/* Gives back the columns for which is_used[number] is false. *n: how many. In a transaction. */
int columns_give_back(struct columns *c, struct db *d, const bool *is_used, size_t *n,
		      struct err *e);
/* Whether it has a name, and is not one of those from the start. */
bool columns_can_go(const struct columns *c, size_t number);
/*
 * benchmark_runs anew, empty, without SQL columns that nobody has, and with room for values that
 * are in `rest` because there was none when they came: for the rows of all runs to be put again.
 * columns_want_widening: whether that would change anything.
 */
bool columns_want_widening(const struct columns *c);
int columns_widen_anew(struct columns *c, struct db *d, struct columns_room *room, struct err *e);
struct str columns_name(const void *columns, uint64_t number); /* for unpack_row */
