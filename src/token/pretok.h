/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/pretok.h - cutting text into words, stage after stage.
 *
 * A stage cuts every piece the stage before it made. Nothing is collected: a
 * piece runs through all later stages as soon as it is cut, and the last stage
 * hands words to the model.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "token/regex.h"

enum pretok_kind {
	PRETOK_REGEX,   /* cut at matches of regex */
	PRETOK_LITERAL, /* cut at literal */
	PRETOK_PREFIX,  /* put a space before a piece that has none; the text is byte-level's */
};
enum pretok_behavior {
	PRETOK_REMOVED, PRETOK_ISOLATED, PRETOK_MERGED_WITH_PREVIOUS, PRETOK_MERGED_WITH_NEXT,
	PRETOK_CONTIGUOUS,
};
struct pretok_stage {
	enum pretok_kind kind;
	enum pretok_behavior behavior;
	bool is_inverted; /* matches and what lies between change roles */
	struct regex *regex;
	struct str literal; /* owned by whoever loads (its arena); not empty */
};
struct pretok {
	struct pretok_stage stage[TOKEN_STAGES_MAX];
	size_t count;
};
void pretok_release(struct pretok *p); /* accepts a zeroed one */

/* What one thread needs. */
struct pretok_work {
	struct regex_work *regex;
	struct buf stand_in, prefixed[TOKEN_STAGES_MAX], prefixed_match[TOKEN_STAGES_MAX];
};

/*
 * Gives the words of valid UTF-8 to take, in order, up to PRETOK_BATCH at a time; they are
 * readable until take returns. -1 when a regular expression gave up.
 */
#define PRETOK_BATCH 256
int pretok_run(const struct pretok *p, struct pretok_work *w, struct str text,
	void (*take)(void *ctx, const struct str *word, size_t count), void *ctx);
