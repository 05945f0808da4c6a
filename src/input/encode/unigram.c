/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unigram.c - Viterbi: from left to right the best way to every position, then back along it.
 *
 * Scores are needed only as far ahead as the longest token reaches, so they are in a small ring; of
 * every position only the token that ends there is kept.
 */
#include "input/encode/unigram.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/encode/vocab.h"

#define RING_MIN 8

struct unigram_work {
	double *ring;      /* best score by position; -INFINITY: not reached */
	size_t size;       /* a power of two, above the longest token */
	struct ids label;  /* of every character */
	struct ids token;  /* best token ending at each position, by the position after it; 0:
			    * none */
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

/* Fills w->label; returns the number of characters. */
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

/* Fills w->token: the last token of the best way to each position. Positions are characters. */
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
struct word_at {
	size_t at, byte;
};

static size_t go_back(struct word_at *p, struct str word, size_t at)
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
	struct word_at place = { count, word.n };

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

/* ---- The index ---- */

/*
 * The tokens of a Unigram model as a double array of characters.
 *
 * Made from a trie of bytes, whose nodes come parents first; only the nodes at the ends of
 * characters matter. The children of a node go where free units fit: among the first few of them,
 * or from where the last such search ended, or at the end. So no node tries many, and the cost
 * stays linear.
 */

#define CODE_POINTS 0x110000u
#define NOBODY UNIGRAM_CODE /* the label of a unit that is free: more than any code */
#define TRIES 64u   /* of the first free units, for the children of one node */
#define ROVES 1024u /* of others */
/* Units for every node of the trie, and for all together; known models need one for two. */
#define UNITS_EACH_MAX 8u
#define UNITS_MORE_MAX (1u << 22)

/* A child of a node, one character further. */
struct unigram_step {
	uint32_t node, code; /* code: the code point before there are codes */
};
struct steps {
	struct unigram_step *step;
	size_t count, cap;
};

struct unigram_builder {
	struct unigram *u;
	const struct trie *trie;
	uint32_t *unit_of;  /* by node of the trie */
	bool *is_end;       /* by node: of a whole character */
	uint32_t *code_of;  /* by code point; how many nodes it leads to before there are codes */
	uint32_t codes;
	struct steps steps; /* of one node */
	/* Free units below u->units in a ring through number 0, and bases that are taken. */
	uint32_t *next, *before;
	uint32_t rover; /* one of the free units, where a longer search continues; 0: at the end */
	bool *is_base;
	size_t cap, base_end; /* base_end: after the largest base */
	size_t units_max;
};

/* ---- characters ---- */

static uint32_t count_chars(struct str s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += ((uint8_t)s.p[i] & 0xc0) != 0x80;
	return n;
}

static void add_step(struct steps *s, uint32_t node, uint32_t code)
{
	if (s->count == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 256;
		s->step = mem_grow(s->step, s->cap, sizeof *s->step);
	}
	s->step[s->count++] = (struct unigram_step){ node, code };
}

/* Continues inside a character: cp so far, and how many bytes are missing. */
static void add_inner(struct unigram_builder *b, uint32_t node, uint32_t cp, unsigned left)
{
	const struct trie *t = b->trie;

	for (uint32_t i = t->node[node].child; i < t->node[node + 1].child; i++) {
		uint32_t more = cp << 6 | (t->label[i] & 0x3fu);

		if (left > 1)
			add_inner(b, i, more, left - 1);
		else
			add_step(&b->steps, i, more);
	}
}

/* The children of a node, by code point. */
static const struct steps *find_steps(struct unigram_builder *b, uint32_t node)
{
	const struct trie *t = b->trie;

	b->steps.count = 0;
	for (uint32_t i = t->node[node].child; i < t->node[node + 1].child; i++) {
		uint8_t lead = t->label[i];
		unsigned left = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;

		if (lead < 0x80)
			add_step(&b->steps, i, lead);
		else
			add_inner(b, i, lead & (0x3fu >> left), left);
	}
	return &b->steps;
}

struct counted_code {
	uint32_t cp, count;
};

static int compare_counts(const void *a, const void *b)
{
	const struct counted_code *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->cp > y->cp) - (x->cp < y->cp);
}

/* Gives every code point that leads to a node its code, and u its tables of them. */
static void make_codes(struct unigram_builder *b)
{
	uint32_t *count = b->code_of;
	struct unigram *u = b->u;
	struct counted_code *list;
	size_t n = 0, pages = 1;

	for (uint32_t node = 0; node + 1 < b->trie->nodes; node++) {
		const struct steps *s = b->is_end[node] ? find_steps(b, node) : NULL;

		for (size_t i = 0; s && i < s->count; i++) {
			b->is_end[s->step[i].node] = true;
			n += count[s->step[i].code]++ == 0;
		}
	}
	list = mem_array(n, sizeof *list);
	u->pages = UNIGRAM_PAGES;
	u->page = mem_array(u->pages, sizeof *u->page);
	for (uint32_t cp = 0; cp < CODE_POINTS; cp++) {
		if (count[cp] == 0)
			continue;
		list[b->codes++] = (struct counted_code){ cp, count[cp] };
		if (u->page[cp >> UNIGRAM_PAGE_BITS] == 0)
			u->page[cp >> UNIGRAM_PAGE_BITS] = (uint16_t)pages++;
	}
	qsort(list, n, sizeof *list, compare_counts);
	u->labels = pages << UNIGRAM_PAGE_BITS;
	u->label = mem_array(u->labels, sizeof *u->label);
	for (uint32_t i = 0; i < b->codes; i++) {
		uint32_t cp = list[i].cp, page = u->page[cp >> UNIGRAM_PAGE_BITS];

		b->code_of[cp] = i + 1;
		u->label[(page << UNIGRAM_PAGE_BITS) + cp % (1u << UNIGRAM_PAGE_BITS)] =
			unigram_label(i + 1);
	}
	free(list);
}

/* ---- units ---- */

static void grow_to(struct unigram_builder *b, size_t units)
{
	struct unigram *u = b->u;

	if (units > b->cap) {
		while (b->cap < units)
			b->cap = b->cap ? 2 * b->cap : 4096;
		u->unit = mem_grow(u->unit, b->cap, sizeof *u->unit);
		u->end = mem_grow(u->end, b->cap, sizeof *u->end);
		b->next = mem_grow(b->next, b->cap, sizeof *b->next);
		b->before = mem_grow(b->before, b->cap, sizeof *b->before);
		b->is_base = mem_grow(b->is_base, b->cap, sizeof *b->is_base);
	}
	for (size_t i = u->units; i < units; i++) {
		uint32_t last = i ? b->before[0] : 0;

		u->unit[i] = (struct unigram_unit){ NAN, 0, NOBODY };
		u->end[i] = (struct unigram_end){ VOCAB_NONE, 0 };
		b->is_base[i] = false;
		b->before[i] = last;
		b->next[i] = 0;
		b->next[last] = b->before[0] = (uint32_t)i;
	}
	if (units > u->units) {
		b->rover = b->rover ? b->rover : (uint32_t)u->units;
		u->units = units;
	}
}

static void take_unit(struct unigram_builder *b, uint32_t unit, uint32_t label)
{
	b->u->unit[unit].label = label;
	b->next[b->before[unit]] = b->next[unit];
	b->before[b->next[unit]] = b->before[unit];
	if (b->rover == unit)
		b->rover = b->next[unit];
}

static bool fits(const struct unigram_builder *b, size_t base, const struct steps *s)
{
	for (size_t i = 0; i < s->count; i++) {
		size_t to = base + s->step[i].code;

		if (to < b->u->units && b->u->unit[to].label != NOBODY)
			return false;
	}
	return true;
}

/*
 * Whether the first child can go to this free unit, and the others to the units that follow from
 * it.
 */
static bool fits_at(const struct unigram_builder *b, uint32_t unit, const struct steps *s)
{
	uint32_t base = unit - s->step[0].code;

	return !b->is_base[base] && fits(b, base, s);
}

/* s: sorted by code. */
static size_t choose_base(struct unigram_builder *b, const struct steps *s)
{
	uint32_t first = s->step[0].code, unit = b->next[0];
	size_t behind = b->u->units - first;

	for (unsigned i = 0; i < TRIES && unit != 0; i++, unit = b->next[unit])
		if (fits_at(b, unit, s))
			return unit - first;
	for (unsigned i = 0; i < ROVES && b->rover != 0; i++, b->rover = b->next[b->rover])
		if (fits_at(b, b->rover, s))
			return b->rover - first;
	return behind > b->base_end ? behind : b->base_end;
}

static int compare_steps(const void *a, const void *b)
{
	const struct unigram_step *x = a, *y = b;

	return (x->code > y->code) - (x->code < y->code);
}

/* False: too many units. */
static bool place_children(struct unigram_builder *b, uint32_t node, const double *score)
{
	struct steps *s = &b->steps;
	uint32_t parent = b->unit_of[node];
	struct unigram *u = b->u;
	size_t base = 0;

	find_steps(b, node);
	if (s->count == 0)
		return true;
	for (size_t i = 0; i < s->count; i++)
		s->step[i].code = b->code_of[s->step[i].code];
	qsort(s->step, s->count, sizeof *s->step, compare_steps);
	if (node > 0) {
		base = choose_base(b, s);
		if (base + s->step[s->count - 1].code >= b->units_max)
			return false;
		grow_to(b, base + s->step[s->count - 1].code + 1);
		b->is_base[base] = true;
		b->base_end = base >= b->base_end ? base + 1 : b->base_end;
	}
	u->unit[parent].base = (uint32_t)base;
	for (size_t i = 0; i < s->count; i++) {
		uint32_t child = s->step[i].node, code = s->step[i].code;
		uint32_t to = (uint32_t)base + code, id = b->trie->node[child].value;

		b->unit_of[child] = to;
		if (node > 0) {
			take_unit(b, to, code);
			u->unit[parent].label |= unigram_label(code) & ~UNIGRAM_CODE;
		}
		u->end[to].id = id;
		if (id != TRIE_NONE)
			u->unit[to].score = score[id];
	}
	return true;
}

/* Units of the first characters, whether or not a token begins with all of them. */
static void place_root(struct unigram_builder *b)
{
	grow_to(b, (size_t)b->codes + 1);
	b->u->unit[0].label = 0;
	b->u->end[0] = (struct unigram_end){ b->u->unk, 1 };
	for (uint32_t code = 1; code <= b->codes; code++)
		take_unit(b, code, code);
}

static int build(struct unigram *u, const struct trie *trie, const double *score, struct err *e)
{
	struct unigram_builder b = { .u = u, .trie = trie };
	int rc = 0;

	b.unit_of = mem_array(trie->nodes, sizeof *b.unit_of);
	b.is_end = mem_array(trie->nodes, sizeof *b.is_end);
	b.code_of = mem_array(CODE_POINTS, sizeof *b.code_of);
	b.units_max = UNITS_EACH_MAX * trie->nodes + UNITS_MORE_MAX;
	b.is_end[0] = true;
	make_codes(&b);
	place_root(&b);
	for (uint32_t node = 0; rc == 0 && node + 1 < trie->nodes; node++)
		if (b.is_end[node] && !place_children(&b, node, score))
			rc = err_set(e, ERR_LIMIT, "has a Unigram model that would need more than "
				"%zu entries for the %zu prefixes of its tokens", b.units_max,
				trie->nodes);
	grow_to(&b, u->units + b.codes + 1);
	free(b.unit_of);
	free(b.is_end);
	free(b.code_of);
	free(b.steps.step);
	free(b.next);
	free(b.before);
	free(b.is_base);
	return rc;
}

static void find_lengths(struct unigram *u)
{
	for (size_t i = 1; i < u->units; i++)
		if (u->end[i].id != VOCAB_NONE)
			u->end[i].length = count_chars(vocab_bytes(u->vocab, u->end[i].id));
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

/* Lists the tokens that text may become, from the end, so that of equal ones the last is found. */
static size_t list_tokens(struct unigram *u, const double *score, struct trie_key *key,
	size_t *longest)
{
	const struct vocab *v = u->vocab;
	size_t count = 0;

	for (uint32_t id = (uint32_t)v->id_limit; id-- > 0;) {
		struct str bytes = vocab_bytes(v, id);
		size_t chars;

		if (!v->entry[id].is_known || bytes.n == 0 || isnan(score[id]))
			continue;
		*longest = bytes.n > *longest ? bytes.n : *longest;
		if (!utf8_is_valid(bytes)) /* no text contains it */
			continue;
		key[count++] = (struct trie_key){ bytes, id };
		chars = count_chars(bytes);
		u->longest = chars > u->longest ? chars : u->longest;
	}
	return count;
}

int unigram_index(struct unigram *u, const double *score, bool has_byte_fallback, struct err *e)
{
	struct trie_key *key = mem_array(u->vocab->id_limit, sizeof *key);
	struct trie trie = { 0 };
	size_t longest = 0, count;
	int rc;

	assert(u->vocab->slots > 0);
	u->longest = 1;
	count = list_tokens(u, score, key, &longest);
	if (longest > TOKEN_ENTRY_BYTES_MAX) {
		free(key);
		return err_set(e, ERR_LIMIT,
			"has a Unigram model with a token of %zu bytes; at most %d are read",
			longest, TOKEN_ENTRY_BYTES_MAX);
	}
	trie_build(&trie, key, count);
	free(key);
	rc = build(u, &trie, score, e);
	trie_release(&trie);
	find_lengths(u);
	find_bytes(u, has_byte_fallback);
	return rc;
}
