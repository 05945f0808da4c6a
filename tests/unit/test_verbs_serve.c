/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_serve.c - bench serve against a simulator: what is sent, word by word, and what is made
 * of the answers. Times are masked; that they are right is for tests/load.
 */
#include "verb.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define SMALL "--num-prompts 4 --random-input-len 8 --random-output-len 5 --max-concurrency 1"
#define QUICK "--ready-check-timeout-sec 0 --progress none --request-id-prefix t- --prompt-salt none"
#define SERVE "bench serve --base-url http://127.0.0.1:$S --model sim --tokenizer sim " QUICK " "
#define M .mask = VERB_TIMES, .varies = verb_serve_varies
#define F .mask = VERB_TIMES | VERB_FLAT | VERB_NO_ERR, .varies = verb_serve_varies

static void reports(void **state)
{
	static const struct verb_case cases[] = {
		{ SERVE SMALL " --output-json r.json", F, .files = "r.json +8:asked" },
		{ SERVE SMALL " --report full --percentile-metrics ttft,tpot,itl,e2el,client_queue_time"
		  " --metric-percentiles 50,90,99.9 --goodput ttft:9000 e2el:20000 --temperature 0 --request-rate 200", M },
		{ SERVE SMALL " --report full --compat stdout --num-warmups 2", M },
		{ SERVE SMALL " -q", M },
		{ SERVE SMALL " --report json --save-detailed --label mine --metadata gpu=2 note= --ignore-eos"
		  " --save-result --result-filename d.json", .mask = VERB_TIMES | VERB_FLAT | VERB_NO_ERR | VERB_NO_OUT,
		  .varies = verb_serve_varies, .files = "d.json" },
		{ SERVE "--backend openai-chat --endpoint /v1/chat/completions --num-prompts 3"
		  " --random-input-len 4 --random-output-len 3 --max-concurrency 1 --temperature 0.5 --top-k 3"
		  " --extra-body.min_tokens 2 --header X-A=1 --output-json c.json", F,
		  .files = "c.json +7:asked" },
		{ SERVE SMALL " --num-runs 3 --output-json runs.json", F, .files = "runs.json" },
		{ SERVE SMALL " --duration 0.2 --grace-period 1", M },
		{ SERVE SMALL " --ramp-up-strategy linear --ramp-up-start-rps 50 --ramp-up-end-rps 200"
		  " --burstiness 2 --output-json ramp.json", F, .files = "ramp.json" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static int setup(void **state)
{
	if (verb_setup(state) < 0)
		return -1;
	verb_sim("S", "--ttft-ms 2 --itl-ms 0.5 --requests asked");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
