/* SPDX-License-Identifier: Apache-2.0 */
/* constrain.c - see constrain.h: four kinds of constraint in one type. */
#include "input/constrain/constrain.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/constrain/schema.h"
#include "input/constrain/syntax.h"

#define CHOICES_MAX 100000
#define GENERATE_TRIES_MAX 32

struct constraint {
	enum constraint_kind kind;
	struct arena arena;        /* choices; the tree of the pattern */
	struct schema *schema;
	struct pattern *whole, *start;
	struct pattern *begun;     /* NULL: undecidable, the pattern ends with a comment */
	struct syntax *syntax;     /* what texts for the pattern are made from; NULL: nothing */
	struct err no_syntax;      /* why not */
	struct str *choice;
	size_t choice_count;
	struct map choices;
	struct grammar *grammar;   /* NULL: Lark */
};

/* ---- compile ---- */

static int compile_regex(struct constraint *c, struct str text, struct err *e)
{
	c->whole = pattern_new(text, PATTERN_PYTHON, PATTERN_WHOLE, e);
	if (!c->whole)
		return -1;
	c->start = pattern_new(text, PATTERN_PYTHON, PATTERN_START, e);
	if (!c->start)
		return -1;
	c->begun = pattern_new(text, PATTERN_PYTHON, PATTERN_BEGUN, NULL);
	c->syntax = syntax_of_pattern(&c->arena, text, PATTERN_PYTHON, &c->no_syntax);
	return 0;
}

static int compile_choice(struct constraint *c, struct str text, struct err *e)
{
	struct json_value *list;
	struct err why = { 0 };

	if (json_parse_strict(&c->arena, text, &list, &why) < 0)
		return err_set(e, ERR_USAGE, "the choices are not JSON: %s", why.text);
	if (list->kind != JSON_ARRAY || list->count == 0 || list->count > CHOICES_MAX)
		return err_set(e, ERR_USAGE, "expected a list of 1 to %d texts", CHOICES_MAX);
	c->choice = arena_alloc(&c->arena, list->count * sizeof *c->choice);
	c->choice_count = list->count;
	for (size_t i = 0; i < list->count; i++) {
		if (list->item[i].kind != JSON_STRING)
			return err_set(e, ERR_USAGE, "choice %zu is not a text", i + 1);
		c->choice[i] = list->item[i].text;
		map_put(&c->choices, c->choice[i], 1);
	}
	return 0;
}

/* Lark begins its rules with "name:", perhaps after one of ? and !, which no EBNF does. */
static bool looks_like_lark(struct str text)
{
	while (text.n) {
		struct str line = str_trim(str_cut(&text, '\n'));
		size_t n = line.n && (*line.p == '?' || *line.p == '!'), begin = n;

		while (n < line.n && ((line.p[n] | 0x20) >= 'a' || line.p[n] == '_' ||
				      (line.p[n] >= '0' && line.p[n] <= '9')))
			n++;
		if (n > begin && n < line.n && (line.p[n] == ':' || line.p[n] == '.'))
			return true;
		if (str_starts(line, STR("%import")) || str_starts(line, STR("%llguidance")))
			return true;
	}
	return false;
}

static int compile_grammar(struct constraint *c, struct str text, struct err *e)
{
	if (grammar_is_lark(text))
		return looks_like_lark(text) ? 0 : err_set(e, ERR_USAGE,
			"the grammar has no rule: expected lines of the form NAME ::= ...");
	c->grammar = grammar_new(text, e);
	return c->grammar ? 0 : -1;
}

struct constraint *constraint_compile(enum constraint_kind kind, struct str text,
				      const struct constraint_opts *o, struct err *e)
{
	struct constraint *c = mem_alloc(sizeof *c);
	struct err why = { 0 };
	int rc = -1;

	c->kind = kind;
	if (!text.p)
		text = STR("");
	switch (kind) {
	case CONSTRAINT_JSON:
		c->schema = schema_new(text, o && o->is_format_asserted, &why);
		rc = c->schema ? 0 : -1;
		break;
	case CONSTRAINT_REGEX:
		rc = compile_regex(c, text, &why);
		break;
	case CONSTRAINT_CHOICE:
		rc = compile_choice(c, text, &why);
		break;
	case CONSTRAINT_GRAMMAR:
		rc = compile_grammar(c, text, &why);
		break;
	}
	if (rc == 0)
		return c;
	err_set(e, ERR_USAGE, "%s", why.text);
	constraint_free(c);
	return NULL;
}

void constraint_free(struct constraint *c)
{
	if (!c)
		return;
	schema_free(c->schema);
	pattern_free(c->whole);
	pattern_free(c->start);
	pattern_free(c->begun);
	map_release(&c->choices);
	grammar_free(c->grammar);
	arena_release(&c->arena);
	free(c);
}

enum constraint_kind constraint_kind(const struct constraint *c)
{
	return c->kind;
}

/* ---- the member of a request ---- */

static const char *const member_names[] = {
	[CONSTRAINT_JSON] = "json", [CONSTRAINT_REGEX] = "regex", [CONSTRAINT_CHOICE] = "choice",
	[CONSTRAINT_GRAMMAR] = "grammar",
};

/*
 * The value as spelled, so that no digit of a number is lost; a schema may also be a text that
 * contains it.
 */
static struct constraint *compile_value(enum constraint_kind kind, struct json_slice v,
					const struct constraint_opts *o, struct err *e)
{
	struct constraint *c = NULL;
	struct buf text = { 0 };

	if (kind != CONSTRAINT_CHOICE && v.kind == JSON_STRING) {
		json_unescape(&text, v.raw);
		c = constraint_compile(kind, buf_str(&text), o, e);
	} else if (kind == CONSTRAINT_REGEX || kind == CONSTRAINT_GRAMMAR) {
		err_set(e, ERR_USAGE, "expected a text");
	} else if (v.kind == JSON_STRING) {
		err_set(e, ERR_USAGE, "expected a list of texts");
	} else {
		c = constraint_compile(kind, v.raw, o, e);
	}
	buf_release(&text);
	return c;
}

static struct constraint *compile_members(struct json_slice object,
					  const struct constraint_opts *o, struct err *e)
{
	struct json_slice v, value = { 0 };
	struct constraint *c = NULL;
	int found = -1;

	for (int kind = CONSTRAINT_JSON; kind <= CONSTRAINT_GRAMMAR; kind++) {
		if (!json_member(object, member_names[kind], &v) || v.kind == JSON_NULL)
			continue;
		if (found >= 0) {
			err_set(e, ERR_USAGE, "'%s' and '%s' exclude each other",
				member_names[found], member_names[kind]);
			return NULL;
		}
		found = kind;
		value = v;
	}
	if (found < 0 && json_member(object, "json_object", &v) && v.kind == JSON_TRUE)
		return constraint_compile(CONSTRAINT_JSON, STR("{\"type\":\"object\"}"), o, e);
	if (found < 0) {
		err_set(e, ERR_USAGE, "expected one of the members json, regex, choice and grammar");
		return NULL;
	}
	c = compile_value((enum constraint_kind)found, value, o, e);
	if (!c)
		err_wrap(e, "%s", member_names[found]);
	return c;
}

struct constraint *constraint_compile_member(struct str object, const struct constraint_opts *o,
					     struct err *e)
{
	struct json_scan scan = { .text = object };
	struct arena a = { 0 };
	struct json_value *v;
	struct json_slice members;
	struct constraint *c = NULL;
	struct err why = { 0 };

	if (json_parse_strict(&a, object, &v, &why) < 0 ||
	    json_next(&scan, &members, &why) < 0)
		err_set(e, ERR_USAGE, "the constraint is not JSON: %s", why.text);
	else if (v->kind != JSON_OBJECT)
		err_set(e, ERR_USAGE, "expected an object with one of the members json, regex, "
			"choice and grammar");
	else
		c = compile_members(members, o, e);
	arena_release(&a);
	return c;
}

/* ---- check ---- */

static void verdict(struct constraint_result *out, enum constraint_verdict v, const char *what,
		    const char *why)
{
	struct buf text = { .limit = sizeof out->why - 1 };

	buf_add_text(&text, what);
	buf_add(&text, why, strnlen(why, text.limit - text.len));
	out->verdict = v;
	memset(out->why, 0, sizeof out->why);
	if (text.len)
		memcpy(out->why, text.data, text.len);
	buf_release(&text);
}

static void check_json(const struct constraint *c, struct str answer,
		       struct constraint_result *out)
{
	struct arena a = { 0 };
	struct json_value *v;
	struct err e = { 0 };
	char why[CONSTRAINT_WHY_BYTES - sizeof "schema "];

	if (json_parse_strict(&a, str_trim(answer), &v, &e) < 0) {
		verdict(out, e.code == ERR_LIMIT ? CONSTRAINT_NOT_SCORED : CONSTRAINT_BROKEN,
			"parse ", e.text);
	} else {
		enum schema_answer judged = schema_judge(c->schema, v, why, sizeof why);

		if (judged == SCHEMA_KEPT)
			verdict(out, CONSTRAINT_KEPT, "", "");
		else if (judged == SCHEMA_BROKEN)
			verdict(out, CONSTRAINT_BROKEN, "schema ", why);
		else
			verdict(out, CONSTRAINT_NOT_SCORED, "", why);
	}
	arena_release(&a);
}

static void check_regex(const struct constraint *c, struct str answer,
			struct constraint_result *out)
{
	enum pattern_answer matched = pattern_matches(c->whole, answer);

	if (matched == PATTERN_YES)
		verdict(out, CONSTRAINT_KEPT, "", "");
	else if (matched == PATTERN_NO)
		verdict(out, CONSTRAINT_BROKEN, "no match", "");
	else
		verdict(out, CONSTRAINT_NOT_SCORED, "the pattern needs more than ",
			"PATTERN_STEPS_MAX steps");
}

static void check_grammar(const struct constraint *c, struct str answer,
			  struct constraint_result *out)
{
	enum grammar_answer matched;

	if (!c->grammar) {
		verdict(out, CONSTRAINT_NOT_SCORED, "grammars in Lark's syntax are not scored", "");
		return;
	}
	matched = grammar_matches(c->grammar, answer);
	if (matched == GRAMMAR_YES)
		verdict(out, CONSTRAINT_KEPT, "", "");
	else if (matched == GRAMMAR_NO || matched == GRAMMAR_BEGUN)
		verdict(out, CONSTRAINT_BROKEN, "no match", "");
	else
		verdict(out, CONSTRAINT_NOT_SCORED, "the grammar needs more than ",
			"GRAMMAR_STEPS_MAX steps");
}

/* Invalid UTF-8 is read as U+FFFD, as where an answer is shown. */
void constraint_check(const struct constraint *c, struct str answer, struct constraint_result *out)
{
	struct buf valid = { 0 };

	if (!answer.p)
		answer = STR("");
	if (!utf8_is_valid(answer)) {
		utf8_add_lossy(&valid, answer);
		answer = buf_str(&valid);
	}
	switch (c->kind) {
	case CONSTRAINT_JSON:
		check_json(c, answer, out);
		break;
	case CONSTRAINT_REGEX:
		check_regex(c, answer, out);
		break;
	case CONSTRAINT_CHOICE:
		if (map_get(&c->choices, answer, NULL))
			verdict(out, CONSTRAINT_KEPT, "", "");
		else
			verdict(out, CONSTRAINT_BROKEN, "not one of the choices", "");
		break;
	case CONSTRAINT_GRAMMAR:
		check_grammar(c, answer, out);
		break;
	}
	buf_release(&valid);
}

static bool begins_json(struct str answer)
{
	static const struct str words[] = { STR("true"), STR("false"), STR("null") };

	answer = str_trim(answer);
	if (!answer.n || strchr("{[\"-0123456789", *answer.p))
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (str_starts(words[i].n < answer.n ? answer : words[i],
			       words[i].n < answer.n ? words[i] : answer))
			return true;
	return false;
}

static bool begins_choice(const struct constraint *c, struct str answer)
{
	for (size_t i = 0; i < c->choice_count; i++)
		if (str_starts(c->choice[i], answer))
			return true;
	return false;
}

bool constraint_can_follow(const struct constraint *c, struct str answer)
{
	struct buf valid = { 0 };
	bool can = true;

	if (!answer.n)
		return true;
	utf8_add_lossy(&valid, answer);
	answer = buf_str(&valid);
	if (c->kind == CONSTRAINT_JSON)
		can = begins_json(answer);
	else if (c->kind == CONSTRAINT_CHOICE)
		can = begins_choice(c, answer);
	else if (c->kind == CONSTRAINT_REGEX)
		can = !c->begun || pattern_matches(c->begun, answer) != PATTERN_NO;
	else if (c->grammar)
		can = grammar_matches(c->grammar, answer) != GRAMMAR_NO;
	buf_release(&valid);
	return can;
}

/* From the first { to the last }, once all spaces and line feeds are gone. */
static int upstream_json(struct str answer)
{
	struct buf squeezed = { 0 };
	struct arena a = { 0 };
	struct json_value *v;
	const char *open, *close;
	int rc = 0;

	for (size_t i = 0; i < answer.n; i++)
		if (answer.p[i] != ' ' && answer.p[i] != '\n')
			buf_add_char(&squeezed, answer.p[i]);
	open = squeezed.len ? memchr(squeezed.data, '{', squeezed.len) : NULL;
	close = squeezed.len ? memrchr(squeezed.data, '}', squeezed.len) : NULL;
	if (open && close && open < close)
		rc = json_parse(&a, (struct str){ open, (size_t)(close - open) + 1 }, &v,
			NULL) == 0;
	buf_release(&squeezed);
	arena_release(&a);
	return rc;
}

int constraint_check_upstream(const struct constraint *c, struct str answer)
{
	struct buf valid = { 0 };
	int rc = -1;

	if (!answer.p)
		answer = STR("");
	utf8_add_lossy(&valid, answer);
	if (valid.len)
		answer = buf_str(&valid);
	if (c->kind == CONSTRAINT_JSON) {
		rc = upstream_json(answer);
	} else if (c->kind == CONSTRAINT_CHOICE) {
		rc = map_get(&c->choices, answer, NULL);
	} else if (c->kind == CONSTRAINT_REGEX) {
		enum pattern_answer matched = pattern_matches(c->start, answer);

		rc = matched == PATTERN_GAVE_UP ? -1 : matched == PATTERN_YES;
	}
	buf_release(&valid);
	return rc;
}

/* ---- generate ---- */

static int generate_regex(const struct constraint *c, struct dice *d, size_t bytes,
			  struct buf *out, struct err *e)
{
	size_t from = out->len;

	if (!c->syntax)
		return err_set(e, ERR_RUN, "%s", c->no_syntax.text);
	for (int i = 0; i < GENERATE_TRIES_MAX; i++) {
		if (syntax_sentence(c->syntax, d, bytes, out, e) < 0)
			return -1;
		if (out->is_over)
			return err_set(e, ERR_LIMIT, "the text has no room");
		if (pattern_matches(c->whole, buf_since(out, from)) == PATTERN_YES)
			return 0;
		out->len = from;
		if (out->data)
			out->data[from] = 0;
	}
	return err_set(e, ERR_RUN, "no text that matches the regular expression was found in %d tries",
		GENERATE_TRIES_MAX);
}

int constraint_generate(const struct constraint *c, uint64_t seed, size_t bytes, struct buf *out,
			struct err *e)
{
	struct dice d = { seed };

	switch (c->kind) {
	case CONSTRAINT_JSON:
		return schema_invent(c->schema, &d, bytes, out, e);
	case CONSTRAINT_REGEX:
		return generate_regex(c, &d, bytes, out, e);
	case CONSTRAINT_CHOICE:
		buf_add_str(out, c->choice[dice_below(&d, c->choice_count)]);
		return 0;
	case CONSTRAINT_GRAMMAR:
		break;
	}
	if (!c->grammar)
		return err_set(e, ERR_RUN, "no text is made for a grammar in Lark's syntax");
	return syntax_sentence(grammar_root(c->grammar), &d, bytes, out, e);
}
