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
#include "token/vocab.h"

#define UNIGRAM_UNK_PENALTY 10.0
#define UNIGRAM_SCORE_MAX 1e29 /* of any sign: sums over the longest text stay finite floats */

/*
 * The tokens by their leading bytes, as a double array: the way from a unit by a byte
 * leads to unit base ^ byte if that one's parent is the unit. The root is unit 0.
 */
struct unigram_unit {
	double score; /* NAN: no token ends here */
	uint32_t base, parent;
};

struct unigram {
	const struct vocab *vocab;
	struct unigram_unit *unit;
	uint32_t *id;          /* by unit, of the token that ends there */
	size_t units;          /* whole blocks of 256 */
	size_t longest;        /* bytes of the longest token, or of a character */
	double unk_score;
	uint32_t unk;
	uint32_t byte_id[256]; /* ids of <0x00>..<0xFF>; VOCAB_NONE: no fallback to this byte */
	bool is_sentencepiece;
	bool is_borrowed;      /* unit and id belong to somebody else */
};

/*
 * After vocab_index. score, by id: NAN for tokens that text never becomes.
 * ERR_LIMIT for a token of more than TOKEN_UNIGRAM_BYTES_MAX bytes.
 */
int unigram_index(struct unigram *u, const double *score, bool has_byte_fallback, struct err *e);
void unigram_release(struct unigram *u); /* accepts a zeroed one */

struct unigram_work;
struct unigram_work *unigram_work_new(void);
void unigram_work_free(struct unigram_work *w); /* accepts NULL */

/* Appends the ids of one word of valid UTF-8. */
void unigram_word(const struct unigram *u, struct unigram_work *w, struct str word,
	struct ids *out);
