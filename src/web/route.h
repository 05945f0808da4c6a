/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.h - the input and output of a route's handler.
 *
 * A route is a row: method, path, function. The server (server.c) has already checked token, size,
 * JSON and read-only mode, and afterwards adds data_version and query_ms, ETag, compression and
 * security headers, and writes the log line. A handler only reads the request and fills the answer;
 * it may run in any of several threads at once.
 *
 * A handler returns 0, or -1 with an error: ERR_USAGE is answered with 400 (404 and others by
 * answer->status, when the handler set it), everything else with 500. The sentence goes to the
 * client, with `pointer` if the handler set one.
 */
#pragma once
#include <stdatomic.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "results/index/index.h"
#include "results/store/store.h"
#include "web/auth.h"

struct web; /* the server: its options, its store, its jobs; web.h */

struct web_request {
	struct web *web;
	struct store *store;
	struct index_view *view;       /* until the handler returns; NULL: ROUTE_CHANGES */
	struct arena *arena;           /* gone when the handler has returned */
	const struct web_route *route; /* whose handler is called */
	const char *method;
	struct str path, query;        /* decoded; as sent: use web_param */
	struct str id[2];              /* what {id} and a second {...} of the route's path were */
	const struct json_value *body; /* NULL: none; else valid JSON of at most the route's size */
	struct str raw;                /* the body, where the route is ROUTE_RAW or _PARTS */
	struct str content_type;       /* of the body; parts_next reads a form's parts */
	struct str who;                /* who asks: the token's name, or "local"; empty: no token */
	enum auth_role role;           /* what they may do: at least what the route needs */
	struct str host;               /* the Host header */
	bool is_https;                 /* the browser speaks TLS, says a proxy that is believed */
	const atomic_bool *is_gone;    /* the client has closed its connection; NULL: not known */
};

/* A parameter of the query string, percent-decoded; empty when it is not there. */
struct str web_param(const struct web_request *r, const char *name);
bool web_has_param(const struct web_request *r, const char *name);

struct web_header { const char *name, *value; struct web_header *next; };

struct web_answer {
	unsigned status;         /* 200 unless set */
	const char *type;        /* NULL: body is the open object of json; else set by web_bytes */
	struct json_writer json; /* open object in body: members are put here */
	struct buf body;         /* or bytes of another type, after web_bytes */
	struct str pointer;      /* of an error */
	struct str file_name;    /* Content-Disposition: attachment; sanitised by the server */
	/* Bytes in pieces instead of body: returns how many, 0 at the end, -1 to abort. */
	long (*pull)(void *self, char *out, size_t room);
	void (*pull_end)(void *self);
	void *self;
	int fd;                  /* a file instead (with Range); -1 none; closed by the server */
	struct web_header *header;
	bool is_late;            /* sent a second later: after a wrong token */
	bool is_stream;          /* server-sent events: pull may answer 0 bytes "not yet" by -2 */
	void (*look)(void *self); /* of a stream: called then, by a thread that may wait */
};

/* The body is bytes of this type (borrowed), which the caller adds to a->body, now empty. */
void web_bytes(struct web_answer *a, const char *type);
/* A header of the answer; value is copied. */
void web_set_header(const struct web_request *r, struct web_answer *a, const char *name,
		    const char *value);

enum route_flag {
	ROUTE_CHANGES = 1,  /* needs role upload; refused in read-only mode; has no view, for it
				waits for writers */
	ROUTE_RAW = 2,      /* the body is not parsed */
	ROUTE_OPEN = 4,     /* needs no token */
	ROUTE_READS = 8,    /* depends on data_version and the request only: gets an ETag */
	ROUTE_PARTS = 16,   /* the body is a form with files (web/api.h); with _RAW: or JSON */
	ROUTE_QUICK = 32,   /* asks neither store nor index for long: no worker is needed */
	ROUTE_FILTERS = 128, /* its body may hold a filter, as those of ROUTE_READS may */
	ROUTE_LAUNCHES = 64, /* starts or ends programs: needs a token of role launch */
};

struct web_route {
	const char *method, *path; /* "/api/data/experiments/{id}" */
	unsigned flags;
	int (*handle)(const struct web_request *r, struct web_answer *a, struct err *e);
};

/* The rows of one file; routes.c has the list of these lists. */
struct web_routes { const struct web_route *route; size_t n; };
extern const struct web_routes filters_routes, data_routes, export_routes, analysis_routes,
	upload_routes, job_routes, live_routes, login_routes, prices_routes, series_routes,
	tags_routes;
