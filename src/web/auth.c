/* SPDX-License-Identifier: Apache-2.0 */
/* auth.c - see auth.h. */
#include "web/auth.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "client/http/url.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "web/web.h"
#include "web/web_internal.h"

static const char *const role_name[] = { "none", "read", "upload", "launch" };

const char *auth_role_name(enum auth_role role)
{
	assert(role <= AUTH_LAUNCH);
	return role_name[role];
}

/* AUTH_NONE: an unknown name. */
static enum auth_role role_of(struct str name)
{
	for (int role = AUTH_READ; role <= AUTH_LAUNCH; role++)
		if (str_is(name, role_name[role]))
			return (enum auth_role)role;
	return AUTH_NONE;
}

static int check_token(struct str token, size_t line, struct err *e)
{
	if (role_of(token) != AUTH_NONE)
		return err_set(e, ERR_USAGE, "line %zu: the token is missing before the role %.*s: "
			       "expected TOKEN, NAME TOKEN or NAME TOKEN ROLE", line, (int)token.n,
			       token.p);
	if (token.n < WEB_TOKEN_CHARS_MIN)
		return err_set(e, ERR_USAGE, "line %zu: expected a token of at least %d characters",
			       line, WEB_TOKEN_CHARS_MIN);
	for (size_t i = 0; i < token.n; i++)
		if (token.p[i] <= ' ' || token.p[i] > '~' || strchr("\",;\\", token.p[i]))
			return err_set(e, ERR_USAGE,
				       "line %zu: a token is of printable ASCII without blanks, "
				       "quotes, commas, semicolons and backslashes", line);
	return 0;
}

/* Cuts the next word off a line; empty at its end. */
static struct str take_word(struct str *line)
{
	struct str word;

	*line = str_trim(*line);
	word = (struct str){ line->p, 0 };
	while (word.n < line->n && line->p[word.n] != ' ' && line->p[word.n] != '\t')
		word.n++;
	*line = (struct str){ line->p + word.n, line->n - word.n };
	return word;
}

static void add(struct auth *a, struct str name, struct str token, enum auth_role role)
{
	struct auth_token *t = &a->token[a->n++];

	t->name = arena_str(&a->arena, name);
	t->role = role;
	digest_hex(DIGEST_SHA256, token, t->digest);
}

static int parse_line(struct auth *a, struct str text, size_t line, struct err *e)
{
	struct str token = take_word(&text), name = STR("token"), second = take_word(&text);
	struct str role_text = take_word(&text);
	enum auth_role role = AUTH_LAUNCH;

	if (second.n) {
		name = token;
		token = second;
	}
	if (check_token(token, line, e) < 0)
		return -1;
	if (role_text.n)
		role = role_of(role_text);
	/* Not quoted: the unexpected word may be a token. */
	if (role == AUTH_NONE || take_word(&text).n)
		return err_set(e, ERR_USAGE, "line %zu: expected read, upload or launch after the "
			       "token, and nothing more", line);
	if (a->n == AUTH_TOKENS_MAX)
		return err_set(e, ERR_USAGE, "line %zu: more than %d tokens", line,
			       AUTH_TOKENS_MAX);
	add(a, name, token, role);
	return 0;
}

int auth_parse(struct auth *a, struct str text, struct err *e)
{
	for (size_t line = 1; text.n; line++) {
		struct str rest = str_trim(str_cut(&text, '\n'));

		if (rest.n && rest.p[0] != '#' && parse_line(a, rest, line, e) < 0)
			return -1;
	}
	return a->n ? 0 : err_set(e, ERR_USAGE, "expected a token in it");
}

int auth_make(struct auth *a, char token[static AUTH_MADE_CHARS + 1], struct err *e)
{
	unsigned char random[AUTH_MADE_BYTES];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_set(e, ERR_RUN, "no random bytes for a token: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(token + 2 * i, 3, "%02x", random[i]);
	add(a, STR("local"), str_of(token), AUTH_LAUNCH);
	return 0;
}

int auth_read(struct auth *a, const char *path, struct err *e)
{
	struct buf text = { 0 };
	int rc = file_read(path, AUTH_FILE_BYTES_MAX, &text, e);

	if (rc == 0 && auth_parse(a, buf_str(&text), e) < 0)
		rc = err_wrap(e, "%s", path);
	if (text.data)
		explicit_bzero(text.data, text.len);
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "--auth-token-file") : 0;
}

void auth_release(struct auth *a)
{
	arena_release(&a->arena);
	*a = (struct auth){ 0 };
}

static const struct auth_token *find(const struct auth *a, struct str token)
{
	const struct auth_token *found = NULL;
	char given[DIGEST_HEX];

	digest_hex(DIGEST_SHA256, token, given);
	/* Compares with all tokens in full, so that the time taken reveals nothing. */
	for (size_t i = 0; i < a->n; i++) {
		unsigned differs = 0;

		for (size_t k = 0; k < DIGEST_HEX; k++)
			differs |= (unsigned)(given[k] ^ a->token[i].digest[k]);
		if (!differs)
			found = &a->token[i];
	}
	return found;
}

struct auth_visitor auth_visit(const struct auth *a, struct str token)
{
	const struct auth_token *t = token.n ? find(a, token) : NULL;

	if (!a->n)
		return (struct auth_visitor){ STR("local"), AUTH_LAUNCH, NULL };
	if (t)
		return (struct auth_visitor){ t->name, t->role, t };
	return (struct auth_visitor){ .role = a->is_read_open ? AUTH_READ : AUTH_NONE };
}

struct str auth_bearer(struct str authorization)
{
	struct str kind = str_cut(&authorization, ' ');

	return str_eq_nocase(kind, STR("Bearer")) ? str_trim(authorization) : (struct str){ 0 };
}

struct str auth_cookie(struct str header, const char *name)
{
	while (header.n) {
		struct str pair = str_trim(str_cut(&header, ';')), key = str_cut(&pair, '=');

		if (str_is(key, name))
			return pair;
	}
	return (struct str){ 0 };
}

/* ---- names ---- */

static bool is_port(struct str s)
{
	uint64_t port;

	return s.n == 0 || (s.n <= 5 && str_to_u64(s, &port) && port <= 65535);
}

struct str auth_host_part(struct str host)
{
	const char *end;
	struct str part = host;

	if (host.n && host.p[0] == '[') {
		end = memchr(host.p, ']', host.n);
		if (!end)
			return (struct str){ 0 };
		part = (struct str){ host.p + 1, (size_t)(end - host.p) - 1 };
		host = (struct str){ end + 1, host.n - part.n - 2 };
		if (host.n && host.p[0] != ':')
			return (struct str){ 0 };
		str_cut(&host, ':');
		return is_port(host) ? part : (struct str){ 0 };
	}
	part = str_cut(&host, ':');
	return is_port(host) && part.n ? part : (struct str){ 0 };
}

void auth_cookie_name(struct str host, char out[static AUTH_COOKIE_CHARS_MAX])
{
	struct str part = auth_host_part(host), port = STR("");

	/*
	 * After the host and its bracket there must be nothing, or a colon and at most five digits.
	 */
	if (part.p)
		port = (struct str){ part.p + part.n,
				     (size_t)(host.p + host.n - part.p) - part.n };
	str_cut(&port, ':');
	snprintf(out, AUTH_COOKIE_CHARS_MAX, AUTH_COOKIE "%s%.*s", port.n ? "_" : "", (int)port.n,
		 port.p);
}

/* Parses IPv4 as mapped IPv6, so that equal addresses compare equal however they are written. */
static bool parse_address(struct str host, struct in6_addr *out)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4;

	if (host.n == 0 || host.n >= sizeof(text))
		return false;
	memcpy(text, host.p, host.n);
	text[host.n] = 0;
	if (inet_pton(AF_INET, text, &v4) != 1)
		return inet_pton(AF_INET6, text, out) == 1;
	*out = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(&out->s6_addr[12], &v4, sizeof(v4));
	return true;
}

static bool is_loopback(const struct in6_addr *a)
{
	return IN6_IS_ADDR_V4MAPPED(a) ? a->s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(a);
}

bool auth_is_loopback(struct str host)
{
	struct in6_addr a;

	return str_eq_nocase(host, STR("localhost")) || (parse_address(host, &a) && is_loopback(&a));
}

static bool is_same_address(struct str a, struct str b)
{
	struct in6_addr x, y;

	return parse_address(a, &x) && parse_address(b, &y) && memcmp(&x, &y, sizeof(x)) == 0;
}

bool auth_is_host(struct str host, const char *local, const char *const *names, size_t n)
{
	struct str part = auth_host_part(host);

	if (!part.p)
		return false;
	if (str_eq_nocase(part, STR("localhost")) && (!*local || auth_is_loopback(str_of(local))))
		return true;
	if (is_same_address(part, str_of(local)))
		return true;
	for (size_t i = 0; i < n; i++)
		if (str_eq_nocase(part, str_of(names[i])) ||
		    is_same_address(part, str_of(names[i])))
			return true;
	return false;
}

bool auth_is_origin(struct str origin, struct str host)
{
	static const char *const scheme[] = { "http://", "https://" };

	for (size_t i = 0; i < 2; i++) {
		struct str s = str_of(scheme[i]);

		if (str_starts(origin, s))
			return str_eq_nocase((struct str){ origin.p + s.n, origin.n - s.n }, host);
	}
	return false;
}

#define COOKIE_SECONDS 2592000 /* thirty days */
#define OPEN_URL "open the URL that the dashboard printed when it started"
#define HOW_TO "%s, or send Authorization: Bearer TOKEN"
#define WRONG_TOKEN "this token is not one of this dashboard's; "

/* Where a visitor gets a token. */
static const char *where_from(const struct web *w)
{
	return w->o.token_file ? "log in with a token from the person who runs this dashboard" : OPEN_URL;
}

/* Set-Cookie for pages of this host; token empty: deletes the cookie. */
static const char *cookie(struct arena *a, struct str host, bool is_https, struct str token)
{
	char name[AUTH_COOKIE_CHARS_MAX];

	auth_cookie_name(host, name);
	return arena_printf(a, "%s=%.*s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s", name,
			    (int)token.n, token.n ? token.p : "", token.n ? COOKIE_SECONDS : 0,
			    is_https ? "; Secure" : "");
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
		exchange_refuse(x, 401, WRONG_TOKEN HOW_TO, where_from(x->web));
	else
		exchange_refuse(x, 401, "this needs a token of role %s; " HOW_TO,
				auth_role_name(needed), where_from(x->web));
	exchange_add_header(x, "WWW-Authenticate", "Bearer");
}

bool login_check(struct exchange *x)
{
	const struct auth *a = atomic_load(&x->web->auth);
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
	/* A program with a wrong token gets an error; a browser's may be from an earlier start. */
	if (is_wrong && bearer.n)
		v.role = AUTH_NONE;
	if (is_wrong)
		x->not_before_ns = clock_mono_ns() + EXCHANGE_LATE_NS;
	/* Not for /api/login, whose answer has the new cookie. */
	if (is_wrong && !bearer.n && (needed != AUTH_NONE || strcmp(x->method, "POST") != 0))
		exchange_add_header(x, "Set-Cookie", cookie(&x->arena, x->head.host, x->is_https,
							    STR("")));
	x->request.who = v.who;
	x->request.role = v.role;
	x->request.host = x->head.host;
	x->request.is_https = x->is_https;
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
	const struct auth *a = atomic_load(&x->web->auth);
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
		exchange_add_header(x, "Set-Cookie", cookie(&x->arena, x->head.host, x->is_https,
							    token));
	else if (a->n)
		x->not_before_ns = clock_mono_ns() + EXCHANGE_LATE_NS;
	buf_release(&rest);
	return true;
}

static int login_route(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str token = json_text(json_get(r->body, "token"), (struct str){ 0 });
	const struct auth *tokens = atomic_load(&r->web->auth);

	if (!tokens->n)
		return err_set(e, ERR_USAGE, "this dashboard needs no token");
	if (!token.n)
		return err_set(e, ERR_USAGE, "expected {\"token\": \"...\"}");
	if (!auth_visit(tokens, token).token) {
		a->status = 401;
		a->is_late = true;
		return err_set(e, ERR_USAGE, WRONG_TOKEN "%s", where_from(r->web));
	}
	web_set_header(r, a, "Set-Cookie", cookie(r->arena, r->host, r->is_https, token));
	json_member_bool(&a->json, "ok", true);
	return 0;
}

static int logout_route(const struct web_request *r, struct web_answer *a, struct err *e)
{
	(void)e;
	web_set_header(r, a, "Set-Cookie", cookie(r->arena, r->host, r->is_https, STR("")));
	json_member_bool(&a->json, "ok", true);
	return 0;
}

static const struct web_route routes[] = {
	{ "POST", "/api/login", ROUTE_OPEN, login_route },
	{ "POST", "/api/logout", ROUTE_OPEN, logout_route },
};
const struct web_routes login_routes = { routes, sizeof(routes) / sizeof(*routes) };
