/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_decoder.c - ids to text by every kind of decoder; the texts are the
 * reference library's (tests/peer/tokenizer/decoder.mjs compares many more).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))


#define BAR "\xe2\x96\x81"
#define BAD "\xef\xbf\xbd"
#define BOS 20
#define VOCAB "{'a':0,'b':1,'" BAR "':2,'" BAR BAR "a':3,'b" BAR "':4,'##a':5,'a##':6,'</w>':7," \
	"'a</w>':8,'<0xE4>':9,'<0xb8>':10,'<0xAD>':11,'<0x+f>':12,' ':13,' .':14,' do not':15,'':16," \
	"'\xc4\xa0" "a':17,'\xc3\x83\xc2\xa9':18,'\xc3\xa9':19}"
#define CHAIN(list) "{'type':'Sequence','decoders':[" list "]}"
#define BYTE_LEVEL "{'type':'ByteLevel','add_prefix_space':true}"
#define FALLBACK "{'type':'ByteFallback'}"
#define FUSE "{'type':'Fuse'}"
#define REPLACE(old, new) "{'type':'Replace','pattern':{'String':'" old "'},'content':'" new "'}"
#define REGEX(old, new) "{'type':'Replace','pattern':{'Regex':'" old "'},'content':'" new "'}"
#define STRIP(content, start, stop) "{'type':'Strip','content':'" content "','start':" #start \
	",'stop':" #stop "}"
#define METASPACE(more) "{'type':'Metaspace','replacement':'" BAR "'" more "}"
#define WORD_PIECE(cleanup) "{'type':'WordPiece','prefix':'##','cleanup':" cleanup "}"
#define SUFFIX "{'type':'BPEDecoder','suffix':'</w>'}"
#define LLAMA CHAIN(REPLACE(BAR, " ") "," FALLBACK "," FUSE "," STRIP(" ", 1, 0))

/* A tokenizer.json with ' for ", and the decoder in its place. */
static void write_file(const char *path, const char *decoder, const char *pre_tokenizer)
{
	struct buf text = { 0 };
	struct err e;

	buf_printf(&text, "{'pre_tokenizer':%s,'decoder':%s,'added_tokens':[{'id':20,'content':'<s>',"
		"'special':true}],'model':{'type':'BPE','byte_fallback':true,'vocab':" VOCAB
		",'merges':[]}}", pre_tokenizer, decoder);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '\'')
			text.data[i] = '"';
	assert_int_equal(file_write_atomic(path, buf_str(&text), &e), 0);
	buf_release(&text);
}

static void check(const struct tokenizer *t, const uint32_t *id, size_t n, bool skip_special,
	const char *want, const char *of)
{
	struct buf text = { 0 };

	buf_add_text(&text, "kept");
	assert_int_equal(tokenizer_decode(t, id, n, skip_special, &text), 0);
	if (strcmp(text.data + 4, want) != 0 || memcmp(text.data, "kept", 4) != 0)
		fail_msg("%s: \"%s\" is not \"%s\"", of, text.data + 4, want);
	buf_release(&text);
}

static const struct {
	const char *decoder;
	size_t n;
	uint32_t id[8];
	const char *want, *skipped; /* NULL: the same */
} row[] = {
	{ "null", 3, { 0, 1, 2 }, "a b " BAR, NULL },
	{ "null", 0, { 0 }, "", NULL },
	{ "null", 2, { BOS, 0 }, "<s> a", "a" },
	{ BYTE_LEVEL, 4, { 17, 18, 19, 0 }, " a\xc3\xa9" BAD "a", NULL },
	{ FUSE, 3, { 0, 13, 1 }, "a b", NULL },
	{ FALLBACK, 5, { 0, 9, 10, 11, 1 }, "a\xe4\xb8\xad" "b", NULL },
	{ FALLBACK, 4, { 9, 10, 11, 9 }, BAD BAD BAD BAD, NULL },
	{ FALLBACK, 4, { 9, 16, 10, 11 }, BAD BAD BAD, NULL },
	{ FALLBACK, 4, { 12, 0, 9, BOS }, "\x0f" "a" BAD "<s>", "\x0f" "a" BAD },
	{ LLAMA, 5, { 3, 9, 10, 11, 4 }, " a\xe4\xb8\xad" "b ", NULL },
	{ LLAMA, 1, { 2 }, "", NULL },
	{ LLAMA, 0, { 0 }, "", NULL },
	{ REGEX("[ab]+", "<$0>"), 4, { 0, 1, 3, 8 }, "<$0><$0>" BAR BAR "<$0><$0></w>", NULL },
	{ REGEX("a*", "-"), 3, { 0, 1, 16 }, "--b-", NULL },
	{ CHAIN(FUSE "," REPLACE("ab", "x")), 3, { 0, 1, 0 }, "xa", NULL },
	{ METASPACE(""), 3, { 3, 3, 4 }, "a  ab ", NULL },
	{ METASPACE(",'prepend_scheme':'never'"), 3, { 3, 3, 4 }, "  a  ab ", NULL },
	{ METASPACE(",'prepend_scheme':'first'"), 3, { BOS, 3, 2 }, "<s>  a ", "a " },
	{ CHAIN(FUSE "," METASPACE("")), 3, { 3, 2, 4 }, "ab", NULL },
	{ WORD_PIECE("true"), 6, { 5, 5, 6, 0, 14, 15 }, "##aa a## a .  don't", NULL },
	{ WORD_PIECE("false"), 4, { 0, 5, 6, 15 }, "aa a##  do not", NULL },
	{ WORD_PIECE("true"), 2, { 15, 14 }, " don't .", NULL },
	{ SUFFIX, 4, { 8, 1, 7, 8 }, "a b a", NULL },
	{ SUFFIX, 1, { 8 }, "a", NULL },
	{ SUFFIX, 2, { 8, BOS }, "a <s>", "a" },
	{ CHAIN(WORD_PIECE("false") "," SUFFIX), 4, { 8, 5, 8, 8 }, "a a a  a", NULL },
	{ STRIP("a", 1, 0), 4, { 0, 1, 8, 3 }, "b</w>" BAR BAR "a", NULL },
	{ CHAIN(FUSE "," STRIP("a", 2, 1)), 7, { 0, 0, 0, 1, 1, 0, 0 }, "abba", NULL },
	/* The reference ends the program here. */
	{ STRIP("a", 2, 2), 2, { 0, 1 }, "b", NULL },
	{ CHAIN(""), 3, { 0, 2, 1 }, "a" BAR "b", NULL },
	{ CHAIN(CHAIN(FUSE) "," FUSE), 2, { 0, 1 }, "ab", NULL },
	{ CHAIN(REPLACE(BAR, "\xc4\xa0") "," BYTE_LEVEL "," STRIP(" ", 1, 0)), 3, { 3, 18, 9 },
		" a\xc3\xa9<0xE4>", NULL },
	/* Ids that are no token are left out, and are neither first nor last. */
	{ METASPACE(""), 4, { 19 + 3, 3, 3, UINT32_MAX }, "a  a", NULL },
	{ SUFFIX, 3, { 8, 8, 500 }, "a a", NULL },
};

static void test_texts(void **state)
{
	char *path = file_join(dir, "tokenizer.json");
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct tokenizer *t;

		write_file(path, row[i].decoder, "null");
		t = tokenizer_load(path, NULL, &e);
		if (!t)
			fail_msg("%s", e.text);
		check(t, row[i].id, row[i].n, false, row[i].want, row[i].decoder);
		check(t, row[i].id, row[i].n, true, row[i].skipped ? row[i].skipped : row[i].want,
			row[i].decoder);
		tokenizer_free(t);
	}
	free(path);
}

/* A vocabulary in the byte alphabet without a ByteLevel decoder shows its spelling. */
static void test_spelling(void **state)
{
	char *path = file_join(dir, "tokenizer.json");
	struct tokenizer *t;
	struct err e;

	(void)state;
	write_file(path, FUSE, BYTE_LEVEL);
	t = tokenizer_load(path, NULL, &e);
	assert_non_null(t);
	check(t, (uint32_t[]){ 17, 18, BOS, 2 }, 4, false, "\xc4\xa0" "a\xc3\x83\xc2\xa9<s>" BAR, "spelled");
	tokenizer_free(t);
	write_file(path, BYTE_LEVEL, BYTE_LEVEL);
	t = tokenizer_load(path, NULL, &e);
	assert_non_null(t);
	check(t, (uint32_t[]){ 17, 18, BOS, 2 }, 4, true, " a\xc3\xa9" BAR, "bytes");
	tokenizer_free(t);
	free(path);
}

/* Piece by piece gives the bytes of the whole, and all but what only the whole has of its text. */
static void test_bytes(void **state)
{
	static const struct {
		const char *decoder;
		size_t n;
		uint32_t id[6];
		const char *want;
	} exact[] = {
		{ LLAMA, 5, { 3, 9, 10, 0, 12 }, "  a\xe4\xb8" "a\x0f" },
		{ METASPACE(""), 2, { 3, 3 }, "  a  a" },
		{ WORD_PIECE("true"), 3, { 0, 5, 15 }, " aa  don't" },
		{ SUFFIX, 2, { 8, 8 }, "a a " },
		{ "null", 2, { 0, BOS }, " a <s>" },
		{ BYTE_LEVEL, 2, { 18, 19 }, "\xc3\xa9\xe9" },
	};
	char *path = file_join(dir, "tokenizer.json");
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(exact); i++) {
		struct buf whole = { 0 }, parts = { 0 };
		struct tokenizer *t;

		write_file(path, exact[i].decoder, "null");
		t = tokenizer_load(path, NULL, &e);
		assert_non_null(t);
		tokenizer_decode_bytes(t, exact[i].id, exact[i].n, false, &whole);
		for (size_t k = 0; k < exact[i].n; k++)
			tokenizer_decode_bytes(t, exact[i].id + k, 1, false, &parts);
		assert_string_equal(whole.data, exact[i].want);
		assert_string_equal(parts.data, exact[i].want);
		tokenizer_free(t);
		buf_release(&whole);
		buf_release(&parts);
	}
	free(path);
}

static void test_wrong_decoders(void **state)
{
	static const struct {
		const char *decoder, *want;
	} wrong[] = {
		{ "{'type':'CTC','pad_token':'','word_delimiter_token':'|','cleanup':true}",
			"has decoder type \"CTC\", which this version does not read" },
		{ "{'type':'Sequence'}", "has a decoder Sequence without its list \"decoders\"" },
		{ "[]", "\"decoder\" is not an object or null" },
		{ "{'type':'Replace','pattern':{'String':'a'}}",
			"has a Replace decoder without its \"content\"" },
		{ REPLACE("", "x"), "has a Replace decoder without a pattern that is a String or a Regex" },
		{ REGEX("(a", "x"), "decoder Replace: regular expression" },
		{ STRIP("aa", 1, 0), "has a Strip decoder without a \"content\" of one character" },
		{ STRIP("a", -1, 0), "has a Strip decoder without counts of characters" },
		{ "{'type':'Metaspace'}", "without a \"replacement\" of one character" },
		{ METASPACE(",'prepend_scheme':'last'"), "without a prepend_scheme that is always" },
		{ METASPACE(",'add_prefix_space':false"), "without the prepend_scheme never" },
		{ "{'type':'WordPiece','prefix':'##'}", "without \"prefix\" and \"cleanup\"" },
		{ "{'type':'BPEDecoder','suffix':''}", "without a \"suffix\" that is not empty" },
		{ CHAIN(FALLBACK "," REPLACE("a", "b") "," FUSE),
			"has a decoder with Replace after ByteFallback, which" },
		{ CHAIN(FUSE "," BYTE_LEVEL), "has a decoder with ByteLevel after Fuse" },
		{ CHAIN(BYTE_LEVEL "," FALLBACK), "has a decoder with ByteFallback after ByteLevel" },
	};
	char *path = file_join(dir, "tokenizer.json");

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct err e = { 0 };

		write_file(path, wrong[i].decoder, "null");
		assert_null(tokenizer_load(path, NULL, &e));
		if (!strstr(e.text, wrong[i].want) || e.code != ERR_PARSE)
			fail_msg("\"%s\" does not say \"%s\"", e.text, wrong[i].want);
	}
	free(path);
}

/* Texts that grow without limit are an error before they take the memory. */
static void test_limits(void **state)
{
	char *path = file_join(dir, "tokenizer.json");
	struct buf decoder = { 0 };
	struct err e = { 0 };

	(void)state;
	buf_add_text(&decoder, "{'type':'Sequence','decoders':[");
	for (int i = 0; i < 8; i++)
		buf_printf(&decoder, "%s%s", i ? "," : "",
			REPLACE("a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
	buf_add_text(&decoder, "]}");
	write_file(path, decoder.data, "null");
	assert_null(tokenizer_load(path, NULL, &e));
	assert_non_null(strstr(e.text, "has a decoder that fails on token 0: the text exceeds"));
	buf_reset(&decoder);
	buf_add_text(&decoder, "{'type':'Sequence','decoders':[");
	for (int i = 0; i <= TOKEN_STAGES_MAX; i++)
		buf_printf(&decoder, "%s%s", i ? "," : "", STRIP("a", 1, 0));
	buf_add_text(&decoder, "]}");
	write_file(path, decoder.data, "null");
	assert_null(tokenizer_load(path, NULL, &e));
	assert_non_null(strstr(e.text, "has more than 16 decoder steps"));
	buf_release(&decoder);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_spelling),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_wrong_decoders),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
