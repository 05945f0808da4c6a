/* SPDX-License-Identifier: Apache-2.0 */
/*
 * truth.h - what the oracle did for one request and when, as one JSON line.
 *
 *   request_id     the x-request-id header, or null
 *   recv_ns        kernel stamp of the read that completed the request
 *   send_ns[]      clock just before the send of each event that has choices
 *   tokens[]       tokens that event carried (0 for chat's role event)
 *   end_ns         likewise for usage, [DONE] and the end of the body; null if not sent
 *   prompt_tokens, cached_tokens (of the prompt, known to the prefix cache),
 *   output_tokens, status
 *   finish         "stop", "length", "abort" (the client left) or "error"
 *   transferred_tokens, transfer_ns  of a prompt's KV cache that came from elsewhere (kv.h): how
 *                  much of it, and how long the request waited for it; absent without
 *   fault          the --fault specifications that hit, or null
 *   choices[]      for each of several choices, and of an answer that kept to a constraint or
 *                  called tools: output_tokens, finish, constraint ("kept", "broken" on purpose, or
 *                  null), mistake (what was done, or null), tool_calls and of them malformed;
 *                  absent otherwise
 *
 * Stamps are CLOCK_REALTIME. Rows are filled while a request runs, then queued;
 * spelling and writing happen off the critical path.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "sim/counters.h"
#include "sim/fault.h"
#include "sim/sink.h"

struct truth_choice {
	uint32_t output_tokens;
	enum counter_finish finish;
	const char *constraint, *mistake; /* static texts, or NULL */
	uint32_t calls, malformed;
};

struct truth_row {
	struct truth_row *next;
	char *request_id;   /* owned; NULL: none */
	int64_t recv_ns, end_ns;
	int64_t *send_ns;
	uint32_t *tokens;
	size_t events, cap;
	uint32_t prompt_tokens, cached_tokens, output_tokens;
	unsigned status;
	enum counter_finish finish;
	uint32_t transferred_tokens; /* of the prompt, brought from elsewhere (kv.h) ... */
	int64_t transfer_ns; /* ... and how long that took; both only written when there are some */
	uint64_t faults;    /* bits of the fault set */
	struct truth_choice *choice;
	size_t choices;
};

/* A zeroed struct with an open or absent sink is a valid empty one. */
struct truth {
	struct sink sink;
	struct truth_row *first, *last; /* ended, not yet spelled out */
	const struct fault_set *faults;
};

struct truth_row *truth_row_new(const char *request_id, int64_t recv_ns);
void truth_row_free(struct truth_row *r);
void truth_event(struct truth_row *r, int64_t at_ns, uint32_t tokens);
/* What became of choice number i. */
void truth_choice(struct truth_row *r, size_t i, const struct truth_choice *c);
/* The row's request is over; takes the row. */
void truth_end(struct truth *t, struct truth_row *r);
/* Spells out and writes a bounded share; true when more is left. */
bool truth_flush(struct truth *t);
int truth_close(struct truth *t, struct err *e);
