/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openai.c - what completions and chat share: stream events, usage, body overlay. Rules: serve spec
 * 3.2 to 3.6.
 *
 * A stream is complete when it has a finish reason, [DONE], or usage in a separate event, which
 * comes after all choices. Otherwise it was cut: by a gateway's time limit, or because a worker
 * died while the proxy stayed up. Upstream counts that as a success (--compat stream-error).
 */
#include "client/endpoint/openai.h"

#include "client/endpoint/event.h"
#include "core/json/write.h"

static int64_t count_of(struct json_slice usage, const char *key)
{
	struct json_slice v;

	return json_member(usage, key, &v) ? event_count(v) : -1;
}

static void decode_usage(struct json_slice usage, struct decoded *out)
{
	struct json_slice v;

	out->bits |= DECODED_USAGE;
	out->prompt_tokens = count_of(usage, "prompt_tokens");
	out->output_tokens = count_of(usage, "completion_tokens");
	if (json_path(usage, &v, "prompt_tokens_details", "cached_tokens", NULL))
		out->cached_tokens = event_count(v);
	if (json_path(usage, &v, "completion_tokens_details", "reasoning_tokens", NULL))
		out->reasoning_tokens = event_count(v);
}

/*
 * Errors among the events without choices and usage: {"object": "error"}, {"type": "error"},
 * {"detail": ...}, {"message": ..., "code": ...}.
 */
static bool is_error(struct str data)
{
	enum { OBJECT, TYPE, DETAIL, MESSAGE, CODE, N };
	static const char *const where[N] = { "object", "type", "detail", "message", "code" };
	struct json_paths error_paths;
	struct json_slice v[N];

	json_scan_paths_init(&error_paths, where, N);
	if (json_scan_run(&error_paths, data, v) < 0)
		return false;
	return (v[OBJECT].kind == JSON_STRING && str_is(v[OBJECT].raw, "error")) ||
	       (v[TYPE].kind == JSON_STRING && str_is(v[TYPE].raw, "error")) ||
	       (event_has(v[DETAIL]) && json_truthy(v[DETAIL])) ||
	       (event_has(v[MESSAGE]) && event_has(v[CODE]));
}

/* The content of a token event other than the answer's text. */
static void decode_other(const struct json_slice *v, struct decoded *out)
{
	static const enum openai_member texts[] = { OPENAI_REASONING, OPENAI_REASONING_OLD,
						    OPENAI_REFUSAL, OPENAI_ARGUMENTS,
						    OPENAI_FUNCTION };

	if (event_has_text(v[OPENAI_REASONING]) || event_has_text(v[OPENAI_REASONING_OLD]))
		out->bits |= DECODED_REASONING;
	/* The first event of a call has its name, and no arguments yet. */
	if (event_has_text(v[OPENAI_REFUSAL]) || event_is_filled(v[OPENAI_TOOLS]) ||
	    event_has_text(v[OPENAI_FUNCTION]))
		out->bits |= DECODED_OTHER;
	if (event_is_filled(v[OPENAI_TOOLS]))
		out->calls = v[OPENAI_TOOLS].raw;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (event_has_text(v[texts[i]])) {
			out->other = v[texts[i]].raw;
			break;
		}
	}
}

int openai_decode(const struct json_paths *paths, struct str data, struct decoded *out,
		  struct err *e)
{
	struct json_slice v[OPENAI_MEMBERS] = { 0 };

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
	if (!event_is_filled(v[OPENAI_CHOICES])) {
		if (out->bits & DECODED_USAGE) {
			out->bits |= DECODED_DONE;
		} else if (!event_has(v[OPENAI_CHOICES]) && is_error(data)) {
			out->bits = DECODED_ERROR;
			out->text = data;
		} else {
			out->bits = DECODED_IGNORED;
		}
		return 0;
	}
	out->bits |= DECODED_TOKEN;
	if (event_has_text(v[OPENAI_TEXT])) {
		out->bits |= DECODED_ANSWER;
		out->text = v[OPENAI_TEXT].raw;
	}
	decode_other(v, out);
	event_ended(v[OPENAI_FINISH], out);
	if (event_has(v[OPENAI_ROLE]) &&
	    !(out->bits & (DECODED_ANSWER | DECODED_REASONING | DECODED_OTHER | DECODED_FINISH)))
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
		return err_set(e, ERR_LIMIT, "a request body exceeds the limit of 1 GiB");
	return 0;
}

const char *openai_finish(const struct request_row *row)
{
	if (!row->first_event_ns)
		return "Never received a valid chunk to calculate TTFT."
		       "This response will be marked as failed!";
	if (!(row->flags & (ROW_SAW_DONE | ROW_SAW_FINISH)))
		return "The stream ended without a finish reason, [DONE] or usage: the answer was cut "
		       "(--compat stream-error counts it, as vllm does).";
	return NULL;
}

struct str openai_prompt(const struct sample *s, struct buf *scratch)
{
	if (s->kind == PROMPT_JSON)
		return s->prompt;
	json_quote(scratch, s->prompt, false);
	return buf_str(scratch);
}
