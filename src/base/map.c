/* SPDX-License-Identifier: Apache-2.0 */
/* map.c - see map.h. FNV-1a with a final mix; the table stays at most half full. */
#include "base/map.h"

#include "base/mem.h"

uint64_t map_hash(struct str key)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < key.n; i++)
		h = (h ^ (unsigned char)key.p[i]) * 0x100000001b3u;
	h ^= h >> 32;
	return h * 0x9e3779b97f4a7c15u;
}

static struct map_slot *find(const struct map *m, struct str key)
{
	size_t i = map_hash(key) >> 32 & (m->cap - 1);

	while (m->slot[i].key.p && !str_eq(m->slot[i].key, key))
		i = (i + 1) & (m->cap - 1);
	return &m->slot[i];
}

static void grow(struct map *m, size_t cap)
{
	struct map old = *m;

	m->cap = cap;
	m->slot = mem_array(m->cap, sizeof(*m->slot));
	for (size_t i = 0; i < old.cap; i++)
		if (old.slot[i].key.p)
			*find(m, old.slot[i].key) = old.slot[i];
	free(old.slot);
}

void map_reserve(struct map *m, size_t count)
{
	size_t cap = m->cap ? m->cap : 64;

	while (cap < count * 2 + 2)
		cap *= 2;
	if (cap > m->cap)
		grow(m, cap);
}

void map_put(struct map *m, struct str key, uint64_t value)
{
	struct map_slot *slot;

	if (!key.p)
		key.p = "";
	if (m->count * 2 >= m->cap)
		grow(m, m->cap ? m->cap * 2 : 64);
	slot = find(m, key);
	if (!slot->key.p)
		m->count++;
	*slot = (struct map_slot){ key, value };
}

bool map_get(const struct map *m, struct str key, uint64_t *value)
{
	const struct map_slot *slot;

	if (!m->cap)
		return false;
	slot = find(m, key);
	if (slot->key.p && value)
		*value = slot->value;
	return slot->key.p != NULL;
}

void map_release(struct map *m)
{
	if (!m)
		return;
	free(m->slot);
	*m = (struct map){ 0 };
}
