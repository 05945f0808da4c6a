/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/normalize.h - what is done to text before it is cut into words.
 *
 * A list of steps, each over the whole text. A step leaves text without anything
 * to change where it is; else it writes into one of two buffers in turn.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "token/charsmap.h"
#include "token/regex.h"
#include "token/spm_normalize.h"

enum normalize_kind {
	NORMALIZE_NFC,
	NORMALIZE_NFD,
	NORMALIZE_NFKC,
	NORMALIZE_NFKD,
	NORMALIZE_PREPEND,       /* content in front of text that is not empty */
	NORMALIZE_REPLACE,       /* content for each literal */
	NORMALIZE_REPLACE_REGEX, /* content for each match of regex */
	NORMALIZE_STRIP,         /* white space at the ends, where from_left, from_right */
	NORMALIZE_LOWER_ASCII,   /* both together: each character by itself */
	NORMALIZE_LOWER_OTHERS,
	NORMALIZE_STRIP_MARKS,      /* of category M */
	NORMALIZE_STRIP_NONSPACING, /* of category Mn */
	NORMALIZE_CLEAN,         /* hidden characters dropped, white space is U+0020 */
	NORMALIZE_SPACE_HAN,     /* U+0020 around each ideograph */
	NORMALIZE_NMT,           /* controls dropped, some characters are U+0020 */
	NORMALIZE_SPELL_BYTES,   /* each byte as token/chars.h spells it */
	NORMALIZE_MAP,           /* clusters and characters by a character map */
	NORMALIZE_SENTENCEPIECE, /* all that a .model file asks for */
};

struct form_cache;

struct normalize_step {
	enum normalize_kind kind;
	bool from_left, from_right;
	struct str literal, content; /* borrowed from the model's arena; literal is not empty */
	struct regex *regex;
	struct charsmap *map;
	struct spm_normalizer *spm;
};

/* Read-only once filled. */
struct normalizer {
	struct normalize_step step[TOKEN_STAGES_MAX];
	size_t count;
};
void normalizer_release(struct normalizer *n); /* accepts a zeroed one */

/* What one thread needs. A zeroed one is ready; text[0].limit holds for all. */
struct normalize_work {
	struct buf text[2];
	struct buf stand_in;
	struct regex_work *regex;
	int32_t *code; /* code points on their way to a normal form */
	size_t code_cap;
	struct form_cache *cache;
	bool has_failed;
};
void normalize_work_release(struct normalize_work *w);

/*
 * Valid UTF-8 in and out. Returns text itself, or a part of it, when nothing else
 * changes, else a text in w. With w->has_failed set, which is otherwise cleared:
 * an empty text, because the result would pass the limit or a regular expression
 * gave up.
 */
struct str normalize(const struct normalizer *n, struct normalize_work *w, struct str text);
