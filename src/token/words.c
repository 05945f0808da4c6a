/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c - the word cache and the choice of the model.
 */
#include "token/words.h"

#include <stdlib.h>

#include "base/mem.h"
#include "token/hash.h"

#define CACHE_SLOTS 32768 /* 1.5 MiB a thread: near the size of a second-level cache */
#define CACHE_IDS 4

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

static void encode_word(const struct model *m, struct words_work *w, struct str word,
	struct ids *out)
{
	switch (m->kind) {
	case MODEL_BPE:
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

static void encode_cached(const struct model *m, struct words_work *w, struct str word,
	struct ids *out)
{
	struct hash_key key = hash_key(word.p, word.n);
	struct cached_word *slot = w->cache + hash_of_key(key, word.n) % CACHE_SLOTS;
	size_t before = out->count;

	if (slot->length == word.n && slot->key.w[0] == key.w[0] && slot->key.w[1] == key.w[1] &&
		slot->key.w[2] == key.w[2]) {
		memcpy(ids_reserve(out, CACHE_IDS), slot->id, sizeof slot->id);
		out->count += slot->count;
		return;
	}
	encode_word(m, w, word, out);
	if (out->count - before <= CACHE_IDS) {
		slot->key = key;
		slot->length = (uint8_t)word.n;
		slot->count = (uint8_t)(out->count - before);
		/* A vocabulary without these bytes gives no ids, perhaps no memory for them. */
		if (slot->count)
			memcpy(slot->id, out->id + before, slot->count * sizeof *slot->id);
	}
}

static void encode_one(const struct model *m, struct words_work *w, struct str word,
	struct ids *out)
{
	if (word.n > HASH_KEY_BYTES)
		encode_word(m, w, word, out);
	else if (word.n > 0)
		encode_cached(m, w, word, out);
}

static void encode_cut(const struct model *m, struct words_work *w, struct str word,
	struct ids *out)
{
	while (word.n > 0) {
		size_t n = bpe_cut(&m->bpe, word);

		encode_one(m, w, (struct str){ word.p, n }, out);
		word = (struct str){ word.p + n, word.n - n };
	}
}

void words_encode(const struct model *m, struct words_work *w, const struct str *word, size_t n,
	struct ids *out)
{
	for (size_t i = 0; i < n; i++) {
		if (m->bpe.seam)
			encode_cut(m, w, word[i], out);
		else
			encode_one(m, w, word[i], out);
	}
}
