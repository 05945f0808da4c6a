/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regex.c - the one file of token/ that includes PCRE2.
 *
 * The JIT's machine stack is small and its limit is reached by very long runs of
 * one class; then the same match is made by the interpreter, on the heap.
 */
#include "token/regex.h"

#include <assert.h>
#include <stdbool.h>
#include <time.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "token/pattern.h"

#define JIT_STACK_FIRST (64 << 10)
#define JIT_STACK_MAX (8 << 20)
#define LOOK_NS 10000000 /* between two looks at the thread's CPU time, which cost a system call */

#define ATTEMPTS 8       /* between two looks at the clock; PCRE2's own limit ends each one */

/* In front of every pattern: on_attempt() is called for each place where a match is tried. */
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

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* CLOCK_MONOTONIC_COARSE is a few nanoseconds to read. */
static bool is_late(struct regex_work *w)
{
	int64_t now = w->allowed_ns ? now_ns(CLOCK_MONOTONIC_COARSE) : 0, spent;

	if (now <= w->look_ns)
		return false;
	w->look_ns = now + LOOK_NS;
	spent = now_ns(CLOCK_THREAD_CPUTIME_ID);
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
	w->look_ns = now_ns(CLOCK_MONOTONIC_COARSE) + LOOK_NS;
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
