/* SPDX-License-Identifier: Apache-2.0 */
/* test_sim.c - the parts of the simulator that need no socket. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "http/prometheus.h"
#include "rng/fork.h"
#include "sim/ask.h"
#include "sim/counters.h"
#include "sim/dist.h"
#include "sim/engine.h"
#include "sim/event.h"
#include "sim/fault.h"
#include "sim/lag.h"
#include "sim/truth.h"
#include "sim/words.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---- distributions ---- */

static void test_dist_reads(void **state)
{
	static const struct {
		const char *text;
		int rc;
		enum dist_kind kind;
		double a, b;
	} rows[] = {
		{ "20", 0, DIST_CONSTANT, 20, 0 },
		{ "0", 0, DIST_CONSTANT, 0, 0 },
		{ "0.25", 0, DIST_CONSTANT, 0.25, 0 },
		{ "uniform:10:30", 0, DIST_UNIFORM, 10, 30 },
		{ "uniform:10:10", 0, DIST_UNIFORM, 10, 10 },
		{ "normal:20:5", 0, DIST_NORMAL, 20, 5 },
		{ "exp:20", 0, DIST_EXP, 20, 0 },
		{ "lognormal:20:0.5", 0, DIST_LOGNORMAL, 20, 0.5 },
		{ "", -1, 0, 0, 0 }, { "-1", -1, 0, 0, 0 }, { "nan", -1, 0, 0, 0 },
		{ "inf", -1, 0, 0, 0 }, { "x", -1, 0, 0, 0 }, { "uniform:30:10", -1, 0, 0, 0 },
		{ "uniform:1", -1, 0, 0, 0 }, { "exp:1:2", -1, 0, 0, 0 }, { "exp:", -1, 0, 0, 0 },
		{ "normal:1:2:3", -1, 0, 0, 0 }, { "gamma:1:2", -1, 0, 0, 0 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		struct dist d;

		assert_int_equal(dist_parse(&d, "--x", rows[i].text, &e), rows[i].rc);
		if (rows[i].rc < 0) {
			assert_int_equal(e.code, ERR_USAGE);
			assert_non_null(strstr(e.text, "--x"));
			continue;
		}
		assert_int_equal(d.kind, rows[i].kind);
		assert_true(d.a == rows[i].a && d.b == rows[i].b);
	}
}

static void test_dist_draws(void **state)
{
	static const struct { const char *text; double mean, sd; } rows[] = {
		{ "20", 20, 0 }, { "uniform:10:30", 20, 5.7735 }, { "normal:20:5", 20, 5 },
		{ "exp:20", 20, 20 }, { "lognormal:20:0.5", 22.663, 12.078 },
	};
	enum { N = 40000 };
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct pcg64 g = rng_fork(7, "test"), again = g;
		double sum = 0, squares = 0, mean, sd;
		struct dist d;

		assert_int_equal(dist_parse(&d, "--x", rows[i].text, NULL), 0);
		for (int k = 0; k < N; k++) {
			double v = dist_draw(&d, &g);

			assert_true(v >= 0 && v == dist_draw(&d, &again));
			sum += v;
			squares += v * v;
		}
		mean = sum / N;
		sd = sqrt(fmax(0, squares / N - mean * mean));
		assert_true(fabs(mean - rows[i].mean) < 0.03 * rows[i].mean);
		assert_true(fabs(sd - rows[i].sd) <= 0.04 * rows[i].sd);
	}
}

/* ---- faults ---- */

static void test_fault_reads(void **state)
{
	static const struct { const char *text, *why; } rows[] = {
		{ "status=503", NULL }, { "status=503:0.1", NULL }, { "reset@5:0.05", NULL },
		{ "close@1", NULL }, { "stall@5=2s:id=slow-*", NULL }, { "malformed@3", NULL },
		{ "slow-start=500us", NULL }, { "coalesce", NULL }, { "coalesce=8:1", NULL },
		{ "crlf:0", NULL }, { "stall@2=10", NULL }, { "status=429:id=a:b", NULL },
		{ "", "is no fault" }, { "explode", "known are status, slow-start" },
		{ "status", "needs a status" }, { "status=200", "a status from 400" },
		{ "status=abc", "a status from 400" }, { "status@3=503", "takes no @TOKEN" },
		{ "reset", "needs @TOKEN" }, { "reset@0", "needs @TOKEN" },
		{ "reset@x", "needs @TOKEN" }, { "reset@5=1", "takes nothing" },
		{ "stall@5", "needs a duration" }, { "stall@5=-1s", "takes a duration" },
		{ "stall@5=1h", "takes a duration" }, { "coalesce=1", "a count from 2" },
		{ "crlf:1.5", "probability" }, { "crlf:", "probability" },
		{ "crlf:id=", "id=PATTERN" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct fault_set set = { 0 };
		struct err e = { 0 };
		int rc = fault_add(&set, rows[i].text, &e);

		assert_int_equal(rc, rows[i].why ? -1 : 0);
		if (rows[i].why && !strstr(e.text, rows[i].why))
			fail_msg("'%s' gave '%s'", rows[i].text, e.text);
		assert_int_equal(set.n, rows[i].why ? 0 : 1);
	}
}

static void test_fault_plans(void **state)
{
	static const char *const specs[] = {
		"status=503:id=bad-*", "stall@5=2s:id=slow-?", "reset@9", "coalesce=3:0",
		"crlf:0.5",
	};
	struct fault_set set = { 0 };
	struct fault_plan p;
	int crlf = 0;
	(void)state;
	for (size_t i = 0; i < COUNT(specs); i++)
		assert_int_equal(fault_add(&set, specs[i], NULL), 0);
	for (int i = 0; i < 1000; i++) {
		struct pcg64 g = rng_fork((uint64_t)i, "test"), again = g;
		struct fault_plan q = fault_plan(&set, "slow-1", &again);

		p = fault_plan(&set, "slow-1", &g);
		assert_memory_equal(&p, &q, sizeof(p));
		assert_int_equal(p.status, 0);
		assert_int_equal(p.stall_at, 5);
		assert_int_equal(p.stall_ns, 2000000000);
		assert_int_equal(p.reset_at, 9);
		assert_int_equal(p.coalesce, 0);
		crlf += p.is_crlf;
	}
	assert_in_range(crlf, 430, 570);
	p = fault_plan(&set, "bad-7", &(struct pcg64){ 0 });
	assert_int_equal(p.status, 503);
	assert_int_equal(p.stall_at, 0);
	assert_true(fault_paces(&set));
}

/* ---- requests ---- */

static void test_ask_rows(void **state)
{
	static const struct { enum ask_api api; const char *body, *why, *param; } rows[] = {
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\"}", NULL, NULL },
		{ ASK_COMPLETIONS, "{\"prompt\":[1,2],\"unknown\":{}}", NULL, NULL },
		{ ASK_COMPLETIONS, "{\"prompt\":[\"a\"],\"stop\":null,\"max_tokens\":null}",
		  NULL, NULL },
		{ ASK_COMPLETIONS, "{\"prompt\":[[1,2]],\"n\":1,\"echo\":false}", NULL, NULL },
		{ ASK_CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", NULL, NULL },
		{ ASK_DETOKENIZE, "{\"tokens\":[]}", NULL, NULL },
		{ ASK_TOKENIZE, "{\"messages\":[{\"role\":\"user\"}]}", NULL, NULL },
		{ ASK_COMPLETIONS, "", "not valid JSON", NULL },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\"} x", "not valid JSON", NULL },
		{ ASK_COMPLETIONS, "[1]", "JSON object", NULL },
		{ ASK_COMPLETIONS, "{}", "prompt is missing", NULL },
		{ ASK_CHAT, "{\"prompt\":\"a\"}", "messages is missing", NULL },
		{ ASK_DETOKENIZE, "{}", "tokens is missing", NULL },
		{ ASK_COMPLETIONS, "{\"prompt\":7}", "prompt must be", "prompt" },
		{ ASK_COMPLETIONS, "{\"prompt\":[]}", "empty list", "prompt" },
		{ ASK_COMPLETIONS, "{\"prompt\":[1,\"a\"]}", "token ids", "prompt" },
		{ ASK_COMPLETIONS, "{\"prompt\":[-1]}", "token ids", "prompt" },
		{ ASK_COMPLETIONS, "{\"prompt\":[\"a\",\"b\"]}", "one prompt", "prompt" },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"max_tokens\":0}", "at least 1",
		  "max_tokens" },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"max_tokens\":1.5}", "integer",
		  "max_tokens" },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"min_tokens\":5,\"max_tokens\":4}",
		  "min_tokens", NULL },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"stream\":\"yes\"}", "true or false",
		  "stream" },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"n\":2}", "n must be 1", "n" },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"echo\":true}", "echo", "echo" },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"stop\":\"\"}", "empty", "stop" },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"stop\":[1]}", "strings", "stop" },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"stream_options\":1}", "object",
		  "stream_options" },
		{ ASK_COMPLETIONS, "{\"prompt\":\"a\",\"model\":1}", "string", "model" },
		{ ASK_CHAT, "{\"messages\":[]}", "empty", "messages" },
		{ ASK_CHAT, "{\"messages\":[{\"content\":\"a\"}]}", "role", "messages" },
		{ ASK_CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":7}]}", "content",
		  "messages" },
	};
	struct ask a = { 0 };
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *param = "";
		struct err e = { 0 };
		int rc = ask_read(&a, rows[i].api, str_of(rows[i].body), &param, &e);

		assert_int_equal(rc, rows[i].why ? -1 : 0);
		if (!rows[i].why)
			continue;
		if (!strstr(e.text, rows[i].why))
			fail_msg("'%s' gave '%s'", rows[i].body, e.text);
		if (rows[i].param)
			assert_string_equal(param, rows[i].param);
	}
	ask_release(&a);
}

static void test_ask_fields(void **state)
{
	struct ask a = { 0 };
	(void)state;
	assert_int_equal(ask_read(&a, ASK_COMPLETIONS, STR(
		"{\"model\":\"m\\u0041\",\"prompt\":\"x\\ny\",\"stream\":true,\"stream_options\":"
		"{\"include_usage\":true,\"continuous_usage_stats\":true},\"max_tokens\":9,"
		"\"min_tokens\":2,\"ignore_eos\":true,\"stop\":[\"ab\",\"c\"],\"logprobs\":null,"
		"\"add_special_tokens\":false}"), NULL, NULL), 0);
	assert_true(str_is(buf_str(&a.model), "mA") && str_is(buf_str(&a.text), "x\ny"));
	assert_true(a.is_stream && a.has_usage && a.has_usage_always && a.is_eos_ignored);
	assert_int_equal(a.max_tokens, 9);
	assert_int_equal(a.min_tokens, 2);
	assert_int_equal(a.stops, 2);
	assert_true(str_is(ask_stop(&a, 0), "ab") && str_is(ask_stop(&a, 1), "c"));
	assert_false(a.has_special);
	assert_int_equal(ask_read(&a, ASK_CHAT, STR(
		"{\"messages\":[{\"role\":\"system\",\"content\":\"be\"},{\"role\":\"user\","
		"\"content\":"
		"[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\"},{\"type\":\"text\","
		"\"text\":\"b\"}]}],\"max_completion_tokens\":3}"), NULL, NULL), 0);
	assert_true(str_is(buf_str(&a.text), "<|system|>\nbe\n<|user|>\na\nb\n<|assistant|>\n"));
	assert_false(a.is_stream || a.has_usage || a.is_eos_ignored || a.has_special || a.stops);
	assert_int_equal(a.max_tokens, 3);
	assert_int_equal(a.model.len, 0);
	ask_release(&a);
}

/* ---- events ---- */

struct event_row {
	const struct shape *shape;
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
	  "\"id_slot\":0,\"tokens_predicted\":3,\"tokens_evaluated\":7}\n\n" },
	{ .shape = &shape_sglang, .event = { .part = EVENT_TEXT, .text = { " abc", 4 },
	  .output_tokens = 3, .finish_reason = "stop", .stop_reason = { "c", 1 } }, .stream =
	  "data: {\"text\":\" abc\",\"meta_info\":{\"id\":\"cmpl-1\",\"finish_reason\":"
	  "{\"type\":\"stop\",\"matched\":\"c\"},\"prompt_tokens\":7,"
	  "\"completion_tokens\":3,\"cached_tokens\":0}}\n\n" },
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

static void form_fill(struct event_form *f, const struct shape *shape)
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

static void test_event_ends(void **state)
{
	static const struct {
		const struct shape *shape;
		const char *open, *close, *error;
	} rows[] = {
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
		  "\"tokens_cached\":10,\"timings\":{\"cache_n\":0,\"prompt_n\":7,"
		  "\"prompt_ms\":0.001,\"predicted_n\":3,\"predicted_ms\":0.002},"
		  "\"truncated\":false,\"stop_type\":\"limit\",\"stopping_word\":\"\"}\n\n",
		  "data: {\"error\":{\"code\":500,\"message\":\"no\",\"type\":\"server_error\"}}"
		  "\n\n" },
		{ &shape_sglang, "", "data: [DONE]\n\n",
		  "data: {\"error\":{\"message\":\"no\"}}\n\ndata: [DONE]\n\n" },
		{ &shape_ollama, "",
		  "{\"model\":\"sim\",\"created_at\":\"1970-01-01T00:00:05Z\",\"response\":\"\","
		  "\"done\":true,\"done_reason\":\"length\",\"total_duration\":3000,"
		  "\"load_duration\":0,\"prompt_eval_count\":7,\"prompt_eval_duration\":1000,"
		  "\"eval_count\":3,\"eval_duration\":2000}\n", "{\"error\":\"no\"}\n" },
	};
	const struct ending end = { .output_tokens = 3, .reasoning_tokens = 1,
				    .finish_reason = "length", .prefill_ns = 1000,
				    .decode_ns = 2000 };
	struct event_form f = { 0 };
	struct buf out = { 0 };
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *wanted[3] = { rows[i].open, rows[i].close, rows[i].error };

		form_fill(&f, rows[i].shape);
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

/* ---- words ---- */

static void test_words_count_honestly(void **state)
{
	struct tokenizer *t = tokenizer_load(TOKENIZER_SIM, NULL, NULL);
	struct words w = { 0 };
	struct buf text = { 0 };
	(void)state;
	assert_non_null(t);
	assert_int_equal(words_init(&w, t, NULL), 0);
	assert_int_equal(w.n, 17576);
	for (uint64_t i = 0; i < 500; i++) {
		const struct word *word = words_at(&w, 42, i);

		buf_add(&text, word->text, word->n);
		assert_int_equal(tokenizer_count(t, buf_str(&text), false), i + 1);
	}
	assert_ptr_not_equal(words_at(&w, 42, 0), words_at(&w, 43, 0));
	buf_release(&text);
	words_release(&w);
	tokenizer_free(t);
}

/* ---- engine ---- */

#define SEQS_MAX 8
struct served {
	struct engine g;
	struct engine_seq seq[SEQS_MAX];
	int tokens[SEQS_MAX], want[SEQS_MAX];
	char order[64];
};

static void served_token(struct engine_seq *s, void *ctx)
{
	struct served *v = ctx;
	size_t i = (size_t)(s - v->seq);
	size_t n = strlen(v->order);

	if (n + 1 < sizeof(v->order))
		v->order[n] = (char)('a' + i);
	if (++v->tokens[i] == v->want[i])
		engine_remove(&v->g, s);
}

static void served_add(struct served *v, size_t i, uint32_t prompt, int want)
{
	v->seq[i] = (struct engine_seq){ .prompt_left = prompt };
	v->want[i] = want;
	engine_add(&v->g, &v->seq[i]);
}

/* Costs that make every term of a step readable in its length. */
static const struct engine_cost plain = { .prefill_base_us = 1000, .prefill_us_per_token = 10,
					  .decode_base_us = 100000, .decode_us_per_seq = 1 };

static void test_engine_steps(void **state)
{
	/* Two prompts of 6 with a budget of 10: the second is cut in two. */
	static const struct { int64_t us; const char *order; } rows[] = {
		{ 1000 + 100, "a" },                   /* a whole, 4 of b */
		{ 100000 + 1 + 1000 + 20, "ab" },      /* a decodes, b's last 2 */
		{ 100000 + 2, "ab" },                  /* both decode; a has its three */
		{ 100000 + 1, "b" },
	};
	struct served v = { 0 };
	(void)state;
	engine_init(&v.g, plain, 4, 10);
	served_add(&v, 0, 6, 3);
	served_add(&v, 1, 6, 3);
	for (size_t i = 0; i < COUNT(rows); i++) {
		memset(v.order, 0, sizeof(v.order));
		assert_int_equal(engine_step_begin(&v.g), rows[i].us * 1000);
		engine_step_end(&v.g, served_token, &v);
		assert_string_equal(v.order, rows[i].order);
	}
	assert_int_equal(engine_step_begin(&v.g), -1);
	assert_int_equal(v.g.running_count + v.g.waiting_count, 0);
	engine_release(&v.g);
}

static void test_engine_limits(void **state)
{
	struct served v = { 0 };
	(void)state;
	engine_init(&v.g, plain, 2, 100);
	for (size_t i = 0; i < 4; i++)
		served_add(&v, i, 1, 2);
	assert_int_equal(engine_step_begin(&v.g), (1000 + 20) * 1000);
	assert_int_equal(v.g.running_count, 2);
	assert_int_equal(v.g.waiting_count, 2);
	engine_remove(&v.g, &v.seq[2]); /* gives up while waiting */
	engine_remove(&v.g, &v.seq[0]); /* gives up in the step: no token for it */
	engine_step_end(&v.g, served_token, &v);
	assert_string_equal(v.order, "b");
	assert_true(engine_step_begin(&v.g) > 0);
	assert_int_equal(v.g.running_count, 2); /* b and d */
	engine_step_end(&v.g, served_token, &v);
	assert_string_equal(v.order, "bbd");
	engine_remove(&v.g, &v.seq[3]);
	engine_remove(&v.g, &v.seq[3]); /* twice does no harm */
	assert_int_equal(engine_step_begin(&v.g), -1);
	engine_release(&v.g);
}

static void test_engine_decodes_before_it_prefills(void **state)
{
	struct served v = { 0 };
	(void)state;
	engine_init(&v.g, plain, 8, 4);
	for (size_t i = 0; i < 4; i++)
		served_add(&v, i, 1, 9);
	assert_true(engine_step_begin(&v.g) > 0);
	engine_step_end(&v.g, served_token, &v);
	served_add(&v, 4, 100, 1);
	assert_int_equal(engine_step_begin(&v.g), (100000 + 4) * 1000);
	assert_int_equal(v.g.waiting_count, 1); /* no budget left for the new one */
	engine_step_end(&v.g, served_token, &v);
	engine_release(&v.g);
}

/* ---- counters, lag, truth ---- */

static void test_counters_text(void **state)
{
	static const struct { const char *name, *label, *value; double wanted; } rows[] = {
		{ "vllm:num_requests_running", NULL, NULL, 3 },
		{ "vllm:prompt_tokens_total", NULL, NULL, 11 },
		{ "vllm:request_success_total", "finished_reason", "length", 4 },
		{ "vllm:request_success_total", "finished_reason", "abort", 0 },
		{ "vllm:time_to_first_token_seconds_bucket", "le", "0.02", 1 },
		{ "vllm:time_to_first_token_seconds_bucket", "le", "0.04", 2 },
		{ "vllm:time_to_first_token_seconds_bucket", "le", "+Inf", 3 },
		{ "vllm:time_to_first_token_seconds_count", NULL, NULL, 3 },
		{ "vllm:time_to_first_token_seconds_sum", NULL, NULL, 5000.05 },
	};
	struct counters c = { .running = 3, .prompt_tokens = 11, .finished[FINISH_LENGTH] = 4 };
	struct buf out = { 0 };
	(void)state;
	counters_observe(&c, HIST_TTFT, 20000000);
	counters_observe(&c, HIST_TTFT, 30000000);
	counters_observe(&c, HIST_TTFT, 5000000000000);
	counters_write(&c, STR("my\"model"), &out);
	assert_non_null(strstr(out.data, "model_name=\"my\\\"model\""));
	assert_non_null(strstr(out.data, "# TYPE vllm:generation_tokens_total counter\n"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct str rest = buf_str(&out), label;
		struct prometheus_sample s;
		bool is_found = false;

		while (!is_found && prometheus_next(&rest, &s, NULL) > 0)
			is_found = str_is(s.name, rows[i].name) && (!rows[i].label ||
				   (prometheus_label(s.labels, rows[i].label, &label) &&
				    str_is(label, rows[i].value)));
		assert_true(is_found);
		assert_true(fabs(s.value - rows[i].wanted) < 1e-9);
	}
	buf_release(&out);
}

static void test_lag_quantiles(void **state)
{
	static struct lag l;
	(void)state;
	assert_int_equal(lag_quantile(&l, 0.5), 0);
	for (int64_t ns = -5; ns < 100000; ns++)
		lag_add(&l, ns);
	assert_in_range(lag_quantile(&l, 0.5), 46875, 50000);
	assert_in_range(lag_quantile(&l, 0.99), 92812, 99000);
	assert_int_equal(l.max_ns, 99999);
	lag_add(&l, INT64_MAX);
	assert_int_equal(l.max_ns, INT64_MAX);
}

static void test_truth_lines(void **state)
{
	char path[] = "/tmp/profllm-truth-XXXXXX";
	struct fault_set set = { 0 };
	struct truth t = { .faults = &set };
	struct truth_row *r = truth_row_new("a\"b", 100);
	char text[1024];
	FILE *f;
	(void)state;
	assert_true(mkstemp(path) >= 0);
	assert_int_equal(fault_add(&set, "reset@2", NULL), 0);
	assert_int_equal(fault_add(&set, "crlf", NULL), 0);
	assert_int_equal(sink_open(&t.sink, "--truth", path, NULL), 0);
	truth_event(r, 150, 0);
	truth_event(r, 151, 1);
	r->prompt_tokens = 7;
	r->output_tokens = 1;
	r->faults = 3;
	r->finish = FINISH_ERROR;
	truth_end(&t, r);
	r = truth_row_new(NULL, 200);
	r->end_ns = 300;
	r->finish = FINISH_LENGTH;
	truth_end(&t, r);
	assert_int_equal(truth_close(&t, NULL), 0);
	f = fopen(path, "r");
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	remove(path);
	assert_string_equal(text,
		"{\"request_id\": \"a\\\"b\", \"recv_ns\": 100, \"send_ns\": [150, 151], "
		"\"tokens\": "
		"[0, 1], \"end_ns\": null, \"prompt_tokens\": 7, \"cached_tokens\": 0, "
		"\"output_tokens\": 1, "
		"\"status\": 200, "
		"\"finish\": \"error\", \"fault\": \"reset@2,crlf\"}\n"
		"{\"request_id\": null, \"recv_ns\": 200, \"send_ns\": [], \"tokens\": [], "
		"\"end_ns\": "
		"300, \"prompt_tokens\": 0, \"cached_tokens\": 0, \"output_tokens\": 0, "
		"\"status\": 200, \"finish\": "
		"\"length\", \"fault\": null}\n");
}

static void test_sink_tells_what_was_lost(void **state)
{
	struct sink s = { 0 };
	struct err e = { 0 };
	(void)state;
	assert_int_equal(sink_open(&s, "--truth", "/no/such/dir/x", &e), -1);
	assert_non_null(strstr(e.text, "--truth: cannot write /no/such/dir/x"));
	assert_int_equal(sink_close(&s, &e), 0);
	assert_int_equal(sink_open(&s, "--truth", "/dev/full", &e), 0);
	buf_add_text(&s.lines, "line\n");
	assert_false(sink_flush(&s, SIZE_MAX));
	assert_int_equal(sink_close(&s, &e), -1);
	assert_non_null(strstr(e.text, "/dev/full: No space left"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dist_reads),
		cmocka_unit_test(test_dist_draws),
		cmocka_unit_test(test_fault_reads),
		cmocka_unit_test(test_fault_plans),
		cmocka_unit_test(test_ask_rows),
		cmocka_unit_test(test_ask_fields),
		cmocka_unit_test(test_event_bytes),
		cmocka_unit_test(test_event_ends),
		cmocka_unit_test(test_words_count_honestly),
		cmocka_unit_test(test_engine_steps),
		cmocka_unit_test(test_engine_limits),
		cmocka_unit_test(test_engine_decodes_before_it_prefills),
		cmocka_unit_test(test_counters_text),
		cmocka_unit_test(test_lag_quantiles),
		cmocka_unit_test(test_truth_lines),
		cmocka_unit_test(test_sink_tells_what_was_lost),
	};
	return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
