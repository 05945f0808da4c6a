/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.h - what to send: samples, and the sessions whose turns they are.
 *
 * Read-only once built; everything is in the workload's arena, except that texts beyond
 * WORKLOAD_MEMORY_BYTES_MAX are in a mapped file without a name in $TMPDIR (default /tmp), which
 * disappears with the workload even if the program crashes. Text prompts are UTF-8 (they may
 * contain U+0000). Everything that is not plain text (token ids, lists of texts, chat messages,
 * media parts, per-request body keys) is carried as JSON text spelled as Python's json.dumps would,
 * so that it goes into a body verbatim.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/*
 * The turns of a session: what each continues and what it waits for.
 *
 * A session is a graph of turns: a conversation is the simplest one, an agent with tool calls has
 * branches and joins. turn[i] is sample i of the workload, for every sample. What a turn adds to
 * its history is the sample's `messages` (a JSON list; assistant messages from the data are
 * included only if no request generates them). History and waits are separate: a join waits for
 * several turns and continues one, and a client with several active conversations waits for its
 * last request and continues another.
 *
 * Invariants: turns of one session are adjacent; a turn comes after those that it waits for and
 * after its history; a turn's history is among the turns that it waits for, directly or indirectly;
 * roots wait for none.
 */
#define TURN_NONE UINT32_MAX

enum turn_gap { TURN_NO_GAP, TURN_THINKS, TURN_CALLS_TOOLS };

struct turn {
	uint32_t session;     /* index into sessions.session */
	uint32_t history;     /* the turn whose history and answer it continues, or TURN_NONE */
	uint32_t wait, n_waits; /* sessions.waits[wait .. wait + n_waits); none: a root */
	uint16_t number;      /* from 0 along the path from the root; branches continue it */
	uint8_t gap_kind;     /* enum turn_gap */
	bool is_gap_from_start; /* due gap_s after the turn before began, but not before it ends */
	bool is_gap_from_arrival; /* the same, after its session's first turn was due */
	double gap_s;         /* due this long after the last of its waits has ended */
};

struct session {
	struct str id;        /* sent to the server (X-Session-ID) and shown in reports */
	uint32_t first, n;    /* its turns */
};

struct sessions {
	struct turn *turn;    /* one per sample */
	uint32_t *waits;      /* turns */
	struct session *session;
	size_t n_turns, n_waits, n_sessions;
};

enum prompt_kind {
	PROMPT_TEXT,      /* prompt is text */
	PROMPT_JSON,      /* prompt is JSON: id list, list of texts, dict... */
};

struct sample {
	struct str prompt;
	enum prompt_kind kind;
	uint32_t prompt_len;      /* tokens, counted by the client */
	int64_t output_len;       /* tokens asked for; -1: null */
	struct str request_id;    /* empty: none */
	double timestamp_s;       /* NAN: none */
	struct str messages;      /* ready-made chat message list (JSON), empty: none */
	struct str media;         /* JSON list of content parts, empty: none */
	struct str overrides;     /* JSON object merged into the body last, empty: none */
	struct str headers;       /* JSON object of headers in addition to the run's, empty: none */
	struct str expected;      /* the data's reference answer, empty: none */
	/*
	 * What the answer must satisfy, for scoring: {"json": SCHEMA}, {"regex": TEXT}, {"choice":
	 * [TEXT...]} or {"grammar": TEXT}; empty: nothing. overrides has the form in which the
	 * server gets it.
	 */
	struct str constraint;
	int64_t priority;         /* its class, when the workload has priorities */
	struct str file;          /* bytes of a file to upload (audio APIs), empty: none */
	const char *file_name;    /* its name there; NULL: none */
	uint32_t sequences;       /* input sequences (pooling); 0 counts as 1 */
	float audio_s;            /* audio in the request */
};

struct spill; /* private: texts in a file */
struct trace_facts;

struct workload {
	struct sample *v;
	size_t n, cap;
	struct arena arena;
	const char *dataset;      /* name, for the report */
	const char *hash;         /* of the file it was read from (data/workload_file.h), or NULL */
	bool is_eos_ignored;      /* --ignore-eos applies: a file's requests were made with it */
	bool is_self_timed;       /* use the samples' times unless --no-self-timed */
	bool has_priorities;      /* samples have priorities; overrides send them to the server */
	struct sessions *sessions; /* in the arena; NULL: every sample is independent */
	struct repeats *repeats;   /* data/repeat.h; in the arena; NULL: no sample is repeated */
	const struct trace_facts *trace; /* in the arena (trace/trace.h); NULL: no trace */
	struct str notes;         /* lines of information for the user; may be empty */
	size_t memory_max;        /* 0: WORKLOAD_MEMORY_BYTES_MAX */
	struct spill *spill;
	struct str mapped;        /* a file that texts point into; see workload_adopt */
};

struct sample *workload_add(struct workload *w); /* a zeroed sample (timestamp NAN) */
/*
 * Replaces *text by a copy that lives as long as the workload: large texts (prompts, media,
 * messages, files) are kept with it. ERR_IO: the file cannot be made or its disk is full.
 */
int workload_keep(struct workload *w, struct str *text, struct err *e);
/* Transfers a mapped file (base/file.h) that texts of w point into to w. At most one. */
void workload_adopt(struct workload *w, struct str mapped);
/*
 * Frees the memory that reading texts of the file has taken; they are read again when next used.
 * Call it now and then (every WORKLOAD_FORGET_BYTES) while walking over all of them. Thread-safe.
 */
#define WORKLOAD_FORGET_BYTES (64u << 20)
void workload_forget(const struct workload *w);
void workload_release(struct workload *w);

/*
 * Builds the sessions of a workload, turn by turn: each session_add_turn follows the workload_add
 * of its sample. A zeroed struct is valid and empty.
 */
struct session_build {
	struct turn *turn;
	uint32_t *waits;
	struct session *session;
	size_t n_turns, n_waits, n_sessions, cap_turns, cap_waits, cap_sessions;
};

/* Begins a session; id must live as long as the workload. */
void session_begin(struct session_build *b, struct str id);
/* Adds a turn to the last session; its number follows from its history, or is 0 without one. */
struct turn *session_add_turn(struct session_build *b, uint32_t history);
/* The last turn also waits for this earlier one; repeating it has no effect. */
void session_wait_for(struct session_build *b, uint32_t turn);
/* Sets w->sessions, in its arena; w has a sample for each turn. b is released. */
void session_finish(struct session_build *b, struct workload *w);
void session_build_release(struct session_build *b);
