/* SPDX-License-Identifier: Apache-2.0 */
/* syntax.c - trees of syntax.h, and the texts that are made from them. */
#include "input/constrain/syntax.h"

#include <assert.h>

#include "core/base/str.h"

#define NESTING_MAX 40       /* beyond it the shortest way to an end is taken */
#define NESTING_END 2000     /* and there an end is not looked for any more */
#define SMALL_REPEAT_MAX 8   /* repeats whose count is drawn; of others the length is */
#define REPEATS_PER_SHARE 4  /* this many repeats fill the bytes that a repeat may take */

struct syntax *syntax_new(struct arena *a, enum syntax_kind kind)
{
	struct syntax *s = arena_alloc(a, sizeof *s);

	s->kind = kind;
	return s;
}

void syntax_add_range(struct arena *a, struct syntax *set, uint32_t low, uint32_t high)
{
	struct syntax_range *r = arena_alloc(a, sizeof *r);

	assert(set->kind == SYNTAX_SET && low <= high);
	*r = (struct syntax_range){ low, high, set->ranges };
	set->ranges = r;
}

struct syntax *syntax_code(struct arena *a, uint32_t code)
{
	struct syntax *s = syntax_new(a, SYNTAX_SET);

	assert(code <= 0x10ffff);
	syntax_add_range(a, s, code, code);
	return s;
}

void syntax_add(struct syntax *parent, struct syntax *child)
{
	assert(!child->next && parent->kind != SYNTAX_SET);
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

bool syntax_has(const struct syntax *set, uint32_t code)
{
	assert(set->kind == SYNTAX_SET);
	for (const struct syntax_range *r = set->ranges; r; r = r->next)
		if (code >= r->low && code <= r->high)
			return !set->is_negated;
	return set->is_negated;
}

static uint64_t dice_next(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15u; /* SplitMix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t dice_below(struct dice *d, uint64_t n)
{
	assert(n > 0);
	assert(n > 0);
	return dice_next(d) % n;
}

/* ---- reading ---- */

bool syntax_take(struct syntax_reader *r, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
		return false;
	r->p += n;
	return true;
}

bool syntax_hex(struct syntax_reader *r, int digits, uint32_t *code)
{
	*code = 0;
	if (r->end - r->p < digits)
		return false;
	for (int i = 0; i < digits; i++) {
		int digit = str_hex(*r->p++);

		if (digit < 0)
			return false;
		*code = *code << 4 | (uint32_t)digit;
	}
	return *code <= 0x10ffff;
}

bool syntax_count(struct syntax_reader *r, uint32_t most, uint32_t *n)
{
	const char *from = r->p;

	for (*n = 0; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
		*n = *n > most ? *n : *n * 10 + (uint32_t)(*r->p - '0');
	return r->p > from;
}

struct syntax *syntax_choice(struct syntax_reader *r,
			     struct syntax *(*sequence)(struct syntax_reader *r))
{
	struct syntax *choice = syntax_new(r->arena, SYNTAX_CHOICE), *one;

	do {
		one = sequence(r);
		if (!one)
			return NULL;
		syntax_add(choice, one);
	} while (syntax_take(r, "|"));
	return choice;
}

/* ---- measures ---- */

static uint32_t higher(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* One pass; true when a height became smaller. */
static bool lower_heights(struct syntax *s)
{
	uint32_t was = s->height, all = 0, least = SYNTAX_NO_END;
	bool has_changed = false;

	for (struct syntax *c = s->first; c; c = c->next) {
		has_changed |= lower_heights(c);
		all = higher(all, c->height);
		least = c->height < least ? c->height : least;
	}
	switch (s->kind) {
	case SYNTAX_SET:
		s->height = 0;
		break;
	case SYNTAX_SEQUENCE:
		s->height = all;
		break;
	case SYNTAX_CHOICE:
		s->height = least;
		break;
	case SYNTAX_REPEAT:
		s->height = s->min == 0 ? 0 : all;
		break;
	case SYNTAX_RULE:
		s->height = s->rule->height == SYNTAX_NO_END ? SYNTAX_NO_END : s->rule->height + 1;
		break;
	}
	return has_changed || s->height != was;
}

static uint32_t count_open(struct syntax *s)
{
	s->open = s->kind == SYNTAX_REPEAT && s->max - s->min > SMALL_REPEAT_MAX;
	if (s->kind == SYNTAX_RULE) /* what it holds may be anything */
		s->open = 1;
	for (struct syntax *c = s->first; c; c = c->next)
		s->open += count_open(c);
	return s->open;
}

static void begin_heights(struct syntax *s)
{
	s->height = SYNTAX_NO_END;
	for (struct syntax *c = s->first; c; c = c->next)
		begin_heights(c);
}

void syntax_measure(struct syntax *root, struct syntax_rule *rules)
{
	bool has_changed = true;

	for (struct syntax_rule *r = rules; r; r = r->next) {
		r->height = SYNTAX_NO_END;
		begin_heights(r->body);
		count_open(r->body);
	}
	begin_heights(root);
	count_open(root);
	while (has_changed) {
		has_changed = false;
		for (struct syntax_rule *r = rules; r; r = r->next) {
			has_changed |= lower_heights(r->body);
			r->height = r->body->height;
		}
		has_changed |= lower_heights(root);
	}
}

/* ---- texts ---- */

struct sentence {
	struct dice *dice;
	struct buf *out;
	size_t begin; /* length of out before */
	size_t bytes; /* wanted; with this many the shortest way to an end is taken */
	size_t steps;
};

/* A code point of the set, of printable ASCII if it has any. */
static uint32_t pick_code(const struct syntax *set, struct dice *d)
{
	uint32_t printable[95], count = 0;
	const struct syntax_range *r;
	uint64_t n = 0;

	for (uint32_t c = ' '; c <= '~'; c++)
		if (syntax_has(set, c))
			printable[count++] = c;
	if (count)
		return printable[dice_below(d, count)];
	if (set->is_negated) {
		for (uint32_t c = 0xa1; c < 0xd800; c++)
			if (syntax_has(set, c))
				return c;
		return '\n';
	}
	for (r = set->ranges; r; r = r->next)
		n++;
	if (n == 0)
		return UTF8_BAD;
	n = dice_below(d, n);
	for (r = set->ranges; n--;)
		r = r->next;
	return r->low + (uint32_t)dice_below(d, r->high - r->low + 1);
}

static bool put_node(struct sentence *s, const struct syntax *n, size_t share, unsigned nesting);

static bool put_repeat(struct sentence *s, const struct syntax *n, size_t share, unsigned nesting)
{
	size_t from = s->out->len, each = share / REPEATS_PER_SHARE;
	size_t target = share / 2 + dice_below(s->dice, share / 2 + 2);
	bool is_open = n->open > n->first->open;
	uint32_t max = n->max;

	if (nesting > NESTING_MAX)
		max = n->min;
	else if (!is_open)
		max = n->min + (uint32_t)dice_below(s->dice, (uint64_t)n->max - n->min + 1);
	for (uint32_t i = 0; i < max; i++) {
		if (is_open && i >= n->min && s->out->len - from >= target)
			break;
		if (!put_node(s, n->first, n->first->open ? each : 0, nesting))
			return false;
	}
	return true;
}

static bool put_choice(struct sentence *s, const struct syntax *n, size_t share, unsigned nesting)
{
	bool is_ending = nesting > NESTING_MAX || s->out->len - s->begin >= s->bytes;
	const struct syntax *c, *chosen = NULL;
	uint64_t seen = 0;

	for (c = n->first; c; c = c->next) {
		if (c->height == SYNTAX_NO_END || (is_ending && c->height > n->height))
			continue;
		if (dice_below(s->dice, ++seen) == 0)
			chosen = c;
	}
	return chosen && put_node(s, chosen, share, nesting);
}

static bool put_node(struct sentence *s, const struct syntax *n, size_t share, unsigned nesting)
{
	char bytes[4];
	uint32_t code;

	if (++s->steps > SENTENCE_STEPS_MAX || s->out->len - s->begin > SENTENCE_BYTES_MAX ||
	    n->height == SYNTAX_NO_END || nesting > NESTING_END)
		return false;
	switch (n->kind) {
	case SYNTAX_SET:
		code = pick_code(n, s->dice);
		if (code == UTF8_BAD || (code >= 0xd800 && code < 0xe000))
			return false;
		buf_add(s->out, bytes, utf8_encode(code, bytes));
		return true;
	case SYNTAX_SEQUENCE:
		for (const struct syntax *c = n->first; c; c = c->next)
			if (!put_node(s, c, n->open ? share * c->open / n->open : 0, nesting))
				return false;
		return true;
	case SYNTAX_CHOICE:
		return put_choice(s, n, share, nesting);
	case SYNTAX_REPEAT:
		return put_repeat(s, n, share, nesting);
	case SYNTAX_RULE:
		return put_node(s, n->rule->body, share, nesting + 1);
	}
	return false;
}

int syntax_sentence(const struct syntax *root, struct dice *d, size_t bytes, struct buf *out,
		    struct err *e)
{
	struct sentence s = { .dice = d, .out = out, .begin = out->len, .bytes = bytes };

	if (root->height == SYNTAX_NO_END)
		return err_set(e, ERR_RUN, "no text can match it: its rules never end");
	if (put_node(&s, root, bytes, 0))
		return 0;
	out->len = s.begin;
	if (out->data)
		out->data[out->len] = 0;
	return err_set(e, ERR_RUN, "no text of at most %u bytes was found for it",
		SENTENCE_BYTES_MAX);
}
