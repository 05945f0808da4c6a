/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.c - grammars: their text, trees, productions, and matching; see syntax.h. */
#include "input/constrain/syntax.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/str.h"

/*
 * Productions are runs of symbols, each ended by a SYMBOL_END that names the produced nonterminal:
 * a rule, a group or a repeat. Rules come first, by their index.
 */
enum symbol_kind { SYMBOL_END, SYMBOL_SET, SYMBOL_PRODUCED };

struct symbol {
	enum symbol_kind kind;
	uint32_t produced;        /* SYMBOL_END, SYMBOL_PRODUCED: index of the nonterminal */
	const struct syntax *set; /* SYMBOL_SET */
};

struct production {
	uint32_t first; /* symbol */
	uint32_t next;  /* production of the same nonterminal; GRAMMAR_NONE */
};

struct nonterminal {
	uint32_t productions; /* the first one; GRAMMAR_NONE */
	bool is_nullable;     /* can be the empty text */
};

#define GRAMMAR_NONE UINT32_MAX

struct grammar {
	struct arena arena;
	struct syntax_rule *rules;
	uint32_t rule_count;
	struct syntax *root;
	struct symbol *symbol;
	struct production *production;
	struct nonterminal *nonterminal;
	uint32_t symbol_count, production_count, nonterminal_count;
	size_t symbol_cap, production_cap, nonterminal_cap;
};

/*
 * Rules as productions, and Earley's algorithm over them.
 *
 * An item says: from this code point on, this much of a production has been seen. Items of all
 * places are kept, since a finished production continues those that waited for it where it began.
 * Empty productions are skipped where they are predicted (Aycock and Horspool, 2002).
 */

/* ---- rules to productions ---- */

static uint32_t add_nonterminal(struct grammar *g)
{
	g->nonterminal = mem_room(g->nonterminal, g->nonterminal_count, &g->nonterminal_cap,
				sizeof(*g->nonterminal));
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
	g->symbol = mem_room(g->symbol, g->symbol_count, &g->symbol_cap, sizeof(*g->symbol));
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
	g->production = mem_room(g->production, g->production_count, &g->production_cap,
				sizeof(*g->production));
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

/* True for * or +; nesting them adds nothing. */
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

/* Writes the rules' trees out as productions. ERR_USAGE: they become too many. */
static int grammar_lower(struct grammar *g, struct err *e)
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

struct earley_item {
	uint32_t dot;    /* symbol that comes next */
	uint32_t origin; /* place where the production began */
};

struct items {
	struct earley_item *item;
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

static void push(struct items *items, struct earley_item i)
{
	items->item = mem_room(items->item, items->count, &items->cap, sizeof(*items->item));
	items->item[items->count++] = i;
}

static size_t slot_of(const struct match *m, struct earley_item i)
{
	uint64_t h = ((uint64_t)i.dot << 32 | i.origin) * 0x9e3779b97f4a7c15u;
	size_t at = h >> 32 & (m->slot_cap - 1);

	while (m->slot_place[at] == m->place + 1) {
		struct earley_item there = m->all.item[m->slot[at]];

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

static void add_item(struct match *m, struct earley_item i)
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

static void predict(struct match *m, struct earley_item i, uint32_t wanted)
{
	const struct nonterminal *n = &m->g->nonterminal[wanted];

	if (n->is_nullable)
		add_item(m, (struct earley_item){ i.dot + 1, i.origin });
	if (m->predicted[wanted] == m->place + 1)
		return;
	m->predicted[wanted] = m->place + 1;
	for (uint32_t p = n->productions; p != GRAMMAR_NONE; p = m->g->production[p].next)
		add_item(m, (struct earley_item){ m->g->production[p].first, m->place });
}

/* Continues the items that waited for the completed one, at its origin. */
static void complete(struct match *m, struct earley_item done, uint32_t produced)
{
	size_t end = done.origin == m->place ? m->all.count : m->begins[done.origin + 1];

	for (size_t i = m->begins[done.origin]; i < end && !m->has_given_up; i++) {
		struct earley_item waiting = m->all.item[i];
		const struct symbol *s = &m->g->symbol[waiting.dot];

		m->has_given_up |= ++m->steps > GRAMMAR_STEPS_MAX;
		if (s->kind == SYMBOL_PRODUCED && s->produced == produced)
			add_item(m, (struct earley_item){ waiting.dot + 1, waiting.origin });
	}
}

/* All items of this place; code is what follows, UTF8_BAD at the end. */
static void fill_place(struct match *m, uint32_t code)
{
	for (size_t i = m->begins[m->place]; i < m->all.count && !m->has_given_up; i++) {
		struct earley_item item = m->all.item[i];
		const struct symbol *s = &m->g->symbol[item.dot];

		if (s->kind == SYMBOL_PRODUCED)
			predict(m, item, s->produced);
		else if (s->kind == SYMBOL_END)
			complete(m, item, s->produced);
		else if (code != UTF8_BAD && syntax_has(s->set, code))
			push(&m->next, (struct earley_item){ item.dot + 1, item.origin });
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
		add_item(m, (struct earley_item){ m->g->production[p].first, 0 });
	for (size_t at = 0, n = 0; !m->has_given_up; at += n) {
		uint32_t code = at < text.n ? utf8_next(text.p + at, &n) : UTF8_BAD;

		m->next.count = 0;
		fill_place(m, code);
		if (at == text.n)
			return m->has_given_up ? GRAMMAR_GAVE_UP :
				is_sentence(m) ? GRAMMAR_YES : GRAMMAR_BEGUN;
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

/* ---- reading ---- */

#define REPEAT_MAX 10000 /* in {m,n}; written out, so GRAMMAR_SYMBOLS_MAX bounds it too */

static struct syntax *read_choice(struct syntax_reader *r);

static void *refuse(struct syntax_reader *r, const char *why)
{
	err_set(r->e, ERR_USAGE, "line %u: %s", r->line, why);
	return NULL;
}

static bool is_name_start(char c)
{
	return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

static bool is_name_part(char c)
{
	return is_name_start(c) || (c >= '0' && c <= '9') || c == '-';
}

static void skip_blanks(struct syntax_reader *r)
{
	for (; r->p < r->end; r->p++) {
		if (*r->p == '#')
			while (r->p < r->end && *r->p != '\n')
				r->p++;
		if (r->p == r->end || !*r->p || !strchr(" \t\r\n", *r->p))
			return;
		r->line += *r->p == '\n';
	}
}

static struct str peek_name(const struct syntax_reader *r)
{
	const char *p = r->p;

	if (p < r->end && is_name_start(*p))
		while (p < r->end && is_name_part(*p))
			p++;
	return (struct str){ r->p, (size_t)(p - r->p) };
}

/* A name followed by ::= begins the next rule. */
static bool is_at_rule(const struct syntax_reader *r)
{
	struct syntax_reader ahead = *r;
	struct str name = peek_name(r);

	ahead.p += name.n;
	skip_blanks(&ahead);
	return name.n > 0 && syntax_take(&ahead, "::=");
}

static struct syntax_rule *rule_named(struct syntax_reader *r, struct str name)
{
	struct syntax_rule *rule;
	uint64_t found;

	if (map_get(&r->rule, name, &found))
		return (struct syntax_rule *)(uintptr_t)found;
	rule = arena_alloc(r->arena, sizeof *rule);
	rule->name = arena_str(r->arena, name);
	rule->line = r->line;
	rule->index = r->g->rule_count++;
	if (r->last)
		r->last->next = rule;
	else
		r->g->rules = rule;
	r->last = rule;
	map_put(&r->rule, rule->name, (uint64_t)(uintptr_t)rule);
	return rule;
}

/* One character of a literal or class; false with an error. */
static bool read_code(struct syntax_reader *r, uint32_t *code)
{
	size_t n;
	char c;

	if (*r->p != '\\') {
		r->line += *r->p == '\n';
		*code = utf8_next(r->p, &n);
		r->p += n;
		return true;
	}
	if (++r->p == r->end)
		return refuse(r, "a backslash at the end of the grammar");
	c = *r->p++;
	switch (c) {
	case 'n':
		*code = '\n';
		return true;
	case 'r':
		*code = '\r';
		return true;
	case 't':
		*code = '\t';
		return true;
	case 'x': case 'u': case 'U':
		if (syntax_hex(r, c == 'x' ? 2 : c == 'u' ? 4 : 8, code) &&
		    !(*code >= 0xd800 && *code < 0xe000))
			return true;
		return refuse(r, "an escape without the hexadecimal digits of a character");
	case '"': case '\\': case ']': case '[': case '-': case '^': case '/': case '\'':
		*code = (unsigned char)c;
		return true;
	default:
		return refuse(r, "an unknown escape; expected \\\" \\\\ \\n \\r \\t \\xHH \\uHHHH "
			"or \\UHHHHHHHH");
	}
}

static struct syntax *read_literal(struct syntax_reader *r)
{
	struct syntax *text = syntax_new(r->arena, SYNTAX_SEQUENCE);
	uint32_t line = r->line, code;

	while (r->p < r->end && *r->p != '"') {
		if (!read_code(r, &code))
			return NULL;
		syntax_add(text, syntax_code(r->arena, code));
	}
	if (syntax_take(r, "\""))
		return text;
	r->line = line;
	return refuse(r, "a quoted text is not closed");
}

static struct syntax *read_class(struct syntax_reader *r)
{
	struct syntax *set = syntax_new(r->arena, SYNTAX_SET);
	uint32_t line = r->line, low, high;

	set->is_negated = syntax_take(r, "^");
	while (r->p < r->end && *r->p != ']') {
		if (!read_code(r, &low))
			return NULL;
		high = low;
		if (r->end - r->p >= 2 && r->p[0] == '-' && r->p[1] != ']') {
			r->p++;
			if (!read_code(r, &high))
				return NULL;
			if (high < low)
				return refuse(r, "the end of a range in brackets is before its "
						 "beginning");
		}
		syntax_add_range(r->arena, set, low, high);
	}
	if (syntax_take(r, "]"))
		return set;
	r->line = line;
	return refuse(r, "'[' is not closed");
}

static struct syntax *read_group(struct syntax_reader *r)
{
	uint32_t line = r->line;
	struct syntax *inside;

	if (++r->depth > SYNTAX_DEPTH_MAX)
		return refuse(r, "groups are nested deeper than SYNTAX_DEPTH_MAX");
	inside = read_choice(r);
	r->depth--;
	if (!inside || syntax_take(r, ")"))
		return inside;
	r->line = line;
	return refuse(r, "'(' is not closed");
}

static struct syntax *read_term(struct syntax_reader *r)
{
	struct str name = peek_name(r);
	struct syntax *term;

	if (syntax_take(r, "\""))
		return read_literal(r);
	if (syntax_take(r, "["))
		return read_class(r);
	if (syntax_take(r, "("))
		return read_group(r);
	if (syntax_take(r, ".")) {
		term = syntax_new(r->arena, SYNTAX_SET);
		term->is_negated = true;
		return term;
	}
	if (name.n == 0)
		return refuse(r, *r->p == ']' ? "']' without '['" :
			*r->p && strchr("*+?{", *r->p) ? "a repeat operator without anything "
							 "before it" :
			"expected a text in double quotes, [...], (...) or the name of a rule");
	term = syntax_new(r->arena, SYNTAX_RULE);
	term->rule = rule_named(r, name);
	r->p += name.n;
	return term;
}

/* p points after the brace. */
static bool read_bounds(struct syntax_reader *r, uint32_t *min, uint32_t *max)
{
	bool is_good;

	skip_blanks(r);
	is_good = syntax_count(r, REPEAT_MAX, min);
	*max = *min;
	skip_blanks(r);
	if (syntax_take(r, ",")) {
		skip_blanks(r);
		if (!syntax_count(r, REPEAT_MAX, max))
			*max = SYNTAX_UNBOUNDED;
		skip_blanks(r);
	}
	if (!is_good || !syntax_take(r, "}") || *max < *min)
		return refuse(r, "expected {m}, {m,} or {m,n} with m at most n");
	if (*min > REPEAT_MAX || (*max > REPEAT_MAX && *max != SYNTAX_UNBOUNDED))
		return refuse(r, "more than 10000 repeats");
	return true;
}

static struct syntax *read_repeats(struct syntax_reader *r, struct syntax *term)
{
	while (r->p < r->end && *r->p && strchr("*+?{", *r->p)) {
		char c = *r->p++;
		struct syntax *repeat = syntax_new(r->arena, SYNTAX_REPEAT);

		repeat->min = c == '+';
		repeat->max = c == '?' ? 1 : SYNTAX_UNBOUNDED;
		if (c == '{' && !read_bounds(r, &repeat->min, &repeat->max))
			return NULL;
		if (++r->depth > SYNTAX_DEPTH_MAX)
			return refuse(r, "groups are nested deeper than SYNTAX_DEPTH_MAX");
		syntax_add(repeat, term);
		term = repeat;
		skip_blanks(r);
	}
	return term;
}

static struct syntax *read_sequence(struct syntax_reader *r)
{
	struct syntax *sequence = syntax_new(r->arena, SYNTAX_SEQUENCE);

	for (;;) {
		struct syntax *term;
		unsigned depth = r->depth;

		skip_blanks(r);
		if (r->p == r->end || *r->p == '|' || *r->p == ')' || is_at_rule(r))
			return sequence;
		term = read_term(r);
		if (!term)
			return NULL;
		skip_blanks(r);
		term = read_repeats(r, term);
		if (!term)
			return NULL;
		r->depth = depth;
		syntax_add(sequence, term);
	}
}

static struct syntax *read_choice(struct syntax_reader *r)
{
	return syntax_choice(r, read_sequence);
}

static int read_rule(struct syntax_reader *r)
{
	struct str name = peek_name(r);
	struct syntax_rule *rule;

	if (!is_at_rule(r)) {
		refuse(r, *r->p == ')' ? "')' without '('" : "expected a rule: NAME ::= ...");
		return -1;
	}
	rule = rule_named(r, name);
	if (rule->body)
		return err_set(r->e, ERR_USAGE, "line %u: rule '%.*s' is already defined in line %u",
			r->line, (int)(name.n < 200 ? name.n : 200), name.p, rule->line);
	if (r->g->rule_count > GRAMMAR_RULES_MAX)
		return err_set(r->e, ERR_USAGE, "line %u: more than %d rules (GRAMMAR_RULES_MAX)",
			r->line, GRAMMAR_RULES_MAX);
	rule->line = r->line;
	r->p += name.n;
	skip_blanks(r);
	syntax_take(r, "::=");
	rule->body = read_choice(r);
	return rule->body ? 0 : -1;
}

static int read_rules(struct syntax_reader *r)
{
	uint64_t found;

	for (skip_blanks(r); r->p < r->end; skip_blanks(r))
		if (read_rule(r) < 0)
			return -1;
	for (struct syntax_rule *rule = r->g->rules; rule; rule = rule->next)
		if (!rule->body)
			return err_set(r->e, ERR_USAGE, "line %u: rule '%.*s' is not defined",
				rule->line, (int)(rule->name.n < 200 ? rule->name.n : 200),
				rule->name.p);
	if (!map_get(&r->rule, STR("root"), &found))
		return err_set(r->e, ERR_USAGE, "rule 'root' is missing, with which a grammar "
						"begins");
	r->g->root = syntax_new(r->arena, SYNTAX_RULE);
	r->g->root->rule = (struct syntax_rule *)(uintptr_t)found;
	return 0;
}

/* False for lines without "::=" outside of comments, which # and // begin. */
static bool has_definition(struct str line)
{
	for (size_t i = 0; i < line.n; i++) {
		struct str rest = { line.p + i, line.n - i };

		if (line.p[i] == '#' || str_starts(rest, STR("//")))
			return false;
		if (str_starts(rest, STR("::=")))
			return true;
	}
	return false;
}

bool grammar_is_lark(struct str text)
{
	while (text.n)
		if (has_definition(str_cut(&text, '\n')))
			return false;
	return true;
}

struct grammar *grammar_new(struct str text, struct err *e)
{
	struct grammar *g;
	struct syntax_reader r = { .p = text.p, .end = text.p + text.n, .line = 1, .e = e };
	int rc;

	if (text.n > GRAMMAR_BYTES_MAX) {
		err_set(e, ERR_USAGE, "the grammar has %zu bytes; at most %u are read "
			"(GRAMMAR_BYTES_MAX)", text.n, GRAMMAR_BYTES_MAX);
		return NULL;
	}
	if (!utf8_is_valid(text)) {
		err_set(e, ERR_USAGE, "the grammar is not valid UTF-8");
		return NULL;
	}
	g = mem_alloc(sizeof *g);
	r.g = g;
	r.arena = &g->arena;
	rc = read_rules(&r);
	map_release(&r.rule);
	if (rc < 0 || grammar_lower(g, e) < 0) {
		grammar_free(g);
		return NULL;
	}
	syntax_measure(g->root, g->rules);
	return g;
}

void grammar_free(struct grammar *g)
{
	if (!g)
		return;
	free(g->symbol);
	free(g->production);
	free(g->nonterminal);
	arena_release(&g->arena);
	free(g);
}

const struct syntax *grammar_root(const struct grammar *g)
{
	return g->root;
}
