/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - persistent runs, their documents, and what users add; with the index over them.
 * `sqlite:PATH` (or a path) or `postgresql://...`; everything else is the same.
 *
 * Tables: benchmark_runs, wide, a column per parameter and metric (those that the schemas know from
 * the start, others as they come) in addition to the raw document; documents, arrays, jobs,
 * job_files, presets, annotations, exclusions, traces; every change has a number (the sequence).
 * What a call acknowledged is on disk, whatever happens next. Any thread may call anything; writes
 * take turns, also with other processes.
 *
 * Texts are valid UTF-8 without U+0000; others are ERR_USAGE.
 *
 * Names: a run's number is `id` (store), its `run_id` is the document's. The same hash again is a
 * duplicate and changes nothing. The same run_id with another hash is a conflict: both are kept,
 * the newer one is shown, the older one is its history (INDEX_SUPERSEDED).
 *
 * Errors: ERR_USAGE for the caller's mistakes (unknown id, taken name), ERR_RUN for the world's.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "results/index/index.h"
#include "results/store/read.h"

struct store;

struct store_opts {
	const char *url;          /* NULL: sqlite in $XDG_DATA_HOME/profllm/store.db */
	const char *snapshot;     /* NULL: next to the SQLite file; "" none */
	const char *traces; /* folder of trace files; NULL: next to the SQLite file, else refused */
	bool is_read_only;
	bool takes_replica;       /* read only if the server accepts no writes, else refused */
	bool has_no_index;        /* for verbs that only write or copy */
	bool must_exist;          /* no file of SQLite is made */
	bool takes_older;         /* a SQLite file with older tables, unchanged: for store_backup */
};

/* Whether the text names a kind of store that exists; opens nothing. -1: ERR_STORE_ADDRESS. */
int store_check_url(const char *url, struct err *e);
bool store_is_postgres(const char *url);
/* Creates a store that does not exist, unless it is opened read-only. */
int store_open(const struct store_opts *o, struct store **out, struct err *e);
/* Saves the snapshot if the store has one and rows have changed. */
void store_close(struct store *s);
/* The current index, which store_maintain may replace after runs were removed. */
struct index *store_index(struct store *s);
/* A view of the index, safe while other threads use the store; for index_view_release. */
struct index_view *store_view(struct store *s);
const char *store_kind(const struct store *s); /* "sqlite" or "postgresql" */
size_t store_runs(struct store *s); /* in the index, hidden ones too */
const char *store_file(const struct store *s); /* of SQLite; NULL: PostgreSQL */
bool store_is_read_only(const struct store *s); /* requested, or because it is a replica */
/*
 * Columns whose names no schema lists, and the limit on them: how full a store with an index is.
 * Does not block. used may be above max in a store of an older program.
 */
struct store_columns { size_t used, max; };
#define STORE_FULL_SHARE 0.8 /* of them: users are warned above */
void store_columns(struct store *s, struct store_columns *out);
/* Bytes on disk: the file of SQLite, all of a PostgreSQL database; without traces. */
int store_bytes(struct store *s, int64_t *bytes, struct err *e);
/*
 * Takes over what other processes have written; one cheap query if there is nothing. store_maintain
 * also removes deleted runs from memory, and saves the snapshot once enough has changed: call it
 * every few seconds. Writers do not wait for either.
 */
int store_refresh(struct store *s, struct err *e);
/*
 * Whether the contents were replaced since the store was opened, by `profllm restore` or with
 * another file, or its file was removed: what is in memory belongs to other runs than the database
 * then, and only opening the store again helps.
 */
bool store_is_replaced(const struct store *s);
int store_maintain(struct store *s, struct err *e);

/* ---- runs in ---- */

enum put_outcome { PUT_NEW, PUT_DUPLICATE, PUT_CONFLICT, PUT_INVALID, PUT_OUTCOMES };
const char *put_outcome_name(enum put_outcome o);

struct put_result {
	enum put_outcome outcome;
	int64_t id;            /* of the run, also of a duplicate */
	struct str reason;     /* invalid, conflict, a hidden duplicate: a sentence; in the arena */
};

/* All or none; durable and visible to the next view when it returns. who: the uploading user. */
int store_put(struct store *s, const struct read_run *run, size_t n, struct str who,
	      struct arena *a, struct put_result *out, struct err *e);

/* Runs that this process has put since it opened the store, by outcome. Does not block. */
void store_put_counts(struct store *s, uint64_t n[static PUT_OUTCOMES]);

/* A job is an upload of many files, or an experiment that was started; it outlives a restart. */
struct job_file {
	struct str name;
	bool is_done;
	struct put_result result;
	size_t n_runs;
};
struct job {
	struct str id;            /* 16 hex digits */
	struct str kind;          /* "upload", "run" */
	struct str state;         /* "waiting", "running", "done", "failed", "cancelled" */
	struct str detail;        /* JSON specific to its kind */
	double created_s, ended_s; /* NAN: not yet */
	size_t n_files, n_done, n_outcome[4];
	struct job_file *file;    /* store_job only */
};
int store_job_begin(struct store *s, struct str kind, struct str detail, char id[17],
		    struct err *e);
/*
 * The bytes are durable when it returns. Files wait until the job's state is "running", which the
 * caller sets after adding all. A job that has ended takes no files and stays as it ended:
 * ERR_USAGE. store_job_resume sets uploads that have waited for that long to running, because the
 * process that received them was interrupted. 0 at the start of the only server; some time if
 * another one may be receiving them.
 */
int store_job_add(struct store *s, const char *id, struct str name, struct str bytes,
		  struct err *e);
int store_job_add_all(struct store *s, const char *id, const struct str *name,
		      const struct str *bytes, size_t n, struct err *e); /* all or none */
int store_job_resume(struct store *s, double waited_s, struct err *e);
int store_job_state(struct store *s, const char *id, const char *state, struct str detail,
		    struct err *e);
/*
 * Stores the next waiting files of a running upload job (1: there may be more), or finds none (0).
 * A job without waiting files is done. A file and its outcome are one transaction.
 */
int store_job_step(struct store *s, struct err *e);
/* When the job has ended, its runs are in the index. */
int store_job(struct store *s, const char *id, struct arena *a, struct job *out, struct err *e);
int store_jobs(struct store *s, size_t limit, struct arena *a, struct job **out, size_t *n,
	       struct err *e);
/* How many of the latest jobs are of each kind and state. One cheap query. */
#define STORE_JOB_COUNTS_MAX 16
struct job_count { char kind[16], state[16]; size_t n; };
int store_job_counts(struct store *s, struct job_count out[STORE_JOB_COUNTS_MAX], size_t *n,
		     struct err *e);

/* ---- one run ---- */

struct run_whole {
	int64_t id;
	struct str run_id, kind, hash, who, document;
	unsigned flags;
	double received_s;
	bool has_arrays;
	int64_t *version;  /* ids of the same run_id, newest first, including this one */
	size_t n_versions;
};
int store_run(struct store *s, int64_t id, struct arena *a, struct run_whole *out, struct err *e);
int store_run_arrays(struct store *s, int64_t id, struct buf *out, struct err *e);
/* 0: none. */
#define STORE_RUN_ID_BYTES_MAX 512
int64_t store_find(struct store *s, struct str run_id);

/* ---- what users add ---- */

struct annotation { int64_t id, run; struct str text, who; double at_s; };
int store_annotate(struct store *s, int64_t run, struct str text, struct str who, int64_t *id,
		   struct err *e);
int store_annotation_drop(struct store *s, int64_t id, struct err *e);
int store_annotations(struct store *s, int64_t run, struct arena *a, struct annotation **out,
		      size_t *n, struct err *e);
/* An empty reason cancels the exclusion. History stays. */
int store_exclude(struct store *s, int64_t run, struct str reason, struct str who, struct err *e);
struct exclusion { struct str reason, who; double at_s; bool is_over; };
int store_exclusions(struct store *s, int64_t run, struct arena *a, struct exclusion **out,
		     size_t *n, struct err *e);

/* Tags that users put on runs; set and removed by store_bulk. run 0: of all runs, by tag. */
#define STORE_TAGS_MAX 1000     /* different ones */
#define STORE_TAG_BYTES_MAX 64
struct run_tag { int64_t run; struct str tag, who; double at_s; };
int store_tags(struct store *s, int64_t run, struct arena *a, struct run_tag **out, size_t *n,
	       struct err *e);
/* run_id of the runs that have the tag, each once. */
int store_tagged(struct store *s, struct str tag, struct arena *a, struct str **out, size_t *n,
		 struct err *e);

/*
 * The same for many runs, in one transaction: all or none. text is the reason of an exclusion, or
 * the tag. Runs that are unchanged by it, and numbers without a run, are skipped and counted.
 */
#define STORE_BULK_MAX 10000
enum bulk_action { BULK_EXCLUDE, BULK_INCLUDE, BULK_DELETE, BULK_TAG, BULK_UNTAG };
struct bulk_result { size_t n_changed, n_same, n_missing; };
int store_bulk(struct store *s, enum bulk_action what, const int64_t *id, size_t n, struct str text,
	       struct str who, struct bulk_result *out, struct err *e);

/*
 * What users save by name. kind: a word such as "preset" (a saved view) or "board", also used in
 * messages; a name is unique among those of its kind.
 */
#define PRESET_BYTES_MAX (1u << 20)
struct preset { int64_t id; struct str name, body; double at_s; }; /* body: JSON */
/*
 * Saves p. With id 0 it is new; otherwise an empty name or body leaves the stored one unchanged.
 * If was_s is not NAN, only the version whose at_s equals it is replaced. Sets p's id and at_s.
 * ERR_USAGE: the name is taken, the id is unknown, or someone else has saved a version since was_s;
 * in that last case p->at_s is set to the time of their version.
 */
int store_preset_put(struct store *s, const char *kind, struct preset *p, double was_s,
		     struct err *e);
int store_preset_drop(struct store *s, const char *kind, int64_t id, struct err *e);
int store_presets(struct store *s, const char *kind, struct arena *a, struct preset **out,
		  size_t *n, struct err *e);

/*
 * Marks on a trend: an expected change, or one that a user has reviewed. metric is empty in marks
 * from before they named one.
 */
struct change_mark { int64_t id; struct str series, metric, at, kind, text, who; double at_s; };
int store_mark_put(struct store *s, const struct change_mark *m, int64_t *id, struct err *e);
int store_mark_drop(struct store *s, int64_t id, struct err *e);
int store_marks(struct store *s, struct arena *a, struct change_mark **out, size_t *n,
		struct err *e);

/* ---- traces: files by their content, stored outside the database ---- */

struct trace {
	int64_t id, run;         /* run 0: none yet */
	/* state: "here", "missing", "expired", or "left_out" of the backup that was restored */
	struct str name, hash, model, commit, state;
	int64_t bytes;
	double at_s;
};
/* Copies the file by its hash; the same content is kept once. */
int store_trace_put(struct store *s, int64_t run, struct str name, const char *path, int64_t *id,
		    struct err *e);
/*
 * The same for a file that comes with its run. If the run has it already, or its file expired,
 * nothing changes (*is_new false), because the user did not ask for it.
 */
int store_trace_take(struct store *s, int64_t run, struct str name, const char *path, bool *is_new,
		     struct err *e);
int store_traces(struct store *s, int64_t run, struct arena *a, struct trace **out, size_t *n,
		 struct err *e); /* run 0: all */
/* A descriptor to read from, for close(). */
int store_trace_open(struct store *s, int64_t id, struct arena *a, struct trace *out,
		     struct err *e);
int store_trace_drop(struct store *s, int64_t id, struct err *e);

/* ---- maintenance ---- */

/* What to do about a store that is damaged. */
#define STORE_REMEDY_BACKUP "`profllm restore BACKUP --store STORE --force` puts a backup in its place"
#define STORE_REMEDY STORE_REMEDY_BACKUP "; without one, `sqlite3 STORE .recover` saves what can " \
		     "still be read"

/* Writes one file, while the store is in use. Files of traces are not in it, and it says so. */
int store_backup(struct store *s, const char *path, struct err *e);
/* aside: receives the name that a file has now which had to be replaced, if there was one. */
int store_restore(const char *url, const char *path, bool is_forced, struct buf *aside,
		  struct err *e);
/* Sentences about damage found; *n 0: none. */
int store_check(struct store *s, struct arena *a, struct str **finding, size_t *n, struct err *e);
/*
 * Drops the columns that no run has any more, adds columns for values that are only in their
 * documents, as far as there is now room, and rebuilds benchmark_runs if that gives columns to
 * values in its `rest`.
 */
struct repaired {
	size_t n_columns;        /* dropped */
	size_t n_runs, n_values; /* that got columns */
	size_t n_left;           /* values still only in their documents */
	bool is_table_new;
};
int store_repair(struct store *s, struct repaired *out, struct err *e);
/*
 * Runs that match are archived (hidden, kept), or removed for good with documents and arrays. Many
 * are changed in several transactions, between which other writers get their turn: after an error
 * *n says how many were changed, and the same call continues with the rest. store_remove and
 * store_retain also drop columns that no run has any more; an archived run keeps its own.
 */
int store_archive(struct store *s, const struct filter *f, bool is_archived, size_t *n,
		  struct err *e);
int store_remove(struct store *s, const struct filter *f, size_t *n, struct err *e);
struct retention {
	double archive_days, remove_days, trace_days;
	double drop_days; /* partitions of PostgreSQL, by when their runs were received */
	int64_t trace_bytes;
}; /* 0: none */
/*
 * By age (when a run ran; if that is unknown or before 2000, when it was received): older runs are
 * archived, older archived ones removed; older files of traces, and the oldest beyond that many
 * bytes, expire. A partition whose runs were all received earlier than drop_days ago is dropped
 * with them, archived or not, except for the newest one; ERR_USAGE on SQLite. In several
 * transactions, like store_archive.
 */
int store_retain(struct store *s, const struct retention *r, struct buf *told, struct err *e);
