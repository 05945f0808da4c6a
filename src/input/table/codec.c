/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.c - see codec.h.
 *
 * Each codec unpacks into a buffer of a given size and reports whether that was too small. The
 * buffer starts with the likely size and grows fourfold until it is large enough, up to the size
 * that the page declares: whatever a page claims, we hold no more than four times what it yields.
 */
#include "input/table/codec.h"

#include <assert.h>
#include <brotli/decode.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "core/base/codec.h"
#include "core/base/library.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#define SNAPPY_CALLS(X) X(snappy_uncompress) X(snappy_uncompressed_length)
#define BROTLI_CALLS(X) X(BrotliDecoderCreateInstance) X(BrotliDecoderDecompressStream) \
	X(BrotliDecoderDestroyInstance)
#define LZ4_CALLS(X) X(LZ4_decompress_safe)
LIBRARY(snappy, SNAPPY_CALLS, "libsnappy.so.1", "libsnappy1v5");
LIBRARY(brotli, BROTLI_CALLS, "libbrotlidec.so.1", "libbrotli1");
LIBRARY(lz4, LZ4_CALLS, "liblz4.so.1", "liblz4-1");

enum codec_outcome { DAMAGED, TOO_SMALL, DONE };

/* The output buffer: got bytes of size are used. */
struct room {
	uint8_t *p;
	size_t size, got;
};

/* The size is in its header; a copy of 64 bytes takes 3. */
static enum codec_outcome unpack_snappy(struct str in, struct room *room)
{
	size_t size;

	if (snappy.snappy_uncompressed_length(in.p, in.n, &size) != SNAPPY_OK || size / 22 > in.n)
		return DAMAGED;
	if (size > room->size)
		return TOO_SMALL;
	room->got = room->size;
	return snappy.snappy_uncompress(in.p, in.n, (char *)room->p, &room->got) == SNAPPY_OK ?
		       DONE : DAMAGED;
}

static enum codec_outcome unpack_gzip(struct str in, struct room *room)
{
	switch (zip_unpack(in, room->p, room->size, &room->got)) {
	case ZIP_DONE:
		return DONE;
	case ZIP_TOO_SMALL:
		return TOO_SMALL;
	default:
		return DAMAGED;
	}
}

static enum codec_outcome unpack_brotli(struct str in, struct room *room)
{
	BrotliDecoderState *state = brotli.BrotliDecoderCreateInstance(NULL, NULL, NULL);
	const uint8_t *next_in = (const uint8_t *)in.p;
	uint8_t *next_out = room->p;
	size_t left = room->size;
	BrotliDecoderResult rc;

	if (!state)
		return DAMAGED;
	rc = brotli.BrotliDecoderDecompressStream(state, &in.n, &next_in, &left, &next_out, NULL);
	brotli.BrotliDecoderDestroyInstance(state);
	room->got = room->size - left;
	if (rc == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT)
		return TOO_SMALL;
	return rc == BROTLI_DECODER_RESULT_SUCCESS ? DONE : DAMAGED;
}

static enum codec_outcome unpack_zstd(struct str in, struct room *room)
{
	size_t got = ZSTD_decompress(room->p, room->size, in.p, in.n);

	if (!ZSTD_isError(got)) {
		room->got = got;
		return DONE;
	}
	return ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall ? TOO_SMALL : DAMAGED;
}

/*
 * One block; each byte yields at most 255. A buffer that is too small cannot be distinguished from
 * damage.
 */
static enum codec_outcome unpack_lz4_block(struct str in, struct room *room)
{
	size_t most = in.n * 255 + 64;
	int got;

	if (room->size > most)
		room->size = most;
	got = lz4.LZ4_decompress_safe(in.p, (char *)room->p, (int)in.n, (int)room->size);
	if (got < 0)
		return DAMAGED;
	room->got = (size_t)got;
	return DONE;
}

static uint32_t big_endian(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Hadoop's frames, repeated: unpacked size, packed size, a block. */
static enum codec_outcome unpack_lz4_frames(struct str in, struct room *room)
{
	while (in.n >= 8) {
		struct room part = { room->p + room->got, big_endian(in.p), 0 };
		struct str block = { in.p + 8, big_endian(in.p + 4) };

		if (block.n > in.n - 8 || part.size > room->size - room->got ||
		    unpack_lz4_block(block, &part) != DONE || part.got != big_endian(in.p))
			return DAMAGED;
		room->got += part.got;
		in.p = block.p + block.n;
		in.n -= 8 + block.n;
	}
	return in.n ? DAMAGED : DONE;
}

/* The old codec name: framed by most writers, a plain block by some. */
static enum codec_outcome unpack_lz4(struct str in, struct room *room)
{
	struct room whole = { room->p, room->size, 0 };

	if (unpack_lz4_frames(in, room) == DONE && room->got == room->size)
		return DONE;
	*room = whole;
	return unpack_lz4_block(in, room);
}

static const struct {
	const char *name;
	enum codec_outcome (*unpack)(struct str in, struct room *room);
	size_t ratio; /* the most bytes that one can become; 0: no bound worth the name */
	struct library *library; /* loaded before the first page; NULL: linked into this program */
} codecs[CODEC_COUNT] = {
	[CODEC_NONE] = { "UNCOMPRESSED", NULL, 1, NULL },
	[CODEC_SNAPPY] = { "SNAPPY", unpack_snappy, 22, &snappy_library },
	[CODEC_GZIP] = { "GZIP", unpack_gzip, 1040, NULL },
	[CODEC_LZO] = { "LZO", NULL, 0, NULL },
	[CODEC_BROTLI] = { "BROTLI", unpack_brotli, 0, &brotli_library },
	[CODEC_LZ4] = { "LZ4", unpack_lz4, 255, &lz4_library },
	[CODEC_ZSTD] = { "ZSTD", unpack_zstd, 32768, NULL }, /* a block of 128 KiB takes 4 bytes */
	[CODEC_LZ4_RAW] = { "LZ4_RAW", unpack_lz4_block, 255, &lz4_library },
};

static const char *codec_name(enum codec codec)
{
	return codec < CODEC_COUNT ? codecs[codec].name : "unknown";
}

/*
 * The first buffer size: all of it where the codec's ratio bounds it (LZ4 does not distinguish a
 * small buffer from damage), else the likely size.
 */
static size_t first_room(enum codec codec, size_t packed, size_t size)
{
	size_t likely = packed * 32 + 65536;

	bool is_bounded = codecs[codec].ratio && codecs[codec].ratio < 1000;

	return is_bounded || size < likely ? size : likely;
}

int codec_unpack(enum codec codec, struct str packed, size_t size, struct buf *out,
		 struct err *e)
{
	struct room room = { 0 };
	enum codec_outcome outcome;

	if (codec >= CODEC_COUNT || !codecs[codec].unpack)
		return err_set(e, ERR_PARSE, "pages packed by codec %d (%s) cannot be unpacked",
			       (int)codec, codec_name(codec));
	if (codecs[codec].library && library_open(codecs[codec].library, e) < 0)
		return -1;
	if (packed.n > PARQUET_PAGE_BYTES_MAX || size > PARQUET_PAGE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "a page of %zu bytes, %zu unpacked; the limit is %llu",
			       packed.n, size, PARQUET_PAGE_BYTES_MAX);
	if (codecs[codec].ratio && size / codecs[codec].ratio > packed.n + 64)
		return err_set(e, ERR_PARSE, "%zu bytes of %s cannot unpack to the %zu declared",
			       packed.n, codecs[codec].name, size);
	buf_reset(out);
	room.size = first_room(codec, packed.n, size);
	for (;;) {
		if (buf_reserve(out, room.size))
			return err_set(e, ERR_LIMIT, "a page of %zu bytes is over the limit", size);
		room = (struct room){ (uint8_t *)out->data, room.size, 0 };
		outcome = codecs[codec].unpack(packed, &room);
		if (outcome != TOO_SMALL || room.size == size)
			break;
		room.size = room.size > size / 4 ? size : room.size * 4;
	}
	if (outcome == DAMAGED)
		return err_set(e, ERR_PARSE, "%zu bytes that are not %s", packed.n,
			       codecs[codec].name);
	if (outcome == TOO_SMALL || room.got != size)
		return err_set(e, ERR_PARSE, "%zu bytes of %s unpack to %s%zu bytes, not to %zu",
			       packed.n, codecs[codec].name, outcome == TOO_SMALL ? "more than " : "",
			       outcome == TOO_SMALL ? size : room.got, size);
	out->len = size;
	return 0;
}

int codec_unpack_file(enum codec codec, struct str packed, size_t limit, struct buf *out,
		      struct err *e)
{
	struct room room = { .size = first_room(CODEC_ZSTD, packed.n, limit) };
	enum codec_outcome outcome;

	buf_reset(out);
	for (;;) {
		if (buf_reserve(out, room.size))
			return err_set(e, ERR_LIMIT, "more than %zu bytes unpacked", room.size);
		room = (struct room){ (uint8_t *)out->data, room.size, 0 };
		outcome = codecs[codec].unpack(packed, &room);
		if (outcome != TOO_SMALL || room.size == limit)
			break;
		room.size = room.size > limit / 4 ? limit : room.size * 4;
	}
	if (outcome == TOO_SMALL)
		return err_set(e, ERR_LIMIT, "it unpacks to more than %zu bytes", limit);
	if (outcome == DAMAGED)
		return err_set(e, ERR_PARSE, "%zu bytes that are not %s", packed.n,
			       codecs[codec].name);
	out->len = room.got;
	out->data[out->len] = 0;
	return 0;
}

void codec_pack(struct str bytes, int level, struct buf *out)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t room = ZSTD_compressBound(bytes.n), got;

	assert(c);
	ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
	if (buf_reserve(out, room) == 0) {
		got = ZSTD_compress2(c, out->data + out->len, room, bytes.p, bytes.n);
		assert(!ZSTD_isError(got));
		out->len += got;
		out->data[out->len] = 0;
	}
	ZSTD_freeCCtx(c);
}
