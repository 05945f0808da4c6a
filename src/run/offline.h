/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/offline.h - an inference engine without clients: batches in, times and counts out.
 *
 * What stands behind it is a driver (struct offline_driver): a worker program over a socket pair
 * (offline_worker.c: vllm, hf, llama, sim, anybody's), or a server of which all requests are asked
 * at once (offline_http.c). The verbs (throughput, latency, startup, mm-processor) know this header
 * alone.
 *
 * Order: offline_start, offline_render any number of times, offline_load, then
 * offline_put and offline_run, which may be repeated on the same batch; offline_stop always.
 *
 * Time is taken by the engine's side around the engine's call, on CLOCK_MONOTONIC: handing over
 * prompts and reading counts are outside. We take the time of the question and of the
 * answer, too: what the engine's side claims must lie between (else ERR_RUN).
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "plan/workload.h"

struct offline_opts; /* run/offline_opts.h: what the four verbs have in common */

/* All may be NULL. Texts without a newline. */
struct offline_hooks {
	void *self;
	void (*line)(void *self, const char *text);
	void (*warn)(void *self, const char *text);
	/* what: "Loading the engine", "Warmup iterations", ...; total 0: unknown. */
	void (*progress)(void *self, const char *what, uint64_t done, uint64_t total);
	/* What --output-json would hold, of what was measured; latency and throughput. */
	void (*result)(void *self, struct str json);
	const atomic_bool *cancel; /* set: calls end with ERR_CANCELLED */
};

struct offline_start {
	const struct offline_opts *opts;
	char *const *engine_argv;   /* the engine's own arguments, ended by NULL */
	char *const *env;           /* "NAME=VALUE" added to ours, ended by NULL; may be NULL */
	const char *backend;        /* as the worker is told: "vllm", "vllm-chat", "hf", "sim" */
	bool is_async;              /* the engine's asynchronous interface */
	bool is_compiled;           /* --hf-enable-torch-compile */
	bool wants_mm_stats;        /* offline_mm_stats will be asked */
	const char *log_name;       /* of the engine's log file; NULL: the verb's name */
	struct offline_hooks hooks;
};

/* What the engine is; texts live until offline_stop. */
struct offline_about {
	const char *engine, *version; /* "vllm", "0.32.0"; "" unknown */
	int64_t max_model_len;        /* 0: unknown */
	bool is_pooling;              /* a model that embeds or scores */
	bool has_chat, has_beam, has_encode, has_async, has_prequeue, has_profile, has_lora;
	bool has_render, has_mm_stats;
	bool has_priority, has_sampling; /* of each request, its own */
	const char *device;           /* "cpu", "NVIDIA H100 80GB HBM3"; "" unknown */
	const char *profile_to;       /* "torch", "cuda", "proton", "" */
	const char *profile_dir;      /* or "" */
	const char *method;           /* "in-process", "managed server", "simulated" */
	struct str json;              /* all the driver says of it, a JSON object; may be empty */
};

/* Seconds; NAN: not told. */
struct offline_loaded {
	double spawn_s;      /* from the program's start to its first word: interpreter, imports */
	double load_s;       /* building the engine, by its own clock */
	double ready_s;      /* from the program's start until it can be asked, by ours */
	double compilation_s, encoder_compilation_s;
	struct offline_phase { const char *name; double s; } *phase; /* by the engine or its log */
	size_t n_phases;
};

enum offline_method { OFFLINE_GENERATE, OFFLINE_CHAT, OFFLINE_BEAM, OFFLINE_ENCODE };

struct offline_batch {
	const struct workload *w;  /* stays until the next put or the stop */
	const uint32_t *index;     /* of the samples, in order; NULL: all of w */
	size_t n;
	const int32_t *lora;       /* per entry, from 1; 0: none; NULL: none at all */
	const char *lora_path;
	bool is_without_priorities; /* those of the samples are not handed over */
};

struct offline_run {
	enum offline_method method;
	int64_t n;                 /* sequences for each prompt, or the beam's width */
	double temperature, top_p;
	bool ignore_eos, detokenize;
	bool is_prequeued, is_profiled; /* starting and stopping the profiler is inside the clock */
	const char *id_prefix;     /* "test", "warmup" */
	int64_t batch_max;         /* --hf-max-batch-size; 0: none */
	bool is_one_call;          /* one list to a server (latency), not a request a prompt */
	const char *progress;      /* what progress is called; NULL: not shown */
};

/* Of the batch that ran. Arrays have the batch's n entries; NULL: not told. */
struct offline_outcome {
	double elapsed_s;
	int64_t began_ns, ended_ns;  /* CLOCK_MONOTONIC */
	double outside_s;            /* between question and answer, and not elapsed_s */
	bool has_counts;
	uint64_t prompt_tokens, output_tokens;
	uint64_t cached_tokens;      /* of the prompts', when cached is told */
	size_t n, finished;
	uint32_t *prompt, *output;   /* tokens; output over all sequences of a prompt */
	uint32_t *cached;            /* of the prompt's tokens, those that a prefix cache had */
	double *e2el_s, *ttft_s, *queue_s; /* NAN where not told; queue: until it was scheduled */
	bool *is_finished;
	struct arena arena;
};
void offline_outcome_release(struct offline_outcome *o);

struct offline;

/* -1 with e: ERR_USAGE exit 2 for what the user can mend on the command line, else ERR_RUN. */
int offline_start(const struct offline_start *how, struct offline **out, struct err *e);
/* What is known after the start; more of it after the load. */
const struct offline_about *offline_about(const struct offline *o);
/* What the engine's chat template makes of messages (JSON list); tools: JSON list or empty. */
int offline_render(struct offline *o, struct str messages, struct str tools, struct buf *text,
		   struct err *e);
/* Whether such runs are possible, by what the engine has said of itself so far; else e says it. */
int offline_can(const struct offline *o, const struct offline_run *run, struct err *e);
int offline_load(struct offline *o, struct offline_loaded *out, struct err *e);
int offline_put(struct offline *o, const struct offline_batch *batch, struct err *e);
int offline_run(struct offline *o, const struct offline_run *run, struct offline_outcome *out,
		struct err *e);
/*
 * Times of the stages of multimodal preprocessing since last asked, which are forgotten by it: a
 * JSON object, request id -> {"get_mm_hashes_secs": s, ...}, appended to out.
 */
int offline_mm_stats(struct offline *o, struct buf *out, struct err *e);
/* Ends the engine and all it started, and frees o; accepts NULL. -1: something is left. */
int offline_stop(struct offline *o, struct err *e);

/* One for each kind of engine; NULL members: it cannot. state is the driver's own. */
struct offline_driver {
	const char *name;
	int (*start)(const struct offline_start *how, void **state, struct offline_about *about,
		     struct err *e);
	int (*render)(void *state, struct str messages, struct str tools, struct buf *text,
		      struct err *e);
	int (*load)(void *state, struct offline_about *about, struct offline_loaded *out,
		    struct err *e);
	int (*put)(void *state, const struct offline_batch *batch, struct err *e);
	int (*run)(void *state, const struct offline_run *run, struct offline_outcome *out,
		   struct err *e);
	int (*mm_stats)(void *state, struct buf *out, struct err *e);
	int (*stop)(void *state, struct err *e);
};
extern const struct offline_driver offline_worker_driver, offline_http_driver;
