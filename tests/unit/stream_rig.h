/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_rig.h - a stream decoded as the load path does: framing, events, text, counts.
 * What comes of it is one line, so that a case is a stream and a line.
 */
#pragma once
#include <inttypes.h>

#include "client/endpoint/endpoint.h"
#include "client/endpoint/whole_text.h"
#include "client/http/lines.h"
#include "client/http/sse.h"

struct stream {
	const struct endpoint *ep;
	const char *prompt;       /* for APIs that echo it; NULL: none */
	struct buf text, error;
	size_t seen;
	int64_t prompt_tokens, output_tokens, cached_tokens, reasoning_tokens;
	unsigned tokens, answers, thoughts, bad;
	struct request_row row;
};

static inline int64_t later(int64_t old, int64_t now)
{
	return now >= 0 ? now : old;
}

static inline void stream_event(struct stream *s, struct str data)
{
	struct decoded d = { .prompt_tokens = -1, .output_tokens = -1, .cached_tokens = -1,
			     .reasoning_tokens = -1 };
	struct err e = { 0 };

	if (s->ep->decode(s->ep, data, &d, &e) < 0) {
		s->bad++;
		buf_add_text(&s->error, e.text);
		return;
	}
	if (d.bits & DECODED_ERROR)
		buf_add_str(&s->error, d.text);
	if (d.bits & DECODED_FINISH)
		s->row.flags |= ROW_SAW_FINISH;
	if (d.bits & DECODED_DONE)
		s->row.flags |= ROW_SAW_DONE;
	if (d.bits & DECODED_WHOLE_TEXT) {
		if (s->ep->is_prompt_echoed && s->prompt && !s->seen)
			s->seen = whole_text_prompt(d.text, str_of(s->prompt));
		d.text = whole_text_new(d.text, &s->seen, d.bits & DECODED_FINISH);
	}
	if (d.bits & DECODED_TOKEN) {
		s->tokens++;
		s->row.first_event_ns = 1;
	}
	if (d.bits & DECODED_ANSWER)
		s->answers++;
	if (d.bits & DECODED_REASONING)
		s->thoughts++;
	buf_add_str(&s->text, d.text.p && d.bits & DECODED_ANSWER ? d.text : (struct str){ 0 });
	if (d.bits & DECODED_USAGE) {
		s->prompt_tokens = later(s->prompt_tokens, d.prompt_tokens);
		s->output_tokens = later(s->output_tokens, d.output_tokens);
		s->cached_tokens = later(s->cached_tokens, d.cached_tokens);
		s->reasoning_tokens = later(s->reasoning_tokens, d.reasoning_tokens);
	}
}

/* Feeds bytes, step at a time, and writes the result; caller frees. */
static inline char *stream_run(const struct endpoint *ep, const char *prompt, const char *bytes,
			       size_t step)
{
	struct stream s = { .ep = ep, .prompt = prompt, .prompt_tokens = -1, .output_tokens = -1,
			    .cached_tokens = -1, .reasoning_tokens = -1 };
	struct str rest = str_of(bytes), line;
	struct lines lines = { 0 };
	struct sse sse = { 0 };
	struct sse_event event;
	struct buf out = { 0 };
	const char *unfinished;

	while (rest.n) {
		struct str piece = { rest.p, step < rest.n ? step : rest.n };

		rest.p += piece.n;
		rest.n -= piece.n;
		while (ep->framing == FRAMING_LINES && lines_next(&lines, &piece, &line) == 1)
			stream_event(&s, line);
		while (ep->framing == FRAMING_SSE && sse_next(&sse, &piece, &event) == 1)
			stream_event(&s, event.data);
	}
	if (sse_finish(&sse, &event) == 1)
		stream_event(&s, event.data);
	if (lines_finish(&lines, &line) == 1)
		stream_event(&s, line);
	unfinished = ep->finish(&s.row);
	buf_printf(&out, "%u tokens, %u answers, %u thoughts, text '", s.tokens, s.answers,
		   s.thoughts);
	buf_add_str(&out, buf_str(&s.text));
	buf_printf(&out, "', counts %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, s.prompt_tokens,
		   s.output_tokens, s.cached_tokens, s.reasoning_tokens);
	if (s.error.len)
		buf_printf(&out, ", error %s", s.error.data);
	if (unfinished)
		buf_printf(&out, ", %s", unfinished);
	buf_release(&s.text);
	buf_release(&s.error);
	sse_release(&sse);
	lines_release(&lines);
	return buf_take(&out);
}
