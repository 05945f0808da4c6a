/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c - see turns.h. */
#include "client/endpoint/turns.h"

#include <pthread.h>

#include "client/endpoint/openai.h"
#include "core/json/write.h"

static struct json_paths paths;
static pthread_once_t paths_once = PTHREAD_ONCE_INIT;

/* Of an answer in one piece. */
static void compile_paths(void)
{
	static const char *const whole[OPENAI_MEMBERS] = {
		[OPENAI_CHOICES] = "choices", [OPENAI_USAGE] = "usage", [OPENAI_ERROR] = "error",
		[OPENAI_FINISH] = "choices[0].finish_reason",
		[OPENAI_TEXT] = "choices[0].message.content",
		[OPENAI_REASONING] = "choices[0].message.reasoning",
		[OPENAI_REASONING_OLD] = "choices[0].message.reasoning_content",
		[OPENAI_ROLE] = "choices[0].message.role",
		[OPENAI_REFUSAL] = "choices[0].message.refusal",
		[OPENAI_TOOLS] = "choices[0].message.tool_calls",
		[OPENAI_ARGUMENTS] = "choices[0].message.tool_calls[0].function.arguments",
		[OPENAI_FUNCTION] = "choices[0].message.function_call.arguments",
	};

	json_scan_paths_init(&paths, whole, OPENAI_MEMBERS);
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, messages = { 0 };
	struct body b = { .n = 0 };
	int rc = -1;

	(void)self;
	json_quote(&model, o->model, false);
	openai_messages(s, &messages);
	if (body_put(&b, "model", buf_str(&model), e) == 0 &&
	    body_put(&b, "messages", buf_str(&messages), e) == 0 &&
	    body_overlay(&b, s->overrides, e) == 0 && body_overlay(&b, o->extra_body, e) == 0) {
		body_write(&b, &out->body);
		rc = out->body.is_over
		     ? err_set(e, ERR_LIMIT, "a request body exceeds the limit of 1 GiB") : 0;
	}
	buf_release(&model);
	buf_release(&messages);
	return rc;
}

static int decode_answer(const struct endpoint *self, const struct answer *a, struct decoded *out,
			 struct err *e)
{
	(void)self;
	pthread_once(&paths_once, compile_paths);
	if (openai_decode(&paths, str_trim(a->body), out, e) < 0)
		return -1;
	if (!(out->bits & (DECODED_ERROR | DECODED_TOKEN)))
		return err_set(e, ERR_PARSE, "the answer has no choices");
	return 0;
}

static const char *finish_whole(const struct request_row *row)
{
	return row->first_event_ns ? NULL : "the answer has no choices";
}

#define COMMON                                                                            \
	.name = "openai-chat", .suffix = "chat/completions",                               \
	.api_name = "OpenAI Chat Completions API", .default_path = "/v1/chat/completions", \
	.is_openai = true, .is_chat = true, .encode = encode, .decode = openai_decode_chat

const struct endpoint endpoint_turns = { COMMON, .is_streaming = true, .finish = openai_finish };
const struct endpoint endpoint_whole_turns = {
	COMMON, .is_error_final = true, .decode_answer = decode_answer, .finish = finish_whole,
};
