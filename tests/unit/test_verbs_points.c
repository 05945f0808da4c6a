/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_points.c - bench serve with several values of a load: how each is named and printed,
 * the table, and what is refused.
 *
 * threads: yes
 */
#include "serve_rig.h"

#define FEW "--num-prompts 3 --random-input-len 8 --random-output-len 5 "
#define DRY "bench serve --model sim --tokenizer sim --dry-run " FEW
/* Figures are for tests/load; how many columns wide the table is depends on the verdicts in it. */
static const char *const points_varies[] = {
	"-Highest throughput: ", "-No highest throughput: ", "-Within 3 % of it: ", "-Left out: ",
	"-The measurement ", "-=====",
	"= Sweep Summary ", "concurrency=1 ", "concurrency=2 ", "TTFT median ", NULL,
};
#define Q .mask = VERB_TIMES, .varies = points_varies

static void measured(void **state)
{
	static const struct verb_case cases[] = {
		{ SERVE FEW "-q --sweep-max-concurrency 1,2 --sweep-summary-percentiles 50,75,99,75.0"
		  " --dump-workload w.jsonl --junit j.xml --fail-if failed>0", Q,
		  .files = "w.jsonl w-concurrency1.jsonl w-concurrency2.jsonl j-concurrency2.xml" },
		{ SERVE FEW "-q --sweep-request-rate 400,inf --save-result --result-filename no/r.json",
		  .status = 1, Q },
		{ SERVE FEW "-q --sweep-max-concurrency 2,1 --sweep-num-prompts-factor 2"
		  " --save-result --append-result --result-filename s.json --random-prefix-len -1", Q },
		{ BROKEN FEW "-q --sweep-max-concurrency 1 --fail-if failed>0", .status = 3, Q },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
	assert_int_equal(access("s.json", R_OK), 0);
}

/* What takes long is named: the wait for the server, what warms it up. */
static void stages(void **state)
{
	static const char *const stage_varies[] = {
		"-Prompts: ", "-Alignment: ", "Ready check: 1/1", "Warm-up: 1/1", "Benchmark: 1/1", NULL,
	};
	static const struct verb_case cases[] = {
		{ "bench serve --base-url http://127.0.0.1:$L --model sim --tokenizer sim --num-prompts 1"
		  " --random-input-len 3 --random-output-len 1 --ready-check-timeout-sec 5 --num-warmups 1"
		  " --progress lines", .mask = VERB_TIMES | VERB_NO_OUT, .varies = stage_varies },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* The picture of a dataset is drawn by gnuplot, which may fail. */
static void drawn(void **state)
{
#define DRAWN SERVE FEW "-q --plot-dataset-stats --save-result --result-filename drawn.json"
	static const struct verb_case cases[] = {
		{ DRAWN, .mask = VERB_NO_OUT, .env = "PATH=fine:/usr/bin:/bin" },
		{ DRAWN, .mask = VERB_NO_OUT, .env = "PATH=failing:/usr/bin:/bin" },
	};

	(void)state;
	mkdir("fine", 0755);
	mkdir("failing", 0755);
	spew("fine/gnuplot", "#!/bin/sh\nexit 0\n");
	spew("failing/gnuplot", "#!/bin/sh\necho no font >&2\nexit 1\n");
	chmod("fine/gnuplot", 0755);
	chmod("failing/gnuplot", 0755);
	verb_check_all(cases, COUNT(cases));
}

static void named(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = DRY "--sweep-request-rate 1e15,999999999999999,1e16,0.1,inf" },
		{ .line = DRY "--sweep-max-concurrency ' 4 , 8'" },
		{ .line = DRY "--sweep-max-concurrency 1 --sweep-request-rate 1", .status = 2 },
		{ .line = DRY "--sweep-request-rate 1 --sweep-num-prompts-factor 2", .status = 2 },
		{ .line = DRY "--sweep-max-concurrency 1.5", .status = 2 },
		{ .line = DRY "--sweep-max-concurrency 1,,2", .status = 2 },
		{ .line = DRY "--sweep-max-concurrency 0", .status = 2 },
		{ .line = DRY "--sweep-request-rate 1,0", .status = 2 },
		{ .line = DRY "--sweep-max-concurrency 4294967295" },
		{ .line = DRY "--sweep-max-concurrency 4294967296", .status = 2 },
		{ .line = DRY "--sweep-request-rate x", .status = 2 },
		{ .line = DRY "--sweep-request-rate nan", .status = 2 },
		{ .line = DRY "--sweep-max-concurrency 1 --sweep-summary-percentiles 50,101", .status = 2 },
		{ .line = DRY "--sweep-max-concurrency 1 --sweep-summary-percentiles 0,100" },
		{ .line = DRY "--sweep-max-concurrency 1 --sweep-summary-percentiles x", .status = 2 },
		{ .line = DRY "--sweep-request-rate " "$MANY,$MANY,$MANY,$MANY,1", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static int setup(void **state)
{
	char many[500] = "";

	for (size_t i = 0; i < 499; i++)
		many[i] = i % 2 ? ',' : '1';
	verb_let("MANY", many);
	if (serve_setup(state) < 0)
		return -1;
	verb_sim("L", "--ttft-ms 300");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measured), cmocka_unit_test(stages), cmocka_unit_test(drawn),
		cmocka_unit_test(named),
	 };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
