/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - see job.h: jobs as JSON, their events, the routes of jobs and of launching. */
#include "web/job.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "host/engine/args.h"
#include "web/api.h"
#include "web/web_internal.h"

#define LISTED 50
#define LISTED_MAX 1000

int job_find(const struct web_request *r, struct web_answer *a, struct job *out, struct err *e)
{
	if (store_job(r->store, arena_text(r->arena, r->id[0]), r->arena, out, e) == 0)
		return 0;
	if (e->code == ERR_USAGE)
		a->status = 404;
	return -1;
}

bool job_is_over(const struct job *job)
{
	return !str_is(job->state, "waiting") && !str_is(job->state, "running");
}

static void put_time(struct json_writer *j, const char *key, double s)
{
	json_key(j, key);
	if (isnan(s))
		json_put_null(j);
	else
		json_put_f64(j, s);
}

/* The details that the job's kind keeps, and its resulting runs. */
static void put_detail(struct json_writer *j, struct str detail)
{
	struct json_scan s = { .text = detail };
	struct json_slice object = { 0 }, ids;
	bool is_object = detail.n && json_next(&s, &object, NULL) == 0 &&
			 object.kind == JSON_OBJECT;

	json_member_raw(j, "detail", is_object ? object.raw : STR("{}"));
	json_member_raw(j, "run_ids", is_object && json_member(object, "run_ids", &ids) ? ids.raw :
			STR("[]"));
}

void job_put_counts(struct json_writer *j, const size_t n_outcome[PUT_OUTCOMES])
{
	static const enum put_outcome all[] = { PUT_NEW, PUT_DUPLICATE, PUT_CONFLICT, PUT_INVALID };

	json_member_object(j, "counts");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		json_member_int(j, put_outcome_name(all[i]), (int64_t)n_outcome[all[i]]);
	json_end_object(j);
}

/* An experiment has no files; what counts is the runs that it left, which its details keep. */
static void put_counts(struct json_writer *j, const struct job *job)
{
	const struct json_value *runs, *counts;
	struct json_value *detail = NULL;
	struct arena a = { 0 };
	size_t n = 0;

	if (str_is(job->kind, "run"))
		json_parse(&a, job->detail, &detail, NULL);
	runs = json_get(detail, "run_ids");
	counts = json_get(detail, "counts");
	if (runs)
		n = runs->count;
	json_member_int(j, "total", (int64_t)(job->n_files + n));
	json_member_int(j, "done", (int64_t)(job->n_done + n));
	if (counts)
		json_member_value(j, "counts", counts);
	else
		job_put_counts(j, job->n_outcome);
	arena_release(&a);
}

void job_put(struct json_writer *j, const struct job *job)
{
	json_member_str(j, "job_id", job->id);
	json_member_str(j, "kind", job->kind);
	json_member_str(j, "state", job->state);
	put_time(j, "created", job->created_s);
	put_time(j, "ended", job->ended_s);
	put_counts(j, job);
	put_detail(j, job->detail);
}

static void put_file(struct json_writer *j, const struct job_file *f)
{
	json_begin_object(j);
	json_member_str(j, "name", f->name);
	json_member_text(j, "outcome", f->is_done ? put_outcome_name(f->result.outcome) : NULL);
	json_member_int(j, "runs", (int64_t)f->n_runs);
	data_put_key_id(j, "id", f->result.id);
	data_put_key_or_null(j, "reason", f->result.reason);
	json_end_object(j);
}

void job_put_files(struct json_writer *j, const struct job *job, bool *seen)
{
	json_member_array(j, "files");
	for (size_t i = 0; i < job->n_files; i++) {
		if (seen && (seen[i] || !job->file[i].is_done))
			continue;
		if (seen)
			seen[i] = true;
		put_file(j, &job->file[i]);
	}
	json_end_array(j);
}

#define HEARTBEAT_NS 15000000000 /* so that nothing in between takes the stream for dead */
#define OTHERS_NS 2000000000     /* between two checks for changes made by other processes */

struct events;

/*
 * Appends what has happened since the last call to s, as events; false: that was the end. Called a
 * few times a second by the one thread of all streams.
 */
typedef bool events_more(void *self, struct events *s, struct err *e);

struct events {
	struct web *web;
	events_more *more;
	void (*drop)(void *self);
	void *self;
	struct buf out;
	int64_t last_ns, looked_ns;
	uint64_t changes;
	bool is_over;
};

/* Called between two reads of the stream, when its thread does not read it. */
static void look(void *self)
{
	struct events *s = self;
	struct err e = { 0 };

	if (!s->out.len && !s->is_over)
		s->is_over = !s->more(s->self, s, &e);
	if (e.code)
		log_say(s->web, NULL, "error", e.text);
	if (!s->out.len && !s->is_over && clock_mono_ns() - s->last_ns > HEARTBEAT_NS)
		buf_add_text(&s->out, ":\n\n");
}

static long pull(void *self, char *out, size_t room)
{
	struct events *s = self;

	if (!s->out.len)
		return s->is_over ? 0 : -2;
	if (room > s->out.len)
		room = s->out.len;
	memcpy(out, s->out.data, room);
	buf_cut(&s->out, room);
	s->last_ns = clock_mono_ns();
	return (long)room;
}

static void pull_end(void *self)
{
	struct events *s = self;

	s->drop(s->self);
	buf_release(&s->out);
	free(s);
}

static void events_answer(const struct web_request *r, struct web_answer *a, events_more *more,
		   void (*drop)(void *self), void *self)
{
	struct events *s = mem_alloc(sizeof(*s));

	s->web = r->web;
	s->more = more;
	s->drop = drop;
	s->self = self;
	s->last_ns = clock_mono_ns();
	web_bytes(a, "text/event-stream");
	a->is_stream = true;
	a->self = s;
	a->pull = pull;
	a->pull_end = pull_end;
	a->look = look;
}

static void events_put(struct events *s, const char *name, struct str data)
{
	buf_printf(&s->out, "event: %s\ndata: ", name);
	buf_add_str(&s->out, data);
	buf_add_text(&s->out, "\n\n");
}

static bool events_is_due(struct events *s)
{
	uint64_t changes = atomic_load(&s->web->job_changes);
	int64_t now = clock_mono_ns();

	if (s->looked_ns && changes == s->changes && now - s->looked_ns < OTHERS_NS)
		return false;
	s->changes = changes;
	s->looked_ns = now;
	return true;
}

/*
 * Follows a started experiment by its folder's files: the log, and the lines that `profllm run
 * --events` writes.
 */

#define PIECE_BYTES 32768
#define LOG_ANSWER_BYTES (1u << 20)

/* A file that grows. */
struct tail {
	char *path;
	off_t at;
	struct buf kept;     /* the beginning of a line */
};

struct run_stream {
	char id[17];
	struct tail log, events;
	char state[16];
	bool is_over;        /* what is left of the files is still to be read */
};

/* Whole new lines, at most a piece; is_last: an unfinished line counts as well. */
static void tail_read(struct tail *t, bool is_last, struct buf *out)
{
	int fd = open(t->path, O_RDONLY | O_CLOEXEC);
	char piece[PIECE_BYTES];
	ssize_t n = fd >= 0 ? pread(fd, piece, sizeof(piece), t->at) : -1;
	const char *end;
	size_t whole;

	if (fd >= 0)
		close(fd);
	if (n > 0) {
		t->at += n;
		buf_add(&t->kept, piece, (size_t)n);
	}
	if (!t->kept.len)
		return;
	end = memrchr(t->kept.data, '\n', t->kept.len);
	whole = end ? (size_t)(end - t->kept.data) + 1 : 0;
	if ((is_last && n <= 0) || (!whole && t->kept.len >= PIECE_BYTES))
		whole = t->kept.len;
	buf_add(out, t->kept.data, whole);
	buf_cut(&t->kept, whole);
}

static bool tail_log(struct run_stream *r, bool is_last, struct events *s)
{
	struct buf text = { 0 }, data = { 0 };
	struct json_writer j = json_writer(&data);
	bool has_more;

	tail_read(&r->log, is_last, &text);
	has_more = text.len > 0;
	if (has_more) {
		json_begin_object(&j);
		json_member_str(&j, "text", buf_str(&text));
		json_member_int(&j, "offset", (int64_t)r->log.at - (int64_t)r->log.kept.len);
		json_end_object(&j);
		events_put(s, "log", buf_str(&data));
	}
	buf_release(&text);
	buf_release(&data);
	return has_more;
}

/* Sorts lines {"event": NAME, ...} by name; others are left out. */
static bool tail_events(struct run_stream *r, bool is_last, struct events *s)
{
	struct buf text = { 0 };
	bool has_more;
	struct str rest;

	tail_read(&r->events, is_last, &text);
	has_more = text.len > 0;
	rest = buf_str(&text);
	while (rest.n) {
		struct str line = str_trim(str_cut(&rest, '\n'));
		struct json_scan scan = { .text = line };
		struct json_slice object, name;

		if (json_next(&scan, &object, NULL) < 0 || object.kind != JSON_OBJECT ||
		    !json_at_end(&scan) || !json_member(object, "event", &name))
			continue;
		if (str_is(name.raw, "progress") || str_is(name.raw, "telemetry"))
			events_put(s, str_is(name.raw, "progress") ? "progress" : "telemetry", line);
	}
	buf_release(&text);
	return has_more;
}

static void put_job(struct events *s, const char *name, const struct job *job)
{
	struct buf data = { 0 };
	struct json_writer j = json_writer(&data);

	j.is_compact = true;
	json_begin_object(&j);
	job_put(&j, job);
	json_end_object(&j);
	events_put(s, name, buf_str(&data));
	buf_release(&data);
}

static bool run_more(void *self, struct events *s, struct err *e)
{
	struct run_stream *r = self;
	struct arena arena = { 0 };
	struct job job;
	bool goes_on = true;

	if (!r->is_over && !events_is_due(s)) {
		tail_log(r, false, s);
		tail_events(r, false, s);
		return true;
	}
	goes_on = store_job(s->web->store, r->id, &arena, &job, e) == 0;
	if (goes_on) {
		bool is_over = r->is_over = job_is_over(&job);
		bool has_more = tail_log(r, is_over, s);

		has_more |= tail_events(r, is_over, s);
		if (!str_is(job.state, r->state)) {
			snprintf(r->state, sizeof(r->state), "%.*s", (int)job.state.n, job.state.p);
			put_job(s, "job", &job);
		}
		/* Everything that was written before the end has been read. */
		if (is_over && !has_more) {
			put_job(s, "end", &job);
			goes_on = false;
		}
	}
	arena_release(&arena);
	return goes_on;
}

static void run_drop(void *self)
{
	struct run_stream *r = self;

	free(r->log.path);
	free(r->events.path);
	buf_release(&r->log.kept);
	buf_release(&r->events.kept);
	free(r);
}

static char *path_in(const struct web *w, const struct job *job, const char *name)
{
	char *folder = launch_folder(w, job), *path = folder ? file_join(folder, name) : NULL;

	free(folder);
	return path ? path : mem_text("");
}

static void launch_events(const struct web_request *r, const struct job *job, struct web_answer *a)
{
	struct run_stream *s = mem_alloc(sizeof(*s));

	snprintf(s->id, sizeof(s->id), "%.*s", (int)job->id.n, job->id.p);
	s->log.path = path_in(r->web, job, LAUNCH_LOG);
	s->events.path = path_in(r->web, job, LAUNCH_EVENTS);
	events_answer(r, a, run_more, run_drop, s);
}

static int launch_log(const struct web_request *r, const struct job *job, struct web_answer *a,
	       struct err *e)
{
	struct str offset = web_param(r, "offset");
	char *path = path_in(r->web, job, LAUNCH_LOG), next[24];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int64_t at = 0;
	ssize_t n = 0;

	free(path);
	if (offset.n && (!str_to_i64(offset, &at) || at < 0)) {
		if (fd >= 0)
			close(fd);
		return err_set(e, ERR_USAGE, "offset: expected a number of bytes");
	}
	web_bytes(a, "text/plain; charset=utf-8");
	if (fd >= 0 && buf_reserve(&a->body, LOG_ANSWER_BYTES) == 0)
		n = pread(fd, a->body.data, LOG_ANSWER_BYTES, at);
	if (n > 0) {
		a->body.len = (size_t)n;
		a->body.data[n] = 0;
	}
	if (fd >= 0)
		close(fd);
	snprintf(next, sizeof(next), "%lld", (long long)(at + (n > 0 ? n : 0)));
	web_set_header(r, a, "X-Next-Offset", next);
	return 0;
}

/* ---- uploads ---- */

struct upload_stream {
	char id[17];
	bool *seen;
	size_t n_seen, n_done;
	bool has_begun;
};

static bool upload_more(void *self, struct events *s, struct err *e)
{
	struct upload_stream *u = self;
	struct arena arena = { 0 };
	struct buf data = { 0 };
	struct json_writer j = json_writer(&data);
	struct job job;
	bool goes_on;

	if (!events_is_due(s))
		return true;
	goes_on = store_job(s->web->store, u->id, &arena, &job, e) == 0;
	if (goes_on && (!u->has_begun || job.n_done != u->n_done || job_is_over(&job))) {
		if (job.n_files > u->n_seen) {
			u->seen = mem_grow(u->seen, job.n_files, sizeof(*u->seen));
			memset(u->seen + u->n_seen, 0, job.n_files - u->n_seen);
			u->n_seen = job.n_files;
		}
		u->has_begun = true;
		u->n_done = job.n_done;
		j.is_compact = true;
		json_begin_object(&j);
		job_put(&j, &job);
		job_put_files(&j, &job, u->seen);
		json_end_object(&j);
		events_put(s, "progress", buf_str(&data));
	}
	if (goes_on && job_is_over(&job)) {
		buf_reset(&data);
		buf_printf(&data, "{\"job_id\":\"%s\",\"state\":\"%.*s\"}", u->id,
			   (int)job.state.n, job.state.p);
		events_put(s, "end", buf_str(&data));
		goes_on = false;
	}
	buf_release(&data);
	arena_release(&arena);
	return goes_on;
}

static void upload_drop(void *self)
{
	struct upload_stream *u = self;

	free(u->seen);
	free(u);
}

static void events_upload(const struct web_request *r, const struct job *job, struct web_answer *a)
{
	struct upload_stream *u = mem_alloc(sizeof(*u));

	snprintf(u->id, sizeof(u->id), "%.*s", (int)job->id.n, job->id.p);
	events_answer(r, a, upload_more, upload_drop, u);
}

/*
 * The routes below /api/launch: what a configuration may hold, what it would do, and starting it.
 *
 * `profllm run` answers these questions, as a program: --print-keys for the keys, --plan for what a
 * configuration would do. So this server and the command line never judge differently.
 */

#define CONFIG_BYTES (1u << 20)
#define NAME_BYTES_MAX 200
#define FINDING "profllm run: "

/* ---- what there is to set ---- */

/* A cell of a Markdown table, without code marks; "\|" is a bar. */
static struct str next_cell(struct str *row, struct buf *out)
{
	buf_reset(out);
	while (row->n && row->p[0] != '|') {
		size_t step = row->n > 1 && row->p[0] == '\\' && row->p[1] == '|';

		if (row->p[step] != '`')
			buf_add_char(out, row->p[step]);
		row->p += step + 1;
		row->n -= step + 1;
	}
	if (row->n)
		*row = (struct str){ row->p + 1, row->n - 1 };
	return str_trim(buf_str(out));
}

static void put_key(struct json_writer *j, struct str row)
{
	static const char *const member[] = { "key", "value", "default", "help" };
	struct buf cell = { 0 };

	row = (struct str){ row.p + 1, row.n - 1 };
	json_begin_object(j);
	for (size_t i = 0; i < 4; i++) {
		struct str text = next_cell(&row, &cell);

		json_key(j, member[i]);
		if (text.n || i == 0)
			json_put_str(j, text);
		else
			json_put_null(j);
	}
	json_end_object(j);
	buf_release(&cell);
}

/* "## name", prose, a table whose first two rows are its head. */
static void put_sections(struct json_writer *j, struct str page)
{
	bool is_open = false;
	unsigned rows = 0;

	json_member_array(j, "sections");
	while (page.n) {
		struct str line = str_cut(&page, '\n');

		if (str_starts(line, STR("## "))) {
			if (is_open) {
				json_end_array(j);
				json_end_object(j);
			}
			is_open = true;
			rows = 0;
			json_begin_object(j);
			json_member_str(j, "name", (struct str){ line.p + 3, line.n - 3 });
			json_member_array(j, "keys");
		} else if (is_open && line.n && line.p[0] == '|' && ++rows > 2) {
			put_key(j, line);
		}
	}
	if (is_open) {
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_arguments(struct json_writer *j)
{
	json_member_array(j, "arguments");
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		char name[128];
		size_t n = strlen(arg->name);

		if (arg->until || n >= sizeof(name))
			continue;
		for (size_t k = 0; k <= n; k++)
			name[k] = arg->name[k] == '-' ? '_' : arg->name[k];
		json_begin_object(j);
		json_member_text(j, "key", name);
		json_member_text(j, "value", arg->choices);
		json_member_text(j, "default", arg->initial);
		json_member_text(j, "help", arg->about);
		json_member_text(j, "group", arg->group);
		json_end_object(j);
	}
	json_end_array(j);
}

static int launch_schema(const struct web_request *r, struct web_answer *a, struct err *e)
{
	char *const words[] = { (char[]){ "--print-keys" }, NULL };
	struct buf page = { 0 };
	int rc = launch_ask(r, a, words, STR(""), &page, NULL, e);

	if (rc == 0) {
		put_sections(&a->json, buf_str(&page));
		put_arguments(&a->json);
	} else if (rc > 0) {
		rc = err_set(e, ERR_RUN, "profllm run --print-keys ended with %d", rc);
	}
	buf_release(&page);
	return rc;
}

/* The first line of its comment. */
static struct str title_of(struct str text)
{
	struct str line = str_cut(&text, '\n');

	while (line.n && (line.p[0] == '#' || line.p[0] == ' '))
		line.p++, line.n--;
	return line;
}

static int launch_examples(const struct web_request *r, struct web_answer *a, struct err *e)
{
	(void)e;
	json_member_array(&a->json, "items");
	for (const struct web_asset *x = web_examples; x->name; x++) {
		char *text = arena_alloc(r->arena, x->bytes + 1);
		size_t got = 0;

		if (zip_unpack((struct str){ x->packed, x->packed_bytes }, text, x->bytes, &got) !=
		    ZIP_DONE)
			continue;
		json_begin_object(&a->json);
		json_member_text(&a->json, "name", x->name);
		json_member_str(&a->json, "title", title_of((struct str){ text, got }));
		json_member_str(&a->json, "config", (struct str){ text, got });
		json_end_object(&a->json);
	}
	json_end_array(&a->json);
	return 0;
}

/* ---- a configuration ---- */

struct judged {
	bool is_ok;
	struct buf plan, findings;   /* JSON; lines as `profllm run` prints them */
};

static int read_config(const struct web_request *r, struct str *config, struct err *e)
{
	const struct json_value *v = json_get(r->body, "config");

	*config = json_text(v, (struct str){ 0 });
	if (!config->p)
		return err_set(e, ERR_USAGE, "expected {\"config\": \"...\"}, YAML or JSON as a text");
	if (config->n > CONFIG_BYTES)
		return err_set(e, ERR_USAGE, "the configuration has %zu bytes; at most %u are taken",
			       config->n, CONFIG_BYTES);
	return 0;
}

/* Both start a process, and a check reads what the configuration names. */
static int may_launch(const struct web_request *r, struct web_answer *a, struct err *e)
{
	if (r->web->o.launches)
		return 0;
	a->status = 403;
	return err_set(e, ERR_USAGE, "this dashboard neither starts nor checks experiments "
		       "(--no-launch)");
}

static int judge(const struct web_request *r, struct web_answer *a, struct str config,
		 struct judged *out, struct err *e)
{
	char *const words[] = { (char[]){ "--config" }, (char[]){ "-" }, (char[]){ "--plan" },
				(char[]){ "-" }, NULL };
	int rc = launch_ask_once(r, a, words, config, &out->plan, &out->findings, e);

	if (rc < 0)
		return -1;
	out->is_ok = rc == 0;
	return 0;
}

static void judged_release(struct judged *j)
{
	buf_release(&j->plan);
	buf_release(&j->findings);
}

/* "stdin:LINE:COLUMN: text"; without a place line and column are null. */
static void put_finding(struct json_writer *j, struct str line, const char *level)
{
	struct str rest = line, file = str_cut(&rest, ':'), row = str_cut(&rest, ':');
	struct str column = str_cut(&rest, ':');
	int64_t at[2];
	bool has_place = str_is(file, "stdin") && str_to_i64(row, &at[0]) &&
			 str_to_i64(column, &at[1]);

	json_begin_object(j);
	json_member_text(j, "level", level);
	for (int i = 0; i < 2; i++) {
		json_key(j, i ? "column" : "line");
		if (has_place)
			json_put_int(j, at[i]);
		else
			json_put_null(j);
	}
	json_member_str(j, "text", has_place ? str_trim(rest) : line);
	json_end_object(j);
}

static void put_findings(struct json_writer *j, struct str text)
{
	struct str warning = STR("WARNING: "), error = STR(FINDING);

	json_member_array(j, "findings");
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (str_starts(line, error))
			put_finding(j, (struct str){ line.p + error.n, line.n - error.n }, "error");
		else if (str_starts(line, warning))
			put_finding(j, (struct str){ line.p + warning.n, line.n - warning.n },
				    "warning");
		else if (line.n)
			put_finding(j, line, "error");
	}
	json_end_array(j);
}

static int launch_check(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct judged j = { 0 };
	struct str config;
	int rc = may_launch(r, a, e);

	if (rc == 0)
		rc = read_config(r, &config, e);
	if (rc == 0)
		rc = judge(r, a, config, &j, e);
	if (rc == 0) {
		json_member_bool(&a->json, "ok", j.is_ok);
		put_findings(&a->json, buf_str(&j.findings));
		json_key(&a->json, "plan");
		if (j.is_ok)
			json_put_raw(&a->json, str_trim(buf_str(&j.plan)));
		else
			json_put_null(&a->json);
	}
	judged_release(&j);
	return rc;
}

/* The name in the plan: the suite's, else its only experiment's. */
static struct str name_of(struct arena *a, struct str plan)
{
	struct json_value *v = NULL;
	const struct json_value *list;
	struct str name = { 0 };

	if (json_parse(a, plan, &v, NULL) == 0) {
		list = json_get(v, "experiments");
		name = json_text(json_get(v, "suite"), name);
		if (!name.n && list && list->kind == JSON_ARRAY && list->count)
			name = json_text(json_get(&list->item[0], "name"), name);
	}
	if (name.n > NAME_BYTES_MAX)
		name.n = NAME_BYTES_MAX;
	return name;
}

/* The first error's sentence. */
static struct str first_error(struct str findings)
{
	struct str error = STR(FINDING), line = { 0 };

	while (findings.n) {
		line = str_cut(&findings, '\n');
		if (str_starts(line, error))
			return (struct str){ line.p + error.n, line.n - error.n };
	}
	return line;
}

/* The name of the user's token; empty if no token names the user. */
static struct str user_of(const struct web_request *r)
{
	return str_is(r->who, "local") ? (struct str){ 0 } : r->who;
}

static int launch_begin(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct judged j = { 0 };
	struct str config, why;
	char id[17];
	int rc = may_launch(r, a, e);

	if (rc == 0)
		rc = read_config(r, &config, e);
	if (rc == 0)
		rc = judge(r, a, config, &j, e);
	if (rc == 0 && !j.is_ok) {
		why = first_error(buf_str(&j.findings));
		a->status = 422;
		rc = err_set(e, ERR_USAGE, "%.*s", (int)why.n, why.n ? why.p : "");
	}
	if (rc == 0)
		rc = launch_add(r->web->launch, config, name_of(r->arena, buf_str(&j.plan)),
				user_of(r), id, e);
	judged_release(&j);
	if (rc < 0)
		return -1;
	a->status = 202;
	json_member_text(&a->json, "job_id", id);
	return 0;
}

/* ---- routes ---- */

static int jobs_list(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str limit = web_param(r, "limit");
	uint64_t most = LISTED;
	struct job *job;
	size_t n;

	if (limit.n && (!str_to_u64(limit, &most) || most < 1 || most > LISTED_MAX))
		return err_set(e, ERR_USAGE, "limit: expected a number from 1 to %d", LISTED_MAX);
	if (store_jobs(r->store, (size_t)most, r->arena, &job, &n, e) < 0)
		return -1;
	json_member_int(&a->json, "total", (int64_t)n);
	json_member_array(&a->json, "items");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(&a->json);
		job_put(&a->json, &job[i]);
		json_end_object(&a->json);
	}
	json_end_array(&a->json);
	json_member_null(&a->json, "next");
	return 0;
}

static int job_show(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	job_put(&a->json, &job);
	return 0;
}

static int job_events(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	if (str_is(job.kind, "run"))
		launch_events(r, &job, a);
	else
		events_upload(r, &job, a);
	return 0;
}

static int job_log(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	if (!str_is(job.kind, "run")) {
		a->status = 404;
		return err_set(e, ERR_USAGE, "job %.*s has no log", (int)job.id.n, job.id.p);
	}
	return launch_log(r, &job, a, e);
}

static int job_cancel(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	if (job_is_over(&job)) {
		a->status = 409;
		return err_set(e, ERR_USAGE, "job %.*s is %.*s already", (int)job.id.n, job.id.p,
			       (int)job.state.n, job.state.p);
	}
	if (str_is(job.kind, "run"))
		return launch_cancel(r->web, &job, user_of(r), e);
	if (store_job_state(r->store, arena_text(r->arena, job.id), "cancelled", (struct str){ 0 },
			    e) < 0)
		/* it ended at this moment */
		return asked_usage(a, 409, e);
	atomic_fetch_add(&r->web->job_changes, 1);
	return 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/jobs", 0, jobs_list },
	{ "GET", "/api/jobs/{id}", 0, job_show },
	{ "GET", "/api/jobs/{id}/events", 0, job_events },
	{ "GET", "/api/jobs/{id}/log", 0, job_log },
	{ "POST", "/api/jobs/{id}/cancel", ROUTE_CHANGES | ROUTE_LAUNCHES, job_cancel },
	{ "GET", "/api/launch/schema", ROUTE_READS, launch_schema },
	{ "GET", "/api/launch/examples", ROUTE_READS, launch_examples },
	/*
	 * It starts a process, and a configuration may name files here, so it needs the same
	 * permission as launching.
	 */
	{ "POST", "/api/launch/check", ROUTE_CHANGES | ROUTE_LAUNCHES, launch_check },
	{ "POST", "/api/launch", ROUTE_CHANGES | ROUTE_LAUNCHES, launch_begin },
};
const struct web_routes job_routes = { routes, sizeof(routes) / sizeof(*routes) };
