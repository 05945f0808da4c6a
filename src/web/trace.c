/* SPDX-License-Identifier: Apache-2.0 */
/* web/trace.c - routes for profiler traces: list, download, attach to a run, drop. */
#include "web/trace.h"

#include "web/data_ask.h"
#include "web/data_put.h"
#include "web/parts.h"

static struct str run_id_of(const struct web_request *r, int64_t run)
{
	struct row row;
	unsigned flags;

	if (!run || !index_row(r->view, run, r->arena, &row, &flags))
		return STR("");
	for (size_t i = 0; i < row.n; i++)
		if (str_is(row.cell[i].column, "run_id") && row.cell[i].value.kind == VALUE_TEXT)
			return row.cell[i].value.text;
	return STR("");
}

void trace_put(const struct web_request *r, struct json_writer *w, const struct trace *t)
{
	json_begin_object(w);
	json_member_int(w, "id", t->id);
	json_key(w, "run");
	if (t->run)
		json_put_int(w, t->run);
	else
		json_put_null(w);
	data_put_key_or_null(w, "run_id", run_id_of(r, t->run));
	data_put_key_str(w, "name", t->name);
	data_put_key_str(w, "hash", t->hash);
	data_put_key_or_null(w, "model", t->model);
	data_put_key_or_null(w, "commit", t->commit);
	data_put_key_str(w, "state", t->state);
	json_member_int(w, "bytes", t->bytes);
	data_put_key_number(w, "at", t->at_s);
	json_end_object(w);
}

static int newest_first(const void *a, const void *b)
{
	const struct trace *x = a, *y = b;

	return x->id < y->id ? 1 : x->id > y->id ? -1 : 0;
}

/* The cursor is the number of the last trace of the page before. */
static int list(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const struct json_value *body;
	int64_t before = INT64_MAX;
	struct trace *t;
	struct ask ask;
	size_t n, shown = 0, at = 0;

	if (asked_body(r, a, ASK_LIMIT | ASK_CURSOR, r->arena, &body, e) < 0 ||
	    asked_read(body, ASK_LIMIT | ASK_CURSOR, r->view, r->arena, a, &ask, e) < 0)
		return -1;
	if (ask.query.cursor.n && (!str_to_i64(ask.query.cursor, &before) || before < 1))
		return asked_wrong(a, e, r->arena, "/cursor", "what the page before gave as \"next\"");
	if (store_traces(r->store, 0, r->arena, &t, &n, e) < 0)
		return -1;
	if (n)
		qsort(t, n, sizeof(*t), newest_first);
	json_key(&a->json, "total");
	json_put_int(&a->json, (int64_t)n);
	json_key(&a->json, "items");
	json_begin_array(&a->json);
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

/* A problem that lists what may be asked for instead. */
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
	data_put_key_str(&w, "type", STR("about:blank"));
	data_put_key_str(&w, "title", STR("Conflict"));
	json_member_int(&w, "status", 409);
	data_put_key_str(&w, "detail",
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
 * The trace that a run's run_id stands for: 1; 0: the answer lists several. Digits are a trace's
 * number and never a run's, so that a link to a trace that was deleted leads to no other.
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
	if (fd < 0) {
		if (e->code == ERR_USAGE)
			a->status = 404;
		return -1;
	}
	web_bytes(a, "application/octet-stream");
	a->file_name = t.name;
	a->fd = fd;
	return 0;
}

static int drop(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int64_t id;

	if (asked_number(r, a, "trace", &id, e) < 0)
		return -1;
	if (store_trace_drop(r->store, id, e) < 0) {
		if (e->code == ERR_USAGE)
			a->status = 404;
		return -1;
	}
	return 0;
}

/* ---- attach ---- */

/* All of the form is looked at before anything is kept. */
static int check_form(const struct web_request *r, struct err *e)
{
	struct parts parts;
	struct part part;
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
	struct parts parts;
	struct part part;
	int64_t run, id;

	if (asked_run(r, a, &run, e) < 0 || check_form(r, e) < 0 || parts_open(r, &parts, e) < 0)
		return -1;
	json_key(&a->json, "ids");
	json_begin_array(&a->json);
	while (parts_next(&parts, &part, e) > 0) {
		if (upload_put_trace(r, run, &part, &id, e) < 0)
			return -1;
		json_put_int(&a->json, id);
	}
	json_end_array(&a->json);
	a->status = 201;
	return 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/traces", 0, list },
	{ "GET", "/api/export/traces/{id}", 0, download },
	{ "DELETE", "/api/traces/{id}", ROUTE_CHANGES, drop },
	{ "POST", "/api/data/experiments/{id}/traces", ROUTE_CHANGES | ROUTE_PARTS, attach },
};
const struct web_routes trace_routes = { routes, sizeof(routes) / sizeof(*routes) };
