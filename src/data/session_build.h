/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/session_build.h - sessions of a workload, made turn by turn. Private to data/.
 *
 * Each session_add_turn follows the workload_add of its sample. Zeroed is a valid empty one.
 */
#pragma once
#include "plan/workload.h"

struct session_build {
	struct turn *turn;
	uint32_t *waits;
	struct session *session;
	size_t n_turns, n_waits, n_sessions, cap_turns, cap_waits, cap_sessions;
};

/* Begins a session; id must stay as long as the workload. */
void session_begin(struct session_build *b, struct str id);
/* A turn of the last session, whose number follows from its history, or, without, is 0. */
struct turn *session_add_turn(struct session_build *b, uint32_t history);
/* The last turn also waits for this one, which is before it; a second time has no effect. */
void session_wait_for(struct session_build *b, uint32_t turn);
/* w->sessions, in its arena; w has a sample for each turn. b is released. */
void session_finish(struct session_build *b, struct workload *w);
void session_build_release(struct session_build *b);
