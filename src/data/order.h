/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/order.h - the order in which rows of a Hugging Face dataset come; datasets spec 8.2.
 *
 * Rows are known by shard (data file) and number in it. A shard's number of rows is asked for
 * when its first row is due, so that files which are never reached need not be there;
 * ORDER_WHOLE asks for all of them at once.
 *
 * Orders equal the library's to the last row: the streams of 2.x to 4.x (the reference here: 4.8.5)
 * and those of 5.x (5.2.0), which takes rows by the hundred where it knows the types of the
 * columns beforehand (Parquet, JSON lines) and one by one elsewhere (arrays, CSV, text).
 *
 * Memory: ORDER_WHOLE 8 bytes per row, streams 64 KiB. Not thread-safe.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum order_kind {
	ORDER_NATURAL,   /* shards one after the other: --disable-shuffle */
	ORDER_WHOLE,     /* Dataset.shuffle(seed): --no-stream */
	ORDER_STREAM,    /* IterableDataset.shuffle(seed), buffer of 1000, library 2.x to 4.x */
	ORDER_STREAM_5,  /* the same of library 5.x: shards side by side, half a buffer at a time */
	ORDER_STREAM_5_ROWS, /* likewise, of arrays, CSV and text lines */
};

struct order_row {
	size_t shard;
	uint64_t row;
};

/* How many rows shard has: 0, or -1 with e filled. Asked for once per shard. */
typedef int order_rows_fn(void *self, size_t shard, uint64_t *rows, struct err *e);

struct order;

/* NULL with e set: rows failed, or ERR_LIMIT (more than SHUFFLED_ROWS_MAX rows for ORDER_WHOLE). */
struct order *order_open(enum order_kind kind, uint64_t seed, size_t shards, order_rows_fn *rows,
	void *self, struct err *e);
void order_close(struct order *o); /* accepts NULL */

/* 1 and the next row; 0: that was all; -1 with e set. */
int order_next(struct order *o, struct order_row *out, struct err *e);
