/* SPDX-License-Identifier: Apache-2.0 */
/*
 * truth.h - what the server records: files of JSON lines, its own pacing, the counters of GET
 * /metrics, and for each request what the oracle did and when.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "sim/model/fault.h"

/*
 * A file of JSON lines that never keeps the server waiting.
 *
 * Lines are added to a buffer in memory; sink_flush writes a part of it when the caller has time.
 * The first write error is kept and reported at the end: a full disk does not disturb the pacing,
 * but is not lost either.
 */

/* A zeroed struct is a sink without a file: flush and close do nothing. */
struct truth_sink {
	const char *path;   /* borrowed; NULL: none */
	int fd;
	struct buf lines;
	size_t written;     /* bytes of lines already in the file */
	struct err failure; /* ERR_NONE while all is well */
};

/* Creates or empties the file. option names it in errors ("--truth"). */
int sink_open(struct truth_sink *s, const char *option, const char *path, struct err *e);
/* Writes at most bytes_max bytes; true when more is left. */
bool sink_flush(struct truth_sink *s, size_t bytes_max);
/* Writes the rest; -1 when anything was lost since sink_open. */
int sink_close(struct truth_sink *s, struct err *e);

/*
 * The values of GET /metrics, under vLLM's names.
 *
 * Counters, gauges and histograms are plain fields that the server updates as things happen;
 * counters_write spells them in Prometheus text format. Times are nanoseconds inside and seconds
 * outside.
 */

enum counter_histogram { HIST_TTFT, HIST_ITL, HIST_TPOT, HIST_E2E, HISTS };
enum counter_finish { FINISH_STOP, FINISH_LENGTH, FINISH_ABORT, FINISH_ERROR, FINISHES };

#define COUNTER_BUCKETS_MAX 24

struct histogram {
	uint64_t bucket[COUNTER_BUCKETS_MAX]; /* not cumulative; the last used one is +Inf */
	uint64_t count;
	double sum;
};

#define COUNTER_POSITIONS_MAX 32 /* tokens of one draft */

struct counters {
	uint64_t running, waiting;
	uint64_t prompt_tokens, generation_tokens;
	uint64_t finished[FINISHES];
	uint64_t preemptions;
	uint64_t prefix_queries, prefix_hits;   /* tokens */
	uint64_t external_queries, external_hits; /* tokens, of caches elsewhere (remote.h) */
	uint64_t drafts, draft_tokens, accepted_tokens;
	uint64_t accepted_at[COUNTER_POSITIONS_MAX];
	uint64_t denoising_steps, canvas_positions, committed_tokens;
	size_t positions;       /* of a draft; 0: the counters of drafts are absent */
	bool has_external;      /* otherwise the external ones are absent */
	bool has_diffusion;     /* otherwise its counters are absent */
	double kv_share;        /* of the KV cache in use, 0 to 1 */
	uint64_t kv_blocks, kv_block_tokens; /* of each engine's cache */
	size_t engines;         /* 0 counts as 1 */
	size_t loras_max;       /* adapters in one batch; 0: their gauge is absent */
	struct buf loras_running, loras_waiting; /* names with commas; to be released */
	struct histogram hist[HISTS];
};

void counters_observe(struct counters *c, enum counter_histogram which, int64_t ns);
void counters_write(const struct counters *c, struct str model, struct buf *out);
const char *counters_finish_name(enum counter_finish f);

/*
 * What the oracle did for one request and when, as one JSON line.
 *
 *   request_id     the x-request-id header, or null
 *   recv_ns        kernel stamp of the read that completed the request
 *   send_ns[]      clock just before the send of each event that has choices
 *   tokens[]       tokens in that event (0 for chat's role event)
 *   end_ns         the same for usage, [DONE] and the end of the body; null if not sent
 *   prompt_tokens, cached_tokens (of the prompt, known to the prefix cache),
 *   output_tokens, status
 *   finish         "stop", "length", "abort" (the client left) or "error"
 *   transferred_tokens, transfer_ns  of a prompt's KV cache that came from elsewhere (remote.h):
 *                  how much of it, and how long the request waited for it; absent without
 *   fault          the --fault specifications that hit, or null
 *   choices[]      for each of several choices, and of an answer with a constraint or tool calls:
 *                  output_tokens, finish, constraint ("kept", "broken" on purpose, or null),
 *                  mistake (what was changed, or null), tool_calls and of them malformed;
 *                  absent otherwise
 *
 * Stamps are CLOCK_REALTIME. Rows are filled while a request runs, then queued; spelling and
 * writing happen off the critical path.
 */

struct truth_choice {
	uint32_t output_tokens;
	enum counter_finish finish;
	const char *constraint, *mistake; /* static texts, or NULL */
	uint32_t calls, malformed;
};

/* One event: when it was sent, and its number of tokens. */
struct truth_send { int64_t at_ns; uint32_t tokens; };

struct truth_row {
	struct truth_row *next;
	char *request_id;   /* owned; NULL: none */
	int64_t recv_ns, end_ns;
	struct truth_send *sent;
	size_t events, cap;
	uint32_t prompt_tokens, cached_tokens, output_tokens;
	unsigned status;
	enum counter_finish finish;
	uint32_t transferred_tokens; /* of the prompt, transferred from elsewhere (remote.h) ... */
	int64_t transfer_ns; /* ... and the duration; both are only written if not 0 */
	uint64_t faults;    /* bits of the fault set */
	struct truth_choice *choice;
	size_t choices;
};

/* A zeroed struct with an open or absent sink is a valid empty one. */
struct truth {
	struct truth_sink sink;
	struct truth_row *first, *last; /* ended, not yet written */
	const struct fault_set *faults;
};

struct truth_row *truth_row_new(const char *request_id, int64_t recv_ns);
void truth_row_free(struct truth_row *r);
/* Makes room for about that many events, so that sending need not allocate. */
void truth_expect(struct truth_row *r, uint64_t events);
void truth_event(struct truth_row *r, int64_t at_ns, uint32_t tokens);
/* The outcome of choice number i. */
void truth_choice(struct truth_row *r, size_t i, const struct truth_choice *c);
/* The row's request is over; takes the row. */
void truth_end(struct truth *t, struct truth_row *r);
/* Writes a bounded share; true when more is left. */
bool truth_flush(struct truth *t);
int truth_close(struct truth *t, struct err *e);
