/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_start.c - servers of `profllm run` that do not start, are not ready, or die. */
/* threads: yes */
#include "run_rig.h"

static void starts(void **state)
{
	static const struct run_case row[] = {
		{ "absent", "server: {command: ./nosuch, model: sim}\n" RUN_LOAD, .status = 2 },
		{ "broken", "server: {command: ./broken, model: sim}\n" RUN_LOAD, .status = 1 },
		{ "oom", "server: {command: sim, model: sim, fail_start: oom}\n" RUN_LOAD, .status = 1 },
		{ "killed", "server: {command: sim, model: sim, fail_start: killed}\n" RUN_LOAD, .status = 1 },
		{ "exits", "server: {command: sim, model: sim, fail_start: 'exit=7'}\n" RUN_LOAD, .status = 1 },
		{ "never", "server: {command: sim, model: sim, never_ready: true, ready_timeout_s: 0.2, "
		  "grace_s: 1}\n" RUN_LOAD, .status = 1 },
		{ "silent", "server: {command: sim, model: sim, fault: ['status=503']}\n"
		  RUN_BENCH ", ready_check_timeout_sec: 1}\n" RUN_QUIET, .status = 1 },
		{ "errors", "server: {command: sim, model: sim, fault: ['status=500']}\n"
		  RUN_BENCH ", ready_check_timeout_sec: 0}\n" RUN_QUIET, .status = 1 },
		{ "dies", "server: {command: sim, model: sim, die_after: 8req}\nbenchmark: {tokenizer: sim, "
		  "num_prompts: 90, request_rate: 30, burstiness: 1000, random_input_len: 8, "
		  "random_output_len: 2}\n" RUN_QUIET, .status = 1, .how = RUN_CUT },
		{ "nobody", "server: {url: 'http://127.0.0.1:1', ready_timeout_s: 0.2}\n"
		  RUN_BENCH ", model: m}\n" RUN_QUIET, .status = 1 },
		{ "logged", RUN_SIM RUN_LOAD, .words = "--show-log --events logged.events --progress lines",
		  .how = RUN_NO_OUTPUT | RUN_NO_DOCUMENT },
	};

	(void)state;
	run_write("broken", "#!/nowhere/sh\n");
	chmod("broken", 0755);
	RUN_CHECK_ALL(row);
}

RUN_MAIN(run_setup, cmocka_unit_test(starts))
