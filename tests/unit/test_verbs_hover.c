/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_hover.c - bench sweep serve_sla: staying at the largest load, by windows whose figures
 * are a formula; what the capacity search says where it has nothing to measure; secrets.
 *
 * threads: yes
 */
#include "sweep_rig.h"

#define SLA "bench sweep serve_sla --num-runs 1 --sla-variable max_concurrency "
#define SIMULATED "--serve-cmd '$PROFLLM sim --port $P' --bench-cmd '$PROFLLM bench serve --model sim" \
	" --tokenizer sim --port $P --random-input-len 4 --random-output-len 2 --num-prompts 4' "
#define CAP SLA SIMULATED "--sla-params tpot.json "
#define FOUND "SLA--median_tpot_ms<=33.00"

static void hovering(void **state)
{
	static const struct verb_case cases[] = {
		/* what a window measures is known; one is longer than all of them may be */
		{ SLA SIMULATED "-e hover --sla-params '[{\"max_concurrency\": \"<=2\"}]' --sla-search interpolate"
		  " --sla-max 4 --hover 0.5 --hover-window 0.6", .mask = VERB_TIMES | VERB_NO_ERR,
		  .files = R("hover", "hover.jsonl") },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void known(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = CAP "-e dry --dry-run" },
		{ SLA "--base-url http://127.0.0.1:9 --bench-cmd '$PROFLLM bench serve --model sim --tokenizer sim"
		  " --backend ollama --ignore-eos' -e there --sla-params tpot.json", .status = 1, V,
		  .files = R("there", FOUND ".failure.json") },
		{ CAP "--resume done", V, .files = R("done", "capacity.json") },
		{ .line = CAP "--resume done --dry-run --sla-variable request_rate" },
		/* a benchmark that writes its key into its result */
		{ "bench sweep serve --serve-cmd '$PROFLLM sim --port $P' --num-runs 1 -e secret --bench-cmd"
		  " 'perl leaky.pl --api-key sk-0123456789abcdefghij'", V, .files = R("secret", "summary.csv") " "
		  R("secret", "run=0.json") },
	};

	(void)state;
	mkdir("results", 0755);
	mkdir(R("done", ""), 0755);
	spew(R("done", FOUND ".json"), "{\"variable\": \"max_concurrency\", \"outcome\": \"found\", "
	     "\"capacity\": 15}");
	spew("leaky.pl", "my %o = @ARGV[0, 1, map { ($_, $_ + 1) } grep { $ARGV[$_] =~ /^--result-/ } 0 .. $#ARGV];"
	     "open my $f, '>', \"$o{'--result-dir'}/$o{'--result-filename'}\" or die; printf $f"
	     " '{\"completed\": 1, \"note\": \"with %s\", \"output_throughput\": 5}', $o{'--api-key'}\n");
	verb_check_all(cases, COUNT(cases));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(hovering), cmocka_unit_test(known) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, sweep_setup, verb_teardown);
}
