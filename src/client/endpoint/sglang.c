/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sglang.c - SGLang's own generate API ("sglang").
 *
 * Every event has the whole answer so far and the running counts. An aborted
 * request ends with a finish reason of type abort, which is a failure.
 */
#include <pthread.h>

#include "client/endpoint/openai.h"
#include "client/endpoint/peers.h"

enum member { TEXT, IDS, ERROR, FINISH, WHY, OUTPUT, PROMPT, CACHED, THOUGHT, MEMBERS };

static struct json_paths paths;
static pthread_once_t paths_once = PTHREAD_ONCE_INIT;

static void compile_paths(void)
{
	static const char *const where[MEMBERS] = {
		[TEXT] = "text", [IDS] = "output_ids", [ERROR] = "error",
		[FINISH] = "meta_info.finish_reason", [WHY] = "meta_info.finish_reason.type",
		[OUTPUT] = "meta_info.completion_tokens", [PROMPT] = "meta_info.prompt_tokens",
		[CACHED] = "meta_info.cached_tokens",
		[THOUGHT] = "meta_info.reasoning_tokens",
	};

	json_scan_paths_init(&paths, where, MEMBERS);
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	static const struct peer_place place = { "sampling_params", { NULL }, NULL, true, NULL };
	struct body b = { .n = 0 }, sampling = { .n = 0 };
	struct buf prompt = { 0 };
	char length[24];
	int rc = -1;

	(void)self;
	if (body_put(&b, s->kind == PROMPT_TEXT ? "text" : "input_ids", openai_prompt(s, &prompt),
		     e) == 0 &&
	    peer_put_length(&sampling, "max_new_tokens", s, length, e) == 0 &&
	    body_put(&b, "stream", STR("true"), e) == 0)
		rc = peer_finish_body(&place, &b, &sampling, o, s, out, e);
	buf_release(&prompt);
	return rc;
}

static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	struct json_slice v[MEMBERS];
	int rc;

	(void)self;
	pthread_once(&paths_once, compile_paths);
	rc = peer_scan(&paths, ERROR, DECODED_DONE, data, v, out, e);
	if (rc <= 0)
		return rc;
	if (v[WHY].kind == JSON_STRING && str_is(v[WHY].raw, "abort")) {
		out->bits = DECODED_ERROR;
		out->text = v[FINISH].raw;
		return 0;
	}
	if (event_has(v[TEXT]) || event_has(v[IDS])) {
		out->bits = DECODED_TOKEN | DECODED_WHOLE_TEXT;
		peer_answer(v[TEXT], out);
	}
	if (event_has(v[FINISH])) {
		out->bits |= DECODED_FINISH;
		event_ended(v[WHY], out);
	}
	peer_usage(out, event_count(v[PROMPT]), event_count(v[OUTPUT]), event_count(v[CACHED]));
	out->reasoning_tokens = event_count(v[THOUGHT]);
	if (!out->bits)
		out->bits = DECODED_IGNORED;
	return 0;
}

const struct endpoint endpoint_sglang = {
	.name = "sglang", .suffix = "generate", .api_name = "SGLang generate API",
	.default_path = "/generate", .is_streaming = true, .is_openai = true, .is_ours = true,
	.is_error_final = true, .is_model_unnamed = true,
	.encode = encode, .decode = decode, .finish = peer_finish,
};
