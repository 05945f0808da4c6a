/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_caches.c - simulators that share a KV cache, keep evicted blocks in host memory, or
 * divide prefill and decoding between two servers with a proxy in front of them.
 *
 * threads: yes
 */
#include "verb.h"

#define QUICK "--ready-check-timeout-sec 0 --progress none --request-id-prefix t- --prompt-salt none"
#define SILENT .mask = VERB_TIMES | VERB_FLAT | VERB_NO_ERR | VERB_NO_OUT, \
	.varies = verb_serve_varies
#define TO(name) "bench serve --base-url http://127.0.0.1:$" name " --model sim --tokenizer sim " QUICK \
	" --num-prompts 3 --random-input-len 100 --random-output-len 4 --max-concurrency 1 --seed 1 "
#define COST "--enable-prompt-tokens-details --prefill-base-us 100 --prefill-us-per-token 1 " \
	"--decode-base-us 100 "

static int start_all(void **state)
{
	if (verb_setup(state) < 0)
		return -1;
	verb_sim("C", "--role cache");
	{
		char shared[200], proxy[300];

		snprintf(shared, sizeof(shared), COST "--kv-cache-url http://127.0.0.1:%s "
			 "--kv-transfer-us-per-token 1", verb_value(STR("C")));
		verb_sim("S", shared);
		verb_sim("T", shared);
		verb_sim("H", COST "--kv-cache-tokens 256 --kv-offloading-size 1 "
			 "--kv-transfer-us-per-token 1");
		verb_sim("P", COST "--role prefill");
		verb_sim("D", COST "--role decode --kv-transfer-us-per-token 1");
		snprintf(proxy, sizeof(proxy), "--role proxy --prefill-url http://127.0.0.1:%s "
			 "--decode-url http://127.0.0.1:%s", verb_value(STR("P")),
			 verb_value(STR("D")));
		verb_sim("X", proxy);
	}
	return 0;
}

static void caches(void **state)
{
	static const struct verb_case cases[] = {
		/* The second server has what the first one computed. */
		{ TO("S") "--output-json first.json", SILENT },
		{ TO("T") "--output-json second.json", SILENT, .files = "second.json" },
		/* Blocks that its memory has no room for come back from the host. */
		{ TO("H") "--output-json host.json", SILENT },
		{ TO("H") "--output-json again.json", SILENT, .files = "again.json" },
		{ TO("X") "--output-json proxy.json", SILENT, .files = "proxy.json" },
		{ .line = "sim --role proxy", .status = 2 },
		{ .line = "sim --role proxy --prefill-url http://127.0.0.1:1", .status = 2 },
		{ .line = "sim --role proxy --backend-url ftp://x", .status = 2 },
		{ .line = "sim --role cache --kv-cache-url nothing", .status = 2 },
		{ .line = "sim --kv-cache-url https://127.0.0.1:1", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(caches) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, start_all, verb_teardown);
}
