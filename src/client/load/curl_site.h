/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curl_site.h - what the libcurl transport needs from a base URL and a prepared request, as texts,
 * and how it reads an answer's head. Private to load/; does not depend on libcurl.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/str.h"

struct curl_site {
	char *origin;      /* scheme://host:port */
	char *unix_path;   /* NULL: TCP */
	char *resolve;     /* "HOST:PORT:ADDRESS,...", already resolved; NULL: not needed */
	const char *proxy; /* "": none; borrowed */
	bool is_tls;
};

/*
 * Names are resolved now, before the clock starts, as in the native transport; a proxy resolves its
 * own. proxy may be NULL.
 */
int curl_site_fill(struct curl_site *s, const char *base_url, const char *proxy, struct err *e);
void curl_site_release(struct curl_site *s);

/* The parts of a prepared POST (serve/prepare.h), borrowed from it. */
struct curl_request {
	struct str target; /* request target: a path, or a whole URL for a proxy */
	struct str lines;  /* header lines, up to the blank one: http_head_line cuts them */
	struct str body;
};
void curl_request_split(struct str request, struct curl_request *out);

/*
 * Adds one line of a head; lines of trailers are only counted. *bytes: all lines of the transfer.
 * -1 with e: the head exceeds HTTP_HEAD_BYTES_MAX, or all lines exceed HTTP_HEADS_BYTES_MAX.
 */
int curl_head_add(struct buf *head, size_t *bytes, struct str line, bool is_trailer,
		  struct err *e);

/* Reads an answer's complete head. -1 with e where the native transport would also refuse it. */
int curl_head_read(struct str head, bool *is_event_stream, struct err *e);
