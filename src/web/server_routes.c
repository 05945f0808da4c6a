/* SPDX-License-Identifier: Apache-2.0 */
/* web/server_routes.c - health, metrics, and the cookie of a browser that has a token. */
#include "web/metrics.h"
#include "web/state.h"

#define COOKIE_SECONDS 2592000 /* thirty days */
#define WRONG_TOKEN "this token is not one of this server's"

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
	json_put_bool(&a->json, o->launches > 0 && !o->is_read_only);
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

static int login(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str token = json_text(json_get(r->body, "token"), (struct str){ 0 }), who;
	char *cookie;

	if (!r->web->auth.n)
		return err_set(e, ERR_USAGE, "this server wants no token");
	if (!token.n)
		return err_set(e, ERR_USAGE, "expected {\"token\": \"...\"}");
	who = auth_who(&r->web->auth, token);
	if (!who.p) {
		a->status = 401;
		a->is_late = true;
		return err_set(e, ERR_USAGE, WRONG_TOKEN);
	}
	cookie = arena_printf(r->arena, AUTH_COOKIE "=%.*s; Path=/; Max-Age=%d; HttpOnly; "
			      "SameSite=Strict", (int)token.n, token.p, COOKIE_SECONDS);
	web_set_header(r, a, "Set-Cookie", cookie);
	json_key(&a->json, "ok");
	json_put_bool(&a->json, true);
	return 0;
}

static int logout(const struct web_request *r, struct web_answer *a, struct err *e)
{
	(void)e;
	web_set_header(r, a, "Set-Cookie", AUTH_COOKIE "=; Path=/; Max-Age=0; HttpOnly; "
		       "SameSite=Strict");
	json_key(&a->json, "ok");
	json_put_bool(&a->json, true);
	return 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/health", ROUTE_OPEN | ROUTE_QUICK, health },
	{ "GET", "/api/health/ready", ROUTE_OPEN | ROUTE_QUICK, ready },
	{ "GET", "/metrics", ROUTE_QUICK, metrics_page },
	{ "POST", "/api/login", ROUTE_OPEN, login },
	{ "POST", "/api/logout", ROUTE_OPEN, logout },
};
const struct web_routes server_routes = { routes, sizeof(routes) / sizeof(*routes) };
