/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd/ingest_find.h - which files of a folder hold results.
 *
 * By name: .json, .jsonl and .ndjson, also packed (.gz, .zst). Left out is what stands beside
 * results and says nothing more: files of names that tools give to other things (servers.json,
 * warmup.json, a search's own account), runs of a sweep whose summary.json is there,
 * .pytorch.json beside its result, and the folder X.d of a document X.json. A file that is named
 * itself is always taken.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define INGEST_FOLDERS_DEPTH_MAX 32

struct found_files {
	char **path;
	size_t n, cap;
};
void found_release(struct found_files *f);
void found_add(struct found_files *f, const char *path); /* a copy */

/*
 * A folder's files, and those of the folders in it, in the order of their paths. folder (may be
 * NULL) is told each folder before its files are looked at.
 */
int found_in(const char *path, struct found_files *out,
	     int (*folder)(void *self, const char *path, struct err *e), void *self, struct err *e);
/* Whether a file of that name in that folder is one. */
bool found_is_result(const char *folder, const char *name);
