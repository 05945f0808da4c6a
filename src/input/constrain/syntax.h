/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syntax.h - patterns and grammars: matching, their trees, and texts made from these.
 *
 * A tree per rule; rules may refer to each other and to themselves. Everything lives in the
 * arena that the tree was read into. Sets are of code points.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/*
 * Regular expressions of two dialects, by PCRE2.
 *
 * PATTERN_ECMA is JSON Schema's: ECMA-262 with its u flag, where \d and \w are ASCII, \s is any
 * blank of Unicode and $ is the very end. PATTERN_PYTHON is that of re: \d, \w, \s are Unicode's.
 * A compiled pattern is read-only and may be used by any number of threads.
 *
 * Work is bounded without a clock: PCRE2 may take PATTERN_STEPS_MAX steps for all places of a text
 * together, and PATTERN_HEAP_KB of memory. A pattern that needs more gives PATTERN_GAVE_UP.
 */
#define PATTERN_BYTES_MAX 65536
#define PATTERN_STEPS_MAX 5000000
#define PATTERN_STEPS_MIN 2000 /* at each place of a long text */
#define PATTERN_HEAP_KB 65536

enum pattern_dialect { PATTERN_ECMA, PATTERN_PYTHON };
enum pattern_place {
	PATTERN_ANYWHERE, /* some part of the text matches */
	PATTERN_START,    /* the text begins with a match */
	PATTERN_WHOLE,    /* all of the text is one match */
	PATTERN_BEGUN,    /* all of the text is a match, or the beginning of one */
};
enum pattern_answer { PATTERN_NO, PATTERN_YES, PATTERN_GAVE_UP };

struct pattern;

/* ERR_USAGE: the pattern is malformed, or uses what its dialect lacks. */
struct pattern *pattern_new(struct str text, enum pattern_dialect dialect,
			    enum pattern_place place, struct err *e);
void pattern_free(struct pattern *p);
/* text is valid UTF-8. */
enum pattern_answer pattern_matches(const struct pattern *p, struct str text);

#define SYNTAX_DEPTH_MAX 100      /* groups in groups */
#define SYNTAX_UNBOUNDED UINT32_MAX
#define SYNTAX_NO_END UINT32_MAX  /* height of a rule that no text can end */
#define SENTENCE_BYTES_MAX (1u << 20) /* a text that is made */
#define SENTENCE_STEPS_MAX 1000000    /* nodes gone through for it */

struct syntax_range { uint32_t low, high; struct syntax_range *next; };

enum syntax_kind {
	SYNTAX_SET,      /* one code point: in ranges, or in none of them where is_negated */
	SYNTAX_SEQUENCE, /* all children; none: the empty text */
	SYNTAX_CHOICE,   /* one of the children */
	SYNTAX_REPEAT,   /* the one child min to max times */
	SYNTAX_RULE,
};

struct syntax {
	enum syntax_kind kind;
	bool is_negated;
	struct syntax_range *ranges;
	struct syntax *first, *last, *next; /* children; the next of the same parent */
	uint32_t min, max;
	struct syntax_rule *rule;
	uint32_t open;   /* places here and below where a text may be long or short */
	uint32_t height; /* least nesting of a text made here */
};

struct syntax_rule {
	struct str name;
	struct syntax *body; /* NULL: used and not defined */
	uint32_t line;
	uint32_t index;      /* 0, 1, ... in the order they were first named */
	uint32_t height;
	struct syntax_rule *next;
};

/* A pattern or a grammar that is read, and how far. */
struct syntax_reader {
	struct arena *arena;
	const char *p, *end;
	struct err *e;
	unsigned depth;
	bool is_ecma;    /* patterns */
	struct grammar *g; /* grammars: */
	uint32_t line;
	struct map rule; /* name: struct syntax_rule */
	struct syntax_rule *last;
};

/* Moves past the word if it is next. */
bool syntax_take(struct syntax_reader *r, const char *word);
/* Exactly this many hexadecimal digits of a code point (or of half a pair); false: missing. */
bool syntax_hex(struct syntax_reader *r, int digits, uint32_t *code);
/* A decimal number, cut to most; false: there is none. */
bool syntax_count(struct syntax_reader *r, uint32_t most, uint32_t *n);
/* Sequences with | between them; NULL: the reader of one gave NULL. */
struct syntax *syntax_choice(struct syntax_reader *r,
			     struct syntax *(*sequence)(struct syntax_reader *r));

struct syntax *syntax_new(struct arena *a, enum syntax_kind kind);
struct syntax *syntax_code(struct arena *a, uint32_t code); /* exactly that code point */
void syntax_add(struct syntax *parent, struct syntax *child);
void syntax_add_range(struct arena *a, struct syntax *set, uint32_t low, uint32_t high);
bool syntax_has(const struct syntax *set, uint32_t code);

/* The tree of a pattern, for the usual constructs. ERR_RUN: it uses others. */
struct syntax *syntax_of_pattern(struct arena *a, struct str text, enum pattern_dialect dialect,
				 struct err *e);

/* Fills open and height below a tree whose rules are the list (NULL: none); once, before use. */
void syntax_measure(struct syntax *root, struct syntax_rule *rules);

/* Random numbers from a seed; the same on every machine. */
struct dice { uint64_t state; };
uint64_t dice_below(struct dice *d, uint64_t n); /* 0..n-1; n > 0 */

/*
 * Appends a text of the tree, of about this many bytes where it can choose. ERR_RUN: there is no
 * finite one, or only too long ones.
 */
int syntax_sentence(const struct syntax *root, struct dice *d, size_t bytes, struct buf *out,
		    struct err *e);

/* What was appended since out had that length. */
static inline struct str buf_since(const struct buf *out, size_t from)
{
	return out->data ? (struct str){ out->data + from, out->len - from } : STR("");
}

/*
 * Grammars of the GBNF kind, and whether a text is one of their sentences.
 *
 *   name ::= alternatives       rules; the start is "root"; a rule ends where the next begins
 *   "text" [a-z] [^a-z] .       literals and sets, escapes \" \\ \n \r \t \xHH \uHHHH \UHHHHHHHH
 *   ( ) | * + ? {m} {m,} {m,n}  groups, alternatives, repeats
 *   # comment                   to the end of the line
 *
 * Any such grammar may be matched, left-recursive and ambiguous ones too: by Earley's algorithm,
 * over code points. Its work is bounded.
 */
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

/* GRAMMAR_BEGUN: it is none, but the beginning of one. */
enum grammar_answer { GRAMMAR_NO, GRAMMAR_YES, GRAMMAR_BEGUN, GRAMMAR_GAVE_UP };
enum grammar_answer grammar_matches(const struct grammar *g, struct str text); /* valid UTF-8 */
