/* SPDX-License-Identifier: Apache-2.0 */
/* run_events.c - see run_events.h. */
#include "cmd/verbs/run_events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "bench/serve/point.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/json/write.h"

#define PROGRESS_NS 250000000
#define TELEMETRY_NS 1000000000

struct run_events {
	struct suite_hooks inner;
	int fd;
	char what[64];
	int64_t progress_ns, telemetry_ns;
};

static struct json_writer begin(struct buf *line, const char *event)
{
	struct json_writer j = json_writer(line);

	json_begin_object(&j);
	json_member_text(&j, "event", event);
	json_member_f64(&j, "at", (double)(clock_real_ns() / 1000000) / 1000);
	return j;
}

static void end(struct run_events *r, struct buf *line, struct json_writer *j)
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

static void on_line(void *self, const char *text)
{
	struct run_events *r = self;
	struct buf line = { 0 };
	struct json_writer j = begin(&line, "progress");

	json_member_text(&j, "line", text);
	end(r, &line, &j);
	r->inner.run.line(r->inner.run.self, text);
}

static void on_text(void *self, struct str text)
{
	struct run_events *r = self;

	r->inner.run.text(r->inner.run.self, text);
}

static void on_warn(void *self, const char *text)
{
	struct run_events *r = self;

	r->inner.run.warn(r->inner.run.self, text);
}

static void on_progress(void *self, const char *what, uint64_t done, uint64_t total)
{
	struct run_events *r = self;
	int64_t now = clock_mono_ns();
	bool is_new = strncmp(r->what, what, sizeof(r->what) - 1) != 0;

	if (is_new || now - r->progress_ns >= PROGRESS_NS || (total && done == total)) {
		struct buf line = { 0 };
		struct json_writer j = begin(&line, "progress");

		snprintf(r->what, sizeof(r->what), "%s", what);
		r->progress_ns = now;
		json_member_text(&j, "what", what);
		put_count(&j, "done", done);
		put_count(&j, "total", total);
		end(r, &line, &j);
	}
	r->inner.run.progress(r->inner.run.self, what, done, total);
}

static void on_sample(void *self, const struct run_sample *now)
{
	struct run_events *r = self;
	const struct system_now *m = &now->system;
	int64_t at = clock_mono_ns();
	struct buf line = { 0 };
	struct json_writer j;

	if (at - r->telemetry_ns < TELEMETRY_NS)
		return;
	r->telemetry_ns = at;
	j = begin(&line, "telemetry");
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
	end(r, &line, &j);
}

static void on_member(void *self, const struct suite_now *now)
{
	struct run_events *r = self;
	struct buf line = { 0 };
	struct json_writer j = begin(&line, "progress");

	json_member_text(&j, "member", now->member->label);
	put_count(&j, "number", now->at);
	put_count(&j, "of", now->n);
	json_member_text(&j, "status", now->has_ended ? outcome_status_name(now->status) : NULL);
	end(r, &line, &j);
	r->inner.member(r->inner.self, now);
}

static void on_child(void *self, const struct suite_member *m, const char *text, bool is_err)
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
	hooks->member = on_member;
	hooks->child = on_child;
	hooks->run.self = r;
	hooks->run.line = on_line;
	hooks->run.text = on_text;
	hooks->run.warn = on_warn;
	hooks->run.progress = on_progress;
	hooks->run.sample = on_sample;
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
