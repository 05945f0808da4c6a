/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.h - a stamp for every TCP segment, where a socket has one for every read.
 *
 * A packet socket with a ring (packet(7), TPACKET_V2) copies the heads of what the servers send,
 * with the kernel's receive stamps, CLOCK_REALTIME like those of sockets. The kernel writes a frame
 * before TCP sees its packet, so what can be read from a connection is in the ring already. However
 * late the program reads, each byte then has the stamp of the segment that brought it (arrivals.h).
 *
 * One tap serves all loops of a run. A loop that reads from a connection processes all new frames,
 * under the tap's lock, and takes what belongs to that connection. The ring and the queues have
 * fixed sizes; what does not fit is counted, and those bytes keep the stamp of their read. If a tap
 * stops working nothing else is lost.
 *
 * Packets that the network card or the kernel has joined (GRO) are one segment here. It needs
 * CAP_NET_RAW. Hardware stamps are not used: their clock is not the record's.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/net/arrivals.h"
#include "client/net/sock.h"
#include "core/base/err.h"

struct tap;

/* NULL when it is not permitted or the kernel does not support it: e says what to do. */
struct tap *tap_open(struct err *e);
void tap_close(struct tap *t); /* accepts NULL; every flow must be forgotten */

/* Adds a server whose packets count. -1: not TCP, or one server too many. */
int tap_add_server(struct tap *t, const struct sock_addr *addr, struct err *e);

/*
 * Follows a connection that was just established, before anything is sent on it. No effect when its
 * packets do not pass here as the program addressed them (address translation).
 */
void tap_follow(struct tap *t, struct arrival_flow *f, int fd);
void tap_forget(struct tap *t, struct arrival_flow *f);

/*
 * Takes the next bytes of a read that came in one segment: returns how many of the n (1 at least),
 * and sets their stamp: that of the segment, or read_ns if it is unknown (*is_known false).
 */
size_t tap_take(struct tap *t, struct arrival_flow *f, size_t n, int64_t read_ns,
		int64_t *stamp_ns, bool *is_known);
/* Skips n bytes that were read and whose stamps do not matter. */
void tap_skip(struct tap *t, struct arrival_flow *f, size_t n);

struct tap_stats {
	uint64_t segments; /* of followed connections */
	uint64_t dropped;  /* did not fit into the ring or the queues */
};
struct tap_stats tap_stats(struct tap *t);
