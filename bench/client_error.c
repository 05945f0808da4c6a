/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_error.c - how far the client's stamps are from what the server did.
 *
 * The simulator paces N streams exactly and writes down when it sent each
 * event; the client measures them; both are joined by request id. Kernel and
 * user-space stamps come from the same run: the record keeps the kernel's, and
 * beside each how much later user space read it.
 *
 * TTFT error: (first event - sent) of the client minus (first send - receive)
 * of the server. ITL error: the same for the time between two events, without
 * sign. Stamp error: arrival as the client has it minus the send stamp; it
 * includes the server's own send path of a few microseconds.
 */
#include <math.h>

#include "kit/kit.h"
#include "stats/stats.h"

struct scene {
	const char *name;
	uint32_t streams, events;
	const char *itl_ms, *burst_ms;
	bool is_long, has_targets;
};

static const struct scene scenes[] = {
	{ "1", 1, 400, "10", NULL, false, false },
	{ "10", 10, 200, "10", NULL, false, false },
	{ "100", 100, 200, "10", NULL, false, false },
	{ "1000", 1000, 200, "10", NULL, false, true },
	{ "burst256", 256, 100, "20", "20", false, true },
	{ "10000", 10000, 30, "100", NULL, true, false },
};

static void add_figures(struct bench *b, const struct scene *s, struct errors *r)
{
	static const char *const view[] = { "kernel", "user" };
	struct figure *f = bench_add(b, "us", stats_mean(r->ttft, r->n_ttft), "%s: mean |TTFT error|",
				     s->name);

	if (s->has_targets && !s->burst_ms)
		figure_most(f, 100);
	for (int k = 0; k < 2; k++) {
		bench_add(b, "us", stats_percentile(r->itl[k], r->n_itl, 50),
			  "%s: |ITL error| p50, %s", s->name, view[k]);
		f = bench_add(b, "us", stats_percentile(r->itl[k], r->n_itl, 99),
			      "%s: |ITL error| p99, %s", s->name, view[k]);
		if (s->has_targets && k == 0)
			figure_most(f, 20);
		bench_add(b, "us", r->itl[k][r->n_itl - 1], "%s: |ITL error| max, %s", s->name,
			  view[k]);
		bench_add(b, "us", stats_percentile(r->stamp[k], r->n_stamp, 50),
			  "%s: stamp error p50, %s", s->name, view[k]);
		bench_add(b, "us", stats_percentile(r->stamp[k], r->n_stamp, 99),
			  "%s: stamp error p99, %s", s->name, view[k]);
	}
}

static int measure(struct bench *b, const struct scene *s, struct sim_child *sim, struct client *c,
		   uint32_t events, struct err *e)
{
	struct client_spec spec = { .base_url = sim->url, .requests = s->streams,
				    .output_len = events, .prompt_bytes = 64, .rate = INFINITY };
	struct truth_table truth = { 0 };
	struct rusage use = { 0 };
	struct errors r;
	int rc = -1;

	errors_init(&r, s->streams, events);
	if (client_prepare(c, &spec, e) < 0 || client_send(c, e) < 0)
		goto done;
	sim_child_stop(sim, &use);
	if (truth_read(&truth, sim->truth, s->streams, e) < 0 ||
	    errors_join(&r, c, &truth, events, e) < 0)
		goto done;
	add_figures(b, s, &r);
	bench_add(b, "%", 100.0 * (double)r.n_shared / (double)r.n_stamp, "%s: events in shared reads",
		  s->name);
	bench_add(b, "%", 100.0 * (double)c->stats.cpu_ns / (double)c->stats.wall_ns,
		  "%s: client CPU", s->name);
	bench_add(b, "%", 1e11 * bench_cpu_s(&use) / (double)c->stats.wall_ns, "%s: simulator CPU",
		  s->name);
	if (!c->stats.is_kernel_stamped)
		err_set(e, ERR_RUN, "this kernel gives no receive stamps");
	rc = e->code ? -1 : 0;
done:
	truth_release(&truth);
	errors_release(&r);
	return rc;
}

static int run_scene(struct bench *b, const struct scene *s, struct err *e)
{
	uint32_t events = b->is_quick ? 20 : s->events;
	const char *args[9] = { "--ttft-ms", "50", "--itl-ms", s->itl_ms };
	struct sim_child sim;
	struct client client = { 0 };
	int rc;

	if (s->burst_ms) {
		args[4] = "--burst-ms";
		args[5] = s->burst_ms;
	}
	rc = sim_child_start(&sim, b, false, args, e);
	if (rc == 0)
		rc = measure(b, s, &sim, &client, events, e);
	client_release(&client);
	sim_child_release(&sim);
	return rc < 0 ? err_wrap(e, "%s streams", s->name) : 0;
}

int main(int argc, char **argv)
{
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "client_error", argc, argv, &e);

	for (unsigned k = 0; rc == 0 && k < b.repeats; k++)
		for (size_t i = 0; rc == 0 && i < sizeof(scenes) / sizeof(*scenes); i++)
			if (b.is_long || !scenes[i].is_long)
				rc = run_scene(&b, &scenes[i], &e);
	return bench_end(&b, &e);
}
