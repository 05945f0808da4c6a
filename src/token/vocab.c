/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocab.c - all bytes in one block, entries by id, and one open-addressing
 * table from bytes to id whose slots carry 32 bits of the hash.
 */
#include "token/vocab.h"

#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"
#include "token/chars.h"
#include "token/hash.h"

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

/* Bytes of a spelling, or the spelling itself where it is none: what the token decodes to. */
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
