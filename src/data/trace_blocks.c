/* SPDX-License-Identifier: Apache-2.0 */
/* trace_blocks.c - see trace_blocks.h. */
#include "data/trace_blocks.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "rng/pcg64.h"
#include "rng/xxh64.h"

#define REPEATED (1u << 31)

_Static_assert(LENGTH_TOKENS_MAX < REPEATED, "a bit is left beside a number of tokens");

/* ---- tokens ---- */

static uint64_t base_of(const char *kind, const char *salt, size_t block)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%s:%.64s:%zu", kind, salt, block);

	return xxh64((struct str){ text, (size_t)n }, 0);
}

void trace_maker_init(struct trace_maker *m, size_t block, const char *salt)
{
	m->block = block;
	m->ids_of = base_of("trace-block", salt, block);
	m->rows_of = base_of("trace-fill", salt, block);
}

uint64_t trace_block_seed(const struct trace_maker *m, struct str id)
{
	return xxh64(id, m->ids_of);
}

/* Of a block that no other row has. */
static uint64_t own_seed(const struct trace_maker *m, uint32_t row, size_t index)
{
	char text[48];
	int n = snprintf(text, sizeof(text), "%u:%zu", row, index);

	return xxh64((struct str){ text, (size_t)n }, m->rows_of);
}

static void make_block(const struct trace_maker *m, uint64_t seed, size_t tokens, struct ids *out)
{
	uint32_t *to = ids_reserve(out, tokens);
	struct pcg64 g;

	pcg64_seed(&g, seed);
	for (size_t k = 0; k < tokens; k++)
		to[k] = m->allowed[pcg64_bounded(&g, 0, (int64_t)m->n_allowed - 1)];
	out->count += tokens;
}

void trace_prompt_make(const struct trace_maker *m, const struct trace_prompt *p, struct ids *out)
{
	size_t left = p->tokens;

	for (size_t b = 0; left; b++) {
		size_t tokens = left < m->block ? left : m->block;

		make_block(m, b < p->n ? p->seed[b] : own_seed(m, p->name, b - p->n), tokens, out);
		left -= tokens;
	}
}

/* ---- beginnings ---- */

static size_t place_of(const struct trace_chains *c, uint64_t key)
{
	size_t i = (size_t)key & (c->cap - 1); /* a hash already */

	while (c->key[i] && c->key[i] != key)
		i = (i + 1) & (c->cap - 1);
	return i;
}

static void grow(struct trace_chains *c)
{
	struct trace_chains old = *c;

	c->cap = old.cap ? old.cap * 2 : 1024;
	c->key = mem_array(c->cap, sizeof(*c->key));
	c->tokens = mem_array(c->cap, sizeof(*c->tokens));
	for (size_t i = 0; i < old.cap; i++) {
		size_t at = old.key[i] ? place_of(c, old.key[i]) : 0;

		if (!old.key[i])
			continue;
		c->key[at] = old.key[i];
		c->tokens[at] = old.tokens[i];
	}
	free(old.key);
	free(old.tokens);
}

/* Of the blocks up to and with this one; never 0. */
static uint64_t chain(uint64_t before, uint64_t seed)
{
	const uint64_t pair[2] = { before, seed };
	uint64_t key = xxh64((struct str){ (const char *)pair, sizeof(pair) }, 0);

	return key ? key : 1;
}

static size_t end_of(const struct trace_maker *m, const struct trace_prompt *p, size_t b)
{
	return p->tokens / m->block > b ? (b + 1) * m->block : p->tokens;
}

static size_t blocks_of(const struct trace_maker *m, const struct trace_prompt *p)
{
	size_t used = p->tokens / m->block + (p->tokens % m->block != 0);

	return used < p->n ? used : p->n;
}

static void put(struct trace_chains *c, uint64_t key, size_t end)
{
	size_t at;

	if (c->count * 2 >= c->cap)
		grow(c);
	at = place_of(c, key);
	c->key[at] = key;
	c->tokens[at] = (uint32_t)end;
	c->count++;
}

size_t trace_chains_add(struct trace_chains *c, const struct trace_maker *m,
			const struct trace_prompt *p)
{
	size_t known = 0, n = blocks_of(m, p);
	uint64_t key = 0;

	for (size_t b = 0; b < n; b++) {
		size_t end = end_of(m, p, b), at, had;

		key = chain(key, p->seed[b]);
		at = c->cap ? place_of(c, key) : 0;
		if (c->cap && c->key[at]) {
			had = c->tokens[at] & ~REPEATED;
			known = end < had ? end : had;
			c->tokens[at] = (uint32_t)(end > had ? end : had) | REPEATED;
		} else if (c->count < TRACE_CHAINS_MAX) {
			put(c, key, end);
		} else {
			c->is_full = true;
			break;
		}
	}
	return known;
}

size_t trace_chains_shared(const struct trace_chains *c, const struct trace_maker *m,
			   const struct trace_prompt *p)
{
	size_t shared = 0, n = c->cap ? blocks_of(m, p) : 0;
	uint64_t key = 0;

	for (size_t b = 0; b < n; b++) {
		size_t at;

		key = chain(key, p->seed[b]);
		at = place_of(c, key);
		if (!c->key[at] || !(c->tokens[at] & REPEATED))
			break;
		shared = end_of(m, p, b);
	}
	return shared;
}

void trace_chains_release(struct trace_chains *c)
{
	free(c->key);
	free(c->tokens);
	*c = (struct trace_chains){ 0 };
}
