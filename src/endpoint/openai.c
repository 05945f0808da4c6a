/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openai.c - the parts completions and chat share: stream events, usage, body
 * overlay. Rules: serve spec 3.2 to 3.6.
 */
#include "endpoint/openai.h"

#include "endpoint/event.h"
#include "json/write.h"

static int64_t count_of(struct json_slice usage, const char *key)
{
	struct json_slice v;
	int64_t n;

	return json_member(usage, key, &v) && json_to_i64(v, &n) ? n : -1;
}

static void decode_usage(struct json_slice usage, struct decoded *out)
{
	struct json_slice v;
	int64_t n;

	out->bits |= DECODED_USAGE;
	out->prompt_tokens = count_of(usage, "prompt_tokens");
	out->output_tokens = count_of(usage, "completion_tokens");
	if (json_path(usage, &v, "prompt_tokens_details", "cached_tokens", NULL) &&
	    json_to_i64(v, &n))
		out->cached_tokens = n;
	if (json_path(usage, &v, "completion_tokens_details", "reasoning_tokens", NULL) &&
	    json_to_i64(v, &n))
		out->reasoning_tokens = n;
}

/* An array that holds something: its raw slice is more than brackets and blanks. */
static bool is_filled(struct json_slice v)
{
	return v.raw.p && v.kind == JSON_ARRAY && str_trim((struct str){ v.raw.p + 1,
								v.raw.n - 2 }).n > 0;
}

int openai_decode(const struct json_paths *paths, struct str data, struct decoded *out,
		  struct err *e)
{
	struct json_slice v[OPENAI_MEMBERS];

	if (str_eq(data, STR("[DONE]"))) {
		out->bits = DECODED_DONE;
		return 0;
	}
	if (json_scan_run(paths, data, v) < 0)
		return event_not_json(data, e);
	if (event_has(v[OPENAI_ERROR]) && json_truthy(v[OPENAI_ERROR])) {
		out->bits = DECODED_ERROR;
		out->text = v[OPENAI_ERROR].raw;
		return 0;
	}
	if (event_has(v[OPENAI_USAGE]) && json_truthy(v[OPENAI_USAGE]))
		decode_usage(v[OPENAI_USAGE], out);
	if (!is_filled(v[OPENAI_CHOICES])) {
		out->bits |= out->bits & DECODED_USAGE ? 0 : DECODED_IGNORED;
		return 0;
	}
	out->bits |= DECODED_TOKEN;
	if (event_has_text(v[OPENAI_TEXT])) {
		out->bits |= DECODED_ANSWER;
		out->text = v[OPENAI_TEXT].raw;
	}
	if (event_has_text(v[OPENAI_REASONING]) || event_has_text(v[OPENAI_REASONING_OLD]))
		out->bits |= DECODED_REASONING;
	if (event_has(v[OPENAI_FINISH]))
		out->bits |= DECODED_FINISH;
	if (event_has(v[OPENAI_ROLE]) &&
	    !(out->bits & (DECODED_ANSWER | DECODED_REASONING | DECODED_FINISH)))
		out->bits |= DECODED_ROLE_ONLY;
	return 0;
}

int openai_finish_body(struct body *b, const struct encode_opts *o, const struct sample *s,
		       struct encoded *out, struct err *e)
{
	if (o->is_ignore_eos && body_put(b, "ignore_eos", STR("true"), e) < 0)
		return -1;
	if (body_overlay(b, o->extra_body, e) < 0 || body_overlay(b, s->overrides, e) < 0)
		return -1;
	body_write(b, &out->body);
	if (out->body.is_over)
		return err_set(e, ERR_LIMIT, "a request body passes the limit of 1 GiB");
	return 0;
}

const char *openai_finish(const struct request_row *row)
{
	return row->first_event_ns ? NULL
		: "Never received a valid chunk to calculate TTFT."
		  "This response will be marked as failed!";
}

struct str openai_prompt(const struct sample *s, struct buf *scratch)
{
	if (s->kind == PROMPT_JSON)
		return s->prompt;
	json_quote(scratch, s->prompt, false);
	return buf_str(scratch);
}
