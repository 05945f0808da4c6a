/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_send.c - see ingest.h: files to a dashboard, one request each. */
#include "cmd/ingest.h"

#include "base/file.h"
#include "base/limits.h"
#include "cmd/cli.h"
#include "fetch/fetch.h"
#include "http/multipart.h"
#include "http/url.h"
#include "json/read.h"

#define SEND_TIMEOUT_MS 120000
#define ANSWER_BYTES_MAX (64u << 20) /* a file of 100,000 runs has an outcome for each */

/* The dashboard's address without a slash at its end, and a path behind it. */
static void address(const struct ingest *g, const char *path, struct str behind, struct buf *out)
{
	struct str base = str_of(g->o->server);

	while (base.n && base.p[base.n - 1] == '/')
		base.n--;
	buf_add_str(out, base);
	buf_add_text(out, path);
	url_add_encoded(out, behind);
}

static int post(const struct ingest *g, const char *url, const char *type, struct str body,
		struct fetch_reply *reply, struct err *e)
{
	const char *header[3] = { 0 };
	struct fetch_opts how = { .header = header, .timeout_ms = SEND_TIMEOUT_MS,
				  .body_bytes_max = ANSWER_BYTES_MAX,
				  .cancel = cli_is_interrupted() };
	size_t n = 0;

	if (type)
		header[n++] = type;
	if (g->token.len)
		header[n++] = g->token.data;
	return fetch(url, &body, &how, reply, e);
}

static int outcome_of(struct str name)
{
	for (int k = 0; k <= PUT_INVALID; k++)
		if (str_is(name, put_outcome_name((enum put_outcome)k)))
			return k;
	return PUT_INVALID;
}

/* The answer to an upload, told. -1: it is none. */
static int tell_answer(struct ingest *g, const char *path, const struct json_value *answer,
		       struct arena *a)
{
	const struct json_value *results = json_get(answer, "results");
	const struct json_value *notes = json_get(answer, "notes");
	size_t n_notes = notes && notes->kind == JSON_ARRAY ? notes->count : 0;
	struct ingest_run *run;
	struct str *note;

	if (!results || results->kind != JSON_ARRAY)
		return -1;
	run = arena_alloc(a, (results->count + 1) * sizeof(*run));
	note = arena_alloc(a, (n_notes + 1) * sizeof(*note));
	for (size_t i = 0; i < results->count; i++) {
		const struct json_value *v = &results->item[i];

		run[i] = (struct ingest_run){
			json_text(json_get(v, "run_id"), STR("")),
			json_text(json_get(v, "reason"), STR("")), json_int(json_get(v, "id"), 0),
			outcome_of(json_text(json_get(v, "outcome"), STR(""))),
		};
	}
	for (size_t i = 0; i < n_notes; i++)
		note[i] = json_text(&notes->item[i], STR(""));
	ingest_tell(g, path, run, results->count, note, n_notes);
	return 0;
}

static int say_status(const struct ingest *g, long status, const struct json_value *answer,
		      struct err *e)
{
	struct str detail = json_text(json_get(answer, "detail"), STR(""));

	return err_set(e, ERR_NET, "%s answered %ld%s%.*s", g->o->server, status, detail.n ? ": " : "",
		       (int)(detail.n < 500 ? detail.n : 500), detail.n ? detail.p : "");
}

static bool has(struct str text, const char *part)
{
	return memmem(text.p, text.n, part, strlen(part)) != NULL;
}

int ingest_send(struct ingest *g, const char *path, struct str bytes, bool is_found,
		struct err *e)
{
	struct buf url = { 0 };
	struct fetch_reply reply = { 0 };
	struct arena a = { 0 };
	struct json_value *answer = NULL;
	struct ingest_run invalid = { .outcome = PUT_INVALID };
	int rc;

	address(g, "/api/upload/raw?name=", str_of(path), &url);
	rc = post(g, url.data, NULL, bytes, &reply, e);
	if (rc == 0 && json_parse(&a, buf_str(&reply.body), &answer, NULL) < 0)
		answer = NULL;
	if (rc == 0 && reply.status == 422) {
		invalid.reason = json_text(json_get(answer, "detail"), STR("refused"));
		if (is_found && (has(invalid.reason, READ_NOTHING_KNOWN) ||
				 has(invalid.reason, READ_NOT_ENDED)))
			invalid.outcome = INGEST_SKIPPED;
		ingest_tell(g, path, &invalid, 1, NULL, 0);
	} else if (rc == 0 && (reply.status < 200 || reply.status > 299)) {
		rc = say_status(g, reply.status, answer, e);
	} else if (rc == 0 && tell_answer(g, path, answer, &a) < 0) {
		rc = err_set(e, ERR_NET, "%s did not answer as a dashboard does", g->o->server);
	}
	fetch_reply_release(&reply);
	arena_release(&a);
	buf_release(&url);
	return rc;
}

int ingest_send_trace(struct ingest *g, const char *path, const char *run, struct err *e)
{
	char boundary[MULTIPART_BOUNDARY_BYTES], type[MULTIPART_TYPE_BYTES + 16] = "Content-Type: ";
	const char *slash = strrchr(path, '/');
	struct multipart_file part = { .name = STR("trace"), .file = slash ? slash + 1 : path };
	struct buf bytes = { 0 }, body = { .limit = UPLOAD_BYTES_MAX }, url = { 0 };
	struct fetch_reply reply = { 0 };
	struct arena a = { 0 };
	struct json_value *answer = NULL;
	int rc = file_read(path, UPLOAD_BYTES_MAX, &bytes, e);

	part.type = multipart_type_of(path);
	part.bytes = buf_str(&bytes);
	if (rc == 0) {
		multipart_boundary(boundary, &part.bytes, 1);
		multipart_type(type + strlen(type), boundary);
		multipart_file(&body, boundary, &part);
		multipart_end(&body, boundary);
		address(g, "/api/data/experiments/", str_of(run), &url);
		buf_add_text(&url, "/traces");
		rc = body.is_over ? err_set(e, ERR_LIMIT, "%s is larger than UPLOAD_BYTES_MAX", path) :
			post(g, url.data, type, buf_str(&body), &reply, e);
	}
	if (rc == 0 && (reply.status < 200 || reply.status > 299)) {
		if (json_parse(&a, buf_str(&reply.body), &answer, NULL) < 0)
			answer = NULL;
		rc = say_status(g, reply.status, answer, e);
	}
	fetch_reply_release(&reply);
	arena_release(&a);
	buf_release(&bytes);
	buf_release(&body);
	buf_release(&url);
	return rc < 0 ? err_wrap(e, "--trace") : 0;
}
