/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe.h - byte-pair encoding of one word.
 *
 * A word starts as its symbols (bytes, or characters); the neighboring pair with the lowest rank,
 * the leftmost of equals, is joined until no pair has a rank.
 *
 * The same result is found without merging. Call two tokens compatible when merging their joint
 * text ends with just these two. A row of tokens is the encoding of its text exactly when every
 * token is the encoding of its own text and all neighbors are compatible, since a merge across a
 * seam depends only on the two tokens there. So the longest tokens are taken from left to right,
 * with a step back where neighbors are incompatible; what precedes a position is final, so no
 * position fails twice, and the cost is linear.
 *
 * Compatibility is checked by going back, latest merge first, through how both tokens were made.
 * This needs every token's merges in the order of their ranks; tokens that were made in another
 * order are found when the model is loaded (BPE_ODD), and for them the two are really merged.
 *
 * struct bpe is read-only once built. struct bpe_work is one thread's.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/str.h"
#include "input/encode/ids.h"
#include "input/encode/vocab.h"

struct bpe_pair {
	uint32_t left, right; /* left VOCAB_NONE: free */
	uint32_t rank, id;
};

/* How a token comes out of merging. */
struct bpe_token {
	uint32_t left, right; /* the last merge's parts */
	uint32_t order;       /* that merge's rank + 1; 0: a symbol; or one of those below */
	uint32_t shorter;     /* the longest token that begins this one; VOCAB_NONE: none */
	uint32_t length;      /* bytes */
};
#define BPE_NEVER UINT32_MAX     /* merging the token's own text gives something else */
#define BPE_ODD (UINT32_MAX - 1) /* it gives the token, but not in the order of ranks */
#define BPE_RANKS_MAX (UINT32_MAX - 2)

struct bpe {
	const struct vocab *vocab;
	bool is_chars;          /* symbols are characters, not bytes */
	bool has_byte_fallback; /* characters that are no token become their bytes' tokens */
	bool fuse_unk;          /* one unk for a run of missing symbols */
	bool ignore_merges;     /* a word that is a token is that token */
	uint32_t unk;           /* for missing symbols; VOCAB_NONE: they vanish */
	struct bpe_pair *pair;  /* open addressing */
	size_t slots, count;    /* slots: half as many more */
	uint64_t *filter;       /* a bit by the pair's hash, for saying no without looking */
	size_t filter_words;    /* a power of two */
	/* Made by bpe_index. */
	uint32_t byte_id[256];     /* is_chars: of fallback tokens; VOCAB_NONE: no such token */
	struct bpe_token *token;   /* by id */
	size_t tokens;
	struct trie trie;          /* all but BPE_NEVER */
	struct trie lost;          /* ignore_merges: those */
	uint64_t *seam;            /* where words can be cut, see bpe_cut; NULL: nowhere */
	size_t seam_words;
	bool is_borrowed;          /* pair, token and seam belong to another owner */
};

/*
 * Builds everything from all merges, after vocab_index; sorts them by rank, at most BPE_RANKS_MAX.
 * A pair that comes again takes its last rank.
 */
void bpe_index(struct bpe *b, struct bpe_pair *pair, size_t n);
/*
 * For models that are a list of tokens with ranks: every split of a token into two tokens is a
 * merge with the token's rank. rank_by_id: BPE_NEVER for tokens that merging never makes and that
 * are not part of others.
 */
void bpe_index_splits(struct bpe *b, const uint32_t *rank_by_id);
void bpe_release(struct bpe *b); /* accepts a zeroed one */

const struct bpe_pair *bpe_find(const struct bpe *b, uint32_t left, uint32_t right);

struct bpe_work;
struct bpe_work *bpe_work_new(void);
void bpe_work_free(struct bpe_work *w); /* accepts NULL */

/* Appends the ids of one word (valid UTF-8 where symbols are characters). */
void bpe_word(const struct bpe *b, struct bpe_work *w, struct str word, struct ids *out);

/*
 * The same in steps, so that parts of words can be looked up instead. bpe_lost: a word that is
 * a token though merging never makes it (ignore_merges); its id. Any other is cut: its front
 * part (of valid UTF-8) ends before the first character that no merge joins to the one before
 * it (b->seam only), and the parts are encoded one by one.
 */
bool bpe_lost(const struct bpe *b, struct str word, uint32_t *id);
size_t bpe_cut(const struct bpe *b, struct str word);
void bpe_part(const struct bpe *b, struct bpe_work *w, struct str part, struct ids *out);

/* The symbols of a text that is not empty, into out (emptied first). For tests. */
void bpe_spell(const struct bpe *b, struct str text, struct ids *out);
