/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mishap.h - how a simulated worker goes wrong on purpose: KIND[@QUESTION].
 *
 *   hang          no answer, for ever
 *   killed oom exit=N   the process ends instead of answering
 *   close         it closes the socket and stays
 *   garbage       bytes that are no frame
 *   not-json      a frame that holds no JSON
 *   oversize      a frame that says to be longer than any may be
 *   cut           half an answer, then the socket's end
 *   wrong-id      the answer to another question
 *   short         one prompt too few in the counts
 *   clock         times from before the question
 *   missing flag model memory unsupported other   an error answer of that category
 *
 * QUESTION is hello, load, describe, render, put, generate, chat, beam, encode, profile_start,
 * profile_stop, mm_stats or shutdown; default: whatever runs a batch.
 */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

enum mishap_kind {
	MISHAP_NONE, MISHAP_HANG, MISHAP_CRASH, MISHAP_CLOSE, MISHAP_GARBAGE, MISHAP_NOT_JSON,
	MISHAP_OVERSIZE, MISHAP_CUT, MISHAP_WRONG_ID, MISHAP_SHORT, MISHAP_CLOCK, MISHAP_ANSWER,
};

struct mishap {
	enum mishap_kind kind;
	struct str how;       /* "killed", "exit=3"; of an answer the category; borrowed */
	struct str question;  /* empty: whatever runs a batch */
};

/* text is borrowed; NULL: none. ERR_USAGE names --worker-fault. */
int mishap_read(struct mishap *m, const char *text, struct err *e);
bool mishap_strikes(const struct mishap *m, struct str question);
