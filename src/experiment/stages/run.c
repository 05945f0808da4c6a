/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - see experiment.h (experiment_run), run.h and run_internal.h: the order of the stages. */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "experiment/config/config.h"
#include "experiment/config/experiment.h"
#include "experiment/stages/run.h"
#include "experiment/stages/run_internal.h"
#include "host/hardware/hardware.h"

/* ---- traces, the machine and its versions ---- */

#define INTERPRETER_S 20 /* to tell the versions of its packages */

static bool was_profiled(const struct run *r)
{
	return r->traces.dir && r->stage >= AT_BENCHMARK && r->x->mode != MODE_STARTUP;
}

/*
 * Waits, while the servers run, until traces are complete. False: more may come, which would be
 * taken for another experiment's. Then lists them.
 */
static bool collect_settle(struct run *r)
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

/* Warns that there is no trace; the numbers are valid without it. */
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

static void collect_traces(struct run *r)
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

/* Records the machine, versions and provenance, also of a failed run. */
static void collect_about(struct run *r)
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

/* ---- talk ---- */

void run_line(const struct run *r, const char *fmt, ...)
{
	char line[2048];
	va_list args;

	if (!r->hooks->line)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	r->hooks->line(r->hooks->self, line);
}

void run_keep_warning(struct run *r, const char *text)
{
	struct outcome *o = r->out;
	const char **list = (const char **)(uintptr_t)o->warning;

	for (size_t i = 0; i < o->n_warnings; i++)
		if (strcmp(o->warning[i], text) == 0)
			return;
	if (o->n_warnings == RUN_WARNINGS_MAX)
		return;
	if (!list)
		list = arena_alloc(&o->arena, RUN_WARNINGS_MAX * sizeof(*list));
	list[o->n_warnings++] = arena_text(&o->arena, str_of(text));
	o->warning = list;
}

void run_warn(struct run *r, const char *text)
{
	run_keep_warning(r, text);
	if (r->hooks->warn)
		r->hooks->warn(r->hooks->self, text);
}

void run_notes(struct run *r, struct buf *notes)
{
	struct str rest = buf_str(notes);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		char *text = line.n ? mem_copy(line.p, line.n) : NULL;

		if (text)
			run_warn(r, text);
		free(text);
	}
	buf_reset(notes);
}

bool run_is_cancelled(const struct run *r)
{
	return r->hooks->cancel && atomic_load(r->hooks->cancel);
}

/* ---- the outcome ---- */

int run_fail(struct run *r, const char *category, const char *fmt, ...)
{
	struct outcome *o = r->out;
	char text[2048];
	va_list args;

	assert(r->stage <= AT_COLLECT && category);
	if (r->has_failed)
		return -1;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	r->has_failed = true;
	o->status = OUTCOME_FAILED;
	o->stage = r->stage;
	o->category = category;
	o->reason = arena_text(&o->arena, str_of(text));
	return -1;
}

int run_interrupted(struct run *r)
{
	r->out->is_interrupted = true;
	return run_fail(r, "interrupted", "stopped by a signal in the stage %s",
			outcome_stage_name(r->stage));
}

struct str run_keep(struct run *r, struct buf *text)
{
	struct str kept = arena_str(&r->out->arena, buf_str(text));

	buf_release(text);
	return kept;
}

char *run_path(const struct run *r, const char *name)
{
	return arena_printf(&r->held->arena, "%s/%s", r->x->output.folder, name);
}

void outcome_begin(struct outcome *o)
{
	unsigned char random[3] = { 0 };
	struct tm tm;
	time_t now;

	*o = (struct outcome){ .status = OUTCOME_COMPLETED, .began_real_ns = clock_real_ns() };
	now = o->began_real_ns / 1000000000;
	gmtime_r(&now, &tm);
	/* Without random bytes the name is only less unique. */
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random[0] = (unsigned char)(o->began_real_ns / 1000);
	strftime(o->run_id, sizeof(o->run_id), "exp_%Y%m%d_%H%M%S", &tm);
	snprintf(o->run_id + strlen(o->run_id), sizeof(o->run_id) - strlen(o->run_id),
		 "_%02x%02x%02x", random[0], random[1], random[2]);
}

void experiment_refused(const char *category, const char *reason, struct outcome *out)
{
	outcome_begin(out);
	out->status = OUTCOME_FAILED;
	out->stage = AT_CONFIG;
	out->category = arena_text(&out->arena, str_of(category));
	out->reason = arena_text(&out->arena, str_of(reason));
}

/* ---- stages ---- */

static int prepare(struct run *r)
{
	struct err e = { 0 };

	r->stage = AT_CONFIG;
	if (r->x->output.folder && file_mkdirs(r->x->output.folder, &e) < 0)
		return run_fail(r, "output", "%s", e.text);
	if (r->x->profiling.is_enabled)
		r->traces = (struct trace_place){
			.dir = profiling_folder(r->x, &r->out->arena),
			.since_real_ns = r->out->began_real_ns,
		};
	return mode_is_served(r->x->mode) ? bench_serve_check(r) : 0;
}

static int take_resources(struct run *r)
{
	struct experiment_held *held = r->held;
	enum allocate_fault fault = ALLOCATE_FAULT_NONE;
	struct err e = { 0 };

	assert(held->n_started == 0 && held->allocation.n_locks == 0);
	r->stage = AT_ALLOCATE;
	if (!held->gpus)
		held->gpus = gpu_open(NULL);
	if (allocate(r->x, r->out->run_id, held->gpus, r->hooks, &held->allocation, &fault,
		     &e) < 0) {
		if (fault == ALLOCATE_FAULT_CANCELLED || e.code == ERR_CANCELLED)
			return run_interrupted(r);
		return run_fail(r, allocate_fault_name(fault), "%s", e.text);
	}
	if (held->allocation.note)
		run_line(r, "%s", held->allocation.note);
	return 0;
}

/* Servers that run already write traces to the folder they were given, with those of others. */
static void go_on_with_traces(struct run *r)
{
	const struct experiment_held *held = r->held;
	struct arena *a = &r->out->arena;

	if (!r->traces.dir || !held->trace_dir)
		return;
	r->traces.is_others = held->is_trace_dir_own &&
			      strcmp(held->trace_dir, profiling_own_folder(r->x, a)) != 0;
	r->traces.dir = arena_text(a, str_of(held->trace_dir));
	r->traces.earlier = profiling_earlier(r->traces.dir, a);
}

/* Sets every server's address, once ports are known. */
static void take_places(struct run *r)
{
	struct experiment_held *held = r->held;
	const struct allocation *got = &held->allocation;

	held->n = r->x->n_servers;
	held->at = arena_alloc(&held->arena, (held->n + 1) * sizeof(*held->at));
	held->server = arena_alloc(&held->arena, (held->n + 1) * sizeof(*held->server));
	held->started = arena_alloc(&held->arena, (held->n + 1) * sizeof(*held->started));
	held->n_started = 0;
	held->trace_dir = r->traces.dir ? arena_text(&held->arena, str_of(r->traces.dir)) : NULL;
	held->is_trace_dir_own = held->trace_dir &&
		strcmp(held->trace_dir, profiling_own_folder(r->x, &held->arena)) == 0;
	for (size_t i = 0; i < held->n; i++) {
		unsigned port = i < got->n_servers ? got->server[i].port : 0;

		held->at[i] = command_at(&r->x->server[i], port, &held->arena);
		held->server[i].name = arena_text(&held->arena, str_of(r->x->server[i].name));
		held->server[i].startup_s = NAN;
		held->server[i].capacity = (struct capacity){ .is_known = false };
	}
}

/* Stops and releases everything. */
static void clear(struct experiment_held *held, const struct experiment_hooks *hooks)
{
	servers_stop(held, hooks);
	if (held->had_servers && held->allocation.n_gpus)
		allocate_settle(&held->allocation, held->gpus, hooks);
	allocate_release(&held->allocation);
	held->allocation = (struct allocation){ 0 };
	held->had_servers = false;
	held->n = held->n_started = 0;
}

static int live(struct run *r, bool is_reused)
{
	if (prepare(r) < 0)
		return -1;
	if (run_is_cancelled(r))
		return run_interrupted(r);
	if (is_reused && servers_reuse(r) == 0) {
		go_on_with_traces(r);
		guard_begin(r);
	} else {
		clear(r->held, r->hooks);
		if (take_resources(r) < 0)
			return -1;
		take_places(r);
		guard_begin(r);
		if (mode_is_served(r->x->mode) && servers_start(r) < 0)
			return -1;
	}
	r->stage = AT_BENCHMARK;
	if (r->x->search.find)
		return bench_capacity(r);
	return mode_is_served(r->x->mode) ? bench_serve(r) : bench_offline(r);
}

/* ---- beginning and end ---- */

static void held_free(struct experiment_held *held, const struct experiment_hooks *hooks)
{
	if (!held)
		return;
	clear(held, hooks);
	gpu_close(held->gpus);
	arena_release(&held->arena);
	free(held);
}

void experiment_run_at(const struct experiment *x, struct experiment_site *site,
		       const struct experiment_hooks *hooks, struct outcome *out)
{
	static const struct experiment_hooks silent;
	bool is_reused = site && site->held, is_kept, is_settled;
	struct experiment_held *held = is_reused ? site->held : mem_alloc(sizeof(*held));
	struct run r = { .x = x, .hooks = hooks ? hooks : &silent, .out = out, .held = held,
			 .began_mono_ns = clock_mono_ns() };

	assert(!held->run && !held->guard.has_thread); /* not re-entered */
	if (!is_reused)
		atomic_store(&held->died, -1);
	if (!*out->run_id)
		outcome_begin(out);
	assert(out->status == OUTCOME_COMPLETED && !out->reason);
	held->hooks = r.hooks;
	held->run = &r;
	r.needs_empty_caches = site && site->needs_empty_caches;
	live(&r, is_reused);
	guard_end(&r);
	is_settled = collect_settle(&r);
	is_kept = site && !r.has_failed && is_settled && servers_are_alive(held);
	held->run = NULL;
	if (!is_kept)
		servers_stop(held, r.hooks);
	collect_traces(&r);
	collect_about(&r);
	if (out->is_interrupted && out->result.n && out->status == OUTCOME_FAILED &&
	    out->stage == AT_BENCHMARK)
		out->status = OUTCOME_PARTIAL; /* there is a result of a part of it */
	servers_tell(&r);
	if (site)
		site->held = is_kept ? held : NULL;
	if (!is_kept)
		held_free(held, r.hooks);
	else
		held->hooks = &silent;
	out->duration_s = (double)(clock_mono_ns() - r.began_mono_ns) / 1e9;
}

void experiment_run(const struct experiment *x, const struct experiment_hooks *hooks,
		    struct outcome *out)
{
	experiment_run_at(x, NULL, hooks, out);
}

void experiment_leave(struct experiment_site *site, const struct experiment_hooks *hooks)
{
	static const struct experiment_hooks silent;

	if (site->held)
		site->held->hooks = hooks ? hooks : &silent;
	held_free(site->held, hooks ? hooks : &silent);
	site->held = NULL;
}
