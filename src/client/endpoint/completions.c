/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completions.c - OpenAI completions ("vllm", "openai"); serve spec 3.5.
 *
 * Body keys are in upstream's order; repetition_penalty is always sent, as upstream does.
 */
#include <inttypes.h>
#include <pthread.h>

#include "client/endpoint/openai.h"
#include "core/json/write.h"

static struct json_paths paths;
static pthread_once_t paths_once = PTHREAD_ONCE_INIT;

static void compile_paths(void)
{
	static const char *const where[OPENAI_CHAT_MEMBERS] = {
		[OPENAI_CHOICES] = "choices", [OPENAI_USAGE] = "usage", [OPENAI_ERROR] = "error",
		[OPENAI_FINISH] = "choices[0].finish_reason", [OPENAI_TEXT] = "choices[0].text",
		[OPENAI_REASONING] = "choices[0].reasoning",
		[OPENAI_REASONING_OLD] = "choices[0].reasoning_content",
		[OPENAI_ROLE] = "choices[0].role",
	};

	json_scan_paths_init(&paths, where, OPENAI_CHAT_MEMBERS);
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, prompt = { 0 };
	char output_len[32], logprobs[32] = "null";
	struct body b = { .n = 0 };
	int rc = -1;

	(void)self;
	json_quote(&model, o->model, false);
	snprintf(output_len, sizeof(output_len), "%" PRId64, s->output_len);
	if (o->has_logprobs)
		snprintf(logprobs, sizeof(logprobs), "%" PRId64, o->logprobs);
	if (body_put(&b, "model", buf_str(&model), e) < 0 ||
	    body_put(&b, "prompt", openai_prompt(s, &prompt), e) < 0 ||
	    body_put(&b, "repetition_penalty", STR("1.0"), e) < 0 ||
	    body_put(&b, "max_tokens", s->output_len < 0 ? STR("null") : str_of(output_len), e) < 0 ||
	    body_put(&b, "logprobs", str_of(logprobs), e) < 0 ||
	    body_put(&b, "stream", STR("true"), e) < 0 ||
	    body_put(&b, "stream_options", STR("{\"include_usage\": true}"), e) < 0)
		goto done;
	rc = openai_finish_body(&b, o, s, out, e);
done:
	buf_release(&model);
	buf_release(&prompt);
	return rc;
}

int openai_decode_text(const struct endpoint *self, struct str data, struct decoded *out,
		       struct err *e)
{
	(void)self;
	pthread_once(&paths_once, compile_paths);
	return openai_decode(&paths, data, out, e);
}

const struct endpoint endpoint_vllm = {
	.name = "vllm", .suffix = "completions", .api_name = "OpenAI Completions API",
	.default_path = "/v1/completions", .is_streaming = true, .is_openai = true,
	.has_logprobs = true,
	.encode = encode, .decode = openai_decode_text, .finish = openai_finish,
};

const struct endpoint endpoint_openai = {
	.name = "openai", .suffix = "completions", .api_name = "OpenAI Completions API",
	.default_path = "/v1/completions", .is_streaming = true, .is_openai = true,
	.has_logprobs = true,
	.encode = encode, .decode = openai_decode_text, .finish = openai_finish,
};
