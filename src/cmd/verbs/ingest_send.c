/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_send.c - see ingest.h: files to a dashboard, one request each. */
#include "cmd/verbs/ingest.h"

#include "client/http/url.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/json/read.h"
#include "results/read/read.h"

#define SEND_TIMEOUT_MS 120000
#define ANSWER_BYTES_MAX (64u << 20) /* a file of 100,000 runs has an outcome for each */

static int post(struct ingest *g, const char *url, struct str body, struct fetch_reply *reply,
		struct err *e)
{
	struct fetch_opts how = dashboard_opts(&g->dashboard);

	how.timeout_ms = SEND_TIMEOUT_MS;
	how.body_bytes_max = ANSWER_BYTES_MAX;
	how.cancel = cli_is_interrupted();
	return fetch(url, &body, &how, reply, e);
}

static int outcome_of(struct str name)
{
	for (int k = 0; k <= PUT_INVALID; k++)
		if (str_is(name, put_outcome_name((enum put_outcome)k)))
			return k;
	return PUT_INVALID;
}

static void warn(void *self, const char *text)
{
	(void)self;
	cli_warn(text);
}

/* The traces that the documents name, each to its run. Notes: about those left out. */
static int send_named(struct ingest *g, const char *path, struct str bytes, struct ingest_run *run,
		      size_t n, struct arena *a, struct str *note, size_t *n_notes, struct err *e)
{
	struct upload_opts o = { .url = g->o->server, .token_file = g->o->token_file,
				 .cancel = cli_is_interrupted(), .warn = warn };
	struct read_file file = { 0 };
	int rc = 0;

	/* Few documents name any: the others are not read a second time. */
	if (g->o->no_traces || (!result_is_packed(bytes) && !memmem(bytes.p, bytes.n, "\"profiling\"",
								  strlen("\"profiling\""))) ||
	    read_document(str_of(path), bytes, a, &file, NULL) < 0)
		return 0;
	for (size_t i = 0; rc == 0 && i < n && i < file.n; i++) {
		struct str id = str_of(arena_printf(a, "%lld", (long long)run[i].id)), said;

		if (!run[i].id)
			continue;
		named_traces(file.run[i].document, path, NULL, a, &o, &said);
		if (said.n)
			note[(*n_notes)++] = ingest_run_note(a, &run[i], n, said);
		if (o.n_traces)
			rc = upload_traces(&o, id, run[i].outcome != PUT_NEW, &run[i].traces, e);
	}
	return rc < 0 ? err_wrap(e, "%s: its traces", path) : 0;
}

/* The answer to an upload, told. -1: it is none, or a trace cannot be sent. */
static int tell_answer(struct ingest *g, const char *path, struct str bytes,
		       const struct json_value *answer, struct arena *a, struct err *e)
{
	const struct json_value *results = json_get(answer, "results");
	const struct json_value *notes = json_get(answer, "notes");
	size_t n_notes = notes && notes->kind == JSON_ARRAY ? notes->count : 0;
	struct ingest_run *run;
	struct str *note;
	int rc;

	if (!results || results->kind != JSON_ARRAY)
		return err_set(e, ERR_NET, "%s did not answer as a dashboard does", g->o->server);
	run = arena_alloc(a, (results->count + 1) * sizeof(*run));
	note = arena_alloc(a, (n_notes + results->count + 1) * sizeof(*note));
	for (size_t i = 0; i < results->count; i++) {
		const struct json_value *v = &results->item[i];

		run[i] = (struct ingest_run){
			json_text(json_get(v, "run_id"), STR("")),
			json_text(json_get(v, "reason"), STR("")), json_int(json_get(v, "id"), 0),
			outcome_of(json_text(json_get(v, "outcome"), STR(""))), 0,
		};
	}
	for (size_t i = 0; i < n_notes; i++)
		note[i] = json_text(&notes->item[i], STR(""));
	rc = send_named(g, path, bytes, run, results->count, a, note, &n_notes, e);
	ingest_tell(g, path, run, results->count, note, n_notes);
	return rc;
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

	buf_printf(&url, "%s/api/upload/raw?name=", g->dashboard.base.data);
	url_add_encoded(&url, str_of(path));
	rc = post(g, url.data, bytes, &reply, e);
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
	} else if (rc == 0) {
		rc = tell_answer(g, path, bytes, answer, &a, e);
	}
	fetch_reply_release(&reply);
	arena_release(&a);
	buf_release(&url);
	return rc;
}

int ingest_send_trace(struct ingest *g, const char *path, const char *run, struct err *e)
{
	const struct upload_opts o = { .url = g->o->server, .token_file = g->o->token_file,
				       .cancel = cli_is_interrupted() };

	return upload_trace(&o, str_of(run), path, e) < 0 ? err_wrap(e, "--trace") : 0;
}
