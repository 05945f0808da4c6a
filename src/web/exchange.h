/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/exchange.h - one request and its answer, whatever carries them. Private to web/.
 *
 *   exchange_new ─► exchange_begin ─► exchange_body ... ─► exchange_end ─► exchange_work ─► sent
 *                   head is there     piece by piece       body is whole   by a worker
 *
 * Whatever refuses a request fills in its answer; `is_answered` says that there is one.
 * All calls for one exchange are made by one thread at a time.
 */
#pragma once
#include <stdatomic.h>

#include "base/arena.h"
#include "web/route.h"
#include "web/web.h"

#define EXCHANGE_LATE_NS 1000000000   /* what a wrong token costs */

/* Values of headers; borrowed from the connection, p NULL when absent. */
struct exchange_head {
	struct str host, origin, authorization, cookie, content_type, content_encoding;
	struct str accept_encoding, if_none_match, range, if_range, length;
	size_t bytes;              /* of all of it */
	bool is_chunked;
};

struct exchange {
	struct web *web;
	struct arena arena;
	struct arena scratch;      /* the route's; gone before the answer is sent */
	uint64_t number;           /* names the request in the log and to the client */
	int64_t began_ns, ready_ns;
	const char *method;
	struct str target;         /* as it was sent */
	struct str raw_path, query;
	struct exchange_head head;
	char client[64];           /* address, for the log; "unix" */
	char local[64];            /* the address it was sent to; "": a Unix socket */
	uint64_t user;             /* tells apart those whose requests are counted: work.c */
	const struct web_route *route;
	size_t route_at;           /* in the web's table; SIZE_MAX: none */
	bool is_answered;          /* refused, or done by a quick route */
	bool is_discarding;        /* what still comes of the body is dropped */
	bool has_begun, has_ended; /* head seen; body whole */
	bool is_gzip;              /* of body as it is now */
	bool is_large;             /* worked off by the one thread for large bodies */
	uint64_t received, limit;  /* bytes of the body */
	struct buf body;           /* small ones */
	int spool_fd;              /* larger ones: a nameless file; 0: none */
	struct str mapped;
	struct web_request request;
	struct web_answer answer;
	char etag[48];             /* "" none */
	int64_t not_before_ns;     /* CLOCK_MONOTONIC: the answer waits until then */
	uint64_t sent;             /* bytes of the answer's body */
	uint64_t file_at, file_bytes; /* answer.fd: what part of it */
	bool is_stream_counted;
	atomic_bool is_gone;       /* its client closed the connection while a worker answers */
	void *carrier;             /* server.c's connection */
	struct exchange *next;     /* in a queue */
};

struct exchange *exchange_new(struct web *w, const char *target);
void exchange_free(struct exchange *x);

/* Checks all that the head tells. */
void exchange_begin(struct exchange *x);
/* False: give up on this connection. */
bool exchange_body(struct exchange *x, struct str bytes);
/* True: a worker is wanted, or the answer must wait; false: the answer is there. */
bool exchange_end(struct exchange *x);
void exchange_work(struct exchange *x);

/* An answer of the kind application/problem+json, in place of what there was. */
__attribute__((format(printf, 3, 4)))
void exchange_refuse(struct exchange *x, unsigned status, const char *fmt, ...);
/* ETag, packing and ranges, once the answer stands. */
void exchange_finish(struct exchange *x);
void exchange_add_header(struct exchange *x, const char *name, const char *value);
bool exchange_takes_gzip(const struct exchange *x);
/* Whether one of the tags of If-None-Match is ours. */
bool exchange_has_tag(const struct exchange *x, const char *etag);
