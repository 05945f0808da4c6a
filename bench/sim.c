/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.c - what one event costs the simulator, and how late it is sent: next to a server that does
 * nothing but send as many events of that size on as many connections, to the same reader, in the
 * same run. On loopback a send carries the peer's receive path, so that server is the floor.
 *
 *   100        100 streams of 100 events a second: the simulator waits between events
 *   1000       1,000 streams of 100 events a second: more than half of its core
 *   steps      256 streams, one event on each back to back every 20 ms, as an engine's step does
 *
 * --against PATH measures another build of the program as well, in turns with this one.
 */
#include "kit/kit.h"

struct scene {
	const char *name;
	uint32_t streams, events; /* events: per stream */
	const char *itl_ms, *burst_ms;
	int64_t interval_ns, round_ns;
};

static const struct scene scenes[] = {
	{ "100", 100, 400, "10", NULL, 100000, 0 },
	{ "1000", 1000, 400, "10", NULL, 10000, 0 },
	{ "steps", 256, 200, "20", "20", 0, 20000000 },
};

static int run_floor(const struct scene *s, uint32_t events, double *cpu_us, struct err *e)
{
	struct canned_spec spec = { events, 1, s->streams, s->interval_ns, s->round_ns };
	struct canned server = { 0 };
	struct raw_result got;
	struct raw_spec raw = { .connections = s->streams, .requests = s->streams,
				.answer_bytes = canned_answer_bytes(events) };
	int rc = canned_start(&server, &spec, e);

	raw.port = server.port;
	if (rc == 0)
		rc = raw_run(&raw, &got, e);
	if (rc == 0)
		*cpu_us = (double)canned_busy_ns(&server) / 1e3 / ((double)s->streams * events);
	canned_stop(&server, NULL);
	return rc;
}

static int run_sim(const char *binary, const struct scene *s, uint32_t events,
		   struct sim_said *said, struct err *e)
{
	const char *args[7] = { "--ttft-ms", "100", "--itl-ms", s->itl_ms };
	const struct bench with = { .binary = binary };
	struct raw_spec raw = { .connections = s->streams, .requests = s->streams,
				.tokens = events };
	struct raw_result got;
	struct sim_child sim;
	int rc;

	if (s->burst_ms) {
		args[4] = "--burst-ms";
		args[5] = s->burst_ms;
	}
	rc = sim_child_start(&sim, &with, false, args, e);
	raw.port = sim.port;
	if (rc == 0)
		rc = raw_run(&raw, &got, e);
	sim_child_stop(&sim, NULL);
	if (rc == 0)
		rc = sim_child_said(&sim, said, e);
	sim_child_release(&sim);
	return rc;
}

static void add_said(struct bench *b, const char *scene, const char *which,
		     const struct sim_said *said, double floor_us, bool has_target)
{
	struct figure *f;

	bench_add(b, "us", said->cpu_us, "%s: CPU per event, %s", scene, which);
	f = bench_add(b, "x", said->cpu_us / floor_us, "%s: %s / floor", scene, which);
	if (has_target)
		figure_most(f, 1.25);
	bench_add(b, "us", said->late_p50_ns / 1e3, "%s: sent after due, p50, %s", scene, which);
	bench_add(b, "us", said->late_p99_ns / 1e3, "%s: sent after due, p99, %s", scene, which);
	bench_add(b, "us", said->late_max_ns / 1e3, "%s: sent after due, max, %s", scene, which);
}

static int run_scene(struct bench *b, const struct scene *s, struct err *e)
{
	uint32_t events = b->is_quick ? s->events / 20 : s->events;
	struct sim_said other = { 0 }, own;
	double floor_us = 0;
	int rc = run_floor(s, events, &floor_us, e);

	if (rc == 0 && b->against)
		rc = run_sim(b->against, s, events, &other, e);
	if (rc == 0)
		rc = run_sim(b->binary, s, events, &own, e);
	if (rc < 0)
		return err_wrap(e, "%s", s->name);
	bench_add(b, "us", floor_us, "%s: CPU per event, floor", s->name);
	add_said(b, s->name, "profllm", &own, floor_us, s->streams == 1000);
	if (b->against) {
		add_said(b, s->name, "--against", &other, floor_us, false);
		bench_add(b, "x", own.cpu_us / other.cpu_us, "%s: profllm / --against", s->name);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "sim", argc, argv, &e);

	for (unsigned k = 0; rc == 0 && k < b.repeats; k++)
		for (size_t i = 0; rc == 0 && i < sizeof(scenes) / sizeof(*scenes); i++)
			rc = run_scene(&b, &scenes[i], &e);
	return bench_end(&b, &e);
}
