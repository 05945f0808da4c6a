/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sock.h - the socket calls of this program; nothing else makes them.
 *
 * All sockets are non-blocking and close-on-exec; TCP ones have TCP_NODELAY.
 * Kernel receive stamps (SO_TIMESTAMPING, software) are CLOCK_REALTIME.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct sock_addr {
	socklen_t len;
	union {
		struct sockaddr any;
		struct sockaddr_storage storage;
		struct sockaddr_un local;
	};
};

#define SOCK_ADDRS_MAX 16

/*
 * host: name, IPv4 or IPv6 literal (no brackets). Blocking (getaddrinfo): call
 * before the clock starts. Returns the number of addresses (1..SOCK_ADDRS_MAX),
 * in the order to try them, or -1.
 */
int sock_resolve(const char *host, uint16_t port, struct sock_addr addr[SOCK_ADDRS_MAX],
		 struct err *e);
int sock_addr_unix(const char *path, struct sock_addr *addr, struct err *e);
/* "127.0.0.1:8000", "[::1]:8000", "unix:/path". */
void sock_addr_text(const struct sock_addr *addr, char *out, size_t cap);

/* An address of this machine to connect from: IPv4 or IPv6, no name. ERR_USAGE. */
int sock_addr_own(const char *text, struct sock_addr *addr, struct err *e);
/* Whether this machine has that address: -1 and e when a socket cannot be bound to it. */
int sock_try_own(const struct sock_addr *own, struct err *e);

/* Starts connecting, with stamps on; returns the descriptor, or -1 with e and errno set. */
int sock_connect(const struct sock_addr *addr, bool is_stamped, struct err *e);
/* The same from an address of this machine, which has its own ports (NULL: the kernel chooses). */
int sock_connect_from(const struct sock_addr *own, const struct sock_addr *addr, bool is_stamped,
		      struct err *e);
/* After EPOLLOUT: 0 when connected, else the errno. */
int sock_connect_result(int fd);
/* True when the handshake is already over (loopback finishes it inside connect). */
bool sock_is_connected(int fd);

/* port 0 picks one; the bound address comes back in addr. SO_REUSEADDR. */
int sock_listen(struct sock_addr *addr, int backlog, struct err *e);
int sock_accept(int listener, bool is_stamped); /* -1 with errno */
/* Tries to listen on a TCP port at any address. 0: it is free; else the errno. */
int sock_try_port(uint16_t port);

/*
 * recv with the kernel's stamp of the newest segment in *stamp_ns (0 when the
 * kernel gave none). Returns like recv: 0 at end of stream, -1 with errno.
 */
ssize_t sock_recv(int fd, void *data, size_t cap, int64_t *stamp_ns);
/*
 * The same. *is_drained: nothing was left to read, not even the end of the stream. Always false
 * where the kernel does not report it (sock_connect's sockets on Linux 4.18 and later do).
 */
ssize_t sock_recv_last(int fd, void *data, size_t cap, int64_t *stamp_ns, bool *is_drained);
/* MSG_NOSIGNAL. Returns bytes taken or -1 with errno. */
ssize_t sock_send(int fd, struct str a);

/*
 * Returns how many sent bytes the peer has not acknowledged; *acked counts those that it has (TCP;
 * else 0). -1: unknown.
 */
int64_t sock_unread(int fd, uint64_t *acked);

/*
 * Opens a stamped loopback socket pair and waits (<= 100 ms) until a read carries a stamp; the
 * kernel switches stamping on with a delay. Returns a descriptor to keep open while measuring
 * (close it at the end), or -1 when the kernel gives no stamps (e says why).
 */
int sock_stamps_on(struct err *e);

/*
 * TCP's view of a connection: our segments that were sent again, segments of the peer that came
 * before an earlier one (which was lost or overtaken), and the shortest round trip so far. Zero
 * where the kernel does not report it.
 */
struct sock_path { uint32_t resent, out_of_order; int64_t round_trip_ns; };
struct sock_path sock_path(int fd);

/* Raises RLIMIT_NOFILE to its hard limit; returns the limit now in force. */
size_t sock_raise_nofile(void);
void sock_close(int fd); /* ignores -1 */
void sock_reset(int fd); /* closes so that the peer sees a reset (TCP); ignores -1 */
