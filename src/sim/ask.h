/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - what a request body asks for, checked as a vLLM server checks it.
 *
 * Reads the JSON bodies of everything that generates, of tokenize and of
 * detokenize. Members it does not know are accepted and ignored (sampling
 * parameters change nothing here); those it knows must have the right type.
 * Not here: HTTP, forms (audio.c), pooling (pool.c), what the answer looks like.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "json/read.h"
#include "token/ids.h"

enum ask_api {
	ASK_COMPLETIONS, ASK_CHAT, ASK_TOKENIZE, ASK_DETOKENIZE, ASK_RESPONSES, ASK_AUDIO,
	ASK_ANTHROPIC, ASK_TGI, ASK_TGI_STREAM, ASK_LLAMACPP, ASK_SGLANG, ASK_DEMO, ASK_OLLAMA,
	ASK_OLLAMA_CHAT,
	ASK_APIS
};

#define ASK_STOPS_MAX 16

/* A zeroed struct is a valid empty one; memory is kept from one request to the next. */
struct ask {
	enum ask_api api;
	struct buf model;        /* empty when not named */
	bool is_stream, has_usage, has_usage_always;
	bool is_eos_ignored, is_stop_kept; /* ignore_eos, include_stop_str_in_output */
	int64_t max_tokens;      /* -1: not given */
	int64_t min_tokens;
	bool has_special;        /* add_special_tokens */
	bool has_ids;            /* the prompt came as ids; otherwise as text */
	bool has_prompt;         /* in either form */
	uint64_t salt;           /* of what else the answer depends on: the sound's bytes */
	struct buf text;         /* the prompt, or the messages through the chat template */
	struct buf system;       /* private: what goes in front of them */
	struct ids ids;          /* the prompt, or detokenize's tokens */
	struct buf stop_text;    /* the stop strings, one after the other */
	size_t stop_end[ASK_STOPS_MAX];
	size_t stops;
};

/*
 * Fills a from body. On failure e is the sentence for the client and *param
 * (when not NULL) the member at fault or NULL: the answer is status 400.
 */
int ask_read(struct ask *a, enum ask_api api, struct str body, const char **param, struct err *e);
/* What the body of POST /generate is for: servers of three kinds have that path. */
enum ask_api ask_generate_api(struct str body);
void ask_reset(struct ask *a, enum ask_api api);
/* Messages through the chat template into out; name is the member's, for errors. */
int ask_messages(struct buf *out, const char *name, struct json_slice v, struct err *e);
struct str ask_stop(const struct ask *a, size_t i);
void ask_release(struct ask *a);
