/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/upload.c - files handed in: one at once, or many as a job that outlives us.
 *
 * What is answered with 200, 201 or 202 is on disk. A file that cannot be read is 422 with the
 * reason; in a job it is that file's outcome.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "web/job.h"
#include "web/parts.h"
#include "web/state.h"

#define BATCH_FILES 256           /* of one upload, in one commit */
#define BATCH_BYTES (16u << 20)

/* ---- one file ---- */

static void put_results(struct json_writer *j, const struct put_result *result,
			const struct read_file *file)
{
	json_member_array(j, "results");
	for (size_t i = 0; i < file->n; i++) {
		json_begin_object(j);
		json_member_text(j, "outcome", put_outcome_name(result[i].outcome));
		json_key(j, "id");
		if (result[i].id)
			json_put_int(j, result[i].id);
		else
			json_put_null(j);
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

/* *first: the store's number of the file's first run. */
static int put_file(const struct web_request *r, struct str name, struct str bytes,
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
	return put_file(r, web_param(r, "name"), r->raw, a, &first, e);
}

int upload_put_trace(const struct web_request *r, int64_t run, const struct part *p, int64_t *id,
		     struct err *e)
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

/* A part of that name, from the front; 1, 0, -1. */
static int find_part(const struct web_request *r, const char *field, struct part *out,
		     struct err *e)
{
	struct parts parts;
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
	struct part file, part;
	struct parts parts;
	size_t n_files = 0;
	int64_t run = 0, trace;
	int rc;

	/* The document itself is as good as a form with it. */
	if (str_eq_nocase(str_trim(str_cut(&type, ';')), STR("application/json")))
		return upload_raw(r, a, e);
	rc = find_part(r, "file", &file, e);
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(e, ERR_USAGE, "the form has no part called file");
	/* All of the form is looked at before anything is kept. */
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
	if (rc < 0 || put_file(r, file.name, file.bytes, a, &run, e) < 0)
		return -1;
	parts_open(r, &parts, e);
	while (parts_next(&parts, &part, e) > 0)
		if (str_is(part.field, "trace") &&
		    upload_put_trace(r, run, &part, &trace, e) < 0) {
			a->status = 0;
			return -1;
		}
	return 0;
}

/* ---- many ---- */

static int check_batch(const struct web_request *r, struct web_answer *a, size_t *n,
		       struct err *e)
{
	struct parts parts;
	struct part part;
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
			return err_set(e, ERR_USAGE, "%.*s has %zu bytes; at most %u are taken",
				       (int)part.name.n, part.name.p, part.bytes.n,
				       INGEST_BYTES_MAX);
		}
		++*n;
	}
	if (rc == 0 && !*n)
		return err_set(e, ERR_USAGE, "the form has no part called file");
	return rc;
}

/* All of them, some at a time: each call is one commit. */
static int add_batch(const struct web_request *r, const char *id, struct err *e)
{
	struct str name[BATCH_FILES], bytes[BATCH_FILES];
	struct parts parts;
	struct part part;
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
	json_key(&a->json, "job_id");
	json_put_text(&a->json, id);
	json_key(&a->json, "total");
	json_put_int(&a->json, (int64_t)n);
	return 0;
}

static int upload_status(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct job job;

	if (job_find(r, a, &job, e) < 0)
		return -1;
	if (!str_is(job.kind, "upload")) {
		a->status = 404;
		return err_set(e, ERR_USAGE, "job %.*s is no upload", (int)job.id.n, job.id.p);
	}
	job_put(&a->json, &job);
	job_put_files(&a->json, &job, NULL);
	return 0;
}

static const struct web_route routes[] = {
	{ "POST", "/api/upload/json", ROUTE_CHANGES | ROUTE_PARTS | ROUTE_RAW, upload_json },
	{ "POST", "/api/upload/raw", ROUTE_CHANGES | ROUTE_RAW, upload_raw },
	{ "POST", "/api/upload/batch", ROUTE_CHANGES | ROUTE_PARTS, upload_batch },
	{ "GET", "/api/upload/status/{job_id}", 0, upload_status },
};
const struct web_routes upload_routes = { routes, sizeof(routes) / sizeof(*routes) };
