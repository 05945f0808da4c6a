/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.h - both directions of TCP connections, reassembled from copies of their packets.
 *
 * Packets of other programs come in the order of their capture. Each connection to a watched server
 * becomes two streams of bytes, delivered in order and once, each with the stamp at which it and
 * all bytes before it had passed: TCP delivers a byte no earlier. Retransmissions change nothing;
 * early bytes wait (STREAM_HELD_BYTES_MAX). A stamp before that of an earlier packet of its
 * connection counts as that one.
 *
 * A byte that its receiver acknowledges and that was never seen will not come again: the capture
 * lacks it. That is a hole: the connection ends for the hooks (STREAM_LOST), because what comes
 * after it cannot be assigned. It is picked up again, like one that was open before the capture
 * began, at the next packet of its client that begins with an HTTP request line: such a client has
 * read the whole answer before, so the next answer begins at the packet's acknowledgement number.
 *
 * No socket, no lock, no HTTP beyond that line. Not for the client's own connections, which only
 * need stamps: net/arrivals.h.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/str.h"

enum stream_side { SIDE_CLIENT, SIDE_SERVER }; /* the sender */

enum stream_end {
	STREAM_CLOSED,    /* the server closed it: nothing more comes from there */
	STREAM_RESET,     /* the server reset it */
	STREAM_ABANDONED, /* the client closed or reset it first */
	STREAM_LOST,      /* bytes are missing in the capture */
	STREAM_CUT,       /* the capture is over */
};

/* An address with its port; IPv4 in the first four bytes, the others zero. */
struct stream_peer { uint8_t addr[16]; uint16_t port; bool is_ipv6; };

/* "10.0.0.1:8000", "[fd00::1]:8000". Returns out. */
#define STREAM_PEER_BYTES 64
char *stream_peer_text(char out[STREAM_PEER_BYTES], const struct stream_peer *p);

struct stream_hooks {
	void *self;
	/*
	 * A connection begins, or continues with the next request. connect_ns, connected_ns: stamps
	 * of its SYN and SYN-ACK, 0 if not seen. The result is passed to the other hooks.
	 */
	void *(*opened)(void *self, const struct stream_peer *server, int64_t connect_ns,
			int64_t connected_ns);
	/* False: the bytes cannot be read, so the rest is skipped up to the next request line. */
	bool (*bytes)(void *self, void *connection, enum stream_side from, struct str bytes,
		      int64_t stamp_ns);
	/* No more bytes of it; also after bytes() returned false. */
	void (*ended)(void *self, void *connection, enum stream_end why, int64_t stamp_ns);
};

/* Which connections to follow: those to these ports. */
struct stream_filter {
	uint16_t port[TAP_PORTS_MAX];
	unsigned n_ports;
	struct stream_peer host; /* of the server; its port is not looked at */
	bool has_host;
};

struct stream_stats {
	uint64_t packets;      /* TCP packets of these connections */
	uint64_t connections;  /* begun while the capture ran */
	uint64_t joined;       /* connections entered in the middle */
	uint64_t resent;       /* packets whose bytes had all been seen */
	uint64_t out_of_order; /* packets that came before an earlier one */
	uint64_t holes;        /* places where bytes are missing */
	uint64_t cut_packets;  /* packets of which the capture has only the beginning */
	uint64_t tls, http2;   /* client packets that begin like TLS or HTTP/2 */
	uint64_t refused;      /* connections beyond STREAM_CONNECTIONS_MAX */
};

struct streams;

/* hooks and filter are copied. */
struct streams *streams_new(const struct stream_filter *filter, const struct stream_hooks *hooks);
void streams_free(struct streams *s); /* accepts NULL; ended() is not called */
/*
 * Takes a packet from its network header on; wire_bytes: its whole length, of which the capture may
 * have cut off the end. Anything but TCP of such a connection is ignored.
 */
void streams_packet(struct streams *s, struct str packet, size_t wire_bytes, int64_t stamp_ns);
/* The capture is over: open connections end with STREAM_CUT. */
void streams_finish(struct streams *s);
const struct stream_stats *streams_stats(const struct streams *s);
