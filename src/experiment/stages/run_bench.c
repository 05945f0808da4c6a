/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_bench.c - see run_internal.h: load on the serving server, by the stages of `bench serve`, and
 * measurements of an engine without a server.
 *
 * Options are added for what a document always has: the percentiles 50, 90, 95 and 99 of every
 * latency; the machine and the servers' processes, watched as `telemetry` says; the record.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/offline/latency.h"
#include "bench/offline/offline.h"
#include "bench/offline/prefix_bench.h"
#include "bench/offline/prioritization.h"
#include "bench/offline/startup.h"
#include "bench/offline/throughput.h"
#include "bench/serve/point.h"
#include "bench/serve/repeat.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "experiment/config/config.h"
#include "experiment/config/document.h"
#include "experiment/stages/run_internal.h"

#define NOWHERE "http://127.0.0.1:1" /* the address of a server that has not started yet */
#define TEST_REQUEST_S 60 /* how long a server that is ready may not answer a real request */

struct bench {
	struct run *run;
	struct serve_opts opts;
	struct serve_derived derived;
	struct multi_turn turns;    /* of that mode */
	struct repeat runs;
	enum point_stage stage;
	struct err err;             /* of storing what was measured */
	const char *failure;        /* why nothing succeeded; NULL: something did */
	struct arena arena;
};

/* ---- options ---- */

static bool is_given(const struct run *r, const char *name)
{
	return opt_given(&serve_opt_set, &r->x->serve_given, name);
}

/* A comma list with the required items added. */
static const char *with_items(const char *list, const char *items, struct arena *a)
{
	struct str rest = str_of(items);
	const char *out = list;

	while (rest.n) {
		struct str item = str_trim(str_cut(&rest, ','));

		if (item.n && !config_has_item(str_of(out), ',', item))
			out = arena_printf(a, "%s%s%.*s", out, *out ? "," : "", (int)item.n, item.p);
	}
	return out;
}

static struct opt_list own_processes(const struct run *r, struct arena *a)
{
	const char **v = arena_alloc(a, (r->held->n + 1) * sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < r->held->n; i++) {
		struct server *s = atomic_load(&r->held->server[i].server);
		char *name;

		if (!s)
			continue;
		/* Names of processes have letters, digits, '-', '_' and '.'. */
		name = arena_text(a, str_of(r->held->server[i].name));
		for (char *c = name; *c; c++)
			if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
				*c = '_';
		v[n++] = arena_printf(a, "%s=%lld", name, (long long)server_root(s));
	}
	return (struct opt_list){ .v = v, .n = n, .is_set = n > 0 };
}

static struct opt_list own_gpus(const struct run *r, struct arena *a)
{
	const struct allocation *got = &r->held->allocation;
	const char **v = arena_alloc(a, (got->n_gpus + 1) * sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < got->n_servers; i++)
		for (size_t k = 0; k < got->server[i].n_gpus && n < got->n_gpus; k++)
			v[n++] = got->server[i].gpu[k].uuid;
	return (struct opt_list){ .v = v, .n = n, .is_set = n > 0 };
}

/* "4xNAME": the number and kind of allocated GPUs. NULL: none. */
static const char *own_gpu_names(const struct run *r, struct arena *a)
{
	const struct allocation *got = &r->held->allocation;

	for (size_t i = 0; i < got->n_servers; i++)
		if (got->server[i].n_gpus)
			return arena_printf(a, "%zux%s", got->n_gpus, got->server[i].gpu[0].name);
	return NULL;
}

static bool is_attached(const struct run *r)
{
	for (size_t i = 0; i < r->x->n_servers; i++)
		if (r->x->server[i].url)
			return true;
	return false;
}

static void set_telemetry(const struct run *r, struct serve_opts *o, struct arena *a)
{
	const struct experiment_telemetry *t = &r->x->telemetry;
	/* The GPUs of attached servers are unknown, so all usable ones are watched. */
	bool has_gpus = r->held->allocation.n_gpus || is_attached(r);
	const char *what = "";

	if (t->is_enabled && t->gpu && has_gpus)
		what = "gpu";
	if (t->is_enabled && t->host)
		what = with_items(what, "host", a);
	if (t->is_enabled && t->process)
		what = with_items(what, "process", a);
	if (!is_given(r, "system-metrics"))
		o->system_metrics = *what ? what : "off";
	if (!is_given(r, "system-interval"))
		o->system_interval = t->interval_s;
	if (strcmp(o->system_metrics, "off") == 0)
		return;
	if (!is_given(r, "system-gpus"))
		o->system_gpus = own_gpus(r, a);
	if (!is_given(r, "system-pid"))
		o->system_pid = own_processes(r, a);
}

/* With a proxy or a cache server the metrics are the engines', of which there are several. */
static const char *engines_metrics(const struct run *r, struct arena *a)
{
	const char *urls = "";

	for (size_t i = 0; i < r->held->n; i++)
		if (role_has_engine(r->x->server[i].role))
			urls = arena_printf(a, "%s%s%s/metrics", urls, *urls ? "," : "",
					    r->held->at[i].url);
	return *urls ? urls : NULL;
}

static void set_outputs(const struct run *r, struct serve_opts *o, struct arena *a)
{
	const struct experiment_output *out = &r->x->output;

	if (out->keeps_record && out->folder && !o->record_path)
		o->record_path = arena_printf(a, "%s/run.rec", out->folder);
	if (out->is_detailed)
		o->save_detailed = true;
	if (!is_given(r, "ready-check-timeout-sec"))
		o->ready_check_timeout_sec = TEST_REQUEST_S;
	if (r->held->n > 1 && !is_given(r, "metrics-url"))
		o->metrics_url = engines_metrics(r, a);
	if (r->x->telemetry.is_enabled && !is_given(r, "metrics-interval"))
		o->metrics_interval = r->x->telemetry.server ? r->x->telemetry.interval_s : 0;
}

static int try_options(struct bench *b, const char *url, bool has_latencies, struct buf *notes,
		       struct err *e)
{
	struct run *r = b->run;
	struct opt_result given = r->x->serve_given;
	struct serve_opts *o = &b->opts;
	int rc;

	given.notes = (struct buf){ 0 };
	*o = r->x->serve;
	if (r->x->mode == MODE_MULTI_TURN) {
		b->turns = (struct multi_turn){ 0 };
		if (multi_turn_opts_check(&r->x->turns, &b->arena, &b->turns, e) < 0 ||
		    multi_turn_over_serve(&b->turns, o, &given, &b->arena, e) < 0)
			return -1;
	}
	if (r->hooks->early && r->hooks->early->is_whole)
		o->request_id_prefix = r->hooks->early->request_id_prefix;
	o->base_url = url;
	o->metric_percentiles = with_items(DOCUMENT_PERCENTILES, o->metric_percentiles, &b->arena);
	if (has_latencies)
		o->percentile_metrics = with_items("ttft,tpot,itl,e2el", o->percentile_metrics,
						   &b->arena);
	o->save_result = true; /* in the document, --metadata and all */
	if (r->x->is_one_of_many && (is_attached(r) || r->has_full_caches) &&
	    serve_is_salt_free(o, &given))
		o->prompt_salt = salt_kind_name(SALT_FRESH);
	if (!o->gpus)
		o->gpus = own_gpu_names(r, &b->arena);
	serve_opts_fill(o, &b->arena);
	set_outputs(r, o, &b->arena);
	set_telemetry(r, o, &b->arena);
	if (r->held->n)
		profiling_serve(r->x, r->held->at, o, &b->arena, notes);
	rc = serve_opts_check(o, &given, &b->arena, &b->derived, e);
	buf_add_str(notes, buf_str(&given.notes));
	buf_release(&given.notes);
	return rc;
}

/* Checks the options in force with the server's url. Vectors and scores have no first token. */
static int check_options(struct bench *b, const char *url, struct buf *notes, struct err *e)
{
	int rc = try_options(b, url, false, notes, e);

	if (rc < 0 || b->derived.is_pooling)
		return rc;
	buf_reset(notes);
	return try_options(b, url, true, notes, e);
}

static int refuse(struct run *r, const struct err *e)
{
	return run_fail(r, "bad configuration", "benchmark: %s", e->text);
}

/* Checked now and not after a model has been loaded for minutes. */
static int check_dataset(struct run *r)
{
	/* Names in the hub do not start with '/' and have no such endings. */
	static const char *const endings[] = { ".json", ".jsonl", ".csv", ".txt", ".parquet" };
	bool has_turns = r->x->mode == MODE_MULTI_TURN, is_file = has_turns;
	const char *path = has_turns ? r->x->turns.input_file : r->x->serve.data.path;

	if (!path)
		return 0;
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
		is_file |= str_ends(str_of(path), str_of(endings[i]));
	if ((!is_file && path[0] != '/' && path[0] != '.') || access(path, F_OK) == 0)
		return 0;
	return run_fail(r, "bad configuration", "benchmark.%s: %s: %s",
			has_turns ? "input_file" : "dataset_path", path, strerror(errno));
}

int bench_serve_check(struct run *r)
{
	struct bench b = { .run = r };
	struct buf ignored = { 0 };
	struct err e = { 0 };
	int rc = check_options(&b, NOWHERE, &ignored, &e);

	buf_release(&ignored);
	arena_release(&b.arena);
	return rc < 0 ? refuse(r, &e) : check_dataset(r);
}

/* ---- talk ---- */

static void on_line(void *self, const char *text)
{
	struct bench *b = self;

	if (b->run->hooks->line)
		b->run->hooks->line(b->run->hooks->self, text);
}

static void on_warn(void *self, const char *text)
{
	run_warn(((struct bench *)self)->run, text);
}

static void on_progress(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			const struct load_progress *load)
{
	static const char *const what[] = {
		[STAGE_DATASET] = "Preparing requests", [STAGE_ALIGN] = "Comparing token counts",
		[STAGE_READY] = "Test request", [STAGE_WARMUP] = "Warm-up", [STAGE_MAIN] = "Benchmark",
	};
	struct bench *b = self;

	(void)load;
	b->stage = stage;
	if (b->run->hooks->progress)
		b->run->hooks->progress(b->run->hooks->self, what[stage], done, total);
}

static void on_sample(void *self, const struct run_sample *now)
{
	struct bench *b = self;

	if (b->run->hooks->sample)
		b->run->hooks->sample(b->run->hooks->self, now);
}

static void on_bytes(void *self, const char *file, uint64_t done, uint64_t total)
{
	struct bench *b = self;

	if (b->run->hooks->progress)
		b->run->hooks->progress(b->run->hooks->self, file, done, total);
}

static void say(const struct bench *b, struct buf *text)
{
	if (b->run->hooks->text && text->len)
		b->run->hooks->text(b->run->hooks->self, buf_str(text));
	buf_release(text);
}

/* Adds what the verb reports in addition to bench serve. */
static void tell_turns(struct bench *b, const struct point *point)
{
	struct multi_turn_outcome turns;
	struct buf text = { 0 };
	struct err e = { 0 };

	if (multi_turn_score(&b->turns, point, false, &turns, &e) == 0) {
		if (!b->run->hooks->is_brief)
			multi_turn_terminal(&turns.report, &text);
		multi_turn_summary(&b->turns, &turns, &text);
		say(b, &text);
	} else {
		run_warn(b->run, e.text);
	}
	if (turns.wrong)
		run_warn(b->run, arena_printf(&b->arena, "%u answers are not those of %s", turns.wrong,
					      b->run->x->turns.input_file));
	multi_turn_outcome_release(&turns);
}

/* One run is measured: prints its report, stores its record, and keeps both. */
static void on_measured(void *self, struct point *point)
{
	struct bench *b = self;
	struct repeat_run *run = repeat_add(&b->runs);
	struct buf text = { 0 };
	struct err e = { 0 };

	b->run->is_profiled |= point->is_profiled;
	score_point(&b->opts, &b->derived, point, &run->scored);
	b->failure = point->failure ? arena_text(&b->arena, str_of(point->failure)) : NULL;
	report_preemptions(&run->scored.metrics, &text);
	if (text.len)
		run_keep_warning(b->run, text.data); /* the report contains it, too */
	buf_reset(&text);
	run->scored.meta.facts.has_plot_tip = false;
	if (b->run->hooks->is_brief)
		report_summary(&run->scored.report, &text);
	else
		report_terminal(&run->scored.report, REPORT_SHORT, &text);
	say(b, &text);
	if (b->run->x->mode == MODE_MULTI_TURN)
		tell_turns(b, point);
	if (point->record_path)
		b->run->out->record_path = arena_text(&b->run->out->arena,
						      str_of(point->record_path));
	if (point_store(point, &e) < 0 && !b->err.code)
		b->err = e;
	repeat_take(run, point);
}

/* ---- results ---- */

static int write_detailed(struct bench *b, const struct report *report, struct err *e)
{
	struct report_facts facts = *report->facts;
	struct report detailed = *report;
	struct buf json = { 0 };
	int rc;

	if (!b->run->x->output.is_detailed)
		return 0;
	facts.is_detailed = true;
	detailed.facts = &facts;
	rc = report_result_json(&detailed, &json, e);
	if (rc == 0)
		rc = report_save(run_path(b->run, "detailed.json"), buf_str(&json), false, e);
	buf_release(&json);
	return rc;
}

/* Of several runs keeps the middle one, with the values of all. */
static void keep_result(struct bench *b)
{
	struct run *r = b->run;
	struct repeat_run *kept = repeat_median(&b->runs);
	struct buf table = { 0 }, runs = { 0 }, json = { 0 };
	struct json_scan scan = { 0 };
	struct json_slice result, system;
	struct report_facts facts;
	struct report report;
	struct err e = { 0 };

	if (b->runs.n > 1) {
		repeat_table(&b->runs, &table);
		say(b, &table);
		repeat_json(&b->runs, &runs);
		kept->scored.meta.facts.load.runs = buf_str(&runs);
	}
	report = kept->scored.report;
	facts = *report.facts;
	facts.is_detailed = false;
	report.facts = &facts;
	if (report_result_json(&report, &json, &e) == 0)
		r->out->result = run_keep(r, &json);
	/* The telemetry is in the result; the document has it in a place of its own. */
	scan.text = r->out->result;
	if (json_next(&scan, &result, NULL) == 0 &&
	    json_path(result, &system, "profllm", "system", NULL) && system.kind == JSON_OBJECT)
		r->out->system = system.raw;
	if (write_detailed(b, &kept->scored.report, &e) < 0 || e.code)
		b->err = b->err.code ? b->err : e;
	buf_release(&json);
	buf_release(&runs);
}

/* Judges a result whose measurement is complete. */
static int judge(struct bench *b)
{
	struct run *r = b->run;
	uint64_t completed = 0, failed = 0;
	const char *aborted = NULL;
	bool is_cut = false;

	for (unsigned i = 0; i < b->runs.n; i++) {
		const struct repeat_run *run = b->runs.run[i];

		completed += run->scored.metrics.completed;
		failed += run->scored.metrics.failed;
		is_cut |= run->record.is_interrupted;
		if (!aborted)
			aborted = run->scored.meta.facts.load.aborted;
	}
	r->stage = AT_BENCHMARK;
	if (servers_died(r, failed > 0))
		return -1;
	if (is_cut && run_is_cancelled(r))
		return run_interrupted(r);
	if (b->err.code) {
		r->stage = AT_COLLECT;
		return run_fail(r, "out of disk", "%s", b->err.text);
	}
	if (completed == 0)
		return run_fail(r, "all requests failed", failed ? "every request failed (%llu)%s%s"
				: "no request was completed", (unsigned long long)failed,
				b->failure ? ": " : "", b->failure ? b->failure : "");
	if (aborted)
		return run_fail(r, "too many failures", "%s", aborted);
	if (failed) {
		r->out->status = OUTCOME_PARTIAL;
		r->out->stage = AT_BENCHMARK;
		r->out->category = "requests failed";
		r->out->reason = arena_printf(&r->out->arena, "%llu of %llu requests failed",
					      (unsigned long long)failed,
					      (unsigned long long)(failed + completed));
	}
	return 0;
}

/* The measurement failed or was interrupted. */
static int not_measured(struct bench *b, const struct err *e)
{
	struct run *r = b->run;

	r->stage = b->stage == STAGE_READY ? AT_READY : AT_BENCHMARK;
	if (servers_died(r, true))
		return -1;
	if (e->code == ERR_CANCELLED || run_is_cancelled(r))
		return run_interrupted(r);
	if (r->stage == AT_READY)
		return run_fail(r, "no answer", "%s", e->text);
	/*
	 * An unknown tokenizer or chat template, which only the server could provide, is a mistake
	 * as well.
	 */
	return run_fail(r, e->code == ERR_USAGE || (b->stage == STAGE_DATASET &&
			(e->code == ERR_RUN || e->code == ERR_PARSE)) ? "bad configuration" :
			e->code == ERR_NET ? "network" :
			e->code == ERR_IO ? "file" : "not measured", "%s", e->text);
}

int bench_serve(struct run *r)
{
	struct bench b = { .run = r };
	struct run_hooks hooks = { .self = &b, .line = on_line, .warn = on_warn,
				   .progress = on_progress, .bytes = on_bytes,
				   .sample = on_sample, .measured = on_measured,
				   .cancel = &r->held->stop, .is_server_up = true,
				   .early = r->hooks->early };
	struct buf notes = { 0 };
	struct point point = { 0 };
	struct err e = { 0 };
	int rc;

	if (check_options(&b, r->held->at[r->x->serving].url, &notes, &e) < 0) {
		rc = refuse(r, &e);
	} else {
		run_notes(r, &notes);
		pthread_mutex_init(&b.turns.lock, NULL);
		rc = run_point(&b.opts, &b.derived, &hooks, &point, &e);
		if (b.runs.n)
			keep_result(&b);
		rc = rc < 0 ? not_measured(&b, &e) : judge(&b);
		point_release(&point);
		pthread_mutex_destroy(&b.turns.lock);
		multi_turn_release(&b.turns);
	}
	buf_release(&notes);
	repeat_release(&b.runs);
	arena_release(&b.arena);
	return rc;
}

/* ---- before there is a server ---- */

int experiment_prepare(const struct experiment *x, const struct experiment_hooks *hooks,
		       struct point_early *out, struct err *e)
{
	static const struct experiment_hooks silent;
	struct experiment_held nothing = { .n = 0 };
	struct outcome unused = { 0 };
	struct run r = { .x = x, .hooks = hooks ? hooks : &silent, .out = &unused,
			 .held = &nothing };
	struct bench b = { .run = &r };
	struct run_hooks h = { .self = &b, .progress = on_progress, .bytes = on_bytes,
			       .cancel = r.hooks->cancel };
	struct buf ignored = { 0 };
	int rc = -1;

	*out = (struct point_early){ .part = PART_OPTIONS };
	if (!mode_is_served(x->mode))
		return 0;
	if (check_options(&b, NOWHERE, &ignored, e) == 0) {
		/* The experiment's own folder is made when it runs. */
		if (!x->serve.record_path)
			b.opts.record_path = NULL;
		out->arena = b.arena;
		b.arena = (struct arena){ 0 };
		rc = run_point_early(&b.opts, &b.derived, &h, out, e);
	}
	if (x->mode == MODE_MULTI_TURN) {
		out->is_whole = false; /* a run's conversations are held by its own state */
		multi_turn_release(&b.turns);
	}
	buf_release(&ignored);
	arena_release(&b.arena);
	arena_release(&unused.arena);
	return rc;
}

/*
 * Measures an engine without a server.
 *
 * The verb's own option set reads the words of the experiment, as its command does, so that rules
 * and messages are the same; its result file is written into the experiment's folder and becomes
 * the outcome's result. The engine gets the GPUs of the experiment's one server, which is not
 * started.
 */

struct offline_bench {
	struct run *run;
	struct opt_set set;
	struct opt_foreign foreign[2];
	struct opt_result given;
	struct offline_engine engine;
	struct offline_hooks hooks;
	struct run_watch watch;
	struct arena arena;
	const char *path;           /* of the result */
	bool is_tracing;            /* for latency: the profiled batch, after everything else */
};

/* ---- words ---- */

/*
 * Accepts every name, as the configuration was checked before. A name takes the words up to the
 * next one.
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

static void take_set(struct offline_bench *b, const struct opt_set *set)
{
	b->set = *set;
	b->foreign[0] = *set->foreign;
	b->foreign[0].next = &b->foreign[1];
	b->foreign[1] = (struct opt_foreign){ .words = any_words };
	b->set.foreign = &b->foreign[0];
}

/* Adds the allocated GPUs and the server's own environment, after the verb's own. */
static void add_env(struct offline_bench *b)
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

/* The output of the engine's program goes where logs of servers are kept. */
static void keep_log(struct offline_bench *b, struct offline_opts *o)
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

static int read_words(struct offline_bench *b, const struct offline_verb *verb, void *values,
		      struct err *e)
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
	take_set(b, verb->set);
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

static int prioritization(struct offline_bench *b, struct err *e)
{
	struct prioritization_opts o;

	if (read_words(b, &prioritization_verb, &o, e) < 0 ||
	    prioritization_check(&o, e) < 0)
		return -1;
	prioritization_notes(&b->engine, &b->given.notes);
	run_notes(b->run, &b->given.notes);
	o.output_json = b->path;
	return prioritization_run(&o, &b->engine, &b->hooks, e);
}

static int measure_offline(struct offline_bench *b, const struct offline_verb *verb, struct err *e)
{
	struct offline_opts *o = arena_alloc(&b->arena, verb->set->bytes);
	struct offline_job job = { .verb = verb, .opts = o, .given = &b->given,
				   .engine = &b->engine, .hooks = b->hooks,
				   .notes = &b->given.notes };

	if (verb == &prioritization_verb)
		return prioritization(b, e);
	if (read_words(b, verb, o, e) < 0 || (verb->check && verb->check(&job, e) < 0))
		return -1;
	run_notes(b->run, &b->given.notes);
	o->output_json = b->path;
	return verb->run(&job, e);
}

/* ---- talk ---- */

static void on_offline_line(void *self, const char *text)
{
	const struct run *r = ((struct offline_bench *)self)->run;

	if (r->hooks->line)
		r->hooks->line(r->hooks->self, text);
}

static void on_offline_warn(void *self, const char *text)
{
	run_warn(((struct offline_bench *)self)->run, text);
}

static void on_offline_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	struct offline_bench *b = self;
	const struct experiment_hooks *hooks = b->run->hooks;

	watch_progress(&b->watch, what);
	if (hooks->progress)
		hooks->progress(hooks->self, what, done, total);
}

/* ---- results ---- */

static void keep_offline_result(struct offline_bench *b)
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
 * `bench latency --profile` runs the batch once and times nothing, so it is run separately, after
 * the measurement. A missing trace is reported when traces are collected.
 */
static void trace_latency(struct run *r)
{
	struct offline_bench b = { .run = r, .is_tracing = true, .path = run_path(r, ".result.json") };
	struct err e = { 0 };

	b.hooks = (struct offline_hooks){ .self = &b, .line = on_offline_line,
					  .warn = on_offline_warn, .cancel = &r->held->stop };
	run_line(r, "Starting the engine again, to profile it");
	if (measure_offline(&b, &latency_verb, &e) < 0)
		run_warn(r, e.text);
	unlink(b.path);
	opt_result_release(&b.given);
	arena_release(&b.arena);
}

int bench_offline(struct run *r)
{
	static const struct offline_verb *const mode[] = {
		[MODE_THROUGHPUT] = &throughput_verb, [MODE_LATENCY] = &latency_verb,
		[MODE_STARTUP] = &startup_verb, [MODE_PRIORITIZATION] = &prioritization_verb,
		[MODE_PREFIX_CACHING] = &prefix_caching_verb,
		[MODE_LONG_DOCUMENT] = &long_document_verb,
	};
	struct offline_bench b = { .run = r };
	struct err e = { 0 };
	int rc;

	b.hooks = (struct offline_hooks){ .self = &b, .line = on_offline_line,
					  .warn = on_offline_warn, .progress = on_offline_progress,
					  .cancel = &r->held->stop };
	b.path = run_path(r, ".result.json");
	unlink(b.path);
	r->is_profiled = r->traces.dir != NULL; /* by the engine itself, as its options say */
	run_line(r, "Measuring %s", experiment_mode_name(r->x->mode));
	watch_begin_offline(r, &b.watch);
	rc = measure_offline(&b, mode[r->x->mode], &e);
	keep_offline_result(&b);
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
