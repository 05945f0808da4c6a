/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one answer leaves in its row: stamps of answers that do not stream, counts that no
 * server can mean. Over a transport that says what the case says, with stamps of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "endpoint/described.h"
#include "load/load.h"

#define MS 1000000
#define NAMED "\"name\":\"x\",\"path\":\"/x\","
#define WHOLE "{" NAMED "\"framing\":\"whole\",\"text\":\"t\",\"body\":{\"p\":\"{{prompt}}\"}}"

/* The answer: its type and its body, in two reads. */
static struct { bool is_event_stream; const char *read[2]; int64_t at_ns[2]; } answer;

static void *client_open(const struct transport_opts *o, struct err *e)
{
	(void)o;
	(void)e;
	return mem_alloc(1);
}

static void client_start(void *self, struct exchange *x)
{
	int64_t now = clock_real_ns();

	(void)self;
	x->attempts = 1;
	x->sink->on_send(x, now - 100 * MS);
	x->sink->on_sent(x, now - 99 * MS);
	x->sink->on_head(x, 200, answer.is_event_stream, STR("HTTP/1.1 200 OK\r\n\r\n"),
			 now - 50 * MS, now - 49 * MS);
	for (int i = 0; i < 2; i++) {
		answer.at_ns[i] = now - (40 - 10 * i) * MS;
		x->sink->on_body(x, str_of(answer.read[i]), answer.at_ns[i], now - MS);
	}
	x->sink->on_end(x, FAIL_NONE, "", now);
}

static void client_cancel(void *self, struct exchange *x)
{
	(void)self;
	x->sink->on_end(x, FAIL_CANCELLED, "cancelled", clock_real_ns());
}

static void client_poll(void *self, int64_t until_mono_ns, bool is_exact,
			struct transport_stats *stats)
{
	(void)self, (void)until_mono_ns, (void)is_exact, (void)stats;
}

static void client_wake(void *self)
{
	(void)self;
}

static const struct transport scripted = {
	.name = "scripted", .open = client_open, .start = client_start, .cancel = client_cancel,
	.poll = client_poll, .wake = client_wake, .close = free,
};

/* One request; its row is record's first. */
static void run(const struct endpoint *ep, struct record *record)
{
	static const char *const urls[] = { "http://a.invalid" };
	struct load_opts opts = {
		.transport = &scripted, .endpoint = ep, .threads = 1, .phase = PHASE_MAIN,
		.net = { .base_url = urls, .n_endpoints = 1 },
	};
	struct str request = STR("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
	struct prepared prepared = { .request = &request, .n = 1 };
	struct load_progress *progress = mem_alloc(sizeof(*progress));
	struct load_stats stats;
	struct plan plan;
	struct err e = { 0 };

	plan_same(&plan, 1, 0);
	assert_int_equal(record_init(record, 1, 1, 8, false, true, &e), 0);
	record_add_rows(record, 1);
	assert_int_equal(load_run(&opts, &plan, &prepared, record, 0, progress, &stats, NULL, &e),
			 0);
	plan_release(&plan);
	free(progress);
}

static void whole_answers_end_with_their_last_read(void **state)
{
	struct arena a = { 0 };
	struct err e = { 0 };
	const struct endpoint *ep = endpoint_described_text("f", STR(WHOLE), &a, &e);
	struct record record;

	(void)state;
	assert_non_null(ep);
	answer.is_event_stream = false;
	answer.read[0] = "{\"t\": \"on";
	answer.read[1] = "e\"}";
	run(ep, &record);
	assert_int_equal(record.row[0].state, REQ_DONE);
	assert_int_equal(record.row[0].first_event_ns, answer.at_ns[1]);
	assert_int_equal(record.row[0].last_event_ns, answer.at_ns[1]);
	record_release(&record);
	arena_release(&a);
}

/* No stream was asked for, so that it is none is no part of the reason. */
static void whole_answers_without_text_fail(void **state)
{
	struct arena a = { 0 };
	struct err e = { 0 };
	const struct endpoint *ep = endpoint_described_text("f", STR(WHOLE), &a, &e);
	struct buf text = { 0 };
	struct record record;

	(void)state;
	assert_non_null(ep);
	answer.is_event_stream = false;
	answer.read[0] = "{\"u\":";
	answer.read[1] = " 1}";
	run(ep, &record);
	assert_int_equal(record.row[0].state, REQ_FAILED);
	record_error_of(&record, &record.row[0], &text);
	assert_string_equal(text.data, "the answer has no text");
	buf_release(&text);
	record_release(&record);
	arena_release(&a);
}

static void counts_no_server_can_mean_stay_large(void **state)
{
	struct record record;

	(void)state;
	answer.is_event_stream = true;
	answer.read[0] = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
	answer.read[1] = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4294967297,"
			 "\"completion_tokens\":9223372036854775807,\"prompt_tokens_details\":"
			 "{\"cached_tokens\":4294967296}}}\n\ndata: [DONE]\n\n";
	run(endpoint_find("openai"), &record);
	assert_int_equal(record.row[0].state, REQ_DONE);
	assert_int_equal(record.row[0].prompt_tokens, UINT32_MAX);
	assert_int_equal(record.row[0].output_tokens, UINT32_MAX);
	assert_int_equal(record.row[0].cached_tokens, UINT32_MAX);
	record_release(&record);
}

/* What a chat answer leaves in its row, whatever its count is worth. */
static void answers_leave_what_they_had(void **state)
{
#define ROLE "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
#define THOUGHT "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}]}\n\n"
#define CALL "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"x\"}}]}}]}\n\n"
#define END(more) "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]" more "}\n\n"
#define COUNTS ",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}"
	static const struct {
		const char *read[2];
		bool is_role_first;
		int content;              /* the read that brought the first content; -1: none */
		uint32_t n_other, usage, ignored, ignored_prompt;
		const char *other;
		enum request_state state;
		enum finish_reason finish;
	} cases[] = {
		{ { ROLE THOUGHT, CALL END("") }, true, 0, 1, 0, 0, 0, "hmx", REQ_DONE, FINISH_STOP },
		{ { ROLE, CALL END("") }, true, 1, 1, 0, 0, 0, "x", REQ_DONE, FINISH_STOP },
		{ { THOUGHT, END(COUNTS) }, false, 0, 0, 0, 3, 7, "", REQ_DONE, FINISH_STOP },
		{ { THOUGHT END(""), "data: {\"choices\":[]" COUNTS "}\n\n" }, false, 0, 0, 3, 0, 0, "",
		  REQ_DONE, FINISH_STOP },
		{ { ROLE, END("") }, true, -1, 0, 0, 0, 0, "", REQ_DONE, FINISH_STOP },
		{ { THOUGHT, CALL }, false, 0, 1, 0, 0, 0, "", REQ_FAILED, FINISH_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct request_row *row;
		struct buf other = { 0 };
		struct record record;

		answer.is_event_stream = true;
		memcpy(answer.read, cases[i].read, sizeof(answer.read));
		run(endpoint_find("openai-chat"), &record);
		row = &record.row[0];
		record_other_text_of(&record, row, &other);
		assert_true(str_is(buf_str(&other), cases[i].other));
		assert_int_equal(!(row->flags & ROW_ROLE_FIRST), !cases[i].is_role_first);
		assert_int_equal(row->first_content_ns,
				 cases[i].content < 0 ? 0 : answer.at_ns[cases[i].content]);
		assert_int_equal(row->n_other, cases[i].n_other);
		assert_int_equal(row->output_tokens, cases[i].usage);
		assert_int_equal(row->ignored_output_tokens, cases[i].ignored);
		assert_int_equal(row->ignored_prompt_tokens, cases[i].ignored_prompt);
		assert_int_equal(row->state, cases[i].state);
		assert_int_equal(row->finish, cases[i].finish);
		buf_release(&other);
		record_release(&record);
	}
}

/* Text that was only kept to be counted gives its room back. */
static void other_text_is_kept_in_room_used_again(void **state)
{
	struct request_row *row;
	struct buf text = { 0 };
	char many[1000];
	struct record r;
	struct err e;
	size_t used;

	(void)state;
	memset(many, 'x', sizeof(many));
	assert_int_equal(record_init(&r, 3, 1, 0, false, true, &e), 0);
	record_add_rows(&r, 3);
	row = r.row;
	record_other_text(&r.shard[0], &row[0], (struct str){ many, sizeof(many) });
	record_text(&r.shard[0], &row[0], STR("answer"));
	used = r.shard[0].texts.count;
	record_drop_other_text(&r.shard[0], &row[0]);
	record_drop_other_text(&r.shard[0], &row[1]); /* has none */
	record_other_text_of(&r, &row[0], &text);
	assert_int_equal(text.len, 0);
	record_other_text(&r.shard[0], &row[1], (struct str){ many, 500 });
	record_text(&r.shard[0], &row[2], (struct str){ many, 400 });
	assert_int_equal(r.shard[0].texts.count, used);
	record_other_text_of(&r, &row[1], &text);
	assert_int_equal(text.len, 500);
	buf_reset(&text);
	record_text_of(&r, &row[0], &text);
	assert_true(str_is(buf_str(&text), "answer"));
	buf_reset(&text);
	record_text_of(&r, &row[2], &text);
	assert_int_equal(text.len, 400);
	buf_release(&text);
	record_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_answers_end_with_their_last_read),
		cmocka_unit_test(whole_answers_without_text_fail),
		cmocka_unit_test(counts_no_server_can_mean_stay_large),
		cmocka_unit_test(answers_leave_what_they_had),
		cmocka_unit_test(other_text_is_kept_in_room_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
