/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each kind of constraint 400 answers whose label is known because they were written as pairs:
 * one that keeps to it, and one that differs from it as little as models' mistakes do. Each pair is
 * written with eight fillings in place of its $.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "core/base/str.h"
#include "input/constrain/constrain.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define FILLINGS 8
#define PAIRS 25 /* 25 pairs, 8 fillings, good and bad: 400 */

struct pair { const char *good, *bad; };

static void add_filled(struct buf *out, const char *text, const char *filling)
{
	for (; *text; text++) {
		if (*text == '$')
			buf_add_text(out, filling);
		else
			buf_add_char(out, *text);
	}
}

/* Texts before and after each answer. */
struct around { const char *head, *tail; };

static void judge(const struct constraint *c, const struct pair *p, const char *filling,
		  struct around around, bool is_good)
{
	struct constraint_result r;
	struct buf text = { 0 };

	buf_add_text(&text, around.head);
	add_filled(&text, is_good ? p->good : p->bad, filling);
	buf_add_text(&text, around.tail);
	constraint_check(c, buf_str(&text), &r);
	if (r.verdict != (is_good ? CONSTRAINT_KEPT : CONSTRAINT_BROKEN))
		fail_msg("%s answer '%s': verdict %d, why '%s'", is_good ? "good" : "bad", text.data,
			(int)r.verdict, r.why);
	buf_release(&text);
}

static void judge_all(enum constraint_kind kind, const char *text, const struct pair *pair,
		      size_t pairs, const char *const filling[FILLINGS], struct around around)
{
	struct err e = { 0 };
	struct constraint *c = constraint_compile(kind, str_of(text), NULL, &e);

	if (!c)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < pairs; i++)
		for (size_t k = 0; k < FILLINGS; k++) {
			judge(c, &pair[i], filling[k], around, true);
			judge(c, &pair[i], filling[k], around, false);
		}
	constraint_free(c);
}

static const char profiles[] =
	"{\"type\": \"array\", \"minItems\": 1, \"maxItems\": 3, \"uniqueItems\": true, \"items\": "
	"{\"type\": \"object\", \"properties\": {"
	"\"name\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 9},"
	"\"level\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 20},"
	"\"class\": {\"enum\": [\"mage\", \"rogue\", null]},"
	"\"gold\": {\"type\": \"number\", \"multipleOf\": 0.25, \"exclusiveMinimum\": 0},"
	"\"code\": {\"type\": \"string\", \"pattern\": \"^[A-Z]{2}\\\\d+$\"},"
	"\"id\": {\"maximum\": 9007199254740993},"
	"\"bag\": {\"type\": \"object\", \"maxProperties\": 2, \"propertyNames\": {\"maxLength\": 4}},"
	"\"next\": {\"$ref\": \"#/items\"}},"
	"\"required\": [\"name\", \"level\"], \"additionalProperties\": false}}";

static void json_answers(void **state)
{
	static const char *const name[FILLINGS] = {
		"Ada", "B", "\\u00e9milie", "\xc3\xa9milie", "\\ud83d\\ude00", "12", "null", "a b",
	};
	/* Members after name and level. */
	static const struct pair member[] = {
		{ ", \"class\": \"mage\"}]", ", \"class\": \"Mage\"}]" },
		{ ", \"class\": \"\\u006dage\"}]", ", \"class\": \"mage \"}]" },
		{ ", \"class\": null}]", ", \"class\": \"null\"}]" },
		{ ", \"gold\": 0.25}]", ", \"gold\": 0.2}]" },
		{ ", \"gold\": 1234567890123456789.75}]", ", \"gold\": 1234567890123456789.7}]" },
		{ ", \"gold\": 1e300}]", ", \"gold\": 1e-300}]" },
		{ ", \"gold\": 0.5}]", ", \"gold\": 0}]" },
		{ ", \"gold\": 75e-2}]", ", \"gold\": -75e-2}]" },
		{ ", \"code\": \"AB1\"}]", ", \"code\": \"AB1\\n\"}]" },
		{ ", \"code\": \"AB12\"}]", ", \"code\": \"AB\\u0661\"}]" },
		{ ", \"code\": \"ZZ0\"}]", ", \"code\": \"xZZ0\"}]" },
		{ ", \"id\": 9007199254740993}]", ", \"id\": 9007199254740994}]" },
		{ ", \"id\": \"a\"}]", ", \"id\": \"a}]" },
		{ ", \"bag\": {\"rope\": 1, \"pot\": 2}}]", ", \"bag\": {\"rope\": 1, \"pot\": 2, \"a\": 3}}]" },
		{ ", \"bag\": {\"r\\u00f6pe\": 1}}]", ", \"bag\": {\"ropes\": 1}}]" },
		{ ", \"next\": {\"name\": \"$\", \"level\": 2}}]", ", \"next\": {\"name\": \"$\"}}]" },
		{ "}]", ", \"Level\": 3}]" },
		{ "}]\n", ", \"level\": 3}]\n" },
		{ "}, {\"name\": \"$\", \"level\": 8}]", "}, {\"level\": 7.0, \"name\": \"$\"}]" },
		{ "}]", "},]" },
		{ ", \"id\": 1}]", ", \"id\": NaN}]" },
		{ "}]  ", "}] \nDone." },
	};
	/* Whole answers. */
	static const struct pair whole[] = {
		{ "\n[{\"level\": 20.000, \"name\": \"$\"}]",
			"[{\"level\": 20.0000000000000000001, \"name\": \"$\"}]" },
		{ "[{\"level\": 1e1, \"name\": \"$\"}]", "[{\"level\": \"10\", \"name\": \"$\"}]" },
		{ "[{\"level\": 1, \"name\": \"$\"}]", "{\"level\": 1, \"name\": \"$\"}" },
	};

	(void)state;
	assert_int_equal(COUNT(member) + COUNT(whole), PAIRS);
	judge_all(CONSTRAINT_JSON, profiles, whole, COUNT(whole), name, (struct around){ "", "" });
	for (size_t k = 0; k < FILLINGS; k++) {
		const char *const same[FILLINGS] = { name[k], name[k], name[k], name[k], name[k],
			name[k], name[k], name[k] };
		struct buf head = { 0 };

		buf_printf(&head, "[{\"name\": \"%s\", \"level\": 7", name[k]);
		judge_all(CONSTRAINT_JSON, profiles, member, COUNT(member), same,
			(struct around){ head.data, "" });
		buf_release(&head);
	}
}

static void regex_answers(void **state)
{
	static const char *const word[FILLINGS] = {
		"alan", "turing_1912", "x", "\xc3\xa9t\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac", "A1", "_",
		"\xd0\xb6",
	};
	static const struct pair mail[] = {
		{ "$@enigma.com\n", "$@enigma.com" }, { "$@a.com\n", "$@a.com\n\n" },
		{ "a@$.com\n", "a@$.com\nmore" }, { "$@$.com\n", " $@$.com\n" },
		{ "$a@$.com\n", "$.a@$.com\n" }, { "b$@$.com\n", "b$@@$.com\n" },
		{ "$0@$.com\n", "$0@$.org\n" }, { "$1@$.com\n", "$1@$.co.com\n" },
		{ "$9@$.com\n", "$9@$_com\n" }, { "$2@$.com\n", "$2@$.com\r\n" },
		{ "$@$$.com\n", "$@.com\n" }, { "$@c$.com\n", "\"$@c$.com\"\n" },
		{ "$_@$.com\n", "$_@$.Com\n" },
	};
	static const struct pair date[] = {
		{ "$ 2024-05-17", "$ 2024-5-17" }, { "$ 2024-05-18", "$ 2024-05-18\n" },
		{ "$ 2024-05-19", "$  2024-05-19" }, { "$ 1999-12-31", "$ 1999-12-311" },
		{ "$ 1999-12-30", "$ 1999-12-3l" }, { "$ 1999-12-29", "$ 1999-12" },
		{ "$ 1999-12-31?", "$ 1999-12-31!" }, { "$ 1999-12-31??", "$ 1999-12-31???" },
		{ "$ 0000-00-00", "$ 0000 -00-00" }, { "$ 2024-02-28", "$\t2024-02-28" },
		{ "$ 2024-02-30", "$2024-02-30" }, { "$$ 2024-02-30", "$-$ 2024-02-30" },
	};

	(void)state;
	assert_int_equal(COUNT(mail) + COUNT(date), PAIRS);
	judge_all(CONSTRAINT_REGEX, "\\w+@\\w+\\.com\\n", mail, COUNT(mail), word,
		(struct around){ "", "" });
	judge_all(CONSTRAINT_REGEX, "^\\w+ \\d{4}(?:-\\d\\d){2}\\?{0,2}$", date, COUNT(date), word,
		(struct around){ "", "" });
}

/* Two hundred choices: each of eight words with each of 25 numbers. */
static void choice_answers(void **state)
{
	static const char *const word[FILLINGS] = {
		"Positive", "Negative", "very positive", "\xc3\xa9t\xc3\xa9", "yes", "no", "1", "A.",
	};
	static const struct pair pair[PAIRS] = {
		{ "$", "$." }, { "$", "$ " }, { "$", " $" }, { "$", "$\n" }, { "$", "\n$" }, { "$", "\"$\"" },
		{ "$", "'$'" }, { "$", "$$" }, { "$", "The answer is $" }, { "$", "$, because" },
		{ "$", "**$**" }, { "$", "`$`" }, { "$", "($)" }, { "$", "- $" }, { "$", "Answer: $" },
		{ "$", "$\xe3\x80\x82" }, { "$", "\xef\xbb\xbf$" }, { "$", "$\xc2\xa0" }, { "$", "$ $" },
		{ "$", "$!" }, { "$", "[\"$\"]" }, { "$", "$\r" }, { "$", "x$" }, { "$", "$\xcc\x81" },
		{ "$", "" },
	};

	struct buf all = { 0 };
	struct constraint *c;

	(void)state;
	for (size_t i = 0; i < PAIRS * FILLINGS; i++)
		buf_printf(&all, "%s\"%s %zu\"", i ? ", " : "[", word[i % FILLINGS], i / FILLINGS);
	buf_add_char(&all, ']');
	c = constraint_compile(CONSTRAINT_CHOICE, buf_str(&all), NULL, NULL);
	assert_non_null(c);
	for (size_t i = 0; i < PAIRS * FILLINGS; i++) {
		const struct pair *p = &pair[i / FILLINGS];
		char choice[32];

		snprintf(choice, sizeof(choice), "%s %zu", word[i % FILLINGS], i / FILLINGS);
		judge(c, p, choice, (struct around){ "", "" }, true);
		judge(c, p, choice, (struct around){ "", "" }, false);
	}
	constraint_free(c);
	buf_release(&all);
}

static const char sql[] = "\n"
	"        root ::= select_statement\n\n"
	"        select_statement ::= \"SELECT \" column \" from \" table \" where \" condition\n\n"
	"        column ::= \"col_1 \" | \"col_2 \"\n\n"
	"        table ::= \"table_1 \" | \"table_2 \"\n\n"
	"        condition ::= column \"= \" number\n\n"
	"        number ::= \"1 \" | \"2 \"\n        ";

static const char sums[] =
	"root ::= sum # left-recursive, with blanks between\n"
	"sum ::= sum ws [+-] ws term | term\n"
	"term ::= term ws (\"*\" | \"/\") ws factor | factor\n"
	"factor ::= \"(\" ws sum ws \")\" | number | name\n"
	"number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,3}) (\".\" [0-9]+)?\n"
	"name ::= [^-+*/() \\t\\n0-9.] [^-+*/() \\t\\n.]*\n"
	"ws ::= [ \\t]*";

static void grammar_answers(void **state)
{
	static const char *const column[FILLINGS] = {
		"SELECT col_1  from table_1  where col_1", "SELECT col_2  from table_1  where col_1",
		"SELECT col_1  from table_2  where col_1", "SELECT col_2  from table_2  where col_1",
		"SELECT col_1  from table_1  where col_2", "SELECT col_2  from table_1  where col_2",
		"SELECT col_1  from table_2  where col_2", "SELECT col_2  from table_2  where col_2",
	};
	static const struct pair where[] = {
		{ "$ = 1 ", "$ = 1" }, { "$ = 2 ", "$ = 3 " }, { "$ = 1 ", "$ == 1 " },
		{ "$ = 2 ", "$ = 2 ;" }, { "$ = 1 ", "$= 1 " }, { "$ = 2 ", " $ = 2 " },
		{ "$ = 1 ", "$ = 1 \n" }, { "$ = 2 ", "$ = '2' " }, { "$ = 1 ", "$ = 1  " },
		{ "$ = 2 ", "" },
	};
	static const char *const term[FILLINGS] = {
		"1", "x", "(a+b)", "-7", "9999.5", "((0))", "\xc3\xa4", "2*3",
	};
	static const struct pair sum[] = {
		{ "$+1", "$+" }, { "1 + $", "1 + $ " }, { "(1 + $)", "(1 + $" }, { "($)*2", "($))*2" },
		{ "$ - 0.50", "$ - 0.50." }, { "$ * 10", "$ * 010" }, { "9999 + $", "10000 + $" },
		{ "$-$-$", "$--$-" }, { "a1/$", "1a/$" }, { "( $ )", "( $ ) 1" }, { "$\t+ 1", "$\n+ 1" },
		{ "x * $", "x * * $" }, { "-1 * $", "- 1 * $" }, { "$ / (2)", "$ / ()" },
		{ "$ + 1.0", "$ + 1,0" },
	};

	(void)state;
	assert_int_equal(COUNT(where) + COUNT(sum), PAIRS);
	judge_all(CONSTRAINT_GRAMMAR, sql, where, COUNT(where), column, (struct around){ "", "" });
	judge_all(CONSTRAINT_GRAMMAR, sums, sum, COUNT(sum), term, (struct around){ "", "" });
}

/* Answers that were cut off: whether what was missing could have made them right. */
static void cut_answers(void **state)
{
	static const char select[] = "root ::= \"SELECT \" [a-z]+ \" FROM t\"";
	static const struct {
		enum constraint_kind kind;
		const char *text, *answer;
		bool can_follow;
	} rows[] = {
		{ CONSTRAINT_JSON, "{}", "{\"a\": [1,", true },
		{ CONSTRAINT_JSON, "{}", " fal", true },
		{ CONSTRAINT_JSON, "{}", "Sure! {\"a\"", false },
		{ CONSTRAINT_CHOICE, "[\"Positive\", \"Negative\"]", "", true },
		{ CONSTRAINT_CHOICE, "[\"Positive\", \"Negative\"]", "Nega", true },
		{ CONSTRAINT_CHOICE, "[\"Positive\", \"Negative\"]", "The text is", false },
		{ CONSTRAINT_CHOICE, "[\"Positive\", \"Negative\"]", "Positive, since", false },
		{ CONSTRAINT_REGEX, "\\w+@\\w+\\.com\\n", "alan.turing", false },
		{ CONSTRAINT_REGEX, "\\w+@\\w+\\.com\\n", "alan@", true },
		{ CONSTRAINT_REGEX, "\\w+@\\w+\\.com\\n", "alan@x.com", true },
		{ CONSTRAINT_REGEX, "\\w+@\\w+\\.com\\n", "alan@x.com\n\n", false },
		{ CONSTRAINT_REGEX, "a|abc", "ab", true },
		{ CONSTRAINT_REGEX, "a|abc", "ad", false },
		{ CONSTRAINT_REGEX, "(?x) a b c # letters", "a d", true }, /* not decided */
		{ CONSTRAINT_GRAMMAR, select, "SELECT ab", true },
		{ CONSTRAINT_GRAMMAR, select, "SELECT a, b", false },
		{ CONSTRAINT_GRAMMAR, select, "Sure:", false },
		{ CONSTRAINT_GRAMMAR, "start: \"a\"", "Sure:", true }, /* Lark is not scored */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		struct constraint *c = constraint_compile(rows[i].kind, str_of(rows[i].text), NULL,
							  &e);

		if (!c)
			fail_msg("%s", e.text);
		if (constraint_can_follow(c, str_of(rows[i].answer)) != rows[i].can_follow)
			fail_msg("'%s' of %s", rows[i].answer, rows[i].text);
		constraint_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_answers),
		cmocka_unit_test(regex_answers),
		cmocka_unit_test(choice_answers),
		cmocka_unit_test(grammar_answers),
		cmocka_unit_test(cut_answers),
	};

	return cmocka_run_group_tests_name("constrain answers", tests, NULL, NULL);
}
