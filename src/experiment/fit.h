/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/fit.h - whether a model fits a GPU, estimated from its config.json.
 *
 *   weights     what the weight files hold, when their sizes are known; else counted from the
 *               sizes in config.json: attention, MLP or experts, embeddings (twice unless tied)
 *   KV cache    2 x layers x KV heads x head size x bytes of a value, a token; with latent
 *               attention (kv_lora_rank) layers x (rank + rope head size), which is not divided
 *   overhead    activations of the largest step: tokens x hidden size x 16 bits x FIT_LIVE, its
 *               logits in 32 bits, and FIT_LIBRARY_BYTES for the CUDA context and libraries
 *
 * Weights, KV cache and half of the activations are divided by tensor parallelism, weights and
 * KV cache by pipeline parallelism. Shared by GPU memory x utilization, what is left is KV cache.
 * An estimate: within a tenth for dense decoders (docs/guide/experiments.md says what it was
 * held against); it knows nothing of vision towers whose sizes stand elsewhere than in the files.
 *
 * Pure arithmetic on JSON that was read by somebody else.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "json/read.h"

#define FIT_LIBRARY_BYTES (0.6 * 1073741824.0)
#define FIT_LIVE 16.0 /* hidden-size rows alive at once in a layer: residual, QKV, gate and up */

/* What config.json says. Zero: it does not. */
struct fit_model {
	int64_t layers, hidden, intermediate, heads, kv_heads, head_size, vocabulary;
	int64_t experts, expert_intermediate, dense_layers, shared_experts;
	int64_t kv_lora_rank, rope_head_size;
	int64_t max_len;
	bool is_tied;
	double weight_bits;      /* of a parameter of a layer: 16 unless quantised */
	double other_bits;       /* of embeddings */
};

struct fit_how {
	double memory_bytes;     /* of one GPU */
	double utilization;      /* share of it the engine may take */
	double weight_bytes;     /* of all weight files; 0: not known */
	double cpu_offload_bytes;/* of the weights, kept in the host's memory, a GPU */
	double kv_bits;          /* 0: 16 */
	double kv_bytes;         /* of one GPU, as told; 0: what is left */
	double weight_bits;      /* as told by --quantization; 0: the model's */
	int64_t tp, pp;
	int64_t max_len;         /* 0: the model's */
	int64_t batched_tokens;  /* of the largest step; 0: 8192 */
	int64_t seqs;            /* whose logits are computed at once; 0: 256 */
};

struct fit {
	double params;
	double weights_bytes, overhead_bytes, kv_bytes; /* of one GPU */
	double kv_token_bytes;   /* of one GPU */
	double kv_tokens;        /* of the whole engine; 0 when the weights do not fit */
	int64_t max_len;
	bool is_fitting;         /* weights fit, and one request of max_len */
};

/* ERR_PARSE: no language model's config.json; text_config and the like are looked into. */
int fit_model_read(const struct json_value *config, struct fit_model *out, struct err *e);
void fit_estimate(const struct fit_model *m, const struct fit_how *how, struct fit *out);
