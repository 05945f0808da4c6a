/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe.c - pair table, word cache, and the two ways to merge.
 */
#include "token/bpe.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "token/bpe_heap.h"
#include "token/hash.h"

#define SCAN_MAX 64       /* symbols up to which scanning beats the heap */

struct bpe_work {
	struct ids symbol;
	struct bpe_heap heap;
};

/* ---- pairs ---- */

static size_t pair_start(const struct bpe *b, uint32_t left, uint32_t right)
{
	return hash_mix(((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u) & b->mask;
}

void bpe_reserve(struct bpe *b, size_t pairs)
{
	size_t cap = 64;

	assert(!b->pair);
	while (cap < pairs * 2)
		cap *= 2;
	b->pair = mem_array(cap, sizeof *b->pair);
	memset(b->pair, 0xff, cap * sizeof *b->pair);
	b->mask = cap - 1;
}

static struct bpe_pair *pair_slot(const struct bpe *b, uint32_t left, uint32_t right)
{
	size_t i = pair_start(b, left, right);

	while (b->pair[i].left != VOCAB_NONE &&
		(b->pair[i].left != left || b->pair[i].right != right))
		i = (i + 1) & b->mask;
	return b->pair + i;
}

void bpe_add(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank, uint32_t id)
{
	struct bpe_pair *slot = pair_slot(b, left, right);

	if (slot->left == VOCAB_NONE) {
		b->count++;
		assert(b->count * 2 <= b->mask + 1);
	}
	*slot = (struct bpe_pair){ left, right, rank, id };
}

const struct bpe_pair *bpe_find(const struct bpe *b, uint32_t left, uint32_t right)
{
	const struct bpe_pair *slot = pair_slot(b, left, right);

	return slot->left == VOCAB_NONE ? NULL : slot;
}

void bpe_index_bytes(struct bpe *b)
{
	for (unsigned i = 0; i < 256; i++) {
		char c = (char)i;

		b->byte_id[i] = vocab_find(b->vocab, &c, 1);
	}
}

void bpe_release(struct bpe *b)
{
	free(b->pair);
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
	free(w);
}

/* ---- merging ---- */

/* The word's bytes as ids. */
static void spell(const struct bpe *b, struct str word, struct ids *out)
{
	bool was_unk = false;

	ids_reserve(out, word.n);
	for (size_t i = 0; i < word.n; i++) {
		uint32_t id = b->byte_id[(uint8_t)word.p[i]];
		bool is_unk = id == VOCAB_NONE;

		if (is_unk)
			id = b->unk;
		if (id != VOCAB_NONE && !(is_unk && was_unk && b->fuse_unk))
			out->id[out->count++] = id;
		was_unk = is_unk;
	}
}

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

void bpe_word(const struct bpe *b, struct bpe_work *w, struct str word, struct ids *out)
{
	if (b->ignore_merges) {
		uint32_t id = vocab_find(b->vocab, word.p, word.n);

		if (id != VOCAB_NONE) {
			ids_push(out, id);
			return;
		}
	}
	ids_reset(&w->symbol);
	spell(b, word, &w->symbol);
	if (w->symbol.count <= SCAN_MAX)
		w->symbol.count = merge_scan(b, w->symbol.id, w->symbol.count);
	else
		w->symbol.count = bpe_heap_merge(&w->heap, b, w->symbol.id, w->symbol.count);
	ids_add(out, w->symbol.id, w->symbol.count);
}
