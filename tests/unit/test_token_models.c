/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_models.c - Unigram, WordPiece and WordLevel models and what post-processors
 * put around them: ids as the reference library gives them, and one sentence for every
 * way such a model can be wrong.
 *
 * Models are written with ' for ".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SHARP_S "\xc3\x9f"
#define E_ACUTE "\xc3\xa9"
#define BRICK "\xe7\xa0\x96"
#define SMILE "\xf0\x9f\x98\x80"
#define LAST "\xf4\x8f\xbf\xbf" /* U+10FFFF */


static void quote(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_add_char(out, *text == '\'' ? '"' : *text);
}

static struct tokenizer *load(const char *model, const char *rest, struct err *e)
{
	char *path = file_join(dir, "tokenizer.json");
	struct tokenizer *t;
	struct buf text = { 0 };

	quote(&text, "{'model':");
	quote(&text, model);
	quote(&text, rest);
	buf_add_char(&text, '}');
	assert_int_equal(file_write_atomic(path, buf_str(&text), e), 0);
	t = tokenizer_load(path, NULL, e);
	buf_release(&text);
	free(path);
	return t;
}

static void check(const char *model, const char *rest, const char *text, bool add_special,
	const char *want)
{
	struct tokenizer *t;
	struct buf spelled = { 0 };
	struct ids ids = { 0 };
	struct err e;

	t = load(model, rest, &e);
	if (!t)
		fail_msg("%s: %s", model, e.text);
	assert_int_equal(tokenizer_encode(t, str_of(text), add_special, &ids), 0);
	buf_add_text(&spelled, "");
	for (size_t i = 0; i < ids.count; i++)
		buf_printf(&spelled, "%s%u", i ? " " : "", ids.id[i]);
	if (strcmp(spelled.data, want) != 0)
		fail_msg("%s: \"%s\" gives %s, not %s", model, text, spelled.data, want);
	buf_release(&spelled);
	ids_release(&ids);
	tokenizer_free(t);
}

#define UNIGRAM(vocab) "{'type':'Unigram','unk_id':0,'vocab':[['?',0]," vocab "]}"
#define FALLBACK(vocab) "{'byte_fallback':true," \
	"'type':'Unigram','unk_id':0,'vocab':[['?',0]," vocab "]}"
#define TIES UNIGRAM("['a',-1],['b',-1],['ab',-2],['bc',-2],['c',-1]")
#define CHARS UNIGRAM("['a',-1],['" E_ACUTE "',-1],['" BRICK "',-1],['" SMILE "',-1]," \
	"['a" E_ACUTE BRICK SMILE "',-2],['" SMILE SMILE "',-1],['" LAST "',-3]")
#define DOUBLES UNIGRAM("['a',-1],['ab',-5],['ab',-1.5],['b',-1],['a',-2]")
#define RUNS "{'type':'Unigram','unk_id':0,'vocab':[['?',30],['xx',30.5],['a',40]]}"
#define BYTES FALLBACK("['a',-1],['<0x78>',-1],['<0xC3>',-1],['<0x9F>',-1]")
#define EXPONENTS UNIGRAM("['a',1e-3],['b',-25e-1],['ab',-2.4994E+0],['',-1]")
#define LONG UNIGRAM("['a',-12345678901234567890123],['b',-0.000000000000000000000001]")
#define PIECES(prefix, max, vocab) "{'type':'WordPiece','unk_token':'U'," \
	"'continuing_subword_prefix':'" prefix "','max_input_chars_per_word':" max \
	",'vocab':{'U':0," vocab "}}"
#define PARTS PIECES("##", "100", \
	"'a':1,'ab':2,'##b':3,'##bc':4,'##c':5,'##':6,'##" E_ACUTE "':7")
#define SHORT PIECES("##", "3", "'a':1,'##a':2,'" E_ACUTE "':3,'##" E_ACUTE "':4")
#define BARE PIECES("", "5", "'a':1,'b':2,'ab':3")
#define LEVEL "{'type':'WordLevel','unk_token':'U','vocab':{'a':1,'U':0,'a b':2}}"

static void test_ids(void **state)
{
	static const struct {
		const char *model, *text, *ids;
	} row[] = {
		{ TIES, "ab", "3" },
		{ TIES, "abc", "1 4" },
		{ TIES, "bcab", "4 3" },
		{ TIES, "aabb", "1 3 2" },
		/* Both are nearest to one double, but the reference reads the longer lower. */
		{ UNIGRAM("['ab',-3.0396360677891902],['a',-3.039636067789190],['b',0]"), "ab",
			"2 3" },
		{ UNIGRAM("['ab',-3.039636067789190],['a',-3.0396360677891902],['b',0]"), "ab",
			"1" },
		{ EXPONENTS, "ab", "1 2" },
		{ EXPONENTS, "ba", "2 1" },
		{ LONG, "ab", "1 2" },
		{ UNIGRAM("['a',-1]"), "xyz", "0" },
		{ UNIGRAM("['a',-1]"), "axya", "1 0 1" },
		{ UNIGRAM("['a',-1]"), "x?y?", "0" },
		{ UNIGRAM("['a',-1]"), "a?a", "1 0 1" },
		{ UNIGRAM("['a',-1]"), SHARP_S "a", "0 1" },
		{ UNIGRAM("['a',-1]"), "", "" },
		{ CHARS, "a" E_ACUTE BRICK SMILE, "5" },
		{ CHARS, SMILE BRICK E_ACUTE "a", "4 3 2 1" },
		{ CHARS, "a" E_ACUTE BRICK "b" SMILE SMILE, "1 2 3 0 6" },
		{ CHARS, SHARP_S BRICK "\xf0\x9f\x98\x82" LAST, "0 3 0 7" },
		/* Tokens that are pieces of characters are in no text. */
		{ UNIGRAM("['\xe7\xa0',9],['\x96',9],['a\xe7',9],['a',-1]"), "a" BRICK "a", "4 0 4" },
		{ BYTES, "x", "2" },
		{ BYTES, SHARP_S "x", "3 4 2" },
		{ BYTES, "xa" SHARP_S "a", "2 1 3 4 1" },
		{ BYTES, "xyz", "0" },
		{ BYTES, "?x", "0" },
		{ RUNS, "xx", "1" },
		{ RUNS, "axxa", "2 1 2" },
		{ RUNS, "xxx", "0" },
		{ DOUBLES, "ab", "3" },
		{ DOUBLES, "aab", "5 3" },
		{ DOUBLES, "ba", "4 5" },
		{ PARTS, "abc", "2 5" },
		{ PARTS, "abbc", "2 4" },
		{ PARTS, "b", "0" },
		{ PARTS, "a" E_ACUTE, "1 7" },
		{ PARTS, "a" E_ACUTE "x", "0" },
		{ PARTS, "##b", "3" },
		{ PARTS, "##", "6" },
		{ PARTS, "", "" },
		{ SHORT, "aaa", "1 2 2" },
		{ SHORT, "aaaa", "0" },
		{ SHORT, E_ACUTE E_ACUTE E_ACUTE, "3 4 4" },
		{ SHORT, E_ACUTE E_ACUTE E_ACUTE E_ACUTE, "0" },
		{ BARE, "abab", "3 3" },
		{ BARE, "ba", "2 1" },
		{ BARE, "aaaaaa", "0" },
		{ LEVEL, "a", "1" },
		{ LEVEL, "a b", "2" },
		{ LEVEL, "b", "0" },
		{ LEVEL, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		check(row[i].model, "", row[i].text, false, row[i].ids);
}

/* All ways to cut a word, tried one by one; scores are small whole numbers, so sums are exact. */
static int best_sum(const char *word, const int score[3][3])
{
	int best = -1000000;

	if (!*word)
		return 0;
	for (int second = -1; second < 3; second++) {
		int sum;

		if (second < 0)
			sum = -word[0] + 'a' - 5;
		else if (word[1] - 'a' == second)
			sum = score[word[0] - 'a'][second];
		else
			continue;
		sum += best_sum(word + (second < 0 ? 1 : 2), score);
		if (sum > best)
			best = sum;
	}
	return best;
}

/* The sum of a random word's cut is the highest there is. */
static void test_best(void **state)
{
	int score[3][3];
	uint32_t seed = 1;
	struct buf model = { 0 };
	struct tokenizer *t;
	struct err e;

	(void)state;
	quote(&model, "{'type':'Unigram','unk_id':0,'vocab':[['?',0],['a',-5],['b',-6],['c',-7]");
	for (int i = 0; i < 9; i++) {
		seed = seed * 1664525 + 1013904223;
		score[i / 3][i % 3] = -(int)(seed >> 16) % 16;
		buf_printf(&model, ",[\"%c%c\",%d]", 'a' + i / 3, 'a' + i % 3, score[i / 3][i % 3]);
	}
	buf_add_text(&model, "]}");
	t = load(model.data, "", &e);
	assert_non_null(t);
	for (int round = 0; round < 3000; round++) {
		char word[16] = { 0 };
		struct ids ids = { 0 };
		int sum = 0;

		for (size_t i = 0; i <= (size_t)round % 15; i++) {
			seed = seed * 1664525 + 1013904223;
			word[i] = (char)('a' + (seed >> 16) % 3);
		}
		assert_int_equal(tokenizer_encode(t, str_of(word), false, &ids), 0);
		for (size_t i = 0; i < ids.count; i++)
			sum += ids.id[i] < 4 ? -4 - (int)ids.id[i]
					     : score[(ids.id[i] - 4) / 3][(ids.id[i] - 4) % 3];
		assert_int_equal(sum, best_sum(word, score));
		ids_release(&ids);
	}
	tokenizer_free(t);
	buf_release(&model);
}

/* Longer than the ring of scores is wide, with tokens of every length up to it. */
static void test_long_word(void **state)
{
	struct buf model = { 0 }, text = { 0 }, back = { 0 };
	struct tokenizer *t;
	struct ids ids = { 0 };
	struct err e;

	(void)state;
	quote(&model, "{'type':'Unigram','unk_id':0,'vocab':[['?',0]");
	for (int n = 1; n <= 40; n++)
		buf_printf(&model, ",[\"%.*s\",-%d]", n, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			100 + n);
	buf_add_text(&model, "]}");
	t = load(model.data, ",'decoder':{'type':'Fuse'}", &e);
	assert_non_null(t);
	for (int i = 0; i < 100000; i++)
		buf_add_char(&text, 'a');
	assert_int_equal(tokenizer_encode(t, buf_str(&text), false, &ids), 0);
	assert_int_equal(ids.count, 2500);
	for (size_t i = 0; i < ids.count; i++)
		assert_int_equal(ids.id[i], 40);
	assert_int_equal(tokenizer_decode(t, ids.id, ids.count, false, &back), 0);
	assert_true(str_eq(buf_str(&text), buf_str(&back)));
	tokenizer_free(t);
	buf_release(&model);
	buf_release(&text);
	buf_release(&back);
	ids_release(&ids);
}

#define CLS(type) "{'type':'" type "','sep':['x',8],'cls':['y',7]}"
#define TEMPLATE(before, after) "{'type':'TemplateProcessing','single':[" before \
	"{'Sequence':{'id':'A','type_id':0}}" after "],'special_tokens':{'x':{'id':'x'," \
	"'ids':[5,6],'tokens':['x','y']}}}"
#define X "{'SpecialToken':{'id':'x','type_id':0}}"
#define LIST(members) "{'type':'Sequence','processors':[" members "]}"
#define LEVEL_OFFSETS "{'type':'ByteLevel','trim_offsets':true}"

static void test_post_processors(void **state)
{
	static const struct {
		const char *stage, *ids;
	} row[] = {
		{ "null", "1" },
		{ CLS("BertProcessing"), "7 1 8" },
		{ CLS("RobertaProcessing"), "7 1 8" },
		{ LEVEL_OFFSETS, "1" },
		{ TEMPLATE(X ",", ""), "5 6 1" },
		{ TEMPLATE("", "," X "," X), "1 5 6 5 6" },
		{ LIST(""), "1" },
		{ LIST(LEVEL_OFFSETS "," TEMPLATE(X ",", "")), "5 6 1" },
		{ LIST(CLS("BertProcessing") "," LIST(CLS("BertProcessing"))), "7 7 1 8 8" },
		{ LIST(CLS("BertProcessing") "," TEMPLATE(X ",", "")), "5 6 7 1 8" },
	};
	char rest[1024];

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		snprintf(rest, sizeof rest, ",'post_processor':%s", row[i].stage);
		check(LEVEL, rest, "a", true, row[i].ids);
		check(LEVEL, rest, "a", false, "1");
	}
}

#define POST(stage) LEVEL, ",'post_processor':" stage
#define LEVEL_WORDS ",'pre_tokenizer':{'type':'ByteLevel','add_prefix_space':false}"

static void test_errors(void **state)
{
	static const struct {
		const char *model, *rest, *want;
	} row[] = {
		{ "{'type':'Unigram','vocab':[['a',0]]}", "", "\"unk_id\" is not one of its 1 tokens" },
		{ "{'type':'Unigram','unk_id':1,'vocab':[['a',0]]}", "", "is not one of its 1" },
		{ "{'type':'Unigram','unk_id':-1,'vocab':[['a',0]]}", "", "is not one of its 1" },
		{ "{'type':'Unigram','unk_id':0,'vocab':[]}", "", "is not one of its 0" },
		{ "{'type':'Unigram','unk_id':0,'vocab':{}}", "", "\"vocab\" is not a list" },
		{ UNIGRAM("['a']"), "", "token number 1 is not [\"text\", score]" },
		{ UNIGRAM("['a',0,0]"), "", "token number 1 is not" },
		{ UNIGRAM("[0,0]"), "", "token number 1 is not" },
		{ UNIGRAM("['a',1e30]"), "", "token number 1 has the score 1e30" },
		{ UNIGRAM("['a',-1e999999999999999999999]"), "", "has the score" },
		{ UNIGRAM("['a',NaN]"), "", "has the score NaN" },
		{ UNIGRAM("['a',-Infinity]"), "", "has the score -Infinity" },
		{ UNIGRAM("['a','0']"), "", "has the score 0" },
		{ UNIGRAM("['a',0]"), LEVEL_WORDS, "Unigram model after a ByteLevel stage" },
		{ PIECES("##", "-1", "'a':1"), "", "\"max_input_chars_per_word\"" },
		{ PIECES("##", "1.5", "'a':1"), "", "\"max_input_chars_per_word\"" },
		{ PIECES("##", "null", "'a':1"), "", "\"max_input_chars_per_word\"" },
		{ "{'type':'WordPiece','unk_token':'a','vocab':{'a':0}}", "",
			"\"continuing_subword_prefix\"" },
		{ "{'type':'WordPiece','vocab':{'a':0}}", "", "without \"unk_token\"" },
		{ "{'type':'WordPiece','unk_token':'U','vocab':{'a':0}}", "",
			"WordPiece model whose unk_token is not in its vocabulary" },
		{ "{'type':'WordLevel','unk_token':'U','vocab':{'a':0}}", "",
			"WordLevel model whose unk_token is not in its vocabulary" },
		{ LEVEL, LEVEL_WORDS, "WordLevel model after a ByteLevel stage" },
		{ POST("{'type':'BertProcessing','sep':['x',8]}"), "BertProcessing whose \"cls\"" },
		{ POST("{'type':'RobertaProcessing','cls':['x',8],'sep':[8]}"),
			"RobertaProcessing whose \"sep\" is not [\"token\", id]" },
		{ POST("{'type':'BertProcessing','cls':['x',-1],'sep':['x',8]}"),
			"BertProcessing with a token id that is not a number" },
		{ POST(LIST(TEMPLATE(X ",", "") "," CLS("BertProcessing"))),
			"BertProcessing after a TemplateProcessing" },
		{ POST(LIST(TEMPLATE(X ",", "") "," TEMPLATE("", ""))),
			"TemplateProcessing after a TemplateProcessing" },
		{ POST("{'type':'TemplateProcessing','single':[{'Sequence':{'id':'B'}}]}"),
			"another sequence than A" },
		{ POST("{'type':'TemplateProcessing','single':[" X "]}"), "without ids for" },
		{ POST("{'type':'TemplateProcessing','single':[]}"), "exactly once" },
		{ POST("{'type':'Other'}"), "post_processor type \"Other\"" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct err e = { 0 };
		struct tokenizer *t = load(row[i].model, row[i].rest, &e);

		assert_null(t);
		if (!strstr(e.text, row[i].want))
			fail_msg("row %zu: \"%s\", not \"%s\"", i, e.text, row[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_long_word),
		cmocka_unit_test(test_post_processors),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
