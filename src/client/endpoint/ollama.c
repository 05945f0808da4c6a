/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ollama.c - Ollama's generate and chat APIs ("ollama", "ollama-chat").
 *
 * Lines of JSON, no events. The last one (done is true) has the counts and usually no text.
 * prompt_eval_count is the whole prompt since Ollama runs llama.cpp's server; older versions omit
 * it when the whole prompt was cached. Both APIs apply the model's template; {"raw": true} in
 * --extra-body stops generate from doing so.
 */
#include <pthread.h>

#include "client/endpoint/peers.h"
#include "core/json/write.h"

enum member {
	TEXT, THINKING, MESSAGE, MESSAGE_THINKING, TOOLS, DONE, WHY, ERROR, OUTPUT, PROMPT, MEMBERS,
};

static const struct peer_place place = { "options", { NULL }, "repeat_penalty", false, NULL };
static struct json_paths paths;
static pthread_once_t paths_once = PTHREAD_ONCE_INIT;

static void compile_paths(void)
{
	static const char *const where[MEMBERS] = {
		[TEXT] = "response", [THINKING] = "thinking", [MESSAGE] = "message.content",
		[MESSAGE_THINKING] = "message.thinking", [TOOLS] = "message.tool_calls",
		[DONE] = "done", [WHY] = "done_reason", [ERROR] = "error",
		[OUTPUT] = "eval_count", [PROMPT] = "prompt_eval_count",
	};

	json_scan_paths_init(&paths, where, MEMBERS);
}

static int finish_body(struct body *b, const struct encode_opts *o, const struct sample *s,
		       struct encoded *out, struct err *e)
{
	struct body options = { .n = 0 };
	char length[24];

	if (peer_put_length(&options, "num_predict", s, length, e) < 0 ||
	    body_put(b, "stream", STR("true"), e) < 0)
		return -1;
	return peer_finish_body(&place, b, &options, o, s, out, e);
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, prompt = { 0 };
	struct body b = { .n = 0 };
	int rc = -1;

	json_quote(&model, o->model, false);
	if (peer_text_prompt(self->name, s, &prompt, e) == 0 &&
	    body_put(&b, "model", buf_str(&model), e) == 0 &&
	    body_put(&b, "prompt", buf_str(&prompt), e) == 0)
		rc = finish_body(&b, o, s, out, e);
	buf_release(&model);
	buf_release(&prompt);
	return rc;
}

/* Joins the texts of a list of parts, and collects its pictures, given as data URLs. */
static int split_parts(struct json_slice parts, struct buf *text, struct buf *images,
		       struct err *e)
{
	struct json_slice part, value;
	struct json_iter it = json_iter(parts);
	struct str key;

	while (json_each(&it, &key, &part) == 1) {
		if (json_member(part, "text", &value) && value.kind == JSON_STRING) {
			buf_add_str(text, value.raw);
		} else if (json_path(part, &value, "image_url", "url", NULL) &&
			   value.kind == JSON_STRING && str_starts(value.raw, STR("data:"))) {
			struct str data = value.raw;

			str_cut(&data, ',');
			buf_add_text(images, images->len ? ", \"" : "\"");
			buf_add_str(images, data);
			buf_add_char(images, '"');
		} else {
			return err_set(e, ERR_RUN, "--backend ollama-chat sends text and pictures as "
				       "data; a part is %.*s",
				       (int)(part.raw.n < 60 ? part.raw.n : 60), part.raw.p);
		}
	}
	return 0;
}

/* One message; text and images are scratch. */
static int write_message(struct json_slice item, struct buf *out, struct buf *text,
			 struct buf *images, struct err *e)
{
	struct json_slice role, content;

	buf_reset(text);
	buf_reset(images);
	if (!json_member(item, "role", &role) || !json_member(item, "content", &content))
		return err_set(e, ERR_RUN, "--backend ollama-chat: a message has no content");
	if (content.kind == JSON_STRING)
		buf_add_str(text, content.raw);
	else if (split_parts(content, text, images, e) < 0)
		return -1;
	buf_add_text(out, "{\"role\": \"");
	buf_add_str(out, role.raw);
	buf_add_text(out, "\", \"content\": \"");
	buf_add_str(out, buf_str(text));
	buf_add_char(out, '"');
	if (images->len) {
		buf_add_text(out, ", \"images\": [");
		buf_add_str(out, buf_str(images));
		buf_add_char(out, ']');
	}
	buf_add_char(out, '}');
	return 0;
}

static int encode_chat(const struct endpoint *self, const struct encode_opts *o,
		       const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, scratch = { 0 }, messages = { 0 }, text = { 0 }, images = { 0 };
	struct json_slice list, item;
	struct body b = { .n = 0 };
	struct json_iter it;
	struct str key;
	int rc = peer_messages(self->name, s, &scratch, &list, e);

	json_quote(&model, o->model, false);
	buf_add_char(&messages, '[');
	it = rc == 0 ? json_iter(list) : (struct json_iter){ 0 };
	while (rc == 0 && json_each(&it, &key, &item) == 1) {
		if (messages.len > 1)
			buf_add_text(&messages, ", ");
		rc = write_message(item, &messages, &text, &images, e);
	}
	buf_add_char(&messages, ']');
	if (rc == 0 && (body_put(&b, "model", buf_str(&model), e) < 0 ||
			body_put(&b, "messages", buf_str(&messages), e) < 0 ||
			finish_body(&b, o, s, out, e) < 0))
		rc = -1;
	buf_release(&model);
	buf_release(&scratch);
	buf_release(&messages);
	buf_release(&text);
	buf_release(&images);
	return rc;
}

static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	struct json_slice v[MEMBERS];
	struct json_slice text, thought;
	bool is_last;
	int rc;

	(void)self;
	pthread_once(&paths_once, compile_paths);
	rc = peer_scan(&paths, ERROR, DECODED_DONE, data, v, out, e);
	if (rc <= 0)
		return rc;
	is_last = event_is_true(v[DONE]);
	thought = event_has_text(v[THINKING]) ? v[THINKING] : v[MESSAGE_THINKING];
	text = event_has(v[TEXT]) ? v[TEXT] : v[MESSAGE];
	if (event_has_text(thought) || event_has_text(text) || event_is_filled(v[TOOLS]) ||
	    (!is_last && event_has(text))) {
		out->bits = DECODED_TOKEN | (event_is_filled(v[TOOLS]) ? DECODED_OTHER : 0);
		peer_other(thought, DECODED_REASONING, out);
		peer_answer(text, out);
	}
	if (is_last) {
		out->bits |= DECODED_DONE | DECODED_FINISH;
		event_ended(v[WHY], out);
	}
	peer_usage(out, event_count(v[PROMPT]), event_count(v[OUTPUT]), -1);
	if (!out->bits)
		out->bits = DECODED_IGNORED;
	return 0;
}

const struct endpoint endpoint_ollama = {
	.name = "ollama", .suffix = "generate", .api_name = "Ollama generate API",
	.default_path = "/api/generate", .is_streaming = true, .is_openai = true, .is_ours = true,
	.is_eos_kept = true, .is_error_final = true, .framing = FRAMING_LINES,
	.encode = encode, .decode = decode, .finish = peer_finish,
};

const struct endpoint endpoint_ollama_chat = {
	.name = "ollama-chat", .suffix = "chat", .api_name = "Ollama chat API",
	.default_path = "/api/chat", .is_streaming = true, .is_openai = true, .is_ours = true,
	.is_chat = true, .is_eos_kept = true, .is_error_final = true, .framing = FRAMING_LINES,
	.encode = encode_chat, .decode = decode, .finish = peer_finish,
};
