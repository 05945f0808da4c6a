/* SPDX-License-Identifier: Apache-2.0 */
/* url.c - see url.h. */
#include "client/http/url.h"

#include <arpa/inet.h>
#include <ctype.h>

#include "client/http/head.h"

#define FORMS "expected http://HOST:PORT, https://HOST:PORT or unix:/PATH"

static bool char_is_unreserved(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static void add_hex(struct buf *out, char c)
{
	static const char digits[] = "0123456789ABCDEF";
	char text[3] = { '%', digits[(unsigned char)c >> 4], digits[c & 15] };

	buf_add(out, text, 3);
}

void url_add_encoded(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (char_is_unreserved(s.p[i]))
			buf_add_char(out, s.p[i]);
		else
			add_hex(out, s.p[i]);
}

bool url_add_decoded(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		int high, low;

		if (s.p[i] != '%') {
			buf_add_char(out, s.p[i]);
			continue;
		}
		high = i + 2 < s.n ? str_hex(s.p[i + 1]) : -1;
		low = i + 2 < s.n ? str_hex(s.p[i + 2]) : -1;
		if (high < 0 || low < 0)
			return false;
		buf_add_char(out, (char)(high << 4 | low));
		i += 2;
	}
	return true;
}

/* ---- parsing ---- */

/* Cuts "scheme://" (case-insensitive) from the front. */
static bool scheme_cut(struct str *text, const char *scheme)
{
	size_t n = strlen(scheme);

	if (text->n < n + 3 || !str_eq_nocase((struct str){ text->p, n }, str_of(scheme)) ||
	    memcmp(text->p + n, "://", 3) != 0)
		return false;
	text->p += n + 3;
	text->n -= n + 3;
	return true;
}

static int port_parse(struct str text, struct url *u, struct err *e)
{
	char shown[HTTP_EXCERPT_BYTES];
	uint64_t port;

	if (text.n == 0) /* "http://host:/" names no port */
		return 0;
	if (!str_to_u64(text, &port) || port < 1 || port > 65535)
		return err_set(e, ERR_USAGE, "port '%s' of host '%s' is not a number from 1 to "
			       "65535", http_excerpt(shown, text), u->host);
	u->port = (uint16_t)port;
	return 0;
}

static int host_copy(struct str host, struct url *u, struct err *e)
{
	char shown[HTTP_EXCERPT_BYTES];

	if (host.n == 0)
		return err_set(e, ERR_USAGE, "the URL has no host; " FORMS);
	if (host.n >= sizeof(u->host))
		return err_set(e, ERR_USAGE, "host '%s' is longer than %d characters",
			       http_excerpt(shown, host), URL_HOST_BYTES - 1);
	memcpy(u->host, host.p, host.n);
	u->host[host.n] = 0;
	return 0;
}

static int host_check(struct str host, struct err *e)
{
	char shown[HTTP_EXCERPT_BYTES];

	for (size_t i = 0; i < host.n; i++) {
		if ((unsigned char)host.p[i] >= 0x80)
			return err_set(e, ERR_USAGE, "host '%s' is not ASCII; give the name in its "
				       "xn-- form", http_excerpt(shown, host));
		if (!isalnum((unsigned char)host.p[i]) && !strchr("-._", host.p[i]))
			return err_set(e, ERR_USAGE, "host '%s' contains a character that host "
				       "names cannot have", http_excerpt(shown, host));
	}
	return 0;
}

/* "[v6 address]" with a possible zone ("%eth0", or "%25eth0" as RFC 6874 wants it). */
static int host_parse_v6(struct str *authority, struct url *u, struct err *e)
{
	const char *close = memchr(authority->p, ']', authority->n);
	char shown[HTTP_EXCERPT_BYTES];
	struct in6_addr address;
	struct str host;
	char *zone;

	if (!close)
		return err_set(e, ERR_USAGE, "the IPv6 address '%s' lacks its closing bracket",
			       http_excerpt(shown, *authority));
	host = (struct str){ authority->p + 1, (size_t)(close - authority->p) - 1 };
	authority->n -= host.n + 2;
	authority->p = close + 1;
	if (host_copy(host, u, e) < 0)
		return -1;
	zone = strchr(u->host, '%');
	if (zone)
		*zone = 0;
	if (strlen(u->host) != (zone ? (size_t)(zone - u->host) : host.n) ||
	    inet_pton(AF_INET6, u->host, &address) != 1)
		return err_set(e, ERR_USAGE, "'%s' is not an IPv6 address",
			       http_excerpt(shown, host));
	if (!zone)
		return 0;
	*zone = '%';
	if (strncmp(zone + 1, "25", 2) == 0 && zone[3])
		memmove(zone + 1, zone + 3, strlen(zone + 3) + 1);
	return zone[1] ? 0 : err_set(e, ERR_USAGE, "the zone of IPv6 address '%s' is empty",
				     http_excerpt(shown, host));
}

/* "host", "host:port", "[v6]", "[v6]:port". */
static int authority_parse(struct str authority, struct url *u, struct err *e)
{
	char shown[HTTP_EXCERPT_BYTES];
	struct str whole = authority, host;

	if (authority.n && authority.p[0] == '[') {
		if (host_parse_v6(&authority, u, e) < 0)
			return -1;
		if (authority.n == 0)
			return 0;
		if (authority.p[0] != ':')
			return err_set(e, ERR_USAGE, "'%s': expected a colon and a port after the "
				       "bracket", http_excerpt(shown, whole));
		return port_parse((struct str){ authority.p + 1, authority.n - 1 }, u, e);
	}
	host = str_cut(&authority, ':');
	if (authority.n && memchr(authority.p, ':', authority.n))
		return err_set(e, ERR_USAGE, "'%s': an IPv6 address in a URL needs brackets, "
			       "[ADDRESS]:PORT", http_excerpt(shown, whole));
	if (host_check(host, e) < 0 || host_copy(host, u, e) < 0)
		return -1;
	return port_parse(authority, u, e);
}

/* Both forms end here: path is the socket's, already decoded. */
static int socket_set(struct str path, struct url *u, struct err *e)
{
	char shown[HTTP_EXCERPT_BYTES];

	if (path.n == 0)
		return err_set(e, ERR_USAGE, "the URL names no Unix socket; expected unix:/PATH");
	if (memchr(path.p, 0, path.n))
		return err_set(e, ERR_USAGE, "the path of the Unix socket holds a NUL");
	if (path.n >= sizeof(u->socket))
		return err_set(e, ERR_USAGE, "Unix socket path '%s' is %zu bytes long, the "
			       "system's limit is %d", http_excerpt(shown, path), path.n,
			       URL_SOCKET_BYTES - 1);
	u->is_unix = true;
	memcpy(u->socket, path.p, path.n);
	u->socket[path.n] = 0;
	memcpy(u->host, "localhost", sizeof("localhost"));
	return 0;
}

static int socket_parse(struct str encoded, struct url *u, struct err *e)
{
	char shown[HTTP_EXCERPT_BYTES];
	struct buf path = { 0 };
	int rc = -1;

	if (!url_add_decoded(&path, encoded))
		err_set(e, ERR_USAGE, "'%s' has a %% without two hexadecimal digits",
			http_excerpt(shown, encoded));
	else
		rc = socket_set(buf_str(&path), u, e);
	buf_release(&path);
	return rc;
}

static int scheme_fail(struct str text, struct err *e)
{
	char shown[HTTP_EXCERPT_BYTES];
	const char *colon = text.n >= 3 ? memmem(text.p, text.n, "://", 3) : NULL;

	if (colon)
		return err_set(e, ERR_URL_FORM, "scheme '%s' is not supported; " FORMS,
			       http_excerpt(shown, (struct str){ text.p,
							(size_t)(colon - text.p) }));
	if (memchr(text.p ? text.p : "", '@', text.n))
		return err_set(e, ERR_URL_FORM, "the URL has no scheme; " FORMS);
	return err_set(e, ERR_URL_FORM, "'%s' has no scheme; " FORMS, http_excerpt(shown, text));
}

int url_parse(struct str text, struct url *u, struct err *e)
{
	struct str authority;
	bool is_socket;

	*u = (struct url){ 0 };
	if (str_starts(text, STR("unix:")) &&
	    (!str_starts(text, STR("unix://")) || str_starts(text, STR("unix:///")))) {
		size_t skip = str_starts(text, STR("unix://")) ? 7 : 5;

		u->path = (struct str){ text.p + text.n, 0 };
		return socket_set((struct str){ text.p + skip, text.n - skip }, u, e);
	}
	is_socket = scheme_cut(&text, "http+unix");
	u->is_tls = !is_socket && scheme_cut(&text, "https");
	if (!is_socket && !u->is_tls && !scheme_cut(&text, "http"))
		return scheme_fail(text, e);
	authority = text;
	for (authority.n = 0; authority.n < text.n; authority.n++)
		if (strchr("/?#", text.p[authority.n]) && text.p[authority.n])
			break;
	u->path = (struct str){ text.p + authority.n, text.n - authority.n };
	if (u->path.n && memchr(u->path.p, '#', u->path.n))
		return err_set(e, ERR_USAGE, "the URL has a fragment (#...), which is never sent; "
			       "remove it");
	if (authority.n && memchr(authority.p, '@', authority.n))
		return err_set(e, ERR_USAGE, "the URL carries a user name or password; "
			       "send credentials in a header instead");
	if (is_socket)
		return socket_parse(authority, u, e);
	u->port = u->is_tls ? 443 : 80;
	return authority_parse(authority, u, e);
}

/* ---- writing ---- */

void url_add_target(struct buf *out, struct str path)
{
	if (path.n == 0 || path.p[0] != '/')
		buf_add_char(out, '/');
	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] <= ' ' || path.p[i] >= 0x7f || strchr("\"<>\\^`{|}", path.p[i]))
			add_hex(out, path.p[i]);
		else
			buf_add_char(out, path.p[i]);
}

static void add_bare_host(struct buf *out, const struct url *u)
{
	bool is_v6 = strchr(u->host, ':');

	if (is_v6)
		buf_add_char(out, '[');
	buf_add(out, u->host, strcspn(u->host, "%")); /* a zone means nothing to the server */
	if (is_v6)
		buf_add_char(out, ']');
}

void url_add_host(struct buf *out, const struct url *u)
{
	add_bare_host(out, u);
	if (!u->is_unix && u->port != (u->is_tls ? 443 : 80))
		buf_printf(out, ":%u", (unsigned)u->port);
}

void url_add_authority(struct buf *out, const struct url *u)
{
	if (u->is_unix) {
		buf_printf(out, "unix:%s", u->socket);
		return;
	}
	add_bare_host(out, u);
	buf_printf(out, ":%u", (unsigned)u->port);
}

/* ---- proxies ---- */

int url_parse_proxy(struct str text, struct url *u, struct err *e)
{
	char shown[HTTP_EXCERPT_BYTES];
	struct str authority = text;

	*u = (struct url){ 0 };
	if (!scheme_cut(&authority, "http") && authority.n >= 3 &&
	    memmem(authority.p, authority.n, "://", 3)) {
		const char *colon = memmem(text.p, text.n, "://", 3);

		return err_set(e, ERR_USAGE, "proxies of kind '%s' are not supported; expected "
			       "http://HOST:PORT", http_excerpt(shown, (struct str){ text.p,
							(size_t)(colon - text.p) }));
	}
	if (authority.n && authority.p[authority.n - 1] == '/')
		authority.n--;
	if (authority.n && memchr(authority.p, '@', authority.n))
		return err_set(e, ERR_USAGE, "the proxy's URL carries a user name or password, "
			       "which is not supported");
	u->port = 80;
	u->path = (struct str){ text.p + text.n, 0 };
	if (authority_parse(authority, u, e) < 0)
		return err_wrap(e, "proxy");
	return 0;
}

/* Two spellings of the same address. */
static bool is_same_address(const char *a, const char *b)
{
	unsigned char x[sizeof(struct in6_addr)], y[sizeof(struct in6_addr)];

	if (inet_pton(AF_INET, a, x) == 1)
		return inet_pton(AF_INET, b, y) == 1 && memcmp(x, y, 4) == 0;
	return inet_pton(AF_INET6, a, x) == 1 && inet_pton(AF_INET6, b, y) == 1 &&
	       memcmp(x, y, 16) == 0;
}

static bool is_address(const char *host)
{
	unsigned char x[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, x) == 1 || inet_pton(AF_INET6, host, x) == 1;
}

/* Takes ":port" off a NO_PROXY entry; false when it names another port. */
static bool entry_port_is(struct str *entry, uint16_t port)
{
	const char *colon = memrchr(entry->p, ':', entry->n);
	uint64_t given;
	struct str digits;

	/* Several colons without brackets are an IPv6 address, not a port. */
	if (!colon || (entry->p[0] != '[' && memchr(entry->p, ':', (size_t)(colon - entry->p))))
		return true;
	digits = (struct str){ colon + 1, (size_t)(entry->p + entry->n - colon) - 1 };
	if (!str_to_u64(digits, &given))
		return true;
	entry->n = (size_t)(colon - entry->p);
	return given == port;
}

static bool entry_matches(struct str entry, const struct url *u)
{
	struct str host = str_of(u->host);
	char text[URL_HOST_BYTES];

	if (str_is(entry, "*"))
		return true;
	if (!entry_port_is(&entry, u->port))
		return false;
	if (entry.n > 2 && entry.p[0] == '[' && entry.p[entry.n - 1] == ']')
		entry = (struct str){ entry.p + 1, entry.n - 2 };
	if (entry.n && entry.p[0] == '*')
		entry.p++, entry.n--;
	if (entry.n && entry.p[0] == '.')
		entry.p++, entry.n--;
	if (entry.n == 0 || entry.n >= sizeof(text))
		return false;
	memcpy(text, entry.p, entry.n);
	text[entry.n] = 0;
	if (is_address(u->host))
		return is_same_address(u->host, text);
	if (host.n < entry.n ||
	    !str_eq_nocase((struct str){ host.p + host.n - entry.n, entry.n }, entry))
		return false;
	return host.n == entry.n || host.p[host.n - entry.n - 1] == '.';
}

bool url_is_proxy_exempt(const struct url *u, struct str no_proxy)
{
	if (u->is_unix)
		return true;
	while (no_proxy.n) {
		struct str group = str_cut(&no_proxy, ',');

		while (group.n) {
			struct str entry = str_trim(str_cut(&group, ' '));

			if (entry.n && entry_matches(entry, u))
				return true;
		}
	}
	return false;
}
