/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_normalize.c - normalizers: what the reference library gives (the rows
 * of token/normalize.jsonl; tests/peer/tokenizer/normalize.mjs checks them), what
 * is refused, and character maps, sound and hostile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/encode/model.h"
#include "input/token/reader.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROWS "tests/unit/token/normalize.jsonl"

static int load(struct model *m, struct str stage, struct err *e)
{
	return stages_load(m, &(struct stage_texts){ .normalizer = stage }, e);
}

/* The raw text of a member; a string's with its quotes removed and unescaped. */
static struct buf member(struct json_slice row, const char *key)
{
	struct json_slice value;
	struct buf out = { 0 };

	assert_true(json_member(row, key, &value));
	if (value.kind == JSON_STRING)
		json_unescape(&out, value.raw);
	else
		buf_add_str(&out, value.raw);
	return out;
}

static void check_row(struct str line)
{
	struct json_scan scan = { .text = line };
	struct normalize_work work = { 0 };
	struct model m = { 0 };
	struct json_slice row;
	struct buf stage, text, want;
	struct err e = { 0 };
	struct str got;

	assert_int_equal(json_next(&scan, &row, &e), 0);
	stage = member(row, "stage");
	text = member(row, "text");
	want = member(row, "want");
	if (load(&m, buf_str(&stage), &e))
		fail_msg("%s: %s", stage.data, e.text);
	/* Twice: the second time, everything is warm. */
	for (int i = 0; i < 2; i++) {
		got = normalize(&m.normalizer, &work, buf_str(&text));
		assert_int_equal(work.failure, NORMALIZE_DONE);
		if (!str_eq(got, buf_str(&want)))
			fail_msg("%.80s of %s: \"%.*s\" is not \"%s\"", stage.data, text.data,
				(int)got.n, got.p, want.data);
	}
	buf_release(&stage);
	buf_release(&text);
	buf_release(&want);
	normalize_work_release(&work);
	model_release(&m);
}

static void test_rows(void **state)
{
	struct buf file = { 0 };
	struct err e = { 0 };
	struct str rest, line;
	size_t rows = 0;

	(void)state;
	if (file_read(ROWS, 1 << 20, &file, &e))
		fail_msg("%s", e.text);
	for (rest = buf_str(&file); rest.n > 0; rows++) {
		line = str_cut(&rest, '\n');
		check_row(line);
	}
	assert_true(rows > 30);
	buf_release(&file);
}

static void test_same_text(void **state)
{
	static const struct {
		const char *stage, *text;
	} row[] = {
		{ "{\"type\":\"NFC\"}", "plain \xc3\xa9 \xe4\xb8\xad \xed\x95\x9c \xd7\xa9\xd6\xb8" },
		{ "{\"type\":\"NFD\"}", "plain e\xcc\x81 \xe4\xb8\xad" },
		{ "{\"type\":\"NFKC\"}", "plain \xc3\xa9 \xe4\xb8\xad\xe3\x80\x82" },
		{ "{\"type\":\"StripAccents\"}", "plain \xc3\xa9 \xe4\xb8\xad" },
		{ "{\"type\":\"Nmt\"}", "plain \xc3\xa9" },
		{ "{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},\"content\":\"y\"}", "a" },
		{ "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x\"},\"content\":\"y\"}", "a" },
		{ "{\"type\":\"Sequence\",\"normalizers\":[]}", "A" },
	};
	struct normalize_work work = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct str text = str_of(row[i].text);
		struct model m = { 0 };
		struct err e = { 0 };

		assert_int_equal(load(&m, str_of(row[i].stage), &e), 0);
		assert_ptr_equal(normalize(&m.normalizer, &work, text).p, text.p);
		model_release(&m);
	}
	normalize_work_release(&work);
}

#define BERT "{\"type\":\"BertNormalizer\",\"clean_text\":true,"

static void test_refused(void **state)
{
	static const struct {
		const char *stage, *want;
	} row[] = {
		{ "{\"type\":\"NFCX\"}", "has normalizer type \"NFCX\", which this version does not read" },
		{ "{}", "has a normalizer without a type" },
		{ "[]", "\"normalizer\" is not an object or null" },
		{ "{\"type\":\"Sequence\"}",
			"has a normalizer Sequence without its list \"normalizers\"" },
		{ "{\"type\":\"Sequence\",\"normalizers\":[3]}", "has a normalizer without a type" },
		{ "{\"type\":\"Strip\",\"strip_left\":true}",
			"has normalizer \"Strip\" whose \"strip_right\" is not true or false" },
		{ "{\"type\":\"Prepend\",\"prepend\":null}",
			"has normalizer \"Prepend\" whose \"prepend\" is not a string" },
		{ "{\"type\":\"Replace\",\"pattern\":\"a\",\"content\":\"\"}",
			"has normalizer \"Replace\" whose \"pattern\" is not {\"String\": ...} "
			"or {\"Regex\": ...}" },
		{ "{\"type\":\"Replace\",\"pattern\":{\"Regex\":1},\"content\":\"\"}",
			"has normalizer \"Replace\" whose \"pattern\" is not {\"String\": ...} "
			"or {\"Regex\": ...}" },
		{ "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"}}",
			"has normalizer \"Replace\" whose \"content\" is not a string" },
		{ BERT "\"lowercase\":true}", "has normalizer \"BertNormalizer\" whose "
			"\"handle_chinese_chars\" is not true or false" },
		{ BERT "\"handle_chinese_chars\":true,\"lowercase\":true,\"strip_accents\":1}",
			"has normalizer \"BertNormalizer\" whose \"strip_accents\" is not true or false" },
		{ "{\"type\":\"Precompiled\",\"precompiled_charsmap\":null}",
			"has normalizer \"Precompiled\" whose \"precompiled_charsmap\" is not a string" },
		{ "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAA\"}",
			"has normalizer \"Precompiled\" whose \"precompiled_charsmap\" is not base64" },
		{ "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\"}",
			"character map of 0 bytes cannot contain a trie of 0 bytes" },
		{ "{\"type\":\"Sequence\",\"normalizers\":[" BERT "\"handle_chinese_chars\":true,"
			"\"lowercase\":true}," BERT "\"handle_chinese_chars\":true,\"lowercase\":true},"
			BERT "\"handle_chinese_chars\":true,\"lowercase\":true}]}",
			"has more than 16 normalizer steps" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct model m = { 0 };
		struct err e = { 0 };

		assert_int_equal(load(&m, str_of(row[i].stage), &e), -1);
		assert_string_equal(e.text, row[i].want);
		model_release(&m);
	}
}

static void test_limit(void **state)
{
	static const char *const stages[] = {
		"{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"bcdefgh\"}",
		"{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"bcdefgh\"}",
		"{\"type\":\"NFKD\"}", "{\"type\":\"Lowercase\"}", "{\"type\":\"ByteLevel\"}",
		"{\"type\":\"Prepend\",\"prepend\":\"abc\"}",
	};
	struct buf text = { 0 };

	(void)state;
	for (int i = 0; i < 10; i++)
		buf_add_text(&text, "a\xef\xb7\xba");
	for (size_t i = 0; i < COUNT(stages); i++) {
		struct normalize_work work = { .bytes_max = 41, .bytes_left = 41 };
		struct model m = { 0 };
		struct err e = { 0 };

		assert_int_equal(load(&m, str_of(stages[i]), &e), 0);
		assert_int_equal(normalize(&m.normalizer, &work, buf_str(&text)).n, 0);
		assert_int_equal(work.failure, NORMALIZE_GREW);
		normalize(&m.normalizer, &work, STR("a"));
		assert_int_equal(work.failure, NORMALIZE_DONE);
		normalize_work_release(&work);
		model_release(&m);
	}
	buf_release(&text);
}

/* Marks in the worst order, far more than any letter carries, in linear time. */
static void test_many_marks(void **state)
{
	const size_t pairs = 200000;
	struct normalize_work work = { 0 };
	struct buf text = { 0 }, want = { 0 };
	struct model m = { 0 };
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < pairs; i++)
		buf_add_text(&text, "\xcc\x81\xcc\xa3");
	for (size_t i = 0; i < 2 * pairs; i++)
		buf_add_text(&want, i < pairs ? "\xcc\xa3" : "\xcc\x81");
	assert_int_equal(load(&m, STR("{\"type\":\"NFD\"}"), &e), 0);
	assert_true(str_eq(normalize(&m.normalizer, &work, buf_str(&text)), buf_str(&want)));
	buf_release(&text);
	buf_release(&want);
	normalize_work_release(&work);
	model_release(&m);
}

/* A trie by hand: "a" gives "x", "ab" gives "", "\xc3\xa9" gives "yz". */
enum {
	POOL_X = 0, POOL_EMPTY = 1, POOL_YZ = 3, UNITS = 5 * 256,
};
#define POOL "x\0\0yz"

static uint32_t node(size_t at, size_t children, uint8_t label, bool is_key)
{
	return (uint32_t)(at ^ children) << 10 | (uint32_t)is_key << 8 | label;
}

static struct buf make_map(const uint32_t *change, size_t count)
{
	uint32_t unit[UNITS] = { 0 }, bytes = sizeof unit;
	struct buf out = { 0 };

	unit[0] = node(0, 256, 0, false);
	unit[256 ^ 'a'] = node(256 ^ 'a', 512, 'a', true);
	unit[512] = 1u << 31 | POOL_X;
	unit[512 ^ 'b'] = node(512 ^ 'b', 768, 'b', true);
	unit[768] = 1u << 31 | POOL_EMPTY;
	unit[256 ^ 0xc3] = node(256 ^ 0xc3, 513, 0xc3, false);
	unit[513 ^ 0xa9] = node(513 ^ 0xa9, 1024, 0xa9, true);
	unit[1024] = 1u << 31 | POOL_YZ;
	for (size_t i = 0; i < count; i += 2)
		unit[change[i]] = change[i + 1];
	buf_add(&out, &bytes, 4);
	buf_add(&out, unit, sizeof unit);
	buf_add(&out, POOL, sizeof POOL);
	return out;
}

static void test_map(void **state)
{
	static const struct {
		const char *text;
		size_t longest, shortest, skip;
		const char *long_to, *short_to;
	} row[] = {
		{ "", 0, 0, 0, NULL, NULL },
		{ "a", 1, 1, 0, "x", "x" },
		{ "abc", 2, 1, 0, "", "x" },
		{ "b", 0, 0, 1, NULL, NULL },
		{ "bcda", 0, 0, 3, NULL, NULL },
		{ "bcd\xc3\xa9", 0, 0, 2, NULL, NULL },
		{ "\xc3\xa9" "a", 2, 2, 0, "yz", "yz" },
		{ "\xc3", 0, 0, 0, NULL, NULL },
	};
	struct buf bytes = make_map(NULL, 0);
	struct err e = { 0 };
	struct charsmap *map = charsmap_new(buf_str(&bytes), &e);

	(void)state;
	assert_non_null(map);
	for (size_t i = 0; i < COUNT(row); i++) {
		struct str text = str_of(row[i].text), to = { 0 };

		assert_int_equal(charsmap_longest(map, text, &to), row[i].longest);
		if (row[i].long_to)
			assert_true(str_is(to, row[i].long_to));
		assert_int_equal(charsmap_shortest(map, text, &to), row[i].shortest);
		if (row[i].short_to)
			assert_true(str_is(to, row[i].short_to));
		assert_int_equal(charsmap_skip(map, text, 0), row[i].skip);
	}
	charsmap_free(map);
	buf_release(&bytes);
}

static void test_broken_map(void **state)
{
	static const struct {
		uint32_t unit, value;
		const char *want;
	} row[] = {
		{ 0, 0x500 << 10,
			"character map: entry 0 of its trie refers to entry 1280, but there are only 1280" },
		{ 0, 1u << 31 | 0x500 << 10,
			"character map: entry 0 of its trie refers to entry 2098432, but there are only 1280" },
		{ 512, 1u << 31 | 6, "character map: there is no replacement at byte 6 of 6" },
		{ 512, UINT32_MAX, "character map: there is no replacement at byte 2147483647 of 6" },
		{ 600, 0xffffffff >> 1, "character map: entry 600 of its trie refers to entry 536870232, but "
			"there are only 1280" },
	};
	struct err e;

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		const uint32_t change[] = { row[i].unit, row[i].value };
		struct buf bytes = make_map(change, 2);

		assert_null(charsmap_new(buf_str(&bytes), &e));
		assert_string_equal(e.text, row[i].want);
		buf_release(&bytes);
	}
	assert_null(charsmap_new(STR("\x04\0\0\0\0\0\0\0\xff"), &e));
	assert_string_equal(e.text, "character map's replacements are not valid UTF-8");
	assert_null(charsmap_new(STR("\x08\0\0\0\0\0\0\0"), &e));
	assert_string_equal(e.text, "character map of 8 bytes cannot contain a trie of 8 bytes");
	assert_null(charsmap_new(STR("\x03\0\0\0\0\0\0\0"), &e));
	assert_null(charsmap_new(STR("\0\0"), &e));
}

static void test_base64(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} row[] = {
		{ "", "" }, { "Zg==", "f" }, { "Zm8=", "fo" }, { "Zm9v", "foo" },
		{ "Zm9vYmFy", "foobar" }, { "+/+/", "\xfb\xff\xbf" }, { "Zg=", NULL }, { "Zh==", NULL },
		{ "Zm9=", NULL }, { "Zm9v====", NULL }, { "Z===", NULL }, { "====", NULL },
		{ "Zm 9", NULL }, { "Zm-_", NULL }, { "Zg==Zg==", NULL }, { "*m9v", NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct buf out = { 0 };

		buf_add_char(&out, '>');
		assert_int_equal(base64_decode(str_of(row[i].text), &out), row[i].want != NULL);
		assert_string_equal(out.data + 1, row[i].want ? row[i].want : "");
		buf_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_same_text),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_many_marks),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_broken_map),
		cmocka_unit_test(test_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
