/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - what a network interface does to segments before the kernel stamps them.
 *
 * Read from the driver (ethtool ioctl), which needs no privilege. A value that a driver does not
 * report stays "not known"; nothing here is an error.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/net/sock.h"

#define LINK_NAME_BYTES 16 /* IFNAMSIZ */

enum link_answer { LINK_UNKNOWN, LINK_NO, LINK_YES };

struct link {
	char name[LINK_NAME_BYTES];
	bool is_loopback;
	enum link_answer gro, lro;       /* segments are merged in the kernel; by the card */
	enum link_answer hardware_stamp; /* the card can stamp what it receives */
	int64_t coalesce_us;             /* how long an interrupt may wait; -1: not known */
	bool is_adaptive;                /* that time follows the traffic */
};

void link_look(const char *name, struct link *out);
/* The interface by which packets to addr leave; false: no route, or addr is a socket file. */
bool link_to(const struct sock_addr *addr, char name[static LINK_NAME_BYTES]);
