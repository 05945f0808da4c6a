/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.h - the content of an answer that is not made of draw.h's words: text that satisfies a
 * constraint, tool calls.
 *
 * A script is the text as the model would have made it, cut into the tokens of the tokenizer, so
 * that counts are correct and the prefix cache finds the answer again. A part is text, the
 * beginning of a call (its name, whose tokens come out together, because a server cannot send part
 * of a name) or the arguments of that call.
 *
 * Tokens may end inside a character; their texts never do.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "input/constrain/constrain.h"
#include "input/token/tokenizer.h"

#define SCRIPT_CALLS_MAX 16
#define SCRIPT_PARTS_MAX (2 * SCRIPT_CALLS_MAX)
#define SCRIPT_CALL_ID_BYTES 48

enum script_kind { SCRIPT_TEXT, SCRIPT_CALL, SCRIPT_ARGUMENTS };

struct script_part {
	enum script_kind kind;
	uint32_t token_end;       /* the part's tokens end before this one */
	uint32_t call;            /* number of its call, from 0 on */
	bool is_malformed;        /* SCRIPT_CALL: its arguments are wrong on purpose */
	size_t name_at, name_n;   /* SCRIPT_CALL: the tool's name in the text */
	char call_id[SCRIPT_CALL_ID_BYTES];
};

/* A zeroed one is empty: the answer is words. */
struct script {
	uint32_t parts;           /* 0: it is empty */
	uint32_t calls;
	struct buf text;
	struct ids ids;
	size_t *end;              /* of each token: bytes of text up to its end */
	size_t end_cap;
	struct script_part *part; /* NULL, or SCRIPT_PARTS_MAX of them */
	/* For the truth file. */
	const char *constraint;   /* "kept", "broken"; NULL: none was requested */
	const char *mistake;      /* what was changed in it, or in the arguments of a call */
};

void script_reset(struct script *s);
void script_release(struct script *s);
/*
 * Appends a part. name: the tool's, must occur in text; empty except for SCRIPT_CALL. ERR_RUN: the
 * tokenizer failed.
 */
int script_add(struct script *s, const struct tokenizer *t, enum script_kind kind, struct str text,
	       struct str name, struct err *e);
/* The text of token i; empty where it ends inside a character. Borrowed. */
struct str script_token(const struct script *s, uint32_t i);
const struct script_part *script_part_of(const struct script *s, uint32_t i);
/* Calls whose names are complete within the first `tokens`, and how many of them are malformed. */
uint32_t script_calls(const struct script *s, uint32_t tokens, uint32_t *malformed);

/*
 * Answers that break a constraint slightly: a missing member, a number as text, an extra letter.
 * Each is one change of a correct answer.
 */

/*
 * Changes answer, which satisfies c, so that it does not; the same seed makes the same mistake.
 * Returns what was changed ("number as text"); NULL: nothing was found that breaks it, and the
 * answer is unchanged.
 */
const char *mistake_make(const struct constraint *c, uint64_t seed, struct buf *answer);
