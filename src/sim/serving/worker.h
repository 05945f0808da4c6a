/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - the modelled engine as a worker (`profllm sim --engine-worker`): the other end of
 * host/worker/worker.h. docs/guide/adapters.md is the protocol.
 *
 * Between the two clock reads of a question the batch is computed in virtual time (batch.h), and
 * then this thread lets that time pass: deadlines are absolute, so errors do not add up, and the
 * last millisecond is spent spinning. The work of the frontend (chat template, tokens, media) is
 * also modelled: prompts reach the engine one after the other while it already works, unless they
 * are queued first (prequeue) or engine and requests share a process.
 *
 * --account FILE gets a line for each load and each question: what was modelled, and how long it
 * took. Nothing here prints; logging the load is the host's task.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "sim/serving/sim.h"

#define SIM_WORKER_PHASES_MAX 8

struct sim_phase {
	const char *name;
	double modelled_s, s; /* s: measured */
};

/* The result of the engine's arguments; texts live as long as the host, and are never NULL */
struct sim_model {
	const struct sim_opts *opts;
	const char *device, *dtype;
	const char *profile_to, *profile_dir; /* "torch"; where its traces go */
	const char *account;  /* appended to; NULL: none */
	const char *mishap;   /* after the load; NULL: none */
	bool is_pooling;
	bool is_in_process;   /* VLLM_ENABLE_V1_MULTIPROCESSING=0 */
	bool is_media_uncached;
	bool is_compiled;     /* the compile cache had this model */
	struct sim_phase phase[SIM_WORKER_PHASES_MAX];
	size_t phases;
	double compilation_s, encoder_compilation_s; /* NAN: unknown */
};

struct sim_worker_host {
	void *self;
	const char *version;
	const char *mishap;       /* --worker-fault (fault.h) before the load; NULL: none */
	/*
	 * Turns the engine's arguments, ended by NULL, into *out; no time passes. ERR_USAGE: an
	 * argument; ERR_RUN: it does not fit into memory.
	 */
	int (*plan)(void *self, char *const *args, struct sim_model *out, struct err *e);
	/* Spends the time of m's phases and logs them; fills their s. */
	int (*start)(void *self, struct sim_model *m, struct err *e);
	/* The process ends at once: mishaps "killed", "oom" and "exit=N". */
	void (*crash)(void *self, const char *how);
};

/* Serves fd until the other end closes or sends shutdown. -1: the exchange broke. */
int sim_worker_serve(const struct sim_worker_host *host, int fd, struct err *e);
