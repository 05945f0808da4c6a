/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - reads and writes whole files; a file being replaced is never visible half written. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/str.h"

/*
 * Adds a regular file or a pipe to out; at most limit bytes. The error names the path and the
 * reason, and leaves out as it was.
 *
 * A pipe is copied into a nameless file first (PIPE_BYTES_MAX), here and in file_map. Where the
 * path names one of our descriptors (/dev/stdin, and /dev/fd/63 that a shell writes for <(...)),
 * the copy takes the place of that descriptor, so that the same path can be read again.
 */
int file_read(const char *path, size_t limit, struct buf *out, struct err *e);

/*
 * A file that is being replaced: the new content is written to a file without a name or with a
 * temporary one, which is renamed over the old file at the end. Of a symbolic link the target is
 * replaced; a device or a pipe is written in place. Both functions return -1 with errno.
 */
struct file_swap {
	int fd;
	char *path, *temp; /* temp NULL: written in place */
	bool is_nameless;  /* temp is the name it gets at the end */
};
int file_swap_begin(struct file_swap *s, const char *path);
/* The new file has this mode from its first byte on, whatever the umask; 0: mode by the umask. */
int file_swap_begin_mode(struct file_swap *s, const char *path, mode_t mode);
/* is_good: keep what was written (fsync, rename, fsync of the directory); else drop it. */
int file_swap_end(struct file_swap *s, bool is_good);

/* Writes all bytes to a descriptor, with as many calls as it takes. -1 with errno. */
int file_write_all(int fd, struct str bytes);

/* fsync of the folder that holds path, so that a new name in it survives a crash. */
void file_sync_folder_of(const char *path);

/* Replaces the whole file through file_swap. */
int file_write_atomic(const char *path, struct str bytes, struct err *e);

int file_write_atomic_mode(const char *path, struct str bytes, mode_t mode, struct err *e);

/* Creates path and its parents like mkdir -p. */
int file_mkdirs(const char *path, struct err *e);
/* As file_mkdirs; new folders get at most these permissions, less the umask. */
int file_mkdirs_mode(const char *path, mode_t mode, struct err *e);
bool file_exists(const char *path);
/* True for a pipe and for one of our descriptors (/dev/fd/N), whose name says nothing. */
bool file_is_stream(const char *path);
bool file_is_dir(const char *path);
/* Bytes that users other than root may still write to the disk of this path; -1: not known. */
int64_t file_free_bytes(const char *path);

/* "dir/name", or name alone when dir is NULL or empty or name is absolute. Caller frees. */
char *file_join(const char *dir, const char *name);
/* The path of a file called name in the same folder as path. Caller frees. */
char *file_beside(const char *path, const char *name);

/*
 * Opens a file without a name in $TMPDIR (default /tmp), deleted when it is closed; *folder, if not
 * NULL, receives the folder. -1 with errno.
 */
int file_unnamed(const char **folder);

/* A read-only mapping; munmap-ed by file_unmap. Empty files give p = "". */
int file_map(const char *path, struct str *out, struct err *e);
void file_unmap(struct str bytes);
/*
 * Loads a file into memory if only our own user can have written it: a regular file (no link) that
 * our user owns and no one else may write, checked on the open descriptor. Release the copy with
 * file_unmap. -1 without an error when the file is missing or fails the check.
 */
int file_load_own(const char *path, struct str *out);

/* Frees the memory of part of a mapping; its pages are read again when touched. */
void file_forget(struct str part);
