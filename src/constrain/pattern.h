/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/pattern.h - regular expressions of two dialects, by PCRE2.
 *
 * PATTERN_ECMA is JSON Schema's: ECMA-262 with its u flag, where \d and \w are ASCII, \s is any
 * blank of Unicode and $ is the very end. PATTERN_PYTHON is that of re: \d, \w, \s are Unicode's.
 * A compiled pattern is read-only and may be used by any number of threads.
 *
 * Work is bounded without a clock: PCRE2 may take PATTERN_STEPS_MAX steps for all places of a text
 * together, and PATTERN_HEAP_KB of memory. A pattern that needs more gives PATTERN_GAVE_UP.
 */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

#define PATTERN_BYTES_MAX 65536
#define PATTERN_STEPS_MAX 5000000
#define PATTERN_STEPS_MIN 2000 /* at each place of a long text */
#define PATTERN_HEAP_KB 65536

enum pattern_dialect { PATTERN_ECMA, PATTERN_PYTHON };
enum pattern_place {
	PATTERN_ANYWHERE, /* some part of the text matches */
	PATTERN_START,    /* the text begins with a match */
	PATTERN_WHOLE,    /* all of the text is one match */
};
enum pattern_answer { PATTERN_NO, PATTERN_YES, PATTERN_GAVE_UP };

struct pattern;

/* ERR_USAGE: the pattern is none, or uses what its dialect lacks. */
struct pattern *pattern_new(struct str text, enum pattern_dialect dialect,
			    enum pattern_place place, struct err *e);
void pattern_free(struct pattern *p);
/* text is valid UTF-8. */
enum pattern_answer pattern_matches(const struct pattern *p, struct str text);
