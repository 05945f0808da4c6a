/* SPDX-License-Identifier: Apache-2.0 */
/*
 * responses.c - OpenAI responses ("openai-responses"); serve spec 3.7.
 *
 * Events are distinguished by their type. Deltas of everything that a model writes are token
 * events; a terminal event has the counts, and without one the answer was cut.
 */
#include <inttypes.h>
#include <pthread.h>

#include "client/endpoint/event.h"
#include "client/endpoint/openai.h"
#include "core/json/write.h"

enum member { TYPE, DELTA, ERROR, USAGE, INPUT, OUTPUT, CACHED, REASONING, WHY, MEMBERS };

static struct json_paths paths;
static pthread_once_t paths_once = PTHREAD_ONCE_INIT;

static void compile_paths(void)
{
	static const char *const where[MEMBERS] = {
		[TYPE] = "type", [DELTA] = "delta", [ERROR] = "error", [USAGE] = "response.usage",
		[INPUT] = "response.usage.input_tokens",
		[OUTPUT] = "response.usage.output_tokens",
		[CACHED] = "response.usage.input_tokens_details.cached_tokens",
		[REASONING] = "response.usage.output_tokens_details.reasoning_tokens",
		[WHY] = "response.incomplete_details.reason",
	};

	json_scan_paths_init(&paths, where, MEMBERS);
}

static int encode(const struct endpoint *self, const struct encode_opts *o,
		  const struct sample *s, struct encoded *out, struct err *e)
{
	struct buf model = { 0 }, prompt = { 0 };
	struct body b = { .n = 0 };
	char output_len[32];
	int rc = -1;

	(void)self;
	json_quote(&model, o->model, false);
	snprintf(output_len, sizeof(output_len), "%" PRId64, s->output_len);
	if (body_put(&b, "model", buf_str(&model), e) < 0 ||
	    body_put(&b, "input", openai_prompt(s, &prompt), e) < 0 ||
	    body_put(&b, "max_output_tokens",
		     s->output_len < 0 ? STR("null") : str_of(output_len), e) < 0 ||
	    body_put(&b, "stream", STR("true"), e) < 0 ||
	    body_put(&b, "store", STR("false"), e) < 0)
		goto done;
	rc = openai_finish_body(&b, o, s, out, e);
done:
	buf_release(&model);
	buf_release(&prompt);
	return rc;
}

/* The kinds of text a model writes: "response.<kind>.delta". */
static const struct { const char *type; unsigned bits; } deltas[] = {
	{ "response.output_text.delta", DECODED_ANSWER },
	{ "response.reasoning_text.delta", DECODED_REASONING },
	{ "response.reasoning_summary_text.delta", DECODED_REASONING },
	{ "response.function_call_arguments.delta", DECODED_OTHER },
	{ "response.custom_tool_call_input.delta", DECODED_OTHER },
	{ "response.mcp_call_arguments.delta", DECODED_OTHER },
	{ "response.code_interpreter_call_code.delta", DECODED_OTHER },
	{ "response.refusal.delta", DECODED_OTHER },
	{ "response.audio.transcript.delta", DECODED_OTHER },
	{ "response.output_audio_transcript.delta", DECODED_OTHER },
};

/* false: the event is not such a delta. */
static bool decode_delta(struct str type, struct json_slice delta, struct decoded *out)
{
	size_t i = 0;

	while (i < sizeof(deltas) / sizeof(*deltas) && !str_is(type, deltas[i].type))
		i++;
	if (i == sizeof(deltas) / sizeof(*deltas))
		return false;
	out->bits = DECODED_TOKEN;
	if (event_has_text(delta)) {
		out->bits |= deltas[i].bits;
		*(deltas[i].bits == DECODED_ANSWER ? &out->text : &out->other) = delta.raw;
	}
	return true;
}

static void decode_terminal(const struct json_slice *v, struct decoded *out)
{
	out->bits = DECODED_DONE | DECODED_FINISH;
	out->finish = FINISH_STOP;
	event_ended(v[WHY], out);
	if (!event_has(v[USAGE]) || !json_truthy(v[USAGE]))
		return;
	out->bits |= DECODED_USAGE;
	out->prompt_tokens = event_count(v[INPUT]);
	out->output_tokens = event_count(v[OUTPUT]);
	out->cached_tokens = event_count(v[CACHED]);
	out->reasoning_tokens = event_count(v[REASONING]);
}

static int decode(const struct endpoint *self, struct str data, struct decoded *out,
		  struct err *e)
{
	struct json_slice v[MEMBERS];
	struct str type;

	(void)self;
	pthread_once(&paths_once, compile_paths);
	if (str_eq(data, STR("[DONE]"))) {
		out->bits = DECODED_IGNORED; /* a terminal event of another object */
		return 0;
	}
	if (json_scan_run(&paths, data, v) < 0)
		return event_not_json(data, e);
	type = v[TYPE].kind == JSON_STRING ? v[TYPE].raw : (struct str){ 0 };
	if (decode_delta(type, v[DELTA], out))
		return 0;
	if (str_is(type, "response.completed") || str_is(type, "response.incomplete")) {
		decode_terminal(v, out);
	} else if (event_has(v[ERROR]) && json_truthy(v[ERROR])) {
		out->bits = DECODED_ERROR;
		out->text = event_raw(v[ERROR]);
	} else if (str_is(type, "error") || str_is(type, "response.failed") ||
		   str_is(type, "response.cancelled")) {
		out->bits = DECODED_ERROR;
		out->text = data;
	} else {
		out->bits = DECODED_IGNORED;
	}
	return 0;
}

static const char *finish(const struct request_row *row)
{
	if (!row->first_event_ns)
		return "Never received a token delta to calculate TTFT."
		       "This response will be marked as failed!";
	if (!(row->flags & ROW_SAW_DONE))
		return "Stream ended without a terminal event."
		       "This response will be marked as failed!";
	return NULL;
}

const struct endpoint endpoint_responses = {
	.name = "openai-responses", .suffix = "responses", .api_name = "OpenAI Responses API",
	.default_path = "/v1/responses", .is_streaming = true, .is_openai = true,
	.is_error_final = true,
	.encode = encode, .decode = decode, .finish = finish,
};
