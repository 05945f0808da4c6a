/* SPDX-License-Identifier: Apache-2.0 */
/* zip.c - see zip.h. */
#include "base/zip.h"

#include <assert.h>
#include <limits.h>
#include <zlib.h>

#include "base/mem.h"

struct zip {
	z_stream z;
	zip_sink *sink;
	void *self;
	unsigned char piece[ZIP_PIECE_BYTES];
};

enum zip_outcome zip_unpack(struct str packed, void *room, size_t size, size_t *got)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)packed.p, .avail_in = (uInt)packed.n,
		       .next_out = room, .avail_out = (uInt)size };
	enum zip_outcome outcome = ZIP_DAMAGED;
	int rc;

	if (inflateInit2(&z, 15 + 32) != Z_OK)
		return ZIP_DAMAGED;
	for (;;) {
		rc = inflate(&z, Z_FINISH);
		if (rc != Z_STREAM_END || z.avail_in == 0)
			break;
		inflateReset(&z);
	}
	*got = size - z.avail_out;
	if (rc == Z_STREAM_END)
		outcome = ZIP_DONE;
	else if ((rc == Z_BUF_ERROR || rc == Z_OK) && z.avail_out == 0)
		outcome = ZIP_TOO_SMALL;
	inflateEnd(&z);
	return outcome;
}

static voidpf allocate(voidpf self, uInt count, uInt size)
{
	(void)self;
	return mem_array(count, size);
}

static void release(voidpf self, voidpf p)
{
	(void)self;
	free(p);
}

struct zip *zip_begin(int level, zip_sink *sink, void *self)
{
	struct zip *zip = mem_array(1, sizeof(*zip));
	int rc;

	zip->sink = sink;
	zip->self = self;
	zip->z.zalloc = allocate;
	zip->z.zfree = release;
	rc = deflateInit(&zip->z, level);
	assert(rc == Z_OK);
	zip->z.next_out = zip->piece;
	zip->z.avail_out = sizeof(zip->piece);
	return zip;
}

static void hand_over(struct zip *zip)
{
	size_t n = sizeof(zip->piece) - zip->z.avail_out;

	zip->sink(zip->self, (struct str){ (const char *)zip->piece, n });
	zip->z.next_out = zip->piece;
	zip->z.avail_out = sizeof(zip->piece);
}

void zip_add(struct zip *zip, struct str bytes)
{
	while (bytes.n) {
		uInt n = bytes.n < (1u << 30) ? (uInt)bytes.n : 1u << 30;

		zip->z.next_in = (Bytef *)(uintptr_t)bytes.p;
		zip->z.avail_in = n;
		while (zip->z.avail_in) {
			if (zip->z.avail_out == 0)
				hand_over(zip);
			deflate(&zip->z, Z_NO_FLUSH);
		}
		bytes.p += n;
		bytes.n -= n;
	}
}

void zip_end(struct zip *zip)
{
	do {
		if (zip->z.avail_out == 0)
			hand_over(zip);
	} while (deflate(&zip->z, Z_FINISH) != Z_STREAM_END);
	hand_over(zip);
	deflateEnd(&zip->z);
	free(zip);
}

void zip_gzip(struct str bytes, int level, struct buf *out)
{
	z_stream z = { .zalloc = allocate, .zfree = release,
		       .next_in = (Bytef *)(uintptr_t)bytes.p };
	size_t left = bytes.n;
	int rc = deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);

	assert(rc == Z_OK);
	do {
		unsigned char piece[ZIP_PIECE_BYTES];

		z.next_out = piece;
		z.avail_out = sizeof(piece);
		if (z.avail_in == 0 && left) {
			z.avail_in = left < UINT_MAX ? (uInt)left : UINT_MAX;
			left -= z.avail_in;
		}
		rc = deflate(&z, left ? Z_NO_FLUSH : Z_FINISH);
		buf_add(out, piece, sizeof(piece) - z.avail_out);
	} while (rc != Z_STREAM_END);
	deflateEnd(&z);
}
