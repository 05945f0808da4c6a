/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the client's memory for one open stream, without its record and its body.
 *
 * How the shares are separated: the bodies are serialized and every page of the record (rows, gaps,
 * skews, marks, text) is touched before the first resident size is read. Then N streams are opened
 * and held while each brings a token every second; the growth of the resident size, measured when
 * all have brought one, is what the client holds for being connected: flights, connections, what
 * parsers keep between reads, the loop. The kernel's own memory for a socket is not part of any
 * process.
 */
#include <malloc.h>
#include <math.h>

#include "client/load/flight.h"
#include "client/load/native.h"
#include "kit/kit.h"

#define PLAIN_EVENTS 4

struct watched {
	struct client *client;
	uint32_t streams;
	int64_t rss_most;
};

/* On the main thread five times a second: the size while all streams are open. */
static void on_tick(void *self)
{
	struct watched *w = self;
	struct load_totals t = load_progress_total(w->client->progress);
	int64_t rss;

	if (t.tokens < w->streams || t.done)
		return;
	rss = bench_rss();
	if (rss > w->rss_most)
		w->rss_most = rss;
}

/* Opens n streams against url; bytes gets the growth per stream. */
static int hold(const char *url, uint32_t n, uint32_t events, double *bytes, struct err *e)
{
	struct client client = { 0 };
	struct watched w = { &client, n, 0 };
	struct client_spec spec = { .base_url = url, .requests = n, .output_len = events,
				    .prompt_bytes = 64, .rate = INFINITY, .is_insecure = true,
				    .tick = on_tick, .tick_self = &w };
	int rc = client_prepare(&client, &spec, e);
	int64_t before;

	malloc_trim(0); /* what earlier runs freed goes back first, or it would hide growth */
	before = bench_rss();
	if (rc == 0)
		rc = client_send(&client, e);
	if (rc == 0 && w.rss_most == 0)
		rc = err_set(e, ERR_RUN, "%u streams were never open all at once", n);
	if (rc == 0)
		*bytes = (double)(w.rss_most - before) / n;
	client_release(&client);
	return rc;
}

static int run_plain(struct bench *b, uint32_t n, struct err *e)
{
	struct canned_spec spec = { .events = PLAIN_EVENTS, .per_send = 1, .wait_for = n,
				    .interval_ns = 1000000000 / n };
	struct canned server = { 0 };
	double bytes;
	int rc = canned_start(&server, &spec, e);

	if (rc == 0)
		rc = hold(server.url, n, PLAIN_EVENTS, &bytes, e);
	if (rc == 0)
		figure_most(bench_add(b, "bytes", bytes, "plain, %u streams: per stream", n), 512);
	canned_stop(&server, NULL);
	return rc;
}

static int run_tls(struct bench *b, uint32_t n, struct err *e)
{
	const char *args[] = { "--ttft-ms", "6000", "--itl-ms", "1000", NULL };
	struct sim_child sim;
	double bytes;
	int rc = sim_child_start(&sim, b, true, args, e);

	if (rc == 0)
		rc = hold(sim.url, n, 3, &bytes, e);
	if (rc == 0)
		figure_most(bench_add(b, "bytes", bytes, "TLS, %u streams: per stream", n), 32768);
	sim_child_release(&sim);
	return rc;
}

int main(int argc, char **argv)
{
	struct bench b;
	struct err e = { 0 };
	double ignored;
	int rc = bench_begin(&b, "memory", argc, argv, &e);
	struct canned_spec warm = { .events = 20, .per_send = 1, .wait_for = 10,
				    .interval_ns = 10000000 };
	struct canned server = { 0 };

	/* Once small, so that code and libraries are resident before anything is counted. */
	if (rc == 0)
		rc = canned_start(&server, &warm, &e);
	if (rc == 0)
		rc = hold(server.url, 10, 20, &ignored, &e);
	canned_stop(&server, NULL);
	for (unsigned k = 0; rc == 0 && k < b.repeats; k++) {
		rc = run_plain(&b, 1000, &e);
		if (rc == 0 && !b.is_quick)
			rc = run_plain(&b, 10000, &e);
		if (rc == 0)
			rc = run_tls(&b, b.is_quick ? 100 : 1000, &e);
		bench_add(&b, "bytes", sizeof(struct flight), "of these, a flight (by sizeof)");
		bench_add(&b, "bytes", sizeof(struct connection), "of these, a connection (by sizeof)");
	}
	return bench_end(&b, &e);
}
