/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgi.c - Text Generation Inference's own streaming API ("tgi").
 *
 * Everything except the prompt is a parameter. Every event is one token; the last one has the
 * details: why the answer ended and how many tokens it has. There is no ignore_eos, and a special
 * token has no answer text. The server only accepts a temperature above 0, a top_p below 1 and a
 * top_k above 0; null switches them off. Requests that it refuses get an error event after status
 * 200.
 */
#include <pthread.h>

#include "client/endpoint/peers.h"

enum member { TEXT, SPECIAL, TOKEN, ERROR, FINISH, OUTPUT, PROMPT, WHOLE, MEMBERS };

static struct json_paths paths;
static pthread_once_t paths_once = PTHREAD_ONCE_INIT;

static void compile_paths(void)
{
	static const char *const where[MEMBERS] = {
		[TEXT] = "token.text", [SPECIAL] = "token.special", [TOKEN] = "token",
		[ERROR] = "error", [FINISH] = "details.finish_reason",
		[OUTPUT] = "details.generated_tokens", [PROMPT] = "details.input_length",
		[WHOLE] = "generated_text",
	};

	json_scan_paths_init(&paths, where, MEMBERS);
}

static bool is_off(struct str key, struct json_slice value)
{
	double v;

	if (!json_to_f64(value, &v))
		return false;
	return (str_is(key, "temperature") && v == 0) || (str_is(key, "top_p") && v == 1) ||
	       (str_is(key, "top_k") && (v == 0 || v == -1));
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	static const struct peer_place place = { "parameters", { "inputs", "stream" }, NULL, false,
						 is_off };
	struct body b = { .n = 0 }, parameters = { .n = 0 };
	struct buf prompt = { 0 };
	char length[24];
	int rc = -1;

	if (peer_text_prompt(self->name, s, &prompt, e) == 0 &&
	    body_put(&b, "inputs", buf_str(&prompt), e) == 0 &&
	    peer_put_length(&parameters, "max_new_tokens", s, length, e) == 0 &&
	    body_put(&parameters, "details", STR("true"), e) == 0)
		rc = peer_finish_body(&place, &b, &parameters, o, s, out, e);
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
	if (event_has(v[TOKEN])) {
		out->bits = DECODED_TOKEN;
		if (!event_is_true(v[SPECIAL]))
			peer_answer(v[TEXT], out);
	}
	event_ended(v[FINISH], out);
	if (event_has(v[WHOLE]))
		out->bits |= DECODED_FINISH;
	peer_usage(out, event_count(v[PROMPT]), event_count(v[OUTPUT]), -1);
	if (!out->bits)
		out->bits = DECODED_IGNORED;
	return 0;
}

const struct endpoint endpoint_tgi = {
	.name = "tgi", .suffix = "generate_stream", .api_name = "TGI generate API",
	.default_path = "/generate_stream", .is_streaming = true, .is_openai = true,
	.is_ours = true, .is_eos_kept = true, .is_model_unnamed = true,
	.is_error_final = true,
	.encode = encode, .decode = decode, .finish = peer_finish,
};
