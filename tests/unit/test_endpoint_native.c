/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responses and the native APIs of other servers: bodies byte for byte, and streams of
 * recorded shapes from the first byte to what is known in the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stream_rig.h"

#define S(text) { text, sizeof(text) - 1 }

static const struct {
	const char *endpoint;
	struct encode_opts opts;
	struct sample sample;
	const char *want;
} bodies[] = {
	{ "openai-responses", { .model = S("m") }, { .prompt = S("a\"\xc3\xa9"), .output_len = 7 },
	  "{\"model\": \"m\", \"input\": \"a\\\"\\u00e9\", \"max_output_tokens\": 7, "
	  "\"stream\": true, \"store\": false}" },
	{ "openai-responses", { .model = S("m"), .is_ignore_eos = true,
				.extra_body = S("{\"temperature\": 0.0, \"store\": true}") },
	  { .prompt = S("[1, 2]"), .kind = PROMPT_JSON, .output_len = -1 },
	  "{\"model\": \"m\", \"input\": [1, 2], \"max_output_tokens\": null, \"stream\": true, "
	  "\"store\": true, \"ignore_eos\": true, \"temperature\": 0.0}" },
	{ "anthropic", { .model = S("m"), .is_ignore_eos = true,
			 .extra_body = S("{\"temperature\": 0.0}") },
	  { .prompt = S("hi"), .output_len = 5, .overrides = S("{\"top_k\": 3}") },
	  "{\"model\": \"m\", \"max_tokens\": 5, \"messages\": [{\"role\": \"user\", \"content\": "
	  "[{\"type\": \"text\", \"text\": \"hi\"}]}], \"stream\": true, \"temperature\": 0.0, "
	  "\"top_k\": 3}" },
	{ "anthropic", { .model = S("m") },
	  { .messages = S("[{\"role\": \"system\", \"content\": \"be brief\"}, {\"role\": \"user\", "
			  "\"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"a\"}]"),
	    .output_len = 5 },
	  "{\"model\": \"m\", \"max_tokens\": 5, \"system\": [{\"type\": \"text\", \"text\": "
	  "\"be brief\"}], \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", "
	  "\"text\": \"q\"}]}, {\"role\": \"assistant\", \"content\": [{\"type\": \"text\", "
	  "\"text\": \"a\"}]}], \"stream\": true}" },
	{ "anthropic", { .model = S("m") },
	  { .messages = S("[{\"role\": \"system\", \"content\": \"a\"}, {\"role\": \"system\", "
			  "\"content\": []}, {\"role\": \"system\", \"content\": \"b\"}]"),
	    .output_len = 5 },
	  "{\"model\": \"m\", \"max_tokens\": 5, \"system\": [{\"type\": \"text\", \"text\": \"a\"}, "
	  "{\"type\": \"text\", \"text\": \"b\"}], \"messages\": [], \"stream\": true}" },
	{ "anthropic", { .model = S("m") },
	  { .prompt = S("see"), .output_len = 5,
	    .media = S("[{\"type\": \"image_url\", \"image_url\": {\"url\": "
		       "\"data:image/png;base64,QUJD\"}}, {\"type\": \"image_url\", \"image_url\": "
		       "{\"url\": \"http://h/i.png\"}}]") },
	  "{\"model\": \"m\", \"max_tokens\": 5, \"messages\": [{\"role\": \"user\", \"content\": "
	  "[{\"type\": \"text\", \"text\": \"see\"}, {\"type\": \"image\", \"source\": {\"type\": "
	  "\"base64\", \"media_type\": \"image/png\", \"data\": \"QUJD\"}}, {\"type\": \"image\", "
	  "\"source\": {\"type\": \"url\", \"url\": \"http://h/i.png\"}}]}], \"stream\": true}" },
	{ "tgi", { .model = S("m"), .is_ignore_eos = true,
		   .extra_body = S("{\"temperature\": 0.5, \"do_sample\": true}") },
	  { .prompt = S("hi"), .output_len = 5, .overrides = S("{\"parameters\": {\"seed\": 1}}") },
	  "{\"inputs\": \"hi\", \"parameters\": {\"max_new_tokens\": 5, \"details\": true, "
	  "\"temperature\": 0.5, \"do_sample\": true, \"seed\": 1}}" },
	{ "tgi", /* greedy and no limit are null: the server refuses 0 and 1 */
	  { .model = S("m"), .extra_body = S("{\"temperature\": 0.0, \"top_p\": 1.0, "
					     "\"top_k\": -1, \"repetition_penalty\": 1.0}") },
	  { .prompt = S("hi"), .output_len = 5, .overrides = S("{\"top_p\": 0.5}") },
	  "{\"inputs\": \"hi\", \"parameters\": {\"max_new_tokens\": 5, \"details\": true, "
	  "\"temperature\": null, \"top_p\": 0.5, \"top_k\": null, \"repetition_penalty\": 1.0}}" },
	{ "llamacpp", { .model = S("m"), .is_ignore_eos = true,
			.extra_body = S("{\"repetition_penalty\": 1.1, \"cache_prompt\": false}") },
	  { .prompt = S("[5, 6]"), .kind = PROMPT_JSON, .output_len = 5 },
	  "{\"prompt\": [5, 6], \"n_predict\": 5, \"stream\": true, \"cache_prompt\": false, "
	  "\"ignore_eos\": true, \"repeat_penalty\": 1.1}" },
	{ "sglang", { .model = S("m"), .is_ignore_eos = true,
		      .extra_body = S("{\"top_p\": 0.9, \"return_logprob\": true}") },
	  { .prompt = S("hi"), .output_len = 5,
	    .overrides = S("{\"sampling_params\": {\"stop\": [\"x\"]}}") },
	  "{\"text\": \"hi\", \"stream\": true, \"return_logprob\": true, \"sampling_params\": "
	  "{\"max_new_tokens\": 5, \"ignore_eos\": true, \"top_p\": 0.9, \"stop\": [\"x\"]}}" },
	{ "sglang", { .model = S("m") },
	  { .prompt = S("[1]"), .kind = PROMPT_JSON, .output_len = -1 },
	  "{\"input_ids\": [1], \"stream\": true, \"sampling_params\": {}}" },
	{ "ollama", { .model = S("m"), .is_ignore_eos = true,
		      .extra_body = S("{\"temperature\": 0, \"repetition_penalty\": 1.2, "
				      "\"raw\": true, \"options\": {\"num_ctx\": 8192}}") },
	  { .prompt = S("hi"), .output_len = 5 },
	  "{\"model\": \"m\", \"prompt\": \"hi\", \"stream\": true, \"raw\": true, \"options\": "
	  "{\"num_predict\": 5, \"temperature\": 0, \"repeat_penalty\": 1.2, \"num_ctx\": 8192}}" },
	{ "ollama-chat", { .model = S("m") }, { .prompt = S("h\ni"), .output_len = 5 },
	  "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"h\\ni\"}], "
	  "\"stream\": true, \"options\": {\"num_predict\": 5}}" },
	{ "ollama-chat", { .model = S("m") },
	  { .prompt = S("see"), .output_len = 5,
	    .media = S("[{\"type\": \"image_url\", \"image_url\": {\"url\": "
		       "\"data:image/png;base64,QUJD\"}}]") },
	  "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"see\", \"images\": "
	  "[\"QUJD\"]}], \"stream\": true, \"options\": {\"num_predict\": 5}}" },
	{ "ollama-chat", { .model = S("m") },
	  { .kind = PROMPT_JSON, .output_len = 5, .prompt = S("[{\"role\": \"user\", \"content\": [{\"type\": "
		"\"text\", \"text\": \"see\"}, {\"type\": \"image_url\", \"image_url\": {\"url\": "
		"\"data:image/png;base64,QUJD\"}}]}, {\"role\": \"assistant\", \"content\": \"ABC\"}]") },
	  "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"see\", \"images\": "
	  "[\"QUJD\"]}, {\"role\": \"assistant\", \"content\": \"ABC\"}], \"stream\": true, \"options\": "
	  "{\"num_predict\": 5}}" },
};

static void bodies_are_the_apis(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		const struct endpoint *ep = endpoint_find(bodies[i].endpoint);
		struct encoded out = { 0 };
		struct err e = { 0 };

		assert_non_null(ep);
		if (ep->encode(ep, &bodies[i].opts, &bodies[i].sample, &out, &e) < 0)
			fail_msg("%zu: %s", i, e.text);
		assert_string_equal(out.body.data, bodies[i].want);
		assert_string_equal(out.content_type, "");
		buf_release(&out.body);
	}
}

static void what_an_api_cannot_send_is_refused(void **state)
{
	static const struct {
		const char *endpoint;
		struct sample sample;
		const char *want;
	} row[] = {
		{ "anthropic", { .prompt = S("hi"), .output_len = -1 },
		  "--backend anthropic needs a length of every answer (max_tokens); give one, e.g. "
		  "with --output-len" },
		{ "anthropic", { .prompt = S("[1, 2]"), .kind = PROMPT_JSON, .output_len = 5 },
		  "--backend anthropic sends text and pictures; a part is {\"type\": \"text\", "
		  "\"text\": [1, 2]}" },
		{ "anthropic", { .messages = S("[{\"content\": \"q\"}]"), .output_len = 5 },
		  "--backend anthropic sends messages with a role, but one is {\"content\": \"q\"}" },
		{ "tgi", { .prompt = S("[1, 2]"), .kind = PROMPT_JSON, .output_len = 5 },
		  "--backend tgi sends plain text, but a prompt is [1, 2]" },
		{ "ollama", { .prompt = S("[1, 2]"), .kind = PROMPT_JSON, .output_len = 5 },
		  "--backend ollama sends plain text, but a prompt is [1, 2]" },
		{ "ollama-chat", { .prompt = S("x"), .media = S("[{\"type\": \"video_url\"}]"),
				   .output_len = 5 },
		  "--backend ollama-chat sends text and pictures as data; a part is "
		  "{\"type\": \"video_url\"}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct endpoint *ep = endpoint_find(row[i].endpoint);
		const struct encode_opts opts = { .model = S("m") };
		struct encoded out = { 0 };
		struct err e = { 0 };

		if (ep->encode(ep, &opts, &row[i].sample, &out, &e) == 0)
			fail_msg("%zu: %s", i, out.body.data);
		assert_string_equal(e.text, row[i].want);
		assert_int_equal(e.code, ERR_RUN);
		buf_release(&out.body);
	}
}

/* ---- streams ---- */

#define TYPED(type, rest) "event: " type "\ndata: {\"type\":\"" type "\"" rest "}\n\n"
#define DELTA(text) TYPED("response.output_text.delta", ",\"item_id\":\"m\",\"delta\":\"" text "\"")
#define THOUGHT(text) TYPED("response.reasoning_text.delta", ",\"delta\":\"" text "\"")
#define RESPONSES_USAGE "\"usage\":{\"input_tokens\":11,\"input_tokens_details\":"                 \
	"{\"cached_tokens\":4},\"output_tokens\":3,\"output_tokens_details\":"                     \
	"{\"reasoning_tokens\":1},\"total_tokens\":14}"

#define BLOCK(delta) TYPED("content_block_delta", ",\"index\":0,\"delta\":" delta)
#define BLOCK_TEXT(text) BLOCK("{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define START TYPED("message_start", ",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":"        \
	"{\"input_tokens\":5,\"cache_creation_input_tokens\":2,"                                   \
	"\"cache_read_input_tokens\":10,\"output_tokens\":1}}")
#define STOP TYPED("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"},"                   \
	"\"usage\":{\"output_tokens\":3}") TYPED("message_stop", "")

#define TGI(text, special) "data:{\"index\":1,\"token\":{\"id\":5,\"text\":\"" text               \
	"\",\"logprob\":-0.1,\"special\":" special "},\"generated_text\":null,\"details\":null}\n\n"
#define LLAMA(text, n) "data: {\"index\":0,\"content\":\"" text "\",\"tokens\":[5],\"stop\":false," \
	"\"id_slot\":0,\"tokens_predicted\":" n ",\"tokens_evaluated\":6}\n\n"
#define SGLANG(text, why, n) "data: {\"text\":\"" text "\",\"output_ids\":[1],\"meta_info\":"      \
	"{\"id\":\"x\",\"finish_reason\":" why ",\"prompt_tokens\":6,\"completion_tokens\":" n     \
	",\"cached_tokens\":2}}\n\n"
#define OLLAMA(rest) "{\"model\":\"m\",\"created_at\":\"2025\"," rest "}\n"
#define OLLAMA_END "\"done\":true,\"done_reason\":\"length\",\"context\":[1],"                     \
	"\"total_duration\":9,\"prompt_eval_count\":6,\"eval_count\":2"

static const struct {
	const char *endpoint, *bytes, *want;
} streams[] = {
	/* responses: the usual, and every outcome in upstream's order */
	{ "openai-responses",
	  TYPED("response.created", ",\"response\":{\"usage\":null}")
	  THOUGHT("hm") DELTA("a\\u00e9") DELTA("") DELTA("b")
	  TYPED("response.output_text.done", ",\"text\":\"aeb\"")
	  TYPED("response.completed", ",\"response\":{" RESPONSES_USAGE "}") "data: [DONE]\n\n",
	  "4 tokens, 2 answers, 1 thoughts, text 'a\\u00e9b', counts 11 3 4 1" },
	{ "openai-responses",
	  DELTA("a") TYPED("response.incomplete", ",\"response\":{\"usage\":null}"),
	  "1 tokens, 1 answers, 0 thoughts, text 'a', counts -1 -1 -1 -1" },
	{ "openai-responses",
	  DELTA("a") TYPED("response.incomplete", ",\"response\":{\"usage\":"
			   "{\"input_tokens\":null,\"output_tokens\":2}}"),
	  "1 tokens, 1 answers, 0 thoughts, text 'a', counts -1 2 -1 -1" },
	{ "openai-responses", DELTA("a") DELTA("b") "data: [DONE]\n\n",
	  "2 tokens, 2 answers, 0 thoughts, text 'ab', counts -1 -1 -1 -1, "
	  "Stream ended without a terminal event.This response will be marked as failed!" },
	{ "openai-responses", TYPED("response.completed", ",\"response\":{" RESPONSES_USAGE "}"),
	  "0 tokens, 0 answers, 0 thoughts, text '', counts 11 3 4 1, "
	  "Never received a token delta to calculate TTFT."
	  "This response will be marked as failed!" },
	{ "openai-responses", DELTA("a") TYPED("error", ",\"code\":\"E\",\"message\":\"no\""),
	  "1 tokens, 1 answers, 0 thoughts, text 'a', counts -1 -1 -1 -1, "
	  "error {\"type\":\"error\",\"code\":\"E\",\"message\":\"no\"}, "
	  "Stream ended without a terminal event.This response will be marked as failed!" },
	{ "openai-responses", "data: {\"error\":{\"message\":\"no\"}}\n\n",
	  "0 tokens, 0 answers, 0 thoughts, text '', counts -1 -1 -1 -1, "
	  "error {\"message\":\"no\"}, Never received a token delta to calculate TTFT."
	  "This response will be marked as failed!" },
	/* anthropic */
	{ "anthropic",
	  START TYPED("content_block_start", ",\"index\":0,\"content_block\":{\"type\":\"text\","
		      "\"text\":\"\"}") TYPED("ping", "")
	  BLOCK_TEXT("a") BLOCK_TEXT("\\ud83d\\ude00") TYPED("content_block_stop", ",\"index\":0")
	  STOP,
	  "2 tokens, 2 answers, 0 thoughts, text 'a\\ud83d\\ude00', counts 17 3 10 -1" },
	{ "anthropic",
	  START BLOCK("{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}")
	  BLOCK("{\"type\":\"signature_delta\",\"signature\":\"x\"}") BLOCK_TEXT("a")
	  BLOCK("{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}") STOP,
	  "3 tokens, 1 answers, 1 thoughts, text 'a', counts 17 3 10 -1" },
	{ "anthropic", /* the prompt's token counts come late, as with vLLM */
	  BLOCK_TEXT("a") TYPED("message_delta", ",\"delta\":{\"stop_reason\":\"max_tokens\"},"
				"\"usage\":{\"input_tokens\":7,\"output_tokens\":1}")
	  TYPED("message_stop", ""),
	  "1 tokens, 1 answers, 0 thoughts, text 'a', counts 7 1 -1 -1" },
	{ "anthropic", /* as vLLM with its details, and the share of thoughts as the API has it */
	  TYPED("message_start", ",\"message\":{\"id\":\"chatcmpl-1\",\"type\":\"message\","
		"\"role\":\"assistant\",\"content\":[],\"model\":\"m\",\"stop_reason\":null,"
		"\"stop_sequence\":null,\"usage\":{\"input_tokens\":7,\"output_tokens\":0}}")
	  TYPED("content_block_start", ",\"content_block\":{\"type\":\"thinking\","
		"\"thinking\":\"\"},\"index\":0")
	  BLOCK("{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}") BLOCK_TEXT("a")
	  TYPED("message_delta", ",\"delta\":{\"stop_reason\":null,\"stop_sequence\":null},\"usage\":"
		"{\"input_tokens\":3,\"output_tokens\":4,\"cache_read_input_tokens\":4,"
		"\"output_tokens_details\":{\"thinking_tokens\":2}}") TYPED("message_stop", ""),
	  "2 tokens, 1 answers, 1 thoughts, text 'a', counts 7 4 4 2" },
	{ "anthropic", START BLOCK_TEXT("a"),
	  "1 tokens, 1 answers, 0 thoughts, text 'a', counts 17 -1 10 -1, "
	  "the stream ended before the answer did" },
	{ "anthropic",
	  START TYPED("error", ",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}"),
	  "0 tokens, 0 answers, 0 thoughts, text '', counts 17 -1 10 -1, error "
	  "{\"type\":\"overloaded_error\",\"message\":\"busy\"}, the stream ended without a token" },
	/* tgi */
	{ "tgi",
	  TGI(" a", "false") TGI("\\u00e9", "false")
	  "data:{\"index\":3,\"token\":{\"id\":2,\"text\":\"</s>\",\"special\":true},"
	  "\"generated_text\":\" a\\u00e9\",\"details\":{\"finish_reason\":\"eos_token\","
	  "\"generated_tokens\":3,\"seed\":null,\"input_length\":4}}\n\n",
	  "3 tokens, 2 answers, 0 thoughts, text ' a\\u00e9', counts 4 3 -1 -1" },
	{ "tgi", TGI(" a", "false") "data:{\"error\":\"out of memory\",\"error_type\":\"generation\"}\n\n",
	  "1 tokens, 1 answers, 0 thoughts, text ' a', counts -1 -1 -1 -1, "
	  "error \"out of memory\", the stream ended before the answer did" },
	{ "tgi", /* a refusal comes after status 200; comments keep the line open */
	  ":\n\ndata: {\"error\":\"Input validation error: `top_p` must be > 0.0 and < 1.0\","
	  "\"error_type\":\"validation\"}\n\n",
	  "0 tokens, 0 answers, 0 thoughts, text '', counts -1 -1 -1 -1, error \"Input validation "
	  "error: `top_p` must be > 0.0 and < 1.0\", the stream ended without a token" },
	{ "tgi", TGI(" a", "false"),
	  "1 tokens, 1 answers, 0 thoughts, text ' a', counts -1 -1 -1 -1, "
	  "the stream ended before the answer did" },
	/* llama.cpp: running counts, the last event without text of its own */
	{ "llamacpp",
	  LLAMA(" a", "1") LLAMA("", "2") LLAMA("b", "3")
	  "data: {\"index\":0,\"content\":\"\",\"tokens\":[],\"stop\":true,\"model\":\"m\","
	  "\"tokens_predicted\":3,\"tokens_evaluated\":6,\"tokens_cached\":8,"
	  "\"stop_type\":\"limit\",\"timings\":{\"cache_n\":2,\"prompt_n\":4}}\n\n",
	  "3 tokens, 2 answers, 0 thoughts, text ' ab', counts 6 3 2 -1" },
	{ "llamacpp", /* the last event has the request's settings and its prompt */
	  LLAMA(" a", "1")
	  "data: {\"index\":0,\"content\":\"\",\"tokens\":[],\"id_slot\":0,\"stop\":true,"
	  "\"model\":\"m\",\"tokens_predicted\":1,\"tokens_evaluated\":6,\"generation_settings\":"
	  "{\"stop\":[],\"ignore_eos\":true,\"lora\":[]},\"prompt\":\"<s>content\","
	  "\"truncated\":false,\"stop_type\":\"limit\",\"stopping_word\":\"\",\"tokens_cached\":6,"
	  "\"timings\":{\"cache_n\":0,\"prompt_n\":6}}\n\n",
	  "1 tokens, 1 answers, 0 thoughts, text ' a', counts 6 1 0 -1" },
	{ "llamacpp", LLAMA(" a", "1") "data: {\"error\":{\"code\":500,\"message\":\"no\"}}\n\n",
	  "1 tokens, 1 answers, 0 thoughts, text ' a', counts 6 1 -1 -1, "
	  "error {\"code\":500,\"message\":\"no\"}, the stream ended before the answer did" },
	/* sglang: the whole answer in every event */
	{ "sglang",
	  SGLANG(" a", "null", "1") SGLANG(" a b", "null", "2") SGLANG(" a b\\u00e9", "null", "3")
	  SGLANG(" a b\\u00e9!", "{\"type\":\"length\",\"length\":4}", "4") "data: [DONE]\n\n",
	  "4 tokens, 4 answers, 0 thoughts, text ' a b\\u00e9!', counts 6 4 2 -1" },
	{ "sglang", /* half a character is not taken before it is whole */
	  SGLANG("a\\ufffd", "null", "1") SGLANG("a\\u4e2d", "null", "2")
	  SGLANG("a\\u4e2d", "{\"type\":\"stop\",\"matched\":2}", "3") "data: [DONE]\n\n",
	  "3 tokens, 3 answers, 0 thoughts, text 'a\\u4e2d', counts 6 3 2 -1" },
	{ "sglang", SGLANG(" a", "null", "1") "data: {\"error\":{\"message\":\"no\"}}\n\n",
	  "1 tokens, 1 answers, 0 thoughts, text ' a', counts 6 1 2 -1, error {\"message\":\"no\"}, "
	  "the stream ended before the answer did" },
	{ "sglang",
	  SGLANG(" a", "null", "1,\"reasoning_tokens\":1")
	  SGLANG(" ab", "{\"type\":\"stop\",\"matched\":\"x\"}", "2,\"reasoning_tokens\":1")
	  "data: [DONE]\n\n",
	  "2 tokens, 2 answers, 0 thoughts, text ' ab', counts 6 2 2 1" },
	{ "sglang",
	  "data: {\"error\":{\"message\":\"too long\",\"type\":\"invalid_request_error\","
	  "\"code\":400,\"retryable\":false}}\n\ndata: [DONE]\n\n",
	  "0 tokens, 0 answers, 0 thoughts, text '', counts -1 -1 -1 -1, error "
	  "{\"message\":\"too long\",\"type\":\"invalid_request_error\",\"code\":400,"
	  "\"retryable\":false}, the stream ended without a token" },
	{ "sglang", SGLANG("", "{\"type\":\"abort\",\"message\":\"gone\"}", "0"),
	  "0 tokens, 0 answers, 0 thoughts, text '', counts -1 -1 -1 -1, "
	  "error {\"type\":\"abort\",\"message\":\"gone\"}, the stream ended without a token" },
	/* ollama: lines */
	{ "ollama",
	  OLLAMA("\"response\":\"\",\"thinking\":\"hm\",\"done\":false")
	  OLLAMA("\"response\":\" a\",\"done\":false") "\r\n" OLLAMA("\"response\":\"\\n\",\"done\":false")
	  OLLAMA("\"response\":\"\"," OLLAMA_END),
	  "3 tokens, 2 answers, 1 thoughts, text ' a\\n', counts 6 2 -1 -1" },
	{ "ollama", OLLAMA("\"response\":\" a\",\"done\":false") "{\"error\":\"no model\"}",
	  "1 tokens, 1 answers, 0 thoughts, text ' a', counts -1 -1 -1 -1, error \"no model\", "
	  "the stream ended before the answer did" },
	{ "ollama", OLLAMA("\"response\":\" a\",\"done\":false") "{\"response\":\"b",
	  "1 tokens, 1 answers, 0 thoughts, text ' a', counts -1 -1 -1 -1, error a stream event is "
	  "not JSON: {\"response\":\"b, the stream ended before the answer did" },
	{ "ollama-chat",
	  OLLAMA("\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm\"},\"done\":false")
	  OLLAMA("\"message\":{\"role\":\"assistant\",\"content\":\"a\"},\"done\":false")
	  OLLAMA("\"message\":{\"role\":\"assistant\",\"content\":\"b\"}," OLLAMA_END),
	  "3 tokens, 2 answers, 1 thoughts, text 'ab', counts 6 2 -1 -1" },
};

/* Whole, by the byte, and in odd pieces: cuts between reads change nothing. */
static void streams_come_to_what_was_sent(void **state)
{
	static const size_t steps[] = { 1u << 20, 1, 7, 64 };

	(void)state;
	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		for (size_t j = 0; j < sizeof(steps) / sizeof(*steps); j++) {
			char *got = stream_run(endpoint_find(streams[i].endpoint), NULL,
					       streams[i].bytes, steps[j]);

			assert_string_equal(got, streams[i].want);
			free(got);
		}
	}
}

/* A stream that is cut anywhere never counts as a success. */
static void cut_streams_fail(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		const struct endpoint *ep = endpoint_find(streams[i].endpoint);
		const char *end = strstr(streams[i].bytes, "\n\n");
		char *cut, *got;

		if (ep->framing != FRAMING_SSE || strstr(streams[i].want, ", the stream") ||
		    strstr(streams[i].want, "failed!"))
			continue;
		cut = strndup(streams[i].bytes, (size_t)(end - streams[i].bytes) + 2);
		got = stream_run(ep, NULL, cut, 1u << 20);
		if (!strstr(got, "ended") && !strstr(got, "Never received"))
			fail_msg("%s: %s", streams[i].endpoint, got);
		free(cut);
		free(got);
	}
}

static void broken_events_are_refused(void **state)
{
	static const char *const names[] = { "openai-responses", "anthropic", "tgi", "llamacpp",
					     "sglang", "ollama", "ollama-chat" };
	static const char *const row[] = { "", "x", "{", "{\"text\":\"a}", "[1,2" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		for (size_t j = 0; j < sizeof(row) / sizeof(*row); j++) {
			const struct endpoint *ep = endpoint_find(names[i]);
			struct decoded d = { 0 };
			struct err e = { 0 };

			assert_int_equal(ep->decode(ep, str_of(row[j]), &d, &e), -1);
			assert_int_equal(e.code, ERR_PARSE);
		}
	}
}

static void default_paths_end_as_they_must(void **state)
{
	static const char *const names[] = { "openai-responses", "anthropic", "tgi", "llamacpp",
					     "sglang", "ollama", "ollama-chat" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct endpoint *ep = endpoint_find(names[i]);
		struct err e = { 0 };

		assert_int_equal(endpoint_check_url(ep, ep->default_path, &e), 0);
		assert_int_equal(ep->is_ours, i > 0);
	}
}

static void new_text_is_what_was_not_there(void **state)
{
	size_t seen = 0;

	(void)state;
	assert_true(str_is(whole_text_new(str_of("ab"), &seen, false), "ab"));
	assert_true(str_is(whole_text_new(str_of("ab\xef\xbf\xbd"), &seen, false), ""));
	assert_true(str_is(whole_text_new(str_of("abc\\ufffd\\uFFFD"), &seen, false), "c"));
	assert_true(str_is(whole_text_new(str_of("a"), &seen, false), "")); /* shrunk */
	assert_true(str_is(whole_text_new(str_of("abcd\\ufffd"), &seen, true), "d\\ufffd"));
	assert_int_equal(seen, 10);
	/* The prompt as the server spells it, whatever its escapes. */
	assert_int_equal(whole_text_prompt(str_of("h\\u00e9\\n\\ud83d\\ude00x"),
					   str_of("h\xc3\xa9\n\xf0\x9f\x98\x80")), 1 + 6 + 2 + 12);
	assert_int_equal(whole_text_prompt(str_of("h\xc3\xa9\\\"x"), str_of("h\xc3\xa9\"")), 5);
	assert_int_equal(whole_text_prompt(str_of("ab"), str_of("abcd")), 2);
	assert_int_equal(whole_text_prompt(str_of("\\"), str_of("ab")), 1);
	assert_int_equal(whole_text_prompt(str_of(""), str_of("ab")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_are_the_apis),
		cmocka_unit_test(what_an_api_cannot_send_is_refused),
		cmocka_unit_test(streams_come_to_what_was_sent),
		cmocka_unit_test(cut_streams_fail),
		cmocka_unit_test(broken_events_are_refused),
		cmocka_unit_test(default_paths_end_as_they_must),
		cmocka_unit_test(new_text_is_what_was_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
