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
 * Appends the decoded bytes. False with out unchanged: the length is not a multiple of four, a
 * character is outside the alphabet, or the last character has bits that no byte uses.
 */
bool base64_decode(struct str text, struct buf *out);

/* Appends 4 characters for every 3 bytes or part of them. */
void base64_encode(struct str bytes, struct buf *out);

/* ---- Digests ---- */

/* Names for contents: SHA-1 and SHA-256 (FIPS 180-4) of bytes in memory, by libcrypto. */

enum digest_kind { DIGEST_SHA1, DIGEST_SHA256 };
#define DIGEST_SHA1_BYTES 20
#define DIGEST_BYTES 32
#define DIGEST_HEX (2 * DIGEST_BYTES + 1)

/* Digest of head followed by bytes. Returns the number of bytes written to out. */
size_t digest(enum digest_kind kind, struct str head, struct str bytes, uint8_t out[DIGEST_BYTES]);
/* As digest, as lower-case hexadecimal digits with a NUL. Returns out. */
char *digest_hex(enum digest_kind kind, struct str bytes, char out[DIGEST_HEX]);

/* ---- gzip and ZIP ---- */

/*
 * gzip and zlib (RFC 1950 to 1952): a stream packed piece by piece, and whole texts packed and
 * unpacked. Also ZIP archives, which spreadsheets are.
 */

enum zip_outcome { ZIP_DAMAGED, ZIP_TOO_SMALL, ZIP_DONE };

/* Unpacks gzip (also several members in a row) or zlib into room[size]; *got: bytes written. */
enum zip_outcome zip_unpack(struct str packed, void *room, size_t size, size_t *got);

/* Every piece but the last has exactly this many bytes; a multiple of 3, so base64 can follow. */
#define ZIP_PIECE_BYTES 49152

struct zip;
typedef void zip_sink(void *self, struct str piece);

/* Packs into zlib's format; level 1 (fast) to 9 (small). */
struct zip *zip_begin(int level, zip_sink *sink, void *self);
void zip_add(struct zip *z, struct str bytes);
void zip_end(struct zip *z); /* the last piece, then frees z */

/* Appends bytes as one gzip member to out; level 1 (fast) to 9 (small). */
void zip_gzip(struct str bytes, int level, struct buf *out);

/*
 * A ZIP archive (PKWARE's APPNOTE), appended to out file by file. A zeroed one is empty and valid.
 * Files and archive stay below 4 GiB because buf's limit does.
 */
struct zip_archive {
	struct buf out;        /* complete after zip_archive_end; the caller releases it */
	struct buf directory;  /* private */
	unsigned n;
};
void zip_archive_add(struct zip_archive *a, const char *name, struct str bytes);
void zip_archive_end(struct zip_archive *a);
