/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token.c - the built-in tokenizer, where tokenizers are looked for, the files next to them,
 * and one sentence for every way a file can be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/str.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SMALL "tests/unit/token/small.json"

static struct tokenizer *load(const char *name, const struct tokenizer_load_opts *opts)
{
	struct err e;
	struct tokenizer *t = tokenizer_load(name, opts, &e);

	if (!t)
		fail_msg("%s", e.text);
	return t;
}

static void check_ids(const struct tokenizer *t, struct str text, bool special,
	const uint32_t *want, size_t count)
{
	struct ids ids = { 0 };

	assert_int_equal(tokenizer_encode(t, text, special, &ids), 0);
	assert_int_equal(ids.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ids.id[i], want[i]);
	assert_int_equal(tokenizer_count(t, text, special), count);
	ids_release(&ids);
}

/* ---- the built-in tokenizer ---- */

static void test_sim_rules(void **state)
{
	static const struct {
		const char *text;
		size_t count;
		uint32_t want[8];
	} row[] = {
		{ "", 0, { 0 } },
		{ " aaa", 1, { 256 } },
		{ " zzz", 1, { 17831 } },
		{ " aab aba", 2, { 257, 256 + 26 } },
		{ "abc", 3, { 'a', 'b', 'c' } },
		{ " abcd", 2, { 256 + 28, 'd' } },
		{ " ab", 3, { ' ', 'a', 'b' } },
		{ " aBc", 4, { ' ', 'a', 'B', 'c' } },
		{ "  aaa", 2, { ' ', 256 } },
		{ "<|end|>", 1, { SIM_END } },
		{ "<|end|", 6, { '<', '|', 'e', 'n', 'd', '|' } },
		{ "<<|end|> aaa", 3, { '<', SIM_END, 256 } },
		{ "\xc3\xa9", 2, { 0xc3, 0xa9 } },
	};
	struct tokenizer *t = load("sim", NULL);
	size_t special;

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++)
		check_ids(t, str_of(row[i].text), i % 2, row[i].want, row[i].count);
	check_ids(t, (struct str){ "\0\xff", 2 }, false, (uint32_t[]){ 0, 255 }, 2);
	assert_int_equal(tokenizer_vocab_size(t), 256 + 17576);
	assert_int_equal(tokenizer_id_limit(t), 256 + 17576 + 1);
	assert_int_equal(tokenizer_special_per_sequence(t), 0);
	assert_int_equal(tokenizer_special_ids(t, &special)[0], SIM_END);
	assert_int_equal(special, 1);
	assert_true(tokenizer_is_special(t, SIM_END));
	assert_false(tokenizer_is_special(t, 0));
	assert_false(tokenizer_has_chat_template(t));
	assert_string_equal(tokenizer_name(t), "sim");
	tokenizer_free(t);
}

/* Any bytes come back, and the lossy text is the lossy input. */
static void test_sim_bytes(void **state)
{
	static const char letters[] = " abz<|end|>\xc3\xa9\xff\n";
	struct tokenizer *t = load("sim", NULL);
	struct buf text = { 0 }, back = { 0 }, lossy = { 0 };
	struct ids ids = { 0 };
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		buf_reset(&text);
		buf_reset(&back);
		buf_reset(&lossy);
		ids_reset(&ids);
		for (int i = 0; i < round % 97; i++) {
			seed = seed * 1664525 + 1013904223;
			buf_add_char(&text, round % 2 ?
				letters[(seed >> 16) % (sizeof letters - 1)] :
				(char)(seed >> 24));
		}
		assert_int_equal(tokenizer_encode(t, buf_str(&text), false, &ids), 0);
		assert_int_equal(tokenizer_decode_bytes(t, ids.id, ids.count, false, &back), 0);
		assert_true(str_eq(buf_str(&text), buf_str(&back)));
		buf_reset(&back);
		utf8_add_lossy(&lossy, buf_str(&text));
		assert_int_equal(tokenizer_decode(t, ids.id, ids.count, false, &back), 0);
		assert_true(str_eq(buf_str(&lossy), buf_str(&back)));
	}
	tokenizer_free(t);
	buf_release(&text);
	buf_release(&back);
	buf_release(&lossy);
	ids_release(&ids);
}

/* Every sequence of word tokens re-encodes to itself. */
static void test_sim_words(void **state)
{
	struct tokenizer *t = load("sim", NULL);
	struct buf text = { 0 };
	struct ids ids = { 0 };

	(void)state;
	for (uint32_t id = SIM_WORD_FIRST; id < SIM_VOCAB; id++)
		ids_push(&ids, SIM_WORD_FIRST + (id * 7919u) % SIM_WORDS);
	assert_int_equal(tokenizer_decode(t, ids.id, ids.count, false, &text), 0);
	assert_int_equal(text.len, SIM_WORDS * 4);
	check_ids(t, buf_str(&text), false, ids.id, ids.count);
	buf_reset(&text);
	assert_int_equal(tokenizer_decode(t, (uint32_t[]){ 256, SIM_END, 99999, 'x' }, 4, true,
		&text), 0);
	assert_true(str_is(buf_str(&text), " aaax"));
	tokenizer_free(t);
	buf_release(&text);
	ids_release(&ids);
}

/* ---- looking for a tokenizer ---- */

static void write_file(const char *name, const char *text)
{
	char *path = file_join(dir, name), *slash = strrchr(path, '/');
	struct err e;

	*slash = 0;
	assert_int_equal(file_mkdirs(path, &e), 0);
	*slash = '/';
	if (file_write_atomic(path, str_of(text), &e))
		fail_msg("%s", e.text);
	free(path);
}

static char *small_text(void)
{
	struct buf text = { 0 };
	struct err e;

	assert_int_equal(file_read(SMALL, 1 << 20, &text, &e), 0);
	return buf_take(&text);
}

static void test_cache_lookup(void **state)
{
	char *small = small_text();
	struct tokenizer *t;

	(void)state;
	write_file("hub/models--org--m/refs/main", "abc123\n");
	write_file("hub/models--org--m/snapshots/abc123/tokenizer.json", small);
	write_file("hub/models--org--m/snapshots/abc123/chat_template.jinja", "x");
	write_file("hub/models--org--m/refs/v2", "def456");
	write_file("hub/models--org--m/snapshots/def456/tokenizer.json", small);
	setenv("HF_HUB_CACHE", "", 1);
	setenv("HF_HOME", dir, 1);
	setenv("HF_HUB_OFFLINE", "1", 1);
	t = load("org/m", NULL);
	assert_string_equal(tokenizer_name(t), "org/m");
	assert_true(tokenizer_has_chat_template(t));
	tokenizer_free(t);
	t = load("org/m", &(struct tokenizer_load_opts){ .revision = "v2" });
	assert_false(tokenizer_has_chat_template(t));
	tokenizer_free(t);
	tokenizer_free(load("org/m", &(struct tokenizer_load_opts){ .revision = "def456" }));
	free(small);
}

static void test_not_found(void **state)
{
	static const struct {
		const char *name, *revision, *want[2];
	} row[] = {
		{ "org/none", NULL, { "no tokenizer \"org/none\": there is no such file or "
			"directory, and org/none is not in the cache (",
			"/hub/models--org--none, revision main), and the hub may not be used" } },
		{ "org/m", "v3", { "no tokenizer \"org/m\"", ", revision v3)" } },
		{ "a/b/c", NULL, { "there is no such file or directory, and it is not a model name",
			"" } },
		{ "../none.such", NULL, { "not a model name", "" } },
		{ "/none.json", NULL, { "not a model name", "" } },
		{ "tests/unit", NULL, { "directory tests/unit has no tokenizer.json", "" } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct err e = { 0 };

		assert_null(tokenizer_load(row[i].name,
			&(struct tokenizer_load_opts){ .revision = row[i].revision }, &e));
		assert_int_equal(e.code, ERR_IO);
		assert_non_null(strstr(e.text, row[i].want[0]));
		assert_non_null(strstr(e.text, row[i].want[1]));
	}
}

/* ---- files next to it ---- */

static void test_special_ids(void **state)
{
	char *small = small_text(), *path = file_join(dir, "c");
	const uint32_t *id;
	struct tokenizer *t;
	uint32_t bos, found;
	size_t count;

	(void)state;
	write_file("c/tokenizer.json", small);
	write_file("c/tokenizer_config.json",
		"{\"eos_token\": {\"content\": \"<|eos|>\"}, \"bos_token\":"
		" \"<|bos|>\", \"pad_token\": null, \"unk_token\": \"<none>\","
		"\"sep_token\": \"<|eos|>\","
		"\"additional_special_tokens\": [\"<sep>\", \"<|bos|>\"],"
		"\"chat_template\": \"{{ x }}\"}");
	t = load(path, NULL);
	id = tokenizer_special_ids(t, &count);
	assert_int_equal(count, 3);
	assert_true(tokenizer_find_id(t, STR("<|bos|>"), &bos));
	assert_int_equal(id[0], bos);
	assert_int_equal(id[1], bos + 1);
	assert_int_equal(id[2], bos + 2);
	assert_true(tokenizer_is_special(t, bos));
	assert_true(tokenizer_has_chat_template(t));
	assert_true(tokenizer_find_id(t, STR("a"), &found));
	assert_false(tokenizer_find_id(t, STR("<none>"), &found));
	assert_int_equal(tokenizer_special_per_sequence(t), 0);
	assert_true(tokenizer_vocab_size(t) >= 256 && bos == tokenizer_vocab_size(t));
	assert_int_equal(tokenizer_id_limit(t), bos + 11);
	tokenizer_free(t);

	write_file("c/tokenizer_config.json", "{\"tokenizer_class\": \"LlamaTokenizerFast\","
		"\"add_bos_token\": true, \"add_eos_token\": true, \"bos_token\": \"<|bos|>\","
		"\"eos_token\": \"<|eos|>\", \"added_tokens_decoder\": {}}");
	write_file("c/special_tokens_map.json", "{\"pad_token\": \"<sep>\"}");
	t = load(path, NULL);
	check_ids(t, STR(""), true, (uint32_t[]){ bos, bos + 1 }, 2);
	assert_int_equal(tokenizer_special_per_sequence(t), 2);
	tokenizer_special_ids(t, &count);
	assert_int_equal(count, 2);
	assert_false(tokenizer_has_chat_template(t));
	tokenizer_free(t);
	free(small);
	free(path);
}

/* ---- files that are wrong ---- */

#define BL "{\"type\":\"ByteLevel\",\"use_regex\":false,\"add_prefix_space\":false}"
#define FILE_OF(stages, model) "{" stages "\"decoder\":" BL ",\"model\":" model "}"
#define MODEL "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"
#define PRE "\"pre_tokenizer\":" BL ","

static const struct {
	const char *text, *want;
} wrong[] = {
	{ "", "is not JSON" },
	{ "{\"model\":", "is not JSON" },
	{ "{} x", "text after the end" },
	{ "[]", "does not hold a JSON object" },
	{ "{}", "has no \"model\"; it is not a tokenizer.json" },
	{ FILE_OF("\"normalizer\":{\"type\":\"Nonsense\"},", MODEL),
		"has normalizer type \"Nonsense\", which this version does not read" },
	{ FILE_OF("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
		"{\"type\":\"Nonsense\"}]},", MODEL), "has normalizer type \"Nonsense\"" },
	{ FILE_OF("\"normalizer\":{\"type\":\"Sequence\"},", MODEL),
		"has a normalizer Sequence without its list \"normalizers\"" },
	{ FILE_OF("\"normalizer\":{},", MODEL), "has a normalizer without a type" },
	{ FILE_OF("\"normalizer\":3,", MODEL), "\"normalizer\" is not an object or null" },
	{ FILE_OF("\"pre_tokenizer\":{\"type\":\"Nonsense\"},", MODEL),
		"has pre_tokenizer type \"Nonsense\", which this version does not read" },
	{ FILE_OF("\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Odd\"},", MODEL),
		"Split pre_tokenizer with behavior \"Odd\"; known are Removed" },
	{ FILE_OF("\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\","
		"\"pattern\":{}},", MODEL),
		"pattern is neither a Regex nor a String" },
	{ FILE_OF("\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":"
		"{\"Regex\":\"(a\"}},", MODEL),
		"pre_tokenizer Split: regular expression uses an unclosed group" },
	{ FILE_OF("\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":"
		"{\"Regex\":\"\\\\p{Nonsense}\"}},", MODEL),
		"regular expression does not compile" },
	{ FILE_OF("\"post_processor\":{\"type\":\"Nonsense\"}," PRE, MODEL),
		"has post_processor type \"Nonsense\"" },
	{ FILE_OF("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}," PRE, MODEL),
		"does not hold the sequence exactly once" },
	{ FILE_OF("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":"
		"[{\"SpecialToken\":{\"id\":\"<s>\"}}]}," PRE, MODEL),
		"has a TemplateProcessing without ids for its token \"<s>\"" },
	{ "{" PRE "\"decoder\":{\"type\":\"CTC\"},\"model\":" MODEL "}",
		"has decoder type \"CTC\", which this version does not read" },
	{ FILE_OF(PRE, "{\"type\":\"Nonsense\"}"),
		"has model type \"Nonsense\", which this version does not read" },
	{ FILE_OF(PRE, "{\"type\":\"BPE\"}"), "has a BPE model without \"vocab\" or \"merges\"" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1}"), "with dropout" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":0},\"merges\":[],\"end_of_word_suffix\":\"</w>\"}"),
		"with continuing_subword_prefix or end_of_word_suffix" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":0},\"merges\":[],\"unk_token\":\"<unk>\"}"),
		"has an unk_token that is not in its vocabulary" },
	{ FILE_OF(PRE, "{\"vocab\":{},\"merges\":[]}"), "has an empty vocabulary" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":\"0\"},\"merges\":[]}"),
		"has a vocabulary entry \"a\" whose id is not a whole number" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":-1},\"merges\":[]}"),
		"token \"a\" has id -1; ids are 0 to 4194303" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":99999999},\"merges\":[]}"),
		"token \"a\" has id 99999999" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]}"), "two tokens have the id 1" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":1,\"\\u0061\":2},\"merges\":[]}"),
		"ids 1 and 2 are the same token" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":0},\"merges\":[\"ab\"]}"),
		"merge (number 0) that is not two tokens" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":0},\"merges\":[\"a b c\"]}"), "that is not two tokens" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}"), "that is not two tokens" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"b\",\"c\"]]}"),
		"that is not two tokens" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":0},\"merges\":[3]}"), "that is not two tokens" },
	{ FILE_OF(PRE, "{\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b\"]}"),
		"has a merge (number 0, \"a\" and \"b\") of which a part or the "
		"result is not in the vocabulary" },
	{ FILE_OF(PRE "\"added_tokens\":{},", MODEL), "\"added_tokens\" is not a list" },
	{ FILE_OF(PRE "\"added_tokens\":[{}],", MODEL), "has an added token without content" },
};

static void test_wrong_files(void **state)
{
	char *path = file_join(dir, "w/tokenizer.json");

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct err e = { 0 };

		write_file("w/tokenizer.json", wrong[i].text);
		assert_null(tokenizer_load(path, NULL, &e));
		if (!strstr(e.text, wrong[i].want) || !str_starts(str_of(e.text), str_of(path)) ||
			strchr(e.text, '\n') || e.code == ERR_NONE)
			fail_msg("row %zu: \"%s\" is not \"%s ...%s\"", i, e.text, path,
			wrong[i].want);
	}
	free(path);
}

static void test_wrong_config(void **state)
{
	char *small = small_text(), *path = file_join(dir, "x");
	struct err e = { 0 };

	(void)state;
	write_file("x/tokenizer.json", small);
	write_file("x/tokenizer_config.json", "{");
	assert_null(tokenizer_load(path, NULL, &e));
	assert_non_null(strstr(e.text, "tokenizer_config.json is not JSON"));
	write_file("x/tokenizer_config.json", "[]");
	assert_null(tokenizer_load(path, NULL, &e));
	assert_non_null(strstr(e.text, "tokenizer_config.json does not hold a JSON object"));
	write_file("x/tokenizer_config.json", "{\"tokenizer_class\":\"LlamaTokenizer\","
		"\"add_bos_token\":true}");
	assert_null(tokenizer_load(path, NULL, &e));
	assert_non_null(strstr(e.text, "sets add_bos_token, but its bos_token \"\" is not a token"));
	free(small);
	free(path);
}

/* ---- small models ---- */

/* Merges as strings, bytes the vocabulary lacks, and a word far above the scan's limit. */
static void test_small_models(void **state)
{
	char *path = file_join(dir, "s/tokenizer.json");
	struct tokenizer *t;
	struct ids ids = { 0 };
	char word[5001];

	(void)state;
	write_file("s/tokenizer.json", FILE_OF(PRE, MODEL));
	t = load(path, NULL);
	check_ids(t, STR("abxba\xc3\xa9" "ab"), true, (uint32_t[]){ 2, 1, 0, 2 }, 4);
	memset(word, 'a', 5000);
	word[4999] = 'b';
	assert_int_equal(tokenizer_encode(t, (struct str){ word, 5000 }, false, &ids), 0);
	assert_int_equal(ids.count, 4999);
	assert_int_equal(ids.id[4998], 2);
	tokenizer_free(t);
	write_file("s/tokenizer.json", FILE_OF(PRE, "{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"?\":3},"
		"\"merges\":[[\"a\",\"b\"]],\"unk_token\":\"?\",\"fuse_unk\":true}"));
	t = load(path, NULL);
	check_ids(t, STR("xxabx\xff"), true, (uint32_t[]){ 3, 2, 3 }, 3);
	tokenizer_free(t);
	ids_release(&ids);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sim_rules),
		cmocka_unit_test(test_sim_bytes),
		cmocka_unit_test(test_sim_words),
		cmocka_unit_test(test_cache_lookup),
		cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_special_ids),
		cmocka_unit_test(test_wrong_files),
		cmocka_unit_test(test_wrong_config),
		cmocka_unit_test(test_small_models),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
