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
#include "base/str.h"

#define RING_MIN 8

struct unigram_work {
	double *ring;      /* best score by position; -INFINITY: not reached */
	size_t size;       /* a power of two, above the longest token */
	struct ids label;  /* of every character */
	struct ids token;  /* the unit where it ends, by the position behind it; 0: unknown */
};

void unigram_release(struct unigram *u)
{
	if (!u->is_borrowed) {
		free(u->unit);
		free(u->end);
		free(u->page);
		free(u->label);
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
	ids_release(&w->label);
	ids_release(&w->token);
	free(w);
}

static void make_ring(struct unigram_work *w, size_t longest)
{
	w->size = RING_MIN;
	while (w->size <= longest)
		w->size *= 2;
	w->ring = mem_grow(w->ring, w->size, sizeof *w->ring);
	for (size_t i = 0; i < w->size; i++)
		w->ring[i] = -INFINITY;
}

/* Fills w->label; how many characters the word has. */
static size_t label_chars(const struct unigram *u, struct unigram_work *w, struct str word)
{
	uint32_t *label = ids_reserve(&w->label, word.n);
	size_t count = 0, n;

	for (size_t at = 0; at < word.n; at += n) {
		uint32_t cp = utf8_next(word.p + at, &n);
		uint32_t page = u->page[cp >> UNIGRAM_PAGE_BITS];

		label[count++] = u->label[(page << UNIGRAM_PAGE_BITS) +
			cp % (1u << UNIGRAM_PAGE_BITS)];
	}
	return count;
}

/* Fills w->token: how the best way to each position gets there. Positions are characters. */
static void go_forward(const struct unigram *u, struct unigram_work *w, size_t count)
{
	const struct unigram_unit *unit = u->unit;
	const uint32_t *label = w->label.id;
	double *ring = w->ring;
	uint32_t *token = ids_reserve(&w->token, count + 1);
	size_t mask = w->size - 1;

	ring[0] = 0;
	for (size_t at = 0; at < count; at++) {
		uint32_t node = label[at] & UNIGRAM_CODE;
		double here = ring[at & mask], score = unit[node].score;
		size_t i = at + 1;

		ring[at & mask] = -INFINITY;
		if (isnan(score)) {
			double sum = here + u->unk_score;

			if (u->is_sentencepiece)
				sum = (float)sum;
			if (sum > ring[i & mask]) {
				ring[i & mask] = sum;
				token[i] = 0;
			}
		}
		for (;;) {
			double sum = here + unit[node].score;
			uint32_t child;

			if (sum > ring[i & mask]) { /* never with NAN */
				ring[i & mask] = u->is_sentencepiece ? (float)sum : sum;
				token[i] = node;
			}
			if (i == count || (unit[node].label & label[i]) <= UNIGRAM_CODE)
				break;
			child = unit[node].base + (label[i] & UNIGRAM_CODE);
			if ((unit[child].label ^ label[i]) & UNIGRAM_CODE)
				break;
			node = child;
			i++;
		}
	}
	ring[count & mask] = -INFINITY;
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

/* A place in a word; bytes are only counted where they are needed. */
struct place {
	size_t at, byte;
};

static size_t go_back(struct place *p, struct str word, size_t at)
{
	for (; p->at > at; p->at--)
		do
			p->byte--;
		while (((uint8_t)word.p[p->byte] & 0xc0) == 0x80);
	return p->byte;
}

/* Appends the ids of the best way, last first. */
static void go_backward(const struct unigram *u, const uint32_t *token, size_t count,
	struct str word, struct ids *out)
{
	struct place place = { count, word.n };

	for (size_t end = count, start; end > 0; end = start) {
		struct unigram_end last = u->end[token[end]];
		size_t last_byte;

		start = end - last.length;
		if (last.id != u->unk) {
			ids_push(out, last.id);
			continue;
		}
		while (start > 0 && u->end[token[start]].id == u->unk)
			start -= u->end[token[start]].length;
		last_byte = go_back(&place, word, end);
		go_back(&place, word, start);
		add_unknown(u, (struct str){ word.p + place.byte, last_byte - place.byte }, out);
	}
}

void unigram_word(const struct unigram *u, struct unigram_work *w, struct str word,
	struct ids *out)
{
	size_t first = out->count, count;

	if (w->size <= u->longest)
		make_ring(w, u->longest);
	count = label_chars(u, w, word);
	go_forward(u, w, count);
	go_backward(u, w->token.id, count, word, out);
	for (size_t last = out->count; first + 1 < last; first++) {
		uint32_t id = out->id[first];

		out->id[first] = out->id[--last];
		out->id[last] = id;
	}
}
