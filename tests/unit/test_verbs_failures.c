/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_failures.c - suites of which some experiments fail; several at once. */
/* threads: yes */
#include "run_rig.h"

static void failures(void **state)
{
	static const struct run_case row[] = {
		{ "fails", RUN_SIM RUN_LOAD "experiments: [{name: a}, {name: b, server: "
		  "{extra_args: [--no-such-flag]}}, "
		  "{name: c, require: ['mean_ttft_ms<0.001', 'failed<=0']}]\n", .status = 1 },
		{ "stops", RUN_SIM RUN_LOAD "stop_on_error: true\nexperiments: [{name: b, server: {extra_args: "
		  "[--no-such-flag]}}, {name: c}]\n", .status = 1 },
		{ "jobs", RUN_SIM RUN_LOAD "jobs: 2\nexperiments: [{name: a}, {name: b, server: {extra_args: "
		  "[--no-such-flag]}}, {name: c}]\n", .status = 1, .how = RUN_SORTED },
		{ "jobs", NULL, .words = "--resume --only a", .how = RUN_SORTED | RUN_NO_DOCUMENT },
		{ "same", "server: {command: ./gone, model: org/m}\n" RUN_LOAD
		  "matrix: {server.max_num_seqs: [1, 2, 3]}\n", .status = 1 },
	};

	(void)state;
	run_write("gone", "#!/bin/sh\necho 'OSError: org/m is not a local folder and is not a valid model "
		  "identifier listed on https://huggingface.co/models'\nexit 1\n");
	chmod("gone", 0755);
	RUN_CHECK_ALL(row);
}

RUN_MAIN(run_setup, cmocka_unit_test(failures))
