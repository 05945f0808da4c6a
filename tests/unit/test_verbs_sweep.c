/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_sweep.c - sweeps with a benchmark whose figures are a formula of its options: what
 * they run in which order, print, write, refuse and go on from.
 *
 * threads: yes
 */
#include "sweep_rig.h"

static void serve(void **state)
{
	static const struct verb_case first[] = {
		{ "bench sweep serve $S --num-runs 2 -e one --bench-params b.json",
		  V, .files = R("one", "summary.csv") " " R("one", "servers.json") " "
		  R("one", "BENCH--max_concurrency=2/summary.json") },
		{ "bench sweep serve $S --num-runs 2 --resume one --bench-params b.json", V,
		  .files = R("one", "summary.csv") " " R("one", "servers.json") },
		{ "bench sweep serve $S --num-runs 3 --resume one --bench-params b.json", V,
		  .files = R("one", "summary.csv") " " R("one", "servers.json") },
		{ "bench sweep serve $S --num-runs 1 -e two --serve-params s.json --bench-params"
		  " b.json"
		  " --link-vars max_num_seqs=max_concurrency --warmup-num-prompts 3", V,
		  .files = R("two", "summary.csv") " " R("two", "servers.json") },
		{ "bench sweep serve $S --num-runs 1 -e two --bench-params b.json", .status = 1 },
		{ "bench sweep serve $S --num-runs 1 --resume none --bench-params b.json",
		  .status = 1 },
		{ "bench sweep serve $S --num-runs 1 -e half --bench-params b.json", .status = 1, V,
		  .env = "FULL=3", .files = R("half", "summary.csv") " "
		  R("half", "BENCH--max_concurrency=4/run=0.failure.json") },
		{ "bench sweep serve $S --num-runs 1 -e ended --stop-on-error --bench-params"
		  " b.json",
		  .status = 1, .env = "FULL=1", V, .files = R("ended", "summary.csv") },
		{ "bench sweep serve $S --num-runs 1 --resume half --bench-params b.json", V,
		  .files = R("half", "summary.csv") },
		{ "bench sweep serve --serve-cmd 'perl -e 0' --bench-cmd 'perl bench.pl'"
		  " --after-bench-cmd 'perl -e 0'"
		  " --num-runs 1 -e dead", .status = 1, V, .files = R("dead", "servers.json") " "
		  R("dead", "SERVE-default-failure.json") },
		{ "bench sweep serve --serve-cmd '$PROFLLM sim --port $P' --bench-cmd 'perl -e 0 --'"
		  " --after-bench-cmd 'perl -e 0' --num-runs 1 -e none", .status = 1, V },
		{ "bench sweep serve $S --num-runs 1 -e after --after-bench-cmd 'perl -e 0'"
		  " --restart run"
		  " --bench-params b.json --shuffle --seed 3", V, .files = R("after",
		  "summary.csv") },
		{ "bench sweep serve --serve-cmd '$PROFLLM sim --port $P' --bench-cmd '$PROFLLM"
		  " bench serve"
		  " --port $P --model sim --tokenizer sim --num-prompts 3 --random-input-len 4"
		  " --random-output-len 3 --progress none' --num-runs 1 -e inside --bench-params"
		  " b.json",
		  .mask = VERB_TIMES | VERB_FLAT | VERB_NO_ERR, .varies = inside_varies,
		  .files = R("inside", "servers.json") },
		{ "bench sweep serve $S --num-runs 1 -e parts --bench-params '[{\"first\": 1}, {\"second\": 2}]'", V,
		  .files = R("parts", "summary.csv") },
		{ .line = "bench sweep serve $S --dry-run -e no --num-runs 2 --warmup-num-prompts 2"
		  " --serve-params s.json --bench-params names.json" },
	};
	static const struct verb_case refused[] = {
		{ .line = "bench sweep serve $S --bench-params nothing.json", .status = 2 },
		{ .line = "bench sweep serve $S --bench-params '[{}, [1]]'", .status = 2 },
		{ .line = "bench sweep serve $S --bench-params '[{\"_benchmark_name\": \"x\"},"
		  " {\"_benchmark_name\": \"x\"}]'", .status = 2 },
		{ .line = "bench sweep serve $S --bench-params missing.json", .status = 1 },
		{ .line = "bench sweep serve $S --bench-params '[{\"a\": \"x/y\"}, {\"a\":"
		  " \"x_y\"}]' -e x"
		  " --dry-run", .status = 1 },
		{ .line = "bench sweep serve $S --link-vars a", .status = 2 },
		{ .line = "bench sweep serve $S --link-vars a=b -e x --serve-params '[{\"a\": 1}]'"
		  " --bench-params '[{\"b\": 2}]'", .status = 2 },
		{ .line = "bench sweep serve $S -e x --dry-run --num-runs 1 --serve-params '[{\"a\": 1},"
		  " {\"a\": 1}]'" },
		{ .line = "bench sweep serve $S --num-runs 0", .status = 2 },
		{ .line = "bench sweep serve $S --resume a -e b", .status = 2 },
		{ .line = "bench sweep serve $S --stop-on-error --continue-on-error", .status = 2 },
		{ .line = "bench sweep serve --bench-cmd x", .status = 2 },
		{ .line = "bench sweep serve --serve-cmd 'other x' --bench-cmd x", .status = 1 },
		{ .line = "bench sweep serve $S --strict-args --serve-params '[{\"no_such\": 1}]'"
		  " --dry-run -e x", .status = 0 },
	};

	(void)state;
	verb_check_all(first, 2);
	unlink(R("one", "BENCH--max_concurrency=4/run=1.json"));
	verb_check_all(first + 2, COUNT(first) - 2);
	verb_check_all(refused, COUNT(refused));
}

static void startup(void **state)
{
	static const struct verb_case cases[] = {
		{ "bench sweep startup --startup-cmd 'perl start.pl --cold 1' --serve-params t.json"
		  " --startup-params '[{\"num_iters_cold\": 2}]' --num-runs 2 -e start",
		  .files = R("start", "summary.csv") },
		{ "bench sweep startup --startup-cmd 'perl start.pl --cold 1' --serve-params t.json"
		  " --startup-params '[{\"num_iters_cold\": 2}]' --num-runs 2 --resume start",
		  .files = R("start", "summary.csv") },
		{ "bench sweep startup --startup-cmd 'perl start.pl --cold 1' --num-runs 1 -e"
		  " failing"
		  " --serve-params '[{\"max_num_seqs\": 64}, {\"max_num_seqs\": 16}]'", .status = 1,
		  .files = R("failing", "summary.csv") },
		{ "bench sweep startup --startup-cmd 'perl start.pl --cold 1' --num-runs 1 -e"
		  " failed"
		  " --serve-params '[{\"max_num_seqs\": 64}, {\"max_num_seqs\": 16}]'"
		  " --strict-params"
		  " --dry-run", .status = 0 },
		{ "bench sweep startup --serve-params '[{\"port\": 1}]' --strict-params",
		  .status = 1 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void workload(void **state)
{
	static const struct verb_case cases[] = {
		{ "bench sweep serve_workload $S --workload-var max_concurrency --workload-iters 4"
		  " --num-runs 1 -e wl", V, .files = R("wl", "summary.csv") },
		{ "bench sweep serve_workload $S --workload-var max_concurrency --workload-iters 4"
		  " --num-runs 1 --resume wl", V, .files = R("wl", "summary.csv") },
		{ "bench sweep serve_workload $S --workload-iters 3 --num-runs 1 -e rates", V,
		  .files = R("rates", "summary.csv") },
		{ .line = "bench sweep serve_workload $S --dry-run --workload-serial-unthrottled"
		  " -e free" },
		{ "bench sweep serve_workload $S --workload-iters 1", .status = 2 },
		{ "bench sweep serve_workload $S --bench-params '[{\"request-rate\": 3}]'",
		  .status = 1 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serve), cmocka_unit_test(startup), cmocka_unit_test(workload),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, sweep_setup, verb_teardown);
}
