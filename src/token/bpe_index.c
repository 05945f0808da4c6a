/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe_index.c - what the walk needs to know of every token (see token/bpe.h).
 *
 * Merges are taken in the order of their ranks. The first one whose parts were
 * both made before it, and between which nothing else merges first, is the merge
 * that makes its token; merging the token's text then ends with it, and every
 * token is reached this way that is made in the order of ranks at all. The few
 * others are merged for real, once.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "token/bpe.h"

/* ---- symbols ---- */

static void index_bytes(struct bpe *b)
{
	for (unsigned i = 0; i < 256; i++) {
		char text[8] = { (char)i };
		size_t n = 1;

		if (b->is_chars) {
			static const char hex[] = "0123456789ABCDEF";

			n = 6;
			memcpy(text, "<0x__>", n);
			text[3] = hex[i >> 4];
			text[4] = hex[i & 15];
		}
		b->byte_id[i] = vocab_find(b->vocab, text, n);
	}
}

static bool is_symbol(const struct bpe *b, uint32_t id)
{
	struct str s = vocab_bytes(b->vocab, id);

	return b->is_chars ? utf8_is_one(s) : s.n == 1;
}

/* ---- tokens ---- */

static void sort_by_rank(struct bpe_pair *pair, size_t n)
{
	struct bpe_pair *copy;
	uint32_t rank_max = 0;
	bool is_sorted = true;
	size_t *at, sum = 0;

	for (size_t i = 0; i < n; i++) {
		is_sorted &= i == 0 || pair[i - 1].rank <= pair[i].rank;
		if (pair[i].rank > rank_max)
			rank_max = pair[i].rank;
	}
	if (is_sorted)
		return;
	at = mem_array((size_t)rank_max + 2, sizeof *at);
	copy = mem_array(n, sizeof *copy);
	memcpy(copy, pair, n * sizeof *copy);
	for (size_t i = 0; i < n; i++)
		at[pair[i].rank + 1]++;
	for (size_t i = 0; i <= rank_max; i++) {
		sum += at[i];
		at[i] = sum;
	}
	for (size_t i = 0; i < n; i++)
		pair[at[copy[i].rank]++] = copy[i];
	free(at);
	free(copy);
}

/* A pair whose parts are known and were made before it, and that nothing at the seam precedes. */
static bool makes_token(const struct bpe *b, const struct bpe_pair *pair)
{
	const struct bpe_token *left = b->token + pair->left, *right = b->token + pair->right;

	return left->order <= pair->rank && right->order <= pair->rank &&
		bpe_is_quiet(b, pair->left, pair->right);
}

static bool merges_to_itself(const struct bpe *b, struct bpe_work *w, uint32_t id,
	struct ids *symbol)
{
	bpe_spell(b, vocab_bytes(b->vocab, id), symbol);
	symbol->count = bpe_merge(b, w, symbol->id, symbol->count);
	return symbol->count == 1 && symbol->id[0] == id;
}

/* Asks for memory that a merge a little later will need. */
static void look_ahead(const struct bpe *b, const struct bpe_pair *later)
{
	__builtin_prefetch(b->token + later->left);
	__builtin_prefetch(b->token + later->right);
	__builtin_prefetch(b->token + later->id);
}

/* pair: sorted. */
static void index_tokens(struct bpe *b, const struct bpe_pair *pair, size_t n)
{
	struct bpe_work *work = bpe_work_new();
	struct ids symbol = { 0 };

	for (uint32_t id = 0; id < b->tokens; id++) {
		const struct vocab_entry *entry = b->vocab->entry + id;

		b->token[id] = (struct bpe_token){ .order = BPE_NEVER, .length = entry->length };
		if (entry->is_known && !entry->is_foreign && is_symbol(b, id))
			b->token[id].order = 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct bpe_token *token = b->token + pair[i].id;

		if (n - i > 8)
			look_ahead(b, pair + i + 8);
		if (token->order == BPE_NEVER && makes_token(b, pair + i)) {
			token->left = pair[i].left;
			token->right = pair[i].right;
			token->order = pair[i].rank + 1;
		}
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t id = pair[i].id;

		if (b->token[id].order == BPE_NEVER && merges_to_itself(b, work, id, &symbol))
			b->token[id].order = BPE_ODD;
	}
	ids_release(&symbol);
	bpe_work_free(work);
}

/* The trie of tokens that merging makes, or of those of the vocabulary that it never makes. */
static void build_trie(const struct bpe *b, bool is_made, struct trie *t)
{
	struct trie_key *key = mem_array(b->tokens + 1, sizeof *key);
	size_t n = 0;

	for (uint32_t id = 0; id < b->tokens; id++) {
		struct str bytes = vocab_bytes(b->vocab, id);
		const struct vocab_entry *entry = b->vocab->entry + id;

		if ((b->token[id].order != BPE_NEVER) == is_made && bytes.n > 0 &&
			entry->is_known && !entry->is_foreign)
			key[n++] = (struct trie_key){ bytes, id };
	}
	if (n > 0 || is_made)
		trie_build(t, key, n);
	free(key);
}

/* From the trie: which token is the longest beginning of which. */
static void index_beginnings(struct bpe *b)
{
	struct trie *t = &b->trie;
	uint32_t *above = mem_array(t->nodes, sizeof *above);

	above[0] = VOCAB_NONE;
	for (uint32_t node = 0; node + 1 < t->nodes; node++) {
		uint32_t value = t->node[node].value, below = above[node];

		if (value != TRIE_NONE) {
			b->token[value].shorter = above[node];
			below = value;
		}
		for (uint32_t i = t->node[node].child; i < t->node[node + 1].child; i++)
			above[i] = below;
	}
	free(above);
}

/* ---- cuts ---- */

/* Fallback tokens stand for bytes, so the characters of their names say nothing of seams. */
static bool has_fallback_merges(const struct bpe *b, const struct bpe_pair *pair, size_t n)
{
	bool *is_fallback = mem_array(b->tokens + 1, sizeof *is_fallback), has_any = false;

	for (size_t i = 0; i < 256; i++)
		if (b->byte_id[i] != VOCAB_NONE)
			is_fallback[b->byte_id[i]] = true;
	for (size_t i = 0; i < n; i++)
		has_any |= is_fallback[pair[i].left] || is_fallback[pair[i].right];
	free(is_fallback);
	return has_any;
}

/* Cutting is right when whatever stands apart in a word also does in the whole. */
static bool can_be_cut(const struct bpe *b, const struct bpe_pair *pair, size_t n)
{
	/* A missing symbol must give tokens of its own: others vanish, or wait as unks. */
	if (b->is_chars && !b->has_byte_fallback)
		return false;
	for (unsigned i = 0; i < 256; i++) {
		bool is_char = b->is_chars && i < 0x80 &&
			vocab_find(b->vocab, (char[]){ (char)i }, 1) != VOCAB_NONE;
		bool is_in_text = i < 0xc0 || (i >= 0xc2 && i <= 0xf4);

		if (b->byte_id[i] == VOCAB_NONE && !is_char && is_in_text)
			return false;
	}
	return !b->is_chars || !has_fallback_merges(b, pair, n);
}

static bool is_inner(char byte)
{
	return ((uint8_t)byte & 0xc0) == 0x80;
}

/* The whole character at the end, or at the front; UTF8_BAD when a piece of one stands there. */
static uint32_t last_char(struct str s)
{
	size_t at = s.n - 1, n;
	uint32_t cp;

	while (at > 0 && is_inner(s.p[at]))
		at--;
	cp = utf8_decode((struct str){ s.p + at, s.n - at }, &n);
	return n == s.n - at ? cp : UTF8_BAD;
}

static uint32_t first_char(struct str s)
{
	size_t n;

	return utf8_decode(s, &n);
}

static uint32_t seam_of(struct str left, struct str right)
{
	uint32_t before = last_char(left), after = first_char(right);

	if (before == UTF8_BAD || after == UTF8_BAD)
		return bpe_seam_bytes((uint8_t)left.p[left.n - 1], (uint8_t)right.p[0]);
	if ((before | after) < 0x80)
		return bpe_seam_ascii(before, after);
	return bpe_seam_chars(before, after);
}

/* Asks for the texts of merges a little later. */
static void look_ahead_text(const struct bpe *b, const struct bpe_pair *pair, size_t left)
{
	const struct vocab *v = b->vocab;

	if (left > 16) {
		__builtin_prefetch(v->entry + pair[16].left);
		__builtin_prefetch(v->entry + pair[16].right);
	}
	if (left > 8) {
		__builtin_prefetch(vocab_bytes(v, pair[8].left).p);
		__builtin_prefetch(vocab_bytes(v, pair[8].right).p);
	}
}

static void index_seams(struct bpe *b, const struct bpe_pair *pair, size_t n)
{
	if (!can_be_cut(b, pair, n))
		return;
	b->seam_words = BPE_SEAM_WORDS;
	b->seam = mem_array(b->seam_words, sizeof *b->seam);
	for (size_t i = 0; i < n; i++) {
		struct str left, right;
		uint32_t bit;

		look_ahead_text(b, pair + i, n - i);
		left = vocab_bytes(b->vocab, pair[i].left);
		right = vocab_bytes(b->vocab, pair[i].right);
		if (is_inner(right.p[0])) /* inside a character, where nothing is cut */
			continue;
		bit = seam_of(left, right);
		b->seam[bit / 64] |= 1ull << bit % 64;
	}
}

/* ---- all ---- */

/* Pairs of earlier ranks go where the same pair comes again; n changes. */
static void drop_doubles(const struct bpe *b, struct bpe_pair *pair, size_t *n)
{
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++)
		if (bpe_find(b, pair[i].left, pair[i].right)->rank == pair[i].rank)
			pair[kept++] = pair[i];
	*n = kept;
}

void bpe_index(struct bpe *b, struct bpe_pair *pair, size_t n)
{
	sort_by_rank(pair, n);
	bpe_fill_pairs(b, pair, n);
	if (b->count < n)
		drop_doubles(b, pair, &n);
	index_bytes(b);
	b->tokens = b->vocab->id_limit;
	b->token = mem_array(b->tokens + 1, sizeof *b->token);
	index_tokens(b, pair, n);
	build_trie(b, true, &b->trie);
	if (b->ignore_merges)
		build_trie(b, false, &b->lost);
	index_beginnings(b);
	index_seams(b, pair, n);
}

void bpe_index_splits(struct bpe *b, const uint32_t *rank_by_id)
{
	const struct vocab *v = b->vocab;
	struct bpe_pair *pair = NULL;
	size_t n = 0, cap = 0;

	for (uint32_t id = 0; id < v->id_limit; id++) {
		struct str s = vocab_bytes(v, id);

		if (rank_by_id[id] == BPE_NEVER || !v->entry[id].is_known)
			continue;
		for (size_t cut = 1; cut < s.n; cut++) {
			uint32_t left = vocab_find(v, s.p, cut), right;

			if (left == VOCAB_NONE || rank_by_id[left] == BPE_NEVER)
				continue;
			right = vocab_find(v, s.p + cut, s.n - cut);
			if (right == VOCAB_NONE || rank_by_id[right] == BPE_NEVER)
				continue;
			if (n == cap) {
				cap = cap ? cap * 2 : 4096;
				pair = mem_grow(pair, cap, sizeof *pair);
			}
			pair[n++] = (struct bpe_pair){ left, right, rank_by_id[id], id };
		}
	}
	bpe_index(b, pair, n);
	free(pair);
}
