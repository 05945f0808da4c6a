/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - the requests in request bodies, checked as a vLLM server checks them.
 *
 * Reads the JSON bodies of all generating APIs, of tokenize and of detokenize. Unknown members are
 * accepted and ignored (sampling parameters change nothing here); known ones must have the right
 * type. Includes the chat template, forms with sound, and what an answer must satisfy (constraints,
 * tools). Not here: HTTP, pooling (pool.c), the content of the answer.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/constrain/constrain.h"
#include "input/encode/ids.h"

enum ask_api {
	ASK_COMPLETIONS, ASK_CHAT, ASK_TOKENIZE, ASK_DETOKENIZE, ASK_RESPONSES, ASK_AUDIO,
	ASK_ANTHROPIC, ASK_TGI, ASK_TGI_STREAM, ASK_LLAMACPP, ASK_SGLANG, ASK_DEMO, ASK_OLLAMA,
	ASK_OLLAMA_CHAT,
	ASK_APIS
};

#define ASK_STOPS_MAX 16
#define ASK_CHOICES_MAX 256 /* n */
#define ASK_TOOLS_MAX 128

/* Which of the members that constrain an answer the server knows; it ignores the others. */
enum {
	ASK_KNOWS_STRUCTURED = 1, /* structured_outputs */
	ASK_KNOWS_GUIDED = 2,     /* guided_json, guided_regex, guided_choice, guided_grammar */
	ASK_KNOWS_FORMAT = 4,     /* response_format */
};

/* tool_choice; the last two force a call. */
enum ask_calls { ASK_CALLS_NONE, ASK_CALLS_AUTO, ASK_CALLS_REQUIRED, ASK_CALLS_NAMED };

struct ask_tool {
	size_t name_at, name_n;  /* in tool_text */
	struct str parameters;   /* a JSON Schema, borrowed from the body; empty: none */
};

/* The chat template's text before a call's name; a line end and the arguments follow. */
#define ASK_CALL_MARK "<|tool_call|>"

/* A zeroed struct is a valid empty one; memory is kept from one request to the next. */
struct sim_ask {
	enum ask_api api;
	struct buf model;        /* empty when not named */
	bool is_stream, has_usage, has_usage_always;
	bool is_eos_ignored, is_stop_kept; /* ignore_eos, include_stop_str_in_output */
	int64_t max_tokens;      /* -1: not given */
	int64_t min_tokens;
	bool has_special;        /* add_special_tokens */
	bool has_ids;            /* the prompt was given as ids; otherwise as text */
	bool has_prompt;         /* in either form */
	uint64_t salt;           /* other input that the answer depends on: the sound's bytes */
	struct buf text;         /* the prompt, or the messages through the chat template */
	struct buf system;       /* private: the text before them */
	struct ids ids;          /* the prompt, or detokenize's tokens */
	struct buf stop_text;    /* the stop strings, one after the other */
	size_t stop_end[ASK_STOPS_MAX];
	size_t stops;
	int64_t n;               /* choices; 1 unless given */
	int64_t priority;        /* 0 unless given */
	unsigned knows;          /* set by the owner: ASK_KNOWS_...; stays */
	unsigned constraints;    /* number requested; more than one is an error */
	enum constraint_kind constraint_kind;
	struct buf constraint;   /* as constraint_compile takes it */
	const char *told_by; /* the member of the body that had the constraint */
	enum ask_calls calls;    /* ASK_CALLS_NONE without tools */
	bool is_choice_given;    /* private: tool_choice was given */
	bool is_call_single;     /* parallel_tool_calls false */
	struct ask_tool tool[ASK_TOOLS_MAX];
	size_t tools;
	size_t named;            /* index of the tool for ASK_CALLS_NAMED */
	struct buf tool_text;    /* their names */
	struct buf named_text;   /* private: the name in tool_choice */
	struct str tools_raw;    /* private: the list, borrowed from the body */
};

/*
 * Fills a from body. On failure e is the sentence for the client and *param
 * (when not NULL) the member at fault or NULL: the answer is status 400.
 */
int ask_read(struct sim_ask *a, enum ask_api api, struct str body, const char **param,
	     struct err *e);
/* The API that a body of POST /generate is for: three kinds of server have that path. */
enum ask_api ask_generate_api(struct str body);
/* Messages through the chat template into out; name is the member's, for errors. */
int ask_messages(struct buf *out, const char *name, struct json_slice v, struct err *e);
struct str ask_stop(const struct sim_ask *a, size_t i);
struct str ask_tool_name(const struct sim_ask *a, size_t i);

void ask_release(struct sim_ask *a);
