/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - unpacks one page of a Parquet file; packs and unpacks what a store keeps.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/str.h"

/* Numbers as Parquet gives them. */
enum codec {
	CODEC_NONE, CODEC_SNAPPY, CODEC_GZIP, CODEC_LZO, CODEC_BROTLI, CODEC_LZ4, CODEC_ZSTD,
	CODEC_LZ4_RAW, CODEC_COUNT,
};

/*
 * Replaces what *out holds by what `packed` unpacks to, which must be `size` bytes exactly
 * (at most PARQUET_PAGE_BYTES_MAX). Memory follows what really comes out: a size that the
 * packed bytes cannot reach costs nothing. Errors: ERR_PARSE, without a place.
 */
int codec_unpack(enum codec codec, struct str packed, size_t size, struct buf *out,
		 struct err *e);

/* gzip and zstd where the size is unknown: at most limit bytes come out, else ERR_LIMIT. */
int codec_unpack_file(enum codec codec, struct str packed, size_t limit, struct buf *out,
		      struct err *e);

/* Appends a Zstandard frame with a checksum. Level 1 (fast) to 19 (small). */
void codec_pack(struct str bytes, int level, struct buf *out);
