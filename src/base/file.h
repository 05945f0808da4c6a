/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - whole files in, whole files out, nothing half written.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Reads a regular file; at most limit bytes. The error names the path and the reason. */
int file_read(const char *path, size_t limit, struct buf *out, struct err *e);

/* Temp file beside it, write, fsync, rename, fsync of the directory. */
int file_write_atomic(const char *path, struct str bytes, struct err *e);

/* Creates path and its parents like mkdir -p. */
int file_mkdirs(const char *path, struct err *e);
bool file_exists(const char *path);
bool file_is_dir(const char *path);

/* "dir/name", or name alone when dir is NULL or empty or name is absolute. Caller frees. */
char *file_join(const char *dir, const char *name);

/* A read-only mapping; munmap-ed by file_unmap. Empty files give p = "". */
int file_map(const char *path, struct str *out, struct err *e);
void file_unmap(struct str bytes);
