/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - see sim.h: sets up a server from its options; its loop, files and shutdown. */
#include "sim/serving/sim.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "sim/serving/serving.h"

#define BACKLOG 4096
/* Between two shares of file writing while answers are in progress. */
#define FLUSH_PAUSE_NS 1000000
#define FLUSH_BYTES 16384

struct sim_opts sim_defaults(void)
{
	return (struct sim_opts){
		.host = "127.0.0.1", .port = 8000, .model = "sim", .tokenizer = TOKENIZER_SIM,
		.max_model_len = 131072, .tokens_per_event = 1, .max_num_seqs = 256,
		.max_num_batched_tokens = 8192, .kv_cache_tokens = 400000,
		.block_size = 16, .engines = 1,
		.tool_call_share = 1, .tool_calls_max = 1,
		.is_prefix_cached = true, .spec_acceptance = 0.7, .diffusion_steps = 8,
		.cost = { .prefill_base_us = 2000, .prefill_us_per_token = 80,
			  .decode_base_us = 12000, .decode_us_per_seq = 40 },
	};
}

/* ---- setting up ---- */

void sim_engine_init(struct sim_engine *g, struct prefix_cache *p, const struct sim_opts *o)
{
	assert(!p->cap);
	engine_init(g, o->cost, (size_t)o->max_num_seqs, (uint32_t)o->max_num_batched_tokens);
	if (o->is_prefix_cached) {
		prefix_init(p, (size_t)o->kv_cache_tokens);
		g->prefix = p;
	}
	g->kv_tokens = (uint64_t)o->kv_cache_tokens;
	g->kv_block = (uint32_t)o->block_size;
	g->drafted = (uint32_t)o->spec_tokens;
	g->chunk_max = (uint32_t)o->chunk_max;
	g->is_prompt_whole = o->is_prompt_whole;
	g->is_by_priority = o->is_by_priority;
	g->loras_max = (uint32_t)o->loras_max;
}

static void lanes_init(struct sim *s)
{
	s->lanes = (size_t)s->opts->engines;
	s->lane = mem_array(s->lanes, sizeof(*s->lane));
	for (size_t i = 0; i < s->lanes; i++) {
		struct sim_lane *l = &s->lane[i];

		*l = (struct sim_lane){ .sim = s, .step.on_time = stream_on_step };
		sim_engine_init(&l->engine, &l->prefix, s->opts);
	}
}

static int pacing_init(struct sim *s, struct err *e)
{
	const struct sim_opts *o = s->opts;

	s->is_oracle = o->ttft_ms || o->itl_ms || o->burst_ms > 0;
	s->burst_ns = (int64_t)llround(o->burst_ms * 1e6);
	s->has_output_len = o->output_len != NULL;
	s->itl.a = o->burst_ms;
	if (o->ttft_ms && dist_parse(&s->ttft, "--ttft-ms", o->ttft_ms, e) < 0)
		return -1;
	if (o->itl_ms && dist_parse(&s->itl, "--itl-ms", o->itl_ms, e) < 0)
		return -1;
	if (o->output_len && dist_parse(&s->output_len, "--output-len", o->output_len, e) < 0)
		return -1;
	for (size_t i = 0; i < o->fault_count; i++)
		if (fault_add(&s->faults, o->faults[i], e) < 0)
			return -1;
	if (!s->is_oracle && fault_paces(&s->faults))
		return err_set(e, ERR_USAGE, "--fault: stall and slow-start, -headers and -body "
			       "change the oracle's pacing, so they need --ttft-ms, --itl-ms or "
			       "--burst-ms");
	if ((o->spec_tokens > 0) + (o->diffusion_block > 0) + (o->tokens_per_event > 1) > 1)
		return err_set(e, ERR_USAGE, "--tokens-per-event, --spec-tokens and "
			       "--diffusion-block each decide how many tokens an event has; give "
			       "one of them");
	s->counters.positions = (size_t)o->spec_tokens;
	s->counters.has_diffusion = o->diffusion_block > 0;
	s->counters.kv_block_tokens = (uint64_t)o->block_size;
	s->counters.kv_blocks = (uint64_t)(o->kv_cache_tokens / o->block_size);
	s->counters.engines = (size_t)o->engines;
	s->ask.knows = ASK_KNOWS_FORMAT | (o->is_guided ? ASK_KNOWS_GUIDED : ASK_KNOWS_STRUCTURED);
	if (o->is_constraint_ignored)
		s->ask.knows = 0;
	lanes_init(s);
	return 0;
}

static int files_open(struct sim *s, struct err *e)
{
	const struct sim_opts *o = s->opts;

	s->truth.faults = &s->faults;
	if (o->truth_file && sink_open(&s->truth.sink, "--truth", o->truth_file, e) < 0)
		return -1;
	if (o->requests_file && sink_open(&s->requests, "--requests", o->requests_file, e) < 0)
		return -1;
	return 0;
}

static uint16_t addr_port(const char *text)
{
	struct str port = str_of(strrchr(text, ':') + 1);
	uint64_t v = 0;
	bool is_number = str_to_u64(port, &v);

	assert(is_number && v <= UINT16_MAX);
	(void)is_number;
	return (uint16_t)v;
}

static int listen_on(struct sim *s, struct err *e)
{
	const struct sim_opts *o = s->opts;
	struct sock_addr addr[SOCK_ADDRS_MAX];
	char text[sizeof(addr->local.sun_path) + 8];
	struct buf url = { 0 };

	if (o->uds ? sock_addr_unix(o->uds, &addr[0], e) < 0 :
		     sock_resolve(o->host, o->port, addr, e) < 0)
		return -1;
	s->listener = (struct watch){ .events = EPOLLIN, .on_ready = conn_accept };
	s->listener.fd = sock_listen(&addr[0], BACKLOG, e);
	if (s->listener.fd < 0)
		return -1;
	sock_addr_text(&addr[0], text, sizeof(text));
	if (!o->uds)
		s->port = addr_port(text);
	buf_printf(&url, "%s%s", o->uds ? "" : s->tls ? "https://" : "http://", text);
	s->url = buf_take(&url);
	return loop_watch(s->loop, &s->listener, e);
}

static int port_file_write(const struct sim *s, struct err *e)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u\n", (unsigned)s->port);

	if (file_write_atomic(s->opts->port_file, (struct str){ text, (size_t)n }, e) < 0)
		return err_wrap(e, "--port-file");
	return 0;
}

static int tls_init(struct sim *s, struct err *e)
{
	struct tls_opts opts = { .cert_file = s->opts->cert_file, .key_file = s->opts->key_file,
				 .ca_file = s->opts->client_ca_file, .is_server = true };

	if (!opts.cert_file && !opts.key_file)
		return opts.ca_file ? err_set(e, ERR_USAGE, "--ssl-ca-certs needs --ssl-certfile and "
					      "--ssl-keyfile") : 0;
	if (!opts.cert_file || !opts.key_file)
		return err_set(e, ERR_USAGE, "--ssl-certfile and --ssl-keyfile go together");
	s->tls = tls_config_new(&opts, e);
	return s->tls ? 0 : -1;
}

static void on_flush(struct timer *t);

void sim_die(struct sim *s)
{
	s->is_dead = true;
	atomic_store(&s->is_stopping, true);
}

static void on_death(struct timer *t)
{
	sim_die((struct sim *)((char *)t - offsetof(struct sim, death)));
}

struct sim *sim_new(const struct sim_opts *opts, struct err *e)
{
	struct sim *s = mem_alloc(sizeof(*s));

	s->opts = opts;
	s->listener.fd = s->stamps = -1;
	s->read = mem_alloc(READ_BYTES);
	s->flush.on_time = on_flush;
	s->death.on_time = on_death;
	s->accept_again.on_time = conn_accept_again;
	s->origin_ns = clock_mono_ns();
	s->profiler.dir = opts->profile_dir;
	s->profiler.write_ns = opts->trace_ms * 1000000;
	s->id_base = clock_real_ns();
	if (kv_init(&s->kv, &opts->kv, e) < 0)
		goto fail;
	if (opts->is_proxy) {
		s->proxy = proxy_new(&opts->proxy, e);
		if (!s->proxy)
			goto fail;
	}
	if (pacing_init(s, e) < 0 || tls_init(s, e) < 0)
		goto fail;
	s->tokenizer = tokenizer_load(opts->tokenizer, NULL, e);
	if (!s->tokenizer || words_init(&s->words, s->tokenizer, e) < 0)
		goto fail;
	s->loop = loop_new(e);
	if (!s->loop || files_open(s, e) < 0)
		goto fail;
	sock_raise_nofile();
	s->stamps = sock_stamps_on(NULL);
	if (listen_on(s, e) < 0 || (opts->port_file && port_file_write(s, e) < 0))
		goto fail;
	return s;
fail:
	sim_free(s);
	return NULL;
}

void sim_free(struct sim *s)
{
	if (!s)
		return;
	while (s->conns) {
		conn_abort(s->conns);
		conn_free(s->conns);
	}
	truth_close(&s->truth, NULL);
	sink_close(&s->requests, NULL);
	sock_close(s->listener.fd);
	if (s->listener.fd >= 0 && s->opts->uds)
		unlink(s->opts->uds);
	sock_close(s->stamps);
	profiler_release(&s->profiler);
	proxy_free(s->proxy);
	kv_release(&s->kv);
	loop_free(s->loop);
	for (size_t i = 0; i < s->lanes; i++) {
		engine_release(&s->lane[i].engine);
		prefix_release(&s->lane[i].prefix);
	}
	free(s->lane);
	words_release(&s->words);
	tokenizer_free(s->tokenizer);
	tls_config_free(s->tls);
	ask_release(&s->ask);
	buf_release(&s->event);
	buf_release(&s->text);
	buf_release(&s->quoted);
	buf_release(&s->counters.loras_running);
	buf_release(&s->counters.loras_waiting);
	compose_release(s);
	buf_release(&s->plain);
	ids_release(&s->ids);
	free(s->read);
	free(s->url);
	free(s);
}

/* ---- serving ---- */

void sim_flush_soon(struct sim *s)
{
	if (s->flush.index == 0)
		loop_timer_set(s->loop, &s->flush, clock_mono_ns() + FLUSH_PAUSE_NS);
}

/* Writes a bounded share while answers are in progress, else everything. */
static void on_flush(struct timer *t)
{
	struct sim *s = (struct sim *)((char *)t - offsetof(struct sim, flush));
	bool is_left;

	do {
		is_left = truth_flush(&s->truth);
		is_left |= sink_flush(&s->requests, FLUSH_BYTES);
	} while (is_left && s->stream_count == 0);
	if (is_left)
		sim_flush_soon(s);
}

int sim_run(struct sim *s, struct err *e)
{
	struct err other = { 0 };
	int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int rc;

	if (s->opts->die_after_ns)
		loop_timer_set(s->loop, &s->death, clock_mono_ns() + s->opts->die_after_ns);
	/*
	 * Sleeps until something is due; polls for exact times only while answers are in progress.
	 */
	while (!atomic_load(&s->is_stopping))
		loop_poll(s->loop, INT64_MAX, s->stream_count > 0);
	while (s->conns) {
		conn_abort(s->conns);
		conn_free(s->conns);
	}
	rc = truth_close(&s->truth, e);
	if (sink_close(&s->requests, rc < 0 ? &other : e) < 0)
		rc = -1;
	s->busy_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns - loop_spun_ns(s->loop);
	if (rc == 0 && s->is_dead)
		rc = err_set(e, ERR_RUN, "the engine died, as --die-after wants it");
	return rc;
}

void sim_stop(struct sim *s)
{
	atomic_store(&s->is_stopping, true);
	loop_wake(s->loop);
}

uint16_t sim_port(const struct sim *s)
{
	return s->port;
}

const char *sim_url(const struct sim *s)
{
	return s->url;
}

bool sim_is_oracle(const struct sim *s)
{
	return s->is_oracle;
}

struct sim_summary sim_summary(const struct sim *s)
{
	return (struct sim_summary){
		.requests = s->arrivals, .events = s->events,
		.tokens = s->counters.generation_tokens, .busy_ns = s->busy_ns,
		.late_p50_ns = hist_percentile(&s->lag, 50),
		.late_p99_ns = hist_percentile(&s->lag, 99), .late_max_ns = hist_max(&s->lag),
	};
}
