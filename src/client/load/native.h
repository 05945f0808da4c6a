/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.h - the native transport's insides: sites, connections, and the
 * client that owns them. Private to load/native*.c.
 *
 * A connection is always in one state and on one list:
 *
 *   CONNECTING --> [PROXY] --> [HANDSHAKE] --> SENDING --> READING --> IDLE --> SENDING ...
 *   (its site's connecting list)               (active list)           (its site's idle list)
 *
 * The connecting and active lists are in order of their deadlines, because all
 * connections of a list have the same timeout: only its head can be late. The timeout
 * of one address depends on how many addresses its site has, therefore a list per site.
 */
#pragma once
#include "client/http/response.h"
#include "client/load/transport.h"
#include "client/net/loop.h"
#include "client/net/sock.h"
#include "client/net/tap.h"
#include "client/net/tls.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

enum connection_state {
	CONNECTION_CLOSED, CONNECTION_CONNECTING, CONNECTION_PROXY, CONNECTION_HANDSHAKE,
	CONNECTION_IDLE, CONNECTION_SENDING, CONNECTION_READING,
};

struct connection_list { struct connection *first, *last; unsigned n; };

/* Only for TLS and proxied connections; NULL for plain ones. */
struct secure {
	struct tls *tls;  /* NULL while talking to a proxy */
	struct buf out;   /* ciphertext, or the CONNECT request */
	size_t out_at;
};

struct connection {
	struct watch watch; /* first member: cast back to the connection */
	struct native *net;
	struct exchange *x;  /* NULL when idle or warming */
	struct connection *prev, *next;
	struct connection_list *list;
	struct secure *secure;
	int64_t deadline_ns; /* monotonic */
	uint64_t read_turn;
	size_t sent;         /* request bytes accepted by the kernel */
	struct http_response response;
	struct arrival_flow arrivals; /* followed when a tap sees the connection */
	struct buf carry;    /* part of a head or chunk line; empty between reads almost always */
	uint16_t site;
	uint8_t state;
	uint8_t addr_at;     /* address being tried */
	bool is_reused;      /* was idle before this exchange: the server may be closing it */
	bool is_up;          /* was connected at once */
	bool has_answer;     /* a byte of the current answer came */
	bool is_drained;     /* the last read, in read_turn, left nothing to read */
	bool is_cut_short;   /* the peer stopped reading: the rest of the request cannot be sent */
};

/* The destination of one base URL. */
struct site {
	struct sock_addr addr[SOCK_ADDRS_MAX];
	unsigned n_addr;
	char *host;          /* server name: SNI, CONNECT target */
	uint16_t port;
	bool is_tls;
	bool is_tunnel;      /* CONNECT through a proxy first */
	struct connection_list connecting;
	struct connection_list idle; /* used as a stack from last */
};

struct native {
	struct loop *loop;
	struct transport_opts opts;
	struct site *site;
	struct tls_config *tls;
	struct slab connections;
	struct connection *free;
	struct connection *dead; /* closed in this round; freed after it */
	uint64_t turn;       /* counts ready connections and polls */
	struct connection_list active;
	unsigned n_open;
	unsigned n_warming;  /* connections being opened ahead of use */
	unsigned next_own;   /* index in opts.own for the next connection */
	struct err warm_error;
	struct transport_stats stats;
	int stamp_fd;
	size_t unfed;        /* bytes of the current read that are not processed yet */
	bool is_receiving;   /* read and plain are in use (connection.c, Re-entrancy) */
	struct buf plain;    /* decrypted bytes of one read */
	char read[READ_BYTES];
};

/* A new connection to the site, for x (or NULL: to warm the pool). */
void connection_open(struct native *n, uint16_t site, struct exchange *x);
/* Sends x on a usable connection. */
void connection_send(struct connection *c, struct exchange *x);
/*
 * False when an idle connection must not be reused: the server closed it, or sent unrequested
 * bytes. TLS session tickets are consumed.
 */
bool connection_is_quiet(struct connection *c);
/* Closes; an exchange must have been detached first. */
void connection_close(struct connection *c);
/* Abandons the address being tried: tries the next one, or fails. */
void connection_try_next(struct connection *c, int error);
/* Fails or retries the exchange, or the warm-up, of the connection. */
void connection_fail(struct connection *c, enum fail_category category, const char *text);
