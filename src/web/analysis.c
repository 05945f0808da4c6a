/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analysis.c - routes that pass a question to analyse/ after checking that its columns exist, and
 * the marks that people set on trends.
 */
#include <assert.h>
#include <string.h>

#include "results/analyse/analyse.h"
#include "results/store/known.h"
#include "web/api.h"
#include "web/web_internal.h"

#define MARK_BYTES_MAX 4096 /* of each of its texts */
#define TREND_MARKS_MAX 10000     /* of the store: all of them are in one answer */
#define METRICS_SHOWN 4     /* named where a metric is lacking */

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
		json_member_int(w, "id", m[i].id);
		json_member_str(w, "series", m[i].series);
		data_put_key_or_null(w, "metric", m[i].metric);
		json_member_str(w, "at", m[i].at);
		json_member_str(w, "kind", m[i].kind);
		json_member_str(w, "text", m[i].text);
		json_member_str(w, "who", m[i].who);
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

static int check_room(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct change_mark *m;
	size_t n;

	if (store_marks(r->store, r->arena, &m, &n, e) < 0)
		return -1;
	if (n < TREND_MARKS_MAX)
		return 0;
	return asked_refuse(a, 422, e, "the store has %zu marks, and at most %d can be kept "
			    "(TREND_MARKS_MAX); delete some of them", n, TREND_MARKS_MAX);
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
	if (!str_is(m.kind, "expected") && !str_is(m.kind, "seen") && !str_is(m.kind, "not_real"))
		return asked_wrong(a, e, r->arena, "/kind", "expected, seen or not_real");
	if (check_room(r, a, e) < 0 || store_mark_put(r->store, &m, &id, e) < 0)
		return -1;
	a->status = 201;
	json_member_int(&a->json, "id", id);
	return 0;
}

static int mark_drop(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_drop(r, a, "mark", store_mark_drop, e);
}

/* ---- questions ---- */

/* Reads the marks in the form that analyse/ takes. */
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

/* Members that name a column or several, in any analysis. */
static bool names_columns(struct str key, bool is_scaling)
{
	static const char *const names[] = {
		"metric", "metrics", "series", "parameters", "configuration", "x", "y", "color", "group",
		"columns", "column", "guards", "primary", "ignore",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_is(key, names[i]))
			return true;
	return is_scaling && str_is(key, "by");
}

/* Members that contain such members. */
static bool has_members(struct str key)
{
	return str_is(key, "groups") || str_is(key, "baseline") || str_is(key, "policy") ||
	       str_is(key, "slo");
}

static int check_names(const struct web_request *r, const struct json_value *v,
		       const char *pointer, struct err *e)
{
	/* Cost is not a column of the index: it needs the prices of the request. */
	if (v->kind == JSON_STRING && str_is(v->text, "usd_per_m_output"))
		return 0;
	if (v->kind == JSON_STRING)
		return known_check_value(r->view, v->text, pointer, r->arena, e);
	for (size_t i = 0; v->kind == JSON_ARRAY && i < v->count; i++)
		if (v->item[i].kind == JSON_STRING &&
		    check_names(r, &v->item[i], arena_printf(r->arena, "%s/%zu", pointer, i), e) < 0)
			return -1;
	return 0;
}

/* A wrong shape is reported by the analysis; depth is bounded by that of JSON. */
static int check_columns(const struct web_request *r, const struct json_value *v,
			 const char *pointer, bool is_scaling, struct err *e)
{
	for (size_t i = 0; v->kind == JSON_ARRAY && i < v->count; i++)
		if (check_columns(r, &v->item[i], arena_printf(r->arena, "%s/%zu", pointer, i),
				  is_scaling, e) < 0)
			return -1;
	for (size_t i = 0; v->kind == JSON_OBJECT && i < v->count; i++) {
		const char *at = arena_printf(r->arena, "%s/%.*s", pointer, (int)v->key[i].n,
					      v->key[i].p);
		const struct json_value *m = &v->item[i];
		struct filter *f;
		int rc = 0;

		if (str_is(v->key[i], "filter"))
			rc = filter_read(m, at, r->arena, &f, e) < 0 ? -1 :
				known_check_filter(r->view, f, at, r->arena, e);
		else if (names_columns(v->key[i], is_scaling))
			rc = check_names(r, m, at, e);
		else if (has_members(v->key[i]))
			rc = check_columns(r, m, at, is_scaling, e);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static bool is_lacking(const struct json_value *body, const char *member)
{
	const struct json_value *v = json_get(body, member);

	return !v || v->kind == JSON_NULL;
}

/* A question without a metric is answered with the names of some that the runs have. */
static int no_metric(const struct web_request *r, struct err *e)
{
	struct query q = { 0 };

	filters_usual_statistics(r->view, r->arena, &q);
	err_set(e, ERR_USAGE, "/metric: expected the name of a metric, such as ");
	if (!q.n_statistics)
		return err_add(e, "output_throughput");
	for (size_t i = 0; i < q.n_statistics && i < METRICS_SHOWN; i++)
		err_add(e, "%s%.*s", i ? ", " : "", (int)q.statistic[i].n, q.statistic[i].p);
	return -1;
}

/* Members that a question must have, and which of them name columns. */
enum analysis_needs {
	NEEDS_METRIC = 1, NEEDS_MARKS = 2, NEEDS_SCALE = 4, NEEDS_METRICS = 8, NEEDS_PRICES = 16,
	IS_KEPT = 32, /* pages that many people open ask for it: the answer is kept for a while */
};

/* Looked up by the last word of the route's path. */
static const struct analysis_question { const char *name; analyse_fn *answer; unsigned needs; }
questions[] = {
	{ "/compare", analyse_compare, 0 },
	{ "/trends", analyse_trends, NEEDS_METRIC | NEEDS_MARKS },
	{ "/regression", analyse_regression, NEEDS_METRICS | NEEDS_MARKS },
	{ "/impact", analyse_impact, NEEDS_METRIC },
	{ "/scaling", analyse_scaling, NEEDS_METRIC | NEEDS_SCALE },
	{ "/capacity", analyse_capacity, NEEDS_PRICES },
	{ "/resources", analyse_resources, 0 },
	{ "/pareto", analyse_pareto, 0 },
	{ "/distribution", analyse_distribution, NEEDS_METRIC },
	{ "/parallel", analyse_parallel, 0 },
	{ "/curves", analyse_curves, NEEDS_PRICES | IS_KEPT },
	{ "/overview", analyse_overview, NEEDS_MARKS | NEEDS_PRICES | IS_KEPT },
};

static const struct analysis_question *question_of(const struct web_route *route)
{
	size_t i = 0;

	while (!str_ends(str_of(route->path), str_of(questions[i].name))) {
		i++;
		assert(i < sizeof(questions) / sizeof(*questions));
	}
	return &questions[i];
}

static int read_prices(const struct web_request *r, struct analyse_request *q, struct err *e)
{
	struct buf text[2] = { { 0 }, { 0 } };
	struct json_writer usd = json_writer(&text[0]), watts = json_writer(&text[1]);
	struct json_value *v[2] = { NULL, NULL };
	int rc = prices_put(r, &usd, &watts, e);

	for (size_t i = 0; i < 2; i++) {
		if (rc == 0)
			rc = json_parse(r->arena, arena_str(r->arena, buf_str(&text[i])), &v[i], e);
		buf_release(&text[i]);
	}
	q->prices = v[0];
	q->watts = v[1];
	return rc;
}

/* The key: everything that the answer depends on, but the data version. */
static struct str key_of(const struct web_request *r, const struct analyse_request *q)
{
	/* One after the other: a body may be as deep as JSON can be. */
	const struct json_value *const part[] = { q->body, q->marks, q->prices, q->watts };
	struct buf text = { 0 };
	struct str out;

	buf_add_text(&text, r->route->path);
	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		struct json_writer w = json_writer(&text);

		buf_add_char(&text, '\n');
		json_put_value(&w, part[i]);
	}
	out = arena_str(r->arena, buf_str(&text));
	buf_release(&text);
	return out;
}

/* Puts the answer that was made before, or a new one. */
static int answer_kept(const struct web_request *r, struct web_answer *a,
		       const struct analysis_question *asks, const struct analyse_request *q,
		       struct err *e)
{
	struct answers *kept = &r->web->kept;
	uint64_t version = index_view_version(r->view);
	struct str key = key_of(r, q);
	size_t from = a->body.len;
	int rc;

	if (answers_get(kept, version, key, &a->json))
		return 0;
	rc = asks->answer(q, &a->json, e);
	if (rc == 0 && !a->body.is_over)
		answers_put(kept, version, key,
			    (struct str){ a->body.data + from, a->body.len - from });
	answers_end(kept, version, key);
	return rc < 0 ? asked_failed(a, r->arena, e) : 0;
}

static int ask(const struct web_request *r, struct web_answer *a, const struct json_value *body,
	       struct err *e)
{
	const struct analysis_question *asks = question_of(r->route);
	struct analyse_request q = { .view = r->view, .body = body, .arena = r->arena };
	struct json_value *set = NULL;

	if (!body || body->kind != JSON_OBJECT)
		return asked_wrong(a, e, r->arena, "", "a JSON object");
	if (is_lacking(body, "metric") &&
	    (asks->needs & NEEDS_METRIC ||
	     (asks->needs & NEEDS_METRICS && is_lacking(body, "metrics")))) {
		no_metric(r, e);
		return asked_failed(a, r->arena, e);
	}
	if (check_columns(r, body, "", asks->needs & NEEDS_SCALE, e) < 0)
		return asked_failed(a, r->arena, e);
	if (asks->needs & NEEDS_MARKS && read_marks(r, &set, e) < 0)
		return -1;
	q.marks = set;
	if (asks->needs & NEEDS_PRICES && read_prices(r, &q, e) < 0)
		return -1;
	if (asks->needs & IS_KEPT)
		return answer_kept(r, a, asks, &q, e);
	return asks->answer(&q, &a->json, e) < 0 ? asked_failed(a, r->arena, e) : 0;
}

static int analysis(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return ask(r, a, r->body, e);
}

/*
 * Turns {"ids": [1, 2]} into a group for each id, as a user who names runs wants to compare them.
 */
static int groups_of_ids(const struct web_request *r, struct web_answer *a,
			 const struct json_value *ids, struct json_value *body, struct err *e)
{
	struct json_value *groups = arena_alloc(r->arena, sizeof(*groups));

	if (ids->kind != JSON_ARRAY || !ids->count)
		return asked_wrong(a, e, r->arena, "/ids", "a list of runs, each of them a group");
	*groups = *ids;
	groups->item = arena_alloc(r->arena, ids->count * sizeof(*groups->item));
	for (size_t i = 0; i < ids->count; i++) {
		struct json_value *list = arena_alloc(r->arena, sizeof(*list));
		struct json_value *group = &groups->item[i];

		list->kind = JSON_ARRAY;
		list->item = &ids->item[i];
		group->kind = JSON_OBJECT;
		group->item = list;
		group->key = arena_alloc(r->arena, sizeof(*group->key));
		group->key[0] = STR("ids");
		list->count = group->count = 1;
	}
	for (size_t i = 0; i < body->count; i++)
		if (str_is(body->key[i], "ids")) {
			body->key[i] = STR("groups");
			body->item[i] = *groups;
		}
	return 0;
}

static int compare(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const struct json_value *ids = json_get(r->body, "ids");
	struct json_value *body;

	if (!ids || ids->kind == JSON_NULL)
		return ask(r, a, r->body, e);
	if (json_get(r->body, "groups"))
		return asked_wrong(a, e, r->arena, "/ids", "either groups or ids");
	body = arena_alloc(r->arena, sizeof(*body));
	*body = *r->body;
	body->key = arena_alloc(r->arena, body->count * sizeof(*body->key));
	body->item = arena_alloc(r->arena, body->count * sizeof(*body->item));
	memcpy(body->key, r->body->key, body->count * sizeof(*body->key));
	memcpy(body->item, r->body->item, body->count * sizeof(*body->item));
	if (groups_of_ids(r, a, ids, body, e) < 0)
		return -1;
	return ask(r, a, body, e);
}

static const struct web_route routes[] = {
	{ "POST", "/api/data/compare", ROUTE_READS, compare },
	{ "POST", "/api/analysis/trends", 0, analysis },
	{ "POST", "/api/analysis/regression", 0, analysis },
	{ "POST", "/api/analysis/impact", ROUTE_READS, analysis },
	{ "POST", "/api/analysis/scaling", ROUTE_READS, analysis },
	{ "POST", "/api/analysis/capacity", ROUTE_READS, analysis },
	{ "POST", "/api/analysis/resources", ROUTE_READS, analysis },
	{ "POST", "/api/analysis/pareto", ROUTE_READS, analysis },
	{ "POST", "/api/analysis/distribution", ROUTE_READS, analysis },
	{ "POST", "/api/analysis/parallel", ROUTE_READS, analysis },
	{ "POST", "/api/analysis/curves", 0, analysis },
	{ "POST", "/api/analysis/overview", 0, analysis },
	{ "GET", "/api/analysis/marks", 0, marks },
	{ "POST", "/api/analysis/marks", ROUTE_CHANGES, mark_add },
	{ "DELETE", "/api/analysis/marks/{id}", ROUTE_CHANGES, mark_drop },
};
const struct web_routes analysis_routes = { routes, sizeof(routes) / sizeof(*routes) };
