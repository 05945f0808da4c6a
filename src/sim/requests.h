/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests.h - the prompts that a worker was handed ("put"), and how many tokens they have.
 *
 * A prompt is a text, token ids, or messages; media stand beside it or are parts of the
 * messages. Asked as a chat, a text or ids become one user message. Counting is outside of every
 * measurement and is done once, until the prompts or the way they are asked change.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/read.h"
#include "sim/encoder.h"
#include "token/tokenizer.h"

enum request_kind { REQUEST_TEXT, REQUEST_IDS, REQUEST_MESSAGES };

struct request {
	enum request_kind kind;
	size_t at, n;           /* in text (bytes) or in given (ids) */
	size_t media_at, media_n;
	int64_t output;         /* output_len; -1: until the engine ends it */
	bool has_lora;
	uint32_t lora;          /* its adapter, a number for each id from 1 on; 0: none */
	int64_t priority;       /* 0: none was given */
	/* By requests_count: */
	size_t tokens_at;       /* in tokens */
	uint32_t tokens;        /* of the prompt, those of media included */
	uint32_t text_tokens;   /* of them, those of the text */
};

/* A zeroed struct is a valid empty one. */
struct requests {
	struct request *request;
	size_t n, cap;
	struct buf text;
	struct ids given, tokens;
	struct media_item *media;
	size_t media_n, media_cap;
	bool is_counted, is_chat; /* for which kind of question tokens hold */
};

void requests_release(struct requests *r);
/* A put frame's members is_first and requests. ERR_PARSE names what is wrong. */
int requests_put(struct requests *r, struct json_slice frame, struct err *e);
/* Fills tokens of all. ERR_RUN: a prompt without a token, or one that cannot be tokenized. */
int requests_count(struct requests *r, const struct tokenizer *t, bool is_chat, struct err *e);
