/* SPDX-License-Identifier: Apache-2.0 */
/*
 * response.h - the client's side of HTTP/1.1: an incremental, strict reader
 * of one response after another on one connection. Pure codec: bytes in, slices
 * of those bytes out; it never copies and never allocates.
 *
 * The caller feeds contiguous bytes; http_response_next() consumes from the
 * front of *in and says what it found. On HTTP_NEED the bytes left in *in (part
 * of a head or of a chunk line, never body) must be kept in front of the next
 * read; they are limited to HTTP_HEAD_BYTES_MAX.
 *
 * Handles: 1xx (skipped), 204/304, Content-Length, chunked with extensions and
 * trailers, close-delimited bodies, bare LF line ends, obs-fold refused.
 * Refused: both Content-Length and Transfer-Encoding chunked (smuggling),
 * several different lengths, other transfer codings, content codings (we ask
 * for identity), HTTP/2 prefaces.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "client/http/body.h" /* enum http_found */
#include "client/http/head.h" /* http_head_value */
#include "core/base/err.h"
#include "core/base/str.h"

struct http_response {
	uint64_t left;           /* body or chunk bytes still to come */
	uint16_t status;
	uint8_t state;           /* private: enum http_body_state */
	bool is_keep_alive;      /* the connection may be reused after HTTP_END */
	bool is_chunked;
	bool is_until_close;     /* the body ends when the server closes */
	bool is_event_stream;    /* Content-Type is text/event-stream */
	bool is_head_request;    /* set by the caller before a HEAD answer */
	bool is_connect_request; /* set by the caller before a CONNECT answer: 2xx has no body */
};

/* A zeroed struct is a reader waiting for a status line. */
enum http_found http_response_next(struct http_response *r, struct str *in, struct str *part,
				   struct err *e);
/* The peer closed. 0: that is a legal end (until-close body); -1: the message is cut short. */
int http_response_eof(struct http_response *r, struct err *e);

/* The reason phrase of a response head ("" when absent). */
struct str http_head_reason(struct str head);
