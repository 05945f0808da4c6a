/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - a run's cells and texts as the bytes that the store keeps. Pure. Private to
 * store/.
 *
 * A text: its length in 8 bytes, least first, then a Zstandard frame with a checksum.
 *
 * A row: one byte PACK_VERSION, how many cells, then each cell: the number of its column
 * (columns.h), a kind, and what the kind needs. Lengths and numbers without sign are LEB128;
 * whole numbers below 2^53 are zigzag LEB128, others 8 bytes of IEEE 754, least first. Every
 * value comes back as it went in, -0.0 among them.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "results/index/row.h"

#define PACK_VERSION 1
#define PACK_TEXT_BYTES_MAX (1ull << 30)

void pack_text(struct str text, struct buf *out);
int unpack_text(struct str packed, struct buf *out, struct err *e); /* appends */

/* A cell whose column[i] is negative is left out. */
void pack_row(const struct row *r, const int64_t *column, struct buf *out);
/*
 * name(self, number) gives a column's name; empty: there is none, which is an error. Texts are
 * copied into a.
 */
int unpack_row(struct str packed, struct str (*name)(const void *self, uint64_t number),
	       const void *self, struct arena *a, struct row *out, struct err *e);
