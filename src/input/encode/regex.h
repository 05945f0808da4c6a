/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regex.h - a compiled regular expression of a tokenizer.json (PCRE2, JIT).
 *
 * struct regex is read-only after regex_new and shared between threads; each
 * thread matches with a struct regex_work of its own.
 */
#pragma once
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct regex;
struct regex_work;

/* The pattern as it is in the file. NULL with ERR_PARSE. */
struct regex *regex_new(struct str pattern, struct err *e);
void regex_free(struct regex *r);

struct regex_work *regex_work_new(void);
/*
 * Begins a text of this many bytes: all searches in it together may take TOKEN_SEARCH_NS of the
 * thread's CPU time and TOKEN_SEARCH_BYTE_NS for each byte, including the thread's work between
 * them. Expressions from files can take exponential time. Without this call there is no limit.
 */
void regex_work_begin(struct regex_work *w, size_t text_bytes);
void regex_work_free(struct regex_work *w);

/*
 * The leftmost match in valid UTF-8 that begins at `from` or later: 1 and its span, 0 when there is
 * none, -1 when it gave up (a pattern that needs more memory, steps or time than allowed).
 */
int regex_find(const struct regex *r, struct regex_work *w, struct str text, size_t from,
	size_t *start, size_t *end);

/* ---- Patterns rewritten ---- */

/*
 * Regular expressions of tokenizer.json files, rewritten for PCRE2.
 *
 * The files are written for Oniguruma in Ruby syntax. The two libraries differ in the following,
 * which is spelled out: \s (White_Space only), \w and \b (marks and connectors are word
 * characters), \d, script names (the script, not its extensions), [A&&[^B]], nested classes, and
 * X{n,m}+ or X{n}? (a second quantifier over the first). Anything that cannot be converted exactly
 * is an error naming the construct.
 */

int pattern_rewrite(struct str pattern, struct buf *out, struct err *e);
