/* SPDX-License-Identifier: Apache-2.0 */
/* test_token_find.c - which file a directory's or a cached model's tokenizer is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/token/load.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define FILES_MAX 6

/* The same files, once as a directory and once as a snapshot in the cache. */
struct row {
	const char *file[FILES_MAX];
	const char *found; /* NULL: an error */
	const char *want;  /* in the error, after "directory X " or "model X (...) " */
	const char *mode;
};

static const struct row ROWS[] = {
	{ .file = { "tokenizer.json", "tekken.json", "tiktoken.model", "tokenizer.model" },
		.found = "tokenizer.json" },
	{ .file = { "vocab.json", "merges.txt", "tokenizer.json" }, .found = "tokenizer.json" },
	{ .file = { "tekken.json", "tokenizer.model", "a.safetensors" }, .found = "tekken.json" },
	{ .file = { "tokenizer.model", "tiktoken.model" }, .found = "tiktoken.model" },
	{ .file = { "tokenizer.model", "qwen.tiktoken" }, .found = "qwen.tiktoken" },
	{ .file = { "b.tiktoken", "tiktoken.model", "a.tiktoken" }, .found = "tiktoken.model" },
	{ .file = { "sentencepiece.bpe.model", "tokenizer.model" }, .found = "tokenizer.model" },
	{ .file = { "spiece.model", "vocab.json", "merges.txt" }, .found = "spiece.model" },
	{ .file = { "vocab.json", "merges.txt" }, .found = "vocab.json" },
	{ .file = { "merges.txt", "original/tokenizer.model" },
		.want = "has no tokenizer.json, tekken.json, " },
	{ .file = { "vocab.json" }, .want = "vocab.json with merges.txt" },
	{ .file = { "b.tiktoken", "a.tiktoken" }, .want = "has several tokenizers (" },
	{ .file = { "config.json", "model-00001-of-00002.safetensors" }, .want = "has no tokenizer, "
		"only weights (model-00001-of-00002.safetensors); it needs one of" },
	{ .file = { "m.Q4_K_M.gguf" }, .want = "has no tokenizer, only weights (m.Q4_K_M.gguf)" },
	{ .file = { "README.md" }, .want = "has no tokenizer.json" },
	{ .file = { "tokenizer.json", "tokenizer.model.v3", "tekken.json" }, .found = "tekken.json",
		.mode = "mistral" },
	{ .file = { "tokenizer.json", "tokenizer.model.v3", "tokenizer.model.v11",
		"tokenizer.model.v7" }, .found = "tokenizer.model.v11", .mode = "mistral" },
	{ .file = { "tokenizer.json", "tokenizer.model" }, .found = "tokenizer.json",
		.mode = "mistral" },
	{ .file = { "tokenizer.json", "tekken.json" }, .found = "tokenizer.json", .mode = "auto" },
};

static void make_file(const char *where, const char *name)
{
	char *path = file_join(where, name), *slash;
	struct err e = { 0 };

	slash = strrchr(path, '/');
	*slash = 0;
	assert_int_equal(file_mkdirs(path, &e), 0);
	*slash = '/';
	assert_int_equal(file_write_atomic(path, STR("{}"), &e), 0);
	free(path);
}

static void check(const struct row *r, const char *name, const char *where, const char *place)
{
	struct tokenizer_load_opts opts = { .mode = r->mode };
	struct buf path = { 0 }, want = { 0 };
	struct err e = { 0 };
	int rc = find_tokenizer(name, &opts, &path, &e);

	if (r->found) {
		buf_printf(&want, "%s/%s", where, r->found);
		if (rc || strcmp(path.data, want.data) != 0)
			fail_msg("%s: %d, %s %s, not %s", name, rc, e.text, path.data, want.data);
	} else {
		assert_int_equal(rc, -1);
		assert_int_equal(e.code, ERR_IO);
		buf_printf(&want, "%s %s", place, r->want);
		if (!strstr(e.text, place) || !strstr(e.text, r->want))
			fail_msg("%s: %s", name, e.text);
	}
	buf_release(&path);
	buf_release(&want);
}

static void test_choice(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(ROWS); i++) {
		struct buf plain = { 0 }, cached = { 0 }, name = { 0 }, place = { 0 };

		buf_printf(&plain, "%s/d%zu", dir, i);
		buf_printf(&cached, "%s/hub/models--org--m%zu/snapshots/main", dir, i);
		for (size_t k = 0; k < FILES_MAX && ROWS[i].file[k]; k++) {
			make_file(plain.data, ROWS[i].file[k]);
			make_file(cached.data, ROWS[i].file[k]);
		}
		buf_printf(&place, "directory %s", plain.data);
		check(&ROWS[i], plain.data, plain.data, place.data);
		buf_printf(&name, "org/m%zu", i);
		buf_reset(&place);
		buf_printf(&place, "model %s (commit main in the cache)", name.data);
		check(&ROWS[i], name.data, cached.data, place.data);
		buf_release(&plain);
		buf_release(&cached);
		buf_release(&name);
		buf_release(&place);
	}
}

static void test_names(void **state)
{
	static const struct {
		const char *name, *want;
	} row[] = {
		{ "x.gguf", "x.gguf is a GGUF file, whose tokenizer is not read" },
		{ "none.gguf/", "it is not a model name (org/name)" },
		{ "", "it is not a model name" },
		{ "a/b/c", "it is not a model name" },
		{ "a--b", "it is not a model name" },
		{ "/none", "it is not a model name" },
		{ "org/none", "org/none is not in the cache (" },
	};
	struct tokenizer_load_opts opts = { 0 };
	struct buf path = { 0 };

	(void)state;
	make_file(dir, "x.gguf");
	assert_int_equal(chdir(dir), 0);
	for (size_t i = 0; i < COUNT(row); i++) {
		struct err e = { 0 };

		assert_int_equal(find_tokenizer(row[i].name, &opts, &path, &e), -1);
		assert_int_equal(e.code, ERR_IO);
		if (!strstr(e.text, row[i].want))
			fail_msg("\"%s\": %s", row[i].name, e.text);
	}
	make_file(dir, "any.name");
	assert_int_equal(find_tokenizer("any.name", &opts, &path, NULL), 0);
	assert_string_equal(path.data, "any.name");
	buf_release(&path);
}

static int set_up(void **state)
{
	if (make_dir(state))
		return -1;
	setenv("HF_HOME", dir, 1);
	setenv("HF_HUB_OFFLINE", "1", 1);
	unsetenv("HF_HUB_CACHE");
	unsetenv("HUGGINGFACE_HUB_CACHE");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice), cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
