/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_syntax.c - the usual constructs of a regular expression as a tree of syntax.h.
 *
 * Anchors and lookarounds become the empty text: what is made is checked afterwards.
 */
#include <assert.h>
#include <string.h>

#include "base/utf8.h"
#include "constrain/syntax.h"

#define REPEAT_MAX 65535 /* as in PCRE2 */
#define CODE_MAX 0x10ffffu

struct reader {
	struct arena *arena;
	const char *p, *end;
	struct err *e;
	bool is_ecma;
	unsigned depth;
};

static struct syntax *read_choice(struct reader *r);

static struct syntax *refuse(struct reader *r, const char *what)
{
	err_set(r->e, ERR_RUN, "no text is made for a regular expression with %s", what);
	return NULL;
}

static bool take(struct reader *r, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(r->end - r->p) < n || memcmp(r->p, text, n) != 0)
		return false;
	r->p += n;
	return true;
}

static void add_negated(struct reader *r, struct syntax *set, const struct syntax *inner)
{
	uint32_t from = 0;

	for (uint32_t c = 0; c <= 0x3000; c++) { /* named sets have no more below */
		if (!syntax_has(inner, c))
			continue;
		if (c > from)
			syntax_add_range(r->arena, set, from, c - 1);
		from = c + 1;
	}
	syntax_add_range(r->arena, set, from, CODE_MAX);
}

/* \d, \w, \s and their opposites, ASCII alone: that is part of every dialect's. */
static bool add_named(struct reader *r, struct syntax *set, char letter)
{
	static const struct { char letter; const char *ranges; } named[] = {
		{ 'd', "09" }, { 'w', "09AZaz__" }, { 's', "\t\r  " },
	};
	struct syntax *inner = syntax_new(r->arena, SYNTAX_SET);

	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		if ((letter | 0x20) != named[i].letter)
			continue;
		for (const char *p = named[i].ranges; *p; p += 2)
			syntax_add_range(r->arena, inner, (unsigned char)p[0],
				(unsigned char)p[1]);
		if (letter == named[i].letter)
			for (const char *p = named[i].ranges; *p; p += 2)
				syntax_add_range(r->arena, set, (unsigned char)p[0],
					(unsigned char)p[1]);
		else
			add_negated(r, set, inner);
		return true;
	}
	return false;
}

/* \p{L}, \p{Lu}, \p{N} and the like, by their ASCII members. */
static bool add_property(struct reader *r, struct syntax *set, char letter)
{
	const char *close = memchr(r->p, '}', (size_t)(r->end - r->p));
	struct syntax *inner = syntax_new(r->arena, SYNTAX_SET);
	struct str name;

	if (!take(r, "{") || !close)
		return false;
	name = (struct str){ r->p, (size_t)(close - r->p) };
	r->p = close + 1;
	if (str_starts(name, STR("Lu")) || str_starts(name, STR("Uppercase")))
		syntax_add_range(r->arena, inner, 'A', 'Z');
	else if (str_starts(name, STR("L")) || str_is(name, "Alphabetic"))
		syntax_add_range(r->arena, inner, 'a', 'z');
	else if (str_starts(name, STR("N")) || str_is(name, "digit"))
		syntax_add_range(r->arena, inner, '0', '9');
	else if (str_starts(name, STR("P")))
		syntax_add_range(r->arena, inner, '!', '#');
	else
		return false;
	if (letter == 'p')
		for (struct syntax_range *range = inner->ranges; range; range = range->next)
			syntax_add_range(r->arena, set, range->low, range->high);
	else
		add_negated(r, set, inner);
	return true;
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
	return *code <= CODE_MAX;
}

/* An escape that is one code point; p points after its letter. */
static bool code_escape(struct reader *r, char letter, uint32_t *code)
{
	static const char from[] = "nrtfvae0", to[] = "\n\r\t\f\v\a\033";
	const char *at = strchr(from, letter);

	if (letter == 'x')
		return hex_code(r, 2, code);
	if (letter == 'U' && !r->is_ecma)
		return hex_code(r, 8, code);
	if (letter == 'u' && r->is_ecma && take(r, "{")) {
		const char *close = memchr(r->p, '}', (size_t)(r->end - r->p));

		return close && close - r->p <= 6 && hex_code(r, (int)(close - r->p), code) &&
			take(r, "}");
	}
	if (letter == 'u') {
		uint32_t low;

		if (!hex_code(r, 4, code))
			return false;
		if (*code >= 0xd800 && *code < 0xdc00 && take(r, "\\u")) {
			if (!hex_code(r, 4, &low))
				return false;
			*code = 0x10000 + ((*code - 0xd800) << 10) + ((low - 0xdc00) & 0x3ff);
		}
		return true;
	}
	if (at && *at)
		*code = (unsigned char)to[at - from];
	else if ((unsigned char)letter < 0x80 && !strchr("bBAZzGkg123456789", letter))
		*code = (unsigned char)letter;
	else
		return false;
	return true;
}

static uint32_t plain_code(struct reader *r)
{
	size_t n;
	uint32_t code = utf8_next(r->p, &n);

	r->p += n;
	return code;
}

/* One end of a range in a class; false: it was a named set, which is added. */
static bool class_code(struct reader *r, struct syntax *set, uint32_t *code, bool *is_bad)
{
	char letter;

	if (*r->p != '\\') {
		*code = plain_code(r);
		return true;
	}
	if (++r->p == r->end) {
		*is_bad = true;
		return false;
	}
	if ((unsigned char)*r->p >= 0x80) {
		*code = plain_code(r);
		return true;
	}
	letter = *r->p++;
	if (letter == 'b') {
		*code = 8;
		return true;
	}
	if ((letter | 0x20) == 'p')
		*is_bad = !add_property(r, set, letter);
	else if (!add_named(r, set, letter)) {
		*is_bad = !code_escape(r, letter, code);
		return !*is_bad;
	}
	return false;
}

static struct syntax *read_class(struct reader *r)
{
	struct syntax *set = syntax_new(r->arena, SYNTAX_SET);
	bool is_bad = false, is_first = true;

	set->is_negated = take(r, "^");
	while (r->p < r->end && (*r->p != ']' || (is_first && !r->is_ecma))) {
		uint32_t low, high;

		is_first = false;
		if (!class_code(r, set, &low, &is_bad)) {
			if (is_bad)
				return refuse(r, "such a class");
			continue;
		}
		high = low;
		if (r->end - r->p >= 2 && r->p[0] == '-' && r->p[1] != ']') {
			r->p++;
			if (!class_code(r, set, &high, &is_bad) || high < low)
				return refuse(r, "such a class");
		}
		syntax_add_range(r->arena, set, low, high);
	}
	return take(r, "]") ? set : refuse(r, "an open class");
}

static struct syntax *read_group(struct reader *r)
{
	struct syntax *inside;
	bool is_look = take(r, "?=") || take(r, "?!") || take(r, "?<=") || take(r, "?<!");

	if (!is_look && (take(r, "?P<") || take(r, "?<"))) {
		while (r->p < r->end && *r->p != '>')
			r->p++;
		if (!take(r, ">"))
			return refuse(r, "such a group");
	} else if (!is_look && !take(r, "?:") && take(r, "?")) {
		return refuse(r, "such a group");
	}
	if (++r->depth > SYNTAX_DEPTH_MAX)
		return refuse(r, "groups nested that deep");
	inside = read_choice(r);
	r->depth--;
	if (inside && !take(r, ")"))
		return refuse(r, "an open group");
	return inside && is_look ? syntax_new(r->arena, SYNTAX_SEQUENCE) : inside;
}

static struct syntax *read_escape(struct reader *r)
{
	struct syntax *set = syntax_new(r->arena, SYNTAX_SET);
	uint32_t code;
	char letter;

	if (r->p == r->end)
		return refuse(r, "a backslash at its end");
	if ((unsigned char)*r->p >= 0x80)
		return syntax_code(r->arena, plain_code(r));
	letter = *r->p++;
	if (strchr("bBAZz", letter))
		return syntax_new(r->arena, SYNTAX_SEQUENCE);
	if ((letter | 0x20) == 'p')
		return add_property(r, set, letter) ? set : refuse(r, "such a property");
	if (add_named(r, set, letter))
		return set;
	return code_escape(r, letter, &code) ? syntax_code(r->arena, code) :
		refuse(r, "such an escape");
}

static struct syntax *read_atom(struct reader *r)
{
	struct syntax *any;

	switch (*r->p) {
	case '(':
		r->p++;
		return read_group(r);
	case '[':
		r->p++;
		return read_class(r);
	case '\\':
		r->p++;
		return read_escape(r);
	case '^':
	case '$':
		r->p++;
		return syntax_new(r->arena, SYNTAX_SEQUENCE);
	case '.':
		r->p++;
		any = syntax_new(r->arena, SYNTAX_SET);
		any->is_negated = true;
		syntax_add_range(r->arena, any, '\n', '\n');
		syntax_add_range(r->arena, any, '\r', '\r');
		return any;
	default:
		return syntax_code(r->arena, plain_code(r));
	}
}

static bool take_count(struct reader *r, uint32_t *n)
{
	const char *from = r->p;

	for (*n = 0; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
		*n = *n > REPEAT_MAX ? *n : *n * 10 + (uint32_t)(*r->p - '0');
	return r->p > from;
}

/* {m}, {m,}, {m,n}, {,n} of Python; anything else is a plain brace. */
static bool take_bounds(struct reader *r, uint32_t *min, uint32_t *max)
{
	const char *from = r->p;
	bool has_min, has_max;

	r->p++;
	has_min = take_count(r, min);
	*max = *min;
	if (take(r, ",")) {
		has_max = take_count(r, max);
		if (!has_max)
			*max = SYNTAX_UNBOUNDED;
		has_min |= has_max && !r->is_ecma;
	}
	if (has_min && take(r, "}") && *min <= *max)
		return true;
	r->p = from;
	return false;
}

static struct syntax *read_repeats(struct reader *r, struct syntax *atom)
{
	while (r->p < r->end && *r->p && strchr("*+?{", *r->p)) {
		uint32_t min = *r->p == '+', max = *r->p == '?' ? 1 : SYNTAX_UNBOUNDED;
		struct syntax *repeat;

		if (*r->p != '{')
			r->p++;
		else if (!take_bounds(r, &min, &max))
			break;
		if (!take(r, "?")) /* lazy; and possessive in Python */
			take(r, "+");
		repeat = syntax_new(r->arena, SYNTAX_REPEAT);
		repeat->min = min;
		repeat->max = max;
		syntax_add(repeat, atom);
		atom = repeat;
	}
	return atom;
}

static struct syntax *read_sequence(struct reader *r)
{
	struct syntax *sequence = syntax_new(r->arena, SYNTAX_SEQUENCE);

	while (r->p < r->end && *r->p != '|' && *r->p != ')') {
		struct syntax *atom = read_atom(r);

		if (!atom)
			return NULL;
		syntax_add(sequence, read_repeats(r, atom));
	}
	return sequence;
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

struct syntax *syntax_of_pattern(struct arena *a, struct str text, enum pattern_dialect dialect,
				 struct err *e)
{
	struct reader r = { .arena = a, .p = text.p, .end = text.p + text.n, .e = e,
		.is_ecma = dialect == PATTERN_ECMA };
	struct syntax *root;

	if (!utf8_is_valid(text))
		return refuse(&r, "broken UTF-8");
	root = read_choice(&r);
	if (root && r.p < r.end)
		return refuse(&r, "a ')' too many");
	if (root)
		syntax_measure(root, NULL);
	return root;
}
