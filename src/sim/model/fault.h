/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h - deliberate errors of the oracle.
 *
 * One specification is KIND[@TOKEN][=VALUE][:WHEN].
 *   status=503          answers with that HTTP status and an error body
 *   slow-start=500ms    the first token comes that much later
 *   slow-headers=500ms  the head of the response comes in small pieces over that time
 *   slow-body=500ms     the same for the body of an answer that is not streamed
 *   stall@5=2s          pauses before token 5; what follows is that much later
 *   reset@5             resets the connection before token 5
 *   close@5             closes the connection before token 5, in mid-answer
 *   malformed@3         the event with token 3 is cut-off JSON
 *   error-event@4       an error object instead of the event with token 4, then the end
 *   drop-usage          no usage even when asked for
 *   no-done             no final [DONE]
 *   crlf                lines end with CR LF
 *   comments            a comment before every event
 *   split               every event is sent in two halves
 *   coalesce[=2]        that many token events share one send
 *
 * An answer without tokens (pooling) counts as FAULT_PARTS equal parts of its body; malformed then
 * cuts the JSON, whatever its token, and error-event replaces it by an error object.
 *
 * WHEN is a probability (0.1) or id=PATTERN, a request id with the wildcards * and ?; without it
 * every request is hit. Tokens count from 1. Durations take us, ms or s; a bare number is
 * milliseconds.
 *
 * Whether a request is hit depends on the seed and on its own id (or arrival number if it sends
 * none), not on other requests.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/rng/rng.h"

#define FAULTS_MAX 64
#define FAULT_PARTS 4

struct fault {
	unsigned kind;       /* index into the table of fault.c */
	uint32_t token;      /* 0: none given */
	int64_t value;       /* status, nanoseconds or count */
	double probability;
	const char *pattern; /* request ids to hit; NULL: by probability */
	const char *text;    /* the specification, for the truth file */
};

struct fault_set {
	struct fault fault[FAULTS_MAX];
	size_t n;
};

/* The faults of one request; all zero: none. Token numbers of 0 mean never. */
struct fault_plan {
	uint64_t hit;        /* bit per fault of the set */
	uint32_t stall_at, reset_at, close_at, malformed_at, error_at;
	uint32_t coalesce;   /* events per send; 0: one */
	bool is_without_usage, is_without_done, is_crlf, is_commented, is_split;
	int64_t status;
	int64_t slow_ns, slow_head_ns, slow_body_ns;
	int64_t stall_ns;
};

/* Adds one specification; text must outlive the set. ERR_USAGE. */
int fault_add(struct fault_set *set, const char *text, struct err *e);
/* id is NUL-terminated, "" when the request has none. Draws once per probabilistic fault. */
struct fault_plan fault_plan(const struct fault_set *set, const char *id, struct pcg64 *g);
/* True when any of them changes the times of events. */
bool fault_paces(const struct fault_set *set);

/*
 * A deliberate error of a simulated worker: KIND[@QUESTION].
 *
 *   hang          no answer, for ever
 *   killed oom exit=N   the process ends instead of answering
 *   close         it closes the socket and keeps running
 *   garbage       bytes that are not a frame
 *   not-json      a frame that does not hold JSON
 *   oversize      a frame whose length exceeds the limit
 *   cut           half an answer, then the socket's end
 *   wrong-id      the answer to another question
 *   short         one prompt too few in the counts
 *   clock         times from before the question
 *   missing flag model memory unsupported other   an error answer of that category
 *
 * QUESTION is hello, load, describe, render, put, generate, chat, beam, encode, profile_start,
 * profile_stop, mm_stats or shutdown; default: every question that runs a batch.
 */

enum mishap_kind {
	MISHAP_NONE, MISHAP_HANG, MISHAP_CRASH, MISHAP_CLOSE, MISHAP_GARBAGE, MISHAP_NOT_JSON,
	MISHAP_OVERSIZE, MISHAP_CUT, MISHAP_WRONG_ID, MISHAP_SHORT, MISHAP_CLOCK, MISHAP_ANSWER,
};

struct mishap {
	enum mishap_kind kind;
	struct str how;       /* "killed", "exit=3"; category of an error answer; borrowed */
	struct str question;  /* empty: every one that runs a batch */
};

/* text is borrowed; NULL: none. ERR_USAGE names --worker-fault. */
int mishap_read(struct mishap *m, const char *text, struct err *e);
bool mishap_strikes(const struct mishap *m, struct str question);
