/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_files.h - finds the files of profilers that a run's document names, on this machine.
 *
 * Only for the user's own documents: files that an uploaded document names are never looked for. A
 * path is relative to the folder of the document; the members of a suite's document X.json are
 * relative to X.d, where their own documents are. Absolute paths of older documents are used
 * unchanged. A file is accepted when, with links followed, it is a regular file below that folder
 * and has the size in the document.
 */
#pragma once
#include "core/base/mem.h"

struct trace_file {
	const char *path;  /* absolute, without links */
	const char *name;  /* as in the document */
	uint64_t bytes;
	int64_t changed_ns; /* CLOCK_REALTIME */
};
struct trace_files {
	struct trace_file *file;
	size_t n;
	struct str note;   /* one sentence about those that were left out; or empty */
};

/*
 * document: the JSON of one run; place: the path of the file it was read from; folder: another one
 * whose files are accepted, such as the experiment's own; NULL: none. out is in the arena.
 */
void trace_files_find(struct str document, const char *place, const char *folder,
		      struct arena *a, struct trace_files *out);
