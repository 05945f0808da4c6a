/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/bpe_heap.h - merging of long words (see token/bpe.h).
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "token/bpe.h"

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

/* Merges n ids in place, n < UINT32_MAX; returns how many are left. */
size_t bpe_heap_merge(struct bpe_heap *h, const struct bpe *b, uint32_t *id, size_t n);
void bpe_heap_release(struct bpe_heap *h);
