/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.c - see rewrite.h. */
#include "constrain/rewrite.h"

#include <assert.h>
#include <string.h>

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

static int refuse(struct rewrite *w, const char *what, size_t n)
{
	return err_set(w->e, ERR_USAGE, "the regular expression has %.*s, which %s lacks", (int)n,
		what, w->is_ecma ? "ECMA-262" : "Python");
}

/* So many hexadecimal digits at p; -1: they are not there. */
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
			return refuse(w, "\\u{ without its digits", 22);
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
		return refuse(w, "\\u without the digits of a character", 36);
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
		return refuse(w, "\\p without a name in braces", 27);
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
			return refuse(w, "\\x without two hexadecimal digits", 33);
		put_code(w, hex_digits(w, w->p + 1, 2));
		w->p += 2;
		break;
	case 'k':
		if (w->end - w->p < 2 || w->p[1] != '<')
			return refuse(w, "\\k without a name", 17);
		buf_add_text(w->out, "\\k");
		break;
	case 'd': case 'D': case 'w': case 'W': case 'B': case 'f': case 'n': case 'r': case 't':
	case 'c': case '1': case '2': case '3': case '4': case '5': case '6': case '7': case '8':
	case '9':
		buf_printf(w->out, "\\%c", c);
		break;
	default:
		return refuse(w, w->p - 1, 2);
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
		return refuse(w, w->p - 1, 2);
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
		return refuse(w, "a backslash at its end", 22);
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
		return err_set(w->e, ERR_USAGE, "the regular expression repeats nothing at '%.*s'",
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
			return refuse(w, rest.p, rest.n < 3 ? rest.n : 3);
	} else if (rest.n > 1 && rest.p[1] == '*') {
		return err_set(w->e, ERR_USAGE, "the regular expression repeats nothing at '*'");
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

int rewrite_pattern(struct str text, enum pattern_dialect dialect, struct buf *out, struct err *e)
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
