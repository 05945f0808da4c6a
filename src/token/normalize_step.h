/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/normalize_step.h - the steps of a normalizer, one kind of work a file.
 *
 * Each gives back its text, or a part of it, when it has nothing else to change;
 * else it resets out, writes there and gives that. Past out's limit, out->is_over
 * is set and the result is worthless.
 */
#pragma once
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "token/normalize.h"

/* normalize_form.c: NFC, NFD, NFKC, NFKD. */
struct str normalize_form(enum normalize_kind form, struct normalize_work *w, struct str text,
	struct buf *out);
/* normalize_chars.c: the steps that look at one character at a time. */
struct str normalize_chars(enum normalize_kind kind, struct str text, struct buf *out);
/* normalize_map.c */
struct str normalize_map(const struct charsmap *map, struct str text, struct buf *out);

/* The character at p in valid UTF-8 and its length. */
static inline uint32_t normalize_char(const char *p, size_t *n)
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
		return (b[0] & 0x0fu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
	}
	*n = 4;
	return (b[0] & 0x07u) << 18 | (b[1] & 0x3fu) << 12 | (b[2] & 0x3fu) << 6 | (b[3] & 0x3fu);
}

#define NORMALIZE_HIGH_BITS 0x8080808080808080u

/* Past the ASCII at at. */
static inline size_t normalize_skip_ascii(struct str text, size_t at)
{
	uint64_t word;

	for (; text.n - at >= 8; at += 8) {
		memcpy(&word, text.p + at, 8);
		if (word & NORMALIZE_HIGH_BITS)
			break;
	}
	while (at < text.n && (uint8_t)text.p[at] < 0x80)
		at++;
	return at;
}
