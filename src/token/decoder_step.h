/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/decoder_step.h - what one step of a decoder makes of one text.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "token/regex.h"

/* Where among the tokens a text stands: both bits for the only one, none in the middle. */
#define DECODER_FIRST 1u
#define DECODER_LAST 2u

enum decoder_step_kind {
	DECODER_REPLACE,   /* every text becomes content */
	DECODER_REGEX,     /* every match of regex becomes content */
	DECODER_STRIP,     /* up to start texts at the front and stop at the end vanish */
	DECODER_METASPACE, /* every text becomes a space; in the first token it vanishes */
	DECODER_WORDPIECE, /* a space before tokens that do not begin with text; those lose it */
	DECODER_SUFFIX,    /* every text becomes a space; in the last token it vanishes */
};
struct decoder_step {
	enum decoder_step_kind kind;
	struct str text, content; /* owned by whoever loads (its arena); text is not empty but
	                           * for DECODER_REGEX, and as a WordPiece prefix */
	struct regex *regex;
	size_t start, stop;
	bool is_cleaned;    /* WordPiece: blanks before punctuation and English endings go */
	bool is_first_kept; /* Metaspace: the first token is like any other */
};

struct decoder_step_work {
	size_t bytes_left; /* that all steps may still write */
	size_t text_bytes; /* of all texts together, for the time of regular expressions */
	struct buf text[2];
	unsigned turn; /* the text that was written last */
	struct regex_work *regex;
};
void decoder_step_work_release(struct decoder_step_work *w);

/*
 * Does the steps on one token's text; place: DECODER_FIRST, DECODER_LAST.
 * *text becomes part of what it was, or a text in w. -1 when a regular
 * expression gave up or the text outgrew w's limits.
 */
int decoder_steps_run(const struct decoder_step *step, size_t count, unsigned place,
	struct decoder_step_work *w, struct str *text);
