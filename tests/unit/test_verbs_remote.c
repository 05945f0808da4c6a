/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_remote.c - an engine behind an HTTP server, measured by the commands without one. */
/* threads: yes */
#include "offline_rig.h"

/* What a server is asked besides the requests, what it counts, and how it fails. */
static void over_http(void **state)
{
#define T3 "bench throughput --backend http --model sim --tokenizer sim --num-prompts 3" \
	" --random-input-len 4 --random-output-len 3"
#define AT(server) " --base-url http://127.0.0.1:$" server
	static const char *const varies[] = {
		"Output: ", "Timed: ", "A request's time: ", "-  ", "-profllm.reasons", "Engine: server", ".clock.",
		"Throughput: ", "Median latency: ", "Verdict: ", "verdict = ",
		"-WARNING: profllm sim: ", NULL,
	};
	static const struct verb_case cases[] = {
		{ T3 AT("S") " --prequeue-requests --profile --disable-detokenize --output-json q.json",
		  .mask = VERB_TIMES | VERB_FLAT, .varies = varies, .files = "q.json" },
		{ T3 AT("F"), .status = 1, .mask = VERB_NO_OUT },
		{ T3 AT("T") " --worker-timeout 0.5", .status = 1, .mask = VERB_NO_OUT },
		{ T3 " --server-cmd '$PROFLLM sim --ttft-ms 1 --itl-ms 1 --port $P --die-after 2req'", .status = 1,
		  .mask = VERB_NO_OUT, .varies = varies },
		{ "bench latency --backend http --model sim --batch-size 2 --input-len 4 --output-len 3"
		  " --num-iters-warmup 0 --num-iters 1 --use-beam-search --n 2" AT("S"), .mask = VERB_TIMES,
		  .varies = varies },
	};
	struct buf text = { 0 };

	(void)state;
	verb_sim("F", "--ttft-ms 1 --itl-ms 0.1 --fault status=503");
	verb_sim("T", "--ttft-ms 1 --itl-ms 0.1 --fault slow-start=60s");
	verb_check_all(cases, 1);
	verb_new_lines("asked.http", 0, 11, &text);
	for (const char *const *path = (const char *const[]){ "\"/sleep\"", "\"/start_profile\"",
	     "\"/wake_up\"", "\"/stop_profile\"", NULL }; *path; path++)
		if (!strstr(text.data, *path))
			fail_msg("%s was not asked", *path);
	verb_check_all(cases + 1, COUNT(cases) - 1);
	buf_release(&text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(over_http) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, offline_setup, verb_teardown);
}
