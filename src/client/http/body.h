/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.h - message bodies: by length, chunked, or until the peer closes.
 *
 * Shared by the response and the request reader, which own the struct and set
 * state and left when a head is complete. The rules for *in and *part are those
 * of http/response.h.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

enum http_found {
	HTTP_NEED,  /* more bytes needed; keep what is left of *in */
	HTTP_HEAD,  /* the head is complete: status and flags are set; *part is the whole head */
	HTTP_BODY,  /* *part is a piece of the (de-chunked) body, borrowed from *in */
	HTTP_END,   /* the message is complete; the reader is ready for the next one */
	HTTP_BAD,   /* e tells why; the connection is unusable */
};

enum http_body_state {
	HTTP_BODY_NONE,      /* no message begun */
	HTTP_BODY_LENGTH,    /* left bytes to come */
	HTTP_BODY_CLOSE,     /* everything until the peer closes */
	HTTP_BODY_SIZE,      /* at a chunk's size line */
	HTTP_BODY_CHUNK,     /* left bytes of a chunk to come */
	HTTP_BODY_CHUNK_END, /* at the line end after a chunk */
	HTTP_BODY_TRAILER,   /* at a trailer line or the last blank line */
	HTTP_BODY_BROKEN,    /* HTTP_BAD was returned */
};

/* Not in states NONE and BROKEN. HTTP_END sets the state to HTTP_BODY_NONE. */
enum http_found http_body_next(uint64_t *left, uint8_t *state, struct str *in,
			       struct str *part, struct err *e);
