/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline.c - see offline.h: chooses the driver, checks the order of calls, and verifies every
 * driver's outcome: its clock readings must be within ours, counts must fit, totals must equal
 * their parts.
 */
#include "bench/offline/offline.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/offline/pytorch.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/stats/stats.h"
#include "out/report/report.h"
#include "out/report/verdict.h"
#include "version.h"

struct offline {
	const struct offline_driver *driver;
	void *state;
	struct offline_about about;
	const atomic_bool *cancel;
	size_t n; /* requests put */
	bool is_loaded, is_put;
};

static const struct offline_driver *driver_of(const char *backend)
{
	return strcmp(backend, "http") == 0 ? &offline_http_driver : &offline_worker_driver;
}

static int cancelled(const struct offline *o, struct err *e)
{
	if (o->cancel && atomic_load(o->cancel))
		return err_set(e, ERR_CANCELLED, "stopped");
	return 0;
}

static int cannot(const struct offline *o, const char *what, struct err *e)
{
	return err_set(e, ERR_RUN, "%s cannot %s",
		       o->about.engine[0] ? o->about.engine : o->driver->name, what);
}

int offline_start(const struct offline_start *how, struct offline **out, struct err *e)
{
	struct offline *o = mem_alloc(sizeof(*o));

	o->driver = driver_of(how->backend);
	o->cancel = how->hooks.cancel;
	o->about = (struct offline_about){ .engine = "", .version = "", .device = "",
					   .profile_to = "", .profile_dir = "", .method = "" };
	if (cancelled(o, e) < 0 || o->driver->start(how, &o->state, &o->about, e) < 0) {
		free(o);
		return -1;
	}
	*out = o;
	return 0;
}

const struct offline_about *offline_about(const struct offline *o)
{
	return &o->about;
}

int offline_render(struct offline *o, struct str messages, struct str tools, struct buf *text,
		   struct err *e)
{
	if (!o->driver->render || !o->about.has_render)
		return cannot(o, "apply a chat template", e);
	return cancelled(o, e) < 0 ? -1 : o->driver->render(o->state, messages, tools, text, e);
}

static const char *lacks(const struct offline_about *a, const struct offline_run *run)
{
	if (run->method == OFFLINE_CHAT && !a->has_chat)
		return "chat";
	if (run->method == OFFLINE_BEAM && !a->has_beam)
		return "search with beams";
	if (run->method == OFFLINE_ENCODE && !a->has_encode)
		return "encode";
	if (run->is_prequeued && !a->has_prequeue)
		return "take all requests before it begins (--prequeue-requests)";
	if (run->is_profiled && !a->has_profile)
		return "profile itself (--profile)";
	return NULL;
}

int offline_can(const struct offline *o, const struct offline_run *run, struct err *e)
{
	const char *lack = lacks(&o->about, run);

	return lack ? cannot(o, lack, e) : 0;
}

int offline_load(struct offline *o, struct offline_loaded *out, struct err *e)
{
	assert(!o->is_loaded);
	*out = (struct offline_loaded){ NAN, NAN, NAN, NAN, NAN, NULL, 0 };
	if (cancelled(o, e) < 0 || o->driver->load(o->state, &o->about, out, e) < 0)
		return -1;
	o->is_loaded = true;
	return 0;
}

int offline_put(struct offline *o, const struct offline_batch *batch, struct err *e)
{
	assert(o->is_loaded);
	o->is_put = false;
	if (cancelled(o, e) < 0 || o->driver->put(o->state, batch, e) < 0)
		return -1;
	o->n = batch->n;
	o->is_put = true;
	return 0;
}

/* ---- an outcome ---- */

void offline_outcome_release(struct offline_outcome *o)
{
	arena_release(&o->arena);
	*o = (struct offline_outcome){ 0 };
}

/* Checks that the engine's clock readings are between our request and its answer. */
static int check_clocks(const struct offline *o, const struct offline_outcome *r, int64_t asked_ns,
			int64_t answered_ns, struct err *e)
{
	const char *who = o->about.engine[0] ? o->about.engine : o->driver->name;

	if (r->ended_ns < r->began_ns)
		return err_set(e, ERR_RUN, "the clocks of %s cannot be trusted: it reports that "
			       "the run ended %.6f s before it began", who,
			       (double)(r->began_ns - r->ended_ns) / 1e9);
	if (r->began_ns < asked_ns)
		return err_set(e, ERR_RUN, "the clocks of %s cannot be trusted: it reports that "
			       "the run began %.6f s before it was asked for", who,
			       (double)(asked_ns - r->began_ns) / 1e9);
	if (r->ended_ns > answered_ns)
		return err_set(e, ERR_RUN, "the clocks of %s cannot be trusted: it reports that "
			       "the run ended %.6f s after its answer came", who,
			       (double)(r->ended_ns - answered_ns) / 1e9);
	return 0;
}

static void add_up(struct offline_outcome *r)
{
	r->prompt_tokens = r->output_tokens = r->cached_tokens = 0;
	for (size_t i = 0; r->prompt && i < r->n; i++)
		r->prompt_tokens += r->prompt[i];
	for (size_t i = 0; r->output && i < r->n; i++)
		r->output_tokens += r->output[i];
	for (size_t i = 0; r->cached && i < r->n; i++)
		r->cached_tokens += r->cached[i];
	r->has_counts = r->prompt && r->output;
	r->finished = r->is_finished ? 0 : r->n;
	for (size_t i = 0; r->is_finished && i < r->n; i++)
		r->finished += r->is_finished[i];
}

int offline_run(struct offline *o, const struct offline_run *run, struct offline_outcome *out,
		struct err *e)
{
	int64_t asked_ns, answered_ns;

	assert(o->is_put);
	*out = (struct offline_outcome){ .n = o->n };
	if (offline_can(o, run, e) < 0 || cancelled(o, e) < 0)
		return -1;
	asked_ns = clock_mono_ns();
	if (o->driver->run(o->state, run, out, e) < 0)
		goto failed;
	answered_ns = clock_mono_ns();
	if (check_clocks(o, out, asked_ns, answered_ns, e) < 0)
		goto failed;
	out->elapsed_s = (double)(out->ended_ns - out->began_ns) / 1e9;
	/* A server's clock is ours, from the first request's first byte on. */
	if (o->driver != &offline_http_driver)
		out->outside_s = (double)(answered_ns - asked_ns) / 1e9 - out->elapsed_s;
	add_up(out);
	return 0;
failed:
	offline_outcome_release(out);
	return -1;
}

int offline_mm_stats(struct offline *o, struct buf *out, struct err *e)
{
	if (!o->driver->mm_stats || !o->about.has_mm_stats)
		return cannot(o, "report the times of multimodal preprocessing", e);
	return cancelled(o, e) < 0 ? -1 : o->driver->mm_stats(o->state, out, e);
}

int offline_stop(struct offline *o, struct err *e)
{
	int rc;

	if (!o)
		return 0;
	rc = o->driver->stop(o->state, e);
	free(o);
	return rc;
}

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	json_member_text(w, key, text);
}

static void put_seconds(struct json_writer *w, const char *key, double v)
{
	if (isnan(v))
		return;
	json_member_f64(w, key, v);
}

static void put_engine(struct json_writer *w, const struct offline_about *about)
{
	struct json_slice reported;

	json_member_object(w, "engine");
	put_text(w, "name", about->engine);
	put_text(w, "version", about->version);
	put_text(w, "device", about->device);
	if (about->max_model_len > 0)
		json_member_int(w, "max_model_len", about->max_model_len);
	if (json_next(&(struct json_scan){ about->json, 0 }, &reported, NULL) == 0 &&
	    reported.kind == JSON_OBJECT) {
		json_member_foreign(w, "told", reported.raw);
	}
	json_end_object(w);
}

/* Writes each name once, with the total time spent under it. */
static void put_phases(struct json_writer *w, const struct offline_loaded *l)
{
	json_member_object(w, "phases");
	for (size_t i = 0; i < l->n_phases; i++) {
		const char *name = l->phase[i].name;
		size_t first = 0;
		double s = 0;

		while (strcmp(l->phase[first].name, name) != 0)
			first++;
		for (size_t k = i; first == i && k < l->n_phases; k++)
			s += strcmp(l->phase[k].name, name) == 0 ? l->phase[k].s : 0;
		if (first == i)
			put_seconds(w, name, s);
	}
	json_end_object(w);
}

static void put_load(struct json_writer *w, const struct offline_loaded *l)
{
	json_member_object(w, "load");
	put_seconds(w, "spawn_s", l->spawn_s);
	put_seconds(w, "load_s", l->load_s);
	put_seconds(w, "ready_s", l->ready_s);
	put_seconds(w, "compilation_s", l->compilation_s);
	put_seconds(w, "encoder_compilation_s", l->encoder_compilation_s);
	if (l->n_phases)
		put_phases(w, l);
	json_end_object(w);
}

static void put_cpu(struct json_writer *w)
{
	struct buf text = { 0 }, name = { 0 };
	struct str rest;

	if (file_read("/proc/cpuinfo", 1u << 22, &text, NULL) == 0) {
		rest = buf_str(&text);
		while (rest.n && !name.len) {
			struct str value = str_cut(&rest, '\n');
			struct str key = str_trim(str_cut(&value, ':'));

			if (str_is(key, "model name"))
				buf_add_str(&name, str_trim(value));
		}
	}
	if (name.len)
		put_text(w, "cpu", name.data);
	buf_release(&name);
	buf_release(&text);
}

static void put_host(struct json_writer *w)
{
	struct utsname u;

	json_member_object(w, "host");
	put_cpu(w);
	json_member_int(w, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	json_member_int(w, "memory_bytes", (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
	if (uname(&u) == 0) {
		put_text(w, "kernel", u.release);
		put_text(w, "machine", u.machine);
	}
	json_end_object(w);
}

void offline_reported(struct json_writer *w, const struct offline_reported *t)
{
	put_text(w, "version", PROFLLM_VERSION);
	json_member_int(w, "stop_ns", clock_real_ns());
	put_text(w, "command", t->command);
	put_text(w, "backend", t->backend);
	if (t->about) {
		put_text(w, "method", t->about->method);
		put_engine(w, t->about);
	}
	if (t->loaded)
		put_load(w, t->loaded);
	put_host(w);
}

void offline_reported_line(struct buf *out, const struct offline_reported *t)
{
	const struct offline_about none = { 0 }, *about = t->about ? t->about : &none;
	const struct { const char *before, *text; } parts[] = {
		{ " ", about->version }, { " on ", about->device }, { ", ", about->method },
	};

	buf_printf(out, "Engine: %s", about->engine && *about->engine ? about->engine : t->backend);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i].text && *parts[i].text)
			buf_printf(out, "%s%s", parts[i].before, parts[i].text);
	if (t->loaded && !isnan(t->loaded->load_s)) {
		buf_add_text(out, ", loaded in ");
		offline_put_time(out, t->loaded->load_s);
	}
	buf_add_char(out, '\n');
}

void offline_reported_example(const char *command, struct buf *out)
{
	const struct offline_loaded loaded = {
		.spawn_s = 1, .load_s = 1, .ready_s = 1, .compilation_s = 1,
		.encoder_compilation_s = 1,
	};
	const struct offline_reported reported = { .command = command, .loaded = &loaded };
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	offline_reported(&w, &reported);
	json_end_object(&w);
}

void offline_say(const struct offline_hooks *hooks, struct buf *text)
{
	struct str rest = buf_str(text);

	while (rest.n && hooks->line) {
		struct str line = str_cut(&rest, '\n');
		char *copy = mem_copy(line.p, line.n);

		hooks->line(hooks->self, copy);
		free(copy);
	}
	buf_reset(text);
}

void offline_line(const struct offline_hooks *hooks, const char *fmt, ...)
{
	va_list ap;
	char *text;

	if (!hooks->line)
		return;
	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	hooks->line(hooks->self, text);
	free(text);
}

void offline_progress(const struct offline_hooks *hooks, const char *what, int64_t done,
		      int64_t total)
{
	if (hooks->progress && total > 0)
		hooks->progress(hooks->self, what, (uint64_t)done, (uint64_t)total);
}

/* ---- a verb that is run ---- */

struct offline_reported offline_reported_of(const struct offline_job *job)
{
	return (struct offline_reported){
		.command = job->verb->name, .backend = job->opts->backend,
		.about = job->offline ? offline_about(job->offline) : NULL,
		.loaded = job->offline ? &job->loaded : NULL,
	};
}

int offline_job_start(struct offline_job *job, struct offline_start how, struct err *e)
{
	assert(!job->offline);
	how.opts = job->opts;
	how.backend = job->engine->worker;
	how.is_async |= job->engine->is_async;
	how.log_name = job->verb->name;
	if (!how.engine_argv)
		how.engine_argv = job->engine->argv;
	if (!how.env)
		how.env = job->engine->env;
	if (!how.hooks.self)
		how.hooks = job->hooks;
	if (offline_start(&how, &job->offline, e) < 0)
		return -1;
	return offline_judge(job->opts, job->engine, offline_about(job->offline), &job->hooks, e);
}

int offline_job_save(const struct offline_job *job, struct str json,
		     const struct pytorch_metric *metric, size_t n, struct str extra, struct err *e)
{
	const struct run_pytorch_verb verb = {
		.set = job->verb->set, .values = job->opts, .engine = job->engine,
		.output_json = job->opts->output_json,
	};

	if (job->hooks.result)
		job->hooks.result(job->hooks.self, json);
	if (!job->opts->output_json)
		return 0;
	if (report_save(job->opts->output_json, json, false, e) < 0)
		return err_wrap(e, "--output-json");
	return n ? run_pytorch_save_verb(&verb, NULL, metric, n, extra, e) : 0;
}

int offline_job_end(struct offline_job *job, int rc, struct err *e)
{
	struct err ignored = { 0 };
	int stopped = offline_stop(job->offline, rc < 0 ? &ignored : e);

	job->offline = NULL;
	return rc < 0 ? rc : stopped;
}

/* ---- figures ---- */

const int offline_percentages[OFFLINE_PERCENTILES] = { 10, 25, 50, 75, 90, 99 };

void offline_percentiles(const double *v, size_t n, double out[OFFLINE_PERCENTILES])
{
	double *sorted = stats_sorted(v, n);

	assert(n > 0);
	for (size_t i = 0; i < OFFLINE_PERCENTILES; i++)
		out[i] = stats_percentile(sorted, n, offline_percentages[i]);
	free(sorted);
}

void offline_put_percentiles(struct json_writer *w, const char *key,
			     const double v[OFFLINE_PERCENTILES])
{
	char name[8];

	json_member_object(w, key);
	for (size_t i = 0; i < OFFLINE_PERCENTILES; i++) {
		snprintf(name, sizeof(name), "%d", offline_percentages[i]);
		json_member_f64(w, name, v[i]);
	}
	json_end_object(w);
}

void offline_put_time(struct buf *out, double s)
{
	char text[FMT_F64_BYTES];

	buf_add_text(out, fmt_duration(text, (int64_t)(s * 1e9)));
}

struct trust offline_verdict(const struct offline_doubt *row, size_t n, unsigned doubts,
			     void (*explain)(const void *self, unsigned doubt, struct buf *out),
			     const void *self)
{
	struct trust t = { 0 };
	struct buf text = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (!(doubts & row[i].bit))
			continue;
		buf_reset(&text);
		if (row[i].text)
			buf_add_text(&text, row[i].text);
		else
			explain(self, row[i].bit, &text);
		verdict_doubt(&t, row[i].level, row[i].code, buf_str(&text));
	}
	buf_release(&text);
	return t;
}

void offline_show_verdict(const struct trust *t, struct buf *out)
{
	buf_printf(out, "Verdict: %s\n", trust_name(t->verdict));
	verdict_show(t, out);
}
