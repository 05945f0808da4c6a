/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - the measuring client as a function call; see kit.h.
 *
 * The same prepare, load_run and record as `profllm bench serve` uses, with the
 * record kept as that command keeps it: skews and text.
 */
#include <math.h>

#include "bench/serve/prepare.h"
#include "client/endpoint/endpoint.h"
#include "core/base/mem.h"
#include "kit/kit.h"

#define BENCH_SEED 1

static void add_samples(struct workload *w, const struct client_spec *spec)
{
	char *prompt = mem_alloc(spec->prompt_bytes + 1), id[24];
	struct str text;

	for (size_t i = 0; i < spec->prompt_bytes; i++)
		prompt[i] = " the quick brown fox jumps"[i % 26];
	text = arena_str(&w->arena, (struct str){ prompt, spec->prompt_bytes });
	free(prompt);
	for (uint32_t i = 0; i < spec->requests; i++) {
		struct sample *s = workload_add(w);

		snprintf(id, sizeof(id), "b%u", i);
		s->prompt = text;
		s->kind = PROMPT_TEXT;
		s->output_len = spec->output_len;
		s->request_id = arena_str(&w->arena, str_of(id));
	}
}

static int make_bodies(struct client *c, struct err *e)
{
	struct prepare_opts opts = {
		.endpoint = c->load.endpoint,
		.encode = { .model = STR("sim"), .is_ignore_eos = true },
		.base_url = &c->base_url, .path = "/v1/completions", .proxy = &c->no_proxy,
		.n_urls = 1, .version = "bench",
	};

	return prepare(&opts, &c->plan, &c->workload, &c->prepared, e);
}

/* The record's memory is there before the clock starts, so growth is the client's own. */
static int make_record(struct client *c, const struct client_spec *spec, struct err *e)
{
	uint64_t events = (uint64_t)spec->requests * spec->output_len;
	uint64_t blocks = events + (uint64_t)spec->requests * EVENT_GAPS;

	if (record_init(&c->record, spec->requests, 1, blocks, true, true, e) < 0)
		return -1;
	slab_prefault(&c->record.shard[0].texts, events * 8 / TEXT_BYTES + 2 * spec->requests);
	slab_prefault(&c->record.shard[0].marks, events + spec->requests);
	record_add_rows(&c->record, spec->requests);
	return 0;
}

int client_prepare(struct client *c, const struct client_spec *spec, struct err *e)
{
	struct plan_opts arrivals = { .request_rate = spec->rate, .burstiness = 1 };
	struct compat_rng rng;

	*c = (struct client){ .base_url = spec->base_url };
	c->load = (struct load_opts){
		.transport = &transport_native, .endpoint = endpoint_find("vllm"),
		.net = { .base_url = &c->base_url, .n_endpoints = 1, .proxy = &c->no_proxy,
			 .is_insecure = spec->is_insecure, .is_stamped = true,
			 .connect_timeout_ns = 30000000000, .request_timeout_ns = 120000000000,
			 .warm_connections = spec->warm },
		.threads = 1, .max_concurrency = spec->cap,
		.tap = spec->is_tapped ? LOAD_TAP_NEEDED : LOAD_TAP_OFF,
		.phase = PHASE_MAIN, .tick = spec->tick, .tick_self = spec->tick_self,
	};
	c->progress = mem_alloc(sizeof(*c->progress));
	add_samples(&c->workload, spec);
	compat_rng_seed(&rng, BENCH_SEED);
	if (plan_arrivals(&c->plan, spec->requests, &arrivals, &rng, e) < 0 ||
	    make_bodies(c, e) < 0)
		return -1;
	return make_record(c, spec, e);
}

bool client_may_tap(void)
{
	struct err why;
	struct tap *t = tap_open(&why);

	tap_close(t);
	return t != NULL;
}

int client_send(struct client *c, struct err *e)
{
	struct buf why = { 0 };

	if (load_run(&c->load, &c->plan, &c->prepared, &c->record, 0, c->progress, &c->stats, NULL,
		     e) < 0)
		return -1;
	for (uint32_t i = 0; i < c->record.n_rows; i++) {
		const struct request_row *row = &c->record.row[i];

		if (row->state == REQ_DONE)
			continue;
		record_error_of(&c->record, row, &why);
		err_set(e, ERR_RUN, "request %u failed (%s): %s", i, fail_name(row->fail),
			why.len ? why.data : "");
		buf_release(&why);
		return -1;
	}
	return 0;
}

void client_release(struct client *c)
{
	record_release(&c->record);
	prepared_release(&c->prepared);
	plan_release(&c->plan);
	workload_release(&c->workload);
	free(c->progress);
	*c = (struct client){ 0 };
}
