/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serving_stream.c - answers of the simulator: pacing, lengths, faults, the engine model.
 * suite: alone
 * threads: yes
 */
#include "sim_rig.h"

static void test_stream_and_truth(void **state)
{
	struct rig r;
	struct reply reply;
	struct answer a;
	struct truths t;
	struct json_value *row, *sent;
	int64_t recv;
	(void)state;
	rig_init(&r);
	r.opts.ttft_ms = "30";
	r.opts.itl_ms = "7";
	rig_start(&r);
	reply = ask(&r, "POST", "/v1/completions", "x-request-id: r-1\r\n", ASK(5, ""));
	assert_int_equal(reply.status, 200);
	a = answer_read(&reply);
	assert_int_equal(a.events, 5);
	assert_true(a.is_done);
	assert_string_equal(a.finish, "length");
	assert_int_equal(a.prompt_tokens, 4); /* "one", then " two" as one word */
	assert_int_equal(a.output_tokens, 5);
	assert_int_equal(a.text.len, 20);
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, 1);
	row = truth_of(&t, "r-1");
	sent = json_get(row, "send_ns");
	recv = json_int(json_get(row, "recv_ns"), -1);
	assert_int_equal(sent->count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_true(at(sent, i) - recv >= 30 * MS + (int64_t)i * 7 * MS);
		assert_int_equal(at(json_get(row, "tokens"), i), 1);
	}
	assert_true(json_int(json_get(row, "end_ns"), -1) >= at(sent, 4));
	assert_int_equal(json_int(json_get(row, "output_tokens"), -1), 5);
	assert_int_equal(json_get(row, "fault")->kind, JSON_NULL);
	arena_release(&t.arena);
	answer_release(&a);
	reply_release(&reply);
	rig_release(&r);
}

/* Events that follow a grid point within 5 ms, when base lies on the grid of 40 ms. */
static int grid_count(const struct truths *t, int64_t base)
{
	int n = 0;

	for (size_t i = 0; i < t->n; i++)
		for (size_t k = 0; k < 8; k++) {
			int64_t off = at(json_get(t->row[i], "send_ns"), k) - base;

			n += ((off % (40 * MS)) + 40 * MS) % (40 * MS) < 5 * MS;
		}
	return n;
}

/* Three streams; of all their 24 events, how many were sent on one grid of bursts. */
static int events_on_grid(void)
{
	struct rig r;
	struct client c[3];
	struct truths t;
	int best = 0;

	rig_init(&r);
	r.opts.ttft_ms = "5";
	r.opts.itl_ms = NULL;
	r.opts.burst_ms = 40;
	rig_start(&r);
	for (size_t i = 0; i < COUNT(c); i++) {
		c[i] = client_open(&r);
		client_ask(&c[i], "POST", "/v1/completions", "", ASK(8, ""));
		usleep(13000);
	}
	for (size_t i = 0; i < COUNT(c); i++) {
		struct reply reply = client_read(&c[i]);

		assert_int_equal(reply.status, 200);
		reply_release(&reply);
		client_close(&c[i]);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, 3);
	/* Whichever event was in time marks the grid. */
	for (size_t i = 0; i < t.n; i++)
		for (size_t k = 0; k < 8; k++) {
			int on_grid = grid_count(&t, at(json_get(t.row[i], "send_ns"), k));

			best = on_grid > best ? on_grid : best;
		}
	arena_release(&t.arena);
	rig_release(&r);
	return best;
}

/* A busy machine sends late: one quiet moment of several is enough. */
static void test_burst_grid(void **state)
{
	int best = 0;

	(void)state;
	for (int tries = 0; tries < 10 && best < 14; tries++)
		best = events_on_grid();
	assert_in_range(best, 14, 24);
}

static void test_chat_reasoning_and_wide_events(void **state)
{
	struct rig r;
	struct reply reply;
	struct answer a;
	struct truths t;
	static const int64_t tokens[] = { 0, 3, 1, 3, 3, 1 };
	(void)state;
	rig_init(&r);
	r.opts.reasoning = 4;
	r.opts.tokens_per_event = 3;
	rig_start(&r);
	reply = ask(&r, "POST", "/v1/chat/completions", "x-request-id: c\r\n", CHAT(11, ""));
	assert_non_null(strstr(reply.body.data,
		"\"delta\":{\"role\":\"assistant\",\"content\":\"\"}"));
	a = answer_read(&reply);
	assert_int_equal(a.events, 6); /* the role, then 3 + 1 reasoning, 3 + 3 + 1 answer */
	assert_int_equal(a.reasoning.len, 16);
	assert_int_equal(a.text.len, 28);
	assert_int_equal(a.output_tokens, 11);
	assert_int_equal(a.prompt_tokens, 26);
	rig_stop(&r);
	t = truths_read(r.truth);
	for (size_t i = 0; i < COUNT(tokens); i++)
		assert_int_equal(at(json_get(truth_of(&t, "c"), "tokens"), i), tokens[i]);
	arena_release(&t.arena);
	answer_release(&a);
	reply_release(&reply);
	rig_release(&r);
}

static void test_whole_answers(void **state)
{
	static const char wanted[] =
		"\"reasoning_content\":null,\"content\":\"";
	struct rig r;
	struct reply whole, streamed, chat;
	struct answer a;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	whole = ask(&r, "POST", "/v1/completions", "x-request-id: w\r\n",
		    "{\"prompt\":\"one two\",\"max_tokens\":3}");
	streamed = ask(&r, "POST", "/v1/completions", "x-request-id: w\r\n", ASK(3, ""));
	chat = ask(&r, "POST", "/v1/chat/completions", "",
		   "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}");
	a = answer_read(&streamed);
	assert_int_equal(whole.status, 200);
	assert_non_null(strstr(whole.body.data, a.text.data)); /* same prompt, same answer */
	assert_non_null(strstr(whole.body.data,
		"{\"id\":\"cmpl-w\",\"object\":\"text_completion\","));
	assert_non_null(strstr(whole.body.data,
		"\"finish_reason\":\"length\",\"stop_reason\":null}],"
		"\"usage\":{\"prompt_tokens\":4,\"total_tokens\":7,\"completion_tokens\":3}}"));
	assert_non_null(strstr(chat.body.data, wanted));
	assert_non_null(strstr(chat.body.data, "\"finish_reason\":\"stop\""));
	rig_stop(&r);
	answer_release(&a);
	reply_release(&whole);
	reply_release(&streamed);
	reply_release(&chat);
	rig_release(&r);
}

/* stop, min_tokens, natural lengths: what the answer must be given the unstopped one. */
static void test_lengths(void **state)
{
	struct rig r;
	struct reply reply;
	struct answer full, a;
	char word[8], body[400];
	static const struct {
		const char *more;
		size_t text, events;
		const char *finish;
	} rows[] = {
		{ ",\"stop\":\"%s\"", 8, 3, "stop" },
		{ ",\"stop\":[\"nothing of this\",\"%s\"]", 8, 3, "stop" },
		{ ",\"stop\":\"%s\",\"include_stop_str_in_output\":true", 12, 3, "stop" },
		{ ",\"stop\":\"%s\",\"min_tokens\":3", 32, 8, "length" },
		{ ",\"ignore_eos\":true%.0s", 32, 8, "length" },
	};
	(void)state;
	rig_init(&r);
	rig_start(&r);
	reply = ask(&r, "POST", "/v1/completions", "", ASK(8, ""));
	full = answer_read(&reply);
	reply_release(&reply);
	assert_int_equal(full.text.len, 32);
	snprintf(word, sizeof(word), "%.4s", full.text.data + 8);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int n = snprintf(body, sizeof(body), "{\"prompt\":\"one two\",\"max_tokens\":8,"
				 "\"stream\":true,\"stream_options\":{\"include_usage\":true}");

		/* The format is a row of the table above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		n += snprintf(body + n, sizeof(body) - (size_t)n, rows[i].more, word);
#pragma GCC diagnostic pop
		snprintf(body + n, sizeof(body) - (size_t)n, "}");
		reply = ask(&r, "POST", "/v1/completions", "", body);
		a = answer_read(&reply);
		assert_int_equal(a.text.len, rows[i].text);
		assert_memory_equal(a.text.data, full.text.data, a.text.len);
		assert_int_equal(a.events, rows[i].events);
		assert_int_equal(a.output_tokens, rows[i].events);
		assert_string_equal(a.finish, rows[i].finish);
		if (*rows[i].finish == 's')
			assert_string_equal(a.stop, word);
		answer_release(&a);
		reply_release(&reply);
	}
	rig_stop(&r);
	answer_release(&full);
	rig_release(&r);
}

static void test_natural_length(void **state)
{
	static const struct { const char *body, *finish; int64_t tokens; } rows[] = {
		{ ASK(20, ""), "stop", 6 },
		{ ASK(4, ""), "length", 4 },
		{ ASK(20, ",\"ignore_eos\":true"), "length", 20 },
		{ ASK(20, ",\"min_tokens\":9"), "stop", 9 },
	};
	struct rig r;
	(void)state;
	rig_init(&r);
	r.opts.output_len = "6";
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reply reply = ask(&r, "POST", "/v1/completions", "", rows[i].body);
		struct answer a = answer_read(&reply);

		assert_int_equal(a.output_tokens, rows[i].tokens);
		assert_string_equal(a.finish, rows[i].finish);
		answer_release(&a);
		reply_release(&reply);
	}
	rig_stop(&r);
	rig_release(&r);
}

static const char *const fault_specs[] = {
	"status=503:id=status", "reset@3:id=reset", "close@3:id=close",
	"malformed@2:id=malformed",
	"drop-usage:id=drop", "no-done:id=nodone", "error-event@3:id=error", "crlf:id=crlf",
	"comments:id=comments", "split:id=split", "coalesce=2:id=coalesce",
	"stall@2=60ms:id=stall", "slow-start=60ms:id=slow",
};
static const struct {
	const char *id;
	unsigned status;
	bool is_cut, is_done;
	size_t events, broken, errors;
	int64_t usage;       /* -1: none */
	size_t sent;         /* events in the truth */
	const char *fault, *finish;
} fault_rows[] = {
	{ "none", 200, false, true, 5, 0, 0, 5, 5, "", "length" },
	{ "status", 503, false, false, 0, 0, 0, -1, 0, "status=503:id=status", "error" },
	{ "reset", 200, true, false, 2, 0, 0, -1, 2, "reset@3:id=reset", "error" },
	{ "close", 200, true, false, 2, 0, 0, -1, 2, "close@3:id=close", "error" },
	{ "malformed", 200, false, true, 4, 1, 0, 5, 5, "malformed@2:id=malformed",
	  "length" },
	{ "drop", 200, false, true, 5, 0, 0, -1, 5, "drop-usage:id=drop", "length" },
	{ "nodone", 200, false, false, 5, 0, 0, 5, 5, "no-done:id=nodone", "length" },
	{ "error", 200, false, true, 2, 0, 1, -1, 2, "error-event@3:id=error", "error" },
	{ "crlf", 200, false, true, 5, 0, 0, 5, 5, "crlf:id=crlf", "length" },
	{ "comments", 200, false, true, 5, 0, 0, 5, 5, "comments:id=comments", "length" },
	{ "split", 200, false, true, 5, 0, 0, 5, 5, "split:id=split", "length" },
	{ "coalesce", 200, false, true, 5, 0, 0, 5, 5, "coalesce=2:id=coalesce", "length" },
	{ "stall", 200, false, true, 5, 0, 0, 5, 5, "stall@2=60ms:id=stall", "length" },
	{ "slow", 200, false, true, 5, 0, 0, 5, 5, "slow-start=60ms:id=slow", "length" },
};

static void faults_judge(const struct rig *r)
{
	struct truths t = truths_read(r->truth);
	struct json_value *sent;

	assert_int_equal(t.n, COUNT(fault_rows));
	for (size_t i = 0; i < COUNT(fault_rows); i++) {
		struct json_value *row = truth_of(&t, fault_rows[i].id);

		assert_int_equal(json_get(row, "send_ns")->count, fault_rows[i].sent);
		assert_true(str_is(json_text(json_get(row, "fault"), (struct str){ 0 }),
			fault_rows[i].fault));
		assert_true(str_is(json_text(json_get(row, "finish"), (struct str){ 0 }),
			fault_rows[i].finish));
		assert_int_equal(json_int(json_get(row, "status"), 0), fault_rows[i].status);
	}
	sent = json_get(truth_of(&t, "stall"), "send_ns");
	assert_true(at(sent, 1) - json_int(json_get(truth_of(&t, "stall"), "recv_ns"), 0) >=
		    66 * MS);
	sent = json_get(truth_of(&t, "slow"), "send_ns");
	assert_true(at(sent, 0) - json_int(json_get(truth_of(&t, "slow"), "recv_ns"), 0) >=
		    61 * MS);
	sent = json_get(truth_of(&t, "coalesce"), "send_ns");
	assert_true(at(sent, 0) == at(sent, 1) && at(sent, 1) < at(sent, 2) &&
		    at(sent, 2) == at(sent, 3) && at(sent, 3) < at(sent, 4));
	arena_release(&t.arena);
}

static void test_faults(void **state)
{
	struct rig r;
	(void)state;
	rig_init(&r);
	r.opts.itl_ms = "5";
	r.opts.faults = fault_specs;
	r.opts.fault_count = COUNT(fault_specs);
	rig_start(&r);
	for (size_t i = 0; i < COUNT(fault_rows); i++) {
		struct reply reply;
		struct answer a;
		char header[64];

		print_message("fault %s\n", fault_rows[i].id);
		snprintf(header, sizeof(header), "X-Request-Id: %s\r\n", fault_rows[i].id);
		reply = ask(&r, "POST", "/v1/completions", header, ASK(5, ""));
		a = answer_read(&reply);
		assert_int_equal(reply.status, fault_rows[i].status);
		assert_int_equal(reply.is_cut, fault_rows[i].is_cut);
		assert_int_equal(a.is_done, fault_rows[i].is_done);
		/* A reset may overtake bytes the client has not read yet. */
		if (strcmp(fault_rows[i].id, "reset") == 0)
			assert_true(reply.is_reset && a.events <= fault_rows[i].events);
		else
			assert_int_equal(a.events, fault_rows[i].events);
		assert_int_equal(a.broken, fault_rows[i].broken);
		assert_int_equal(a.errors, fault_rows[i].errors);
		assert_int_equal(a.output_tokens, fault_rows[i].usage);
		answer_release(&a);
		reply_release(&reply);
	}
	rig_stop(&r);
	faults_judge(&r);
	rig_release(&r);
}

static void test_engine_serves(void **state)
{
	struct rig r;
	struct client c[3];
	struct truths t;
	struct json_value *first, *last;
	(void)state;
	rig_init(&r);
	r.opts.ttft_ms = r.opts.itl_ms = NULL;
	r.opts.max_num_seqs = 2;
	r.opts.cost = (struct engine_cost){ .prefill_base_us = 1000,
		.prefill_us_per_token = 10, .decode_base_us = 4000, .decode_us_per_seq = 100 };
	rig_start(&r);
	assert_false(sim_is_oracle(r.sim));
	for (int i = 0; i < 3; i++) {
		char header[32];

		c[i] = client_open(&r);
		snprintf(header, sizeof(header), "x-request-id: e%d\r\n", i);
		client_ask(&c[i], "POST", "/v1/completions", header, ASK(10, ""));
		usleep(500);
	}
	for (int i = 0; i < 3; i++) {
		struct reply reply = client_read(&c[i]);
		struct answer a = answer_read(&reply);

		assert_int_equal(a.events, 10);
		answer_release(&a);
		reply_release(&reply);
		client_close(&c[i]);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	first = json_get(truth_of(&t, "e0"), "send_ns");
	last = json_get(truth_of(&t, "e2"), "send_ns");
	/* Only two at a time: the third starts after the first has ended. */
	assert_true(at(last, 0) > at(first, 9));
	/* A prefill step, then nine decode steps of at least 4.1 ms. */
	assert_true(at(first, 9) - json_int(json_get(truth_of(&t, "e0"), "recv_ns"), 0) >=
		    1 * MS + 9 * 4100000);
	arena_release(&t.arena);
	rig_release(&r);
}

/* Two engines with one place each: two answers at a time. */
static void test_engines_share_requests(void **state)
{
	static const char *const ids[] = { "e0", "e1", "e2" };
	int64_t begin[3], end[3];
	struct client c[3];
	struct truths t;
	struct rig r;
	(void)state;
	rig_init(&r);
	r.opts.ttft_ms = r.opts.itl_ms = NULL;
	r.opts.max_num_seqs = 1;
	r.opts.engines = 2;
	r.opts.cost = (struct engine_cost){ .prefill_base_us = 1000, .decode_base_us = 4000 };
	rig_start(&r);
	for (int i = 0; i < 3; i++) {
		char header[32];

		c[i] = client_open(&r);
		snprintf(header, sizeof(header), "x-request-id: %s\r\n", ids[i]);
		client_ask(&c[i], "POST", "/v1/completions", header, ASK(100, ""));
		usleep(500);
	}
	for (int i = 0; i < 3; i++) {
		struct reply reply = client_read(&c[i]);

		reply_release(&reply);
		client_close(&c[i]);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	for (int i = 0; i < 3; i++) {
		struct json_value *sent = json_get(truth_of(&t, ids[i]), "send_ns");

		begin[i] = at(sent, 0);
		end[i] = at(sent, 99);
	}
	assert_true(begin[1] < end[0]);
	assert_true(begin[2] > (end[0] < end[1] ? end[0] : end[1]));
	arena_release(&t.arena);
	rig_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream_and_truth),
		cmocka_unit_test(test_burst_grid),
		cmocka_unit_test(test_chat_reasoning_and_wide_events),
		cmocka_unit_test(test_whole_answers),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_natural_length),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_engine_serves),
		cmocka_unit_test(test_engines_share_requests),
	};
	return cmocka_run_group_tests_name("sim stream", tests, NULL, NULL);
}
