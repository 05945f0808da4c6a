/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - packets of other programs, one after the other, from their network header on.
 *
 * From a file as tcpdump and Wireshark write it (pcap with microseconds or nanoseconds, pcapng; of
 * either byte order; Ethernet, Linux cooked captures, loopback, raw IP), which may be a pipe, or
 * live from a packet socket (packet(7)), which needs CAP_NET_RAW. Stamps are CLOCK_REALTIME of the
 * machine that captured, in nanoseconds, as precise as the file has them.
 *
 * Live packets of the loopback device are seen once, as they are received; of other devices in
 * both directions. The kernel keeps CAPTURE_BUFFER_BYTES of them where it allows that.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/str.h"

struct capture;

struct capture_packet {
	struct str bytes;    /* from its network header on; borrowed until the next call */
	size_t wire_bytes;   /* of the whole packet, from there on too */
	int64_t stamp_ns;
};

/* NULL: ERR_IO, or ERR_PARSE for what is no capture. */
struct capture *capture_open_file(const char *path, struct err *e);
/*
 * interface NULL: all of them. TCP to and from these ports alone. NULL: ERR_NET, and what to do
 * where it is not allowed.
 */
struct capture *capture_open_live(const char *interface, const uint16_t *port, unsigned n_ports,
				  struct err *e);
void capture_close(struct capture *c); /* accepts NULL */

/*
 * The next packet: 1. 0: a file is over, or no packet came within wait_ms. -1: it cannot be read
 * any further (ERR_IO, ERR_PARSE); what came before is right.
 */
int capture_next(struct capture *c, int wait_ms, struct capture_packet *out, struct err *e);

/* Packets that were not kept for want of room, as far as the kernel or the file says so. */
uint64_t capture_dropped(struct capture *c);
