/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serving_constraints.c - answers of the simulator that keep to a constraint, or break it on
 * purpose, and what it refuses.
 *
 * threads: yes
 */
#include "sim_got.h"

#include "input/token/tokenizer.h"

#define SCHEMA "{\\\"type\\\": \\\"object\\\", \\\"required\\\": [\\\"age\\\", \\\"name\\\"], " \
	"\\\"additionalProperties\\\": false, \\\"properties\\\": {\\\"age\\\": {\\\"type\\\": " \
	"\\\"integer\\\"}, \\\"name\\\": {\\\"type\\\": \\\"string\\\"}}}"
#define SCHEMA_OBJECT "{\"type\": \"object\", \"required\": [\"age\", \"name\"], " \
	"\"additionalProperties\": false, \"properties\": {\"age\": {\"type\": \"integer\"}, " \
	"\"name\": {\"type\": \"string\"}}}"
#define GRAMMAR "root ::= \\\"SELECT \\\" column \\\" from t\\\"\\ncolumn ::= \\\"a\\\" | \\\"b\\\""

static const struct asked {
	const char *value; /* of the member, as the body has it */
	const char *json;  /* as constraint_compile_member takes it */
	const char *kind;
} asked[] = {
	{ SCHEMA_OBJECT, "{\"json\": " SCHEMA_OBJECT "}", "json" },
	{ "\"" SCHEMA "\"", "{\"json\": " SCHEMA_OBJECT "}", "json" },
	{ "\"\\\\w+@\\\\w+\\\\.com\\\\n\"", "{\"regex\": \"\\\\w+@\\\\w+\\\\.com\\\\n\"}", "regex" },
	{ "[\"Positive\", \"Negative\"]", "{\"choice\": [\"Positive\", \"Negative\"]}", "choice" },
	{ "\"" GRAMMAR "\"", "{\"grammar\": \"" GRAMMAR "\"}", "grammar" },
};

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

/* A server that does not know a member ignores it. */
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
		{ 400, "\"structured_outputs\":{\"choice\":[\"\"]}", "no answer but an empty one" },
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constraints_are_kept),
		cmocka_unit_test(test_constraints_are_broken_on_purpose),
		cmocka_unit_test(test_share_of_mistakes),
		cmocka_unit_test(test_unknown_members_are_ignored),
		cmocka_unit_test(test_response_format),
		cmocka_unit_test(test_length_cuts),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
