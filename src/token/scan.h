/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/scan.h - well-known regular expressions as hand-written scanners.
 *
 * A scanner gives, for any valid UTF-8, the very words that its expressions cut when
 * they stand in Split stages that keep every match and what lies between; several
 * times as fast as the regex library. It is chosen by the expressions' text, so any
 * other expression, however alike, goes to the library.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define SCAN_PATTERNS_MAX 3 /* stages that one scanner stands for */

struct scan;
struct scanner {
	const char *name;
	const char *pattern[SCAN_PATTERNS_MAX]; /* stage after stage; the rest NULL */
	size_t (*cut)(struct scan *s, struct str *word, size_t room);
	/* What tells expressions of one shape apart; sets of classes (token/classes.h). */
	uint32_t letters, punctuation, upper, lower, whole;
	unsigned digits_max;
	bool has_contractions, has_slash_tail;
};

/* All of them, for tests. */
extern const struct scanner scan_scanners[];
extern const size_t scan_count;

/*
 * The scanner for the first of these stages, or NULL. *used says for how many of them it
 * stands. A line end in an expression may be written as itself or escaped.
 */
const struct scanner *scan_find(const struct str *pattern, size_t count, size_t *used);

/* A text on its way through a scanner. */
struct scan {
	const struct scanner *scanner;
	const uint8_t *at, *end;
	const uint8_t *piece_end; /* for scanners of several stages; at: not known */
};

static inline struct scan scan_begin(const struct scanner *scanner, struct str text)
{
	const uint8_t *p = (const uint8_t *)text.p;

	return (struct scan){ scanner, p, p + text.n, p };
}

/* The next words, up to room (> 0) of them; how many, 0 at the end. */
static inline size_t scan_next(struct scan *s, struct str *word, size_t room)
{
	return s->scanner->cut(s, word, room);
}
