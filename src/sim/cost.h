/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.h - how long one step of the modelled engine takes, as a function of what
 * is in it.
 *
 * Two models. The linear one has four constants:
 *
 *   (decode_base + decode_per_seq * decoding)   when anything decodes
 * + (prefill_base + prefill_per_token * tokens) when anything prefills
 *
 * The roofline takes the time of what the hardware must do (hardware.h makes
 * its coefficients from a GPU, a model and vllm serve's arguments):
 *
 *   matrices   weights are read once a step, of a mixture of experts only those
 *              that some token chose; every token costs arithmetic. The longer of
 *              the two counts whole, the shorter one to ROOFLINE_OVERLAP: kernels
 *              hide most of one behind the other, and less where both are alike
 * + attention  the KV cache of every sequence is read, and each token of a prompt
 *              meets all before it
 * + exchange   two all-reduces a layer among tensor-parallel GPUs
 * + drafts     what proposes the tokens of speculative decoding
 * + a fixed part: launching, sampling
 *
 * Without CUDA graphs a step lasts at least as long as launching its kernels one
 * by one. What the CPU does (scheduling, preparing inputs) comes on top, or
 * runs beside the GPU when scheduling is asynchronous.
 *
 * Pure arithmetic; all times of the roofline are seconds.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define ROOFLINE_OVERLAP 0.4

struct roofline {
	double dense_s;        /* reading the weights that every token needs; 0: no roofline */
	double experts_s;      /* reading all experts of all layers */
	double expert_share;   /* of them, those that one token chooses */
	double token_s;        /* arithmetic of one token in all layers */
	double sample_s;       /* and of the output layer, for each token that is sampled */
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
	struct roofline roof;  /* takes the place of the four when it is set */
};

/* One step. */
struct engine_load {
	uint32_t decoding;       /* sequences */
	uint32_t decode_tokens;  /* of them, drafted ones included */
	uint32_t prefill_seqs, prefill_tokens;
	uint32_t sampled;        /* tokens that come out of it at least: one for each sequence */
	double context_tokens;   /* in the KV cache of all these sequences, before the step */
	double pairs;            /* of a prompt's token and one at or before it */
};

/* 0 for an empty step. */
double engine_cost_us(const struct engine_cost *c, const struct engine_load *l);
