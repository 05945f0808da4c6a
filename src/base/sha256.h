/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - names for contents: SHA-256 (FIPS 180-4) of bytes in memory.
 */
#pragma once
#include <stdint.h>

#include "base/str.h"

#define SHA256_BYTES 32
#define SHA256_HEX (2 * SHA256_BYTES + 1)

void sha256(struct str bytes, uint8_t out[SHA256_BYTES]);
/* In lower-case hexadecimal digits, NUL-terminated. Returns out. */
char *sha256_hex(struct str bytes, char out[SHA256_HEX]);
