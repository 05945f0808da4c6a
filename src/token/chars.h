/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/chars.h - what tokenizers ask about single characters.
 *
 * Byte-level vocabularies spell each byte as one printable character: the
 * printable bytes 33..126, 161..172 and 174..255 stand for themselves, the
 * other 68 for U+0100 onwards in order.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

bool chars_is_space(uint32_t cp); /* White_Space */
bool chars_is_word(uint32_t cp);  /* \w as Unicode 16 has it */
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
/* Appends the bytes that a spelling stands for; false, out unchanged, when it is none. */
bool chars_to_bytes(struct str spelled, struct buf *out);

/*
 * Valid UTF-8 with every code point that Unicode 14 does not know by its
 * Unicode 16 class replaced by its stand-in (token/unicode16.h), at equal
 * length. Returns text itself when there is none, else a copy in *scratch.
 */
struct str chars_stand_in(struct str text, struct buf *scratch);
