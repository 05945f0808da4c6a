/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.h - keeps parts of a large record in files, so that only what is in use takes memory.
 *
 * The files have no name and hold nothing that is read later (the record file does that); the
 * kernel writes unused pages to them. A thread removes such pages from the process ten times a
 * second; a page that is read again comes back from the file. So code that reads and writes rows
 * and chains does not know about it, and percentiles are as exact as in memory. Space is reserved
 * in the file system before it is used, so a full disk makes a chain full (record.h, 2a) and never
 * raises a signal. Private to record/.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

struct disk;

/* folder: where; NULL: TMPDIR. */
struct disk *disk_new(const char *folder, struct err *e);
/* Ends the thread. Regions handed out stay until they are released. Accepts NULL. */
void disk_free(struct disk *d);

/* Zeroed bytes, for munmap; -1: the disk is full or does not support unnamed files. */
int disk_take(struct disk *d, size_t bytes, void **p, struct err *e);
/*
 * Moves an empty slab to the disk, where it grows as long as there is space, until disk_settle or
 * disk_free; until then its address is fixed. -1: it is unchanged.
 */
int disk_slab(struct disk *d, struct slab *s, struct err *e);
/* Slabs no longer grow, and may move. Accepts NULL. */
void disk_settle(struct disk *d);
/* Treats a mapped file in the same way until disk_unwatch. */
void disk_watch(struct disk *d, struct str mapped);
void disk_unwatch(struct disk *d, const char *p);
