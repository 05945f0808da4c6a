/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_urls.c - bench serve and where its requests go: addresses that are wrong in one way or
 * another and what is said of each, keys, several servers and which of them gets which request.
 *
 * threads: yes
 */
#include "serve_rig.h"

#define AT(url) "bench serve --base-url " url " --model sim --tokenizer sim " QUICK " " SMALL
#define KEY AT("http://127.0.0.1:$K")
#define TWO "bench serve --base-urls http://127.0.0.1:$S http://127.0.0.1:$Q --model sim" \
	" --tokenizer sim " QUICK " --temperature 0 "
#define TALK TWO "--backend openai-chat --endpoint /v1/chat/completions --dataset-name conversations" \
	" --dataset-path conversations.json --num-prompts 1 --max-concurrency 1 "
#define FOUR TWO "--num-prompts 4 --random-input-len 3 --random-output-len 2 --max-concurrency 1 "

static void wrong(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = AT("https://127.0.0.1:$S"), .status = 1 }, { .line = AT("https://127.0.0.1:9"), .status = 1 },
		{ AT("http://127.0.0.1:$S/nowhere"), .status = 1, M },
		{ .line = AT("http://127.0.0.1:$S/v1"), .status = 1 },
		{ .line = AT("http://127.0.0.1:$S") " --endpoint /v1/nothing", .status = 2 },
		{ .line = AT("http://127.0.0.1:$S") " --proxy http://127.0.0.1:9", .status = 1 },
		{ AT("http://127.0.0.1:$S") " --proxy http://127.0.0.1:$K", .status = 1, M },
		{ .line = KEY, .status = 1 }, { .line = KEY " --header Authorization=x", .status = 1 },
		{ .line = KEY, .status = 1, .env = "OPENAI_API_KEY=wrong" },
		/* no head of an answer came */
		{ .line = "bench serve --base-url http://127.0.0.1:$H --model sim --tokenizer sim " QUICK
		  " --num-prompts 1 --random-input-len 3 --random-output-len 1 --request-timeout 0.2"
		  " --output-json h.json",
		  SILENT, .status = 1, .files = "h.json" },
		{ KEY " --report json", SILENT, .env = "OPENAI_API_KEY=right" },
		{ .line = "bench serve --base-url http://127.0.0.1:9 --find-max-rate --slo p99_ttft_ms<200"
		  " --endpoint-type vllm --model sim --tokenizer sim --progress none", .status = 1 },
		/* a warning comes before what takes long */
		{ .line = "bench serve --base-url http://127.0.0.1:9 --find-max-rate --slo p99_ttft_ms<200"
		  " --endpoint-type vllm --model sim --tokenizer sim --progress none ", .status = 1,
		  .mask = VERB_TERMINAL },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* A search says what it does not use, also where it comes from an experiment's file. */
static void searched(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "run --progress none --config search.yaml --output search.json", .status = 1,
		  .mask = VERB_NO_OUT, .env = "PROFLLM_NVML=" },
	};
	char *text = verb_filled("server: {url: 'http://127.0.0.1:$F', model: sim}\n"
				 "benchmark: {tokenizer: sim, random_input_len: 4, random_output_len: 2, "
				 "num_prompts: 5}\n"
				 "search: {find: rate, slo: 'p99_ttft_ms<200', level_seconds: 0.2, budget: 5}\n"
				 "telemetry: {enabled: false}\n");

	(void)state;
	spew("search.yaml", text);
	free(text);
	verb_check_all(cases, COUNT(cases));
}

/* The file asked has what the first of two servers got. */
static void several(void **state)
{
	static const struct verb_case cases[] = {
		{ FOUR, SILENT, .files = "+4:asked" },
		{ FOUR "--balance random", SILENT, .files = "+4:asked" },
		{ TALK, SILENT, .files = "+3:asked" },
		{ TALK "--session-affinity spread", SILENT, .files = "+2:asked" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static int setup(void **state)
{
	if (serve_setup(state) < 0)
		return -1;
	verb_sim("Q", "--ttft-ms 1");
	verb_sim("H", "--ttft-ms 1 --fault slow-headers=9s");
	verb_sim("F", "--ttft-ms 1 --fault status=429");
	verb_sim("K", "--ttft-ms 1 --api-key right");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong), cmocka_unit_test(searched), cmocka_unit_test(several),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
