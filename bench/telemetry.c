/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry.c - what watching the machine costs, and whether it disturbs what is measured.
 *
 * The scenes of client_error, with and without the thread that samples eight GPUs, the host and
 * the server's processes ten times a second; both in one repeat, in turns of order. The GPUs
 * are those of tests/fake/nvml.c: what a real driver's calls take is not in these figures, but
 * the thread's budget holds for them too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kit/kit.h"
#include "stats/stats.h"
#include "telemetry/system.h"

#define INTERVAL_NS 100000000ll /* 10 Hz */
#define SHIFT_US_MAX 5
#define CORE_PERCENT_MAX 1
#define REPEATS 5
#define ALONE_S 4

struct scene { const char *name; uint32_t streams, events; const char *itl_ms, *burst_ms; };

static const struct scene scenes[] = {
	{ "100", 100, 300, "10", NULL },
	{ "1000", 1000, 200, "10", NULL },
	{ "burst256", 256, 150, "20", "20" },
};

/* What the samples of a record cost. */
struct cost { double cpu_s, took_s, samples, missed; };

static struct cost cost_of(const struct record *r)
{
	struct cost c = { 0 };

	for (size_t i = 0; i < r->n_series; i++) {
		const struct record_series *s = r->series[i];

		if (strcmp(s->name, system_series_name(SYSTEM_SAMPLER_MISSED)) == 0)
			c.missed = s->point[s->n - 1].value;
		if (strcmp(s->name, system_series_name(SYSTEM_SAMPLER_CPU)) != 0)
			continue;
		c.cpu_s = s->point[s->n - 1].value;
		c.took_s = (double)(s->point[s->n - 1].at_ns - s->point[0].at_ns) / 1e9;
		c.samples = (double)s->n - 2; /* the first and the last are not the thread's */
	}
	return c;
}

static struct system_watch *watch(pid_t pid)
{
	const struct system_process server = { pid, "server" };
	const struct system_opts opts = {
		.gpu = true, .host = true, .process = true, .interval_ns = INTERVAL_NS,
		.processes = &server, .n_processes = 1,
	};

	return system_begin(&opts);
}

static int need_gpus(const struct record *r, struct err *e)
{
	size_t gpus = 0;

	for (size_t i = 0; i < r->n_series; i++)
		gpus += strcmp(r->series[i]->name, system_series_name(SYSTEM_GPU_POWER)) == 0;
	if (gpus == 8)
		return 0;
	return err_set(e, ERR_RUN, "8 GPUs were to be watched, there were %zu (PROFLLM_NVML=%s)", gpus,
		       getenv("PROFLLM_NVML"));
}

/* p99 of the error of a gap, kernel and user space, in us. */
static int measure(const struct scene *s, struct sim_child *sim, struct client *c, bool is_watched,
		   uint32_t events, double p99[2], struct err *e)
{
	struct client_spec spec = { .base_url = sim->url, .requests = s->streams,
				    .output_len = events, .prompt_bytes = 64, .rate = INFINITY };
	struct system_watch *w = NULL;
	struct truth_table truth = { 0 };
	struct rusage use = { 0 };
	struct errors r;
	int rc = -1;

	errors_init(&r, s->streams, events);
	if (client_prepare(c, &spec, e) < 0)
		goto done;
	if (is_watched)
		w = watch(sim->child.pid);
	rc = client_send(c, e);
	system_end(w, &c->record);
	sim_child_stop(sim, &use);
	if (rc == 0 && is_watched)
		rc = need_gpus(&c->record, e);
	if (rc == 0)
		rc = truth_read(&truth, sim->truth, s->streams, e);
	if (rc == 0)
		rc = errors_join(&r, c, &truth, events, e);
	for (int k = 0; rc == 0 && k < 2; k++)
		p99[k] = stats_percentile(r.itl[k], r.n_itl, 99);
done:
	truth_release(&truth);
	errors_release(&r);
	return rc;
}

static int run_once(struct bench *b, const struct scene *s, bool is_watched, double p99[2],
		    struct err *e)
{
	const char *args[9] = { "--ttft-ms", "50", "--itl-ms", s->itl_ms };
	struct client client = { 0 };
	struct sim_child sim;
	int rc;

	if (s->burst_ms) {
		args[4] = "--burst-ms";
		args[5] = s->burst_ms;
	}
	rc = sim_child_start(&sim, b, false, args, e);
	if (rc == 0)
		rc = measure(s, &sim, &client, is_watched, b->is_quick ? 20 : s->events, p99, e);
	client_release(&client);
	sim_child_release(&sim);
	return rc < 0 ? err_wrap(e, "%s streams", s->name) : 0;
}

/* One alternation: odd repeats begin with the watched run. */
static int run_scene(struct bench *b, const struct scene *s, unsigned repeat, struct err *e)
{
	static const char *const view[] = { "kernel", "user" };
	struct figure *f;
	double p99[2][2];

	for (unsigned k = 0; k < 2; k++) {
		bool is_watched = (repeat + k) % 2;

		if (run_once(b, s, is_watched, p99[is_watched], e) < 0)
			return -1;
	}
	for (int k = 0; k < 2; k++) {
		bench_add(b, "us", p99[0][k], "%s: |ITL error| p99, %s, not watched", s->name,
			  view[k]);
		bench_add(b, "us", p99[1][k], "%s: |ITL error| p99, %s, watched", s->name, view[k]);
		f = bench_add(b, "us", p99[1][k] - p99[0][k], "%s: shift of p99, %s", s->name, view[k]);
		if (k == 0) /* what is reported is measured by the kernel's stamps */
			figure_most(f, SHIFT_US_MAX);
	}
	return 0;
}

/* The thread alone, with a simulator that has nothing to do as the server. */
static int run_alone(struct bench *b, struct err *e)
{
	struct timespec pause = { b->is_quick ? 1 : ALONE_S, 0 };
	const char *args[] = { NULL };
	struct record r = { 0 };
	struct sim_child sim;
	struct cost c;
	int rc = sim_child_start(&sim, b, false, args, e);

	if (rc == 0) {
		struct system_watch *w = watch(sim.child.pid);

		nanosleep(&pause, NULL);
		system_end(w, &r);
		c = cost_of(&r);
		rc = need_gpus(&r, e);
		figure_most(bench_add(b, "%", 100 * c.cpu_s / c.took_s, "alone: share of a core, 10 Hz"),
			    CORE_PERCENT_MAX);
		bench_add(b, "us", 1e6 * c.cpu_s / c.samples, "alone: processor time of a sample");
		figure_most(bench_add(b, "", c.missed, "alone: samples left out"), 0);
	}
	record_release(&r);
	sim_child_release(&sim);
	return rc;
}

/* The library that stands in for the driver lies in ../tests of the folder of this program. */
static void use_fake_gpus(void)
{
	char path[4096] = "";
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	char *slash;

	for (int i = 0; n > 0 && i < 2; i++) {
		slash = strrchr(path, '/');
		if (slash)
			*slash = 0;
	}
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/tests/libfake-nvml.so");
	setenv("PROFLLM_NVML", path, 0);
	setenv("PROFLLM_SYSFS", "/dev/null", 0);
}

int main(int argc, char **argv)
{
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "telemetry", argc, argv, &e);

	use_fake_gpus();
	if (!b.is_quick && b.repeats < REPEATS)
		b.repeats = REPEATS;
	for (unsigned k = 0; rc == 0 && k < b.repeats; k++) {
		rc = run_alone(&b, &e);
		for (size_t i = 0; rc == 0 && i < sizeof(scenes) / sizeof(*scenes); i++)
			rc = run_scene(&b, &scenes[i], k, &e);
	}
	return bench_end(&b, &e);
}
