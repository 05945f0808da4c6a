/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/words.h - words to ids, whatever the model, with a cache in front.
 *
 * Most words of a text came before. Short ones with few ids are kept in a direct-mapped
 * table, longer ones in a larger one (long_words.h), both owned by one thread; the rest goes
 * to the model.
 */
#pragma once
#include <stddef.h>

#include "base/str.h"
#include "token/ids.h"
#include "token/model.h"

struct words_work;
struct words_work *words_work_new(void);
void words_work_free(struct words_work *w); /* accepts NULL */

/* Appends the ids of the words, in order. */
void words_encode(const struct model *m, struct words_work *w, const struct str *word, size_t n,
	struct ids *out);
