/* SPDX-License-Identifier: Apache-2.0 */
/* What is a secret and what is not: names, texts, commands, and values that were learned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/err.h"
#include "core/base/redact.h"

static void test_names(void **state)
{
	static const char *const secret[] = {
		"api_key", "apikey", "apiKey", "api-key", "X-Api-Key", "API_KEYS", "OPENAI_APIKEY",
		"HF_TOKEN", "HF_TOKEN_2", "token", "hftoken", "access_token", "accessToken",
		"refresh_token", "id_token", "csrf_token", "X-Amz-Security-Token", "bot_token",
		"AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "access_key", "private_key",
		"ssh_private_key", "encryption_key", "AZURE_OPENAI_KEY", "WANDB_API_KEY", "secret",
		"client_secret", "secret_of_it", "SECRETS", "password", "PGPASSWORD", "db_password",
		"passwd", "MYSQL_PWD", "db_pass", "SSHPASS", "passphrase", "password1", "credential",
		"credentials", "X-Amz-Credential", "Authorization", "Proxy-Authorization", "cookie",
		"Set-Cookie", "session", "session_id", "sessionid", "sas", "sas_token", "signature",
		"X-Goog-Signature", "sig", "jwt", "bearer", "basic_auth", "REDISCLI_AUTH", "GITHUB_PAT",
		"server.api_key", "--hf-token", "AccountKey", "SharedAccessKey", "user_creds",
	};
	static const char *const plain[] = {
		"", "key", "keys", "tokens", "max_tokens", "maxTokens", "prompt_tokens",
		"completion_tokens", "num_tokens", "stop_token_ids", "token_ids", "token_counts",
		"tokenizer", "tokenizer_mode", "TOKENIZERS_PARALLELISM", "max_num_batched_tokens",
		"eos_token", "bos_token", "pad_token", "stop_token", "special_token", "image_token",
		"ms_per_token", "j_per_token", "fp8_per_token", "time_to_first_token", "next_token",
		"cache_key", "sort_key", "primary_key", "group_key", "public_key", "prompt_salt_key",
		"keyboard", "key_heads", "secret_free", "secretary", "password_file", "token_file",
		"auth_token_file", "hf_token_path", "cookie_file", "signature_version", "token_type",
		"session_timeout", "api_key_variable", "MODEL", "author", "authority", "passes",
		"one_pass", "allow_credentials", "PWD", "path", "signal", "sigma", "sass", "credit", "cook", "bearing",
		"monkey", "turkey", "detokenize", "X-Request-Id", "user", "username", "2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(secret) / sizeof(*secret); i++)
		if (!redact_is_secret(str_of(secret[i])))
			fail_msg("%s is shown", secret[i]);
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (redact_is_secret(str_of(plain[i])))
			fail_msg("%s is hidden", plain[i]);
}

static void test_headers(void **state)
{
	(void)state;
	assert_true(redact_is_secret_header(STR("Authorization")));
	assert_true(redact_is_secret_header(STR("X-Team")));
	assert_false(redact_is_secret_header(STR("Content-Type")));
	assert_false(redact_is_secret_header(STR("user-agent ")));
}

enum how { SENTENCE, SETTINGS, LINE, DATA };

static struct str shown(enum how how, const char *text, struct buf *room)
{
	struct str s = str_of(text);

	if (how == LINE)
		return redact_line(s, room);
	buf_add_str(room, s);
	redact_tail(room, 0, how == DATA ? REDACT_DATA :
		    how == SETTINGS ? REDACT_SETTINGS : REDACT_SENTENCES);
	return room->len ? buf_str(room) : STR("");
}

static void test_texts(void **state)
{
	static const struct { enum how how; const char *text, *shown; } rows[] = {
		{ SENTENCE, "nothing to hide", "nothing to hide" },
		{ SENTENCE, "", "" },
		/* URLs */
		{ SENTENCE, "cannot reach http://u:pw1@h:80/p: no", "cannot reach http://u:***@h:80/p: no" },
		{ DATA, "postgresql://bench:a%40b@h/d", "postgresql://bench:***@h/d" },
		{ SENTENCE, "http://u:p@ss@h/x", "http://u:***@h/x" },
		{ SENTENCE, "http://u:pa/ss@h/x", "http://u:***@h/x" },
		{ SENTENCE, "https://ghp_abc@github.com/x", "https://***@github.com/x" },
		{ SENTENCE, "ssh://git@host/x", "ssh://git@host/x" },
		{ SENTENCE, "http://h:80/a@b and http://[::1]:8000/x@y", "http://h:80/a@b and http://[::1]:8000/x@y" },
		{ SENTENCE, "GET http://h/p?api_key=abc&n=5&token=x", "GET http://h/p?api_key=***&n=5&token=***" },
		{ SENTENCE, "redis://:pw@h", "redis://:***@h" },
		{ SENTENCE, "two http://a:b@c http://d:e@f", "two http://a:***@c http://d:***@f" },
		/* Without "ttp://" the first address goes on to the last @. */
		{ SENTENCE, "http://u:p@h-token=ttp://&:p@h", "http://u:***@h" },
		/* NAME=VALUE */
		{ SENTENCE, "--api-key=abc: unknown", "--api-key=***: unknown" },
		{ SENTENCE, "max_tokens=5, KEY=VALUE", "max_tokens=5, KEY=VALUE" },
		{ SENTENCE, "password='a b' x", "password='***' x" },
		{ SENTENCE, "Authorization=Bearer abc, then", "Authorization=***, then" },
		{ SENTENCE, "pass --header 'Authorization=Bearer ...'", "pass --header 'Authorization=Bearer ...'" },
		{ LINE, "DB_PASSWORD=two words", "DB_PASSWORD=***" },
		{ LINE, "DATABASE_URL=postgres://u:p@h/d", "DATABASE_URL=postgres://u:***@h/d" },
		{ LINE, "--header=X-Team=a b", "--header=X-Team=***" },
		{ LINE, "--header=Content-Type=text/plain", "--header=Content-Type=text/plain" },
		{ LINE, "benchmark.header.X-Team=blue", "benchmark.header.X-Team=***" },
		{ LINE, "benchmark.header={X-Team: blue, Accept: a}", "benchmark.header={X-Team: ***, Accept: a}" },
		{ LINE, "--extra-body={\"a\": {\"api_key\": \"x\"}}", "--extra-body={\"a\": {\"api_key\": \"***\"}}" },
		/* prose and settings */
		{ SENTENCE, "--api-key is not known", "--api-key is not known" },
		{ SETTINGS, "vllm serve m --api-key abc --port 1", "vllm serve m --api-key *** --port 1" },
		{ SETTINGS, "vllm serve m --max-tokens 5", "vllm serve m --max-tokens 5" },
		{ SENTENCE, "server.api_key: expected a text", "server.api_key: expected a text" },
		{ SENTENCE, "> Authorization: Bearer abc def\n> Accept: x", "> Authorization: ***\n> Accept: x" },
		/* JSON, at any depth, quoted within texts and half of it */
		{ SENTENCE, "{\"api_key\": \"a\\\"b\", \"n\": 1}", "{\"api_key\": \"***\", \"n\": 1}" },
		{ SENTENCE, "{\"a\": [{\"b\": {\"password\": 12}}]}", "{\"a\": [{\"b\": {\"password\": \"***\"}}]}" },
		{ SENTENCE, "{\"token\": null, \"secret\": true, \"cookie\": \"\"}",
		  "{\"token\": null, \"secret\": true, \"cookie\": \"\"}" },
		{ SENTENCE, "{\"api_key\": [\"a\", \"b]\"], \"x\": 1}", "{\"api_key\": \"***\", \"x\": 1}" },
		/* A string that ends where the value would begin. */
		{ SENTENCE, "{\"s\": \"{'api_key': \", \"n\": \"1\"}", "{\"s\": \"{'api_key': \", \"n\": \"1\"}" },
		{ SENTENCE, "{\"u\": \"h/?sig=\"}", "{\"u\": \"h/?sig=\"}" },
		{ SENTENCE, "[\"h/?sig=\", 12]", "[\"h/?sig=\", 12]" },
		{ SENTENCE, "[\"{'api_key': \", null]", "[\"{'api_key': \", null]" },
		{ SENTENCE, "{\"s\": \"{\\\"token\\\": \\\"\"}", "{\"s\": \"{\\\"token\\\": \\\"\"}" },
		{ SENTENCE, "f(\"a\", password=\",foo9\")", "f(\"a\", password=\"***\")" },
		{ SENTENCE, "f(\"a\", password=\"}x9\")", "f(\"a\", password=\"***\")" },
		{ SENTENCE, "5\" wide {'api_key': \"x\"}", "5\" wide {'api_key': \"***\"}" },
		{ SENTENCE, "{\"s\": \"{\\\"api_key\\\": \\\"x\\\", \\\"pin\\\": 5}\"}",
		  "{\"s\": \"{\\\"api_key\\\": \\\"***\\\", \\\"pin\\\": 5}\"}" },
		{ SENTENCE, "{\"s\": \"{\\\"api_key\\\": 5}\"}", "{\"s\": \"{\\\"api_key\\\": ***}\"}" },
		{ SENTENCE, "bad JSON {\"api_key\": \"half", "bad JSON {\"api_key\": \"***" },
		{ SENTENCE, "{'api_key': ['x'], 'n': 'y'}", "{'api_key': ***, 'n': 'y'}" },
		{ SENTENCE, "{\"header\": {\"X-Team\": \"a\", \"Accept\": \"b\"}, \"X-Team\": \"c\"}",
		  "{\"header\": {\"X-Team\": \"***\", \"Accept\": \"b\"}, \"X-Team\": \"c\"}" },
		{ SENTENCE, "{\"headers\": [\"X-Team=a b\", \"Accept: b\"], \"e\": [\"A=b\", \"PGPASSWORD=c d\"]}",
		  "{\"headers\": [\"X-Team=***\", \"Accept: b\"], \"e\": [\"A=b\", \"PGPASSWORD=***\"]}" },
		{ SETTINGS, "[\"vllm\", \"--api-key\", \"a\", \"b\", \"--port\", \"1\"]",
		  "[\"vllm\", \"--api-key\", \"***\", \"***\", \"--port\", \"1\"]" },
		{ SETTINGS, "[\"--header\", \"X-Team=a\", \"Accept=b\", \"--n\", \"c=d\"]",
		  "[\"--header\", \"X-Team=***\", \"Accept=b\", \"--n\", \"c=d\"]" },
		{ DATA, "{\"token\": \" Hello\", \"x\": \"password=1\"}",
		  "{\"token\": \" Hello\", \"x\": \"password=1\"}" },
		{ SENTENCE, "{\"api_key\": \"***\"}", "{\"api_key\": \"***\"}" },
		{ SENTENCE, "\"", "\"" }, { SENTENCE, "\\\\\\\\\\\\\\\\\\\\\"", "\\\\\\\\\\\\\\\\\\\\\"" },
		{ SENTENCE, "{\"headers\": }]}", "{\"headers\": }]}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf room = { 0 };
		struct str s = shown(rows[i].how, rows[i].text, &room);

		if (!str_is(s, rows[i].shown))
			fail_msg("%s\n  became %.*s\n  not    %s", rows[i].text, (int)s.n, s.p, rows[i].shown);
		buf_release(&room);
	}
}

static void test_words(void **state)
{
	char *const given[] = {
		(char[]){ "vllm" }, (char[]){ "--api-key" }, (char[]){ "a" }, (char[]){ "b" },
		(char[]){ "--port" }, (char[]){ "80" }, (char[]){ "--header" }, (char[]){ "X-Team: x" },
		(char[]){ "Accept=y" }, (char[]){ "--hf-token=z" }, (char[]){ "-H" }, (char[]){ "noname" },
		(char[]){ "--url" }, (char[]){ "http://u:p@h" }, NULL,
	};
	static const char *const expected[] = {
		"vllm", "--api-key", "***", "***", "--port", "80", "--header", "X-Team:***", "Accept=y",
		"--hf-token=***", "-H", "***", "--url", "http://u:***@h",
	};
	struct arena arena = { 0 };
	char **out = redact_words(given, &arena);

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		assert_string_equal(out[i], expected[i]);
	assert_null(out[sizeof(expected) / sizeof(*expected)]);
	assert_ptr_equal(out[0], given[0]);
	arena_release(&arena);
}

static void is_shown_as(const char *text, const char *expected)
{
	struct buf room = { 0 };
	struct str s = redact_data(str_of(text), &room);

	if (!str_is(s, expected))
		fail_msg("%s became %.*s", text, (int)s.n, s.p);
	buf_release(&room);
}

static void test_learned(void **state)
{
	char *const words[] = { (char[]){ "--api-key" }, (char[]){ "sk-word-1" }, (char[]){ "--header" },
				(char[]){ "Authorization Bearer no-sign-2" }, (char[]){ "--header" },
				(char[]){ "X-Team: not-secret-3" }, NULL };
	char *const lines[] = { (char[]){ "HF_TOKEN=hf_line_4" }, (char[]){ "PATH=/usr/bin/12" },
				(char[]){ "P=http://u:url%2Bpass@h" },
				(char[]){ "ARGS=--api-key sk-args-5 --port 81" }, NULL };

	(void)state;
	is_shown_as("sk-word-1 hf_line_4", "sk-word-1 hf_line_4");
	redact_learn_words(words);
	redact_learn_lines(lines);
	redact_learn_text(STR("{\"a\": {\"client_secret\": \"quo\\\"ted-5\"}}"));
	redact_learn(STR("Bearer bear-6789"));
	redact_learn((struct str){ "cut-off%41", 9 }); /* what follows a value is no part of it */
	is_shown_as("cut-offA cut-off%4", "cut-offA ***");
	redact_learn(STR("EMPTY"));
	redact_learn(STR("benchmark"));
	is_shown_as("sk-word-1, hf_line_4", "***, ***");
	is_shown_as("no-sign-2", "***");
	is_shown_as("sk-args-5 at 81", "*** at 81");
	is_shown_as("not-secret-3 /usr/bin/12", "not-secret-3 /usr/bin/12");
	is_shown_as("as url%2Bpass and url+pass", "as *** and ***");
	is_shown_as("quo\"ted-5 and quo\\\"ted-5", "*** and ***");
	is_shown_as("xbear-6789x", "x***x");
	is_shown_as("EMPTY benchmark", "EMPTY benchmark");
}

static void test_errors(void **state)
{
	struct err e = { 0 };

	(void)state;
	err_set(&e, ERR_USAGE, "--base-url %s: refused", "http://u:errpass@h");
	assert_string_equal(e.text, "--base-url http://u:***@h: refused");
	err_wrap(&e, "token=%s", "abc");
	assert_string_equal(e.text, "token=***: --base-url http://u:***@h: refused");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),  cmocka_unit_test(test_headers),
		cmocka_unit_test(test_texts),  cmocka_unit_test(test_words),
		cmocka_unit_test(test_learned), cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("base_redact", tests, NULL, NULL);
}
