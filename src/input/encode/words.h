/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - words to ids, for every kind of model, through a cache.
 *
 * Most words of a text occurred before. Short ones with few ids are kept in a direct-mapped table,
 * longer ones in a larger one, both owned by one thread; the rest goes to the model.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/str.h"
#include "input/encode/ids.h"
#include "input/encode/model.h"

struct words_work;
struct words_work *words_work_new(void);
void words_work_free(struct words_work *w); /* accepts NULL */

/* Appends the ids of the words, in order. */
void words_encode(const struct model *m, struct words_work *w, const struct str *word, size_t n,
	struct ids *out);

/* ---- Longer words ---- */

/*
 * A cache of longer words.
 *
 * The word cache holds words of a few bytes with a few ids. Longer ones are kept here: a
 * direct-mapped table points into a ring of ids and bytes, where new words overwrite the oldest.
 * Owned by one thread; its pages are only allocated as words come.
 */

#define LONG_WORD_BYTES_MAX 16384

struct long_words;
struct long_words *long_words_new(void);
void long_words_free(struct long_words *l); /* accepts NULL */

/*
 * Appends the ids of a cached word and returns true. kind distinguishes words whose equal bytes
 * have other ids (words.c). hash is that of long_words_hash.
 */
bool long_words_get(const struct long_words *l, struct str word, unsigned kind, uint64_t hash,
	struct ids *out);
void long_words_keep(struct long_words *l, struct str word, unsigned kind, uint64_t hash,
	const uint32_t *id, size_t count);
uint64_t long_words_hash(struct str word, unsigned kind);
