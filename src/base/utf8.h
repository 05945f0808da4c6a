/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - code points in and out, and one policy for broken bytes.
 *
 * Broken input is replaced as Python's errors="replace" does: one U+FFFD for
 * each maximal ill-formed part.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define UTF8_BAD UINT32_MAX

/*
 * Decodes one code point from the front of s (s.n > 0). Returns it and its
 * length in *n; for ill-formed input returns UTF8_BAD and the length of the
 * maximal part to replace (1..3). A sequence cut by the end of s is ill-formed.
 */
uint32_t utf8_decode(struct str s, size_t *n);
size_t utf8_encode(uint32_t cp, char out[4]); /* 1..4 bytes */
bool utf8_is_valid(struct str s);
bool utf8_is_one(struct str s); /* exactly one code point */
void utf8_add_lossy(struct buf *out, struct str s); /* appends with replacements */

/* One code point from the front of text known to be valid; its length goes to *n. */
static inline uint32_t utf8_next(const char *p, size_t *n)
{
	const uint8_t *b = (const uint8_t *)p;

	if (b[0] < 0x80) {
		*n = 1;
		return b[0];
	}
	if (b[0] < 0xe0) {
		*n = 2;
		return (b[0] & 0x1fu) << 6 | (b[1] & 0x3fu);
	}
	if (b[0] < 0xf0) {
		*n = 3;
		return (b[0] & 0xfu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
	}
	*n = 4;
	return (b[0] & 7u) << 18 | (b[1] & 0x3fu) << 12 | (b[2] & 0x3fu) << 6 | (b[3] & 0x3fu);
}
