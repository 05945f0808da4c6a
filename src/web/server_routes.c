/* SPDX-License-Identifier: Apache-2.0 */
/* web/server_routes.c - health and metrics. */
#include "web/metrics.h"
#include "web/state.h"

/* Answered by whoever reads the request, also while every worker and the store are stuck. */
static int health(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const struct web_opts *o = &r->web->o;
	struct pulse p;
	size_t runs;

	if (metrics_runs(r, &runs, e) < 0)
		return -1;
	pulse_get(r->web, &p);
	json_key(&a->json, "status");
	json_put_text(&a->json, p.is_there ? "ok" : "store does not answer");
	json_key(&a->json, "store_silent_s");
	json_put_f64(&a->json, p.silent_s);
	json_key(&a->json, "version");
	json_put_text(&a->json, o->version);
	json_key(&a->json, "store");
	json_put_text(&a->json, store_kind(r->store));
	json_key(&a->json, "runs");
	json_put_int(&a->json, (int64_t)runs);
	json_key(&a->json, "is_read_only");
	json_put_bool(&a->json, o->is_read_only);
	json_key(&a->json, "needs_token");
	json_put_bool(&a->json, r->web->auth.n > 0);
	json_key(&a->json, "can_launch");
	json_put_bool(&a->json, o->launches > 0 && !o->is_read_only && r->role >= AUTH_LAUNCH);
	json_key(&a->json, "can_change");
	json_put_bool(&a->json, !o->is_read_only && r->role >= AUTH_UPLOAD);
	json_key(&a->json, "role");
	json_put_text(&a->json, auth_role_name(r->role));
	return 0;
}

/* The same, and 503 where nothing that asks the store would work. */
static int ready(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct pulse p;

	pulse_get(r->web, &p);
	if (p.is_there)
		return health(r, a, e);
	a->status = 503;
	web_set_header(r, a, "Retry-After", "5");
	return err_set(e, ERR_USAGE, "the store has not answered for %.0f s", p.silent_s);
}

static const struct web_route routes[] = {
	{ "GET", "/api/health", ROUTE_OPEN | ROUTE_QUICK, health },
	{ "GET", "/api/health/ready", ROUTE_OPEN | ROUTE_QUICK, ready },
	{ "GET", "/metrics", ROUTE_QUICK, metrics_page },
};
const struct web_routes server_routes = { routes, sizeof(routes) / sizeof(*routes) };
