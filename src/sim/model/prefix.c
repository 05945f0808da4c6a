/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.c - see prefix.h. A hash table of blocks on one list, newest first. */
#include "sim/model/prefix.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "sim/model/draw.h"

#define NONE PREFIX_NONE

struct prefix_block {
	uint64_t hash;
	uint32_t chain;        /* the next one of its bucket */
	uint32_t newer, older; /* while no sequence holds it */
	uint32_t holders;
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
	for (size_t i = 0; i < p->buckets; i++)
		p->bucket[i] = NONE;
	p->newest = p->oldest = p->free = NONE;
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
	prefix_shrink(p, 0);
}

static uint32_t *bucket_of(struct prefix_cache *p, uint64_t hash)
{
	return &p->bucket[hash & (p->buckets - 1)];
}

static uint32_t block_find(const struct prefix_cache *p, uint64_t hash)
{
	uint32_t i = p->bucket[hash & (p->buckets - 1)];

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
	p->idle--;
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
	p->idle++;
}

/* Makes an idle one the newest. */
static void list_renew(struct prefix_cache *p, uint32_t i)
{
	if (i == NONE || p->block[i].holders)
		return;
	list_unlink(p, i);
	list_push(p, i);
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

void prefix_shrink(struct prefix_cache *p, size_t idle_max)
{
	while (p->idle > idle_max) {
		uint32_t i = p->oldest;

		block_forget(p, i);
		p->block[i].chain = p->free;
		p->free = i;
	}
}

/* A block without a name; NONE when all are held. */
static uint32_t block_new(struct prefix_cache *p)
{
	uint32_t i = p->free;

	if (i != NONE) {
		p->free = p->block[i].chain;
		return i;
	}
	if (p->used < p->cap)
		return (uint32_t)p->used++;
	i = p->oldest;
	if (i != NONE)
		block_forget(p, i);
	return i;
}

/*
 * Adds the block as the newest, replacing the oldest if there is no room. NONE when all blocks are
 * held.
 */
static uint32_t block_put(struct prefix_cache *p, uint64_t hash)
{
	uint32_t *bucket = bucket_of(p, hash);
	uint32_t i = block_find(p, hash);

	if (i != NONE) {
		list_renew(p, i);
		return i;
	}
	i = block_new(p);
	if (i == NONE)
		return i;
	p->block[i].hash = hash;
	p->block[i].holders = 0;
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

uint32_t prefix_take(struct prefix_cache *p, uint64_t salt, const uint32_t *id, size_t n,
		     struct prefix_tail *tail)
{
	size_t blocks = n / PREFIX_BLOCK_TOKENS, steps = 0, known = 0;
	bool is_known = true;

	*tail = (struct prefix_tail){ .hash = salt };
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
	while (steps--)
		list_renew(p, p->way[steps]);
	for (size_t i = blocks * PREFIX_BLOCK_TOKENS; i < n; i++)
		tail->id[tail->ids++] = id[i];
	if (known && known * PREFIX_BLOCK_TOKENS == n)
		known--;
	return (uint32_t)(known * PREFIX_BLOCK_TOKENS);
}

/* ---- what runs ---- */

void prefix_name(struct prefix_pins *h, uint64_t salt, const uint32_t *id, size_t n,
		 struct prefix_tail *tail)
{
	size_t blocks = n / PREFIX_BLOCK_TOKENS;

	assert(!h->is_held);
	*tail = (struct prefix_tail){ .hash = salt };
	if (blocks > h->cap) {
		h->hash = mem_grow(h->hash, blocks, sizeof(*h->hash));
		h->block = mem_grow(h->block, blocks, sizeof(*h->block));
		h->cap = blocks;
	}
	h->n = blocks;
	for (size_t i = 0; i < blocks; i++)
		h->hash[i] = tail->hash = block_hash(tail->hash, id + i * PREFIX_BLOCK_TOKENS);
	for (size_t i = blocks * PREFIX_BLOCK_TOKENS; i < n; i++)
		tail->id[tail->ids++] = id[i];
}

void prefix_pins_release(struct prefix_pins *h)
{
	assert(!h->is_held);
	free(h->hash);
	free(h->block);
	*h = (struct prefix_pins){ 0 };
}

uint32_t prefix_match(const struct prefix_cache *p, const struct prefix_pins *h,
		      size_t *held_blocks)
{
	size_t known = 0;

	*held_blocks = 0;
	for (bool is_known = true; p->cap && known < h->n && is_known;) {
		uint32_t i = block_find(p, h->hash[known]);

		is_known = i != NONE;
		known += is_known;
		*held_blocks += is_known && p->block[i].holders;
	}
	return (uint32_t)(known * PREFIX_BLOCK_TOKENS);
}

void prefix_pin(struct prefix_cache *p, struct prefix_pins *h)
{
	assert(!h->is_held);
	h->is_held = true;
	for (size_t k = 0; k < h->n; k++) {
		uint32_t i = p->cap ? block_put(p, h->hash[k]) : NONE;

		h->block[k] = i;
		if (i == NONE || p->block[i].holders++)
			continue;
		list_unlink(p, i);
		p->held++;
	}
}

void prefix_unpin(struct prefix_cache *p, struct prefix_pins *h)
{
	if (!h->is_held)
		return;
	h->is_held = false;
	for (size_t k = h->n; k--;) {
		uint32_t i = h->block[k];

		if (i == NONE || --p->block[i].holders)
			continue;
		list_push(p, i);
		p->held--;
	}
}

void prefix_insert(struct prefix_cache *p, const uint64_t *hash, size_t n)
{
	size_t kept = p->cap && n > p->cap ? p->cap : n;

	for (size_t i = 0; p->cap && i < kept; i++)
		p->way[i] = block_put(p, hash[i]);
	while (p->cap && kept--)
		list_renew(p, p->way[kept]);
}

void prefix_add(struct prefix_cache *p, struct prefix_tail *tail, uint32_t id)
{
	assert(tail->ids < PREFIX_BLOCK_TOKENS);
	if (p->cap == 0)
		return;
	tail->id[tail->ids++] = id;
	if (tail->ids < PREFIX_BLOCK_TOKENS)
		return;
	tail->hash = block_hash(tail->hash, tail->id);
	tail->ids = 0;
	block_put(p, tail->hash);
}
