/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_pretok.c - stages of pre-tokenizers: the words they cut, in order, and what is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "input/encode/model.h"
#include "input/token/reader.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SEQ(list) "{'type':'Sequence','pretokenizers':[" list "]}"
#define SPLIT(kind, pattern, behavior, invert) "{'type':'Split','pattern':{'" kind "':'" pattern \
	"'},'behavior':'" behavior "','invert':" invert "}"
#define BYTE_LEVEL(prefix, regex) "{'type':'ByteLevel','add_prefix_space':" prefix \
	",'trim_offsets':true,'use_regex':" regex "}"
#define METASPACE(rest) "{'type':'Metaspace','replacement':'\xe2\x96\x81'" rest "}"
#define MARK "\xe2\x96\x81"
#define DIGITS(each) "{'type':'Digits','individual_digits':" each "}"
#define PUNCTUATION(behavior) "{'type':'Punctuation','behavior':'" behavior "'}"
#define BERT "{'type':'BertPreTokenizer'}"

/* Stages from JSON that has ' for ". */
static int load(struct model *m, const char *quoted, struct err *e)
{
	char *json = mem_text(quoted);
	int rc;

	for (char *p = json; *p; p++)
		if (*p == '\'')
			*p = '"';
	rc = stages_load(m, &(struct stage_texts){ .pre_tokenizer = str_of(json) }, e);
	free(json);
	return rc;
}

static void join(void *ctx, const struct str *word, size_t count)
{
	struct buf *out = ctx;

	assert_in_range(count, 1, PRETOK_BATCH);
	for (size_t i = 0; i < count; i++) {
		if (out->len > 0)
			buf_add_char(out, '|');
		buf_add_str(out, word[i]);
	}
}

struct row {
	const char *stages, *text, *want;
};

static void check(const struct row *row, bool is_start)
{
	struct pretok_work work = { 0 };
	struct model m = { 0 };
	struct err e = { 0 };
	struct buf out = { 0 };

	if (load(&m, row->stages, &e))
		fail_msg("%s: %s", row->stages, e.text);
	/* Twice: the second time the buffers hold what the first one left. */
	for (int pass = 0; pass < 2; pass++) {
		buf_reset(&out);
		assert_int_equal(pretok_run(&m.pretok, &work, str_of(row->text), is_start, join,
			&out), 0);
		if (strcmp(out.data ? out.data : "", row->want) != 0)
			fail_msg("%s of \"%s\": \"%s\" instead of \"%s\"", row->stages, row->text,
				out.data, row->want);
	}
	buf_release(&out);
	pretok_work_release(&work);
	model_release(&m);
}

static void test_stages(void **state)
{
	static const struct row row[] = {
		{ "null", "a b", "a b" },
		{ "null", "", "" },
		{ SEQ(""), "a b", "a b" },
		{ "{'type':'WhitespaceSplit'}", " a\xc2\xa0 b\n", "a|b" },
		{ "{'type':'Whitespace'}", "it's \xc3\xa9t\xc3\xa9_1... 2", "it|'|s|\xc3\xa9t\xc3\xa9_1|...|2" },
		{ "{'type':'Whitespace'}", "  ", "" },
		{ BERT, "it's \xc2\xabx\xc2\xbb $1+", "it|'|s|\xc2\xab|x|\xc2\xbb|$|1|+" },
		{ BERT, "a\xe2\x82\xac" "b", "a\xe2\x82\xac" "b" }, /* a symbol, but not of ASCII */
		{ DIGITS("true"), "a12\xc2\xbd" "b", "a|1|2|\xc2\xbd|b" },
		{ DIGITS("false"), "12a34 5", "12|a|34| |5" },
		{ DIGITS("true"), "\xf0\x91\xb7\xa0", "\xf0\x91\xb7\xa0" }, /* Unicode 17 */
		{ "{'type':'Punctuation'}", "a--b!", "a|-|-|b|!" },
		{ PUNCTUATION("Contiguous"), "a--b!", "a|--|b|!" },
		{ PUNCTUATION("Removed"), "a--b!", "a|b" },
		{ PUNCTUATION("MergedWithPrevious"), "a--b!", "a-|-|b!" },
		{ PUNCTUATION("MergedWithNext"), "a--b!", "a|-|-b|!" },
		/* U+2E43 is punctuation since Unicode 9. */
		{ "{'type':'Punctuation'}", "a\xe2\xb9\x83" "b", "a\xe2\xb9\x83" "b" },
		{ "{'type':'CharDelimiterSplit','delimiter':'\xc3\xa9'}", "\xc3\xa9" "a\xc3\xa9\xc3\xa9" "b",
			"a|b" },
		{ "{'type':'FixedLength','length':2}", "\xc3\xa9" "a\xf0\x9f\x98\x80" "bc",
			"\xc3\xa9" "a|\xf0\x9f\x98\x80" "b|c" },
		{ "{'type':'FixedLength'}", "123456", "12345|6" },
		{ SPLIT("String", " ", "MergedWithNext", "false"), "a  b", "a| | b" },
		{ SPLIT("Regex", "[ab]+", "Removed", "true"), "abxba", "ab|ba" },
		{ SPLIT("Regex", "\\\\s+", "Removed", "false"), "a  b", "a|b" },
		{ METASPACE(""), "a  b", MARK "a|" MARK "|" MARK "b" },
		{ METASPACE(",'split':false"), "a  b", MARK "a" MARK MARK "b" },
		{ METASPACE(""), " a", MARK "a" },
		{ METASPACE(""), MARK "a", MARK "a" },
		{ METASPACE(",'prepend_scheme':'never'"), "a b", "a|" MARK "b" },
		{ METASPACE(",'add_prefix_space':true"), "a b", MARK "a|" MARK "b" },
		{ METASPACE(",'add_prefix_space':false"), "a b", "a|" MARK "b" },
		{ "{'type':'Metaspace','replacement':'_'}", "a_b c", "_a|_b|_c" },
		{ BYTE_LEVEL("true", "true"), "a's b", " a|'s| b" },
		{ BYTE_LEVEL("true", "false"), " a b", " a b" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		check(row + i, true);
}

static void test_sequences(void **state)
{
	static const struct row row[] = {
		{ SEQ("{'type':'WhitespaceSplit'}," METASPACE("")), "a b", MARK "a|" MARK "b" },
		{ SEQ(DIGITS("true") "," BYTE_LEVEL("false", "true")), "a 12 b", "a| |1|2| b" },
		{ SEQ(SEQ("{'type':'Punctuation'}") "," DIGITS("false")), "a-12b", "a|-|12|b" },
		/* After ByteLevel: each byte is a character, and B2 looks like a digit. */
		{ SEQ(BYTE_LEVEL("false", "true") "," DIGITS("true")), "e\xcc\xb2 1", "e|\xcc|\xb2| |1" },
		{ SEQ(BYTE_LEVEL("false", "false") ",{'type':'WhitespaceSplit'}"), "a b", "a b" },
		{ SEQ(BYTE_LEVEL("false", "false") "," PUNCTUATION("Removed")), "a-b\xc2\xa1" "c",
			"a|b\xc2|c" },
		{ SEQ(PUNCTUATION("Contiguous") "," BYTE_LEVEL("false", "true") ","
			DIGITS("false") "," SPLIT("Regex", "[0-9][0-9][0-9]", "Isolated", "false")),
			"x 12345--\xc3\xa9", "x| |123|45|--|\xc3\xa9" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		check(row + i, true);
}

static void test_front_of_the_input(void **state)
{
	static const char first[] = METASPACE(",'prepend_scheme':'first'");
	static const char behind[] = SEQ("{'type':'WhitespaceSplit'},"
		METASPACE(",'prepend_scheme':'first'"));
	static const struct {
		bool is_start;
		struct row row;
	} row[] = {
		{ true, { first, "a b", MARK "a|" MARK "b" } },
		{ false, { first, "a b", "a|" MARK "b" } },
		{ true, { behind, "a b", MARK "a|b" } },
		{ true, { behind, " a b", "a|b" } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		check(&row[i].row, row[i].is_start);
}

/* Words in a stage's buffer stay readable until they are taken, however many pieces come. */
static void test_many_pieces(void **state)
{
	struct row row = { SEQ("{'type':'WhitespaceSplit'}," METASPACE("")), NULL, NULL };
	struct buf text = { 0 }, want = { 0 };

	(void)state;
	for (int i = 0; i < 30000; i++) {
		buf_printf(&text, "%d ", i);
		buf_printf(&want, "%s" MARK "%d", i ? "|" : "", i);
	}
	row.text = text.data;
	row.want = want.data;
	check(&row, true);
	buf_release(&text);
	buf_release(&want);
}

static void test_refuse(void **state)
{
	static const struct {
		const char *stages, *want;
	} row[] = {
		{ "{'type':'UnicodeScripts'}", "has pre_tokenizer type \"UnicodeScripts\"" },
		{ "{'type':'Sequence'}", "Sequence without its list" },
		{ PUNCTUATION("Split"), "has a Punctuation pre_tokenizer with behavior \"Split\"" },
		{ SPLIT("Regex", "", "Isolated", "false"), "neither a Regex nor a String" },
		{ SPLIT("Regex", "(", "Isolated", "false"), "pre_tokenizer Split" },
		{ METASPACE(",'prepend_scheme':'last'"), "with prepend_scheme \"last\"; known are" },
		{ METASPACE(",'prepend_scheme':'first','add_prefix_space':false"), "contradict" },
		{ "{'type':'Metaspace','replacement':'ab'}", "with replacement \"ab\"; expected one character" },
		{ "{'type':'CharDelimiterSplit'}", "with delimiter \"\"; expected one character" },
		{ "{'type':'FixedLength','length':0}", "with length 0; expected at least 1" },
		{ SEQ(BYTE_LEVEL("true", "true") "," BYTE_LEVEL("true", "true")),
			"pre_tokenizer ByteLevel after ByteLevel" },
		{ SEQ(BYTE_LEVEL("true", "true") "," METASPACE("")),
			"pre_tokenizer Metaspace after ByteLevel" },
		{ SEQ(BERT "," BERT "," BERT "," BERT "," BERT "," BERT "," BERT "," BERT ","
			BERT), "has more than 16 pre_tokenizer stages" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct model m = { 0 };
		struct err e = { 0 };

		assert_int_equal(load(&m, row[i].stages, &e), -1);
		if (!strstr(e.text, row[i].want))
			fail_msg("%s: %s", row[i].stages, e.text);
		model_release(&m);
	}
}

/* A known expression is never compiled; one that loses spans is no other's double. */
static void test_scanner_is_chosen(void **state)
{
	static const char digits[] = SPLIT("Regex", "\\\\p{N}{1,3}", "Isolated", "false");
	static const struct {
		const char *stages;
		enum pretok_kind want;
	} row[] = {
		{ BYTE_LEVEL("false", "true"), PRETOK_SCAN },
		{ digits, PRETOK_REGEX },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct model m = { 0 };
		struct err e;

		assert_int_equal(load(&m, row[i].stages, &e), 0);
		assert_int_equal(m.pretok.count, 1);
		assert_int_equal(m.pretok.stage[0].kind, row[i].want);
		assert_int_equal(m.pretok.stage[0].regex != NULL, row[i].want == PRETOK_REGEX);
		model_release(&m);
	}
}

/* Every scanner's expressions under every behavior: taken over only where nothing is lost. */
static void test_scanner_by_behavior(void **state)
{
	static const struct {
		const char *behavior;
		bool is_inverted, is_whole, is_single;
	} row[] = {
		{ "Isolated", false, true, true }, { "Isolated", true, true, true },
		{ "Removed", true, false, true }, { "Removed", false, false, false },
		{ "Contiguous", false, false, false }, { "MergedWithNext", false, false, false },
		{ "MergedWithPrevious", true, false, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row) * scan_count; i++) {
		const struct scanner *s = scan_scanners + i % scan_count;
		bool is_single = !s->pattern[1];
		struct buf json = { 0 };
		struct model m = { 0 };
		struct err e = { 0 };
		size_t n = 0;

		buf_add_text(&json, "{\"type\":\"Sequence\",\"pretokenizers\":[");
		for (; n < SCAN_PATTERNS_MAX && s->pattern[n]; n++) {
			buf_add_text(&json, n ? "," : "");
			buf_add_text(&json, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"");
			for (const char *p = s->pattern[n]; *p; p++) {
				if (*p == '"' || *p == '\\')
					buf_add_char(&json, '\\');
				buf_add_char(&json, *p);
			}
			buf_printf(&json, "\"},\"behavior\":\"%s\",\"invert\":%s}",
				row[i / scan_count].behavior,
				row[i / scan_count].is_inverted ? "true" : "false");
		}
		buf_add_text(&json, "]}");
		if (stages_load(&m, &(struct stage_texts){ .pre_tokenizer = buf_str(&json) }, &e))
			fail_msg("%s: %s", s->name, e.text);
		if (is_single ? row[i / scan_count].is_single : row[i / scan_count].is_whole) {
			assert_int_equal(m.pretok.count, 1);
			assert_ptr_equal(m.pretok.stage[0].scanner, s);
		} else {
			assert_int_equal(m.pretok.count, n);
			for (size_t k = 0; k < n; k++)
				assert_int_equal(m.pretok.stage[k].kind, PRETOK_REGEX);
		}
		model_release(&m);
		buf_release(&json);
	}
}

static void test_limit(void **state)
{
	struct pretok_work work;
	struct model m = { 0 };
	struct err e;
	struct buf out = { 0 };

	(void)state;
	assert_int_equal(load(&m, METASPACE(""), &e), 0);
	pretok_work_init(&work, 100);
	assert_int_equal(pretok_run(&m.pretok, &work, STR("a b"), true, join, &out), -1);
	assert_int_equal(out.len, 0);
	pretok_work_release(&work);
	model_release(&m);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_front_of_the_input),
		cmocka_unit_test(test_many_pieces),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_scanner_is_chosen),
		cmocka_unit_test(test_scanner_by_behavior),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
