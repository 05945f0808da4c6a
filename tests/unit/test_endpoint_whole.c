/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in one piece: the bodies that ask for them, and what they must hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/endpoint/endpoint.h"

static void bodies(void **state)
{
	static const struct {
		bool is_chat, is_ids;
		const char *extra, *expected;
	} row[] = {
		{ false, false, "{\"n\": 2, \"temperature\": 1.0}",
		  "{\"model\": \"m\", \"prompt\": \"a \\\"b\\\"\", \"max_tokens\": 7, \"stream\": false, "
		  "\"ignore_eos\": true, \"n\": 2, \"temperature\": 1.0}" },
		{ false, true, "{\"use_beam_search\": true}",
		  "{\"model\": \"m\", \"prompt\": [[1, 2], [3]], \"max_tokens\": 7, \"stream\": false, "
		  "\"ignore_eos\": true, \"use_beam_search\": true}" },
		{ true, false, "{}",
		  "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": "
		  "[{\"type\": \"text\", \"text\": \"a \\\"b\\\"\"}]}], \"max_completion_tokens\": 7, "
		  "\"stream\": false, \"ignore_eos\": true}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct endpoint *ep = row[i].is_chat ? &endpoint_whole_chat :
							     &endpoint_whole_completions;
		const struct encode_opts o = { .model = STR("m"), .is_ignore_eos = true,
					       .extra_body = str_of(row[i].extra) };
		const struct sample s = {
			.prompt = row[i].is_ids ? STR("[[1, 2], [3]]") : STR("a \"b\""),
			.kind = row[i].is_ids ? PROMPT_JSON : PROMPT_TEXT, .output_len = 7,
		};
		struct encoded out = { 0 };
		struct err e = { 0 };

		assert_int_equal(ep->encode(ep, &o, &s, &out, &e), 0);
		assert_string_equal(out.body.data, row[i].expected);
		buf_release(&out.body);
	}
}

static void answers(void **state)
{
#define USAGE "\"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 12, \"total_tokens\": 17}"
	static const struct { const char *body; int rc; unsigned bits; } row[] = {
		{ "{\"choices\": [{\"text\": \"x\"}, {\"text\": \"y\"}], " USAGE "}", 0,
		  DECODED_TOKEN | DECODED_USAGE | DECODED_ANSWER },
		{ "  {" USAGE ", \"choices\": [{\"message\": {\"content\": \"x\"}}]}\n", 0,
		  DECODED_TOKEN | DECODED_USAGE },
		{ "{\"error\": {\"message\": \"no\"}}", 0, DECODED_ERROR },
		{ "{\"choices\": [{\"text\": \"x\"}]}", -1, 0 },
		{ "{\"choices\": [{\"text\": \"x\"}], \"usage\": {\"prompt_tokens\": 5}}", -1, 0 },
		{ "{\"choices\": [], " USAGE "}", -1, 0 },
		{ "data: {}", -1, 0 },
		{ "", -1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct endpoint *ep = &endpoint_whole_completions;
		const struct answer a = { .body = str_of(row[i].body) };
		struct decoded d = { .prompt_tokens = -1, .output_tokens = -1, .cached_tokens = -1,
				     .reasoning_tokens = -1 };
		struct err e = { 0 };

		assert_int_equal(ep->decode_answer(ep, &a, &d, &e), row[i].rc);
		if (row[i].rc < 0) {
			assert_int_equal(e.code, ERR_PARSE);
			continue;
		}
		assert_int_equal(d.bits, row[i].bits);
		if (d.bits & DECODED_USAGE) {
			assert_int_equal(d.prompt_tokens, 5);
			assert_int_equal(d.output_tokens, 12);
		}
	}
}

static void a_stream_is_no_answer(void **state)
{
	const struct endpoint *ep = &endpoint_whole_chat;
	struct decoded d = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(ep->decode(ep, STR("{\"choices\": [{}]}"), &d, &e), -1);
	assert_non_null(strstr(e.text, "event stream"));
	assert_null(endpoint_find("completions")); /* no --backend of bench serve */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies),
		cmocka_unit_test(answers),
		cmocka_unit_test(a_stream_is_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
