/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_search.c - `profllm run` with a search: the best of a matrix, in rounds, and again
 * from its documents. Steps of the simulator take the same time whatever is in them, so more
 * sequences are better.
 *
 * threads: yes
 */
#include "run_rig.h"

#define STEPS "server: {command: sim, model: sim, prefill_base_us: 0, prefill_us_per_token: 0, " \
	"decode_base_us: 5000, decode_us_per_seq: 0}\n" \
	"benchmark: {tokenizer: sim, random_input_len: 8, random_output_len: 4, temperature: 0, " \
	"ignore_eos: true, num_prompts: 16, max_concurrency: 8}\n" RUN_QUIET

static void best(void **state)
{
	static const struct run_case row[] = {
		{ "best", STEPS "suite: best\nmatrix: {server.max_num_seqs: [1, 8]}\nrepeat: 2\n"
		  "search: {best: output_throughput, first: 8, eta: 2}\n", .words = NULL },
		{ "best", NULL, .words = "--resume", .how = RUN_NO_DOCUMENT },
		{ "none", STEPS "suite: none\nmatrix: {server.max_num_seqs: [4, 8]}\nrequire: "
		  "['mean_e2el_ms<=0.001']\nsearch: {best: output_throughput, first: 4, eta: 4}\n", .status = 1 },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

RUN_MAIN(run_setup, cmocka_unit_test(best))
