/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caches.h - what a start of an engine finds from the start before, taken away: its
 * compilation caches, and its model's files in the kernel's page cache.
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
 * Below $TMPDIR (default /tmp); vLLM's is called as upstream's: vllm_startup_bench_cold_*.
 * Triton's is a folder in inductor's, as inductor wants it.
 */
int caches_new(struct caches *c, struct err *e);
/* Removes them with all that is in them. -1: something of it is left. */
int caches_remove(struct caches *c, struct err *e);

/* Of the files of a model, bytes. */
struct cached_pages { int64_t files, dropped, left; };
/*
 * Takes a model's files out of the page cache: model is a folder, a file, or a name whose files
 * lie in the hub's cache. What somebody has mapped or has not written yet stays. -1: there are
 * no such files.
 */
int pages_drop(const char *model, struct cached_pages *out, struct err *e);
