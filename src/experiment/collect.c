/* SPDX-License-Identifier: Apache-2.0 */
/* collect.c - see run_parts.h: traces, the machine and its versions. */
#include <stdlib.h>

#include "experiment/config.h"
#include "experiment/environment.h"
#include "experiment/hardware.h"
#include "experiment/run_parts.h"

#define INTERPRETER_S 20 /* to tell the versions of its packages */

static bool was_profiled(const struct run *r)
{
	return r->traces.dir && r->stage >= AT_BENCHMARK && r->x->mode != MODE_STARTUP;
}

bool collect_settle(struct run *r)
{
	struct buf notes = { 0 };
	bool is_whole;

	if (!was_profiled(r) || r->has_failed || !r->is_profiled)
		return true;
	run_line(r, "Waiting for traces in %s", r->traces.dir);
	is_whole = profiling_settle(r->x, &r->traces, r->hooks->cancel, &notes);
	run_notes(r, &notes);
	buf_release(&notes);
	return is_whole;
}

/* The numbers are good without it. */
static void say_no_trace(struct run *r)
{
	struct outcome *o = r->out;

	if (o->status != OUTCOME_COMPLETED)
		return;
	o->status = OUTCOME_PARTIAL;
	o->stage = AT_COLLECT;
	o->category = "no trace";
	o->reason = r->is_profiled ?
		arena_printf(&o->arena, "the profiler left no trace in %s", r->traces.dir) :
		"the profiler was not started, so there is no trace";
}

void collect_traces(struct run *r)
{
	struct buf notes = { 0 };

	if (!was_profiled(r))
		return;
	profiling_collect(r->x, &r->traces, r->out, &notes);
	run_notes(r, &notes);
	buf_release(&notes);
	if (r->out->n_traces == 0 && !r->has_failed)
		say_no_trace(r);
}

static const char *kind_of(const struct experiment_server *s)
{
	struct server_address where;

	if (!s || s->url || !s->command)
		return NULL;
	if (config_is_sim(s->command))
		return "sim";
	if (server_address(s->command, &where, NULL) < 0)
		return NULL;
	return where.kind == SERVER_VLLM ? "vllm" : where.kind == SERVER_SGLANG ? "sglang" :
		where.kind == SERVER_LLAMACPP ? "llama.cpp" : NULL;
}

static const char *get_env(const char *name)
{
	return getenv(name);
}

void collect_about(struct run *r)
{
	const struct experiment_server *s = r->x->n_servers ? &r->x->server[r->x->serving] : NULL;
	const struct held_server *h = r->x->serving < r->held->n ? &r->held->server[r->x->serving]
		: NULL;
	bool has_interpreter = s && !s->url && !s->container && !config_is_sim(s->command);
	struct environment_opts o = {
		.command = has_interpreter ? s->command : NULL,
		.env = h ? h->env : NULL, .server_kind = kind_of(s),
		.server_version = h ? h->version : NULL,
		.deadline_s = run_is_cancelled(r) ? 0 : INTERPRETER_S,
	};
	struct buf text = { 0 };

	hardware_json("", &text);
	r->out->hardware = run_keep(r, &text);
	environment_json(&o, &text);
	r->out->environment = run_keep(r, &text);
	provenance_json(r->x->provenance, o.server_version, get_env, &text);
	r->out->provenance = run_keep(r, &text);
}
