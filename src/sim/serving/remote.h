/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.h - a simulated server's use of other servers: KV caches that come from elsewhere, and the
 * proxy that forwards requests. Both use the client of struct remote_call.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/http/response.h"
#include "client/net/loop.h"
#include "client/net/sock.h"
#include "core/base/err.h"
#include "core/base/str.h"
#include "sim/model/prefix.h"

/*
 * One request of the simulator to another server, on the server's own loop: what a proxy forwards,
 * and queries to a cache server.
 *
 * A call has its own connection. The answer is passed on piece by piece; last, and exactly once
 * unless it was cancelled, comes its end.
 */

/* Where calls go; resolved before the server listens. */
struct peer {
	struct sock_addr addr;
	char authority[300]; /* "127.0.0.1:8100" */
};

/* Embedded; a zeroed one is idle. */
struct remote_call {
	struct loop *loop;
	struct watch watch;
	struct timer deadline;
	struct buf in, out;
	struct http_response response;
	int64_t sent_ns;     /* CLOCK_REALTIME: before the first byte was written */
	int64_t stamp_ns;    /* of the latest read */
	unsigned status;     /* 0: no head yet */
	bool is_active, is_connected;
	char failure[128];   /* why it could not even begin */
	/* May be NULL except done. Only done may free the call. */
	void (*head)(struct remote_call *c, struct str head);
	void (*body)(struct remote_call *c, struct str part);
	void (*done)(struct remote_call *c, const char *failure); /* NULL: the answer is complete */
};

/*
 * KV caches that come from elsewhere, in the engine model: tokens of a prompt that are transferred
 * over a link instead of computed.
 *
 *   decode        a request that was prefilled elsewhere (X-Request-Id: ___prefill_addr_...): all
 *                 of its prompt but the last token, which the engine computes itself
 *   decode bench  vLLM's DecodeBenchConnector: the same for every request, at no cost
 *   host tier     blocks that were computed before and are in the host's memory
 *   cache server  blocks that any server that shares it has computed
 *
 * A transfer takes token_ns per token, one request after the other, while the engine processes
 * others; then the request queues. Blocks in tiers are named as in prefix.h and written at a
 * request's first token, at no cost.
 *
 * A cache server (`profllm sim --role cache`) speaks plain text, a block's name of 16 hexadecimal
 * digits per line: POST /kv/look answers how many from the first line on it knows, POST /kv/keep
 * adds them.
 */

enum kv_role { KV_ALONE, KV_PRODUCER, KV_CONSUMER, KV_BOTH };

struct kv_opts {
	enum kv_role role;
	bool is_decode_bench;
	bool is_cache_server;
	int64_t host_tokens;      /* capacity of the host tier, or of a cache server; 0: none */
	const char *cache_url;    /* NULL: no cache server */
	double us_per_token;      /* of the link */
};

struct conn;
struct sim;

/* A zeroed one transfers nothing. */
struct kv {
	const struct kv_opts *opts;
	struct prefix_cache host;
	struct peer cache;
	bool is_on;               /* any of it is in use */
	double token_ns;
	int64_t link_free_ns;     /* monotonic: end of all transfers requested so far */
	uint64_t queries, hits;   /* tokens looked up elsewhere, and found */
	struct kv_put *puts;      /* in progress to the cache server */
};

/* Of one answer, until it reaches the engine. Zeroed: none. */
struct kv_wait {
	struct timer timer;
	struct remote_call call;
	uint32_t local, brought;  /* tokens: cached in the engine; all not to compute */
	int64_t asked_ns;         /* monotonic */
	char answer[24];          /* of the cache server */
	size_t answered;          /* bytes received of it */
	bool is_waiting;
	bool is_kept;             /* its blocks were handed to the tiers */
};

int kv_init(struct kv *k, const struct kv_opts *o, struct err *e);
void kv_release(struct kv *k);
/* Whether the names of prompts' blocks are needed. */
bool kv_wants_names(const struct kv *k);

/* Everything is set for the engine except what comes from elsewhere; ends in stream_admit. */
void kv_begin(struct conn *c);
void kv_cancel(struct conn *c);
/* The prompt is computed. */
void kv_keep(struct conn *c);

/* ---- a cache server's paths ---- */
void kv_serve_look(struct conn *c, struct str body);
void kv_serve_keep(struct conn *c, struct str body);

/*
 * The simulator in front of other servers, in two forms that vLLM's benchmarks have (sweep spec
 * 13).
 *
 *   split         a request goes to a prefill server with max_tokens 1, and when that has
 *                 answered, unchanged to a decode server, whose answer is streamed back. Both see
 *                 X-Request-Id: ___prefill_addr_HOST:PORT___decode_addr_HOST:PORT_<32 hex digits>
 *   round robin   each request goes unchanged to the next server
 *
 * Requests other than generation go to the decode server, or the next; controls (profiler, caches,
 * sleep) first to a prefill server. The proxy itself answers /health and /ping.
 *
 * Its truth file has a line for each generation that it forwarded:
 *
 *   request_id, forwarded_id      the client's own, and the one that the servers saw
 *   recv_ns, send_ns[], end_ns    as in truth.h; send_ns: of each piece that was passed on
 *   prefill, decode               null, or {url, sent_ns, first_ns, end_ns, status}: first_ns is
 *                                 the kernel's stamp of the answer's head, end_ns of its end
 *   status                        the status sent to the client
 */

struct conn;
struct forward;      /* one request being forwarded; NULL: none */
struct proxy;

struct proxy_opts {
	const char *const *prefill, *const *decode, *const *backend; /* URLs */
	size_t prefills, decodes, backends;
	const char *kv_host;             /* named in X-Request-Id */
	unsigned prefill_kv_port, decode_kv_port;
	double timeout_s;                /* of each of the two requests */
};

/* ERR_USAGE: no servers, one kind without the other, not a URL. */
struct proxy *proxy_new(const struct proxy_opts *o, struct err *e);
void proxy_free(struct proxy *p);
/* Forwards the request in c->head; c->forward is set until its answer is out. */
void proxy_serve(struct conn *c, struct str path, struct str body);
/* The client left. No effect if the connection forwards nothing. */
void proxy_abort(struct conn *c);
