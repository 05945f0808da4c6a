/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - see words.h. */
#include "input/encode/words.h"

#include <stdlib.h>

#include "core/base/mem.h"
#include "input/encode/vocab.h"

/* ---- Longer words ---- */

#define SLOTS (1u << 18)
#define RING_BYTES (8u << 20)

struct word_slot {
	uint64_t hash;
	uint64_t at;    /* bytes written to the ring before this word; the word is there while
	                   no more than RING_BYTES have been written since */
	uint16_t bytes; /* 0: free */
	uint16_t ids, kind;
};

struct long_words {
	struct word_slot *slot;
	char *ring;       /* of each word first ids, then bytes; none wraps around the end */
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
	const struct word_slot *s = &l->slot[hash % SLOTS];
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
	l->slot[hash % SLOTS] = (struct word_slot){ hash, l->written, (uint16_t)word.n,
						    (uint16_t)count, (uint16_t)kind };
	l->written += size;
}

/* ---- Words ---- */

/*
 * The word cache, words in parts, and the choice of the model.
 */

#define CACHE_SLOTS 65536 /* 2 MiB a thread; twice and half of it were slower in all */
#define CACHE_IDS 4
#define CACHE_BYTES 15

/*
 * The word's bytes, padded with zeros, and in the top byte its length, its number of ids, and
 * whether it was a part of a word. All zero: free.
 */
struct cached_word {
	uint64_t key[2];
	uint32_t id[CACHE_IDS];
};
#define LENGTH_SHIFT 56
#define COUNT_SHIFT 60
#define COUNT_MASK (7ull << COUNT_SHIFT)
#define PART (1ull << 63)

struct words_work {
	struct cached_word *cache;
	struct long_words *longer;
	struct bpe_work *bpe;
	struct unigram_work *unigram;
};

struct words_work *words_work_new(void)
{
	struct words_work *w = mem_alloc(sizeof *w);

	w->cache = mem_array(CACHE_SLOTS, sizeof *w->cache);
	w->longer = long_words_new();
	w->bpe = bpe_work_new();
	w->unigram = unigram_work_new();
	return w;
}

void words_work_free(struct words_work *w)
{
	if (!w)
		return;
	free(w->cache);
	long_words_free(w->longer);
	bpe_work_free(w->bpe);
	unigram_work_free(w->unigram);
	free(w);
}

#define TOGETHER 32 /* words whose slots are asked for before the first is needed */

static void encode_together(const struct model *m, struct words_work *w, const struct str *word,
	size_t n, bool is_part, struct ids *out);

/* Stages after ByteLevel may also cut inside characters. */
static bool has_whole_chars(struct str word)
{
	const uint8_t *b = (const uint8_t *)word.p;
	size_t last = word.n - 1;

	if ((b[0] & 0xc0) == 0x80)
		return false;
	while ((b[last] & 0xc0) == 0x80)
		last--;
	return last + (b[last] < 0x80 ? 1 : b[last] < 0xe0 ? 2 : b[last] < 0xf0 ? 3 : 4) == word.n;
}

/* Encodes part by part, as parts recur more often than long words do. */
static void encode_cut(const struct model *m, struct words_work *w, struct str word,
	struct ids *out)
{
	uint32_t id;
	size_t n;

	if (bpe_lost(&m->bpe, word, &id)) {
		ids_push(out, id);
		return;
	}
	n = has_whole_chars(word) ? bpe_cut(&m->bpe, word) : word.n;
	if (n == word.n) {
		bpe_part(&m->bpe, w->bpe, word, out);
		return;
	}
	while (word.n > 0) {
		struct str part[TOGETHER];
		size_t count = 0;

		for (; word.n > 0 && count < TOGETHER; count++) {
			part[count] = (struct str){ word.p, n };
			word = (struct str){ word.p + n, word.n - n };
			if (word.n > 0)
				n = bpe_cut(&m->bpe, word);
		}
		encode_together(m, w, part, count, true, out);
	}
}

static void encode_word(const struct model *m, struct words_work *w, struct str word,
	bool is_part, struct ids *out)
{
	switch (m->kind) {
	case MODEL_BPE:
		if (is_part)
			bpe_part(&m->bpe, w->bpe, word, out);
		else if (m->bpe.seam)
			encode_cut(m, w, word, out);
		else
			bpe_word(&m->bpe, w->bpe, word, out);
		break;
	case MODEL_UNIGRAM:
		unigram_word(&m->unigram, w->unigram, word, out);
		break;
	case MODEL_WORDPIECE:
		wordpiece_word(&m->wordpiece, word, out);
		break;
	case MODEL_WORDLEVEL:
		wordlevel_word(&m->wordpiece, word, out);
		break;
	}
}

/* The place of a word in the cache; slot NULL: it is too long for it. */
struct kept_word {
	uint64_t key[2];
	struct cached_word *slot;
};

/* With ignore_merges the same bytes may have other ids as a part than as a word. */
static struct kept_word place_of(const struct words_work *w, struct str word, bool is_other)
{
	struct kept_word p = { { 0 }, NULL };

	if (word.n > CACHE_BYTES)
		return p;
	p.key[0] = hash_load(word.p, word.n < 8 ? word.n : 8);
	p.key[1] = word.n > 8 ? hash_load(word.p + 8, word.n - 8) : 0;
	p.key[1] |= (uint64_t)word.n << LENGTH_SHIFT | (is_other ? PART : 0);
	p.slot = w->cache + hash_mix(p.key[0] * 0x9e3779b97f4a7c15u +
		p.key[1] * 0xc2b2ae3d27d4eb4fu) % CACHE_SLOTS;
	__builtin_prefetch(p.slot);
	return p;
}

static bool is_kept(const struct kept_word *p)
{
	return p->slot && p->slot->key[0] == p->key[0] &&
		(p->slot->key[1] & ~COUNT_MASK) == p->key[1];
}

/* Stores the ids of out from `before` on, if they are few enough. */
static void keep(const struct kept_word *p, const struct ids *out, size_t before)
{
	size_t count = out->count - before;

	if (!p->slot || count > CACHE_IDS)
		return;
	*p->slot = (struct cached_word){ { p->key[0],
		p->key[1] | (uint64_t)count << COUNT_SHIFT }, { 0 } };
	if (count)
		memcpy(p->slot->id, out->id + before, count * sizeof *out->id);
}

/* Encodes a word that is not in the first table, or cannot be. */
static void encode_other(const struct model *m, struct words_work *w, struct str word,
	bool is_part, bool is_other, const struct kept_word *place, struct ids *out)
{
	bool is_long = word.n > CACHE_BYTES && word.n <= LONG_WORD_BYTES_MAX;
	uint64_t hash = is_long ? long_words_hash(word, is_other) : 0;
	size_t before = out->count;

	if (is_long && long_words_get(w->longer, word, is_other, hash, out))
		return;
	encode_word(m, w, word, is_part, out);
	if (!is_long)
		keep(place, out, before);
	else if (out->count > before) /* otherwise there may be no memory for ids at all */
		long_words_keep(w->longer, word, is_other, hash, out->id + before,
			out->count - before);
}

static void encode_together(const struct model *m, struct words_work *w, const struct str *word,
	size_t n, bool is_part, struct ids *out)
{
	bool is_other = is_part && m->bpe.ignore_merges;
	struct kept_word place[TOGETHER];

	for (size_t i = 0; i < n; i++)
		place[i] = place_of(w, word[i], is_other);
	for (size_t i = 0; i < n; i++) {
		const struct cached_word *slot = place[i].slot;

		if (is_kept(place + i)) {
			memcpy(ids_reserve(out, CACHE_IDS), slot->id, sizeof slot->id);
			out->count += (slot->key[1] & COUNT_MASK) >> COUNT_SHIFT;
		} else if (word[i].n > 0) {
			encode_other(m, w, word[i], is_part, is_other, place + i, out);
		}
	}
}

void words_encode(const struct model *m, struct words_work *w, const struct str *word, size_t n,
	struct ids *out)
{
	for (size_t at = 0; at < n; at += TOGETHER)
		encode_together(m, w, word + at, n - at < TOGETHER ? n - at : TOGETHER, false,
			out);
}
