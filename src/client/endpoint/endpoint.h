/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint.h - what one API looks like on the wire: encode turns a sample into a request body,
 * decode extracts the facts from a received event. One file per API, one row.
 *
 * Pure: bytes in, bytes and facts out. Timing belongs to load/, sockets to net/. decode runs on the
 * hot path: no allocation, no full parse of usual events. In multi-turn runs, where the next body
 * holds the answers so far, the next request is a successor in the plan, and prepared.build
 * (load/load.h) makes it with encode.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "client/plan/workload.h"
#include "client/record/record.h"
#include "core/base/err.h"
#include "core/base/str.h"

/* The same for all requests of a run. */
struct encode_opts {
	struct str model;          /* the request's model field; a LoRA name replaces it */
	bool is_ignore_eos;
	bool has_logprobs;
	int64_t logprobs;
	struct str extra_body;     /* JSON object: sampling flags, then --extra-body; empty: none */
};

enum decoded_bits {
	DECODED_TOKEN = 1,      /* a token event: choices is not empty */
	DECODED_REASONING = 2,  /* carries reasoning text */
	DECODED_ANSWER = 4,     /* carries non-empty answer text */
	DECODED_ROLE_ONLY = 8,  /* a role and no text (chat's first chunk) */
	DECODED_FINISH = 16,    /* a finish reason */
	DECODED_USAGE = 32,     /* the counts below are set */
	DECODED_ERROR = 64,     /* an error object; text is its JSON */
	DECODED_DONE = 128,     /* [DONE] or a terminal event */
	DECODED_IGNORED = 256,  /* nothing of interest */
	DECODED_WHOLE_TEXT = 512, /* text is the whole answer so far, not this event's part */
	DECODED_OTHER = 1024,   /* carries a tool call or a refusal */
	DECODED_ABORTED = 2048, /* the finish reason says that the server aborted the answer */
};

/* Any content from the model; an event without these bits is empty. */
#define DECODED_CONTENT (DECODED_REASONING | DECODED_ANSWER | DECODED_OTHER)

struct decoded {
	unsigned bits;
	struct str text;        /* JSON-escaped answer text (borrowed), or the error */
	struct str other;       /* escaped reasoning, tool call arguments or refusal */
	struct str calls;       /* tool calls as a JSON list of deltas; empty: none */
	enum finish_reason finish; /* with DECODED_FINISH */
	/* -1: not reported; COUNT_IMPOSSIBLE (endpoint/event.h): reported but not a valid count. */
	int64_t prompt_tokens, output_tokens, cached_tokens, reasoning_tokens;
};

/* One request's body. A zeroed struct is an empty JSON one. */
struct encoded {
	struct buf body;
	char content_type[96];  /* empty: application/json; multipart names its boundary here */
};

/* How a streamed answer is cut into events. */
enum framing {
	FRAMING_SSE,    /* server-sent events: decode gets an event's data */
	FRAMING_LINES,  /* one JSON document a line (NDJSON): decode gets the line */
};

/* A whole answer that is not an event stream. */
struct answer {
	struct str head, body;
	const struct sample *sample; /* NULL when the run has no workload */
	struct str extra_body;       /* as given to encode: decides how the answer is read */
};

struct endpoint_header { const char *name, *value; };

struct endpoint {
	const char *name;        /* --backend */
	const char *suffix;      /* required end of the URL */
	const char *other_suffix;/* or this one; NULL: none */
	const char *api_name;    /* in the suffix error: "OpenAI Completions API" */
	const char *default_path;/* used in hints */
	bool is_streaming;
	bool is_pooling;
	bool is_openai;          /* sampling flags are allowed */
	bool has_logprobs;       /* the body has a member for --logprobs */
	bool is_ours;            /* not in upstream: --endpoint defaults to default_path */
	bool is_chat;            /* the server applies its chat template to prompts */
	bool is_eos_kept;        /* the API has no ignore_eos: answers may end early */
	bool is_model_unnamed;   /* requests name no model, so LoRA adapters cannot be used */
	bool is_error_final;     /* errors and cuts in a stream fail despite --compat
				  * stream-error */
	bool is_prompt_echoed;   /* an answer's text begins with the prompt's */
	enum framing framing;
	const struct endpoint_header *header; /* sent unless --header has them; NULL: none */
	size_t n_headers;
	const char *key_variable;/* the API's own key in the environment; NULL: none */
	const char *key_header;  /* header for that key; all others use a bearer token */
	/* self is this endpoint in all hooks; one read from a file embeds it. */
	/* Appends the body's bytes. Thread-safe. */
	int (*encode)(const struct endpoint *self, const struct encode_opts *o,
		      const struct sample *s, struct encoded *out, struct err *e);
	/* One event of the stream. -1: it cannot be read (e). NULL for pooling. */
	int (*decode)(const struct endpoint *self, struct str data, struct decoded *out,
		      struct err *e);
	/* A whole answer that is not an event stream (pooling). NULL: the API only streams. */
	int (*decode_answer)(const struct endpoint *self, const struct answer *answer,
			     struct decoded *out, struct err *e);
	/* Input sequences of a request, for pooling; NULL: one. */
	uint32_t (*sequences)(const struct sample *s);
	/* After a complete answer: NULL when it is a success, else the sentence of its failure. */
	const char *(*finish)(const struct request_row *row);
};

const struct endpoint *endpoint_find(const char *name);
/* Answers in one piece, for offline runs; endpoint_find does not know them. */
extern const struct endpoint endpoint_whole_completions, endpoint_whole_chat;

/* Checks that url ends in the API's suffix. ERR_USAGE otherwise. */
int endpoint_check_url(const struct endpoint *ep, const char *url, struct err *e);

/*
 * Overlays the members of a JSON object on a body being built as ordered
 * members: existing keys keep their place and take the new value, new keys are
 * appended (serve spec 3.2). Shared by every encode.
 */
struct body_member { struct str key, value; }; /* key as spelled between quotes; value JSON */
struct body { struct body_member member[64]; size_t n; };
int body_put(struct body *b, const char *key, struct str json, struct err *e);
int body_put_str(struct body *b, struct str key, struct str json, struct err *e);
int body_overlay(struct body *b, struct str object, struct err *e);
void body_write(const struct body *b, struct buf *out);

/* Appends a body without some of its keys. -1: it is not a JSON object (e). */
int body_omit(struct str json, const char *const *keys, size_t n, struct buf *out, struct err *e);
/*
 * Appends the keys of a body that a refusal names, separated by commas, except the ones every
 * request needs, such as the prompt. Appends nothing when json is not an object.
 */
void body_named_keys(struct str json, struct str refusal, struct buf *out);
/* As body_named_keys, for the keys that a sample's overrides have put into the body. */
void body_own_keys(struct str json, struct str overrides, struct buf *out);
