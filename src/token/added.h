/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/added.h - added tokens: found in the text before anything else.
 *
 * Two sets: those matched in the text as given, and those ("normalized") matched
 * in each piece between them after normalizing. Within a set the leftmost match
 * wins, then the longest; single_word, lstrip and rstrip are applied to it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct added_token {
	struct str content; /* owned by whoever loads (its arena) */
	uint32_t id;
	bool is_single_word, is_lstrip, is_rstrip, is_normalized, is_special;
	bool is_silent; /* has its id and content, but no text becomes it */
};

struct added_node { /* of a trie over bytes */
	uint32_t child, sibling; /* 0: none */
	uint32_t token;          /* ADDED_NONE: none ends here */
	uint8_t byte;
};
#define ADDED_NONE UINT32_MAX
struct added_set {
	struct added_node *node;
	size_t count, cap;
	uint32_t root[256]; /* node for a first byte, 0 for none */
	int only_first;     /* the one first byte of all tokens, or -1 */
	const struct added_token *token;
	bool is_borrowed;   /* node belongs to somebody else */
};

/* token: the array the ids given to added_put index; it must not move afterwards. */
void added_init(struct added_set *s, const struct added_token *token);
void added_put(struct added_set *s, struct str pattern, uint32_t token);
void added_release(struct added_set *s); /* accepts a zeroed one */

/* A walk over one text; start with { .text = ... }. */
struct added_walk {
	struct str text;
	size_t from; /* where the search goes on */
	size_t done; /* what was handed out */
};

/*
 * The next token in the text: true, *before the text between the one before and
 * this one (may be empty), *id the token. false at the end: *before is the rest.
 */
bool added_next(const struct added_set *s, struct added_walk *w, struct str *before, uint32_t *id);
