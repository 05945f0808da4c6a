/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unigram.h - the most probable segmentation of one word (Viterbi).
 *
 * Every token has a score (a log probability); of all ways to cut the word into tokens the one with
 * the highest sum is used, the first found of equals. An unknown character costs the lowest score
 * less UNIGRAM_UNK_PENALTY. Neighboring unknown characters are one: their bytes' tokens where the
 * model has them all, else one unknown token.
 *
 * There are two references, with small differences. The library for tokenizer.json adds in double
 * precision and takes an unknown run that is a token as a whole for that token; the one for .model
 * files (is_sentencepiece) keeps sums in single precision and does not.
 *
 * struct unigram is read-only once built; struct unigram_work is one thread's.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "input/encode/ids.h"
#include "input/encode/vocab.h"

#define UNIGRAM_UNK_PENALTY 10.0
#define UNIGRAM_SCORE_MAX 1e29 /* of any sign: sums over the longest text stay finite floats */

/*
 * The tokens by their leading characters, as a double array. Each character has a number, its code:
 * smaller for characters that are frequent in the tokens, so that often used units are close
 * together; 0 for any that occurs in none. From a unit a code leads to unit base + code if that
 * unit has the code. No two units have the same base. The root is unit 0 with base 0: the units of
 * first characters are their codes.
 */
struct unigram_unit {
	double score; /* NAN: no token ends here */
	uint32_t base;
	uint32_t label; /* its own code; above it what its children's may be, see unigram_label */
};

#define UNIGRAM_CODE_BITS 21u
#define UNIGRAM_CODE ((1u << UNIGRAM_CODE_BITS) - 1)

/* A code and one of eleven bits that says, in a unit, that a child may have this code. */
static inline uint32_t unigram_label(uint32_t code)
{
	return code | 1u << (UNIGRAM_CODE_BITS + code % (32 - UNIGRAM_CODE_BITS));
}

struct unigram_end {
	uint32_t id, length; /* of the token that ends at a unit; length in characters */
};

#define UNIGRAM_PAGES 32768u /* for whatever a sequence of four bytes can say */
#define UNIGRAM_PAGE_BITS 6u

struct unigram {
	const struct vocab *vocab;
	struct unigram_unit *unit;
	struct unigram_end *end; /* by unit; of the root: unk, for an unknown character */
	size_t units;            /* a base and a code always lead to one of them */
	uint16_t *page;          /* by a code point's upper bits: where its page begins in label */
	size_t pages;
	uint32_t *label;         /* unigram_label by page and lower bits; 0: in no token */
	size_t labels;
	size_t longest;          /* characters of the longest token */
	double unk_score;
	uint32_t unk;
	uint32_t byte_id[256]; /* ids of <0x00>..<0xFF>; VOCAB_NONE: no fallback to this byte */
	bool is_sentencepiece;
	bool is_borrowed;      /* the arrays belong to another owner */
};

/*
 * After vocab_index. score, by id: NAN for tokens that text never becomes. ERR_LIMIT for a token of
 * more than TOKEN_ENTRY_BYTES_MAX bytes, and for unusual sets of tokens whose double array would be
 * mostly holes.
 */
int unigram_index(struct unigram *u, const double *score, bool has_byte_fallback, struct err *e);
void unigram_release(struct unigram *u); /* accepts a zeroed one */

struct unigram_work;
struct unigram_work *unigram_work_new(void);
void unigram_work_free(struct unigram_work *w); /* accepts NULL */

/* Appends the ids of one word of valid UTF-8. */
void unigram_word(const struct unigram *u, struct unigram_work *w, struct str word,
	struct ids *out);
