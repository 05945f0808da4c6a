/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport.h - how bytes travel: six hooks, implemented by the native epoll client, a null one
 * (answers at once, in memory), libcurl (what the native one refuses: SOCKS, HTTP/2, redirects) and
 * engine workers (frames over a socket pair).
 *
 * One transport object per loop thread; other threads may only call wake(). The driver calls
 * start() for an exchange it owns and then poll(); the transport reports to the exchange's sink
 * from inside poll(), start() or cancel(). From inside a callback the sink may start any exchange
 * and cancel any, including its own (transport_null does not allow cancel there); it must not call
 * poll(). Every stamp is CLOCK_REALTIME ns; kernel_ns is 0 when there is none. After on_end the
 * transport does not use the exchange any more.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "client/record/record.h"
#include "core/base/err.h"
#include "core/base/str.h"

struct exchange;
struct sock_addr;
struct tap;

struct exchange_sink {
	/* The clock was read; the first byte is written next. Called once per attempt. */
	void (*on_send)(struct exchange *x, int64_t now_ns);
	/* All request bytes are with the kernel. */
	void (*on_sent)(struct exchange *x, int64_t now_ns);
	/* Response head: status, whole head text (empty for transports without one). */
	void (*on_head)(struct exchange *x, unsigned status, bool is_event_stream, struct str head,
			int64_t kernel_ns, int64_t user_ns);
	/*
	 * A piece of the body. user_ns is the same for pieces of one read, kernel_ns for one
	 * segment.
	 */
	void (*on_body)(struct exchange *x, struct str piece, int64_t kernel_ns, int64_t user_ns);
	/*
	 * The end. fail = FAIL_NONE: the message is complete. Otherwise text says
	 * what happened. The exchange may be reused for another start() from here.
	 */
	void (*on_end)(struct exchange *x, enum fail_category fail, const char *text,
		       int64_t now_ns);
};

/* Owned by the driver; one per slot in flight. */
struct exchange {
	const struct exchange_sink *sink;
	struct str request;     /* every byte of it: request line, headers, body */
	uint16_t endpoint;      /* index of the base URL */
	/* Filled by the transport: */
	int64_t connect_ns, connected_ns; /* 0 when a kept connection served it */
	uint64_t bytes_in;
	uint8_t attempts;
	bool is_segment_stamp;  /* kernel_ns is that of the piece's own segment */
	void *connection;       /* private */
};

struct transport_opts {
	const char *const *base_url; /* n_endpoints of them */
	unsigned n_endpoints;
	const char *const *proxy;    /* per endpoint: URL, or NULL for a direct connection */
	bool is_insecure;
	const char *ca_file;
	const char *cert_file;       /* client certificate, PEM; NULL: none */
	const char *key_file;        /* its key; NULL: in cert_file */
	bool is_http2;               /* curl only: with TLS if the server agrees, else at once */
	bool is_redirected;          /* curl only: follow redirects */
	bool is_stamped;             /* ask the kernel for receive stamps */
	struct tap *tap;             /* native only: segment stamps; borrowed; NULL: none */
	/*
	 * Native only: addresses of this machine from which connections are made in turn, because
	 * each has its own local ports; borrowed. n_own 0: the kernel chooses.
	 */
	const struct sock_addr *own;
	unsigned n_own;
	int64_t connect_timeout_ns, request_timeout_ns;
	unsigned connections_max;    /* idle ones kept per endpoint; 0: no limit */
	unsigned warm_connections;   /* per endpoint, opened and waited for by open() */
};

struct transport_stats {
	uint64_t connects, connect_failures, retries, reads, reads_without_stamp, stale_closed;
	uint64_t http2;              /* answers received by HTTP/2 */
	int64_t spun_ns;             /* CPU time spent on exact waiting (loop_spun_ns) */
	/* Connections that this machine refused: no local port or no descriptor was left. */
	uint64_t no_ports, no_descriptors;
	uint64_t connections_most;   /* open at once */
	/* Over ended connections: our segments sent again, and segments received too early. */
	uint64_t resent, out_of_order;
	uint64_t round_trips;        /* ended connections whose shortest round trip is known ... */
	int64_t round_trip_ns;       /* ... and the sum of those times */
	int64_t resolve_ns;          /* the longest look-up of a host's name */
};

struct transport {
	const char *name;
	/* NULL and e on failure. Resolves names; called before the clock starts. */
	void *(*open)(const struct transport_opts *o, struct err *e);
	void (*start)(void *self, struct exchange *x);
	void (*cancel)(void *self, struct exchange *x); /* on_end comes with FAIL_CANCELLED */
	/* Handles what is ready; waits until until_mono_ns at most, exactly if is_exact. */
	void (*poll)(void *self, int64_t until_mono_ns, bool is_exact,
		     struct transport_stats *stats);
	void (*wake)(void *self); /* from any thread: the poll in progress returns soon */
	/* Adds what was counted since the last poll, or only at the end, to stats, unless NULL. */
	void (*close)(void *self, struct transport_stats *stats);
};

extern const struct transport transport_native, transport_null, transport_curl;
