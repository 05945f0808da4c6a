/* SPDX-License-Identifier: Apache-2.0 */
/* web/data.c - routes that read runs: lists, one whole run, its bytes, and a summary of many. */
#include "web/data_api.h"
#include "web/data_ask.h"
#include "web/data_put.h"
#include "web/data_run.h"
#include "web/filters.h"
#include "web/trace.h"

#define DATA_VERSIONS_MAX 20 /* of one run_id that are told; the newest */
#define DATA_EXCLUSIONS_MAX 1000 /* likewise */

/* ---- many ---- */

static int list(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const unsigned members = ASK_FILTER | ASK_SHOWN | ASK_SORT | ASK_LIMIT | ASK_CURSOR |
		ASK_COLUMNS;
	const struct json_value *body;
	struct answer answer;
	struct ask ask;

	if (asked_body(r, a, members, r->arena, &body, e) < 0 ||
	    asked_read(body, members, r->view, r->arena, a, &ask, e) < 0)
		return -1;
	if (!ask.query.column)
		filters_usual_columns(r->view, r->arena, &ask.query);
	if (index_query(r->view, &ask.query, r->arena, &answer, e) < 0)
		return asked_page_failed(a, r->arena, e);
	data_put_page(&a->json, &ask.query, &answer);
	return 0;
}

/*
 * A facet leaves out what the filter's top says about its column alone. Beside an empty "or",
 * which is false and about nothing, the filter is never about one column alone, so that these
 * counts are of the runs that match.
 */
static const struct filter *whole(const struct filter *f, struct arena *a)
{
	struct filter *either = arena_alloc(a, sizeof(*either));
	struct filter *none = arena_alloc(a, sizeof(*none));

	*none = (struct filter){ .kind = FILTER_OR };
	*either = (struct filter){ .kind = FILTER_OR, .n_parts = 2 };
	either->part = arena_alloc(a, 2 * sizeof(*either->part));
	either->part[0] = (struct filter *)f;
	either->part[1] = none;
	return either;
}

static void put_counts(struct json_writer *w, const char *key, const struct facet *f)
{
	struct buf name = { 0 };

	json_member_object(w, key);
	for (size_t i = 0; i < f->n; i++) {
		buf_reset(&name);
		data_add_value(&name, f->value[i].value);
		json_key_str(w, buf_str(&name));
		json_put_int(w, (int64_t)f->value[i].count);
	}
	json_end_object(w);
	buf_release(&name);
}

/* How full the store is. */
static void put_columns(struct json_writer *w, struct store *s)
{
	struct store_columns c;

	store_columns(s, &c);
	json_member_object(w, "columns");
	json_member_int(w, "used", (int64_t)c.used);
	json_member_int(w, "limit", (int64_t)c.max);
	json_end_object(w);
}

static int summary(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const unsigned members = ASK_FILTER | ASK_SHOWN | ASK_STATISTICS;
	static const struct str counted[] = { { "status", 6 }, { "verdict", 7 } };
	const struct json_value *body;
	struct answer answer;
	struct ask ask;

	if (asked_body(r, a, members, r->arena, &body, e) < 0 ||
	    asked_read(body, members, r->view, r->arena, a, &ask, e) < 0)
		return -1;
	if (!ask.query.statistic)
		filters_usual_statistics(r->view, r->arena, &ask.query);
	ask.query.limit = 0;
	ask.query.filter = whole(ask.query.filter, r->arena);
	ask.query.facet = counted;
	ask.query.n_facets = 2;
	if (index_query(r->view, &ask.query, r->arena, &answer, e) < 0)
		return -1;
	json_key(&a->json, "total");
	json_put_int(&a->json, (int64_t)answer.total);
	data_put_statistics(&a->json, &answer);
	put_counts(&a->json, "status", &answer.facet[0]);
	put_counts(&a->json, "verdicts", &answer.facet[1]);
	put_columns(&a->json, r->store);
	return 0;
}

/* ---- one ---- */

static int find(const struct web_request *r, struct web_answer *a, struct run_whole *out,
		struct err *e)
{
	int64_t id;

	if (asked_run(r, a, &id, e) < 0)
		return -1;
	if (store_run(r->store, id, r->arena, out, e) < 0) {
		if (e->code == ERR_USAGE)
			a->status = 404;
		return -1;
	}
	return 0;
}

static void put_values(struct json_writer *w, const struct row *row)
{
	json_member_object(w, "values");
	for (size_t i = 0; i < row->n; i++) {
		json_key_str(w, row->cell[i].column);
		data_put_value(w, row->cell[i].value);
	}
	json_end_object(w);
}

static int put_versions(const struct web_request *r, struct json_writer *w,
			const struct run_whole *run, struct err *e)
{
	json_member_array(w, "versions");
	for (size_t i = 0; i < run->n_versions && i < DATA_VERSIONS_MAX; i++) {
		struct run_whole other = *run;

		if (run->version[i] != run->id &&
		    store_run(r->store, run->version[i], r->arena, &other, e) < 0)
			return -1;
		json_begin_object(w);
		json_member_int(w, "id", run->version[i]);
		data_put_key_number(w, "received", other.received_s);
		json_end_object(w);
	}
	json_end_array(w);
	return 0;
}

static int put_people(const struct web_request *r, struct json_writer *w, int64_t id, struct err *e)
{
	struct annotation *said;
	struct exclusion *out;
	size_t n, n_out;

	if (store_annotations(r->store, id, r->arena, &said, &n, e) < 0 ||
	    store_exclusions(r->store, id, r->arena, &out, &n_out, e) < 0)
		return -1;
	json_member_array(w, "annotations");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		json_member_int(w, "id", said[i].id);
		data_put_key_str(w, "text", said[i].text);
		data_put_key_str(w, "who", said[i].who);
		data_put_key_number(w, "at", said[i].at_s);
		json_end_object(w);
	}
	json_end_array(w);
	json_member_array(w, "exclusions");
	for (size_t i = n_out; i > 0 && n_out - i < DATA_EXCLUSIONS_MAX;) { /* newest first */
		i--;
		json_begin_object(w);
		data_put_key_str(w, "reason", out[i].reason);
		data_put_key_str(w, "who", out[i].who);
		data_put_key_number(w, "at", out[i].at_s);
		json_member_bool(w, "is_over", out[i].is_over);
		json_end_object(w);
	}
	json_end_array(w);
	return 0;
}

static int put_traces(const struct web_request *r, struct json_writer *w, int64_t id, struct err *e)
{
	struct trace *t;
	size_t n;

	if (store_traces(r->store, id, r->arena, &t, &n, e) < 0)
		return -1;
	json_member_array(w, "traces");
	for (size_t i = 0; i < n; i++)
		trace_put(r, w, &t[i]);
	json_end_array(w);
	return 0;
}

static void put_head(struct json_writer *w, const struct run_whole *run, unsigned flags)
{
	json_member_int(w, "id", run->id);
	data_put_key_str(w, "run_id", run->run_id);
	data_put_key_str(w, "kind", run->kind);
	data_put_key_str(w, "hash", run->hash);
	data_put_key_str(w, "who", run->who);
	data_put_key_number(w, "received", run->received_s);
	data_put_flags(w, flags);
}

static int one(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct json_writer *w = &a->json;
	struct json_value *document = NULL;
	struct run_whole run;
	struct row row = { 0 };
	unsigned flags;

	if (find(r, a, &run, e) < 0)
		return -1;
	flags = run.flags;
	index_row(r->view, run.id, r->arena, &row, &flags);
	if (json_parse(r->arena, run.document, &document, e) < 0)
		return err_wrap(e, "run %lld", (long long)run.id);
	put_head(w, &run, flags);
	put_values(w, &row);
	json_member_foreign(w, "document", run.document);
	json_member_bool(w, "has_arrays", run.has_arrays);
	if (put_versions(r, w, &run, e) < 0 || put_people(r, w, run.id, e) < 0 ||
	    put_traces(r, w, run.id, e) < 0)
		return -1;
	json_key(w, "reproduce");
	run_put_reproduce(w, &row, document, r->arena);
	json_key(w, "badges");
	run_put_badges(w, &row, flags, document);
	json_key(w, "reasons");
	run_put_reasons(w, document);
	return 0;
}

static int document_bytes(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct run_whole run;

	if (find(r, a, &run, e) < 0)
		return -1;
	web_bytes(a, "application/json");
	buf_add_str(&a->body, run.document);
	a->file_name = str_of(arena_printf(r->arena, "%.*s.json", (int)run.run_id.n, run.run_id.p));
	return 0;
}

static int arrays(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct json_writer w;
	struct buf text = { 0 };
	struct run_whole run;
	int rc = 0;

	if (find(r, a, &run, e) < 0)
		return -1;
	if (!run.has_arrays)
		return asked_refuse(a, 404, e, "run %lld has no per-request arrays", (long long)run.id);
	rc = store_run_arrays(r->store, run.id, &text, e);
	if (rc == 0) {
		web_bytes(a, "application/json");
		w = json_writer(&a->body);
		json_put_foreign(&w, buf_str(&text));
	}
	buf_release(&text);
	return rc;
}

static const struct web_route routes[] = {
	{ "GET", "/api/data/experiments", ROUTE_READS, list },
	{ "GET", "/api/data/experiments/{id}", 0, one },
	{ "GET", "/api/data/experiments/{id}/document", 0, document_bytes },
	{ "GET", "/api/data/experiments/{id}/arrays", 0, arrays },
	{ "GET", "/api/data/summary", ROUTE_READS, summary },
	{ "POST", "/api/data/summary", ROUTE_READS, summary },
	{ "GET", "/api/openapi.json", ROUTE_OPEN | ROUTE_QUICK, data_api },
};
const struct web_routes data_routes = { routes, sizeof(routes) / sizeof(*routes) };
