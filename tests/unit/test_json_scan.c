/* SPDX-License-Identifier: Apache-2.0 */
/* The key scanner: rows of known events, then many generated texts judged by the tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "json_check.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static void finds(void **state)
{
	static const struct {
		const char *text, *path, *raw; /* raw NULL: absent */
	} row[] = {
		{ "{\"choices\":[{\"text\":\" a\"}],\"usage\":null}", "choices[0].text", " a" },
		{ "{\"choices\":[{\"text\":\" a\"}],\"usage\":null}", "usage", "null" },
		{ "{\"choices\":[{\"text\":\" a\"}]}", "usage", NULL },
		{ "{\"choices\":[]}", "choices", "[]" },
		{ "{\"choices\":[]}", "choices[0].text", NULL },
		{ "{\"choices\":[1]}", "choices[0].text", NULL },
		{ "{\"choices\":{\"text\":1}}", "choices[0].text", NULL },
		{ "{\"choices\":[{},{\"text\":\"b\"}]}", "choices[0].text", NULL },
		{ "{\"choices\":[{},{\"text\":\"b\"}]}", "choices[1].text", "b" },
		{ "{\"text\":\"x\",\"choices\":[{\"l\":{\"text\":\"y\"}}]}", "choices[0].text", NULL },
		{ " { \"usage\" : { \"a\" : 1 , \"n\" : 2 } } ", "usage.n", "2" },
		{ "{\"usage\":{\"n\":1},\"usage\":{}}", "usage.n", NULL },
		{ "{\"usage\":{\"n\":1},\"usage\":{\"n\":3}}", "usage.n", "3" },
		{ "{\"us\\u0061ge\":{\"n\":1}}", "usage.n", "1" },
		{ "{\"usage\\\"\":{\"n\":1}}", "usage.n", NULL },
		{ "{\"usagf\":1,\"usag\":2,\"usages\":3,\"Usage\":4}", "usage", NULL },
		{ "{\"a\":[[1,2],[3,[4,5]]]}", "a[1][1][0]", "4" },
		{ "{\"longer_than_eight\":1,\"longer_than_eighty\":2}", "longer_than_eighty", "2" },
		{ "{\"a\":\"\\n\\\"\"}", "a", "\\n\\\"" },
		{ "[1,2]", "[1]", "2" },
		{ "17", "a", NULL },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct json_paths paths;
		struct json_slice out;

		json_scan_paths_init(&paths, &row[i].path, 1);
		assert_int_equal(json_scan_run(&paths, str_of(row[i].text), &out), 0);
		if (!row[i].raw)
			assert_null(out.raw.p);
		else if (!out.raw.p || !str_is(out.raw, row[i].raw))
			fail_msg("row %zu: got %.*s", i, (int)out.raw.n, out.raw.p);
	}
}

static void refuses(void **state)
{
	static const char *const text[] = {
		"", " ", "{", "{\"usage\":1", "{\"usage\":1}}", "{\"usage\":[}", "{\"choices\":[{]}",
		"{\"usage\":\"a}", "{\"a\":\"\\x\"}", "{\"a\":\"\n\"}", "{\"usage\":1,}", "{\"usage\"}",
		"{\"choices\":[{\"text\":\"a\"}", "{\"usage\":nul}", "[DONE]", "{\"a\":{\"b\":[1,2}}",
	};
	static const char *const path[] = { "usage", "choices[0].text" };
	struct json_paths paths;
	struct json_slice out[2];

	(void)state;
	json_scan_paths_init(&paths, path, 2);
	for (size_t i = 0; i < COUNT(text); i++)
		if (json_scan_run(&paths, str_of(text[i]), out) != -1)
			fail_msg("accepted %s", text[i]);
}

/* ---- generated texts ---- */

struct source {
	uint64_t state;
};

static unsigned pick(struct source *s, unsigned below)
{
	s->state = s->state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(s->state >> 33) % below;
}

static void blanks(struct source *s, struct buf *out)
{
	if (pick(s, 8) == 0)
		buf_add_text(out, pick(s, 2) ? " " : "\n\t ");
}

static void any_value(struct source *s, struct buf *out, unsigned depth)
{
	static const char *const plain[] = {
		"null", "true", "false", "0", "-12", "3.5e2", "NaN", "12345678901234567890", "\"\"",
		"\"text\"", "\"a longer text, with } ] and {\"", "\"\\\"\\\\\"", "\"\\ud83d\\ude00\"",
		"\"\xc3\xa9t\xc3\xa9\"", "[]", "{}", "\"0123456789abcde\\n\"",
	};
	static const char *const key[] = {
		"choices", "text", "delta", "content", "reasoning_content", "reasoning", "finish_reason",
		"usage", "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens",
		"error", "a", "b", "c", "\\u0061", "us\\u0061ge", "\\\"", "id",
	};
	unsigned kind = depth > 5 ? 0 : pick(s, 4), n = pick(s, 5);

	if (kind <= 1 && depth > 0) {
		buf_add_text(out, plain[pick(s, COUNT(plain))]);
		return;
	}
	buf_add_char(out, kind == 2 ? '[' : '{');
	for (unsigned i = 0; i < n; i++) {
		buf_add_text(out, i ? "," : "");
		blanks(s, out);
		if (kind != 2) {
			buf_printf(out, "\"%s\"", key[pick(s, COUNT(key))]);
			blanks(s, out);
			buf_add_char(out, ':');
			blanks(s, out);
		}
		any_value(s, out, depth + 1);
		blanks(s, out);
	}
	buf_add_char(out, kind == 2 ? ']' : '}');
}

/* An event whose frame is right, so that the deep paths are reached often. */
static void event(struct source *s, struct buf *out)
{
	static const char *const order[][2] = {
		{ "choices", "usage" }, { "usage", "choices" }, { "choices", "choices" },
		{ "error", "usage" },
	};
	unsigned o = pick(s, COUNT(order));

	buf_printf(out, "{\"id\":%u,\"%s\":[", pick(s, 9), order[o][0]);
	any_value(s, out, 1);
	buf_add_char(out, ',');
	any_value(s, out, 1);
	buf_printf(out, "],\"%s\":", order[o][1]);
	any_value(s, out, pick(s, 2));
	buf_add_char(out, '}');
}

static void agrees_with_the_tree(void **state)
{
	struct source s = { 42 };
	struct buf text = { 0 };

	(void)state;
	for (int i = 0; i < 20000; i++) {
		const char *differs;

		buf_reset(&text);
		if (i % 2)
			event(&s, &text);
		else
			any_value(&s, &text, 0);
		if (i % 3 == 0) /* often malformed, in a random place */
			text.data[pick(&s, (unsigned)text.len)] = "\"\\{}[],:1a \n"[pick(&s, 12)];
		if (i % 7 == 0)
			text.len = pick(&s, (unsigned)text.len);
		differs = check_scan(buf_str(&text));
		if (differs)
			fail_msg("%s differs in %.*s", differs, (int)text.len, text.data);
	}
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(refuses),
		cmocka_unit_test(agrees_with_the_tree),
	};

	return cmocka_run_group_tests_name("json_scan", tests, NULL, NULL);
}
