/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/workload.h - what to send: the samples every dataset yields.
 *
 * Read-only once built; all memory is in the workload's arena. Text prompts
 * are UTF-8 (they may contain U+0000). Everything that is not plain text (token
 * ids, lists of texts, chat messages, media parts, per-request body keys) is
 * carried as JSON text spelled as Python's json.dumps would, so that it goes
 * into a body verbatim.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

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
	struct str file;          /* bytes of a file to upload (audio APIs), empty: none */
	const char *file_name;    /* its name there; NULL: none */
	uint32_t sequences;       /* input sequences (pooling); 0 counts as 1 */
	float audio_s;            /* audio in the request */
};

struct workload {
	struct sample *v;
	size_t n, cap;
	struct arena arena;
	const char *dataset;      /* name, for the report */
	struct str notes;         /* what the user should know about it, lines; may be empty */
};

struct sample *workload_add(struct workload *w); /* a zeroed sample (timestamp NAN) */
void workload_release(struct workload *w);
