/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/bpe.h - byte-pair merging of one word.
 *
 * A word starts as its bytes; the neighbouring pair with the lowest rank, the
 * leftmost of equals, is joined until no pair has a rank. Short words are
 * scanned for it, long ones keep a heap, so a word of 100 KB costs n log n.
 *
 * struct bpe is read-only once built. struct bpe_work holds what one thread
 * needs.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "token/ids.h"
#include "token/vocab.h"

struct bpe_pair {
	uint32_t left, right; /* left VOCAB_NONE: free */
	uint32_t rank, id;
};

struct bpe {
	const struct vocab *vocab;
	struct bpe_pair *pair; /* open addressing, fill it with bpe_reserve and bpe_add */
	size_t mask, count;
	uint32_t byte_id[256]; /* VOCAB_NONE: the vocabulary has no such byte */
	uint32_t unk;          /* for missing bytes; VOCAB_NONE: they vanish, as in the reference */
	bool fuse_unk;         /* one unk for a run of missing bytes */
	bool ignore_merges;    /* a word that is a token is that token */
};

void bpe_reserve(struct bpe *b, size_t pairs);
/* The rank is the order of calls; a pair added again takes its last rank. */
void bpe_add(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank, uint32_t id);
/* After vocab_index. */
void bpe_index_bytes(struct bpe *b);
void bpe_release(struct bpe *b);

struct bpe_work;
struct bpe_work *bpe_work_new(void);
void bpe_work_free(struct bpe_work *w);

/* Appends the ids of one word. */
void bpe_word(const struct bpe *b, struct bpe_work *w, struct str word, struct ids *out);
