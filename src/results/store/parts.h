/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - what the files of store/ share behind store.h.
 *
 * One connection writes, under write_lock; any number of others read, each lent to one thread at a
 * time. Every change of a run or of its flags takes the next number of `change`. The index, and
 * the list of columns, stand at `sequence`; a transaction first takes over what other processes
 * have changed since, then changes, commits, and gives the index what it did.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "results/store/columns.h"
#include "results/store/store.h"

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
	bool is_index_bad;        /* under write_lock: it must be made anew */
	struct index *index;      /* NULL: has_no_index; set under write_lock and index_lock */
	struct columns columns;   /* under write_lock */
	int64_t sequence;         /* under write_lock */
	int64_t saved;            /* sequence of the snapshot; under keep_lock, as are the rest */
	int64_t saved_ns;         /* CLOCK_MONOTONIC */
	int64_t save_not_before_ns, cleaned_ns;
};

/* Under write_lock: ERR_NET while a server that hung is left alone. */
int store_may_ask(struct store *s, struct err *e);
/* A connection to read from, until it is given back. */
struct db *store_reader(struct store *s, struct err *e);
void store_reader_back(struct store *s, struct db *d);
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
};

/*
 * In a transaction, under write_lock: index and columns take over what others did. *change: the
 * last.
 */
int store_follow(struct store *s, struct db *d, int64_t *change, struct err *e);
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
/* The first of n new numbers of a kind (table numbers). */
int store_number(struct store_write *w, const char *kind, size_t n, int64_t *first, struct err *e);
/* ERR_USAGE when the text is longer than that; what: "the reason". */
int store_fits(struct str text, size_t bytes_max, const char *what, struct err *e);
/* A name from outside, made valid and cut where it is too long; in out. */
struct str store_clean_name(struct buf *out, struct str name);
/* ERR_USAGE when there is no such run. */
int store_is_run(struct store_write *w, int64_t id, struct err *e);

/* put.c: within a transaction. out[n]; rows lie in a until it ends. */
int store_put_runs(struct store *s, struct store_write *w, const struct read_run *run, size_t n,
		   struct str who, struct arena *a, struct put_result *out, struct err *e);
/* repair.c: gives back the columns that no run has any more. *n: how many. */
int store_columns_give_back(struct store *s, size_t *n, struct err *e);

/* wide.c: a row of benchmark_runs. number: of columns_number. */
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
