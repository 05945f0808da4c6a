/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe_heap.c - a binary heap of candidate pairs over a linked list of symbols.
 *
 * Every merge pushes at most two candidates and pops one, and nothing is
 * removed from the middle: a candidate whose two symbols are no longer there is
 * recognised when it comes up, and dropped.
 */
#include "token/bpe_heap.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

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

size_t bpe_heap_merge(struct bpe_heap *h, const struct bpe *b, uint32_t *id, size_t n)
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

void bpe_heap_release(struct bpe_heap *h)
{
	free(h->item);
	free(h->prev);
	free(h->next);
	*h = (struct bpe_heap){ 0 };
}
