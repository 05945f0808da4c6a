/* SPDX-License-Identifier: Apache-2.0 */
/* serve_route.c - key, proxy and transport of requests, and the rules of their options. */
#include "bench/options/serve_opts_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/http/url.h"
#include "client/load/transport.h"
#include "client/net/tls.h"

static const struct proxy_kind { const char *scheme; bool is_native; } kinds[] = {
	{ "http", true }, { "https", false }, { "socks4", false }, { "socks4a", false },
	{ "socks5", false }, { "socks5h", false },
};

/* ---- the environment ---- */

static const char *environment(const char *upper, const char *lower)
{
	const char *v = lower ? getenv(lower) : NULL;

	if (!v || !*v)
		v = getenv(upper);
	return v && *v ? v : NULL;
}

const char *serve_api_key(const struct endpoint *ep, const struct point_env *env, bool is_given,
			  const char **header)
{
	const char *own = NULL;

	if (ep->key_variable && !is_given)
		own = environment(ep->key_variable, NULL);
	*header = own ? ep->key_header : NULL;
	return own ? own : env->api_key;
}

void point_env_read(struct point_env *env)
{
	*env = (struct point_env){
		.api_key = environment("OPENAI_API_KEY", NULL),
		.http_proxy = environment("HTTP_PROXY", "http_proxy"),
		.https_proxy = environment("HTTPS_PROXY", "https_proxy"),
		.all_proxy = environment("ALL_PROXY", "all_proxy"),
		.no_proxy = environment("NO_PROXY", "no_proxy"),
	};
}

const char *serve_env_proxy(const struct point_env *env, const struct url *url)
{
	const char *proxy = url->is_tls ? env->https_proxy : env->http_proxy;

	if (!proxy)
		proxy = env->all_proxy;
	if (url->is_unix || !proxy ||
	    (env->no_proxy && url_is_proxy_exempt(url, str_of(env->no_proxy))))
		return NULL;
	return proxy;
}

/* ---- proxies and transports ---- */

/* Without a scheme it is http. NULL: not supported. */
static const struct proxy_kind *kind_of(const char *proxy, struct str *scheme)
{
	const char *end = strstr(proxy, "://");

	*scheme = end ? (struct str){ proxy, (size_t)(end - proxy) } : STR("http");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (str_eq_nocase(*scheme, str_of(kinds[i].scheme)))
			return &kinds[i];
	return NULL;
}

static bool has_password(const char *proxy)
{
	const char *host = strstr(proxy, "://");

	host = host ? host + 3 : proxy;
	return memchr(host, '@', strcspn(host, "/")) != NULL;
}

static int check_kind(const char *source, const char *proxy, struct err *e)
{
	struct str scheme;

	if (kind_of(proxy, &scheme))
		return 0;
	return err_set(e, ERR_USAGE, "%s: proxies of kind '%.*s' are not supported; expected http, "
		       "https, socks4, socks4a, socks5 or socks5h://HOST:PORT", source,
		       (int)(scheme.n < 40 ? scheme.n : 40), scheme.p);
}

int serve_proxy(const struct serve_opts *o, const struct point_env *env, const struct url *url,
		const char **proxy, struct err *e)
{
	*proxy = serve_env_proxy(env, url);
	if (o->proxy && *o->proxy)
		*proxy = url->is_unix ? NULL : o->proxy; /* no proxy can reach a Unix socket */
	if (!*proxy)
		return 0;
	return check_kind(*proxy == o->proxy ? "--proxy" : "the environment's proxy", *proxy, e);
}

/* The feature that needs libcurl, in words; NULL: none. */
static const char *need_of(const struct serve_opts *o, const char *const *proxy, unsigned n)
{
	struct str scheme;

	if (strcmp(o->http_version, "2") == 0)
		return "--http-version 2";
	if (o->follow_redirects)
		return "--follow-redirects";
	for (unsigned i = 0; i < n; i++) {
		const struct proxy_kind *kind = proxy[i] ? kind_of(proxy[i], &scheme) : NULL;

		if (proxy[i] && has_password(proxy[i]))
			return "a proxy with a user name or password";
		if (proxy[i] && !(kind && kind->is_native))
			return "a proxy other than http://HOST:PORT";
	}
	return NULL;
}

int serve_transport(const struct serve_opts *o, const struct serve_derived *d,
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

static int check_client_cert(const struct serve_check *c)
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

int serve_check_route(const struct serve_check *c)
{
	const struct serve_opts *o = c->o;

	if (check_client_cert(c) < 0)
		return -1;
	if (o->client_cert && !serve_is_any_tls(c))
		serve_warn(c, "--client-cert has no effect: the server's URL is not https");
	if (o->proxy && *o->proxy && c->d->url[0].is_unix)
		serve_warn(c, "--proxy has no effect on %s, a socket of this machine",
			   c->d->base_url);
	return o->proxy && *o->proxy ? check_kind("--proxy", o->proxy, c->e) : 0;
}
