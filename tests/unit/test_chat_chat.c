/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_chat_chat.c - the text around a user message: typed by the user, from the table of known
 * templates, from the files a template may be in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "input/chat/chat.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SMALL "tests/unit/token/small.json"

/* The plain format that many models share, with a BOS in front. */
#define CHATML                                                                             \
	"{{ bos_token }}{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n'" \
	" + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}" \
	"{{ '<|im_start|>assistant\n' }}{% endif %}"
#define CHATML_JSON                                                                        \
	"\"{{ bos_token }}{% for message in messages %}{{'<|im_start|>' + message['role'] + " \
	"'\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"                 \
	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}\""

static void write_file(const char *name, const char *text)
{
	char *path = file_join(dir, name);
	struct err e;

	if (file_write_atomic(path, str_of(text), &e))
		fail_msg("%s", e.text);
	free(path);
}

static void remove_file(const char *name)
{
	char *path = file_join(dir, name);

	unlink(path);
	free(path);
}

static void assert_str(struct str s, const char *want)
{
	assert_int_equal(s.n, strlen(want));
	assert_memory_equal(s.p, want, s.n);
}

/* ---- sha256 ---- */

static void test_sha256(void **state)
{
	static const struct {
		size_t n; /* of the letter a */
		const char *want;
	} row[] = {
		{ 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ 1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" },
		{ 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
		{ 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
		{ 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
		{ 1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3" },
	};
	char text[1000], hex[DIGEST_HEX];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < COUNT(row); i++)
		assert_string_equal(digest_hex(DIGEST_SHA256, (struct str){ text, row[i].n },
			hex), row[i].want);
}

/* ---- applying ---- */

static void test_strips_as_python(void **state)
{
	static const struct {
		const char *content, *want;
	} row[] = {
		{ "", "" },
		{ "x", "x" },
		{ " \t\n\v\f\rx y\x1c\x1d\x1e\x1f ", "x y" },
		{ "\xc2\x85\xc2\xa0\xe1\x9a\x80x\xe2\x80\x80\xe2\x80\x8a\xe2\x80\xa8\xe2\x80\xa9", "x" },
		{ "\xe2\x80\xaf\xe2\x81\x9f\xe3\x80\x80", "" },
		{ "\xe2\x80\x8bx\xef\xbb\xbf", "\xe2\x80\x8bx\xef\xbb\xbf" },
		{ "\x1bx\b", "\x1bx\b" },
	};
	struct chat_wrap w = { .prefix = STR("<"), .suffix = STR(">"), .is_stripping = true };
	struct buf got = { 0 }, want = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		buf_reset(&got);
		buf_reset(&want);
		buf_printf(&want, "<%s>", row[i].want);
		chat_apply(&w, str_of(row[i].content), &got);
		assert_str(buf_str(&got), want.data);
	}
	w.is_stripping = false;
	buf_reset(&got);
	chat_apply(&w, STR(" x\n"), &got);
	assert_str(buf_str(&got), "< x\n>");
	buf_release(&got);
	buf_release(&want);
}

static void test_unescapes(void **state)
{
	static const struct {
		const char *text, *want, *error;
	} row[] = {
		{ NULL, "", NULL },
		{ "<u>\\n\\t\\r\\\\", "<u>\n\t\r\\", NULL },
		{ "\\x41\\xc3\\xa9\xc3\xa9", "A\xc3\xa9\xc3\xa9", NULL },
		{ "a\\", NULL, "--chat-prefix: unknown escape '\\'; expected" },
		{ "\\q1234", NULL, "--chat-prefix: unknown escape '\\q12'" },
		{ "\\x4", NULL, "unknown escape '\\x4'" },
		{ "\\x4g", NULL, "unknown escape '\\x4g'" },
		{ "\\xff", NULL, "--chat-prefix: not UTF-8" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct err e = { 0 };
		struct str got;
		int rc = chat_unescape("--chat-prefix", row[i].text, &a, &got, &e);

		assert_int_equal(rc, row[i].error ? -1 : 0);
		if (row[i].error)
			assert_non_null(strstr(e.text, row[i].error));
		else
			assert_str(got, row[i].want);
	}
	arena_release(&a);
}

/* ---- the table ---- */

static void test_table_is_sorted(void **state)
{
	(void)state;
	assert_true(chat_known_count > 100);
	for (size_t i = 0; i < chat_known_count; i++) {
		assert_int_equal(strlen(chat_known[i].sha256), DIGEST_HEX - 1);
		assert_true(*chat_known[i].family);
		assert_true(*chat_known[i].prefix || *chat_known[i].suffix);
		if (i)
			assert_true(strcmp(chat_known[i - 1].sha256, chat_known[i].sha256) < 0);
	}
}

/* The same format with a system message: another turn in front. */
static void check_system(const struct chat_wrap *w, const char *prefix)
{
	struct buf got = { 0 }, want = { 0 };

	assert_true(w->has_system);
	chat_apply_system(w, STR("be\tkind"), STR(" hello"), &got);
	buf_printf(&want, "%.3s<|im_start|>system\nbe\tkind<|im_end|>\n<|im_start|>user\n hello"
		"<|im_end|>\n<|im_start|>assistant\n", prefix);
	assert_string_equal(got.data, want.data);
	buf_release(&got);
	buf_release(&want);
}

static void test_template_files(void **state)
{
	static const struct {
		const char *config, *jinja, *processor, *map;
		int rc;
		const char *prefix;
	} row[] = {
		{ NULL, NULL, NULL, NULL, 0, NULL },
		{ "{}", NULL, NULL, NULL, 0, NULL },
		{ "{\"chat_template\": null, \"bos_token\": \"<b>\"}", NULL, NULL, NULL, 0, NULL },
		{ "{\"chat_template\": \"{{ x }}\"}", NULL, NULL, NULL, 0, NULL },
		{ "{\"bos_token\": \"<b>\", \"chat_template\": " CHATML_JSON "}", NULL, NULL, NULL, 1,
			"<b><|im_start|>user\n" },
		/* The template writes a BOS that no file defines. */
		{ "{\"chat_template\": " CHATML_JSON "}", NULL, NULL, NULL, 0, NULL },
		{ "{\"bos_token\": null, \"chat_template\": " CHATML_JSON "}", NULL, NULL, NULL, 0,
			NULL },
		{ "{\"chat_template\": " CHATML_JSON "}", NULL, NULL,
			"{\"bos_token\": {\"content\": \"<m>\"}}", 1, "<m><|im_start|>user\n" },
		{ "{\"added_tokens_decoder\": {}, \"chat_template\": " CHATML_JSON "}", NULL, NULL,
			"{\"bos_token\": \"<m>\"}", 0, NULL },
		{ "{\"bos_token\": \"<b>\", \"chat_template\": [{\"name\": \"tool_use\", "
		  "\"template\": \"x\"}, {\"name\": \"default\", \"template\": " CHATML_JSON "}]}",
			NULL, NULL, NULL, 1, "<b><|im_start|>user\n" },
		{ "{\"bos_token\": \"<b>\", \"chat_template\": [{\"name\": \"tool_use\", "
		  "\"template\": " CHATML_JSON "}, 1, {\"name\": \"default\"}]}", NULL, NULL, NULL, 0,
			NULL },
		/* The file takes precedence over the member; one newline at its end is ignored. */
		{ "{\"bos_token\": \"<b>\", \"chat_template\": \"x\"}", CHATML "\n", NULL, NULL, 1,
			"<b><|im_start|>user\n" },
		{ "{\"bos_token\": \"<b>\", \"chat_template\": " CHATML_JSON "}", "x", NULL, NULL, 0,
			NULL },
		{ "{\"bos_token\": \"<b>\"}", CHATML "\n\n", NULL, NULL, 0, NULL },
		{ "{\"bos_token\": \"<b>\"}", NULL, "{\"chat_template\": " CHATML_JSON "}", NULL, 1,
			"<b><|im_start|>user\n" },
		{ "[]", NULL, NULL, NULL, -1, NULL },
		{ NULL, NULL, "{", NULL, -1, NULL },
	};
	static const char *const name[] = { "tokenizer_config.json", "chat_template.jinja",
		"chat_template.json", "special_tokens_map.json" };
	char *path = file_join(dir, "tokenizer.json");

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		const char *const text[] = { row[i].config, row[i].jinja, row[i].processor,
			row[i].map };
		struct arena a = { 0 };
		struct chat_wrap w;
		struct err e = { 0 };

		for (size_t k = 0; k < COUNT(name); k++) {
			remove_file(name[k]);
			if (text[k])
				write_file(name[k], text[k]);
		}
		assert_int_equal(chat_from_files(path, &a, &w, &e), row[i].rc);
		assert_int_equal(w.source, row[i].rc == 1 ? CHAT_KNOWN : CHAT_NONE);
		assert_int_equal(e.code != ERR_NONE, row[i].rc < 0);
		if (row[i].rc == 1) {
			assert_str(w.prefix, row[i].prefix);
			assert_str(w.suffix, "<|im_end|>\n<|im_start|>assistant\n");
			assert_non_null(w.family);
			check_system(&w, row[i].prefix);
		}
		arena_release(&a);
	}
	free(path);
}

/* Each of the three files alone says that there is a template. */
static void test_has_template(void **state)
{
	static const struct {
		const char *name, *text;
		bool has;
	} row[] = {
		{ "tokenizer_config.json", "{}", false },
		{ "tokenizer_config.json", "{\"chat_template\": \"x\"}", true },
		{ "chat_template.jinja", "x", true },
		{ "chat_template.json", "{\"chat_template\": \"x\"}", true },
	};
	struct buf small = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(file_read(SMALL, 1 << 20, &small, &e), 0);
	write_file("tokenizer.json", small.data);
	remove_file("special_tokens_map.json");
	for (size_t i = 0; i < COUNT(row); i++) {
		struct tokenizer *t;

		remove_file("tokenizer_config.json");
		remove_file("chat_template.jinja");
		remove_file("chat_template.json");
		write_file(row[i].name, row[i].text);
		t = tokenizer_load(dir, NULL, &e);
		assert_non_null(t);
		assert_int_equal(tokenizer_has_chat_template(t), row[i].has);
		tokenizer_free(t);
	}
	remove_file("chat_template.json");
	buf_release(&small);
}

/* ---- two BOS ---- */

static void test_sees_two_bos(void **state)
{
	struct buf small = { 0 };
	struct tokenizer *t;
	struct err e;

	(void)state;
	assert_int_equal(file_read(SMALL, 1 << 20, &small, &e), 0);
	write_file("tokenizer.json", small.data);
	write_file("tokenizer_config.json", "{\"tokenizer_class\": \"LlamaTokenizer\", "
		"\"add_bos_token\": true, \"bos_token\": \"<|bos|>\"}");
	remove_file("special_tokens_map.json");
	t = tokenizer_load(dir, NULL, &e);
	assert_non_null(t);
	assert_true(chat_doubles_bos(&(struct chat_wrap){ .prefix = STR("<|bos|>[u]") }, t));
	assert_false(chat_doubles_bos(&(struct chat_wrap){ .prefix = STR("[u]") }, t));
	assert_false(chat_doubles_bos(&(struct chat_wrap){ .prefix = STR("<|eos|>") }, t));
	tokenizer_free(t);
	t = tokenizer_load(SMALL, NULL, &e);
	assert_non_null(t);
	assert_false(chat_doubles_bos(&(struct chat_wrap){ .prefix = STR("<|bos|><|bos|>") }, t));
	tokenizer_free(t);
	buf_release(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sha256),
		cmocka_unit_test(test_strips_as_python),
		cmocka_unit_test(test_unescapes),
		cmocka_unit_test(test_table_is_sorted),
		cmocka_unit_test(test_template_files),
		cmocka_unit_test(test_has_template),
		cmocka_unit_test(test_sees_two_bos),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
