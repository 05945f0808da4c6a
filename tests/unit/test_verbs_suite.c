/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_suite.c - `profllm run` of many experiments: whose servers, what is kept. */
/* threads: yes */
#include "run_rig.h"

static void whose_servers(void **state)
{
	static const struct run_case row[] = {
		{ "loads", RUN_SIM RUN_LOAD "experiments: [{name: a}, {name: b, benchmark: "
		  "{num_prompts: 1}}]\nrepeat: 2\nsuite: loads\n",
		  .files = "" },
		{ "loads", NULL, .words = "--resume", .how = RUN_NO_DOCUMENT },
		{ "loads", NULL, .words = "--resume --set benchmark.max_concurrency=1 --only a*" },
		{ "loads", NULL, .words = "--dry-run", .how = RUN_NO_FILES | RUN_NO_DOCUMENT },
		{ "each", RUN_SIM RUN_LOAD "restart: always\nmatrix: {benchmark.max_concurrency: [1, 2]}\n"
		  "shuffle: 3\n", .how = RUN_NO_FILES },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

RUN_MAIN(run_setup, cmocka_unit_test(whose_servers))
