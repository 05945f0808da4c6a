/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/port.h - who listens on a port or a socket file.
 *
 * /proc/net/tcp, tcp6 and unix name the inodes of listening sockets, /proc/PID/fd says who holds
 * them. Any local address counts: a server that listens on every address, as most do, cannot
 * share the port with one that listens on a single one. What is seen are the sockets of our own
 * network namespace; a process of another user is seen to listen, but not which one it is.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

enum port_state {
	PORT_FREE,    /* nobody listens */
	PORT_IN_TREE, /* one that descends from the given process does */
	PORT_FOREIGN, /* only others do; holder, if it is known, is one of them */
};

/*
 * Who listens on the TCP port (0: on the socket file uds), judged by the tree below root (0: none
 * is ours). *holder, if not NULL, is a process that listens; 0: nobody, or one that cannot be seen.
 */
enum port_state port_look(uint16_t port, const char *uds, pid_t root, pid_t *holder);

/* One line of /proc/net/tcp or tcp6: its inode when it listens on port, else 0. */
uint64_t port_line_inode(struct str line, uint16_t port);
/* One line of /proc/net/unix: its inode when it listens on path, else 0. */
uint64_t port_line_unix(struct str line, const char *path);
