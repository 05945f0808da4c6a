/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole.c - OpenAI completions and chat without streaming, for offline runs, which do not need
 * single tokens. Not in the table of --backend.
 *
 * Sampling options (n, temperature, beams) are in the extra body; the counts are those of usage,
 * over all sequences and prompts of the request.
 */
#include <inttypes.h>

#include "client/endpoint/openai.h"
#include "core/json/write.h"

static int finish_body(struct body *b, const char *length_key, const struct encode_opts *o,
		       const struct sample *s, struct encoded *out, struct err *e)
{
	char length[32];

	snprintf(length, sizeof(length), "%" PRId64, s->output_len);
	if (body_put(b, length_key, s->output_len < 0 ? STR("null") : str_of(length), e) < 0 ||
	    body_put(b, "stream", STR("false"), e) < 0)
		return -1;
	return openai_finish_body(b, o, s, out, e);
}

static int encode_completions(const struct endpoint *self, const struct encode_opts *o,
			      const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, prompt = { 0 };
	struct body b = { .n = 0 };
	int rc = -1;

	(void)self;
	json_quote(&model, o->model, false);
	if (body_put(&b, "model", buf_str(&model), e) == 0 &&
	    body_put(&b, "prompt", openai_prompt(s, &prompt), e) == 0)
		rc = finish_body(&b, "max_tokens", o, s, out, e);
	buf_release(&model);
	buf_release(&prompt);
	return rc;
}

static int encode_chat(const struct endpoint *self, const struct encode_opts *o,
		       const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, messages = { 0 };
	struct body b = { .n = 0 };
	int rc = -1;

	(void)self;
	json_quote(&model, o->model, false);
	openai_messages(s, &messages);
	if (body_put(&b, "model", buf_str(&model), e) == 0 &&
	    body_put(&b, "messages", buf_str(&messages), e) == 0)
		rc = finish_body(&b, "max_completion_tokens", o, s, out, e);
	buf_release(&model);
	buf_release(&messages);
	return rc;
}

static int decode_answer(const struct endpoint *self, const struct answer *a,
			 struct decoded *out, struct err *e)
{
	struct str body = str_trim(a->body);

	if (openai_decode_text(self, body, out, e) < 0)
		return -1;
	if (out->bits & DECODED_ERROR)
		return 0;
	if (!(out->bits & DECODED_TOKEN))
		return err_set(e, ERR_PARSE, "the answer has no choices");
	if (!(out->bits & DECODED_USAGE) || out->prompt_tokens == -1 || out->output_tokens == -1)
		return err_set(e, ERR_PARSE, "the answer has no usage, so its tokens are not known");
	return 0;
}

static const char *finish(const struct request_row *row)
{
	return row->first_event_ns ? NULL : "the answer has no choices";
}

/* A server that streams although streaming was not requested is an error. */
static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	(void)self;
	(void)data;
	(void)out;
	return err_set(e, ERR_PARSE, "the answer is an event stream, which was not asked for");
}

#define COMMON(coder)                                                                      \
	.is_openai = true, .is_error_final = true, .encode = (coder), .decode = decode,     \
	.decode_answer = decode_answer, .finish = finish

const struct endpoint endpoint_whole_completions = {
	.name = "completions", .suffix = "completions", .api_name = "OpenAI Completions API",
	.default_path = "/v1/completions", COMMON(encode_completions),
};
const struct endpoint endpoint_whole_chat = {
	.name = "chat", .suffix = "chat/completions", .api_name = "OpenAI Chat Completions API",
	.default_path = "/v1/chat/completions", .is_chat = true, COMMON(encode_chat),
};
