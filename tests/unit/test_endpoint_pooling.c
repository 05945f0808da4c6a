/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings, pooling, rerank and audio: bodies byte for byte, answers, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/endpoint/endpoint.h"

#define S(text) { text, sizeof(text) - 1 }
#define IMAGE "{\"type\": \"image_url\", \"image_url\": {\"url\": \"data:x\"}}"
#define TEXT(text) "{\"type\": \"text\", \"text\": " text "}"
#define USER(content) "\"messages\": [{\"role\": \"user\", \"content\": [" content "]}]"
#define MODEL "{\"model\": \"m\", "
#define CUT "\"truncate_prompt_tokens\": -1"

struct body_row {
	const char *endpoint;
	struct encode_opts opts;
	struct sample sample;
	const char *want;
};

static void check_bodies(const struct body_row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct endpoint *ep = endpoint_find(row[i].endpoint);
		struct encoded out = { 0 };
		struct err e = { 0 };

		assert_non_null(ep);
		assert_int_equal(ep->encode(ep, &row[i].opts, &row[i].sample, &out, &e), 0);
		assert_string_equal(out.body.data, row[i].want);
		assert_string_equal(out.content_type, "");
		buf_release(&out.body);
	}
}

static void texts_and_lists_are_embedded(void **state)
{
	static const struct body_row row[] = {
		{ "openai-embeddings", { .model = S("m") },
		  { .prompt = S("a\"\xc3\xa9"), .output_len = 7 },
		  MODEL "\"input\": \"a\\\"\\u00e9\", " CUT "}" },
		{ "openai-embeddings", { .model = S("m"), .is_ignore_eos = true,
					 .extra_body = S("{\"truncate_prompt_tokens\": 9, \"a\": [1]}") },
		  { .prompt = S("[\"x\", \"y\"]"), .kind = PROMPT_JSON,
		    .overrides = S("{\"encoding_format\": \"bytes\"}") },
		  MODEL "\"input\": [\"x\", \"y\"], \"truncate_prompt_tokens\": 9, "
		  "\"ignore_eos\": true, \"a\": [1], \"encoding_format\": \"bytes\"}" },
		{ "vllm-pooling", { .model = S("m") }, { .prompt = S("hi") },
		  MODEL CUT ", \"input\": \"hi\"}" },
		{ "vllm-pooling", { .model = S("m"), .extra_body = S("{\"task\": \"embed\"}") },
		  { .prompt = S("{\"data\": {\"k\": 1}, \"model\": \"own\"}"), .kind = PROMPT_JSON },
		  "{\"model\": \"own\", " CUT ", \"data\": {\"k\": 1}, \"task\": \"embed\"}" },
		/* No further keys, whatever is asked for. */
		{ "vllm-rerank", { .model = S("m"), .is_ignore_eos = true,
				   .extra_body = S("{\"a\": 1}") },
		  { .prompt = S("[\"q\", \"d1\", \"d2\"]"), .kind = PROMPT_JSON,
		    .overrides = S("{\"b\": 1}") },
		  MODEL "\"query\": \"q\", \"documents\": [\"d1\", \"d2\"], " CUT "}" },
		{ "vllm-rerank", { .model = S("m") },
		  { .prompt = S("[[1, 2], [3], [4]]"), .kind = PROMPT_JSON },
		  MODEL "\"query\": [1, 2], \"documents\": [[3], [4]], " CUT "}" },
	};

	(void)state;
	check_bodies(row, sizeof(row) / sizeof(*row));
}

static void media_are_embedded(void **state)
{
	static const struct body_row row[] = {
		{ "openai-embeddings-chat", { .model = S("m") },
		  { .prompt = S("see"), .media = S("[" IMAGE "]"),
		    .messages = S("[{\"role\": \"user\", \"content\": \"not this\"}]") },
		  MODEL USER(TEXT("\"see\"") ", " IMAGE) ", " CUT "}" },
		{ "openai-embeddings-chat", { .model = S("m") },
		  { .prompt = S("[{\"role\": \"user\", \"content\": \"q\"}]"), .kind = PROMPT_JSON },
		  MODEL "\"messages\": [{\"role\": \"user\", \"content\": \"q\"}], " CUT "}" },
		{ "openai-embeddings-chat", { .model = S("m") },
		  { .prompt = S("[\"a\", \"b\"]"), .kind = PROMPT_JSON },
		  MODEL USER(TEXT("[\"a\", \"b\"]")) ", " CUT "}" },
		{ "openai-embeddings-clip", { .model = S("m") },
		  { .prompt = S("see"), .media = S("[" IMAGE "]") },
		  MODEL USER(TEXT("\"\"") ", " IMAGE) ", " CUT "}" },
		{ "openai-embeddings-clip", { .model = S("m") }, { .prompt = S("see") },
		  MODEL USER(TEXT("\"see\"")) ", " CUT "}" },
		{ "openai-embeddings-vlm2vec", { .model = S("m") },
		  { .prompt = S("see"), .media = S("[" IMAGE "]"), .request_id = S("r-4") },
		  MODEL USER(IMAGE ", " TEXT("\"Represent the given image.\"")) ", " CUT "}" },
		{ "openai-embeddings-vlm2vec", { .model = S("m") },
		  { .prompt = S("see"), .media = S("[" IMAGE "]"), .request_id = S("r-13") },
		  MODEL USER(IMAGE ", " TEXT("\"Represent the given image with the following "
					     "question: see\"")) ", " CUT "}" },
		{ "openai-embeddings-vlm2vec", { .model = S("m") },
		  { .prompt = S("see"), .media = S("[" IMAGE "]") },
		  MODEL USER(IMAGE ", " TEXT("\"Represent the given image.\"")) ", " CUT "}" },
		{ "openai-embeddings-vlm2vec", { .model = S("m") },
		  { .prompt = S("see"), .request_id = S("r-13") },
		  MODEL USER(TEXT("\"see\"")) ", " CUT "}" },
		{ "infinity-embeddings", { .model = S("m") },
		  { .prompt = S("see"), .media = S("[" IMAGE "]") },
		  MODEL "\"input\": \"see\"}" },
		{ "infinity-embeddings", { .model = S("m"), .extra_body = S("{\"a\": 1}") },
		  { .prompt = S(""), .media = S("[" IMAGE "]") },
		  MODEL "\"input\": \"data:x\", \"modality\": \"image\", \"a\": 1}" },
		{ "infinity-embeddings-clip", { .model = S("m") },
		  { .prompt = S("see"), .media = S("[" IMAGE "]") },
		  MODEL "\"input\": \"data:x\", \"modality\": \"image\"}" },
		{ "infinity-embeddings-clip", { .model = S("m") }, { .prompt = S("see") },
		  MODEL "\"input\": \"see\"}" },
	};

	(void)state;
	check_bodies(row, sizeof(row) / sizeof(*row));
}

/* What upstream ends the run for. */
static void wrong_prompts_are_refused(void **state)
{
	static const struct {
		const char *endpoint;
		struct sample sample;
		const char *want;
	} row[] = {
		{ "vllm-rerank", { .prompt = S("text") }, "vllm-rerank: a prompt must be a list of a "
		  "query and at least one document" },
		{ "vllm-rerank", { .prompt = S("[\"q\"]"), .kind = PROMPT_JSON },
		  "vllm-rerank: a prompt must be a list of a query and at least one document" },
		{ "infinity-embeddings", { .prompt = S("") }, "infinity embeddings take a prompt, or "
		  "one image, video or sound with a URL" },
		{ "infinity-embeddings-clip", { .prompt = S("x"), .media = S("[" IMAGE ", " IMAGE "]") },
		  "infinity embeddings take a prompt, or one image, video or sound with a URL" },
		{ "openai-audio", { .prompt = S("x") }, "--backend openai-audio uploads a "
		  "recording in each request, and this one has none: choose --dataset-name custom_audio, "
		  "or a speech dataset without --enable-multimodal-chat" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct endpoint *ep = endpoint_find(row[i].endpoint);
		const struct encode_opts o = { .model = S("m") };
		struct encoded out = { 0 };
		struct err e = { 0 };

		assert_int_equal(ep->encode(ep, &o, &row[i].sample, &out, &e), -1);
		assert_int_equal(e.code, ERR_RUN);
		assert_string_equal(e.text, row[i].want);
		buf_release(&out.body);
	}
}

#define HEAD(type) "HTTP/1.1 200 OK\r\nContent-Type: " type "\r\n\r\n"
#define BYTES "HTTP/1.1 200 OK\r\nMetadata: {\"usage\": {\"prompt_tokens\": 31}}\r\n\r\n"
#define USAGE "{\"data\": [{\"embedding\": [0.5]}], \"usage\": {\"prompt_tokens\": 12}}"

static void answers_tell_their_tokens(void **state)
{
	static const struct sample plain = { .prompt_len = 5 },
		bytes = { .overrides = S("{\"encoding_format\": \"bytes\"}") },
		only = { .overrides = S("{\"encoding_format\": \"bytes_only\"}") },
		dict = { .prompt = S("{\"encoding_format\": \"bytes\"}"), .kind = PROMPT_JSON };
	static const struct {
		const char *endpoint, *head, *body;
		const struct sample *sample;
		const char *extra;
		unsigned bits;       /* 0 with tokens -1: nothing reported */
		int64_t tokens;      /* -2: it cannot be read */
	} row[] = {
		{ "openai-embeddings", HEAD("application/json"), USAGE, &plain, "", DECODED_USAGE, 12 },
		{ "openai-embeddings", HEAD("Application/vnd.x+JSON; charset=utf-8"), USAGE, &plain, "",
		  DECODED_USAGE, 12 },
		{ "openai-embeddings", "", USAGE, NULL, "", DECODED_USAGE, 12 },
		{ "openai-embeddings", HEAD("text/plain"), USAGE, &plain, "", 0, -2 },
		{ "openai-embeddings", HEAD("application/json"), "{}", &plain, "", DECODED_USAGE, 0 },
		{ "openai-embeddings", HEAD("application/json"), "{\"usage\": {\"prompt_tokens\": null}}",
		  &plain, "", DECODED_USAGE, 0 },
		{ "openai-embeddings", HEAD("application/json"), "{\"usage\": null}", &plain, "", 0, -2 },
		{ "openai-embeddings", HEAD("application/json"), "[1]", &plain, "", 0, -2 },
		{ "openai-embeddings", HEAD("application/json"), "{\"error\": {\"code\": 500}}", &plain, "",
		  DECODED_USAGE | DECODED_ERROR, 0 },
		{ "vllm-rerank", HEAD("application/json"), "{\"error\": null, \"usage\": "
		  "{\"prompt_tokens\": 3}}", &plain, "", DECODED_USAGE, 3 },
		{ "openai-embeddings", HEAD("application/json"), "", &plain, "", 0, -2 },
		{ "openai-embeddings", BYTES, "\x01\x02", &bytes, "", DECODED_USAGE, 31 },
		{ "openai-embeddings", BYTES, "", &plain, "{\"encoding_format\": \"bytes\"}",
		  DECODED_USAGE, 31 },
		{ "openai-embeddings", HEAD("application/octet-stream"), "", &bytes, "", 0, -2 },
		{ "openai-embeddings", HEAD("application/octet-stream"), "\x01", &only, "", 0, -1 },
		/* The body's last word decides. */
		{ "openai-embeddings", HEAD("application/octet-stream"), "", &only,
		  "{\"encoding_format\": \"bytes\"}", 0, -1 },
		{ "openai-embeddings", HEAD("application/json"), USAGE, &plain,
		  "{\"encoding_format\": \"base64\"}", DECODED_USAGE, 12 },
		{ "vllm-pooling", BYTES, "", &dict, "", DECODED_USAGE, 31 },
		{ "vllm-pooling", HEAD("application/json"), USAGE, &dict,
		  "{\"encoding_format\": \"float\"}", DECODED_USAGE, 12 },
		/* Rerank never sends the key. */
		{ "vllm-rerank", HEAD("application/json"), USAGE, &bytes,
		  "{\"encoding_format\": \"bytes\"}", DECODED_USAGE, 12 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct endpoint *ep = endpoint_find(row[i].endpoint);
		const struct answer a = { str_of(row[i].head), str_of(row[i].body), row[i].sample,
					  str_of(row[i].extra) };
		struct decoded d = { .prompt_tokens = -1, .output_tokens = -1 };
		struct err e = { 0 };
		int rc = ep->decode_answer(ep, &a, &d, &e);

		assert_int_equal(rc, row[i].tokens == -2 ? -1 : 0);
		if (rc < 0) {
			assert_int_equal(e.code, ERR_PARSE);
			continue;
		}
		assert_int_equal(d.bits, row[i].bits);
		assert_int_equal(d.prompt_tokens, row[i].tokens);
	}
}

static void input_sequences_are_counted(void **state)
{
	static const struct { const char *endpoint; struct sample sample; uint32_t want; } row[] = {
		{ "openai-embeddings", { .prompt = S("[\"a\", \"b\", \"c\"]"), .kind = PROMPT_JSON }, 3 },
		{ "openai-embeddings", { .prompt = S("[[1], [2, 3]]"), .kind = PROMPT_JSON }, 2 },
		{ "openai-embeddings", { .prompt = S("[1, 2, 3]"), .kind = PROMPT_JSON }, 1 },
		{ "openai-embeddings", { .prompt = S("[]"), .kind = PROMPT_JSON }, 1 },
		{ "openai-embeddings", { .prompt = S("[\"a\", \"b\"]") }, 1 },
		{ "vllm-pooling", { .prompt = S("{\"data\": [\"a\"]}"), .kind = PROMPT_JSON }, 1 },
		{ "infinity-embeddings", { .prompt = S("[\"a\", \"b\"]"), .kind = PROMPT_JSON }, 2 },
		{ "vllm-rerank", { .prompt = S("[\"q\", \"a\", \"b\"]"), .kind = PROMPT_JSON }, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		assert_int_equal(endpoint_find(row[i].endpoint)->sequences(&row[i].sample),
				 row[i].want);
	assert_null(endpoint_find("openai-embeddings-chat")->sequences);
}

static const char *const form_names[] = {
	"file", "model", "max_completion_tokens", "stream", "language", "stream_include_usage",
	"stream_continuous_usage_stats", "ignore_eos", "temperature", "flags", "note",
};

static void audio_is_a_form(void **state)
{
	static const struct encode_opts o = {
		.model = S("m"), .is_ignore_eos = true,
		.extra_body = S("{\"language\": \"d\\u00e9\", \"temperature\": 1e0, "
				"\"flags\": {\"a\": [true, null, \"b\"]}}"),
	};
	static const struct sample s = {
		.prompt = S("x"), .output_len = 7, .file = S("RIFF\0data"), .file_name = "audio.wav",
		.overrides = S("{\"note\": null}"),
	};
	static const char *const values[] = {
		NULL, "m", "7", "True", "d\xc3\xa9", "True", "True", "True", "1.0",
		"{'a': [True, None, 'b']}", "None",
	};
	const struct endpoint *ep = endpoint_find("openai-audio");
	struct encoded out = { 0 };
	struct buf want = { 0 };
	struct err e = { 0 };
	const char *boundary;

	(void)state;
	assert_int_equal(ep->encode(ep, &o, &s, &out, &e), 0);
	assert_true(str_starts(str_of(out.content_type), STR("multipart/form-data; boundary=")));
	boundary = strchr(out.content_type, '=') + 1;
	buf_printf(&want, "--%s\r\nContent-Type: audio/wav\r\nContent-Disposition: form-data; "
		   "name=\"file\"; filename=\"audio.wav\"\r\n\r\n", boundary);
	buf_add_str(&want, s.file);
	buf_add_text(&want, "\r\n");
	for (size_t i = 1; i < sizeof(values) / sizeof(*values); i++)
		buf_printf(&want, "--%s\r\nContent-Type: text/plain; charset=utf-8\r\n"
			   "Content-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", boundary,
			   form_names[i], values[i]);
	buf_printf(&want, "--%s--\r\n", boundary);
	assert_int_equal(out.body.len, want.len);
	assert_memory_equal(out.body.data, want.data, want.len);
	buf_release(&out.body);
	buf_release(&want);
}

static void audio_streams_like_chat(void **state)
{
	const struct endpoint *ep = endpoint_find("openai-audio");
	struct decoded d = { .prompt_tokens = -1, .output_tokens = -1 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(ep->decode(ep, STR("{\"choices\": [{\"delta\": {\"content\": \"hi\"}}]}"), &d,
				    &e), 0);
	assert_int_equal(d.bits, DECODED_TOKEN | DECODED_ANSWER);
	assert_true(str_is(d.text, "hi"));
	d.bits = 0;
	assert_int_equal(ep->decode(ep, STR("{\"choices\": [], \"usage\": {\"prompt_tokens\": 9, "
					    "\"completion_tokens\": 4}}"), &d, &e), 0);
	assert_int_equal(d.bits, DECODED_USAGE | DECODED_DONE);
	assert_int_equal(d.prompt_tokens, -1);
	assert_int_equal(d.output_tokens, 4);
}

static void urls_may_have_two_ends(void **state)
{
	const struct endpoint *audio = endpoint_find("openai-audio");
	struct err e = { 0 };

	(void)state;
	assert_int_equal(endpoint_check_url(audio, "http://h/v1/audio/transcriptions", &e), 0);
	assert_int_equal(endpoint_check_url(audio, "http://h/v1/audio/translations", &e), 0);
	assert_int_equal(endpoint_check_url(audio, "http://h/v1/completions", &e), -1);
	assert_string_equal(e.text, "--endpoint: the OpenAI Audio API of --backend openai-audio needs "
			    "a URL that ends with transcriptions or translations (usually --endpoint "
			    "/v1/audio/transcriptions), got http://h/v1/completions");
	assert_int_equal(endpoint_check_url(endpoint_find("vllm-rerank"), "http://h/score", &e), -1);
	assert_string_equal(e.text, "--endpoint: the vLLM score API of --backend vllm-rerank needs a URL "
			    "that ends with rerank (usually --endpoint /v1/rerank), got http://h/score");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_and_lists_are_embedded),
		cmocka_unit_test(media_are_embedded),
		cmocka_unit_test(wrong_prompts_are_refused),
		cmocka_unit_test(answers_tell_their_tokens),
		cmocka_unit_test(input_sequences_are_counted),
		cmocka_unit_test(audio_is_a_form),
		cmocka_unit_test(audio_streams_like_chat),
		cmocka_unit_test(urls_may_have_two_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
