/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat.c - OpenAI chat completions ("openai-chat"); serve spec 3.6.
 *
 * Plain text is sent in the list form of content, as upstream does. Answer text (delta.content),
 * reasoning text (delta.reasoning or the older delta.reasoning_content), tool calls and refusals
 * are recorded separately.
 */
#include <inttypes.h>
#include <pthread.h>

#include "client/endpoint/openai.h"
#include "core/json/write.h"

static struct json_paths paths;
static pthread_once_t paths_once = PTHREAD_ONCE_INIT;

static void compile_paths(void)
{
	static const char *const stream[OPENAI_MEMBERS] = {
		[OPENAI_CHOICES] = "choices", [OPENAI_USAGE] = "usage", [OPENAI_ERROR] = "error",
		[OPENAI_FINISH] = "choices[0].finish_reason",
		[OPENAI_TEXT] = "choices[0].delta.content",
		[OPENAI_REASONING] = "choices[0].delta.reasoning",
		[OPENAI_REASONING_OLD] = "choices[0].delta.reasoning_content",
		[OPENAI_ROLE] = "choices[0].delta.role",
		[OPENAI_REFUSAL] = "choices[0].delta.refusal",
		[OPENAI_TOOLS] = "choices[0].delta.tool_calls",
		[OPENAI_ARGUMENTS] = "choices[0].delta.tool_calls[0].function.arguments",
		[OPENAI_FUNCTION] = "choices[0].delta.function_call.arguments",
	};

	json_scan_paths_init(&paths, stream, OPENAI_MEMBERS);
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, messages = { 0 };
	struct body b = { .n = 0 };
	char output_len[32];
	int rc = -1;

	(void)self;
	json_quote(&model, o->model, false);
	openai_messages(s, &messages);
	snprintf(output_len, sizeof(output_len), "%" PRId64, s->output_len);
	if (body_put(&b, "model", buf_str(&model), e) < 0 ||
	    body_put(&b, "messages", buf_str(&messages), e) < 0 ||
	    body_put(&b, "max_completion_tokens",
		     s->output_len < 0 ? STR("null") : str_of(output_len), e) < 0 ||
	    body_put(&b, "stream", STR("true"), e) < 0 ||
	    body_put(&b, "stream_options", STR("{\"include_usage\": true}"), e) < 0)
		goto done;
	rc = openai_finish_body(&b, o, s, out, e);
done:
	buf_release(&model);
	buf_release(&messages);
	return rc;
}

int openai_decode_chat(const struct endpoint *self, struct str data, struct decoded *out,
		       struct err *e)
{
	(void)self;
	pthread_once(&paths_once, compile_paths);
	return openai_decode(&paths, data, out, e);
}

const struct endpoint endpoint_chat = {
	.name = "openai-chat", .suffix = "chat/completions",
	.api_name = "OpenAI Chat Completions API", .default_path = "/v1/chat/completions",
	.is_streaming = true, .is_openai = true, .is_chat = true,
	.encode = encode, .decode = openai_decode_chat, .finish = openai_finish,
};
