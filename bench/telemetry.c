/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry.c - what watching the machine costs, and whether it disturbs what is measured.
 *
 * Scenes of client_error, during which the thread that samples eight GPUs, the host and the
 * server's processes ten times a second comes and goes: one run is cut into windows, watched and
 * not, in turns of order, and neighbours are compared. So both sides of a comparison have the
 * same connections, the same phase of the streams and nearly the same second of the machine.
 * The GPUs are those of tests/fake/nvml.c: what a real driver's calls take is not in these
 * figures, but the thread's budget holds for them too.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/metrics/oracle.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/stats/percentile.h"
#include "core/stats/stats.h"
#include "host/telemetry/system.h"
#include "kit/kit.h"

#define INTERVAL_NS 100000000ll /* 10 Hz */
#define SHIFT_US_MAX 5
#define CORE_PERCENT_MAX 1
#define REPEATS 5
#define ALONE_S 4
#define LEVEL 0.95

#define PAIRS 8
#define WINDOWS_MAX (2 * PAIRS)
/*
 * system_begin and system_end, which open and close libraries, are not measured. A second that
 * begins this long after system_begin holds ten samples and one look-up of the server's
 * descendants, like every second of a long run.
 */
#define GUARD_NS 50000000ll
#define WINDOW_NS 1000000000ll
#define WINDOW_QUICK_NS 200000000ll
#define START_NS 400000000ll /* connecting, and first events */
#define SWITCH_NS 30000000ll /* what a begin and an end may take before the run is too short */

struct scene {
	const char *name;
	uint32_t streams, itl_ms;
	bool is_burst, is_long, has_target;
};

static const struct scene scenes[] = {
	{ "100", 100, 10, false, false, true },
	{ "1000", 1000, 50, false, false, true },
	{ "burst256", 256, 20, true, false, true },
	{ "1000 full", 1000, 10, false, true, false },
};

#define SCENES (sizeof(scenes) / sizeof(*scenes))

/* Shifts of every pair of a scene, over all repeats; kernel's stamps. */
struct pool { double shift[BENCH_REPEATS_MAX * PAIRS]; size_t n; };

/* Errors of the gaps that ended in it; [0] kernel, [1] user space. */
struct window {
	int64_t from_ns, to_ns; /* the record's clock */
	bool is_watched;
	double *itl[2];
	size_t n, room;
};

struct turns {
	pthread_t thread;
	pid_t pid;
	int64_t window_ns;
	struct window window[WINDOWS_MAX];
	size_t n, pairs;       /* pairs that the run outlasted */
	atomic_bool is_over;
	struct err e;
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

/* ---- turns: watching comes and goes while the client runs ---- */

static void nap(int64_t ns)
{
	nanosleep(&(struct timespec){ ns / 1000000000, ns % 1000000000 }, NULL);
}

static int take_turn(struct turns *t, struct window *w)
{
	struct system_watch *watching = w->is_watched ? watch(t->pid) : NULL;
	struct record r = { 0 };
	int rc = 0;

	w->from_ns = clock_real_ns() + GUARD_NS;
	w->to_ns = w->from_ns + t->window_ns;
	nap(t->window_ns + 2 * GUARD_NS);
	system_end(watching, &r);
	if (w->is_watched)
		rc = need_gpus(&r, &t->e);
	record_release(&r);
	return rc;
}

static void *turns_main(void *arg)
{
	struct turns *t = arg;

	nap(START_NS);
	for (size_t i = 0; i < t->n && !t->is_over; i++)
		if (take_turn(t, &t->window[i]) < 0)
			break;
	return NULL;
}

/* As one does that watches all along: with the usual priority, on the client's core. */
static int turns_start(struct turns *t, struct err *e)
{
	const struct sched_param usual = { 0 };
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &usual);
	rc = pthread_create(&t->thread, &attr, turns_main, t);
	pthread_attr_destroy(&attr);
	return rc == 0 ? 0 : err_set(e, ERR_RUN, "cannot start a thread: %s", strerror(rc));
}

static int turns_join(struct turns *t, struct err *e)
{
	atomic_store(&t->is_over, true);
	pthread_join(t->thread, NULL);
	if (t->e.code)
		*e = t->e;
	return t->e.code ? -1 : 0;
}

static void turns_release(struct turns *t)
{
	for (size_t i = 0; i < t->n; i++)
		for (int k = 0; k < 2; k++)
			free(t->window[i].itl[k]);
}

/* Of one alternation: odd repeats begin with a watched window, then there are two of a kind. */
static void turns_init(struct turns *t, const struct bench *b, unsigned repeat)
{
	*t = (struct turns){ .n = b->is_quick ? 2 : WINDOWS_MAX,
			     .window_ns = b->is_quick ? WINDOW_QUICK_NS : WINDOW_NS };
	for (size_t i = 0; i < t->n; i++)
		t->window[i].is_watched = (i / 2 + i + repeat) % 2;
}

/* Events of a stream that lasts until all turns are over. */
static uint32_t turns_events(const struct turns *t, const struct scene *s)
{
	int64_t turn_ns = t->window_ns + 2 * GUARD_NS + SWITCH_NS;

	return (uint32_t)((2 * START_NS + (int64_t)t->n * turn_ns) / (s->itl_ms * 1000000ll));
}

static void add_gap(void *self, int64_t at_ns, const double itl[2])
{
	struct turns *t = self;

	for (size_t i = 0; i < t->n; i++) {
		struct window *w = &t->window[i];

		if (at_ns < w->from_ns || at_ns >= w->to_ns)
			continue;
		if (w->n == w->room) {
			w->room = 2 * w->room + 1024;
			for (int k = 0; k < 2; k++)
				w->itl[k] = mem_grow(w->itl[k], w->room, sizeof(double));
		}
		w->itl[0][w->n] = itl[0];
		w->itl[1][w->n++] = itl[1];
		return;
	}
}

/* ---- figures of an alternation ---- */

static double median(double *x, size_t n)
{
	stats_sort(x, n);
	return stats_median(x, n);
}

static void add_figures(struct bench *b, const struct scene *s, struct turns *t, int k,
			struct pool *pool)
{
	const char *view = k == 0 ? "kernel" : "user";
	double p99[2][PAIRS], shift[PAIRS];
	size_t pairs = t->pairs;
	struct figure *f;

	for (size_t i = 0; i < 2 * pairs; i++) {
		struct window *w = &t->window[i];

		stats_sort(w->itl[k], w->n);
		p99[w->is_watched][i / 2] = stats_percentile(w->itl[k], w->n, 99);
	}
	for (size_t i = 0; i < pairs; i++) {
		shift[i] = p99[1][i] - p99[0][i];
		if (k == 0)
			pool->shift[pool->n++] = shift[i];
	}
	bench_add(b, "us", median(p99[0], pairs), "%s: |ITL error| p99, %s, not watched", s->name,
		  view);
	bench_add(b, "us", median(p99[1], pairs), "%s: |ITL error| p99, %s, watched", s->name, view);
	f = bench_add(b, "us", median(shift, pairs), "%s: shift of p99, %s", s->name, view);
	if (k == 0 && s->has_target) /* what is reported is measured by the kernel's stamps */
		figure_most(f, SHIFT_US_MAX);
}

/* Least and most of the figure are the ends of the interval. */
static void add_pooled(struct bench *b, const struct scene *s, struct pool *pool)
{
	double middle = median(pool->shift, pool->n);
	struct interval i;

	if (!pool->n)
		return;
	i = percentile_ranks(pool->shift, pool->n, 50, 1, LEVEL);
	if (isinf(i.low) || isinf(i.high))
		return;
	bench_add(b, "us", i.low, "%s: shift of p99, all pairs, 95 %%", s->name);
	bench_add(b, "us", middle, "%s: shift of p99, all pairs, 95 %%", s->name);
	bench_add(b, "us", i.high, "%s: shift of p99, all pairs, 95 %%", s->name);
}

/* ---- one alternation ---- */

static int send_in_turns(struct client *c, struct turns *t, struct err *e)
{
	struct err from_turns = { 0 };
	int rc;

	if (turns_start(t, e) < 0)
		return -1;
	rc = client_send(c, e);
	if (turns_join(t, &from_turns) == 0 || rc < 0)
		return rc;
	*e = from_turns;
	return -1;
}

/* When the first stream ended. */
static int64_t all_flow_until(const struct record *r)
{
	int64_t until_ns = INT64_MAX;

	for (uint32_t i = 0; i < r->n_rows; i++)
		if (r->row[i].last_event_ns < until_ns)
			until_ns = r->row[i].last_event_ns;
	return until_ns;
}

/* The thread that takes the turns may be late where the machine is full. */
static size_t pairs_outlasted(const struct turns *t, int64_t until_ns)
{
	size_t n = 0;

	while (2 * n < t->n && t->window[2 * n + 1].to_ns &&
	       t->window[2 * n + 1].to_ns <= until_ns)
		n++;
	return n;
}

static int join_windows(struct turns *t, const struct client *c, const struct oracle_truth *truth,
			uint32_t events, struct err *e)
{
	struct oracle_errors r;
	int rc;

	oracle_errors_init(&r, truth->n, events);
	r.gap = add_gap;
	r.gap_self = t;
	rc = oracle_join(&r, &c->record, 0, truth, 0, truth->n, events, e);
	oracle_errors_release(&r);
	t->pairs = pairs_outlasted(t, all_flow_until(&c->record));
	if (rc == 0 && t->pairs == 0)
		rc = err_set(e, ERR_RUN, "the run ended before two windows did");
	return rc;
}

static int measure(const struct scene *s, struct sim_child *sim, struct client *c, struct turns *t,
		   struct err *e)
{
	uint32_t events = turns_events(t, s);
	struct client_spec spec = { .base_url = sim->url, .requests = s->streams,
				    .output_len = events, .prompt_bytes = 64, .rate = INFINITY };
	struct oracle_truth truth = { 0 };
	struct rusage use = { 0 };
	int rc = client_prepare(c, &spec, e);

	t->pid = sim->child.pid;
	if (rc == 0)
		rc = send_in_turns(c, t, e);
	sim_child_stop(sim, &use);
	if (rc == 0)
		rc = oracle_read(&truth, sim->truth, "b", s->streams, e);
	if (rc == 0)
		rc = join_windows(t, c, &truth, events, e);
	oracle_release(&truth);
	return rc;
}

static int run_scene(struct bench *b, const struct scene *s, unsigned repeat, struct pool *pool,
		     struct err *e)
{
	char itl_ms[16];
	const char *args[9] = { "--ttft-ms", "50", "--itl-ms", itl_ms };
	struct client client = { 0 };
	struct sim_child sim;
	struct turns t;
	int rc;

	snprintf(itl_ms, sizeof(itl_ms), "%u", (unsigned)s->itl_ms);
	if (s->is_burst) {
		args[4] = "--burst-ms";
		args[5] = itl_ms;
	}
	turns_init(&t, b, repeat);
	rc = sim_child_start(&sim, b, false, args, e);
	if (rc == 0)
		rc = measure(s, &sim, &client, &t, e);
	for (int k = 0; rc == 0 && k < 2; k++)
		add_figures(b, s, &t, k, pool);
	turns_release(&t);
	client_release(&client);
	sim_child_release(&sim);
	return rc < 0 ? err_wrap(e, "%s streams", s->name) : 0;
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

/* The library that replaces the driver is in ../tests of this program's folder. */
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
	static struct pool pool[SCENES];
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "telemetry", argc, argv, &e);

	use_fake_gpus();
	if (!b.is_quick && b.repeats < REPEATS)
		b.repeats = REPEATS;
	for (unsigned k = 0; rc == 0 && k < b.repeats; k++) {
		rc = run_alone(&b, &e);
		for (size_t i = 0; rc == 0 && i < SCENES; i++)
			if (b.is_long || !scenes[i].is_long)
				rc = run_scene(&b, &scenes[i], k, &pool[i], &e);
	}
	for (size_t i = 0; rc == 0 && i < SCENES; i++)
		add_pooled(&b, &scenes[i], &pool[i]);
	return bench_end(&b, &e);
}
