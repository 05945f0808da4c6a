/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_script.c - mistakes in answers that satisfy a constraint: each is one small change
 * that breaks it, the same for the same seed; and scripts, cut into tokens and parts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "sim/model/script.h"
#include "answers.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define SEEDS 24

static const struct { enum constraint_kind kind; const char *text, *answer; } right[] = {
	{ CONSTRAINT_JSON, "{\"type\": \"object\", \"required\": [\"name\", \"n\", \"tags\"], "
	  "\"additionalProperties\": false, \"properties\": {\"name\": {\"type\": \"string\", \"enum\": "
	  "[\"ab\", \"cd\"]}, \"n\": {\"type\": \"integer\", \"maximum\": 9}, \"is\": {\"type\": \"boolean\"}, "
	  "\"tags\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"maxItems\": 2}}}",
	  "{\"name\": \"ab\", \"n\": 7, \"is\": true, \"tags\": [\"x\", \"y\"]}" },
	{ CONSTRAINT_JSON, "{\"type\": \"object\", \"required\": [\"a\"], \"properties\": {\"a\": {\"type\": "
	  "\"object\", \"required\": [\"b\"], \"properties\": {\"b\": {\"type\": \"null\"}}}}}",
	  "{ \"a\" : {\"b\":null} }" },
	{ CONSTRAINT_JSON, "{\"type\": \"array\", \"items\": {\"type\": \"number\"}}", "[1.5, 2, -3]" },
	{ CONSTRAINT_JSON, "{\"type\": \"integer\"}", "12" },
	{ CONSTRAINT_JSON, "{\"type\": \"array\", \"items\": {}, \"maxItems\": 0}", "[]" },
	{ CONSTRAINT_REGEX, "[a-c]{3}-[0-9]+", "abc-12" },
	{ CONSTRAINT_CHOICE, "[\"yes\", \"no\"]", "yes" },
	/* Nothing breaks it. */
	{ CONSTRAINT_REGEX, "(.|\\n)*", "any text" },
	{ CONSTRAINT_REGEX, "a?", "" },
};

static void mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(right); i++) {
		struct err e = { 0 };
		struct constraint *c = constraint_compile(right[i].kind, str_of(right[i].text),
							  NULL, &e);
		struct buf all = { 0 };

		if (!c)
			fail_msg("%s: %s", right[i].text, e.text);
		buf_printf(&all, "%s\n", right[i].answer);
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct constraint_result r;
			struct buf answer = { 0 }, again = { 0 };
			const char *name;

			buf_add_text(&answer, right[i].answer);
			constraint_check(c, buf_str(&answer), &r);
			assert_int_equal(r.verdict, CONSTRAINT_KEPT);
			name = mistake_make(c, seed, &answer);
			buf_printf(&all, "%s: %s\n", name ? name : "none", answer.data ? answer.data : "");
			constraint_check(c, buf_str(&answer), &r);
			assert_int_equal(r.verdict, name ? CONSTRAINT_BROKEN : CONSTRAINT_KEPT);
			buf_add_text(&again, right[i].answer);
			assert_ptr_equal(mistake_make(c, seed, &again), name);
			assert_string_equal(again.data, answer.data);
			buf_release(&answer);
			buf_release(&again);
		}
		answers_release(&all);
		constraint_free(c);
	}
}

static void put_script(struct buf *out, struct script *s)
{
	uint32_t tokens = s->parts ? s->part[s->parts - 1].token_end : 0;

	for (uint32_t i = 0; i < tokens; i++) {
		struct str text = script_token(s, i);
		const struct script_part *p = script_part_of(s, i);
		uint32_t wrong = 0, calls = script_calls(s, i + 1, &wrong);

		buf_printf(out, "%u '%.*s' kind %d call %u, %u calls, %u malformed\n", i, (int)text.n,
			   text.n ? text.p : "", (int)p->kind, p->call, calls, wrong);
	}
	for (uint32_t i = 0; i < s->parts; i++)
		buf_printf(out, "part %u: kind %d, to token %u, name at %zu of %zu\n", i, (int)s->part[i].kind,
			   s->part[i].token_end, s->part[i].name_at, s->part[i].name_n);
}

/* Text, then two calls, of which the second one has wrong arguments. */
static void scripts(void **state)
{
	struct err e = { 0 };
	struct tokenizer *t = tokenizer_load("sim", NULL, &e);
	struct script s = { 0 };
	struct str look = STR("<call>look{"), go = STR("go");
	struct buf out = { 0 };

	(void)state;
	assert_non_null(t);
	assert_int_equal(script_add(&s, t, SCRIPT_TEXT, STR("a b\xc3\xbc" "c"), STR(""), &e), 0);
	assert_int_equal(script_add(&s, t, SCRIPT_CALL, look, (struct str){ look.p + 6, 4 }, &e),
			 0);
	assert_int_equal(script_add(&s, t, SCRIPT_ARGUMENTS, STR("\"x\": 1}"), STR(""), &e), 0);
	assert_int_equal(script_add(&s, t, SCRIPT_CALL, go, go, &e), 0);
	s.part[s.parts - 1].is_malformed = true;
	assert_int_equal(script_add(&s, t, SCRIPT_ARGUMENTS, STR("{}"), STR(""), &e), 0);
	put_script(&out, &s);
	script_reset(&s);
	assert_int_equal(s.parts, 0);
	assert_int_equal(script_add(&s, t, SCRIPT_TEXT, STR("again"), STR(""), &e), 0);
	put_script(&out, &s);
	answers_release(&out);
	script_release(&s);
	tokenizer_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(mistakes), cmocka_unit_test(scripts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
