/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one answer leaves in its row: stamps of answers that do not stream, counts that no
 * server can mean. Over a transport that says what the case says, with stamps of its own.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/endpoint/described.h"
#include "client/load/load.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

#define MS 1000000
#define NAMED "\"name\":\"x\",\"path\":\"/x\","
#define WHOLE "{" NAMED "\"framing\":\"whole\",\"text\":\"t\",\"body\":{\"p\":\"{{prompt}}\"}}"

/* The answer: its type and its body, in two reads. */
static struct {
	bool is_event_stream, is_cancelled;
	unsigned status; /* 0: 200 */
	const char *read[2];
	int64_t at_ns[2];
} answer;
static uint32_t asked; /* tokens of the one request; 0: not known */

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
	answer.is_cancelled = false;
	x->sink->on_head(x, answer.status ? answer.status : 200, answer.is_event_stream,
			 answer.status ? STR("HTTP/1.1 500 No\r\n\r\n") : STR("HTTP/1.1 200 OK\r\n\r\n"),
			 now - 50 * MS, now - 49 * MS);
	for (int i = 0; i < 2 && !answer.is_cancelled; i++) {
		answer.at_ns[i] = now - (40 - 10 * i) * MS;
		x->bytes_in += strlen(answer.read[i]);
		x->sink->on_body(x, str_of(answer.read[i]), answer.at_ns[i], now - MS);
	}
	if (!answer.is_cancelled)
		x->sink->on_end(x, FAIL_NONE, "", now);
}

static void client_cancel(void *self, struct exchange *x)
{
	(void)self;
	answer.is_cancelled = true;
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

static void client_close(void *self, struct transport_stats *stats)
{
	(void)stats;
	free(self);
}

static const struct transport scripted = {
	.name = "scripted", .open = client_open, .start = client_start, .cancel = client_cancel,
	.poll = client_poll, .wake = client_wake, .close = client_close,
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
	record->row[0].asked_tokens = asked;
	record->row[0].prompt_tokens = record->row[0].sample_prompt_tokens = 7;
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

/* No stream was asked for, so its absence is not part of the reason. */
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

/*
 * Counts below zero, far above what was asked for, or no numbers of the machine's: as if they had
 * not been sent, and the row says so. What many tokens an event or several choices make is used.
 */
static void impossible_counts_are_refused(void **state)
{
	static const struct {
		uint32_t asked, bytes;            /* length asked for; bytes of text that come */
		const char *prompt, *output, *cached;
		uint32_t want_prompt, want_output, want_cached;
		bool is_refused;
	} cases[] = {
		{ 8, 1, "5", "9223372036854775807", "0", 5, 0, 0, true },
		{ 8, 1, "5", "4294967296", "0", 5, 0, 0, true },
		{ 8, 1, "5", "2147483648", "0", 5, 0, 0, true },
		{ 8, 1, "5", "99999999999999999999", "0", 5, 0, 0, true },
		{ 8, 1, "5", "1e30", "0", 5, 0, 0, true },
		{ 8, 1, "5", "-9", "0", 5, 0, 0, true },
		{ 8, 1, "5", "2.5", "0", 5, 0, 0, true },
		{ 8, 1, "5", "4097", "0", 5, 0, 0, true },
		{ 8, 1, "5", "4096", "0", 5, 4096, 0, false },   /* hidden reasoning */
		{ 8, 9000, "5", "9000", "0", 5, 9000, 0, false }, /* no max_tokens there */
		{ 8, 9000, "5", "9001", "0", 5, 0, 0, true },
		{ 1000, 1, "5", "16000", "0", 5, 16000, 0, false }, /* 16 choices */
		{ 1000, 1, "5", "16001", "0", 5, 0, 0, true },
		{ 0, 1, "5", "67108864", "0", 5, 67108864, 0, false },
		{ 0, 1, "5", "67108865", "0", 5, 0, 0, true },
		{ 8, 1, "4294967297", "8", "0", 7, 8, 0, true },
		{ 8, 1, "1048577", "8", "0", 7, 8, 0, true },
		{ 8, 1, "1048576", "8", "0", 1048576, 8, 0, false },
		{ 8, 1, "5", "8", "4294967296", 5, 8, 0, true },
		{ 8, 1, "-1", "8", "3", 7, 8, 3, false },        /* some say "unknown" so */
	};
	struct buf first = { 0 }, second = { 0 };

	(void)state;
	answer.is_event_stream = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct request_row *row;
		struct record record;

		buf_reset(&first);
		buf_reset(&second);
		buf_printf(&first, "data: {\"choices\":[{\"text\":\"%0*d\"}]}\n\n", (int)cases[i].bytes,
			   0);
		buf_printf(&second, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%s,"
			   "\"completion_tokens\":%s,\"prompt_tokens_details\":{\"cached_tokens\":%s}}}"
			   "\n\ndata: [DONE]\n\n", cases[i].prompt, cases[i].output,
			   cases[i].cached);
		answer.read[0] = first.data;
		answer.read[1] = second.data;
		asked = cases[i].asked;
		run(endpoint_find("openai"), &record);
		row = &record.row[0];
		if (row->state != REQ_DONE || row->prompt_tokens != cases[i].want_prompt ||
		    row->output_tokens != cases[i].want_output ||
		    row->cached_tokens != cases[i].want_cached ||
		    !(row->flags & ROW_USAGE_REFUSED) == cases[i].is_refused)
			fail_msg("case %zu: state %d, %u prompt, %u output, %u cached, flags %u", i,
				 row->state, row->prompt_tokens, row->output_tokens,
				 row->cached_tokens, row->flags);
		record_release(&record);
	}
	asked = 0;
	buf_release(&first);
	buf_release(&second);
}

/* The same with running counts, which become marks of the events. */
static void impossible_running_counts_leave_no_marks(void **state)
{
	const struct record_mark *mark = NULL;
	struct record record;

	(void)state;
	answer.is_event_stream = true;
	asked = 8;
	answer.read[0] = "data: {\"choices\":[{\"text\":\"a\"}],\"usage\":{\"completion_tokens\":1}}\n\n";
	answer.read[1] = "data: {\"choices\":[{\"text\":\"b\"}],\"usage\":{\"completion_tokens\":"
			 "4000000000}}\n\ndata: [DONE]\n\n";
	run(endpoint_find("openai"), &record);
	asked = 0;
	assert_int_equal(record.row[0].state, REQ_DONE);
	assert_int_equal(record.row[0].ignored_output_tokens, 1);
	assert_true(record.row[0].flags & ROW_USAGE_REFUSED);
	assert_int_equal(record.row[0].n_events, 2);
	while ((mark = record_marks(&record, &record.row[0], mark)))
		assert_int_not_equal(mark->kind, MARK_TOKENS);
	record_release(&record);
}

/* An answer that exceeds a limit ends there: the transport is stopped, and gets no more of it. */
static void answers_without_end_are_cut(void **state)
{
	enum { EVENTS = 65537 };
	struct buf many = { 0 }, text = { 0 }, large = { 0 };
	struct {
		const char *read, *want;
		enum fail_category fail;
		unsigned status;
	} cases[3];

	(void)state;
	for (int i = 0; i < EVENTS; i++)
		buf_add_text(&many, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n");
	buf_add_text(&large, "data: ");
	while (large.len <= SSE_EVENT_BYTES_MAX)
		buf_add_text(&large, "01234567890123456789012345678901234567890123456789012345678901");
	cases[0].read = many.data;
	cases[0].want = "the answer exceeds the limit of 65536 events";
	cases[1].read = large.data;
	cases[1].want = "an event of the stream exceeds the limit of 16 MiB";
	cases[0].fail = cases[1].fail = FAIL_LIMIT;
	cases[0].status = cases[1].status = 200;
	cases[2].read = large.data;
	cases[2].want = "No\n";
	cases[2].fail = FAIL_STATUS;
	cases[2].status = 500;
	asked = 8;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct record record;

		answer.is_event_stream = true;
		answer.status = cases[i].status;
		answer.read[0] = cases[i].read;
		answer.read[1] = "data: [DONE]\n\n";
		run(endpoint_find("openai"), &record);
		assert_int_equal(record.row[0].state, REQ_FAILED);
		assert_int_equal(record.row[0].fail, cases[i].fail);
		assert_true(answer.is_cancelled);
		buf_reset(&text);
		record_error_of(&record, &record.row[0], &text);
		if (strncmp(text.data, cases[i].want, strlen(cases[i].want)) != 0)
			fail_msg("case %zu: %.100s", i, text.data);
		record_release(&record);
	}
	asked = 0;
	answer.status = 0;
	buf_release(&many);
	buf_release(&large);
	buf_release(&text);
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
		cmocka_unit_test(impossible_counts_are_refused),
		cmocka_unit_test(impossible_running_counts_leave_no_marks),
		cmocka_unit_test(answers_without_end_are_cut),
		cmocka_unit_test(answers_leave_what_they_had),
		cmocka_unit_test(other_text_is_kept_in_room_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
