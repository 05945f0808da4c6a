/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_sla.c - the search for the largest load within limits, by every recipe, with a
 * benchmark whose figures are a formula of the load: so each level it takes and what it finds is
 * known.
 */
#include "sweep_rig.h"

static void limits(void **state)
{
	static const struct verb_case cases[] = {
		{ "bench sweep serve_sla $S --num-runs 1 -e bi --sla-params tpot.json"
		  " --sla-variable max_concurrency --sla-search bisect", V,
		  .files = R("bi", "capacity.json") " " R("bi", "summary.csv") },
		{ "bench sweep serve_sla $S --num-runs 1 -e inter --sla-params tpot.json"
		  " --sla-variable max_concurrency --sla-search interpolate", V,
		  .files = R("inter", "capacity.json") " " R("inter",
		  "SLA--median_tpot_ms<=33.00.json") },
		{ "bench sweep serve_sla $S --num-runs 1 --resume inter --sla-params two.json"
		  " --sla-variable max_concurrency --sla-search interpolate", V,
		  .files = R("inter", "capacity.json") },
		{ "bench sweep serve_sla $S --num-runs 2 -e rate --sla-params tpot.json"
		  " --sla-search bisect --sla-max 3000", V, .files = R("rate", "capacity.json") },
		{ "bench sweep serve_sla $S --num-runs 1 -e all --sla-search interpolate"
		  " --sla-params '[{\"p99_ttft_ms\": \"<=60000\"}]'", V, .files = R("all",
		  "capacity.json") },
		{ "bench sweep serve_sla $S --num-runs 1 -e none --sla-search interpolate"
		  " --sla-variable max_concurrency --sla-params '[{\"p99_ttft_ms\": \"<1\"}]'", V,
		  .files = R("none", "capacity.json") },
		{ "bench sweep serve_sla $S --num-runs 1 -e shed --sla-search bisect --sla-variable"
		  " max_concurrency --sla-params '[{\"p99_ttft_ms\": \"<=60000\"}]'", V,
		  .env = "SHED=9",
		  .files = R("shed", "capacity.json") },
		{ "bench sweep serve_sla $S --num-runs 1 -e full --sla-search interpolate"
		  " --sla-variable"
		  " max_concurrency --sla-params '[{\"p99_ttft_ms\": \"<=60000\"}]'", V,
		  .status = 1,
		  .env = "FULL=9", .files = R("full", "capacity.json") },
		{ .line = "bench sweep serve_sla $S --dry-run -e dry --sla-search bisect"
		  " --sla-params tpot.json" },
		{ "bench sweep serve_sla $S -e no", .status = 2 },
		{ "bench sweep serve_sla $S -e no --sla-params '[{\"p99_ttft_ms\": \"=5\"}]'",
		  .status = 2 },
		{ "bench sweep serve_sla $S -e no --sla-params '[{\"p99_ttft_ms\": 200}]'",
		  .status = 2 },
		{ "bench sweep serve_sla $S -e no --sla-params tpot.json --sla-search bisect"
		  " --hover 5",
		  .status = 2 },
		{ "bench sweep serve_sla $S -e no --sla-params tpot.json --sla-search capacity",
		  .status = 2 },
		{ "bench sweep serve_sla $S -e no --sla-params tpot.json --sla-search bisect"
		  " --bench-params '[{\"request-rate\": 3}]'", .status = 1 },
		{ "bench sweep serve_sla $S -e no --sla-params tpot.json --sla-max-failed 101",
		  .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(limits) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, sweep_setup, verb_teardown);
}
