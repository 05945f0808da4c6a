/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama_library.h - llama.cpp's C library, loaded at run time; no header of it is needed.
 *
 * Its types are opaque here but for two kinds of structs that are passed by value:
 *
 * - Parameters. What the library's own function for defaults gives is kept as bytes, more of them
 *   than any release has. On the machines that this runs on (the calling conventions of x86-64
 *   and of AArch64) a struct of that size is passed in memory, so a callee that knows a shorter
 *   one finds its bytes where it looks for them. Of the context's parameters the first four
 *   numbers are set (n_ctx, n_batch, n_ubatch, n_seq_max): they are there since September 2024,
 *   are checked by their defaults (512, 2048, 512, 1) before, and by what the context says of
 *   itself afterwards. The model's parameters stay as they are.
 * - A batch, seven members since November 2024; llama_batch_init() must leave exactly those set
 *   that a batch of tokens has.
 *
 * Needed: a release from June 2025 or later (llama_memory_seq_rm). Tried with 0.5.0.
 * The library is $PROFLLM_LIBLLAMA, else libllama.so or libllama.so.0 where the loader finds it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

#define LLAMA_PARAMETER_BYTES 512

struct llama_parameters {
	_Alignas(16) uint32_t word[LLAMA_PARAMETER_BYTES / sizeof(uint32_t)];
};

struct llama_batch {
	int32_t n_tokens;
	int32_t *token;
	float *embd;
	int32_t *pos;
	int32_t *n_seq_id;
	int32_t **seq_id;
	int8_t *logits; /* whether the token's logits are wanted */
	unsigned char more[72];
};

struct llama_chain { bool is_unmeasured; };

struct llama_model;
struct llama_context;
struct llama_vocab;
struct llama_sampler;
struct llama_memory;

/* Members are named as the library's functions; the last ones may be NULL. */
struct llama_library {
	void *handle;
	char path[4096];
	void (*backend_init)(void);
	struct llama_parameters (*model_default_params)(void);
	struct llama_parameters (*context_default_params)(void);
	struct llama_model *(*model_load_from_file)(const char *path, struct llama_parameters p);
	void (*model_free)(struct llama_model *m);
	struct llama_context *(*init_from_model)(struct llama_model *m, struct llama_parameters p);
	void (*free)(struct llama_context *c);
	uint32_t (*n_ctx)(const struct llama_context *c);
	uint32_t (*n_batch)(const struct llama_context *c);
	uint32_t (*n_seq_max)(const struct llama_context *c);
	void (*set_n_threads)(struct llama_context *c, int32_t generation, int32_t batch);
	struct llama_memory *(*get_memory)(const struct llama_context *c);
	bool (*memory_seq_rm)(struct llama_memory *m, int32_t sequence, int32_t begin, int32_t end);
	const struct llama_vocab *(*model_get_vocab)(const struct llama_model *m);
	int32_t (*model_n_ctx_train)(const struct llama_model *m);
	int32_t (*model_desc)(const struct llama_model *m, char *out, size_t n);
	int32_t (*vocab_n_tokens)(const struct llama_vocab *v);
	bool (*vocab_is_eog)(const struct llama_vocab *v, int32_t token);
	int32_t (*tokenize)(const struct llama_vocab *v, const char *text, int32_t n, int32_t *out,
			    int32_t max, bool has_special, bool is_special_parsed);
	int32_t (*token_to_piece)(const struct llama_vocab *v, int32_t token, char *out, int32_t n,
				  int32_t stripped, bool is_special_shown);
	struct llama_batch (*batch_init)(int32_t tokens, int32_t embd, int32_t sequences);
	void (*batch_free)(struct llama_batch b);
	int32_t (*decode)(struct llama_context *c, struct llama_batch b);
	struct llama_sampler *(*sampler_chain_init)(struct llama_chain how);
	void (*sampler_chain_add)(struct llama_sampler *chain, struct llama_sampler *s);
	struct llama_sampler *(*sampler_init_greedy)(void);
	struct llama_sampler *(*sampler_init_dist)(uint32_t seed);
	struct llama_sampler *(*sampler_init_temp)(float temperature);
	struct llama_sampler *(*sampler_init_top_p)(float p, size_t kept);
	int32_t (*sampler_sample)(struct llama_sampler *s, struct llama_context *c, int32_t row);
	void (*sampler_free)(struct llama_sampler *s);

	size_t (*max_parallel_sequences)(void);
	uint32_t (*n_ctx_seq)(const struct llama_context *c);
	const char *(*ggml_version)(void);
	void (*ggml_backend_load_all_from_path)(const char *folder);
	size_t (*ggml_backend_dev_count)(void);
	void *(*ggml_backend_dev_get)(size_t i);
	int (*ggml_backend_dev_type)(void *device);
	const char *(*ggml_backend_dev_description)(void *device);
};

/* -1 with e: it is not there, or it is not as described above. It is never unloaded. */
int llama_library_open(struct llama_library *l, struct err *e);
/* What the engine computes on, or "". */
const char *llama_library_device(const struct llama_library *l);
/* The context's parameters with these values; -1 with e: they are not at the expected offsets. */
int llama_library_context(const struct llama_library *l, uint32_t context, uint32_t batch,
			  uint32_t sequences, struct llama_parameters *out, struct err *e);
