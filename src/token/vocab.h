/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/vocab.h - tokens by id and ids by bytes.
 *
 * Entries of the model's vocabulary are found by their bytes. A few have a
 * spelling that no byte sequence has (control tokens mostly); they are kept
 * apart, found by spelling only, and never come out of merging. Added tokens
 * have an id and bytes here, for decoding, but are not found by bytes.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define VOCAB_NONE UINT32_MAX
#define VOCAB_SLACK 16 /* readable bytes behind every token's */

struct vocab_entry {
	uint32_t start, length; /* in bytes */
	bool is_known, is_foreign, is_special;
};
struct vocab_slot {
	uint32_t tag, id; /* id VOCAB_NONE: free */
};

struct vocab {
	bool is_spelled; /* tokens are written in the byte alphabet (token/chars.h), not as text */
	bool has_doubles; /* a token may have several ids; the last one is found */
	struct buf bytes;
	struct vocab_entry *entry; /* by id, below id_limit */
	size_t id_limit, cap;
	size_t count;              /* V: entries of the model */
	struct vocab_slot *slot;
	size_t slots;              /* a power of two */
	struct map foreign;        /* spellings outside the byte alphabet */
	struct arena arena;
	bool is_borrowed; /* bytes, entry and slot belong to somebody else */
};

/* bytes: about how many all tokens have. */
void vocab_init(struct vocab *v, bool is_spelled, size_t bytes);
void vocab_release(struct vocab *v); /* accepts a zeroed one */

/* Adds an entry of the model by its spelling; ERR_PARSE when the id is taken or too large. */
int vocab_add(struct vocab *v, struct str spelled, int64_t id, struct err *e);
/* After the last vocab_add: makes the entries findable. ERR_PARSE when a spelling occurs twice
 * and has_doubles was not set. */
int vocab_index(struct vocab *v, struct err *e);
/* An added token: what id decodes to from now on. */
int vocab_set_added(struct vocab *v, struct str content, uint32_t id, bool is_special,
	struct err *e);

uint32_t vocab_find(const struct vocab *v, const char *p, size_t n); /* VOCAB_NONE when absent */
/* Many at once, id[i] of key[i]: their memory is asked for before it is needed. */
void vocab_find_many(const struct vocab *v, const struct str *key, uint32_t *id, size_t n);
uint32_t vocab_find_spelled(const struct vocab *v, struct str spelled);

static inline struct str vocab_bytes(const struct vocab *v, uint32_t id)
{
	const struct vocab_entry *entry = v->entry + id;

	return (struct str){ v->bytes.data + entry->start, entry->length };
}
