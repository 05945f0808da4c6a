/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_token_long_words.c - what is kept is what was kept, or nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "input/encode/words.h"

/* Word number i: its length and its bytes follow from the number. */
static struct str word_of(uint32_t i, char *bytes)
{
	size_t n = 8 + i % 97 * (i % 13 == 0 ? 150 : 1);
	uint32_t state = i;

	for (size_t k = 0; k < n; k++) {
		state = state * 1664525 + 1013904223;
		bytes[k] = (char)(state >> 24);
	}
	return (struct str){ bytes, n };
}

static size_t ids_of(struct str word, uint32_t i, uint32_t *id)
{
	size_t n = i % 7 < word.n ? i % 7 : word.n;

	for (size_t k = 0; k < n; k++)
		id[k] = i * 31 + (uint32_t)k;
	return n;
}

static bool has(const struct long_words *l, struct str word, unsigned kind, uint64_t hash,
	uint32_t i)
{
	struct ids got = { 0 };
	uint32_t want[8];
	size_t n = ids_of(word, i, want);
	bool is_there;

	ids_push(&got, 77);
	is_there = long_words_get(l, word, kind, hash, &got);
	assert_int_equal(got.id[0], 77);
	assert_int_equal(got.count, is_there ? 1 + n : 1);
	if (is_there && n)
		assert_memory_equal(got.id + 1, want, n * sizeof *want);
	ids_release(&got);
	return is_there;
}

/* Three times as many bytes as there is room for: the newest are there, none is wrong. */
static void the_newest_are_kept(void **state)
{
	enum { WORDS = 120000 };
	struct long_words *l = long_words_new();
	char *bytes = mem_alloc(LONG_WORD_BYTES_MAX);
	size_t newest = 0, all = 0;
	uint32_t id[8];

	(void)state;
	for (uint32_t i = 0; i < WORDS; i++) {
		struct str word = word_of(i, bytes);
		uint64_t hash = long_words_hash(word, i % 2);
		size_t n = ids_of(word, i, id);

		long_words_keep(l, word, i % 2, hash, id, n);
		assert_true(has(l, word, i % 2, hash, i));
		assert_false(has(l, word, !(i % 2), long_words_hash(word, !(i % 2)), i));
	}
	for (uint32_t i = 0; i < WORDS; i++) {
		struct str word = word_of(i, bytes);
		bool is_there = has(l, word, i % 2, long_words_hash(word, i % 2), i);

		all += is_there;
		newest += i >= WORDS - 1000 && is_there;
	}
	assert_in_range(newest, 990, 1000);
	assert_in_range(all, 1000, WORDS / 2); /* the first ones were written over */
	free(bytes);
	long_words_free(l);
}

/* Words of one hash: the later one takes the place, and neither is taken for the other. */
static void equal_hashes_are_told_apart(void **state)
{
	struct long_words *l = long_words_new();
	const struct str a = STR("a word of some length"), b = STR("a word of same length");
	uint32_t id[8];

	(void)state;
	long_words_keep(l, a, 0, 5, id, ids_of(a, 3, id));
	assert_true(has(l, a, 0, 5, 3));
	assert_false(has(l, b, 0, 5, 3));
	long_words_keep(l, b, 0, 5, id, ids_of(b, 4, id));
	assert_false(has(l, a, 0, 5, 3));
	assert_true(has(l, b, 0, 5, 4));
	long_words_free(l);
}

/* What cannot be kept is left out; the empty table has nothing. */
static void limits(void **state)
{
	struct long_words *l = long_words_new();
	char *bytes = mem_alloc(LONG_WORD_BYTES_MAX + 1);
	struct str most = { bytes, LONG_WORD_BYTES_MAX }, over = { bytes, LONG_WORD_BYTES_MAX + 1 };

	(void)state;
	assert_false(has(l, STR(""), 0, 0, 0));
	assert_false(has(l, STR("x"), 0, 0, 0));
	long_words_keep(l, STR(""), 0, 0, NULL, 0);
	assert_false(has(l, STR(""), 0, 0, 0));
	long_words_keep(l, most, 0, 1, NULL, 0);
	assert_true(has(l, most, 0, 1, 0));
	long_words_keep(l, over, 0, 2, NULL, 0);
	assert_false(has(l, over, 0, 2, 0));
	free(bytes);
	long_words_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_are_kept),
		cmocka_unit_test(equal_hashes_are_told_apart),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
