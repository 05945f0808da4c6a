/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pretok.h - cutting text into words: scanners for well-known expressions, and stages.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/limits.h"
#include "core/base/str.h"
#include "input/encode/regex.h"

/* ---- Scanners ---- */

/*
 * Well-known regular expressions as hand-written scanners.
 *
 * For any valid UTF-8 a scanner gives exactly the words that its expressions cut in Split stages
 * that keep every match and the text between; several times as fast as the regex library. It is
 * chosen by the expressions' text, so any other expression, however similar, goes to the library.
 */

#define SCAN_PATTERNS_MAX 3 /* stages that one scanner replaces */

struct scan;
struct scanner {
	const char *name;
	const char *pattern[SCAN_PATTERNS_MAX]; /* stage after stage; the rest NULL */
	size_t (*cut)(struct scan *s, struct str *word, size_t room);
	/* What distinguishes expressions of one shape; sets of classes (encode/chars.h). */
	uint32_t letters, punctuation, upper, lower, whole;
	unsigned digits_max;
	bool has_contractions, has_slash_tail;
};

/* All of them, for tests. */
extern const struct scanner scan_scanners[];
extern const size_t scan_count;

/*
 * The scanner for the first of these stages, or NULL; *used: how many of them it replaces. A line
 * end in an expression may be written as itself or escaped.
 */
const struct scanner *scan_find(const struct str *pattern, size_t count, size_t *used);

/* A text that a scanner is cutting. */
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

/* ---- Stages ---- */

/*
 * A stage cuts every piece of the previous stage, or rewrites it. Nothing is collected: a piece
 * runs through all later stages as soon as it is cut, and the last stage hands words to the model.
 *
 * Byte-level models take words as plain bytes, so the stage that spells bytes as characters is only
 * present when another follows, which then sees the same characters as in the reference; its words
 * are turned back into bytes.
 */

enum pretok_kind {
	PRETOK_SCAN,      /* cut by scanner, every span a word */
	PRETOK_REGEX,     /* cut at matches of regex */
	PRETOK_LITERAL,   /* cut at text */
	PRETOK_CHARS,     /* cut at characters of chars */
	PRETOK_WORDS,     /* cut at \w+|[^\w\s]+ */
	PRETOK_LENGTH,    /* cut after every length characters */
	PRETOK_PREFIX,    /* put a space before a piece that has none */
	PRETOK_METASPACE, /* write text for every space, and before a piece that has none */
	PRETOK_SPELL,     /* write every byte as its character (encode/chars.h) */
};
enum pretok_behavior {
	PRETOK_REMOVED, PRETOK_ISOLATED, PRETOK_MERGED_WITH_PREVIOUS, PRETOK_MERGED_WITH_NEXT,
	PRETOK_CONTIGUOUS,
};
enum pretok_prepend { PRETOK_ALWAYS, PRETOK_FIRST, PRETOK_NEVER };

struct pretok_stage {
	enum pretok_kind kind;
	enum pretok_behavior behavior;
	enum pretok_prepend prepend;
	bool is_inverted; /* matches and the text between change roles */
	const struct scanner *scanner;
	struct regex *regex;
	struct str text; /* owned by the loader (its arena); not empty */
	bool (*chars)(uint32_t cp);
	uint64_t ascii[2]; /* chars below 128, a bit each */
	size_t length; /* > 0 */
};
struct pretok {
	struct pretok_stage stage[TOKEN_STAGES_MAX];
	size_t count;
};
void pretok_release(struct pretok *p); /* accepts a zeroed one */

/* What one thread needs; zeroed before, or made to hold at most bytes_max in each buffer. */
struct pretok_work {
	size_t bytes_left; /* that stages may still write, where has_begun */
	size_t text_bytes; /* of the whole text */
	bool has_begun, has_grown; /* has_grown: why the last run failed */
	struct regex_work *regex;
	struct buf text[TOKEN_STAGES_MAX]; /* what a stage wrote, or characters' substitutes */
};
void pretok_work_init(struct pretok_work *w, size_t bytes_max);
void pretok_work_release(struct pretok_work *w);

/*
 * The following texts are pieces of one of this many bytes: its limits hold for all together. A run
 * without this call takes its text for the whole.
 */
void pretok_begin(struct pretok_work *w, size_t text_bytes);
/* Says why a run failed; returns -1. */
int pretok_explain(const struct pretok_work *w, struct err *e);

/*
 * Passes the words of valid UTF-8 to take, in order, up to PRETOK_BATCH at a time; they are
 * readable until take returns. is_start: the text is at the start of the input, whose first word
 * some stages treat differently. -1 when a regular expression gave up or a text outgrew its buffer.
 */
#define PRETOK_BATCH 256
int pretok_run(const struct pretok *p, struct pretok_work *w, struct str text, bool is_start,
	void (*take)(void *ctx, const struct str *word, size_t count), void *ctx);
