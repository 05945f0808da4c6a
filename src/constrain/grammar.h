/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/grammar.h - grammars of the GBNF kind, and whether a text is one of their sentences.
 *
 *   name ::= alternatives       rules; the start is "root"; a rule ends where the next begins
 *   "text" [a-z] [^a-z] .       literals and sets, escapes \" \\ \n \r \t \xHH \uHHHH \UHHHHHHHH
 *   ( ) | * + ? {m} {m,} {m,n}  groups, alternatives, repeats
 *   # comment                   to the end of the line
 *
 * Any such grammar may be matched, left-recursive and ambiguous ones too: by Earley's algorithm,
 * over code points. Its work is bounded.
 */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "constrain/syntax.h"

#define GRAMMAR_BYTES_MAX (256u << 10)
#define GRAMMAR_RULES_MAX 4096
#define GRAMMAR_SYMBOLS_MAX 200000  /* after repeats were written out */
#define GRAMMAR_ITEMS_MAX 4000000   /* of one match: 32 MB */
#define GRAMMAR_STEPS_MAX 5000000   /* of one match: 0.1 s */

struct grammar;

/* As vLLM decides: EBNF has "::=" in a line outside of comments, all else is taken for Lark. */
bool grammar_is_lark(struct str text);
/* ERR_USAGE with the line. */
struct grammar *grammar_new(struct str text, struct err *e);
void grammar_free(struct grammar *g);
const struct syntax *grammar_root(const struct grammar *g);

enum grammar_answer { GRAMMAR_NO, GRAMMAR_YES, GRAMMAR_GAVE_UP };
enum grammar_answer grammar_matches(const struct grammar *g, struct str text); /* valid UTF-8 */
