/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requests.c - what one request costs: answers of one token, each in one send,
 * on 64 kept connections, next to a raw reader that sends and receives the same
 * bytes and looks at none: once with the cheapest calls there are, sending one
 * body again and again, and once with the calls and the memory that stamps and
 * prepared bodies need. Bodies are about 1 KB. Thread CPU from the first request
 * to the last answer.
 */
#include <math.h>

#include "kit/kit.h"

#define CONNECTIONS 64
#define REQUESTS 60000
#define REQUESTS_QUICK 3000

static void add_client(struct bench *b, const struct client *c, double n)
{
	const struct load_stats *s = &c->stats;

	figure_most(bench_add(b, "us", (double)s->cpu_ns / n / 1e3, "CPU per request, profllm"), 8);
	bench_add(b, "requests/s", n / (double)s->wall_ns * 1e9, "requests per second, profllm");
	bench_add(b, "%", 100.0 * (double)s->cpu_ns / (double)s->wall_ns, "client CPU, profllm");
	bench_add(b, "bytes", c->record.row[0].request_bytes, "bytes per request");
	bench_add(b, "", (double)s->net.connects, "connections opened, profllm");
}

static void add_raw(struct bench *b, const struct client *c, const struct raw_result *r,
		    const char *name, double n)
{
	bench_add(b, "us", (double)r->cpu_ns / n / 1e3, "CPU per request, %s", name);
	bench_add(b, "requests/s", n / (double)r->wall_ns * 1e9, "requests per second, %s", name);
	bench_add(b, "x", (double)c->stats.cpu_ns / (double)r->cpu_ns, "profllm / %s", name);
}

static int run_once(struct bench *b, struct err *e)
{
	struct canned_spec one = { .events = 1 };
	struct canned server = { 0 };
	struct client client = { 0 };
	struct client_spec spec = { .requests = b->is_quick ? REQUESTS_QUICK : REQUESTS,
				    .output_len = 1, .prompt_bytes = 800, .rate = INFINITY,
				    .cap = CONNECTIONS, .warm = CONNECTIONS };
	struct raw_spec raw = { .connections = CONNECTIONS, .requests = spec.requests,
				.body_bytes = 1100, .answer_bytes = canned_answer_bytes(1) };
	struct raw_result least, alike;
	double n = spec.requests;
	int rc = canned_start(&server, &one, e);

	spec.base_url = server.url;
	raw.port = server.port;
	if (rc == 0)
		rc = raw_run(&raw, &least, e);
	raw.is_like_ours = true;
	if (rc == 0)
		rc = raw_run(&raw, &alike, e);
	if (rc == 0)
		rc = client_prepare(&client, &spec, e);
	if (rc == 0)
		rc = client_send(&client, e);
	if (rc == 0) {
		add_client(b, &client, n);
		add_raw(b, &client, &least, "raw reader", n);
		add_raw(b, &client, &alike, "raw reader, our calls", n);
	}
	client_release(&client);
	canned_stop(&server, NULL);
	return rc;
}

int main(int argc, char **argv)
{
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "requests", argc, argv, &e);

	for (unsigned k = 0; rc == 0 && k < b.repeats; k++)
		rc = run_once(&b, &e);
	return bench_end(&b, &e);
}
