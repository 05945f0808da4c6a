/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constrain/syntax.h - what a grammar or a pattern says, as a tree, and texts made from it.
 *
 * A tree per rule; rules may refer to each other and to themselves. Everything lives in the
 * arena that the tree was read into. Sets are of code points.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "constrain/pattern.h"

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
uint64_t dice_next(struct dice *d);
uint64_t dice_below(struct dice *d, uint64_t n); /* 0..n-1; n > 0 */

/*
 * Appends a text of the tree, of about so many bytes where it leaves the choice. ERR_RUN: it has
 * none that ends, or only too long ones.
 */
int syntax_sentence(const struct syntax *root, struct dice *d, size_t bytes, struct buf *out,
		    struct err *e);

/* What was appended since out had that length. */
static inline struct str buf_since(const struct buf *out, size_t from)
{
	return out->data ? (struct str){ out->data + from, out->len - from } : STR("");
}
