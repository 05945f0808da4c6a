/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - unpacks one page of a Parquet file; packs and unpacks a store's data.
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
 * Replaces *out by the unpacked bytes, which must be exactly `size` (at most
 * PARQUET_PAGE_BYTES_MAX). Memory follows the actual output: a size that the packed bytes cannot
 * reach costs nothing. Errors: ERR_PARSE, without a place.
 */
int codec_unpack(enum codec codec, struct str packed, size_t size, struct buf *out,
		 struct err *e);

/* gzip and zstd where the size is unknown: at most limit bytes come out, else ERR_LIMIT. */
int codec_unpack_file(enum codec codec, struct str packed, size_t limit, struct buf *out,
		      struct err *e);

/* Appends a Zstandard frame with a checksum. Level 1 (fast) to 19 (small). */
void codec_pack(struct str bytes, int level, struct buf *out);
