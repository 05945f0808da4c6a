/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audio.c - OpenAI transcriptions and translations ("openai-audio"); serve spec 3.8.
 *
 * The request is a form: the recording first, then the keys another API would have in its
 * JSON body, as Python's str() spells them. The answer is a stream like chat's.
 */
#include <assert.h>
#include <inttypes.h>

#include "client/endpoint/openai.h"
#include "client/http/multipart.h"
#include "core/json/python.h"
#include "core/json/write.h"

static int put_keys(struct body *b, const struct encode_opts *o, const struct sample *s,
		    struct str model, const char *output_len, struct err *e)
{
	if (body_put(b, "model", model, e) < 0 ||
	    body_put(b, "max_completion_tokens", str_of(output_len), e) < 0 ||
	    body_put(b, "stream", STR("true"), e) < 0 ||
	    body_put(b, "language", STR("\"en\""), e) < 0 ||
	    body_put(b, "stream_include_usage", STR("true"), e) < 0 ||
	    body_put(b, "stream_continuous_usage_stats", STR("true"), e) < 0)
		return -1;
	if (o->is_ignore_eos && body_put(b, "ignore_eos", STR("true"), e) < 0)
		return -1;
	if (body_overlay(b, o->extra_body, e) < 0)
		return -1;
	return body_overlay(b, s->overrides, e);
}

static int write_form(const struct body *b, const struct sample *s, struct encoded *out,
		      struct err *e)
{
	const struct multipart_file file = {
		STR("file"), s->file_name,
		/* The name that recordings get which the client wrote itself. */
		strcmp(s->file_name, "audio.wav") == 0 ? "audio/wav" : multipart_type_of(s->file_name),
		s->file,
	};
	const struct str content[] = { s->file, s->request_id };
	char boundary[MULTIPART_BOUNDARY_BYTES];
	struct arena a = { 0 };
	struct buf key = { 0 }, value = { 0 };
	int rc = 0;

	multipart_boundary(boundary, content, 2);
	static_assert(sizeof(out->content_type) >= MULTIPART_TYPE_BYTES, "the type has room");
	multipart_type(out->content_type, boundary);
	multipart_file(&out->body, boundary, &file);
	for (size_t i = 0; rc == 0 && i < b->n; i++) {
		struct json_value *v = NULL;

		buf_reset(&key);
		buf_reset(&value);
		rc = json_parse(&a, b->member[i].value, &v, e);
		if (rc == 0) {
			json_unescape(&key, b->member[i].key);
			json_python_str(&value, v);
			multipart_text(&out->body, boundary, buf_str(&key), buf_str(&value));
		}
	}
	multipart_end(&out->body, boundary);
	if (rc == 0 && out->body.is_over)
		rc = err_set(e, ERR_LIMIT, "a request body exceeds the limit of 1 GiB");
	arena_release(&a);
	buf_release(&key);
	buf_release(&value);
	return rc;
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	struct body b = { .n = 0 };
	struct buf model = { 0 };
	char output_len[32] = "null";
	int rc;

	(void)self;
	if (s->file.n == 0 || !s->file_name)
		return err_set(e, ERR_RUN, "--backend openai-audio uploads a recording in each request, and "
			       "this one has none: choose --dataset-name custom_audio, or a speech dataset "
			       "without --enable-multimodal-chat");
	if (s->output_len >= 0)
		snprintf(output_len, sizeof(output_len), "%" PRId64, s->output_len);
	json_quote(&model, o->model, false);
	rc = put_keys(&b, o, s, buf_str(&model), output_len, e);
	if (rc == 0)
		rc = write_form(&b, s, out, e);
	buf_release(&model);
	return rc;
}

static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	int rc = openai_decode_chat(self, data, out, e);

	out->prompt_tokens = -1; /* upstream keeps the sample's: usage counts sound, not text */
	return rc;
}

const struct endpoint endpoint_audio = {
	.name = "openai-audio", .suffix = "transcriptions", .other_suffix = "translations",
	.api_name = "OpenAI Audio API", .default_path = "/v1/audio/transcriptions",
	.is_streaming = true, .encode = encode, .decode = decode, .finish = openai_finish,
};
