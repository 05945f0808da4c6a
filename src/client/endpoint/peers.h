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
	const char *repetition;  /* the API's name of repetition_penalty; NULL: the same */
	bool has_ignore_eos;     /* it is in the place of the sampling flags */
	/* Values that switch an option off, which the API has null for; NULL: none. */
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

/* "key": N for the length of the answer; nothing when the sample has none. text: its room. */
int peer_put_length(struct body *b, const char *key, const struct sample *s, char text[24],
		    struct err *e);
/* The prompt as a quoted text; an error that names backend when it is not text. */
int peer_text_prompt(const char *backend, const struct sample *s, struct buf *quoted,
		     struct err *e);
/* A sample as chat messages, checked: a list of objects, each with a role. */
int peer_messages(const char *backend, const struct sample *s, struct buf *scratch,
		  struct json_slice *list, struct err *e);

/* An error member that says something: fills out and returns true. */
bool peer_error(struct json_slice error, struct decoded *out);
/*
 * How decoding begins: finds the members at paths, the one at index error among them. 1: v is
 * filled; 0: all is said ([DONE], which counts as done_bits, or an error); -1: it is not JSON.
 */
int peer_scan(const struct json_paths *paths, size_t error, unsigned done_bits, struct str data,
	      struct json_slice *v, struct decoded *out, struct err *e);
/* Text of an event: DECODED_ANSWER with it when there is some. */
void peer_answer(struct json_slice text, struct decoded *out);
/* Likewise of text that is not the answer's: bit says which kind. */
void peer_other(struct json_slice text, unsigned bit, struct decoded *out);
/* Counts that are told; -1 otherwise. DECODED_USAGE when at least one is. */
void peer_usage(struct decoded *out, int64_t prompt, int64_t output, int64_t cached);
/* Success: at least one token event, and the stream said that the answer is whole. */
const char *peer_finish(const struct request_row *row);
