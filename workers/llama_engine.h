/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama_engine.h - batches of requests on llama.cpp: which requests are in a step, and their
 * results.
 *
 * A context holds as many sequences as it was made for; as soon as one is done the next request has
 * its place. A step is one llama_decode(): one token of each sequence that generates, then as much
 * of waiting prompts as the batch has room for. Sampling is the library's own.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/str.h"
#include "llama_library.h"

struct llama_request {
	struct str text;     /* or: */
	int32_t *token;
	int32_t tokens;
	uint32_t output_len; /* UINT32_MAX: as many as there is room for */
};

struct llama_load {
	const char *model;   /* a file in GGUF */
	uint32_t len_max;    /* tokens of a sequence; 0: the model's training length, at most
			      * 2048 */
	uint32_t sequences;
	uint32_t batch;      /* tokens of a step */
	uint32_t seed;
	int32_t threads;     /* 0: as many as there are processors for us */
};

struct llama_run {
	const struct llama_request *request;
	size_t requests;
	uint32_t n;          /* sequences for each */
	float temperature, top_p; /* temperature 0: greedy */
	bool ignore_eos, detokenize;
	void *self;
	void (*progress)(void *self, size_t done, size_t total); /* NULL: none */
	uint32_t *prompt_tokens, *output_tokens; /* of each request */
	int64_t began_ns, ended_ns;
};

struct llama_engine {
	struct llama_library lib;
	struct llama_load how;
	struct llama_model *model;
	const struct llama_vocab *vocab;
	struct llama_context *context;
	struct llama_memory *memory;
	const char *category; /* of the last error, in the protocol's words */
};

int llama_engine_load(struct llama_engine *g, const struct llama_load *how, struct err *e);
/* The clock is read around tokenizing, steps, sampling and text. */
int llama_engine_run(struct llama_engine *g, struct llama_run *run, struct err *e);
void llama_engine_release(struct llama_engine *g);
