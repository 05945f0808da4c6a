/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c - see pattern.h; the one file of constrain/ that includes PCRE2. */
#include "constrain/pattern.h"

#include <assert.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"
#include "constrain/rewrite.h"

struct pattern {
	pcre2_code *code;
	bool has_jit;
	bool is_anchored;
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
	if (rewrite_pattern(text, dialect, &rewritten, e) == 0 &&
	    (code = compile(buf_str(&rewritten), options, e)) != NULL) {
		p = mem_alloc(sizeof *p);
		p->code = code;
		p->has_jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
		p->is_anchored = place != PATTERN_ANYWHERE;
	}
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

/* PCRE2 counts steps anew at each place where it tries a match. */
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
		rc = pcre2_match(p->code, subject, text.n, 0, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
			match, context);
	pcre2_match_data_free(match);
	pcre2_match_context_free(context);
	if (rc == PCRE2_ERROR_NOMATCH)
		return PATTERN_NO;
	return rc < 0 ? PATTERN_GAVE_UP : PATTERN_YES;
}
