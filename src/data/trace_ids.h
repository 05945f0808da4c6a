/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/trace_ids.h - token ids that prompts of traces are made of, and how ids of blocks and
 * tokens are spelled. Private to data/: timed_trace and trace.
 */
#pragma once
#include "base/buf.h"
#include "json/read.h"
#include "token/tokenizer.h"

/* All tokens, added ones too, but the declared special ones, ascending. The caller frees *id. */
int trace_ids_all(const struct tokenizer *t, uint32_t **id, size_t *n, struct err *e);
/*
 * Keeps the tokens that begin a word and that a text of them gives back; all where they are fewer
 * than TRACE_WORDS_MIN.
 */
#define TRACE_WORDS_MIN 256
void trace_ids_words(const struct tokenizer *t, uint32_t *id, size_t *n);
/* Appends a token id to a JSON list that is begun. */
void trace_ids_put(struct buf *list, uint32_t id);
/* Appends the id of a block as Python's str() spells it; false: it is none. */
bool trace_ids_name(struct json_slice id, struct buf *out);
