/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - what one token event costs: the whole native client (sockets,
 * HTTP, server-sent events, JSON, record) next to a raw reader that only counts
 * bytes, against the same server in the same run. Where it is allowed the client also
 * runs with a stamp for every segment ("tap"), and the difference is what that costs.
 *
 *   steps      one event on each of 64 streams back to back, 2,000 times a second, as
 *              the step of an engine sends them: each read brings one event
 *   paced      one event per send, 100,000 a second in even distances: the same, but each
 *              event wakes the client
 *   flood      one event per send, as fast as the server can
 *   flood16    16 events per send, as fast as the server can: the limit of parsing
 */
#include <math.h>

#include "kit/kit.h"

#define STREAMS 64

struct scene {
	const char *name;
	uint32_t per_send, events; /* events: per stream */
	int64_t interval_ns, round_ns;
};

static const struct scene scenes[] = {
	{ "steps", 1, 3000, 0, 500000 },
	{ "paced", 1, 3000, 10000, 0 },
	{ "flood", 1, 10000, 0, 0 },
	{ "flood16", 16, 80000, 0, 0 },
};

struct cost {
	double cpu_us, per_s, per_cpu_s, per_read;
};

static struct cost cost_of(double cpu_ns, double wall_ns, uint64_t events, uint64_t reads)
{
	double n = (double)events;

	return (struct cost){ cpu_ns / n / 1e3, n / wall_ns * 1e9, n / cpu_ns * 1e9,
			      n / (double)reads };
}

static int run_raw(const struct scene *s, uint32_t events, struct cost *out, struct err *e)
{
	struct canned_spec spec = { events, s->per_send, STREAMS, s->interval_ns,
				    s->round_ns };
	struct canned server = { 0 };
	struct raw_result got;
	int rc = canned_start(&server, &spec, e);
	struct raw_spec raw = { .port = server.port, .connections = STREAMS, .requests = STREAMS,
				.answer_bytes = canned_answer_bytes(events) };

	if (rc == 0)
		rc = raw_run(&raw, &got, e);
	if (rc == 0)
		*out = cost_of((double)got.cpu_ns, (double)got.wall_ns, (uint64_t)STREAMS * events,
			       got.reads);
	canned_stop(&server, NULL);
	return rc;
}

static int run_client(const struct scene *s, uint32_t events, bool is_tapped, struct cost *out,
		      struct err *e)
{
	struct canned_spec spec = { events, s->per_send, STREAMS, s->interval_ns,
				    s->round_ns };
	struct client client = { 0 };
	struct canned server = { 0 };
	struct client_spec ask = { .requests = STREAMS, .output_len = events, .prompt_bytes = 64,
				   .rate = INFINITY, .is_tapped = is_tapped };
	int rc = canned_start(&server, &spec, e);

	ask.base_url = server.url;
	if (rc == 0)
		rc = client_prepare(&client, &ask, e);
	if (rc == 0)
		rc = client_send(&client, e);
	if (rc == 0)
		*out = cost_of((double)client.stats.cpu_ns, (double)client.stats.wall_ns,
			       (uint64_t)STREAMS * events, client.stats.net.reads);
	client_release(&client);
	canned_stop(&server, NULL);
	return rc;
}

static void add_figures(struct bench *b, const struct scene *s, const struct cost *raw,
			const struct cost *own)
{
	struct figure *f;

	bench_add(b, "us", raw->cpu_us, "%s: CPU per event, raw reader", s->name);
	bench_add(b, "us", own->cpu_us, "%s: CPU per event, profllm", s->name);
	f = bench_add(b, "x", own->cpu_us / raw->cpu_us, "%s: profllm / raw", s->name);
	if (s->interval_ns || s->round_ns)
		figure_most(f, 1.2);
	f = bench_add(b, "events/s", own->per_cpu_s, "%s: events per core second, profllm", s->name);
	if (s->per_send > 1)
		figure_least(f, 2e6);
	bench_add(b, "events/s", own->per_s, "%s: events per second, profllm", s->name);
	bench_add(b, "events/s", raw->per_s, "%s: events per second, raw reader", s->name);
	bench_add(b, "events", own->per_read, "%s: events per read, profllm", s->name);
	bench_add(b, "events", raw->per_read, "%s: events per read, raw reader", s->name);
}

static void add_tap(struct bench *b, const struct scene *s, const struct cost *own,
		    const struct cost *tap)
{
	struct figure *f;

	bench_add(b, "us", tap->cpu_us, "%s: CPU per event, profllm, tap", s->name);
	f = bench_add(b, "us", tap->cpu_us - own->cpu_us, "%s: CPU per event, of the tap", s->name);
	if (s->interval_ns || s->round_ns)
		figure_most(f, 0.5);
	bench_add(b, "events/s", tap->per_s, "%s: events per second, profllm, tap", s->name);
	bench_add(b, "events", tap->per_read, "%s: events per read, profllm, tap", s->name);
}

int main(int argc, char **argv)
{
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "events", argc, argv, &e);
	bool has_tap = client_may_tap();

	for (unsigned k = 0; rc == 0 && k < b.repeats; k++) {
		for (size_t i = 0; rc == 0 && i < sizeof(scenes) / sizeof(*scenes); i++) {
			uint32_t events = b.is_quick ? scenes[i].events / 20 : scenes[i].events;
			struct cost raw, own, tap;

			events -= events % scenes[i].per_send;
			rc = run_raw(&scenes[i], events, &raw, &e);
			if (rc == 0)
				rc = run_client(&scenes[i], events, false, &own, &e);
			if (rc == 0 && has_tap)
				rc = run_client(&scenes[i], events, true, &tap, &e);
			if (rc != 0)
				break;
			add_figures(&b, &scenes[i], &raw, &own);
			if (has_tap)
				add_tap(&b, &scenes[i], &own, &tap);
		}
	}
	return bench_end(&b, &e);
}
