/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_native.c - the own APIs of inference servers: TGI's /generate_stream,
 * llama.cpp's /completion, SGLang's /generate and vLLM's demo /generate.
 *
 * The latter two repeat the whole text in every event.
 */
#include <inttypes.h>

#include "json/write.h"
#include "sim/event.h"

#define EOS_ID 2 /* what ended an answer, where the API tells its id */
#define EVENT_STREAM "text/event-stream; charset=utf-8"

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

static void tgi_whole(struct event_form *f, const struct ending *v)
{
	buf_add_char(&f->json, '{');
	event_text(&f->json, "generated_text", v->text);
	tgi_details(f, v->finish_reason, v->stop_reason, v->output_tokens);
	buf_add_char(&f->json, '}');
}

const struct shape shape_tgi = {
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

static void llamacpp_end(struct event_form *f, const struct ending *v)
{
	struct buf *json = &f->json;

	buf_add_text(json, "{\"index\":0");
	event_text(json, "content", v->text);
	buf_add_text(json, ",\"tokens\":[],\"id_slot\":0,\"stop\":true,\"model\":");
	json_quote(json, f->model, true);
	if (!f->is_without_usage) {
		event_number(json, "tokens_predicted", v->output_tokens);
		event_number(json, "tokens_evaluated", f->prompt_tokens);
		/* What the slot holds: the last token was never put into the cache. */
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

static void llamacpp_close(struct event_form *f, const struct ending *v, struct buf *out)
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

const struct shape shape_llamacpp = {
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

static void sglang_whole(struct event_form *f, const struct ending *v)
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

const struct shape shape_sglang = {
	.id_prefix = "", .type = EVENT_STREAM, .data = "data: ", .has_done = true,
	.event = sglang_event, .error = sglang_error, .whole = sglang_whole,
};

/* ---- vLLM's demo server ---- */

static void demo_prepare(struct event_form *f, struct str prompt)
{
	struct buf *said = &f->said;

	json_quote(said, prompt, true);
	said->len--;      /* the text goes on where the prompt's quotes would end */
	buf_cut(said, 1); /* and event_text sets quotes of its own */
}

static void demo_event(struct event_form *f, const struct event *v, struct buf *out)
{
	buf_add_str(&f->said, v->text);
	buf_add_text(&f->json, "{\"text\":[\"");
	buf_add_str(&f->json, buf_str(&f->said));
	buf_add_text(&f->json, "\"]}");
	event_put(f, NULL, out);
}

static void demo_whole(struct event_form *f, const struct ending *v)
{
	buf_add_text(&f->json, "{\"text\":[\"");
	buf_add_str(&f->json, buf_str(&f->said));
	buf_add_str(&f->json, v->text);
	buf_add_text(&f->json, "\"]}");
}

const struct shape shape_demo = {
	.id_prefix = "", .type = "application/x-ndjson", .is_lines = true,
	.prepare = demo_prepare, .event = demo_event, .error = sglang_error, .whole = demo_whole,
};
