/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/compiled.h - a loaded model as one file that is used as it is read.
 *
 * The large tables of a model are flat arrays, so they are written as they are;
 * the stages are kept as JSON and parsed again, which takes no time. A compiled
 * file belongs to the build that wrote it (COMPILED_LAYOUT, sizes of structs,
 * byte order) and is checked against damage by a checksum over all of it. It is
 * not checked against malice: it lies in the user's own directory and is only
 * taken from its owner (token/cache.h).
 */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "token/model.h"

/* Raised whenever a table's meaning changes without its size doing so. */
#define COMPILED_LAYOUT 3u

/* The file's bytes; m may have come from a compiled file itself. */
void compiled_write(const struct model *m, struct buf *out);

/*
 * Fills a zeroed m with tables that point into bytes, which must stay and be aligned to
 * COMPILED_ALIGN. -1: written by another build, or damaged; m is to be released all the same.
 */
#define COMPILED_ALIGN 64
int compiled_read(struct model *m, struct str bytes, struct err *e);

/* A quick hash of many bytes for finding damage; not for secrets. */
uint64_t compiled_sum(struct str bytes);
