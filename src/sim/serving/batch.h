/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - runs prompts through the modelled engine without clients: what `profllm sim
 * --engine-worker` does between its two clock reads.
 *
 * Time is virtual: nanoseconds after the begin. A prompt reaches the engine when the frontend has
 * prepared it (ready_ns); steps last as in engine.h, and the encoder's time is part of the step
 * that admits a prompt with media. A hook is called before a step ends, where a caller may sleep
 * until the clock has got there; without one a batch of hours takes only the time of its
 * arithmetic.
 *
 * Pure except for that hook. The prefix cache outlives a batch, as in an engine.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "sim/model/engine.h"
#include "sim/serving/sim.h"

struct batch_lane {
	struct sim_engine engine;
	struct prefix_cache prefix;
	int64_t end_ns;         /* end of the current step; -1: none */
};

/* Requests are spread over its lanes (data parallel ranks, pipeline stages) as in a server. */
struct batch_engine {
	const struct sim_opts *opts;
	struct batch_lane *lane;
	size_t lanes;
	uint64_t drawn;         /* sequences so far: each has its own generator */
};

/* opts is borrowed. To be released. */
void batch_engine_init(struct batch_engine *b, const struct sim_opts *opts);
void batch_engine_release(struct batch_engine *b); /* accepts a zeroed one */

struct batch_item {
	const uint32_t *id;     /* the prompt's tokens, for the prefix cache; NULL: never known */
	uint32_t prompt;        /* tokens, at least 1 */
	uint32_t output;        /* tokens of each of its sequences, at least 1 */
	int64_t ready_ns;       /* not before that of the previous item */
	int64_t encode_ns;      /* forward pass of the encoder; 0: no media */
	int64_t priority;       /* lower values first, if the engine uses priorities */
	uint32_t lora;          /* its adapter, from 1 on; 0: none */
	/* Filled: */
	uint64_t got;           /* tokens, of all its sequences */
	uint32_t known;         /* tokens of the prompt found in the prefix cache, first sequence */
	int64_t first_ns, last_ns; /* its first and its last token */
};

struct batch_how {
	uint32_t sequences;     /* per prompt; each is a separate request, as in vLLM */
	int64_t running_max;    /* sequences at once, if less than the engine's; 0: the engine's */
	void *self;
	/* The step ends at ns; `done` items are finished. NULL: do not wait. */
	void (*wait)(void *self, int64_t ns, size_t done);
};

struct batch_sum {
	uint64_t steps, preempted;
	int64_t steps_ns;       /* sum of the lengths of all steps, encoder included */
	int64_t encode_ns;      /* of it, the encoder's part */
	int64_t end_ns;         /* end of the last step */
};

/* Adds to *sum. */
void batch_run(struct batch_engine *b, struct batch_item *item, size_t n,
	       const struct batch_how *how, struct batch_sum *sum);
