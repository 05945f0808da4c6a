/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_constrain_patterns.c - each escape and class of regular expressions, as Python reads them
 * (a pattern of its own) and as ECMAScript does (in a schema): what matches and what does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "core/base/str.h"
#include "core/json/write.h"
#include "input/constrain/constrain.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

struct row { const char *pattern, *good, *bad; }; /* good NULL: the pattern is refused with bad */

static unsigned wrong, made;

/* What a text is judged by: the pattern itself, or a schema of texts with it. */
static void judge(const struct row *r, bool is_ecma)
{
	struct buf schema = { 0 }, answer = { 0 };
	struct constraint_result result;
	struct constraint *c;
	struct err e = { 0 };

	buf_add_text(&schema, is_ecma ? "{\"pattern\": " : r->pattern);
	if (is_ecma) {
		json_quote(&schema, str_of(r->pattern), false);
		buf_add_char(&schema, '}');
	}
	c = constraint_compile(is_ecma ? CONSTRAINT_JSON : CONSTRAINT_REGEX, buf_str(&schema),
		NULL, &e);
	buf_release(&schema);
	if (!r->good) {
		if (c || !strstr(e.text, r->bad))
			wrong++, print_error("%s: %s, expected '%s'\n", r->pattern, c ? "taken" : e.text, r->bad);
		constraint_free(c);
		return;
	}
	if (!c) {
		wrong++, print_error("%s: %s\n", r->pattern, e.text);
		return;
	}
	for (int i = 0; i < 2; i++) {
		const char *text = i ? r->bad : r->good;

		if (!text)
			continue;
		buf_reset(&answer);
		if (is_ecma)
			json_quote(&answer, str_of(text), false);
		else
			buf_add_text(&answer, text);
		constraint_check(c, buf_str(&answer), &result);
		if (result.verdict != (i ? CONSTRAINT_BROKEN : CONSTRAINT_KEPT))
			wrong++, print_error("%s of '%s': verdict %d, %s\n", r->pattern, text,
					     (int)result.verdict, result.why);
	}
	/* What is made up of a pattern matches it. */
	for (uint64_t seed = 0; seed < 8; seed++) {
		buf_reset(&answer);
		if (constraint_generate(c, seed, seed % 2 * 30, &answer, &e) < 0)
			break;
		made++;
		constraint_check(c, buf_str(&answer), &result);
		if (result.verdict != CONSTRAINT_KEPT)
			wrong++, print_error("%s does not match '%.*s', which was made of it\n", r->pattern,
					     (int)answer.len, answer.data);
	}
	buf_release(&answer);
	constraint_free(c);
}

static void python(void **state)
{
	static const struct row row[] = {
		{ "\\d+", "12", "1a" }, { "\\D+", "ab", "1" }, { "\\w+", "a_\xc3\xa9", "a b" }, { "\\W", "!", "a" },
		{ "\\s", "\t", "a" }, { "\\S+", "ab", "a b" }, { "\\n\\t\\r\\f\\v\\a", "\n\t\r\f\v\a", "nt" },
		{ "\\x41\\u00e9\\U0001F600", "A\xc3\xa9\xf0\x9f\x98\x80", "Ae" }, { "\\.\\*\\\\\\-", ".*\\-", "a" },
		{ "[\\d\\-x]+", "1-x", "y" }, { "[^\\w]", "-", "a" }, { "[]a]+", "]a", "b" },
		{ "[\\x41-\\x43]+", "ABC", "D" },
		{ "[\\]\\\\]+", "]\\", "/" }, { "[a-c\\s]+", "a b", "d" }, { "a{2}", "aa", "a" },
		{ "a{2,}", "aaa", "a" },
		{ "a{1,2}", "aa", "aaa" }, { "a{,2}b", "aab", "aaab" }, { "a{x}", "a{x}", "a" },
		{ "a{,}", "a{,}", "b" },
		{ "(?P<n>a)(?P=n)", "aa", "ab" }, { "(?:ab)+", "abab", "aba" }, { "(a)(b)\\2\\1", "abba", "abab" },
		{ "a(?=b)b", "ab", "ac" }, { "a(?!b).", "ac", "ab" }, { "(?<=a)b|ab", "ab", "b" }, { "a|b|", "b", "c" },
		{ "a*?b+?c??", "abc", "c" }, { "^a$", "a", "b" }, { "a\\b b", "a b", "ab" }, { "\\Ba|b", "b", "a" },
		{ "\\p{L}+", "ab", "1" }, { "\\k<a>", NULL, "does not compile" }, { "\\u12", NULL, "\\u" },
		{ "\\ud83d\\ude00", "\xf0\x9f\x98\x80", "a" }, { "\\ud83d", NULL, "\\u without the digits" },
		{ "[b-a]", NULL, "does not compile" }, { "(a", NULL, "does not compile" },
		{ "\\_\xc3\xa9", "_\xc3\xa9", "e" }, { ".", "\xc3\xa9", "ab" }, { "[.]", ".", "a" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		judge(&row[i], false);
	assert_int_equal(wrong, 0);
	print_message("# %u texts were made\n", made);
}

static void ecma(void **state)
{
	static const struct row row[] = {
		{ "^\\d+$", "12", "1\xd9\xa1" }, { "^\\D$", "a", "1" },
		{ "^\\w+$", "a_1", "\xc3\xa9" }, { "^\\W$", "\xc3\xa9", "a" },
		{ "^\\s+$", " \t\xc2\xa0\xef\xbb\xbf", "a" }, { "^\\S$", "a", "\xc2\xa0" },
		{ "^[\\s]+$", " \xc2\xa0", "a" },
		{ "^[^\\S]$", " ", "a" }, { "^[\\S]$", "a", " " }, { "^\\v\\f\\n\\r\\t$", "\v\f\n\r\t", "v" },
		{ "^[\\b]$", "\b", "b" }, { "a\\b", "a", "ab" }, { "a\\B", "ab", "a" }, { "^\\x41$", "A", "x41" },
		{ "^\\u00e9$", "\xc3\xa9", "e" }, { "^\\u{1F600}$", "\xf0\x9f\x98\x80", "u" },
		{ "^\\ud83d\\ude00$", "\xf0\x9f\x98\x80", "u" }, { "^\\cA$", "\001", "cA" },
		{ "^(?<n>a)\\k<n>$", "aa", "ab" }, { "^(a)\\1$", "aa", "ab" }, { "^[A-Z]{2}$", "AB", "ABC" },
		{ "^[^]$", "a", "" }, { "^\\p{L}+$", "a\xc3\xa9", "1" },
		{ "^\\p{Lu}$", "A", "a" }, { "^\\p{Uppercase_Letter}$", "A", "a" }, { "^\\P{Letter}$", "1", "a" },
		{ "^\\p{Script=Greek}+$", "\xce\xb1", "a" }, { "^\\p{sc=Latin}$", "a", "\xce\xb1" },
		{ "^\\p{General_Category=Nd}$", "7", "a" }, { "^\\p{gc=Decimal_Number}$", "7", "a" },
		{ "^[\\p{L}\\d_]+$", "a1_", "-" }, { "^[^\\p{L}]$", "1", "a" }, { "^[\\p{Nd}]+$", "12", "a" },
		{ "^\\/\\-\\.$", "/-.", "a" }, { "^[\\w.\\-]+@x$", "a.b-c@x", "a b@x" }, { "^a{0,1}$", "a", "aa" },
		{ "^.$", "a", "\n" }, { "^(?=a)a$", "a", "b" }, { "^(?!a).$", "b", "a" }, { "^(?:a|b)$", "b", "c" },
		{ "^\\u12$", NULL, "\\u without the digits" }, { "^\\u{}$", NULL, "\\u{ without its digits" },
		{ "^\\u{110000}$", NULL, "\\u without the digits of a character" },
		{ "^\\x4$", NULL, "\\x without two" },
		{ "\\k", NULL, "\\k without a name" }, { "^\\ud800$", NULL, "\\u without the digits" },
		{ "\\p{Nothing}", NULL, "" }, { "\\p", NULL, "" }, { "\\p{L", NULL, "" },
		{ "*a", NULL, "repeat operator" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		judge(&row[i], true);
	assert_int_equal(wrong, 0);
	print_message("# %u texts were made\n", made);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(python), cmocka_unit_test(ecma) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
