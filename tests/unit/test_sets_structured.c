/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts whose answers have a form: kinds, ways to ask for it, rows that are left out. */
/* threads: yes */
#include "data_rig.h"

static void begin(struct fixture *f, const char *kind, const char *name, const char *content)
{
	fixture_init(f, name, content);
	f->opts.structured_dataset = kind;
	f->opts.constraint_form = "auto";
	f->opts.structured_output_ratio = 1;
	f->opts.structured_output_len = 64;
}

static void kinds_and_forms(void **state)
{
	static const struct {
		const char *kind, *form;
		bool is_guided_server;
		const char *overrides;
	} cases[] = {
		{ "choice", "auto", false, "{\"structured_outputs\": {\"choice\": [\"Positive\", "
		  "\"Negative\"]}}" },
		{ "choice", "auto", true, "{\"guided_choice\": [\"Positive\", \"Negative\"]}" },
		{ "regex", "guided", false, "{\"guided_regex\": \"\\\\w+@\\\\w+\\\\.com\\\\n\"}" },
		{ "regex", "structured_outputs", true,
		  "{\"structured_outputs\": {\"regex\": \"\\\\w+@\\\\w+\\\\.com\\\\n\"}}" },
		{ "grammar", "auto", false, NULL }, { "json", "auto", false, NULL },
		{ "json", "response_format", false, NULL }, { "json-unique", "auto", false, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture f;

		begin(&f, cases[i].kind, NULL, NULL);
		f.opts.constraint_form = cases[i].form;
		f.env.is_guided_server = cases[i].is_guided_server;
		if (build(&f, "structured") < 0)
			fail_msg("%s: %s", cases[i].kind, f.e.text);
		assert_int_equal(f.w.n, 4);
		assert_int_equal(f.w.v[3].output_len, 64);
		if (cases[i].overrides && !str_is(f.w.v[0].overrides, cases[i].overrides))
			fail_msg("%s: %.*s", cases[i].kind, (int)f.w.v[0].overrides.n,
				 f.w.v[0].overrides.p);
		/* Each of json-unique's schemas is another one. */
		assert_int_equal(str_eq(f.w.v[0].constraint, f.w.v[1].constraint),
				 strcmp(cases[i].kind, "json-unique") != 0);
		fixture_release(&f);
	}
}

/* A half of the requests is constrained; all are judged. */
static void some_are_constrained(void **state)
{
	struct fixture f;
	size_t n = 0;

	(void)state;
	begin(&f, "json", NULL, NULL);
	f.opts.structured_output_ratio = 0.5;
	f.opts.random_prefix_len = 3;
	f.env.num_prompts = 9;
	assert_int_equal(build(&f, "structured"), 0);
	for (size_t i = 0; i < f.w.n; i++) {
		n += f.w.v[i].overrides.n != 0;
		assert_true(f.w.v[i].constraint.n > 0);
	}
	assert_int_equal(n, 4);
	fixture_release(&f);
}

#define ROW(word, schema) "{\"prompt\": [{\"role\": \"system\", \"content\": \"" word \
	"\"}, {\"role\": \"user\", \"content\": \"go\"}], \"schema\": \"" schema \
	"\", \"completion\": \"{}\"}\n"
#define Q(text) "\\\"" text "\\\""

/* What vLLM's benchmark leaves out; the words of the others are in the order of the file. */
static void rows_of_a_bench(void **state)
{
	static const char rows[] =
		ROW("one", "{" Q("type") ": " Q("object") "}")
		ROW("-", "{" Q("type") ": " Q("integer") ", " Q("multipleOf") ": 2}")
		ROW("-", "{" Q("type") ": [" Q("number") "], " Q("multipleOf") ": 2}")
		ROW("two", "{" Q("type") ": " Q("string") ", " Q("multipleOf") ": 2}")
		ROW("-", "{" Q("type") ": " Q("array") ", " Q("contains") ": {}}")
		ROW("-", "{" Q("type") ": " Q("array") ", " Q("uniqueItems") ": true}")
		ROW("-", "{" Q("type") ": " Q("array") ", " Q("minContains") ": 1}")
		ROW("-", "{" Q("type") ": " Q("array") ", " Q("maxContains") ": 1}")
		ROW("three", "{" Q("type") ": " Q("array") ", " Q("minItems") ": 1}")
		ROW("-", "{" Q("type") ": " Q("string") ", " Q("format") ": " Q("odd") "}")
		ROW("four", "{" Q("type") ": " Q("string") ", " Q("format") ": " Q("uuid") "}")
		ROW("-", "{" Q("type") ": " Q("string") ", " Q("pattern") ": " Q("a") ", "
		    Q("minLength") ": 1}")
		ROW("-", "{" Q("type") ": " Q("string") ", " Q("format") ": " Q("uuid") ", "
		    Q("maxLength") ": 1}")
		ROW("-", "{" Q("type") ": " Q("object") ", " Q("propertyNames") ": {}, "
		    Q("properties") ": {}}")
		ROW("-", "{" Q("type") ": " Q("object") ", " Q("propertyNames") ": {}, "
		    Q("unevaluatedProperties") ": false}")
		ROW("five", "{" Q("type") ": " Q("object") ", " Q("propertyNames") ": {}, "
		    Q("unevaluatedProperties") ": true}")
		ROW("-", "{" Q("type") ": " Q("object") ", " Q("patternProperties") ": {}, "
		    Q("properties") ": {}}")
		ROW("-", "{" Q("type") ": " Q("object") ", " Q("patternProperties") ": {"
		    Q("a") ": {}, " Q("b") ": {}}}")
		ROW("six", "{" Q("type") ": " Q("object") ", " Q("patternProperties") ": {"
		    Q("a") ": {}}}")
		ROW("-", "{" Q("items") ": [{" Q("type") ": " Q("number") ", " Q("multipleOf")
		    ": 2}]}");
	static const char *const kept[] = { "one\ngo\n", "two\ngo\n", "three\ngo\n", "four\ngo\n",
					    "five\ngo\n", "six\ngo\n" };
	struct fixture f;

	(void)state;
	begin(&f, "xgrammar_bench", "bench.jsonl", rows);
	f.env.is_chat_backend = true;
	f.env.num_prompts = 7;
	if (build(&f, "structured") < 0)
		fail_msg("%s", f.e.text);
	assert_int_equal(f.w.n, 7);
	for (size_t i = 0; i < f.w.n; i++)
		assert_prompt(&f, i, kept[i % 6]);
	assert_true(memmem(f.w.notes.p, f.w.notes.n, "14 of 20 rows", 13) != NULL);
	assert_true(str_is(f.w.v[0].expected, "{}"));
	assert_true(str_is(f.w.v[0].constraint, "{\"json\": {\"type\": \"object\"}}"));
	f.opts.constraint_form = "response_format";
	assert_int_equal(build_again(&f, "structured"), 0);
	f.env.is_chat_backend = false;
	assert_refused(&f, "structured", "chat template");
	fixture_release(&f);
}

static void refused(void **state)
{
	static const struct { const char *rows, *error; } cases[] = {
		{ "{\"prompt\": \"a\", \"schema\": \"{}\", \"completion\": \"\"}\n", "list of messages" },
		{ "{\"prompt\": [], \"schema\": \"{}\", \"completion\": \"\"}\n", "no messages" },
		{ "{\"prompt\": [{}], \"schema\": \"{}\", \"completion\": \"\"}\n", "no text" },
		{ ROW("a", "{"), "not valid JSON" },
		{ ROW("a", "{" Q("type") ": " Q("number") ", " Q("multipleOf") ": 2}"),
		  "no row is left; 1 have" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		begin(&f, "xgrammar_bench", "bench.jsonl", cases[i].rows);
		f.env.is_chat_backend = true;
		assert_refused(&f, "structured", cases[i].error);
		f.opts.structured_dataset = "json";
		assert_refused(&f, "structured", "only --structured-dataset xgrammar_bench");
		fixture_release(&f);
	}
	begin(&f, "choice", NULL, NULL);
	f.opts.constraint_form = "response_format";
	assert_refused(&f, "structured", "--constraint-form response_format");
	f.opts.structured_output_ratio = 1.01;
	assert_refused(&f, "structured", "expected 0 to 1");
	f.opts.structured_output_ratio = -0.01;
	assert_refused(&f, "structured", "expected 0 to 1");
	f.env.num_prompts = 0;
	assert_refused(&f, "structured", "--num-prompts 0");
	fixture_release(&f);
	begin(&f, "json", NULL, NULL);
	f.opts.json_schema_path = "/nonexistent.json";
	assert_refused(&f, "structured", "--json-schema-path /nonexistent.json");
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_and_forms), cmocka_unit_test(some_are_constrained),
		cmocka_unit_test(rows_of_a_bench), cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
