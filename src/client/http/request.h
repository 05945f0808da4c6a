/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - the server's side of HTTP/1.1: an incremental, strict reader of one request after
 * another on one connection, and functions that write the answers.
 *
 * The reader follows the rules of http/response.h: contiguous bytes in, slices of them out; bytes
 * left in *in after HTTP_NEED must precede the next read. Refused: what http/head.h refuses, both
 * Content-Length and Transfer-Encoding, HTTP/1.1 without Host, other versions, the HTTP/2 preface.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "client/http/body.h" /* enum http_found */
#include "client/http/head.h" /* http_head_value */
#include "core/base/err.h"
#include "core/base/str.h"

struct http_request {
	uint64_t left;            /* body or chunk bytes still to come */
	struct str method;        /* borrowed from the head that HTTP_HEAD returned in *part */
	struct str target;        /* also borrowed; as sent: path and query, or a whole URL */
	uint16_t bad_status;      /* after HTTP_BAD: the status to answer with before closing */
	uint8_t state;            /* private: enum http_body_state */
	bool is_keep_alive;       /* the client may send another request after the answer */
	bool is_chunked;
	bool is_continue_wanted;  /* Expect: 100-continue; send HTTP_CONTINUE before the body */
};

#define HTTP_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

/* A zeroed struct is a reader waiting for a request line. */
enum http_found http_request_next(struct http_request *r, struct str *in, struct str *part,
				  struct err *e);
/* Between two requests: if no bytes are kept either, the peer may close without a loss. */
bool http_request_is_between(const struct http_request *r);

/* ---- answers ---- */

#define HTTP_LENGTH_CHUNKED (-1) /* the body follows through http_write_chunk */
#define HTTP_LENGTH_NONE (-2)    /* no framing header: 204, or the end of the connection ends it */

/*
 * Status line and headers with the blank line. type: Content-Type, or NULL; length: of the body, or
 * one of the above; extra: more header lines, each with its CRLF, or NULL.
 */
void http_write_head(struct buf *out, unsigned status, const char *type, int64_t length,
		     const char *extra);
void http_write_chunk(struct buf *out, struct str data); /* empty data writes nothing */
void http_write_last_chunk(struct buf *out);
const char *http_status_reason(unsigned status); /* "OK"; "Unknown" for those not in the table */
