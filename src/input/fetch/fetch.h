/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.h - blocking HTTP by libcurl, outside any measurement: model
 * discovery, /tokenize, /metrics, files from a hub.
 *
 * The load generator never uses this; see load/transport.h. What an answer can cost is limited in
 * bytes (body, headers, trailers) and in time, whatever it is made of. Without one of the caller's,
 * proxies come from the environment (http_proxy, NO_PROXY) as libcurl reads them. Unix sockets by
 * unix_socket. Thread-safe.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

/* Connections that stay open from one fetch() to the next; for any number of threads. */
struct fetch_pool;
struct fetch_pool *fetch_pool_new(void);
void fetch_pool_free(struct fetch_pool *p);

struct fetch_opts {
	const char *const *header;  /* "Name: value" lines; NULL-terminated; may be NULL */
	bool is_insecure;
	const char *ca_file;        /* NULL: the system's store */
	const char *cert_file;      /* client certificate, PEM; NULL: none */
	const char *key_file;       /* its key; NULL: in cert_file */
	bool is_http2;              /* HTTP/2 at once where there is no TLS to agree on it */
	const char *proxy;          /* URL; "": none; NULL: as the environment says */
	const char *unix_socket;    /* path, or NULL */
	int64_t timeout_ms;         /* whole transfer; 0: 300 s */
	size_t body_bytes_max;      /* 0: FETCH_BODY_BYTES_MAX */
	struct fetch_pool *pool;    /* NULL: every fetch() has a connection of its own */
	const atomic_bool *cancel;  /* set: ends within a second or so with ERR_CANCELLED */
};

/* Why there was no answer, in categories that a caller can act on. */
enum fetch_fault {
	FETCH_FAULT_OTHER,
	FETCH_FAULT_NAME,    /* the host's name, or the proxy's, does not resolve */
	FETCH_FAULT_CONNECT, /* no connection; fetch_reply.error says why */
	FETCH_FAULT_PROXY,   /* the proxy makes no tunnel: its answer is in fetch_reply.status */
	FETCH_FAULT_TLS,     /* what answered does not speak TLS, or its certificate is refused */
	FETCH_FAULT_BROKEN,  /* connected, but what came is not HTTP, or nothing */
};

struct fetch_reply {
	enum fetch_fault fault; /* fetch: when it returns -1 */
	int error;              /* the errno of FETCH_FAULT_CONNECT; 0: unknown */
	long status;
	struct buf body;
	struct buf redirect;    /* fetch: where a 3xx answer leads, without the path; or empty */
	struct buf head; /* fetch_get: status line and headers of the last answer */
	size_t head_bytes; /* of all headers and trailers; above HTTP_HEADS_BYTES_MAX: given up */
};

/* body NULL: GET, else POST of that JSON. 0 for any HTTP status; -1: no answer (e says why). */
int fetch(const char *url, const struct str *body, const struct fetch_opts *o,
	  struct fetch_reply *reply, struct err *e);
void fetch_reply_release(struct fetch_reply *r);

/*
 * POST of a form (multipart/form-data) whose only part, called field, is the file. It is read from
 * disk while it is sent, so its size costs no memory. o->timeout_ms 0: no limit in all, but a
 * transfer in which nothing moves for FETCH_SILENCE_S has failed.
 */
#define FETCH_SILENCE_S 120
int fetch_send_file(const char *url, const char *field, const char *path,
		    const struct fetch_opts *o, struct fetch_reply *reply, struct err *e);

/*
 * Many POSTs to one URL, at most parallel at a time. body() gives the text of request i (borrowed
 * until it is called again); done() gets its reply (NULL: no answer). The size limit of an answer
 * is FETCH_MANY_BODY_FACTOR times the request's bytes, at least FETCH_MANY_BODY_BYTES_MIN, at most
 * body_bytes_max. All callbacks run on the caller's thread.
 */
struct fetch_many {
	size_t n;
	unsigned parallel;
	struct str (*body)(void *self, size_t i);
	void (*done)(void *self, size_t i, const struct fetch_reply *reply);
	void *self;
};
int fetch_many(const char *url, const struct fetch_many *many, const struct fetch_opts *o,
	       struct err *e);

/* ---- files of a hub ---- */

/*
 * One HEAD or GET with the headers of its answer, redirects and retries.
 *
 * Redirects are followed (10 at most, never from https to http). authorization goes to the scheme,
 * host and port of url only. A redirect to elsewhere whose answer has the header mark is itself the
 * answer: a hub describes a file that is on another host in this way.
 *
 * With fd the body of a 200 or 206 goes there, beginning at the descriptor's position, which is
 * asked for as a range; if a server sends the whole file instead, the descriptor is first
 * truncated. Bodies of other answers go to reply->body.
 *
 * A lost connection, silence while receiving into fd, 408, 429, 500 and 502 to 504 are retried
 * after a pause that doubles, or the server's Retry-After up to a minute; a try that brought 64 KiB
 * does not count.
 */
struct fetch_get {
	const char *url;
	const char *authorization;  /* value of that header; NULL: none */
	const char *mark;           /* NULL: every redirect is followed */
	bool is_head;
	int fd;                     /* -1: the body goes to reply->body */
	int64_t file_bytes_max;     /* what fd may grow to */
	int64_t silence_ms;         /* after this time without data the try has failed */
	unsigned tries;             /* 0: one */
	const struct fetch_opts *opts; /* header, TLS, cancel; timeout_ms 0: no limit in all */
	void (*progress)(void *self, int64_t bytes); /* of the file so far; may be NULL */
	void *self;
};

/*
 * 0 for any HTTP status (release the reply); -1: no answer or half of one, no file could be written
 * (ERR_IO), too large (ERR_LIMIT), ERR_CANCELLED. The part that fd got stays for the next call.
 */
int fetch_get(const struct fetch_get *g, struct fetch_reply *reply, struct err *e);

/* The body of a URL, tried three times; any status but 200 is an error that names it. */
int fetch_url(const char *url, const atomic_bool *cancel, struct buf *body, struct err *e);
bool fetch_is_url(const char *text); /* begins with http:// or https:// */

/* A header of a fetch_get's answer, trimmed; empty when absent. Borrowed. */
struct str fetch_header(const struct fetch_reply *reply, const char *name);
