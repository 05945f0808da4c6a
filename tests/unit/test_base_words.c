/* SPDX-License-Identifier: Apache-2.0 */
/* words_split against Python 3.11's shlex.split: each row's right side is what that printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/* Words in [] so that empty ones and blanks show. */
static const struct row { const char *text, *words; } rows[] = {
	{ "", "" },
	{ "  \t\r\n ", "" },
	{ "vllm serve m", "[vllm][serve][m]" },
	{ " a  b\tc\nd\re ", "[a][b][c][d][e]" },
	{ "'a b' c", "[a b][c]" },
	{ "\"a b\" c", "[a b][c]" },
	{ "a'b c'd", "[ab cd]" },
	{ "''", "[]" },
	{ "\"\"", "[]" },
	{ "a '' b", "[a][][b]" },
	{ "x''y", "[xy]" },
	{ "a\\ b", "[a b]" },
	{ "a\\\\b", "[a\\b]" },
	{ "'a\\b'", "[a\\b]" },
	{ "\"a\\b\"", "[a\\b]" },
	{ "\"a\\\"b\"", "[a\"b]" },
	{ "\"a\\\\b\"", "[a\\b]" },
	{ "'it'\\''s'", "[it's]" },
	{ "\"it's\"", "[it's]" },
	{ "'say \"x\"'", "[say \"x\"]" },
	{ "--x='{\"a\": 1}'", "[--x={\"a\": 1}]" },
	{ "--x.a.b 1", "[--x.a.b][1]" },
	{ "a # b", "[a][#][b]" },
	{ "a;b|c>d&", "[a;b|c>d&]" },
	{ "$HOME *", "[$HOME][*]" },
	{ "caf\303\251 \"\342\202\254 1\"", "[caf\303\251][\342\202\254 1]" },
	{ "a\\\nb", "[a\nb]" },
	{ "a\vb", "[a\vb]" },
	{ "vllm serve \\\n  m \\\r\n\t--port \\\n8000 \\\n", "[vllm][serve][m][--port][8000]" }, /* not Python's */
	{ "'", "No closing quotation" },
	{ "a 'b", "No closing quotation" },
	{ "a \"b\\\"", "No closing quotation" },
	{ "\"a\\", "No escaped character" },
	{ "a\\", "No escaped character" },
};

static void words_are_pythons(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena a = { 0 };
		struct buf got = { 0 };
		struct err e = { 0 };
		char **argv;
		size_t n;

		buf_add_text(&got, "");
		if (words_split(str_of(rows[i].text), &a, &argv, &n, &e) < 0) {
			assert_int_equal(e.code, ERR_USAGE);
			buf_add_text(&got, e.text);
		} else {
			for (size_t k = 0; k < n; k++)
				buf_printf(&got, "[%s]", argv[k]);
			assert_null(argv[n]);
		}
		assert_string_equal(got.data ? got.data : "", rows[i].words);
		buf_release(&got);
		arena_release(&a);
	}
}

static void zero_bytes_are_refused(void **state)
{
	struct arena a = { 0 };
	struct err e = { 0 };
	char **argv;

	(void)state;
	assert_int_equal(words_split(STR("a\0b"), &a, &argv, NULL, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_int_equal(words_split((struct str){ 0 }, &a, &argv, NULL, &e), 0);
	assert_null(argv[0]);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_pythons),
		cmocka_unit_test(zero_bytes_are_refused),
	};

	return cmocka_run_group_tests_name("base_words", tests, NULL, NULL);
}
