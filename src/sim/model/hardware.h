/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware.h - a GPU that runs a model under vllm serve's arguments: whether it fits, the tokens of
 * the KV cache, the cost of a step, the time to start.
 *
 * GPUs and models are named tables in hardware.c, with the source of every figure;
 * docs/guide/sim.md compares the model with published measurements.
 *
 * For each GPU, in bytes:
 *
 *   KV cache = memory x utilization - weights + those in the host's memory - activations
 *   weights  = layers x bits / 8 / TP / PP, embedding and output layer in 16 bits
 *   activations = what the largest step leaves between its layers, its logits, and
 *              libraries (HARDWARE_LIBRARY_BYTES, with TP twice that)
 *
 * Pipeline stages work on separate batches: hardware_plan's result is for one of pp x dp engines,
 * each with its part of requests and KV cache.
 *
 * Pure arithmetic.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "sim/model/engine.h"

#define GIB 1073741824.0
#define HARDWARE_LIBRARY_BYTES (0.4 * GIB)
#define HARDWARE_BLOCK_TOKENS 16
#define HARDWARE_UTILIZATION 0.92 /* vLLM 0.32.0's default */

struct gpu_model {
	const char *name;
	double memory_gib;        /* as the driver reports it */
	double bandwidth;         /* bytes a second */
	double flops;             /* dense, 16 bits, a second */
	double flops8, flops4;    /* the same in FP8 and FP4; 0: the GPU has none */
	double weights_share, kv_share;  /* share of the bandwidth achieved when reading them */
	double flops_share, flops8_share;/* share of the arithmetic achieved by large batches */
	double link;              /* bytes a second to the other GPUs, one direction */
	double link_s;            /* time of one small all-reduce */
	double step_s;            /* launching a step's CUDA graph, sampling */
	double launch_layer_s;    /* launching the kernels of a layer one by one */
	double pcie;              /* bytes a second to the host's memory, achieved by copies */
	bool is_small_default;    /* vLLM uses its smaller defaults whatever its memory */
};

struct model_shape {
	const char *name;
	const char *like;         /* parts of model names, in lower case, that mean this one */
	int layers, hidden;
	int intermediate;         /* of one expert, if there are several */
	int heads, kv_heads, head_size;
	int vocabulary;
	int experts, experts_used;/* 1 and 1: none */
	int max_model_len;
};

struct hardware_opts {
	const char *gpu;          /* name, or NULL */
	const char *shape;        /* name, or NULL */
	const char *model;        /* implies shape and quantization if those are not given */
	const char *dtype, *quantization, *kv_cache_dtype; /* NULL: auto, none, auto */
	int64_t tp, pp, dp;       /* at least 1 */
	double utilization;
	int64_t block_size;
	int64_t blocks;           /* --num-gpu-blocks-override; 0: as many as fit */
	double kv_bytes;          /* --kv-cache-memory-bytes; 0: what is left */
	int64_t max_model_len, max_num_seqs, max_num_batched_tokens; /* 0: the default */
	int64_t drafted;          /* tokens of a draft; 0: none */
	const char *draft_method;
	bool is_len_auto;         /* max_model_len is the model's, or as much as fits */
	double offload_gib;       /* weights of a GPU that stay in the host's memory */
	bool is_eager, is_sync, is_prompt_whole, is_dummy;
};

struct sim_hardware {
	const struct gpu_model *gpu;
	const struct model_shape *shape;
	struct hardware_opts opts;/* with defaults filled in */
	double params;            /* of the whole model */
	double weight_bits;       /* of a parameter of a layer */
	double weights_bytes, activation_bytes, kv_bytes; /* of one GPU */
	double offload_bytes;     /* part of weights_bytes that is not in its memory */
	double kv_token_bytes;    /* of one GPU */
	int64_t blocks;           /* of one engine */
	int64_t kv_tokens;
	double load_s, compile_s; /* starting: reading weights; compiling and capturing graphs */
	double profile_s, capture_s; /* parts of compile_s that are not compiling */
	struct engine_cost cost;
};

/* NULL-ended lists of names, for help and messages. */
extern const char *const hardware_gpus[];
extern const char *const hardware_shapes[];
const struct gpu_model *hardware_gpu(const char *name);      /* NULL: none of that name */
const struct model_shape *hardware_shape(const char *name);  /* the same */
const struct model_shape *hardware_shape_of(const char *model); /* by `like` */

/* A format of weights: bits per parameter; compute: bits used in arithmetic. */
struct quantization { const char *name; double bits; int compute; };
/* The format in a model's name: "...-FP8", "...-AWQ"; NULL: none. */
const struct quantization *hardware_quantization_of(const char *model);

/*
 * ERR_USAGE: an unknown name or invalid number. ERR_RUN: it does not fit, or arguments exclude each
 * other, in the words of vLLM's error.
 */
int hardware_plan(const struct hardware_opts *opts, struct sim_hardware *hw, struct err *e);

/*
 * The result of the engine model for some hardware, as lines of text (`profllm sim --explain`), and
 * the modelled engine under a load in virtual time: thousands of requests in a fraction of a
 * second.
 */

/* Identical requests, `concurrency` at once until all are done. */
struct virtual_load {
	uint32_t prompt, output;  /* tokens of each */
	size_t requests;
	size_t concurrency;       /* 0: all of them at once */
	uint32_t yield;           /* tokens of a decoding step; 0: 1 */
};

struct virtual_result {
	double seconds;
	double output_tps;        /* output tokens a second over the whole load */
	double ttft_mean_s, ttft_p99_s;
	double tpot_mean_s;       /* (end - first token) / (tokens - 1), mean over requests */
	double itl_p99_s;         /* of all gaps between two tokens of a request */
	uint64_t preempted;
};

/* g is newly set up; it is idle again afterwards. */
struct virtual_result virtual_run(struct sim_engine *g, const struct virtual_load *l);
/* Sets up the engine that hw describes; release it with engine_release. */
void engine_of_hardware(struct sim_engine *g, const struct sim_hardware *hw);

void hardware_explain(const struct sim_hardware *hw, struct buf *out);
