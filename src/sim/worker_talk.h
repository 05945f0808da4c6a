/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_talk.h - what the files of the simulated worker share, and nobody else.
 *
 *   worker.c          the talk: frames, questions, answers; loading
 *   worker_run.c      the questions that run a batch, and what they cost
 *   worker_account.c  --account, and the traces of the profiler
 */
#pragma once
#include "base/buf.h"
#include "json/read.h"
#include "sim/batch.h"
#include "sim/dist.h"
#include "sim/encoder.h"
#include "sim/mishap.h"
#include "sim/requests.h"
#include "sim/worker.h"
#include "token/tokenizer.h"

/* Times of a request's media, until mm_stats asks. */
struct media_stat {
	uint64_t id;
	struct media_times times;
};


struct talk {
	const struct sim_worker_host *host;
	int fd;
	struct buf in, out;
	struct buf members;      /* of the answer being made: ",\"n\":1" */
	const char *category;    /* of the error being made; NULL: by its code */
	struct mishap mishap;

	bool is_loaded;
	bool has_media_stats;    /* times of media will be asked for */
	struct sim_model model;
	struct tokenizer *tokenizer;
	struct dist output_len;  /* where answers end by themselves, with --output-len */
	struct pcg64 rng;
	struct batch_engine engine;
	struct encoder encoder;
	struct requests requests;
	uint64_t served;         /* requests so far; their ids count from 0 */
	int64_t died_ns;         /* CLOCK_MONOTONIC; when --die-after strikes; 0: never */
	bool is_dead;

	struct media_stat *stat;
	size_t stats, stats_cap;
	bool is_profiling;
	int64_t profile_base_ns; /* CLOCK_MONOTONIC; the batch's begin */
	int64_t *step;           /* ends of steps while the profiler runs, CLOCK_MONOTONIC */
	size_t steps, steps_cap;
};

/* A batch as it was run, for the answer and the account. */
struct worker_outcome {
	const char *question;
	struct batch_item *item; /* of each request: tokens, known, first_ns, last_ns */
	int64_t *begin_ns;       /* when each was begun with, after the begin */
	size_t n;
	uint64_t prompt_tokens, output_tokens, known_tokens, lora, media;
	double frontend_s;       /* templates, tokens, media */
	struct batch_sum sum;
	int64_t began_ns, ended_ns; /* CLOCK_MONOTONIC */
	int64_t modelled_ns;     /* from the begin to the end, as modelled */
};

/* ---- worker.c ---- */
int talk_progress(struct talk *t, uint64_t done, uint64_t total);

/* ---- worker_run.c ---- */
int run_question(struct talk *t, struct str question, struct json_slice frame, struct err *e);

/* ---- worker_account.c ---- */
void account_load(const struct talk *t, int64_t began_ns, int64_t ended_ns);
void account_run(const struct talk *t, const struct worker_outcome *o);
void profile_step(struct talk *t, int64_t end_ns); /* after the batch's begin */
/* Writes the trace; ERR_IO names the file. */
int profile_write(struct talk *t, struct err *e);
