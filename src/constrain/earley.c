/* SPDX-License-Identifier: Apache-2.0 */
/*
 * earley.c - rules as productions, and Earley's algorithm over them.
 *
 * An item says: from this code point on, this much of a production has been seen. Items of all
 * places are kept, since a finished production continues those that waited for it where it began.
 * Empty productions are skipped where they are predicted (Aycock and Horspool, 2002).
 */
#include <assert.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "constrain/grammar_internal.h"

/* ---- rules to productions ---- */

static uint32_t add_nonterminal(struct grammar *g)
{
	if (g->nonterminal_count == g->nonterminal_cap) {
		g->nonterminal_cap = g->nonterminal_cap ? 2 * g->nonterminal_cap : 64;
		g->nonterminal = mem_grow(g->nonterminal, g->nonterminal_cap,
			sizeof *g->nonterminal);
	}
	g->nonterminal[g->nonterminal_count] = (struct nonterminal){ GRAMMAR_NONE, false };
	return g->nonterminal_count++;
}

static bool is_too_large(const struct grammar *g)
{
	return g->symbol_count > GRAMMAR_SYMBOLS_MAX;
}

static void add_symbol(struct grammar *g, struct symbol s)
{
	if (is_too_large(g))
		return;
	if (g->symbol_count == g->symbol_cap) {
		g->symbol_cap = g->symbol_cap ? 2 * g->symbol_cap : 256;
		g->symbol = mem_grow(g->symbol, g->symbol_cap, sizeof *g->symbol);
	}
	g->symbol[g->symbol_count++] = s;
}

/* A production is written symbol by symbol between these two. */
static uint32_t begin_production(const struct grammar *g)
{
	return g->symbol_count;
}

static void end_production(struct grammar *g, uint32_t produced, uint32_t first)
{
	add_symbol(g, (struct symbol){ .kind = SYMBOL_END, .produced = produced });
	if (g->production_count == g->production_cap) {
		g->production_cap = g->production_cap ? 2 * g->production_cap : 64;
		g->production = mem_grow(g->production, g->production_cap, sizeof *g->production);
	}
	g->production[g->production_count] = (struct production){ first,
		g->nonterminal[produced].productions };
	g->nonterminal[produced].productions = g->production_count++;
}

static struct symbol lower(struct grammar *g, const struct syntax *n);

static uint32_t lower_choice(struct grammar *g, const struct syntax *n, uint32_t produced);

/* Children are written out before the production that names them, since those are contiguous. */
static void lower_sequence(struct grammar *g, const struct syntax *n, uint32_t produced)
{
	size_t count = 0;
	struct symbol *symbol;
	uint32_t first;

	for (const struct syntax *c = n->first; c; c = c->next)
		count++;
	symbol = mem_array(count, sizeof *symbol);
	count = 0;
	for (const struct syntax *c = n->first; c; c = c->next)
		symbol[count++] = lower(g, c);
	first = begin_production(g);
	for (size_t i = 0; i < count; i++)
		add_symbol(g, symbol[i]);
	end_production(g, produced, first);
	free(symbol);
}

static uint32_t lower_choice(struct grammar *g, const struct syntax *n, uint32_t produced)
{
	assert(n->kind == SYNTAX_CHOICE);
	for (const struct syntax *c = n->first; c && !is_too_large(g); c = c->next)
		lower_sequence(g, c, produced);
	return produced;
}

static struct symbol symbol_of(uint32_t produced)
{
	return (struct symbol){ .kind = SYMBOL_PRODUCED, .produced = produced };
}

/* more: empty, or more and what again; or what and an earlier more, for a bound. */
static uint32_t lower_more(struct grammar *g, struct symbol what, uint32_t max)
{
	uint32_t more = add_nonterminal(g), first;

	end_production(g, more, begin_production(g));
	if (max == 0)
		return more;
	if (max == SYNTAX_UNBOUNDED) {
		first = begin_production(g);
		add_symbol(g, symbol_of(more));
		add_symbol(g, what);
		end_production(g, more, first);
		return more;
	}
	for (uint32_t i = 0; i < max && !is_too_large(g); i++) {
		uint32_t longer = add_nonterminal(g);

		end_production(g, longer, begin_production(g));
		first = begin_production(g);
		add_symbol(g, what);
		add_symbol(g, symbol_of(more));
		end_production(g, longer, first);
		more = longer;
	}
	return more;
}

/* * or +, of which one around another says nothing new. */
static bool is_star(const struct syntax *n)
{
	return n->kind == SYNTAX_REPEAT && n->min <= 1 && n->max == SYNTAX_UNBOUNDED;
}

static struct symbol lower_repeat(struct grammar *g, const struct syntax *n)
{
	uint32_t min = n->min, extra, rest, whole, first;
	struct symbol what;

	while (is_star(n) && is_star(n->first)) {
		n = n->first;
		min = min < n->min ? min : n->min;
	}
	what = lower(g, n->first);
	extra = n->max == SYNTAX_UNBOUNDED ? n->max : n->max - min;
	rest = lower_more(g, what, extra);
	whole = add_nonterminal(g);
	first = begin_production(g);
	for (uint32_t i = 0; i < min && !is_too_large(g); i++)
		add_symbol(g, what);
	add_symbol(g, symbol_of(rest));
	end_production(g, whole, first);
	return symbol_of(whole);
}

static struct symbol lower(struct grammar *g, const struct syntax *n)
{
	uint32_t made;

	switch (n->kind) {
	case SYNTAX_SET:
		return (struct symbol){ .kind = SYMBOL_SET, .set = n };
	case SYNTAX_RULE:
		return symbol_of(n->rule->index);
	case SYNTAX_CHOICE:
		return symbol_of(lower_choice(g, n, add_nonterminal(g)));
	case SYNTAX_REPEAT:
		return lower_repeat(g, n);
	case SYNTAX_SEQUENCE:
		break;
	}
	made = add_nonterminal(g);
	lower_sequence(g, n, made);
	return symbol_of(made);
}

static bool is_empty_production(const struct grammar *g, const struct production *p)
{
	for (const struct symbol *s = &g->symbol[p->first]; s->kind != SYMBOL_END; s++)
		if (s->kind == SYMBOL_SET || !g->nonterminal[s->produced].is_nullable)
			return false;
	return true;
}

static void find_nullable(struct grammar *g)
{
	bool has_changed = true;

	while (has_changed) {
		has_changed = false;
		for (uint32_t i = 0; i < g->nonterminal_count; i++) {
			struct nonterminal *n = &g->nonterminal[i];

			for (uint32_t p = n->productions; p != GRAMMAR_NONE && !n->is_nullable;
			     p = g->production[p].next) {
				n->is_nullable = is_empty_production(g, &g->production[p]);
				has_changed |= n->is_nullable;
			}
		}
	}
}

int grammar_lower(struct grammar *g, struct err *e)
{
	for (uint32_t i = 0; i < g->rule_count; i++)
		add_nonterminal(g);
	for (const struct syntax_rule *r = g->rules; r && !is_too_large(g); r = r->next)
		lower_choice(g, r->body, r->index);
	if (is_too_large(g))
		return err_set(e, ERR_USAGE, "the grammar has more than %d symbols once its repeats "
			"are written out (GRAMMAR_SYMBOLS_MAX)", GRAMMAR_SYMBOLS_MAX);
	find_nullable(g);
	return 0;
}

/* ---- matching ---- */

struct item {
	uint32_t dot;    /* symbol that comes next */
	uint32_t origin; /* place where the production began */
};

struct items {
	struct item *item;
	size_t count, cap;
};

struct match {
	const struct grammar *g;
	struct items all;      /* of every place, one after the other */
	struct items next;     /* for the place after the next code point */
	size_t *begins;        /* where in all the items of a place begin */
	uint32_t place;
	uint32_t *slot;        /* hash table of this place: index in all + 1, of slot_place */
	uint32_t *slot_place;
	size_t slot_cap;
	uint32_t *predicted;   /* place + 1 where a nonterminal was predicted last */
	size_t steps;
	bool has_given_up;
};

static void push(struct items *items, struct item i)
{
	if (items->count == items->cap) {
		items->cap = items->cap ? 2 * items->cap : 64;
		items->item = mem_grow(items->item, items->cap, sizeof *items->item);
	}
	items->item[items->count++] = i;
}

static size_t slot_of(const struct match *m, struct item i)
{
	uint64_t h = ((uint64_t)i.dot << 32 | i.origin) * 0x9e3779b97f4a7c15u;
	size_t at = h >> 32 & (m->slot_cap - 1);

	while (m->slot_place[at] == m->place + 1) {
		struct item there = m->all.item[m->slot[at]];

		if (there.dot == i.dot && there.origin == i.origin)
			return at;
		at = (at + 1) & (m->slot_cap - 1);
	}
	return at;
}

static void note_slot(struct match *m, size_t at, size_t index)
{
	m->slot[at] = (uint32_t)index;
	m->slot_place[at] = m->place + 1;
}

static void grow_slots(struct match *m)
{
	m->slot_cap *= 2;
	free(m->slot);
	free(m->slot_place);
	m->slot = mem_array(m->slot_cap, sizeof *m->slot);
	m->slot_place = mem_array(m->slot_cap, sizeof *m->slot_place);
	for (size_t i = m->begins[m->place]; i < m->all.count; i++)
		note_slot(m, slot_of(m, m->all.item[i]), i);
}

static void add_item(struct match *m, struct item i)
{
	size_t at;

	if (++m->steps > GRAMMAR_STEPS_MAX || m->all.count == GRAMMAR_ITEMS_MAX)
		m->has_given_up = true;
	if (m->has_given_up)
		return;
	if ((m->all.count - m->begins[m->place] + 1) * 2 > m->slot_cap)
		grow_slots(m);
	at = slot_of(m, i);
	if (m->slot_place[at] == m->place + 1)
		return;
	note_slot(m, at, m->all.count);
	push(&m->all, i);
}

static void predict(struct match *m, struct item i, uint32_t wanted)
{
	const struct nonterminal *n = &m->g->nonterminal[wanted];

	if (n->is_nullable)
		add_item(m, (struct item){ i.dot + 1, i.origin });
	if (m->predicted[wanted] == m->place + 1)
		return;
	m->predicted[wanted] = m->place + 1;
	for (uint32_t p = n->productions; p != GRAMMAR_NONE; p = m->g->production[p].next)
		add_item(m, (struct item){ m->g->production[p].first, m->place });
}

/* Goes on with what waited for it where it began. */
static void complete(struct match *m, struct item done, uint32_t produced)
{
	size_t end = done.origin == m->place ? m->all.count : m->begins[done.origin + 1];

	for (size_t i = m->begins[done.origin]; i < end && !m->has_given_up; i++) {
		struct item waiting = m->all.item[i];
		const struct symbol *s = &m->g->symbol[waiting.dot];

		m->has_given_up |= ++m->steps > GRAMMAR_STEPS_MAX;
		if (s->kind == SYMBOL_PRODUCED && s->produced == produced)
			add_item(m, (struct item){ waiting.dot + 1, waiting.origin });
	}
}

/* All items of this place; code is what follows, UTF8_BAD at the end. */
static void fill_place(struct match *m, uint32_t code)
{
	for (size_t i = m->begins[m->place]; i < m->all.count && !m->has_given_up; i++) {
		struct item item = m->all.item[i];
		const struct symbol *s = &m->g->symbol[item.dot];

		if (s->kind == SYMBOL_PRODUCED)
			predict(m, item, s->produced);
		else if (s->kind == SYMBOL_END)
			complete(m, item, s->produced);
		else if (code != UTF8_BAD && syntax_has(s->set, code))
			push(&m->next, (struct item){ item.dot + 1, item.origin });
	}
}

static bool is_sentence(const struct match *m)
{
	uint32_t root = m->g->root->rule->index;

	for (size_t i = m->begins[m->place]; i < m->all.count; i++) {
		const struct symbol *s = &m->g->symbol[m->all.item[i].dot];

		if (s->kind == SYMBOL_END && s->produced == root && m->all.item[i].origin == 0)
			return true;
	}
	return false;
}

static enum grammar_answer match_all(struct match *m, struct str text)
{
	const struct nonterminal *root = &m->g->nonterminal[m->g->root->rule->index];

	for (uint32_t p = root->productions; p != GRAMMAR_NONE; p = m->g->production[p].next)
		add_item(m, (struct item){ m->g->production[p].first, 0 });
	for (size_t at = 0, n = 0; !m->has_given_up; at += n) {
		uint32_t code = at < text.n ? utf8_next(text.p + at, &n) : UTF8_BAD;

		m->next.count = 0;
		fill_place(m, code);
		if (at == text.n)
			return m->has_given_up ? GRAMMAR_GAVE_UP :
				is_sentence(m) ? GRAMMAR_YES : GRAMMAR_NO;
		if (m->next.count == 0)
			return m->has_given_up ? GRAMMAR_GAVE_UP : GRAMMAR_NO;
		m->begins[++m->place] = m->all.count;
		for (size_t i = 0; i < m->next.count; i++)
			add_item(m, m->next.item[i]);
	}
	return GRAMMAR_GAVE_UP;
}

enum grammar_answer grammar_matches(const struct grammar *g, struct str text)
{
	struct match m = { .g = g, .slot_cap = 64 };
	enum grammar_answer answer;

	if (text.n > GRAMMAR_ITEMS_MAX)
		return GRAMMAR_GAVE_UP;
	m.begins = mem_array(text.n + 2, sizeof *m.begins);
	m.slot = mem_array(m.slot_cap, sizeof *m.slot);
	m.slot_place = mem_array(m.slot_cap, sizeof *m.slot_place);
	m.predicted = mem_array(g->nonterminal_count, sizeof *m.predicted);
	answer = match_all(&m, text);
	free(m.begins);
	free(m.slot);
	free(m.slot_place);
	free(m.predicted);
	free(m.all.item);
	free(m.next.item);
	return answer;
}
