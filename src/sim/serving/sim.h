/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - a simulated inference server on one thread. It speaks vLLM's API and those of other
 * servers (shapes.c, pool.c).
 *
 * As an oracle it paces every token exactly, by distributions and faults that are seeded, and keeps
 * a truth file of what it sent when, against which the client is tested. As an engine model it
 * batches continuously, so that load, queueing and latency trade off believably without a GPU
 * (engine.h). The oracle runs when ttft, itl or burst is given, the engine model otherwise.
 *
 * Answers are words of the tokenizer (draw.h); the same prompt and seed give the same answer.
 * Pacing counts from the kernel's receive stamp of the read that completed the request.
 *
 * Lifecycle: sim_new listens, sim_run serves until sim_stop, sim_free. One thread except for
 * sim_stop. Nothing here prints; several may live in one process.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "sim/model/engine.h"
#include "sim/serving/remote.h"

struct sim_lora {
	const char *name, *path;
	const char *base;           /* the model it is made for; NULL: the served one */
};

struct sim_opts {
	const char *host;
	uint16_t port;              /* 0: any free one */
	const char *uds;            /* Unix socket path instead of host and port */
	const char *port_file;      /* the port is written here once listening */
	const char *cert_file, *key_file; /* both: https */
	const char *client_ca_file; /* CAs of required client certificates; NULL: none required */
	const char *api_key;        /* NULL: not required */
	int64_t keep_alive_ms;      /* idle connections are closed after this; 0: never */

	const char *model;          /* root of the served model */
	const char *const *served;  /* ids under which it is served; none: model */
	size_t served_count;
	const char *tokenizer;
	int64_t max_model_len;      /* tokens of prompt and answer together */
	uint64_t seed;

	const char *ttft_ms, *itl_ms; /* distributions (draw.h); NULL: not given */
	double burst_ms;            /* 0: not given */
	int64_t tokens_per_event;
	int64_t reasoning;          /* first tokens of a chat answer that are reasoning */
	int64_t spec_tokens;        /* drafted each step; 0: no speculative decoding */
	double spec_acceptance;     /* of each drafted token, given the previous ones */
	int64_t diffusion_block;    /* tokens of a canvas; 0: no diffusion */
	int64_t diffusion_steps;    /* denoising steps it takes */
	const char *output_len;     /* distribution of where answers end by themselves, or NULL */
	const char *const *faults;  /* fault.h */
	size_t fault_count;
	bool is_guided;             /* knows guided_json and similar, not structured_outputs */
	bool is_constraint_ignored; /* knows neither, nor response_format */
	double constraint_errors;   /* share of constrained answers made wrong on purpose */
	double tool_call_share;     /* of requests with tools that leave the choice to the model */
	double tool_call_errors;    /* share of calls with arguments made wrong on purpose */
	int64_t tool_calls_max;     /* in one answer, at least 1 */

	int64_t max_num_seqs, max_num_batched_tokens;
	int64_t kv_cache_tokens;    /* of running requests and the prefix cache; of each engine */
	int64_t block_size;         /* tokens per block of it */
	int64_t engines;            /* number of engines that requests are spread over */
	int64_t chunk_max;          /* tokens of one prompt in a step; 0: no separate limit */
	bool is_prompt_whole;       /* no chunked prefill */
	bool is_prefix_cached;      /* known prefixes of prompts are not computed again */
	bool is_cached_told;        /* usage has prompt_tokens_details.cached_tokens */
	bool is_by_priority;        /* requests may have a priority (engine.h) */
	const struct sim_lora *lora;/* adapters that are served */
	size_t lora_count;
	int64_t loras_max;          /* adapters in one batch, ENGINE_LORAS_MAX at most; 0: any */
	struct engine_cost cost;

	int64_t die_after_ns;       /* fails this long after it began to serve; 0: never */
	int64_t die_after_requests; /* fails at the request after this many; 0: never */

	const char *truth_file, *requests_file;
	struct kv_opts kv;
	bool is_proxy;              /* only proxy is used then */
	struct proxy_opts proxy;
	const char *profile_dir;    /* where /stop_profile writes a trace; NULL: nowhere */
	int64_t trace_ms;           /* duration of writing it, after the answer */
};

/* Values for a mid-range GPU and an 8B model. */
struct sim_opts sim_defaults(void);
/* Sets up an engine from options, and its prefix cache (zeroed before); release both. */
void sim_engine_init(struct sim_engine *g, struct prefix_cache *p, const struct sim_opts *o);

/*
 * How exact the oracle was: send time minus due time of its events; and CPU time of sim_run, minus
 * what was spent waiting for exact deadlines (loop_spun_ns). Nanoseconds.
 */
struct sim_summary {
	uint64_t requests, events, tokens;
	int64_t busy_ns;
	int64_t late_p50_ns, late_p99_ns, late_max_ns;
};

struct sim;

/* Strings of opts are borrowed until sim_free. The error names the option or file at fault. */
struct sim *sim_new(const struct sim_opts *opts, struct err *e);
/*
 * Serves until sim_stop, then writes the rest of its files; -1 if any of that was lost, and ERR_RUN
 * after a requested failure (die_after_...).
 */
int sim_run(struct sim *s, struct err *e);
/* From any thread or signal handler. */
void sim_stop(struct sim *s);
void sim_free(struct sim *s);

uint16_t sim_port(const struct sim *s); /* 0 on a Unix socket */
const char *sim_url(const struct sim *s); /* "http://127.0.0.1:8000", "unix:/path" */
bool sim_is_oracle(const struct sim *s);
struct sim_summary sim_summary(const struct sim *s);
