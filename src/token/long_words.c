/* SPDX-License-Identifier: Apache-2.0 */
/* long_words.c - see long_words.h. */
#include "token/long_words.h"

#include <stdlib.h>

#include "base/mem.h"
#include "token/hash.h"

#define SLOTS (1u << 18)
#define RING_BYTES (8u << 20)

struct slot {
	uint64_t hash;
	uint64_t at;    /* bytes written to the ring before this word; the word is there while
	                   no more than RING_BYTES have been written since */
	uint16_t bytes; /* 0: free */
	uint16_t ids, kind;
};

struct long_words {
	struct slot *slot;
	char *ring;       /* of each word first ids, then bytes; none lies across the end */
	uint64_t written;
};

struct long_words *long_words_new(void)
{
	struct long_words *l = mem_alloc(sizeof *l);

	l->slot = mem_array(SLOTS, sizeof *l->slot);
	l->ring = mem_alloc(RING_BYTES);
	return l;
}

void long_words_free(struct long_words *l)
{
	if (!l)
		return;
	free(l->slot);
	free(l->ring);
	free(l);
}

uint64_t long_words_hash(struct str word, unsigned kind)
{
	return hash_bytes(word.p, word.n) + kind;
}

bool long_words_get(const struct long_words *l, struct str word, unsigned kind, uint64_t hash,
	struct ids *out)
{
	const struct slot *s = &l->slot[hash % SLOTS];
	const char *kept = l->ring + s->at % RING_BYTES;
	size_t id_bytes = s->ids * sizeof(uint32_t);

	if (!s->bytes || s->hash != hash || s->bytes != word.n || s->kind != kind ||
		l->written - s->at > RING_BYTES || memcmp(kept + id_bytes, word.p, word.n) != 0)
		return false;
	if (s->ids)
		memcpy(ids_reserve(out, s->ids), kept, id_bytes);
	out->count += s->ids;
	return true;
}

void long_words_keep(struct long_words *l, struct str word, unsigned kind, uint64_t hash,
	const uint32_t *id, size_t count)
{
	size_t id_bytes = count * sizeof *id, size = (id_bytes + word.n + 7) & ~(size_t)7;
	size_t room = RING_BYTES - l->written % RING_BYTES;
	char *to;

	if (word.n == 0 || word.n > LONG_WORD_BYTES_MAX || count > word.n)
		return;
	if (room < size)
		l->written += room;
	to = l->ring + l->written % RING_BYTES;
	if (count)
		memcpy(to, id, id_bytes);
	memcpy(to + id_bytes, word.p, word.n);
	l->slot[hash % SLOTS] = (struct slot){ hash, l->written, (uint16_t)word.n, (uint16_t)count,
		(uint16_t)kind };
	l->written += size;
}
