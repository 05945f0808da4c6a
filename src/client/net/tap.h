/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.h - a stamp for every TCP segment, where a socket has one for every read.
 *
 * A packet socket with a ring (packet(7), TPACKET_V2) copies the heads of what the servers send,
 * with the kernel's receive stamps, CLOCK_REALTIME as those of sockets. The kernel writes a frame
 * before TCP sees its packet, so what can be read from a connection is in the ring already. However
 * late the program reads, each byte then has the stamp of the segment that brought it (arrivals.h).
 *
 * One tap serves all loops of a run. A loop that reads from a connection looks at all new frames,
 * under the tap's lock, and takes what belongs to that connection. The ring and the queues have
 * fixed sizes; what does not fit is counted, and those bytes keep the stamp of their read. A tap
 * that stops working costs nothing else.
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

/* NULL when it is not allowed, or the kernel does not know it: e says what to do. */
struct tap *tap_open(struct err *e);
void tap_close(struct tap *t); /* accepts NULL; every flow must be forgotten */

/* From now on packets of this server count. -1: no TCP, or one server too many. */
int tap_add_server(struct tap *t, const struct sock_addr *addr, struct err *e);

/*
 * Follows a connection that was just established, before anything is sent on it. Nothing happens
 * when its packets do not pass here as the program addressed them (address translation).
 */
void tap_follow(struct tap *t, struct arrival_flow *f, int fd);
void tap_forget(struct tap *t, struct arrival_flow *f);

/*
 * The next bytes of a read that came in one segment: how many of the n (1 at least), and their
 * stamp. read_ns: the stamp of the read, which they keep when the segment is unknown (*is_known
 * false).
 */
size_t tap_take(struct tap *t, struct arrival_flow *f, size_t n, int64_t read_ns,
		int64_t *stamp_ns, bool *is_known);
/* n bytes were read and their stamps do not matter. */
void tap_skip(struct tap *t, struct arrival_flow *f, size_t n);

struct tap_stats {
	uint64_t segments; /* of connections that are followed */
	uint64_t dropped;  /* that found the ring full, or no room in the queues */
};
struct tap_stats tap_stats(struct tap *t);
