/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unigram.c - from left to right, the best way to every position, then back along it.
 *
 * Scores are needed only as far ahead as the longest token reaches, so they go
 * round in a small ring; of every position only the token that ends there is kept.
 */
#include "token/unigram.h"

#include <math.h>

#include "base/mem.h"

#define CHAR_BYTES_MAX 4
#define UNKNOWN_CHAR UINT32_MAX /* in place of a token: one character that is none */

struct unigram_work {
	double *ring; /* best score by position; -INFINITY: not reached */
	size_t size;  /* a power of two, above the longest token */
	struct ids token; /* the unit where it ends, by the position behind it */
};

void unigram_release(struct unigram *u)
{
	if (!u->is_borrowed) {
		free(u->unit);
		free(u->id);
	}
	*u = (struct unigram){ 0 };
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
	const struct unigram_unit *unit = u->unit;
	double *ring = w->ring;
	uint32_t *token = w->token.id;
	size_t mask = w->size - 1, next;

	ring[0] = 0;
	for (size_t at = 0; at < word.n; at = next) {
		double here = ring[at & mask], char_score = NAN, sum;
		uint32_t node = 0;

		next = at + char_bytes((uint8_t)word.p[at]);
		for (size_t i = at; i < word.n;) {
			uint32_t child = unit[node].base ^ (uint8_t)word.p[i++];

			if (unit[child].parent != node)
				break;
			node = child;
			if (i == next)
				char_score = unit[node].score;
			sum = here + unit[node].score;
			if (sum > ring[i & mask]) { /* never with NAN */
				ring[i & mask] = u->is_sentencepiece ? (float)sum : sum;
				token[i] = node;
			}
		}
		if (isnan(char_score)) {
			sum = here + u->unk_score;
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

static size_t start_of(const struct unigram *u, uint32_t token, struct str word, size_t end)
{
	if (token != UNKNOWN_CHAR)
		return end - u->vocab->entry[u->id[token]].length;
	do
		end--;
	while (((uint8_t)word.p[end] & 0xc0) == 0x80);
	return end;
}

static bool is_unknown(const struct unigram *u, uint32_t token)
{
	return token == UNKNOWN_CHAR || u->id[token] == u->unk;
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
		start = start_of(u, token[end], word, end);
		if (!is_unknown(u, token[end])) {
			ids_push(out, u->id[token[end]]);
			continue;
		}
		while (start > 0 && is_unknown(u, token[start]))
			start = start_of(u, token[start], word, start);
		add_unknown(u, (struct str){ word.p + start, end - start }, out);
	}
	for (last = out->count; first + 1 < last; first++) {
		uint32_t id = out->id[first];

		out->id[first] = out->id[--last];
		out->id[last] = id;
	}
}
