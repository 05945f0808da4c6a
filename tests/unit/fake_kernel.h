/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_kernel.h - the system calls of the load generator on a clock of our own: time, epoll, TCP
 * sockets. A program that includes this file defines those functions, so that the objects it is
 * linked with call these instead of the C library's; they are not changed for it.
 *
 * Time passes when it is looked at, and when the program waits: then the clock goes on to the next
 * event. What comes from the network are events in a heap, at instants that the peer (the includer)
 * chooses; nothing else happens by itself, and all chance comes from one seed. So a run is the
 * same each time, whatever the machine does.
 *
 * Sockets: level-triggered readiness, bytes in segments with a stamp each, full send buffers, reads
 * that are shorter than what is there, reads and waits that signals interrupt, resets with bytes
 * still unread, and descriptors that are used again at once, the lowest first. One epoll
 * instance, one thread at a time. Other descriptors and clocks are the machine's own.
 */
#pragma once
#include <errno.h>
#include <linux/net_tstamp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FAKE_FD 1000000      /* the first of ours; what is below is the machine's */
#define FAKE_SOCKS 8192
#define FAKE_SEGMENTS 48     /* that one socket holds unread */
#define FAKE_MONO_NS 100000000000000000ll  /* three years: no real timed wait ends before it */
#define FAKE_REAL_NS 1700000000000000000ll /* CLOCK_REALTIME less CLOCK_MONOTONIC */
#define FAKE_CALLS_MAX 400000000ull        /* of a run: who makes more does not end */

enum fake_kind { FAKE_FREE, FAKE_EPOLL, FAKE_WAKE, FAKE_SOCK };
enum fake_state { FAKE_NEW, FAKE_CONNECTING, FAKE_UP, FAKE_REFUSED };
enum fake_news { NEWS_UP, NEWS_REFUSED, NEWS_SEGMENT, NEWS_FIN, NEWS_RST, NEWS_ROOM, NEWS_PEER };

struct fake_segment { uint32_t end; int64_t stamp_ns; };

struct fake_sock {
	uint8_t kind, state;
	uint32_t gen;               /* events of an earlier life of the descriptor do not count */
	uint32_t watched;           /* events asked for; 0: not in the epoll */
	void *watch_data;
	bool is_queued;
	bool is_stamped, has_inq;   /* SO_TIMESTAMPING; TCP_INQ */
	bool is_fin, is_rst;        /* arrived */
	bool is_told_more;          /* the last read said that there is more */
	int error;                  /* SO_ERROR */
	int64_t fin_ns;             /* when the end arrived */
	size_t room;                /* bytes that the send buffer takes */
	/* From the peer: bytes, of which those before `avail` have arrived. */
	char *rx;
	uint32_t rx_cap, rx_n, avail, read;
	struct fake_segment segment[FAKE_SEGMENTS];
	uint32_t n_segments, arrived, begun; /* of them; next to arrive; next to read */
	/* Readings of CLOCK_REALTIME: the last before it was opened, the first after it was up. */
	int64_t connect_ns, connected_ns;
	uint8_t addr;               /* the last byte of the peer's address */
	uint16_t port;
};

struct fake_event { int64_t at_ns; uint64_t order; uint32_t sock, gen; uint8_t news; };

/* What an includer defines: the peer. */
static void peer_connect(struct fake_sock *s);                      /* schedules UP or REFUSED */
/* The client sends from p on, and n bytes were taken, perhaps none. */
static void peer_sent(struct fake_sock *s, const char *p, size_t n);
static void peer_read(struct fake_sock *s, uint32_t from, uint32_t to, int64_t stamp_ns);
static void peer_read_end(struct fake_sock *s, bool is_reset);       /* the client saw the end */
static void peer_close(struct fake_sock *s);                        /* the client closed */
static void peer_news(struct fake_sock *s);                         /* NEWS_PEER is due */
static void peer_stamp(int64_t real_ns);       /* a reading of CLOCK_REALTIME was handed out */
static _Noreturn void violated(const char *format, ...) __attribute__((format(printf, 1, 2)));

static struct {
	uint64_t seed;
	int64_t now_ns;             /* CLOCK_MONOTONIC */
	int64_t last_real_ns;       /* what CLOCK_REALTIME was last read as */
	int64_t *stamp_next;        /* gets the next reading */
	uint64_t calls;
	struct fake_sock sock[FAKE_SOCKS];
	uint32_t lowest;            /* no free descriptor is below it */
	uint32_t epoll;             /* its index; 0: none */
	uint32_t queue[FAKE_SOCKS], n_queued;
	int64_t event_ns;           /* of the event that is happening */
	struct fake_event *heap;
	size_t n_events, events_cap;
	uint64_t order;
	uint32_t n_open, n_open_most;
	uint64_t n_opened, n_reads, n_reads_unstamped;
	/* How the world is, by the seed. Of one in so many calls; 0: never. */
	uint32_t hiccup_one_in, interrupt_one_in, short_read_one_in, refuse_socket_one_in;
	int64_t hiccup_ns;          /* the longest time for which the program does not run */
	bool is_without_pwait2, has_inq;
	int64_t cancel_ns;          /* when cancel becomes true; 0: never */
	_Atomic bool cancel;
} kernel;

/* A thread for which no time passes: the one that waits for the others. 0: it does. */
static _Thread_local int64_t frozen_ns;

/* ---- chance ---- */

static inline uint64_t chance(void)
{
	uint64_t z = kernel.seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline uint32_t below(uint32_t n)
{
	return (uint32_t)(((chance() & UINT32_MAX) * n) >> 32);
}

static inline bool one_in(uint32_t n)
{
	return n && below(n) == 0;
}

/* Between low and high, short ones as often as long ones. */
static inline int64_t spread(int64_t low, int64_t high)
{
	int64_t most = low;

	while (most < high && below(3))
		most *= 2;
	most = most < high ? most : high;
	return low / 2 + (int64_t)(chance() % (uint64_t)(most - low / 2 + 1));
}

/* ---- events ---- */

static bool event_is_before(const struct fake_event *a, const struct fake_event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static uint32_t sock_index(const struct fake_sock *s)
{
	return (uint32_t)(s - kernel.sock);
}

static void kernel_at(struct fake_sock *s, int64_t at_ns, enum fake_news news)
{
	struct fake_event e = { at_ns, ++kernel.order, sock_index(s), s->gen, (uint8_t)news };
	size_t at = kernel.n_events++;

	if (kernel.n_events > kernel.events_cap) {
		kernel.events_cap = kernel.events_cap ? kernel.events_cap * 2 : 1024;
		kernel.heap = realloc(kernel.heap, kernel.events_cap * sizeof(*kernel.heap));
	}
	for (; at && event_is_before(&e, &kernel.heap[(at - 1) / 2]); at = (at - 1) / 2)
		kernel.heap[at] = kernel.heap[(at - 1) / 2];
	kernel.heap[at] = e;
}

static struct fake_event event_take(void)
{
	struct fake_event first = kernel.heap[0], last = kernel.heap[--kernel.n_events];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < kernel.n_events) {
		if (child + 1 < kernel.n_events &&
		    event_is_before(&kernel.heap[child + 1], &kernel.heap[child]))
			child++;
		if (!event_is_before(&kernel.heap[child], &last))
			break;
		kernel.heap[at] = kernel.heap[child];
		at = child;
	}
	kernel.heap[at] = last;
	return first;
}

static void sock_queue(struct fake_sock *s)
{
	if (s->is_queued || !s->watched)
		return;
	s->is_queued = true;
	kernel.queue[kernel.n_queued++] = sock_index(s);
}

static void event_happens(const struct fake_event *e)
{
	struct fake_sock *s = &kernel.sock[e->sock];

	if (s->gen != e->gen)
		return;
	kernel.event_ns = e->at_ns;
	switch ((enum fake_news)e->news) {
	case NEWS_UP:
		s->state = FAKE_UP;
		break;
	case NEWS_REFUSED:
		s->state = FAKE_REFUSED;
		s->error = ECONNREFUSED;
		break;
	case NEWS_SEGMENT:
		if (s->is_rst)
			return;
		s->avail = s->segment[s->arrived % FAKE_SEGMENTS].end;
		s->segment[s->arrived++ % FAKE_SEGMENTS].stamp_ns = e->at_ns + FAKE_REAL_NS;
		break;
	case NEWS_FIN:
		s->is_fin = true;
		s->fin_ns = s->fin_ns ? s->fin_ns : e->at_ns;
		break;
	case NEWS_RST:
		s->is_rst = true;
		s->error = ECONNRESET;
		s->fin_ns = s->fin_ns ? s->fin_ns : e->at_ns;
		break;
	case NEWS_ROOM:
		s->room += 1 + below(8192);
		break;
	case NEWS_PEER:
		peer_news(s);
		return;
	}
	sock_queue(s);
}

/* What has happened by now. */
static void kernel_catch_up(void)
{
	while (kernel.n_events && kernel.heap[0].at_ns <= kernel.now_ns) {
		struct fake_event e = event_take();

		event_happens(&e);
	}
}

/* ---- for the peer: bytes to the client ---- */

/* Adds room for n bytes, which the caller fills; returns their offset in rx. */
static uint32_t rx_add(struct fake_sock *s, uint32_t n)
{
	uint32_t at;

	if (s->read == s->rx_n) { /* nothing is on its way */
		s->read = s->avail = s->rx_n = 0;
		s->n_segments = s->arrived = s->begun = 0;
	}
	at = s->rx_n;
	if (at + n > s->rx_cap) {
		s->rx_cap = at + n + 1024;
		s->rx = realloc(s->rx, s->rx_cap);
	}
	s->rx_n += n;
	return at;
}

/* The bytes before `end` that are in no segment yet become one. */
static void rx_segment(struct fake_sock *s, uint32_t end, int64_t at_ns)
{
	if (s->n_segments - s->begun == FAKE_SEGMENTS)
		violated("the peer has too many segments under way");
	s->segment[s->n_segments++ % FAKE_SEGMENTS] = (struct fake_segment){ end, 0 };
	kernel_at(s, at_ns, NEWS_SEGMENT);
}

/* ---- descriptors ---- */

static struct fake_sock *sock_of(int fd)
{
	if (fd < FAKE_FD)
		return NULL;
	if (fd >= FAKE_FD + FAKE_SOCKS || kernel.sock[fd - FAKE_FD].kind == FAKE_FREE)
		violated("a call on descriptor %d, which is not open", fd);
	if (++kernel.calls > FAKE_CALLS_MAX)
		violated("the run does not end: %llu calls", (unsigned long long)kernel.calls);
	return &kernel.sock[fd - FAKE_FD];
}

static int sock_new(enum fake_kind kind)
{
	struct fake_sock *s;
	uint32_t i = kernel.lowest;

	while (kernel.sock[i].kind != FAKE_FREE) /* the lowest, as the kernel does */
		if (++i == FAKE_SOCKS)
			violated("%d descriptors are open", FAKE_SOCKS - 1);
	kernel.lowest = i;
	s = &kernel.sock[i];
	s->kind = (uint8_t)kind;
	s->state = FAKE_NEW;
	s->is_stamped = s->has_inq = s->is_fin = s->is_rst = s->is_told_more = false;
	s->error = 0;
	s->room = 0;
	s->rx_n = s->avail = s->read = s->n_segments = s->arrived = s->begun = 0;
	s->fin_ns = s->connect_ns = s->connected_ns = 0;
	return (int)i + FAKE_FD;
}

/* An empty kernel for the next run; buffers are kept. */
static void kernel_reset(uint64_t seed)
{
	struct fake_event *heap = kernel.heap;
	size_t cap = kernel.events_cap;

	for (uint32_t i = 0; i < FAKE_SOCKS; i++) {
		if (kernel.sock[i].kind != FAKE_FREE)
			violated("descriptor %u of the run before is open", i);
		kernel.sock[i].watched = 0;
		kernel.sock[i].is_queued = false;
	}
	kernel.heap = heap;
	kernel.events_cap = cap;
	kernel.n_events = kernel.n_queued = kernel.n_open = kernel.n_open_most = kernel.epoll = 0;
	kernel.lowest = 1;
	kernel.order = kernel.calls = kernel.n_opened = kernel.n_reads = 0;
	kernel.n_reads_unstamped = 0;
	kernel.stamp_next = NULL;
	kernel.cancel_ns = 0;
	kernel.cancel = false;
	kernel.now_ns = FAKE_MONO_NS;
	kernel.seed = seed;
}

/* ---- the calls: time ---- */

static void time_goes_on(void)
{
	kernel.now_ns += 1 + (int64_t)(chance() & 127);
	if (one_in(kernel.hiccup_one_in))
		kernel.now_ns += (int64_t)(chance() % (uint64_t)kernel.hiccup_ns);
	if (kernel.cancel_ns && kernel.now_ns >= kernel.cancel_ns)
		kernel.cancel = true;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int64_t ns;

	if (id != CLOCK_REALTIME && id != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, id, t);
	if (!frozen_ns)
		time_goes_on();
	ns = frozen_ns ? frozen_ns : kernel.now_ns;
	if (id == CLOCK_REALTIME)
		ns += FAKE_REAL_NS;
	if (id == CLOCK_REALTIME && !frozen_ns) {
		kernel.last_real_ns = ns;
		if (kernel.stamp_next)
			*kernel.stamp_next = ns;
		kernel.stamp_next = NULL;
		peer_stamp(ns);
	}
	t->tv_sec = ns / 1000000000;
	t->tv_nsec = ns % 1000000000;
	return 0;
}

/* ---- the calls: readiness ---- */

static uint32_t sock_ready(const struct fake_sock *s)
{
	uint32_t events = 0;

	if (s->kind == FAKE_WAKE)
		return s->room ? EPOLLIN : 0;
	if (s->state == FAKE_REFUSED)
		return EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
	if (s->state != FAKE_UP)
		return 0;
	if (s->read < s->avail || s->is_fin)
		events |= EPOLLIN;
	if (s->room)
		events |= EPOLLOUT;
	if (s->is_rst)
		events |= EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
	return events;
}

/* Those that are ready, up to most; who was reported comes last the next time. */
static int ready_take(struct epoll_event *out, int most)
{
	static uint32_t reported[FAKE_SOCKS];
	uint32_t kept = 0;
	int n = 0;

	for (uint32_t i = 0; i < kernel.n_queued; i++) {
		struct fake_sock *s = &kernel.sock[kernel.queue[i]];
		uint32_t events;

		if (n == most) {
			kernel.queue[kept++] = kernel.queue[i];
			continue;
		}
		events = s->kind == FAKE_FREE || !s->watched ? 0
			 : sock_ready(s) & (s->watched | EPOLLERR | EPOLLHUP);
		if (!events) {
			s->is_queued = false;
			continue;
		}
		reported[n] = kernel.queue[i];
		out[n++] = (struct epoll_event){ .events = events, .data.ptr = s->watch_data };
	}
	memcpy(kernel.queue + kept, reported, (size_t)n * sizeof(*reported));
	kernel.n_queued = kept + (uint32_t)n;
	return n;
}

/* timeout_ns -1: for ever. */
static int wait_for(struct epoll_event *out, int most, int64_t timeout_ns)
{
	int64_t until = timeout_ns < 0 ? INT64_MAX : kernel.now_ns + timeout_ns;

	for (;;) {
		int64_t next;
		int n;

		time_goes_on();
		kernel_catch_up();
		n = ready_take(out, most);
		if (n || kernel.now_ns >= until) {
			if (!n && !timeout_ns)
				kernel.now_ns += below(4096); /* who polls has time */
			return n;
		}
		next = kernel.n_events ? kernel.heap[0].at_ns : INT64_MAX;
		if (next == INT64_MAX && until == INT64_MAX)
			violated("the program waits for ever");
		if (one_in(kernel.interrupt_one_in)) {
			next = next < until ? next : until;
			kernel.now_ns += (int64_t)(chance() % (uint64_t)(next - kernel.now_ns + 1));
			errno = EINTR;
			return -1;
		}
		kernel.now_ns = next < until ? next : until;
		kernel.now_ns += below(1u << below(15)); /* sleepers wake late */
	}
}

int epoll_create1(int flags)
{
	int fd = sock_new(FAKE_EPOLL);

	(void)flags;
	if (kernel.epoll)
		violated("a second event loop");
	kernel.epoll = (uint32_t)(fd - FAKE_FD);
	return fd;
}

int eventfd(unsigned int count, int flags)
{
	(void)count;
	(void)flags;
	return sock_new(FAKE_WAKE);
}

int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
	struct fake_sock *s = sock_of(fd);

	if (sock_of(epoll) != &kernel.sock[kernel.epoll] || !s)
		violated("epoll_ctl on descriptor %d, which is no epoll, for %d", epoll, fd);
	if ((what == EPOLL_CTL_ADD) != (s->watched == 0))
		violated("epoll_ctl: descriptor %d is watched already, or not", fd);
	s->watched = what == EPOLL_CTL_DEL ? 0 : event->events | EPOLLERR;
	s->watch_data = what == EPOLL_CTL_DEL ? NULL : event->data.ptr;
	sock_queue(s);
	return 0;
}

int epoll_wait(int epoll, struct epoll_event *out, int most, int timeout_ms)
{
	(void)sock_of(epoll);
	return wait_for(out, most, timeout_ms * 1000000ll);
}

int epoll_pwait2(int epoll, struct epoll_event *out, int most, const struct timespec *t,
		 const sigset_t *mask)
{
	(void)sock_of(epoll);
	(void)mask;
	if (kernel.is_without_pwait2) {
		errno = ENOSYS;
		return -1;
	}
	return wait_for(out, most, t ? t->tv_sec * 1000000000ll + t->tv_nsec : -1);
}

/* glibc 2.36 declares that ppoll only writes what it is given. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	struct epoll_event one;
	int ready;

	if (!sock_of(fds->fd))
		return (int)syscall(SYS_ppoll, fds, n, t, mask, 8);
	ready = wait_for(&one, 1, t ? t->tv_sec * 1000000000ll + t->tv_nsec : -1);
	fds->revents = ready > 0 ? POLLIN : 0;
	return ready;
}
#pragma GCC diagnostic pop

/* ---- the calls: sockets ---- */

int socket(int family, int type, int protocol)
{
	int fd;

	(void)protocol;
	if (one_in(kernel.refuse_socket_one_in)) {
		errno = EMFILE;
		return -1;
	}
	if (family != AF_INET || type != (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC))
		violated("a socket of family %d and type %d", family, type);
	fd = sock_new(FAKE_SOCK);
	sock_of(fd)->connect_ns = kernel.last_real_ns;
	sock_of(fd)->room = 1024u << below(6);
	kernel.n_opened++;
	if (++kernel.n_open > kernel.n_open_most)
		kernel.n_open_most = kernel.n_open;
	return fd;
}

/* Nothing listens here: the test of receive stamps finds none. */
int bind(int fd, const struct sockaddr *addr, socklen_t n)
{
	(void)sock_of(fd);
	(void)addr;
	(void)n;
	kernel.n_opened--;
	errno = EACCES;
	return -1;
}

int connect(int fd, const struct sockaddr *addr, socklen_t n)
{
	struct fake_sock *s = sock_of(fd);
	const struct sockaddr_in *in = (const void *)addr;

	if (n < sizeof(*in) || s->state != FAKE_NEW)
		violated("connect of descriptor %d in state %d", fd, s->state);
	s->addr = (uint8_t)ntohl(in->sin_addr.s_addr);
	s->port = ntohs(in->sin_port);
	s->state = FAKE_CONNECTING;
	peer_connect(s);
	if (s->state == FAKE_UP)
		return 0;
	errno = s->state == FAKE_REFUSED ? s->error : EINPROGRESS;
	return -1;
}

int getpeername(int fd, struct sockaddr *addr, socklen_t *n)
{
	struct fake_sock *s = sock_of(fd);

	(void)addr;
	(void)n;
	if (s->state == FAKE_UP) {
		kernel.stamp_next = &s->connected_ns;
		return 0;
	}
	errno = ENOTCONN;
	return -1;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
	struct fake_sock *s = sock_of(fd);
	int v;

	if (!s)
		return (int)syscall(SYS_setsockopt, fd, level, name, value, n);
	memcpy(&v, value, sizeof(v));
	if (level == SOL_SOCKET && name == SO_TIMESTAMPING)
		s->is_stamped = v == (SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
	if (level == IPPROTO_TCP && name == TCP_INQ)
		s->has_inq = v == 1 && kernel.has_inq;
	return 0;
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict n)
{
	struct fake_sock *s = sock_of(fd);

	if (!s)
		return (int)syscall(SYS_getsockopt, fd, level, name, value, n);
	if (level != SOL_SOCKET || name != SO_ERROR) {
		errno = ENOPROTOOPT;
		return -1;
	}
	memcpy(value, &s->error, sizeof(s->error));
	if (s->error == 0)
		kernel.stamp_next = &s->connected_ns;
	s->error = 0;
	return 0;
}

ssize_t send(int fd, const void *p, size_t n, int flags)
{
	struct fake_sock *s = sock_of(fd);

	kernel_catch_up();
	if (flags != MSG_NOSIGNAL || s->state != FAKE_UP || n == 0)
		violated("send of %zu bytes on descriptor %d, flags %d", n, fd, flags);
	if (s->is_rst) {
		peer_sent(s, p, 0);
		errno = s->error ? s->error : EPIPE;
		s->error = 0;
		return -1;
	}
	if (n > s->room)
		n = s->room;
	if (n == 0) {
		peer_sent(s, p, 0);
		kernel_at(s, kernel.now_ns + spread(1000, 1000000), NEWS_ROOM);
		errno = EAGAIN;
		return -1;
	}
	if (n > 1 && one_in(kernel.short_read_one_in))
		n = 1 + below((uint32_t)n - 1);
	s->room -= n;
	peer_sent(s, p, n);
	return (ssize_t)n;
}

/* The messages that come with bytes: their stamp, and how many more there are. */
static void put_control(struct msghdr *m, struct fake_sock *s, int64_t stamp_ns)
{
	struct timespec t[3] = { { stamp_ns / 1000000000, stamp_ns % 1000000000 } };
	int unread = s->read < s->avail ? (int)(s->avail - s->read) : s->is_fin;
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	size_t used = 0;

	if (stamp_ns) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_TIMESTAMPING;
		c->cmsg_len = CMSG_LEN(sizeof(t));
		memcpy(CMSG_DATA(c), t, sizeof(t));
		used = CMSG_SPACE(sizeof(t));
		c = (struct cmsghdr *)((char *)m->msg_control + used);
	}
	if (s->has_inq) {
		c->cmsg_level = IPPROTO_TCP;
		c->cmsg_type = TCP_CM_INQ;
		c->cmsg_len = CMSG_LEN(sizeof(unread));
		memcpy(CMSG_DATA(c), &unread, sizeof(unread));
		used += CMSG_SPACE(sizeof(unread));
		s->is_told_more = unread > 0;
	}
	m->msg_controllen = used;
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	struct fake_sock *s = sock_of(fd);
	struct fake_segment last;
	uint32_t from = s->read, n;
	int64_t stamp_ns;

	(void)flags;
	kernel_catch_up();
	n = s->avail - s->read;
	s->is_told_more = false;
	if (s->state != FAKE_UP)
		violated("recvmsg on descriptor %d, which is not connected", fd);
	if (one_in(kernel.interrupt_one_in)) {
		errno = below(2) ? EINTR : EAGAIN;
		return -1;
	}
	if (n == 0 && s->is_rst) {
		int error = s->error;

		s->error = 0;
		errno = error;
		peer_read_end(s, error != 0);
		return error ? -1 : 0;
	}
	if (n == 0 && s->is_fin) {
		peer_read_end(s, false);
		return 0;
	}
	if (n == 0) {
		errno = EAGAIN;
		return -1;
	}
	n = n < m->msg_iov->iov_len ? n : (uint32_t)m->msg_iov->iov_len;
	if (n > 1 && one_in(kernel.short_read_one_in))
		n = 1 + below(n - 1);
	memcpy(m->msg_iov->iov_base, s->rx + from, n);
	s->read += n;
	while (s->segment[s->begun % FAKE_SEGMENTS].end < s->read)
		s->begun++;
	last = s->segment[s->begun % FAKE_SEGMENTS];
	stamp_ns = s->is_stamped && !one_in(509) ? last.stamp_ns : 0;
	s->begun += last.end == s->read;
	put_control(m, s, stamp_ns);
	peer_read(s, from, s->read, stamp_ns);
	return (ssize_t)n;
}

int close(int fd)
{
	struct fake_sock *s = sock_of(fd);

	if (!s)
		return (int)syscall(SYS_close, fd);
	if (s->watched && s->kind == FAKE_SOCK)
		violated("descriptor %d is closed while it is watched", fd);
	if (s->kind == FAKE_SOCK) {
		kernel.n_open--;
		if (kernel.stamp_next == &s->connected_ns)
			kernel.stamp_next = NULL;
		peer_close(s);
	}
	if (s->kind == FAKE_EPOLL)
		kernel.epoll = 0;
	if (sock_index(s) < kernel.lowest)
		kernel.lowest = sock_index(s);
	s->kind = FAKE_FREE;
	s->watched = 0;
	s->gen++;
	return 0;
}

ssize_t read(int fd, void *p, size_t n)
{
	struct fake_sock *s = sock_of(fd);

	if (!s)
		return syscall(SYS_read, fd, p, n);
	if (!s->room) {
		errno = EAGAIN;
		return -1;
	}
	s->room = 0;
	memset(p, 1, n);
	return (ssize_t)n;
}

ssize_t write(int fd, const void *p, size_t n)
{
	struct fake_sock *s = sock_of(fd);

	if (!s)
		return syscall(SYS_write, fd, p, n);
	s->room = 1;
	sock_queue(s);
	return (ssize_t)n;
}

/* ---- the calls: names. "siteN" has the first N + 1 addresses 10.0.0.1, 10.0.0.2 ... ---- */

int getaddrinfo(const char *restrict host, const char *restrict service,
		const struct addrinfo *restrict hints, struct addrinfo **restrict out)
{
	static struct addrinfo list[4];
	static struct sockaddr_in addr[4];
	int n = host[4] - '0' + 1;

	(void)hints;
	for (int i = 0; i < n; i++) {
		addr[i].sin_family = AF_INET;
		addr[i].sin_port = htons((uint16_t)strtoul(service, NULL, 10));
		addr[i].sin_addr.s_addr = htonl(0x0a000001u + (uint32_t)i);
		list[i] = (struct addrinfo){ .ai_family = AF_INET, .ai_addrlen = sizeof(addr[i]),
					     .ai_addr = (struct sockaddr *)&addr[i],
					     .ai_next = i + 1 < n ? &list[i + 1] : NULL };
	}
	*out = list;
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	(void)list;
}
