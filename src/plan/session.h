/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/session.h - the turns of a session: what each continues and what it waits for.
 *
 * A session is a graph of turns: a conversation is the simplest one, an agent with tool calls
 * has branches and joins. turn[i] is sample i of the workload, for every sample. What a turn
 * adds to its history is the sample's `messages` (a JSON list; of an assistant's message that
 * precedes it in the data, only what no request answers). History and waits are separate: a
 * join waits for several turns and continues one, and a client with several active
 * conversations waits for its last request and continues another.
 *
 * Invariants: turns of one session are adjacent; a turn comes after those that it waits for
 * and after its history; a turn's history is among the turns that it waits for, directly or
 * by way of others; roots wait for none.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define TURN_NONE UINT32_MAX

enum turn_gap { TURN_NO_GAP, TURN_THINKS, TURN_CALLS_TOOLS };

struct turn {
	uint32_t session;     /* index into sessions.session */
	uint32_t history;     /* the turn whose history and answer it continues, or TURN_NONE */
	uint32_t wait, n_waits; /* sessions.waits[wait .. wait + n_waits); none: a root */
	uint16_t number;      /* from 0 along the path from the root; branches go on from it */
	uint8_t gap_kind;     /* enum turn_gap */
	bool is_gap_from_start; /* due gap_s after the turn before began, if that has ended */
	bool is_gap_from_arrival; /* likewise, after its session's first turn was due */
	double gap_s;         /* due so long after the last of its waits has ended */
};

struct session {
	struct str id;        /* as the server is told it (X-Session-ID), and reports show it */
	uint32_t first, n;    /* its turns */
};

struct sessions {
	struct turn *turn;    /* one per sample */
	uint32_t *waits;      /* turns */
	struct session *session;
	size_t n_turns, n_waits, n_sessions;
};
