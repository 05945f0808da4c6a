/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_tell.h - prints the progress of `profllm ingest` and the outcome of each file, as a line
 * or a line of JSON; doubts about files are printed once for all of them, at the end.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/opt/opt.h"
#include "input/fetch/dashboard.h"
#include "results/store/store.h"

struct ingest_opts {
	struct opt_list paths;
	const char *store, *traces_dir, *server, *token_file, *trace, *run;
	bool is_watching, is_json, no_traces;
};

/* Outcome of a run, or of a file without any; skipped: JSON in a folder that is not a result. */
enum { INGEST_SKIPPED = PUT_INVALID + 1, INGEST_OUTCOMES };

/* traces: how many of the traces named by its document were stored. */
struct ingest_run { struct str run_id, reason; int64_t id; int outcome; size_t traces; };

/* A note about files, printed once for all of them. */
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
	/* For a file that is read in pieces. */
	char part[64];                      /* "lines 1 to 20"; "": a whole file */
	bool has_part[INGEST_OUTCOMES];     /* outcomes of its pieces */
};

/*
 * Reports a finished file: its runs (n, at least one) and its notes, once it is stored or refused.
 */
void ingest_tell(struct ingest *g, const char *path, const struct ingest_run *run, size_t n,
		 const struct str *note, size_t n_notes);
/* Reports a file without a run. is_found: in a folder, where other JSON is skipped. */
void ingest_tell_wrong(struct ingest *g, const char *path, bool is_found, const struct err *why);
/* Ends a file that was reported in pieces: it counts once, with the worst outcome among them. */
void ingest_tell_parts(struct ingest *g);
/* Prints the totals at the end. */
void ingest_tell_all(struct ingest *g);
void ingest_say_notes(struct ingest *g);
void ingest_bar_clear(struct ingest *g);
