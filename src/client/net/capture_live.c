/* SPDX-License-Identifier: Apache-2.0 */
/* capture_live.c - packets of an interface, from a packet socket; see capture.h. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "client/net/capture_internal.h"
#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

#define FILTER_MAX (24 + 2 * TAP_PORTS_MAX)

struct live {
	struct capture base; /* first: its hooks get back to us from it */
	int fd, stamp_fd; /* stamp_fd keeps the kernel's stamping on; -1: it gives no stamps */
	uint64_t dropped;
	char bytes[CAPTURE_PACKET_BYTES_MAX];
};

static void jump(struct sock_fprog *p, unsigned code, uint32_t k, unsigned yes, unsigned no)
{
	assert(p->len < FILTER_MAX);
	p->filter[p->len++] = (struct sock_filter){ (uint16_t)code, (uint8_t)yes, (uint8_t)no, k };
}

static void add(struct sock_fprog *p, unsigned code, uint32_t k)
{
	jump(p, code, k, 0, 0);
}

/*
 * TCP with one of the ports on either side. Offset 0 is the IP head. M[0] and M[1] are the ports;
 * a fragment has none and is refused.
 */
static int attach_filter(int fd, const uint16_t *port, unsigned n)
{
	struct sock_filter code[FILTER_MAX];
	struct sock_fprog p = { .filter = code };

	add(&p, BPF_LD | BPF_B | BPF_ABS, 0);
	add(&p, BPF_ALU | BPF_RSH | BPF_K, 4);
	jump(&p, BPF_JMP | BPF_JEQ | BPF_K, 6, 6, 0);
	jump(&p, BPF_JMP | BPF_JEQ | BPF_K, 4, 0, 8);
	add(&p, BPF_LD | BPF_H | BPF_ABS, 6);
	jump(&p, BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 6, 0);
	add(&p, BPF_LDX | BPF_B | BPF_MSH, 0);
	add(&p, BPF_LD | BPF_B | BPF_ABS, 9);
	add(&p, BPF_JMP | BPF_JA, 4);
	add(&p, BPF_LDX | BPF_IMM, 40); /* IPv6 */
	add(&p, BPF_LD | BPF_B | BPF_ABS, 6);
	add(&p, BPF_JMP | BPF_JA, 1);
	add(&p, BPF_RET | BPF_K, 0);
	jump(&p, BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 1, 0);
	add(&p, BPF_RET | BPF_K, 0);
	for (unsigned side = 0; side < 2; side++) {
		add(&p, BPF_LD | BPF_H | BPF_IND, side * 2);
		for (unsigned i = 0; i < n; i++)
			jump(&p, BPF_JMP | BPF_JEQ | BPF_K, port[i],
			    (1 - side) * (n + 1) + n - i, 0);
	}
	add(&p, BPF_RET | BPF_K, 0);
	add(&p, BPF_RET | BPF_K, CAPTURE_PACKET_BYTES_MAX);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p));
}

static int64_t stamp_of(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct timespec t;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&t, CMSG_DATA(c), sizeof(t));
		return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	}
	return clock_real_ns();
}

static int live_next(struct capture *base, int wait_ms, struct capture_packet *out,
		     struct err *e)
{
	struct live *c = (struct live *)base;
	struct sockaddr_ll from;
	char control[128];
	struct iovec io = { c->bytes, sizeof(c->bytes) };

	for (;;) {
		struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &io,
				    .msg_iovlen = 1, .msg_control = control,
				    .msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_TRUNC);
		struct pollfd p = { .fd = c->fd, .events = POLLIN };

		if (n < 0 && errno == EAGAIN) {
			if (wait_ms <= 0 || poll(&p, 1, wait_ms) <= 0)
				return 0;
			wait_ms = 0;
			continue;
		}
		if (n < 0 && errno == EINTR)
			return 0;
		if (n < 0)
			return err_set(e, ERR_IO, "cannot read packets any more: %s",
				       strerrordesc_np(errno));
		if (from.sll_pkttype == PACKET_OUTGOING && from.sll_hatype == ARPHRD_LOOPBACK)
			continue; /* the same packet is also seen as incoming */
		out->wire_bytes = (size_t)n;
		out->bytes = (struct str){ c->bytes, (size_t)n < sizeof(c->bytes)
						     ? (size_t)n : sizeof(c->bytes) };
		out->stamp_ns = stamp_of(&m);
		return 1;
	}
}

static uint64_t live_dropped(struct capture *base)
{
	struct live *c = (struct live *)base;
	struct tpacket_stats stats = { 0 };
	socklen_t n = sizeof(stats);

	if (getsockopt(c->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &n) == 0)
		c->dropped += stats.tp_drops; /* reading it sets it to zero */
	return c->dropped;
}

static void live_close(struct capture *base)
{
	struct live *c = (struct live *)base;

	sock_close(c->fd);
	sock_close(c->stamp_fd);
	free(c);
}

static int begin(int fd, const char *interface, const uint16_t *port, unsigned n_ports,
		 struct err *e)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int one = 1, bytes = CAPTURE_BUFFER_BYTES;

	if (interface) {
		at.sll_ifindex = (int)if_nametoindex(interface);
		if (!at.sll_ifindex)
			return err_set(e, ERR_NET, "--interface: this machine has no interface '%s'; "
				       "`ip link` lists them", interface);
	}
	/* Beyond the system's limit where it is allowed, else up to it. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) < 0 ||
	    attach_filter(fd, port, n_ports) < 0 ||
	    bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return err_set(e, ERR_NET, "cannot listen for packets%s%s: %s",
			       interface ? " of " : "", interface ? interface : "",
			       strerrordesc_np(errno));
	return 0;
}

struct capture *capture_open_live(const char *interface, const uint16_t *port, unsigned n_ports,
				  struct err *e)
{
	/* No protocol yet: nothing comes before there is a filter. */
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct err ignored;
	struct live *c;
	int stamp_fd;

	if (fd < 0) {
		if (errno == EPERM || errno == EACCES)
			err_set(e, ERR_NET, "reading the packets of other programs needs the capability "
				"CAP_NET_RAW: run `sudo setcap cap_net_raw+ep` on this program, run it as "
				"root, or give it a file that tcpdump has written");
		else
			err_set(e, ERR_NET, "a packet socket cannot be opened: %s",
				strerrordesc_np(errno));
		return NULL;
	}
	/* Stamping begins with a delay: until then a packet has the time at which it is read. */
	stamp_fd = sock_stamps_on(&ignored);
	if (begin(fd, interface, port, n_ports, e) < 0) {
		sock_close(fd);
		sock_close(stamp_fd);
		return NULL;
	}
	c = mem_alloc(sizeof(*c));
	c->base = (struct capture){ live_next, live_dropped, live_close };
	c->fd = fd;
	c->stamp_fd = stamp_fd;
	return &c->base;
}
