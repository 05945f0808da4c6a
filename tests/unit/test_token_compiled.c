/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled tokenizers: equal to what they were made from, refused when damaged,
 * and found again exactly when the sources have not changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "input/token/cache.h"
#include "input/token/load.h"
#include "input/token/tokenizer.h"
#include "scratch.h"

#define SMALL "tests/unit/token/small.json"

static const char *const TEXT[] = { "", "a", "the quick <|bos|> brown\n\n  fox <sep>x", "   <l>  <r> x",
	"\xe4\xb8\xad\xe6\x96\x87 caf\xc3\xa9 1234567", "int main(void) { return 0; }\n\t\t\t" };

static void check_same(const struct tokenizer *a, const struct tokenizer *b)
{
	for (size_t i = 0; i < sizeof TEXT / sizeof *TEXT; i++) {
		struct ids x = { 0 }, y = { 0 };
		struct buf p = { 0 }, q = { 0 };

		assert_int_equal(tokenizer_encode(a, str_of(TEXT[i]), true, &x), 0);
		assert_int_equal(tokenizer_encode(b, str_of(TEXT[i]), true, &y), 0);
		assert_int_equal(x.count, y.count);
		assert_true(x.count == 0 || memcmp(x.id, y.id, x.count * sizeof *x.id) == 0);
		for (int skip = 0; skip < 2; skip++) {
			assert_int_equal(tokenizer_decode(a, x.id, x.count, skip, &p), 0);
			assert_int_equal(tokenizer_decode(b, y.id, y.count, skip, &q), 0);
			assert_true(str_eq(buf_str(&p), buf_str(&q)));
		}
		ids_release(&x);
		ids_release(&y);
		buf_release(&p);
		buf_release(&q);
	}
	assert_int_equal(tokenizer_vocab_size(a), tokenizer_vocab_size(b));
	assert_int_equal(tokenizer_id_limit(a), tokenizer_id_limit(b));
}

/* A copy of the small tokenizer as <dir>/<name>; caller frees the path. */
static char *copy_small(const char *name)
{
	char *path = file_join(dir, name), *slash = strrchr(path, '/');
	struct buf text = { 0 };

	*slash = 0;
	assert_int_equal(file_mkdirs(path, NULL), 0);
	*slash = '/';
	assert_int_equal(file_read(SMALL, 1 << 20, &text, NULL), 0);
	assert_int_equal(file_write_atomic(path, buf_str(&text), NULL), 0);
	buf_release(&text);
	return path;
}

static bool is_cached(const char *path)
{
	struct model m = { 0 };
	struct buf stamp = { 0 };
	bool is_there = cache_load(&m, path, &stamp);

	model_release(&m);
	buf_release(&stamp);
	return is_there;
}

static void test_same_as_source(void **state)
{
	const struct tokenizer_load_opts uncached = { .is_uncached = true };
	struct tokenizer *source = tokenizer_load(SMALL, &uncached, NULL), *compiled;
	struct buf path = { 0 };
	struct err e = { 0 };

	(void)state;
	setenv("PROFLLM_CACHE_DIR", dir, 1);
	assert_non_null(source);
	assert_false(is_cached(SMALL));
	assert_int_equal(tokenizer_compile(SMALL, NULL, &path, &e), 0);
	assert_true(file_exists(path.data));
	assert_true(is_cached(SMALL));
	compiled = tokenizer_load(SMALL, NULL, &e);
	assert_non_null(compiled);
	check_same(source, compiled);
	tokenizer_free(source);
	tokenizer_free(compiled);
	buf_release(&path);
}

static void test_damage(void **state)
{
	struct model m = { 0 }, again = { 0 };
	struct buf bytes = { 0 };
	struct err e = { 0 };
	char *aligned;

	(void)state;
	assert_int_equal(model_load(&m, SMALL, &e), 0);
	compiled_write(&m, &bytes);
	aligned = aligned_alloc(COMPILED_ALIGN, (bytes.len + 63) / 64 * 64);
	memcpy(aligned, bytes.data, bytes.len);
	assert_int_equal(compiled_read(&again, (struct str){ aligned, bytes.len }, &e), 0);
	model_release(&again);
	for (size_t at = 0; at < bytes.len; at += 1 + bytes.len / 997) {
		aligned[at] ^= 4;
		assert_int_equal(compiled_read(&again, (struct str){ aligned, bytes.len }, &e), -1);
		assert_true(e.text[0] != 0);
		model_release(&again);
		aligned[at] ^= 4;
		assert_int_equal(compiled_read(&again, (struct str){ aligned, at }, &e), -1);
		model_release(&again);
	}
	free(aligned);
	buf_release(&bytes);
	model_release(&m);
}

static void touch(const char *path)
{
	struct timespec when[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };

	assert_int_equal(utimensat(AT_FDCWD, path, when, 0), 0);
}

static void test_sources(void **state)
{
	char *one = copy_small("one.json"), *two = copy_small("other/one.json");
	char *beside = file_join(dir, "merges.txt");
	struct buf path = { 0 }, other = { 0 };

	(void)state;
	setenv("PROFLLM_CACHE_DIR", dir, 1);
	assert_int_equal(tokenizer_compile(one, NULL, &path, NULL), 0);
	/* A copy of the same name, and a file only touched, are known by their contents. */
	assert_true(is_cached(two));
	assert_true(cache_path(two, &other));
	assert_true(str_eq(buf_str(&path), buf_str(&other)));
	touch(one);
	assert_true(is_cached(one));
	/* Other contents, or a file that appears next to it, are not. */
	assert_int_equal(file_write_atomic(two, STR("{}"), NULL), 0);
	assert_false(is_cached(two));
	assert_int_equal(file_write_atomic(beside, STR("x"), NULL), 0);
	assert_false(is_cached(one));
	unlink(beside);
	assert_true(is_cached(one));
	/* A damaged one is passed over, and so is one that others may write. */
	assert_int_equal(chmod(path.data, 0622), 0);
	assert_false(is_cached(one));
	assert_int_equal(chmod(path.data, 0600), 0);
	assert_true(is_cached(one));
	assert_int_equal(truncate(path.data, 5000), 0);
	assert_false(is_cached(one));
	free(one);
	free(two);
	free(beside);
	buf_release(&path);
	buf_release(&other);
}

/* As many compiled files are kept as the limit says, the newest ones; other files stay. */
static void test_oldest_are_removed(void **state)
{
	enum { OLD = TOKEN_CACHE_FILES_MAX + 3 };
	char *one = copy_small("four.json"), *folder = file_join(dir, "many"), *at;
	struct buf path = { 0 }, name = { 0 }, text = { 0 };

	(void)state;
	setenv("PROFLLM_CACHE_DIR", folder, 1);
	assert_int_equal(tokenizer_compile(one, NULL, &path, NULL), 0);
	at = strrchr(path.data, '/');
	for (int i = 0; i < OLD; i++) {
		struct timespec when[2] = { { .tv_sec = 1000000000 + i },
					    { .tv_sec = 1000000000 + i } };

		buf_reset(&name);
		buf_printf(&name, "%.*s/%d.%s", (int)(at - path.data), path.data, i, i ? "tok" : "txt");
		assert_int_equal(file_write_atomic(name.data, STR("x"), NULL), 0);
		assert_int_equal(utimensat(AT_FDCWD, name.data, when, 0), 0);
	}
	/* Another source, so that a file is added. */
	assert_int_equal(file_read(one, 1 << 20, &text, NULL), 0);
	buf_add_char(&text, '\n');
	assert_int_equal(file_write_atomic(one, buf_str(&text), NULL), 0);
	assert_true(file_exists(path.data));
	buf_reset(&path);
	assert_int_equal(tokenizer_compile(one, NULL, &path, NULL), 0);
	at = strrchr(path.data, '/');
	assert_true(file_exists(path.data));
	for (int i = 0; i < OLD; i++) {
		buf_reset(&name);
		buf_printf(&name, "%.*s/%d.%s", (int)(at - path.data), path.data, i, i ? "tok" : "txt");
		if (file_exists(name.data) != (i == 0 || i > OLD + 1 - TOKEN_CACHE_FILES_MAX))
			fail_msg("%s: %d", name.data, i);
	}
	free(one);
	free(folder);
	buf_release(&text);
	buf_release(&path);
	buf_release(&name);
}

static void test_no_cache(void **state)
{
	char *one = copy_small("three.json");
	struct buf path = { 0 }, other = { 0 };
	struct tokenizer *t;
	struct err e = { 0 };

	(void)state;
	setenv("PROFLLM_CACHE_DIR", "", 1);
	assert_int_equal(tokenizer_compile(one, NULL, &path, &e), -1);
	assert_non_null(strstr(e.text, "cannot keep a compiled form"));
	assert_false(cache_path(one, &other));
	/* A cache that cannot be written is no reason not to load. */
	setenv("PROFLLM_CACHE_DIR", "/dev/null/x", 1);
	t = tokenizer_load(one, NULL, &e);
	assert_non_null(t);
	tokenizer_free(t);
	free(one);
	buf_release(&path);
	buf_release(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_source),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_oldest_are_removed), cmocka_unit_test(test_no_cache),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
