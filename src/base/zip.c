/* SPDX-License-Identifier: Apache-2.0 */
/* zip.c - see zip.h. */
#include "base/zip.h"

#include <assert.h>
#include <limits.h>
#include <zlib.h>

#include "base/limits.h"
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

#define WINDOW_BITS 15
#define GZIP_FORM (WINDOW_BITS + 16) /* deflateInit2: with gzip's head */
#define RAW_FORM (-WINDOW_BITS)      /* without any head */

static void pack_whole(struct str bytes, int level, int form, struct buf *out)
{
	z_stream z = { .zalloc = allocate, .zfree = release,
		       .next_in = (Bytef *)(uintptr_t)bytes.p };
	size_t left = bytes.n;
	int rc = deflateInit2(&z, level, Z_DEFLATED, form, 8, Z_DEFAULT_STRATEGY);

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

void zip_gzip(struct str bytes, int level, struct buf *out)
{
	pack_whole(bytes, level, GZIP_FORM, out);
}

/* ---- archives ---- */

#define ARCHIVE_LEVEL 6
#define ARCHIVE_VERSION 20         /* of the format: 2.0, whose files may be deflated */
#define ARCHIVE_DEFLATED 8
#define ARCHIVE_UTF8 0x800         /* names are UTF-8 */
#define ARCHIVE_DATE (1 << 5 | 1)  /* 1980-01-01, so that equal files make equal archives */

static void add_le(struct buf *out, uint32_t v, int n_bytes)
{
	for (int i = 0; i < n_bytes; i++)
		buf_add_char(out, (char)(v >> 8 * i));
}

/* What the head of a file and its entry in the directory have in common. */
static void add_fields(struct buf *out, uint32_t crc, size_t packed, size_t size, const char *name)
{
	add_le(out, ARCHIVE_VERSION, 2);
	add_le(out, ARCHIVE_UTF8, 2);
	add_le(out, ARCHIVE_DEFLATED, 2);
	add_le(out, 0, 2);
	add_le(out, ARCHIVE_DATE, 2);
	add_le(out, crc, 4);
	add_le(out, (uint32_t)packed, 4);
	add_le(out, (uint32_t)size, 4);
	add_le(out, (uint32_t)strlen(name), 2);
	add_le(out, 0, 2);
}

void zip_archive_add(struct zip_archive *a, const char *name, struct str bytes)
{
	size_t at = a->out.len;
	struct buf packed = { 0 };
	uint32_t crc;

	assert(bytes.n <= BUF_BYTES_MAX && a->n < UINT16_MAX);
	crc = (uint32_t)crc32_z(0, (const Bytef *)bytes.p, bytes.n);
	pack_whole(bytes, ARCHIVE_LEVEL, RAW_FORM, &packed);
	buf_add_text(&a->out, "PK\3\4");
	add_fields(&a->out, crc, packed.len, bytes.n, name);
	buf_add_text(&a->out, name);
	buf_add_str(&a->out, buf_str(&packed));
	buf_add_text(&a->directory, "PK\1\2");
	add_le(&a->directory, ARCHIVE_VERSION, 2);
	add_fields(&a->directory, crc, packed.len, bytes.n, name);
	add_le(&a->directory, 0, 2); /* comment */
	add_le(&a->directory, 0, 2); /* disk */
	add_le(&a->directory, 0, 2);
	add_le(&a->directory, 0, 4);
	add_le(&a->directory, (uint32_t)at, 4);
	buf_add_text(&a->directory, name);
	a->n++;
	buf_release(&packed);
}

void zip_archive_end(struct zip_archive *a)
{
	size_t at = a->out.len;

	buf_add_str(&a->out, buf_str(&a->directory));
	buf_add_text(&a->out, "PK\5\6");
	add_le(&a->out, 0, 4); /* disks */
	add_le(&a->out, a->n, 2);
	add_le(&a->out, a->n, 2);
	add_le(&a->out, (uint32_t)a->directory.len, 4);
	add_le(&a->out, (uint32_t)at, 4);
	add_le(&a->out, 0, 2); /* comment */
	buf_release(&a->directory);
}
