/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_batch.c - many texts by many threads give what one after another gives.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "input/token/tokenizer.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SMALL "tests/unit/token/small.json"
#define TEXTS 3000

static const unsigned THREADS[] = { 0, 1, 2, 3, 7, THREADS_MAX, 1000 };
static struct str text[TEXTS];

/* Texts of 0..600 bytes, some with added tokens, NULs and broken UTF-8. */
static void make_texts(struct buf *bytes)
{
	static const char *const part[] = { "the ", "of a", " state", "<|bos|>", "\xc3\xa9t\xc3\xa9",
		"  ", "\n", "12345", "\xff", "don't ", "<sep>", "\xe6\x97\xa5\xe6\x9c\xac" };
	size_t at[TEXTS + 1];
	uint32_t seed = 1;

	for (size_t i = 0; i < TEXTS; i++) {
		at[i] = bytes->len;
		for (size_t k = i * 7 % 101; k > 0; k--) {
			seed = seed * 1664525 + 1013904223;
			buf_add_text(bytes, part[(seed >> 16) % COUNT(part)]);
			if (seed >> 26 == 0)
				buf_add_char(bytes, 0);
		}
	}
	at[TEXTS] = bytes->len;
	for (size_t i = 0; i < TEXTS; i++)
		text[i] = (struct str){ bytes->data + at[i], at[i + 1] - at[i] };
}

static void release(struct ids *ids)
{
	for (size_t i = 0; i < TEXTS; i++)
		ids_release(ids + i);
	free(ids);
}

static void check_equal(const char *name, bool special)
{
	struct tokenizer *t = tokenizer_load(name, NULL, NULL);
	struct ids *want = mem_array(TEXTS, sizeof *want), *got;
	size_t *count = mem_array(TEXTS, sizeof *count), all = 0;
	struct err e = { 0 };

	assert_non_null(t);
	for (size_t i = 0; i < TEXTS; i++) {
		assert_int_equal(tokenizer_encode(t, text[i], special, want + i), 0);
		all += want[i].count;
	}
	assert_true(all > 10 * TEXTS);
	for (size_t k = 0; k < COUNT(THREADS); k++) {
		got = mem_array(TEXTS, sizeof *got);
		memset(count, 0xff, TEXTS * sizeof *count);
		ids_push(got + 5, 77);
		assert_int_equal(tokenizer_encode_batch(t, text, TEXTS, special, THREADS[k], got,
			&e), 0);
		assert_int_equal(tokenizer_count_batch(t, text, TEXTS, special, THREADS[k], count,
			&e), 0);
		assert_int_equal(got[5].id[0], 77);
		got[5].count--;
		memmove(got[5].id, got[5].id + 1, got[5].count * sizeof *got[5].id);
		for (size_t i = 0; i < TEXTS; i++) {
			assert_int_equal(got[i].count, want[i].count);
			assert_int_equal(count[i], want[i].count);
			if (got[i].count)
				assert_memory_equal(got[i].id, want[i].id,
					want[i].count * sizeof *want[i].id);
		}
		release(got);
	}
	release(want);
	free(count);
	tokenizer_free(t);
}

static void test_equal(void **state)
{
	struct buf bytes = { 0 };

	(void)state;
	make_texts(&bytes);
	check_equal(SMALL, false);
	check_equal(SMALL, true);
	check_equal(TOKENIZER_SIM, false);
	buf_release(&bytes);
}

/* Of several texts that are too long, the first is named, whichever thread finds it. */
static void test_refused(void **state)
{
	const struct str too_long = { "", TOKEN_TEXT_BYTES_MAX + (size_t)1 };
	struct tokenizer *t = tokenizer_load(SMALL, NULL, NULL);
	size_t *count = mem_array(TEXTS, sizeof *count);

	(void)state;
	assert_non_null(t);
	for (size_t i = 0; i < TEXTS; i++)
		text[i] = i >= 1234 && i % 3 == 0 ? too_long : STR(" a word and another");
	for (size_t k = 0; k < COUNT(THREADS); k++) {
		struct ids *ids = mem_array(TEXTS, sizeof *ids);
		struct err e = { 0 };

		assert_int_equal(tokenizer_count_batch(t, text, TEXTS, false, THREADS[k], count,
			&e), -1);
		assert_int_equal(e.code, ERR_LIMIT);
		assert_string_equal(e.text, "text 1236: the text has 268435457 bytes; at most "
			"268435456 are encoded at once");
		e = (struct err){ 0 };
		assert_int_equal(tokenizer_encode_batch(t, text, TEXTS, false, THREADS[k], ids,
			&e), -1);
		assert_non_null(strstr(e.text, "text 1236: "));
		for (size_t i = 0; i < 1236; i++)
			assert_true(count[i] > 0 && ids[i].count == count[i]);
		release(ids);
	}
	free(count);
	tokenizer_free(t);
}

static void test_none(void **state)
{
	struct tokenizer *t = tokenizer_load(TOKENIZER_SIM, NULL, NULL);

	(void)state;
	assert_int_equal(tokenizer_encode_batch(t, NULL, 0, false, 0, NULL, NULL), 0);
	assert_int_equal(tokenizer_count_batch(t, NULL, 0, false, 4, NULL, NULL), 0);
	assert_in_range(parallel_threads(), 1, THREADS_MAX);
	tokenizer_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
