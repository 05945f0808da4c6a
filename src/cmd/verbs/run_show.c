/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_show.c - the output of `profllm run`, see run_verb.h: stages, reports and progress while it
 * runs, lines of JSON for other programs, plans, checks and the configuration.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/serve/point.h"
#include "cmd/console/cli.h"
#include "cmd/console/progress.h"
#include "cmd/console/reporter.h"
#include "cmd/verbs/run_verb.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "experiment/suite/check.h"
#include "experiment/suite/suite.h"
#include "input/fetch/dashboard.h"

#define BAR_WIDTH 24
#define BAR_EVERY_NS 200000000
#define LINE_EVERY_NS 5000000000
#define BENCHMARK "Benchmark" /* what a load is called in progress */

void run_talk_init(struct run_talk *t, const char *progress, bool is_quiet)
{
	*t = (struct run_talk){ .is_quiet = is_quiet };
	t->is_off = is_quiet || strcmp(progress, "none") == 0;
	t->is_bar = strcmp(progress, "bar") == 0 ||
		    (strcmp(progress, "auto") == 0 && isatty(STDERR_FILENO));
}

void run_talk_clear(struct run_talk *t)
{
	if (t->is_drawn)
		fputs("\r\033[K", stderr);
	t->is_drawn = false;
}

static void on_line(void *self, const char *text)
{
	struct run_talk *t = self;

	if (t->is_quiet)
		return;
	if (live_is_on(t->live)) {
		live_print(t->live, false, text);
		return;
	}
	run_talk_clear(self);
	cli_line(text);
}

/* Prints a report; the load has ended. */
static void on_text(void *self, struct str text)
{
	struct run_talk *t = self;

	live_leave(t->live);
	run_talk_clear(t);
	if (!t->is_quiet || t->is_single) /* a suite's table has the numbers of its members */
		cli_out(text);
}

/*
 * Whether a warning was shown before, also with other numbers: by the FNV-1a hash of the text
 * without digits.
 */
static bool is_repeated(struct run_talk *t, const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		if (*text < '0' || *text > '9')
			hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	for (size_t i = 0; i < t->n_warned; i++)
		if (t->warned[i] == hash)
			return true;
	if (t->n_warned < RUN_TALK_WARNED)
		t->warned[t->n_warned++] = hash;
	return false;
}

static void on_warn(void *self, const char *text)
{
	struct run_talk *t = self;

	if (t->is_quiet && is_repeated(t, text))
		return; /* members of a suite differ in little; documents keep all of them */
	if (live_is_on(t->live)) {
		live_print(t->live, true, text);
		return;
	}
	run_talk_clear(self);
	cli_warn(text);
}

/* " ######.................. 12/100" */
static void add_bar(struct buf *line, const struct run_talk *t, uint64_t done, uint64_t total)
{
	uint64_t filled = done < total ? done * BAR_WIDTH / total : BAR_WIDTH;

	buf_add_char(line, ' ');
	for (uint64_t i = 0; t->is_bar && i < BAR_WIDTH; i++)
		buf_add_char(line, i < filled ? '#' : '.');
	buf_printf(line, "%s%" PRIu64 "/%" PRIu64, t->is_bar ? " " : "", done, total);
}

/* "Benchmark ######.................. 12/100 [00:03<00:22]"; without a total only the time. */
static void draw_progress(struct run_talk *t, uint64_t done, uint64_t total, int64_t now)
{
	double elapsed_s = (double)(now - t->began_ns) / 1e9;
	struct buf line = { 0 };

	buf_add_text(&line, t->what);
	if (total)
		add_bar(&line, t, done, total);
	buf_add_text(&line, " [");
	progress_add_clock(&line, elapsed_s);
	if (done && done < total) {
		buf_add_char(&line, '<');
		progress_add_clock(&line, elapsed_s * (double)(total - done) / (double)done);
	}
	buf_add_char(&line, ']');
	if (t->is_bar)
		fprintf(stderr, "\r%s\033[K", line.data);
	else
		fprintf(stderr, "%s\n", line.data);
	fflush(stderr);
	t->is_drawn = t->is_bar;
	t->drawn_ns = now;
	buf_release(&line);
}

static void on_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	struct run_talk *t = self;
	int64_t now = clock_mono_ns();

	if (live_is_on(t->live) && strcmp(what, BENCHMARK) == 0)
		return;
	live_leave(t->live);
	if (t->is_off)
		return;
	if (strncmp(t->what, what, sizeof(t->what) - 1) != 0) {
		run_talk_clear(t);
		snprintf(t->what, sizeof(t->what), "%s", what);
		t->began_ns = now;
		t->drawn_ns = t->is_bar ? 0 : now;
	}
	if (now - t->drawn_ns >= (t->is_bar ? BAR_EVERY_NS : LINE_EVERY_NS))
		draw_progress(t, done, total, now);
}

static void on_sample(void *self, const struct run_sample *now)
{
	struct run_talk *t = self;

	run_talk_clear(t);
	live_show(t->live, now);
}

/* ---- suites ---- */

static void on_member(void *self, const struct suite_now *now)
{
	struct run_talk *t = self;
	char time[FMT_F64_BYTES];
	struct buf line = { 0 };

	live_leave(t->live);
	run_talk_clear(t);
	*t->what = 0;
	if (t->is_single)
		snprintf(t->head, sizeof(t->head), "profllm run  %s", now->member->label);
	else
		snprintf(t->head, sizeof(t->head), "profllm run  [%zu/%zu] %s", now->at, now->n,
			 now->member->label);
	live_set_head(t->live, t->head);
	if (t->is_single || t->is_quiet)
		return;
	buf_printf(&line, "[%zu/%zu] %s", now->at, now->n, now->member->label);
	if (now->has_ended) {
		buf_printf(&line, ": %s after ", outcome_status_name(now->status));
		buf_add_text(&line, fmt_rough_time(time, now->took_s));
		if (now->reason)
			buf_printf(&line, ": %s", now->reason);
		if (!isnan(now->left_s) && now->at < now->n) {
			buf_add_text(&line, "; about ");
			buf_add_text(&line, fmt_rough_time(time, now->left_s));
			buf_add_text(&line, " left");
		}
	}
	cli_line(line.data);
	buf_release(&line);
}

static void on_child(void *self, const struct suite_member *m, const char *text, bool is_err)
{
	if (((struct run_talk *)self)->is_quiet && !is_err)
		return;
	run_talk_clear(self);
	fprintf(is_err ? stderr : stdout, "%s: %s\n", m->label, text);
	fflush(is_err ? stderr : stdout);
}

struct suite_hooks run_talk_hooks(struct run_talk *t, int log_fd)
{
	return (struct suite_hooks){
		.self = t, .member = on_member, .child = on_child,
		.run = { .self = t, .line = on_line, .text = on_text, .warn = on_warn,
			 .progress = on_progress, .sample = t->live ? on_sample : NULL,
			 .cancel = cli_is_interrupted(), .log_fd = log_fd,
			 .is_brief = t->is_quiet },
	};
}

#define PROGRESS_NS 250000000
#define TELEMETRY_NS 1000000000

struct run_events {
	struct suite_hooks inner;
	int fd;
	char what[64];
	int64_t progress_ns, telemetry_ns;
};

static struct json_writer event_begin(struct buf *line, const char *event)
{
	struct json_writer j = json_writer(line);

	json_begin_object(&j);
	json_member_text(&j, "event", event);
	json_member_f64(&j, "at", (double)(clock_real_ns() / 1000000) / 1000);
	return j;
}

static void event_end(struct run_events *r, struct buf *line, struct json_writer *j)
{
	json_end_object(j);
	buf_add_char(line, '\n');
	redact_tail(line, 0, REDACT_SENTENCES);
	if (r->fd >= 0 && file_write_all(r->fd, buf_str(line)) < 0) {
		close(r->fd);
		r->fd = -1;
	}
	buf_release(line);
}

static void put_count(struct json_writer *j, const char *key, uint64_t n)
{
	json_member_int(j, key, (int64_t)n);
}

static void events_line(void *self, const char *text)
{
	struct run_events *r = self;
	struct buf line = { 0 };
	struct json_writer j = event_begin(&line, "progress");

	json_member_text(&j, "line", text);
	event_end(r, &line, &j);
	r->inner.run.line(r->inner.run.self, text);
}

static void events_text(void *self, struct str text)
{
	struct run_events *r = self;

	r->inner.run.text(r->inner.run.self, text);
}

static void events_warn(void *self, const char *text)
{
	struct run_events *r = self;

	r->inner.run.warn(r->inner.run.self, text);
}

static void events_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	struct run_events *r = self;
	int64_t now = clock_mono_ns();
	bool is_new = strncmp(r->what, what, sizeof(r->what) - 1) != 0;

	if (is_new || now - r->progress_ns >= PROGRESS_NS || (total && done == total)) {
		struct buf line = { 0 };
		struct json_writer j = event_begin(&line, "progress");

		snprintf(r->what, sizeof(r->what), "%s", what);
		r->progress_ns = now;
		json_member_text(&j, "what", what);
		put_count(&j, "done", done);
		put_count(&j, "total", total);
		event_end(r, &line, &j);
	}
	r->inner.run.progress(r->inner.run.self, what, done, total);
}

static void events_sample(void *self, const struct run_sample *now)
{
	struct run_events *r = self;
	const struct system_now *m = &now->system;
	int64_t at = clock_mono_ns();
	struct buf line = { 0 };
	struct json_writer j;

	if (r->inner.run.sample)
		r->inner.run.sample(r->inner.run.self, now);
	/* The last values belong to the finished load, whenever they come. */
	if (at - r->telemetry_ns < TELEMETRY_NS && now->load.done < now->n_rows)
		return;
	r->telemetry_ns = at;
	j = event_begin(&line, "telemetry");
	put_count(&j, "total", now->n_rows);
	put_count(&j, "admitted", now->load.admitted);
	put_count(&j, "done", now->load.done);
	put_count(&j, "failed", now->load.failed);
	put_count(&j, "tokens", now->load.tokens);
	json_member_f64(&j, "running", now->server.running);
	json_member_f64(&j, "waiting", now->server.waiting);
	json_member_f64(&j, "kv_cache_usage", now->server.kv_usage);
	json_member_f64(&j, "gpu_utilization_percent", m->gpu_utilization);
	json_member_f64(&j, "gpu_memory_bytes", m->gpu_memory);
	json_member_f64(&j, "gpu_power_w", m->gpu_power);
	json_member_f64(&j, "host_cpus_busy", m->host_cpus_busy);
	json_member_f64(&j, "host_memory_bytes", m->host_memory);
	json_member_f64(&j, "process_cpus_busy", m->process_cpus_busy);
	json_member_f64(&j, "process_rss_bytes", m->process_rss);
	event_end(r, &line, &j);
}

static void events_member(void *self, const struct suite_now *now)
{
	struct run_events *r = self;
	struct buf line = { 0 };
	struct json_writer j = event_begin(&line, "progress");

	json_member_text(&j, "member", now->member->label);
	put_count(&j, "number", now->at);
	put_count(&j, "of", now->n);
	json_member_text(&j, "status", now->has_ended ? outcome_status_name(now->status) : NULL);
	event_end(r, &line, &j);
	r->inner.member(r->inner.self, now);
}

static void events_child(void *self, const struct suite_member *m, const char *text, bool is_err)
{
	struct run_events *r = self;

	r->inner.child(r->inner.self, m, text, is_err);
}

int run_events_begin(const char *path, struct suite_hooks *hooks, struct run_events **out,
		     struct err *e)
{
	struct run_events *r;
	int fd;

	*out = NULL;
	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_set(e, ERR_USAGE, "--events: cannot write %s: %s", path, strerror(errno));
	r = mem_alloc(sizeof(*r));
	r->inner = *hooks;
	r->fd = fd;
	hooks->self = r;
	hooks->member = events_member;
	hooks->child = events_child;
	hooks->run.self = r;
	hooks->run.line = events_line;
	hooks->run.text = events_text;
	hooks->run.warn = events_warn;
	hooks->run.progress = events_progress;
	hooks->run.sample = events_sample;
	*out = r;
	return 0;
}

void run_events_end(struct run_events *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

/* ---- to a dashboard ---- */

struct run_report {
	struct suite_hooks inner;
	const char *url;           /* --dashboard; NULL: what each member says */
	struct reporter *reporter; /* NULL: this member does not report */
	const char *to;            /* where it reports */
	bool has_samples;          /* of this member's load */
};

static void report_line(void *self, const char *text)
{
	struct run_report *r = self;

	r->inner.run.line(r->inner.run.self, text);
}

static void report_text(void *self, struct str text)
{
	struct run_report *r = self;

	r->inner.run.text(r->inner.run.self, text);
}

static void report_warn(void *self, const char *text)
{
	struct run_report *r = self;

	r->inner.run.warn(r->inner.run.self, text);
}

/* The load's own progress comes as samples, which say more. */
static void report_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	struct run_report *r = self;

	if (!r->has_samples || strcmp(what, BENCHMARK) != 0)
		reporter_stage(r->reporter, what, done, total);
	r->inner.run.progress(r->inner.run.self, what, done, total);
}

static void report_sample(void *self, const struct run_sample *now)
{
	struct run_report *r = self;

	r->has_samples = true;
	reporter_sample(r->reporter, now);
	if (r->inner.run.sample)
		r->inner.run.sample(r->inner.run.self, now);
}

/* A member has ended: reports its document, as in its file. */
static void report_document(struct run_report *r, const struct suite_now *now)
{
	struct buf text = { 0 };
	struct err e = { 0 };

	if (now->status == OUTCOME_FAILED && !file_exists(now->member->path))
		err_set(&e, ERR_RUN, "%s", now->reason ? now->reason : "it failed");
	else if (file_read(now->member->path, BUF_BYTES_MAX, &text, &e) < 0)
		buf_reset(&text);
	reporter_end(r->reporter, buf_str(&text), e.code ? e.text : now->reason);
	buf_release(&text);
}

static const char *report_url(const char *url, const struct suite_member *m)
{
	return url ? url : m->x.output.dashboard;
}

/* The address was checked before anything ran, but its token may be invalid by now. */
static void report_begins(struct run_report *r, const struct suite_member *m)
{
	const struct reporter_opts o = { .url = report_url(r->url, m), .kind = "run",
					 .self = r->inner.run.self, .line = r->inner.run.line,
					 .warn = r->inner.run.warn };
	struct err e = { 0 };

	if (r->reporter && (!o.url || strcmp(o.url, r->to) != 0)) {
		reporter_free(r->reporter);
		r->reporter = NULL;
	}
	if (o.url && !r->reporter && reporter_new(&o, &r->reporter, &e) < 0)
		o.warn(o.self, e.text);
	r->to = o.url;
	r->has_samples = false;
	reporter_begin(r->reporter, m->label);
}

static void report_member(void *self, const struct suite_now *now)
{
	struct run_report *r = self;

	if (now->has_ended)
		report_document(r, now);
	r->inner.member(r->inner.self, now);
	if (!now->has_ended)
		report_begins(r, now->member);
}

static void report_child(void *self, const struct suite_member *m, const char *text, bool is_err)
{
	struct run_report *r = self;

	r->inner.child(r->inner.self, m, text, is_err);
}

int run_report_begin(const char *url, bool is_itself, const struct suite *suite,
		     struct suite_hooks *hooks, struct run_report **out, struct err *e)
{
	struct run_report *r;
	bool is_any = false;

	*out = NULL;
	for (size_t i = 0; i < suite->n; i++) {
		const char *to = report_url(url, &suite->member[i]);
		struct dashboard d;
		int rc;

		if (!to || !suite->member[i].is_chosen)
			continue;
		rc = dashboard_find_printed(to, &d, e);
		dashboard_release(&d);
		if (rc < 0)
			return err_wrap(e, url ? "--dashboard" : "output.dashboard");
		is_any = true;
	}
	if (!is_any || !is_itself)
		return 0;
	r = mem_alloc(sizeof(*r));
	r->inner = *hooks;
	r->url = url;
	hooks->self = r;
	hooks->member = report_member;
	hooks->child = report_child;
	hooks->run.self = r;
	hooks->run.line = report_line;
	hooks->run.text = report_text;
	hooks->run.warn = report_warn;
	hooks->run.progress = report_progress;
	hooks->run.sample = report_sample;
	*out = r;
	return 0;
}

void run_report_end(struct run_report *r)
{
	if (!r)
		return;
	reporter_free(r->reporter);
	free(r);
}

/* ---- what is only shown ---- */

int run_plan(struct command_run *c, struct err *e)
{
	struct buf text = { 0 };
	int rc = 0;

	if (c->o.plan) {
		suite_plan_json(&c->suite, &c->asked, &text);
		if (strcmp(c->o.plan, "-") == 0)
			cli_out(buf_str(&text));
		else
			rc = file_write_atomic(c->o.plan, buf_str(&text), e);
		buf_reset(&text);
	}
	if (c->o.dry_run) {
		suite_plan_text(&c->suite, &c->asked, &text);
		cli_out(buf_str(&text));
	}
	buf_release(&text);
	return rc;
}

static bool check_one(struct command_run *c, const struct suite_member *m,
		      const struct experiment_hooks *hooks)
{
	const struct check_opts o = { .hooks = hooks, .upload_url = c->o.upload,
				      .token_file = c->o.token_file, .is_smoke = true };
	struct buf table = { 0 };
	struct check check;
	bool is_good;

	check_experiment(&m->x, &o, &check);
	run_talk_clear(&c->talk);
	check_table(&m->x, &check, &table);
	cli_out(buf_str(&table));
	is_good = check_passed(&check);
	buf_release(&table);
	check_release(&check);
	return is_good;
}

int run_check(struct command_run *c)
{
	struct suite_hooks hooks = run_talk_hooks(&c->talk, -1);
	int status = 0;

	hooks.run.line = NULL;
	hooks.run.text = NULL;
	for (size_t i = 0; i < c->suite.n && !*cli_is_interrupted(); i++) {
		const struct suite_member *m = &c->suite.member[c->suite.order[i]];

		if (m->is_chosen && !check_one(c, m, &hooks.run))
			status = RUN_EXIT_FAILED;
	}
	return *cli_is_interrupted() ? RUN_EXIT_INTERRUPTED : status;
}

/* A member's configuration as given, and the settings of its benchmark and servers. */
static void print_member(struct json_writer *w, const struct suite_member *m)
{
	json_begin_object(w);
	json_member_text(w, "name", m->label);
	json_member_value(w, "given", m->config);
	json_key(w, "benchmark");
	if (m->x.benchmark)
		json_put_value(w, m->x.benchmark);
	else
		json_put_null(w);
	json_member_object(w, "servers");
	for (size_t i = 0; i < m->x.n_servers; i++) {
		json_key(w, m->x.server[i].name);
		if (m->x.server[i].values)
			json_put_value(w, m->x.server[i].values);
		else
			json_put_null(w);
	}
	json_end_object(w);
	json_end_object(w);
}

void run_print_config(struct command_run *c)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);

	w.indent = 2;
	w.is_raw_utf8 = true;
	json_begin_array(&w);
	for (size_t i = 0; i < c->suite.n; i++)
		if (c->suite.member[i].is_chosen)
			print_member(&w, &c->suite.member[i]);
	json_end_array(&w);
	buf_add_char(&text, '\n');
	redact_tail(&text, 0, REDACT_SETTINGS);
	cli_out_buf(&text);
}
