/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.h - what the verbs of `profllm tokenizer` share. */
#pragma once
#include "cmd/console/cli.h"
#include "input/token/tokenizer.h"

struct tokenizer_opts {
	struct opt_list files;
	const char *tokenizer, *tokenizer_mode, *revision, *text;
	bool offline, add_special_tokens, skip_special_tokens, jsonl, timing, json;
	int64_t threads;
};

#define TOKENIZER_ROW(member, name, ...) OPT(struct tokenizer_opts, member, name, __VA_ARGS__)
#define TOKENIZER_MODEL "Model"
#define TOKENIZER_INPUT "Input and output"
#define TOKENIZER_WORK "Work"
#define TOKENIZER_MODEL_ROWS                                                                 \
	TOKENIZER_ROW(tokenizer, "tokenizer", .group = TOKENIZER_MODEL, .arg = "NAME",       \
	    .help = "A tokenizer's file, its directory, a model name (org/name), or sim (built " \
		    "in)."),                                                                 \
	TOKENIZER_ROW(tokenizer_mode, "tokenizer-mode", .group = TOKENIZER_MODEL,            \
	    .choices = tokenizer_modes,                                                      \
	    .help = "mistral: Mistral's own file where a model has several forms."),         \
	TOKENIZER_ROW(revision, "revision", .group = TOKENIZER_MODEL,                        \
	    .help = "Branch, tag or commit of a model name; default: main."),                \
	TOKENIZER_ROW(offline, "offline", .group = TOKENIZER_MODEL,                          \
	    .help = "Take a model name from the local cache only; ask no hub.")

extern const char *const tokenizer_modes[];
extern const struct tokenizer_opts tokenizer_defaults;
extern const struct opt_set tokenizer_show_set;

/* What the options name, downloaded if need be; load_ns: how long that took. NULL with e. */
struct tokenizer *tokenizer_from_opts(const struct tokenizer_opts *o, bool is_uncached,
				      int64_t *load_ns, struct err *e);
