/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch/fetch.h - blocking HTTP by libcurl, outside any measurement: model
 * discovery, /tokenize, /metrics, files from a hub.
 *
 * The load generator never uses this; see load/transport.h. Proxies come from
 * the environment (HTTP_PROXY, NO_PROXY) as libcurl reads them. Unix sockets by
 * unix_socket. Thread-safe.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct fetch_opts {
	const char *const *header;  /* "Name: value" lines; NULL-terminated; may be NULL */
	bool is_insecure;
	const char *ca_file;        /* NULL: the system's store */
	const char *unix_socket;    /* path, or NULL */
	int64_t timeout_ms;         /* whole transfer; 0: 300 s */
	size_t body_bytes_max;      /* 0: FETCH_BODY_BYTES_MAX */
	const atomic_bool *cancel;  /* set: ends within a second or so with ERR_CANCELLED */
};

struct fetch_reply {
	long status;
	struct buf body;
};

/* body NULL: GET, else POST of that JSON. 0 for any HTTP status; -1: no answer (e says why). */
int fetch(const char *url, const struct str *body, const struct fetch_opts *o,
	  struct fetch_reply *reply, struct err *e);
void fetch_reply_release(struct fetch_reply *r);

/*
 * Many POSTs to one URL, at most parallel at a time. body() gives the text of
 * request i (borrowed until it is called again); done() gets its reply (NULL: no answer).
 * All callbacks run on the caller's thread.
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
