/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub_internal.h - what the files of the hub client share: settings and the cache.
 *
 * hub_env.c reads the environment, hub.c knows the cache and makes the requests.
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

/* Relative, and neither "." nor ".." nor an empty name on the way; no control characters. */
bool hub_is_safe_path(const char *path);
/* Compares a file's bytes with an ETag that is a hash of them (SHA-256, git's id or SHA-1). */
int hub_check(const char *path, const char *etag, struct err *e);
/* Waits for the lock of a blob, which is h's directory and an ETag; -1 or a descriptor to close. */
int hub_lock(const struct hub *h, const char *etag, struct err *e);
