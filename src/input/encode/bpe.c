/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe.c - the pair table, symbols, merging, and the walk over a word.
 */
#include "input/encode/bpe.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/encode/vocab.h"

#define SCAN_MAX 64      /* symbols up to which scanning beats the heap */
#define KNOWN_PAIRS 4096 /* compatible or not, of pairs with an odd token; 48 KiB a thread */

/*
 * b->seam: which characters merges join, as three bit tables in a row: by two ASCII
 * characters; by a character's last byte and the next one's first, for the few merges whose
 * parts are pieces of characters; and by a hash of two characters.
 */
#define SEAM_ASCII (1u << 14)
#define SEAM_BYTES (1u << 16)
#define SEAM_HASH_BITS 20
#define SEAM_WORDS ((SEAM_ASCII + SEAM_BYTES + (1u << SEAM_HASH_BITS)) / 64)

static inline uint32_t seam_of_ascii(uint32_t left, uint32_t right)
{
	return left << 7 | right;
}

static inline uint32_t seam_of_bytes(uint8_t left, uint8_t right)
{
	return SEAM_ASCII + ((uint32_t)left << 8 | right);
}

static inline uint32_t seam_of_chars(uint32_t left, uint32_t right)
{
	return SEAM_ASCII + SEAM_BYTES + (uint32_t)(((uint64_t)left << 32 | right) *
		0x9e3779b97f4a7c15u >> (64 - SEAM_HASH_BITS));
}

struct known_pair {
	uint32_t left, right;
	uint32_t is_compatible;
};

struct bpe_candidate {
	uint32_t rank, at;
	uint32_t left, right; /* what stood there; differs now: the entry is stale */
	uint32_t id;
};
struct bpe_heap {
	struct bpe_candidate *item;
	size_t count, cap;
	uint32_t *prev, *next; /* the symbols as a list over their first positions */
	size_t list_cap;
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

/*
 * The first slot of a search. The number of slots need not be a power of two, which would make a
 * table half empty.
 */
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

static void fill_pairs(struct bpe *b, const struct bpe_pair *pair, size_t n)
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

/* ---- merging of long words ---- */

/*
 * A binary heap of candidate pairs over a linked list of symbols.
 *
 * Every merge pushes at most two candidates and pops one, and nothing is
 * removed from the middle: a candidate whose two symbols are no longer there is
 * recognised when it comes up, and dropped.
 */

#define END UINT32_MAX
#define GONE VOCAB_NONE

static bool is_before(const struct bpe_candidate *a, const struct bpe_candidate *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void sift_down(struct bpe_heap *h, size_t i)
{
	struct bpe_candidate moving = h->item[i];

	for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
		if (child + 1 < h->count && is_before(h->item + child + 1, h->item + child))
			child++;
		if (!is_before(h->item + child, &moving))
			break;
		h->item[i] = h->item[child];
	}
	h->item[i] = moving;
}

static void push(struct bpe_heap *h, struct bpe_candidate c)
{
	size_t i = h->count++;

	if (h->count > h->cap) {
		h->cap = h->cap ? h->cap * 2 : 1024;
		h->item = mem_grow(h->item, h->cap, sizeof *h->item);
	}
	for (; i > 0 && is_before(&c, h->item + (i - 1) / 2); i = (i - 1) / 2)
		h->item[i] = h->item[(i - 1) / 2];
	h->item[i] = c;
}

static struct bpe_candidate pop(struct bpe_heap *h)
{
	struct bpe_candidate top = h->item[0];

	h->item[0] = h->item[--h->count];
	if (h->count > 0)
		sift_down(h, 0);
	return top;
}

static void offer(struct bpe_heap *h, const struct bpe *b, const uint32_t *id, uint32_t at)
{
	const struct bpe_pair *pair;

	if (at == END || h->next[at] == END)
		return;
	pair = bpe_find(b, id[at], id[h->next[at]]);
	if (pair)
		push(h, (struct bpe_candidate){
			pair->rank, at, pair->left, pair->right, pair->id });
}

/* Joins the symbol at a candidate with its right neighbour, unless the candidate is stale. */
static void apply(struct bpe_heap *h, const struct bpe *b, uint32_t *id, struct bpe_candidate c)
{
	uint32_t right = h->next[c.at];

	if (id[c.at] != c.left || right == END || id[right] != c.right)
		return;
	id[c.at] = c.id;
	id[right] = GONE;
	h->next[c.at] = h->next[right];
	if (h->next[right] != END)
		h->prev[h->next[right]] = c.at;
	offer(h, b, id, h->prev[c.at]);
	offer(h, b, id, c.at);
}

/* Merges n ids in place, n < UINT32_MAX; returns how many are left. */
static size_t heap_merge(struct bpe_heap *h, const struct bpe *b, uint32_t *id, size_t n)
{
	size_t kept = 0;

	assert(n < UINT32_MAX);
	if (n > h->list_cap) {
		h->prev = mem_grow(h->prev, n, sizeof *h->prev);
		h->next = mem_grow(h->next, n, sizeof *h->next);
		h->list_cap = n;
	}
	for (uint32_t i = 0; i < n; i++) {
		h->prev[i] = i ? i - 1 : END;
		h->next[i] = i + 1 < n ? i + 1 : END;
	}
	h->count = 0;
	for (uint32_t i = 0; i < n; i++)
		offer(h, b, id, i);
	while (h->count > 0)
		apply(h, b, id, pop(h));
	for (size_t i = 0; i < n; i++)
		if (id[i] != GONE)
			id[kept++] = id[i];
	return kept;
}

static void heap_release(struct bpe_heap *h)
{
	free(h->item);
	free(h->prev);
	free(h->next);
	*h = (struct bpe_heap){ 0 };
}

/* ---- storage ---- */

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
	heap_release(&w->heap);
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
 * An unk is added before the next known symbol, or before the next unk if they are not fused;
 * fallback bytes may precede it. The reference does the same.
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

static size_t merge_symbols(const struct bpe *b, struct bpe_work *w, uint32_t *id, size_t n)
{
	return n <= SCAN_MAX ? merge_scan(b, id, n) : heap_merge(&w->heap, b, id, n);
}

static void merge_word(const struct bpe *b, struct bpe_work *w, struct str word, struct ids *out)
{
	bpe_spell(b, word, &w->symbol);
	w->symbol.count = merge_symbols(b, w, w->symbol.id, w->symbol.count);
	ids_add(out, w->symbol.id, w->symbol.count);
}

/* ---- compatible tokens ---- */

static bool is_quiet(const struct bpe *b, uint32_t left, uint32_t right)
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
	all.count = merge_symbols(b, w, all.id, all.count);
	is_apart = all.count == 2 && all.id[0] == left && all.id[1] == right;
	ids_release(&all);
	return is_apart;
}

static bool is_compatible(const struct bpe *b, struct bpe_work *w, uint32_t left, uint32_t right)
{
	struct known_pair *known;

	if (b->token[left].order < BPE_ODD && b->token[right].order < BPE_ODD)
		return !bpe_find(b, left, right) && is_quiet(b, left, right);
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
		/* No token continues from here: go back one token, and do not come here again. */
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

	assert(word.n > 0);
	for (; at < word.n; at += n, before = cp) {
		cp = utf8_next(word.p + at, &n);
		if ((before | cp) < 0x80) {
			if (!has_bit(b, seam_of_ascii(before, cp)))
				return at;
		} else if (!has_bit(b, seam_of_chars(before, cp)) &&
			!has_bit(b, seam_of_bytes((uint8_t)word.p[at - 1],
				(uint8_t)word.p[at]))) {
			return at;
		}
	}
	return word.n;
}

/* ---- what the walk needs to know of every token ---- */

/*
 * Merges are taken in the order of their ranks. The first one whose parts were both made before it,
 * and between which nothing else merges first, is the merge that makes its token; merging the
 * token's text then ends with it. This finds every token that is made in the order of ranks. The
 * few others are merged once.
 */

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

/*
 * True for a pair with known parts that were made before it, unless a merge at the seam comes
 * first.
 */
static bool makes_token(const struct bpe *b, const struct bpe_pair *pair)
{
	const struct bpe_token *left = b->token + pair->left, *right = b->token + pair->right;

	return left->order <= pair->rank && right->order <= pair->rank &&
		is_quiet(b, pair->left, pair->right);
}

static bool merges_to_itself(const struct bpe *b, struct bpe_work *w, uint32_t id,
	struct ids *symbol)
{
	bpe_spell(b, vocab_bytes(b->vocab, id), symbol);
	symbol->count = merge_symbols(b, w, symbol->id, symbol->count);
	return symbol->count == 1 && symbol->id[0] == id;
}

/* Prefetches memory for a merge a little later. */
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

/* Names of fallback tokens are not text, so their characters say nothing about seams. */
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

/* Cutting is valid if parts that are separate in a word are so in the whole text. */
static bool can_be_cut(const struct bpe *b, const struct bpe_pair *pair, size_t n)
{
	/* A missing symbol must give tokens of its own: others disappear, or are fused as unks. */
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

/* The whole character at the end, or at the front; UTF8_BAD when it is incomplete. */
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
		return seam_of_bytes((uint8_t)left.p[left.n - 1], (uint8_t)right.p[0]);
	if ((before | after) < 0x80)
		return seam_of_ascii(before, after);
	return seam_of_chars(before, after);
}

/* Prefetches the texts of merges a little later. */
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
	b->seam_words = SEAM_WORDS;
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

/* Drops pairs that come again with a later rank; n changes. */
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
	assert(b->vocab->slots > 0);
	sort_by_rank(pair, n);
	fill_pairs(b, pair, n);
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

	assert(b->vocab->slots > 0);
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
