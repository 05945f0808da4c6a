/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llamacpp.c - llama.cpp's own completion API ("llamacpp").
 *
 * Every event has the running count of tokens; the last one (stop is true) has no text of its own.
 * The number of cached tokens is timings.cache_n: tokens_cached counts everything in the slot when
 * the answer ends.
 */
#include <pthread.h>

#include "client/endpoint/openai.h"
#include "client/endpoint/peers.h"

enum member { TEXT, STOP, WHY, ERROR, OUTPUT, PROMPT, CACHED, MEMBERS };

static struct json_paths paths;
static pthread_once_t paths_once = PTHREAD_ONCE_INIT;

static void compile_paths(void)
{
	static const char *const where[MEMBERS] = {
		[TEXT] = "content", [STOP] = "stop", [WHY] = "stop_type",
		[ERROR] = "error",
		[OUTPUT] = "tokens_predicted", [PROMPT] = "tokens_evaluated",
		[CACHED] = "timings.cache_n",
	};

	json_scan_paths_init(&paths, where, MEMBERS);
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	static const struct peer_place place = { .repetition = "repeat_penalty",
						 .has_ignore_eos = true };
	struct body b = { .n = 0 };
	struct buf prompt = { 0 };
	char length[24];
	int rc = -1;

	(void)self;
	if (body_put(&b, "prompt", openai_prompt(s, &prompt), e) == 0 &&
	    peer_put_length(&b, "n_predict", s, length, e) == 0 &&
	    body_put(&b, "stream", STR("true"), e) == 0 &&
	    body_put(&b, "cache_prompt", STR("true"), e) == 0)
		rc = peer_finish_body(&place, &b, NULL, o, s, out, e);
	buf_release(&prompt);
	return rc;
}

static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	struct json_slice v[MEMBERS];
	bool is_last;
	int rc;

	(void)self;
	pthread_once(&paths_once, compile_paths);
	rc = peer_scan(&paths, ERROR, DECODED_DONE, data, v, out, e);
	if (rc <= 0)
		return rc;
	is_last = event_is_true(v[STOP]);
	if (event_has(v[TEXT]) && (!is_last || event_has_text(v[TEXT]))) {
		out->bits = DECODED_TOKEN;
		peer_answer(v[TEXT], out);
	}
	if (is_last) {
		out->bits |= DECODED_FINISH;
		event_ended(v[WHY], out);
	}
	peer_usage(out, event_count(v[PROMPT]), event_count(v[OUTPUT]), event_count(v[CACHED]));
	if (!out->bits)
		out->bits = DECODED_IGNORED;
	return 0;
}

const struct endpoint endpoint_llamacpp = {
	.name = "llamacpp", .suffix = "completion", .api_name = "llama.cpp completion API",
	.default_path = "/completion", .is_streaming = true, .is_openai = true, .is_ours = true,
	.is_error_final = true, .is_model_unnamed = true,
	.encode = encode, .decode = decode, .finish = peer_finish,
};
