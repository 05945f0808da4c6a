/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curl_site.h - what libcurl's transport needs to know about a base URL and of a prepared
 * request, as texts, and what it takes from an answer's head. Private to load/; knows
 * nothing of libcurl.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/str.h"

struct curl_site {
	char *origin;      /* scheme://host:port */
	char *unix_path;   /* NULL: TCP */
	char *resolve;     /* "HOST:PORT:ADDRESS,...", looked up already; NULL: nothing to say */
	const char *proxy; /* "": none; borrowed */
	bool is_tls;
};

/*
 * Names are looked up now, before the clock starts, as the native transport does; a
 * proxy looks up its own. proxy may be NULL.
 */
int curl_site_fill(struct curl_site *s, const char *base_url, const char *proxy, struct err *e);
void curl_site_release(struct curl_site *s);

/* A prepared POST (serve/prepare.h) taken apart; borrowed from it. */
struct curl_request {
	struct str target; /* of the request line: a path, or a whole URL for a proxy */
	struct str lines;  /* header lines, up to the blank one: http_head_line cuts them */
	struct str body;
};
void curl_request_split(struct str request, struct curl_request *out);

/*
 * One line of a head, or of the trailers, which are only counted. *bytes: of all lines of the
 * transfer. -1 with e: the head passes HTTP_HEAD_BYTES_MAX, or all of them HTTP_HEADS_BYTES_MAX.
 */
int curl_head_add(struct buf *head, size_t *bytes, struct str line, bool is_trailer,
		  struct err *e);

/* A whole answer's head. -1 with e where the native transport would refuse it, too. */
int curl_head_read(struct str head, bool *is_event_stream, struct err *e);
