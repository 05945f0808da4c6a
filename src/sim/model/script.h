/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.h - what an answer says where it is not the words of draw.h: text that keeps to a
 * constraint, tool calls.
 *
 * A script is the text as the model would have made it, cut into the tokens of the tokenizer, so
 * that counts stay honest and the prefix cache knows the answer again. Its parts say what a token
 * is for: text, the beginning of a call (name; its tokens come out together, because a server
 * cannot say a name before it is whole) and the arguments of that call.
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
	struct script_part *part; /* SCRIPT_PARTS_MAX of them once there is one */
	/* For the truth file. */
	const char *constraint;   /* "kept", "broken"; NULL: none was asked for */
	const char *mistake;      /* what was done to it, or to the arguments of a call */
};

void script_reset(struct script *s);
void script_release(struct script *s);
/*
 * One more part. name: of the tool, must stand in text; empty but for SCRIPT_CALL. ERR_RUN: the
 * tokenizer gave up.
 */
int script_add(struct script *s, const struct tokenizer *t, enum script_kind kind, struct str text,
	       struct str name, struct err *e);
/* What token i says; empty where it only ends a character that is still to come. Borrowed. */
struct str script_token(const struct script *s, uint32_t i);
const struct script_part *script_part_of(const struct script *s, uint32_t i);
/* Calls whose names are whole within the first so many tokens, and of them those malformed. */
uint32_t script_calls(const struct script *s, uint32_t tokens, uint32_t *malformed);

/*
 * Answers that break a constraint by a little: a member that is missing, a number as
 * text, a letter too many. Each is one change of an answer that was right.
 */

/*
 * Changes answer, which keeps to c, so that it does not; the same seed makes the same mistake.
 * Returns what was done ("number as text"), NULL where nothing was found that breaks it: the
 * answer is then as it was.
 */
const char *mistake_make(const struct constraint *c, uint64_t seed, struct buf *answer);
