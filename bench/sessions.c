/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - the memory of the client for 10,000 conversations at once: the largest resident size
 * of `profllm bench serve`, from its start to its exit, result file included.
 *
 * Conversations arrive at 1,000 a second and have two pauses of 12 s between three turns, so none
 * has ended when the last one begins. That this held follows from the run's duration: the last one
 * began at least both pauses before the end, the first one ended at least both pauses after the
 * start, so all were in progress together when the run was shorter than four pauses.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/json/read.h"
#include "kit/kit.h"

#define SESSIONS 10000
#define SESSIONS_QUICK 500
#define PAUSE_S 12
#define PAUSE_QUICK_S 1
#define GAPS 2 /* pauses of a conversation */
#define RESULT_BYTES_MAX (64u << 20)
#define RESIDENT_MB_MAX 200

/* Runs argv (NULL-terminated) without output to its end, on the client's core. */
static int run_client(const char *const *argv, struct rusage *use, struct err *e)
{
	pid_t pid = fork();
	int status = 0;

	if (pid < 0)
		return err_set(e, ERR_RUN, "cannot start %s: %s", argv[0], strerror(errno));
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, 1);
		dup2(null, 2);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	while (wait4(pid, &status, 0, use) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, ERR_RUN, "%s ended with status %d", argv[0],
			       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}

/* Every conversation was completed, and all of them were in progress at some time. */
static int check_result(const char *path, double sessions, double pause_s, double *duration_s,
			struct err *e)
{
	struct arena a = { 0 };
	struct buf text = { 0 };
	struct json_value *result = NULL;
	int rc = file_read(path, RESULT_BYTES_MAX, &text, e);

	if (rc == 0)
		rc = json_parse(&a, buf_str(&text), &result, e);
	if (rc == 0) {
		double completed = json_real(json_get(json_get(result, "sessions"), "completed"), 0);

		*duration_s = json_real(json_get(result, "duration"), INFINITY);
		if (completed != sessions)
			rc = err_set(e, ERR_RUN, "%g of %g conversations were completed", completed,
				     sessions);
		else if (!(*duration_s < 2 * GAPS * pause_s))
			rc = err_set(e, ERR_RUN, "the run took %.1f s: not all conversations were under way "
				     "at once", *duration_s);
	}
	buf_release(&text);
	arena_release(&a);
	return rc;
}

static int measure(struct bench *b, const struct sim_child *sim, struct err *e)
{
	unsigned sessions = b->is_quick ? SESSIONS_QUICK : SESSIONS;
	unsigned pause_s = b->is_quick ? PAUSE_QUICK_S : PAUSE_S;
	char n[16], pause_ms[16], path[80];
	const char *const argv[] = {
		b->binary, "bench", "serve", "--base-url", sim->url, "--model", "sim", "--tokenizer",
		"sim", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--multi-turn",
		"--multi-turn-num-turns", "3", "--multi-turn-delay-ms", pause_ms, "--dataset-name",
		"random", "--random-input-len", "128", "--random-output-len", "32", "--request-rate",
		"1000", "--num-prompts", n, "--ready-check-timeout-sec", "0", "--progress", "none",
		"--save-result", "--result-dir", sim->dir, "--result-filename", "result.json", NULL,
	};
	struct rusage use = { 0 };
	double duration_s = 0;
	int rc;

	snprintf(n, sizeof(n), "%u", sessions);
	snprintf(pause_ms, sizeof(pause_ms), "%u", 1000 * pause_s);
	snprintf(path, sizeof(path), "%s/result.json", sim->dir);
	rc = run_client(argv, &use, e);
	if (rc == 0)
		rc = check_result(path, sessions, pause_s, &duration_s, e);
	unlink(path);
	if (rc == 0) {
		figure_most(bench_add(b, "MB", (double)use.ru_maxrss * 1024 / 1e6,
				      "%u conversations at once: client's memory", sessions),
			    RESIDENT_MB_MAX);
		bench_add(b, "s", duration_s, "of 3 turns each: duration");
		bench_add(b, "s", bench_cpu_s(&use), "client's processor time");
	}
	return rc;
}

int main(int argc, char **argv)
{
	static const char *const args[] = { "--ttft-ms", "5", "--itl-ms", "1", NULL };
	struct sim_child sim = { 0 };
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "sessions", argc, argv, &e);

	if (rc == 0)
		rc = sim_child_start(&sim, &b, false, args, &e);
	for (unsigned i = 0; rc == 0 && i < b.repeats; i++)
		rc = measure(&b, &sim, &e);
	sim_child_release(&sim);
	return bench_end(&b, &e);
}
