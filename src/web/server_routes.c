/* SPDX-License-Identifier: Apache-2.0 */
/* web/server_routes.c - health and metrics. */
#include "web/metrics.h"
#include "web/state.h"

static int health(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const struct web_opts *o = &r->web->o;
	size_t runs;

	if (metrics_runs(r, &runs, e) < 0)
		return -1;
	json_key(&a->json, "status");
	json_put_text(&a->json, "ok");
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

static const struct web_route routes[] = {
	{ "GET", "/api/health", ROUTE_OPEN, health },
	{ "GET", "/metrics", 0, metrics_page },
};
const struct web_routes server_routes = { routes, sizeof(routes) / sizeof(*routes) };
