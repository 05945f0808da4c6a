/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.c - the text of a grammar to the trees of its rules (grammar.h). */
#include <assert.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "constrain/grammar_internal.h"

#define REPEAT_MAX 10000 /* in {m,n}; written out, so GRAMMAR_SYMBOLS_MAX bounds it too */

struct reader {
	struct grammar *g;
	struct arena *arena;
	const char *p, *end;
	uint32_t line;
	unsigned depth;
	struct map rule; /* name: struct syntax_rule */
	struct syntax_rule *last;
	struct err *e;
};

static struct syntax *read_choice(struct reader *r);

static void *refuse(struct reader *r, const char *why)
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

static void skip_blanks(struct reader *r)
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

static bool take(struct reader *r, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, text, n) != 0)
		return false;
	r->p += n;
	return true;
}

static struct str peek_name(const struct reader *r)
{
	const char *p = r->p;

	if (p < r->end && is_name_start(*p))
		while (p < r->end && is_name_part(*p))
			p++;
	return (struct str){ r->p, (size_t)(p - r->p) };
}

/* A name followed by ::= begins the next rule. */
static bool is_at_rule(const struct reader *r)
{
	struct reader ahead = *r;
	struct str name = peek_name(r);

	ahead.p += name.n;
	skip_blanks(&ahead);
	return name.n > 0 && take(&ahead, "::=");
}

static struct syntax_rule *rule_named(struct reader *r, struct str name)
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

static bool hex_code(struct reader *r, int digits, uint32_t *code)
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
	return *code <= 0x10ffff && !(*code >= 0xd800 && *code < 0xe000);
}

/* One character of a literal or class; false with an error. */
static bool read_code(struct reader *r, uint32_t *code)
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
		return hex_code(r, c == 'x' ? 2 : c == 'u' ? 4 : 8, code) ||
			refuse(r, "an escape without the hexadecimal digits of a character");
	case '"': case '\\': case ']': case '[': case '-': case '^': case '/': case '\'':
		*code = (unsigned char)c;
		return true;
	default:
		return refuse(r, "an unknown escape; expected \\\" \\\\ \\n \\r \\t \\xHH \\uHHHH "
			"or \\UHHHHHHHH");
	}
}

static struct syntax *read_literal(struct reader *r)
{
	struct syntax *text = syntax_new(r->arena, SYNTAX_SEQUENCE);
	uint32_t line = r->line, code;

	while (r->p < r->end && *r->p != '"') {
		if (!read_code(r, &code))
			return NULL;
		syntax_add(text, syntax_code(r->arena, code));
	}
	if (take(r, "\""))
		return text;
	r->line = line;
	return refuse(r, "a text in double quotes is never closed");
}

static struct syntax *read_class(struct reader *r)
{
	struct syntax *set = syntax_new(r->arena, SYNTAX_SET);
	uint32_t line = r->line, low, high;

	set->is_negated = take(r, "^");
	while (r->p < r->end && *r->p != ']') {
		if (!read_code(r, &low))
			return NULL;
		high = low;
		if (r->end - r->p >= 2 && r->p[0] == '-' && r->p[1] != ']') {
			r->p++;
			if (!read_code(r, &high))
				return NULL;
			if (high < low)
				return refuse(r, "a range in brackets runs backwards");
		}
		syntax_add_range(r->arena, set, low, high);
	}
	if (take(r, "]"))
		return set;
	r->line = line;
	return refuse(r, "'[' is never closed");
}

static struct syntax *read_group(struct reader *r)
{
	uint32_t line = r->line;
	struct syntax *inside;

	if (++r->depth > SYNTAX_DEPTH_MAX)
		return refuse(r, "groups are nested deeper than SYNTAX_DEPTH_MAX");
	inside = read_choice(r);
	r->depth--;
	if (!inside || take(r, ")"))
		return inside;
	r->line = line;
	return refuse(r, "'(' is never closed");
}

static struct syntax *read_term(struct reader *r)
{
	struct str name = peek_name(r);
	struct syntax *term;

	if (take(r, "\""))
		return read_literal(r);
	if (take(r, "["))
		return read_class(r);
	if (take(r, "("))
		return read_group(r);
	if (take(r, ".")) {
		term = syntax_new(r->arena, SYNTAX_SET);
		term->is_negated = true;
		return term;
	}
	if (name.n == 0)
		return refuse(r, *r->p == ']' ? "']' without '['" :
			*r->p && strchr("*+?{", *r->p) ? "a repeat of nothing" :
			"expected a text in double quotes, [...], (...) or the name of a rule");
	term = syntax_new(r->arena, SYNTAX_RULE);
	term->rule = rule_named(r, name);
	r->p += name.n;
	return term;
}

static bool read_count(struct reader *r, uint32_t *n)
{
	const char *from = r->p;

	for (*n = 0; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
		*n = *n > REPEAT_MAX ? *n : *n * 10 + (uint32_t)(*r->p - '0');
	return r->p > from;
}

/* p points after the brace. */
static bool read_bounds(struct reader *r, uint32_t *min, uint32_t *max)
{
	bool is_good;

	skip_blanks(r);
	is_good = read_count(r, min);
	*max = *min;
	skip_blanks(r);
	if (take(r, ",")) {
		skip_blanks(r);
		if (!read_count(r, max))
			*max = SYNTAX_UNBOUNDED;
		skip_blanks(r);
	}
	if (!is_good || !take(r, "}") || *max < *min)
		return refuse(r, "expected {m}, {m,} or {m,n} with m at most n");
	if (*min > REPEAT_MAX || (*max > REPEAT_MAX && *max != SYNTAX_UNBOUNDED))
		return refuse(r, "more than 10000 repeats");
	return true;
}

static struct syntax *read_repeats(struct reader *r, struct syntax *term)
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

static struct syntax *read_sequence(struct reader *r)
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

static struct syntax *read_choice(struct reader *r)
{
	struct syntax *choice = syntax_new(r->arena, SYNTAX_CHOICE);

	do {
		struct syntax *sequence = read_sequence(r);

		if (!sequence)
			return NULL;
		syntax_add(choice, sequence);
	} while (take(r, "|"));
	return choice;
}

static int read_rule(struct reader *r)
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
	take(r, "::=");
	rule->body = read_choice(r);
	return rule->body ? 0 : -1;
}

static int read_rules(struct reader *r)
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
		return err_set(r->e, ERR_USAGE, "no rule 'root', which is where a grammar starts");
	r->g->root = syntax_new(r->arena, SYNTAX_RULE);
	r->g->root->rule = (struct syntax_rule *)(uintptr_t)found;
	return 0;
}

/* Without comments, which # and // begin. */
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
	struct reader r = { .p = text.p, .end = text.p + text.n, .line = 1, .e = e };
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
