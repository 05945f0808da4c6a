/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - the modelled engine: the cost of a step, and the requests in it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/model/prefix.h"

/*
 * The duration of one step of the modelled engine, as a function of its content.
 *
 * Two models. The linear one has four constants:
 *
 *   (decode_base + decode_per_seq * decoding)   when anything decodes
 * + (prefill_base + prefill_per_token * tokens) when anything prefills
 *
 * The roofline takes the time of what the hardware must do (hardware.h makes its coefficients from
 * a GPU, a model and vllm serve's arguments):
 *
 *   matrices   weights are read once a step, of a mixture of experts only those
 *              that some token chose; every token costs arithmetic. The longer of
 *              the two counts fully, the shorter one to ROOFLINE_OVERLAP: kernels
 *              hide most of one under the other, and less where both are alike
 * + attention  the KV cache of every sequence is read, and each token of a prompt
 *              attends to all before it
 * + exchange   two all-reduces a layer among tensor-parallel GPUs
 * + drafts     proposing the tokens of speculative decoding
 * + a fixed part: launching, sampling
 *
 * Without CUDA graphs a step lasts at least as long as launching its kernels one by one. The CPU's
 * work (scheduling, preparing inputs) is added, or runs in parallel to the GPU when scheduling is
 * asynchronous.
 *
 * Pure arithmetic; all times of the roofline are seconds.
 */

#define ROOFLINE_OVERLAP 0.4

struct roofline {
	double dense_s;        /* reading the weights that every token needs; 0: no roofline */
	double experts_s;      /* reading all experts of all layers */
	double expert_share;   /* share of them that one token chooses */
	double token_s;        /* arithmetic of one token in all layers */
	double sample_s;       /* of the output layer, for each sampled token */
	double context_s;      /* reading the KV cache of one token */
	double pair_s;         /* attention of a prompt's token to one before it */
	double reduce_step_s, reduce_token_s;
	double draft_s;        /* proposing the drafts of a step */
	double step_s;         /* the fixed part */
	double launch_s;       /* launching all kernels one by one; 0: CUDA graphs */
	double cpu_step_s, cpu_seq_s;
	bool is_cpu_hidden;
};

struct engine_cost {
	double prefill_base_us, prefill_us_per_token;
	double decode_base_us, decode_us_per_seq;
	struct roofline roof;  /* replaces the four above when it is set */
};

/* The content of one step. */
struct engine_load {
	uint32_t decoding;       /* sequences */
	uint32_t decode_tokens;  /* tokens of them, including drafted ones */
	uint32_t prefill_seqs, prefill_tokens;
	uint32_t sampled;        /* least number of output tokens: one per sequence */
	double context_tokens;   /* in the KV cache of all these sequences, before the step */
	double pairs;            /* pairs of a prompt's token and one at or before it */
};

/* 0 for an empty step. */
double engine_cost_us(const struct engine_cost *c, const struct engine_load *l);

/*
 * A model of an inference engine with continuous batching.
 *
 * Time advances in steps. A step first gives every decoding sequence its tokens of the budget (one,
 * plus those drafted for it), continues unfinished prefills, then admits waiting sequences in
 * arrival order while there is budget and room; a prompt longer than the rest of the budget is
 * prefilled in chunks, unless prompts must be whole. The duration of a step is given by struct
 * engine_cost. All its tokens appear together at its end: those of each decoding sequence and the
 * first one of each completed prompt.
 *
 * The KV cache is allocated in blocks of tokens. A prompt is admitted when all of it fits; known
 * blocks at its beginning (prefix.h) are not computed again, and those shared with another running
 * sequence take no further room. When the KV cache has no room for what a running sequence needs,
 * the newest running one is preempted: its tokens are dropped, it goes to the front of the waiting
 * queue and is prefilled again. No sequence is admitted in such a step, and a single sequence is
 * never preempted, so there is always progress.
 *
 * With priorities, as in vLLM's v1 scheduler, sequences wait in the order of their priority (lower
 * values first) and their arrival. The last running one in that order is preempted and returns its
 * part of the step's budget. A waiting sequence never displaces a running one.
 *
 * If the number of LoRA adapters per batch is limited, a sequence with a further one is passed
 * over.
 *
 * Pure arithmetic: no clock, no sockets.
 */

/* Embedded in its owner. */
struct engine_seq {
	uint32_t prompt_left;  /* set before engine_add; tokens still to prefill */
	uint32_t context;      /* set before engine_add; tokens of it in the KV cache */
	struct prefix_pins *hold; /* set before engine_add: the prompt's blocks, or NULL */
	uint32_t brought;      /* set before engine_add: tokens transferred to it */
	uint32_t known;        /* its tokens found in the prefix cache on admission */
	uint32_t yield;        /* tokens from its next decoding step; 0 counts as 1 */
	int64_t priority;      /* set before engine_add; lower values first */
	uint32_t lora;         /* set before engine_add: its adapter, from 1 on; 0: none */
	uint64_t arrival;      /* private: number in the order of engine_add */
	uint32_t share, grown; /* private: tokens of this step's budget, and of the KV cache */
	bool is_prefill;       /* private: whether that share is prefill */
	bool has_token;        /* private: it gets a token at the end of this step */
	bool is_running;
	size_t slot;           /* private: place in running[] */
	struct engine_seq *prev, *next; /* private: the waiting queue */
};

#define ENGINE_LORAS_MAX 256 /* adapters in one batch */

struct sim_engine {
	struct engine_cost cost;
	size_t max_num_seqs;
	uint32_t max_num_batched_tokens;
	struct engine_seq **running; /* NULL for one that left during the step */
	size_t running_count;        /* live ones */
	size_t running_end;          /* places used */
	struct engine_seq *first, *last;
	size_t waiting_count;
	bool is_in_step;
	/* The rest is 0 after engine_init; set it before the first step. */
	uint64_t kv_tokens;          /* capacity of the KV cache; 0: unlimited */
	struct prefix_cache *prefix; /* borrowed; NULL: no prefix caching */
	uint32_t kv_block;           /* tokens of one of its blocks; 0 counts as 1 */
	uint32_t drafted;            /* speculative decoding: tokens checked after the next one */
	uint32_t chunk_max;          /* tokens of one prompt in a step; 0: as the budget allows */
	bool is_prompt_whole;        /* prompts wait for a budget that holds them whole */
	bool is_by_priority;         /* by priority, then arrival; otherwise by arrival */
	uint32_t loras_max;          /* adapters in one batch; 0: any number */
	uint32_t lora[ENGINE_LORAS_MAX], lora_running[ENGINE_LORAS_MAX]; /* private: used ones */
	uint64_t arrivals;           /* private */
	uint64_t preempted;          /* preemptions so far */
	uint64_t held;               /* tokens of the blocks in use after the latest step's plan */
	uint32_t step_tokens;        /* budget used by the current step */
};

void engine_init(struct sim_engine *g, struct engine_cost cost, size_t max_num_seqs,
		 uint32_t max_num_batched_tokens);
void engine_release(struct sim_engine *g);
/* prompt_left must be set and >= 1. */
void engine_add(struct sim_engine *g, struct engine_seq *s);
/* For a finished or aborted one; allowed at any time, even from on_token. Else no effect. */
void engine_remove(struct sim_engine *g, struct engine_seq *s);

/* Plans a step and returns its length in nanoseconds; -1 when there is nothing to do. */
int64_t engine_step_begin(struct sim_engine *g);
/* Ends it: calls on_token for every sequence that got one, in order of admission. */
typedef void engine_on_token(struct engine_seq *s, void *ctx);
void engine_step_end(struct sim_engine *g, engine_on_token *on_token, void *ctx);
