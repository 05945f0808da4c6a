/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trie.c - building a trie: sort the keys, then cut each node's run of keys by
 * the next byte. A run is known by its first and last key, so nodes come out
 * breadth first and the children of each side by side.
 */
#include "token/trie.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A key with its first eight bytes as a number whose order is theirs. */
struct sort_item {
	uint64_t prefix;
	uint32_t index;
};

static uint64_t prefix_of(struct str s)
{
	uint64_t v = 0;

	for (size_t i = 0; i < 8; i++)
		v = v << 8 | (i < s.n ? (uint8_t)s.p[i] : 0);
	return v;
}

/* By prefix, stable: one counting pass for each byte that differs. */
static struct sort_item *sort_prefixes(struct sort_item *a, struct sort_item *b, size_t n)
{
	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t at[256] = { 0 }, sum = 0;
		struct sort_item *swap = a;

		for (size_t i = 0; i < n; i++)
			at[a[i].prefix >> shift & 0xff]++;
		if (at[a[0].prefix >> shift & 0xff] == n)
			continue;
		for (size_t i = 0; i < 256; i++) {
			size_t count = at[i];

			at[i] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			b[at[a[i].prefix >> shift & 0xff]++] = a[i];
		a = b;
		b = swap;
	}
	return a;
}

static int compare_bytes(struct str a, struct str b)
{
	int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int compare_items(const void *a, const void *b, void *key)
{
	const struct sort_item *x = a, *y = b;
	const struct trie_key *k = key;
	int order = compare_bytes(k[x->index].bytes, k[y->index].bytes);

	return order ? order : (x->index > y->index) - (x->index < y->index);
}

static void sort_keys(struct trie_key *key, size_t n)
{
	struct sort_item *both = mem_array(2 * n, sizeof *both), *sorted;
	struct trie_key *copy = mem_array(n, sizeof *copy);

	for (size_t i = 0; i < n; i++)
		both[i] = (struct sort_item){ prefix_of(key[i].bytes), (uint32_t)i };
	sorted = sort_prefixes(both, both + n, n);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && sorted[end].prefix == sorted[i].prefix;)
			end++;
		if (end - i > 1)
			qsort_r(sorted + i, end - i, sizeof *sorted, compare_items, key);
	}
	memcpy(copy, key, n * sizeof *copy);
	for (size_t i = 0; i < n; i++)
		key[i] = copy[sorted[i].index];
	free(copy);
	free(both);
}

/* The keys below one node: they agree in their first depth bytes. */
struct run {
	uint32_t first, last, depth;
};

struct builder {
	struct trie *t;
	struct run *run; /* by node */
	size_t cap;
};

static uint32_t new_node(struct builder *b, struct run run, uint8_t label)
{
	struct trie *t = b->t;

	if (t->nodes == b->cap) {
		b->cap = b->cap ? b->cap * 2 : 1024;
		t->node = mem_grow(t->node, b->cap, sizeof *t->node);
		t->label = mem_grow(t->label, b->cap, sizeof *t->label);
		b->run = mem_grow(b->run, b->cap, sizeof *b->run);
	}
	t->node[t->nodes] = (struct trie_node){ 0, TRIE_NONE };
	t->label[t->nodes] = label;
	b->run[t->nodes] = run;
	return (uint32_t)t->nodes++;
}

/* Gives a node its value and its children. */
static void fill_node(struct builder *b, uint32_t node, const struct trie_key *key)
{
	struct run run = b->run[node];
	uint32_t i = run.first;

	b->t->node[node].child = (uint32_t)b->t->nodes;
	if (key[i].bytes.n == run.depth)
		b->t->node[node].value = key[i].value;
	while (i < run.last && key[i].bytes.n == run.depth)
		i++;
	for (uint32_t end; i < run.last; i = end) {
		uint8_t byte = (uint8_t)key[i].bytes.p[run.depth];
		uint32_t child;

		for (end = i + 1; end < run.last; end++)
			if ((uint8_t)key[end].bytes.p[run.depth] != byte)
				break;
		child = new_node(b, (struct run){ i, end, run.depth + 1 }, byte);
		if (node == 0)
			b->t->root[byte] = child;
	}
}

void trie_build(struct trie *t, struct trie_key *key, size_t n)
{
	struct builder b = { .t = t };

	assert(n < UINT32_MAX);
	*t = (struct trie){ 0 };
	if (n > 0)
		sort_keys(key, n);
	new_node(&b, (struct run){ 0, (uint32_t)n, 0 }, 0);
	for (uint32_t node = 0; n > 0 && node < t->nodes; node++)
		fill_node(&b, node, key);
	if (n == 0)
		t->node[0].child = 1; /* none */
	new_node(&b, (struct run){ 0 }, 0);
	t->node[t->nodes - 1].child = (uint32_t)t->nodes - 1;
	free(b.run);
}

void trie_release(struct trie *t)
{
	if (!t->is_borrowed) {
		free(t->node);
		free(t->label);
	}
	*t = (struct trie){ 0 };
}

uint32_t trie_longest(const struct trie *t, struct str s, size_t *length)
{
	uint32_t value = TRIE_NONE, node = 0;

	for (size_t i = 0; i < s.n; i++) {
		node = trie_step(t, node, (uint8_t)s.p[i]);
		if (!node)
			break;
		if (t->node[node].value != TRIE_NONE) {
			value = t->node[node].value;
			*length = i + 1;
		}
	}
	return value;
}
