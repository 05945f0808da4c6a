/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocab.c - vocabularies, tries, and models that only look up.
 *
 * All bytes of a vocabulary are in one block, with entries by id and one open-addressing
 * table from bytes to id whose slots carry 32 bits of the hash.
 */
#include "input/encode/vocab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "input/encode/chars.h"

/* ---- Vocabularies ---- */

void vocab_init(struct vocab *v, bool is_spelled, size_t bytes)
{
	*v = (struct vocab){ .is_spelled = is_spelled };
	v->bytes.limit = 4ull * TOKEN_FILE_BYTES_MAX;
	buf_reserve(&v->bytes, bytes);
}

void vocab_release(struct vocab *v)
{
	if (!v->is_borrowed) {
		buf_release(&v->bytes);
		free(v->entry);
		free(v->slot);
	}
	map_release(&v->foreign);
	arena_release(&v->arena);
	*v = (struct vocab){ 0 };
}

static void grow_to(struct vocab *v, size_t id_limit)
{
	size_t cap = v->cap ? v->cap : 4096;

	if (id_limit > v->cap) {
		while (cap < id_limit)
			cap *= 2;
		v->entry = mem_grow(v->entry, cap, sizeof *v->entry);
		memset(v->entry + v->cap, 0, (cap - v->cap) * sizeof *v->entry);
		v->cap = cap;
	}
	if (id_limit > v->id_limit)
		v->id_limit = id_limit;
}

/* The bytes of a spelling, or the spelling itself if it is not one: what the token decodes to. */
static bool add_bytes(struct vocab *v, struct str spelled, struct vocab_entry *entry)
{
	bool is_bytes;

	entry->start = (uint32_t)v->bytes.len;
	is_bytes = v->is_spelled && chars_to_bytes(spelled, &v->bytes);
	if (!is_bytes)
		buf_add_str(&v->bytes, spelled);
	entry->length = (uint32_t)(v->bytes.len - entry->start);
	entry->is_known = true;
	buf_reserve(&v->bytes, VOCAB_SLACK);
	return is_bytes || !v->is_spelled;
}

int vocab_add(struct vocab *v, struct str spelled, int64_t id, struct err *e)
{
	struct vocab_entry *entry;

	assert(!v->slots);
	if (id < 0 || id >= TOKEN_ID_MAX)
		return err_set(e, ERR_PARSE, "token \"%.*s\" has id %lld; ids are 0 to %d",
			(int)(spelled.n < 64 ? spelled.n : 64), spelled.p, (long long)id,
			(int)TOKEN_ID_MAX - 1);
	if (spelled.n > TOKEN_ENTRY_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the token with the id %lld has %zu bytes; at most %d "
			"are read (TOKEN_ENTRY_BYTES_MAX)", (long long)id, spelled.n,
			TOKEN_ENTRY_BYTES_MAX);
	grow_to(v, (size_t)id + 1);
	entry = v->entry + id;
	if (entry->is_known)
		return err_set(e, ERR_PARSE, "two tokens have the id %lld", (long long)id);
	if (!add_bytes(v, spelled, entry)) {
		map_put(&v->foreign, arena_str(&v->arena, spelled), (uint64_t)id);
		entry->is_foreign = true;
	}
	v->count++;
	return 0;
}

static struct vocab_slot *find_slot(const struct vocab *v, const char *p, size_t n, uint64_t hash)
{
	uint32_t tag = (uint32_t)(hash >> 32);

	for (size_t mask = v->slots - 1, i = hash & mask;; i = (i + 1) & mask) {
		struct vocab_slot *slot = v->slot + i;

		if (slot->id == VOCAB_NONE)
			return slot;
		if (slot->tag == tag && v->entry[slot->id].length == n &&
		    memcmp(v->bytes.data + v->entry[slot->id].start, p, n) == 0)
			return slot;
	}
}

int vocab_index(struct vocab *v, struct err *e)
{
	size_t cap = 1024;

	assert(!v->slots);
	while (cap < v->count * 2)
		cap *= 2;
	v->slots = cap;
	v->slot = mem_array(cap, sizeof *v->slot);
	memset(v->slot, 0xff, cap * sizeof *v->slot);
	for (size_t id = 0; id < v->id_limit; id++) {
		struct vocab_entry *entry = v->entry + id;
		const char *p = v->bytes.data + entry->start;
		struct vocab_slot *slot;
		uint64_t hash;

		if (!entry->is_known || entry->is_foreign || entry->length == 0)
			continue;
		hash = hash_bytes(p, entry->length);
		slot = find_slot(v, p, entry->length, hash);
		if (slot->id != VOCAB_NONE && !v->has_doubles)
			return err_set(e, ERR_PARSE, "ids %u and %zu are the same token", slot->id,
				id);
		*slot = (struct vocab_slot){ (uint32_t)(hash >> 32), (uint32_t)id };
	}
	return 0;
}

int vocab_set_added(struct vocab *v, struct str content, uint32_t id, bool is_special,
	struct err *e)
{
	if (id >= TOKEN_ID_MAX)
		return err_set(e, ERR_PARSE,
			"added token \"%.*s\" would have id %u; ids are 0 to %d",
			(int)(content.n < 64 ? content.n : 64), content.p, id,
			(int)TOKEN_ID_MAX - 1);
	grow_to(v, (size_t)id + 1);
	/* One of the model's own keeps its bytes: its spelling is the content. */
	if (!v->entry[id].is_known)
		add_bytes(v, content, v->entry + id);
	v->entry[id].is_special = is_special;
	return 0;
}

uint32_t vocab_find(const struct vocab *v, const char *p, size_t n)
{
	return find_slot(v, p, n, hash_bytes(p, n))->id;
}

#define TOGETHER 32

static void find_together(const struct vocab *v, const struct str *key, uint32_t *id, size_t n)
{
	uint64_t hash[TOGETHER];

	for (size_t i = 0; i < n; i++) {
		hash[i] = hash_bytes(key[i].p, key[i].n);
		__builtin_prefetch(v->slot + (hash[i] & (v->slots - 1)));
	}
	for (size_t i = 0; i < n; i++) {
		id[i] = v->slot[hash[i] & (v->slots - 1)].id;
		if (id[i] != VOCAB_NONE)
			__builtin_prefetch(v->entry + id[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (id[i] != VOCAB_NONE)
			__builtin_prefetch(v->bytes.data + v->entry[id[i]].start);
	for (size_t i = 0; i < n; i++)
		id[i] = find_slot(v, key[i].p, key[i].n, hash[i])->id;
}

void vocab_find_many(const struct vocab *v, const struct str *key, uint32_t *id, size_t n)
{
	for (size_t at = 0, some; at < n; at += some) {
		some = n - at < TOGETHER ? n - at : TOGETHER;
		find_together(v, key + at, id + at, some);
	}
}

uint32_t vocab_find_spelled(const struct vocab *v, struct str spelled)
{
	struct buf bytes = { 0 };
	uint32_t id = VOCAB_NONE;
	uint64_t value;

	if (!v->is_spelled)
		return vocab_find(v, spelled.p, spelled.n);
	if (chars_to_bytes(spelled, &bytes))
		id = vocab_find(v, bytes.data ? bytes.data : "", bytes.len);
	else if (map_get(&v->foreign, spelled, &value))
		id = (uint32_t)value;
	buf_release(&bytes);
	return id;
}

/* ---- Tokens by their leading bytes ---- */

/*
 * Building a trie: sort the keys, then cut each node's run of keys by the next byte. A run is given
 * by its first and last key, so nodes come out breadth first and the children of each are adjacent.
 */

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
struct trie_run {
	uint32_t first, last, depth;
};

struct trie_builder {
	struct trie *t;
	struct trie_run *run; /* by node */
	size_t cap;
};

static uint32_t new_node(struct trie_builder *b, struct trie_run run, uint8_t label)
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
static void fill_node(struct trie_builder *b, uint32_t node, const struct trie_key *key)
{
	struct trie_run run = b->run[node];
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
		child = new_node(b, (struct trie_run){ i, end, run.depth + 1 }, byte);
		if (node == 0)
			b->t->root[byte] = child;
	}
}

void trie_build(struct trie *t, struct trie_key *key, size_t n)
{
	struct trie_builder b = { .t = t };

	assert(n < UINT32_MAX);
	*t = (struct trie){ 0 };
	if (n > 0)
		sort_keys(key, n);
	new_node(&b, (struct trie_run){ 0, (uint32_t)n, 0 }, 0);
	for (uint32_t node = 0; n > 0 && node < t->nodes; node++)
		fill_node(&b, node, key);
	if (n == 0)
		t->node[0].child = 1; /* none */
	new_node(&b, (struct trie_run){ 0 }, 0);
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

/* ---- Models that only look up ---- */

/* Two tries: one for the front of a word, one for the rest. */

void wordpiece_index(struct wordpiece *p, struct str prefix)
{
	const struct vocab *v = p->vocab;
	struct trie_key *key = mem_array(2 * v->id_limit, sizeof *key), *later = key + v->id_limit;
	size_t count = 0, later_count = 0;

	assert(p->vocab->slots > 0);
	for (uint32_t id = 0; id < v->id_limit; id++) {
		struct str bytes = vocab_bytes(v, id);

		if (!v->entry[id].is_known || bytes.n == 0)
			continue;
		key[count++] = (struct trie_key){ bytes, id };
		if (bytes.n > prefix.n && str_starts(bytes, prefix))
			later[later_count++] = (struct trie_key){
				{ bytes.p + prefix.n, bytes.n - prefix.n }, id };
	}
	trie_build(&p->first, key, count);
	trie_build(&p->later, later, later_count);
	free(key);
}

void wordpiece_release(struct wordpiece *p)
{
	trie_release(&p->first);
	trie_release(&p->later);
	*p = (struct wordpiece){ 0 };
}

static bool has_more_chars(struct str word, uint32_t max)
{
	size_t chars = 0;

	if (word.n <= max)
		return false;
	for (size_t i = 0; i < word.n; i++)
		chars += ((uint8_t)word.p[i] & 0xc0) != 0x80;
	return chars > max;
}

void wordpiece_word(const struct wordpiece *p, struct str word, struct ids *out)
{
	const struct trie *trie = &p->first;
	size_t before = out->count, n = 0;

	if (has_more_chars(word, p->max_chars)) {
		ids_push(out, p->unk);
		return;
	}
	for (; word.n > 0; word = (struct str){ word.p + n, word.n - n }) {
		uint32_t id = trie_longest(trie, word, &n);

		if (id == TRIE_NONE) {
			out->count = before;
			ids_push(out, p->unk);
			return;
		}
		ids_push(out, id);
		trie = &p->later;
	}
}

void wordlevel_word(const struct wordpiece *p, struct str word, struct ids *out)
{
	uint32_t id = vocab_find(p->vocab, word.p, word.n);

	ids_push(out, id == VOCAB_NONE ? p->unk : id);
}
