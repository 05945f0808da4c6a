/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix.h - a model of a prefix cache: which blocks of tokens an engine has
 * seen before, in the same order and from the beginning.
 *
 * As in vLLM a block is 16 tokens, named by the hash of itself and all blocks
 * before it, and only whole blocks are kept. A prompt finds its longest known
 * run of blocks, but never all of itself: its last token must be computed. The
 * least recently used blocks go first, the end of a sequence before its
 * beginning. What a sequence generates is added when it ends.
 *
 * Pure: no clock, no sockets. Two prompts collide when a 64-bit hash does.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define PREFIX_BLOCK_TOKENS 16
#define PREFIX_BLOCKS_MAX (1u << 20) /* 16 million tokens; 28 MiB of memory */

struct prefix_block;

/* A zeroed struct is a cache that is switched off: it knows nothing and learns nothing. */
struct prefix_cache {
	struct prefix_block *block;
	uint32_t *bucket;
	uint32_t *way;       /* blocks of the prompt being looked up */
	size_t cap, used;    /* blocks */
	size_t buckets;      /* a power of two */
	uint32_t newest, oldest;
};

/* Where a sequence has got to: what the next block's name depends on. */
struct prefix_tail {
	uint64_t hash;
	uint32_t id[PREFIX_BLOCK_TOKENS];
	uint32_t ids;        /* of an unfinished block */
};

void prefix_init(struct prefix_cache *p, size_t tokens);
void prefix_release(struct prefix_cache *p);
void prefix_reset(struct prefix_cache *p); /* forgets everything */
/* Tokens of the prompt that are known; it is known from now on. *tail: where it ends. */
uint32_t prefix_take(struct prefix_cache *p, const uint32_t *id, size_t n,
		     struct prefix_tail *tail);
/* One more token of the sequence. */
void prefix_add(struct prefix_cache *p, struct prefix_tail *tail, uint32_t id);
