/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - finds the files that hold results, in one walk through folders.
 *
 * By name: .json, .jsonl and .ndjson, also packed (.gz, .zst), and the logs of MLPerf's LoadGen, of
 * which the detailed one is preferred. Files that tools write next to results are left out:
 * servers.json, warmup.json, capacity.json, failures, traces, a search's own report (SLA-*,
 * *_sla_summary.json), a sweep's runs next to its summary.json, .pytorch.json next to its result,
 * and the table of a folder of vLLM's performance suite. So is the folder X.d of a document X.json.
 * A file that a user names is always read.
 *
 * Names that start with a dot are skipped. Links to folders are not followed: they may form cycles.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

#define INGEST_BYTES_MAX (64u << 20)
#define RESULT_FOLDERS_DEPTH_MAX 32

#define RESULT_SERVERS "servers.json" /* every start of a server, in the folder of an experiment */
#define RESULT_CAPACITY "capacity.json" /* results of the searches of a sweep */
#define RESULT_NIGHTLY_TABLE "benchmark_results.json" /* of vLLM's suite: repeats its results */
#define RESULT_MLPERF_DETAIL "mlperf_log_detail.txt"
#define RESULT_MLPERF_SUMMARY "mlperf_log_summary.txt"
#define RESULT_SUMMARY "summary.json" /* the records of a sweep's combination */

struct result_files {
	char **path; /* in the order of the paths */
	size_t n, cap;
};
void result_files_release(struct result_files *f);
void result_files_add(struct result_files *f, const char *path); /* a copy */

enum result_choice {
	RESULT_FILES_ALL,       /* every result in the folder and below it */
	RESULT_FILES_SUMMARIES, /* every summary.json in the folder and below it */
	RESULT_FILES_OWN,       /* results in the folder itself */
	RESULT_FILES_OWN_JSON,  /* the same, and JSON files that are not results */
};

/*
 * Adds the files of a folder. entered (may be NULL) is called for each folder before its files are
 * read. ERR_IO: a folder cannot be read; ERR_LIMIT: deeper than RESULT_FOLDERS_DEPTH_MAX.
 */
int result_files_find(const char *folder, enum result_choice choice, struct result_files *out,
		      int (*entered)(void *self, const char *folder, struct err *e), void *self,
		      struct err *e);
/* The files of a folder given as one operand: the summaries below it, else its own results. */
int result_files_of(const char *folder, struct result_files *out, bool *is_sweep, struct err *e);

/* Whether a file of that name in that folder is a result. */
bool result_file_is(const char *folder, const char *name);
/* The name of a path without folders, "a.json" of "x/a.json"; never NULL. */
const char *result_file_name(const char *path);
/* "a" of "a.json" and "a.json.gz". */
struct str result_file_stem(const char *name);
