/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c - how each API spells an answer; see event.h. */
#include <assert.h>
#include <inttypes.h>
#include <time.h>

#include "core/json/write.h"
#include "sim/serving/event.h"

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

/* The text after the choice of an event, with or without usage. */
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

/* The event without choices that has usage; only called when the client wants one. */
static void openai_close(struct event_form *f, const struct event_ending *v, struct buf *out)
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

static void whole_choice_end(struct event_form *f, const struct event_ending *v)
{
	struct buf *json = &f->json;

	buf_add_text(json, ",\"logprobs\":null");
	finish(json, v->finish_reason);
	stop_reason(json, v->stop_reason);
	buf_add_text(json, v->next ? "}," : "}");
}

static void whole_end(struct event_form *f, const struct event_ending *v)
{
	struct buf *json = &f->json;

	buf_add_char(json, ']');
	if (!f->is_without_usage) {
		event_key(json, "usage");
		event_usage(f, v->output_tokens, json);
	}
	buf_add_char(json, '}');
}

static void completions_whole(struct event_form *f, const struct event_ending *v)
{
	uint32_t i = 0;

	whole_begin(f, "text_completion");
	for (const struct event_ending *x = v; x; x = x->next) {
		index_begin(&f->json, i++);
		event_text(&f->json, "text", x->text);
		whole_choice_end(f, x);
	}
	whole_end(f, v);
}

static void chat_whole(struct event_form *f, const struct event_ending *v)
{
	struct buf *json = &f->json;
	uint32_t i = 0;

	whole_begin(f, "chat.completion");
	for (const struct event_ending *x = v; x; x = x->next) {
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

static void audio_whole(struct event_form *f, const struct event_ending *v)
{
	buf_add_char(&f->json, '{');
	event_text(&f->json, "text", v->text);
	if (!f->is_without_usage) {
		event_key(&f->json, "usage");
		event_usage(f, v->output_tokens, &f->json);
	}
	buf_add_char(&f->json, '}');
}

const struct event_shape shape_completions = {
	.object = "text_completion", .id_prefix = "cmpl-", .type = EVENT_STREAM, .data = "data: ",
	.is_uniform = true, .has_done = true,
	.prepare = openai_prepare, .event = completions_event,
	.close = openai_close, .error = event_error_openai, .whole = completions_whole,
};

const struct event_shape shape_chat = {
	.object = "chat.completion.chunk", .id_prefix = "chatcmpl-", .type = EVENT_STREAM,
	.data = "data: ", .is_uniform = true, .has_done = true, .has_reasoning = true,
	.is_opening_counted = true,
	.prepare = openai_prepare, .open = chat_open, .event = chat_event,
	.close = openai_close, .error = event_error_openai, .whole = chat_whole,
};

const struct event_shape shape_audio = {
	.object = "transcription.chunk", .id_prefix = "trsc-", .type = EVENT_STREAM,
	.data = "data: ", .is_uniform = true, .has_done = true,
	.prepare = openai_prepare, .event = audio_event,
	.close = openai_close, .error = event_error_openai, .whole = audio_whole,
};

/*
 * The Responses API: named, numbered events around one
 * output item for the reasoning and one for the answer. Usage comes with the
 * terminal event, which no-done leaves out.
 */

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
	/* The text so far moves to the head, where it counts as an earlier item. */
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

static void usage_write(const struct event_form *f, const struct event_ending *v, struct buf *json)
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
static void response_end(struct event_form *f, const struct event_ending *v)
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

static void responses_close(struct event_form *f, const struct event_ending *v, struct buf *out)
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

const struct event_shape shape_responses = {
	.id_prefix = "resp_", .type = "text/event-stream; charset=utf-8", .data = "data: ",
	.has_reasoning = true, .open = responses_open, .event = responses_event,
	.close = responses_close, .error = responses_error, .whole = response_end,
};

/*
 * The own APIs of inference servers: TGI's /generate_stream,
 * llama.cpp's /completion, SGLang's /generate and vLLM's demo /generate.
 *
 * The latter two repeat the whole text in every event.
 */

#define EOS_ID 2 /* token that ended an answer, for APIs that report its id */

static bool is_length(const char *finish)
{
	return strcmp(finish, "length") == 0;
}

/* ---- TGI ---- */

static void tgi_details(struct event_form *f, const char *finish, struct str stop,
			uint32_t tokens)
{
	if (f->is_without_usage) {
		buf_add_text(&f->json, ",\"details\":null");
		return;
	}
	buf_printf(&f->json, ",\"details\":{\"finish_reason\":\"%s\",\"generated_tokens\":%" PRIu32
		   ",\"seed\":null,\"input_length\":%" PRIu32 "}", is_length(finish) ? "length" :
		   stop.n ? "stop_sequence" : "eos_token", tokens, f->prompt_tokens);
}

static void tgi_event(struct event_form *f, const struct event *v, struct buf *out)
{
	struct buf *json = &f->json;

	buf_add_str(&f->said, v->text);
	buf_printf(json, "{\"index\":%" PRIu32 ",\"token\":{\"id\":%" PRIu32, v->output_tokens,
		   v->id);
	event_text(json, "text", v->text);
	buf_add_text(json, ",\"logprob\":-0.5,\"special\":false}");
	if (v->finish_reason) {
		event_text(json, "generated_text", buf_str(&f->said));
		tgi_details(f, v->finish_reason, v->stop_reason, v->output_tokens);
	} else {
		buf_add_text(json, ",\"generated_text\":null,\"details\":null");
	}
	buf_add_char(json, '}');
	event_put(f, NULL, out);
}

static void tgi_error(struct event_form *f, const char *message, struct buf *out)
{
	buf_add_text(&f->json, "{\"error\":\"Request failed during generation: ");
	buf_add_text(&f->json, message);
	buf_add_text(&f->json, "\",\"error_type\":\"generation\"}");
	event_put(f, NULL, out);
}

static void tgi_whole(struct event_form *f, const struct event_ending *v)
{
	buf_add_char(&f->json, '{');
	event_text(&f->json, "generated_text", v->text);
	tgi_details(f, v->finish_reason, v->stop_reason, v->output_tokens);
	buf_add_char(&f->json, '}');
}

const struct event_shape shape_tgi = {
	.id_prefix = "", .type = EVENT_STREAM, .data = "data:", .event = tgi_event,
	.error = tgi_error, .whole = tgi_whole,
};

/* ---- llama.cpp ---- */

static void llamacpp_event(struct event_form *f, const struct event *v, struct buf *out)
{
	buf_add_text(&f->json, "{\"index\":0");
	event_text(&f->json, "content", v->text);
	buf_printf(&f->json, ",\"tokens\":[%" PRIu32 "],\"stop\":false,\"id_slot\":-1,"
		   "\"tokens_predicted\":%" PRIu32 ",\"tokens_evaluated\":%" PRIu32 "}", v->id,
		   v->output_tokens, f->prompt_tokens);
	event_put(f, NULL, out);
}

static void llamacpp_end(struct event_form *f, const struct event_ending *v)
{
	struct buf *json = &f->json;

	buf_add_text(json, "{\"index\":0");
	event_text(json, "content", v->text);
	buf_add_text(json, ",\"tokens\":[],\"id_slot\":0,\"stop\":true,\"model\":");
	json_quote(json, f->model, true);
	if (!f->is_without_usage) {
		event_number(json, "tokens_predicted", v->output_tokens);
		event_number(json, "tokens_evaluated", f->prompt_tokens);
		/* Tokens in the slot: the last one was never put into the cache. */
		event_number(json, "tokens_cached",
			     (int64_t)f->prompt_tokens + v->output_tokens - (v->output_tokens > 0));
		buf_printf(json, ",\"timings\":{\"cache_n\":%" PRIu32 ",\"prompt_n\":%" PRIu32
			   ",\"prompt_ms\":%.3f,\"predicted_n\":%" PRIu32 ",\"predicted_ms\":%.3f}",
			   f->cached_tokens, f->prompt_tokens - f->cached_tokens,
			   (double)v->prefill_ns / 1e6, v->output_tokens,
			   (double)v->decode_ns / 1e6);
	}
	buf_printf(json, ",\"truncated\":false,\"stop_type\":\"%s\",\"stopping_word\":",
		   is_length(v->finish_reason) ? "limit" : v->stop_reason.n ? "word" : "eos");
	json_quote(json, v->stop_reason, true);
	buf_add_char(json, '}');
}

static void llamacpp_close(struct event_form *f, const struct event_ending *v, struct buf *out)
{
	if (f->is_without_done)
		return;
	llamacpp_end(f, v);
	event_put(f, NULL, out);
}

static void llamacpp_error(struct event_form *f, const char *message, struct buf *out)
{
	buf_add_text(&f->json, "{\"error\":{\"code\":500");
	event_text(&f->json, "message", str_of(message));
	buf_add_text(&f->json, ",\"type\":\"server_error\"}}");
	event_put(f, NULL, out);
}

const struct event_shape shape_llamacpp = {
	.id_prefix = "", .type = EVENT_STREAM, .data = "data: ", .event = llamacpp_event,
	.close = llamacpp_close, .error = llamacpp_error, .whole = llamacpp_end,
};

/* ---- SGLang ---- */

/*
 * {"text":..,"output_ids":[..],"meta_info":{..}}; finish is NULL while there is more to come.
 * f->head gathers the ids, one of each event.
 */
static void sglang_write(struct event_form *f, struct str text, const char *finish,
			 struct str stop, uint32_t tokens)
{
	struct buf *json = &f->json;

	buf_add_char(json, '{');
	event_text(json, "text", text);
	if (f->head.len) {
		buf_add_text(json, ",\"output_ids\":[");
		buf_add_str(json, buf_str(&f->head));
		buf_add_char(json, ']');
	}
	buf_add_text(json, ",\"meta_info\":{\"id\":");
	json_quote(json, f->id, true);
	event_key(json, "finish_reason");
	if (!finish) {
		buf_add_text(json, "null");
	} else if (is_length(finish)) {
		buf_printf(json, "{\"type\":\"length\",\"length\":%" PRIu32 "}", tokens);
	} else if (stop.n) {
		buf_add_text(json, "{\"type\":\"stop\",\"matched\":");
		json_quote(json, stop, true);
		buf_add_char(json, '}');
	} else {
		buf_printf(json, "{\"type\":\"stop\",\"matched\":%d}", EOS_ID);
	}
	if (!f->is_without_usage) {
		event_number(json, "prompt_tokens", f->prompt_tokens);
		event_number(json, "reasoning_tokens", 0);
		event_number(json, "completion_tokens", tokens);
		event_number(json, "cached_tokens", f->cached_tokens);
	}
	buf_add_text(json, "}}");
}

static void sglang_event(struct event_form *f, const struct event *v, struct buf *out)
{
	buf_add_str(&f->said, v->text);
	buf_printf(&f->head, f->head.len ? ",%" PRIu32 : "%" PRIu32, v->id);
	sglang_write(f, buf_str(&f->said), v->finish_reason, v->stop_reason, v->output_tokens);
	event_put(f, NULL, out);
}

static void sglang_whole(struct event_form *f, const struct event_ending *v)
{
	sglang_write(f, v->text, v->finish_reason, v->stop_reason, v->output_tokens);
}

static void sglang_error(struct event_form *f, const char *message, struct buf *out)
{
	buf_add_text(&f->json, "{\"error\":{");
	event_text(&f->json, "message", str_of(message));
	buf_add_text(&f->json, ",\"type\":\"invalid_request_error\",\"code\":400,"
			       "\"retryable\":false}}");
	event_put(f, NULL, out);
}

const struct event_shape shape_sglang = {
	.id_prefix = "", .type = EVENT_STREAM, .data = "data: ", .has_done = true,
	.event = sglang_event, .error = sglang_error, .whole = sglang_whole,
};

/* ---- vLLM's demo server ---- */

static void demo_prepare(struct event_form *f, struct str prompt)
{
	struct buf *said = &f->said;

	json_quote(said, prompt, true);
	said->len--;      /* the text continues where the prompt's quotes would end */
	buf_cut(said, 1); /* event_text adds quotes of its own */
}

static void demo_event(struct event_form *f, const struct event *v, struct buf *out)
{
	buf_add_str(&f->said, v->text);
	buf_add_text(&f->json, "{\"text\":[\"");
	buf_add_str(&f->json, buf_str(&f->said));
	buf_add_text(&f->json, "\"]}");
	event_put(f, NULL, out);
}

static void demo_whole(struct event_form *f, const struct event_ending *v)
{
	buf_add_text(&f->json, "{\"text\":[\"");
	buf_add_str(&f->json, buf_str(&f->said));
	buf_add_str(&f->json, v->text);
	buf_add_text(&f->json, "\"]}");
}

const struct event_shape shape_demo = {
	.id_prefix = "", .type = "application/x-ndjson", .is_lines = true,
	.prepare = demo_prepare, .event = demo_event, .error = sglang_error, .whole = demo_whole,
};

/*
 * Ollama's /api/generate and /api/chat: a JSON document a
 * line; the last one, which no-done leaves out, has the counts.
 */

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

static void ollama_end(struct event_form *f, const struct event_ending *v)
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

static void ollama_close(struct event_form *f, const struct event_ending *v, struct buf *out)
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

const struct event_shape shape_ollama = {
	.id_prefix = "", .type = "application/x-ndjson", .is_lines = true, .has_reasoning = true,
	.prepare = ollama_prepare, .event = ollama_event, .close = ollama_close,
	.error = ollama_error, .whole = ollama_end,
};

const struct event_shape shape_ollama_chat = {
	.id_prefix = "", .type = "application/x-ndjson", .is_lines = true, .has_reasoning = true,
	.prepare = ollama_prepare, .event = ollama_event, .close = ollama_close,
	.error = ollama_error, .whole = ollama_end,
};

/*
 * The Messages API: a block of thinking, a block of text,
 * counts at both ends of the stream. no-done leaves out message_stop.
 */

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

static void stop_write(const struct event_ending *v, struct buf *json)
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

static void anthropic_close(struct event_form *f, const struct event_ending *v, struct buf *out)
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

static void anthropic_whole(struct event_form *f, const struct event_ending *v)
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

const struct event_shape shape_anthropic = {
	.id_prefix = "msg_", .type = "text/event-stream; charset=utf-8", .data = "data: ",
	.has_reasoning = true, .open = anthropic_open, .event = anthropic_event,
	.close = anthropic_close, .error = anthropic_error, .whole = anthropic_whole,
};
