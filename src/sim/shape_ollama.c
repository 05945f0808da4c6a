/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_ollama.c - Ollama's /api/generate and /api/chat: a JSON document a
 * line; the last one, which no-done leaves out, has the counts.
 */
#include <inttypes.h>
#include <time.h>

#include "json/write.h"
#include "sim/event.h"

/* {"model":..,"created_at":.. of every line. */
static void ollama_prepare(struct event_form *f, struct str prompt)
{
	time_t at = (time_t)f->created;
	char text[32];
	struct tm tm;

	(void)prompt;
	gmtime_r(&at, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_add_text(&f->head, "{\"model\":");
	json_quote(&f->head, f->model, true);
	event_text(&f->head, "created_at", str_of(text));
}

/* The member that holds text: /api/generate keeps it on top, /api/chat in a message. */
static void said_write(struct event_form *f, struct str thinking, struct str text)
{
	struct buf *json = &f->json;
	bool is_chat = f->shape == &shape_ollama_chat;

	if (is_chat)
		buf_add_text(json, ",\"message\":{\"role\":\"assistant\"");
	event_text(json, is_chat ? "content" : "response", text);
	if (thinking.n)
		event_text(json, "thinking", thinking);
	if (is_chat)
		buf_add_char(json, '}');
}

static void ollama_event(struct event_form *f, const struct event *v, struct buf *out)
{
	struct str none = { 0 };

	buf_add_str(&f->json, buf_str(&f->head));
	if (v->part == EVENT_REASONING)
		said_write(f, v->text, none);
	else
		said_write(f, none, v->text);
	buf_add_text(&f->json, ",\"done\":false}");
	event_put(f, NULL, out);
}

static void ollama_end(struct event_form *f, const struct ending *v)
{
	struct buf *json = &f->json;

	buf_add_str(json, buf_str(&f->head));
	said_write(f, v->reasoning, v->text);
	event_key(json, "done");
	buf_add_text(json, "true");
	event_text(json, "done_reason", str_of(v->finish_reason));
	if (!f->is_without_usage) {
		event_number(json, "total_duration", v->prefill_ns + v->decode_ns);
		event_number(json, "load_duration", 0);
		event_number(json, "prompt_eval_count", f->prompt_tokens);
		event_number(json, "prompt_eval_duration", v->prefill_ns);
		event_number(json, "eval_count", v->output_tokens);
		event_number(json, "eval_duration", v->decode_ns);
	}
	buf_add_char(json, '}');
}

static void ollama_close(struct event_form *f, const struct ending *v, struct buf *out)
{
	if (f->is_without_done)
		return;
	ollama_end(f, v);
	event_put(f, NULL, out);
}

static void ollama_error(struct event_form *f, const char *message, struct buf *out)
{
	buf_add_char(&f->json, '{');
	event_text(&f->json, "error", str_of(message));
	buf_add_char(&f->json, '}');
	event_put(f, NULL, out);
}

const struct shape shape_ollama = {
	.id_prefix = "", .type = "application/x-ndjson", .is_lines = true, .has_reasoning = true,
	.prepare = ollama_prepare, .event = ollama_event, .close = ollama_close,
	.error = ollama_error, .whole = ollama_end,
};

const struct shape shape_ollama_chat = {
	.id_prefix = "", .type = "application/x-ndjson", .is_lines = true, .has_reasoning = true,
	.prepare = ollama_prepare, .event = ollama_event, .close = ollama_close,
	.error = ollama_error, .whole = ollama_end,
};
