/* SPDX-License-Identifier: Apache-2.0 */
/* web/filters.c - routes that filter: every column there is, a filter's answer, saved filters. */
#include "index/names.h"
#include "web/data_ask.h"
#include "web/data_put.h"
#include "web/filters.h"

#define PRESET_NAME_BYTES_MAX 200
#define PRESET_BODY_BYTES_MAX (256u << 10)
#define PRESETS_MAX 1000                  /* all of them are told at once */
#define PRESETS_BYTES_MAX (16u << 20)     /* their bodies together */

/* ---- GET /api/filters/options ---- */

static const char *kind_of(const struct column_info *c)
{
	int kinds = c->has_bool + c->has_number + c->has_text;

	return kinds != 1 ? "mixed" : c->has_bool ? "bool" : c->has_number ? "number" : "text";
}

static void put_name(struct json_writer *w, struct str name, const struct column_name *n)
{
	struct buf label = { 0 };

	column_label(name, &label);
	data_put_key_str(w, "column", name);
	data_put_key_str(w, "group", n->group);
	data_put_key_str(w, "label", buf_str(&label));
	buf_release(&label);
}

static void put_values(struct json_writer *w, const struct facet *f)
{
	json_member_array(w, "values");
	for (size_t i = 0; i < f->n; i++) {
		json_begin_object(w);
		json_key(w, "value");
		data_put_value(w, f->value[i].value);
		json_member_int(w, "count", (int64_t)f->value[i].count);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_option(struct json_writer *w, const struct column_info *c, const struct facet *f)
{
	struct column_name name = column_name(c->name);

	json_begin_object(w);
	put_name(w, c->name, &name);
	json_member_text(w, "kind", kind_of(c));
	data_put_key_or_null(w, "unit", str_of(name.unit));
	json_member_text(w, "better", name.better > 0 ? "higher" : name.better < 0 ? "lower" :
			 NULL);
	json_member_int(w, "distinct", (int64_t)f->distinct);
	json_member_int(w, "missing", (int64_t)f->missing);
	json_member_bool(w, "is_constant", f->distinct + (f->missing > 0) <= 1);
	if (!f->is_range || !name.is_metric)
		put_values(w, f);
	if (f->is_range) {
		data_put_histogram(w, f);
	} else {
		data_put_key_number(w, "min", f->min);
		data_put_key_number(w, "max", f->max);
	}
	json_end_object(w);
}

static int options(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const unsigned members = ASK_FILTER | ASK_SHOWN | ASK_FACET_VALUES | ASK_BINS;
	const struct json_value *body;
	struct filters_split split;
	struct ask ask;
	size_t n;

	if (asked_body(r, a, members, r->arena, &body, e) < 0 ||
	    asked_read(body, members, r->view, r->arena, a, &ask, e) < 0)
		return -1;
	index_columns(r->view, &n);
	if (asked_facet_cells(&ask.query, n, r->arena, a, e) < 0 ||
	    filters_split(r->view, &ask.query, r->arena, &split, e) < 0)
		return -1;
	json_key(&a->json, "total");
	json_put_int(&a->json, (int64_t)split.n);
	json_key(&a->json, "runs");
	json_put_int(&a->json, (int64_t)split.total);
	json_key(&a->json, "items");
	json_begin_array(&a->json);
	for (size_t i = 0; i < split.n; i++)
		put_option(&a->json, split.item[i].column, split.item[i].facet);
	json_end_array(&a->json);
	json_key(&a->json, "next");
	json_put_null(&a->json);
	return 0;
}

/* ---- POST /api/filters/apply ---- */

static int apply(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const unsigned members = ASK_FILTER | ASK_SHOWN | ASK_SORT | ASK_LIMIT | ASK_CURSOR |
		ASK_COLUMNS | ASK_FACETS | ASK_FACET_VALUES | ASK_BINS | ASK_STATISTICS;
	struct answer answer;
	struct ask ask;

	if (asked_read(r->body, members, r->view, r->arena, a, &ask, e) < 0)
		return -1;
	if (!ask.query.column)
		filters_usual_columns(r->view, r->arena, &ask.query);
	if (ask.has_auto_facets &&
	    filters_auto_facets(r->view, &ask.query, r->arena, e) < 0)
		return -1;
	if (index_query(r->view, &ask.query, r->arena, &answer, e) < 0)
		return asked_page_failed(a, r->arena, e);
	data_put_page(&a->json, &ask.query, &answer);
	json_key(&a->json, "facets");
	json_begin_array(&a->json);
	for (size_t i = 0; i < answer.n_facets; i++)
		data_put_facet(&a->json, &answer.facet[i]);
	json_end_array(&a->json);
	data_put_statistics(&a->json, &answer);
	return 0;
}

/* ---- presets ---- */

static int presets(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct preset *p;
	size_t n;

	if (store_presets(r->store, r->arena, &p, &n, e) < 0)
		return -1;
	json_key(&a->json, "items");
	json_begin_array(&a->json);
	for (size_t i = 0; i < n; i++) {
		json_begin_object(&a->json);
		json_key(&a->json, "id");
		json_put_int(&a->json, p[i].id);
		data_put_key_str(&a->json, "name", p[i].name);
		json_key(&a->json, "body");
		json_put_foreign(&a->json, p[i].body);
		data_put_key_number(&a->json, "at", p[i].at_s);
		json_end_object(&a->json);
	}
	json_end_array(&a->json);
	return 0;
}

/* "filters": F is short for "body": {"filter": F}. */
static const struct json_value *preset_body(const struct web_request *r)
{
	const struct json_value *filters = json_get(r->body, "filters");
	struct json_value *body;

	if (!filters)
		return json_get(r->body, "body");
	body = arena_alloc(r->arena, sizeof(*body));
	*body = (struct json_value){ .kind = JSON_OBJECT, .item = (struct json_value *)filters,
				     .count = 1 };
	body->key = arena_alloc(r->arena, sizeof(*body->key));
	body->key[0] = STR("filter");
	return body;
}

/* Name and body of the request, where they are given. */
static int read_preset(const struct web_request *r, struct web_answer *a, bool is_new,
		       struct str *name, struct str *body, struct err *e)
{
	const struct json_value *given = preset_body(r);
	struct buf text = { .limit = PRESET_BODY_BYTES_MAX };
	struct json_writer w = json_writer(&text);
	bool is_over;

	if (json_get(r->body, "filters") && json_get(r->body, "body"))
		return asked_wrong(a, e, r->arena, "/filters", "either body or filters");
	if (asked_object(r, a, "name body filters", e) < 0 ||
	    asked_text(r, a, "name", PRESET_NAME_BYTES_MAX, is_new, name, e) < 0)
		return -1;
	if (!is_new && json_get(r->body, "name") && !name->n)
		return asked_wrong(a, e, r->arena, "/name", "a name");
	if (!given)
		return is_new ? asked_wrong(a, e, r->arena, "/body", "what the preset is to hold") : 0;
	json_put_value(&w, given);
	is_over = text.is_over;
	*body = arena_str(r->arena, buf_str(&text));
	buf_release(&text);
	if (!is_over)
		return 0;
	a->pointer = STR("/body");
	return asked_refuse(a, 413, e, "/body: expected at most %u bytes (PRESET_BODY_BYTES_MAX)",
			    PRESET_BODY_BYTES_MAX);
}

/* What the store refuses here is a name that is taken. */
static int put_preset(const struct web_request *r, struct web_answer *a, int64_t id,
		      struct str name, struct str body, struct err *e)
{
	int64_t out = id;

	if (store_preset_put(r->store, id, name, body, &out, e) < 0) {
		if (e->code == ERR_USAGE)
			a->status = 409;
		return -1;
	}
	json_key(&a->json, "id");
	json_put_int(&a->json, out);
	return 0;
}

static int check_room(const struct web_request *r, struct web_answer *a, size_t bytes,
		      struct err *e)
{
	struct preset *p;
	size_t n;

	if (store_presets(r->store, r->arena, &p, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		bytes += p[i].body.n;
	if (n < PRESETS_MAX && bytes <= PRESETS_BYTES_MAX)
		return 0;
	return asked_refuse(a, 422, e, "there are %zu presets of %zu bytes with this one, and at most %d "
			    "of %u bytes are kept (PRESETS_MAX, PRESETS_BYTES_MAX); delete some of them",
			    n + 1, bytes, PRESETS_MAX, PRESETS_BYTES_MAX);
}

static int preset_add(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str name = STR(""), body = STR("");

	if (read_preset(r, a, true, &name, &body, e) < 0 || check_room(r, a, body.n, e) < 0 ||
	    put_preset(r, a, 0, name, body, e) < 0)
		return -1;
	a->status = 201;
	return 0;
}

static int preset_change(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str name = STR(""), body = STR("");
	struct preset *p, *old = NULL;
	int64_t id;
	size_t n;

	if (asked_number(r, a, "preset", &id, e) < 0 ||
	    read_preset(r, a, false, &name, &body, e) < 0 ||
	    store_presets(r->store, r->arena, &p, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (p[i].id == id)
			old = &p[i];
	if (!old)
		return asked_refuse(a, 404, e, "there is no preset %lld", (long long)id);
	return put_preset(r, a, id, name.n ? name : old->name, body.n ? body : old->body, e);
}

static int preset_drop(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int64_t id;

	if (asked_number(r, a, "preset", &id, e) < 0)
		return -1;
	if (store_preset_drop(r->store, id, e) < 0) {
		if (e->code == ERR_USAGE)
			a->status = 404;
		return -1;
	}
	return 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/filters/options", ROUTE_READS, options },
	{ "POST", "/api/filters/apply", ROUTE_READS, apply },
	{ "GET", "/api/filters/presets", 0, presets },
	{ "POST", "/api/filters/presets", ROUTE_CHANGES, preset_add },
	{ "PUT", "/api/filters/presets/{id}", ROUTE_CHANGES, preset_change },
	{ "DELETE", "/api/filters/presets/{id}", ROUTE_CHANGES, preset_drop },
};
const struct web_routes filters_routes = { routes, sizeof(routes) / sizeof(*routes) };
