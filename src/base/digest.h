/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - names for contents: SHA-1 and SHA-256 (FIPS 180-4) of bytes in memory, by libcrypto.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum digest_kind { DIGEST_SHA1, DIGEST_SHA256 };
#define DIGEST_SHA1_BYTES 20
#define DIGEST_BYTES 32
#define DIGEST_HEX (2 * DIGEST_BYTES + 1)

/* Of head and bytes together. Returns how many bytes of out are the digest. */
size_t digest(enum digest_kind kind, struct str head, struct str bytes, uint8_t out[DIGEST_BYTES]);
/* Of bytes, in lower-case hexadecimal digits, NUL-terminated. Returns out. */
char *digest_hex(enum digest_kind kind, struct str bytes, char out[DIGEST_HEX]);
