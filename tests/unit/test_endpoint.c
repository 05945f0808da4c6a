/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies byte for byte, and what stream events of recorded shapes mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "endpoint/endpoint.h"

#define S(text) { text, sizeof(text) - 1 }

static void bodies_are_upstreams(void **state)
{
	static const struct {
		const char *endpoint;
		struct encode_opts opts;
		struct sample sample;
		const char *want;
	} row[] = {
		{ "vllm", { .model = S("m") },
		  { .prompt = S("a\"\xc3\xa9"), .output_len = 7 },
		  "{\"model\": \"m\", \"prompt\": \"a\\\"\\u00e9\", \"repetition_penalty\": 1.0, "
		  "\"max_tokens\": 7, \"logprobs\": null, \"stream\": true, "
		  "\"stream_options\": {\"include_usage\": true}}" },
		{ "openai", { .model = S("m"), .is_ignore_eos = true, .has_logprobs = true,
			      .logprobs = 3, .extra_body = S("{\"temperature\": 0.0, \"max_tokens\": 1}") },
		  { .prompt = S("[1, 2]"), .kind = PROMPT_JSON, .output_len = -1 },
		  "{\"model\": \"m\", \"prompt\": [1, 2], \"repetition_penalty\": 1.0, "
		  "\"max_tokens\": 1, \"logprobs\": 3, \"stream\": true, "
		  "\"stream_options\": {\"include_usage\": true}, \"ignore_eos\": true, "
		  "\"temperature\": 0.0}" },
		{ "openai-chat", { .model = S("m") },
		  { .prompt = S("hi"), .output_len = 5,
		    .overrides = S("{\"tools\": [\"x\"]}") },
		  "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
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

static void events_mean_what_they_say(void **state)
{
	static const struct {
		const char *endpoint, *data;
		unsigned bits;
		const char *text;
		int64_t prompt, output, cached, reasoning;
	} row[] = {
		{ "vllm", "{\"choices\":[{\"index\":0,\"text\":\" a\\n\",\"finish_reason\":null}],\"usage\":null}",
		  DECODED_TOKEN | DECODED_ANSWER, " a\\n", -1, -1, -1, -1 },
		{ "vllm", "{\"choices\": [ {\"text\": \"\", \"finish_reason\": \"length\"} ]}",
		  DECODED_TOKEN | DECODED_FINISH, "", -1, -1, -1, -1 },
		{ "vllm", "{\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7}}",
		  DECODED_USAGE, "", 11, 7, -1, -1 },
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
		  DECODED_USAGE, "", 1, 2, 16, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct decoded d = { .prompt_tokens = -1, .output_tokens = -1,
				     .cached_tokens = -1, .reasoning_tokens = -1 };
		const struct endpoint *ep = endpoint_find(row[i].endpoint);
		struct err e = { 0 };

		assert_int_equal(ep->decode(ep, str_of(row[i].data), &d, &e), 0);
		assert_int_equal(d.bits, row[i].bits);
		assert_true(str_is(d.text, row[i].text));
		assert_int_equal(d.prompt_tokens, row[i].prompt);
		assert_int_equal(d.output_tokens, row[i].output);
		assert_int_equal(d.cached_tokens, row[i].cached);
		assert_int_equal(d.reasoning_tokens, row[i].reasoning);
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

/* Success is at least one token event, with upstream's sentence otherwise. */
static void answers_without_tokens_fail(void **state)
{
	struct request_row row = { 0 };

	(void)state;
	assert_string_equal(endpoint_find("openai-chat")->finish(&row),
			    "Never received a valid chunk to calculate TTFT."
			    "This response will be marked as failed!");
	row.first_event_ns = 1;
	assert_null(endpoint_find("openai-chat")->finish(&row));
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
		buf_add_text(&out, "");
		body_named_keys(str_of(json), str_of(cases[i].said), &out);
		assert_string_equal(out.len ? out.data : "", cases[i].want);
	}
	buf_reset(&out);
	body_named_keys(STR("no JSON top_k"), STR("top_k"), &out);
	assert_int_equal(out.len, 0);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_are_upstreams), cmocka_unit_test(keys_are_left_out),
		cmocka_unit_test(events_mean_what_they_say),
		cmocka_unit_test(broken_events_are_refused),
		cmocka_unit_test(answers_without_tokens_fail),
		cmocka_unit_test(urls_need_their_suffix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
