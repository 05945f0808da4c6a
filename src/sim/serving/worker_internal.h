/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_internal.h - shared only by the files of the simulated worker:
 *
 *   worker.c      frames, questions, answers; loading; --account, and the traces of the profiler
 *   worker_run.c  the questions that run a batch, and their cost
 *   requests.c    the requests of a question
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/token/tokenizer.h"
#include "sim/model/draw.h"
#include "sim/model/encoder.h"
#include "sim/model/fault.h"
#include "sim/serving/batch.h"
#include "sim/serving/worker.h"

/* The next frame's body; 1, 0 at the end of the stream, -1: an end inside a frame, too long. */
int wire_read(int fd, struct buf *body, struct err *e);
/* -1: the other end is closed. */
int wire_write(int fd, struct str body, struct err *e);

/*
 * The prompts that a worker was given ("put"), and their numbers of tokens.
 *
 * A prompt is a text, token ids, or messages; media are listed separately or are parts of the
 * messages. In a chat a text or ids become one user message. Counting is outside of every
 * measurement and is done once, until the prompts or the kind of question change.
 */

enum request_kind { REQUEST_TEXT, REQUEST_IDS, REQUEST_MESSAGES };

struct request {
	enum request_kind kind;
	size_t at, n;           /* in text (bytes) or in given (ids) */
	size_t media_at, media_n;
	int64_t output;         /* output_len; -1: until the engine ends it */
	bool has_lora;
	uint32_t lora;          /* its adapter, a number for each id from 1 on; 0: none */
	int64_t priority;       /* 0: none was given */
	/* By requests_count: */
	size_t tokens_at;       /* in tokens */
	uint32_t tokens;        /* of the prompt, those of media included */
	uint32_t text_tokens;   /* of them, those of the text */
};

/* A zeroed struct is a valid empty one. */
struct requests {
	struct request *request;
	size_t n, cap;
	struct buf text;
	struct ids given, tokens;
	struct media_item *media;
	size_t media_n, media_cap;
	bool is_counted, is_chat; /* the kind of question that tokens are for */
};

void requests_release(struct requests *r);
/* A put frame's members is_first and requests. ERR_PARSE names what is wrong. */
int requests_put(struct requests *r, struct json_slice frame, struct err *e);
/* Fills tokens of all. ERR_RUN: a prompt without a token, or one that cannot be tokenized. */
int requests_count(struct requests *r, const struct tokenizer *t, bool is_chat, struct err *e);

/* Times of a request's media, kept until mm_stats is asked. */
struct media_stat {
	uint64_t id;
	struct media_times times;
};

struct worker_talk {
	const struct sim_worker_host *host;
	int fd;
	struct buf in, out;
	struct buf members;      /* of the answer being made: ",\"n\":1" */
	const char *category;    /* of the error being made; NULL: by its code */
	struct mishap mishap;

	bool is_loaded;
	bool has_media_stats;    /* mm_stats will be asked */
	struct sim_model model;
	struct tokenizer *tokenizer;
	struct dist output_len;  /* where answers end by themselves, with --output-len */
	struct pcg64 rng;
	struct batch_engine engine;
	struct encoder encoder;
	struct requests requests;
	uint64_t served;         /* requests so far; their ids count from 0 */
	int64_t died_ns;         /* CLOCK_MONOTONIC of the end by --die-after; 0: never */
	bool is_dead;

	struct media_stat *stat;
	size_t stats, stats_cap;
	bool is_profiling;
	int64_t profile_base_ns; /* CLOCK_MONOTONIC; the batch's begin */
	int64_t *step;           /* ends of steps while the profiler runs, CLOCK_MONOTONIC */
	size_t steps, steps_cap;
};

/* A batch that was run, for the answer and the account. */
struct worker_outcome {
	const char *question;
	struct batch_item *item; /* of each request: tokens, known, first_ns, last_ns */
	int64_t *begin_ns;       /* when each was begun, after the begin */
	size_t n;
	uint64_t prompt_tokens, output_tokens, known_tokens, lora, media;
	double frontend_s;       /* templates, tokens, media */
	struct batch_sum sum;
	int64_t began_ns, ended_ns; /* CLOCK_MONOTONIC */
	int64_t modelled_ns;     /* from the begin to the end, as modelled */
};

/* ---- worker.c ---- */
int talk_progress(struct worker_talk *t, uint64_t done, uint64_t total);

/* ---- worker_run.c ---- */
int run_question(struct worker_talk *t, struct str question, struct json_slice frame,
		 struct err *e);

/* ---- worker.c: account and traces ---- */
void account_run(const struct worker_talk *t, const struct worker_outcome *o);
void profile_step(struct worker_talk *t, int64_t end_ns); /* after the batch's begin */
/* Writes the trace; ERR_IO names the file. */
int profile_write(struct worker_talk *t, struct err *e);
