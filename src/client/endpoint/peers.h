/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - what the native APIs of other servers share: where sampling
 * options go in a body, and when an answer is a success. Private to endpoint/.
 */
#pragma once
#include "client/endpoint/endpoint.h"
#include "client/endpoint/event.h"

/*
 * Where the keys of the extra body go. Sampling flags go into the nested object and
 * other keys to the top, where an object named like the nested one is merged into it.
 */
struct peer_place {
	const char *nested;      /* NULL: everything is at the top */
	const char *top[4];      /* set: only these keys are at the top, all others nested */
	const char *repetition;  /* the API's name for repetition_penalty; NULL: the same */
	bool has_ignore_eos;     /* it belongs with the sampling flags */
	/* Whether a value switches an option off, which the API spells as null; NULL: never. */
	bool (*is_off)(struct str key, struct json_slice value);
};

/*
 * Ends a body: ignore_eos, extra body and the sample's overrides are put where place
 * says; the nested object (nested, NULL when there is none) becomes a member of top.
 * Values are borrowed until the bytes are in out.
 */
int peer_finish_body(const struct peer_place *place, struct body *top, struct body *nested,
		     const struct encode_opts *o, const struct sample *s, struct encoded *out,
		     struct err *e);

/* Adds "key": N, the output length; nothing when the sample has none. text: storage for N. */
int peer_put_length(struct body *b, const char *key, const struct sample *s, char text[24],
		    struct err *e);
/* The prompt as a quoted text; an error that names backend when it is not text. */
int peer_text_prompt(const char *backend, const struct sample *s, struct buf *quoted,
		     struct err *e);
/* A sample as chat messages, checked: a list of objects, each with a role. */
int peer_messages(const char *backend, const struct sample *s, struct buf *scratch,
		  struct json_slice *list, struct err *e);

/* If the error member says something, fills out and returns true. */
bool peer_error(struct json_slice error, struct decoded *out);
/*
 * Begins decoding: finds the members at paths, the one at index error among them. 1: v is filled;
 * 0: nothing more to read ([DONE], which sets done_bits, or an error); -1: not JSON.
 */
int peer_scan(const struct json_paths *paths, size_t error, unsigned done_bits, struct str data,
	      struct json_slice *v, struct decoded *out, struct err *e);
/* Sets the event's answer text and DECODED_ANSWER, unless it is empty. */
void peer_answer(struct json_slice text, struct decoded *out);
/* The same for text that is not the answer's; bit says which kind. */
void peer_other(struct json_slice text, unsigned bit, struct decoded *out);
/* Sets the counts (-1: not reported), and DECODED_USAGE when at least one was reported. */
void peer_usage(struct decoded *out, int64_t prompt, int64_t output, int64_t cached);
/* NULL for a success: at least one token event, and the stream said that the answer is complete. */
const char *peer_finish(const struct request_row *row);
