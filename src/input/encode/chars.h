/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chars.h - properties of single characters for tokenizers.
 *
 * Byte-level vocabularies write each byte as one printable character: the printable bytes 33..126,
 * 161..172 and 174..255 are themselves, the other 68 are U+0100 onwards in order.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/str.h"

bool chars_is_space(uint32_t cp); /* White_Space */
bool chars_is_word(uint32_t cp);  /* \w of Unicode 16 */
bool chars_is_numeric(uint32_t cp);     /* \p{N} in Unicode 17 */
bool chars_is_punctuation(uint32_t cp); /* of ASCII, or \p{P} in Unicode 8 */

/* Bytes of white space at the front, or at the end, of valid UTF-8. */
size_t chars_space_front(struct str s);
size_t chars_space_back(struct str s);
/* The last code point of valid UTF-8 (s.n > 0). */
uint32_t chars_last(struct str s);

/* The character that spells a byte. */
uint32_t chars_of_byte(uint8_t byte);
/* Appends the spelling of all bytes. */
void chars_spell(struct str bytes, struct buf *out);
/* Appends the bytes of such a spelling; false, out unchanged, when it is not one. */
bool chars_to_bytes(struct str spelled, struct buf *out);

/*
 * The text with every code point that Unicode 14 does not know by its Unicode 16 class replaced by
 * its substitute, at equal length. Returns text itself when there is none, else a copy in *scratch.
 * Valid UTF-8.
 */
struct str chars_stand_in(struct str text, struct buf *scratch);

/* ---- Classes ---- */

/*
 * The class of every code point in Unicode 16, at a nanosecond each.
 *
 * Classes are what regular expressions of tokenizers tell apart: the general
 * categories of letters, then marks, numbers, punctuation and symbols as wholes,
 * White_Space, and whether the script is Han. They partition the code points. A set
 * of classes is 32 bits, bit n for class n.
 */

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

/* ---- What is new in Unicode 16 ---- */

/*
 * Differences between Unicode 16 and an older regex library's version.
 *
 * The reference tokenizers match with Unicode 16 classes; Debian's PCRE2 has Unicode 14. Only the
 * code points whose category or script changed since matter: each has a substitute, a code point of
 * the right category in every version from 14 on and of the same UTF-8 length. Matching runs on a
 * copy of the text with the substitutes in place, so all offsets stay valid.
 *
 * The reference's punctuation is older: that of Unicode 8.
 *
 * Matching without the regex library uses the class of every code point in Unicode 16, above.
 *
 * The tables are in schema/unicode.json, which tools/unicode/generate.mjs writes.
 */

struct unicode_range {
	uint32_t first, last;
};
/* For bsearch: a code point among sorted rows that begin with their first and last one. */
static inline int unicode_by_range(const void *key, const void *row)
{
	const uint32_t cp = *(const uint32_t *)key, *range = row;

	return cp < range[0] ? -1 : cp > range[1];
}

/* ---- What normalizers ask ---- */

/*
 * Each property has the Unicode version of the reference's own data: normal forms and marks Unicode
 * 9, nonspacing marks and hidden characters Unicode 8, grapheme clusters Unicode 16, lower case
 * Unicode 17. In a normal form, characters newer than Unicode 9 do not interact with their
 * neighbors.
 */

/*
 * Bits 0..3: the form may change this character, by itself or for one before it.
 * Bits 8..15: the canonical class as a rank; 0 for a starter.
 */
#define UNICODE_NFC 0x01u
#define UNICODE_NFD 0x02u
#define UNICODE_NFKC 0x04u
#define UNICODE_NFKD 0x08u
#define UNICODE_ALIEN 0x10u      /* not in Unicode 9 */
#define UNICODE_MARK 0x20u       /* category M in Unicode 9 */
#define UNICODE_NONSPACING 0x40u /* category Mn in Unicode 8 */
#define UNICODE_RANK 0xff00u

#define UNICODE_NORM_LIMIT 0x30000u
#define UNICODE_NORM_BLOCK 32u

extern const uint16_t unicode_norm_kind[];
extern const uint16_t unicode_norm_block[UNICODE_NORM_LIMIT / UNICODE_NORM_BLOCK];
extern const uint8_t unicode_norm_of[];

static inline unsigned unicode_norm(uint32_t cp)
{
	if (cp >= UNICODE_NORM_LIMIT)
		return cp - 0xe0100 <= 0xef ? UNICODE_MARK | UNICODE_NONSPACING : UNICODE_ALIEN;
	return unicode_norm_kind[unicode_norm_of[unicode_norm_block[cp / UNICODE_NORM_BLOCK] *
		UNICODE_NORM_BLOCK + cp % UNICODE_NORM_BLOCK]];
}

/* Control, format and private use, and U+FFFD; not tab, line feed, carriage return. */
extern const struct unicode_range unicode_hidden[];
extern const size_t unicode_hidden_count;

/* From first to last, every step-th has a lower case at this distance. Not U+0130. */
struct unicode_lower {
	uint32_t first, last, step;
	int32_t distance;
};
extern const struct unicode_lower unicode_lower[];
extern const size_t unicode_lower_count;

/*
 * Grapheme cluster classes: where they change, as code point * 32 + the class from
 * there on, beginning with U+0000. Hangul syllables, LV and LVT, follow from their
 * place and are OTHER here.
 */
enum unicode_break {
	BREAK_OTHER, BREAK_CONTROL, BREAK_CR, BREAK_LF, BREAK_EXTEND, BREAK_SPACING, BREAK_JOINER,
	BREAK_NON_JOINER, BREAK_LINKER, BREAK_CONSONANT, BREAK_PREPEND, BREAK_PICTOGRAPH,
	BREAK_REGIONAL, BREAK_L, BREAK_V, BREAK_T, BREAK_LV, BREAK_LVT,
};
extern const uint32_t unicode_break[];
extern const size_t unicode_break_count;
