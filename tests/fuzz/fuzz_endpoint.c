/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_endpoint.c - every API's decoder fed arbitrary data, and descriptions of APIs
 * (--backend-file). The first byte chooses. What a description that loads makes of a
 * sample has to be JSON; texts handed out lie in the data.
 */
#include <assert.h>

#include "check.h"
#include "client/endpoint/described.h"
#include "client/endpoint/event.h"
#include "client/endpoint/whole_text.h"
#include "client/http/lines.h"
#include "core/json/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
	"vllm", "openai-chat", "openai-responses", "openai-audio", "openai-embeddings",
	"vllm-pooling", "vllm-rerank", "anthropic", "tgi", "llamacpp", "sglang", "ollama",
	"ollama-chat",
};
#define NAMES (sizeof(names) / sizeof(*names))

static void check_counts(const struct decoded *d)
{
	CHECK(d->prompt_tokens >= COUNT_IMPOSSIBLE || !(d->bits & DECODED_USAGE));
}

static void one_event(const struct endpoint *ep, struct str data, size_t *seen)
{
	struct decoded d = { .prompt_tokens = -1, .output_tokens = -1, .cached_tokens = -1,
			     .reasoning_tokens = -1 };
	struct err e = { 0 };

	if (ep->decode && ep->decode(ep, data, &d, &e) == 0) {
		CHECK(d.text.n == 0 ||
		      (d.text.p >= data.p && d.text.p + d.text.n <= data.p + data.n));
		CHECK(d.other.n == 0 ||
		      (d.other.p >= data.p && d.other.p + d.other.n <= data.p + data.n));
		CHECK(d.finish < FINISH_COUNT);
		check_counts(&d);
		if (d.bits & DECODED_WHOLE_TEXT) {
			size_t before = *seen;

			if (before == 0)
				*seen = whole_text_prompt(d.text, STR("p\xc3\xa9\""));
			CHECK(whole_text_new(d.text, seen, d.bits & DECODED_FINISH).n <= d.text.n);
			CHECK(*seen >= before);
		}
	} else if (ep->decode) {
		CHECK(e.code != ERR_NONE);
	}
}

/* Data by the line to the decoder of events, then all of it as a whole answer. */
static void decode_all(const struct endpoint *ep, struct str data)
{
	static const struct sample sample = { .prompt_len = 3 };
	struct answer answer = { .head = data, .body = data, .sample = &sample };
	struct decoded d = { .prompt_tokens = -1 };
	struct err e = { 0 };
	struct lines lines = { 0 };
	struct str in = data, line;
	size_t seen = 0;

	while (lines_next(&lines, &in, &line) == 1)
		one_event(ep, line, &seen);
	if (lines_finish(&lines, &line))
		one_event(ep, (struct str){ line.p, line.n }, &seen);
	lines_release(&lines);
	one_event(ep, data, &seen);
	if (ep->decode_answer && ep->decode_answer(ep, &answer, &d, &e) < 0)
		CHECK(e.code != ERR_NONE);
}

static void encode_one(const struct endpoint *ep)
{
	const struct encode_opts opts = { .model = STR("m\""), .is_ignore_eos = true,
					  .extra_body = STR("{\"top_p\": 1.0, \"x\": {}}") };
	const struct sample sample = { .prompt = STR("a\"\n"), .output_len = 3 };
	struct encoded out = { 0 };
	struct json_slice v;
	struct err e = { 0 };

	if (ep->encode(ep, &opts, &sample, &out, &e) == 0) {
		struct json_scan scan = { buf_str(&out.body), 0 };

		CHECK(json_next(&scan, &v, NULL) == 0 && json_at_end(&scan));
	} else {
		CHECK(e.code != ERR_NONE);
	}
	buf_release(&out.body);
}

static void describe(struct str text)
{
	struct arena a = { 0 };
	struct err e = { 0 };
	const struct endpoint *ep = endpoint_described_text("f", text, &a, &e);

	if (ep) {
		encode_one(ep);
		decode_all(ep, text);
		decode_all(ep, STR("{\"text\":[\"p\xc3\xa9\\\" a\"],\"done\":true}\n"));
	} else {
		CHECK(e.code == ERR_USAGE && strncmp(e.text, "--backend-file f: ", 18) == 0);
	}
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct endpoint *ep;
	char *copy;
	size_t which;

	if (size < 1)
		return 0;
	which = data[0] % (2 * NAMES);
	copy = malloc(size);
	assert(copy);
	memcpy(copy, data + 1, size - 1);
	if (which < NAMES) {
		ep = endpoint_find(names[which]);
		CHECK(ep);
		decode_all(ep, (struct str){ copy, size - 1 });
	} else {
		describe((struct str){ copy, size - 1 });
	}
	free(copy);
	return 0;
}
