/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_offline.c - see run_parts.h: what is measured of an engine without a server.
 *
 * The words of the experiment are read by the verb's own set of options, as its command reads
 * them, so that rules and texts are the same; its result file is written into the experiment's
 * folder and becomes the outcome's result. The engine gets the GPUs of the experiment's one server,
 * which is not started.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "experiment/run_parts.h"
#include "run/latency.h"
#include "run/offline.h"
#include "run/prefix_bench.h"
#include "run/prioritization.h"
#include "run/startup.h"
#include "run/throughput.h"

struct bench {
	struct run *run;
	struct opt_set set;
	struct opt_foreign foreign[2];
	struct opt_result given;
	struct offline_engine engine;
	struct offline_hooks hooks;
	struct run_watch watch;
	struct arena arena;
	const char *path;           /* of the result */
	bool is_tracing;            /* of latency: the batch that is profiled, after all else */
};

/* ---- words ---- */

/*
 * Every name passes: what stands here was judged with the configuration. A name takes what follows
 * up to the next one.
 */
static int any_words(const void *self, char *const *argv, bool is_whole, struct err *e)
{
	int n = 1;

	(void)self;
	(void)is_whole;
	(void)e;
	if (strchr(argv[0], '='))
		return 1;
	while (argv[n] && (argv[n][0] != '-' || (argv[n][1] >= '0' && argv[n][1] <= '9')))
		n++;
	return n;
}

static void take_set(struct bench *b, const struct opt_set *set)
{
	b->set = *set;
	b->foreign[0] = *set->foreign;
	b->foreign[0].next = &b->foreign[1];
	b->foreign[1] = (struct opt_foreign){ .words = any_words };
	b->set.foreign = &b->foreign[0];
}

/* The GPUs it got, and the server's own environment, after what the verb says itself. */
static void add_env(struct bench *b)
{
	const struct run *r = b->run;
	const struct allocation *got = &r->held->allocation;
	char *const *lists[] = {
		b->engine.env,
		r->x->n_servers ? r->x->server[r->x->serving].env : NULL,
		got->n_servers ? got->server[r->x->serving].env : NULL,
	};
	size_t n = 0;
	char **all;

	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; lists[i] && lists[i][k]; k++)
			n++;
	all = arena_alloc(&b->arena, (n + 1) * sizeof(*all));
	n = 0;
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; lists[i] && lists[i][k]; k++)
			all[n++] = lists[i][k];
	b->engine.env = all;
}

/* What the engine's program prints is kept where logs of servers are. */
static void keep_log(struct bench *b, struct offline_opts *o)
{
	struct experiment_held *held = b->run->held;

	if (!o->worker_log) {
		o->worker_log = run_path(b->run, "engine.log");
		if (!b->is_tracing)
			unlink(o->worker_log); /* of an earlier run */
	}
	if (b->run->x->serving < held->n) {
		held->server[b->run->x->serving].log = o->worker_log;
		held->server[b->run->x->serving].started_by = b->run->out->run_id;
	}
	if (b->run->hooks->log_fd > 0)
		o->show_log = true;
}

static int read_words(struct bench *b, const struct opt_set *set, const struct offline_verb *verb,
		      void *values, struct err *e)
{
	const struct run *r = b->run;
	char *const *given = r->x->offline_argv;
	struct buf notes = { 0 };
	size_t n = 0;
	char **argv;
	int rc;

	if (r->x->mode != MODE_LATENCY || b->is_tracing) {
		rc = profiling_offline(r->x, r->traces.dir, 0, given, &b->arena, &given, &notes, e);
		run_notes(b->run, &notes);
		buf_release(&notes);
		if (rc < 0)
			return -1;
	}
	while (given[n])
		n++;
	argv = arena_alloc(&b->arena, (n + 1) * sizeof(*argv));
	memcpy(argv, given, n * sizeof(*argv));
	take_set(b, set);
	if (opt_parse(&b->set, (int)n, argv, values, &b->given, &b->arena, e) < 0 ||
	    offline_opts_check(&b->set, &b->given, verb, values, &b->engine, &b->arena,
			       &b->given.notes, e) < 0)
		return -1;
	add_env(b);
	keep_log(b, values);
	run_notes(b->run, &b->given.notes);
	return 0;
}

/* ---- the verbs ---- */

static int throughput(struct bench *b, struct err *e)
{
	struct throughput_opts o;
	struct throughput_plan plan;

	if (read_words(b, &throughput_opt_set, &throughput_verb, &o, e) < 0 ||
	    throughput_check(&o, &b->given, &b->engine, &plan, &b->given.notes, e) < 0)
		return -1;
	run_notes(b->run, &b->given.notes);
	o.output_json = b->path;
	return throughput_run(&o, &plan, &b->engine, &b->hooks, e);
}

static int latency(struct bench *b, struct err *e)
{
	struct latency_opts o;

	if (read_words(b, &latency_opt_set, &latency_verb, &o, e) < 0 ||
	    latency_check(&o, &b->engine, &b->given.notes, e) < 0)
		return -1;
	run_notes(b->run, &b->given.notes);
	o.output_json = b->path;
	return latency_run(&o, &b->engine, &b->hooks, e);
}

static int prioritization(struct bench *b, struct err *e)
{
	struct prioritization_opts o;

	if (read_words(b, &prioritization_opt_set, &prioritization_verb, &o, e) < 0 ||
	    prioritization_check(&o, e) < 0)
		return -1;
	prioritization_notes(&b->engine, &b->given.notes);
	run_notes(b->run, &b->given.notes);
	o.output_json = b->path;
	return prioritization_run(&o, &b->engine, &b->hooks, e);
}

static int prefixes(struct bench *b, const struct prefix_bench *verb, struct err *e)
{
	struct prefix_opts o;

	if (read_words(b, verb->set, &verb->verb, &o, e) < 0)
		return -1;
	o.output_json = b->path;
	return prefix_bench_run(&o, verb, &b->engine, &b->hooks, e);
}

static int prefix_caching(struct bench *b, struct err *e)
{
	return prefixes(b, &prefix_caching_bench, e);
}

static int long_document(struct bench *b, struct err *e)
{
	return prefixes(b, &long_document_bench, e);
}

static void tell_startup(struct bench *b, const struct startup_opts *o,
			 const struct startup_result *result)
{
	const struct offline_told told = { .command = "startup", .backend = o->common.backend,
					   .about = &result->about };
	struct buf text = { 0 };

	startup_terminal(&result->runs, &text);
	offline_told_line(&text, &told);
	buf_add_char(&text, '\n');
	startup_terminal_ours(&result->runs, &text);
	if (b->run->hooks->text)
		b->run->hooks->text(b->run->hooks->self, buf_str(&text));
	buf_release(&text);
}

static int startup(struct bench *b, struct err *e)
{
	struct startup_result result = { 0 };
	struct err unsaved = { 0 };
	struct startup_opts o;
	int rc;

	if (read_words(b, &startup_opt_set, &startup_verb, &o, e) < 0)
		return -1;
	startup_defaults(&o, &b->given, &b->engine);
	o.output_json = b->path;
	rc = startup_run(&o, &b->engine, &b->hooks, &result, e);
	if (result.is_started && (rc == 0 || result.runs.is_interrupted)) {
		tell_startup(b, &o, &result);
		if (startup_save(&o, &b->engine, &result, &unsaved) < 0 && rc == 0) {
			*e = unsaved;
			rc = -1;
		}
	}
	startup_result_release(&result);
	return rc;
}

/* ---- talk ---- */

static void on_line(void *self, const char *text)
{
	const struct run *r = ((struct bench *)self)->run;

	if (r->hooks->line)
		r->hooks->line(r->hooks->self, text);
}

static void on_warn(void *self, const char *text)
{
	run_warn(((struct bench *)self)->run, text);
}

static void on_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	struct bench *b = self;
	const struct experiment_hooks *hooks = b->run->hooks;

	watch_progress(&b->watch, what);
	if (hooks->progress)
		hooks->progress(hooks->self, what, done, total);
}

/* ---- what came of it ---- */

static void keep_result(struct bench *b)
{
	struct buf json = { 0 };

	if (file_exists(b->path) && file_read(b->path, BUF_BYTES_MAX, &json, NULL) == 0) {
		b->run->out->result = run_keep(b->run, &json);
		unlink(b->path);
	}
	buf_release(&json);
}

static int failed(struct run *r, const struct err *e)
{
	if (e->code == ERR_CANCELLED || run_is_cancelled(r))
		return run_interrupted(r);
	if (e->code == ERR_USAGE)
		r->stage = AT_CONFIG;
	return run_fail(r, e->code == ERR_USAGE ? "bad configuration" :
			e->code == ERR_IO ? "file" : "not measured", "%s", e->text);
}

/*
 * `bench latency --profile` runs the batch once and times nothing, so that is done by itself, once
 * everything is measured. That there is no trace is said by whoever collects them.
 */
static void trace_latency(struct run *r)
{
	struct bench b = { .run = r, .is_tracing = true, .path = run_path(r, ".result.json") };
	struct err e = { 0 };

	b.hooks = (struct offline_hooks){ .self = &b, .line = on_line, .warn = on_warn,
					  .cancel = &r->held->stop };
	run_line(r, "Starting the engine again, to profile it");
	if (latency(&b, &e) < 0)
		run_warn(r, e.text);
	unlink(b.path);
	opt_result_release(&b.given);
	arena_release(&b.arena);
}

int bench_offline(struct run *r)
{
	static int (*const mode[])(struct bench *b, struct err *e) = {
		[MODE_THROUGHPUT] = throughput, [MODE_LATENCY] = latency, [MODE_STARTUP] = startup,
		[MODE_PRIORITIZATION] = prioritization, [MODE_PREFIX_CACHING] = prefix_caching,
		[MODE_LONG_DOCUMENT] = long_document,
	};
	struct bench b = { .run = r };
	struct err e = { 0 };
	int rc;

	b.hooks = (struct offline_hooks){ .self = &b, .line = on_line, .warn = on_warn,
					  .progress = on_progress, .cancel = &r->held->stop };
	b.path = run_path(r, ".result.json");
	unlink(b.path);
	r->is_profiled = r->traces.dir != NULL; /* by the engine itself, as it was told */
	run_line(r, "Measuring %s", experiment_mode_name(r->x->mode));
	watch_begin_offline(r, &b.watch);
	rc = mode[r->x->mode](&b, &e);
	keep_result(&b);
	watch_end_offline(r, &b.watch);
	if (rc < 0)
		rc = failed(r, &e);
	else if (!r->out->result.n)
		rc = run_fail(r, "file", "%s: the result cannot be read", b.path);
	if (rc == 0 && r->x->mode == MODE_LATENCY && r->x->profiling.is_enabled)
		trace_latency(r);
	opt_result_release(&b.given);
	arena_release(&b.arena);
	return rc;
}
