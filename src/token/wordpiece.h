/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/wordpiece.h - the longest token first, again and again, through one word.
 *
 * Tokens that continue a word are written with a prefix ("##"). A word with a
 * rest that is no token, or of more than max_chars characters, is the unknown
 * token as a whole.
 */
#pragma once
#include <stdint.h>

#include "base/str.h"
#include "token/ids.h"
#include "token/trie.h"
#include "token/vocab.h"

struct wordpiece {
	const struct vocab *vocab;
	struct trie first, later; /* all tokens; those with the prefix, without it */
	uint32_t unk;
	uint32_t max_chars;
};

/* Makes the tries, after vocab_index. WordLevel needs none. */
void wordpiece_index(struct wordpiece *p, struct str prefix);
void wordpiece_release(struct wordpiece *p); /* accepts a zeroed one */

/* Appends the ids of one word of valid UTF-8. */
void wordpiece_word(const struct wordpiece *p, struct str word, struct ids *out);
/* WordLevel: the word's id, or unk. */
void wordlevel_word(const struct wordpiece *p, struct str word, struct ids *out);
