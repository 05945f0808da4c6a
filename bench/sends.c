/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sends.c - how late requests leave: the clock read before the first byte minus
 * the due time of the plan, Poisson arrivals at 1,000 a second.
 *
 *   alone      answers of one event: nothing else happens
 *   receiving  answers of 50 events, 10 ms apart: about 50,000 events a second
 *              come in meanwhile
 */
#include <math.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"
#include "kit/kit.h"

struct scene {
	const char *name;
	uint32_t requests, events;
	unsigned warm;
};

static const struct scene scenes[] = {
	{ "alone", 3000, 1, 100 },
	{ "receiving", 3000, 50, 700 },
};

static void add_figures(struct bench *b, const struct scene *s, const struct client *c)
{
	double *late = mem_array(c->record.n_rows, sizeof(*late));
	uint64_t shared = 0;
	size_t n = c->record.n_rows;

	for (size_t i = 0; i < n; i++) {
		late[i] = (double)(c->record.row[i].sent_ns - c->record.row[i].due_ns) / 1e3;
		shared += c->record.row[i].n_shared;
	}
	stats_sort(late, n);
	bench_add(b, "us", stats_percentile(late, n, 50), "%s: sent after due, p50", s->name);
	bench_add(b, "us", stats_percentile(late, n, 99), "%s: sent after due, p99", s->name);
	bench_add(b, "us", late[n - 1], "%s: sent after due, max", s->name);
	bench_add(b, "%", 100.0 * (double)c->stats.cpu_ns / (double)c->stats.wall_ns,
		  "%s: client CPU", s->name);
	bench_add(b, "events/s", (double)load_progress_total(c->progress).tokens * 1e9 /
		  (double)c->stats.wall_ns, "%s: events per second", s->name);
	bench_add(b, "", (double)c->stats.net.connects - s->warm, "%s: connections opened on the way",
		  s->name);
	bench_add(b, "events", (double)shared, "%s: events in shared reads", s->name);
	free(late);
}

static int run_scene(struct bench *b, const struct scene *s, struct err *e)
{
	static const char *const args[] = { "--ttft-ms", "10", "--itl-ms", "10", NULL };
	struct client client = { 0 };
	struct sim_child sim;
	struct client_spec spec = { .output_len = s->events, .prompt_bytes = 64, .rate = 1000,
				    .requests = b->is_quick ? 200 : s->requests, .warm = s->warm };
	int rc = sim_child_start(&sim, b, false, args, e);

	spec.base_url = sim.url;
	if (rc == 0)
		rc = client_prepare(&client, &spec, e);
	if (rc == 0)
		rc = client_send(&client, e);
	if (rc == 0)
		add_figures(b, s, &client);
	client_release(&client);
	sim_child_release(&sim);
	return rc < 0 ? err_wrap(e, "%s", s->name) : 0;
}

int main(int argc, char **argv)
{
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "sends", argc, argv, &e);

	for (unsigned k = 0; rc == 0 && k < b.repeats; k++)
		for (size_t i = 0; rc == 0 && i < sizeof(scenes) / sizeof(*scenes); i++)
			rc = run_scene(&b, &scenes[i], &e);
	return bench_end(&b, &e);
}
