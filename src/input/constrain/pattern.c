/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - regular expressions, matched by PCRE2 or read as trees; see syntax.h. */
#include "input/constrain/syntax.h"

#include <assert.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/* ---- patterns in PCRE2's spelling ---- */

/* Blanks and line ends of ECMA-262, and all other characters, as written inside a class. */
#define BLANKS "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}" \
	"\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}"
#define NOT_BLANKS "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}" \
	"\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}" \
	"\\x{2060}-\\x{2fff}\\x{3001}-\\x{d7ff}\\x{e000}-\\x{fefe}\\x{ff00}-\\x{10ffff}"
#define NOT_LINE_ENDS "[^\\n\\r\\x{2028}\\x{2029}]"

struct rewrite {
	const char *p, *end;
	struct buf *out;
	struct err *e;
	bool is_ecma;
	bool is_in_class;
	bool can_repeat; /* ECMA: what comes before may be followed by a quantifier */
};

static int rewrite_refuse(struct rewrite *w, const char *what, size_t n)
{
	return err_set(w->e, ERR_USAGE, "the regular expression has %.*s, which %s does not "
					"support", (int)n,
		what, w->is_ecma ? "ECMA-262" : "Python");
}

/* Exactly n hexadecimal digits at p; -1: missing. */
static int64_t hex_digits(const struct rewrite *w, const char *p, int n)
{
	int64_t v = 0;

	if (w->end - p < n)
		return -1;
	for (int i = 0; i < n; i++) {
		int digit = str_hex(p[i]);

		if (digit < 0)
			return -1;
		v = v * 16 + digit;
	}
	return v;
}

static void put_code(struct rewrite *w, int64_t code)
{
	buf_printf(w->out, "\\x{%llx}", (unsigned long long)code);
}

/* p points at the u of \u; the digits may be a pair of surrogates, or in braces. */
static int unicode_escape(struct rewrite *w)
{
	int64_t code = hex_digits(w, w->p + 1, *w->p == 'U' ? 8 : 4), low;

	if (w->is_ecma && w->end - w->p > 2 && w->p[1] == '{') {
		const char *close = memchr(w->p, '}', (size_t)(w->end - w->p));

		if (!close || close - w->p > 8 || close == w->p + 2)
			return rewrite_refuse(w, "\\u{ without its digits", 22);
		code = hex_digits(w, w->p + 2, (int)(close - w->p) - 2);
		w->p = close + 1;
	} else {
		w->p += *w->p == 'U' ? 9 : 5;
	}
	if (code >= 0xd800 && code < 0xdc00 && w->end - w->p >= 6 && w->p[0] == '\\' &&
	    w->p[1] == 'u') {
		low = hex_digits(w, w->p + 2, 4);
		if (low >= 0xdc00 && low < 0xe000) {
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
			w->p += 6;
		}
	}
	if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return rewrite_refuse(w, "\\u without the digits of a character", 36);
	put_code(w, code);
	return 0;
}

/* Long names of general categories; PCRE2 knows the short ones and the scripts. */
static const char *const category[][2] = {
	{ "Letter", "L" }, { "Cased_Letter", "L&" }, { "Uppercase_Letter", "Lu" },
	{ "Lowercase_Letter", "Ll" }, { "Titlecase_Letter", "Lt" }, { "Modifier_Letter", "Lm" },
	{ "Other_Letter", "Lo" }, { "Mark", "M" }, { "Combining_Mark", "M" },
	{ "Nonspacing_Mark", "Mn" }, { "Spacing_Mark", "Mc" }, { "Enclosing_Mark", "Me" },
	{ "Number", "N" }, { "Decimal_Number", "Nd" }, { "digit", "Nd" },
	{ "Letter_Number", "Nl" }, { "Other_Number", "No" }, { "Punctuation", "P" },
	{ "punct", "P" }, { "Connector_Punctuation", "Pc" }, { "Dash_Punctuation", "Pd" },
	{ "Open_Punctuation", "Ps" }, { "Close_Punctuation", "Pe" },
	{ "Initial_Punctuation", "Pi" }, { "Final_Punctuation", "Pf" },
	{ "Other_Punctuation", "Po" }, { "Symbol", "S" }, { "Math_Symbol", "Sm" },
	{ "Currency_Symbol", "Sc" }, { "Modifier_Symbol", "Sk" }, { "Other_Symbol", "So" },
	{ "Separator", "Z" }, { "Space_Separator", "Zs" }, { "Line_Separator", "Zl" },
	{ "Paragraph_Separator", "Zp" }, { "Other", "C" }, { "Control", "Cc" }, { "cntrl", "Cc" },
	{ "Format", "Cf" }, { "Surrogate", "Cs" }, { "Private_Use", "Co" },
	{ "Unassigned", "Cn" },
};

/* p points at the p or P of \p{...}. */
static int property(struct rewrite *w)
{
	char letter = *w->p++;
	const char *close = memchr(w->p, '}', (size_t)(w->end - w->p));
	struct str name, value;

	if (w->p == w->end || *w->p != '{' || !close)
		return rewrite_refuse(w, "\\p without a name in braces", 27);
	name = (struct str){ w->p + 1, (size_t)(close - w->p) - 1 };
	w->p = close + 1;
	value = str_after(name, "=");
	if (value.n)
		name = value;
	for (size_t i = 0; i < sizeof category / sizeof *category; i++)
		if (str_is(name, category[i][0]))
			name = str_of(category[i][1]);
	buf_printf(w->out, "\\%c{%.*s}", letter, (int)name.n, name.p);
	return 0;
}

/* An escape of ECMA-262 whose letter means something else to PCRE2; p points at the letter. */
static int ecma_escape(struct rewrite *w)
{
	char c = *w->p;

	switch (c) {
	case 's':
	case 'S':
		buf_printf(w->out, w->is_in_class ? "%s" : "[%s]", c == 's' ? BLANKS : NOT_BLANKS);
		break;
	case 'v':
		put_code(w, 0x0b);
		break;
	case '0':
		put_code(w, 0);
		break;
	case 'b':
		buf_add_text(w->out, w->is_in_class ? "\\x{8}" : "\\b");
		break;
	case 'x':
		if (hex_digits(w, w->p + 1, 2) < 0)
			return rewrite_refuse(w, "\\x without two hexadecimal digits", 33);
		put_code(w, hex_digits(w, w->p + 1, 2));
		w->p += 2;
		break;
	case 'k':
		if (w->end - w->p < 2 || w->p[1] != '<')
			return rewrite_refuse(w, "\\k without a name", 17);
		buf_add_text(w->out, "\\k");
		break;
	case 'd': case 'D': case 'w': case 'W': case 'B': case 'f': case 'n': case 'r': case 't':
	case 'c': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8':
	case '9':
		buf_printf(w->out, "\\%c", c);
		break;
	default:
		return rewrite_refuse(w, w->p - 1, 2);
	}
	w->p++;
	return 0;
}

static int python_escape(struct rewrite *w)
{
	char c = *w->p;

	if (c == 'v')
		put_code(w, 0x0b);
	else if (c == 'Z')
		buf_add_text(w->out, "\\z");
	else if (c == 'b' && w->is_in_class)
		put_code(w, 8);
	else if (strchr("hHRKQEGCXVo", c))
		return rewrite_refuse(w, w->p - 1, 2);
	else
		buf_printf(w->out, "\\%c", c);
	w->p++;
	return 0;
}

/* p points after a backslash. */
static int escape(struct rewrite *w)
{
	char c;

	if (w->p == w->end)
		return rewrite_refuse(w, "a backslash at its end", 22);
	c = *w->p;
	if (c == 'u' || (c == 'U' && !w->is_ecma))
		return unicode_escape(w);
	if (c == 'p' || c == 'P')
		return property(w);
	if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
		return w->is_ecma ? ecma_escape(w) : python_escape(w);
	if ((unsigned char)c < 0x80)
		buf_add_char(w->out, '\\');
	buf_add_char(w->out, c);
	w->p++;
	return 0;
}

/* A quantifier {m}, {m,}, {m,n} at p, or Python's {,n}; 0: a plain brace. */
static size_t braces(const struct rewrite *w)
{
	const char *p = w->p + 1;
	size_t digits = 0;

	for (; p < w->end && *p >= '0' && *p <= '9'; p++)
		digits++;
	if (digits == 0 && (w->is_ecma || p == w->end || *p != ','))
		return 0;
	if (p < w->end && *p == ',')
		for (p++; p < w->end && *p >= '0' && *p <= '9'; p++)
			digits++;
	return p < w->end && *p == '}' && digits > 0 ? (size_t)(p - w->p) + 1 : 0;
}

static int quantifier(struct rewrite *w, size_t n)
{
	if (w->is_ecma && !w->can_repeat)
		return err_set(w->e, ERR_USAGE, "the regular expression has a repeat operator "
						"without anything before it, at '%.*s'",
			(int)n, w->p);
	if (n > 1 && w->p[1] == ',')
		buf_printf(w->out, "{0%.*s", (int)n - 1, w->p + 1);
	else
		buf_add(w->out, w->p, n);
	w->p += n;
	w->can_repeat = false;
	if (w->is_ecma && w->p < w->end && *w->p == '?')
		buf_add_char(w->out, *w->p++);
	return 0;
}

static int group(struct rewrite *w)
{
	static const char *const known[] = { "(?:", "(?=", "(?!", "(?<=", "(?<!" };
	struct str rest = { w->p, (size_t)(w->end - w->p) };
	size_t n = 1;

	w->can_repeat = false;
	if (w->is_ecma && rest.n > 1 && rest.p[1] == '?') {
		n = 0;
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			if (str_starts(rest, str_of(known[i])))
				n = strlen(known[i]);
		if (n == 0 && str_starts(rest, STR("(?<")) && rest.n > 3)
			n = 3;
		if (n == 0)
			return rewrite_refuse(w, rest.p, rest.n < 3 ? rest.n : 3);
	} else if (rest.n > 1 && rest.p[1] == '*') {
		return err_set(w->e, ERR_USAGE, "the regular expression has a repeat operator "
						"without anything before it, at '*'");
	}
	buf_add(w->out, w->p, n);
	w->p += n;
	return 0;
}

static int in_class(struct rewrite *w)
{
	if (*w->p == '\\') {
		w->p++;
		return escape(w);
	}
	if (*w->p == '[')
		buf_add_char(w->out, '\\');
	w->is_in_class = *w->p != ']';
	buf_add_char(w->out, *w->p++);
	return 0;
}

static void open_class(struct rewrite *w)
{
	w->is_in_class = true;
	w->can_repeat = true;
	buf_add_char(w->out, *w->p++);
	if (w->p < w->end && *w->p == '^')
		buf_add_char(w->out, *w->p++);
	if (!w->is_ecma && w->p < w->end && *w->p == ']') { /* Python: a first ] is plain */
		buf_add_text(w->out, "\\]");
		w->p++;
	}
}

static int one(struct rewrite *w)
{
	char c = *w->p;
	size_t n;

	if (w->is_in_class)
		return in_class(w);
	switch (c) {
	case '\\':
		w->p++;
		w->can_repeat = true;
		return escape(w);
	case '(':
		return group(w);
	case '[':
		open_class(w);
		return 0;
	case '*': case '+': case '?':
		return quantifier(w, 1);
	case '{':
		n = braces(w);
		if (n)
			return quantifier(w, n);
		buf_add_text(w->out, "\\{");
		break;
	case '.':
		buf_add_text(w->out, w->is_ecma ? NOT_LINE_ENDS : ".");
		break;
	default:
		buf_add_char(w->out, c);
	}
	w->can_repeat = c != '|' && c != '^';
	w->p++;
	return 0;
}

/* ERR_USAGE: a construct that the dialect lacks. Structural mistakes are left for PCRE2 to find. */
static int rewrite_pattern(struct str text, enum pattern_dialect dialect, struct buf *out,
			   struct err *e)
{
	struct rewrite w = { .p = text.p, .end = text.p + text.n, .out = out, .e = e,
		.is_ecma = dialect == PATTERN_ECMA };

	while (w.p < w.end)
		if (one(&w) < 0)
			return -1;
	if (out->is_over)
		return err_set(e, ERR_USAGE, "the regular expression is too long");
	return 0;
}

/* ---- matching ---- */

struct pattern {
	pcre2_code *code;
	bool has_jit;
	bool is_anchored;
	bool is_partial; /* the beginning of a match is one, too */
};

static pcre2_code *compile(struct str text, uint32_t options, struct err *e)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *code;
	PCRE2_SIZE at;
	PCRE2_UCHAR why[256];
	int error;

	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	code = pcre2_compile((PCRE2_SPTR)(text.p ? text.p : ""), text.n, options, &error, &at,
		context);
	pcre2_compile_context_free(context);
	if (!code) {
		pcre2_get_error_message(error, why, sizeof why);
		err_set(e, ERR_USAGE, "the regular expression does not compile: %s",
			(const char *)why);
	}
	return code;
}

struct pattern *pattern_new(struct str text, enum pattern_dialect dialect,
			    enum pattern_place place, struct err *e)
{
	uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C;
	struct buf rewritten = { .limit = 32 * PATTERN_BYTES_MAX };
	struct pattern *p = NULL;
	pcre2_code *code;

	if (text.n > PATTERN_BYTES_MAX) {
		err_set(e, ERR_USAGE, "the regular expression has %zu bytes, at most %d are read",
			text.n, PATTERN_BYTES_MAX);
		return NULL;
	}
	if (dialect == PATTERN_ECMA)
		options |= PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS |
			PCRE2_MATCH_UNSET_BACKREF;
	else
		options |= PCRE2_UCP;
	if (place != PATTERN_ANYWHERE)
		options |= PCRE2_ANCHORED;
	if (place == PATTERN_WHOLE)
		options |= PCRE2_ENDANCHORED;
	if (place == PATTERN_BEGUN) /* PCRE2 has no partial matching with PCRE2_ENDANCHORED */
		buf_add_text(&rewritten, "(?:");
	if (rewrite_pattern(text, dialect, &rewritten, e) < 0)
		goto done;
	if (place == PATTERN_BEGUN)
		buf_add_text(&rewritten, ")\\z");
	code = compile(buf_str(&rewritten), options, e);
	if (code) {
		p = mem_alloc(sizeof *p);
		p->code = code;
		p->is_partial = place == PATTERN_BEGUN;
		p->has_jit = !p->is_partial && pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
		p->is_anchored = place != PATTERN_ANYWHERE;
	}
done:
	buf_release(&rewritten);
	return p;
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	pcre2_code_free(p->code);
	free(p);
}

/* PCRE2 counts steps from 0 again at each place where it tries a match. */
static uint32_t steps_at_a_place(const struct pattern *p, size_t text_bytes)
{
	size_t steps = p->is_anchored ? PATTERN_STEPS_MAX : PATTERN_STEPS_MAX / (text_bytes + 1);

	return steps < PATTERN_STEPS_MIN ? PATTERN_STEPS_MIN : (uint32_t)steps;
}

enum pattern_answer pattern_matches(const struct pattern *p, struct str text)
{
	PCRE2_SPTR subject = (PCRE2_SPTR)(text.p ? text.p : "");
	pcre2_match_data *match = pcre2_match_data_create(1, NULL);
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	int rc = PCRE2_ERROR_JIT_STACKLIMIT;

	assert(match && context);
	pcre2_set_match_limit(context, steps_at_a_place(p, text.n));
	pcre2_set_heap_limit(context, PATTERN_HEAP_KB);
	if (p->has_jit)
		rc = pcre2_jit_match(p->code, subject, text.n, 0, 0, match, context);
	if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
		rc = pcre2_match(p->code, subject, text.n, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT |
			(p->is_partial ? PCRE2_PARTIAL_SOFT : 0), match, context);
	pcre2_match_data_free(match);
	pcre2_match_context_free(context);
	if (rc == PCRE2_ERROR_NOMATCH)
		return PATTERN_NO;
	return rc < 0 && rc != PCRE2_ERROR_PARTIAL ? PATTERN_GAVE_UP : PATTERN_YES;
}

/* ---- patterns as trees ---- */

/*
 * The usual constructs of a regular expression as a tree of syntax.h.
 *
 * Anchors and lookarounds become the empty text: generated texts are checked afterwards.
 */

#define REPEAT_MAX 65535 /* as in PCRE2 */
#define CODE_MAX 0x10ffffu

static struct syntax *read_choice(struct syntax_reader *r);

static struct syntax *syntax_refuse(struct syntax_reader *r, const char *what)
{
	err_set(r->e, ERR_RUN, "no text is made for a regular expression with %s", what);
	return NULL;
}

static void add_negated(struct syntax_reader *r, struct syntax *set, const struct syntax *inner)
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

/* \d, \w, \s and their opposites as ASCII sets, which belong to every dialect's. */
static bool add_named(struct syntax_reader *r, struct syntax *set, char letter)
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
static bool add_property(struct syntax_reader *r, struct syntax *set, char letter)
{
	const char *close = memchr(r->p, '}', (size_t)(r->end - r->p));
	struct syntax *inner = syntax_new(r->arena, SYNTAX_SET);
	struct str name;

	if (!syntax_take(r, "{") || !close)
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

/* An escape that is one code point; p points after its letter. */
static bool code_escape(struct syntax_reader *r, char letter, uint32_t *code)
{
	static const char from[] = "nrtfvae0", to[] = "\n\r\t\f\v\a\033";
	const char *at = strchr(from, letter);

	if (letter == 'x')
		return syntax_hex(r, 2, code);
	if (letter == 'U' && !r->is_ecma)
		return syntax_hex(r, 8, code);
	if (letter == 'u' && r->is_ecma && syntax_take(r, "{")) {
		const char *close = memchr(r->p, '}', (size_t)(r->end - r->p));

		return close && close - r->p <= 6 && syntax_hex(r, (int)(close - r->p), code) &&
			syntax_take(r, "}");
	}
	if (letter == 'u') {
		uint32_t low;

		if (!syntax_hex(r, 4, code))
			return false;
		if (*code >= 0xd800 && *code < 0xdc00 && syntax_take(r, "\\u")) {
			if (!syntax_hex(r, 4, &low))
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

static uint32_t plain_code(struct syntax_reader *r)
{
	size_t n;
	uint32_t code = utf8_next(r->p, &n);

	r->p += n;
	return code;
}

/* One end of a range in a class; false: it was a named set, which is added. */
static bool class_code(struct syntax_reader *r, struct syntax *set, uint32_t *code, bool *is_bad)
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

static struct syntax *read_class(struct syntax_reader *r)
{
	struct syntax *set = syntax_new(r->arena, SYNTAX_SET);
	bool is_bad = false, is_first = true;

	set->is_negated = syntax_take(r, "^");
	while (r->p < r->end && (*r->p != ']' || (is_first && !r->is_ecma))) {
		uint32_t low, high;

		is_first = false;
		if (!class_code(r, set, &low, &is_bad)) {
			if (is_bad)
				return syntax_refuse(r, "such a class");
			continue;
		}
		high = low;
		if (r->end - r->p >= 2 && r->p[0] == '-' && r->p[1] != ']') {
			r->p++;
			if (!class_code(r, set, &high, &is_bad) || high < low)
				return syntax_refuse(r, "such a class");
		}
		syntax_add_range(r->arena, set, low, high);
	}
	return syntax_take(r, "]") ? set : syntax_refuse(r, "an open class");
}

static struct syntax *read_group(struct syntax_reader *r)
{
	struct syntax *inside;
	bool is_look = syntax_take(r, "?=") || syntax_take(r, "?!") || syntax_take(r, "?<=") || syntax_take(r, "?<!");

	if (!is_look && (syntax_take(r, "?P<") || syntax_take(r, "?<"))) {
		while (r->p < r->end && *r->p != '>')
			r->p++;
		if (!syntax_take(r, ">"))
			return syntax_refuse(r, "such a group");
	} else if (!is_look && !syntax_take(r, "?:") && syntax_take(r, "?")) {
		return syntax_refuse(r, "such a group");
	}
	if (++r->depth > SYNTAX_DEPTH_MAX)
		return syntax_refuse(r, "groups nested that deep");
	inside = read_choice(r);
	r->depth--;
	if (inside && !syntax_take(r, ")"))
		return syntax_refuse(r, "an open group");
	return inside && is_look ? syntax_new(r->arena, SYNTAX_SEQUENCE) : inside;
}

static struct syntax *read_escape(struct syntax_reader *r)
{
	struct syntax *set = syntax_new(r->arena, SYNTAX_SET);
	uint32_t code;
	char letter;

	if (r->p == r->end)
		return syntax_refuse(r, "a backslash at its end");
	if ((unsigned char)*r->p >= 0x80)
		return syntax_code(r->arena, plain_code(r));
	letter = *r->p++;
	if (strchr("bBAZz", letter))
		return syntax_new(r->arena, SYNTAX_SEQUENCE);
	if ((letter | 0x20) == 'p')
		return add_property(r, set, letter) ? set : syntax_refuse(r, "such a property");
	if (add_named(r, set, letter))
		return set;
	return code_escape(r, letter, &code) ? syntax_code(r->arena, code) :
		syntax_refuse(r, "such an escape");
}

static struct syntax *read_atom(struct syntax_reader *r)
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

/* {m}, {m,}, {m,n}, {,n} of Python; anything else is a plain brace. */
static bool take_bounds(struct syntax_reader *r, uint32_t *min, uint32_t *max)
{
	const char *from = r->p;
	bool has_min, has_max;

	r->p++;
	has_min = syntax_count(r, REPEAT_MAX, min);
	*max = *min;
	if (syntax_take(r, ",")) {
		has_max = syntax_count(r, REPEAT_MAX, max);
		if (!has_max)
			*max = SYNTAX_UNBOUNDED;
		has_min |= has_max && !r->is_ecma;
	}
	if (has_min && syntax_take(r, "}") && *min <= *max)
		return true;
	r->p = from;
	return false;
}

static struct syntax *read_repeats(struct syntax_reader *r, struct syntax *atom)
{
	while (r->p < r->end && *r->p && strchr("*+?{", *r->p)) {
		uint32_t min = *r->p == '+', max = *r->p == '?' ? 1 : SYNTAX_UNBOUNDED;
		struct syntax *repeat;

		if (*r->p != '{')
			r->p++;
		else if (!take_bounds(r, &min, &max))
			break;
		if (!syntax_take(r, "?")) /* lazy; and possessive in Python */
			syntax_take(r, "+");
		repeat = syntax_new(r->arena, SYNTAX_REPEAT);
		repeat->min = min;
		repeat->max = max;
		syntax_add(repeat, atom);
		atom = repeat;
	}
	return atom;
}

static struct syntax *read_sequence(struct syntax_reader *r)
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

static struct syntax *read_choice(struct syntax_reader *r)
{
	return syntax_choice(r, read_sequence);
}

struct syntax *syntax_of_pattern(struct arena *a, struct str text, enum pattern_dialect dialect,
				 struct err *e)
{
	struct syntax_reader r = { .arena = a, .p = text.p, .end = text.p + text.n, .e = e,
		.is_ecma = dialect == PATTERN_ECMA };
	struct syntax *root;

	if (!utf8_is_valid(text))
		return syntax_refuse(&r, "broken UTF-8");
	root = read_choice(&r);
	if (root && r.p < r.end)
		return syntax_refuse(&r, "a ')' too many");
	if (root)
		syntax_measure(root, NULL);
	return root;
}
