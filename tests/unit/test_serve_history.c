/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations end to end over a server in memory: what each request says, when it is sent, and
 * what follows a failure. Cases S8, U1, U2, B1 and B2 of the specification are named.
 *
 * threads: yes
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "talk.h"

#define MS 1000000

#define CHAIN_OF_THREE                                                                    \
	{ { "one", -1, { -1 }, 0, 0, false }, { "two", 0, { 0, -1 }, 1, 0, false },       \
	  { "three", 1, { 1, -1 }, 2, 0, false } }

static const struct request_row *row_of(const struct talk *t, uint32_t session, uint16_t turn)
{
	for (uint32_t i = 0; i < t->plan.n; i++)
		if (t->plan.entry[i].session == session && t->plan.entry[i].turn == turn)
			return &t->record.row[i];
	fail_msg("session %u has no turn %u", session, turn);
	return NULL;
}

/* S8: the history has the server's own answers. */
static void answers_go_into_the_history(void **state)
{
	static const struct talk_turn chain[] = CHAIN_OF_THREE;
	struct talk t;

	(void)state;
	talk_init(&t, chain, 3, 1);
	talk_plan(&t);
	talk_run(&t);
	assert_int_equal(talk_server.n, 3);
	assert_string_equal(talk_messages(0), "[{\"role\": \"user\", \"content\": \"one\"}]");
	assert_string_equal(talk_messages(1), "[{\"role\": \"user\", \"content\": \"one\"}, "
			    "{\"role\": \"assistant\", \"content\": \"re:one\"}, "
			    "{\"role\": \"user\", \"content\": \"two\"}]");
	assert_string_equal(talk_messages(2), "[{\"role\": \"user\", \"content\": \"one\"}, "
			    "{\"role\": \"assistant\", \"content\": \"re:one\"}, "
			    "{\"role\": \"user\", \"content\": \"two\"}, "
			    "{\"role\": \"assistant\", \"content\": \"re:two\"}, "
			    "{\"role\": \"user\", \"content\": \"three\"}]");
	talk_release(&t);
}

static unsigned request_of(const char *last)
{
	for (unsigned i = 0; i < talk_server.n; i++)
		if (strcmp(talk_server.last[i], last) == 0)
			return i;
	fail_msg("nothing was sent that ends with '%s'", last);
	return 0;
}

/* B1: a root forks two branches, which inherit its history and its answer. */
static void branches_continue_their_root(void **state)
{
	static const struct talk_turn fork[] = {
		{ "system:s|root", -1, { -1 }, 0, 0, false },
		{ "a1|a2", 0, { 0, -1 }, 1, 0, false }, { "a3|a4", 1, { 1, -1 }, 2, 0, false },
		{ "b1", 0, { 0, -1 }, 1, 0, false }, { "b2", 3, { 3, -1 }, 2, 0, false },
	};
	static const char *const start = "[{\"role\": \"system\", \"content\": \"s\"}, "
		"{\"role\": \"user\", \"content\": \"root\"}, "
		"{\"role\": \"assistant\", \"content\": \"re:root\"}, ";
	char expected[1024];
	struct talk t;

	(void)state;
	talk_init(&t, fork, 5, 1);
	talk_plan(&t);
	talk_run(&t);
	assert_int_equal(talk_server.n, 5);
	snprintf(expected, sizeof(expected), "%s{\"role\": \"user\", \"content\": \"a1\"}, "
		 "{\"role\": \"user\", \"content\": \"a2\"}]", start);
	assert_string_equal(talk_messages(request_of("a2")), expected);
	snprintf(expected, sizeof(expected), "%s{\"role\": \"user\", \"content\": \"a1\"}, "
		 "{\"role\": \"user\", \"content\": \"a2\"}, "
		 "{\"role\": \"assistant\", \"content\": \"re:a2\"}, "
		 "{\"role\": \"user\", \"content\": \"a3\"}, "
		 "{\"role\": \"user\", \"content\": \"a4\"}]", start);
	assert_string_equal(talk_messages(request_of("a4")), expected);
	snprintf(expected, sizeof(expected), "%s{\"role\": \"user\", \"content\": \"b1\"}, "
		 "{\"role\": \"assistant\", \"content\": \"re:b1\"}, "
		 "{\"role\": \"user\", \"content\": \"b2\"}]", start);
	assert_string_equal(talk_messages(request_of("b2")), expected);
	/* Both branches are due at the same instant: when the root has ended. */
	assert_int_equal(t.record.row[1].due_ns, t.record.row[3].due_ns);
	talk_release(&t);
}

static struct talk_answer slow_spawns(unsigned n, const char *last)
{
	(void)n;
	return (struct talk_answer){ .delay_ns = strcmp(last, "x") == 0 ? 60 * MS :
				     strcmp(last, "y") == 0 ? 30 * MS : 0 };
}

/* B2: turn 1 does not wait for what turn 0 spawned; the join waits for all, continues turn 1. */
static void a_join_waits_for_all_and_continues_one(void **state)
{
	static const struct talk_turn graph[] = {
		{ "t0", -1, { -1 }, 0, 0, false }, { "x", -1, { 0, -1 }, 1, 0, false },
		{ "y", -1, { 0, -1 }, 1, 0, false }, { "t1", 0, { 0, -1 }, 1, 0, false },
		{ "t2", 3, { 1, 2, 3, -1 }, 2, 0, false },
	};
	struct talk t;
	const struct request_row *row;

	(void)state;
	talk_init(&t, graph, 5, 1);
	talk_plan(&t);
	talk_server.answer = slow_spawns;
	talk_run(&t);
	assert_int_equal(talk_server.n, 5);
	row = t.record.row;
	assert_true(row[3].sent_ns < row[1].end_ns && row[3].sent_ns < row[2].end_ns);
	assert_true(row[4].sent_ns >= row[1].end_ns && row[4].sent_ns >= row[2].end_ns &&
		    row[4].sent_ns >= row[3].end_ns);
	assert_string_equal(talk_messages(4), "[{\"role\": \"user\", \"content\": \"t0\"}, "
			    "{\"role\": \"assistant\", \"content\": \"re:t0\"}, "
			    "{\"role\": \"user\", \"content\": \"t1\"}, "
			    "{\"role\": \"assistant\", \"content\": \"re:t1\"}, "
			    "{\"role\": \"user\", \"content\": \"t2\"}]");
	assert_string_equal(talk_messages(request_of("x")),
			    "[{\"role\": \"user\", \"content\": \"x\"}]");
	talk_release(&t);
}

/* U1, a hundred times as fast: 200/s, 4 users, 3 turns, instant answers. */
static void users_keep_their_pace(void **state)
{
	static const struct talk_turn chain[] = CHAIN_OF_THREE;
	unsigned exact = 0;
	struct talk t;

	(void)state;
	talk_init(&t, chain, 3, 5);
	assert_int_equal(plan_users(&t.plan, t.w.sessions, 5, 4, 200, &t.e), 0);
	assert_int_equal(plan_sessions(&t.plan, t.w.sessions, &t.e), 0);
	plan_user_gaps(&t.plan, 4, 200);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(fabs(t.plan.entry[i].due_s - i * 0.005) < 1e-12);
	assert_true(fabs(t.plan.entry[4].due_s - 0.06) < 1e-12); /* three turns of slot 0 later */
	talk_run(&t);
	assert_int_equal(talk_server.n, 15);
	for (uint32_t user = 0; user < 5; user++)
		for (uint16_t turn = 1; turn < 3; turn++) {
			const struct request_row *before = row_of(&t, user, (uint16_t)(turn - 1));
			const struct request_row *row = row_of(&t, user, turn);

			/* 20 ms after the last send, unless its answer came later. */
			assert_true(row->due_ns >= before->sent_ns + 20 * MS - 1000);
			assert_true(row->sent_ns >= row->due_ns);
			exact += row->due_ns - before->sent_ns <= 20 * MS + 1000;
		}
	assert_in_range(exact, 5, 10); /* a machine that is busy may be late for some */
	talk_release(&t);
}

static struct talk_answer slow_first(unsigned n, const char *last)
{
	(void)last;
	return (struct talk_answer){ .delay_ns = n == 0 ? 650 * MS : 0 };
}

/* U2, a hundred times as fast: gap 75 ms, and the first answer takes 650 ms. */
static void a_late_answer_is_followed_at_once(void **state)
{
	static const struct talk_turn chain[] = CHAIN_OF_THREE;
	const struct request_row *row;
	struct talk t;

	(void)state;
	talk_init(&t, chain, 3, 1);
	assert_int_equal(plan_users(&t.plan, t.w.sessions, 1, 1, 1 / 0.075, &t.e), 0);
	assert_int_equal(plan_sessions(&t.plan, t.w.sessions, &t.e), 0);
	plan_user_gaps(&t.plan, 1, 1 / 0.075);
	talk_server.answer = slow_first;
	talk_run(&t);
	row = t.record.row;
	assert_true(row[0].end_ns - row[0].sent_ns >= 650 * MS - 1000);
	assert_true(row[1].due_ns >= row[0].end_ns);
	assert_true(row[1].due_ns - row[0].end_ns < 75 * MS); /* not another gap after the end */
	assert_true(llabs(row[2].due_ns - row[1].sent_ns - 75 * MS) < 1000 ||
		    row[2].due_ns >= row[1].end_ns);
	assert_true(row[2].due_ns >= row[1].sent_ns + 75 * MS - 1000);
	talk_release(&t);
}

static struct talk_answer second_fails(unsigned n, const char *last)
{
	(void)last;
	return (struct talk_answer){ .status = n == 1 ? 500 : 0 };
}

/* A failed turn: what follows it is cancelled, or continues with an empty answer. */
static void a_failed_turn_ends_its_conversation(void **state)
{
	static const struct talk_turn chain[] = CHAIN_OF_THREE;
	struct talk t;

	(void)state;
	for (int is_dropped = 0; is_dropped < 2; is_dropped++) {
		talk_init(&t, chain, 3, 1);
		talk_plan(&t);
		talk_server.answer = second_fails;
		t.opts.is_chain_dropped = is_dropped;
		talk_run(&t);
		assert_int_equal(talk_server.n, is_dropped ? 2 : 3);
		assert_int_equal(t.record.row[1].state, REQ_FAILED);
		assert_int_equal(t.record.row[2].state, is_dropped ? REQ_CANCELLED : REQ_DONE);
		assert_int_equal(t.record.row[2].flags & ROW_DROPPED, is_dropped ? ROW_DROPPED : 0);
		if (!is_dropped)
			assert_non_null(strstr(talk_messages(2), "{\"role\": \"assistant\", \"content\": "
					       "\"\"}, {\"role\": \"user\", \"content\": \"three\"}]"));
		talk_release(&t);
	}
}

/* --on-turn-failure retry: the same request again, a second later; its row is of that attempt. */
static void a_failed_turn_is_tried_again(void **state)
{
	static const struct talk_turn chain[] = CHAIN_OF_THREE;
	struct talk t;

	(void)state;
	talk_init(&t, chain, 3, 1);
	talk_plan(&t);
	talk_server.answer = second_fails;
	t.opts.is_chain_dropped = true;
	t.opts.retries = 3;
	talk_run(&t);
	assert_int_equal(talk_server.n, 4);
	assert_string_equal(talk_server.last[1], "two");
	assert_string_equal(talk_server.last[2], "two");
	assert_string_equal(talk_server.last[3], "three");
	assert_true(talk_server.at_ns[2] - talk_server.at_ns[1] >= 1000 * MS);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(t.record.row[i].state, REQ_DONE);
	assert_int_equal(t.record.row[1].attempts, 2);
	assert_int_equal(load_progress_total(&t.progress).failed, 0);
	assert_int_equal(load_progress_total(&t.progress).admitted, 3);
	talk_release(&t);
}

static struct talk_answer calls_a_tool(unsigned n, const char *last)
{
	(void)last;
	if (n == 0)
		return (struct talk_answer){ .calls =
			"[{\"index\":0,\"id\":\"call_7\",\"type\":\"function\",\"function\":{\"name\":"
			"\"find\",\"arguments\":\"{\\\"q\\\": 1}\"}},{\"index\":1,\"id\":\"call_8\","
			"\"function\":{\"name\":\"bad\",\"arguments\":\"{\"}}]" };
	return (struct talk_answer){ 0 };
}

/* Calls go into the history as they came, each answered by its id; bad arguments become {}. */
static void tool_calls_are_answered(void **state)
{
	static const struct talk_turn chain[] = CHAIN_OF_THREE;
	struct talk t;

	(void)state;
	talk_init(&t, chain, 2, 1);
	talk_plan(&t);
	talk_server.answer = calls_a_tool;
	talk_run(&t);
	assert_int_equal(talk_server.n, 2);
	assert_non_null(strstr(talk_messages(1),
		"{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"call_7\", "
		"\"type\": \"function\", \"function\": {\"name\": \"find\", \"arguments\": "
		"\"{\\\"q\\\": 1}\"}}, {\"id\": \"call_8\", \"type\": \"function\", \"function\": "
		"{\"name\": \"bad\", \"arguments\": \"{}\"}}]}, {\"role\": \"tool\", "
		"\"tool_call_id\": \"call_7\", \"content\": \"ok ok"));
	assert_non_null(strstr(talk_messages(1), "\"tool_call_id\": \"call_8\""));
	assert_int_equal(t.record.row[0].flags & ROW_BAD_CALL, ROW_BAD_CALL);
	talk_release(&t);
}

static struct talk_answer gives_a_token(unsigned n, const char *last)
{
	(void)last;
	return (struct talk_answer){ .head = n == 0 ? "X-Token: pod-3\r\n" : NULL };
}

/* The conversation's id in a header, and the router's token repeated. */
static void headers_keep_a_session_together(void **state)
{
	static const struct talk_turn chain[] = CHAIN_OF_THREE;
	struct talk t;

	(void)state;
	talk_init(&t, chain, 3, 1);
	talk_plan(&t);
	talk_server.answer = gives_a_token;
	t.how.session_header = "X-Session-ID";
	t.how.token_header = "x-token";
	talk_run(&t);
	assert_int_equal(talk_server.n, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_non_null(strstr(talk_server.request[i], "\r\nX-Session-ID: talk-0\r\n"));
		if (i == 0)
			assert_null(strstr(talk_server.request[i], "pod-3"));
		else
			assert_non_null(strstr(talk_server.request[i], "\r\nx-token: pod-3\r\n"));
	}
	talk_release(&t);
}

/* The time is over between two turns: what has begun is part of the run, what has not is not. */
static void sessions_cut_off_are_counted(void **state)
{
	static const struct talk_turn chain[] = {
		{ "one", -1, { -1 }, 0, 0, false }, { "two", 0, { 0, -1 }, 1, 3600, false },
	};
	struct talk t;

	(void)state;
	talk_init(&t, chain, 2, 2);
	talk_plan(&t);
	t.plan.entry[1].due_s = 3600;
	t.opts.admission_ns = 100 * MS;
	talk_run(&t);
	assert_int_equal(talk_server.n, 1);
	assert_int_equal(t.record.row[0].state, REQ_DONE);
	assert_int_equal(t.record.row[1].state, REQ_UNSENT);
	assert_int_equal(t.record.row[2].state, REQ_CANCELLED); /* the second turn of the first */
	assert_int_equal(t.record.row[3].state, REQ_UNSENT);
	talk_release(&t);
}

/* ---- closed loops ---- */

/* One client with two conversations in turn: it waits for its request, continues the other one. */
struct picker { uint32_t order[8]; unsigned n, calls; bool is_retried; };

static uint32_t pick(void *self, uint32_t client, uint32_t ended, const struct request_row *row,
		     double *gap_s)
{
	struct picker *p = self;

	assert_int_equal(client, 0);
	assert_true((ended == PLAN_NONE) == (row == NULL));
	*gap_s = 0.001;
	if (row && row->fail != FAIL_NONE && !p->is_retried) {
		p->is_retried = true;
		return ended;
	}
	return p->calls < p->n ? p->order[p->calls++] : PLAN_NONE;
}

static void a_client_picks_what_comes_next(void **state)
{
	static const struct talk_turn chain[] = CHAIN_OF_THREE;
	/* Entries as talk_plan has them: roots 0 1, then 2 3 of the first, 4 5 of the second. */
	struct picker p = { .order = { 1, 0, 4, 2, 5 }, .n = 5 };
	static const char *const expected[] = { "one", "one", "one", "two", "two", "three" };
	static const unsigned session[] = { 1, 0, 0, 1, 0, 1 };
	struct talk t;

	(void)state;
	talk_init(&t, chain, 3, 2);
	talk_plan(&t);
	t.plan.n_roots = 0;
	t.how.session_header = "X-Session-ID";
	talk_server.answer = second_fails;
	t.opts.n_clients = 1;
	t.opts.pick = pick;
	t.opts.pick_self = &p;
	talk_run(&t);
	assert_int_equal(talk_server.n, 6);
	for (unsigned i = 0; i < 6; i++) {
		char id[40];

		snprintf(id, sizeof(id), "X-Session-ID: talk-%u\r\n", session[i]);
		assert_string_equal(talk_server.last[i], expected[i]);
		assert_non_null(strstr(talk_server.request[i], id));
	}
	assert_int_equal(t.record.row[0].attempts, 2);
	assert_int_equal(t.record.row[0].parent, 1);
	assert_int_equal(t.record.row[3].state, REQ_CANCELLED); /* not picked */
	assert_non_null(strstr(talk_messages(5), "re:two"));
	talk_release(&t);
}

/* A warm-up's answer replaces that of an entry that is not sent. */
static void an_earlier_answer_is_continued(void **state)
{
	static const struct talk_turn chain[] = CHAIN_OF_THREE;
	struct picker p = { .order = { 1 }, .n = 1 };
	struct talk t;

	(void)state;
	talk_init(&t, chain, 2, 1);
	talk_plan(&t);
	t.plan.n_roots = 0;
	t.opts.n_clients = 1;
	t.opts.pick = pick;
	t.opts.pick_self = &p;
	talk_ready(&t);
	history_set_answer(t.history, 0, STR("warm \\\"up\\\""));
	assert_int_equal(load_run(&t.opts, &t.plan, &t.prepared, &t.record, 0, &t.progress,
				  &t.stats, NULL, &t.e), 0);
	assert_int_equal(talk_server.n, 1);
	assert_string_equal(talk_messages(0), "[{\"role\": \"user\", \"content\": \"one\"}, "
			    "{\"role\": \"assistant\", \"content\": \"warm \\\"up\\\"\"}, "
			    "{\"role\": \"user\", \"content\": \"two\"}]");
	talk_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_go_into_the_history),
		cmocka_unit_test(branches_continue_their_root),
		cmocka_unit_test(a_join_waits_for_all_and_continues_one),
		cmocka_unit_test(users_keep_their_pace),
		cmocka_unit_test(a_late_answer_is_followed_at_once),
		cmocka_unit_test(a_failed_turn_ends_its_conversation),
		cmocka_unit_test(a_failed_turn_is_tried_again),
		cmocka_unit_test(tool_calls_are_answered),
		cmocka_unit_test(headers_keep_a_session_together),
		cmocka_unit_test(sessions_cut_off_are_counted),
		cmocka_unit_test(a_client_picks_what_comes_next),
		cmocka_unit_test(an_earlier_answer_is_continued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
