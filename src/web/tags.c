/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tags.c - words that users put on runs, and conditions on them.
 *
 * The index holds what was measured and never changes a row; tags change at any time, so they are
 * stored separately. When a question is read, a condition on the column "tag" becomes one on
 * run_id, of the runs that have the tag now. Setting and removing tags is POST /api/data/bulk.
 */
#include <assert.h>

#include "core/base/mem.h"
#include "web/api.h"
#include "web/web_internal.h"

#define TAG_COLUMN "tag"

static int list(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct run_tag *t;
	size_t n;

	if (store_tags(r->store, 0, r->arena, &t, &n, e) < 0)
		return -1;
	json_member_array(&a->json, "items");
	for (size_t i = 0; i < n;) {
		struct str tag = t[i].tag;

		json_begin_object(&a->json);
		json_member_str(&a->json, "tag", tag);
		json_member_array(&a->json, "runs");
		for (; i < n && str_eq(t[i].tag, tag); i++)
			json_put_int(&a->json, t[i].run);
		json_end_array(&a->json);
		json_end_object(&a->json);
	}
	json_end_array(&a->json);
	return 0;
}

int tags_put(const struct web_request *r, struct json_writer *w, int64_t run, struct err *e)
{
	struct run_tag *t;
	size_t n;

	if (store_tags(r->store, run, r->arena, &t, &n, e) < 0)
		return -1;
	json_member_array(w, "tags");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		json_member_str(w, "tag", t[i].tag);
		json_member_str(w, "who", t[i].who);
		data_put_key_number(w, "at", t[i].at_s);
		json_end_object(w);
	}
	json_end_array(w);
	return 0;
}

/* ---- filters ---- */

static struct json_value *member(struct json_value *v, const char *key)
{
	for (size_t i = 0; i < v->count; i++)
		if (str_is(v->key[i], key))
			return &v->item[i];
	return NULL;
}

/* The run_ids of all these tags; if there are none, one that no run has. */
static int resolve_list(const struct web_request *r, struct json_value *tags, struct err *e)
{
	struct json_value *out = NULL;
	size_t count = 0;

	for (size_t i = 0; i < tags->count; i++) {
		struct str *run_id;
		size_t n;

		if (tags->item[i].kind != JSON_STRING)
			continue;
		if (store_tagged(r->store, tags->item[i].text, r->arena, &run_id, &n, e) < 0)
			return -1;
		out = mem_grow(out, count + n + 1, sizeof(*out));
		for (size_t k = 0; k < n; k++)
			out[count++] = (struct json_value){ .kind = JSON_STRING,
							    .text = run_id[k] };
	}
	tags->item = arena_alloc(r->arena, (count + 1) * sizeof(*tags->item));
	for (size_t i = 0; i < count; i++)
		tags->item[i] = out[i];
	if (!count)
		tags->item[count++] = (struct json_value){ .kind = JSON_STRING, .text = STR("") };
	tags->count = count;
	free(out);
	return 0;
}

int tags_resolve(const struct web_request *r, struct json_value *v, struct err *e)
{
	struct json_value *column, *in;

	if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY)
		return 0;
	column = v->kind == JSON_OBJECT ? member(v, "column") : NULL;
	in = column ? member(v, "in") : NULL;
	if (in && in->kind == JSON_ARRAY && column->kind == JSON_STRING &&
	    str_is(column->text, TAG_COLUMN)) {
		column->text = STR("run_id");
		return resolve_list(r, in, e);
	}
	for (size_t i = 0; i < v->count; i++)
		if (tags_resolve(r, &v->item[i], e) < 0)
			return -1;
	return 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/tags", 0, list },
};
const struct web_routes tags_routes = { routes, sizeof(routes) / sizeof(*routes) };
