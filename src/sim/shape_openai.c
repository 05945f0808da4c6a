/* SPDX-License-Identifier: Apache-2.0 */
/* shape_openai.c - completions, chat completions and audio transcriptions, as vLLM spells them. */
#include <inttypes.h>

#include "json/write.h"
#include "sim/event.h"

#define EVENT_STREAM "text/event-stream; charset=utf-8"

/* "{...,"choices":[" of every event of the answer. */
static void openai_prepare(struct event_form *f, struct str prompt)
{
	(void)prompt;
	buf_add_text(&f->head, "{\"id\":");
	json_quote(&f->head, f->id, true);
	buf_printf(&f->head, ",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":",
		   f->shape->object, f->created);
	json_quote(&f->head, f->model, true);
	buf_add_text(&f->head, ",\"choices\":[");
}

static void stop_reason(struct buf *json, struct str stop)
{
	buf_add_text(json, ",\"stop_reason\":");
	if (stop.n)
		json_quote(json, stop, true);
	else
		buf_add_text(json, "null");
}

static void finish(struct buf *json, const char *reason)
{
	if (!reason) {
		buf_add_text(json, ",\"finish_reason\":null");
		return;
	}
	buf_add_text(json, ",\"finish_reason\":\"");
	buf_add_text(json, reason);
	buf_add_char(json, '"');
}

/* What follows the choice of an event with or without usage. */
static void choice_end(struct event_form *f, uint32_t tokens, const char *otherwise)
{
	if (!f->has_usage_always) {
		buf_add_text(&f->json, otherwise);
		return;
	}
	buf_add_text(&f->json, "}],\"usage\":");
	event_usage(f, tokens, &f->json);
	buf_add_char(&f->json, '}');
}

/* {"index":N */
static void index_begin(struct buf *json, uint32_t choice)
{
	buf_add_char(json, '{');
	event_number(json, "index", choice);
}

static void completions_event(struct event_form *f, const struct event *v, struct buf *out)
{
	struct buf *json = &f->json;

	buf_add_str(json, buf_str(&f->head));
	index_begin(json, v->choice);
	buf_add_text(json, ",\"text\":\"");
	buf_add_str(json, v->text);
	buf_add_text(json, "\",\"logprobs\":null");
	finish(json, v->finish_reason);
	stop_reason(json, v->stop_reason);
	choice_end(f, v->output_tokens, "}],\"usage\":null}");
	event_put(f, NULL, out);
}

static void chat_open(struct event_form *f, struct buf *out)
{
	for (uint32_t i = 0; i < f->choices; i++) {
		buf_add_str(&f->json, buf_str(&f->head));
		index_begin(&f->json, i);
		buf_add_text(&f->json, ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
			     "\"logprobs\":null,\"finish_reason\":null");
		choice_end(f, 0, "}]}");
		event_put(f, NULL, out);
	}
}

/* A call's first delta has its id and name, those after it pieces of its arguments. */
static void call_delta(struct buf *json, const struct event *v)
{
	buf_printf(json, ",\"delta\":{\"tool_calls\":[{\"index\":%" PRIu32, v->call);
	if (v->part == EVENT_CALL) {
		event_text(json, "id", v->call_id);
		buf_add_text(json, ",\"type\":\"function\",\"function\":{\"name\":");
		json_quote(json, v->name, true);
		buf_add_text(json, ",\"arguments\":\"\"}}]}");
	} else {
		buf_add_text(json, ",\"function\":{\"arguments\":\"");
		buf_add_str(json, v->text);
		buf_add_text(json, "\"}}]}");
	}
}

static void chat_event(struct event_form *f, const struct event *v, struct buf *out)
{
	struct buf *json = &f->json;

	buf_add_str(json, buf_str(&f->head));
	index_begin(json, v->choice);
	if (v->part == EVENT_CALL || v->part == EVENT_ARGUMENTS) {
		call_delta(json, v);
	} else {
		buf_add_text(json, v->part == EVENT_REASONING ?
			     ",\"delta\":{\"reasoning_content\":\"" :
			     ",\"delta\":{\"content\":\"");
		buf_add_str(json, v->text);
		buf_add_text(json, "\"}");
	}
	buf_add_text(json, ",\"logprobs\":null");
	finish(json, v->finish_reason);
	if (v->finish_reason)
		stop_reason(json, v->stop_reason);
	choice_end(f, v->output_tokens, "}]}");
	event_put(f, NULL, out);
}

static void audio_event(struct event_form *f, const struct event *v, struct buf *out)
{
	struct buf *json = &f->json;

	buf_add_str(json, buf_str(&f->head));
	buf_add_text(json, "{\"delta\":{\"content\":\"");
	buf_add_str(json, v->text);
	buf_add_text(json, "\"}");
	finish(json, v->finish_reason);
	stop_reason(json, v->stop_reason);
	choice_end(f, v->output_tokens, "}]}");
	event_put(f, NULL, out);
}

/* The event with no choices that carries usage; only asked for when the client wants one. */
static void openai_close(struct event_form *f, const struct ending *v, struct buf *out)
{
	if (f->is_without_usage)
		return;
	buf_add_str(&f->json, buf_str(&f->head));
	buf_add_text(&f->json, "],\"usage\":");
	event_usage(f, v->output_tokens, &f->json);
	buf_add_char(&f->json, '}');
	event_put(f, NULL, out);
}

/* ---- not streamed ---- */

static void quoted_or_null(struct buf *json, const char *key, struct str text)
{
	if (text.n) {
		event_text(json, key, text);
		return;
	}
	event_key(json, key);
	buf_add_text(json, "null");
}

static void whole_begin(struct event_form *f, const char *object)
{
	struct buf *json = &f->json;

	buf_add_text(json, "{\"id\":");
	json_quote(json, f->id, true);
	buf_printf(json, ",\"object\":\"%s\",\"created\":%" PRId64 ",\"model\":", object,
		   f->created);
	json_quote(json, f->model, true);
	buf_add_text(json, ",\"choices\":[");
}

static void whole_choice_end(struct event_form *f, const struct ending *v)
{
	struct buf *json = &f->json;

	buf_add_text(json, ",\"logprobs\":null");
	finish(json, v->finish_reason);
	stop_reason(json, v->stop_reason);
	buf_add_text(json, v->next ? "}," : "}");
}

static void whole_end(struct event_form *f, const struct ending *v)
{
	struct buf *json = &f->json;

	buf_add_char(json, ']');
	if (!f->is_without_usage) {
		event_key(json, "usage");
		event_usage(f, v->output_tokens, json);
	}
	buf_add_char(json, '}');
}

static void completions_whole(struct event_form *f, const struct ending *v)
{
	uint32_t i = 0;

	whole_begin(f, "text_completion");
	for (const struct ending *x = v; x; x = x->next) {
		index_begin(&f->json, i++);
		event_text(&f->json, "text", x->text);
		whole_choice_end(f, x);
	}
	whole_end(f, v);
}

static void chat_whole(struct event_form *f, const struct ending *v)
{
	struct buf *json = &f->json;
	uint32_t i = 0;

	whole_begin(f, "chat.completion");
	for (const struct ending *x = v; x; x = x->next) {
		index_begin(json, i++);
		buf_add_text(json, ",\"message\":{\"role\":\"assistant\"");
		quoted_or_null(json, "reasoning_content", x->reasoning);
		quoted_or_null(json, "content", x->text);
		buf_add_text(json, ",\"tool_calls\":[");
		buf_add_str(json, x->calls);
		buf_add_text(json, "]}");
		whole_choice_end(f, x);
	}
	whole_end(f, v);
}

static void audio_whole(struct event_form *f, const struct ending *v)
{
	buf_add_char(&f->json, '{');
	event_text(&f->json, "text", v->text);
	if (!f->is_without_usage) {
		event_key(&f->json, "usage");
		event_usage(f, v->output_tokens, &f->json);
	}
	buf_add_char(&f->json, '}');
}

const struct shape shape_completions = {
	.object = "text_completion", .id_prefix = "cmpl-", .type = EVENT_STREAM, .data = "data: ",
	.has_done = true, .prepare = openai_prepare, .event = completions_event,
	.close = openai_close, .error = event_error_openai, .whole = completions_whole,
};

const struct shape shape_chat = {
	.object = "chat.completion.chunk", .id_prefix = "chatcmpl-", .type = EVENT_STREAM,
	.data = "data: ", .has_done = true, .has_reasoning = true, .is_opening_counted = true,
	.prepare = openai_prepare, .open = chat_open, .event = chat_event,
	.close = openai_close, .error = event_error_openai, .whole = chat_whole,
};

const struct shape shape_audio = {
	.object = "transcription.chunk", .id_prefix = "trsc-", .type = EVENT_STREAM,
	.data = "data: ", .has_done = true, .prepare = openai_prepare, .event = audio_event,
	.close = openai_close, .error = event_error_openai, .whole = audio_whole,
};
