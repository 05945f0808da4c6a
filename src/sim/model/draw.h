/* SPDX-License-Identifier: Apache-2.0 */
/* draw.h - random quantities: distributions of times and lengths, the words of answers. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/rng/rng.h"
#include "input/token/tokenizer.h"

/*
 * Non-negative amounts written as a number or a distribution.
 *
 *   20                 always 20
 *   uniform:10:30      evenly between 10 and 30
 *   normal:20:5        mean 20, standard deviation 5; draws below 0 become 0
 *   exp:20             exponential with mean 20
 *   lognormal:20:0.5   median 20, sigma 0.5 of the logarithm
 *
 * The unit is the caller's. Equal generator states give equal draws; a constant
 * draws nothing.
 */

enum dist_kind { DIST_CONSTANT, DIST_UNIFORM, DIST_NORMAL, DIST_EXP, DIST_LOGNORMAL };

struct dist {
	enum dist_kind kind;
	double a, b;
};

/* option is named in the error ("--ttft-ms"). ERR_USAGE. */
int dist_parse(struct dist *d, const char *option, const char *text, struct err *e);
double dist_draw(const struct dist *d, struct pcg64 *g);

/*
 * The words that answers are made of.
 *
 * Each word is one token of the tokenizer: a space and lowercase ASCII letters. Any sequence of
 * them re-tokenizes to itself, so the text of n tokens has n tokens again and the reported usage is
 * correct. Word i of an answer is a pure function of the answer's key, so nothing is generated
 * ahead and nothing is stored.
 */

#define WORD_BYTES_MAX 24

struct word {
	uint32_t id;
	uint8_t n;
	char text[WORD_BYTES_MAX];
};

struct sim_words {
	struct word *word;
	size_t n;
};

/* Finds the words with the tokenizer; ERR_PARSE when it has too few stable ones. */
int words_init(struct sim_words *w, const struct tokenizer *t, struct err *e);
void words_release(struct sim_words *w);

/* A well mixed 64-bit function; keys and ids are also derived with it. */
static inline uint64_t words_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline const struct word *words_at(const struct sim_words *w, uint64_t key, uint64_t i)
{
	uint64_t draw = words_mix(key + i * 0x9e3779b97f4a7c15ull) >> 32;

	return &w->word[draw * w->n >> 32];
}
