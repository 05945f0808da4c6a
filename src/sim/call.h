/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - one request of the simulator's to another server, on the server's own loop: what a
 * proxy forwards, what is asked of a cache server.
 *
 * A call has a connection of its own. What comes back is told piece by piece; told last, exactly
 * once unless it was cancelled, is its end. Not load/: a referee that shares the client's code
 * cannot judge it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/response.h"
#include "net/loop.h"
#include "net/sock.h"

/* Where calls go; resolved before the server listens. */
struct peer {
	struct sock_addr addr;
	char authority[300]; /* "127.0.0.1:8100" */
};

/* "http://HOST:PORT", or "lm://HOST:PORT" as cache servers are named. option: for errors. */
int peer_parse(struct peer *p, const char *option, const char *url, struct err *e);

/* Embedded; a zeroed one is idle. */
struct call {
	struct loop *loop;
	struct watch watch;
	struct timer deadline;
	struct buf in, out;
	struct http_response response;
	int64_t sent_ns;     /* CLOCK_REALTIME: before the first byte was written */
	int64_t stamp_ns;    /* of the latest read */
	unsigned status;     /* 0: no head yet */
	bool is_active, is_connected;
	char failure[128];   /* it could not even begin */
	/* May be NULL but for done. None of them may free the call, done may. */
	void (*head)(struct call *c, struct str head);
	void (*body)(struct call *c, struct str part);
	void (*done)(struct call *c, const char *failure); /* NULL: the answer is complete */
};

/*
 * request: head and body, copied. Set hooks before; none is called before it returns.
 */
void call_begin(struct call *c, struct loop *l, const struct peer *to, struct str request,
		int64_t timeout_ns);
/* Without a word. Accepts an idle one; its memory is given back. */
void call_cancel(struct call *c);
/* Head of a request of ours; more: further header lines with their CRLF, or "". */
void call_write_head(struct buf *out, struct str method, struct str target, const struct peer *to,
		     size_t body_bytes, const char *more);
