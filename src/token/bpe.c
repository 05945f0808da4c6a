/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe.c - the pair table, symbols, merging, and the walk over a word.
 */
#include "token/bpe.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "token/bpe_heap.h"
#include "token/hash.h"

#define SCAN_MAX 64      /* symbols up to which scanning beats the heap */
#define KNOWN_PAIRS 4096 /* compatible or not, of pairs with an odd token; 48 KiB a thread */

struct known_pair {
	uint32_t left, right;
	uint32_t is_compatible;
};

struct bpe_work {
	struct ids symbol;
	struct bpe_heap heap;
	struct known_pair *known; /* by hash; left VOCAB_NONE: free */
	uint64_t *dead;           /* a bit for each position of a word that leads nowhere */
	size_t dead_words;
};

/* ---- pairs ---- */

static uint64_t pair_hash(uint32_t left, uint32_t right)
{
	return hash_mix(((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u);
}

/* Where a search begins: slots are no power of two, for half a table of holes must be loaded. */
static size_t first_slot(const struct bpe *b, uint64_t hash)
{
	return (hash & UINT32_MAX) * b->slots >> 32;
}

static struct bpe_pair *pair_slot(const struct bpe *b, uint32_t left, uint32_t right,
	uint64_t hash)
{
	size_t i = first_slot(b, hash);

	while (b->pair[i].left != VOCAB_NONE &&
		(b->pair[i].left != left || b->pair[i].right != right))
		i = i + 1 < b->slots ? i + 1 : 0;
	return b->pair + i;
}

void bpe_fill_pairs(struct bpe *b, const struct bpe_pair *pair, size_t n)
{
	const size_t ahead = 8;

	assert(!b->pair);
	b->slots = n + n / 2 + 1;
	b->pair = mem_array(b->slots, sizeof *b->pair);
	memset(b->pair, 0xff, b->slots * sizeof *b->pair);
	b->filter_words = 8;
	while (b->filter_words < b->slots / 8) /* eight bits a slot */
		b->filter_words *= 2;
	b->filter = mem_array(b->filter_words, sizeof *b->filter);
	for (size_t i = 0; i < n; i++) {
		uint64_t hash = pair_hash(pair[i].left, pair[i].right), bit = hash >> 32;
		struct bpe_pair *slot = pair_slot(b, pair[i].left, pair[i].right, hash);

		if (i + ahead < n)
			__builtin_prefetch(b->pair + first_slot(b,
				pair_hash(pair[i + ahead].left, pair[i + ahead].right)));
		assert(pair[i].rank <= BPE_RANKS_MAX);
		b->count += slot->left == VOCAB_NONE;
		*slot = pair[i];
		b->filter[bit / 64 & (b->filter_words - 1)] |= 1ull << bit % 64;
	}
}

const struct bpe_pair *bpe_find(const struct bpe *b, uint32_t left, uint32_t right)
{
	uint64_t hash = pair_hash(left, right), bit = hash >> 32;
	const struct bpe_pair *slot;

	if (!(b->filter[bit / 64 & (b->filter_words - 1)] >> bit % 64 & 1))
		return NULL;
	slot = pair_slot(b, left, right, hash);
	return slot->left == VOCAB_NONE ? NULL : slot;
}

void bpe_release(struct bpe *b)
{
	if (!b->is_borrowed) {
		free(b->pair);
		free(b->filter);
		free(b->token);
		free(b->seam);
	}
	trie_release(&b->trie);
	trie_release(&b->lost);
	*b = (struct bpe){ 0 };
}

struct bpe_work *bpe_work_new(void)
{
	return mem_alloc(sizeof(struct bpe_work));
}

void bpe_work_free(struct bpe_work *w)
{
	if (!w)
		return;
	ids_release(&w->symbol);
	bpe_heap_release(&w->heap);
	free(w->known);
	free(w->dead);
	free(w);
}

/* ---- symbols ---- */

/* Adds the bytes' own tokens; false, nothing added, when one is missing. */
static bool spell_bytes(const struct bpe *b, struct str bytes, struct ids *out)
{
	for (size_t i = 0; i < bytes.n; i++)
		if (b->byte_id[(uint8_t)bytes.p[i]] == VOCAB_NONE)
			return false;
	for (size_t i = 0; i < bytes.n; i++)
		ids_push(out, b->byte_id[(uint8_t)bytes.p[i]]);
	return true;
}

/*
 * An unk waits for the next known symbol, or for the next unk where they are not
 * fused; bytes of a fallback overtake it. So does the reference.
 */
void bpe_spell(const struct bpe *b, struct str text, struct ids *out)
{
	bool is_waiting = false;

	ids_reset(out);
	ids_reserve(out, text.n);
	for (size_t at = 0, n = 1; at < text.n; at += n) {
		struct str symbol = { text.p + at, text.n - at };
		uint32_t id;

		if (b->is_chars) {
			utf8_decode(symbol, &n);
			symbol.n = n;
			id = vocab_find(b->vocab, symbol.p, n);
		} else {
			symbol.n = 1;
			id = b->byte_id[(uint8_t)*symbol.p];
		}
		if (id == VOCAB_NONE && b->has_byte_fallback && spell_bytes(b, symbol, out))
			continue;
		if (is_waiting && (id != VOCAB_NONE || !b->fuse_unk))
			ids_push(out, b->unk);
		is_waiting = id == VOCAB_NONE && b->unk != VOCAB_NONE;
		if (id != VOCAB_NONE)
			ids_push(out, id);
	}
	if (is_waiting)
		ids_push(out, b->unk);
}

/* ---- merging ---- */

/* Merges n ids in place by looking for the best pair each time; returns how many are left. */
static size_t merge_scan(const struct bpe *b, uint32_t *id, size_t n)
{
	uint32_t rank[SCAN_MAX], joined[SCAN_MAX];
	const struct bpe_pair *pair;

	assert(n <= SCAN_MAX);
	for (size_t i = 0; i + 1 < n; i++) {
		pair = bpe_find(b, id[i], id[i + 1]);
		rank[i] = pair ? pair->rank : UINT32_MAX;
		joined[i] = pair ? pair->id : 0;
	}
	for (;;) {
		uint32_t best = UINT32_MAX;
		size_t at = 0;

		for (size_t i = 0; i + 1 < n; i++) {
			if (rank[i] < best) {
				best = rank[i];
				at = i;
			}
		}
		if (best == UINT32_MAX)
			return n;
		id[at] = joined[at];
		n--;
		memmove(id + at + 1, id + at + 2, (n - at - 1) * sizeof *id);
		memmove(rank + at, rank + at + 1, (n - at - 1) * sizeof *rank);
		memmove(joined + at, joined + at + 1, (n - at - 1) * sizeof *joined);
		for (size_t i = at ? at - 1 : 0; i <= at && i + 1 < n; i++) {
			pair = bpe_find(b, id[i], id[i + 1]);
			rank[i] = pair ? pair->rank : UINT32_MAX;
			joined[i] = pair ? pair->id : 0;
		}
	}
}

size_t bpe_merge(const struct bpe *b, struct bpe_work *w, uint32_t *id, size_t n)
{
	return n <= SCAN_MAX ? merge_scan(b, id, n) : bpe_heap_merge(&w->heap, b, id, n);
}

static void merge_word(const struct bpe *b, struct bpe_work *w, struct str word, struct ids *out)
{
	bpe_spell(b, word, &w->symbol);
	w->symbol.count = bpe_merge(b, w, w->symbol.id, w->symbol.count);
	ids_add(out, w->symbol.id, w->symbol.count);
}

/* ---- compatible tokens ---- */

bool bpe_is_quiet(const struct bpe *b, uint32_t left, uint32_t right)
{
	for (;;) {
		const struct bpe_token *l = b->token + left, *r = b->token + right;
		const struct bpe_pair *pair;
		uint32_t limit;

		/* The later one of their merges is undone; of equal ones the right one is later. */
		if (l->order > r->order) {
			limit = l->order;
			left = l->right;
		} else if (r->order > 0) {
			limit = r->order + 1; /* a merge of the same rank at the seam comes first */
			right = r->left;
		} else {
			return true;
		}
		pair = bpe_find(b, left, right);
		if (pair && pair->rank + 1 < limit)
			return false;
	}
}

static bool is_kept_apart(const struct bpe *b, struct bpe_work *w, uint32_t left, uint32_t right)
{
	struct str l = vocab_bytes(b->vocab, left), r = vocab_bytes(b->vocab, right);
	struct ids all = { 0 };
	bool is_apart;

	bpe_spell(b, l, &w->symbol);
	ids_add(&all, w->symbol.id, w->symbol.count);
	bpe_spell(b, r, &w->symbol);
	ids_add(&all, w->symbol.id, w->symbol.count);
	all.count = bpe_merge(b, w, all.id, all.count);
	is_apart = all.count == 2 && all.id[0] == left && all.id[1] == right;
	ids_release(&all);
	return is_apart;
}

static bool is_compatible(const struct bpe *b, struct bpe_work *w, uint32_t left, uint32_t right)
{
	struct known_pair *known;

	if (b->token[left].order < BPE_ODD && b->token[right].order < BPE_ODD)
		return !bpe_find(b, left, right) && bpe_is_quiet(b, left, right);
	if (!w->known) {
		w->known = mem_array(KNOWN_PAIRS, sizeof *w->known);
		memset(w->known, 0xff, KNOWN_PAIRS * sizeof *w->known);
	}
	known = w->known + hash_mix((uint64_t)left << 32 | right) % KNOWN_PAIRS;
	if (known->left != left || known->right != right)
		*known = (struct known_pair){ left, right, is_kept_apart(b, w, left, right) };
	return known->is_compatible;
}

/* ---- the walk ---- */

#define DEAD_WORDS 8 /* words of up to 511 bytes need no memory */

static uint64_t *clear_dead(struct bpe_work *w, size_t positions, uint64_t *small)
{
	size_t words = positions / 64 + 1;
	uint64_t *dead = small;

	if (words > DEAD_WORDS && words > w->dead_words) {
		w->dead = mem_grow(w->dead, words, sizeof *w->dead);
		w->dead_words = words;
	}
	if (words > DEAD_WORDS)
		dead = w->dead;
	memset(dead, 0, words * sizeof *dead);
	return dead;
}

/* Appends the encoding; false, out as before, when a symbol of the word is no token. */
static bool walk_word(const struct bpe *b, struct bpe_work *w, struct str word, struct ids *out)
{
	uint64_t small[DEAD_WORDS], *dead = clear_dead(w, word.n, small);
	size_t before = out->count, at = 0, length = 0;
	uint32_t last = VOCAB_NONE, token = trie_longest(&b->trie, word, &length);

	while (token != VOCAB_NONE) {
		size_t end = at + b->token[token].length;

		if (!(dead[end / 64] >> end % 64 & 1) &&
			(last == VOCAB_NONE || is_compatible(b, w, last, token))) {
			ids_push(out, token);
			if (end == word.n)
				return true;
			at = end;
			last = token;
			token = trie_longest(&b->trie,
				(struct str){ word.p + at, word.n - at }, &length);
			continue;
		}
		token = b->token[token].shorter;
		if (token != VOCAB_NONE || last == VOCAB_NONE)
			continue;
		/* Nothing goes on from here: back to the token before, and never here again. */
		dead[at / 64] |= 1ull << at % 64;
		token = last;
		at -= b->token[token].length;
		out->count--;
		last = out->count > before ? out->id[out->count - 1] : VOCAB_NONE;
	}
	out->count = before;
	return false;
}

bool bpe_lost(const struct bpe *b, struct str word, uint32_t *id)
{
	size_t n = 0;

	if (b->lost.nodes == 0)
		return false;
	*id = trie_longest(&b->lost, word, &n);
	return *id != TRIE_NONE && n == word.n;
}

void bpe_part(const struct bpe *b, struct bpe_work *w, struct str part, struct ids *out)
{
	if (!walk_word(b, w, part, out))
		merge_word(b, w, part, out);
}

void bpe_word(const struct bpe *b, struct bpe_work *w, struct str word, struct ids *out)
{
	uint32_t id;

	if (bpe_lost(b, word, &id))
		ids_push(out, id);
	else
		bpe_part(b, w, word, out);
}

/* ---- cuts ---- */

static inline bool has_bit(const struct bpe *b, uint32_t bit)
{
	return b->seam[bit / 64] >> bit % 64 & 1;
}

size_t bpe_cut(const struct bpe *b, struct str word)
{
	size_t at, n;
	uint32_t before = utf8_next(word.p, &at), cp;

	for (; at < word.n; at += n, before = cp) {
		cp = utf8_next(word.p + at, &n);
		if ((before | cp) < 0x80) {
			if (!has_bit(b, bpe_seam_ascii(before, cp)))
				return at;
		} else if (!has_bit(b, bpe_seam_chars(before, cp)) &&
			!has_bit(b, bpe_seam_bytes((uint8_t)word.p[at - 1],
				(uint8_t)word.p[at]))) {
			return at;
		}
	}
	return word.n;
}
