/* SPDX-License-Identifier: Apache-2.0 */
/* auth.c - see auth.h. */
#include "web/auth.h"

#include <arpa/inet.h>

#include "base/file.h"
#include "web/web.h"

static int check_token(struct str token, size_t line, struct err *e)
{
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

int auth_parse(struct auth *a, struct str text, struct err *e)
{
	for (size_t line = 1; text.n; line++) {
		struct str rest = str_trim(str_cut(&text, '\n')), first = rest;
		struct auth_token *t = &a->token[a->n];
		size_t blank = 0;

		if (!rest.n || rest.p[0] == '#')
			continue;
		if (a->n == AUTH_TOKENS_MAX)
			return err_set(e, ERR_USAGE, "line %zu: more than %d tokens", line,
				       AUTH_TOKENS_MAX);
		while (blank < rest.n && rest.p[blank] != ' ' && rest.p[blank] != '\t')
			blank++;
		t->name = STR("token");
		if (blank < rest.n) {
			first.n = blank;
			t->name = arena_str(&a->arena, first);
			rest = str_trim((struct str){ rest.p + blank, rest.n - blank });
		}
		if (check_token(rest, line, e) < 0)
			return -1;
		digest_hex(DIGEST_SHA256, rest, t->digest);
		a->n++;
	}
	return a->n ? 0 : err_set(e, ERR_USAGE, "expected a token in it");
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

struct str auth_who(const struct auth *a, struct str token)
{
	struct str who = { 0 };
	char given[DIGEST_HEX];

	digest_hex(DIGEST_SHA256, token, given);
	/* All of them, wholly: how long it takes says nothing. */
	for (size_t i = 0; i < a->n; i++) {
		unsigned differs = 0;

		for (size_t k = 0; k < DIGEST_HEX; k++)
			differs |= (unsigned)(given[k] ^ a->token[i].digest[k]);
		if (!differs)
			who = a->token[i].name;
	}
	return who;
}

struct str auth_carried(struct str authorization, struct str cookie)
{
	struct str kind = authorization;

	if (authorization.n) {
		kind = str_cut(&authorization, ' ');
		if (str_eq_nocase(kind, STR("Bearer")))
			return str_trim(authorization);
	}
	while (cookie.n) {
		struct str pair = str_trim(str_cut(&cookie, ';')), name = str_cut(&pair, '=');

		if (str_is(name, AUTH_COOKIE))
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

static bool is_address(struct str host, bool *is_loopback)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4;
	struct in6_addr v6;

	*is_loopback = false;
	if (host.n == 0 || host.n >= sizeof(text))
		return false;
	memcpy(text, host.p, host.n);
	text[host.n] = 0;
	if (inet_pton(AF_INET, text, &v4) == 1) {
		*is_loopback = ntohl(v4.s_addr) >> 24 == 127;
		return true;
	}
	if (inet_pton(AF_INET6, text, &v6) != 1)
		return false;
	*is_loopback = IN6_IS_ADDR_LOOPBACK(&v6);
	return true;
}

bool auth_is_loopback(struct str host)
{
	bool is_loopback;

	is_address(host, &is_loopback);
	return is_loopback || str_eq_nocase(host, STR("localhost"));
}

bool auth_is_host(struct str host, const char *const *names, size_t n)
{
	struct str part = auth_host_part(host);
	bool is_loopback;

	if (!part.p)
		return false;
	if (is_address(part, &is_loopback) || str_eq_nocase(part, STR("localhost")))
		return true;
	for (size_t i = 0; i < n; i++)
		if (str_eq_nocase(part, str_of(names[i])))
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
