/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_internal.h - what the files of store/ share: a connection to SQLite or PostgreSQL,
 * packed cells, the tables, the numbers of columns, and a transaction. Private to store/.
 *
 * One connection writes, under write_lock; any number of others read, each lent to one thread at a
 * time. Every change of a run or of its flags takes the next number of `change`. The index, and
 * the list of columns, are as of `sequence`; a transaction first takes over what other processes
 * have changed since, then changes, commits, and gives the index what it did.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "core/base/codec.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "results/index/row.h"
#include "results/store/store.h"

enum db_kind { DB_NULL, DB_BOOL, DB_INT, DB_REAL, DB_TEXT, DB_BLOB };

struct db_value {
	enum db_kind kind;
	union {
		int64_t integer; /* DB_BOOL too; SQLite answers DB_INT for it */
		double real;
		struct str bytes;
	};
};

#define DB_STATEMENTS_MAX 256 /* kept by a connection; then all are forgotten */

/* A row of an answer, of n values; what v points to is gone after the call. */
struct db_got { const struct db_value *v; size_t n; struct err *e; };
/* Is given each row. 0: go on, 1: enough, -1: break off with e. */
typedef int db_row(void *self, const struct db_got *got);

enum db_begin { DB_WRITE, DB_READ }; /* writers wait for each other; readers see one moment */

struct db;
struct db_hooks {
	const char *name;
	const char *begin[2][3]; /* statements, by enum db_begin */
	const char *word[4];     /* what {int}, {real}, {blob} and {of_run} are */
	bool is_partitioned;     /* the large tables are divided: partitions.c */
	int (*open)(const char *place, bool is_read_only, struct db **out, struct err *e);
	void (*close)(struct db *d);
	int (*run)(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
		   void *self, struct err *e);
	int (*copy)(struct db *d, const char *path,
		    struct err *e); /* NULL: table by table instead */
	const char *bytes;     /* a statement: the size of the database */
	const char *integrity; /* a statement whose rows other than "ok" are complaints; NULL: none */
};
extern const struct db_hooks db_sqlite, db_postgres;

struct db {
	const struct db_hooks *hooks;
	bool is_inside; /* a transaction */
	bool is_replica; /* its server takes no writes: a read replica, or set so by its owner */
	int64_t rest_until_ns; /* CLOCK_MONOTONIC: its server hung and is not asked before */
};

/*
 * "postgresql:..." and "postgres:..." go to PostgreSQL, "sqlite:PATH" and a path to SQLite; place is
 * what open gets. NULL (ERR_USAGE): it begins like the address of something else.
 */
const struct db_hooks *db_hooks_of(const char *url, const char **place, struct err *e);

int db_run(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
	   void *self, struct err *e);
/* The first column of the first row; otherwise when there is no row, or it is null. */
int db_integer(struct db *d, const char *sql, const struct db_value *v, size_t n,
	       int64_t otherwise, int64_t *out, struct err *e);
/* A statement without an answer, or whose answer is of no interest. */
int db_do(struct db *d, const char *sql, const struct db_value *v, size_t n, struct err *e);
/* The statement with this dialect's words; to be released. */
struct buf db_words(const struct db_hooks *h, const char *sql);

int db_begin(struct db *d, enum db_begin how, struct err *e);
/* outcome 0 commits, else rolls back; returns outcome, or -1 when the commit failed. */
int db_end(struct db *d, int outcome, struct err *e);

static inline struct db_value db_int(int64_t v)
{
	return (struct db_value){ .kind = DB_INT, .integer = v };
}

static inline struct db_value db_real(double v) /* NAN: null */
{
	return (struct db_value){ .kind = v == v ? DB_REAL : DB_NULL, .real = v };
}

static inline struct db_value db_text(struct str v)
{
	return (struct db_value){ .kind = DB_TEXT, .bytes = v };
}

static inline struct db_value db_blob(struct str v)
{
	return (struct db_value){ .kind = DB_BLOB, .bytes = v };
}

/* What came back, in the kind that is asked for; a null is 0, NAN or "". */
int64_t db_as_int(struct db_value v);
double db_as_real(struct db_value v);
struct str db_as_bytes(struct db_value v);
struct str db_keep(struct arena *a, struct db_value v); /* the bytes, copied */

/*
 * A run's cells and texts as the bytes that the store keeps. Pure. Private to
 * store/.
 *
 * A text: its length in 8 bytes, least first, then a Zstandard frame with a checksum.
 *
 * A row: one byte PACK_VERSION, how many cells, then each cell: the number of its column,
 * a kind, and what the kind needs. Lengths and numbers without sign are LEB128;
 * whole numbers below 2^53 are zigzag LEB128, others 8 bytes of IEEE 754, least first. Every
 * value comes back as it went in, -0.0 among them.
 */

#define PACK_VERSION 1
#define PACK_TEXT_BYTES_MAX (1ull << 30)

void pack_text(struct str text, struct buf *out);
int unpack_text(struct str packed, struct buf *out, struct err *e); /* appends */

/* A cell whose column[i] is negative is left out. */
void pack_row(const struct row *r, const int64_t *column, struct buf *out);
/*
 * name(self, number) gives a column's name; empty: there is none, which is an error. Texts are
 * copied into a.
 */
int unpack_row(struct str packed, struct str (*name)(const void *self, uint64_t number),
	       const void *self, struct arena *a, struct row *out, struct err *e);

/*
 * The tables, as numbered steps that are taken once each. Private to store/.
 *
 * A step is never changed once it was released; what changes later is a step more. A store whose
 * number is above ours was made by a newer program and is refused, so nothing is lost by
 * guessing.
 */

/* where: what errors call the store. is_read_only: only looks whether it is of our number. */
int migrate(struct db *d, const char *where, bool is_read_only, struct err *e);
/* Whether it has our tables, of an earlier number. */
bool migrate_is_older(struct db *d);
/*
 * The number of the last change goes to a new random place: whoever knew the old contents notices.
 */
int migrate_new_changes(struct db *d, int64_t *base, struct err *e);
#define MIGRATE_SAME_STORE(a, b) ((a) >> 32 == (b) >> 32) /* of two numbers of changes */
/*
 * partitions.c: the large tables (originals, arrays, benchmark_runs) in parts by number of run, on
 * PostgreSQL. A number is given out when a run comes, so a part is a stretch of time.
 *
 * A partition holds the runs of a calendar month (UTC, of receipt), or STORE_PARTITION_RUNS of them
 * when more come. In a new month numbers go on where the next partition begins. Table `partitions`
 * lists them; `leaving` is 1 while the runs of one are being removed. Rows refer to
 * documents by number without a foreign key, so that a partition can be dropped as a whole.
 *
 * All within a transaction that writes.
 */

/* Divides the tables of a store that has none yet: what they hold is the first partition. */
int partitions_begin(struct db *d, struct err *e);
/* Those of a table that was just made anew. */
int partitions_make(struct db *d, const char *table, struct err *e);
/* Before the next n numbers of runs are given out: partitions for them. */
int partitions_room(struct db *d, size_t n, struct err *e);
/* None at all, and then those for the runs of another store, a month each. */
int partitions_clear(struct db *d, struct err *e);
int partitions_like(struct db *from, struct db *to, struct err *e);
/*
 * The oldest whose runs all came before that time, with the numbers of its runs below past, is
 * marked as leaving; *first -1: there is none. The newest partition always stays.
 */
struct partition { int64_t first, past; };
int partitions_leave(struct db *d, double before_s, struct partition *out, struct err *e);
/* Its tables, once its runs are gone from documents. */
int partitions_drop(struct db *d, int64_t first, struct err *e);

/*
 * The tables that a backup of another database, and a restore, copy row by row, in an order that
 * keeps references whole; benchmark_runs is made anew from the documents. columns: names, with
 * commas.
 */
struct store_table { const char *name, *columns, *order; };
extern const struct store_table store_table[];
extern const size_t store_tables;

/*
 * The numbers of columns, and what each is called in benchmark_runs. Private
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

#define COLUMN_NAME_BYTES_MAX 512   /* longer ones are kept in the document alone */
#define COLUMN_SQL_BYTES_MAX 60
#define COLUMNS_WIDE_MAX 1540       /* PostgreSQL takes 1,600 in a table, SQLite 2,000 */
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
 * columns_want_widening: whether that would change anything. columns_make: benchmark_runs anew,
 * empty, with the SQL columns of the list.
 */
bool columns_want_widening(const struct columns *c);
int columns_make(const struct columns *c, struct db *d, struct err *e);
int columns_widen_anew(struct columns *c, struct db *d, struct columns_room *room, struct err *e);
struct str columns_name(const void *columns, uint64_t number); /* for unpack_row */

/* ---- a store ---- */

#define STORE_READERS_MAX 32        /* connections that read; a thread waits when all are lent */
#define STORE_RUN_ID_BYTES_MAX 512
#define STORE_NAME_BYTES_MAX 512    /* of presets, files, people */
#define STORE_WORDS_BYTES_MAX 65536 /* an annotation, a reason, a preset's body */

struct store {
	const struct db_hooks *hooks;
	char *place;              /* what hooks->open gets */
	char *shown;              /* for sentences: without a password */
	char *snapshot, *traces;  /* NULL: none */
	mode_t mode;              /* of files next to it: those of the store's own */
	bool is_read_only;
	struct db *writer;
	struct db *idle[STORE_READERS_MAX];
	size_t n_idle, n_readers; /* under pool_lock */
	int64_t rest_until_ns;    /* likewise: of all connections' */
	pthread_mutex_t write_lock, pool_lock, step_lock, index_lock, keep_lock;
	pthread_cond_t is_idle;
	_Atomic size_t n_own;     /* columns.n_own, for those who do not wait for a writer */
	_Atomic uint64_t put[PUT_OUTCOMES]; /* runs that were committed, by outcome */
	bool is_index_bad;        /* under write_lock: it must be made anew */
	struct index *index;      /* NULL: has_no_index; set under write_lock and index_lock */
	struct columns columns;   /* under write_lock */
	int64_t sequence;         /* under write_lock */
	int64_t saved;            /* sequence of the snapshot; under keep_lock, as are the rest */
	int64_t saved_ns;         /* CLOCK_MONOTONIC */
	int64_t save_not_before_ns, cleaned_ns;
};

/* A connection to read from, until it is given back. */
struct db *store_reader(struct store *s, struct err *e);
void store_reader_back(struct store *s, struct db *d);
/* A list that grows in an arena, an item of `size` bytes at a time. */
struct store_list {
	struct arena *a;
	char *item;
	size_t size, n, room;
};
void *store_list_add(struct store_list *l);
/* Numbers of runs, the first column of each row; store_take_id wants one as self. */
struct store_ids { int64_t *id; size_t n, room; };
db_row store_take_id;

/* A statement on one of them. */
int store_ask(struct store *s, const char *sql, const struct db_value *v, size_t n, db_row *row,
	      void *self, struct err *e);

/* A change of flags, or a run that came: told to the index once it is durable. */
struct store_change {
	int64_t id;
	unsigned flags;
	const struct row *row; /* NULL: a run that is there */
};

struct store_write {
	struct db *db;
	int64_t change;        /* the last number given out */
	struct store_change *list;
	size_t n, room;
	int64_t began;         /* change when it began */
	int64_t edition;       /* of the columns, likewise */
	size_t new_columns;    /* of its own names, by the upload that is put */
	size_t put[PUT_OUTCOMES]; /* runs, by outcome */
};

/*
 * Under write_lock, outside a transaction: another index, of what the store holds, in place of one
 * that has no room for what came, or has values that were rewritten.
 */
int store_index_anew(struct store *s, struct err *e);
/* Takes the lock and begins. Between the two, rows told to store_changed must stay. */
int store_write_begin(struct store *s, struct store_write *w, struct err *e);
/* rc 0 commits and tells the index, else rolls back; returns rc, or -1. Gives the lock back. */
int store_write_end(struct store *s, struct store_write *w, int rc, struct err *e);
/* The number to write into `changed`. */
int64_t store_changed(struct store_write *w, int64_t id, unsigned flags, const struct row *row);
/* Also of a run: its flags, as the next change. */
int store_set_flags(struct store_write *w, int64_t id, int64_t flags, struct err *e);
/* The first of n new numbers of a kind (table numbers). */
int store_number(struct store_write *w, const char *kind, size_t n, int64_t *first, struct err *e);
/* ERR_USAGE when the text is longer than that; what: "the reason". */
int store_fits(struct str text, size_t bytes_max, const char *what, struct err *e);
/* A name from outside, made valid and cut where it is too long; in out. */
struct str store_clean_name(struct buf *out, struct str name);
/* ERR_USAGE: there is no WHAT of that number. */
int store_has_none(const char *what, int64_t id, struct err *e);
/* ERR_USAGE when there is no such run. */
int store_is_run(struct store_write *w, int64_t id, struct err *e);
int store_tag_check(struct str tag, struct err *e);
/* is_on: the tag is set, else removed; is_same: it was so already. */
int store_tag_one(struct store_write *w, int64_t run, struct str tag, struct str who, bool is_on,
		  bool *is_same, struct err *e);
/* store_exclude within a transaction, for a run that is there. */
int store_exclude_one(struct store_write *w, int64_t run, struct str reason, struct str who,
		      struct err *e);

/* The digest that `check` compares with what is kept: of the document, then the arrays. */
char *store_checksum(struct str document, struct str arrays, char out[static DIGEST_HEX]);
/* run.c: within a transaction. out[n]; rows lie in a until it ends. */
int store_put_runs(struct store *s, struct store_write *w, const struct read_run *run, size_t n,
		   struct str who, struct arena *a, struct put_result *out, struct err *e);

/* A row of benchmark_runs. number: of columns_number. */
int store_wide_put(struct columns *c, struct db *d, int64_t id, const struct row *r,
		   const int64_t *number, struct err *e);
/* Whether benchmark_runs says the same as the cells; what differs goes to *what. 1 same, 0 not. */
int store_wide_same(const struct columns *c, struct db *d, int64_t id, const struct row *r,
		    struct arena *a, struct str *what, struct err *e);

/* traces.is_expired; left out: of the backup that the store was restored from. */
enum { TRACE_KEPT, TRACE_EXPIRED, TRACE_LEFT_OUT };

/* trace.c: within a transaction. The files that nothing else needs go with them. */
int store_traces_forget(struct store *s, struct store_write *w, int64_t run, struct err *e);
/*
 * Traces from before, and the oldest while there are more bytes than that (0: any). *n: how many.
 */
int store_traces_expire(struct store *s, struct store_write *w, double before_s, int64_t bytes_max,
			size_t *n, struct err *e);

double store_now_s(void);
