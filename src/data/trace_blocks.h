/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/trace_blocks.h - prompts whose blocks are shared exactly as a trace says, and how much of
 * them a cache can know; conversations spec 6.3. Private to data/.
 *
 * A block has a name: its id in the trace, or, where ids are too few, the row and the place in
 * it. The name, the block's size and a salt seed a generator, and the tokens are drawn from the
 * allowed ids. The n-th token never depends on how many are wanted, so the block of a row that is
 * cut is the head of the whole one.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "token/ids.h"

struct trace_maker {
	uint32_t *allowed;    /* token ids, ascending; freed by its owner */
	size_t n_allowed;
	size_t block;         /* tokens of one block; at least 1 */
	uint64_t ids_of, rows_of; /* hashes of kind, salt and size, from which names go on */
};

/* Sets all but the ids. */
void trace_maker_init(struct trace_maker *m, size_t block, const char *salt);

/* What a block of that id is drawn from. */
uint64_t trace_block_seed(const struct trace_maker *m, struct str id);

/* A prompt: blocks of ids, then blocks of its own up to `tokens`. */
struct trace_prompt {
	const uint64_t *seed; /* of the blocks with ids */
	size_t n;
	uint32_t name;        /* of the row, for blocks of its own */
	size_t tokens;
};
/* Appends its tokens. Thread-safe. */
void trace_prompt_make(const struct trace_maker *m, const struct trace_prompt *p, struct ids *out);

/* ---- what a cache without a limit would know ---- */

/*
 * The beginnings of prompts that were walked over, each as a hash of the blocks up to there. Ids
 * need not stand for their beginnings: equal blocks behind unequal ones are not found.
 * Zeroed is a valid empty one.
 */
struct trace_chains {
	uint64_t *key;
	uint32_t *tokens;     /* the longest beginning that ends in this block; top bit: repeated */
	size_t cap, count;
	bool is_full;         /* TRACE_CHAINS_MAX was reached: what is said is too little */
};

/*
 * The tokens of p's beginning that an earlier prompt had; then its own beginnings are known. Only
 * blocks with ids count. Prompts come in the order of time.
 */
size_t trace_chains_add(struct trace_chains *c, const struct trace_maker *m,
			const struct trace_prompt *p);
/* The tokens of p's beginning that any other prompt that was added has, too. */
size_t trace_chains_shared(const struct trace_chains *c, const struct trace_maker *m,
			   const struct trace_prompt *p);
void trace_chains_release(struct trace_chains *c);
