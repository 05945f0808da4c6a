/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - see codec.h; the one file that includes zlib and libcrypto's digests. */
#include "core/base/codec.h"

#include <assert.h>
#include <limits.h>
#include <openssl/evp.h>
#include <zlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"

/* ---- base64 ---- */

/* The six bits of a character; 64 or more if it is not in the alphabet. */
static uint32_t six_bits(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint32_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0') + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool base64_decode(struct str text, struct buf *out)
{
	size_t before = out->len, pad = 0;
	uint32_t bits = 0;

	if (text.n % 4 || buf_reserve(out, text.n / 4 * 3))
		return false;
	while (pad < 2 && pad < text.n && text.p[text.n - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < text.n && bits <= 0xffffff; i++) {
		uint32_t six = i < text.n - pad ? six_bits(text.p[i]) : 0;

		bits = six > 63 ? UINT32_MAX : (i % 4 ? bits << 6 : 0) | six;
		if (i % 4 == 3) {
			char three[3] = { (char)(bits >> 16), (char)(bits >> 8), (char)bits };

			buf_add(out, three, i + 1 < text.n ? 3 : 3 - pad);
		}
	}
	if (bits <= 0xffffff && !(bits & ((1u << 8 * pad) - 1)))
		return true;
	out->len = before;
	out->data[before] = 0;
	return false;
}

void base64_encode(struct str bytes, struct buf *out)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = (const uint8_t *)bytes.p;
	char *to;

	if (buf_reserve(out, (bytes.n + 2) / 3 * 4))
		return;
	to = out->data + out->len;
	for (size_t i = 0; i < bytes.n; i += 3) {
		size_t left = bytes.n - i;
		uint32_t bits = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
				(left > 2 ? p[i + 2] : 0);

		*to++ = digit[bits >> 18];
		*to++ = digit[bits >> 12 & 63];
		*to++ = left > 1 ? digit[bits >> 6 & 63] : '=';
		*to++ = left > 2 ? digit[bits & 63] : '=';
	}
	*to = 0;
	out->len += (bytes.n + 2) / 3 * 4;
}

/* ---- Digests ---- */

/* The one file that includes libcrypto's digests. */

size_t digest(enum digest_kind kind, struct str head, struct str bytes, uint8_t out[DIGEST_BYTES])
{
	const EVP_MD *type = kind == DIGEST_SHA1 ? EVP_sha1() : EVP_sha256();
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned n = 0;
	int is_good = context && EVP_DigestInit_ex(context, type, NULL) &&
		EVP_DigestUpdate(context, head.p, head.n) &&
		EVP_DigestUpdate(context, bytes.p, bytes.n) &&
		EVP_DigestFinal_ex(context, out, &n);

	assert(is_good && n <= DIGEST_BYTES);
	(void)is_good;
	EVP_MD_CTX_free(context);
	return n;
}

char *digest_hex(enum digest_kind kind, struct str bytes, char out[DIGEST_HEX])
{
	static const char digit[] = "0123456789abcdef";
	uint8_t hash[DIGEST_BYTES];
	size_t n = digest(kind, STR(""), bytes, hash);

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digit[hash[i] >> 4];
		out[2 * i + 1] = digit[hash[i] & 15];
	}
	out[2 * n] = 0;
	return out;
}

/* ---- gzip and ZIP ---- */

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

	assert(level >= 1 && level <= 9 && sink);
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
	assert(level >= 1 && level <= 9);
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

/* Fields common to the head of a file and its entry in the directory. */
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
	assert(a->n == 0 || a->directory.len); /* not ended */
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

	assert(a->n == 0 || a->directory.len);
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
