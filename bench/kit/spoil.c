/* SPDX-License-Identifier: Apache-2.0 */
/* spoil.c - see spoil.h. */
#include "kit/spoil.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/net/sock.h"

#define PACKET_BYTES 65536
#define FIRST_PORT 40000
#define QUOTA_PERIOD_US 100000

static int world_failed(struct err *e, const char *what)
{
	return err_set(e, ERR_RUN, "cannot %s: %s", what, strerror(errno));
}

/*
 * On the server's core, and before the server where both have real-time priority: it polls to keep
 * its times, and what it sends must not wait for that.
 */
static void pin_above_server(void)
{
	bench_pin_server();
	if (sched_getscheduler(0) == SCHED_FIFO)
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ 20 });
}

/* ---- networks ---- */

static int interface_up(const char *name, const char *addr, struct err *e)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { 0 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	int rc = fd < 0 ? -1 : 0;

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (rc == 0 && addr) {
		inet_pton(AF_INET, addr, &in.sin_addr);
		memcpy(&r.ifr_addr, &in, sizeof(in));
		rc = ioctl(fd, SIOCSIFADDR, &r);
		inet_pton(AF_INET, "255.255.255.0", &in.sin_addr);
		memcpy(&r.ifr_addr, &in, sizeof(in));
		rc = rc < 0 ? rc : ioctl(fd, SIOCSIFNETMASK, &r);
	}
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	if (rc == 0)
		rc = ioctl(fd, SIOCSIFFLAGS, &r);
	if (rc < 0)
		world_failed(e, "bring an interface up");
	sock_close(fd);
	return rc;
}

int spoil_own_network(struct err *e)
{
	if (unshare(CLONE_NEWNET) < 0)
		return world_failed(e, "make a network (this needs root)");
	return interface_up("lo", NULL, e);
}

static int write_text(const char *path, const char *text, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (n < 0)
		err_set(e, ERR_RUN, "cannot write %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return n < 0 ? -1 : 0;
}

int spoil_few_ports(unsigned ports, struct err *e)
{
	char range[32];

	snprintf(range, sizeof(range), "%d %u\n", FIRST_PORT, FIRST_PORT + ports - 1);
	return write_text("/proc/sys/net/ipv4/ip_local_port_range", range, e);
}

/*
 * Source and destination change places, so that a packet for the far address comes back as one from
 * it. Checksums are sums, which the exchange leaves as they are.
 */
static void reflect(int tun, double share)
{
	static unsigned char packet[PACKET_BYTES];
	unsigned short seed[3] = { 1, 2, 3 };

	for (;;) {
		ssize_t n = read(tun, packet, sizeof(packet));
		unsigned char source[4];

		if (n < 0 && errno != EINTR)
			_exit(1);
		if (n < 20 || packet[0] >> 4 != 4 || erand48(seed) < share)
			continue;
		memcpy(source, packet + 12, 4);
		memmove(packet + 12, packet + 16, 4);
		memcpy(packet + 16, source, 4);
		(void)!write(tun, packet, (size_t)n);
	}
}

int spoil_lossy_link(struct child *relay, double share, struct err *e)
{
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "lossy0" };
	int tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (tun < 0 || ioctl(tun, TUNSETIFF, &r) < 0) {
		sock_close(tun);
		return world_failed(e, "make a TUN device");
	}
	if (interface_up("lossy0", SPOIL_NEAR, e) < 0) {
		close(tun);
		return -1;
	}
	relay->pid = fork();
	if (relay->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin_above_server();
		reflect(tun, share);
	}
	close(tun);
	return relay->pid < 0 ? world_failed(e, "start the relay") : 0;
}

/* ---- processors ---- */

int spoil_quota_make(struct spoil_quota *q, double cpus, struct err *e)
{
	bool is_v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
	const char *root = is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
	char path[160], text[48];
	int quota = (int)(cpus * QUOTA_PERIOD_US);

	snprintf(q->dir, sizeof(q->dir), "%s/profllm-fault-%d", root, (int)getpid());
	if (mkdir(q->dir, 0755) < 0)
		return world_failed(e, "make a control group (this needs root)");
	snprintf(path, sizeof(path), "%s/%s", q->dir, is_v2 ? "cpu.max" : "cpu.cfs_quota_us");
	snprintf(text, sizeof(text), is_v2 ? "%d %d" : "%d", quota, QUOTA_PERIOD_US);
	return write_text(path, text, e);
}

int spoil_quota_enter(const struct spoil_quota *q, struct err *e)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/cgroup.procs", q->dir);
	return write_text(path, "0", e);
}

void spoil_quota_remove(struct spoil_quota *q)
{
	if (q->dir[0])
		rmdir(q->dir);
	q->dir[0] = '\0';
}

/* ---- words ---- */

struct words { const char *from, *to; uint16_t port; int client; };

static void replace(char *p, size_t n, const struct words *w)
{
	size_t length = strlen(w->from);
	char *end = p + n, *at;

	while ((at = memmem(p, (size_t)(end - p), w->from, length))) {
		memcpy(at, w->to, length);
		p = at + length;
	}
}

static bool write_all(int to, const char *p, size_t n)
{
	while (n) {
		ssize_t one = write(to, p, n);

		if (one < 0)
			return false;
		p += one;
		n -= (size_t)one;
	}
	return true;
}

/* Bytes up to the end of the event that contains the text; 0: none does. */
static size_t event_end(const char *p, size_t n, const char *text)
{
	const char *at = memmem(p, n, text, strlen(text));
	const char *end = at ? memmem(at, (size_t)(p + n - at), "\n\n", 2) : NULL;

	return end ? (size_t)(end + 2 - p) : 0;
}

/* One piece from one side to the other; false at the end. */
static bool pass(int from, int to, const struct words *w)
{
	char piece[16384];
	ssize_t n = read(from, piece, sizeof(piece));
	size_t first = 0;

	if (n <= 0)
		return false;
	if (w->to)
		replace(piece, (size_t)n, w);
	else
		first = event_end(piece, (size_t)n, w->from);
	if (first) {
		if (!write_all(to, piece, first))
			return false;
		nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	}
	return write_all(to, piece + first, (size_t)n - first);
}

static void *serve(void *arg)
{
	struct words *w = arg;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(w->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	struct pollfd fd[2] = { { w->client, POLLIN, 0 }, { server, POLLIN, 0 } };
	bool is_open = connect(server, (struct sockaddr *)&to, sizeof(to)) == 0;

	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(w->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (is_open && poll(fd, 2, -1) > 0) {
		if (fd[0].revents)
			is_open = pass(w->client, server, w);
		if (is_open && fd[1].revents)
			is_open = pass(server, w->client, w);
	}
	sock_close(server);
	sock_close(w->client);
	free(w);
	return NULL;
}

static void relay_all(int listener, const struct words *words)
{
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		struct words *w = malloc(sizeof(*w));
		pthread_t thread;

		if (fd < 0 || !w)
			_exit(1);
		*w = *words;
		w->client = fd;
		if (pthread_create(&thread, NULL, serve, w) == 0)
			pthread_detach(thread);
	}
}

int spoil_relay(struct child *relay, uint16_t port, const char *from, const char *to,
		uint16_t *relay_port, struct err *e)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert(!to || strlen(from) == strlen(to));
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, size) < 0 ||
	    listen(listener, 1024) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &size) < 0) {
		sock_close(listener);
		return world_failed(e, "listen for the relay");
	}
	*relay_port = ntohs(at.sin_port);
	relay->pid = fork();
	if (relay->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin_above_server();
		relay_all(listener, &(struct words){ from, to, port, -1 });
	}
	close(listener);
	return relay->pid < 0 ? world_failed(e, "start the relay") : 0;
}
