/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder.h - ids back to text.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "input/encode/regex.h"

/* ---- One step ---- */

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
	struct str text, content; /* owned by the loader (its arena); text is not empty except
				   * for DECODER_REGEX, and as a WordPiece prefix */
	struct regex *regex;
	size_t start, stop;
	bool is_cleaned;    /* WordPiece: blanks before punctuation and English endings go */
	bool is_first_kept; /* Metaspace: the first token is like any other */
};

/* ---- Decoders ---- */

/*
 * A decoder is a list of steps, each of which changes the tokens' texts. A step's result depends
 * only on the token's text and on whether the token is the first or the last one; so the texts are
 * computed once for every id and place (decoder_index), and decoding copies them. Three steps look
 * at neighbors; only one of them, once, can be handled in this way:
 *
 *   ByteLevel    tokens are bytes; invalid UTF-8 in their concatenation becomes U+FFFD
 *   ByteFallback a run of byte tokens that is not UTF-8 becomes one U+FFFD for each
 *   Fuse         joins the tokens into one
 *
 * Steps after it see one text, the whole, which is first and last at once. Steps between
 * ByteFallback and Fuse, and a second step that looks at neighbors, are refused.
 */

struct model;

enum decoder_kind {
	DECODER_SPACED,     /* no decoder at all: tokens with spaces between them */
	DECODER_PLAIN,      /* texts one after the other */
	DECODER_BYTE_RUNS,  /* ByteFallback */
	DECODER_BYTE_LEVEL,
};

/* One id's text in one place: bytes [start, start + length) of the table's text. */
struct decoder_shown {
	uint32_t start;
	uint32_t length : 28;
	uint32_t is_known : 1;   /* else the id names no token */
	uint32_t is_special : 1;
	uint32_t is_byte : 1;    /* the text is one byte of a run */
};

/* Flat, so that a compiled tokenizer can be used where it is mapped. */
struct decoder_table {
	struct decoder_shown *shown; /* [place * id_limit + id] for the places below places */
	size_t count, places;        /* 1: the place does not matter; 2: only whether first; 4 */
	char *text;                  /* VOCAB_SLACK bytes are readable after every token's */
	size_t text_bytes;           /* those included */
	size_t longest;              /* bytes of the longest text */
	bool is_shared;              /* the vocabulary's text in place of this one */
	bool is_borrowed;            /* shown and text belong to another owner */
};
struct decoder {
	enum decoder_kind kind;
	struct decoder_step step[TOKEN_STAGES_MAX];
	size_t token_steps, steps; /* on each token; those and the ones on the whole */
	struct decoder_table table;
};
void decoder_release(struct decoder *d); /* accepts a zeroed one */

/* Makes the table; after vocabulary and added tokens. */
int decoder_index(struct model *m, struct err *e);

/*
 * Appends the text of the ids. is_exact: every token as if it were in the middle, its exact bytes,
 * without steps on neighbors or the whole. -1 when out is over its limit or a regular expression
 * gave up.
 */
int decoder_run(const struct model *m, const uint32_t *ids, size_t n, bool skip_special,
	bool is_exact, struct buf *out);

/* Makes the bytes of out after `from` valid UTF-8, lossily; -1 when it is over its limit. */
int decoder_make_valid(struct buf *out, size_t from);
