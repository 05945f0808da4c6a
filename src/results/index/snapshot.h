/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - the file of a snapshot, for its writer, its reader and its tests.
 *
 *   head    64 bytes: magic, form, byte order, sizes, checksums
 *   table   columns, dictionaries and where the pieces of every block lie: 64-bit numbers, texts
 *           with their length in front
 *   pieces  arrays of blocks, each at a multiple of 64 bytes from the first one
 *
 * Everything is checked: the head and the table by their own sums, each piece by the one in the
 * table, and then what the pieces say (codes that exist, texts that lie in the text store).
 * Little-endian machines only; another order is another file.
 */
#pragma once
#include <stdint.h>

#include "core/base/str.h"

#define SNAPSHOT_MAGIC "profllmX"
#define SNAPSHOT_FORM 3 /* before 3 there were rows in it that had been removed */
#define SNAPSHOT_ORDER 0x0102030405060708u
#define SNAPSHOT_ALIGN 64

struct snapshot_head {
	char magic[8];
	uint64_t form, order;
	uint64_t file_bytes, table_bytes, table_sum;
	int64_t sequence;
	uint64_t head_sum; /* of the bytes before it */
};

static inline size_t snapshot_align(size_t n)
{
	return (n + SNAPSHOT_ALIGN - 1) / SNAPSHOT_ALIGN * SNAPSHOT_ALIGN;
}

/* A changed byte changes it: each step can be undone, whatever comes after. */
uint64_t snapshot_sum(struct str bytes);
