/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hub.h - files of models and datasets from the Hugging Face hub, through its cache.
 *
 * The cache is the one that huggingface_hub keeps, in the same layout, so that each finds what the
 * other downloaded:
 *
 *   models--org--name/refs/REVISION           the commit of a branch or tag
 *   models--org--name/blobs/ETAG              a file's bytes
 *   models--org--name/snapshots/COMMIT/FILE   -> ../../blobs/ETAG
 *   models--org--name/.no_exist/COMMIT/FILE   known to be missing
 *   .locks/models--org--name/ETAG.lock        held (flock) while ETAG is downloaded
 *
 * A blob is downloaded as ETAG.incomplete, continued where an earlier download stopped, compared
 * with the size and the hash that the hub announced and only then renamed. A link appears after its
 * blob, a ref after the file that was asked for.
 *
 * The environment is read as huggingface_hub reads it: HF_ENDPOINT; HF_HUB_CACHE,
 * HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME; HF_TOKEN, HUGGING_FACE_HUB_TOKEN, the file
 * HF_TOKEN_PATH or HF_HOME/token, unless HF_HUB_DISABLE_IMPLICIT_TOKEN; HF_HUB_OFFLINE,
 * TRANSFORMERS_OFFLINE; HF_HUB_ETAG_TIMEOUT, HF_HUB_DOWNLOAD_TIMEOUT (seconds). The token is sent
 * to the hub's own scheme, host and port only.
 *
 * Threads and processes may do all of this at the same time. Not here: uploads, Xet.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

enum hub_kind { HUB_MODEL, HUB_DATASET };

/* Zeroed: a model at "main", everything else from the environment. */
struct hub_opts {
	enum hub_kind kind;
	const char *revision;      /* branch, tag or commit of 40 digits; NULL: "main" */
	const char *cache_dir;     /* the directory that holds models--...; NULL: environment */
	const char *token;         /* NULL: environment */
	bool is_offline;           /* no requests, as with HF_HUB_OFFLINE=1 */
	int64_t file_bytes_max;    /* 0: HUB_FILE_BYTES_MAX */
	const atomic_bool *cancel; /* set: ends within a second or so with ERR_CANCELLED */
	/* Progress of a file above 1 MB: bytes done, and total; may be NULL. */
	void (*progress)(void *self, const char *file, int64_t done, int64_t total);
	/* A sentence for people: the hub does not answer, the cache is used; may be NULL. */
	void (*note)(void *self, const char *text);
	void *self;
};

/* Returned by hub_file when the repository exists but has no such file (e says so, too). */
#define HUB_NO_FILE 1

/*
 * The path of a file in the cache, downloaded first where needed; path is replaced. A commit's
 * cached file needs no request; a branch or tag costs one HEAD. When the hub cannot be reached or
 * refuses, a file of the commit last seen is used, with a note. 0, HUB_NO_FILE, or -1: ERR_NET (the
 * hub), ERR_IO (missing, not allowed, the disk), ...
 */
int hub_file(const struct hub_opts *o, const char *repo, const char *file, struct buf *path,
	struct err *e);

/* The files of a repository at a revision. Zeroed is a valid empty one. */
struct hub_list {
	struct arena arena;
	const char *commit;
	const char **file; /* paths in the repository, in no order */
	size_t count;
	bool is_cached;    /* only what the cache has: the hub was not asked or did not answer */
};
int hub_list(const struct hub_opts *o, const char *repo, struct hub_list *list, struct err *e);
void hub_list_release(struct hub_list *list);

/*
 * After a list's files were downloaded by its commit: from now on o->revision is that commit in the
 * cache, and the files named in absent (NULL-terminated) are known to be missing. Write errors are
 * ignored, as in a read-only cache.
 */
void hub_remember(const struct hub_opts *o, const char *repo, const struct hub_list *list,
	const char *const *absent);

/* "name" or "org/name" as the hub allows it. */
bool hub_is_repo(const char *name);
bool hub_is_commit(const char *revision); /* 40 hexadecimal digits */
