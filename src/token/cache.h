/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/cache.h - compiled tokenizers kept on disk, so that loading one again
 * costs milliseconds.
 *
 * Directory: $PROFLLM_CACHE_DIR/tokenizers, else under $XDG_CACHE_HOME/profllm or
 * ~/.cache/profllm; PROFLLM_CACHE_DIR= (empty) switches it off. It holds
 *
 *   <sum of path and name>.stamp  size, mtime and inode of the tokenizer's file and of
 *                             those beside it that readers look at, and the sum of
 *                             their contents
 *   <sum of name and contents>.tok  the compiled form (token/compiled.h)
 *
 * A stamp that still fits leads straight to the compiled form. Otherwise the
 * contents are summed, so that a copied or touched file is not compiled again.
 * Nothing here is ever fatal: what cannot be read or written is done without.
 * Only files that the user owns and nobody else may write are taken (file_load_own), and
 * they are read, not mapped: what happens to them afterwards does not matter.
 */
#pragma once
#include <stdbool.h>

#include "base/str.h"
#include "token/model.h"

/*
 * Fills a zeroed m from the cache; false, m still zeroed, when it is not there. stamp, empty
 * before, says what the sources were: give it to cache_store after reading them.
 */
bool cache_load(struct model *m, const char *path, struct buf *stamp);
/*
 * Keeps m, just read from path, unless a source has changed meanwhile. Small files are not
 * worth it; is_forced: those too.
 */
bool cache_store(const struct model *m, const char *path, const struct buf *stamp, bool is_forced);
/* Where the compiled form of path is or would be; false when there is no cache. */
bool cache_path(const char *path, struct buf *out);
