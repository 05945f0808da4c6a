/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_internal.h - shared by the files of store/: a connection to SQLite or PostgreSQL, packed
 * cells, the tables, the numbers of columns, and a transaction. Private to store/.
 *
 * One connection writes, under write_lock; any number of others read, each lent to one thread at a
 * time. Every change of a run or of its flags takes the next number of `change`. The index, and the
 * list of columns, are as of `sequence`; a transaction first takes over what other processes have
 * changed since, then changes, commits, and passes its changes to the index.
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
		int64_t integer; /* also DB_BOOL; SQLite answers with DB_INT */
		double real;
		struct str bytes;
	};
};

#define DB_STATEMENTS_MAX 256 /* cached by a connection; then all are dropped */

/* A row of an answer with n values, which are only valid during the call. */
struct db_got { const struct db_value *v; size_t n; struct err *e; };
/* Called with each row. 0: continue, 1: enough, -1: stop with e. */
typedef int db_row(void *self, const struct db_got *got);

enum db_begin { DB_WRITE, DB_READ }; /* writers wait for each other; readers see one moment */

struct db;
struct db_hooks {
	const char *name;
	const char *begin[2][3]; /* statements, by enum db_begin */
	const char *word[4];     /* replacements of {int}, {real}, {blob} and {of_run} */
	bool is_partitioned;     /* the large tables are divided: partitions.c */
	int (*open)(const char *place, bool is_read_only, struct db **out, struct err *e);
	void (*close)(struct db *d);
	int (*run)(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
		   void *self, struct err *e);
	int (*copy)(struct db *d, const char *path,
		    struct err *e); /* NULL: table by table instead */
	bool (*is_elsewhere)(const struct db *d); /* its file was removed or replaced; or NULL */
	void (*settle)(struct db *d); /* then: what it holds goes into the file that was opened */
	const char *bytes;     /* a statement: the size of the database */
	const char *integrity; /* rows of this statement other than "ok" are complaints; or NULL */
};
extern const struct db_hooks db_sqlite, db_postgres;
/* The same as db_sqlite.open for a backup, or a copy of one: messages are about the backup. */
int sqlite_open_backup(const char *place, bool is_read_only, const char *backup, struct db **out,
		       struct err *e);

struct db {
	const struct db_hooks *hooks;
	bool is_inside; /* a transaction */
	const char *backup; /* this is that backup, or a copy of it, and no store; NULL: a store */
	bool is_replica; /* its server accepts no writes: a read replica, or configured so */
	int64_t rest_until_ns; /* CLOCK_MONOTONIC: its server hung and is not tried before */
};

/*
 * "postgresql:..." and "postgres:..." are PostgreSQL, "sqlite:PATH" and a path SQLite; place is
 * open's argument. NULL (ERR_USAGE): it begins like a URL of another kind.
 */
const struct db_hooks *db_hooks_of(const char *url, const char **place, struct err *e);

int db_run(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
	   void *self, struct err *e);
/* The first column of the first row; otherwise if there is no row, or it is null. */
int db_integer(struct db *d, const char *sql, const struct db_value *v, size_t n,
	       int64_t otherwise, int64_t *out, struct err *e);
/* A statement without an answer, or whose answer is ignored. */
int db_do(struct db *d, const char *sql, const struct db_value *v, size_t n, struct err *e);
/* The statement in this dialect; to be released. */
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

/* A returned value, in the requested kind; a null is 0, NAN or "". */
int64_t db_as_int(struct db_value v);
double db_as_real(struct db_value v);
struct str db_as_bytes(struct db_value v);
struct str db_keep(struct arena *a, struct db_value v); /* the bytes, copied */

/*
 * A run's cells and texts as the stored bytes. Pure.
 *
 * A text: its length in 8 bytes, little-endian, then a Zstandard frame with a checksum.
 *
 * A row: one byte PACK_VERSION, the number of cells, then each cell: the number of its column, a
 * kind, and what the kind needs. Lengths and unsigned numbers are LEB128; whole numbers below 2^53
 * are zigzag LEB128, others 8 bytes of IEEE 754, little-endian. Every value is restored exactly,
 * including -0.0.
 */

#define PACK_VERSION 1
#define PACK_TEXT_BYTES_MAX (1ull << 30)

void pack_text(struct str text, struct buf *out);
int unpack_text(struct str packed, struct buf *out, struct err *e); /* appends */

/* Cells whose column[i] is negative are left out. */
void pack_row(const struct row *r, const int64_t *column, struct buf *out);
/*
 * name(self, number) gives a column's name; empty: unknown, which is an error. Texts are copied
 * into a.
 */
int unpack_row(struct str packed, struct str (*name)(const void *self, uint64_t number),
	       const void *self, struct arena *a, struct row *out, struct err *e);

/*
 * The tables, as numbered steps that are taken once each.
 *
 * A released step is never changed; later changes are new steps. A store whose number is above ours
 * was made by a newer program and is refused, so that nothing is lost.
 */

/* where: the store's name in errors. is_read_only: only checks that it has our number. */
int migrate(struct db *d, const char *where, bool is_read_only, struct err *e);
/* Whether it has our tables, with an earlier number. */
bool migrate_is_older(struct db *d);
/* Moves the number of the last change to a random range: programs that knew the store reload. */
int migrate_new_changes(struct db *d, int64_t *base, struct err *e);
#define MIGRATE_SAME_STORE(a, b) ((a) >> 32 == (b) >> 32) /* of two numbers of changes */
/*
 * partitions.c: the large tables (originals, arrays, benchmark_runs) in parts by number of run, on
 * PostgreSQL. Runs are numbered as they come, so a part is a range of time.
 *
 * A partition holds the runs of a calendar month (UTC, of receipt), or STORE_PARTITION_RUNS of them
 * when more come. In a new month numbers continue where the next partition begins. Table
 * `partitions` lists them; `leaving` is 1 while the runs of one are being removed. Rows refer to
 * documents by number without a foreign key, so that a partition can be dropped as a whole.
 *
 * All within a transaction that writes.
 */

/* Divides the tables of a store without partitions: their content is the first partition. */
int partitions_begin(struct db *d, struct err *e);
/* Makes the partitions of a table that was just rebuilt. */
int partitions_make(struct db *d, const char *table, struct err *e);
/* Makes partitions for the next n numbers of runs, before they are assigned. */
int partitions_room(struct db *d, size_t n, struct err *e);
/* Drops all partitions; makes those for the runs of another store, a month each. */
int partitions_clear(struct db *d, struct err *e);
int partitions_like(struct db *from, struct db *to, struct err *e);
/*
 * Marks as leaving the oldest partition whose runs were all received before that time; its run
 * numbers are first to past - 1. *first -1: none. The newest partition always stays.
 */
struct partition { int64_t first, past; };
int partitions_leave(struct db *d, double before_s, struct partition *out, struct err *e);
/* Drops its tables, once its runs are gone from documents. */
int partitions_drop(struct db *d, int64_t first, struct err *e);

/*
 * The tables that are copied row by row by a backup of another database and by a restore, in an
 * order that keeps references valid; benchmark_runs is rebuilt from the documents. columns: names,
 * separated by commas.
 */
struct store_table { const char *name, *columns, *order; };
extern const struct store_table store_table[];
extern const size_t store_tables;

/*
 * The numbers of columns, and their names in benchmark_runs.
 *
 * A column is numbered when a run first has it; those that the schemas know (known.h) are numbered
 * from the start, so that a query in SQL finds its columns. In SQL it has its own name, unless that
 * is too long for PostgreSQL (63 bytes), differs from another one's only in upper and lower case
 * (SQLite does not distinguish them), or is taken: then it is cut and ends in "~" and 8 digits of
 * its hash. A column that no schema knows gets its SQL column with its first value that is not
 * null, of that value's kind.
 *
 * The usual filter columns have an index in SQL (columns.c lists them).
 *
 * A column that no run has any more is dropped, unless it is one of those from the start: its
 * number goes to the next new name. Its SQL column stays in benchmark_runs, NULL in every row,
 * until the name comes back, or the table is full and a new column of its kind renames and reuses
 * it: dropping it would rewrite the table in SQLite, and count against a table's 1,600 columns for
 * ever in PostgreSQL.
 *
 * Names that no schema lists are limited, so that all listed ones always have room: to what the
 * listed ones leave over, and for a run and an upload to a share of what is still left. Values
 * beyond that are only in the document.
 *
 * The list in memory follows the table: columns_read takes over what is new there. A number is only
 * valid together with the table's edition, which grows when a number or an SQL column is
 * reassigned.
 */

#define COLUMN_NAME_BYTES_MAX 512   /* longer ones are only in the document */
#define COLUMN_SQL_BYTES_MAX 60
#define COLUMNS_WIDE_MAX 1540       /* PostgreSQL allows 1,600 in a table, SQLite 2,000 */
/* Of a text with an index, where PostgreSQL allows 2,704. Longer ones are in `rest`. */
#define COLUMN_INDEXED_BYTES_MAX 2000

/*
 * How many names that no schema lists a run, and an upload of many runs, may add at most. Documents
 * of `profllm run` bring 14 to 27, with every argument of several servers and telemetry; vLLM's own
 * result of a nightly 56; the runs of a sweep share theirs. As the store fills up it is a share of
 * what is left: so that one upload cannot use it up, only hundreds.
 */
#define COLUMNS_NEW_RUN_MAX 300
#define COLUMNS_NEW_UPLOAD_MAX 600
#define COLUMNS_NEW_RUN_SHARE 16    /* a sixteenth of what is left */
#define COLUMNS_NEW_UPLOAD_SHARE 8
#define COLUMNS_WIDE_SHARE 8        /* of the SQL columns that are left, for a run */
#define COLUMNS_WIDE_KEPT 100       /* of benchmark_runs, for names that no schema lists */
#define COLUMNS_LEFT_SHOWN 3        /* names in a note */

struct column {
	struct str name;        /* empty: dropped; its SQL column may be reused */
	struct str sql;         /* empty: benchmark_runs has none */
	enum value_kind kind;   /* of the SQL column */
	size_t place;           /* position among the SQL columns */
	bool is_in_rest;        /* had no SQL column when it came: its values are in `rest` */
};

struct columns {
	struct column *at;      /* by number */
	size_t n, n_wide, room;
	size_t n_free;          /* numbers without a name */
	size_t n_own;           /* names that no schema lists */
	int64_t edition;
	bool is_edited;         /* in this transaction: the edition has already grown */
	struct map numbers;     /* by name */
	struct map taken;       /* SQL names in lower case */
	struct arena texts;
	struct buf insert;      /* the INSERT statement for n_insert places */
	size_t n_insert;
};

void columns_release(struct columns *c);
/* Reads the table, if the list is of another edition. */
int columns_read(struct columns *c, struct db *d, struct err *e);
/*
 * Adds every column that the schemas know, and the indexes, if the store was last opened by a
 * program with other schemas; else a single query. In a transaction of its own, or within an open
 * one: then the list must have been read.
 */
int columns_know(struct columns *c, struct db *d, struct err *e);
void columns_quote(struct buf *text, struct str name); /* as SQL writes a name */
/* Whether it has an index, so that its texts must be short. */
bool columns_is_indexed(struct str name);
/* Reads everything again: after a transaction that added some was rolled back. */
int columns_again(struct columns *c, struct db *d, struct err *e);
size_t columns_own_max(void); /* limit on unlisted names of all runs together */

/* What a run may still add. */
struct columns_room {
	size_t names; /* names that no schema lists */
	size_t wide;  /* SQL columns for them */
};
/* For a run of an upload that has added upload_names so far. */
struct columns_room columns_room(const struct columns *c, size_t upload_names);

/* Cells of a run without a column, and the names of the first ones. */
struct columns_left {
	size_t n_bad; /* with invalid names */
	size_t n;     /* others, for which there was no room */
	struct str name[COLUMNS_LEFT_SHOWN];
	size_t n_names;
};
/*
 * Writes the number of each cell's column to number[r->n]: new columns are added, within a
 * transaction, while there is room; -1: none, counted in left. The names there are borrowed from r.
 */
int columns_number(struct columns *c, struct db *d, const struct row *r, struct columns_room *room,
		   int64_t *number, struct columns_left *left, struct err *e);
/* Drops the columns for which is_used[number] is false. *n: how many. In a transaction. */
int columns_give_back(struct columns *c, struct db *d, const bool *is_used, size_t *n,
		      struct err *e);
/* Whether it has a name, and is not one of those from the start. */
bool columns_can_go(const struct columns *c, size_t number);
/*
 * columns_widen_anew rebuilds benchmark_runs, empty, without unused SQL columns, and with columns
 * for values that are in `rest` because there was no room: the rows of all runs must then be put
 * again. columns_want_widening: whether that would change anything. columns_make: rebuilds it,
 * empty, with the SQL columns of the list.
 */
bool columns_want_widening(const struct columns *c);
int columns_make(const struct columns *c, struct db *d, struct err *e);
int columns_widen_anew(struct columns *c, struct db *d, struct columns_room *room, struct err *e);
struct str columns_name(const void *columns, uint64_t number); /* for unpack_row */

/* ---- a store ---- */

#define STORE_READERS_MAX 32        /* connections that read; threads wait when all are in use */
#define STORE_NAME_BYTES_MAX 512    /* of presets, files, users */
#define STORE_WORDS_BYTES_MAX 65536 /* an annotation, a reason, a preset's body */

struct store {
	const struct db_hooks *hooks;
	char *place;              /* argument of hooks->open */
	char *shown;              /* for messages: without a password */
	char *snapshot, *traces;  /* NULL: none */
	mode_t mode;              /* of files next to it: the store file's own */
	bool is_read_only;
	struct db *writer;
	struct db *idle[STORE_READERS_MAX];
	size_t n_idle, n_readers; /* under pool_lock */
	int64_t rest_until_ns;    /* under pool_lock: of all connections */
	pthread_mutex_t write_lock, pool_lock, step_lock, index_lock, keep_lock;
	pthread_cond_t is_idle;
	_Atomic size_t n_own;     /* columns.n_own, readable without a lock */
	_Atomic uint64_t put[PUT_OUTCOMES]; /* runs that were committed, by outcome */
	bool is_index_bad;        /* under write_lock: it must be rebuilt */
	_Atomic bool is_replaced; /* the index is of other contents: store_is_replaced */
	struct index *index;      /* NULL: has_no_index; set under write_lock and index_lock */
	struct columns columns;   /* under write_lock */
	int64_t sequence;         /* under write_lock */
	int64_t saved;            /* sequence of the snapshot; keep_lock, also for the rest */
	int64_t saved_ns;         /* CLOCK_MONOTONIC */
	int64_t save_not_before_ns, cleaned_ns;
};

/* Borrows a connection for reading. */
struct db *store_reader(struct store *s, struct err *e);
void store_reader_back(struct store *s, struct db *d);
/* A list that grows in an arena, an item of `size` bytes at a time. */
struct store_list {
	struct arena *a;
	char *item;
	size_t size, n, room;
};
void *store_list_add(struct store_list *l);
/* Numbers of runs, the first column of each row; store_take_id expects one as self. */
struct store_ids { int64_t *id; size_t n, room; };
db_row store_take_id;

/* Runs a statement on a reader's connection. */
int store_ask(struct store *s, const char *sql, const struct db_value *v, size_t n, db_row *row,
	      void *self, struct err *e);

/* A change of flags, or a new run: passed to the index once it is durable. */
struct store_change {
	int64_t id;
	unsigned flags;
	const struct row *row; /* NULL: an existing run */
};

struct store_write {
	struct db *db;
	int64_t change;        /* the last number used */
	struct store_change *list;
	size_t n, room;
	int64_t began;         /* change when it began */
	int64_t edition;       /* of the columns when it began */
	size_t new_columns;    /* unlisted names added by this upload */
	size_t put[PUT_OUTCOMES]; /* runs, by outcome */
};

/*
 * Under write_lock, outside a transaction: replaces the index by a new one built from the store,
 * because it was full or values were rewritten.
 */
int store_index_anew(struct store *s, struct err *e);
/* Takes the lock and begins. Rows given to store_changed must live until store_write_end. */
int store_write_begin(struct store *s, struct store_write *w, struct err *e);
/* rc 0 commits and updates the index, else rolls back; returns rc, or -1. Releases the lock. */
int store_write_end(struct store *s, struct store_write *w, int rc, struct err *e);
/* Records a change; returns the number to write into `changed`. */
int64_t store_changed(struct store_write *w, int64_t id, unsigned flags, const struct row *row);
/* The same for the flags of a run in the database, as the next change. */
int store_set_flags(struct store_write *w, int64_t id, int64_t flags, struct err *e);
/* The first of n new numbers of a kind (table numbers). */
int store_number(struct store_write *w, const char *kind, size_t n, int64_t *first, struct err *e);
/* ERR_USAGE when the text is longer than bytes_max; what: "the reason". */
int store_fits(struct str text, size_t bytes_max, const char *what, struct err *e);
/* A name from outside, made valid and cut to its maximum; in out. */
struct str store_clean_name(struct buf *out, struct str name);
/* ERR_USAGE: "there is no WHAT" with that number. */
int store_has_none(const char *what, int64_t id, struct err *e);
/* ERR_USAGE if there is no such run. */
int store_is_run(struct store_write *w, int64_t id, struct err *e);
int store_tag_check(struct str tag, struct err *e);
/* is_on: sets the tag, else removes it; is_same: no change. */
int store_tag_one(struct store_write *w, int64_t run, struct str tag, struct str who, bool is_on,
		  bool *is_same, struct err *e);
/* store_exclude within a transaction, for an existing run. */
int store_exclude_one(struct store_write *w, int64_t run, struct str reason, struct str who,
		      struct err *e);

/* The digest that `check` compares with the stored one: of the document, then the arrays. */
char *store_checksum(struct str document, struct str arrays, char out[static DIGEST_HEX]);
/* run.c: within a transaction. out[n]; rows are in a until it ends. */
int store_put_runs(struct store *s, struct store_write *w, const struct read_run *run, size_t n,
		   struct str who, struct arena *a, struct put_result *out, struct err *e);

/* Writes a row of benchmark_runs. number: from columns_number. */
int store_wide_put(struct columns *c, struct db *d, int64_t id, const struct row *r,
		   const int64_t *number, struct err *e);
/* Whether benchmark_runs equals the cells: 1 same, 0 not; *what: the difference. */
int store_wide_same(const struct columns *c, struct db *d, int64_t id, const struct row *r,
		    struct arena *a, struct str *what, struct err *e);

/* traces.is_expired; left out: of the backup from which the store was restored. */
enum { TRACE_KEPT, TRACE_EXPIRED, TRACE_LEFT_OUT };

/* trace.c: within a transaction. Files that nothing else needs are also removed. */
int store_traces_forget(struct store *s, struct store_write *w, int64_t run, struct err *e);
/*
 * Expires traces from before before_s, and the oldest above bytes_max in all (0: any). *n: how
 * many.
 */
int store_traces_expire(struct store *s, struct store_write *w, double before_s, int64_t bytes_max,
			size_t *n, struct err *e);

double store_now_s(void);
