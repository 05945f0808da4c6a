/* SPDX-License-Identifier: Apache-2.0 */
/*
 * anthropic.c - Anthropic messages ("anthropic"), which vLLM also serves.
 *
 * System messages become the member "system"; pictures given as data URLs become image blocks.
 * Prompt tokens are the sum of input_tokens and both cache counts, because the API counts cached
 * tokens separately. message_start has the prompt's counts, message_delta the answer's.
 */
#include <pthread.h>

#include "client/endpoint/peers.h"
#include "core/json/write.h"

enum member {
	TYPE, DELTA_TYPE, TEXT, THINKING, ERROR, STOP, INPUT, CREATED, CACHED,
	OUTPUT, LATE_INPUT, LATE_CREATED, LATE_CACHED, THOUGHT, TOOL, MEMBERS,
};

static struct json_paths paths;
static pthread_once_t paths_once = PTHREAD_ONCE_INIT;

static void compile_paths(void)
{
	static const char *const where[MEMBERS] = {
		[TYPE] = "type", [DELTA_TYPE] = "delta.type", [TEXT] = "delta.text",
		[THINKING] = "delta.thinking", [ERROR] = "error", [STOP] = "delta.stop_reason",
		[INPUT] = "message.usage.input_tokens",
		[CREATED] = "message.usage.cache_creation_input_tokens",
		[CACHED] = "message.usage.cache_read_input_tokens",
		[OUTPUT] = "usage.output_tokens", [LATE_INPUT] = "usage.input_tokens",
		[LATE_CREATED] = "usage.cache_creation_input_tokens",
		[LATE_CACHED] = "usage.cache_read_input_tokens",
		[THOUGHT] = "usage.output_tokens_details.thinking_tokens",
		[TOOL] = "delta.partial_json",
	};

	json_scan_paths_init(&paths, where, MEMBERS);
}

/* An image part of a chat message as a block; only data URLs and plain URLs have one. */
static int write_image(struct json_slice part, struct buf *out, struct err *e)
{
	struct json_slice url;
	struct str rest, type;

	if (!json_path(part, &url, "image_url", "url", NULL) || url.kind != JSON_STRING)
		return err_set(e, ERR_RUN, "--backend anthropic sends text and pictures; a part is "
			       "%.*s", (int)(part.raw.n < 60 ? part.raw.n : 60), part.raw.p);
	rest = url.raw;
	if (!str_starts(rest, STR("data:"))) {
		buf_add_text(out, "{\"type\": \"image\", \"source\": {\"type\": \"url\", \"url\": \"");
		buf_add_str(out, rest);
		buf_add_text(out, "\"}}");
		return 0;
	}
	type = str_cut(&rest, ',');
	type = (struct str){ type.p + 5, type.n - 5 };
	type = str_cut(&type, ';');
	buf_add_text(out, "{\"type\": \"image\", \"source\": {\"type\": \"base64\", \"media_type\": \"");
	buf_add_str(out, type);
	buf_add_text(out, "\", \"data\": \"");
	buf_add_str(out, rest);
	buf_add_text(out, "\"}}");
	return 0;
}

static void next_block(struct buf *out)
{
	if (out->data[out->len - 1] != '[')
		buf_add_text(out, ", ");
}

/* Blocks of one message's content, into a list that is open. */
static int write_blocks(struct json_slice content, struct buf *out, struct err *e)
{
	struct json_slice part, type, text;
	struct json_iter it;
	struct str key;

	if (content.kind == JSON_STRING) {
		next_block(out);
		buf_add_text(out, "{\"type\": \"text\", \"text\": ");
		buf_add_str(out, event_raw(content));
		buf_add_char(out, '}');
		return 0;
	}
	if (content.kind != JSON_ARRAY)
		return err_set(e, ERR_RUN, "--backend anthropic: the content of a message is "
			       "neither text nor a list");
	it = json_iter(content);
	while (json_each(&it, &key, &part) == 1) {
		bool is_text = json_member(part, "type", &type) && type.kind == JSON_STRING &&
			       str_is(type.raw, "text") && json_member(part, "text", &text) &&
			       text.kind == JSON_STRING;

		next_block(out);
		if (is_text)
			buf_add_str(out, part.raw);
		else if (write_image(part, out, e) < 0)
			return -1;
	}
	return 0;
}

/* Converts chat messages to the API's form; system texts are separate blocks. */
static int convert(struct json_slice list, struct buf *messages, struct buf *system, struct err *e)
{
	struct json_slice item, role, content;
	struct json_iter it = json_iter(list);
	struct str key;

	buf_add_char(messages, '[');
	while (json_each(&it, &key, &item) == 1) {
		struct buf *out = messages;

		if (!json_member(item, "content", &content) || !json_member(item, "role", &role))
			return err_set(e, ERR_RUN, "--backend anthropic: a message has no content");
		if (str_is(role.raw, "system") || str_is(role.raw, "developer")) {
			out = system;
			if (out->len == 0)
				buf_add_char(out, '[');
		} else {
			buf_add_text(out, out->len > 1 ? ", {\"role\": \"" : "{\"role\": \"");
			buf_add_str(out, role.raw);
			buf_add_text(out, "\", \"content\": [");
		}
		if (write_blocks(content, out, e) < 0)
			return -1;
		if (out == messages)
			buf_add_text(out, "]}");
	}
	buf_add_char(messages, ']');
	if (system->len)
		buf_add_char(system, ']');
	return 0;
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	static const struct peer_place place = { 0 };
	struct buf model = { 0 }, scratch = { 0 }, messages = { 0 }, system = { 0 };
	struct body b = { .n = 0 };
	struct json_slice list;
	char length[24];
	int rc = -1;

	json_quote(&model, o->model, false);
	if (s->output_len < 0) {
		err_set(e, ERR_RUN, "--backend anthropic needs a length of every answer "
			"(max_tokens); give one, e.g. with --output-len");
		goto done;
	}
	if (peer_messages(self->name, s, &scratch, &list, e) < 0 ||
	    convert(list, &messages, &system, e) < 0 ||
	    body_put(&b, "model", buf_str(&model), e) < 0 ||
	    peer_put_length(&b, "max_tokens", s, length, e) < 0 ||
	    (system.len && body_put(&b, "system", buf_str(&system), e) < 0) ||
	    body_put(&b, "messages", buf_str(&messages), e) < 0 ||
	    body_put(&b, "stream", STR("true"), e) < 0)
		goto done;
	rc = peer_finish_body(&place, &b, NULL, o, s, out, e);
done:
	buf_release(&model);
	buf_release(&scratch);
	buf_release(&messages);
	buf_release(&system);
	return rc;
}

static int64_t all_of(const struct json_slice *v, enum member input, enum member created,
		      enum member cached)
{
	int64_t n = event_count(v[input]), more[2] = { event_count(v[created]),
						       event_count(v[cached]) };

	for (size_t i = 0; i < 2 && n >= 0; i++)
		if (more[i] == COUNT_IMPOSSIBLE)
			n = more[i];
		else if (more[i] > 0 && n < INT64_MAX - more[i])
			n += more[i];
	return n;
}

static void decode_delta(const struct json_slice *v, struct decoded *out)
{
	struct str type = v[DELTA_TYPE].kind == JSON_STRING ? v[DELTA_TYPE].raw : (struct str){ 0 };

	if (str_is(type, "signature_delta") || str_is(type, "citations_delta")) {
		out->bits = DECODED_IGNORED;
		return;
	}
	out->bits = DECODED_TOKEN;
	if (str_is(type, "thinking_delta"))
		peer_other(v[THINKING], DECODED_REASONING, out);
	else if (str_is(type, "input_json_delta"))
		peer_other(v[TOOL], DECODED_OTHER, out);
	else if (str_is(type, "text_delta"))
		peer_answer(v[TEXT], out);
}

static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	struct json_slice v[MEMBERS];
	struct str type;
	int rc;

	(void)self;
	pthread_once(&paths_once, compile_paths);
	rc = peer_scan(&paths, ERROR, DECODED_IGNORED, data, v, out, e);
	if (rc <= 0)
		return rc;
	type = v[TYPE].kind == JSON_STRING ? v[TYPE].raw : (struct str){ 0 };
	if (str_is(type, "content_block_delta")) {
		decode_delta(v, out);
	} else if (str_is(type, "message_start")) {
		peer_usage(out, all_of(v, INPUT, CREATED, CACHED), -1, event_count(v[CACHED]));
	} else if (str_is(type, "message_delta")) {
		event_ended(v[STOP], out);
		peer_usage(out, all_of(v, LATE_INPUT, LATE_CREATED, LATE_CACHED),
			   event_count(v[OUTPUT]), event_count(v[LATE_CACHED]));
		out->reasoning_tokens = event_count(v[THOUGHT]);
	} else if (str_is(type, "message_stop")) {
		out->bits = DECODED_DONE;
	}
	if (!out->bits)
		out->bits = DECODED_IGNORED;
	return 0;
}

static const struct endpoint_header headers[] = { { "anthropic-version", "2023-06-01" } };

const struct endpoint endpoint_anthropic = {
	.name = "anthropic", .suffix = "messages", .api_name = "Anthropic Messages API",
	.default_path = "/v1/messages", .is_streaming = true, .is_openai = true, .is_ours = true,
	.is_chat = true, .is_eos_kept = true, .is_error_final = true,
	.header = headers, .n_headers = 1,
	.key_variable = "ANTHROPIC_API_KEY", .key_header = "x-api-key",
	.encode = encode, .decode = decode, .finish = peer_finish,
};
