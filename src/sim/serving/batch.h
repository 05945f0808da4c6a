/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - prompts through the modelled engine without clients: what `profllm sim
 * --engine-worker` does between its two clock reads.
 *
 * Time is virtual: nanoseconds after the begin. A prompt is with the engine when the side that
 * prepares requests is done with it (ready_ns); steps last as engine.h says, and the encoder's
 * time is part of the step that admits a prompt with media. A hook is called before a step
 * ends, where a caller may sleep until the clock has got there; without one a batch of
 * hours is done in the time of its arithmetic.
 *
 * Pure but for that hook. The prefix cache outlives a batch, as in an engine.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "sim/model/engine.h"
#include "sim/serving/sim.h"

struct batch_lane {
	struct sim_engine engine;
	struct prefix_cache prefix;
	int64_t end_ns;         /* of the step under way; -1: none */
};

/* Requests are spread over its lanes (data parallel ranks, pipeline stages) as a server's are. */
struct batch_engine {
	const struct sim_opts *opts;
	struct batch_lane *lane;
	size_t lanes;
	uint64_t drawn;         /* sequences so far: each has a generator of its own */
};

/* opts is borrowed. To be released. */
void batch_engine_init(struct batch_engine *b, const struct sim_opts *opts);
void batch_engine_release(struct batch_engine *b); /* accepts a zeroed one */

struct batch_item {
	const uint32_t *id;     /* the prompt's tokens, for the prefix cache; NULL: never known */
	uint32_t prompt;        /* tokens, at least 1 */
	uint32_t output;        /* tokens of each of its sequences, at least 1 */
	int64_t ready_ns;       /* not before that of the item in front */
	int64_t encode_ns;      /* forward pass of the encoder; 0: no media */
	int64_t priority;       /* lower values first, where the engine goes by it */
	uint32_t lora;          /* its adapter, from 1 on; 0: none */
	/* Filled: */
	uint64_t got;           /* tokens, of all its sequences */
	uint32_t known;         /* tokens of the prompt that the prefix cache had, first sequence */
	int64_t first_ns, last_ns; /* its first and its last token */
};

struct batch_how {
	uint32_t sequences;     /* of each prompt; each is a request of its own, as in vLLM */
	int64_t running_max;    /* sequences at once, if less than the engine's; 0: as it has */
	void *self;
	/* The step ends at ns; so many items are done. NULL: nobody waits. */
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
