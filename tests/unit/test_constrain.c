/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints of all kinds: what is refused, what is kept, what upstream says, what is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "core/json/read.h"
#include "input/constrain/constrain.h"
#include "answers.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static struct constraint *made(enum constraint_kind kind, const char *text)
{
	struct err e = { 0 };
	struct constraint *c = constraint_compile(kind, str_of(text), NULL, &e);

	if (!c)
		fail_msg("%s: %s", text, e.text);
	return c;
}

static void expect(const struct constraint *c, const char *answer, bool is_kept)
{
	struct constraint_result r;

	constraint_check(c, str_of(answer), &r);
	if (r.verdict != (is_kept ? CONSTRAINT_KEPT : CONSTRAINT_BROKEN) || !*r.why != is_kept)
		fail_msg("'%s': verdict %d, why '%s'", answer, (int)r.verdict, r.why);
}

/* J1 and J2 of the spec. */
static const struct { const char *text; bool upstream, ours; } objects[] = {
	{ "{\"a\": 1}", true, true },
	{ "[{\"a\":1}]", true, false },
	{ "[{\"a\":1},{\"b\":2}]", false, false },
	{ "x {\"a\":1} y", true, false },
	{ "{\"a\":\"x y\"} }", false, false },
	{ "{\"a\": 1", false, false },
	{ "[1,2]", false, false },
	{ "{\"a\": NaN}", true, false },
	{ "```json\n{\"a\":1}\n```", true, false },
};

static void upstream_and_ours_on_json(void **state)
{
	struct constraint *c = made(CONSTRAINT_JSON, "{\"type\": \"object\", \"required\": [\"a\"], "
		"\"properties\": {\"a\": {\"type\": \"integer\"}}}");

	(void)state;
	for (size_t i = 0; i < COUNT(objects); i++) {
		assert_int_equal(constraint_check_upstream(c, str_of(objects[i].text)),
			objects[i].upstream);
		expect(c, objects[i].text, objects[i].ours);
	}
	constraint_free(c);
}

/* J3 */
static void upstream_and_ours_on_a_pattern(void **state)
{
	static const struct { const char *text; bool upstream, ours; } row[] = {
		{ "ab@cd.com\n", true, true }, { "ab@cd.com", false, false },
		{ "ab.x@cd.com\n", false, false },
		{ "ab@cd.com\nmore", true, false },
		{ " ab@cd.com\n", false, false }, { "\xc3\xa9@\xc3\xbc.com\n", true, true },
	};
	struct constraint *c = made(CONSTRAINT_REGEX, "\\w+@\\w+\\.com\\n");

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		assert_int_equal(constraint_check_upstream(c, str_of(row[i].text)),
			row[i].upstream);
		expect(c, row[i].text, row[i].ours);
	}
	constraint_free(c);
}

static const char sql[] = "\n"
	"        root ::= select_statement\n\n"
	"        select_statement ::= \"SELECT \" column \" from \" table \" where \" condition\n\n"
	"        column ::= \"col_1 \" | \"col_2 \"\n\n"
	"        table ::= \"table_1 \" | \"table_2 \"\n\n"
	"        condition ::= column \"= \" number\n\n"
	"        number ::= \"1 \" | \"2 \"\n"
	"        ";

/* J4: the sixteen sentences, written out; what is made is one of them, and all are made. */
static void a_grammar_of_sixteen(void **state)
{
	struct constraint *c = made(CONSTRAINT_GRAMMAR, sql);
	char text[16][80];
	bool is_made[16] = { false };

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		snprintf(text[i], sizeof text[i], "SELECT col_%u  from table_%u  where col_%u = %u ",
			(i & 1) + 1, (i >> 1 & 1) + 1, (i >> 2 & 1) + 1, (i >> 3) + 1);
		expect(c, text[i], true);
		for (size_t n = 0; text[i][n]; n++) { /* one character less, or another */
			char broken[80];

			snprintf(broken, sizeof broken, "%.*s%s", (int)n, text[i], text[i] + n + 1);
			expect(c, broken, false);
			memcpy(broken, text[i], sizeof broken);
			broken[n] = '#';
			expect(c, broken, false);
		}
	}
	expect(c, "SELECT col_1  from table_1  where col_1 = 1", false);
	expect(c, "SELECT col_1  from table_1  where col_1 = 1  ", false);
	expect(c, "", false);
	assert_int_equal(constraint_check_upstream(c, str_of(text[0])), -1);
	for (uint64_t seed = 0; seed < 500; seed++) {
		struct buf out = { 0 };
		unsigned i = 0;

		assert_int_equal(constraint_generate(c, seed, 64, &out, NULL), 0);
		while (i < 16 && strcmp(text[i], out.data) != 0)
			i++;
		assert_true(i < 16);
		is_made[i] = true;
		answers_release(&out);
	}
	for (unsigned i = 0; i < 16; i++)
		assert_true(is_made[i]);
	constraint_free(c);
}

static void choices(void **state)
{
	struct constraint *c = made(CONSTRAINT_CHOICE, "[\"Positive\", \"Negative\", \"\"]");

	(void)state;
	expect(c, "Positive", true);
	expect(c, "", true);
	expect(c, "positive", false);
	expect(c, "Positive ", false);
	assert_int_equal(constraint_check_upstream(c, STR("Negative")), 1);
	assert_int_equal(constraint_check_upstream(c, STR("Negative\n")), 0);
	constraint_free(c);
}

static void members(void **state)
{
	static const struct { const char *text, *error; } row[] = {
		{ "{\"json\": {\"type\": \"object\"}}", NULL },
		{ "{\"json\": \"{\\\"type\\\": \\\"object\\\"}\"}", NULL },
		{ "{\"json\": true, \"regex\": null, \"whitespace_pattern\": \" \"}", NULL },
		{ "{\"json_object\": true}", NULL },
		{ "{\"regex\": \"a+\"}", NULL },
		{ "{\"choice\": [\"a\"]}", NULL },
		{ "{\"grammar\": \"root ::= \\\"a\\\"\"}", NULL },
		{ "{\"grammar\": \"start: \\\"a\\\"\"}", NULL },
		{ "{}", "expected one of the members json, regex, choice and grammar" },
		{ "[]", "expected an object with one of the members json, regex, choice and grammar" },
		{ "{\"regex\": \"a\", \"choice\": [\"a\"]}", "'regex' and 'choice' exclude each other" },
		{ "{\"regex\": 1}", "regex: expected a text" },
		{ "{\"regex\": \"(\"}", "regex: the regular expression does not compile: "
			"missing closing parenthesis" },
		{ "{\"choice\": \"a\"}", "choice: expected a list of texts" },
		{ "{\"choice\": []}", "choice: expected a list of 1 to 100000 texts" },
		{ "{\"choice\": [\"a\", 1]}", "choice: choice 2 is not a text" },
		{ "{\"json\": {\"type\": \"objekt\"}}", "json: /type: expected null, boolean, object, "
			"array, number, string or integer, or a list of different ones" },
		{ "{\"grammar\": \"a\"}", "grammar: the grammar has no rule: "
			"expected lines of the form NAME ::= ..." },
		{ "{", "the constraint is not JSON: line 1, column 2: "
			"the text ends inside an array or object" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct err e = { 0 };
		struct constraint *c = constraint_compile_member(str_of(row[i].text), NULL, &e);

		if (c && row[i].error)
			fail_msg("%s was taken", row[i].text);
		if (row[i].error)
			assert_int_equal(e.code, ERR_USAGE);
		assert_string_equal(e.text, row[i].error ? row[i].error : "");
		constraint_free(c);
	}
}

/* A schema in a member keeps the digits of its numbers. */
static void members_keep_digits(void **state)
{
	struct constraint *c = constraint_compile_member(
		STR("{\"json\": {\"maximum\": 1.00000000000000000001, \"minimum\": -1e400}}"), NULL, NULL);

	(void)state;
	assert_non_null(c);
	expect(c, "1.00000000000000000001", true);
	expect(c, "1.000000000000000000011", false);
	expect(c, "-1e399", true);
	expect(c, "-1e401", false);
	constraint_free(c);
}

/* What is made keeps to it and is the same for the same seed. */
static void made_answers_hold(void **state)
{
	static const struct { enum constraint_kind kind; const char *text; } row[] = {
		{ CONSTRAINT_REGEX, "\\w+@\\w+\\.com\\n" },
		{ CONSTRAINT_REGEX, "^(a|b){3,5}[^x-z]?\\d{2}(?:foo|bar)*\\.$" },
		{ CONSTRAINT_REGEX, "" },
		{ CONSTRAINT_REGEX, "\\d{4}-\\d\\d-\\d\\dT\\S+[\\]\\-a]" },
		{ CONSTRAINT_CHOICE, "[\"a\", \"b\"]" },
		{ CONSTRAINT_GRAMMAR, "root ::= e\ne ::= e \"+\" e | \"(\" e \")\" | [0-9]{1,3}" },
		{ CONSTRAINT_GRAMMAR, "root ::= \"a\" root \"b\" | \"\"" },
		{ CONSTRAINT_JSON, "true" },
		{ CONSTRAINT_JSON, "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": "
			"{\"name\": {\"type\": \"string\"}, \"level\": {\"type\": \"integer\"}}, "
			"\"required\": [\"name\", \"level\"]}}" },
		{ CONSTRAINT_JSON, "{\"type\": \"object\", \"properties\": {\"id\": {\"type\": \"integer\", "
			"\"minimum\": 9007199254740993, \"maximum\": 9007199254740993}, \"price\": "
			"{\"type\": \"number\", \"multipleOf\": 0.01, \"exclusiveMinimum\": 0, "
			"\"maximum\": 0.05}, \"tag\": {\"enum\": [\"x\", 2, null]}, \"code\": {\"type\": "
			"\"string\", \"pattern\": \"^[A-Z]{3}-[0-9]+$\", \"maxLength\": 9}, \"at\": "
			"{\"type\": \"string\", \"format\": \"date-time\"}}, \"required\": [\"id\", \"price\", "
			"\"tag\", \"code\", \"at\"], \"additionalProperties\": false}" },
		{ CONSTRAINT_JSON, "{\"$ref\": \"#/$defs/tree\", \"$defs\": {\"tree\": {\"type\": \"object\", "
			"\"properties\": {\"value\": {\"type\": \"number\"}, \"children\": {\"type\": "
			"\"array\", \"items\": {\"$ref\": \"#/$defs/tree\"}}}, \"required\": [\"value\", "
			"\"children\"]}}}" },
		{ CONSTRAINT_JSON, "{\"allOf\": [{\"properties\": {\"a\": {\"type\": \"integer\"}}, \"required\": "
			"[\"a\"]}, {\"properties\": {\"a\": {\"minimum\": 5}, \"b\": {\"oneOf\": [{\"type\": "
			"\"boolean\"}, {\"type\": \"array\", \"items\": {\"type\": \"null\"}, \"minItems\": 2}]}}, "
			"\"required\": [\"b\"]}], \"minProperties\": 3}" },
		{ CONSTRAINT_JSON, "{\"type\": \"array\", \"uniqueItems\": true, \"minItems\": 3, \"items\": "
			"{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 3}, \"contains\": {\"const\": 2}}" },
		{ CONSTRAINT_JSON, "{\"type\": \"string\", \"minLength\": 20, \"maxLength\": 20}" },
		{ CONSTRAINT_JSON, "{\"if\": {\"type\": \"string\"}, \"then\": {\"minLength\": 3}, \"else\": "
			"{\"type\": \"integer\"}}" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct constraint *c = made(row[i].kind, row[i].text);

		for (uint64_t seed = 0; seed < 200; seed++) {
			struct constraint_result r;
			struct buf out = { 0 }, again = { 0 };
			struct err e = { 0 };
			size_t bytes = seed * 3;

			if (constraint_generate(c, seed, bytes, &out, &e) < 0)
				fail_msg("%s: seed %d: %s", row[i].text, (int)seed, e.text);
			constraint_check(c, buf_str(&out), &r);
			if (r.verdict != CONSTRAINT_KEPT)
				fail_msg("%s: '%s': %s", row[i].text, out.data, r.why);
			assert_int_equal(constraint_generate(c, seed, bytes, &again, &e), 0);
			assert_true(str_eq(buf_str(&out), buf_str(&again)));
			answers_release(&out);
			buf_release(&again);
		}
		constraint_free(c);
	}
}

static void nothing_is_made(void **state)
{
	static const struct { enum constraint_kind kind; const char *text; } row[] = {
		{ CONSTRAINT_JSON, "false" },
		{ CONSTRAINT_JSON, "{\"type\": \"integer\", \"minimum\": 3, \"maximum\": 2}" },
		{ CONSTRAINT_JSON, "{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": "
			"{\"$ref\": \"#\"}}}" },
		{ CONSTRAINT_JSON, "{\"allOf\": [{\"$ref\": \"#\"}, {\"$ref\": \"#\"}]}" },
		{ CONSTRAINT_REGEX, "(a)\\1" },
		{ CONSTRAINT_REGEX, "a(?!b)(?=b)" },
		{ CONSTRAINT_GRAMMAR, "root ::= root \"a\"" },
		{ CONSTRAINT_GRAMMAR, "start: \"a\"" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct constraint *c = made(row[i].kind, row[i].text);
		struct buf out = { 0 };
		struct err e = { 0 };

		assert_int_equal(constraint_generate(c, 1, 50, &out, &e), -1);
		assert_int_equal(e.code, ERR_RUN);
		assert_int_equal(out.len, 0);
		answers_release(&out);
		constraint_free(c);
	}
}

/* What would take for ever is not scored, and says so. */
static void limits(void **state)
{
	static const struct {
		enum constraint_kind kind;
		const char *text, *answer, *why;
	} row[] = {
		{ CONSTRAINT_REGEX, "(a|aa|aaa)+[bc]", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			"the pattern needs more than PATTERN_STEPS_MAX steps" },
		{ CONSTRAINT_JSON, "{\"allOf\": [{\"$ref\": \"#\"}, {\"$ref\": \"#\"}]}", "1",
			"references nest deeper than SCHEMA_DEPTH_MAX" },
		{ CONSTRAINT_JSON, "{\"anyOf\": [{\"$ref\": \"#/$defs/b\"}, {\"$ref\": \"#/$defs/b\"}], "
			"\"$defs\": {\"b\": {\"$ref\": \"#\"}}}", "1",
			"references nest deeper than SCHEMA_DEPTH_MAX" },
		{ CONSTRAINT_GRAMMAR, "root ::= root root root | \"a\" | \"\"",
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			"the grammar needs more than GRAMMAR_STEPS_MAX steps" },
		{ CONSTRAINT_GRAMMAR, "start: \"a\"", "a", "grammars in Lark's syntax are not scored" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct constraint *c = made(row[i].kind, row[i].text);
		struct constraint_result r;

		constraint_check(c, str_of(row[i].answer), &r);
		if (r.verdict != CONSTRAINT_NOT_SCORED)
			fail_msg("%s: verdict %d", row[i].text, (int)r.verdict);
		assert_string_equal(r.why, row[i].why);
		constraint_free(c);
	}
}

/* Grammars that a parser without memory would not end with. */
static void grammars_of_all_sorts(void **state)
{
	static const struct { const char *grammar, *good, *bad; } row[] = {
		{ "root ::= \"a\"****", "aaaa", "ab" },
		{ "root ::= \"a\"*+?", "", "b" },
		{ "root ::= (\"a\"+)+", "aaa", "" },
		{ "root ::= (\"ab\"{2})+", "abababab", "ababab" },
		{ "root ::= a\na ::= b\nb ::= a | \"x\"", "x", "xx" },
		{ "root ::= root root | \"a\"", "aaaaaaaaaaaaaaaa", "" },
		{ "root ::= \"(\" root \")\" root | \"\"", "(()())()", "(()" },
		{ "root ::= e e\ne ::= \"\" | \"a\"", "a", "aaa" },
		{ "root ::= [^\\x00-\\x7f] . \"\\u00e9\" \"\\U0001F600\"", "\xc3\xa4\n\xc3\xa9\xf0\x9f\x98\x80",
			"a\n\xc3\xa9\xf0\x9f\x98\x80" },
		{ "root ::= [\\]\\-a]{2,3} # \"b\"\n | c\nc-1 ::= \"#\"\nc ::= c-1 # end", "#", "b" },
		{ "root ::= [\\]\\-a]{2,3}", "-]a", "-" },
		{ "root ::= a{0,2} a{3,}\na ::= \"z\"", "zzz", "zz" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct constraint *c = made(CONSTRAINT_GRAMMAR, row[i].grammar);

		expect(c, row[i].good, true);
		expect(c, row[i].bad, false);
		constraint_free(c);
	}
}

/* Bytes that are not UTF-8 are read as U+FFFD, for every kind. */
static void invalid_bytes_are_replaced(void **state)
{
	static const struct {
		enum constraint_kind kind;
		const char *text, *answer;
		bool is_kept;
	} row[] = {
		{ CONSTRAINT_CHOICE, "[\"a\xef\xbf\xbd\"]", "a\xff", true },
		{ CONSTRAINT_CHOICE, "[\"a\xef\xbf\xbd\"]", "a\xef\xbf\xbd", true },
		{ CONSTRAINT_CHOICE, "[\"a\"]", "a\xff", false },
		{ CONSTRAINT_REGEX, "a.b", "a\xff" "b", true },
		{ CONSTRAINT_REGEX, "a\\uFFFDb", "a\xff" "b", true },
		{ CONSTRAINT_REGEX, "ab", "a\xff" "b", false },
		{ CONSTRAINT_JSON, "{\"const\": \"\xef\xbf\xbd\"}", "\"\xff\"", true },
		{ CONSTRAINT_JSON, "{\"maxLength\": 1}", "\"\xff\"", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct constraint *c = made(row[i].kind, row[i].text);

		expect(c, row[i].answer, row[i].is_kept);
		constraint_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(upstream_and_ours_on_json),
		cmocka_unit_test(upstream_and_ours_on_a_pattern),
		cmocka_unit_test(a_grammar_of_sixteen),
		cmocka_unit_test(choices),
		cmocka_unit_test(invalid_bytes_are_replaced),
		cmocka_unit_test(members),
		cmocka_unit_test(members_keep_digits),
		cmocka_unit_test(made_answers_hold),
		cmocka_unit_test(nothing_is_made),
		cmocka_unit_test(limits),
		cmocka_unit_test(grammars_of_all_sorts),
	};

	return cmocka_run_group_tests_name("constrain", tests, NULL, NULL);
}
