/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unigram.c - from left to right, the best way to every position, then back along it.
 *
 * Scores are needed only as far ahead as the longest token reaches, so they go
 * round in a small ring; of every position only the token that ends there is kept.
 */
#include "token/unigram.h"

#include <math.h>
#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"

#define CHAR_BYTES_MAX 4
#define UNKNOWN_CHAR VOCAB_NONE /* in place of a token's id: one character that is none */

struct unigram_work {
	double *ring; /* best score by position; -INFINITY: not reached */
	size_t size;  /* a power of two, above the longest token */
	struct ids token; /* by the position behind it */
};

void unigram_release(struct unigram *u)
{
	trie_release(&u->trie);
	if (!u->is_borrowed)
		free(u->score);
	*u = (struct unigram){ 0 };
}

static void find_bytes(struct unigram *u, bool has_byte_fallback)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		char name[8];
		int n = snprintf(name, sizeof name, "<0x%02X>", byte);

		u->byte_id[byte] =
			has_byte_fallback ? vocab_find(u->vocab, name, (size_t)n) : VOCAB_NONE;
	}
}

int unigram_index(struct unigram *u, bool has_byte_fallback, const bool *is_text, struct err *e)
{
	const struct vocab *v = u->vocab;
	struct trie_key *key = mem_array(v->id_limit, sizeof *key);
	size_t count = 0;

	u->longest = CHAR_BYTES_MAX;
	/* From the end: of equal tokens the last is the one that is found. */
	for (uint32_t id = (uint32_t)v->id_limit; id-- > 0;) {
		struct str bytes = vocab_bytes(v, id);

		if (!v->entry[id].is_known || bytes.n == 0 || (is_text && !is_text[id]))
			continue;
		key[count++] = (struct trie_key){ bytes, id };
		if (bytes.n > u->longest)
			u->longest = bytes.n;
	}
	if (u->longest > TOKEN_UNIGRAM_BYTES_MAX) {
		free(key);
		return err_set(e, ERR_LIMIT,
			"has a Unigram model with a token of %zu bytes; at most %d are read",
			u->longest, TOKEN_UNIGRAM_BYTES_MAX);
	}
	trie_build(&u->trie, key, count);
	free(key);
	find_bytes(u, has_byte_fallback);
	return 0;
}

struct unigram_work *unigram_work_new(void)
{
	return mem_alloc(sizeof(struct unigram_work));
}

void unigram_work_free(struct unigram_work *w)
{
	if (!w)
		return;
	free(w->ring);
	ids_release(&w->token);
	free(w);
}

static void make_ring(struct unigram_work *w, size_t longest)
{
	w->size = 2 * CHAR_BYTES_MAX;
	while (w->size <= longest)
		w->size *= 2;
	w->ring = mem_grow(w->ring, w->size, sizeof *w->ring);
	for (size_t i = 0; i < w->size; i++)
		w->ring[i] = -INFINITY;
}

static size_t char_bytes(uint8_t lead)
{
	return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Fills w->token: how the best way to each position gets there. */
static void go_forward(const struct unigram *u, struct unigram_work *w, struct str word)
{
	const struct trie *trie = &u->trie;
	double *ring = w->ring;
	uint32_t *token = w->token.id;
	size_t mask = w->size - 1, next;

	ring[0] = 0;
	for (size_t at = 0; at < word.n; at = next) {
		double base = ring[at & mask], sum;
		bool is_char_known = false;
		uint32_t node = 0;

		next = at + char_bytes((uint8_t)word.p[at]);
		for (size_t i = at; i < word.n;) {
			uint32_t id;

			node = trie_step(trie, node, (uint8_t)word.p[i++]);
			if (!node)
				break;
			id = trie->node[node].value;
			if (id == TRIE_NONE)
				continue;
			is_char_known |= i == next;
			sum = base + u->score[id];
			if (sum > ring[i & mask]) {
				ring[i & mask] = u->is_sentencepiece ? (float)sum : sum;
				token[i] = id;
			}
		}
		if (!is_char_known) {
			sum = base + u->unk_score;
			if (u->is_sentencepiece)
				sum = (float)sum;
			if (sum > ring[next & mask]) {
				ring[next & mask] = sum;
				token[next] = UNKNOWN_CHAR;
			}
		}
		for (; at < next; at++)
			ring[at & mask] = -INFINITY;
	}
	ring[word.n & mask] = -INFINITY;
}

/* The ids of unknown characters, last first. */
static void add_unknown(const struct unigram *u, struct str run, struct ids *out)
{
	uint32_t id = u->is_sentencepiece ? VOCAB_NONE : vocab_find(u->vocab, run.p, run.n);
	size_t before = out->count;

	if (id != VOCAB_NONE) {
		ids_push(out, id);
		return;
	}
	for (size_t i = run.n; i-- > 0;) {
		id = u->byte_id[(uint8_t)run.p[i]];
		if (id == VOCAB_NONE) {
			out->count = before;
			ids_push(out, u->unk);
			return;
		}
		ids_push(out, id);
	}
}

static size_t start_of(const struct unigram *u, const uint32_t *token, struct str word, size_t end)
{
	if (token[end] != UNKNOWN_CHAR)
		return end - u->vocab->entry[token[end]].length;
	do
		end--;
	while (((uint8_t)word.p[end] & 0xc0) == 0x80);
	return end;
}

static bool is_unknown(const struct unigram *u, uint32_t id)
{
	return id == UNKNOWN_CHAR || id == u->unk;
}

void unigram_word(const struct unigram *u, struct unigram_work *w, struct str word,
	struct ids *out)
{
	size_t first = out->count, last, start;
	const uint32_t *token;

	if (w->size <= u->longest)
		make_ring(w, u->longest);
	token = ids_reserve(&w->token, word.n + 1);
	go_forward(u, w, word);
	for (size_t end = word.n; end > 0; end = start) {
		start = start_of(u, token, word, end);
		if (!is_unknown(u, token[end])) {
			ids_push(out, token[end]);
			continue;
		}
		while (start > 0 && is_unknown(u, token[start]))
			start = start_of(u, token, word, start);
		add_unknown(u, (struct str){ word.p + start, end - start }, out);
	}
	for (last = out->count; first + 1 < last; first++) {
		uint32_t id = out->id[first];

		out->id[first] = out->id[--last];
		out->id[last] = id;
	}
}
