/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/unigram.h - the most probable cutting of one word (Viterbi).
 *
 * Every token has a score (a log probability); of all ways to cut the word into
 * tokens the one with the highest sum wins, the first found of equals. A
 * character that is no token costs the lowest score less UNIGRAM_UNK_PENALTY.
 * Neighbouring unknown characters are one: their bytes' tokens where the model has
 * them all, else one unknown token.
 *
 * There are two references and they differ in small things. The library behind
 * tokenizer.json adds in double precision and takes an unknown run that is a token
 * as a whole for that token; the one behind .model files (is_sentencepiece) keeps
 * sums in single precision and does not.
 *
 * struct unigram is read-only once built; struct unigram_work is one thread's.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "token/ids.h"
#include "token/trie.h"
#include "token/vocab.h"

#define UNIGRAM_UNK_PENALTY 10.0
#define UNIGRAM_SCORE_MAX 1e29 /* of any sign: sums over the longest text stay finite floats */

struct unigram {
	const struct vocab *vocab;
	struct trie trie;      /* of tokens that text can become */
	size_t longest;        /* bytes of the longest of them, or of a character */
	double *score;         /* by id */
	size_t scores;         /* how many */
	double unk_score;
	uint32_t unk;
	uint32_t byte_id[256]; /* ids of <0x00>..<0xFF>; VOCAB_NONE: no fallback to this byte */
	bool is_sentencepiece;
	bool is_borrowed;      /* score belongs to somebody else */
};

/*
 * After vocab_index and the scores. is_text, by id: what text can become; NULL: every
 * token. ERR_LIMIT for a token of more than TOKEN_UNIGRAM_BYTES_MAX bytes.
 */
int unigram_index(struct unigram *u, bool has_byte_fallback, const bool *is_text, struct err *e);
void unigram_release(struct unigram *u); /* accepts a zeroed one */

struct unigram_work;
struct unigram_work *unigram_work_new(void);
void unigram_work_free(struct unigram_work *w); /* accepts NULL */

/* Appends the ids of one word of valid UTF-8. */
void unigram_word(const struct unigram *u, struct unigram_work *w, struct str word,
	struct ids *out);
