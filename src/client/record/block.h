/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - the bytes of a record file: numbers, blocks, their names. Private to record/. The
 * format is specified in docs/record-format.md.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "client/record/record.h"
#include "core/base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is the memory's order");

#define RECORD_MAGIC "PLLMREC1"
#define RECORD_MAGIC_BYTES 8
#define BLOCK_HEAD_BYTES 16

enum block_type {
	BLOCK_COLUMNS = 1, BLOCK_META, BLOCK_HOST, BLOCK_SHAPE, BLOCK_BATCH, BLOCK_SERIES,
	BLOCK_NOTE, BLOCK_END,
};
enum batch_section {
	SECTION_INDEX = 1, SECTION_COLUMNS, SECTION_GAPS, SECTION_SKEWS, SECTION_MARKS,
	SECTION_TEXT, SECTION_ERROR, SECTION_COUNT,
};
enum shard_bits { SHARD_SKEW = 1, SHARD_TEXT = 2, SHARD_FULL = 4 };
enum end_bits { END_INTERRUPTED = 1 };
#define MARK_BYTES 12

/* The columns of this version, made from RECORD_COLUMNS. */
enum column_type { COLUMN_u8 = 1, COLUMN_u16, COLUMN_u32, COLUMN_i64, COLUMN_f32, COLUMN_f64 };
struct record_column {
	const char *name, *unit;
	uint8_t type, size;
	uint16_t offset; /* in struct request_row */
};
extern const struct record_column record_columns[];
extern const size_t record_n_columns;

uint32_t record_crc(uint32_t crc, const void *bytes, size_t n); /* CRC-32C; start with 0 */

static inline void put_u16(struct buf *b, uint16_t v) { buf_add(b, &v, sizeof(v)); }
static inline void put_u32(struct buf *b, uint32_t v) { buf_add(b, &v, sizeof(v)); }
static inline void put_i64(struct buf *b, int64_t v) { buf_add(b, &v, sizeof(v)); }

/* Leaves room for the head at the end of b; end fills it in. Several blocks may share b. */
size_t block_begin(struct buf *b, enum block_type type);
void block_end(struct buf *b, size_t at);

/* A batch being put together; rows are added one by one. */
struct batch {
	uint32_t n_rows;
	uint64_t n_events;
	struct buf index, *column, counts[SECTION_COUNT], data[SECTION_COUNT];
};
void batch_init(struct batch *b);
void batch_release(struct batch *b);
void batch_add(struct batch *b, const struct record *r, uint32_t row);
size_t batch_bytes(const struct batch *b);
/* Appends the block and empties the batch. */
void batch_flush(struct batch *b, struct buf *out);

/* Cursor over a payload: reads past the end give 0 and set is_short. */
struct cursor { const char *p; size_t n; bool is_short; };

static inline const char *take(struct cursor *c, size_t n)
{
	const char *p = c->p;

	if (n > c->n) {
		c->is_short = true;
		c->n = 0;
		return NULL;
	}
	c->p += n;
	c->n -= n;
	return p;
}

#define TAKE(name, type)                                                                  \
	static inline type name(struct cursor *c)                                         \
	{                                                                                 \
		const char *p = take(c, sizeof(type));                                    \
		type v = 0;                                                               \
		if (p)                                                                    \
			memcpy(&v, p, sizeof(v));                                         \
		return v;                                                                 \
	}
TAKE(take_u8, uint8_t)
TAKE(take_u16, uint16_t)
TAKE(take_u32, uint32_t)
TAKE(take_u64, uint64_t)
TAKE(take_i64, int64_t)
#undef TAKE

static inline uint32_t peek_u32(const char *p, size_t i)
{
	uint32_t v;

	memcpy(&v, p + i * sizeof(v), sizeof(v));
	return v;
}
