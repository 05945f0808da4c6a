/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - whole files in, whole files out, nothing half written.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/str.h"

/*
 * Reads a regular file or a pipe; at most limit bytes. The error names the path and the reason.
 *
 * A pipe is copied into a nameless file first (PIPE_BYTES_MAX), here and in file_map. Where the
 * path names one of our descriptors (/dev/stdin, and /dev/fd/63 that a shell writes for <(...)),
 * the copy takes the place of that descriptor, so that the same path can be read again.
 */
int file_read(const char *path, size_t limit, struct buf *out, struct err *e);

/*
 * A file that is being replaced: written without a name, or under another one next to it, and
 * renamed over it at the end, so that a reader sees the old file or the whole new one. The
 * target of a symbolic link is replaced, not the link; a device or a pipe cannot
 * be replaced and is written to as it is. Both return -1 with errno.
 */
struct file_swap {
	int fd;
	char *path, *temp; /* temp NULL: written in place */
	bool is_nameless;  /* temp is a name that it gets at the end */
};
int file_swap_begin(struct file_swap *s, const char *path);
/* With these permissions from its first byte on, whatever the umask; 0: those of the umask. */
int file_swap_begin_mode(struct file_swap *s, const char *path, mode_t mode);
/* is_good: keep what was written (fsync, rename, fsync of the directory); else drop it. */
int file_swap_end(struct file_swap *s, bool is_good);

/* Every byte to a descriptor, however often it takes. -1 with errno. */
int file_write_all(int fd, struct str bytes);

/* Makes a new name in the folder that path lies in last. */
void file_sync_folder_of(const char *path);

/* The whole file by a swap. */
int file_write_atomic(const char *path, struct str bytes, struct err *e);

int file_write_atomic_mode(const char *path, struct str bytes, mode_t mode, struct err *e);

/* Creates path and its parents like mkdir -p. */
int file_mkdirs(const char *path, struct err *e);
/* Those that are new with these permissions at most; the umask may take more away. */
int file_mkdirs_mode(const char *path, mode_t mode, struct err *e);
bool file_exists(const char *path);
/* A pipe or one of our descriptors, whose name does not say what is in it. */
bool file_is_stream(const char *path);
bool file_is_dir(const char *path);

/* "dir/name", or name alone when dir is NULL or empty or name is absolute. Caller frees. */
char *file_join(const char *dir, const char *name);
/* The file called name in the directory that path lies in. Caller frees. */
char *file_beside(const char *path, const char *name);

/*
 * A file without a name in $TMPDIR (default /tmp), gone with its descriptor; folder, if not NULL,
 * receives where. -1 with errno.
 */
int file_unnamed(const char **folder);

/* A read-only mapping; munmap-ed by file_unmap. Empty files give p = "". */
int file_map(const char *path, struct str *out, struct err *e);
void file_unmap(struct str bytes);
/*
 * A file that only we can have written, as a copy in memory that nobody's changes reach; released
 * by file_unmap. It is judged by its descriptor: a regular file, not a link, of our own user, that
 * nobody else may write. -1 without an error when it is not there or not that.
 */
int file_load_own(const char *path, struct str *out);

/* Gives back the memory of a part of a mapping; its pages are read again when touched. */
void file_forget(struct str part);
