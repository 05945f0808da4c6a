/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h - the conversation before a request: the messages of the entries that it continues
 * (plan_entry.history), each followed by the server's answer in this run, never by the dataset's
 * answer.
 *
 * An answer's text is not copied: the record keeps it until the run is over. Kept here is what the
 * record does not have: tool calls with their results, answers of an earlier run (a warm-up), and
 * the token by which a router finds a session's server.
 *
 * Threads: history_ended of an entry precedes any call about entries that wait for it (the driver
 * ensures that); calls about different entries may run at once.
 */
#pragma once
#include "client/plan/plan.h"
#include "client/plan/workload.h"
#include "client/record/record.h"

/* All borrowed, and in use until history_free. */
struct history_opts {
	const struct plan *plan;
	const struct workload *workload;
	const struct record *record;
	uint32_t first_row;         /* the row of entry 0 */
	uint32_t tool_result_words; /* of the generated result of a tool call; 0:
				     * TOOL_RESULT_WORDS */
	bool is_bad_call_failure;   /* a call with malformed arguments fails the request; else {} */
	const char *token_header;   /* whose value the session's next requests repeat; NULL: none */
};

struct history;

struct history *history_new(const struct history_opts *o);
void history_free(struct history *h);

/*
 * Writes what is sent for an entry into the empty out: a JSON list of its history's messages and
 * answers, then its own sample's messages (or its prompt). A failed entry's answer is empty.
 */
void history_messages(const struct history *h, uint32_t entry, struct buf *out);

/* Sets the answer of an entry that this run does not send, JSON-escaped as by record_text_of. */
void history_set_answer(struct history *h, uint32_t entry, struct str escaped);

/*
 * As prepared.ended (load/load.h): keeps the token, and the tool calls, each answered by a message
 * with its id. 1: a call's arguments are not a JSON object and were replaced by {}; -1: the same,
 * with is_bad_call_failure.
 */
int history_ended(struct history *h, uint32_t entry, const struct request_row *row,
		  struct str head, struct str calls, struct err *e);

/* The router's token that an entry has to repeat; empty: none. */
struct str history_token(const struct history *h, uint32_t entry);
