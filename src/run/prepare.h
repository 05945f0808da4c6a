/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/prepare.h - every byte of every request, serialised before the clock
 * starts: one shared head per base URL, one tail (own headers and body) per
 * plan entry.
 */
#pragma once
#include "load/load.h"
#include "run/serve_opts.h"

struct prepare_opts {
	const struct endpoint *endpoint;
	struct encode_opts encode;
	const char *const *base_url;
	const char *path;             /* appended to each base URL as it is: --endpoint */
	const char *const *proxy;     /* per base URL: NULL or the proxy in use */
	unsigned n_urls;              /* of base_url and proxy */
	const struct serve_pair *header; /* --header, overrides the built-in ones */
	size_t n_headers;
	const char *api_key;          /* NULL: none */
	const char *const *lora;      /* module names; NULL: none */
	bool is_without_ids;          /* ready check, warm-up */
	const char *version;          /* for User-Agent */
};

int prepare(const struct prepare_opts *o, const struct plan *plan, const struct workload *w,
	    struct prepared *out, struct err *e);
void prepared_release(struct prepared *p);

/* The proxy the environment names for a base URL (HTTP_PROXY, HTTPS_PROXY, NO_PROXY), or NULL. */
const char *prepare_proxy(const char *url);
