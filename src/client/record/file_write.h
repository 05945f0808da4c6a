/* SPDX-License-Identifier: Apache-2.0 */
/* file_write.h - the parts a record file is written from. Private to record/. */
#pragma once
#include "client/record/block.h"
#include "client/record/file.h"
#include "core/base/str.h"

/* Magic and column directory, then meta, hosts and shape. */
void write_opening(struct buf *out, const struct record *r, const struct record_info *info);
/* Series, notes, state once more, END. */
void write_closing(struct buf *out, const struct record *r, const struct record_info *info,
		   uint32_t n_rows, uint64_t n_events);
/* Writes all of b. -1 with errno. */
int write_out(int fd, struct buf *b);

#define BATCH_ROWS_MAX 4096
#define BATCH_BYTES_MAX (4u << 20)
