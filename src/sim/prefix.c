/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.c - see prefix.h. A hash table of blocks on one list, newest first. */
#include "sim/prefix.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sim/words.h"

#define NONE UINT32_MAX

struct prefix_block {
	uint64_t hash;
	uint32_t chain;        /* the next one of its bucket */
	uint32_t newer, older;
};

void prefix_init(struct prefix_cache *p, size_t tokens)
{
	size_t cap = tokens / PREFIX_BLOCK_TOKENS;

	*p = (struct prefix_cache){ .cap = cap < PREFIX_BLOCKS_MAX ? cap : PREFIX_BLOCKS_MAX };
	if (p->cap == 0)
		return;
	p->buckets = 1;
	while (p->buckets < p->cap)
		p->buckets *= 2;
	p->block = mem_array(p->cap, sizeof(*p->block));
	p->bucket = mem_array(p->buckets, sizeof(*p->bucket));
	p->way = mem_array(p->cap, sizeof(*p->way));
	prefix_reset(p);
}

void prefix_release(struct prefix_cache *p)
{
	free(p->block);
	free(p->bucket);
	free(p->way);
	*p = (struct prefix_cache){ 0 };
}

void prefix_reset(struct prefix_cache *p)
{
	for (size_t i = 0; i < p->buckets; i++)
		p->bucket[i] = NONE;
	p->used = 0;
	p->newest = p->oldest = NONE;
}

static uint32_t *bucket_of(struct prefix_cache *p, uint64_t hash)
{
	return &p->bucket[hash & (p->buckets - 1)];
}

static uint32_t block_find(struct prefix_cache *p, uint64_t hash)
{
	uint32_t i = *bucket_of(p, hash);

	while (i != NONE && p->block[i].hash != hash)
		i = p->block[i].chain;
	return i;
}

static void list_unlink(struct prefix_cache *p, uint32_t i)
{
	struct prefix_block *b = &p->block[i];

	if (b->newer != NONE)
		p->block[b->newer].older = b->older;
	else
		p->newest = b->older;
	if (b->older != NONE)
		p->block[b->older].newer = b->newer;
	else
		p->oldest = b->newer;
}

static void list_push(struct prefix_cache *p, uint32_t i)
{
	p->block[i].newer = NONE;
	p->block[i].older = p->newest;
	if (p->newest != NONE)
		p->block[p->newest].newer = i;
	else
		p->oldest = i;
	p->newest = i;
}

static void block_forget(struct prefix_cache *p, uint32_t i)
{
	uint32_t *at = bucket_of(p, p->block[i].hash);

	list_unlink(p, i);
	while (*at != i) {
		assert(*at != NONE);
		at = &p->block[*at].chain;
	}
	*at = p->block[i].chain;
}

/* Makes the block known, in place of the oldest one when there is no room, as the newest. */
static uint32_t block_put(struct prefix_cache *p, uint64_t hash)
{
	uint32_t *bucket = bucket_of(p, hash);
	uint32_t i = block_find(p, hash);

	if (i != NONE) {
		list_unlink(p, i);
		list_push(p, i);
		return i;
	}
	if (p->used < p->cap) {
		i = (uint32_t)p->used++;
	} else {
		i = p->oldest;
		block_forget(p, i);
	}
	p->block[i].hash = hash;
	p->block[i].chain = *bucket;
	*bucket = i;
	list_push(p, i);
	return i;
}

static uint64_t block_hash(uint64_t hash, const uint32_t *id)
{
	for (int i = 0; i < PREFIX_BLOCK_TOKENS; i++)
		hash = words_mix(hash ^ id[i]);
	return hash;
}

uint32_t prefix_take(struct prefix_cache *p, const uint32_t *id, size_t n,
		     struct prefix_tail *tail)
{
	size_t blocks = n / PREFIX_BLOCK_TOKENS, steps = 0, known = 0;
	bool is_known = true;

	*tail = (struct prefix_tail){ 0 };
	if (p->cap == 0)
		return 0;
	for (size_t i = 0; i < blocks; i++) {
		tail->hash = block_hash(tail->hash, id + i * PREFIX_BLOCK_TOKENS);
		is_known = is_known && block_find(p, tail->hash) != NONE;
		known += is_known;
		if (steps < p->cap)
			p->way[steps++] = block_put(p, tail->hash);
	}
	/* The beginning becomes the newest, so that the end is forgotten first. */
	while (steps--) {
		list_unlink(p, p->way[steps]);
		list_push(p, p->way[steps]);
	}
	for (size_t i = blocks * PREFIX_BLOCK_TOKENS; i < n; i++)
		tail->id[tail->ids++] = id[i];
	if (known && known * PREFIX_BLOCK_TOKENS == n)
		known--;
	return (uint32_t)(known * PREFIX_BLOCK_TOKENS);
}

void prefix_add(struct prefix_cache *p, struct prefix_tail *tail, uint32_t id)
{
	if (p->cap == 0)
		return;
	tail->id[tail->ids++] = id;
	if (tail->ids < PREFIX_BLOCK_TOKENS)
		return;
	tail->hash = block_hash(tail->hash, tail->id);
	tail->ids = 0;
	block_put(p, tail->hash);
}
