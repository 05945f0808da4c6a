/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batcher.h - a small model of an engine with continuous batching, in virtual time.
 *
 * It works in steps: one token for every running request, the rest of the token budget for chunked
 * prefill, at most max_seqs admitted; a step takes t0 + a * prefilled tokens + b * sequences + c *
 * tokens in the cache, with 2 % noise. Every step and every request costs constant time, so an
 * hour of a server takes a fraction of a second. No prefix cache, no preemption.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng/rng.h"

#define BATCHER_OUTPUT_MAX 2048 /* tokens; a power of two */
#define BATCHER_PROMPT_MAX 8192
#define BATCHER_SEQS_MAX 256
#define BATCHER_NONE UINT32_MAX

struct engine {
	uint32_t max_seqs, budget;
	uint32_t refuse_at;                   /* requests in the server; 0: it refuses none */
	double t0, a, b, c;                   /* s */
	double prompt, prompt_sd, output;     /* tokens; sd of ln prompt, 0: fixed */
	bool is_output_fixed;
};

struct job {
	double due, first, end; /* INFINITY: not yet */
	uint32_t prompt, output, left; /* left: tokens to prefill */
	uint32_t next;          /* in its bucket */
	bool is_failed;
};

struct batcher {
	const struct engine *e;
	struct pcg64 rng;
	struct pcg64 *load;     /* of arrivals and lengths, for two runs alike; NULL: rng */
	double now, next_due;
	double rate;            /* open loop */
	uint32_t slots;         /* closed loop: requests at once */
	bool is_closed;         /* no more arrivals */
	struct job *job;
	size_t n, room;         /* jobs; in order of due */
	size_t head;            /* first waiting one; those that were refused are skipped */
	uint32_t running, decoding, waiting;
	uint32_t partial;       /* in prefill; BATCHER_NONE */
	uint64_t step;
	double cached;          /* tokens */
	uint32_t bucket[BATCHER_OUTPUT_MAX]; /* jobs that end with the step of this number */
};

/* A number that is normal; one between low and high, evenly, or evenly by its logarithm. */
double batcher_normal(struct pcg64 *g);
double batcher_uniform(struct pcg64 *g, double low, double high);
double batcher_log_uniform(struct pcg64 *g, double low, double high);

/* An engine with the loads it gets: the ranges are those of GPUs and models in use. */
void batcher_draw(struct pcg64 *g, struct engine *e);
/*
 * Requests/s when n requests are there at once, over the middle half of completions. What an engine
 * refuses is not refused here. Empties the model, and leaves the clock where the last one ended.
 */
double batcher_saturation(struct batcher *s, const struct engine *e, uint32_t n);
/*
 * Empties the model, whose rng has been seeded and whose jobs are kept as memory. Poisson arrivals
 * of `rate`, or with slots > 0 a closed loop of that many requests.
 */
void batcher_begin(struct batcher *s, const struct engine *e, double rate, uint32_t slots);
/* Lives until the clock is at `until` at least, or nothing is left. */
void batcher_live(struct batcher *s, double until);
/* What has arrived by now: the whole closed loop at its beginning. */
void batcher_arrivals(struct batcher *s, double until);
/* Of a job that has ended. */
double batcher_tpot(const struct job *j);
void batcher_release(struct batcher *s);
