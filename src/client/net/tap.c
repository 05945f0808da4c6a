/* SPDX-License-Identifier: Apache-2.0 */
/* tap.c - see tap.h. */
#include "client/net/tap.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 /* Linux 4.20; the filter also refuses outgoing packets */
#endif

/* Heads of IPv4 (60 bytes at most) or IPv6 and the fixed part of TCP's. */
#define SNAP_BYTES 80
/* A frame: its own head and SNAP_BYTES, in whole cache lines. */
#define FRAME_BYTES 192
#define BLOCK_BYTES (FRAME_BYTES * 4096 / 64) /* a whole number of frames and of pages */
#define FRAMES_PER_BLOCK (BLOCK_BYTES / FRAME_BYTES)
_Static_assert(BLOCK_BYTES % 4096 == 0 && TAP_FRAMES_MAX % FRAMES_PER_BLOCK == 0,
	       "the ring is made of whole blocks");
_Static_assert(sizeof(struct tpacket2_hdr) + sizeof(struct sockaddr_ll) + 32 + SNAP_BYTES <=
	       FRAME_BYTES, "a frame holds all heads");

/*
 * The frame of a byte that was read is complete, but one before it may still be written on another
 * processor: that takes below a microsecond, unless that processor is interrupted.
 */
#define UNFINISHED_NS 20000
#define UNFINISHED_MAX 16 /* frames that processors may be writing at the same time */

#define FILTER_MAX (40 + 11 * TAP_SERVERS_MAX)

struct tap {
	pthread_mutex_t lock;      /* guards all members below */
	struct arrivals *arrivals;
	char *ring;
	size_t next;               /* frame to look at */
	int fd;
	bool is_bound;
	struct sock_addr server[TAP_SERVERS_MAX];
	unsigned n_servers;
	struct tap_stats stats;
};

/* ---- the filter ---- */

struct program { struct sock_filter code[FILTER_MAX]; unsigned short n; };

static void jump(struct program *p, unsigned code, uint32_t k, unsigned yes, unsigned no)
{
	assert(p->n < FILTER_MAX);
	p->code[p->n++] = (struct sock_filter){ (uint16_t)code, (uint8_t)yes, (uint8_t)no, k };
}

static void add(struct program *p, unsigned code, uint32_t k)
{
	jump(p, code, k, 0, 0);
}

/* The accumulator gets bytes of the packet. */
static void load(struct program *p, unsigned size, uint32_t at)
{
	add(p, BPF_LD | size | BPF_ABS, at);
}

static void refuse_unless_equal(struct program *p, uint32_t k)
{
	jump(p, BPF_JMP | BPF_JEQ | BPF_K, k, 1, 0);
	add(p, BPF_RET | BPF_K, 0);
}

/*
 * With the packet's length in the accumulator (0: too long for its field) and that of its heads
 * in X: packets without data are refused, except the SYN-ACK.
 */
static void refuse_empty(struct program *p, unsigned flags_mode, uint32_t flags_at)
{
	jump(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, 0);
	jump(p, BPF_JMP | BPF_JGT | BPF_X, 0, 4, 0);
	if (flags_mode == BPF_IND)
		add(p, BPF_LDX | BPF_B | BPF_MSH, 0);
	else
		add(p, BPF_LDX | BPF_IMM, 0);
	add(p, BPF_LD | BPF_B | flags_mode, flags_at);
	jump(p, BPF_JMP | BPF_JSET | BPF_K, 0x02, 1, 0);
	add(p, BPF_RET | BPF_K, 0);
}

/* M[1] is the source port: from here on it and the address decide. */
static void accept_ipv4(struct program *p, const struct sock_addr *s)
{
	const struct sockaddr_in *in4 = (const void *)&s->storage;

	load(p, BPF_W, 12);
	jump(p, BPF_JMP | BPF_JEQ | BPF_K, ntohl(in4->sin_addr.s_addr), 0, 3);
	add(p, BPF_LD | BPF_MEM, 1);
	jump(p, BPF_JMP | BPF_JEQ | BPF_K, ntohs(in4->sin_port), 0, 1);
	add(p, BPF_RET | BPF_K, SNAP_BYTES);
}

static void accept_ipv6(struct program *p, const struct sock_addr *s)
{
	const struct sockaddr_in6 *in6 = (const void *)&s->storage;

	for (unsigned i = 0; i < 4; i++) {
		uint32_t word;

		memcpy(&word, in6->sin6_addr.s6_addr + 4 * i, 4);
		load(p, BPF_W, 8 + 4 * i);
		jump(p, BPF_JMP | BPF_JEQ | BPF_K, ntohl(word), 0, 9 - 2 * i);
	}
	add(p, BPF_LD | BPF_MEM, 1);
	jump(p, BPF_JMP | BPF_JEQ | BPF_K, ntohs(in6->sin6_port), 0, 1);
	add(p, BPF_RET | BPF_K, SNAP_BYTES);
}

static void filter_ipv4(struct program *p, const struct tap *t)
{
	load(p, BPF_B, 9);
	refuse_unless_equal(p, IPPROTO_TCP);
	load(p, BPF_H, 6);
	add(p, BPF_ALU | BPF_AND | BPF_K, 0x1fff); /* a later fragment has no TCP head */
	refuse_unless_equal(p, 0);
	add(p, BPF_LDX | BPF_B | BPF_MSH, 0);
	add(p, BPF_LD | BPF_H | BPF_IND, 0);
	add(p, BPF_ST, 1);
	add(p, BPF_LD | BPF_B | BPF_IND, 12);
	add(p, BPF_ALU | BPF_RSH | BPF_K, 4);
	add(p, BPF_ALU | BPF_LSH | BPF_K, 2);
	add(p, BPF_ALU | BPF_ADD | BPF_X, 0);
	add(p, BPF_MISC | BPF_TAX, 0);
	load(p, BPF_H, 2);
	refuse_empty(p, BPF_IND, 13);
	for (unsigned i = 0; i < t->n_servers; i++)
		if (t->server[i].any.sa_family == AF_INET)
			accept_ipv4(p, &t->server[i]);
	add(p, BPF_RET | BPF_K, 0);
}

static void filter_ipv6(struct program *p, const struct tap *t)
{
	load(p, BPF_B, 6);
	refuse_unless_equal(p, IPPROTO_TCP);
	load(p, BPF_H, 40);
	add(p, BPF_ST, 1);
	load(p, BPF_B, 52);
	add(p, BPF_ALU | BPF_RSH | BPF_K, 4);
	add(p, BPF_ALU | BPF_LSH | BPF_K, 2);
	add(p, BPF_MISC | BPF_TAX, 0);
	load(p, BPF_H, 4); /* without the fixed head */
	refuse_empty(p, BPF_ABS, 53);
	for (unsigned i = 0; i < t->n_servers; i++)
		if (t->server[i].any.sa_family == AF_INET6)
			accept_ipv6(p, &t->server[i]);
	add(p, BPF_RET | BPF_K, 0);
}

/* Accepts packets with data from the servers, and their SYN-ACKs. Offset 0 is the IP head. */
static int attach_filter(const struct tap *t)
{
	struct program p = { .n = 0 };
	struct sock_fprog filter = { .filter = p.code };
	unsigned is_ipv6;

	add(&p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_AD_OFF + SKF_AD_PKTTYPE);
	jump(&p, BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1);
	add(&p, BPF_RET | BPF_K, 0);
	load(&p, BPF_B, 0);
	add(&p, BPF_ALU | BPF_RSH | BPF_K, 4);
	jump(&p, BPF_JMP | BPF_JEQ | BPF_K, 4, 1, 0);
	is_ipv6 = p.n;
	add(&p, BPF_JMP | BPF_JA, 0);
	filter_ipv4(&p, t);
	p.code[is_ipv6].k = p.n - is_ipv6 - 1u;
	load(&p, BPF_B, 0);
	add(&p, BPF_ALU | BPF_RSH | BPF_K, 4);
	refuse_unless_equal(&p, 6);
	filter_ipv6(&p, t);
	filter.len = p.n;
	return setsockopt(t->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

/* ---- opening ---- */

static int tap_fail(const char *what, struct err *e)
{
	return err_set(e, ERR_NET, "the packet socket that stamps every segment %s: %s", what,
		       strerrordesc_np(errno));
}

static int open_ring(struct tap *t, struct err *e)
{
	struct tpacket_req ring = { .tp_block_size = BLOCK_BYTES, .tp_frame_size = FRAME_BYTES,
				    .tp_block_nr = TAP_FRAMES_MAX / FRAMES_PER_BLOCK,
				    .tp_frame_nr = TAP_FRAMES_MAX };
	int version = TPACKET_V2, one = 1;
	void *at;

	(void)setsockopt(t->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	if (setsockopt(t->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) < 0 ||
	    setsockopt(t->fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)) < 0)
		return tap_fail("got no ring", e);
	at = mmap(NULL, (size_t)TAP_FRAMES_MAX * FRAME_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		  t->fd, 0);
	if (at == MAP_FAILED)
		return tap_fail("got no memory for its ring", e);
	t->ring = at;
	return 0;
}

struct tap *tap_open(struct err *e)
{
	/* No protocol yet: nothing comes before there is a filter. */
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct tap *t;

	if (fd < 0) {
		if (errno == EPERM || errno == EACCES)
			err_set(e, ERR_CAPTURE_FORBIDDEN, "stamping every segment needs the capability CAP_NET_RAW: "
				"run `sudo setcap cap_net_raw+ep` on this program, or run it as root");
		else
			tap_fail("cannot be opened", e);
		return NULL;
	}
	t = mem_alloc(sizeof(*t));
	t->fd = fd;
	pthread_mutex_init(&t->lock, NULL);
	if (open_ring(t, e) < 0) {
		tap_close(t);
		return NULL;
	}
	t->arrivals = arrivals_new();
	return t;
}

void tap_close(struct tap *t)
{
	if (!t)
		return;
	if (t->ring)
		munmap(t->ring, (size_t)TAP_FRAMES_MAX * FRAME_BYTES);
	sock_close(t->fd);
	arrivals_free(t->arrivals);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Adds one server to the filter; packets are received once it is installed. */
static int listen_for(struct tap *t, const struct sock_addr *addr, struct err *e)
{
	struct sockaddr_ll all = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };

	t->server[t->n_servers++] = *addr;
	if (attach_filter(t) < 0)
		return tap_fail("got no filter", e);
	if (!t->is_bound && bind(t->fd, (const struct sockaddr *)&all, sizeof(all)) < 0)
		return tap_fail("cannot listen", e);
	t->is_bound = true;
	return 0;
}

/* An IPv4-mapped address as IPv4, as its packets have it. */
static struct sock_addr unmapped(const struct sock_addr *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)&addr->storage;
	struct sock_addr plain = { .len = sizeof(struct sockaddr_in) };
	struct sockaddr_in *in4 = (void *)&plain.storage;

	if (addr->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
		return *addr;
	in4->sin_family = AF_INET;
	in4->sin_port = in6->sin6_port;
	memcpy(&in4->sin_addr, in6->sin6_addr.s6_addr + 12, 4);
	return plain;
}

int tap_add_server(struct tap *t, const struct sock_addr *addr, struct err *e)
{
	struct sock_addr plain = unmapped(addr);
	int server, rc = 0;

	pthread_mutex_lock(&t->lock);
	server = arrivals_server(t->arrivals, &plain);
	if (server < 0)
		rc = err_set(e, ERR_LIMIT, "only %d addresses of TCP servers can be stamped by "
			     "segment", TAP_SERVERS_MAX);
	else if ((unsigned)server == t->n_servers)
		rc = listen_for(t, &plain, e);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

/* ---- frames ---- */

static void *frame_at(const struct tap *t, size_t i)
{
	return t->ring + i * FRAME_BYTES;
}

/* Looks at all frames that are complete. */
static void drain(struct tap *t)
{
	for (;;) {
		struct tpacket2_hdr *h = frame_at(t, t->next);
		struct str packet;

		if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			return;
		t->next = t->next + 1 < TAP_FRAMES_MAX ? t->next + 1 : 0;
		__builtin_prefetch(frame_at(t, t->next));
		__builtin_prefetch((char *)frame_at(t, t->next) + 64);
		packet = (struct str){ (const char *)h + h->tp_net, h->tp_snaplen };
		if (arrivals_packet(t->arrivals, packet, h->tp_len,
				    (int64_t)h->tp_sec * 1000000000 + h->tp_nsec))
			t->stats.segments++;
		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	}
}

/* A frame is not complete although one after it is. */
static bool is_blocked(const struct tap *t)
{
	for (size_t i = 1; i <= UNFINISHED_MAX; i++) {
		const struct tpacket2_hdr *h = frame_at(t, (t->next + i) % TAP_FRAMES_MAX);

		if (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)
			return true;
	}
	return false;
}

/* After something was missed: true while it may be in a frame that another one holds up. */
static bool drain_again(struct tap *t, int64_t *until_ns)
{
	int64_t now = clock_mono_ns();

	*until_ns = *until_ns ? *until_ns : now + UNFINISHED_NS;
	if (now >= *until_ns || !is_blocked(t))
		return false;
	drain(t);
	return true;
}

size_t tap_take(struct tap *t, struct arrival_flow *f, size_t n, int64_t read_ns,
		int64_t *stamp_ns, bool *is_known)
{
	int64_t until_ns = 0;
	size_t taken;

	assert(f->is_followed);
	pthread_mutex_lock(&t->lock);
	drain(t);
	while (!arrivals_knows(t->arrivals, f) && drain_again(t, &until_ns))
		;
	taken = arrivals_take(t->arrivals, f, n, read_ns, stamp_ns, is_known);
	pthread_mutex_unlock(&t->lock);
	return taken;
}

void tap_skip(struct tap *t, struct arrival_flow *f, size_t n)
{
	if (!f->is_followed)
		return;
	pthread_mutex_lock(&t->lock);
	arrivals_skip(t->arrivals, f, n); /* frames of them that are found later are too old */
	pthread_mutex_unlock(&t->lock);
}

/* ---- connections ---- */

void tap_follow(struct tap *t, struct arrival_flow *f, int fd)
{
	struct sock_addr own = { .len = sizeof(own.storage) }, peer = own;
	const struct sockaddr_in *in4 = (const void *)&own.storage;
	int64_t until_ns = 0;
	int server;

	if (getsockname(fd, &own.any, &own.len) < 0 || getpeername(fd, &peer.any, &peer.len) < 0)
		return;
	_Static_assert(offsetof(struct sockaddr_in, sin_port) ==
		       offsetof(struct sockaddr_in6, sin6_port), "ports are at the same place");
	peer = unmapped(&peer);
	pthread_mutex_lock(&t->lock);
	server = arrivals_server(t->arrivals, &peer);
	drain(t);
	while (server >= 0 && !arrivals_follow(t->arrivals, f, ntohs(in4->sin_port), server) &&
	       drain_again(t, &until_ns))
		;
	pthread_mutex_unlock(&t->lock);
}

void tap_forget(struct tap *t, struct arrival_flow *f)
{
	if (!f->is_followed)
		return;
	pthread_mutex_lock(&t->lock);
	arrivals_forget(t->arrivals, f);
	pthread_mutex_unlock(&t->lock);
}

struct tap_stats tap_stats(struct tap *t)
{
	struct tpacket_stats ring = { 0 };
	socklen_t n = sizeof(ring);
	struct tap_stats stats;

	pthread_mutex_lock(&t->lock);
	if (getsockopt(t->fd, SOL_PACKET, PACKET_STATISTICS, &ring, &n) == 0)
		t->stats.dropped += ring.tp_drops; /* reading it sets it to zero */
	stats = t->stats;
	stats.dropped += arrivals_lost(t->arrivals);
	pthread_mutex_unlock(&t->lock);
	return stats;
}
