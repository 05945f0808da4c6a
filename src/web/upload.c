/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload.c - uploaded files: one at once, or many as a job that survives a restart.
 *
 * What is answered with 200, 201 or 202 is on disk. A file that cannot be read is 422 with the
 * reason; in a job it is that file's outcome.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "web/api.h"
#include "web/job.h"
#include "web/web_internal.h"

#define BATCH_FILES 256           /* of one upload, in one commit */
#define BATCH_BYTES (16u << 20)

/*
 * The thread that processes the files of uploads, one at a time.
 *
 * It begins with what an earlier process left, and continues when woken. When the store refuses, it
 * tries again later: acknowledged files are stored eventually. Every second it lets the store look
 * for what other processes have written. Files of an upload whose dashboard was killed are released
 * after a while, as another dashboard on the same PostgreSQL database may still be handing them
 * over; on SQLite also at the start.
 */

#define LOOK_SECONDS 1
#define RESUME_SECONDS 60

struct upload_worker {
	struct web *web;
	pthread_t thread;
	bool has_thread, is_over;
	pthread_mutex_t lock;
	pthread_cond_t more, over;
	bool is_woken, is_ending;
	int64_t resumed_ns; /* CLOCK_MONOTONIC */
};

/* Waits to be woken, or for a while. */
static void rest(struct upload_worker *u)
{
	struct timespec until;

	until = clock_read(CLOCK_REALTIME);
	until.tv_sec += LOOK_SECONDS;
	pthread_mutex_lock(&u->lock);
	while (!u->is_ending && !u->is_woken &&
	       pthread_cond_timedwait(&u->more, &u->lock, &until) != ETIMEDOUT)
		;
	u->is_woken = false;
	pthread_mutex_unlock(&u->lock);
}

static bool is_ending(struct upload_worker *u)
{
	bool is;

	pthread_mutex_lock(&u->lock);
	is = u->is_ending;
	pthread_mutex_unlock(&u->lock);
	return is;
}

static int resume(struct upload_worker *u, double waited_s, struct err *e)
{
	u->resumed_ns = clock_mono_ns();
	return u->web->o.is_read_only ? 0 : store_job_resume(u->web->store, waited_s, e);
}

static void *work_main(void *self)
{
	struct upload_worker *u = self;

	while (!is_ending(u)) {
		struct err e = { 0 };
		/* A read-only dashboard leaves the jobs to one that writes. */
		int rc = u->web->o.is_read_only ? 0 : store_job_step(u->web->store, &e);

		if (rc > 0)
			atomic_fetch_add(&u->web->job_changes, 1);
		if (rc == 0)
			rc = store_maintain(u->web->store, &e);
		if (rc == 0 && clock_mono_ns() - u->resumed_ns > RESUME_SECONDS * 1000000000ll)
			rc = resume(u, RESUME_SECONDS, &e);
		if (rc < 0)
			log_say(u->web, NULL, "error", e.text);
		if (rc <= 0)
			rest(u);
	}
	pthread_mutex_lock(&u->lock);
	u->is_over = true;
	pthread_cond_broadcast(&u->over);
	pthread_mutex_unlock(&u->lock);
	return NULL;
}

int upload_open(struct web *w, struct err *e)
{
	struct upload_worker *u = mem_alloc(sizeof(*u));
	int rc;

	u->web = w;
	w->upload = u;
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->more, NULL);
	pthread_cond_init(&u->over, NULL);
	if (resume(u, strcmp(store_kind(w->store), "sqlite") ? RESUME_SECONDS : 0, e) < 0)
		return -1;
	rc = pthread_create(&u->thread, NULL, work_main, u);
	if (rc)
		return err_set(e, ERR_RUN, "cannot start a thread: %s", strerror(rc));
	u->has_thread = true;
	return 0;
}

static void upload_wake(struct web *w)
{
	struct upload_worker *u = w->upload;

	pthread_mutex_lock(&u->lock);
	u->is_woken = true;
	pthread_cond_signal(&u->more);
	pthread_mutex_unlock(&u->lock);
}

bool upload_stop(struct web *w, int wait_ms)
{
	struct upload_worker *u = w->upload;
	struct timespec until;
	bool is_over;

	if (!u->has_thread)
		return true;
	until = clock_read(CLOCK_REALTIME);
	until.tv_sec += wait_ms / 1000;
	pthread_mutex_lock(&u->lock);
	u->is_ending = true;
	pthread_cond_signal(&u->more);
	while (!u->is_over && pthread_cond_timedwait(&u->over, &u->lock, &until) == 0)
		;
	is_over = u->is_over;
	pthread_mutex_unlock(&u->lock);
	if (is_over)
		pthread_join(u->thread, NULL);
	u->has_thread = !is_over;
	return is_over;
}

void upload_close(struct web *w)
{
	struct upload_worker *u = w->upload;

	if (!u)
		return;
	pthread_mutex_destroy(&u->lock);
	pthread_cond_destroy(&u->more);
	pthread_cond_destroy(&u->over);
	free(u);
	w->upload = NULL;
}

/* ---- one file ---- */

static void put_results(struct json_writer *j, const struct put_result *result,
			const struct read_file *file)
{
	json_member_array(j, "results");
	for (size_t i = 0; i < file->n; i++) {
		json_begin_object(j);
		json_member_text(j, "outcome", put_outcome_name(result[i].outcome));
		data_put_key_id(j, "id", result[i].id);
		json_member_str(j, "run_id", file->run[i].run_id);
		if (result[i].reason.n)
			json_member_str(j, "reason", result[i].reason);
		json_end_object(j);
	}
	json_end_array(j);
	json_member_array(j, "notes");
	for (size_t i = 0; i < file->n_notes; i++)
		json_put_str(j, file->note[i]);
	json_end_array(j);
}

int upload_put(const struct web_request *r, struct str name, struct str bytes,
		    struct web_answer *a, int64_t *first, struct err *e)
{
	struct read_file file = { 0 };
	struct put_result *result;
	size_t invalid = 0, kept = 0;

	a->status = 422;
	if (read_document(name, bytes, r->arena, &file, e) < 0)
		return e->code == ERR_USAGE ? -1 : (e->code = ERR_USAGE, -1);
	if (!file.n)
		return err_set(e, ERR_USAGE, "there is no run in it");
	a->status = 0;
	result = arena_alloc(r->arena, file.n * sizeof(*result));
	if (store_put(r->store, file.run, file.n, r->who, r->arena, result, e) < 0)
		return -1;
	for (size_t i = 0; i < file.n; i++) {
		invalid += result[i].outcome == PUT_INVALID;
		kept += result[i].outcome == PUT_NEW || result[i].outcome == PUT_CONFLICT;
	}
	if (invalid == file.n) {
		a->status = 422;
		return err_set(e, ERR_USAGE, "%.*s", (int)result[0].reason.n, result[0].reason.p);
	}
	a->status = kept ? 201 : 200;
	*first = result[0].id;
	put_results(&a->json, result, &file);
	return 0;
}

static int upload_raw(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int64_t first;

	if (!r->raw.n)
		return err_set(e, ERR_USAGE, "the body is empty; expected a result file");
	return upload_put(r, web_param(r, "name"), r->raw, a, &first, e);
}

static int put_trace(const struct web_request *r, int64_t run, const struct upload_part *p,
		     int64_t *id, struct err *e)
{
	char *path = file_join(r->web->o.folder, ".trace-XXXXXX");
	int fd = mkostemp(path, O_CLOEXEC), rc = -1;

	if (fd < 0 || file_write_all(fd, p->bytes) < 0)
		err_set(e, ERR_IO, "the trace cannot be kept: %s", strerror(errno));
	else
		rc = store_trace_put(r->store, run, p->name, path, id, e);
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	free(path);
	return rc;
}

/* Finds a part of that name, from the first on; 1, 0, -1. */
static int find_part(const struct web_request *r, const char *field, struct upload_part *out,
		     struct err *e)
{
	struct upload_form parts;
	int rc;

	if (parts_open(r, &parts, e) < 0)
		return -1;
	while ((rc = parts_next(&parts, out, e)) > 0)
		if (str_is(out->field, field))
			return 1;
	return rc;
}

static int upload_json(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str type = r->content_type;
	struct upload_part file, part;
	struct upload_form parts;
	size_t n_files = 0;
	int64_t run = 0, trace;
	int rc;

	/* The document itself is accepted like a form with it. */
	if (str_eq_nocase(str_trim(str_cut(&type, ';')), STR("application/json")))
		return upload_raw(r, a, e);
	rc = find_part(r, "file", &file, e);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(e, ERR_USAGE, "the form has no part called file");
	/* The whole form is checked before anything is stored. */
	parts_open(r, &parts, e);
	while ((rc = parts_next(&parts, &part, e)) > 0) {
		n_files += str_is(part.field, "file");
		if (!str_is(part.field, "file") && !str_is(part.field, "trace"))
			return err_set(e, ERR_USAGE, "the form has a part called %.*s; expected one "
				       "file, and trace", (int)part.field.n, part.field.p);
	}
	if (n_files > 1)
		return err_set(e, ERR_USAGE, "the form has %zu parts called file; expected one "
			       "(/api/upload/batch takes many)", n_files);
	if (rc < 0 || upload_put(r, file.name, file.bytes, a, &run, e) < 0)
		return -1;
	parts_open(r, &parts, e);
	while (parts_next(&parts, &part, e) > 0)
		if (str_is(part.field, "trace") &&
		    put_trace(r, run, &part, &trace, e) < 0) {
			a->status = 0;
			return -1;
		}
	return 0;
}

/* ---- many ---- */

static int check_batch(const struct web_request *r, struct web_answer *a, size_t *n,
		       struct err *e)
{
	struct upload_form parts;
	struct upload_part part;
	int rc;

	*n = 0;
	if (parts_open(r, &parts, e) < 0)
		return -1;
	while ((rc = parts_next(&parts, &part, e)) > 0) {
		if (!str_is(part.field, "file") && !str_is(part.field, "files"))
			return err_set(e, ERR_USAGE, "the form has a part called %.*s; expected file",
				       (int)part.field.n, part.field.p);
		if (part.bytes.n > INGEST_BYTES_MAX) {
			a->status = 413;
			return err_set(e, ERR_USAGE, "%.*s has %zu bytes; at most %u are taken"
				       WEB_LARGER_FILES, (int)part.name.n, part.name.p,
				       part.bytes.n, INGEST_BYTES_MAX);
		}
		++*n;
	}
	if (rc == 0 && !*n)
		return err_set(e, ERR_USAGE, "the form has no part called file");
	return rc;
}

/* Adds all files, some at a time: each call is one commit. */
static int add_batch(const struct web_request *r, const char *id, struct err *e)
{
	struct str name[BATCH_FILES], bytes[BATCH_FILES];
	struct upload_form parts;
	struct upload_part part;
	size_t n = 0, sum = 0;

	parts_open(r, &parts, e);
	while (parts_next(&parts, &part, e) > 0) {
		name[n] = part.name;
		bytes[n++] = part.bytes;
		sum += part.bytes.n;
		if (n < BATCH_FILES && sum < BATCH_BYTES)
			continue;
		if (store_job_add_all(r->store, id, name, bytes, n, e) < 0)
			return -1;
		n = sum = 0;
	}
	return n ? store_job_add_all(r->store, id, name, bytes, n, e) : 0;
}

static int upload_batch(const struct web_request *r, struct web_answer *a, struct err *e)
{
	char id[17];
	size_t n;

	if (check_batch(r, a, &n, e) < 0)
		return -1;
	if (store_job_begin(r->store, STR("upload"), STR("{}"), id, e) < 0)
		return -1;
	if (add_batch(r, id, e) < 0 ||
	    store_job_state(r->store, id, "running", (struct str){ 0 }, e) < 0) {
		if (e->code == ERR_USAGE) /* it was cancelled while its files came in */
			a->status = 409;
		store_job_state(r->store, id, "failed", (struct str){ 0 }, NULL);
		return -1;
	}
	upload_wake(r->web);
	a->status = 202;
	json_member_text(&a->json, "job_id", id);
	json_member_int(&a->json, "total", (int64_t)n);
	return 0;
}

static int upload_status(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	if (!str_is(job.kind, "upload")) {
		a->status = 404;
		return err_set(e, ERR_USAGE, "job %.*s is not an upload", (int)job.id.n, job.id.p);
	}
	job_put(&a->json, &job);
	job_put_files(&a->json, &job, NULL);
	return 0;
}

/* ---- routes for profiler traces: list, download, attach to a run, drop ---- */

static struct str run_id_of(const struct web_request *r, int64_t run)
{
	struct value id = { 0 };
	struct row row;

	if (run && index_row(r->view, run, r->arena, &row, NULL))
		id = row_value(&row, STR("run_id"));
	return id.kind == VALUE_TEXT ? id.text : STR("");
}

void trace_put(const struct web_request *r, struct json_writer *w, const struct trace *t)
{
	json_begin_object(w);
	json_member_int(w, "id", t->id);
	data_put_key_id(w, "run", t->run);
	data_put_key_or_null(w, "run_id", run_id_of(r, t->run));
	json_member_str(w, "name", t->name);
	json_member_str(w, "hash", t->hash);
	data_put_key_or_null(w, "model", t->model);
	data_put_key_or_null(w, "commit", t->commit);
	json_member_str(w, "state", t->state);
	json_member_int(w, "bytes", t->bytes);
	data_put_key_number(w, "at", t->at_s);
	json_end_object(w);
}

static int newest_first(const void *a, const void *b)
{
	const struct trace *x = a, *y = b;

	return x->id < y->id ? 1 : x->id > y->id ? -1 : 0;
}

/* The cursor is the number of the previous page's last trace. */
static int list(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int64_t before = INT64_MAX;
	struct trace *t;
	struct ask ask;
	size_t n, shown = 0, at = 0;

	if (asked_query(r, a, ASK_LIMIT | ASK_CURSOR, &ask, e) < 0)
		return -1;
	if (ask.query.cursor.n && (!str_to_i64(ask.query.cursor, &before) || before < 1))
		return asked_wrong(a, e, r->arena, "/cursor", "the \"next\" value of the previous "
							      "page");
	if (store_traces(r->store, 0, r->arena, &t, &n, e) < 0)
		return -1;
	if (n)
		qsort(t, n, sizeof(*t), newest_first);
	json_member_int(&a->json, "total", (int64_t)n);
	json_member_array(&a->json, "items");
	while (at < n && t[at].id >= before)
		at++;
	for (; at < n && shown < ask.query.limit; at++, shown++)
		trace_put(r, &a->json, &t[at]);
	json_end_array(&a->json);
	data_put_key_or_null(&a->json, "next",
			     at < n && shown ? str_of(arena_printf(r->arena, "%lld",
							(long long)t[at - 1].id)) : STR(""));
	return 0;
}

/* A problem that lists the ids to ask for instead. */
static int say_several(const struct web_request *r, struct web_answer *a, int64_t run,
		       const struct trace *t, size_t n)
{
	struct json_writer w;
	struct str run_id = run_id_of(r, run);

	web_bytes(a, "application/problem+json");
	a->status = 409;
	w = json_writer(&a->body);
	w.is_compact = w.is_raw_utf8 = true;
	json_begin_object(&w);
	json_member_str(&w, "type", STR("about:blank"));
	json_member_str(&w, "title", STR("Conflict"));
	json_member_int(&w, "status", 409);
	json_member_str(&w, "detail",
			 str_of(arena_printf(r->arena, "run %.*s has %zu traces; ask for one of them "
					     "by its number, the id of one of `traces`",
					     (int)run_id.n, run_id.p, n)));
	json_member_array(&w, "traces");
	for (size_t i = 0; i < n; i++)
		trace_put(r, &w, &t[i]);
	json_end_array(&w);
	json_end_object(&w);
	return 0;
}

/*
 * The trace of a run, by its run_id: 1; 0: the answer lists several. Digits are always a trace's
 * number, never a run's, so that a link to a deleted trace does not lead to another one.
 */
static int trace_of_run(const struct web_request *r, struct web_answer *a, int64_t *id,
			struct err *e)
{
	int64_t run = store_find(r->store, r->id[0]);
	size_t n, here = 0;
	struct trace *t;

	if (!run)
		return asked_refuse(a, 404, e, "there is no trace and no run \"%.*s\"",
				    (int)(r->id[0].n < 100 ? r->id[0].n : 100), r->id[0].p);
	if (store_traces(r->store, run, r->arena, &t, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (str_is(t[i].state, "here"))
			t[here++] = t[i];
	if (!here)
		return asked_refuse(a, 404, e, "run \"%.*s\" has no trace%s",
				    (int)(r->id[0].n < 100 ? r->id[0].n : 100), r->id[0].p,
				    n ? " whose file is here" : "");
	*id = t[0].id;
	return here == 1 ? 1 : say_several(r, a, run, t, here);
}

static int download(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct trace t;
	int64_t id;
	int fd;

	if (!str_to_i64(r->id[0], &id) || id < 1) {
		int rc = trace_of_run(r, a, &id, e);

		if (rc <= 0)
			return rc;
	}
	fd = store_trace_open(r->store, id, r->arena, &t, e);
	if (fd < 0)
		return asked_usage(a, 404, e);
	web_bytes(a, "application/octet-stream");
	a->file_name = t.name;
	a->fd = fd;
	return 0;
}

static int drop(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_drop(r, a, "trace", store_trace_drop, e);
}

/* ---- attach ---- */

/* The whole form is checked before anything is stored. */
static int check_form(const struct web_request *r, struct err *e)
{
	struct upload_form parts;
	struct upload_part part;
	size_t n = 0;
	int rc;

	if (parts_open(r, &parts, e) < 0)
		return -1;
	while ((rc = parts_next(&parts, &part, e)) > 0) {
		if (!str_is(part.field, "trace"))
			return err_set(e, ERR_USAGE, "the form has a part called %.*s; expected trace",
				       (int)part.field.n, part.field.p);
		n++;
	}
	if (rc == 0 && !n)
		return err_set(e, ERR_USAGE, "the form has no part called trace");
	return rc;
}

static int attach(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct upload_form parts;
	struct upload_part part;
	int64_t run, id;

	if (asked_run(r, a, &run, e) < 0 || check_form(r, e) < 0 || parts_open(r, &parts, e) < 0)
		return -1;
	json_member_array(&a->json, "ids");
	while (parts_next(&parts, &part, e) > 0) {
		if (put_trace(r, run, &part, &id, e) < 0)
			return -1;
		json_put_int(&a->json, id);
	}
	json_end_array(&a->json);
	a->status = 201;
	return 0;
}

static const struct web_route routes[] = {
	{ "POST", "/api/upload/json", ROUTE_CHANGES | ROUTE_PARTS | ROUTE_RAW, upload_json },
	{ "POST", "/api/upload/raw", ROUTE_CHANGES | ROUTE_RAW, upload_raw },
	{ "POST", "/api/upload/batch", ROUTE_CHANGES | ROUTE_PARTS, upload_batch },
	{ "GET", "/api/upload/status/{job_id}", 0, upload_status },
	{ "GET", "/api/traces", 0, list },
	{ "GET", "/api/export/traces/{id}", 0, download },
	{ "DELETE", "/api/traces/{id}", ROUTE_CHANGES, drop },
	{ "POST", "/api/data/experiments/{id}/traces", ROUTE_CHANGES | ROUTE_PARTS, attach },
};
const struct web_routes upload_routes = { routes, sizeof(routes) / sizeof(*routes) };
