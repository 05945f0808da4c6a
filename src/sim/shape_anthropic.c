/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_anthropic.c - the Messages API: a block of thinking, a block of text,
 * counts at both ends of the stream. no-done leaves out message_stop.
 */
#include <inttypes.h>

#include "json/write.h"
#include "sim/event.h"

/* The prompt's counts, without braces; those of the cache are not in input_tokens. */
static void input_usage(const struct event_form *f, struct buf *json)
{
	event_number(json, "input_tokens", f->prompt_tokens - f->cached_tokens);
	event_number(json, "cache_creation_input_tokens", 0);
	event_number(json, "cache_read_input_tokens", f->cached_tokens);
}

static void message_begin(struct event_form *f)
{
	struct buf *json = &f->json;

	buf_add_text(json, "{\"id\":");
	json_quote(json, f->id, true);
	buf_add_text(json, ",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
	json_quote(json, f->model, true);
}

static void anthropic_open(struct event_form *f, struct buf *out)
{
	struct buf *json = &f->json;

	buf_add_text(json, "{\"type\":\"message_start\",\"message\":");
	message_begin(f);
	buf_add_text(json, ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null");
	if (!f->is_without_usage) {
		buf_add_text(json, ",\"usage\":{");
		input_usage(f, json);
		event_number(json, "output_tokens", 1);
		buf_add_char(json, '}');
	}
	buf_add_text(json, "}}");
	event_put(f, "message_start", out);
	buf_add_text(json, "{\"type\":\"ping\"}");
	event_put(f, "ping", out);
}

static void block_close(struct event_form *f, struct buf *out)
{
	if (f->block < 0)
		return;
	buf_printf(&f->json, "{\"type\":\"content_block_stop\",\"index\":%" PRIu32 "}",
		   f->sequence++);
	event_put(f, "content_block_stop", out);
	f->block = -1;
}

static void block_open(struct event_form *f, enum event_part part, struct buf *out)
{
	f->block = (int)part;
	buf_printf(&f->json, "{\"type\":\"content_block_start\",\"index\":%" PRIu32
		   ",\"content_block\":%s}", f->sequence, part == EVENT_REASONING ?
		   "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}" :
		   "{\"type\":\"text\",\"text\":\"\"}");
	event_put(f, "content_block_start", out);
}

static void anthropic_event(struct event_form *f, const struct event *v, struct buf *out)
{
	bool is_thinking = v->part == EVENT_REASONING;

	if (f->block != (int)v->part) {
		block_close(f, out);
		block_open(f, v->part, out);
	}
	buf_printf(&f->json, "{\"type\":\"content_block_delta\",\"index\":%" PRIu32
		   ",\"delta\":{\"type\":\"%s\"", f->sequence,
		   is_thinking ? "thinking_delta" : "text_delta");
	event_text(&f->json, is_thinking ? "thinking" : "text", v->text);
	buf_add_text(&f->json, "}}");
	event_put(f, "content_block_delta", out);
}

static void stop_write(const struct ending *v, struct buf *json)
{
	const char *reason = strcmp(v->finish_reason, "length") == 0 ? "max_tokens" :
			     v->stop_reason.n ? "stop_sequence" : "end_turn";

	event_text(json, "stop_reason", str_of(reason));
	event_key(json, "stop_sequence");
	if (v->stop_reason.n)
		json_quote(json, v->stop_reason, true);
	else
		buf_add_text(json, "null");
}

static void anthropic_close(struct event_form *f, const struct ending *v, struct buf *out)
{
	struct buf *json = &f->json;

	block_close(f, out);
	buf_add_text(json, "{\"type\":\"message_delta\",\"delta\":{");
	stop_write(v, json);
	buf_add_char(json, '}');
	if (!f->is_without_usage)
		buf_printf(json, ",\"usage\":{\"output_tokens\":%" PRIu32 "}", v->output_tokens);
	buf_add_char(json, '}');
	event_put(f, "message_delta", out);
	if (f->is_without_done)
		return;
	buf_add_text(json, "{\"type\":\"message_stop\"}");
	event_put(f, "message_stop", out);
}

static void anthropic_error(struct event_form *f, const char *message, struct buf *out)
{
	buf_add_text(&f->json, "{\"type\":\"error\",\"error\":{\"type\":\"api_error\"");
	event_text(&f->json, "message", str_of(message));
	buf_add_text(&f->json, "}}");
	event_put(f, "error", out);
}

static void anthropic_whole(struct event_form *f, const struct ending *v)
{
	struct buf *json = &f->json;

	message_begin(f);
	buf_add_text(json, ",\"content\":[");
	if (v->reasoning.n) {
		buf_add_text(json, "{\"type\":\"thinking\"");
		event_text(json, "thinking", v->reasoning);
		buf_add_text(json, v->text.n ? ",\"signature\":\"\"}," : ",\"signature\":\"\"}");
	}
	if (v->text.n) {
		buf_add_text(json, "{\"type\":\"text\"");
		event_text(json, "text", v->text);
		buf_add_char(json, '}');
	}
	buf_add_char(json, ']');
	stop_write(v, json);
	if (!f->is_without_usage) {
		buf_add_text(json, ",\"usage\":{");
		input_usage(f, json);
		event_number(json, "output_tokens", v->output_tokens);
		buf_add_char(json, '}');
	}
	buf_add_char(json, '}');
}

const struct shape shape_anthropic = {
	.id_prefix = "msg_", .type = "text/event-stream; charset=utf-8", .data = "data: ",
	.has_reasoning = true, .open = anthropic_open, .event = anthropic_event,
	.close = anthropic_close, .error = anthropic_error, .whole = anthropic_whole,
};
