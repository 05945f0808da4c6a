/* SPDX-License-Identifier: Apache-2.0 */
/* web/login.c - see login.h. */
#include "web/login.h"

#include "base/clock.h"
#include "http/url.h"
#include "web/state.h"

#define COOKIE_SECONDS 2592000 /* thirty days */
#define HOW_TO "open the URL that the dashboard printed when it started, or send " \
	       "Authorization: Bearer TOKEN"
#define WRONG_TOKEN "this token is not one of this dashboard's; " HOW_TO

/* Set-Cookie for pages of this host; token empty: the cookie is taken back. */
static const char *cookie(struct arena *a, struct str host, struct str token)
{
	char name[AUTH_COOKIE_CHARS_MAX];

	auth_cookie_name(host, name);
	return arena_printf(a, "%s=%.*s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict", name,
			    (int)token.n, token.n ? token.p : "", token.n ? COOKIE_SECONDS : 0);
}

/* ---- whether they may ---- */

static enum auth_role role_needed(unsigned flags)
{
	if (flags & ROUTE_OPEN)
		return AUTH_NONE;
	if (flags & ROUTE_LAUNCHES)
		return AUTH_LAUNCH;
	return flags & ROUTE_CHANGES ? AUTH_UPLOAD : AUTH_READ;
}

static void refuse(struct exchange *x, const struct auth_visitor *v, bool is_wrong,
		   enum auth_role needed)
{
	if (v->token) {
		exchange_refuse(x, 403, "this needs a token of role %s; that of %.*s has role %s",
				auth_role_name(needed), (int)v->who.n, v->who.p,
				auth_role_name(v->role));
		return;
	}
	if (is_wrong)
		exchange_refuse(x, 401, WRONG_TOKEN);
	else
		exchange_refuse(x, 401, "this needs a token of role %s; " HOW_TO,
				auth_role_name(needed));
	exchange_add_header(x, "WWW-Authenticate", "Bearer");
}

bool login_check(struct exchange *x)
{
	const struct auth *a = &x->web->auth;
	enum auth_role needed = role_needed(x->route->flags);
	struct str bearer = auth_bearer(x->head.authorization), token = bearer;
	char name[AUTH_COOKIE_CHARS_MAX];
	struct auth_visitor v;
	bool is_wrong;

	auth_cookie_name(x->head.host, name);
	if (!token.n)
		token = auth_cookie(x->head.cookie, name);
	v = auth_visit(a, token);
	is_wrong = a->n && token.n && !v.token;
	/* A program that sends a token is told so; a browser's may be that of an earlier start. */
	if (is_wrong && bearer.n)
		v.role = AUTH_NONE;
	if (is_wrong)
		x->not_before_ns = clock_mono_ns() + EXCHANGE_LATE_NS;
	/* Not by /api/login, whose answer has the new one. */
	if (is_wrong && !bearer.n && (needed != AUTH_NONE || strcmp(x->method, "POST") != 0))
		exchange_add_header(x, "Set-Cookie", cookie(&x->arena, x->head.host, STR("")));
	x->request.who = v.who;
	x->request.role = v.role;
	x->request.host = x->head.host;
	if (v.role < needed)
		refuse(x, &v, is_wrong, needed);
	return v.role >= needed;
}

/* ---- getting the cookie ---- */

/* The token of a query string, decoded; rest gets the other parameters as they are. */
static struct str take_token(struct arena *a, struct str query, struct buf *rest)
{
	struct web_request r = { .arena = a, .query = query };
	struct str token = web_param(&r, "token");

	while (query.n) {
		struct str pair = str_cut(&query, '&'), key = pair;

		if (str_is(str_cut(&key, '='), "token"))
			continue;
		buf_add_char(rest, rest->len ? '&' : '?');
		buf_add_str(rest, pair);
	}
	return token;
}

bool login_by_address(struct exchange *x)
{
	const struct auth *a = &x->web->auth;
	struct str path = x->raw_path, token;
	struct buf rest = { 0 };

	token = take_token(&x->arena, x->query, &rest);
	/* "//elsewhere/" as a Location would lead to another server. */
	if (!token.n || (path.n > 1 && (path.p[1] == '/' || path.p[1] == '\\'))) {
		buf_release(&rest);
		return false;
	}
	web_bytes(&x->answer, "text/plain; charset=utf-8");
	x->answer.status = 303;
	x->is_answered = true;
	exchange_add_header(x, "Location",
			    arena_printf(&x->arena, "%.*s%s", (int)path.n, path.p,
					 rest.len ? rest.data : ""));
	if (auth_visit(a, token).token)
		exchange_add_header(x, "Set-Cookie", cookie(&x->arena, x->head.host, token));
	else if (a->n)
		x->not_before_ns = clock_mono_ns() + EXCHANGE_LATE_NS;
	buf_release(&rest);
	return true;
}

static int login_route(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str token = json_text(json_get(r->body, "token"), (struct str){ 0 });

	if (!r->web->auth.n)
		return err_set(e, ERR_USAGE, "this dashboard needs no token");
	if (!token.n)
		return err_set(e, ERR_USAGE, "expected {\"token\": \"...\"}");
	if (!auth_visit(&r->web->auth, token).token) {
		a->status = 401;
		a->is_late = true;
		return err_set(e, ERR_USAGE, WRONG_TOKEN);
	}
	web_set_header(r, a, "Set-Cookie", cookie(r->arena, r->host, token));
	json_key(&a->json, "ok");
	json_put_bool(&a->json, true);
	return 0;
}

static int logout_route(const struct web_request *r, struct web_answer *a, struct err *e)
{
	(void)e;
	web_set_header(r, a, "Set-Cookie", cookie(r->arena, r->host, STR("")));
	json_key(&a->json, "ok");
	json_put_bool(&a->json, true);
	return 0;
}

static const struct web_route routes[] = {
	{ "POST", "/api/login", ROUTE_OPEN, login_route },
	{ "POST", "/api/logout", ROUTE_OPEN, logout_route },
};
const struct web_routes login_routes = { routes, sizeof(routes) / sizeof(*routes) };
