/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/workload.h - what to send: the samples every dataset yields.
 *
 * Read-only once built; everything is in the workload's arena, or, of texts beyond
 * WORKLOAD_MEMORY_BYTES_MAX, in a file without a name in $TMPDIR (default /tmp) that is
 * mapped: it ends with the workload, whatever becomes of the program. Text prompts
 * are UTF-8 (they may contain U+0000). Everything that is not plain text (token
 * ids, lists of texts, chat messages, media parts, per-request body keys) is
 * carried as JSON text spelled as Python's json.dumps would, so that it goes
 * into a body verbatim.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "plan/session.h"

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
	struct str headers;       /* JSON object of headers beside the run's, empty: none */
	struct str expected;      /* the answer that the data has for it, empty: none */
	/*
	 * What the answer has to be, for scoring: {"json": SCHEMA}, {"regex": TEXT},
	 * {"choice": [TEXT...]} or {"grammar": TEXT}; empty: nothing. How the server is told
	 * stands in overrides.
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
	bool is_eos_ignored;      /* --ignore-eos holds: a file's requests were made with it */
	bool is_self_timed;       /* likewise: sent at the samples' times unless --no-self-timed */
	bool has_priorities;      /* samples have classes; overrides tell the server */
	struct sessions *sessions; /* in the arena; NULL: every sample stands alone */
	struct repeats *repeats;   /* data/repeat.h; in the arena; NULL: no sample is repeated */
	const struct trace_facts *trace; /* in the arena (data/trace.h); NULL: no trace */
	struct str notes;         /* what the user should know about it, lines; may be empty */
	size_t memory_max;        /* 0: WORKLOAD_MEMORY_BYTES_MAX */
	struct spill *spill;
	struct str mapped;        /* a file whose texts are used; see workload_adopt */
};

struct sample *workload_add(struct workload *w); /* a zeroed sample (timestamp NAN) */
/*
 * Replaces *text by a copy that stays as long as the workload: what may be large (prompts,
 * media, messages, files) is kept with it. ERR_IO: the file cannot be made or its disk is full.
 */
int workload_keep(struct workload *w, struct str *text, struct err *e);
/* A mapped file (base/file.h) that texts of w point into is w's from now on. One at most. */
void workload_adopt(struct workload *w, struct str mapped);
/*
 * Gives back the memory that reading texts of the file has taken; they are read again
 * when next looked at. To be called now and then (every WORKLOAD_FORGET_BYTES) by
 * who walks over all of them. Thread-safe.
 */
#define WORKLOAD_FORGET_BYTES (64u << 20)
void workload_forget(const struct workload *w);
void workload_release(struct workload *w);
