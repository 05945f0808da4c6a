/* SPDX-License-Identifier: Apache-2.0 */
/* web/people.c - routes for what people say of runs: remarks, and exclusions with a reason. */
#include "web/data_ask.h"

#define REMARK_BYTES_MAX 16384
#define REMARKS_MAX 1000 /* of one run */

static int check_room(const struct web_request *r, struct web_answer *a, int64_t run, struct err *e)
{
	struct annotation *said;
	size_t n;

	if (store_annotations(r->store, run, r->arena, &said, &n, e) < 0)
		return -1;
	if (n < REMARKS_MAX)
		return 0;
	return asked_refuse(a, 422, e, "the run has %zu remarks, and more than %d are not kept "
			    "(REMARKS_MAX); delete some of them", n, REMARKS_MAX);
}

static int annotation_add(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str text, who;
	int64_t run, id;

	if (asked_run(r, a, &run, e) < 0 || asked_object(r, a, "text who", e) < 0 ||
	    asked_text(r, a, "text", REMARK_BYTES_MAX, true, &text, e) < 0 ||
	    asked_who(r, a, &who, e) < 0 || check_room(r, a, run, e) < 0 ||
	    store_annotate(r->store, run, text, who, &id, e) < 0)
		return -1;
	a->status = 201;
	json_key(&a->json, "id");
	json_put_int(&a->json, id);
	return 0;
}

static int annotation_drop(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int64_t id;

	if (asked_number(r, a, "annotation", &id, e) < 0)
		return -1;
	if (store_annotation_drop(r->store, id, e) < 0) {
		if (e->code == ERR_USAGE)
			a->status = 404;
		return -1;
	}
	return 0;
}

static int exclude(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str reason, who;
	int64_t run;

	if (asked_run(r, a, &run, e) < 0 || asked_object(r, a, "reason who", e) < 0 ||
	    asked_text(r, a, "reason", REMARK_BYTES_MAX, true, &reason, e) < 0 ||
	    asked_who(r, a, &who, e) < 0)
		return -1;
	return store_exclude(r->store, run, reason, who, e);
}

static int exclude_no_more(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int64_t run;

	if (asked_run(r, a, &run, e) < 0)
		return -1;
	return store_exclude(r->store, run, STR(""), r->who, e);
}

static const struct web_route routes[] = {
	{ "POST", "/api/data/experiments/{id}/annotations", ROUTE_CHANGES, annotation_add },
	{ "DELETE", "/api/annotations/{id}", ROUTE_CHANGES, annotation_drop },
	{ "PUT", "/api/data/experiments/{id}/exclusion", ROUTE_CHANGES, exclude },
	{ "DELETE", "/api/data/experiments/{id}/exclusion", ROUTE_CHANGES, exclude_no_more },
};
const struct web_routes people_routes = { routes, sizeof(routes) / sizeof(*routes) };
