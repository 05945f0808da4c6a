/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/workload_sessions.h - the sessions of a workload file: who continues and waits for whom, and
 * the gaps between. Private to data/.
 *
 * Bytes, in the machine's order: struct workload_sessions_head; a record per session, then one per
 * turn; the waits (uint32_t: turns); the sessions' ids. Turns are the file's requests in order.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "plan/workload.h"

struct workload_sessions_head {
	uint64_t bytes;      /* of all, with this head */
	uint64_t n_sessions, n_turns, n_waits;
};

void workload_sessions_put(const struct sessions *s, struct buf *out);

/*
 * Reads what content begins with: *bytes of it. out has the first `most` sessions (or all), whose
 * ids point into content. ERR_PARSE: not such bytes, or sessions that cannot be sent (turns that
 * wait for later ones, histories that may not have ended); out is then empty.
 */
int workload_sessions_read(struct str content, size_t most, struct session_build *out,
			   uint64_t *bytes, struct err *e);
