/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_jobs.c - several experiments of `profllm run` at once: which may be next to which,
 * hosts that cannot run one, and a run that is stopped.
 *
 * threads: yes
 */
#include "run_rig.h"
#include "fake_gpus.h"

#define GPUS "PROFLLM_NVML=$NVML FAKE_NVML_STATE=$DIR/gpus"
#define LONG "server: {command: sim, model: sim, ttft_ms: 2, itl_ms: 5, grace_s: 1}\n" RUN_QUIET "benchmark: " \
	"{tokenizer: sim, duration: 600, random_input_len: 8, random_output_len: 8, max_concurrency: 1, " \
	"ready_check_timeout_sec: 0}\nmatrix: {server.requests: [one.log, two.log]}\n"
#define RUN_QUICK RUN_BENCH ", ready_check_timeout_sec: 0}\n" RUN_QUIET
#define TWO "matrix: {server.max_num_seqs: [4, 8]}\n"

/* Those that need the same GPU, or more than there are, come one after the other. */
static void one_by_one(void **state)
{
	static const struct run_case row[] = {
		{ "same", RUN_SIM RUN_QUICK "jobs: 3\nexperiments: [{name: a, resources: {gpus: [1]}}, "
		  "{name: b, resources: {gpus: [0, 1]}}, {name: c, resources: {gpus: 1}}]\n", .env = GPUS,
		  .how = RUN_NO_FILES | RUN_NO_DOCUMENT },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

/* An experiment goes to the next host when a host cannot run it. */
static void hosts(void **state)
{
	static const struct run_case row[] = {
		{ "hosts", RUN_SIM RUN_QUICK TWO, .words = "--scheduler ssh --hosts three.hosts --only *=4",
		  .how = RUN_NO_FILES | RUN_NO_DOCUMENT },
		{ "none", RUN_SIM RUN_QUICK TWO, .words = "--scheduler ssh --hosts bad.hosts --only *=4", .status = 1,
		  .how = RUN_NO_FILES | RUN_NO_DOCUMENT },
		{ "none", NULL, .words = "--scheduler ssh --hosts three.hosts", .status = 2,
		  .how = RUN_NO_FILES | RUN_NO_DOCUMENT, .env = "PATH=$DIR/only" },
	};

	(void)state;
	run_write("three.hosts", "alone1\nempty1\none\n");
	run_write("bad.hosts", "empty1\nalone1\n");
	mkdir("only", 0700);
	RUN_CHECK_ALL(row);
}

static void wait_for_lines(const char *path, const char *what, unsigned n)
{
	int64_t until_ns = clock_mono_ns() + VERB_PATIENCE_NS;
	unsigned found = 0;

	while (found < n) {
		struct buf text = { 0 };
		struct err e;

		if (clock_mono_ns() > until_ns)
			fail_msg("%s has not %u times '%s'", path, n, what);
		usleep(2000);
		found = 0;
		if (file_read(path, 1 << 24, &text, &e) == 0) {
			buf_add_char(&text, '\0');
			for (const char *at = text.data; (at = strstr(at, what)); at++)
				found++;
		}
		buf_release(&text);
	}
}

/* Each child ends by itself and keeps what it has measured. */
static void stopped(void **state)
{
	static const char *const words[] = { "--jobs 2", "--scheduler ssh --hosts two.hosts" };

	(void)state;
	run_write("two.hosts", "one\ntwo\n");
	run_write("stop.yaml", LONG);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct buf line = { 0 }, got = { 0 };
		pid_t pid;

		unlink("one.log");
		unlink("two.log");
		buf_printf(&line, "run --progress none --config stop.yaml --output stop%zu.json %s", i, words[i]);
		pid = run_begin(line.data, NULL);
		wait_for_lines("one.log", "/v1/completions", 3);
		wait_for_lines("two.log", "/v1/completions", 3);
		kill(pid, SIGTERM);
		buf_printf(&got, "status %d\n", verb_end(pid));
		run_add_text(&got, "stdout", ".out", RUN_SORTED | RUN_CUT);
		run_add_text(&got, "stderr", ".err", RUN_SORTED | RUN_CUT);
		run_mask(&got, "^No highest .*\n", "");
		/* Of what a child still says before it ends not all may arrive. */
		run_mask(&got, "^requests=[a-z]+\\.log: .*\n", "");
		verb_answer(words[i], &got);
		buf_release(&line);
	}
}

static int setup(void **state)
{
	char path[4300];

	if (run_setup(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/tests/cli/fake_cluster:/usr/bin:/bin", verb_root);
	setenv("PATH", path, 1);
	setenv("FAKE_SSH", dir, 1);
	verb_let("NVML", fake_library("libfake-nvml.so"));
	fake_state("count 2\n");
	return 0;
}

RUN_MAIN(setup, cmocka_unit_test(one_by_one), cmocka_unit_test(hosts), cmocka_unit_test(stopped))
