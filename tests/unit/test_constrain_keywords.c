/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_constrain_keywords.c - each keyword of JSON Schema, in the drafts that differ: a value that
 * keeps to it and one that does not. What is made up for each schema keeps to it, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "core/base/str.h"
#include "core/json/read.h"
#include "input/constrain/schema.h"
#include "input/constrain/syntax.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define DRAFT(n) "{'$schema': 'http://json-schema.org/draft-0" n "/schema#', "

/* In each text ' is ". bad NULL: every value keeps to it. */
static const struct { const char *schema, *good, *bad; } row[] = {
	{ "true", "1", NULL }, { "{}", "[{}]", NULL },
	{ "{'type': 'integer'}", "1.0", "1.5" }, { "{'type': 'number'}", "1.5", "'1'" },
	{ "{'type': 'boolean'}", "false", "0" }, { "{'type': 'null'}", "null", "0" },
	{ "{'type': 'array'}", "[]", "{}" }, { "{'type': 'object'}", "{}", "[]" },
	{ "{'type': ['string', 'null']}", "null", "1" },
	{ "{'const': {'a': [1, 2.0]}}", "{'a': [1.0, 2]}", "{'a': [2, 1]}" },
	{ "{'enum': [1, 'a', null]}", "'a'", "'b'" }, { "{'minimum': 3, 'maximum': 5}", "3", "2.999" },
	{ "{'minimum': 3, 'maximum': 5}", "5", "5.001" }, { "{'exclusiveMinimum': 3}", "3.01", "3" },
	{ "{'exclusiveMaximum': 3}", "2.99", "3" }, { "{'multipleOf': 0.01}", "4.35", "4.355" },
	{ "{'multipleOf': 7}", "-14", "15" },
	{ "{'minLength': 2, 'maxLength': 3}", "'\xc3\xa9\xc3\xa9'", "'\xc3\xa9'" },
	{ "{'maxLength': 3}", "'\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80'", "'abcd'" },
	{ "{'pattern': '^a+$'}", "'aa'", "'ab'" }, { "{'minItems': 1, 'maxItems': 2}", "[1]", "[]" },
	{ "{'maxItems': 2}", "[1, 2]", "[1, 2, 3]" },
	{ "{'uniqueItems': true}", "[1, '1', [1], {'a': 1}]", "[1, 2, 1.0]" },
	{ "{'uniqueItems': true}", "[{'a': 1, 'b': 2}]", "[{'a': 1, 'b': 2}, {'b': 2, 'a': 1}]" },
	{ "{'prefixItems': [{'type': 'string'}, {'type': 'null'}]}", "['a']", "['a', 1]" },
	{ "{'prefixItems': [{'type': 'string'}], 'items': false}", "['a']", "['a', 1]" },
	{ "{'items': {'type': 'integer'}}", "[1, 2]", "[1, 'a']" },
	{ DRAFT("7") "'items': [{'type': 'string'}], 'additionalItems': {'type': 'null'}}", "['a', null]", "['a', 1]" },
	{ DRAFT("7") "'items': [{'type': 'string'}], 'additionalItems': false}", "['a']", "['a', 1]" },
	{ DRAFT("7") "'items': {'type': 'integer'}, 'additionalItems': false}", "[1, 2]", "['a']" },
	{ DRAFT("6") "'items': [true, false]}", "[1]", "[1, 2]" },
	{ "{'contains': {'const': 1}}", "[0, 1]", "[0]" },
	{ "{'contains': {'const': 1}, 'minContains': 2}", "[1, 1]", "[1]" },
	{ "{'contains': {'const': 1}, 'maxContains': 1}", "[1, 0]", "[1, 1]" },
	{ "{'contains': {'const': 1}, 'minContains': 0}", "[]", NULL },
	{ "{'properties': {'a': {'type': 'integer'}}, 'required': ['a']}", "{'a': 1}", "{'b': 1}" },
	{ "{'patternProperties': {'^x': {'type': 'null'}}, 'additionalProperties': {'type': 'integer'}}",
	  "{'xa': null, 'b': 1}", "{'xa': 1}" },
	{ "{'patternProperties': {'^x': {'type': 'null'}}, 'additionalProperties': false}",
	  "{'x': null}", "{'y': null}" },
	{ "{'additionalProperties': false, 'properties': {'a': true}}", "{'a': []}", "{'a': 1, 'b': 2}" },
	{ "{'minProperties': 1, 'maxProperties': 2}", "{'a': 1}", "{}" },
	{ "{'maxProperties': 1}", "{}", "{'a': 1, 'b': 2}" },
	{ "{'propertyNames': {'maxLength': 2}}", "{'ab': 1}", "{'abc': 1}" },
	{ "{'dependentRequired': {'a': ['b']}}", "{'b': 1}", "{'a': 1}" },
	{ "{'dependentSchemas': {'a': {'required': ['c']}}}", "{'a': 1, 'c': 2}", "{'a': 1}" },
	{ DRAFT("7") "'dependencies': {'a': ['b'], 'c': {'required': ['d']}}}", "{'a': 1, 'b': 2}", "{'c': 1}" },
	{ DRAFT("7") "'dependencies': {'a': ['b']}}", "{}", "{'a': 1}" },
	{ "{'allOf': [{'minimum': 1}, {'maximum': 2}]}", "1.5", "3" },
	{ "{'anyOf': [{'type': 'null'}, {'minimum': 2}]}", "null", "1" },
	{ "{'oneOf': [{'multipleOf': 2}, {'multipleOf': 3}], 'type': 'integer'}", "4", "6" },
	{ "{'not': {'type': 'string'}}", "1", "'a'" },
	{ "{'if': {'minimum': 10}, 'then': {'multipleOf': 5}, 'else': {'multipleOf': 2}, 'type': "
	  "'integer'}", "15", "16.0" },
	{ "{'if': {'minimum': 10}, 'then': {'multipleOf': 5}, 'else': {'multipleOf': 2}, 'type': "
	  "'integer'}", "4", "5" },
	{ "{'$defs': {'a': {'$anchor': 'here', 'type': 'string'}}, 'items': {'$ref': '#here'}}", "['a']", "[1]" },
	{ "{'$id': 'http://x/a', '$defs': {'b': {'$id': 'b', 'type': 'null'}}, 'items': {'$ref': "
	  "'b'}}", "[null]", "[1]" },
	{ "{'$id': 'http://x/a', '$defs': {'b': {'$id': '/b', '$defs': {'c': {'$anchor': 'c', 'const': 1}}}}, 'items': "
	  "{'$ref': 'http://x/b#c'}}", "[1]", "[2]" },
	/* What is next to a reference counts since 2019 alone. */
	{ "{'$defs': {'a': {'type': 'integer'}}, '$ref': '#/$defs/a', 'minimum': 3}", "3", "2" },
	{ "{'$defs': {'a': {'type': 'integer'}}, '$ref': '#/$defs/a', 'minimum': 3}", "4", "'a'" },
	{ DRAFT("7") "'definitions': {'a': {'type': 'integer'}}, '$ref': '#/definitions/a', 'minimum': 3}",
	  "2", "'a'" },
	{ "{'$defs': {'a~b/c': {'type': 'null'}}, '$ref': '#/$defs/a~0b~1c'}", "null", "1" },
	{ "{'$defs': {'/~': {'type': 'null'}}, '$ref': '#/$defs/~1~0'}", "null", "1" },
	{ "{'$defs': {'a~': {'type': 'null'}}, '$ref': '#/$defs/a~'}", "null", "1" },
	{ "{'$defs': {'a b': {'type': 'null'}}, '$ref': '#/$defs/a%20b'}", "null", "1" },
	{ "{'type': 'object', 'properties': {'next': {'$ref': '#'}}, 'additionalProperties': false}",
	  "{'next': {'next': {}}}", "{'next': {'x': 1}}" },
	{ "{'$defs': {'n': {'$dynamicAnchor': 'n', 'type': 'integer'}}, 'items': {'$dynamicRef': "
	  "'#n'}}", "[1]", "['a']" },
	{ "{'properties': {'a': true}, 'unevaluatedProperties': false}", "{'a': 1}", "{'b': 1}" },
	{ "{'allOf': [{'properties': {'a': true}}], 'unevaluatedProperties': {'type': 'null'}}", "{'a': 1, 'b': null}",
	  "{'a': 1, 'b': 2}" },
	{ "{'prefixItems': [true], 'unevaluatedItems': false}", "[1]", "[1, 2]" },
	{ "{'title': 't', 'description': 'd', '$comment': 'c', 'examples': [], 'deprecated': true, 'readOnly': true, "
	  "'writeOnly': false, 'contentEncoding': 'base64', 'contentMediaType': 'a/b', "
	  "'contentSchema': {}, 'unknown': 1}",
	  "1", NULL },
};

static void fill(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_add_char(out, *text == '\'' ? '"' : *text);
}

static struct schema *compile(const char *text)
{
	struct buf json = { 0 };
	struct err e = { 0 };
	struct schema *s;

	fill(&json, text);
	s = schema_new(buf_str(&json), false, &e);
	if (!s)
		fail_msg("%s: %s", json.data, e.text);
	buf_release(&json);
	return s;
}

static void judge(const struct schema *s, const char *schema, struct str text,
	enum schema_answer want)
{
	struct json_value *v = NULL;
	struct arena a = { 0 };
	char why[256] = "";
	struct err e;

	if (json_parse(&a, text, &v, &e) < 0)
		fail_msg("%.*s: %s", (int)text.n, text.p, e.text);
	if (schema_judge(s, v, why, sizeof(why)) != want)
		fail_msg("%s of %.*s: %s", schema, (int)text.n, text.p, want == SCHEMA_KEPT ? why : "kept");
	arena_release(&a);
}

static void keywords(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct schema *s = compile(row[i].schema);

		for (int k = 0; k < 2; k++) {
			struct buf text = { 0 };

			if (k && !row[i].bad)
				continue;
			fill(&text, k ? row[i].bad : row[i].good);
			judge(s, row[i].schema, buf_str(&text), k ? SCHEMA_BROKEN : SCHEMA_KEPT);
			buf_release(&text);
		}
		schema_free(s);
	}
}

/* Of any seed and length; what a value must not be is not always avoided. */
static void what_is_made_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct schema *s = compile(row[i].schema);

		for (uint64_t seed = 0; seed < 12; seed++) {
			struct dice d = { seed };
			struct buf text = { 0 };
			struct err e = { 0 };

			if (schema_invent(s, &d, seed % 3 * 40, &text, &e) == 0)
				judge(s, row[i].schema, buf_str(&text), SCHEMA_KEPT);
			else if (!strstr(row[i].schema, "'not'"))
				fail_msg("%s: %s", row[i].schema, e.text);
			buf_release(&text);
		}
		schema_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(keywords),
		cmocka_unit_test(what_is_made_up) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
