/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - what a request body asks for, checked as a vLLM server checks it.
 *
 * Reads the JSON bodies of completions, chat completions, tokenize and
 * detokenize. Members it does not know are accepted and ignored (sampling
 * parameters change nothing here); those it knows must have the right type.
 * Not here: HTTP, what the answer looks like.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "token/ids.h"

enum ask_api { ASK_COMPLETIONS, ASK_CHAT, ASK_TOKENIZE, ASK_DETOKENIZE };

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
	struct buf text;         /* the prompt, or the messages through the chat template */
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
struct str ask_stop(const struct ask *a, size_t i);
void ask_release(struct ask *a);
