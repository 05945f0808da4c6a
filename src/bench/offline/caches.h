/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caches.h - what an engine would reuse from its previous start, removed: its compilation caches,
 * and its model's files in the kernel's page cache.
 */
#pragma once
#include <stdint.h>

#include "core/base/err.h"

/* Empty folders for vLLM's, inductor's and Triton's caches. Zeroed is a valid one without any. */
struct caches {
	char *vllm, *inductor;
	char *env[4];        /* "NAME=VALUE", ended by NULL */
};
/*
 * The folders are below $TMPDIR (default /tmp). vLLM's is named vllm_startup_bench_cold_* as
 * upstream's; Triton's is a folder in inductor's, where inductor expects it.
 */
int caches_new(struct caches *c, struct err *e);
/* Removes the folders with their content. -1: some of it could not be removed. */
int caches_remove(struct caches *c, struct err *e);

/* Bytes of a model's files. */
struct cached_pages { int64_t files, dropped, left; };
/*
 * Drops a model's files from the page cache. model is a folder, a file, or a name whose files are
 * in the hub's cache. Pages that are mapped or not written yet stay. -1: there are no such files.
 */
int pages_drop(const char *model, struct cached_pages *out, struct err *e);
