/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - what the files of `profllm ingest` share: where runs go, and what is said.
 *
 * Files are taken in the order they come, some at a time: what has been told is kept.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/opt/opt.h"
#include "input/fetch/dashboard.h"
#include "results/store/store.h"

struct ingest_opts {
	struct opt_list paths;
	const char *store, *traces_dir, *server, *token_file, *trace, *run;
	bool is_watching, is_json, no_traces;
};

/* What came of a run, or of a file without any; skipped: JSON of a folder that is no result. */
enum { INGEST_SKIPPED = PUT_INVALID + 1, INGEST_OUTCOMES };

/* traces: how many of those that its document names came along. */
struct ingest_run { struct str run_id, reason; int64_t id; int outcome; size_t traces; };

/* A sentence about files, said once for all of them. */
struct ingest_note { char *text, *path; size_t files, runs; }; /* path: the first file */

struct ingest {
	const struct ingest_opts *o;
	struct store *store;                /* NULL: a dashboard takes them */
	struct dashboard dashboard;         /* where there is no store */
	struct batch *batch;                /* files that are read and not yet kept */
	size_t files, files_of[INGEST_OUTCOMES], runs;
	int64_t last_id;                    /* of the last run that was kept or was there */
	bool is_bar;                        /* progress is drawn on stderr */
	int64_t shown_ns;                   /* when it last was */
	struct ingest_note *note;
	size_t n_notes;
	struct buf line;
};

/*
 * A file. is_found: it comes from a folder, so that one which holds no result is skipped. -1: the
 * store or the dashboard fails; what is wrong with the file itself is told and counted.
 */
int ingest_file(struct ingest *g, const char *path, bool is_found, struct err *e);
/* What is read is kept, and told. */
int ingest_flush(struct ingest *g, struct err *e);
/* A file, or a folder's. */
int ingest_path(struct ingest *g, const char *path, struct err *e);
void ingest_tell(struct ingest *g, const char *path, const struct ingest_run *run, size_t n,
		 const struct str *note, size_t n_notes);

/* A note about one of a file's n runs: it names the run where there are several. */
struct str ingest_run_note(struct arena *a, const struct ingest_run *run, size_t n,
			   struct str note);

/* ingest_send.c: to a dashboard. */
int ingest_send(struct ingest *g, const char *path, struct str bytes, bool is_found,
		struct err *e);
int ingest_send_trace(struct ingest *g, const char *path, const char *run, struct err *e);

/* ingest_watch.c: what is there, then what comes, until a signal. */
int ingest_watch(struct ingest *g, struct err *e);
