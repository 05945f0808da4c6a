/* SPDX-License-Identifier: Apache-2.0 */
/* travel.c - see travel.h; and the rules of the options it reads. */
#include "run/travel.h"

#include <errno.h>
#include <unistd.h>

#include "http/url.h"
#include "net/tls.h"
#include "run/prepare.h"
#include "run/serve_check.h"

static const struct { const char *scheme; bool is_native; } kinds[] = {
	{ "http", true }, { "https", false }, { "socks4", false }, { "socks4a", false },
	{ "socks5", false }, { "socks5h", false },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* Without a scheme it is http, as everywhere. */
static struct str scheme_of(const char *proxy)
{
	const char *end = strstr(proxy, "://");

	return end ? (struct str){ proxy, (size_t)(end - proxy) } : STR("http");
}

static bool has_password(const char *proxy)
{
	const char *host = strstr(proxy, "://");

	host = host ? host + 3 : proxy;
	return memchr(host, '@', strcspn(host, "/")) != NULL;
}

static bool is_native(const char *proxy)
{
	for (size_t i = 0; i < KINDS; i++)
		if (str_eq_nocase(scheme_of(proxy), str_of(kinds[i].scheme)))
			return kinds[i].is_native && !has_password(proxy);
	return false;
}

static int check_kind(const char *source, const char *proxy, struct err *e)
{
	struct str scheme = scheme_of(proxy);

	for (size_t i = 0; i < KINDS; i++)
		if (str_eq_nocase(scheme, str_of(kinds[i].scheme)))
			return 0;
	return err_set(e, ERR_USAGE, "%s: proxies of kind '%.*s' are not supported; expected http, "
		       "https, socks4, socks4a, socks5 or socks5h://HOST:PORT", source,
		       (int)(scheme.n < 40 ? scheme.n : 40), scheme.p);
}

/* A Unix socket, which no proxy can reach. */
static bool is_socket(const char *text)
{
	struct url url;

	return url_parse(str_of(text), &url, NULL) == 0 && url.is_unix;
}

int travel_proxy(const struct serve_opts *o, const struct point_env *env, const char *url,
		 const char **proxy, struct err *e)
{
	*proxy = is_socket(url) ? NULL : o->proxy && *o->proxy ? o->proxy : prepare_proxy(env, url);
	if (!*proxy)
		return 0;
	return check_kind(*proxy == o->proxy ? "--proxy" : "the environment's proxy", *proxy, e);
}

/* What needs libcurl, in words; NULL: nothing does. */
static const char *need_of(const struct serve_opts *o, const char *const *proxy, unsigned n)
{
	if (strcmp(o->http_version, "2") == 0)
		return "--http-version 2";
	if (o->follow_redirects)
		return "--follow-redirects";
	for (unsigned i = 0; i < n; i++)
		if (proxy[i] && !is_native(proxy[i]))
			return has_password(proxy[i]) ? "a proxy with a user name or password"
						      : "a proxy other than http://HOST:PORT";
	return NULL;
}

int travel_transport(const struct serve_opts *o, const struct serve_derived *d,
		     const char *const *proxy, unsigned n, const struct transport **out,
		     struct err *e)
{
	const char *need = need_of(o, proxy, n);
	bool is_curl = strcmp(o->transport, "curl") == 0 ||
		       (need && strcmp(o->transport, "auto") == 0);

	*out = is_curl ? &transport_curl : &transport_native;
	if (need && !is_curl)
		return err_set(e, ERR_USAGE, "--transport native cannot do %s; expected --transport "
			       "auto or curl", need);
	if (is_curl && d->warm_connections != SERVE_WARM_AUTO && d->warm_connections > 0)
		return err_set(e, ERR_USAGE, "--warm-connections %u: libcurl%s%s%s opens connections "
			       "only for requests; expected 0 or auto", d->warm_connections,
			       need ? " (for " : "", need ? need : "", need ? ")" : "");
	return 0;
}

/* ---- checked before anything is read or sent ---- */

static int check_readable(const char *option, const char *path, struct err *e)
{
	if (access(path, R_OK) == 0)
		return 0;
	return err_set(e, ERR_USAGE, "--%s: cannot read %s: %s", option, path, strerror(errno));
}

static int check_client_cert(const struct check *c)
{
	const struct serve_opts *o = c->o;
	const struct tls_opts tls = { .is_insecure = true, .cert_file = o->client_cert,
				      .key_file = o->client_key };
	struct tls_config *config;

	if (!o->client_cert && !o->client_key)
		return 0;
	if (!o->client_cert)
		return err_set(c->e, ERR_USAGE, "--client-key needs --client-cert, the certificate it "
			       "belongs to");
	if (check_readable("client-cert", o->client_cert, c->e) < 0 ||
	    (o->client_key && check_readable("client-key", o->client_key, c->e) < 0))
		return -1;
	config = tls_config_new(&tls, c->e);
	if (!config)
		return err_wrap(c->e, "--client-cert");
	tls_config_free(config);
	return 0;
}

int serve_check_travel(const struct check *c)
{
	const struct serve_opts *o = c->o;

	if (check_client_cert(c) < 0)
		return -1;
	if (o->client_cert && !serve_is_any_tls(c))
		serve_warn(c, "--client-cert has no effect: the server's URL is not https");
	if (o->proxy && *o->proxy && is_socket(c->d->base_url))
		serve_warn(c, "--proxy has no effect on %s, a socket of this machine",
			   c->d->base_url);
	return o->proxy && *o->proxy ? check_kind("--proxy", o->proxy, c->e) : 0;
}
