/* SPDX-License-Identifier: Apache-2.0 */
/* APIs described in files: the shipped ones, every mistake by name, bodies and streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/endpoint/described.h"
#include "stream_rig.h"

#define S(text) { text, sizeof(text) - 1 }
#define BODY "\"body\":{\"p\":\"{{prompt}}\"}"
#define NAMED "\"name\":\"x\",\"path\":\"/x\","

static const struct endpoint *load(struct arena *a, const char *json)
{
	struct err e = { 0 };
	const struct endpoint *ep = endpoint_described_text("f", str_of(json), a, &e);

	if (!ep)
		fail_msg("%s", e.text);
	return ep;
}

static void mistakes_are_named(void **state)
{
	static const struct { const char *json, *want; } row[] = {
		{ "[]", "expected a JSON object" },
		{ "{\"name\":", "line 1, column 9: the text ends in the middle of a value" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"texts\":1}", "unknown key \"texts\"; did you mean \"text\"?" },
		{ "{\"path\":\"/x\"," BODY ",\"text\":\"t\"}",
		  "\"name\" has to be at most 64 letters, digits, '-', '_' and '.': result files are "
		  "called after it" },
		{ "{\"name\":\"a/b\",\"path\":\"/x\"," BODY ",\"text\":\"t\"}",
		  "\"name\" has to be at most 64 letters, digits, '-', '_' and '.': result files are "
		  "called after it" },
		{ "{\"name\":\"openai\",\"path\":\"/x\"," BODY ",\"text\":\"t\"}",
		  "the name \"openai\" is taken: --backend openai" },
		{ "{\"name\":\"x\",\"path\":\"x\"," BODY ",\"text\":\"t\"}",
		  "\"path\" has to be the path of the URL, from its '/' on" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"kind\":\"audio\"}",
		  "\"kind\" has to be \"generate\" or \"pooling\"" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"framing\":\"ws\"}",
		  "\"framing\" has to be \"sse\", \"lines\" or \"whole\"" },
		{ "{" NAMED BODY ",\"kind\":\"pooling\",\"framing\":\"sse\"}",
		  "\"framing\" has to be \"whole\" for pooling, which does not stream" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"cumulative\":1}",
		  "\"cumulative\" has to be true or false" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"echoes_prompt\":true}",
		  "\"echoes_prompt\" needs \"cumulative\": true or \"framing\": \"whole\"" },
		{ "{" NAMED "\"text\":\"t\"}", "\"body\" has to be an object, the body of a request" },
		{ "{" NAMED "\"body\":{\"p\":1},\"text\":\"t\"}",
		  "the body holds neither {{prompt}} nor {{messages}}" },
		{ "{" NAMED "\"body\":{\"p\":\"{{prompts}}\"},\"text\":\"t\"}",
		  "the body holds {{prompts}}; known are model, prompt, messages, output_len, ignore_eos "
		  "and request_id" },
		{ "{" NAMED "\"body\":{\"p\":\"{{prompt\"},\"text\":\"t\"}",
		  "\"{{\" without \"}}\" in the body" },
		{ "{" NAMED "\"body\":{\"q\":{\"{{prompt}}\":1}},\"text\":\"t\"}",
		  "{{prompt}} cannot be a key" },
		{ "{" NAMED "\"body\":{\"p\":\"so: {{messages}}\"},\"text\":\"t\"}",
		  "{{messages}} has to be a value of its own, not a part of a text" },
		{ "{" NAMED "\"body\":{\"p\":\"{{prompt}}\",\"o\":1},\"sampling_in\":\"o\",\"text\":\"t\"}",
		  "\"sampling_in\": \"o\" is not an object in the body" },
		{ "{" NAMED BODY "}", "\"text\" is missing: where an event has the answer's text" },
		{ "{" NAMED BODY ",\"kind\":\"pooling\",\"text\":\"t\"}", "\"text\" has no use for pooling" },
		{ "{" NAMED BODY ",\"text\":\"a..b\"}", "\"text\": \"a..b\" is not a path like choices[0].text" },
		{ "{" NAMED BODY ",\"text\":\"a[x]\"}", "\"text\": \"a[x]\" is not a path like choices[0].text" },
		{ "{" NAMED BODY ",\"text\":\"a.\"}", "\"text\": \"a.\" is not a path like choices[0].text" },
		{ "{" NAMED BODY ",\"text\":\"a.[0]\"}",
		  "\"text\": \"a.[0]\" is not a path like choices[0].text" },
		{ "{" NAMED BODY ",\"text\":\"a.b.c.d.e.f.g.h\"}",
		  "\"text\": \"a.b.c.d.e.f.g.h\" is not a path like choices[0].text" },
		{ "{" NAMED BODY ",\"text\":\"\"}", "\"text\": \"\" is not a path like choices[0].text" },
		{ "{" NAMED BODY ",\"text\":3}", "\"text\" has to be a path, as text" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"usage\":{\"tokens\":\"n\"}}",
		  "\"usage\": unknown key \"tokens\"" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"usage\":[]}", "\"usage\" has to be an object of paths" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"headers\":{\"a b\":\"c\"}}",
		  "\"headers\": a b is not a valid header" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"headers\":{\"a\":\"c\\r\\nd: e\"}}",
		  "\"headers\": a is not a valid header" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"headers\":{\"content-length\":\"3\"}}",
		  "\"headers\": content-length is set by profllm itself" },
		{ "{" NAMED BODY ",\"text\":\"t\",\"framing\":\"whole\",\"done\":\"x\"}",
		  "\"done\" ends a stream, and this API does not stream" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct arena a = { 0 };
		struct err e = { 0 };
		char want[512];

		snprintf(want, sizeof(want), "--backend-file f.json: %s", row[i].want);
		assert_null(endpoint_described_text("f.json", str_of(row[i].json), &a, &e));
		assert_string_equal(e.text, want);
		assert_int_equal(e.code, ERR_USAGE);
		arena_release(&a);
	}
}

static void a_file_that_is_not_there_is_named(void **state)
{
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_null(endpoint_described("/nowhere/api.json", &a, &e));
	assert_non_null(strstr(e.text, "--backend-file: "));
	assert_non_null(strstr(e.text, "/nowhere/api.json"));
	assert_int_equal(e.code, ERR_USAGE);
	arena_release(&a);
}

static void fields_become_values(void **state)
{
	static const struct {
		const char *json;
		struct encode_opts opts;
		struct sample sample;
		const char *want;
	} row[] = {
		{ "{" NAMED "\"text\":\"t\",\"body\":{\"m\":\"{{model}}\",\"p\":\"{{prompt}}\",\"n\":"
		  "\"{{ output_len }}\",\"e\":\"{{ignore_eos}}\",\"id\":\"{{request_id}}\",\"k\":[1.50]}}",
		  { .model = S("m\""), .is_ignore_eos = true },
		  { .prompt = S("a\n\xc3\xa9"), .output_len = 7, .request_id = S("r-1") },
		  "{\"m\": \"m\\\"\", \"p\": \"a\\n\\u00e9\", \"n\": 7, \"e\": true, \"id\": \"r-1\", "
		  "\"k\": [1.5]}" },
		{ "{" NAMED "\"text\":\"t\",\"body\":{\"p\":\"<{{prompt}}> \\\"{{prompt}}\\\" {{output_len}} "
		  "of {{model}}{{request_id}}\",\"n\":\"{{output_len}}\"}}",
		  { .model = S("m") }, { .prompt = S("a\"b"), .output_len = -1 },
		  "{\"p\": \"<a\\\"b> \\\"a\\\"b\\\"  of m\", \"n\": null}" },
		{ "{" NAMED "\"text\":\"t\",\"body\":{\"p\":\"{{prompt}}\"}}",
		  { .model = S("m") }, { .prompt = S("[1, 2]"), .kind = PROMPT_JSON },
		  "{\"p\": [1, 2]}" },
		{ "{" NAMED "\"text\":\"t\",\"chat\":true,\"body\":{\"q\":{\"m\":\"{{messages}}\"}}}",
		  { .model = S("m") }, { .prompt = S("hi"), .output_len = 1 },
		  "{\"q\": {\"m\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
		  "\"hi\"}]}]}}" },
		/* Flags and --extra-body, at the top and where the file says. */
		{ "{" NAMED "\"text\":\"t\"," BODY "}",
		  { .model = S("m"), .is_ignore_eos = true,
		    .extra_body = S("{\"temperature\": 0.0, \"p\": \"other\"}") },
		  { .prompt = S("a") }, "{\"p\": \"other\", \"temperature\": 0.0}" },
		{ "{" NAMED "\"text\":\"t\",\"sampling_in\":\"o\",\"body\":{\"p\":\"{{prompt}}\",\"o\":"
		  "{\"n\":\"{{output_len}}\"}}}",
		  { .model = S("m"), .extra_body = S("{\"temperature\": 0.0, \"k\": 1, \"o\": {\"z\": 2}}") },
		  { .prompt = S("a"), .output_len = 3, .overrides = S("{\"top_k\": 4}") },
		  "{\"p\": \"a\", \"k\": 1, \"o\": {\"n\": 3, \"temperature\": 0.0, \"z\": 2, "
		  "\"top_k\": 4}}" },
		{ "{" NAMED "\"text\":\"t\",\"sampling_in\":\"a\\\"\xff\",\"body\":{\"p\":\"{{prompt}}\","
		  "\"a\\\"\xff\":{\"n\":1}}}", { .model = S("m") }, { .prompt = S("a") },
		  "{\"p\": \"a\", \"a\\\"\\ufffd\": {\"n\": 1}}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct arena a = { 0 };
		const struct endpoint *ep = load(&a, row[i].json);
		struct encoded out = { 0 };
		struct err e = { 0 };

		if (ep->encode(ep, &row[i].opts, &row[i].sample, &out, &e) < 0)
			fail_msg("%s", e.text);
		assert_string_equal(out.body.data, row[i].want);
		buf_release(&out.body);
		arena_release(&a);
	}
}

static void ids_do_not_go_inside_a_text(void **state)
{
	struct arena a = { 0 };
	const struct endpoint *ep = load(&a, "{" NAMED "\"text\":\"t\",\"body\":{\"p\":\"Q: {{prompt}}\"}}");
	const struct sample s = { .prompt = S("[1]"), .kind = PROMPT_JSON };
	const struct encode_opts opts = { .model = S("m") };
	struct encoded out = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(ep->encode(ep, &opts, &s, &out, &e), -1);
	assert_string_equal(e.text, "the body of --backend-file has {{prompt}} inside a text, but a "
			    "prompt is [1]");
	buf_release(&out.body);
	arena_release(&a);
}

#define DEMO "examples/backends/vllm-demo.json"
#define MINIMAL "examples/backends/openai-minimal.json"
#define SGLANG "examples/backends/sglang-incremental.json"

static void streams_come_to_what_was_sent(void **state)
{
	static const struct { const char *file, *prompt, *bytes, *want; } row[] = {
		{ DEMO, "say \"\xc3\xa9\"",
		  "{\"text\": [\"say \\\"\\u00e9\\\" a\"]}\n{\"text\": [\"say \\\"\\u00e9\\\" a b\"]}\n",
		  "2 tokens, 2 answers, 0 thoughts, text ' a b', counts -1 -1 -1 -1" },
		{ DEMO, "p", "", "0 tokens, 0 answers, 0 thoughts, text '', counts -1 -1 -1 -1, "
				 "the stream ended without a token" },
		{ DEMO, "p", "{\"error\": \"no\"}\n",
		  "0 tokens, 0 answers, 0 thoughts, text '', counts -1 -1 -1 -1, error \"no\", "
		  "the stream ended without a token" },
		{ MINIMAL, NULL,
		  "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
		  "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
		  "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":1,"
		  "\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\ndata: [DONE]\n\n",
		  "1 tokens, 1 answers, 0 thoughts, text 'a', counts 4 1 2 -1" },
		{ MINIMAL, NULL, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n",
		  "1 tokens, 1 answers, 0 thoughts, text 'a', counts -1 -1 -1 -1, "
		  "the stream ended before the answer did" },
		{ MINIMAL, NULL, "data: {oops\n\n",
		  "0 tokens, 0 answers, 0 thoughts, text '', counts -1 -1 -1 -1, error a stream event is "
		  "not JSON: {oops, the stream ended without a token" },
		{ SGLANG, NULL,
		  "data: {\"text\":\"a\",\"output_ids\":[5],\"meta_info\":{\"finish_reason\":null,"
		  "\"prompt_tokens\":4,\"reasoning_tokens\":0,\"completion_tokens\":1,"
		  "\"cached_tokens\":3}}\n\ndata: {\"text\":\" b\",\"output_ids\":[6],\"meta_info\":"
		  "{\"finish_reason\":{\"type\":\"length\",\"length\":2},\"prompt_tokens\":4,"
		  "\"reasoning_tokens\":0,\"completion_tokens\":2,\"cached_tokens\":3}}\n\n"
		  "data: [DONE]\n\n",
		  "2 tokens, 2 answers, 0 thoughts, text 'a b', counts 4 2 3 0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		for (size_t step = 1; step < 2000; step *= 9) {
			struct arena a = { 0 };
			struct err e = { 0 };
			const struct endpoint *ep = endpoint_described(row[i].file, &a, &e);
			char *got;

			assert_non_null(ep);
			got = stream_run(ep, row[i].prompt, row[i].bytes, step);
			assert_string_equal(got, row[i].want);
			free(got);
			arena_release(&a);
		}
	}
}

static void whole_answers_are_read(void **state)
{
	static const struct {
		const char *file, *body;
		unsigned bits;
		const char *text;
		int64_t prompt_tokens;
	} row[] = {
		{ "examples/backends/vllm-demo-whole.json", "{\"text\": [\"p a\"]}",
		  DECODED_TOKEN | DECODED_ANSWER | DECODED_WHOLE_TEXT | DECODED_FINISH, "p a", -1 },
		{ "examples/backends/ollama-embed.json",
		  "{\"model\":\"m\",\"embeddings\":[[0.1]],\"prompt_eval_count\":6}", DECODED_USAGE, "", 6 },
		{ "examples/backends/ollama-embed.json", "{\"error\":\"no model\"}", DECODED_ERROR,
		  "\"no model\"", -1 },
		{ "examples/backends/tei-embed.json", "[[0.1, 0.2]]", 0, "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct decoded d = { .prompt_tokens = -1 };
		struct arena a = { 0 };
		struct err e = { 0 };
		const struct endpoint *ep = endpoint_described(row[i].file, &a, &e);
		struct answer answer = { .body = str_of(row[i].body) };

		assert_non_null(ep);
		assert_false(ep->is_streaming);
		assert_int_equal(ep->decode_answer(ep, &answer, &d, &e), 0);
		assert_int_equal(d.bits, row[i].bits);
		assert_true(str_is(d.text, row[i].text));
		assert_int_equal(d.prompt_tokens, row[i].prompt_tokens);
		answer.body = str_of("{\"text\": ");
		assert_int_equal(ep->decode_answer(ep, &answer, &d, &e), -1);
		arena_release(&a);
	}
}

/* Every shipped file: what is in the folder is in the table, and the other way round. */
static void shipped_files_load(void **state)
{
	static const struct {
		const char *file, *name, *path;
		bool is_pooling, is_chat, is_eos_kept;
		enum framing framing;
	} row[] = {
		{ DEMO, "vllm-demo", "/generate", false, false, false, FRAMING_LINES },
		{ "examples/backends/vllm-demo-whole.json", "vllm-demo-whole", "/generate", false, false,
		  false, FRAMING_SSE },
		{ SGLANG, "sglang-incremental", "/generate", false, false, false, FRAMING_SSE },
		{ MINIMAL, "openai-minimal", "/v1/completions", false, false, true, FRAMING_SSE },
		{ "examples/backends/chat-minimal.json", "chat-minimal", "/v1/chat/completions", false,
		  true, true, FRAMING_SSE },
		{ "examples/backends/triton-generate.json", "triton-generate",
		  "/v2/models/ensemble/generate_stream", false, false, true, FRAMING_SSE },
		{ "examples/backends/tei-embed.json", "tei-embed", "/embed", true, false, true,
		  FRAMING_SSE },
		{ "examples/backends/ollama-embed.json", "ollama-embed", "/api/embed", true, false, true,
		  FRAMING_SSE },
	};
	FILE *list = popen("ls examples/backends/*.json | wc -l", "r");
	int count = 0;

	(void)state;
	assert_non_null(list);
	assert_int_equal(fscanf(list, "%d", &count), 1);
	pclose(list);
	assert_int_equal(count, sizeof(row) / sizeof(*row));
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct arena a = { 0 };
		struct err e = { 0 };
		const struct endpoint *ep = endpoint_described(row[i].file, &a, &e);

		if (!ep)
			fail_msg("%s", e.text);
		assert_string_equal(ep->name, row[i].name);
		assert_string_equal(ep->default_path, row[i].path);
		assert_int_equal(ep->is_pooling, row[i].is_pooling);
		assert_int_equal(ep->is_chat, row[i].is_chat);
		assert_int_equal(ep->is_eos_kept, row[i].is_eos_kept);
		assert_int_equal(ep->framing, row[i].framing);
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(a_file_that_is_not_there_is_named),
		cmocka_unit_test(fields_become_values),
		cmocka_unit_test(ids_do_not_go_inside_a_text),
		cmocka_unit_test(streams_come_to_what_was_sent),
		cmocka_unit_test(whole_answers_are_read),
		cmocka_unit_test(shipped_files_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
