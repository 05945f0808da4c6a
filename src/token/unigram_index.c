/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unigram_index.c - the tokens of a Unigram model as a double array.
 *
 * Made from a trie, whose nodes come parents first. The children of a node take
 * places in one block of 256 units, wherever all of them are free; only the last
 * few blocks are searched, so that the cost stays linear.
 */
#include <math.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "token/trie.h"
#include "token/unigram.h"

#define BLOCK 256u
#define OPEN_BLOCKS 16u
#define NOBODY UINT32_MAX
#define ROOT_PARENT (UINT32_MAX - 1) /* so that no way leads to the root */

struct builder {
	struct unigram *u;
	const struct trie *trie;
	uint32_t *unit_of; /* by node of the trie */
	size_t cap;
	size_t vacant[OPEN_BLOCKS]; /* units without a parent in each of the last blocks */
};

static void add_block(struct builder *b)
{
	struct unigram *u = b->u;

	if (u->units == b->cap) {
		b->cap = b->cap ? 2 * b->cap : 64 * BLOCK;
		u->unit = mem_grow(u->unit, b->cap, sizeof *u->unit);
		u->id = mem_grow(u->id, b->cap, sizeof *u->id);
	}
	for (size_t i = u->units; i < u->units + BLOCK; i++) {
		u->unit[i] = (struct unigram_unit){ NAN, 0, NOBODY };
		u->id[i] = VOCAB_NONE;
	}
	b->vacant[u->units / BLOCK % OPEN_BLOCKS] = BLOCK;
	u->units += BLOCK;
}

/* Where base may be in a block so that all labels have free places; -1: nowhere. */
static int64_t find_base(const struct builder *b, size_t block, const uint8_t *label, size_t count)
{
	const struct unigram_unit *unit = b->u->unit;

	for (uint32_t place = 0; place < BLOCK; place++) {
		size_t base = block + (place ^ label[0]), i = 0;

		while (i < count && unit[base ^ label[i]].parent == NOBODY)
			i++;
		if (i == count)
			return (int64_t)base;
	}
	return -1;
}

static size_t choose_base(struct builder *b, const uint8_t *label, size_t count)
{
	size_t units = b->u->units;
	size_t first = units > OPEN_BLOCKS * BLOCK ? units - OPEN_BLOCKS * BLOCK : 0;
	int64_t base = -1;

	for (size_t block = first; base < 0 && block < units; block += BLOCK)
		if (b->vacant[block / BLOCK % OPEN_BLOCKS] >= count)
			base = find_base(b, block, label, count);
	if (base >= 0)
		return (size_t)base;
	add_block(b);
	return units;
}

static void place_children(struct builder *b, uint32_t node, const double *score)
{
	const struct trie *trie = b->trie;
	uint32_t child = trie->node[node].child, end = trie->node[node + 1].child;
	uint32_t parent = b->unit_of[node];
	size_t base;

	if (child == end)
		return;
	base = choose_base(b, trie->label + child, end - child);
	b->u->unit[parent].base = (uint32_t)base;
	b->vacant[base / BLOCK % OPEN_BLOCKS] -= end - child;
	for (; child < end; child++) {
		size_t to = base ^ trie->label[child];
		uint32_t id = trie->node[child].value;

		b->unit_of[child] = (uint32_t)to;
		b->u->unit[to].parent = parent;
		b->u->id[to] = id;
		if (id != TRIE_NONE)
			b->u->unit[to].score = score[id];
	}
}

static void build(struct unigram *u, const struct trie *trie, const double *score)
{
	struct builder b = { .u = u, .trie = trie };

	b.unit_of = mem_array(trie->nodes, sizeof *b.unit_of);
	add_block(&b);
	u->unit[0].parent = ROOT_PARENT;
	for (uint32_t node = 0; node + 1 < trie->nodes; node++)
		place_children(&b, node, score);
	free(b.unit_of);
}

static void find_bytes(struct unigram *u, bool has_byte_fallback)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		char name[8];
		int n = snprintf(name, sizeof name, "<0x%02X>", byte);

		u->byte_id[byte] =
			has_byte_fallback ? vocab_find(u->vocab, name, (size_t)n) : VOCAB_NONE;
	}
}

int unigram_index(struct unigram *u, const double *score, bool has_byte_fallback, struct err *e)
{
	const struct vocab *v = u->vocab;
	struct trie_key *key = mem_array(v->id_limit, sizeof *key);
	struct trie trie = { 0 };
	size_t count = 0;

	u->longest = 4;
	/* From the end: of equal tokens the last is the one that is found. */
	for (uint32_t id = (uint32_t)v->id_limit; id-- > 0;) {
		struct str bytes = vocab_bytes(v, id);

		if (!v->entry[id].is_known || bytes.n == 0 || isnan(score[id]))
			continue;
		key[count++] = (struct trie_key){ bytes, id };
		if (bytes.n > u->longest)
			u->longest = bytes.n;
	}
	if (u->longest > TOKEN_UNIGRAM_BYTES_MAX) {
		free(key);
		return err_set(e, ERR_LIMIT,
			"has a Unigram model with a token of %zu bytes; at most %d are read",
			u->longest, TOKEN_UNIGRAM_BYTES_MAX);
	}
	trie_build(&trie, key, count);
	free(key);
	build(u, &trie, score);
	trie_release(&trie);
	find_bytes(u, has_byte_fallback);
	return 0;
}
