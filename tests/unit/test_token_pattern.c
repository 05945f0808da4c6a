/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_pattern.c - regular expressions rewritten for PCRE2, and what they
 * then match.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "input/encode/chars.h"
#include "input/encode/regex.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void test_rewrite(void **state)
{
	static const struct {
		const char *pattern, *want;
	} row[] = {
		{ "", "" },
		{ "a|b+?c*+", "a|b+?c*+" },
		{ "(?i:'s|'t)(?=x)(?!y)(?<=z)(?<!w)(?>v)",
			"(?i:'s|'t)(?=x)(?!y)(?<=z)(?<!w)(?>v)" },
		{ "\\p{L}\\P{N}\\p{^Lu}\\p{Any}", "\\p{L}\\P{N}\\p{^Lu}\\p{Any}" },
		{ "\\p{Han}[\\p{Hiragana}]", "\\p{sc:Han}[\\p{sc:Hiragana}]" },
		{ "\\d\\D\\r\\n\\t\\/", "\\p{Nd}\\P{Nd}\\r\\n\\t\\/" },
		{ "[\\w]", "[\\p{L}\\p{M}\\p{N}\\p{Pc}]" },
		{ "\\W", "[^\\p{L}\\p{M}\\p{N}\\p{Pc}]" },
		{ "a{1,3}+", "(?:a{1,3})+" },
		{ "(?:ab){2}+c", "(?:(?:ab){2})+c" },
		{ "\\p{N}{1,3}+|x", "(?:\\p{N}{1,3})+|x" },
		{ "[ab]{2}?", "(?:[ab]{2})?" },
		{ "a{1,3}?b{,2}c{x}", "a{1,3}?b{0,2}c{x}" },
		{ "\xc3\xa9{2}+", "(?:\xc3\xa9{2})+" },
		{ "[a&&[^b]]+", "(?:(?![b])[a])+" },
		{ "[a[bc]d]", "[abcd]" },
		{ "[\\]a\\[^-]", "[\\]a\\[^-]" },
		{ "[^a[b]]", "[^ab]" },
		{ "[\\v]\\v", "[\\x0b]\\x0b" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf out = { 0 };
		struct err e = { 0 };

		if (pattern_rewrite(str_of(row[i].pattern), &out, &e))
			fail_msg("%s: %s", row[i].pattern, e.text);
		assert_string_equal(out.data ? out.data : "", row[i].want);
		buf_release(&out);
	}
}

static void test_refuse(void **state)
{
	static const struct {
		const char *pattern, *want;
	} row[] = {
		{ "a\\", "a lone backslash at character 1" },
		{ "\\h", "an unknown escape at character 0" },
		{ "a\\1", "an unknown escape at character 1" },
		{ "\\p", "a property without braces" },
		{ "\\p{L", "a property without braces" },
		{ "\\p{a-b}", "a property of unknown form" },
		{ "[", "an empty or unclosed class" },
		{ "[]a]", "an empty or unclosed class" },
		{ "[a[^b]]", "a negated class inside a class" },
		{ "[[:alpha:]]", "a POSIX class" },
		{ "[a&&b]", "&& in a form other than" },
		{ "[^a&&[^b]]", "&& in a form other than" },
		{ "[a&&[^b]c]", "more than one && in a class" },
		{ "(?<name>a)", "a special group" },
		{ "(?x)a", "a special group" },
		{ "(*VERB)", "a special group" },
		{ "(a", "an unclosed group" },
		{ "a)", "an unmatched )" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf out = { 0 };
		struct err e = { 0 };

		assert_int_equal(pattern_rewrite(str_of(row[i].pattern), &out, &e), -1);
		if (!strstr(e.text, row[i].want))
			fail_msg("%s: \"%s\" is not about %s", row[i].pattern, e.text, row[i].want);
		buf_release(&out);
	}
}

static void test_match(void **state)
{
	static const struct {
		const char *pattern, *text;
		int start, end; /* -1: no match */
	} row[] = {
		{ "\\s+", "a \xc2\x85\xe3\x80\x80" "b", 1, 7 },
		{ "\\s", "\xe1\xa0\x8e", -1, -1 },         /* U+180E is no blank */
		{ "[^\\S]", "\xe1\xa0\x8e", -1, -1 },
		{ "\\S", " \xe1\xa0\x8e", 1, 4 },
		{ "\\w+", "-e\xcc\x81_1-", 1, 6 },         /* marks and connectors are of words */
		{ "\\b1", "e\xcc\x81" "1 1", 5, 6 },
		{ "\\B1", "1a1", 2, 3 },
		{ "\\p{N}{1,3}+", "12345", 0, 5 },
		{ "[a-z&&[^aeiou]]+", "aobcde", 2, 5 },
		{ "^b$", "a\nb\nc", 2, 3 },
		{ "\\p{Han}", "\xe3\x80\x82\xe7\x9a\x84", 3, 6 }, /* the script,
			not its extensions */
		{ "(?i:'s)", "'\xc5\xbf", 0, 3 },
	};
	struct regex_work *w = regex_work_new();

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct err e = { 0 };
		struct regex *r = regex_new(str_of(row[i].pattern), &e);
		size_t start = 0, end = 0;
		int found;

		if (!r)
			fail_msg("%s: %s", row[i].pattern, e.text);
		found = regex_find(r, w, str_of(row[i].text), 0, &start, &end);
		if (found != (row[i].start >= 0) ||
			(found && (start != (size_t)row[i].start || end != (size_t)row[i].end)))
			fail_msg("row %zu, %s: %d, %zu to %zu", i, row[i].pattern, found, start,
			end);
		regex_free(r);
	}
	regex_work_free(w);
}

/* More than the JIT's stack holds goes through the interpreter; hopeless patterns give up. */
static void test_limits(void **state)
{
	struct regex_work *w = regex_work_new();
	size_t n = 1 << 20, start, end;
	char *text = mem_alloc(n);
	struct regex *r;
	struct err e;

	(void)state;
	memset(text, 'a', n);
	r = regex_new(STR("(?:a|b)*c|a+"), &e);
	assert_non_null(r);
	assert_in_range(regex_find(r, w, (struct str){ text, n }, 0, &start, &end) + 1, 0, 2);
	regex_free(r);
	r = regex_new(STR("(?:a+)+(?!a|$)"), &e);
	assert_non_null(r);
	assert_int_equal(regex_find(r, w, (struct str){ text, 64 }, 0, &start, &end), -1);
	regex_free(r);
	regex_work_free(w);
	free(text);
}

/* ---- characters ---- */

static void test_characters(void **state)
{
	struct buf bytes = { 0 }, scratch = { 0 };
	struct str text = STR("a\xf0\x90\x97\x80z"); /* U+105C0, a letter since Unicode 16 */
	struct str shown;

	(void)state;
	for (unsigned b = 0; b < 256; b++) {
		uint32_t cp = chars_of_byte((uint8_t)b);
		char spelled[4] = { (char)cp };
		size_t n = 1;

		if (cp >= 0x80) {
			spelled[0] = (char)(0xc0 | cp >> 6);
			spelled[1] = (char)(0x80 | (cp & 0x3f));
			n = 2;
		}
		buf_reset(&bytes);
		assert_true(chars_to_bytes((struct str){ spelled, n }, &bytes));
		assert_int_equal((uint8_t)bytes.data[0], b);
	}
	assert_false(chars_to_bytes(STR("a b"), &bytes));
	assert_false(chars_to_bytes(STR("\xe2\x96\x81"), &bytes));
	assert_false(chars_to_bytes(STR("\xc5\x84"), &bytes)); /* one past the last, U+0143 */
	assert_true(chars_is_word(0x105c0) && chars_is_word('_') && !chars_is_word('-'));
	assert_true(chars_is_space(0x3000) && !chars_is_space(0x180e) && !chars_is_space(0x200b));
	assert_int_equal(chars_space_front(STR(" \xe3\x80\x80x")), 4);
	assert_int_equal(chars_space_back(STR("x \xe3\x80\x80")), 4);
	assert_int_equal(chars_space_back(STR("   ")), 3);
	shown = chars_stand_in(text, &scratch);
	assert_int_equal(shown.n, text.n);
	assert_true(shown.p != text.p && !str_eq(shown, text));
	assert_true(chars_stand_in(STR("a\xf0\x9f\x98\x80"), &scratch).p != scratch.data);
	buf_release(&bytes);
	buf_release(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rewrite),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
