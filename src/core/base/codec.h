/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - bytes in other forms: base64, digests, gzip and ZIP archives.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/str.h"

/* ---- base64 ---- */

/* Bytes as text (RFC 4648, section 4), padded, without line breaks. */

/*
 * Appends the bytes that text encodes. False, out unchanged: a length that is no multiple
 * of four, a character outside the alphabet, or bits beyond the last byte.
 */
bool base64_decode(struct str text, struct buf *out);

/* Appends 4 characters for every 3 bytes begun. */
void base64_encode(struct str bytes, struct buf *out);

/* ---- Digests ---- */

/* Names for contents: SHA-1 and SHA-256 (FIPS 180-4) of bytes in memory, by libcrypto. */

enum digest_kind { DIGEST_SHA1, DIGEST_SHA256 };
#define DIGEST_SHA1_BYTES 20
#define DIGEST_BYTES 32
#define DIGEST_HEX (2 * DIGEST_BYTES + 1)

/* Of head and bytes together. Returns how many bytes of out are the digest. */
size_t digest(enum digest_kind kind, struct str head, struct str bytes, uint8_t out[DIGEST_BYTES]);
/* Of bytes, in lower-case hexadecimal digits, NUL-terminated. Returns out. */
char *digest_hex(enum digest_kind kind, struct str bytes, char out[DIGEST_HEX]);

/* ---- gzip and ZIP ---- */

/*
 * gzip and zlib (RFC 1950 to 1952): a stream packed piece by piece, and whole texts packed and
 * unpacked. Also ZIP archives, which spreadsheets are.
 */

enum zip_outcome { ZIP_DAMAGED, ZIP_TOO_SMALL, ZIP_DONE };

/* gzip or zlib, several gzip members in a row too, into room[size]; *got is what was written. */
enum zip_outcome zip_unpack(struct str packed, void *room, size_t size, size_t *got);

/* Every piece but the last has exactly this many bytes; a multiple of 3, so base64 can follow. */
#define ZIP_PIECE_BYTES 49152

struct zip;
typedef void zip_sink(void *self, struct str piece);

/* Packs into zlib's format; level 1 (fast) to 9 (small). */
struct zip *zip_begin(int level, zip_sink *sink, void *self);
void zip_add(struct zip *z, struct str bytes);
void zip_end(struct zip *z); /* the last piece, then frees z */

/* bytes as one gzip member at the end of out; level 1 (fast) to 9 (small). */
void zip_gzip(struct str bytes, int level, struct buf *out);

/*
 * A ZIP archive (PKWARE's APPNOTE), file by file into out. Zeroed is an empty one. No file and no
 * archive of 4 GiB or more; buf's limit is below that.
 */
struct zip_archive {
	struct buf out;        /* the archive, once it has been ended; the caller releases it */
	struct buf directory;  /* private */
	unsigned n;
};
void zip_archive_add(struct zip_archive *a, const char *name, struct str bytes);
void zip_archive_end(struct zip_archive *a);
