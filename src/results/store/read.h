/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - converts an uploaded file to the runs in it. Pure.
 *
 * Kinds (store/kinds.h has a row of each): documents and suites of `profllm run`, results of `bench
 * serve`, throughput, latency and startup (ours and vLLM's), .pytorch.json, the
 * benchmark_results.json of vLLM's nightlies, a sweep's summary, and JSON lines of any of them;
 * results of other tools (store/kinds_foreign.c), LoadGen's logs of MLPerf as text. A kind is
 * recognized by the file's content, never by its name.
 *
 * Hostile bytes: at most INGEST_BYTES_MAX, JSON_DEPTH_MAX deep, INGEST_CELLS_MAX cells a run,
 * INGEST_RUNS_MAX runs a file; invalid UTF-8, a NaN where a number is required, a wrong type of an
 * essential key: -1 and one sentence with the place. Infinity and "inf" are infinite.
 *
 * A value that a column of the schemas cannot have (known.h: a negative rate, a text for a count, a
 * NaN) does not become a cell: a note and the cell "left_out" name it; the document keeps it. A
 * setting's text is parsed ("8" is 8). Any other NaN is null.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "results/index/row.h"
#include "results/read/files.h"

#define INGEST_CELLS_MAX 4000
#define INGEST_RUNS_MAX 100000
#define INGEST_TEXT_BYTES_MAX 4096 /* of a cell; longer ones are cut, but not in the document */
#define READ_FUTURE_S 86400        /* time zones differ by less: a time beyond it is noted */

/* How the message of ERR_RUN begins: for callers that only get the text. */
#define READ_NOTHING_KNOWN "no result that is known"
#define READ_NOT_ENDED "the run has not ended"

struct read_run {
	struct row row;        /* id 0 */
	struct str run_id;     /* the document's own; else from its content: "sha256:", 16 digits */
	struct str kind;       /* "profllm", "serve", "throughput" ... */
	struct str hash;       /* SHA-256 of its canonical document, arrays included, in hex */
	struct str document;   /* its JSON without per-request arrays */
	struct str arrays;     /* {"ttfts": [...], ...}: per-request arrays; empty: none */
	double timestamp_s;    /* when it ran; NAN: unknown */
};

struct read_file {
	struct read_run *run;
	size_t n;
	struct str *note; /* things left out or doubtful, a sentence each */
	size_t n_notes;
};

/*
 * name (may be empty) is the file's name: for suite names and sides of a sweep's folders. Bytes
 * packed by gzip or zstd are unpacked, to INGEST_BYTES_MAX at most. Texts of out are in a or
 * borrowed from bytes. ERR_RUN: JSON, but of no known kind; other errors: what is wrong, and where.
 */
int read_document(struct str name, struct str bytes, struct arena *a, struct read_file *out,
		  struct err *e);

