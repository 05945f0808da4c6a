/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/unigram.h - the most probable cutting of one word (Viterbi).
 *
 * Every token has a score (a log probability); of all ways to cut the word into
 * tokens the one with the highest sum wins, the first found of equals. A
 * character that is no token costs the lowest score less UNIGRAM_UNK_PENALTY.
 *
 * struct unigram is read-only once built; struct unigram_work is one thread's.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "token/ids.h"
#include "token/trie.h"
#include "token/vocab.h"

#define UNIGRAM_UNK_PENALTY 10.0

struct unigram {
	const struct vocab *vocab;
	struct trie trie;      /* of tokens that text can become */
	double *score;         /* by id */
	size_t scores;         /* how many */
	double unk_score;
	uint32_t unk;          /* VOCAB_NONE: none, unknown characters vanish */
	uint32_t byte_id[256]; /* byte_fallback: ids of <0x00>..<0xFF>; VOCAB_NONE where missing */
	bool has_byte_fallback;
	bool fuse_unk;         /* one unk for neighbouring unknown characters */
	bool is_borrowed;      /* score belongs to somebody else */
};
void unigram_release(struct unigram *u); /* accepts a zeroed one */

struct unigram_work;
struct unigram_work *unigram_work_new(void);
void unigram_work_free(struct unigram_work *w); /* accepts NULL */

/* Appends the ids of one word of valid UTF-8. */
void unigram_word(const struct unigram *u, struct unigram_work *w, struct str word,
	struct ids *out);
