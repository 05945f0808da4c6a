/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sim_answers.c - answers of the simulator that are not one text of words: several choices,
 * text that keeps to a constraint or breaks it on purpose, tool calls, adapters, priorities.
 */
#include "sim_rig.h"

#include "constrain/constrain.h"
#include "json/write.h"
#include "token/tokenizer.h"

#define CHOICES_MAX 8
#define CALLS_MAX 4

/* ---- answers, streamed or not ---- */

struct got_call {
	char id[64], name[32];
	struct buf arguments;
	size_t deltas;
};

struct got_choice {
	struct buf text;
	char finish[16];
	size_t events, roles;
	struct got_call call[CALLS_MAX];
	size_t calls;
};

struct got {
	unsigned status;
	char error[512], model[32];
	struct got_choice choice[CHOICES_MAX];
	size_t choices;
	int64_t prompt_tokens, output_tokens, cached_tokens;
};

static void copy(char *out, size_t n, struct json_value *v)
{
	struct str text = json_text(v, (struct str){ 0 });

	if (v)
		snprintf(out, n, "%.*s", (int)text.n, text.p ? text.p : "");
}

static void calls_add(struct got_choice *c, struct json_value *list)
{
	for (size_t i = 0; list && i < list->count; i++) {
		struct json_value *v = &list->item[i], *f = json_get(v, "function");
		size_t at = (size_t)json_int(json_get(v, "index"), (int64_t)i);
		struct got_call *call = &c->call[at];

		assert_true(at < CALLS_MAX && f);
		c->calls = at + 1 > c->calls ? at + 1 : c->calls;
		copy(call->id, sizeof(call->id), json_get(v, "id"));
		copy(call->name, sizeof(call->name), json_get(f, "name"));
		buf_add_str(&call->arguments, json_text(json_get(f, "arguments"),
							(struct str){ 0 }));
		call->deltas++;
	}
}

static void one_choice_add(struct got *g, struct json_value *v)
{
	size_t index = (size_t)json_int(json_get(v, "index"), CHOICES_MAX);
	struct json_value *said = json_get(v, "delta") ? json_get(v, "delta") :
				  json_get(v, "message") ? json_get(v, "message") : v;
	struct got_choice *c = &g->choice[index];

	assert_true(index < CHOICES_MAX);
	g->choices = index + 1 > g->choices ? index + 1 : g->choices;
	c->events++;
	c->roles += json_get(said, "role") != NULL;
	buf_add_str(&c->text, json_text(json_get(said, said == v ? "text" : "content"),
					(struct str){ 0 }));
	calls_add(c, json_get(said, "tool_calls"));
	if (json_text(json_get(v, "finish_reason"), (struct str){ 0 }).n)
		copy(c->finish, sizeof(c->finish), json_get(v, "finish_reason"));
}

static void document_add(struct got *g, struct str text)
{
	struct arena a = { 0 };
	struct json_value *v, *choices, *usage, *error;

	if (str_is(text, "[DONE]"))
		return;
	if (json_parse(&a, text, &v, NULL) < 0)
		fail_msg("no JSON: %.*s", (int)text.n, text.p);
	choices = json_get(v, "choices");
	usage = json_get(v, "usage");
	error = json_get(v, "error");
	copy(g->error, sizeof(g->error), json_get(error, "message"));
	copy(g->model, sizeof(g->model), json_get(v, "model"));
	for (size_t i = 0; choices && i < choices->count; i++)
		one_choice_add(g, &choices->item[i]);
	if (usage && usage->kind == JSON_OBJECT) {
		g->prompt_tokens = json_int(json_get(usage, "prompt_tokens"), -1);
		g->output_tokens = json_int(json_get(usage, "completion_tokens"), -1);
		g->cached_tokens = json_int(json_get(json_get(usage, "prompt_tokens_details"),
						     "cached_tokens"), -1);
	}
	arena_release(&a);
}

/* members: of the body, without braces. */
static struct got get(const struct rig *r, bool is_chat, bool is_streamed, const char *id,
		      const char *members)
{
	struct got g = { .prompt_tokens = -1, .output_tokens = -1, .cached_tokens = -1 };
	struct buf body = { 0 }, head = { 0 };
	struct sse sse = { 0 };
	struct sse_event event;
	struct reply reply;
	struct str in;

	buf_printf(&body, "{%s%s%s}", members, strstr(members, "\"messages\"") ||
		   strstr(members, "\"prompt\"") ? "" : is_chat ?
		   ",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" : ",\"prompt\":\"one two\"",
		   is_streamed ? ",\"stream\":true,\"stream_options\":{\"include_usage\":true}" : "");
	buf_printf(&head, "x-request-id: %s\r\n", id);
	reply = ask(r, "POST", is_chat ? "/v1/chat/completions" : "/v1/completions", head.data,
		    body.data);
	g.status = reply.status;
	in = buf_str(&reply.body);
	if (is_streamed && reply.status == 200)
		while (sse_next(&sse, &in, &event) > 0)
			document_add(&g, event.data);
	else
		document_add(&g, in);
	sse_release(&sse);
	reply_release(&reply);
	buf_release(&body);
	buf_release(&head);
	return g;
}

static void got_release(struct got *g)
{
	for (size_t i = 0; i < CHOICES_MAX; i++) {
		buf_release(&g->choice[i].text);
		for (size_t k = 0; k < CALLS_MAX; k++)
			buf_release(&g->choice[i].call[k].arguments);
	}
}

/* Fast enough to wait for. */
static void quick_engine(struct rig *r)
{
	r->opts.ttft_ms = r->opts.itl_ms = NULL;
	r->opts.cost = (struct engine_cost){ .prefill_base_us = 10, .prefill_us_per_token = 1,
					     .decode_base_us = 10, .decode_us_per_seq = 1 };
}

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

/* ---- constraints ---- */

#define SCHEMA "{\\\"type\\\": \\\"object\\\", \\\"required\\\": [\\\"age\\\", \\\"name\\\"], " \
	"\\\"additionalProperties\\\": false, \\\"properties\\\": {\\\"age\\\": {\\\"type\\\": " \
	"\\\"integer\\\"}, \\\"name\\\": {\\\"type\\\": \\\"string\\\"}}}"
#define SCHEMA_OBJECT "{\"type\": \"object\", \"required\": [\"age\", \"name\"], " \
	"\"additionalProperties\": false, \"properties\": {\"age\": {\"type\": \"integer\"}, " \
	"\"name\": {\"type\": \"string\"}}}"
#define GRAMMAR "root ::= \\\"SELECT \\\" column \\\" from t\\\"\\ncolumn ::= \\\"a\\\" | \\\"b\\\""

static const struct asked {
	const char *value, *json; /* of the member as the body has it; as constraint_compile_member */
	const char *kind;
} asked[] = {
	{ SCHEMA_OBJECT, "{\"json\": " SCHEMA_OBJECT "}", "json" },
	{ "\"" SCHEMA "\"", "{\"json\": " SCHEMA_OBJECT "}", "json" },
	{ "\"\\\\w+@\\\\w+\\\\.com\\\\n\"", "{\"regex\": \"\\\\w+@\\\\w+\\\\.com\\\\n\"}", "regex" },
	{ "[\"Positive\", \"Negative\"]", "{\"choice\": [\"Positive\", \"Negative\"]}", "choice" },
	{ "\"" GRAMMAR "\"", "{\"grammar\": \"" GRAMMAR "\"}", "grammar" },
};

static enum constraint_verdict verdict(const char *member, struct str answer, char why[256])
{
	struct err e = { 0 };
	struct constraint *c = constraint_compile_member(str_of(member), NULL, &e);
	struct constraint_result result;

	if (!c)
		fail_msg("%s: %s", member, e.text);
	constraint_check(c, answer, &result);
	constraint_free(c);
	snprintf(why, 256, "%s", result.why);
	return result.verdict;
}

static void kept_check(const struct rig *r, const struct asked *a, const char *format, bool is_chat,
		       bool is_streamed, bool is_kept)
{
	struct tokenizer *sim = tokenizer_load(TOKENIZER_SIM, NULL, NULL);
	char members[1024], why[256];
	struct got g;
	struct str said;

	snprintf(members, sizeof(members), format, a->kind, a->value);
	g = get(r, is_chat, is_streamed, "k", members);
	said = buf_str(&g.choice[0].text);
	if (g.status != 200)
		fail_msg("%s: %s", members, g.error);
	if ((verdict(a->json, said, why) == CONSTRAINT_KEPT) != is_kept)
		fail_msg("%s: '%.*s': %s", members, (int)said.n, said.p, why);
	assert_string_equal(g.choice[0].finish, "stop");
	/* The tokens are those of the text. */
	assert_int_equal(g.output_tokens, tokenizer_count(sim, said, false));
	if (is_streamed)
		assert_int_equal(g.choice[0].events, (size_t)g.output_tokens + is_chat);
	tokenizer_free(sim);
	got_release(&g);
}

static const char new_form[] = "\"max_tokens\":400,\"structured_outputs\":{\"%s\":%s}";
static const char old_form[] = "\"max_tokens\":400,\"guided_%s\":%s";

static void forms_check(const struct rig *r, const char *format, bool is_kept)
{
	for (size_t i = 0; i < COUNT(asked); i++)
		for (int k = 0; k < 4; k++)
			kept_check(r, &asked[i], format, k & 1, k & 2, is_kept);
}

static void test_constraints_are_kept(void **state)
{
	struct truths t;
	struct rig r;
	(void)state;
	for (int is_old = 0; is_old < 2; is_old++) {
		rig_init(&r);
		r.opts.is_guided = is_old;
		if (is_old)
			quick_engine(&r);
		rig_start(&r);
		forms_check(&r, is_old ? old_form : new_form, true);
		rig_stop(&r);
		t = truths_read(r.truth);
		for (size_t i = 0; i < t.n; i++) {
			struct json_value *list = json_get(t.row[i], "choices");

			assert_true(list && list->count == 1);
			assert_true(str_is(json_text(json_get(list->item, "constraint"), STR("")),
					   "kept"));
		}
		arena_release(&t.arena);
		rig_release(&r);
	}
}

/* Every kind, wrong on purpose: the checker sees it and the truth file says it. */
static void test_constraints_are_broken_on_purpose(void **state)
{
	struct truths t;
	struct rig r;
	(void)state;
	rig_init(&r);
	r.opts.constraint_errors = 1;
	rig_start(&r);
	for (int i = 0; i < 10; i++)
		forms_check(&r, new_form, false);
	rig_stop(&r);
	t = truths_read(r.truth);
	assert_int_equal(t.n, 10 * 4 * COUNT(asked));
	for (size_t i = 0; i < t.n; i++) {
		struct json_value *choice = json_get(t.row[i], "choices")->item;

		assert_true(str_is(json_text(json_get(choice, "constraint"), STR("")), "broken"));
		assert_true(json_text(json_get(choice, "mistake"), STR("")).n > 0);
	}
	arena_release(&t.arena);
	rig_release(&r);
}

/* A share of them: which ones is in the truth file, agrees with the checker, and is repeatable. */
static void test_share_of_mistakes(void **state)
{
	struct buf first = { 0 };
	(void)state;
	for (int run = 0; run < 2; run++) {
		struct buf all = { 0 };
		size_t broken = 0;
		struct truths t;
		struct rig r;

		rig_init(&r);
		r.opts.constraint_errors = 0.3;
		r.opts.seed = 5;
		rig_start(&r);
		for (int i = 0; i < 100; i++) {
			char id[16], members[512], why[256];
			struct got g;

			snprintf(id, sizeof(id), "r%d", i);
			snprintf(members, sizeof(members), new_form, "json", SCHEMA_OBJECT);
			g = get(&r, true, false, id, members);
			broken += verdict(asked[0].json, buf_str(&g.choice[0].text), why) !=
				  CONSTRAINT_KEPT;
			buf_add_str(&all, buf_str(&g.choice[0].text));
			got_release(&g);
		}
		rig_stop(&r);
		t = truths_read(r.truth);
		for (size_t i = 0; i < t.n; i++)
			broken -= str_is(json_text(json_get(json_get(t.row[i], "choices")->item,
							    "constraint"), STR("")), "broken");
		assert_int_equal(broken, 0);
		if (run)
			assert_string_equal(all.data, first.data);
		else
			buf_add_str(&first, buf_str(&all));
		buf_release(&all);
		arena_release(&t.arena);
		rig_release(&r);
	}
	buf_release(&first);
}

/* Whoever does not know a member ignores it. */
static void test_unknown_members_are_ignored(void **state)
{
	static const struct { bool is_guided, is_ignored; const char *members; } rows[] = {
		{ false, false, "\"guided_choice\":[\"Positive\"]" },
		{ true, false, "\"structured_outputs\":{\"choice\":[\"Positive\"]}" },
		{ false, true, "\"structured_outputs\":{\"choice\":[\"Positive\"]}" },
		{ false, true, "\"response_format\":{\"type\":\"json_object\"}" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct got g;
		char body[256];
		struct rig r;

		rig_init(&r);
		r.opts.is_guided = rows[i].is_guided;
		r.opts.is_constraint_ignored = rows[i].is_ignored;
		rig_start(&r);
		snprintf(body, sizeof(body), "\"max_tokens\":7,%s", rows[i].members);
		g = get(&r, true, true, "u", body);
		assert_int_equal(g.status, 200);
		assert_int_equal(g.output_tokens, 7);
		assert_int_equal(g.choice[0].text.data[0], ' ');
		got_release(&g);
		rig_stop(&r);
		rig_release(&r);
	}
}

static void test_response_format(void **state)
{
	static const struct { const char *members, *json; } rows[] = {
		{ "\"response_format\":{\"type\":\"json_object\"}", "{\"json\":{\"type\":\"object\"}}" },
		{ "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"p\","
		  "\"schema\":" SCHEMA_OBJECT "}}", "{\"json\": " SCHEMA_OBJECT "}" },
	};
	struct got g;
	struct rig r;
	char why[256];
	(void)state;
	rig_init(&r);
	r.opts.reasoning = 3;
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		g = get(&r, true, i, "f", rows[i].members);
		assert_int_equal(g.status, 200);
		assert_int_equal(verdict(rows[i].json, buf_str(&g.choice[0].text), why),
				 CONSTRAINT_KEPT);
		got_release(&g);
	}
	g = get(&r, true, true, "t", "\"response_format\":{\"type\":\"text\"},\"max_tokens\":9");
	assert_int_equal(g.output_tokens, 9);
	got_release(&g);
	rig_stop(&r);
	rig_release(&r);
}

/* The limit cuts an answer, however little is missing. */
static void test_length_cuts(void **state)
{
	struct rig r;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	for (int is_streamed = 0; is_streamed < 2; is_streamed++) {
		struct got g = get(&r, true, is_streamed, "c", "\"max_tokens\":4,\"structured_outputs\":"
				   "{\"choice\":[\"Positive\"]}");

		assert_string_equal(g.choice[0].text.data, "Posi");
		assert_string_equal(g.choice[0].finish, "length");
		assert_int_equal(g.output_tokens, 4);
		got_release(&g);
		g = get(&r, true, is_streamed, "c", "\"max_tokens\":8,\"structured_outputs\":"
			"{\"choice\":[\"Positive\"]}");
		assert_string_equal(g.choice[0].text.data, "Positive");
		assert_string_equal(g.choice[0].finish, "stop");
		got_release(&g);
	}
	rig_stop(&r);
	rig_release(&r);
}

static void test_refusals(void **state)
{
	static const struct { unsigned status; const char *members, *error; } rows[] = {
		{ 400, "\"structured_outputs\":{\"json\":{\"type\":\"strange\"}}",
		  "Failed to transform json schema into a grammar:" },
		{ 400, "\"structured_outputs\":{\"json\":\"{\"}", "Failed to transform json schema" },
		{ 400, "\"structured_outputs\":{\"regex\":\"(a\"}", "Failed to transform regex" },
		{ 400, "\"structured_outputs\":{\"choice\":[]}", "Failed to transform choices" },
		{ 400, "\"structured_outputs\":{\"grammar\":\"root ::= x\"}",
		  "Invalid grammar specification." },
		{ 400, "\"structured_outputs\":{}", "none are specified" },
		{ 400, "\"structured_outputs\":{\"regex\":\"a\",\"choice\":[\"a\"]}",
		  "multiple are specified" },
		{ 400, "\"structured_outputs\":{\"regex\":\"a\"},\"response_format\":"
		  "{\"type\":\"json_object\"}", "multiple are specified" },
		{ 400, "\"structured_outputs\":7", "structured_outputs must be an object" },
		{ 400, "\"response_format\":{\"type\":\"json_schema\"}", "must be provided" },
		{ 400, "\"priority\":3", "Got priority 3 but Priority scheduling is not enabled." },
		{ 400, "\"priority\":\"high\"", "priority must be an integer" },
		{ 400, "\"n\":0", "n must be at least 1" },
		{ 400, "\"n\":1000", "n must be at most 256" },
		{ 400, "\"tool_choice\":\"auto\"", "`tools` must be set" },
		{ 400, "\"tools\":[{\"type\":\"function\"}]", "a function that has a name" },
		{ 400, "\"tools\":[{\"function\":{\"name\":\"f\"}}],\"tool_choice\":"
		  "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}", "does not match any" },
		{ 400, "\"tools\":[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":1}}}]",
		  "Failed to transform json schema" },
		{ 404, "\"model\":\"other\"", "The model `other` does not exist." },
		{ 200, "\"priority\":0,\"max_tokens\":1", "" },
		{ 200, "\"tool_choice\":\"none\",\"max_tokens\":1", "" },
	};
	struct rig r;
	(void)state;
	rig_init(&r);
	rig_start(&r);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct got g = get(&r, true, false, "e", rows[i].members);

		assert_int_equal(g.status, rows[i].status);
		if (!strstr(g.error, rows[i].error))
			fail_msg("%s: %s", rows[i].members, g.error);
		got_release(&g);
	}
	rig_stop(&r);
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

/* One at a time: of those that wait, whoever is more urgent is served first. */
static void test_priority_decides(void **state)
{
	static const int priority[] = { 5, 0, -5 };
	struct client c[COUNT(priority)];
	struct reply reply;
	struct truths t;
	struct rig r;
	int64_t first[COUNT(priority)];
	(void)state;
	rig_init(&r);
	quick_engine(&r);
	r.opts.is_by_priority = true;
	r.opts.max_num_seqs = 1;
	rig_start(&r);
	reply = ask(&r, "POST", "/sleep", "", "");
	reply_release(&reply);
	for (size_t i = 0; i < COUNT(priority); i++) {
		char head[32], body[80];

		snprintf(head, sizeof(head), "x-request-id: p%zu\r\n", i);
		snprintf(body, sizeof(body), "{\"prompt\":\"a\",\"max_tokens\":1,\"priority\":%d}",
			 priority[i]);
		c[i] = client_open(&r);
		client_ask(&c[i], "POST", "/v1/completions", head, body);
		while (metric(&r, "vllm:num_requests_waiting") < (double)i + 1)
			continue;
	}
	reply = ask(&r, "POST", "/wake_up", "", "");
	reply_release(&reply);
	for (size_t i = 0; i < COUNT(priority); i++) {
		reply = client_read(&c[i]);
		assert_int_equal(reply.status, 200);
		reply_release(&reply);
		client_close(&c[i]);
	}
	rig_stop(&r);
	t = truths_read(r.truth);
	for (size_t i = 0; i < COUNT(priority); i++) {
		char id[8];

		snprintf(id, sizeof(id), "p%zu", i);
		first[i] = at(json_get(truth_of(&t, id), "send_ns"), 0);
	}
	assert_true(first[2] < first[1] && first[1] < first[0]);
	arena_release(&t.arena);
	rig_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_choices),
		cmocka_unit_test(test_choices_end_together),
		cmocka_unit_test(test_constraints_are_kept),
		cmocka_unit_test(test_constraints_are_broken_on_purpose),
		cmocka_unit_test(test_share_of_mistakes),
		cmocka_unit_test(test_unknown_members_are_ignored),
		cmocka_unit_test(test_response_format),
		cmocka_unit_test(test_length_cuts),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_tool_calls),
		cmocka_unit_test(test_shares_of_calls),
		cmocka_unit_test(test_histories_are_cached),
		cmocka_unit_test(test_adapters),
		cmocka_unit_test(test_priority_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
