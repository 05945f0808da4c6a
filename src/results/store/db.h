/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db.h - a connection to SQLite or PostgreSQL: statements in, rows out. Private to store/.
 *
 * The SQL is one for both. Parameters are $1, $2 ... and appear in that order for the first time.
 * What differs is said by words in braces, which db_run leaves alone and db_words replaces:
 * {int} {real} {blob}. A statement whose text was seen before is not parsed again.
 *
 * One thread uses a connection at a time. A PostgreSQL connection that broke is made again once,
 * when the statement that noticed it stands outside a transaction.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/str.h"

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

/* Told each row. What v points to is gone afterwards. 0: go on, 1: enough, -1: break off with e. */
typedef int db_row(void *self, const struct db_value *v, size_t n, struct err *e);

enum db_begin { DB_WRITE, DB_READ }; /* writers wait for each other; readers see one moment */

struct db;
struct db_hooks {
	const char *name;
	const char *begin[2][3]; /* statements, by enum db_begin */
	const char *word[3];     /* what {int}, {real} and {blob} are */
	int (*open)(const char *place, bool is_read_only, struct db **out, struct err *e);
	void (*close)(struct db *d);
	int (*run)(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
		   void *self, struct err *e);
	int (*copy)(struct db *d, const char *path,
		    struct err *e); /* NULL: table by table instead */
	const char *integrity; /* a statement whose rows other than "ok" are complaints; NULL: none */
};
extern const struct db_hooks db_sqlite, db_postgres;

struct db {
	const struct db_hooks *hooks;
	bool is_inside; /* a transaction */
	int64_t rest_until_ns; /* CLOCK_MONOTONIC: its server hung and is not asked before */
};

/*
 * "postgresql:..." and "postgres:..." go to PostgreSQL, "sqlite:PATH" and a path to SQLite; place is
 * what open gets. NULL (ERR_USAGE): it begins like the address of something else.
 */
const struct db_hooks *db_hooks_of(const char *url, const char **place, struct err *e);

/* row NULL: rows are of no interest. */
int db_run(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
	   void *self, struct err *e);
/* The first column of the first row; otherwise when there is no row, or it is null. */
int db_integer(struct db *d, const char *sql, const struct db_value *v, size_t n,
	       int64_t otherwise, int64_t *out, struct err *e);
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
