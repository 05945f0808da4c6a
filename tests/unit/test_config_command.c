/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_config_command.c - arguments written as an object as words, and the whole command of a
 * server. Words in, words out; nothing is started.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/config/command.h"
#include "experiment/config/command.h"
#include "experiment/config/config.h"
#include "host/engine/args.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define WORDS(...) ((char *[]){ __VA_ARGS__, NULL })

/* Words apart by a bar. */
static const char *joined(struct arena *a, char *const *words)
{
	struct buf out = { 0 };
	const char *text;

	for (; words && *words; words++)
		buf_printf(&out, "%s%s", out.len ? "|" : "", *words);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

static const struct json_value *parsed(struct arena *a, const char *json)
{
	struct json_value *v = NULL;
	struct err e = { 0 };

	if (json_parse(a, str_of(json), &v, &e) < 0)
		fail_msg("%s: %s", json, e.text);
	return v;
}

static void test_flags(void **state)
{
	static const struct { const char *args, *words; } row[] = {
		{ "{}", "" },
		{ "{\"max_num_seqs\": 8}", "--max-num-seqs|8" },
		{ "{\"gpu_memory_utilization\": 0.90}", "--gpu-memory-utilization|0.90" },
		{ "{\"max_model_len\": \"32k\"}", "--max-model-len|32k" },
		{ "{\"max_num_seqs\": null}", "" },
		{ "{\"enable_prefix_caching\": true}", "--enable-prefix-caching" },
		{ "{\"enable_prefix_caching\": false}", "--no-enable-prefix-caching" },
		/* An unknown flag may have a negation. */
		{ "{\"new_thing\": false, \"newer\": true}", "--no-new-thing|--newer" },
		{ "{\"speculative_config\": {\"method\": \"ngram\", \"n\": [1, 2]}}",
		  "--speculative-config|{\"method\": \"ngram\", \"n\": [1, 2]}" },
		{ "{\"compilation_config.cudagraph_mode\": \"FULL\"}",
		  "--compilation-config.cudagraph_mode|FULL" },
		{ "{\"compilation_config.use_inductor\": false}",
		  "--compilation-config.use_inductor=false" },
		{ "{\"served_model_name\": [\"a\", \"b c\"]}", "--served-model-name|a|b c" },
		{ "{\"served_model_name\": []}", "" },
		{ "{\"unknown_list\": [1, \"x\", {\"k\": 1}]}", "--unknown-list|1|x|{\"k\": 1}" },
		/* What looks like an option cannot be taken for one. */
		{ "{\"seed\": -1}", "--seed=-1" },
		{ "{\"chat_template\": \"-x\"}", "--chat-template=-x" },
		/* The table's order, then what it does not know; either spelling. */
		{ "{\"zzz\": 1, \"seed\": 2, \"aaa\": 3}", "--seed|2|--zzz|1|--aaa|3" },
		{ "{\"max-num-seqs\": 8}", "--max-num-seqs|8" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct arena a = { 0 };
		const char *words = joined(&a, engine_flags(parsed(&a, row[i].args), NULL, &a));

		if (strcmp(words, row[i].words) != 0)
			fail_msg("%s: %s, not %s", row[i].args, words, row[i].words);
		arena_release(&a);
	}
}

static void test_order(void **state)
{
	struct arena a = { 0 };
	const char *one = "{\"max_num_seqs\": 8, \"tensor_parallel_size\": 2, \"seed\": 1}";
	const char *two = "{\"seed\": 1, \"tensor_parallel_size\": 2, \"max_num_seqs\": 8}";
	const char *const skip[] = { "seed", NULL };

	(void)state;
	assert_string_equal(joined(&a, engine_flags(parsed(&a, one), NULL, &a)),
			    joined(&a, engine_flags(parsed(&a, two), NULL, &a)));
	assert_null(strstr(joined(&a, engine_flags(parsed(&a, one), skip, &a)), "seed"));
	assert_null(engine_flags(NULL, NULL, &a)[0]);
	arena_release(&a);
}

static void test_command(void **state)
{
	const struct {
		char *const *command;
		const char *host, *args;
		char *const *extra;
		const char *words;
	} row[] = {
		{ WORDS("vllm", "serve"), "127.0.0.1", "{\"model\": \"m\", \"seed\": 1}", NULL,
		  "vllm|serve|m|--seed|1|--host|127.0.0.1|--port|8123" },
		{ WORDS("python", "-m", "vllm.entrypoints.openai.api_server"), "0.0.0.0",
		  "{\"model\": \"m\"}", WORDS("--x", "y"),
		  "python|-m|vllm.entrypoints.openai.api_server|--model|m|--x|y|--host|0.0.0.0|--port|"
		  "8123" },
		{ WORDS("/opt/profllm", "sim"), NULL, "{\"model\": \"m\", \"ttft_ms\": 5}", NULL,
		  "/opt/profllm|sim|m|--ttft-ms|5|--host|127.0.0.1|--port|8123" },
		{ WORDS("./serve.py", "--at", "$(one.port)"), NULL, "{}", NULL,
		  "./serve.py|--at|8123" },
		{ WORDS("./serve.py"), NULL, "{}", WORDS("--at=$(one.url)"),
		  "./serve.py|--at=http://127.0.0.1:8123" },
		/* Another's address is not its own. */
		{ WORDS("./proxy.py"), NULL, "{}", WORDS("$(two.url)"),
		  "./proxy.py|http://elsewhere:9|--host|127.0.0.1|--port|8123" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct arena a = { 0 };
		struct experiment_server server[2] = {
			{ .name = "one", .command = row[i].command, .host = row[i].host,
			  .args = parsed(&a, row[i].args), .extra_args = row[i].extra },
			{ .name = "two", .url = "http://elsewhere:9//" },
		};
		const struct experiment x = { .server = server, .n_servers = 2 };
		struct role_at at[2] = { command_at(&server[0], 8123, &a),
					 command_at(&server[1], 0, &a) };
		struct err e = { 0 };
		char **words;

		assert_int_equal(command_words(&x, 0, at, &a, &words, &e), 0);
		assert_string_equal(joined(&a, words), row[i].words);
		arena_release(&a);
	}
}

static void test_simulator(void **state)
{
	struct arena a = { 0 };
	struct experiment_server server = { .name = "one", .command = WORDS("sim"),
					    .args = parsed(&a, "{}") };
	const struct experiment x = { .server = &server, .n_servers = 1 };
	struct role_at at = command_at(&server, 8123, &a);
	struct err e = { 0 };
	char **words;

	(void)state;
	assert_int_equal(command_words(&x, 0, &at, &a, &words, &e), 0);
	assert_int_equal(words[0][0], '/'); /* this program, wherever it lies */
	assert_string_equal(words[1], "sim");
	assert_true(config_is_sim(server.command));
	assert_false(config_is_sim(WORDS("vllm", "serve")));
	assert_true(config_is_sim(WORDS("env", "A=1", "/x/profllm", "sim")));
	arena_release(&a);
}

static void test_places(void **state)
{
	static const struct { const char *host, *url, *want; } row[] = {
		{ NULL, NULL, "http://127.0.0.1:80" },
		{ "0.0.0.0", NULL, "http://127.0.0.1:80" },
		{ "::", NULL, "http://[::1]:80" },
		{ "10.0.0.7", NULL, "http://10.0.0.7:80" },
		{ "fd00::1", NULL, "http://[fd00::1]:80" },
		{ NULL, "https://x/v/", "https://x/v" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct experiment_server s = { .host = row[i].host, .url = row[i].url };
		struct role_at at = command_at(&s, 80, &a);

		assert_string_equal(role_url(&at, &a), row[i].want);
	}
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags), cmocka_unit_test(test_order),
		cmocka_unit_test(test_command), cmocka_unit_test(test_simulator),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
