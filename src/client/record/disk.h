/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.h - parts of a large record whose memory is a file: only what is in use takes memory.
 *
 * The files have no name and hold nothing that is read later (the record file does that);
 * they are where the kernel puts pages that are not in use. A thread takes such pages from the
 * process ten times a second; a page that is read again comes back from the file. So code that
 * reads and writes rows and chains does not know of it, and percentiles are as exact as in memory.
 * Space is taken from the file system before it is used, so a full disk makes a chain full
 * (record.h, 2a) and never a signal. Private to record/.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

struct disk;

/* folder: where; NULL: TMPDIR. */
struct disk *disk_new(const char *folder, struct err *e);
/* Ends the thread. What was handed out stays until it is released itself. Accepts NULL. */
void disk_free(struct disk *d);

/* Bytes of zeros, for munmap; -1: the disk is full, or there are no unnamed files on it. */
int disk_take(struct disk *d, size_t bytes, void **p, struct err *e);
/*
 * An empty slab moves to the disk and grows as long as there is room, until disk_settle or
 * disk_free; until then it stays where it is. -1: it is as before.
 */
int disk_slab(struct disk *d, struct slab *s, struct err *e);
/* Slabs do not grow any more, and may move. Accepts NULL. */
void disk_settle(struct disk *d);
/* A mapped file is treated in the same way until disk_unwatch. */
void disk_watch(struct disk *d, struct str mapped);
void disk_unwatch(struct disk *d, const char *p);
