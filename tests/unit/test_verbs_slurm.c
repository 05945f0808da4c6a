/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_slurm.c - `profllm run` and tasks of Slurm that are cancelled, adopted, out of time or
 * not in its list any more; Slurm is tests/cli/fake_cluster, each test's own.
 *
 * threads: yes
 */
#include "run_rig.h"

#define SLURM "scheduler: {type: slurm, poll_s: 0.1}\n"
#define TWO "matrix: {server.max_num_seqs: [4, 8]}\n"
/* The first task makes Slurm hold the others, and fails. */
#define GONE "server: {command: ./gone, model: org/m}\nresources: {gpus: none}\njobs: 1\n" RUN_LOAD

static char slurm_env[128];

/* A Slurm of its own, which runs nothing if it is held. */
static void new_slurm(const char *name, bool is_held)
{
	char path[64];

	mkdir(name, 0700);
	snprintf(slurm_env, sizeof(slurm_env), "FAKE_SLURM=%s/%s", dir, name);
	snprintf(path, sizeof(path), "%s/hold", name);
	if (is_held)
		run_write(path, "");
}

static void check(struct run_case c)
{
	c.env = slurm_env;
	run_check(&c);
}

static void cancelled(void **state)
{
	(void)state;
	new_slurm("stops", false);
	check((struct run_case){ "stop", GONE SLURM "stop_on_error: true\nmatrix: {server.max_num_seqs: [1, 2, 3]}\n",
				 .status = 1, .how = RUN_NO_OUTPUT, .files = "stops/calls .err" });
	new_slurm("futile", false);
	check((struct run_case){ "same", GONE SLURM "matrix: {server.max_num_seqs: [1, 2, 3]}\n", .status = 1,
				 .how = RUN_NO_OUTPUT, .files = "futile/calls .err" });
	/* A member that was measured elsewhere meanwhile needs its task no more. */
	new_slurm("needless", true);
	check((struct run_case){ "twice", RUN_SIM RUN_LOAD SLURM TWO, .words = "--no-wait",
				 .how = RUN_NO_FILES | RUN_NO_DOCUMENT });
	check((struct run_case){ "twice", NULL, .words = "--scheduler local --only *=4",
				 .how = RUN_NO_FILES | RUN_NO_DOCUMENT | RUN_NO_OUTPUT });
	check((struct run_case){ "twice", NULL, .words = "--resume --only *=4",
				 .how = RUN_NO_DOCUMENT, .files = "needless/calls" });
}

static void submitted(void **state)
{
	static const char *const args[] = { "--gres=gpu:h100:2", "--gpus-per-node=2", "-G2", "--mem=1G" };
	struct buf yaml = { 0 };
	char name[16];

	(void)state;
	new_slurm("gpus", true);
	for (size_t i = 0; i < COUNT(args); i++) {
		buf_reset(&yaml);
		buf_printf(&yaml, RUN_SIM RUN_LOAD "scheduler: {type: slurm, qos: low, args: ['%s']}\n"
			   "experiments: [{name: a, resources: {gpus: 2}}, {name: b, resources: {gpus: none}}, "
			   "{name: c, resources: {gpus: 2}}]\n", args[i]);
		snprintf(name, sizeof(name), "gpus%zu", i);
		check((struct run_case){ name, yaml.data, .words = "--no-wait", .how = RUN_NO_DOCUMENT |
					 (i ? RUN_NO_FILES | RUN_NO_OUTPUT : 0),
					 .files = i == COUNT(args) - 1 ? "gpus/calls" : NULL });
	}
	buf_release(&yaml);
}

static void wait_for_text(const char *path, const char *what)
{
	int64_t until_ns = clock_mono_ns() + VERB_PATIENCE_NS;

	for (;;) {
		struct buf text = { 0 };
		struct err e;
		bool is_there = file_read(path, 1 << 24, &text, &e) == 0;

		buf_add_char(&text, '\0');
		is_there = is_there && strstr(text.data, what);
		buf_release(&text);
		if (is_there)
			return;
		if (clock_mono_ns() > until_ns)
			fail_msg("%s has no '%s'", path, what);
		usleep(2000);
	}
}

/* One of two tasks is waited for; the files stay, because the other one still needs them. */
static void adopted(void **state)
{
	struct buf got = { 0 };
	pid_t pid;

	(void)state;
	new_slurm("adopts", false);
	check((struct run_case){ "part", "server: {command: ./once, model: sim, ttft_ms: 2, itl_ms: 1}\n"
				 "resources: {gpus: none}\njobs: 1\n" RUN_LOAD SLURM TWO, .words = "--no-wait",
				 .how = RUN_NO_OUTPUT | RUN_NO_FILES | RUN_NO_DOCUMENT });
	wait_for_text("adopts/100_0", "RUNNING");
	pid = run_begin("run --progress none --config part.yaml --output part.json --resume --only *=4", slurm_env);
	wait_for_text(".out", "[1/1]");
	run_write("adopts/go", "");
	assert_int_equal(verb_end(pid), 0);
	run_add_text(&got, "stdout", ".out", 0);
	run_add_text(&got, "stderr", ".err", 0);
	run_add_names(&got, "part.d");
	verb_answer("one of two tasks", &got);
}

/* Tasks begin and end while Slurm does not answer: the run still says of each that it began. */
static void unseen(void **state)
{
	struct buf got = { 0 };
	pid_t pid;

	(void)state;
	new_slurm("unseen", true);
	run_write("short.yaml", RUN_SIM RUN_LOAD SLURM TWO);
	pid = run_begin("run --progress none --config short.yaml --output short.json", slurm_env);
	wait_for_text(".out", "Slurm keeps");
	run_write("unseen/down", "");
	unlink("unseen/hold");
	wait_for_text("unseen/100_0", "COMPLETED");
	wait_for_text("unseen/100_1", "COMPLETED");
	unlink("unseen/down");
	assert_int_equal(verb_end(pid), 0);
	run_add_text(&got, "stdout", ".out", RUN_SORTED);
	verb_answer("tasks that end before they are seen", &got);
}

static pid_t forgotten;

/*
 * Slurm that does not answer; tasks that left its list, one of which its accounting knows. Their
 * documents are waited for while the other tests run.
 */
static void forget(void **state)
{
	(void)state;
	new_slurm("forgets", true);
	run_write("forgets/down", "");
	run_write("gone.yaml", RUN_SIM RUN_LOAD SLURM TWO);
	forgotten = run_begin("run --progress none --config gone.yaml --output gone.json", slurm_env);
	wait_for_text(".err", "Unable to contact");
	unlink("forgets/down");
	wait_for_text(".out", "Slurm keeps");
	unlink("forgets/100_0");
	unlink("forgets/100_1");
	assert_int_equal(rename(".out", "gone.out"), 0);
	assert_int_equal(rename(".err", "gone.err"), 0);
}

static void forgotten_ones(void **state)
{
	struct buf got = { 0 };

	(void)state;
	assert_int_equal(verb_end(forgotten), 1);
	run_add_text(&got, "stdout", "gone.out", RUN_SORTED);
	run_add_text(&got, "stderr", "gone.err", RUN_SORTED);
	run_add_document(&got, "gone.json", RUN_SORTED);
	run_mask(&got, "suite-[0-9a-f]+-[0-9a-f]+-", "SUITE-");
	run_add_text(&got, "sacct", "forgets/asked", RUN_SORTED);
	verb_answer("tasks that Slurm does not list any more", &got);
}

static void out_of_time(void **state)
{
	struct buf got = { 0 };
	pid_t pid;

	(void)state;
	new_slurm("late", false);
	run_write("long.yaml", "server: {command: sim, model: sim}\n" RUN_QUIET SLURM "benchmark: "
		  "{tokenizer: sim, duration: 600, random_input_len: 8, random_output_len: 8, max_concurrency: 1}\n"
		  "matrix: {server.max_num_seqs: [4]}\n");
	pid = run_begin("run --progress none --config long.yaml --output long.json", slurm_env);
	verb_wait_for("long.d/max_num_seqs=4.json", pid);
	run_write("late/100_0.end", "TIMEOUT");
	assert_int_equal(verb_end(pid), 1);
	run_add_text(&got, "stderr", ".err", RUN_SORTED);
	verb_answer("a task that is out of time", &got);
}

static int setup(void **state)
{
	char path[4300];

	if (run_setup(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/bin:%s/tests/cli/fake_cluster:/usr/bin:/bin", dir, verb_root);
	setenv("PATH", path, 1);
	run_write("bin/sacct", "#!/bin/sh\necho \"$*\" >>\"$FAKE_SLURM/asked\"\n"
		  "case $4 in *_0) echo 'CANCELLED by 7|n3'; echo 'x|y' ;; *) exit 1 ;; esac\n");
	run_write("gone", "#!/bin/sh\n: >\"$FAKE_SLURM/hold\"\necho 'OSError: org/m is not a local folder and is "
		  "not a valid model identifier listed on https://huggingface.co/models'\nexit 1\n");
	run_write("once", "#!/bin/sh\n: >\"$FAKE_SLURM/hold\"\nuntil [ -e \"$FAKE_SLURM/go\" ]; do sleep 0.02; done\n"
		  "exec $PROFLLM sim \"$@\"\n");
	return chmod("once", 0755) || chmod("bin/sacct", 0755) || chmod("gone", 0755) ? -1 : 0;
}

RUN_MAIN(setup, cmocka_unit_test(forget), cmocka_unit_test(cancelled), cmocka_unit_test(submitted),
	 cmocka_unit_test(adopted), cmocka_unit_test(unseen), cmocka_unit_test(out_of_time),
	 cmocka_unit_test(forgotten_ones))