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
void utf8_add_lossy(struct buf *out, struct str s); /* appends with replacements */
