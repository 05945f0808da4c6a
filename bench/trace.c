/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - a trace of 100,000 requests: how long it takes until it can be sent, what that needs
 * of memory, and how late requests leave at the trace's own pace and at ten times that.
 *
 *   machine     no program at all: a thread that sleeps until 150 us before each arrival, then
 *               polls, as the loop does; nothing that runs on this machine is on time more often
 *   load        from the file to prompts of token ids, in a process that has done nothing yet
 *   null        answers in memory: what the driver alone is late
 *   server      HTTP to a server of canned answers of one event
 */
#include <math.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bench/serve/prepare.h"
#include "client/endpoint/endpoint.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/rng/rng.h"
#include "core/stats/stats.h"
#include "input/sets/datasets.h"
#include "input/token/tokenizer.h"
#include "kit/kit.h"

#define REQUESTS 100000
#define QUICK_REQUESTS 2000
#define PER_SECOND 1000.0     /* at the trace's own pace */
#define INPUT_MIN 64
#define INPUT_MAX 1024
#define FIRST_BLOCKS 500      /* beginnings that rows share */
#define LAG_P99_US_MAX 100
#define LOAD_S_MAX 10
#define WARM_CONNECTIONS 200
#define POLLED_NS 150000      /* as SPIN_NS_MIN of net/loop.c */

struct scene {
	const char *name;
	double speedup;
	bool is_null;
	bool is_polled; /* arrivals are nearer than a sleep is long: always the usual priority */
};

static const struct scene scenes[] = {
	{ "null, 1x", 1, true, false }, { "null, 10x", 10, true, true },
	{ "server, 1x", 1, false, false }, { "server, 10x", 10, false, true },
};

struct replay {
	struct tokenizer *tokenizer;
	struct dataset_opts data;
	struct dataset_env env;
	char dir[40], path[64];
};

/* ---- the trace ---- */

/* Poisson arrivals in whole milliseconds, as Mooncake's files have them. */
static void write_rows(uint32_t n, struct buf *out)
{
	struct pcg64 g;
	double at_s = 0;

	pcg64_seed(&g, 1);
	for (uint32_t i = 0; i < n; i++) {
		int64_t input = pcg64_bounded(&g, INPUT_MIN, INPUT_MAX);

		at_s -= log(1 - pcg64_double(&g)) / PER_SECOND;
		buf_printf(out, "{\"timestamp\": %lld, \"input_length\": %lld, \"output_length\": 1, "
			   "\"hash_ids\": [%lld, %u, %u]}\n", (long long)(at_s * 1000),
			   (long long)input, (long long)pcg64_bounded(&g, 0, FIRST_BLOCKS - 1),
			   FIRST_BLOCKS + 2 * i, FIRST_BLOCKS + 2 * i + 1);
	}
}

static int write_trace(struct replay *r, uint32_t n, struct err *e)
{
	struct buf text = { 0 };
	int rc;

	snprintf(r->dir, sizeof(r->dir), "/tmp/profllm-bench-XXXXXX");
	if (!mkdtemp(r->dir))
		return err_set(e, ERR_IO, "no folder can be made in /tmp");
	snprintf(r->path, sizeof(r->path), "%s/trace.jsonl", r->dir);
	write_rows(n, &text);
	rc = file_write_atomic(r->path, buf_str(&text), e);
	buf_release(&text);
	return rc;
}

static int begin(struct replay *r, uint32_t n, struct err *e)
{
	*r = (struct replay){ .tokenizer = tokenizer_load(TOKENIZER_SIM, NULL, e) };
	if (!r->tokenizer || write_trace(r, n, e) < 0)
		return -1;
	r->data = (struct dataset_opts){ .path = r->path, .trace_output_len = 1,
					 .trace_block_size = { true, 512 } };
	r->env = (struct dataset_env){ .tokenizer = r->tokenizer, .request_id_prefix = "b",
				       .backend = "vllm" };
	return 0;
}

static void end(struct replay *r)
{
	unlink(r->path);
	rmdir(r->dir);
	tokenizer_free(r->tokenizer);
}

static int make_workload(const struct replay *r, double speedup, struct workload *w, struct err *e)
{
	const struct dataset *d = dataset_find("trace");
	struct dataset_opts o = r->data;
	struct compat_rng rng;

	o.speedup = speedup;
	compat_rng_seed(&rng, 0);
	return d->build(&o, &r->env, &rng, w, e);
}

static int measure_load(struct bench *b, const struct replay *r, struct err *e)
{
	int64_t before = bench_rss(), start = clock_mono_ns();
	struct workload w = { 0 };
	int rc = make_workload(r, 1, &w, e);
	double took_s = (double)(clock_mono_ns() - start) / 1e9;
	uint64_t prompts = 0;

	for (size_t i = 0; rc == 0 && i < w.n; i++)
		prompts += w.v[i].prompt.n;
	if (rc == 0) {
		figure_most(bench_add(b, "s", took_s, "load: until all prompts are there"),
			    LOAD_S_MAX);
		bench_add(b, "MB", (double)(bench_rss() - before) / 1e6, "load: memory it took");
		bench_add(b, "MB", (double)prompts / 1e6, "load: of these, the prompts' text");
	}
	workload_release(&w);
	return rc;
}

/* ---- the machine ---- */

/* Arrivals of a Poisson process, as many as the trace has. */
static void measure_machine(struct bench *b, uint32_t n)
{
	double *late_us = mem_array(n, sizeof(*late_us));
	int64_t due_ns = clock_mono_ns() + 1000000, at_ns, now;
	struct timespec at;
	struct pcg64 g;

	pcg64_seed(&g, 2);
	prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
	for (uint32_t i = 0; i < n; i++) {
		due_ns -= (int64_t)(log(1 - pcg64_double(&g)) / PER_SECOND * 1e9);
		at_ns = due_ns - POLLED_NS;
		at = (struct timespec){ at_ns / 1000000000, at_ns % 1000000000 };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		do
			now = clock_mono_ns();
		while (now < due_ns);
		late_us[i] = (double)(now - due_ns) / 1e3;
	}
	stats_sort(late_us, n);
	bench_add(b, "us", stats_percentile(late_us, n, 99), "machine, 1x: late, p99");
	bench_add(b, "us", late_us[n - 1], "machine, 1x: late, max");
	free(late_us);
}

/* ---- sending ---- */

static int plan_times(struct client *c, struct err *e)
{
	double *at_s = mem_array(c->workload.n, sizeof(*at_s));
	const struct plan_opts opts = { .request_rate = INFINITY, .burstiness = 1,
					.timestamps_s = at_s };
	struct compat_rng rng;
	int rc;

	for (size_t i = 0; i < c->workload.n; i++)
		at_s[i] = c->workload.v[i].timestamp_s;
	compat_rng_seed(&rng, 0);
	rc = plan_arrivals(&c->plan, (uint32_t)c->workload.n, &opts, &rng, e);
	free(at_s);
	return rc;
}

static int prepare_client(struct client *c, const struct replay *r, const struct scene *s,
			  const char *url, struct err *e)
{
	struct prepare_opts how;

	*c = (struct client){ .base_url = url, .progress = mem_alloc(sizeof(*c->progress)) };
	c->load = (struct load_opts){
		.transport = s->is_null ? &transport_null : &transport_native,
		.endpoint = endpoint_find("vllm"),
		.net = { .base_url = &c->base_url, .n_endpoints = 1, .proxy = &c->no_proxy,
			 .is_stamped = true, .connect_timeout_ns = 30000000000,
			 .request_timeout_ns = 120000000000,
			 .warm_connections = s->is_null ? 0 : WARM_CONNECTIONS },
		.workload = &c->workload, .threads = 1, .phase = PHASE_MAIN,
	};
	how = (struct prepare_opts){
		.endpoint = c->load.endpoint,
		.encode = { .model = STR("sim"), .is_ignore_eos = true },
		.base_url = &c->base_url, .path = "/v1/completions", .proxy = &c->no_proxy,
		.n_urls = 1, .version = "bench", .request_id_prefix = "b",
	};
	if (make_workload(r, s->speedup, &c->workload, e) < 0 || plan_times(c, e) < 0 ||
	    prepare(&how, &c->plan, &c->workload, &c->prepared, e) < 0 ||
	    record_init(&c->record, c->plan.n, 1, 8ull * c->plan.n, true, true, e) < 0)
		return -1;
	record_add_rows(&c->record, c->plan.n);
	return 0;
}

static void add_figures(struct bench *b, const struct scene *s, const struct client *c)
{
	double *late = mem_array(c->record.n_rows, sizeof(*late));
	size_t n = c->record.n_rows, beyond = 0;

	for (size_t i = 0; i < n; i++) {
		late[i] = (double)(c->record.row[i].sent_ns - c->record.row[i].due_ns) / 1e3;
		beyond += late[i] > 1000;
	}
	stats_sort(late, n);
	bench_add(b, "us", stats_percentile(late, n, 50), "%s: sent after due, p50", s->name);
	figure_most(bench_add(b, "us", stats_percentile(late, n, 99), "%s: sent after due, p99",
			      s->name), LAG_P99_US_MAX);
	bench_add(b, "us", late[n - 1], "%s: sent after due, max", s->name);
	bench_add(b, "%", 100.0 * (double)beyond / (double)n, "%s: later than 1 ms", s->name);
	bench_add(b, "%", 100.0 * (double)c->stats.cpu_ns / (double)c->stats.wall_ns,
		  "%s: client CPU", s->name);
	free(late);
}

static int run_scene(struct bench *b, const struct replay *r, const struct scene *s,
		     struct err *e)
{
	const struct canned_spec answers = { .events = 1 };
	struct canned server = { 0 };
	struct client client = { 0 };
	int rc;

	if (b->is_realtime)
		(void)bench_set_realtime(!s->is_polled);
	rc = s->is_null ? 0 : canned_start(&server, &answers, e);
	if (rc == 0)
		rc = prepare_client(&client, r, s, s->is_null ? "http://127.0.0.1:1" : server.url, e);
	if (rc == 0)
		rc = client_send(&client, e);
	if (rc == 0)
		add_figures(b, s, &client);
	client_release(&client);
	if (!s->is_null)
		canned_stop(&server, NULL);
	return rc < 0 ? err_wrap(e, "%s", s->name) : 0;
}

int main(int argc, char **argv)
{
	struct replay r = { 0 };
	struct bench b;
	struct err e = { 0 };
	int rc = bench_begin(&b, "trace", argc, argv, &e);

	if (rc == 0)
		rc = begin(&r, b.is_quick ? QUICK_REQUESTS : REQUESTS, &e);
	if (rc == 0)
		rc = measure_load(&b, &r, &e);
	if (rc == 0)
		measure_machine(&b, b.is_quick ? QUICK_REQUESTS : REQUESTS);
	for (size_t i = 0; rc == 0 && i < sizeof(scenes) / sizeof(*scenes); i++)
		rc = run_scene(&b, &r, &scenes[i], &e);
	end(&r);
	return bench_end(&b, &e);
}
