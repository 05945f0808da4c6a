/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sse.h - server-sent events by the WHATWG standard, incremental.
 *
 * Line ends CR, LF or CRLF; comments; event: id: retry: fields; several data lines joined by LF;
 * one optional blank after the colon; a BOM at the very start; fields may be split anywhere, even
 * inside a UTF-8 character. An event whose data is empty is not dispatched (the standard would
 * dispatch one for a bare "data:" line; none of the supported APIs uses that). Not in the standard:
 * llama.cpp's field error: is the data of an event named error. A blank line is needed to end an
 * event; sse_finish returns what is left at the end of the stream (some servers forget the last
 * blank line).
 *
 * Fast path: an event with one data line that is complete in one slice is returned in place,
 * without a copy. Only a partial event is kept, in carry.
 */
#pragma once
#include <stdbool.h>

#include "core/base/str.h"

struct sse {
	struct buf carry; /* bytes of the event begun but not ended; memory kept between events */
	bool is_started;  /* past a possible BOM */
	bool is_after_cr; /* a CR ended the last line; a following LF belongs to it */
	bool is_lent;     /* carry holds the event handed out by the last call */
};

struct sse_event {
	struct str data; /* borrowed until the next call */
	struct str name; /* event: field; empty when absent */
};

/* 1: an event; 0: *in is used up; -1: an event exceeds SSE_EVENT_BYTES_MAX. Consumes from *in. */
int sse_next(struct sse *s, struct str *in, struct sse_event *out);
/* 1: an unterminated last event; 0: none. */
int sse_finish(struct sse *s, struct sse_event *out);
/* For the next response; memory is kept up to STREAM_KEPT_BYTES_MAX. */
void sse_reset(struct sse *s);
void sse_release(struct sse *s);
