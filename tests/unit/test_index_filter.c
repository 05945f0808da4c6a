/* SPDX-License-Identifier: Apache-2.0 */
/* test_index_filter.c - filters from JSON: what each form holds for, what is refused where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "results/index/filter.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define TEXT(s) { .kind = VALUE_TEXT, .text = { s, sizeof(s) - 1 } }
#define NUMBER(v) { .kind = VALUE_NUMBER, .number = v }

static struct cell cells[] = {
	{ { "model", 5 }, TEXT("Meta/Llama-3") },
	{ { "rate", 4 }, NUMBER(INFINITY) },
	{ { "tp", 2 }, NUMBER(4) },
	{ { "zero", 4 }, NUMBER(0) },
	{ { "no", 2 }, { .kind = VALUE_BOOL, .is_true = false } },
	{ { "nothing", 7 }, { .kind = VALUE_NULL } },
	{ { "digits", 6 }, TEXT("4") },
	{ { "empty", 5 }, TEXT("") },
	{ { "timestamp", 9 }, NUMBER(1767323045.5) }, /* 2026-01-02T03:04:05.5Z */
};
static const struct row sample = { 1, cells, COUNT(cells) };

static const struct { const char *json; bool holds; } held[] = {
	{ "null", true }, { "{\"and\":[]}", true }, { "{\"or\":[]}", false },
	{ "{\"not\":{\"and\":[]}}", false },
	{ "{\"column\":\"tp\",\"in\":[4]}", true }, { "{\"in\":[4.0],\"column\":\"tp\"}", true },
	{ "{\"column\":\"tp\",\"in\":[\"4\"]}", false }, { "{\"column\":\"digits\",\"in\":[4]}", false },
	{ "{\"column\":\"digits\",\"in\":[\"4\"]}", true }, { "{\"column\":\"tp\",\"in\":[]}", false },
	{ "{\"column\":\"rate\",\"in\":[\"inf\"]}", true },
	{ "{\"column\":\"rate\",\"in\":[\"-inf\"]}", false },
	{ "{\"column\":\"no\",\"in\":[false]}", true }, { "{\"column\":\"no\",\"in\":[0]}", false },
	{ "{\"column\":\"no\",\"in\":[null]}", false }, { "{\"column\":\"zero\",\"in\":[-0.0]}", true },
	{ "{\"column\":\"zero\",\"in\":[false]}", false },
	{ "{\"column\":\"nothing\",\"in\":[null]}", true },
	{ "{\"column\":\"never\",\"in\":[null]}", true },
	{ "{\"column\":\"never\",\"in\":[\"x\"]}", false },
	{ "{\"column\":\"tp\",\"range\":{\"min\":4,\"max\":4}}", true },
	{ "{\"column\":\"tp\",\"range\":{\"min\":4.5}}", false },
	{ "{\"column\":\"tp\",\"range\":{\"max\":3}}", false },
	{ "{\"column\":\"tp\",\"range\":{}}", true },
	{ "{\"column\":\"tp\",\"range\":{\"min\":null,\"max\":9}}", true },
	{ "{\"column\":\"digits\",\"range\":{}}", false }, { "{\"column\":\"no\",\"range\":{}}", false },
	{ "{\"column\":\"rate\",\"range\":{\"min\":1e308}}", true },
	{ "{\"column\":\"rate\",\"range\":{\"max\":1e308}}", false },
	{ "{\"column\":\"rate\",\"range\":{\"max\":\"inf\"}}", true },
	{ "{\"column\":\"model\",\"text\":\"LLAMA\"}", true },
	{ "{\"column\":\"model\",\"text\":\"\"}", true }, { "{\"column\":\"empty\",\"text\":\"\"}", true },
	{ "{\"column\":\"tp\",\"text\":\"\"}", false },
	{ "{\"column\":\"model\",\"text\":\"Llama-33\"}", false },
	{ "{\"column\":\"*\",\"text\":\"llama-3\"}", true }, { "{\"column\":\"*\",\"text\":\"4\"}", true },
	{ "{\"column\":\"*\",\"text\":\"5\"}", false },
	{ "{\"column\":\"nothing\",\"missing\":true}", true },
	{ "{\"column\":\"never\",\"missing\":true}", true },
	{ "{\"column\":\"no\",\"missing\":true}", false }, { "{\"column\":\"no\",\"missing\":false}", true },
	{ "{\"and\":[{\"column\":\"tp\",\"in\":[4]},{\"column\":\"model\",\"text\":\"qwen\"}]}", false },
	{ "{\"or\":[{\"column\":\"tp\",\"in\":[4]},{\"column\":\"model\",\"text\":\"qwen\"}]}", true },
	{ "{\"not\":{\"column\":\"tp\",\"in\":[4]}}", false },
	{ "{\"column\":\"timestamp\",\"range\":{\"min\":\"2026-01-02\"}}", true },
	{ "{\"column\":\"timestamp\",\"range\":{\"max\":\"2026-01-02\"}}", false },
	{ "{\"column\":\"timestamp\",\"range\":{\"min\":\"2026-01-02T03:04:05.5Z\"}}", true },
	{ "{\"column\":\"timestamp\",\"range\":{\"min\":\"2026-01-02 03:04:05.501\"}}", false },
	{ "{\"column\":\"timestamp\",\"range\":{\"max\":\"2026-01-02T04:04:05.5+01:00\"}}", true },
	{ "{\"column\":\"timestamp\",\"range\":{\"max\":\"2026-01-01T22:34:05.4-0430\"}}", false },
	{ "{\"column\":\"timestamp\",\"range\":{\"min\":1767323045.5,\"max\":\"inf\"}}", true },
};

static void test_held(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(held); i++) {
		struct arena a = { 0 };
		struct json_value *json;
		struct filter *f;
		struct err e = { 0 };

		assert_int_equal(json_parse(&a, str_of(held[i].json), &json, &e), 0);
		if (filter_read(json, NULL, &a, &f, &e) < 0)
			fail_msg("%s: %s", held[i].json, e.text);
		if (filter_holds(f, &sample) != held[i].holds)
			fail_msg("%s: %d", held[i].json, !held[i].holds);
		arena_release(&a);
	}
}

static const struct { const char *json, *says; } refused[] = {
	{ "1", "filter: expected an object" },
	{ "{}", "filter: expected \"and\", \"or\", \"not\" or \"column\"" },
	{ "{\"xor\":[]}", "filter: expected \"and\"" },
	{ "{\"and\":{}}", "/and: expected a list of conditions" },
	{ "{\"and\":[],\"or\":[]}", "filter: expected no other member next to it" },
	{ "{\"and\":[{\"and\":[]},{\"or\":[7]}]}", "/and/1/or/0: expected an object" },
	{ "{\"not\":[]}", "/not: expected an object" },
	{ "{\"column\":\"a\"}", "filter: expected \"column\" and one of" },
	{ "{\"column\":\"a\",\"in\":[],\"text\":\"\"}", "filter: expected \"column\" and one of" },
	{ "{\"column\":\"\",\"in\":[]}", "/column: expected the name of a column" },
	{ "{\"column\":1,\"in\":[]}", "/column: expected the name of a column" },
	{ "{\"column\":\"a\",\"is\":1}", "/is: expected \"in\", \"range\", \"text\" or \"missing\"" },
	{ "{\"column\":\"a\",\"in\":1}", "/in: expected a list of values" },
	{ "{\"column\":\"a\",\"in\":[1,{}]}", "/in/1: expected null, true, false, a number or a text" },
	{ "{\"column\":\"a\",\"in\":[NaN]}", "/in/0: expected null" },
	{ "{\"column\":\"a\",\"range\":[1,2]}", "/range: expected an object" },
	{ "{\"column\":\"a\",\"range\":{\"from\":1}}", "/range/from: expected \"min\" or \"max\"" },
	{ "{\"column\":\"a\",\"range\":{\"min\":\"x\"}}", "/range/min: expected a number or \"inf\"" },
	{ "{\"column\":\"a\",\"range\":{\"max\":NaN}}", "/range/max: expected a number" },
	{ "{\"column\":\"a\",\"range\":{\"min\":2,\"max\":1}}",
	  "/range: expected min to be at most max, got 2 and 1" },
	{ "{\"column\":\"a\",\"range\":{\"min\":\"2026-01-02\"}}", "/range/min: expected a number" },
	{ "{\"column\":\"timestamp\",\"range\":{\"min\":\"2026-13-02\"}}", "/range/min: expected a time" },
	{ "{\"column\":\"timestamp\",\"range\":{\"min\":\"2026-02-29\"}}", "/range/min: expected a time" },
	{ "{\"column\":\"timestamp\",\"range\":{\"min\":\"2026-02-28T24:00\"}}",
	  "/range/min: expected a time" },
	{ "{\"column\":\"timestamp\",\"range\":{\"min\":\"2026-02-28T1:00\"}}",
	  "/range/min: expected a time" },
	{ "{\"column\":\"timestamp\",\"range\":{\"max\":\"2026-02-28T10:00:00.\"}}",
	  "/range/max: expected a time" },
	{ "{\"column\":\"timestamp\",\"range\":{\"max\":\"2026-02-28T10:00 CET\"}}",
	  "/range/max: expected a time" },
	{ "{\"column\":\"a\",\"text\":1}", "/text: expected a text" },
	{ "{\"column\":\"a\",\"missing\":1}", "/missing: expected true or false" },
};

static void check_refused(const char *text, const char *pointer, const char *says)
{
	struct arena a = { 0 };
	struct json_value *json;
	struct filter *f;
	struct err e = { 0 };

	assert_int_equal(json_parse(&a, str_of(text), &json, &e), 0);
	assert_int_equal(filter_read(json, pointer, &a, &f, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	if (strncmp(e.text, says, strlen(says)) != 0)
		fail_msg("%.60s: \"%s\", not \"%s\"", text, e.text, says);
	arena_release(&a);
}

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(refused); i++)
		check_refused(refused[i].json, NULL, refused[i].says);
	check_refused("{\"and\":[1]}", "/filter", "/filter/and/0: expected an object");
}

/* n times the middle between two ends. */
static char *repeat(struct arena *a, const char *head, const char *middle, size_t n,
		    const char *tail)
{
	struct buf b = { 0 };
	char *text;

	buf_add_text(&b, head);
	for (size_t i = 0; i < n; i++) {
		buf_add_text(&b, i && *head ? "," : "");
		buf_add_text(&b, middle);
	}
	buf_add_text(&b, *head ? "" : "{\"and\":[]}");
	for (size_t i = 0; i < n && !*head; i++)
		buf_add_char(&b, '}');
	buf_add_text(&b, tail);
	text = arena_text(a, buf_str(&b));
	buf_release(&b);
	return text;
}

static void test_limits(void **state)
{
	struct arena a = { 0 };
	struct json_value *json;
	struct filter *f;
	struct err e = { 0 };

	(void)state;
	check_refused(repeat(&a, "{\"or\":[", "{\"or\":[]}", FILTER_CONDITIONS_MAX, "]}"), NULL,
		      "/or/255: too many conditions (FILTER_CONDITIONS_MAX)");
	check_refused(repeat(&a, "{\"column\":\"a\",\"in\":[", "1", FILTER_VALUES_MAX + 1, "]}"), NULL,
		      "/in: the lists hold too many values together (FILTER_VALUES_MAX)");
	check_refused(repeat(&a, "", "{\"not\":", FILTER_DEPTH_MAX, ""), NULL, "/not/not/not/");
	assert_int_equal(json_parse(&a, str_of(repeat(&a, "", "{\"not\":", FILTER_DEPTH_MAX - 1, "")),
				    &json, &e), 0);
	assert_int_equal(filter_read(json, NULL, &a, &f, &e), 0);
	assert_false(filter_holds(f, &sample));
	arena_release(&a);
}

static void test_order(void **state)
{
	static const struct value value[] = {
		{ 0 }, { .kind = VALUE_NULL }, { .kind = VALUE_BOOL, .is_true = false },
		{ .kind = VALUE_BOOL, .is_true = true }, NUMBER(-INFINITY), NUMBER(-1), NUMBER(0),
		NUMBER(INFINITY), TEXT(""), TEXT("A"), TEXT("AB"), TEXT("a"), TEXT("\xc3\xa9"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(value); i++)
		for (size_t k = 0; k < COUNT(value); k++) {
			int c = value_compare(value[i], value[k]);

			assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
			assert_int_equal(value_same(value[i], value[k]), i == k);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
