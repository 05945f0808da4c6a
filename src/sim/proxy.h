/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy.h - the simulator in front of other servers, in two forms that vLLM's benchmarks have
 * (sweep spec 13).
 *
 *   split         a request goes to a prefill server with max_tokens 1, and when that has
 *                 answered, as it came, to a decode server, whose answer is streamed back. Both see
 *                 X-Request-Id: ___prefill_addr_HOST:PORT___decode_addr_HOST:PORT_<32 hex digits>
 *   round robin   each request goes to the next server as it came
 *
 * What is no generation goes to the decode server, or the next; controls (profiler, caches,
 * sleep) to a prefill server before. /health and /ping are the proxy's own.
 *
 * Its truth file has a line for each generation that it forwarded:
 *
 *   request_id, forwarded_id      the client's own, and that which the servers saw
 *   recv_ns, send_ns[], end_ns    as in truth.h; send_ns: of each piece that was passed on
 *   prefill, decode               null, or {url, sent_ns, first_ns, end_ns, status}: first_ns is
 *                                 the kernel's stamp of the answer's head, end_ns of its end
 *   status                        what the client got
 */
#pragma once
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct conn;
struct forward;      /* one request under way; NULL: none */
struct proxy;

struct proxy_opts {
	const char *const *prefill, *const *decode, *const *backend; /* URLs */
	size_t prefills, decodes, backends;
	const char *kv_host;             /* named in X-Request-Id */
	unsigned prefill_kv_port, decode_kv_port;
	double timeout_s;                /* of each of the two requests */
};

/* ERR_USAGE: no servers, one kind without the other, no URL. */
struct proxy *proxy_new(const struct proxy_opts *o, struct err *e);
void proxy_free(struct proxy *p);
/* Forwards the request in c->head; c->forward is set until its answer is out. */
void proxy_serve(struct conn *c, struct str path, struct str body);
/* The client left. Accepts a connection that forwards nothing. */
void proxy_abort(struct conn *c);
