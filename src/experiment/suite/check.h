/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - whether an experiment would work, before hours are spent on it.
 *
 * One row for each common cause of failure: the command, GPUs, memory for weights and KV cache,
 * ports, disk, model, tokenizer, dataset, where the document is written, and finally a smoke load
 * of CHECK_SMOKE_PROMPTS requests against the server as configured. A row is a fact about this
 * machine now; the configuration itself was checked when struct experiment was made.
 *
 * Nothing is kept: the smoke load writes into a temporary folder that is removed.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/json/read.h"
#include "experiment/config/experiment.h"

enum check_verdict { CHECK_PASS, CHECK_NOTE, CHECK_FAIL, CHECK_SKIP };

struct check_row {
	const char *what;        /* "GPU memory" */
	enum check_verdict verdict;
	const char *found;       /* one sentence with the figures */
};

#define CHECK_ROWS_MAX 64
#define CHECK_SMOKE_PROMPTS 8

struct check {
	struct check_row row[CHECK_ROWS_MAX];
	size_t n;
	struct arena arena;
};

struct check_opts {
	const struct experiment_hooks *hooks; /* of the smoke load; may be NULL */
	const char *upload_url, *token_file;  /* NULL: not asked for */
	bool is_smoke;
};

/* Fills out, whatever is found. A failing row does not end the check. */
void check_experiment(const struct experiment *x, const struct check_opts *o, struct check *out);
void check_release(struct check *c);
bool check_passed(const struct check *c); /* no CHECK_FAIL */
/* A table with the name of the experiment above, one row a line. */
void check_table(const struct experiment *x, const struct check *c, struct buf *out);

/*
 * Whether a model fits a GPU, estimated from its config.json.
 *
 *   weights     the size of the weight files, when known; else counted from the sizes in
 *               config.json: attention, MLP or experts, embeddings (twice unless tied)
 *   KV cache    2 x layers x KV heads x head size x bytes of a value, a token; with latent
 *               attention (kv_lora_rank) layers x (rank + rope head size), which is not divided
 *   overhead    activations of the largest step: tokens x hidden size x 16 bits x FIT_LIVE, its
 *               logits in 32 bits, and FIT_LIBRARY_BYTES for the CUDA context and libraries
 *
 * Weights, KV cache and half of the activations are divided by tensor parallelism, weights and KV
 * cache by pipeline parallelism. The rest of GPU memory x utilization is KV cache. The estimate is
 * within a tenth for dense decoders (docs/guide/experiments.md lists the measurements); vision
 * towers whose sizes are not in config.json are not counted.
 *
 * Pure arithmetic on JSON that has been parsed already.
 */
#define FIT_LIBRARY_BYTES (0.6 * 1073741824.0)
#define FIT_LIVE 16.0 /* hidden-size rows alive at once in a layer: residual, QKV, gate and up */

/* The sizes in config.json. Zero: missing. */
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
	double kv_bytes;         /* of one GPU, as configured; 0: what is left */
	double weight_bits;      /* as given by --quantization; 0: the model's */
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

/* ERR_PARSE: not a language model's config.json; text_config and the like are searched. */
int fit_model_read(const struct json_value *config, struct fit_model *out, struct err *e);
void fit_estimate(const struct fit_model *m, const struct fit_how *how, struct fit *out);
