/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_cluster.c - `profllm run` whose experiments run elsewhere: as tasks of Slurm and on
 * hosts that ssh reaches, both scripts of tests/cli/fake_cluster.
 *
 * threads: yes
 */
#include "run_rig.h"

#define SLURM "scheduler: {type: slurm, poll_s: 0.1, partition: main, account: a1, time_limit: 90s, " \
	"args: [--mem=1G]}\n"
#define TWO "matrix: {server.max_num_seqs: [4, 8]}\n"

static void slurm(void **state)
{
	static const struct run_case row[] = {
		{ "queue", RUN_SIM RUN_LOAD SLURM TWO, .words = "--jobs 2 --scheduler-args=--exclusive",
		  .how = RUN_SORTED, .files = "slurm/calls" },
		{ "queue", NULL, .words = "--resume", .how = RUN_SORTED | RUN_NO_DOCUMENT },
		{ "later", RUN_SIM RUN_LOAD SLURM TWO, .words = "--no-wait", .how = RUN_SORTED | RUN_NO_FILES },
		{ "later", NULL, .words = "", .status = 1, .how = RUN_SORTED | RUN_NO_FILES | RUN_NO_DOCUMENT },
		{ "later", NULL, .words = "--resume --set benchmark.num_prompts=3", .status = 1,
		  .how = RUN_SORTED | RUN_NO_FILES | RUN_NO_DOCUMENT },
	};

	(void)state;
	run_check_all(row, 2);
	run_write("slurm/hold", "");
	run_check_all(row + 2, 3);
	run_write("slurm/hold", "squeue");
	run_check(&(struct run_case){ "later", NULL, .words = "-q --resume --only *", .how = RUN_SORTED });
	run_write("slurm/refuse", "Invalid account");
	run_check(&(struct run_case){ "never", RUN_SIM RUN_LOAD SLURM TWO, .status = 1, .how = RUN_SORTED });
	unlink("slurm/refuse");
}

static void ssh(void **state)
{
	static const struct run_case row[] = {
		{ "hosts", RUN_SIM RUN_LOAD TWO, .words = "--scheduler ssh --hosts two.hosts "
		  "--scheduler-args=-p --scheduler-args=2222", .how = RUN_SORTED },
		{ "down", RUN_SIM RUN_LOAD TWO, .words = "--scheduler ssh --hosts down.hosts", .status = 1,
		  .how = RUN_SORTED },
		{ "down", NULL, .words = "--scheduler ssh --hosts two.hosts --resume", .how = RUN_SORTED },
		{ "down", NULL, .words = "--scheduler ssh --hosts zero.hosts", .status = 2 },
		{ "down", NULL, .words = "--scheduler ssh --hosts option.hosts", .status = 2 },
		{ "down", NULL, .words = "--scheduler ssh --hosts empty.hosts", .status = 2 },
		{ "down", NULL, .words = "--scheduler ssh --hosts absent.hosts", .status = 2 },
	};

	(void)state;
	run_write("two.hosts", "# two machines\n\nuser@one\ntwo\t# the slow one\n");
	run_write("down.hosts", "down1\n");
	run_write("zero.hosts", "one slots=0\n");
	run_write("option.hosts", "\n-oProxyCommand=x\n");
	run_write("empty.hosts", "# nothing\n");
	RUN_CHECK_ALL(row);
}

static int setup(void **state)
{
	char path[4300], folder[64];

	if (run_setup(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/tests/cli/fake_cluster:/usr/bin:/bin", verb_root);
	snprintf(folder, sizeof(folder), "%s/slurm", dir);
	setenv("PATH", path, 1);
	setenv("FAKE_SLURM", folder, 1);
	mkdir(folder, 0700);
	snprintf(folder, sizeof(folder), "%s/ssh", dir);
	setenv("FAKE_SSH", folder, 1);
	return mkdir(folder, 0700);
}

RUN_MAIN(setup, cmocka_unit_test(slurm), cmocka_unit_test(ssh))
