/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub_parts.h - what the files of the hub client share: settings and the cache.
 *
 * hub_env.c reads the environment, hub_cache.c knows the layout on disk, hub_hash.c what an
 * ETag says of a file, hub.c the requests.
 */
#pragma once
#include "input/fetch/hub.h"

/* One repository at one revision: the caller's options and what the environment adds. */
struct hub {
	const struct hub_opts *o;
	const char *repo, *revision;
	struct buf endpoint;       /* without a slash at the end */
	struct buf cache;          /* the directory that holds all repositories */
	struct buf dir;            /* this one's in it */
	struct buf authorization;  /* empty: no token */
	bool is_offline;
	int64_t etag_timeout_ms, download_timeout_ms;
};

/* Borrows its arguments. -1: a name, revision or variable that cannot be used. */
int hub_begin(struct hub *h, const struct hub_opts *o, const char *repo, struct err *e);
void hub_end(struct hub *h);

/* ---- hub_cache.c ---- */

/* Relative, and neither "." nor ".." nor an empty name on the way; no control characters. */
bool hub_is_safe_path(const char *path);
/* The commit that the cache knows for h->revision; a commit stands for itself. */
bool hub_cached_commit(const struct hub *h, struct buf *commit);
bool hub_cached_file(const struct hub *h, const char *commit, const char *file, struct buf *path);
bool hub_is_absent(const struct hub *h, const char *commit, const char *file);
/* What the cache has of a commit; -1 with ERR_LIMIT only. */
int hub_cached_list(const struct hub *h, const char *commit, struct hub_list *list, struct err *e);

/* Both do nothing where the cache cannot be written. */
void hub_put_ref(const struct hub *h, const char *commit);
void hub_put_absent(const struct hub *h, const char *commit, const char *file);

/* Waits for the lock of a blob, which is h's directory and an ETag; -1 or a descriptor to close. */
int hub_lock(const struct hub *h, const char *etag, struct err *e);
void hub_blob_path(const struct hub *h, const char *etag, const char *suffix, struct buf *path);
/* snapshots/commit/file -> the blob; path is replaced by it. */
int hub_link(const struct hub *h, const char *commit, const char *file, const char *etag,
	struct buf *path, struct err *e);
/* A name in a list's arena; -1 past HUB_FILES_MAX. */
int hub_list_add(struct hub_list *list, struct str name, struct err *e);

/* ---- hub_hash.c ---- */

/* Compares a file's bytes with an ETag that is a hash of them (SHA-256, git's id or SHA-1). */
int hub_check(const char *path, const char *etag, struct err *e);
