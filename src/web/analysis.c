/* SPDX-License-Identifier: Apache-2.0 */
/* web/analysis.c - routes that hand a question to analyse/, and the marks people set on trends. */
#include "analyse/analyse.h"
#include "web/data_ask.h"
#include "web/data_put.h"

#define MARK_BYTES_MAX 4096 /* of each of its texts */

/* ---- marks ---- */

static int put_marks(const struct web_request *r, struct json_writer *w, struct err *e)
{
	struct change_mark *m;
	size_t n;

	if (store_marks(r->store, r->arena, &m, &n, e) < 0)
		return -1;
	json_begin_array(w);
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		json_key(w, "id");
		json_put_int(w, m[i].id);
		data_put_key_str(w, "series", m[i].series);
		data_put_key_or_null(w, "metric", m[i].metric);
		data_put_key_str(w, "at", m[i].at);
		data_put_key_str(w, "kind", m[i].kind);
		data_put_key_str(w, "text", m[i].text);
		data_put_key_str(w, "who", m[i].who);
		data_put_key_number(w, "made", m[i].at_s);
		json_end_object(w);
	}
	json_end_array(w);
	return 0;
}

static int marks(const struct web_request *r, struct web_answer *a, struct err *e)
{
	json_key(&a->json, "items");
	return put_marks(r, &a->json, e);
}

static int mark_add(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct change_mark m = { .text = STR("") };
	int64_t id;

	if (asked_object(r, a, "series metric at kind text who", e) < 0 ||
	    asked_text(r, a, "series", MARK_BYTES_MAX, true, &m.series, e) < 0 ||
	    asked_text(r, a, "metric", MARK_BYTES_MAX, true, &m.metric, e) < 0 ||
	    asked_text(r, a, "at", MARK_BYTES_MAX, true, &m.at, e) < 0 ||
	    asked_text(r, a, "kind", MARK_BYTES_MAX, true, &m.kind, e) < 0 ||
	    asked_text(r, a, "text", MARK_BYTES_MAX, false, &m.text, e) < 0 ||
	    asked_who(r, a, &m.who, e) < 0)
		return -1;
	if (!str_is(m.kind, "expected") && !str_is(m.kind, "seen"))
		return asked_wrong(a, e, r->arena, "/kind", "expected or seen");
	if (store_mark_put(r->store, &m, &id, e) < 0)
		return -1;
	a->status = 201;
	json_key(&a->json, "id");
	json_put_int(&a->json, id);
	return 0;
}

static int mark_drop(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int64_t id;

	if (asked_number(r, a, "mark", &id, e) < 0)
		return -1;
	if (store_mark_drop(r->store, id, e) < 0) {
		if (e->code == ERR_USAGE)
			a->status = 404;
		return -1;
	}
	return 0;
}

/* ---- questions ---- */

/* The marks as analyse/ looks at them. */
static int read_marks(const struct web_request *r, struct json_value **out, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	int rc = put_marks(r, &w, e);

	if (rc == 0)
		rc = json_parse(r->arena, arena_str(r->arena, buf_str(&text)), out, e);
	buf_release(&text);
	return rc;
}

static int asked_analysis(const struct web_request *r, struct web_answer *a, analyse_fn *answer,
			  bool has_marks, struct err *e)
{
	struct analyse_request q = { .view = r->view, .body = r->body, .arena = r->arena };
	struct json_value *set = NULL;

	if (!r->body || r->body->kind != JSON_OBJECT)
		return asked_wrong(a, e, r->arena, "", "a JSON object");
	if (has_marks && read_marks(r, &set, e) < 0)
		return -1;
	q.marks = set;
	if (answer(&q, &a->json, e) < 0)
		return asked_failed(a, r->arena, e);
	return 0;
}

static int compare(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_compare, false, e);
}

static int trends(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_trends, true, e);
}

static int regression(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_regression, true, e);
}

static int impact(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_impact, false, e);
}

static int scaling(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_scaling, false, e);
}

static int capacity(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_capacity, false, e);
}

static int resources(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_resources, false, e);
}

static int pareto(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_pareto, false, e);
}

static int distribution(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_distribution, false, e);
}

static int parallel(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_analysis(r, a, analyse_parallel, false, e);
}

static const struct web_route routes[] = {
	{ "POST", "/api/data/compare", ROUTE_READS, compare },
	{ "POST", "/api/analysis/trends", 0, trends },
	{ "POST", "/api/analysis/regression", 0, regression },
	{ "POST", "/api/analysis/impact", ROUTE_READS, impact },
	{ "POST", "/api/analysis/scaling", ROUTE_READS, scaling },
	{ "POST", "/api/analysis/capacity", ROUTE_READS, capacity },
	{ "POST", "/api/analysis/resources", ROUTE_READS, resources },
	{ "POST", "/api/analysis/pareto", ROUTE_READS, pareto },
	{ "POST", "/api/analysis/distribution", ROUTE_READS, distribution },
	{ "POST", "/api/analysis/parallel", ROUTE_READS, parallel },
	{ "GET", "/api/analysis/marks", 0, marks },
	{ "POST", "/api/analysis/marks", ROUTE_CHANGES, mark_add },
	{ "DELETE", "/api/analysis/marks/{id}", ROUTE_CHANGES, mark_drop },
};
const struct web_routes analysis_routes = { routes, sizeof(routes) / sizeof(*routes) };
