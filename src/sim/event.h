/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.h - the bytes of a streamed answer: server-sent events in HTTP chunks,
 * spelled as vLLM spells them.
 *
 * A stream's head (id, model and time do not change) is written once by
 * event_prepare; an event is that head, the tokens' text and a tail that is
 * nearly always the same, joined into one chunk ready for one send. All words
 * are plain ASCII letters, so texts need no escaping.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct event_form {
	struct buf head;       /* "data: {...", up to the choice's variable part */
	bool is_chat;
	bool has_usage_always; /* every event carries usage */
	bool is_crlf, is_commented;
	uint32_t prompt_tokens;
};

enum event_part { EVENT_ROLE, EVENT_TEXT, EVENT_REASONING };

struct event {
	enum event_part part;
	struct str text;
	uint32_t output_tokens;    /* so far, this event's included */
	const char *finish_reason; /* NULL except on the last one */
	struct str stop_reason;    /* the stop string that matched; empty: null */
	bool is_malformed;         /* cut in the middle of the JSON */
};

/* id: without the "cmpl-" or "chatcmpl-" in front. */
void event_prepare(struct event_form *f, bool is_chat, struct str id, struct str model,
		   int64_t created);
void event_write(const struct event_form *f, const struct event *v, struct buf *out);
/* The chunk with no choices that carries usage. */
void event_write_usage(const struct event_form *f, uint32_t output_tokens, struct buf *out);
void event_write_error(const struct event_form *f, const char *message, struct buf *out);
void event_write_done(const struct event_form *f, struct buf *out);
void event_form_release(struct event_form *f);

/* {"prompt_tokens":..,"total_tokens":..,"completion_tokens":..} */
void event_usage(uint32_t prompt_tokens, uint32_t output_tokens, struct buf *out);
