/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_readers.c - tiktoken's files, tekken.json, and vocab.json with
 * merges.txt: small made-up ones, and one sentence for every way they can be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/str.h"
#include "input/encode/chars.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void write_file(const char *name, struct str text)
{
	char *path = file_join(dir, name);
	struct err e;

	assert_int_equal(file_write_atomic(path, text, &e), 0);
	free(path);
}

static void remove_file(const char *name)
{
	char *path = file_join(dir, name);

	unlink(path);
	free(path);
}

static struct tokenizer *load(const char *name)
{
	char *path = file_join(dir, name);
	struct err e = { 0 };
	struct tokenizer *t = tokenizer_load(path, NULL, &e);

	if (!t)
		fail_msg("%s", e.text);
	free(path);
	return t;
}

static void refused(const char *name, const char *want)
{
	char *path = file_join(dir, name);
	struct err e = { 0 };

	assert_null(tokenizer_load(path, NULL, &e));
	if (!strstr(e.text, want) || !str_starts(str_of(e.text), str_of(path)) ||
		strchr(e.text, '\n') || e.code == ERR_NONE)
		fail_msg("\"%s\" is not \"%s ...%s\"", e.text, path, want);
	free(path);
}

static void check_ids(const struct tokenizer *t, const char *text, bool special,
	const uint32_t *want, size_t count)
{
	struct ids ids = { 0 };

	assert_int_equal(tokenizer_encode(t, str_of(text), special, &ids), 0);
	if (ids.count != count)
		fail_msg("\"%s\" has %zu ids, not %zu", text, ids.count, count);
	for (size_t i = 0; i < count; i++)
		if (ids.id[i] != want[i])
			fail_msg("id %zu of \"%s\" is %u, not %u", i, text, ids.id[i], want[i]);
	ids_release(&ids);
}
#define IDS(...) (const uint32_t[]){ __VA_ARGS__ }, COUNT(((const uint32_t[]){ __VA_ARGS__ }))

static void check_text(const struct tokenizer *t, uint32_t id, bool skip_special, const char *want)
{
	struct buf text = { 0 };

	assert_int_equal(tokenizer_decode(t, &id, 1, skip_special, &text), 0);
	assert_string_equal(text.data ? text.data : "", want);
	buf_release(&text);
}

static uint32_t id_of(const struct tokenizer *t, const char *content)
{
	uint32_t id = UINT32_MAX;

	tokenizer_find_id(t, str_of(content), &id);
	return id;
}

/* ---- ranks ---- */

static void add_base64(struct buf *out, const char *p, size_t n)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = 0;

		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < n ? (uint8_t)p[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			buf_add_char(out, i + k > n ? '=' : digit[v >> (18 - 6 * k) & 63]);
	}
}

/*
 * The bytes are ranks 0 to 255. "wxyz" is not a sum of two tokens, so only a whole word is it; of
 * "bc" and "ab" the lower rank is merged first.
 */
static const char *const WORDS[] = { "bc", "ab", "abc", " a", "wxyz", "\xe4\xb8\xad", "the", "\xe4\xb8" };
#define RANKS (256 + COUNT(WORDS))

static void add_token(struct buf *out, size_t rank)
{
	if (rank < 256)
		add_base64(out, (char[]){ (char)rank }, 1);
	else
		add_base64(out, WORDS[rank - 256], strlen(WORDS[rank - 256]));
}

static void write_ranks(const char *name, const char *tail)
{
	struct buf text = { 0 };

	for (size_t rank = 0; rank < RANKS; rank++) {
		add_token(&text, rank);
		buf_printf(&text, " %zu\n", rank);
	}
	buf_add_text(&text, tail);
	write_file(name, buf_str(&text));
	buf_release(&text);
}

#define KIMI "{\"tokenizer_class\":\"TikTokenTokenizer\",\"bos_token\":\"[BOS]\"," \
	"\"added_tokens_decoder\":{\"264\":{\"content\":\"[BOS]\",\"special\":true}," \
	"\"270\":{\"content\":\"<think>\",\"special\":false}}}"

static void test_tiktoken(void **state)
{
	struct tokenizer *t;
	size_t count;

	(void)state;
	write_ranks("tiktoken.model", "\n");
	write_file("tokenizer_config.json", str_of(KIMI));
	t = load("tiktoken.model");
	check_ids(t, "abc", true, IDS(258));
	check_ids(t, "abcb", false, IDS(258, 'b'));
	check_ids(t, "wxyz", false, IDS(260));
	check_ids(t, "wxyza", false, IDS('w', 'x', 'y', 'z', 'a'));
	check_ids(t, "xabcx", false, IDS('x', 258, 'x'));
	check_ids(t, "bcb ab a", false, IDS(256, 'b', ' ', 257, 259));
	check_ids(t, "\xe4\xb8\xad\xe4\xb8\xae", false, IDS(261, 263, 0xae));
	check_ids(t, "[BOS]a<think><|reserved_token_266|>", false, IDS(264, 'a', 270, 266));
	assert_int_equal(tokenizer_vocab_size(t), RANKS + 258);
	assert_int_equal(tokenizer_id_limit(t), RANKS + 258);
	assert_int_equal(tokenizer_special_per_sequence(t), 0);
	assert_int_equal(tokenizer_special_ids(t, &count)[0], 264);
	assert_int_equal(count, 1);
	assert_true(tokenizer_is_special(t, 266));
	assert_false(tokenizer_is_special(t, 270));
	check_text(t, 263, false, "\xef\xbf\xbd");
	check_text(t, 521, false, "<|reserved_token_521|>");
	check_text(t, 521, true, "");
	tokenizer_free(t);
	remove_file("tokenizer_config.json");
}

/* After 25,000 characters of a kind, and after 400,000 in all, nothing is merged. */
static void test_long_texts(void **state)
{
	static const struct {
		size_t run, repeat; /* letters and a blank, so often; then tail */
		const char *tail;
		uint32_t last[2];
	} row[] = {
		{ 0, 24998, "ab", { ' ', 257 } },
		{ 24998, 0, "ab", { 'x', 257 } },
		{ 24999, 0, "ab", { 'a', 'b' } },
		{ 24999, 1, "ab", { ' ', 257 } },
		{ 24990, 0, "<|reserved_token_266|>", { '|', '>' } },
		{ 25000, 0, "<|reserved_token_266|>", { 'x', 266 } },
		{ 24999, 15, "", { 'x', ' ' } },
		{ 24999, 16, "a", { ' ', 'a' } },
		{ 24999, 15, " a", { ' ', 259 } },
	};
	struct tokenizer *t;

	(void)state;
	write_ranks("tiktoken.model", "");
	write_file("tokenizer_config.json", str_of(KIMI));
	t = load("tiktoken.model");
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf text = { 0 };
		struct ids ids = { 0 };
		const uint32_t *last;

		for (size_t k = 0; k < (row[i].repeat ? row[i].repeat : 1); k++) {
			for (size_t x = 0; x < row[i].run; x++)
				buf_add_char(&text, 'x');
			if (row[i].repeat)
				buf_add_char(&text, ' ');
		}
		buf_add_text(&text, row[i].tail);
		assert_int_equal(tokenizer_encode(t, buf_str(&text), true, &ids), 0);
		last = ids.id + ids.count - 2;
		if (last[0] != row[i].last[0] || last[1] != row[i].last[1])
			fail_msg("row %zu ends with %u %u", i, last[0], last[1]);
		buf_release(&text);
		ids_release(&ids);
	}
	tokenizer_free(t);
	remove_file("tokenizer_config.json");
}

static void test_wrong_tiktoken(void **state)
{
	static const char *const known[][2] = {
		{ "r50k_base.tiktoken", "has 264 ranks, but r50k_base has 50256" },
		{ "p50k_base.tiktoken", "has 264 ranks, but p50k_base has 50280" },
		{ "p50k_edit.tiktoken", "has 264 ranks, but p50k_edit has 50280" },
		{ "cl100k_base.tiktoken", "has 264 ranks, but cl100k_base has 100256" },
		{ "o200k_base.tiktoken", "has 264 ranks, but o200k_base has 199998" },
		{ "o200k_harmony.tiktoken", "has 264 ranks, but o200k_harmony has 199998" },
		{ "qwen.tiktoken", "has 264 ranks, but Qwen has 151643" },
	};
	static const struct {
		const char *tail, *config, *want;
	} row[] = {
		{ "YQ==\n", KIMI, "line 265 is not a token in base64, a blank and a rank" },
		{ "YQ== x\n", KIMI, "line 265 is not a token in base64" },
		{ "YQ== 1 2\n", KIMI, "line 265 is not a token in base64" },
		{ "YQ== -1\n", KIMI, "line 265 is not a token in base64" },
		{ "YQ== 16000000\n", KIMI, "a rank that a file of its size can have" },
		{ "Y 264\n", KIMI, "line 265 has \"Y\" where a token's bytes are expected in base64" },
		{ "!!!! 264\n", KIMI, "line 265 has \"!!!!\" where" },
		{ " 264\n", KIMI, "line 265 " },
		{ "YQ== 264\n", KIMI, "ids 97 and 264 are the same token" },
		{ "enp6 5\n", KIMI, "two tokens have the id 5" },
		{ "", "{\"tokenizer_class\":\"OddTokenizer\"}",
			"whose tokenizer_class \"OddTokenizer\" is not known here" },
		{ "", "{}", "of 264 ranks that does not say its pattern" },
		{ "", "{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", "does not say its pattern" },
		{ "", "{\"tokenizer_class\":\"QWenTokenizer\"}",
			"has 264 ranks, but Qwen has 151643; the file is damaged or another" },
		{ "", "{\"tokenizer_class\":\"TikTokenTokenizer\",\"added_tokens_decoder\":"
			"{\"5\":{\"content\":\"x\"}}}", "gives \"x\" the id 5 of another token" },
		{ "", "{\"tokenizer_class\":\"TikTokenTokenizer\",\"added_tokens_decoder\":"
			"{\"x\":{\"content\":\"x\"}}}", "has \"x\" where an id with a content is expected" },
		{ "", "{", "is not JSON" },
	};
	struct buf long_line = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		write_ranks("tokenizer.model", row[i].tail);
		write_file("tokenizer_config.json", str_of(row[i].config));
		refused("tokenizer.model", row[i].want);
	}
	for (int i = 0; i < 2000; i++)
		buf_add_char(&long_line, 'A');
	buf_add_text(&long_line, " 264\n");
	write_ranks("tokenizer.model", long_line.data);
	refused("tokenizer.model", "line 265 has a token of more than 1024 bytes");
	buf_release(&long_line);
	remove_file("tokenizer_config.json");
	for (size_t i = 0; i < COUNT(known); i++) {
		write_ranks(known[i][0], "");
		refused(known[i][0], known[i][1]);
	}
	write_file("x.tiktoken", STR(""));
	refused("x.tiktoken", "holds no tokens");
	write_file("tiktoken.model", STR("YQ== 0\nYg== 1\n"));
	write_file("tokenizer_config.json", str_of(KIMI));
	refused("tiktoken.model", "has no token for the byte 0x00; every byte must be one");
	remove_file("tokenizer_config.json");
}

/* ---- tekken ---- */

#define TEKKEN_PATTERN "[^\\\\s\\\\d]+|\\\\d|\\\\s+"

/* special: JSON of special_tokens, or NULL for none. */
static void write_tekken(const char *config, const char *special, const char *entry)
{
	struct buf text = { 0 };

	buf_printf(&text, "{\"config\":%s,\"vocab\":[", config);
	for (size_t rank = 0; rank < RANKS; rank++) {
		buf_printf(&text, "%s{\"rank\":%zu,\"token_bytes\":\"", rank ? "," : "", rank);
		add_token(&text, rank);
		buf_add_text(&text, "\",\"token_str\":null}");
	}
	buf_printf(&text, "%s]", entry);
	if (special)
		buf_printf(&text, ",\"special_tokens\":%s", special);
	buf_add_char(&text, '}');
	write_file("tekken.json", buf_str(&text));
	buf_release(&text);
}

#define CONFIG(size, specials, version) "{\"pattern\":\"" TEKKEN_PATTERN "\",\"num_vocab_tokens\":264," \
	"\"default_vocab_size\":" #size ",\"default_num_special_tokens\":" #specials \
	",\"version\":\"" version "\"}"

static void test_tekken(void **state)
{
	struct tokenizer *t;
	size_t count;

	(void)state;
	/* Two ranks fewer than the file has: "the" and the part of a character. */
	write_tekken(CONFIG(292, 30, "v3"), NULL, "");
	write_file("tokenizer_config.json", STR("{\"tokenizer_class\":\"LlamaTokenizer\","
		"\"add_bos_token\":false,\"bos_token\":\"a\"}"));
	t = load("tekken.json");
	check_ids(t, "wxyz", false, IDS(290));
	check_ids(t, "wxyz", true, IDS(1, 290));
	check_ids(t, "the", false, IDS('t' + 30, 'h' + 30, 'e' + 30));
	check_ids(t, "</s>", false, IDS('<' + 30, '/' + 30, 's' + 30, '>' + 30));
	assert_int_equal(tokenizer_vocab_size(t), 292);
	assert_int_equal(tokenizer_special_ids(t, &count)[2], 2);
	assert_int_equal(count, 30);
	assert_int_equal(id_of(t, "[TOOL_CONTENT]"), 19);
	assert_int_equal(id_of(t, "<SPECIAL_29>"), 29);
	check_text(t, 2, false, "</s>");
	check_text(t, 2, true, "");
	check_text(t, 258 + 30, true, "abc");
	tokenizer_free(t);

	write_tekken(CONFIG(270, 6, "v13"), "[{\"rank\":0,\"token_str\":\"<unk>\",\"is_control\":true},"
		"{\"rank\":1,\"token_str\":\"\\u003cs>\",\"is_control\":true},"
		"{\"rank\":2,\"token_str\":\"<s>\",\"is_control\":true}]", "");
	refused("tekken.json", "has no name of its own for special token 2");
	write_tekken(CONFIG(270, 6, "v13"), "[{\"rank\":0,\"token_str\":\"<unk>\",\"is_control\":true},"
		"{\"rank\":1,\"token_str\":\"<s>\",\"is_control\":true}]", "");
	t = load("tekken.json");
	check_ids(t, "the", true, IDS(1, 262 + 6));
	assert_int_equal(id_of(t, "<SPECIAL_2>"), 2);
	tokenizer_free(t);
	remove_file("tokenizer_config.json");
}

static void test_wrong_tekken(void **state)
{
	static const struct {
		const char *config, *special, *entry, *want;
	} row[] = {
		{ "3", NULL, "", "has a \"config\" without \"pattern\"" },
		{ "{\"pattern\":\"(\",\"default_vocab_size\":270,\"default_num_special_tokens\":6,"
			"\"version\":\"v3\"}", NULL, "", "regular expression" },
		{ "{\"pattern\":\"\\\\d{1,3}+\"}", NULL, "", "with a possessive count like {1,3}+" },
		{ "{\"pattern\":\"a\"}", NULL, "",
			"has a \"config\" whose \"default_num_special_tokens\" is not a number from 0 to 65536" },
		{ CONFIG(x, 6, "v3"), NULL, "", "is not JSON" },
		{ CONFIG(-1, 6, "v3"), NULL, "", "whose \"default_vocab_size\" is not a number" },
		{ CONFIG(6, 6, "v3"), NULL, "", "leaves no room for tokens other than its 6 special tokens" },
		{ CONFIG(270, 6, "3"), NULL, "", "has a \"config\" without a \"version\" like v3" },
		{ CONFIG(271, 6, "v3"), NULL, "", "has 264 entries in \"vocab\"; its default_vocab_size "
			"is for 265" },
		{ CONFIG(271, 6, "v3"), NULL, ",{\"rank\":3,\"token_bytes\":\"eHg=\"}",
			"has an entry without \"token_bytes\" or the rank 264 at place 264" },
		{ CONFIG(271, 6, "v3"), NULL, ",7", "or the rank 264 at place 264" },
		{ CONFIG(271, 6, "v3"), NULL, ",{\"rank\":264,\"token_bytes\":\"eH\"}",
			"vocab entry 264 has \"eH\" where a token's bytes are expected" },
		{ CONFIG(271, 6, "v3"), NULL, ",{\"rank\":264,\"token_bytes\":\"YQ==\"}",
			"are the same token" },
		{ CONFIG(270, 6, "v11"), NULL, "", "has no \"special_tokens\", which files after version v7" },
		{ CONFIG(265, 1, "v3"), NULL, "", "has no special token <s>" },
		{ CONFIG(270, 6, "v11"), "[]", "", "has no special token <s>" },
		{ CONFIG(266, 2, "v11"), "[{\"rank\":0,\"token_str\":\"<s>\"},{\"rank\":1,\"token_str\":"
			"\"a\"},{\"rank\":2,\"token_str\":\"b\"}]", "",
			"has more \"special_tokens\" than its default_num_special_tokens, 2" },
		{ CONFIG(266, 2, "v11"), "[{\"rank\":1,\"token_str\":\"<s>\"}]", "",
			"has an entry without \"token_str\" or the rank 0 at place 0" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		write_tekken(row[i].config, row[i].special, row[i].entry);
		refused("tekken.json", row[i].want);
	}
	write_file("tekken.json", STR("{\"config\":{}}"));
	refused("tekken.json", "has no \"config\" or no list \"vocab\"; it is not a tekken.json");
	write_file("tekken.json", STR("{} {}"));
	refused("tekken.json", "is not JSON: text after the end of the object");
}

/* ---- vocab.json and merges.txt ---- */

/* Every byte under its spelling, then "ab", "abc" and two that text becomes only as a whole. */
static void write_vocab(const char *tail)
{
	struct buf text = { 0 };

	buf_add_char(&text, '{');
	for (unsigned b = 0; b < 256; b++) {
		char c[4];
		size_t n = utf8_encode(chars_of_byte((uint8_t)b), c);

		buf_printf(&text, "\"%s%.*s\":%u,", b == '"' || b == '\\' ? "\\" : "", (int)n, c, b);
	}
	buf_printf(&text, "\"ab\":256,\"abc\":257,\"\xc4\xa0" "a\":258%s}", tail);
	write_file("vocab.json", buf_str(&text));
	buf_release(&text);
}

/* With ignore_merges a token that merging never makes is one as a word, not as a part of a word. */
static void test_words_and_parts(void **state)
{
	struct buf text = { 0 };

	(void)state;
	buf_add_text(
		&text,
		"{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false},"
		"\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{");
	for (unsigned b = 0; b < 256; b++) {
		char c[4];
		size_t n = utf8_encode(chars_of_byte((uint8_t)b), c);

		buf_printf(&text, "\"%s%.*s\":%u,", b == '"' || b == '\\' ? "\\" : "", (int)n, c, b);
	}
	buf_add_text(&text, "\"bc\":256,\"ab\":257,\"abc\":258,\"differenh\":259,\"differeni\":260},\"merges\":"
		     "[\"b c\",\"a b\"]}}");
	write_file("tokenizer.json", buf_str(&text));
	for (int is_part_first = 0; is_part_first < 2; is_part_first++) {
		struct tokenizer *t = load("tokenizer.json");

		for (int k = 0; k < 3; k++) {
			if ((k + is_part_first) % 2)
				check_ids(t, "-abc", false, IDS('-', 'a', 256));
			else
				check_ids(t, "abc", false, IDS(258));
		}
		/* They differ in one bit of the ninth byte. */
		check_ids(t, "differenh", false, IDS(259));
		check_ids(t, "differeni", false, IDS(260));
		tokenizer_free(t);
	}
	remove_file("tokenizer.json");
	buf_release(&text);
}

static void test_merges(void **state)
{
	static const struct {
		const char *tail, *config, *map, *added, *text;
		size_t count;
		uint32_t want[8];
	} row[] = {
		{ ",\"<|endoftext|>\":259", "{}", NULL, NULL, "abc ab<|endoftext|>", 4, { 257, ' ', 256, 259 } },
		{ "", "{}", NULL, NULL, "a<|endoftext|>", 2, { 'a', 259 } },
		{ ",\"<|endoftext|>\":259", "{\"add_prefix_space\":true,\"tokenizer_class\":\"GPT2TokenizerFast\"}",
			NULL, NULL, "abc", 2, { ' ', 257 } },
		{ ",\"</s>\":259", "{\"add_bos_token\":true,\"bos_token\":{\"content\":\"</s>\"},"
			"\"unk_token\":\"</s>\",\"eos_token\":\"</s>\"}", NULL, NULL, "ab", 2, { 259, 256 } },
		{ ",\"<s>\":259,\"</s>\":260,\"<mask>\":261", "{\"tokenizer_class\":\"RobertaTokenizer\"}",
			NULL, NULL, "ab  <mask> a", 5, { 259, 256, 261, 258, 260 } },
		{ ",\"<s>\":259,\"</s>\":260", "{\"tokenizer_class\":\"BartTokenizerFast\"}",
			"{\"mask_token\":{\"content\":\"[M]\",\"lstrip\":false}}", NULL, "a [M]",
			5, { 259, 'a', ' ', 263, 260 } },
		{ "", "{\"tokenizer_class\":\"Qwen2Tokenizer\",\"additional_special_tokens\":[\"<x>\"]}", NULL,
			"{\"<|endoftext|>\":270,\"<x>\":271,\"<y>\":300}", "12<x><|endoftext|><y>",
			5, { '1', '2', 271, 270, 300 } },
		{ "", "{\"added_tokens_decoder\":{\"300\":{\"content\":\"<r>\",\"rstrip\":true}}}", NULL, NULL,
			"<r>  b", 2, { 300, 'b' } },
	};

	(void)state;
	write_file("merges.txt", STR("#version: 0.2\na b\r\nab c\n\xc4\xa0 a\n"));
	for (size_t i = 0; i < COUNT(row); i++) {
		struct tokenizer *t;

		write_vocab(row[i].tail);
		write_file("tokenizer_config.json", str_of(row[i].config));
		if (row[i].map)
			write_file("special_tokens_map.json", str_of(row[i].map));
		if (row[i].added)
			write_file("added_tokens.json", str_of(row[i].added));
		t = load("vocab.json");
		check_ids(t, row[i].text, true, row[i].want, row[i].count);
		tokenizer_free(t);
		remove_file("special_tokens_map.json");
		remove_file("added_tokens.json");
		remove_file("tokenizer_config.json");
	}
}

/* Of a long part the message has the beginning. */
#define X63 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X64 X63 "x"

static void test_wrong_merges(void **state)
{
	static const struct {
		const char *merges, *config, *added, *want;
	} row[] = {
		{ "a b c\n", "{}", NULL, "has a merge (number 0) that is not two tokens" },
		{ "a x\n", "{}", NULL, "has a merge (number 0, \"a\" and \"x\") of which" },
		{ "a b\nab c\nab d\n", "{}", NULL, "has a merge (number 2, \"ab\" and \"d\") of which" },
		{ "a b\n" X64 "x b\n", "{}", NULL,
			"has a merge (number 1, \"" X64 "\" and \"b\") of which" },
		{ "a b\n" X64 "x b" X64 "\n", "{}", NULL,
			"has a merge (number 1, \"" X64 "\" and \"b" X63 "\") of which" },
		{ "", "{\"tokenizer_class\":\"OddTokenizer\"}", NULL,
			"is for the tokenizer_class \"OddTokenizer\", whose stages are not known here" },
		{ "", "{\"tokenizer_class\":\"RobertaTokenizer\"}", NULL,
			"has no token \"<s>\", which RobertaTokenizer puts around a text" },
		{ "", "{}", "{\"<x>\":3}", "has a added_tokens.json next to it whose token \"<x>\" has no free id" },
		{ "", "{}", "{\"<x>\":-3}", "whose token \"<x>\" has no free id" },
		{ "", "{\"added_tokens_decoder\":{\"1.5\":{\"content\":\"<x>\"}}}", NULL,
			"has a tokenizer_config.json next to it whose token \"<x>\" has no free id" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		write_vocab("");
		write_file("merges.txt", str_of(row[i].merges));
		write_file("tokenizer_config.json", str_of(row[i].config));
		if (row[i].added)
			write_file("added_tokens.json", str_of(row[i].added));
		refused("vocab.json", row[i].want);
		remove_file("added_tokens.json");
	}
	remove_file("tokenizer_config.json");
	write_file("vocab.json", STR("[1"));
	refused("vocab.json", "is not JSON");
	write_file("vocab.json", STR("[1]"));
	refused("vocab.json", "has a BPE model without \"vocab\" or \"merges\"");
	remove_file("merges.txt");
	refused("vocab.json", "needs merges.txt next to it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiktoken),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_wrong_tiktoken),
		cmocka_unit_test(test_tekken),
		cmocka_unit_test(test_wrong_tekken),
		cmocka_unit_test(test_words_and_parts),
		cmocka_unit_test(test_merges),
		cmocka_unit_test(test_wrong_merges),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
