/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - packets of other programs, one after the other, from their network header on.
 *
 * From a file as tcpdump and Wireshark write it (pcap with microseconds or nanoseconds, pcapng; of
 * either byte order; Ethernet, Linux cooked captures, loopback, raw IP), which may be a pipe, or
 * live from a packet socket (packet(7)), which needs CAP_NET_RAW. Stamps are CLOCK_REALTIME of the
 * machine that captured, in nanoseconds, as precise as in the file.
 *
 * Live packets of the loopback device are seen once, when received; those of other devices in both
 * directions. The kernel buffers CAPTURE_BUFFER_BYTES of them if permitted.
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
	size_t wire_bytes;   /* length of the whole packet from there on */
	int64_t stamp_ns;
};

/* NULL: ERR_IO, or ERR_PARSE for a file that is not a capture. */
struct capture *capture_open_file(const char *path, struct err *e);
/*
 * TCP to and from these ports; interface NULL: all interfaces. NULL: ERR_NET, with the remedy if
 * permission is missing.
 */
struct capture *capture_open_live(const char *interface, const uint16_t *port, unsigned n_ports,
				  struct err *e);
void capture_close(struct capture *c); /* accepts NULL */

/*
 * Reads the next packet: 1. 0: end of file, or no packet within wait_ms. -1: it cannot be read any
 * further (ERR_IO, ERR_PARSE); earlier packets are valid.
 */
int capture_next(struct capture *c, int wait_ms, struct capture_packet *out, struct err *e);

/* Packets dropped because buffers were full, as far as the kernel or the file reports it. */
uint64_t capture_dropped(struct capture *c);
