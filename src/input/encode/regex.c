/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regex.c - regular expressions rewritten and matched; the one file of token/ that includes PCRE2.
 *
 * A pattern is rewritten in one pass. The output is the input except where a construct is
 * rewritten; the place where the last atom began is remembered, so that a doubled quantifier can be
 * wrapped.
 *
 * The JIT's machine stack is small and very long runs of one class reach its limit; then the match
 * is repeated by the interpreter, on the heap.
 */
#include "input/encode/regex.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/* ---- Patterns rewritten ---- */

#define SPACES "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
	"\\x{202f}\\x{205f}\\x{3000}"
#define NOT_SPACES "\\x00-\\x08\\x0e-\\x1f\\x21-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}" \
	"\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}" \
	"\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"
#define WORDS "\\p{L}\\p{M}\\p{N}\\p{Pc}"

struct regex_pattern {
	struct str in;
	size_t at;
	struct buf *out;
	struct err *e;
	size_t open[TOKEN_REGEX_DEPTH_MAX]; /* where each open group began in out */
	size_t depth;
};

static int peek(const struct regex_pattern *p, size_t ahead)
{
	return p->in.n - p->at > ahead ? (uint8_t)p->in.p[p->at + ahead] : -1;
}

static int refuse(struct regex_pattern *p, const char *what)
{
	return err_set(p->e, ERR_PARSE, "regular expression uses %s at character %zu, which is not "
		"supported", what, p->at);
}

static void copy(struct regex_pattern *p, size_t n)
{
	buf_add(p->out, p->in.p + p->at, n);
	p->at += n;
}

/* \p{...} or \P{...}, with `at` on the backslash. */
static int rewrite_property(struct regex_pattern *p)
{
	struct str rest = { p->in.p + p->at + 2, p->in.n - p->at - 2 };
	const char *end = rest.n ? memchr(rest.p, '}', rest.n) : NULL;
	struct str name;

	if (rest.n == 0 || rest.p[0] != '{' || !end)
		return refuse(p, "a property without braces");
	name = (struct str){ rest.p + 1, (size_t)(end - rest.p) - 1 };
	for (size_t i = 0; i < name.n; i++)
		if (!isalnum((uint8_t)name.p[i]) && name.p[i] != '^' && name.p[i] != '_')
			return refuse(p, "a property of unknown form");
	buf_printf(p->out, "\\%c{", p->in.p[p->at + 1]);
	if (name.n > 0 && name.p[0] == '^') {
		buf_add_char(p->out, '^');
		name.p++;
		name.n--;
	}
	/* One or two letters are a category; longer names are scripts. */
	if (name.n > 2 && !str_is(name, "Any"))
		buf_add_text(p->out, "sc:");
	buf_add_str(p->out, name);
	buf_add_char(p->out, '}');
	p->at = (size_t)(end - p->in.p) + 1;
	return 0;
}

/* The text that replaces an escaped letter, or NULL when it means the same in both. */
static const char *escape_text(int letter, bool in_class)
{
	switch (letter) {
	case 's': return in_class ? SPACES : "[" SPACES "]";
	case 'S': return in_class ? NOT_SPACES : "[^" SPACES "]";
	case 'w': return in_class ? WORDS : "[" WORDS "]";
	case 'W': return in_class ? NULL : "[^" WORDS "]";
	case 'd': return "\\p{Nd}";
	case 'D': return "\\P{Nd}";
	case 'b': return in_class ? NULL : "(?:(?<=[" WORDS "])(?![" WORDS "])|(?<![" WORDS
		"])(?=[" WORDS "]))";
	case 'B': return in_class ? NULL : "(?:(?<=[" WORDS "])(?=[" WORDS "])|(?<![" WORDS
		"])(?![" WORDS "]))";
	default: return NULL;
	}
}

static int rewrite_escape(struct regex_pattern *p, bool in_class)
{
	int letter = peek(p, 1);
	const char *text;

	if (letter < 0)
		return refuse(p, "a lone backslash");
	if (letter == 'p' || letter == 'P')
		return rewrite_property(p);
	text = escape_text(letter, in_class);
	if (text) {
		buf_add_text(p->out, text);
		p->at += 2;
		return 0;
	}
	/* These have one fixed meaning everywhere; any other letter or digit may not. */
	if (isalnum(letter) && !strchr(in_class ? "nrtfvaex" : "nrtfvaexAzZ", letter))
		return refuse(p, "an unknown escape");
	if (letter == 'v') { /* one character to Oniguruma, a whole class to PCRE2 */
		buf_add_text(p->out, "\\x0b");
		p->at += 2;
		return 0;
	}
	copy(p, 2);
	return 0;
}

static int rewrite_class(struct regex_pattern *p, size_t depth);

/* [A&&[^B]] becomes (?:(?!B)[A]); `at` is after the &&, the class began at start in out. */
static int rewrite_intersection(struct regex_pattern *p, size_t start, bool is_negated,
				size_t depth)
{
	struct buf left = { 0 };
	size_t inner;
	int rc = -1;

	if (is_negated || depth > 0 || peek(p, 0) != '[' || peek(p, 1) != '^')
		return refuse(p, "&& in a form other than [A&&[^B]]");
	buf_add(&left, p->out->data + start, p->out->len - start);
	p->out->len = start;
	buf_add_text(p->out, "(?:(?!");
	inner = p->out->len;
	if (rewrite_class(p, 0))
		goto done;
	/* "[^B]" was written; turned into "[B]". */
	memmove(p->out->data + inner + 1, p->out->data + inner + 2, p->out->len - inner - 2);
	p->out->len--;
	buf_add_char(p->out, ')');
	buf_add_str(p->out, buf_str(&left));
	if (peek(p, 0) != ']') {
		refuse(p, "more than one && in a class");
		goto done;
	}
	buf_add_text(p->out, "])");
	p->at++;
	rc = 0;
done:
	buf_release(&left);
	return rc;
}

static int rewrite_nested_class(struct regex_pattern *p, size_t depth)
{
	if (peek(p, 1) == ':') { /* [:alpha:] */
		return refuse(p, "a POSIX class");
	}
	if (peek(p, 1) == '^')
		return refuse(p, "a negated class inside a class");
	if (depth + 1 >= TOKEN_REGEX_DEPTH_MAX)
		return refuse(p, "too many nested classes");
	return rewrite_class(p, depth + 1); /* a union: its members, without brackets */
}

/* `at` is on '['. Nested classes (depth > 0) write their members only. */
static int rewrite_class(struct regex_pattern *p, size_t depth)
{
	size_t start = p->out->len;
	bool is_negated = peek(p, 1) == '^', is_first = true;

	if (depth == 0)
		buf_add_text(p->out, is_negated ? "[^" : "[");
	p->at += is_negated ? 2 : 1;
	for (; peek(p, 0) != ']' || is_first; is_first = false) {
		int c = peek(p, 0), rc = 0;

		if (c < 0 || (c == ']' && is_first))
			return refuse(p, "an empty or unclosed class");
		if (c == '\\') {
			rc = rewrite_escape(p, true);
		} else if (c == '[') {
			rc = rewrite_nested_class(p, depth);
		} else if (c == '&' && peek(p, 1) == '&') {
			p->at += 2;
			return rewrite_intersection(p, start, is_negated, depth);
		} else {
			copy(p, 1);
		}
		if (rc)
			return -1;
	}
	p->at++;
	if (depth == 0)
		buf_add_char(p->out, ']');
	return 0;
}

/* The length of a {n}, {n,}, {,m} or {n,m} at the front; 0 when it is literal text. */
static size_t interval_length(struct str s, bool *is_exact)
{
	size_t i = 1, digits = 0;

	*is_exact = true;
	for (; i < s.n && s.p[i] != '}'; i++) {
		if (s.p[i] == ',' && *is_exact)
			*is_exact = false;
		else if (isdigit((uint8_t)s.p[i]))
			digits++;
		else
			return 0;
	}
	return i < s.n && digits ? i + 1 : 0;
}

/* A quantifier of the atom that begins at `atom` in out. */
static int rewrite_interval(struct regex_pattern *p, size_t atom)
{
	struct str rest = { p->in.p + p->at, p->in.n - p->at };
	bool is_exact;
	size_t n = interval_length(rest, &is_exact);
	int next;

	if (n == 0) { /* literal text to both */
		copy(p, 1);
		return 0;
	}
	if (rest.p[1] == ',') /* {,m}: PCRE2 before 10.43 takes it for text */
		buf_add_text(p->out, "{0"), p->at++, n--;
	copy(p, n);
	next = peek(p, 0);
	if (next == '+' || next == '*' || (next == '?' && is_exact)) {
		struct buf body = { 0 };

		buf_add(&body, p->out->data + atom, p->out->len - atom);
		p->out->len = atom;
		buf_add_text(p->out, "(?:");
		buf_add_str(p->out, buf_str(&body));
		buf_add_char(p->out, ')');
		copy(p, 1);
		buf_release(&body);
	} else if (next == '?') {
		copy(p, 1);
	}
	return 0;
}

/* `at` is on '('. Groups with the same meaning in both libraries are copied. */
static int open_group(struct regex_pattern *p)
{
	static const char *const plain[] = { "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:",
		"(?-i:", "(?i)" };
	struct str rest = { p->in.p + p->at, p->in.n - p->at };

	if (p->depth == TOKEN_REGEX_DEPTH_MAX)
		return refuse(p, "too many nested groups");
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		if (!str_starts(rest, str_of(plain[i])))
			continue;
		p->open[p->depth++] = p->out->len;
		copy(p, strlen(plain[i]));
		return 0;
	}
	if (peek(p, 1) == '?' || peek(p, 1) == '*')
		return refuse(p, "a special group");
	p->open[p->depth++] = p->out->len;
	copy(p, 1);
	return 0;
}

/* One atom, group mark or quantifier; *atom is where the atom before it began. */
static int rewrite_one(struct regex_pattern *p, size_t *atom)
{
	int c = peek(p, 0);

	switch (c) {
	case '{':
		return rewrite_interval(p, *atom);
	case '*': case '+': case '?': case '|':
		copy(p, 1);
		return 0;
	case '(':
		return open_group(p);
	case ')':
		if (p->depth == 0)
			return refuse(p, "an unmatched )");
		*atom = p->open[--p->depth];
		copy(p, 1);
		return 0;
	case '[':
		*atom = p->out->len;
		return rewrite_class(p, 0);
	case '\\':
		*atom = p->out->len;
		return rewrite_escape(p, false);
	default:
		*atom = p->out->len;
		do /* a whole character, so that a following quantifier finds its start */
			copy(p, 1);
		while ((peek(p, 0) & ~0x3f) == 0x80);
		return 0;
	}
}

int pattern_rewrite(struct str pattern, struct buf *out, struct err *e)
{
	struct regex_pattern p = { .in = pattern, .out = out, .e = e };
	size_t atom = out->len;

	while (p.at < p.in.n)
		if (rewrite_one(&p, &atom))
			return -1;
	if (p.depth > 0)
		return refuse(&p, "an unclosed group");
	return 0;
}

/* ---- Searching ---- */

#define JIT_STACK_FIRST (64 << 10)
#define JIT_STACK_MAX (8 << 20)
#define LOOK_NS 10000000 /* between two looks at the thread's CPU time, which cost a system call */

#define ATTEMPTS 8       /* between two looks at the clock; PCRE2's own limit ends each one */

/* Prepended to every pattern: on_attempt() is called for each place where a match is tried. */
#define CALLOUT "(?C1)(?:"

struct regex {
	pcre2_code *code;
	bool has_jit;
};

struct regex_work {
	pcre2_match_data *match;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	int64_t allowed_ns; /* 0: no limit */
	int64_t look_ns;    /* of the clock of looks: when the next one is due */
	unsigned attempts;
	int64_t begun_ns;   /* CPU time of the thread at the first look; 0: none yet */
};

/* CLOCK_MONOTONIC_COARSE is a few nanoseconds to read. */
static bool is_late(struct regex_work *w)
{
	int64_t now = w->allowed_ns ? clock_ns(CLOCK_MONOTONIC_COARSE) : 0, spent;

	if (now <= w->look_ns)
		return false;
	w->look_ns = now + LOOK_NS;
	spent = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (!w->begun_ns)
		w->begun_ns = spent;
	return spent - w->begun_ns > w->allowed_ns;
}

static int on_attempt(pcre2_callout_block *block, void *self)
{
	struct regex_work *w = self;

	(void)block;
	return ++w->attempts % ATTEMPTS == 0 && is_late(w) ? PCRE2_ERROR_CALLOUT : 0;
}

void regex_work_begin(struct regex_work *w, size_t text_bytes)
{
	w->allowed_ns = TOKEN_SEARCH_NS + (int64_t)text_bytes * TOKEN_SEARCH_BYTE_NS;
	w->look_ns = clock_ns(CLOCK_MONOTONIC_COARSE) + LOOK_NS;
	w->begun_ns = 0;
}

static pcre2_code *compile(struct str pattern, struct err *e)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *code;
	PCRE2_SIZE at;
	PCRE2_UCHAR text[256];
	int error;

	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	code = pcre2_compile((PCRE2_SPTR)(pattern.p ? pattern.p : ""), pattern.n,
		PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE,
		&error, &at, context);
	pcre2_compile_context_free(context);
	if (!code) {
		pcre2_get_error_message(error, text, sizeof text);
		err_set(e, ERR_PARSE, "regular expression does not compile: %s",
			(const char *)text);
	}
	return code;
}

struct regex *regex_new(struct str pattern, struct err *e)
{
	struct buf rewritten = { .limit = 16 * TOKEN_REGEX_BYTES_MAX };
	struct regex *r = NULL;
	pcre2_code *code;

	if (pattern.n > TOKEN_REGEX_BYTES_MAX) {
		err_set(e, ERR_LIMIT, "regular expression has %zu bytes; at most %d are read",
			pattern.n, TOKEN_REGEX_BYTES_MAX);
		goto done;
	}
	buf_add_text(&rewritten, CALLOUT);
	if (pattern_rewrite(pattern, &rewritten, e))
		goto done;
	buf_add_char(&rewritten, ')');
	if (rewritten.is_over) {
		err_set(e, ERR_LIMIT, "regular expression is too long");
		goto done;
	}
	code = compile(buf_str(&rewritten), e);
	if (!code)
		goto done;
	r = mem_alloc(sizeof *r);
	r->code = code;
	r->has_jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
done:
	buf_release(&rewritten);
	return r;
}

void regex_free(struct regex *r)
{
	if (!r)
		return;
	pcre2_code_free(r->code);
	free(r);
}

struct regex_work *regex_work_new(void)
{
	struct regex_work *w = mem_alloc(sizeof *w);

	w->match = pcre2_match_data_create(1, NULL);
	w->context = pcre2_match_context_create(NULL);
	w->stack = pcre2_jit_stack_create(JIT_STACK_FIRST, JIT_STACK_MAX, NULL);
	assert(w->match && w->context);
	pcre2_set_callout(w->context, on_attempt, w);
	pcre2_set_heap_limit(w->context, TOKEN_SEARCH_HEAP_KB);
	if (w->stack)
		pcre2_jit_stack_assign(w->context, NULL, w->stack);
	return w;
}

void regex_work_free(struct regex_work *w)
{
	if (!w)
		return;
	pcre2_match_data_free(w->match);
	pcre2_match_context_free(w->context);
	pcre2_jit_stack_free(w->stack);
	free(w);
}

int regex_find(const struct regex *r, struct regex_work *w, struct str text, size_t from,
	size_t *start, size_t *end)
{
	PCRE2_SPTR subject = (PCRE2_SPTR)(text.p ? text.p : "");
	const PCRE2_SIZE *span;
	int rc = PCRE2_ERROR_JIT_STACKLIMIT;

	assert(from <= text.n);
	if (r->has_jit)
		rc = pcre2_jit_match(r->code, subject, text.n, from, 0, w->match, w->context);
	if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
		rc = pcre2_match(r->code, subject, text.n, from,
			PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, w->match, w->context);
	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	if (rc < 0)
		return -1;
	span = pcre2_get_ovector_pointer(w->match);
	*start = span[0];
	*end = span[1];
	return 1;
}
