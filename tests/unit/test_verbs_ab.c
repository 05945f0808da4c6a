/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_ab.c - two servers in turn and the search for the largest load: what is said around
 * the figures of the first, what its document has, and what both refuse. The figures are for
 * tests/cli.
 *
 * threads: yes
 */
#include "serve_rig.h"

#define AB "bench ab --base-url http://127.0.0.1:$S --base-url http://127.0.0.1:$Q --model sim" \
	" --tokenizer sim --random-input-len 6 --random-output-len 4 --temperature 0 "
#define FIND "bench serve --base-url http://127.0.0.1:$S --model sim --tokenizer sim" \
	" --random-input-len 6 --random-output-len 3 --disable-tqdm --level-seconds 0.3 "

static const char *const ab_varies[] = {
	"-Pair ", "-Note: ", "seed = ", "salt_key = ", "degraded_blocks = ", NULL,
};

static void ab(void **state)
{
	static const struct verb_case cases[] = {
		{ AB "--request-rate 100 --block-seconds 0.1 --max-pairs 1 --output-json ab.json",
		  .mask = VERB_TIMES | VERB_FLAT, .varies = ab_varies, .files = "ab.json" },
		{ AB "--max-concurrency 2 --num-prompts 4 --max-pairs 1 --metric p99_ttft_ms"
		  " --metric output_throughput --fail-if worse", .status = 3, .mask = VERB_TIMES,
		  .varies = ab_varies },
		{ "bench ab --serve-cmd '$PROFLLM sim --port $P' --serve-cmd '$PROFLLM sim"
		  " --port $R'"
		  " --model sim --tokenizer sim --random-input-len 6 --random-output-len 4"
		  " --server-logs logs"
		  " --max-concurrency 2 --num-prompts 4 --max-pairs 1", .mask = VERB_TIMES,
		  .varies = ab_varies },
		{ "bench ab --base-url http://127.0.0.1:$S --base-url http://127.0.0.1:$B"
		  " --model sim"
		  " --tokenizer sim --request-id-prefix t- --max-concurrency 1 --num-prompts 3"
		  " --max-pairs 1",
		  .status = 1, .mask = VERB_TIMES, .varies = ab_varies },
		{ "bench ab --base-url http://127.0.0.1:$S --base-url http://127.0.0.1:$E --model sim"
		  " --tokenizer sim --ready-check-timeout-sec 0 --max-concurrency 1 --num-prompts 2 --max-pairs 1",
		  .status = 1, .mask = VERB_TIMES, .varies = ab_varies },
		{ .line = "bench ab --base-url http://127.0.0.1:9 --base-url http://127.0.0.1:$S"
		  " --model sim"
		  " --tokenizer sim --max-concurrency 1 --num-prompts 2", .status = 1 },
		{ .line = "bench ab --base-url http://127.0.0.1:$S --max-concurrency 1",
		  .status = 2 },
		{ .line = "bench ab --base-url http://127.0.0.1:$S --base-url http://127.0.0.1:$S/"
		  " --max-concurrency 1", .status = 2 },
		{ .line = AB, .status = 2 },
		{ .line = AB "--max-concurrency 2 --metric speed", .status = 2 },
		{ .line = AB "--max-concurrency 2 --metric mean_tpot_ms --metric mean_tpot_ms",
		  .status = 2 },
		{ .line = AB "--max-concurrency 2 --until-decided --max-minutes 5", .status = 2 },
		{ .line = AB "--max-concurrency 2 --server-logs logs", .status = 2 },
		{ .line = AB "--max-concurrency 2 --find-max-rate", .status = 2 },
		{ .line = AB "--max-concurrency 2 --num-prompts 0", .status = 2 },
		{ .line = AB "--max-concurrency 2 --burstiness -1", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void found(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = FIND "--find-max-rate", .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_tft_ms<3", .status = 2 },
		{ .line = FIND "--find-max-rate --slo request_throughput>3", .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_itl_ms<3", .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_ttft_ms<200,p99_ttft_ms>300",
		  .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_ttft_ms<2,p99_ttft_ms<3", .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_ttft_ms<200ms", .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_ttft_ms", .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_ttft_ms<0", .status = 2 },
		{ .line = FIND "--find-max-rate --slo p100_ttft_ms<5", .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_ttft_ms<5 --request-rate 3",
		  .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_ttft_ms<5 --max-concurrency 3",
		  .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_ttft_ms<5 --num-runs 3", .status = 2 },
		{ .line = FIND "--find-max-rate --slo p99_ttft_ms<5 --find-max-concurrency",
		  .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* Limits and gates that decide by themselves, and commands of servers that cannot be started. */
static void limited(void **state)
{
#define TWO(a, b) "bench ab --serve-cmd " a " --serve-cmd " b " --model sim --tokenizer sim --max-concurrency 2" \
	" --random-input-len 6 --random-output-len 4 --num-prompts 4 "
#define CLOSED AB "--max-concurrency 2 --num-prompts 4 "
	static const char *const keyed[] = { "-Pair ", "-Note: ", "seed = ", "pairs in ", NULL };
	static const struct verb_case cases[] = {
		{ CLOSED "--max-minutes 0.0001", .mask = VERB_TIMES, .varies = keyed },
		{ CLOSED "--max-minutes 0.0001 --fail-if worse", .status = 3, .mask = VERB_TIMES, .varies = keyed },
		{ CLOSED "--max-minutes 0.0001 --fail-if worse --allow-unjudged --prompt-salt run:mine"
		  " --output-json keyed.json", .mask = VERB_TIMES | VERB_FLAT, .varies = keyed,
		  .files = "keyed.json" },
		{ CLOSED "--max-minutes 0.0001 --metric p50_itl_ms --metric median_tpot_ms --metric mean_e2el_ms"
		  " --metric request_throughput --prompt-salt none --output-json many.json",
		  .mask = VERB_TIMES | VERB_FLAT, .varies = keyed, .files = "many.json" },
		{ CLOSED "--max-pairs 1 --omit-body-keys ignore_eos --base-url http://127.0.0.1:$S", .status = 2 },
		{ "bench ab --base-url http://127.0.0.1:$S --base-url http://127.0.0.1:$T --model sim --tokenizer sim"
		  " --random-input-len 6 --random-output-len 4 --temperature 0 --max-concurrency 2 --num-prompts 4"
		  " --max-pairs 1 --omit-body-keys ignore_eos", .status = 1, .mask = VERB_TIMES, .varies = keyed },
		{ .line = CLOSED "--allow-unjudged", .status = 2 },
		{ .line = CLOSED "--metric p100_ttft_ms", .status = 2 },
		{ .line = CLOSED "--metric p0_ttft_ms", .status = 2 },
		{ .line = CLOSED "--metric mean_ttft_s", .status = 2 },
		{ .line = CLOSED "--metric mean_client_queue_time_ms", .status = 2 },
		{ .line = CLOSED "--metric q50_itl_ms", .status = 2 },
		{ .line = CLOSED "--metric pxx_itl_ms", .status = 2 },
		{ .line = CLOSED "--prompt-salt x:y", .status = 2 }, { .line = CLOSED "--duration 3", .status = 2 },
		{ .line = CLOSED "--serve-cmd x", .status = 2 },
		{ .line = TWO("''", "x"), .status = 2 },
		{ .line = TWO("'sim --port 7'", "'sim --port 7'"), .status = 2 },
		{ .line = TWO("'vllm serve m --uds /tmp/x'", "'sim --port 7'"), .status = 2 },
		{ .line = TWO("'sim --port 7'", "'x \"'"), .status = 2 },
		{ TWO("'$PROFLLM sim --port $P'",
		      "'/nonexistent/x --api-key a-secret-of-many-letters --port $R'"), .status = 2,
		  .mask = VERB_TIMES, .env = "TMPDIR=$DIR/own" },
		{ TWO("'$PROFLLM sim --port $P'", "'$PROFLLM sim --port $R'"), .status = 1,
		  .mask = VERB_TIMES, .env = "TMPDIR=$DIR/none" },
		{ TWO("'$PROFLLM sim --port $P --none'", "'$PROFLLM sim --port $R'"), .status = 2, .mask = VERB_TIMES,
		  .env = "TMPDIR=$DIR/own" },
	};

	(void)state;
	verb_let("DIR", dir);
	assert_int_equal(mkdir("own", 0755), 0);
	verb_check_all(cases, COUNT(cases));
	assert_int_equal(rmdir("own"), 0); /* those that nobody asked to keep are gone */
}

static int setup(void **state)
{
	if (serve_setup(state) < 0)
		return -1;
	verb_sim("Q", "--ttft-ms 4 --itl-ms 0.5");
	verb_sim("E", "--ttft-ms 1 --fault status=429");
	verb_sim("T", "--ttft-ms 4 --itl-ms 0.5 --output-len 2");
	verb_free_port("P");
	verb_free_port("R");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(ab), cmocka_unit_test(found),
		cmocka_unit_test(limited) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
