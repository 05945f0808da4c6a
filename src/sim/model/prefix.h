/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix.h - a model of a prefix cache: which blocks of tokens an engine has seen before, in the
 * same order and from the beginning.
 *
 * As in vLLM a block is 16 tokens, named by the hash of itself and all blocks before it, and only
 * whole blocks are kept. A prompt finds its longest known sequence of blocks, but never all of
 * itself: its last token must be computed. The least recently used blocks are evicted first, the
 * end of a sequence before its beginning. What a sequence generates is added when it ends.
 *
 * The oracle calls prefix_take as requests arrive. The engine model holds the blocks of running
 * prompts (prefix_pin): several sequences share them, they are not evicted, and they take room of
 * the KV cache once.
 *
 * Pure: no clock, no sockets. Two prompts collide when a 64-bit hash does.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PREFIX_BLOCK_TOKENS 16
#define PREFIX_NONE UINT32_MAX
#define PREFIX_BLOCKS_MAX (1u << 20) /* 16 million tokens; 28 MiB of memory */

struct prefix_block;

/* A zeroed struct is a disabled cache: it stays empty. */
struct prefix_cache {
	struct prefix_block *block;
	uint32_t *bucket;
	uint32_t *way;       /* blocks of the prompt being looked up */
	size_t cap, used;    /* blocks; used: slots ever used */
	size_t held;         /* blocks held by prefix_pin */
	size_t idle;         /* known blocks that are not held */
	size_t buckets;      /* a power of two */
	uint32_t newest, oldest; /* of the idle ones */
	uint32_t free;       /* the first of the evicted ones */
};

/* The whole blocks of one prompt, by name. Filled by prefix_name. */
struct prefix_pins {
	uint64_t *hash;
	uint32_t *block;     /* while held; PREFIX_NONE where there was no room */
	size_t n, cap;
	bool is_held;
};

/* The end of a sequence so far: what the next block's name depends on. */
struct prefix_tail {
	uint64_t hash;
	uint32_t id[PREFIX_BLOCK_TOKENS];
	uint32_t ids;        /* of an unfinished block */
};

void prefix_init(struct prefix_cache *p, size_t tokens);
void prefix_release(struct prefix_cache *p);
void prefix_reset(struct prefix_cache *p); /* forgets everything that is not held */
/*
 * Returns how many tokens of the prompt are known, and adds the prompt. *tail: its end. salt: what
 * names depend on in addition to the tokens (an adapter); 0: nothing.
 */
uint32_t prefix_take(struct prefix_cache *p, uint64_t salt, const uint32_t *id, size_t n,
		     struct prefix_tail *tail);
/* The same in two steps: the names of a prompt's blocks, and its end. */
void prefix_name(struct prefix_pins *h, uint64_t salt, const uint32_t *id, size_t n,
		 struct prefix_tail *tail);
void prefix_pins_release(struct prefix_pins *h);
/* Known tokens at its beginning; *held_blocks: how many of its blocks others hold. */
uint32_t prefix_match(const struct prefix_cache *p, const struct prefix_pins *h,
		     size_t *held_blocks);
void prefix_pin(struct prefix_cache *p, struct prefix_pins *h);
/* Its blocks stay known, the beginning as the newest. No effect when it is not held. */
void prefix_unpin(struct prefix_cache *p, struct prefix_pins *h);
/* Evicts the oldest until at most idle_max are idle. */
void prefix_shrink(struct prefix_cache *p, size_t idle_max);
/* Adds n blocks that are not held, the beginning as the newest. */
void prefix_insert(struct prefix_cache *p, const uint64_t *hash, size_t n);
/* One more token of the sequence. */
void prefix_add(struct prefix_cache *p, struct prefix_tail *tail, uint32_t id);
