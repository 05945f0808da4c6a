/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c - the word cache, words in parts, and the choice of the model.
 */
#include "token/words.h"

#include <stdlib.h>

#include "base/mem.h"
#include "token/hash.h"

#define CACHE_SLOTS 32768 /* 1.5 MiB a thread: near the size of a second-level cache */
#define CACHE_IDS 4
#define PART 0x80 /* in length: a part of a word */

struct cached_word {
	struct hash_key key;
	uint32_t id[CACHE_IDS];
	uint8_t length, count; /* length 0: free */
};

struct words_work {
	struct cached_word *cache;
	struct bpe_work *bpe;
	struct unigram_work *unigram;
};

struct words_work *words_work_new(void)
{
	struct words_work *w = mem_alloc(sizeof *w);

	w->cache = mem_array(CACHE_SLOTS, sizeof *w->cache);
	w->bpe = bpe_work_new();
	w->unigram = unigram_work_new();
	return w;
}

void words_work_free(struct words_work *w)
{
	if (!w)
		return;
	free(w->cache);
	bpe_work_free(w->bpe);
	unigram_work_free(w->unigram);
	free(w);
}

static void encode_cached(const struct model *m, struct words_work *w, struct str word,
	bool is_part, struct ids *out);

/* By parts, which come again more often than long words do. */
static void encode_cut(const struct model *m, struct words_work *w, struct str word,
	struct ids *out)
{
	uint32_t id;
	size_t n;

	if (bpe_whole(&m->bpe, word, &id)) {
		ids_push(out, id);
		return;
	}
	n = bpe_cut(&m->bpe, word);
	if (n == word.n) {
		bpe_part(&m->bpe, w->bpe, word, out);
		return;
	}
	for (;;) {
		encode_cached(m, w, (struct str){ word.p, n }, true, out);
		word = (struct str){ word.p + n, word.n - n };
		if (word.n == 0)
			return;
		n = bpe_cut(&m->bpe, word);
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

/* With ignore_merges a part is not what the same bytes are as a word. */
static void encode_cached(const struct model *m, struct words_work *w, struct str word,
	bool is_part, struct ids *out)
{
	struct hash_key key;
	struct cached_word *slot;
	size_t before = out->count;
	uint8_t length;

	if (word.n > HASH_KEY_BYTES) {
		encode_word(m, w, word, is_part, out);
		return;
	}
	key = hash_key(word.p, word.n);
	slot = w->cache + hash_of_key(key, word.n) % CACHE_SLOTS;
	length = (uint8_t)word.n | (is_part && m->bpe.ignore_merges ? PART : 0);
	if (slot->length == length && slot->key.w[0] == key.w[0] && slot->key.w[1] == key.w[1] &&
		slot->key.w[2] == key.w[2]) {
		memcpy(ids_reserve(out, CACHE_IDS), slot->id, sizeof slot->id);
		out->count += slot->count;
		return;
	}
	encode_word(m, w, word, is_part, out);
	if (out->count - before <= CACHE_IDS) {
		slot->key = key;
		slot->length = length;
		slot->count = (uint8_t)(out->count - before);
		/* A vocabulary without these bytes gives no ids, perhaps no memory for them. */
		if (slot->count)
			memcpy(slot->id, out->id + before, slot->count * sizeof *slot->id);
	}
}

void words_encode(const struct model *m, struct words_work *w, const struct str *word, size_t n,
	struct ids *out)
{
	for (size_t i = 0; i < n; i++)
		if (word[i].n > 0)
			encode_cached(m, w, word[i], false, out);
}
