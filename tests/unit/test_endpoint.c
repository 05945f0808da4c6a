/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies byte for byte, and what stream events of recorded shapes mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/endpoint/endpoint.h"

#define S(text) { text, sizeof(text) - 1 }

static void bodies_are_upstreams(void **state)
{
	static const struct {
		const char *endpoint;
		struct encode_opts opts;
		struct sample sample;
		const char *want;
	} row[] = {
		{ "vllm", { .model = S("m\xc3\xa9") },
		  { .prompt = S("a\"\xc3\xa9"), .output_len = 7 },
		  "{\"model\": \"m\\u00e9\", \"prompt\": \"a\\\"\\u00e9\", \"repetition_penalty\": 1.0, "
		  "\"max_tokens\": 7, \"logprobs\": null, \"stream\": true, "
		  "\"stream_options\": {\"include_usage\": true}}" },
		{ "openai", { .model = S("m"), .is_ignore_eos = true, .has_logprobs = true,
			      .logprobs = 3, .extra_body = S("{\"temperature\": 0.0, \"max_tokens\": 1}") },
		  { .prompt = S("[1, 2]"), .kind = PROMPT_JSON, .output_len = -1 },
		  "{\"model\": \"m\", \"prompt\": [1, 2], \"repetition_penalty\": 1.0, "
		  "\"max_tokens\": 1, \"logprobs\": 3, \"stream\": true, "
		  "\"stream_options\": {\"include_usage\": true}, \"ignore_eos\": true, "
		  "\"temperature\": 0.0}" },
		{ "openai-chat", { .model = S("m\xc3\xa9") },
		  { .prompt = S("hi"), .output_len = 5,
		    .overrides = S("{\"tools\": [\"x\"]}") },
		  "{\"model\": \"m\\u00e9\", \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
		  "\"text\", \"text\": \"hi\"}]}], \"max_completion_tokens\": 5, \"stream\": true, "
		  "\"stream_options\": {\"include_usage\": true}, \"tools\": [\"x\"]}" },
		{ "openai-chat", { .model = S("m") },
		  { .prompt = S("[{\"role\": \"user\", \"content\": \"q\"}]"),
		    .kind = PROMPT_JSON, .output_len = 5 },
		  "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"q\"}], "
		  "\"max_completion_tokens\": 5, \"stream\": true, "
		  "\"stream_options\": {\"include_usage\": true}}" },
		{ "openai-chat", { .model = S("m") },
		  { .prompt = S("see"), .output_len = 5,
		    .media = S("[{\"type\": \"image_url\"}]") },
		  "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
		  "\"text\", \"text\": \"see\"}, {\"type\": \"image_url\"}]}], "
		  "\"max_completion_tokens\": 5, \"stream\": true, "
		  "\"stream_options\": {\"include_usage\": true}}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct endpoint *ep = endpoint_find(row[i].endpoint);
		struct encoded out = { 0 };
		struct err e = { 0 };

		assert_int_equal(ep->encode(ep, &row[i].opts, &row[i].sample, &out, &e), 0);
		assert_string_equal(out.body.data, row[i].want);
		assert_string_equal(out.content_type, "");
		buf_release(&out.body);
	}
}

static const struct {
	const char *endpoint, *data;
	unsigned bits;
	const char *text;
	int64_t prompt, output, cached, reasoning;
} event_rows[] = {
	{ "vllm", "{\"choices\":[{\"index\":0,\"text\":\" a\\n\",\"finish_reason\":null}],\"usage\":null}",
	  DECODED_TOKEN | DECODED_ANSWER, " a\\n", -1, -1, -1, -1 },
	{ "vllm", "{\"choices\": [ {\"text\": \"\", \"finish_reason\": \"length\"} ]}",
	  DECODED_TOKEN | DECODED_FINISH, "", -1, -1, -1, -1 },
	{ "vllm", "{\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7}}",
	  DECODED_USAGE | DECODED_DONE, "", 11, 7, -1, -1 },
	{ "vllm", "{\"choices\":[ ]}", DECODED_IGNORED, "", -1, -1, -1, -1 },
	{ "vllm", "[DONE]", DECODED_DONE, "", -1, -1, -1, -1 },
	{ "vllm", "{\"error\":{\"message\":\"no\"}}", DECODED_ERROR, "{\"message\":\"no\"}",
	  -1, -1, -1, -1 },
	{ "vllm", "{\"error\":null,\"choices\":[{\"text\":\"x\"}],\"usage\":{\"completion_tokens\":3}}",
	  DECODED_TOKEN | DECODED_ANSWER | DECODED_USAGE, "x", -1, 3, -1, -1 },
	/* A nested "text" is not the answer's. */
	{ "vllm", "{\"choices\":[{\"logprobs\":{\"text\":\"no\"},\"text\":\"yes\"}]}",
	  DECODED_TOKEN | DECODED_ANSWER, "yes", -1, -1, -1, -1 },
	{ "openai-chat", "{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}",
	  DECODED_TOKEN | DECODED_ROLE_ONLY, "", -1, -1, -1, -1 },
	{ "openai-chat", "{\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}",
	  DECODED_TOKEN | DECODED_ANSWER, "hi", -1, -1, -1, -1 },
	{ "openai-chat", "{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}",
	  DECODED_TOKEN | DECODED_REASONING, "", -1, -1, -1, -1 },
	{ "openai-chat", "{\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"content\":null}}]}",
	  DECODED_TOKEN | DECODED_REASONING, "", -1, -1, -1, -1 },
	{ "openai-chat", "{\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,"
	  "\"prompt_tokens_details\":{\"cached_tokens\":16},"
	  "\"completion_tokens_details\":{\"reasoning_tokens\":4}}}",
	  DECODED_USAGE | DECODED_DONE, "", 1, 2, 16, 4 },
	/* Errors of every spelling, in events without choices and usage. */
	{ "vllm", "{\"object\":\"error\",\"message\":\"no\",\"code\":500}", DECODED_ERROR,
	  "{\"object\":\"error\",\"message\":\"no\",\"code\":500}", -1, -1, -1, -1 },
	{ "openai-chat", "{\"detail\":\"boom\"}", DECODED_ERROR, "{\"detail\":\"boom\"}",
	  -1, -1, -1, -1 },
	{ "openai-chat", "{\"code\":500,\"message\":\"no\"}", DECODED_ERROR,
	  "{\"code\":500,\"message\":\"no\"}", -1, -1, -1, -1 },
	{ "openai-audio", "{\"type\":\"error\"}", DECODED_ERROR, "{\"type\":\"error\"}",
	  -1, -1, -1, -1 },
	{ "vllm", "{\"detail\":\"\"}", DECODED_IGNORED, "", -1, -1, -1, -1 },
	{ "vllm", "{\"detail\":null}", DECODED_IGNORED, "", -1, -1, -1, -1 },
	{ "vllm", "{\"type\":\"ping\",\"object\":\"x\",\"code\":1}", DECODED_IGNORED, "", -1, -1, -1, -1 },
	{ "vllm", "{\"message\":\"wait\"}", DECODED_IGNORED, "", -1, -1, -1, -1 },
	{ "vllm", "{\"choices\":[],\"detail\":\"x\"}", DECODED_IGNORED, "", -1, -1, -1, -1 },
	{ "vllm", "{\"choices\":[{\"text\":\"a\",\"finish_reason\":\"abort\"}]}",
	  DECODED_TOKEN | DECODED_ANSWER | DECODED_FINISH | DECODED_ABORTED, "a",
	  -1, -1, -1, -1 },
	{ "openai-chat", "{\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}",
	  DECODED_TOKEN | DECODED_FINISH | DECODED_ABORTED, "", -1, -1, -1, -1 },
	{ "ollama", "{\"response\":\"a\",\"done\":true,\"done_reason\":\"error\"}",
	  DECODED_TOKEN | DECODED_ANSWER | DECODED_DONE | DECODED_FINISH | DECODED_ABORTED, "a",
	  -1, -1, -1, -1 },
	/* A role event that has more is not one of a role alone. */
	{ "openai-chat", "{\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null,"
	  "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}",
	  DECODED_TOKEN | DECODED_OTHER, "", -1, -1, -1, -1 },
	{ "openai-chat", "{\"choices\":[{\"delta\":{\"tool_calls\":[]}}]}", DECODED_TOKEN, "",
	  -1, -1, -1, -1 },
	{ "openai-chat", "{\"choices\":[{\"delta\":{\"refusal\":\"no\"}}]}",
	  DECODED_TOKEN | DECODED_OTHER, "", -1, -1, -1, -1 },
	{ "openai-chat", "{\"choices\":[{\"delta\":{\"function_call\":{\"arguments\":\"1\"}}}]}",
	  DECODED_TOKEN | DECODED_OTHER, "", -1, -1, -1, -1 },
};

static void events_mean_what_they_say(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(event_rows) / sizeof(*event_rows); i++) {
		struct decoded d = { .prompt_tokens = -1, .output_tokens = -1,
				     .cached_tokens = -1, .reasoning_tokens = -1 };
		const struct endpoint *ep = endpoint_find(event_rows[i].endpoint);
		struct err e = { 0 };

		assert_int_equal(ep->decode(ep, str_of(event_rows[i].data), &d, &e), 0);
		assert_int_equal(d.bits, event_rows[i].bits);
		assert_true(str_is(d.text, event_rows[i].text));
		assert_int_equal(d.prompt_tokens, event_rows[i].prompt);
		assert_int_equal(d.output_tokens, event_rows[i].output);
		assert_int_equal(d.cached_tokens, event_rows[i].cached);
		assert_int_equal(d.reasoning_tokens, event_rows[i].reasoning);
	}
}

/* Text that is not the answer's, and why an answer ended. */
static void other_text_and_finish_reasons(void **state)
{
	static const struct {
		const char *endpoint, *data, *other;
		enum finish_reason finish;
	} row[] = {
		{ "openai-chat", "{\"choices\":[{\"delta\":{\"reasoning\":\"h\\u00e9\"}}]}", "h\\u00e9", 0 },
		{ "openai-chat", "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":"
		  "{\"arguments\":\"{\\\"a\"}}]}}]}", "{\\\"a", 0 },
		{ "openai-chat", "{\"choices\":[{\"delta\":{\"function_call\":{\"arguments\":\"1\"}}}]}",
		  "1", 0 },
		{ "openai-chat", "{\"choices\":[{\"delta\":{\"refusal\":\"no\"}}]}", "no", 0 },
		{ "openai-chat", "{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}", "", 0 },
		{ "openai-responses", "{\"type\":\"response.refusal.delta\",\"delta\":\"no\"}", "no", 0 },
		{ "openai-responses", "{\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"s\"}",
		  "s", 0 },
		{ "openai-responses", "{\"type\":\"response.output_text.delta\",\"delta\":\"x\"}", "", 0 },
		{ "anthropic", "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\","
		  "\"partial_json\":\"{\"}}", "{", 0 },
		{ "anthropic", "{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"thinking_delta\","
		  "\"thinking\":\"hm\"}}", "hm", 0 },
		{ "ollama-chat", "{\"message\":{\"content\":\"\",\"thinking\":\"hm\"},\"done\":false}", "hm", 0 },
		{ "vllm", "{\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}", "", FINISH_LENGTH },
		{ "openai-chat", "{\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}", "",
		  FINISH_TOOL_CALLS },
		{ "vllm", "{\"choices\":[{\"text\":\"\",\"finish_reason\":\"eos!\"}]}", "", FINISH_OTHER },
		{ "vllm", "{\"choices\":[{\"text\":\"\",\"finish_reason\":7}]}", "", FINISH_OTHER },
		{ "openai-responses", "{\"type\":\"response.completed\",\"response\":{}}", "", FINISH_STOP },
		{ "openai-responses", "{\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":"
		  "{\"reason\":\"content_filter\"}}}", "", FINISH_CONTENT_FILTER },
		{ "anthropic", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}", "",
		  FINISH_LENGTH },
		{ "tgi", "{\"token\":{\"text\":\"\"},\"details\":{\"finish_reason\":\"eos_token\"}}", "",
		  FINISH_STOP },
		{ "llamacpp", "{\"content\":\"\",\"stop\":true,\"stop_type\":\"limit\"}", "", FINISH_LENGTH },
		{ "sglang", "{\"text\":\"a\",\"meta_info\":{\"finish_reason\":{\"type\":\"stop\"}}}", "",
		  FINISH_STOP },
		{ "ollama", "{\"response\":\"\",\"done\":true,\"done_reason\":\"length\"}", "",
		  FINISH_LENGTH },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct endpoint *ep = endpoint_find(row[i].endpoint);
		struct decoded d = { 0 };
		struct err e = { 0 };

		assert_int_equal(ep->decode(ep, str_of(row[i].data), &d, &e), 0);
		assert_true(str_is(d.other, row[i].other));
		assert_int_equal(d.finish, row[i].finish);
		assert_int_equal(!(d.bits & DECODED_FINISH), row[i].finish == FINISH_NONE);
	}
}

static void broken_events_are_refused(void **state)
{
	static const char *const row[] = { "", "x", "{", "{\"choices\":[{\"text\":\"a}", "[1,2" };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct endpoint *ep = endpoint_find("vllm");
		struct decoded d = { 0 };
		struct err e = { 0 };

		assert_int_equal(ep->decode(ep, str_of(row[i]), &d, &e), -1);
		assert_int_equal(e.code, ERR_PARSE);
	}
}

/* Success is at least one token event, with upstream's sentence otherwise, and an end. */
static void answers_without_tokens_or_end_fail(void **state)
{
	static const char *const names[] = { "vllm", "openai", "openai-chat", "openai-audio" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct endpoint *ep = endpoint_find(names[i]);
		struct request_row row = { 0 };

		assert_string_equal(ep->finish(&row), "Never received a valid chunk to calculate TTFT."
				    "This response will be marked as failed!");
		row.first_event_ns = 1;
		assert_string_equal(ep->finish(&row), "The stream ended without a finish reason, "
				    "[DONE] or usage: the answer was cut (--compat stream-error counts "
				    "it, as vllm does).");
		row.flags = ROW_SAW_DONE;
		assert_null(ep->finish(&row));
		row.flags = ROW_SAW_FINISH;
		assert_null(ep->finish(&row));
	}
}

static void urls_need_their_suffix(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(endpoint_check_url(endpoint_find("openai-chat"),
					    "http://h/v1/chat/completions", &e), 0);
	assert_int_equal(endpoint_check_url(endpoint_find("vllm"),
					    "http://h/v1/chat/completions", &e), 0);
	assert_int_equal(endpoint_check_url(endpoint_find("openai-chat"), "http://h/v1/completions",
					    &e), -1);
	assert_string_equal(e.text, "--endpoint: the OpenAI Chat Completions API of --backend "
			    "openai-chat needs a URL that ends with chat/completions (usually --endpoint "
			    "/v1/chat/completions), got http://h/v1/completions");
	assert_int_equal(e.code, ERR_USAGE);
	assert_null(endpoint_find("no-such-backend"));
}

/* Keys are left out whole; a refusal names words, and only what a request can do without. */
static void keys_are_left_out(void **state)
{
	static const char *const keys[] = { "ignore_eos", "a" };
	static const struct { const char *said, *want; } cases[] = {
		{ "{\"detail\": \"Unexpected keys: {'ignore_eos', 'top_k'}\"}", "ignore_eos,top_k" },
		{ "unknown field `top_k`", "top_k" },
		{ "xtop_k, top_kx, top-k", "" },
		{ "The model `m` does not exist; max_tokens is too large; prompt", "" },
		{ "", "" },
	};
	const char *json = "{\"model\": \"m\", \"prompt\": \"top_k {\", \"ignore_eos\": true, "
		"\"top_k\": 5, \"x\": {\"a\": [1, 2]}, \"max_tokens\": 3}";
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(body_omit(str_of(json), keys, 2, &out, &e), 0);
	assert_string_equal(out.data, "{\"model\": \"m\", \"prompt\": \"top_k {\", \"top_k\": 5, "
			    "\"x\": {\"a\": [1, 2]}, \"max_tokens\": 3}");
	assert_int_equal(body_omit(STR("--boundary"), keys, 2, &out, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		buf_reset(&out);
		body_named_keys(str_of(json), str_of(cases[i].said), &out);
		assert_string_equal(out.len ? out.data : "", cases[i].want);
	}
	buf_reset(&out);
	body_named_keys(STR("no JSON top_k"), STR("top_k"), &out);
	assert_int_equal(out.len, 0);
	body_own_keys(str_of(json), STR("{\"top_k\": 5, \"gone\": 1, \"x\": 2}"), &out);
	assert_string_equal(out.data, "top_k,x"); /* those that were left out are not in the body */
	buf_reset(&out);
	body_own_keys(str_of(json), STR(""), &out);
	assert_int_equal(out.len, 0);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_are_upstreams), cmocka_unit_test(keys_are_left_out),
		cmocka_unit_test(events_mean_what_they_say),
		cmocka_unit_test(other_text_and_finish_reasons),
		cmocka_unit_test(broken_events_are_refused),
		cmocka_unit_test(answers_without_tokens_or_end_fail),
		cmocka_unit_test(urls_need_their_suffix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
