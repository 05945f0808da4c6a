/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - what a token event costs when the load is divided among several processes.
 *
 * mpirun starts 2, 4 and 8 processes, each of which receives as many streams as one process does
 * alone: so many times the events, at the same processor time for each if the rate that can be
 * offered is to grow with the processes. In "steps" all tokens of a moment are sent together, as an
 * engine's step does; in "spread" they are evenly spread over the time between two tokens of a
 * stream. In "divided" the streams of one process are dealt among the others, which have less to
 * do each time they wake.
 *
 * The processor time of all processes of the run, mpirun left out, is read ten times a second; what
 * it grew by while every stream flowed is divided by the events of that time, which the result has.
 * So starting MPI and gathering the record are not in the figure.
 *
 * Processes share the client's core and have the usual priority, or they would keep each other
 * from running.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/json/read.h"
#include "kit/kit.h"

#define RANKS_MOST 8
#define ITL_MS "20"
#define SPREAD_RATE 47             /* a little slower than one in ITL_MS */
#define STREAMS 100
#define TOKENS "500"
#define STREAMS_QUICK 20
#define TOKENS_QUICK "100"
#define LOOK_NS 100000000
#define LOOKS_MAX 4096
#define MARGIN_NS 200000000        /* left out at both ends of the time when all streams flow */
#define RATIO_MAX 1.05
#define RESULT_BYTES_MAX (64u << 20)

/* With the tap each process of a machine looks at the packets of all of them. */
static const struct scene {
	const char *name, *timestamps;
	unsigned rate;  /* streams started in a second for each process; 0: all at once */
	unsigned step;  /* 1 process and its multiples by step */
	bool is_divided;
} scenes[] = {
	{ "steps", "kernel", 0, 2, false },
	{ "spread", "kernel", SPREAD_RATE, 2, false },
	{ "steps, tap", "auto", 0, RANKS_MOST, true },
	{ "steps, divided", "kernel", 0, 2, true },
	{ "spread, divided", "kernel", SPREAD_RATE, RANKS_MOST, true },
};

struct look { int64_t at_ns, cpu_ns; };
struct looks { struct look v[LOOKS_MAX]; unsigned n; };

/* Runs argv (NULL-terminated) without output, on the client's core, with the usual priority. */
static pid_t start(const char *const *argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bench_set_realtime(false);
		setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
		setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
		setenv("OMPI_MCA_plm_rsh_agent", "/bin/false", 1);
		dup2(null, 1);
		dup2(null, 2);
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return pid;
}

/* The process numbers that the ranks wrote, one a line. */
static unsigned read_pids(const char *path, pid_t pid[RANKS_MOST])
{
	struct buf text = { 0 };
	struct str rest;
	struct err ignored;
	unsigned n = 0;
	int64_t v;

	if (file_read(path, 4096, &text, &ignored) == 0)
		for (rest = buf_str(&text); rest.n && n < RANKS_MOST;)
			if (str_to_i64(str_cut(&rest, '\n'), &v))
				pid[n++] = (pid_t)v;
	buf_release(&text);
	return n;
}

/* Processor time of all ranks together; -1 unless all n are there. */
static int64_t cpu_of(const char *pids, unsigned n)
{
	pid_t pid[RANKS_MOST];
	int64_t sum_ns = 0;

	if (read_pids(pids, pid) != n)
		return -1;
	for (unsigned i = 0; i < n; i++) {
		struct timespec t;
		clockid_t clock;

		if (clock_getcpuclockid(pid[i], &clock) != 0 || clock_gettime(clock, &t) < 0)
			return -1;
		sum_ns += t.tv_sec * 1000000000 + t.tv_nsec;
	}
	return sum_ns;
}

static int watch(pid_t pid, const char *pids, unsigned n, struct looks *looks, struct err *e)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		struct look now = { clock_real_ns(), cpu_of(pids, n) };

		if (now.cpu_ns >= 0 && looks->n < LOOKS_MAX)
			looks->v[looks->n++] = now;
		nanosleep(&(struct timespec){ 0, LOOK_NS }, NULL);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, ERR_RUN, "a run of %u processes ended with status %d (is mpirun "
			       "installed?)", n,
			       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}

/* Between two looks the processor time grows evenly. */
static double cpu_at(const struct looks *looks, int64_t at_ns)
{
	for (unsigned i = 1; i < looks->n; i++) {
		const struct look *a = &looks->v[i - 1], *b = &looks->v[i];

		if (a->at_ns <= at_ns && at_ns <= b->at_ns)
			return (double)a->cpu_ns + (double)(b->cpu_ns - a->cpu_ns) *
			       (double)(at_ns - a->at_ns) / (double)(b->at_ns - a->at_ns);
	}
	return -1;
}

struct flow { int64_t from_ns, to_ns; uint64_t events; };

/* Adds up the gaps of a stream: its last event, and how many came within the flow. */
static int64_t walk(const struct json_value *itls, int64_t at_ns, struct flow *flow)
{
	for (size_t i = 0;; i++) {
		if (flow && at_ns >= flow->from_ns && at_ns < flow->to_ns)
			flow->events++;
		if (i == itls->count)
			return at_ns;
		at_ns += llround(json_real(&itls->item[i], 0) * 1e9);
	}
}

/* The time when all streams flowed, and its events. */
static int find_flow(const struct json_value *result, struct flow *flow, struct err *e)
{
	const struct json_value *itls = json_get(result, "itls");
	const struct json_value *first = json_get(json_get(json_get(result, "profllm"), "requests"),
						  "first_event_ns");

	*flow = (struct flow){ 0, INT64_MAX, 0 };
	if (!itls || !first || itls->count != first->count || json_real(json_get(result, "failed"), 1) > 0)
		return err_set(e, ERR_RUN, "the result of the run is not whole");
	for (size_t i = 0; i < itls->count; i++) {
		int64_t begin = json_int(&first->item[i], 0);
		int64_t end = walk(&itls->item[i], begin, NULL);

		flow->from_ns = begin > flow->from_ns ? begin : flow->from_ns;
		flow->to_ns = end < flow->to_ns ? end : flow->to_ns;
	}
	flow->from_ns += MARGIN_NS;
	flow->to_ns -= MARGIN_NS;
	for (size_t i = 0; i < itls->count; i++)
		walk(&itls->item[i], json_int(&first->item[i], 0), flow);
	return flow->to_ns > flow->from_ns ? 0 :
	       err_set(e, ERR_RUN, "the streams never flowed all at once");
}

static int read_flow(const char *path, struct flow *flow, struct err *e)
{
	struct arena a = { 0 };
	struct buf text = { 0 };
	struct json_value *result = NULL;
	int rc = file_read(path, RESULT_BYTES_MAX, &text, e);

	if (rc == 0)
		rc = json_parse(&a, buf_str(&text), &result, e);
	if (rc == 0)
		rc = find_flow(result, flow, e);
	buf_release(&text);
	arena_release(&a);
	return rc;
}

/* Processor time per event of a run by n processes, in microseconds. */
static int measure(struct bench *b, const struct sim_child *sim, const struct scene *s, unsigned n,
		   double *us, struct err *e)
{
	static struct looks looks;
	unsigned loads = s->is_divided ? 1 : n;
	char pids[80], count[8], streams[16], rate[16];
	const char *argv[64] = { "mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "btl",
				 "self,vader", "-np", count };
	const char *const rank[] = {
		"/bin/sh", "-c", "echo $$ >>\"$0\"; exec \"$@\"", pids,
		b->binary, "bench", "serve", "--base-url", sim->url, "--model", "sim", "--tokenizer",
		"sim", "--dataset-name", "random", "--random-input-len", "16", "--random-output-len",
		b->is_quick ? TOKENS_QUICK : TOKENS, "--num-prompts",
		streams, "--request-rate", rate, "--burstiness", "inf",
		"--timestamps", s->timestamps,
		"--ready-check-timeout-sec", "0", "--progress", "none", "--save-result",
		"--save-detailed", "--result-dir", sim->dir, "--result-filename", "result.json", NULL,
	};
	char path[80];
	struct flow flow = { 0 };
	double used;
	pid_t pid;
	int rc;

	snprintf(count, sizeof(count), "%u", n);
	snprintf(streams, sizeof(streams), "%u", loads * (b->is_quick ? STREAMS_QUICK : STREAMS));
	snprintf(rate, sizeof(rate), s->rate ? "%u" : "inf", loads * s->rate);
	snprintf(pids, sizeof(pids), "%s/pids", sim->dir);
	snprintf(path, sizeof(path), "%s/result.json", sim->dir);
	memcpy(&argv[n > 1 ? 9 : 0], rank, sizeof(rank));
	unlink(pids);
	looks.n = 0;
	pid = start(argv);
	rc = pid < 0 ? err_set(e, ERR_RUN, "cannot start %s: %s", argv[0], strerror(errno))
		     : watch(pid, pids, n, &looks, e);
	if (rc == 0)
		rc = read_flow(path, &flow, e);
	unlink(path);
	if (rc < 0)
		return -1;
	used = cpu_at(&looks, flow.to_ns) - cpu_at(&looks, flow.from_ns);
	*us = used / (double)flow.events / 1e3;
	bench_add(b, "us", *us, "%s, %u processes: CPU per event", s->name, n);
	bench_add(b, "events/s", (double)flow.events / (double)(flow.to_ns - flow.from_ns) * 1e9,
		  "%s, %u processes: events received", s->name, n);
	return 0;
}

static int play(struct bench *b, const struct sim_child *sim, const struct scene *s, struct err *e)
{
	double one = 0, us;

	for (unsigned n = 1; n <= RANKS_MOST; n *= s->step) {
		struct figure *f;

		if (measure(b, sim, s, n, &us, e) < 0)
			return -1;
		if (n == 1) {
			one = us;
			continue;
		}
		f = bench_add(b, "x", us / one, "%s, %u processes / one: CPU per event", s->name, n);
		if (!s->is_divided)
			figure_most(f, RATIO_MAX);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const args[] = { "--ttft-ms", "20", "--itl-ms", ITL_MS, NULL };
	struct sim_child sim = { 0 };
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "ranks", argc, argv, &e);

	if (rc == 0)
		rc = sim_child_start(&sim, &b, false, args, &e);
	for (unsigned i = 0; rc == 0 && i < b.repeats; i++) {
		for (size_t k = 0; rc == 0 && k < sizeof(scenes) / sizeof(*scenes); k++)
			if (!b.only || strcmp(b.only, scenes[k].name) == 0)
				rc = play(&b, &sim, &scenes[k], &e);
	}
	sim_child_release(&sim);
	return bench_end(&b, &e);
}
