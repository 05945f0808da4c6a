/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/travel.h - by what a point's requests travel: proxy and transport.
 *
 * The native transport carries them unless an option, or a proxy, needs libcurl's:
 * --http-version 2, --follow-redirects, SOCKS, a proxy by TLS or with a password.
 */
#pragma once
#include "load/transport.h"
#include "run/point.h"
#include "run/serve_opts.h"

/*
 * The proxy of one base URL: --proxy, else what the environment names for it; NULL: none.
 * ERR_USAGE for a kind of proxy that there is not.
 */
int travel_proxy(const struct serve_opts *o, const struct point_env *env, const char *url,
		 const char **proxy, struct err *e);
/* What carries requests by these n proxies. ERR_USAGE where --transport cannot. */
int travel_transport(const struct serve_opts *o, const struct serve_derived *d,
		     const char *const *proxy, unsigned n, const struct transport **out,
		     struct err *e);
