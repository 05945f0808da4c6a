/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serving_answers.c -
 * answers of the simulator that are not one text of words: several choices,
 * tool calls and the histories they make, adapters, priorities.
 *
 * threads: yes
 */
#include "sim_got.h"

#include "core/json/write.h"

/* ---- choices ---- */

static void choices_check(const struct rig *r, bool is_chat)
{
	const char *const tokens = "\"max_tokens\":6";
	struct got one = get(r, is_chat, true, "one", tokens);

	for (int is_streamed = 0; is_streamed < 2; is_streamed++) {
		struct got g = get(r, is_chat, is_streamed, is_streamed ? "s" : "w",
				   "\"max_tokens\":6,\"n\":3");

		assert_int_equal(g.status, 200);
		assert_int_equal(g.choices, 3);
		assert_int_equal(g.prompt_tokens, one.prompt_tokens);
		assert_int_equal(g.output_tokens, 18);
		assert_string_equal(g.choice[0].text.data, one.choice[0].text.data);
		assert_string_not_equal(g.choice[0].text.data, g.choice[1].text.data);
		assert_string_not_equal(g.choice[1].text.data, g.choice[2].text.data);
		for (size_t i = 0; i < 3; i++) {
			assert_string_equal(g.choice[i].finish, "length");
			assert_int_equal(g.choice[i].roles, is_chat);
			assert_int_equal(g.choice[i].events, is_streamed ? 6 + is_chat : 1);
		}
		got_release(&g);
	}
	got_release(&one);
}

static void test_several_choices(void **state)
{
	struct truths t;
	(void)state;
	for (int is_oracle = 0; is_oracle < 2; is_oracle++) {
		struct json_value *row, *list;
		struct rig r;

		rig_init(&r);
		if (!is_oracle)
			quick_engine(&r);
		rig_start(&r);
		choices_check(&r, false);
		choices_check(&r, true);
		rig_stop(&r);
		t = truths_read(r.truth);
		row = truth_of(&t, "s");
		list = json_get(row, "choices");
		assert_int_equal(json_int(json_get(row, "output_tokens"), 0), 18);
		assert_true(list && list->count == 3);
		assert_int_equal(json_int(json_get(&list->item[2], "output_tokens"), 0), 6);
		assert_null(json_get(truth_of(&t, "one"), "choices"));
		arena_release(&t.arena);
		rig_release(&r);
	}
}

/* A client that leaves gives up all of them, and others are served on. */
static void test_choices_end_together(void **state)
{
	struct rig r;
	struct client c;
	struct reply part = { 0 };
	struct truths t;
	struct got g;
	(void)state;
	rig_init(&r);
	r.opts.itl_ms = "50";
	rig_start(&r);
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "x-request-id: left\r\n",
		   "{\"prompt\":\"a\",\"max_tokens\":1000,\"n\":4,\"stream\":true}");
	assert_true(client_more(&c, &part));
	client_close(&c);
	g = get(&r, false, true, "then", "\"max_tokens\":2,\"n\":2");
	assert_int_equal(g.output_tokens, 4);
	got_release(&g);
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_true(str_is(json_text(json_get(truth_of(&t, "left"), "finish"), STR("")), "abort"));
	assert_int_equal(json_get(truth_of(&t, "left"), "choices")->count, 4);
	arena_release(&t.arena);
	rig_release(&r);
}

/* ---- tools ---- */

#define PARAMETERS "{\"type\":\"object\",\"required\":[\"city\"],\"additionalProperties\":false," \
	"\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"}}}"
#define TOOLS "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\"," \
	"\"parameters\":" PARAMETERS "}},{\"type\":\"function\",\"function\":{\"name\":\"now\"}}]"
#define NAMED "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"weather\"}}"

/* How many of its calls have arguments that keep to their tool's parameters. */
static size_t calls_right(const struct got *g)
{
	const struct got_choice *c = &g->choice[0];
	size_t right = 0;
	char why[256];

	for (size_t i = 0; i < c->calls; i++) {
		bool is_weather = strcmp(c->call[i].name, "weather") == 0;

		assert_true(is_weather || strcmp(c->call[i].name, "now") == 0);
		assert_true(strncmp(c->call[i].id, "chatcmpl-tool-", 14) == 0);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(c->call[i].id, c->call[k].id);
		right += verdict(is_weather ? "{\"json\":" PARAMETERS "}" : "{\"json\":{}}",
				 buf_str(&c->call[i].arguments), why) == CONSTRAINT_KEPT;
	}
	return right;
}

static void test_tool_calls(void **state)
{
	static const char *const choices[] = { "\"tool_choice\":\"auto\"",
					       "\"tool_choice\":\"required\"", NAMED };
	struct rig r;
	size_t several = 0;
	(void)state;
	rig_init(&r);
	r.opts.tool_calls_max = 3;
	rig_start(&r);
	for (int i = 0; i < 60; i++) {
		char members[1024], id[16];
		struct got g;

		snprintf(members, sizeof(members), "\"max_tokens\":900,%s,%s%s", TOOLS, choices[i % 3],
			 i % 5 == 0 ? ",\"parallel_tool_calls\":false" : "");
		snprintf(id, sizeof(id), "t%d", i);
		g = get(&r, true, i & 1, id, members);
		assert_int_equal(g.status, 200);
		assert_true(g.choice[0].calls >= 1 && g.choice[0].calls <= (i % 5 ? 3 : 1));
		assert_int_equal(calls_right(&g), g.choice[0].calls);
		assert_string_equal(g.choice[0].finish, "tool_calls");
		assert_int_equal(g.choice[0].text.len, 0);
		if (i % 3 == 2)
			assert_string_equal(g.choice[0].call[0].name, "weather");
		if (i & 1)
			assert_true(g.choice[0].call[0].deltas > 1);
		several += g.choice[0].calls > 1;
		got_release(&g);
	}
	assert_true(several > 0);
	rig_stop(&r);
	rig_release(&r);
}

/* A limit within a call's name leaves no call, one within its arguments leaves a part of them. */
static void test_calls_are_cut(void **state)
{
	struct rig r;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	for (int is_streamed = 0; is_streamed < 2; is_streamed++)
		for (int n = 3; n < 40; n += 9) {
			size_t head = sizeof("<|tool_call|>weather\n") - 1; /* a token a byte */
			char members[1024];
			struct got g;

			snprintf(members, sizeof(members), "\"max_tokens\":%d,%s,%s", n, TOOLS, NAMED);
			g = get(&r, true, is_streamed, "c", members);
			assert_int_equal(g.output_tokens, n);
			assert_string_equal(g.choice[0].finish, "length");
			assert_int_equal(g.choice[0].text.len, 0);
			assert_int_equal(g.choice[0].calls, (size_t)n >= head);
			if ((size_t)n > head)
				assert_true(g.choice[0].call[0].arguments.data[0] == '{');
			got_release(&g);
		}
	rig_stop(&r);
	rig_release(&r);
}

/* Shares: of answers with calls where the model decides, and of calls that are wrong. */
static void test_shares_of_calls(void **state)
{
	size_t called = 0, wrong = 0, told = 0;
	struct truths t;
	struct rig r;
	(void)state;
	rig_init(&r);
	quick_engine(&r);
	r.opts.tool_call_share = 0.5;
	r.opts.tool_call_errors = 0.4;
	rig_start(&r);
	for (int i = 0; i < 100; i++) {
		char id[16];
		struct got g;

		snprintf(id, sizeof(id), "t%d", i);
		g = get(&r, true, true, id, "\"max_tokens\":400," TOOLS);
		called += g.choice[0].calls > 0;
		wrong += g.choice[0].calls - calls_right(&g);
		assert_true((g.choice[0].text.len > 0) == (g.choice[0].calls == 0));
		got_release(&g);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	for (size_t i = 0; i < t.n; i++) {
		struct json_value *list = json_get(t.row[i], "choices");

		told += list ? (size_t)json_int(json_get(list->item, "malformed"), 0) : 0;
	}
	assert_true(called > 25 && called < 75);
	assert_true(wrong > 0 && wrong < called);
	assert_int_equal(told, wrong);
	arena_release(&t.arena);
	rig_release(&r);
}

/* ---- histories ---- */

/* One more message of a history, JSON. */
static void message_add(struct buf *history, const char *role, const char *rest)
{
	buf_printf(history, "%s{\"role\":\"%s\",%s}", history->len ? "," : "", role, rest);
}

/* Asks with the history; what was cached must be all whole blocks of what was there before. */
static struct got turn(const struct rig *r, const struct buf *history, const char *more,
		       uint32_t *known)
{
	struct buf members = { 0 };
	struct got g;

	buf_printf(&members, "\"max_tokens\":300,%s\"messages\":[%s]", more, history->data);
	g = get(r, true, true, "h", members.data);
	assert_int_equal(g.status, 200);
	assert_int_equal(g.cached_tokens, *known / 16 * 16);
	*known = (uint32_t)(g.prompt_tokens + g.output_tokens);
	buf_release(&members);
	return g;
}

/*
 * A question, a call, its tool's answer, a text, a question in parts: each turn finds everything
 * before it in the cache, what was generated included.
 */
static void history_check(const struct rig *r, uint32_t known)
{
	struct buf history = { 0 }, rest = { 0 };
	struct got g;

	message_add(&history, "user", "\"content\":\" how was the day and what came out of it\"");
	g = turn(r, &history, TOOLS "," NAMED ",", &known);
	assert_int_equal(g.choice[0].calls, 1);
	buf_printf(&rest, "\"content\":null,\"tool_calls\":[{\"id\":\"%s\",\"type\":\"function\","
		   "\"function\":{\"name\":\"weather\",\"arguments\":", g.choice[0].call[0].id);
	json_quote(&rest, buf_str(&g.choice[0].call[0].arguments), true);
	buf_add_text(&rest, "}}]");
	message_add(&history, "assistant", rest.data);
	message_add(&history, "tool", "\"tool_call_id\":\"x\",\"content\":\" sun and some rain\"");
	got_release(&g);
	g = turn(r, &history, TOOLS ",\"tool_choice\":\"none\",", &known);
	assert_int_equal(g.choice[0].calls, 0);
	buf_reset(&rest);
	buf_printf(&rest, "\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]", g.choice[0].text.data);
	message_add(&history, "assistant", rest.data);
	message_add(&history, "user", "\"content\":[{\"type\":\"text\",\"text\":\" and one\"},"
		    "{\"type\":\"text\",\"text\":\" more thing\"}]");
	got_release(&g);
	g = turn(r, &history, TOOLS ",\"tool_choice\":\"none\",", &known);
	got_release(&g);
	buf_release(&history);
	buf_release(&rest);
}

static void test_histories_are_cached(void **state)
{
	(void)state;
	for (int is_oracle = 0; is_oracle < 2; is_oracle++) {
		struct rig r;

		rig_init(&r);
		r.opts.is_cached_told = true;
		if (!is_oracle)
			quick_engine(&r);
		rig_start(&r);
		history_check(&r, 0);
		rig_stop(&r);
		rig_release(&r);
	}
}

/* ---- adapters, priorities ---- */

static void test_adapters(void **state)
{
	static const struct sim_lora lora[] = { { "sql", "/a/sql", NULL }, { "chat", "/a/chat", "b" } };
	struct reply reply;
	struct client c;
	struct got g;
	struct rig r;
	(void)state;
	rig_init(&r);
	r.opts.itl_ms = "20";
	r.opts.lora = lora;
	r.opts.lora_count = 2;
	r.opts.loras_max = 4;
	rig_start(&r);
	g = get(&r, true, true, "a", "\"max_tokens\":2,\"model\":\"sql\"");
	assert_string_equal(g.model, "sql");
	got_release(&g);
	g = get(&r, true, true, "a", "\"max_tokens\":2,\"model\":\"sql2\"");
	assert_int_equal(g.status, 404);
	got_release(&g);
	reply = ask(&r, "GET", "/v1/models", "", "");
	assert_non_null(strstr(reply.body.data, "\"id\":\"sql\",\"object\":\"model\""));
	assert_non_null(strstr(reply.body.data, "\"root\":\"/a/sql\",\"parent\":\"sim\""));
	assert_non_null(strstr(reply.body.data, "\"root\":\"/a/chat\",\"parent\":\"b\""));
	reply_release(&reply);
	c = client_open(&r);
	client_ask(&c, "POST", "/v1/completions", "",
		   "{\"prompt\":\"a\",\"max_tokens\":5000,\"model\":\"chat\",\"stream\":true}");
	reply = (struct reply){ 0 };
	assert_true(client_more(&c, &reply));
	reply = ask(&r, "GET", "/metrics", "", "");
	assert_non_null(strstr(reply.body.data, "vllm:lora_requests_info{max_lora=\"4\","
			       "running_lora_adapters=\"chat\",waiting_lora_adapters=\"\"} "));
	reply_release(&reply);
	client_close(&c);
	rig_stop(&r);
	rig_release(&r);
}

/* The sample of that name in /metrics. */
static double metric(const struct rig *r, const char *name)
{
	struct reply reply = ask(r, "GET", "/metrics", "", "");
	const char *at = reply.body.data;
	double v;

	while ((at = strstr(at, name)) && (at[-1] != '\n' || at[strlen(name)] != '{'))
		at++;
	assert_non_null(at);
	v = strtod(strstr(at, "} ") + 2, NULL);
	reply_release(&reply);
	return v;
}

/* Requests that all wait before the engine begins; with their truth the server has stopped. */
static struct truths serve_together(struct rig *r, const char *const body[], size_t n)
{
	struct client c[4];
	struct reply reply = ask(r, "POST", "/sleep", "", "");

	assert_true(n <= COUNT(c));
	reply_release(&reply);
	for (size_t i = 0; i < n; i++) {
		char head[48];

		snprintf(head, sizeof(head), "x-request-id: p%zu\r\n", i);
		c[i] = client_open(r);
		client_ask(&c[i], "POST", "/v1/completions", head, body[i]);
		while (metric(r, "vllm:num_requests_waiting") < (double)i + 1)
			continue;
	}
	reply = ask(r, "POST", "/wake_up", "", "");
	reply_release(&reply);
	for (size_t i = 0; i < n; i++) {
		reply = client_read(&c[i]);
		assert_int_equal(reply.status, 200);
		reply_release(&reply);
		client_close(&c[i]);
	}
	rig_stop(r);
	return truths_read(r->truth);
}

/* When the token of request pI was sent. */
static int64_t sent_ns(const struct truths *t, size_t i, size_t token)
{
	char id[32];

	snprintf(id, sizeof(id), "p%zu", i);
	return at(json_get(truth_of(t, id), "send_ns"), token);
}

/* One at a time: of the waiting requests, the most urgent is served first. */
static void test_priority_decides(void **state)
{
	static const char *const body[] = {
		"{\"prompt\":\"a\",\"max_tokens\":1,\"priority\":5}",
		"{\"prompt\":\"a\",\"max_tokens\":1,\"priority\":0}",
		"{\"prompt\":\"a\",\"max_tokens\":1,\"priority\":-5}",
	};
	struct truths t;
	struct rig r;
	(void)state;
	rig_init(&r);
	quick_engine(&r);
	r.opts.is_by_priority = true;
	r.opts.max_num_seqs = 1;
	rig_start(&r);
	t = serve_together(&r, body, COUNT(body));
	assert_true(sent_ns(&t, 2, 0) < sent_ns(&t, 1, 0) && sent_ns(&t, 1, 0) < sent_ns(&t, 0, 0));
	arena_release(&t.arena);
	rig_release(&r);
}

/* With room for one adapter in a batch, a request of another one waits until it has ended. */
static void test_adapters_in_turn(void **state)
{
	static const struct sim_lora lora[] = { { "sql", "/a/sql", NULL }, { "chat", "/a/chat", NULL } };
	static const char *const body[] = {
		"{\"prompt\":\"a\",\"max_tokens\":3,\"stream\":true,\"model\":\"sql\"}",
		"{\"prompt\":\"a\",\"max_tokens\":3,\"stream\":true,\"model\":\"chat\"}",
	};

	(void)state;
	for (int64_t adapters = 1; adapters <= 2; adapters++) {
		struct truths t;
		struct rig r;

		rig_init(&r);
		quick_engine(&r);
		r.opts.lora = lora;
		r.opts.lora_count = COUNT(lora);
		r.opts.loras_max = adapters;
		rig_start(&r);
		t = serve_together(&r, body, COUNT(body));
		assert_int_equal(sent_ns(&t, 1, 0) > sent_ns(&t, 0, 2), adapters == 1);
		arena_release(&t.arena);
		rig_release(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_choices),
		cmocka_unit_test(test_choices_end_together),
		cmocka_unit_test(test_tool_calls),
		cmocka_unit_test(test_calls_are_cut),
		cmocka_unit_test(test_shares_of_calls),
		cmocka_unit_test(test_histories_are_cached),
		cmocka_unit_test(test_adapters),
		cmocka_unit_test(test_priority_decides),
		cmocka_unit_test(test_adapters_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
