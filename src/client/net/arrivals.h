/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrivals.h - when each byte of a TCP stream reached this machine, from copies of its packets.
 *
 * Packets come in the order in which the machine received them, with their stamps. Those of a
 * followed connection become ranges of its stream, in the stream's order, until the program has
 * read those bytes. A byte has arrived when it and all bytes before it are there for the first
 * time: TCP delivers it no earlier. So the stamp of a byte is the largest of the first stamps up to
 * it; retransmissions change nothing, and what fills a hole releases what is after the hole.
 *
 * The stream begins with the sequence number of the server's SYN-ACK, which is kept by local port
 * until the connection is followed. Sequence numbers are compared modulo 2^32, which is right as
 * long as less than 2^30 bytes are unread: no receive buffer is larger.
 *
 * No socket and no lock: tap.h has both. Everything is allocated by arrivals_new.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/net/sock.h"

struct arrivals;

/* One connection that is followed; embedded in its owner, private. A zeroed one is not followed. */
struct arrival_flow {
	struct arrival_flow *next;  /* of the same local port */
	int64_t latest_ns;          /* stamp of the byte that was taken last */
	uint32_t next_seq;          /* of the byte that is taken next */
	uint32_t first, last;       /* ranges not taken yet: index + 1, 0: none */
	uint16_t port, server;      /* local port; index of the server */
	bool is_followed;
};

struct arrivals *arrivals_new(void);
void arrivals_free(struct arrivals *a);

/*
 * Adds a peer whose packets count; the same address gets the same index. -1: it has no TCP port, or
 * TAP_SERVERS_MAX is reached. An IPv4-mapped IPv6 address is the IPv4 address.
 */
int arrivals_server(struct arrivals *a, const struct sock_addr *addr);

/*
 * Takes a packet from its network header on; the capture may have cut off its end; wire_bytes is
 * its whole length. Anything but TCP from a known server is ignored. Returns the bytes of stream in
 * it that were noted for a flow.
 */
size_t arrivals_packet(struct arrivals *a, struct str packet, size_t wire_bytes, int64_t stamp_ns);

/*
 * Follows the connection from this local port to the server from its first byte on. False when its
 * SYN-ACK was not seen. The flow must not move until arrivals_forget.
 */
bool arrivals_follow(struct arrivals *a, struct arrival_flow *f, uint16_t port, int server);
void arrivals_forget(struct arrivals *a, struct arrival_flow *f);

/*
 * Takes the next bytes of the stream that share a stamp, 1 to most_bytes; returns how many. If no
 * packet with them was seen, *stamp_ns is otherwise_ns and *is_known false.
 */
size_t arrivals_take(struct arrivals *a, struct arrival_flow *f, size_t most_bytes,
		     int64_t otherwise_ns, int64_t *stamp_ns, bool *is_known);
/* Whether a packet with the next byte was seen. */
bool arrivals_knows(const struct arrivals *a, const struct arrival_flow *f);
/* Skips bytes that were read and whose stamps are not needed. */
void arrivals_skip(struct arrivals *a, struct arrival_flow *f, size_t bytes);

/* Ranges that were dropped because the tables were full, over all flows. */
uint64_t arrivals_lost(const struct arrivals *a);
