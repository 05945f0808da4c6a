/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/classes.h - the class of every code point in Unicode 16, at a nanosecond each.
 *
 * Classes are what regular expressions of tokenizers tell apart: the general
 * categories of letters, then marks, numbers, punctuation and symbols as wholes,
 * White_Space, and whether the script is Han. They partition the code points. A set
 * of classes is 32 bits, bit n for class n.
 */
#pragma once
#include <stdint.h>

enum char_class {
	CLASS_OTHER, /* controls, format characters, private use, unassigned */
	CLASS_LU, CLASS_LT, CLASS_LL, CLASS_LM, CLASS_LO,
	CLASS_MARK, CLASS_NUMBER, CLASS_PUNCTUATION, CLASS_SYMBOL,
	CLASS_SPACE,   /* White_Space except the next */
	CLASS_NEWLINE, /* U+000A and U+000D */
	CLASS_LEAD,    /* no class: a byte that begins a longer character */
	CLASS_END,     /* no class: the end of a text */
	CLASS_HAN = 16, /* added to any of the above */
};

/* The set of one class, in the Han script or out of it. */
#define CLASS_SET(class) (1u << (class) | 1u << ((class) + CLASS_HAN))
#define CLASS_HAN_SET 0xffff0000u
#define CLASS_LETTERS (CLASS_SET(CLASS_LU) | CLASS_SET(CLASS_LT) | CLASS_SET(CLASS_LL) | \
	CLASS_SET(CLASS_LM) | CLASS_SET(CLASS_LO))
#define CLASS_SPACES (1u << CLASS_SPACE | 1u << CLASS_NEWLINE)

#define CLASS_PAGES_MAX 192 /* 156 are in use */

struct classes {
	uint8_t byte[256]; /* of a one-byte character, else CLASS_LEAD */
	uint8_t page_of[0x110000 >> 8];
	uint8_t page[CLASS_PAGES_MAX][256];
};

/* The one table, made at the first call; any thread. */
const struct classes *classes_get(void);

static inline unsigned classes_of(const struct classes *c, uint32_t cp)
{
	return c->page[c->page_of[cp >> 8]][cp & 0xff];
}

/* The class of a character of two to four bytes in valid UTF-8, and its length. */
static inline unsigned classes_of_long(const struct classes *c, const uint8_t *p, unsigned *n)
{
	if (*p < 0xe0) {
		*n = 2;
		return classes_of(c, (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu));
	}
	if (*p < 0xf0) {
		*n = 3;
		return classes_of(c, (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu));
	}
	*n = 4;
	return classes_of(c, (p[0] & 0x7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 |
		(p[3] & 0x3fu));
}
