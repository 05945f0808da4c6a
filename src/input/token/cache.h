/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - compiled tokenizers kept on disk, so that loading one again costs milliseconds.
 *
 * Directory: $PROFLLM_CACHE_DIR/tokenizers, else under $XDG_CACHE_HOME/profllm or ~/.cache/profllm;
 * PROFLLM_CACHE_DIR= (empty) switches it off. It holds
 *
 *   <sum of path and name>.stamp  size, mtime and inode of the tokenizer's file and of
 *                             those next to it that readers use, and the sum of
 *                             their contents
 *   <sum of name and contents>.tok  the compiled form (compiled_read)
 *
 * A matching stamp leads straight to the compiled form. Otherwise the contents are summed, so that
 * a copied or touched file is not compiled again. No failure here is fatal: the tokenizer is then
 * loaded without the cache. Only files that the user owns and no one else may write are used
 * (file_load_own), and they are read, not mapped: later changes to them do not matter.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "input/encode/model.h"

/*
 * Fills a zeroed m from the cache; false, m still zeroed, when it is not there. stamp, empty
 * before, identifies the state of the sources: pass it to cache_store after reading them.
 */
bool cache_load(struct model *m, const char *path, struct buf *stamp);
/*
 * Stores m, just read from path, unless a source has changed meanwhile. Small files are not stored
 * unless is_forced.
 */
bool cache_store(const struct model *m, const char *path, const struct buf *stamp, bool is_forced);
/* The path of the compiled form of path, whether it exists or not; false when there is no cache. */
bool cache_path(const char *path, struct buf *out);

/* ---- Compiled models ---- */

/*
 * A loaded model as one file that is used without parsing.
 *
 * The large tables of a model are flat arrays and written as such; the stages are kept as JSON and
 * parsed again, which takes no time. A compiled file belongs to the build that wrote it
 * (COMPILED_LAYOUT, sizes of structs, byte order) and a checksum over all of it detects damage. It
 * is not checked against malice: it is in the user's own directory and is only taken from its owner
 * (above).
 */

/* Increased whenever a table's meaning changes without its size. */
#define COMPILED_LAYOUT 3u

/* The file's bytes; m may have come from a compiled file itself. */
void compiled_write(const struct model *m, struct buf *out);

/*
 * Fills a zeroed m with tables that point into bytes, which must stay and be aligned to
 * COMPILED_ALIGN. -1: written by another build, or damaged; m must be released in that case, too.
 */
#define COMPILED_ALIGN 64
int compiled_read(struct model *m, struct str bytes, struct err *e);
