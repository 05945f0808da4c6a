/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head.h - what request and response heads have in common: where a head ends, its header lines, and
 * how they frame the body.
 *
 * Works on complete heads in memory; borrows, never copies. Line ends are CRLF or a bare LF.
 * Refused: a line that continues the one before (obs-fold), blanks before the colon, NUL and a lone
 * CR.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

/*
 * Bytes up to and including the blank line that ends the head at the front of in; 0: not complete
 * yet; -1: longer than HTTP_HEAD_BYTES_MAX (e is filled).
 */
ptrdiff_t http_head_end(struct str in, struct err *e);

/* Cuts the next line, without its end, from *rest; false at the blank line. */
bool http_head_line(struct str *rest, struct str *line);

/* Value of the first such header (case-insensitive) in a complete head; empty p when absent. */
struct str http_head_value(struct str head, const char *name);

/* Whether s is a token: not empty, only characters allowed in a header name or method. */
bool http_is_token(struct str s);
/* Whether the line "name: value" can be sent: name is a token, value has no NUL, CR or LF. */
bool http_header_is_plain(struct str name, struct str value);

/* Whether a header concerns framing or transport: only the code that writes messages sets those. */
bool http_head_is_framing(struct str name);

struct http_framing {
	uint64_t length;
	bool has_length;
	bool is_chunked;
	bool is_event_stream;     /* Content-Type: text/event-stream */
	bool is_close;            /* Connection: close */
	bool is_keep_alive;       /* Connection: keep-alive */
	bool is_continue_wanted;  /* Expect: 100-continue */
	bool has_host;
	struct str coding;        /* Content-Encoding other than identity; empty p when none */
};

/* Reads the header lines of head after its first line into *f. -1: e says what is wrong. */
int http_framing_read(struct str head, struct http_framing *f, struct err *e);

#define HTTP_EXCERPT_BYTES 64
/* The beginning of s for a message: one line, printable ASCII. Returns out. */
const char *http_excerpt(char out[HTTP_EXCERPT_BYTES], struct str s);
