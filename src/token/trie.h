/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/trie.h - tokens by their leading bytes.
 *
 * Built once from sorted keys, breadth first: the children of a node stand side
 * by side, in byte order, so a node is eight bytes and its label one. Flat
 * arrays, so that a compiled tokenizer can be used where it is mapped.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define TRIE_NONE UINT32_MAX

struct trie_node {
	uint32_t child; /* first of its children; they end where the next node's begin */
	uint32_t value; /* TRIE_NONE: no key ends here */
};
struct trie {
	struct trie_node *node; /* node 0 is the root; the last one only ends the one before */
	uint8_t *label;         /* the byte that leads to a node */
	size_t nodes;           /* with the last one; 0: no trie */
	uint32_t root[256];     /* the root's children by byte; 0: none */
	bool is_borrowed;       /* node and label belong to somebody else */
};

struct trie_key {
	struct str bytes; /* not empty; borrowed during the build */
	uint32_t value;
};

/* Sorts key in place; of equal keys the first in the given order is kept. */
void trie_build(struct trie *t, struct trie_key *key, size_t n);
void trie_release(struct trie *t); /* accepts a zeroed one */

/* The child of a node (not the root) for a byte; 0: none. */
static inline uint32_t trie_child(const struct trie *t, uint32_t node, uint8_t byte)
{
	uint32_t low = t->node[node].child, high = t->node[node + 1].child;

	while (high - low > 8) {
		uint32_t mid = low + (high - low) / 2;

		if (t->label[mid] <= byte)
			low = mid;
		else
			high = mid;
	}
	for (; low < high; low++)
		if (t->label[low] == byte)
			return low;
	return 0;
}

/* One step of a walk that starts with node 0; 0: nothing continues this way. */
static inline uint32_t trie_step(const struct trie *t, uint32_t node, uint8_t byte)
{
	return node ? trie_child(t, node, byte) : t->root[byte];
}

/* The longest key at the front of s: its value and *length; TRIE_NONE when there is none. */
uint32_t trie_longest(const struct trie *t, struct str s, size_t *length);
