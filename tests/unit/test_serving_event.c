/* SPDX-License-Identifier: Apache-2.0 */
/* test_serving_event.c - the bytes of streamed answers, API by API. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sim/serving/event.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

struct event_row {
	const struct event_shape *shape;
	bool has_usage_always, is_crlf, is_commented;
	struct event event;
	const char *stream; /* without the chunks' sizes */
};

#define HEAD(kind) "data: {\"id\":\"cmpl-1\",\"object\":\"" kind "\",\"created\":5," \
	"\"model\":\"sim\",\"choices\":["

static const struct event_row event_rows[] = {
	{ .shape = &shape_completions,
	  .event = { .part = EVENT_TEXT, .text = { " abc", 4 }, .output_tokens = 1 }, .stream =
	  HEAD("text_completion") "{\"index\":0,\"text\":\" abc\",\"logprobs\":null,"
	  "\"finish_reason\":null,\"stop_reason\":null}],\"usage\":null}\n\n" },
	{ .shape = &shape_completions, .has_usage_always = true,
	  .event = { .part = EVENT_TEXT, .text = { " abc", 4 }, .output_tokens = 2,
		     .finish_reason = "length" }, .stream =
	  HEAD("text_completion") "{\"index\":0,\"text\":\" abc\",\"logprobs\":null,"
	  "\"finish_reason\":\"length\",\"stop_reason\":null}],\"usage\":{\"prompt_tokens\":7,"
	  "\"total_tokens\":9,\"completion_tokens\":2}}\n\n" },
	{ .shape = &shape_chat, .is_crlf = true, .is_commented = true,
	  .event = { .part = EVENT_REASONING, .text = { " abc", 4 } }, .stream =
	  ": keep-alive\r\n\r\n" HEAD("chat.completion.chunk") "{\"index\":0,"
	  "\"delta\":{\"reasoning_content\":\" abc\"},\"logprobs\":null,"
	  "\"finish_reason\":null}]}\r\n\r\n" },
	{ .shape = &shape_chat, .event = { .part = EVENT_TEXT, .text = { " abc", 4 },
	  .finish_reason = "stop", .stop_reason = { "\"q\"", 3 } }, .stream =
	  HEAD("chat.completion.chunk") "{\"index\":0,\"delta\":{\"content\":\" abc\"},"
	  "\"logprobs\":null,\"finish_reason\":\"stop\",\"stop_reason\":\"\\\"q\\\"\"}]}\n\n" },
	{ .shape = &shape_completions,
	  .event = { .part = EVENT_TEXT, .text = { " abc", 4 }, .is_malformed = true }, .stream =
	  HEAD("text_completion") "\n\n" },
	{ .shape = &shape_audio, .event = { .part = EVENT_TEXT, .text = { " abc", 4 },
	  .finish_reason = "length" }, .stream =
	  HEAD("transcription.chunk") "{\"delta\":{\"content\":\" abc\"},"
	  "\"finish_reason\":\"length\",\"stop_reason\":null}]}\n\n" },
	{ .shape = &shape_responses, .event = { .part = EVENT_TEXT, .text = { " abc", 4 } },
	  .stream =
	  "event: response.output_item.added\n"
	  "data: {\"type\":\"response.output_item.added\",\"sequence_number\":0,"
	  "\"output_index\":0,\"item\":{\"id\":\"msg_0\",\"type\":\"message\","
	  "\"status\":\"in_progress\",\"content\":[]}}\n\n"
	  "event: response.content_part.added\n"
	  "data: {\"type\":\"response.content_part.added\",\"sequence_number\":1,"
	  "\"output_index\":0,\"item_id\":\"msg_0\",\"content_index\":0,"
	  "\"part\":{\"type\":\"output_text\",\"text\":\"\"}}\n\n"
	  "event: response.output_text.delta\n"
	  "data: {\"type\":\"response.output_text.delta\",\"sequence_number\":2,"
	  "\"output_index\":0,\"item_id\":\"msg_0\",\"content_index\":0,"
	  "\"delta\":\" abc\",\"logprobs\":[]}\n\n" },
	{ .shape = &shape_anthropic, .event = { .part = EVENT_REASONING, .text = { " abc", 4 } },
	  .stream =
	  "event: content_block_start\n"
	  "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":"
	  "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n"
	  "event: content_block_delta\n"
	  "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
	  "{\"type\":\"thinking_delta\",\"thinking\":\" abc\"}}\n\n" },
	{ .shape = &shape_tgi, .event = { .part = EVENT_TEXT, .text = { " abc", 4 }, .id = 9,
	  .output_tokens = 3, .finish_reason = "length" }, .stream =
	  "data:{\"index\":3,\"token\":{\"id\":9,\"text\":\" abc\",\"logprob\":-0.5,"
	  "\"special\":false},\"generated_text\":\" abc\",\"details\":{\"finish_reason\":"
	  "\"length\",\"generated_tokens\":3,\"seed\":null,\"input_length\":7}}\n\n" },
	{ .shape = &shape_llamacpp, .event = { .part = EVENT_TEXT, .text = { " abc", 4 }, .id = 9,
	  .output_tokens = 3 }, .stream =
	  "data: {\"index\":0,\"content\":\" abc\",\"tokens\":[9],\"stop\":false,"
	  "\"id_slot\":-1,\"tokens_predicted\":3,\"tokens_evaluated\":7}\n\n" },
	{ .shape = &shape_sglang, .event = { .part = EVENT_TEXT, .text = { " abc", 4 }, .id = 9,
	  .output_tokens = 3, .finish_reason = "stop", .stop_reason = { "c", 1 } }, .stream =
	  "data: {\"text\":\" abc\",\"output_ids\":[9],\"meta_info\":{\"id\":\"cmpl-1\","
	  "\"finish_reason\":{\"type\":\"stop\",\"matched\":\"c\"},\"prompt_tokens\":7,"
	  "\"reasoning_tokens\":0,\"completion_tokens\":3,\"cached_tokens\":0}}\n\n" },
	{ .shape = &shape_sglang, .event = { .part = EVENT_TEXT, .text = { " abc", 4 }, .id = 9,
	  .output_tokens = 3, .finish_reason = "stop" }, .stream =
	  "data: {\"text\":\" abc\",\"output_ids\":[9],\"meta_info\":{\"id\":\"cmpl-1\","
	  "\"finish_reason\":{\"type\":\"stop\",\"matched\":2},\"prompt_tokens\":7,"
	  "\"reasoning_tokens\":0,\"completion_tokens\":3,\"cached_tokens\":0}}\n\n" },
	{ .shape = &shape_demo, .is_crlf = true, .is_commented = true,
	  .event = { .part = EVENT_TEXT, .text = { " abc", 4 } }, .stream =
	  "{\"text\":[\"a\\\"b abc\"]}\r\n" },
	{ .shape = &shape_ollama, .event = { .part = EVENT_TEXT, .text = { " abc", 4 } }, .stream =
	  "{\"model\":\"sim\",\"created_at\":\"1970-01-01T00:00:05Z\",\"response\":\" abc\","
	  "\"done\":false}\n" },
	{ .shape = &shape_ollama_chat, .event = { .part = EVENT_REASONING, .text = { " abc", 4 } },
	  .stream =
	  "{\"model\":\"sim\",\"created_at\":\"1970-01-01T00:00:05Z\",\"message\":{\"role\":"
	  "\"assistant\",\"content\":\"\",\"thinking\":\" abc\"},\"done\":false}\n" },
};

/* What the chunks in got hold, without their sizes, which must be right. */
static void assert_stream(const char *wanted, struct buf *got)
{
	struct buf all = { 0 };
	struct str in = buf_str(got);

	while (in.n) {
		struct str size = str_cut(&in, '\n');
		size_t n = 0;

		assert_true(size.n >= 2 && size.p[size.n - 1] == '\r');
		for (size_t i = 0; i + 1 < size.n; i++)
			n = n * 16 + (size_t)str_hex(size.p[i]);
		assert_true(n > 0 && n + 2 <= in.n);
		buf_add(&all, in.p, n);
		assert_memory_equal(in.p + n, "\r\n", 2);
		in = (struct str){ in.p + n + 2, in.n - n - 2 };
	}
	assert_string_equal(all.data, wanted);
	buf_release(&all);
}

static void form_fill(struct event_form *f, const struct event_shape *shape)
{
	event_prepare(f, shape, STR("cmpl-1"), STR("sim"), 5, STR("a\"b"));
	f->prompt_tokens = 7;
}

static void test_event_bytes(void **state)
{
	struct event_form f = { 0 };
	struct buf out = { 0 };
	(void)state;
	for (size_t i = 0; i < COUNT(event_rows); i++) {
		const struct event_row *r = &event_rows[i];
		struct buf wanted = { 0 };

		form_fill(&f, r->shape);
		f.has_usage_always = r->has_usage_always;
		f.is_crlf = r->is_crlf;
		f.is_commented = r->is_commented;
		buf_reset(&out);
		event_write(&f, &r->event, &out);
		buf_add_text(&wanted, r->stream);
		if (r->event.is_malformed) {
			/* The JSON is cut somewhere; what is left begins like the whole. */
			assert_non_null(strstr(out.data, "data: {\"id\":\"cmpl-1\""));
			assert_null(strstr(out.data, "usage"));
		} else {
			assert_stream(wanted.data, &out);
		}
		buf_release(&wanted);
	}
	event_form_release(&f);
	buf_release(&out);
}

static const struct {
	const struct event_shape *shape;
	const char *open, *close, *error;
} end_rows[] = {
	{ &shape_completions, "",
	  HEAD("text_completion") "],\"usage\":{\"prompt_tokens\":7,\"total_tokens\":10,"
	  "\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
	  "data: {\"error\":{\"message\":\"no\",\"type\":\"InternalServerError\","
	  "\"param\":null,\"code\":500}}\n\ndata: [DONE]\n\n" },
	{ &shape_chat,
	  HEAD("chat.completion.chunk") "{\"index\":0,\"delta\":{\"role\":\"assistant\","
	  "\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n", NULL, NULL },
	{ &shape_responses, NULL,
	  "event: response.completed\ndata: {\"type\":\"response.completed\","
	  "\"sequence_number\":2,\"response\":{\"id\":\"cmpl-1\",\"object\":\"response\","
	  "\"created_at\":5,\"model\":\"sim\",\"status\":\"incomplete\",\"error\":null,"
	  "\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"output\":[],"
	  "\"usage\":{\"input_tokens\":7,\"input_tokens_details\":{\"cached_tokens\":0},"
	  "\"output_tokens\":3,\"output_tokens_details\":{\"reasoning_tokens\":1},"
	  "\"total_tokens\":10}}}\n\n",
	  "event: error\ndata: {\"type\":\"error\",\"sequence_number\":3,\"code\":"
	  "\"server_error\",\"message\":\"no\",\"param\":null}\n\n" },
	{ &shape_anthropic,
	  "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":"
	  "\"cmpl-1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"sim\","
	  "\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{"
	  "\"input_tokens\":7,\"cache_creation_input_tokens\":0,"
	  "\"cache_read_input_tokens\":0,\"output_tokens\":1}}}\n\n"
	  "event: ping\ndata: {\"type\":\"ping\"}\n\n",
	  "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"
	  "\"stop_reason\":\"max_tokens\",\"stop_sequence\":null},\"usage\":{"
	  "\"output_tokens\":3}}\n\n"
	  "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	  "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\","
	  "\"message\":\"no\"}}\n\n" },
	{ &shape_tgi, "", "", "data:{\"error\":\"Request failed during generation: no\","
	  "\"error_type\":\"generation\"}\n\n" },
	{ &shape_llamacpp, "",
	  "data: {\"index\":0,\"content\":\"\",\"tokens\":[],\"id_slot\":0,\"stop\":true,"
	  "\"model\":\"sim\",\"tokens_predicted\":3,\"tokens_evaluated\":7,"
	  "\"tokens_cached\":9,\"timings\":{\"cache_n\":0,\"prompt_n\":7,"
	  "\"prompt_ms\":0.001,\"predicted_n\":3,\"predicted_ms\":0.002},"
	  "\"truncated\":false,\"stop_type\":\"limit\",\"stopping_word\":\"\"}\n\n",
	  "data: {\"error\":{\"code\":500,\"message\":\"no\",\"type\":\"server_error\"}}"
	  "\n\n" },
	{ &shape_sglang, "", "data: [DONE]\n\n",
	  "data: {\"error\":{\"message\":\"no\",\"type\":\"invalid_request_error\",\"code\":400,"
	  "\"retryable\":false}}\n\ndata: [DONE]\n\n" },
	{ &shape_ollama, "",
	  "{\"model\":\"sim\",\"created_at\":\"1970-01-01T00:00:05Z\",\"response\":\"\","
	  "\"done\":true,\"done_reason\":\"length\",\"total_duration\":3000,"
	  "\"load_duration\":0,\"prompt_eval_count\":7,\"prompt_eval_duration\":1000,"
	  "\"eval_count\":3,\"eval_duration\":2000}\n", "{\"error\":\"no\"}\n" },
};

static void test_event_ends(void **state)
{
	const struct event_ending end = { .output_tokens = 3, .reasoning_tokens = 1,
				    .finish_reason = "length", .prefill_ns = 1000,
				    .decode_ns = 2000 };
	struct event_form f = { 0 };
	struct buf out = { 0 };
	(void)state;
	for (size_t i = 0; i < COUNT(end_rows); i++) {
		const char *wanted[3] = { end_rows[i].open, end_rows[i].close, end_rows[i].error };

		form_fill(&f, end_rows[i].shape);
		for (int k = 0; k < 3; k++) {
			buf_reset(&out);
			if (k == 0)
				event_open(&f, &out);
			else if (k == 1)
				event_close(&f, &end, &out);
			else
				event_error(&f, "no", &out);
			if (wanted[k] && *wanted[k])
				assert_stream(wanted[k], &out);
			else if (wanted[k])
				assert_int_equal(out.len, 0);
		}
	}
	event_form_release(&f);
	buf_release(&out);
}

/* An event that is made from the one before has the bytes that its shape spells, sizes included. */
static void test_uniform_events(void **state)
{
	static const struct event_shape *const shapes[] = { &shape_completions, &shape_chat,
							    &shape_audio, &shape_anthropic };
	static const struct event events[] = {
		{ .part = EVENT_REASONING, .text = { " abc", 4 } },
		{ .part = EVENT_REASONING, .text = { "", 0 } },
		{ .part = EVENT_TEXT, .text = { " abc", 4 } },
		{ .part = EVENT_TEXT, .text = { " of another size \\u0001", 23 } },
		{ .part = EVENT_TEXT, .text = { " abc", 4 }, .is_malformed = true },
		{ .part = EVENT_TEXT, .text = { " d", 2 } },
		{ .part = EVENT_TEXT, .text = { " e", 2 }, .finish_reason = "length" },
	};

	(void)state;
	for (size_t i = 0; i < 4 * COUNT(shapes); i++) {
		struct event_form f[2] = { { 0 }, { 0 } };
		struct buf out[2] = { { 0 }, { 0 } };

		/* Twice, because a form is used for one answer after the other. */
		for (size_t k = 0; k < 2 * 2 * COUNT(events); k++) {
			size_t which = k % 2, event = k / 2 % COUNT(events);

			if (event == 0) {
				event_prepare(&f[which], shapes[i / 4], k < 2 ? STR("a") : STR("bb"),
					      STR("sim"), 5, STR("hi"));
				f[which].is_crlf = i & 1;
				f[which].is_commented = i & 2;
				f[which].choices = which ? 2 : 1; /* 2: each is written
								   * separately */
			}
			event_write(&f[which], &events[event], &out[which]);
		}
		assert_int_equal(out[0].len, out[1].len);
		assert_memory_equal(out[0].data, out[1].data, out[0].len);
		for (size_t which = 0; which < 2; which++) {
			event_form_release(&f[which]);
			buf_release(&out[which]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_bytes),
		cmocka_unit_test(test_event_ends),
		cmocka_unit_test(test_uniform_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
