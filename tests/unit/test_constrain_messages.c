/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas, patterns and grammars that are none: where and why; and what an answer is blamed for. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "core/base/str.h"
#include "input/constrain/constrain.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const char types[] = "null, boolean, object, array, number, string or integer, "
	"or a list of different ones";

struct bad { const char *text, *error; };

static void refuse_all(enum constraint_kind kind, const struct bad *row, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct err e = { 0 };

		if (constraint_compile(kind, str_of(row[i].text), NULL, &e))
			fail_msg("%s was taken", row[i].text);
		assert_int_equal(e.code, ERR_USAGE);
		if (strcmp(e.text, row[i].error) != 0)
			fail_msg("%s:\n'%s', expected\n'%s'", row[i].text, e.text, row[i].error);
	}
}

static void schemas_that_are_none(void **state)
{
	char type_error[200];
	const struct bad row[] = {
		{ "1", "the schema: expected a schema, which is an object, true or false" },
		{ "{\"type\": ", "the schema is not JSON: line 1, column 10: "
			"the text ends in the middle of a value" },
		{ "{\"type\": \"a\", \"type\": \"b\"}", "the schema is not JSON: line 1, column 26: "
			"an object has one key twice: 'type'" },
		{ "{\"properties\": {\"a/b\": {\"items\": {\"type\": \"text\"}}}}", type_error },
		{ "{\"properties\": {\"a\": 1}}",
			"/properties/a: expected a schema, which is an object, true or false" },
		{ "{\"required\": \"a\"}", "/required: expected a list of different texts" },
		{ "{\"required\": [\"a\", \"a\"]}", "/required: expected a list of different texts" },
		{ "{\"minLength\": -1}", "/minLength: expected a whole number of at least 0" },
		{ "{\"minLength\": 1.5}", "/minLength: expected a whole number of at least 0" },
		{ "{\"multipleOf\": 0}", "/multipleOf: expected a number above 0" },
		{ "{\"multipleOf\": 1.234567890123456789}", "/multipleOf: expected a number of at most 18 "
			"digits (DECIMAL_DIVISOR_DIGITS_MAX)" },
		{ "{\"maximum\": \"3\"}", "/maximum: expected a number" },
		{ "{\"anyOf\": []}", "/anyOf: expected a list of at least one schema" },
		{ "{\"allOf\": [true, {\"not\": 0}]}",
			"/allOf/1/not: expected a schema, which is an object, true or false" },
		{ "{\"pattern\": \"[a\"}", "/pattern: the regular expression does not compile: "
			"missing terminating ] for character class" },
		{ "{\"pattern\": \"(?i)a\"}", "/pattern: the regular expression has (?i, "
			"which ECMA-262 does not support" },
		{ "{\"pattern\": \"a\\\\Z\"}", "/pattern: the regular expression has \\Z, "
			"which ECMA-262 does not support" },
		{ "{\"pattern\": \"a**\"}", "/pattern: the regular expression has a repeat "
			"operator without anything before it, at '*'" },
		{ "{\"patternProperties\": {\"(\": true}}", "/patternProperties/(: the regular expression "
			"does not compile: missing closing parenthesis" },
		{ "{\"$ref\": \"#/$defs/a\"}", "/$ref: '#/$defs/a' does not refer to a schema" },
		{ "{\"$ref\": \"#a\"}", "/$ref: '#a' does not refer to a schema" },
		{ "{\"$ref\": 3}", "/$ref: expected a reference, which is a text" },
		{ "{\"items\": {\"$ref\": \"http://x.org/y.json\"}}", "/items/$ref: 'http://x.org/y.json' "
			"is outside the schema; remote references are not followed" },
		{ "{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"enum\": 1}}}",
			"/$defs/a/enum: expected a list of values" },
		{ "{\"$ref\": \"#/unknown/a\", \"unknown\": {\"a\": {\"enum\": 1}}}",
			"/unknown/a/enum: expected a list of values" },
		{ "{\"$schema\": \"http://json-schema.org/draft-04/schema#\"}", "/$schema: "
			"'http://json-schema.org/draft-04/schema' is unknown; expected the URI of draft "
			"2020-12, 7 or 6" },
		{ "{\"items\": [true]}", "/items: expected a schema, which is an object, true or false" },
		{ "{\"$anchor\": \"a b\"}", "/$anchor: expected a name of letters, digits, '-', '_' and '.'" },
		{ "{\"uniqueItems\": 1}", "/uniqueItems: expected true or false" },
	};

	(void)state;
	snprintf(type_error, sizeof type_error, "/properties/a~1b/items/type: expected %s", types);
	refuse_all(CONSTRAINT_JSON, row, COUNT(row));
}

static void grammars_that_are_none(void **state)
{
	static const struct bad row[] = {
		{ "root ::= a\n", "line 1: rule 'a' is not defined" },
		{ "root ::= \"a\"\n\nroot ::= \"b\"",
			"line 3: rule 'root' is already defined in line 1" },
		{ "start ::= \"a\"", "rule 'root' is missing, with which a grammar begins" },
		{ "root ::= (\n\"a\" | \"b\"\n", "line 1: '(' is not closed" },
		{ "root ::= \"a\"\n  | (\"c\"\nb ::= \"b\"", "line 2: '(' is not closed" },
		{ "root ::= \"a\")", "line 1: ')' without '('" },
		{ "root ::= \"a\" ]", "line 1: ']' without '['" },
		{ "root ::= \"a", "line 1: a quoted text is not closed" },
		{ "root ::= [a-", "line 1: '[' is not closed" },
		{ "root ::= [z-a]", "line 1: the end of a range in brackets is before its beginning" },
		{ "root ::= \"\\q\"", "line 1: an unknown escape; expected \\\" \\\\ \\n \\r \\t \\xHH "
			"\\uHHHH or \\UHHHHHHHH" },
		{ "root ::= \"\\ud800\"",
			"line 1: an escape without the hexadecimal digits of a character" },
		{ "root ::= \"a\"\n  {3,2}", "line 2: expected {m}, {m,} or {m,n} with m at most n" },
		{ "root ::= | *", "line 1: a repeat operator without anything before it" },
		{ "root ::= 'a'", "line 1: expected a text in double quotes, [...], (...) or the name of a rule" },
		{ "root := x\nroot ::= x", "line 1: expected a rule: NAME ::= ..." },
		{ "root ::= \"a\"{0,9999} \"a\"{0,9999} \"a\"{0,9999} \"a\"{0,9999} \"a\"{0,9999} "
			"\"a\"{0,9999} \"a\"{0,9999}", "the grammar has more than 200000 symbols once its repeats "
			"are written out (GRAMMAR_SYMBOLS_MAX)" },
	};

	(void)state;
	refuse_all(CONSTRAINT_GRAMMAR, row, COUNT(row));
}

static void patterns_that_are_none(void **state)
{
	static const struct bad row[] = {
		{ "a)", "the regular expression does not compile: unmatched closing parenthesis" },
		{ "\\Qa\\E", "the regular expression has \\Q, which Python does not support" },
		{ "(*LIMIT_MATCH=1)a", "the regular expression has a repeat operator without "
			"anything before it, at '*'" },
		{ "\\", "the regular expression has a backslash at its end, which Python does not support" },
	};

	(void)state;
	refuse_all(CONSTRAINT_REGEX, row, COUNT(row));
}

static void what_an_answer_is_blamed_for(void **state)
{
	static const struct { const char *schema, *answer, *why; } row[] = {
		{ "{\"items\": {\"properties\": {\"age\": {\"type\": \"integer\"}}}}",
			"[{\"age\": \"7\"}]", "schema /0/age type" },
		{ "{\"type\": \"object\"}", "[]", "schema (root) type" },
		{ "{\"required\": [\"a\"]}", "{}", "schema (root) required" },
		{ "{\"additionalProperties\": false}", "{\"a/b~\": 1}",
			"schema /a~1b~0 additionalProperties" },
		{ "{\"anyOf\": [{\"type\": \"null\"}, {\"minimum\": 3}]}", "2", "schema (root) anyOf" },
		{ "{\"allOf\": [{\"properties\": {\"a\": {\"const\": 1}}}]}", "{\"a\": 2}",
			"schema /a const" },
		{ "{\"$ref\": \"#/$defs/x\", \"$defs\": {\"x\": {\"maxLength\": 2}}}", "\"abc\"",
			"schema (root) maxLength" },
		{ "{\"not\": {}}", "1", "schema (root) not" },
		{ "{\"propertyNames\": {\"pattern\": \"^a\"}}", "{\"b\": 1}", "schema /b propertyNames" },
		{ "{\"unevaluatedProperties\": false, \"properties\": {\"a\": true}}", "{\"a\": 1, \"b\": 2}",
			"schema /b unevaluatedProperties" },
		{ "{\"if\": true, \"then\": {\"minItems\": 1}}", "[]", "schema (root) minItems" },
		{ "{\"contains\": {\"const\": 1}}", "[2]", "schema (root) contains" },
		{ "{\"maximum\": 9007199254740992}", "9007199254740992.5", "schema (root) maximum" },
		{ "{\"multipleOf\": 0.01}", "1.005", "schema (root) multipleOf" },
		{ "{\"format\": \"date\"}", "\"2023-02-29\"", "schema (root) format" },
		{ "false", "1", "schema (root) false" },
		{ "true", "", "parse line 1, column 1: expected a value, found the end of the text" },
		{ "true", "{\"a\": 1, \"a\": 2}", "parse line 1, column 16: an object has one key twice: 'a'" },
		{ "true", "[Infinity]", "parse line 1, column 2: expected a value, found 'Infinity]'" },
	};
	struct constraint_opts opts = { .is_format_asserted = true };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct constraint *c = constraint_compile(CONSTRAINT_JSON, str_of(row[i].schema),
			&opts, NULL);
		struct constraint_result r;

		assert_non_null(c);
		constraint_check(c, str_of(row[i].answer), &r);
		assert_int_equal(r.verdict, CONSTRAINT_BROKEN);
		assert_string_equal(r.why, row[i].why);
		constraint_free(c);
	}
}

/* A long pointer is cut; an answer nested deeper than the reader goes is not scored. */
static void long_and_deep_answers(void **state)
{
	struct constraint *c = constraint_compile(CONSTRAINT_JSON,
		STR("{\"additionalProperties\": {\"type\": \"null\"}}"), NULL, NULL);
	struct constraint_result r;
	struct buf text = { 0 };

	(void)state;
	buf_add_text(&text, "{\"");
	for (int i = 0; i < 500; i++)
		buf_add_text(&text, "\xc3\xa9");
	buf_add_text(&text, "\": 1}");
	constraint_check(c, buf_str(&text), &r);
	assert_int_equal(r.verdict, CONSTRAINT_BROKEN);
	assert_true(strlen(r.why) > 200 && str_ends(str_of(r.why), STR("\xc3\xa9 type")));
	buf_reset(&text);
	for (int i = 0; i < 100; i++)
		buf_add_char(&text, '[');
	for (int i = 0; i < 100; i++)
		buf_add_char(&text, ']');
	constraint_check(c, buf_str(&text), &r);
	assert_int_equal(r.verdict, CONSTRAINT_NOT_SCORED);
	assert_string_equal(r.why, "parse line 1, column 65: nested deeper than JSON_DEPTH_MAX");
	buf_release(&text);
	constraint_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schemas_that_are_none),
		cmocka_unit_test(grammars_that_are_none),
		cmocka_unit_test(patterns_that_are_none),
		cmocka_unit_test(what_an_answer_is_blamed_for),
		cmocka_unit_test(long_and_deep_answers),
	};

	return cmocka_run_group_tests_name("constrain messages", tests, NULL, NULL);
}
