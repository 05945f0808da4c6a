/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocab.h - tokens by id and by their bytes, and the models that only look up words.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/encode/ids.h"

/* ---- Vocabularies ---- */

/*
 * Tokens by id and ids by bytes.
 *
 * Entries of the model's vocabulary are found by their bytes. A few have a
 * spelling that no byte sequence has (control tokens mostly); they are kept
 * apart, found by spelling only, and never come out of merging. Added tokens
 * have an id and bytes here, for decoding, but are not found by bytes.
 */

#define VOCAB_NONE UINT32_MAX
#define VOCAB_SLACK 16 /* readable bytes after every token's */

struct vocab_entry {
	uint32_t start, length; /* in bytes */
	bool is_known, is_foreign, is_special;
};
struct vocab_slot {
	uint32_t tag, id; /* id VOCAB_NONE: free */
};

struct vocab {
	bool is_spelled; /* tokens are written in the byte alphabet (encode/chars.h), not as text */
	bool has_doubles; /* a token may have several ids; the last one is found */
	struct buf bytes;
	struct vocab_entry *entry; /* by id, below id_limit */
	size_t id_limit, cap;
	size_t count;              /* V: entries of the model */
	struct vocab_slot *slot;
	size_t slots;              /* a power of two */
	struct map foreign;        /* spellings outside the byte alphabet */
	struct arena arena;
	bool is_borrowed; /* bytes, entry and slot belong to another owner */
};

/* bytes: estimated total of all tokens. */
void vocab_init(struct vocab *v, bool is_spelled, size_t bytes);
void vocab_release(struct vocab *v); /* accepts a zeroed one */

/* Adds an entry of the model by its spelling; ERR_PARSE when the id is taken or too large. */
int vocab_add(struct vocab *v, struct str spelled, int64_t id, struct err *e);
/* After the last vocab_add: makes the entries findable. ERR_PARSE when a spelling occurs twice
 * and has_doubles was not set. */
int vocab_index(struct vocab *v, struct err *e);
/* An added token: sets what id decodes to. */
int vocab_set_added(struct vocab *v, struct str content, uint32_t id, bool is_special,
	struct err *e);

uint32_t vocab_find(const struct vocab *v, const char *p, size_t n); /* VOCAB_NONE when absent */
/* Looks up many at once, id[i] of key[i], prefetching their memory. */
void vocab_find_many(const struct vocab *v, const struct str *key, uint32_t *id, size_t n);
uint32_t vocab_find_spelled(const struct vocab *v, struct str spelled);

static inline struct str vocab_bytes(const struct vocab *v, uint32_t id)
{
	const struct vocab_entry *entry = v->entry + id;

	return (struct str){ v->bytes.data + entry->start, entry->length };
}

/* ---- Short byte strings ---- */

/*
 * Short byte strings as three words, and a hash of any.
 *
 * Words and tokens are a few bytes long, so both the vocabulary and the word
 * cache work on the first 24 bytes at once instead of byte by byte.
 */

#define HASH_KEY_BYTES 24

struct hash_key {
	uint64_t w[3]; /* the bytes, then zeros */
};

static inline uint64_t hash_load8(const char *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* 0..8 bytes in one word, followed by zeros. Reads nothing outside p[0..n). */
static inline uint64_t hash_load(const char *p, size_t n)
{
	uint32_t low, high;

	if (n == 8)
		return hash_load8(p);
	if (n >= 4) {
		memcpy(&low, p, 4);
		memcpy(&high, p + n - 4, 4);
		return low | (uint64_t)high << 8 * (n - 4);
	}
	if (n == 0)
		return 0;
	return (uint64_t)(uint8_t)p[0] | (uint64_t)(uint8_t)p[n / 2] << 8 * (n / 2) |
		(uint64_t)(uint8_t)p[n - 1] << 8 * (n - 1);
}

/* n <= HASH_KEY_BYTES. */
static inline struct hash_key hash_key(const char *p, size_t n)
{
	if (n <= 8)
		return (struct hash_key){ { hash_load(p, n), 0, 0 } };
	if (n <= 16)
		return (struct hash_key){ { hash_load8(p), hash_load(p + 8, n - 8), 0 } };
	return (struct hash_key){ { hash_load8(p), hash_load8(p + 8), hash_load(p + 16, n - 16) } };
}

static inline uint64_t hash_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	return h ^ h >> 32;
}

static inline uint64_t hash_of_key(struct hash_key k, size_t n)
{
	return hash_mix(k.w[0] * 0x9e3779b97f4a7c15u + k.w[1] * 0xc2b2ae3d27d4eb4fu +
		k.w[2] * 0x165667b19e3779f9u + n);
}

static inline uint64_t hash_bytes(const char *p, size_t n)
{
	uint64_t h = n;

	for (; n > HASH_KEY_BYTES; p += HASH_KEY_BYTES, n -= HASH_KEY_BYTES)
		h = hash_mix(h + hash_of_key(hash_key(p, HASH_KEY_BYTES), HASH_KEY_BYTES));
	return hash_mix(h + hash_of_key(hash_key(p, n), n));
}

/* ---- Tokens by their leading bytes ---- */

/*
 * A trie, built once from sorted keys, breadth first: the children of a node are adjacent, in byte
 * order, so a node is eight bytes and its label one. Flat arrays, so that a compiled tokenizer can
 * be used where it is mapped.
 */

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
	bool is_borrowed;       /* node and label belong to another owner */
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

/* ---- Models that only look up ---- */

/*
 * The longest token first, repeatedly, through one word.
 *
 * Tokens that continue a word are written with a prefix ("##"). A word with a rest that is not a
 * token, or of more than max_chars characters, is the unknown token as a whole.
 */

struct wordpiece {
	const struct vocab *vocab;
	struct trie first, later; /* all tokens; those with the prefix, without it */
	uint32_t unk;
	uint32_t max_chars;
};

/* Makes the tries, after vocab_index. WordLevel needs none. */
void wordpiece_index(struct wordpiece *p, struct str prefix);
void wordpiece_release(struct wordpiece *p); /* accepts a zeroed one */

/* Appends the ids of one word of valid UTF-8. */
void wordpiece_word(const struct wordpiece *p, struct str word, struct ids *out);
/* WordLevel: the word's id, or unk. */
void wordlevel_word(const struct wordpiece *p, struct str word, struct ids *out);
