/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_responses.c - the Responses API: named, numbered events around one
 * output item for the reasoning and one for the answer. Usage comes with the
 * terminal event, which no-done leaves out.
 */
#include <assert.h>
#include <inttypes.h>

#include "json/write.h"
#include "sim/event.h"

static void numbered(struct event_form *f, const char *type)
{
	buf_add_char(&f->json, '{');
	event_text(&f->json, "type", str_of(type));
	event_number(&f->json, "sequence_number", f->sequence++);
}

/* {"id":..,"object":"response",..,"status":".." without the closing brace. */
static void response_begin(struct event_form *f, struct buf *json, const char *status)
{
	buf_add_text(json, "{\"id\":");
	json_quote(json, f->id, true);
	buf_printf(json, ",\"object\":\"response\",\"created_at\":%" PRId64 ",\"model\":",
		   f->created);
	json_quote(json, f->model, true);
	event_text(json, "status", str_of(status));
	event_key(json, "error");
	buf_add_text(json, "null");
}

static void responses_open(struct event_form *f, struct buf *out)
{
	static const char *const types[] = { "response.created", "response.in_progress" };

	for (int i = 0; i < 2; i++) {
		numbered(f, types[i]);
		event_key(&f->json, "response");
		response_begin(f, &f->json, "in_progress");
		buf_add_text(&f->json, ",\"output\":[],\"usage\":null}}");
		event_put(f, types[i], out);
	}
}

static const char *item_type(int block)
{
	return block == EVENT_REASONING ? "reasoning" : "message";
}

/* The number of an output item: the answer follows the reasoning when there was any. */
static int item_index(const struct event_form *f)
{
	return f->block == EVENT_TEXT && f->head.len ? 1 : 0;
}

static void item_head(struct event_form *f, const char *type)
{
	numbered(f, type);
	event_number(&f->json, "output_index", item_index(f));
}

static void item_name(struct event_form *f)
{
	buf_printf(&f->json, ",\"item_id\":\"%s_%d\",\"content_index\":0",
		   f->block == EVENT_REASONING ? "rs" : "msg", item_index(f));
}

static void item_open(struct event_form *f, enum event_part part, struct buf *out)
{
	f->block = (int)part;
	item_head(f, "response.output_item.added");
	buf_printf(&f->json, ",\"item\":{\"id\":\"%s_%d\",\"type\":\"%s\",\"status\":"
		   "\"in_progress\",\"content\":[]}}", part == EVENT_REASONING ? "rs" : "msg",
		   item_index(f), item_type(f->block));
	event_put(f, "response.output_item.added", out);
	item_head(f, "response.content_part.added");
	item_name(f);
	buf_printf(&f->json, ",\"part\":{\"type\":\"%s\",\"text\":\"\"}}",
		   part == EVENT_REASONING ? "reasoning_text" : "output_text");
	event_put(f, "response.content_part.added", out);
}

static void item_close(struct event_form *f, struct buf *out)
{
	bool is_reasoning = f->block == EVENT_REASONING;
	const char *type = is_reasoning ? "response.reasoning_text.done" :
			   "response.output_text.done";

	if (f->block < 0)
		return;
	item_head(f, type);
	item_name(f);
	event_text(&f->json, "text", buf_str(&f->said));
	buf_add_char(&f->json, '}');
	event_put(f, type, out);
	item_head(f, "response.output_item.done");
	buf_printf(&f->json, ",\"item\":{\"id\":\"%s_%d\",\"type\":\"%s\",\"status\":"
		   "\"completed\"}}", is_reasoning ? "rs" : "msg", item_index(f),
		   item_type(f->block));
	event_put(f, "response.output_item.done", out);
	/* What was said moves on to the head, where it counts as an earlier item. */
	if (is_reasoning)
		buf_add_str(&f->head, buf_str(&f->said));
	buf_reset(&f->said);
	f->block = -1;
}

static void responses_event(struct event_form *f, const struct event *v, struct buf *out)
{
	const char *type = v->part == EVENT_REASONING ? "response.reasoning_text.delta" :
			   "response.output_text.delta";

	if (f->block != (int)v->part) {
		item_close(f, out);
		item_open(f, v->part, out);
	}
	item_head(f, type);
	item_name(f);
	event_text(&f->json, "delta", v->text);
	buf_add_text(&f->json, v->part == EVENT_REASONING ? "}" : ",\"logprobs\":[]}");
	event_put(f, type, out);
	buf_add_str(&f->said, v->text);
}

static void usage_write(const struct event_form *f, const struct ending *v, struct buf *json)
{
	event_key(json, "usage");
	if (f->is_without_usage) {
		buf_add_text(json, "null");
		return;
	}
	buf_add_char(json, '{');
	event_number(json, "input_tokens", f->prompt_tokens);
	buf_printf(json, ",\"input_tokens_details\":{\"cached_tokens\":%" PRIu32 "}",
		   f->cached_tokens);
	event_number(json, "output_tokens", v->output_tokens);
	buf_printf(json, ",\"output_tokens_details\":{\"reasoning_tokens\":%" PRIu32 "}",
		   v->reasoning_tokens);
	event_number(json, "total_tokens", (int64_t)f->prompt_tokens + v->output_tokens);
	buf_add_char(json, '}');
}

static void output_item(struct buf *json, const char *type, const char *part, struct str text)
{
	if (text.n == 0)
		return;
	if (json->data[json->len - 1] != '[')
		buf_add_char(json, ',');
	buf_printf(json, "{\"id\":\"%s\",\"type\":\"%s\",\"status\":\"completed\",\"content\":["
		   "{\"type\":\"%s\"", type, type, part);
	event_text(json, "text", text);
	buf_add_text(json, "}]}");
}

/* The response with all it became. */
static void response_end(struct event_form *f, const struct ending *v)
{
	bool is_cut = strcmp(v->finish_reason, "length") == 0;
	struct buf *json = &f->json;

	response_begin(f, json, is_cut ? "incomplete" : "completed");
	buf_printf(json, ",\"incomplete_details\":%s,\"output\":[",
		   is_cut ? "{\"reason\":\"max_output_tokens\"}" : "null");
	output_item(json, "reasoning", "reasoning_text", v->reasoning);
	output_item(json, "message", "output_text", v->text);
	buf_add_char(json, ']');
	usage_write(f, v, json);
	buf_add_char(json, '}');
}

static void responses_close(struct event_form *f, const struct ending *v, struct buf *out)
{
	item_close(f, out);
	if (f->is_without_done)
		return;
	numbered(f, "response.completed");
	event_key(&f->json, "response");
	response_end(f, v);
	buf_add_char(&f->json, '}');
	event_put(f, "response.completed", out);
}

static void responses_error(struct event_form *f, const char *message, struct buf *out)
{
	numbered(f, "error");
	event_text(&f->json, "code", STR("server_error"));
	event_text(&f->json, "message", str_of(message));
	buf_add_text(&f->json, ",\"param\":null}");
	event_put(f, "error", out);
}

const struct shape shape_responses = {
	.id_prefix = "resp_", .type = "text/event-stream; charset=utf-8", .data = "data: ",
	.has_reasoning = true, .open = responses_open, .event = responses_event,
	.close = responses_close, .error = responses_error, .whole = response_end,
};
