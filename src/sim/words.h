/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - the words answers are made of.
 *
 * Each word is one token of the tokenizer: a space and lowercase ASCII letters.
 * Any sequence of them re-tokenizes to itself, so the text of n tokens counts n
 * tokens again and usage can be honest. Word i of an answer is a pure function
 * of the answer's key, so nothing is generated ahead and nothing is stored.
 */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "token/tokenizer.h"

#define WORD_BYTES_MAX 24

struct word {
	uint32_t id;
	uint8_t n;
	char text[WORD_BYTES_MAX];
};

struct words {
	struct word *word;
	size_t n;
};

/* Chooses the words by asking the tokenizer; ERR_PARSE when it has too few stable ones. */
int words_init(struct words *w, const struct tokenizer *t, struct err *e);
void words_release(struct words *w);

/* A well mixed 64-bit function; also what keys and ids are derived with. */
static inline uint64_t words_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline const struct word *words_at(const struct words *w, uint64_t key, uint64_t i)
{
	uint64_t draw = words_mix(key + i * 0x9e3779b97f4a7c15ull) >> 32;

	return &w->word[draw * w->n >> 32];
}
