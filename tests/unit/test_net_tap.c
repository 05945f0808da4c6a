/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_net_tap.c - stamps of segments on loopback, where the kernel stamps a segment inside the
 * send() that makes it: clock readings before and after that call are the truth.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/net/tap.h"
#include "core/base/clock.h"
#include "core/base/limits.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif
#define NOBODY 65534

/* A connection to a server of this process, followed by a tap. */
struct talk {
	struct tap *tap;
	struct arrival_flow flow;
	int listener, client, server;
};

static bool talk_open(struct talk *t, const char *host)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct pollfd wait = { .events = POLLIN };
	struct err e = { 0 };

	*t = (struct talk){ .tap = tap_open(&e), .listener = -1, .client = -1, .server = -1 };
	if (!t->tap && e.code != ERR_CAPTURE_FORBIDDEN && !strstr(e.text, "cannot be opened"))
		fail_msg("%s", e.text);
	if (!t->tap) {
		print_message("%s\n", e.text);
		return false;
	}
	assert_true(sock_resolve(host, 0, addr, &e) >= 1);
	t->listener = sock_listen(&addr[0], 8, &e);
	if (t->listener < 0) {
		print_message("%s\n", e.text);
		tap_close(t->tap);
		return false;
	}
	assert_int_equal(tap_add_server(t->tap, &addr[0], &e), 0);
	t->client = sock_connect(&addr[0], true, &e);
	assert_true(t->client >= 0);
	wait.fd = t->listener;
	assert_int_equal(poll(&wait, 1, 2000), 1);
	t->server = sock_accept(t->listener, false);
	assert_true(t->server >= 0);
	tap_follow(t->tap, &t->flow, t->client);
	assert_true(t->flow.is_followed);
	return true;
}

static void talk_close(struct talk *t)
{
	tap_forget(t->tap, &t->flow);
	tap_close(t->tap);
	sock_close(t->client);
	sock_close(t->server);
	sock_close(t->listener);
}

struct sent { size_t n; int64_t before_ns, after_ns; };

static void send_bytes(struct talk *t, size_t n, struct sent *sent)
{
	static const char bytes[4096];

	*sent = (struct sent){ n, clock_real_ns(), 0 };
	assert_int_equal(sock_send(t->server, (struct str){ bytes, n }), n);
	sent->after_ns = clock_real_ns();
}

/* All that is there, which must be n bytes. */
static int64_t read_all(struct talk *t, size_t n)
{
	static char bytes[1 << 20];
	struct pollfd wait = { .fd = t->client, .events = POLLIN };
	int64_t stamp_ns = 0;
	size_t got = 0;

	while (got < n) {
		ssize_t one;

		assert_int_equal(poll(&wait, 1, 2000), 1);
		one = sock_recv(t->client, bytes, sizeof(bytes), &stamp_ns);
		assert_true(one > 0);
		got += (size_t)one;
	}
	assert_int_equal(got, n);
	return stamp_ns;
}

/* 30 segments of different lengths lie there until all are read at once: each has its own stamp. */
static void check_late_read(const char *host)
{
	struct sent sent[30];
	struct talk t;
	size_t all = 0;
	int64_t read_ns;

	if (!talk_open(&t, host))
		skip();
	for (size_t i = 0; i < 30; i++) {
		send_bytes(&t, 1 + 97 * i, &sent[i]);
		all += sent[i].n;
		nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
	}
	read_ns = read_all(&t, all);
	assert_in_range(read_ns, sent[29].before_ns, sent[29].after_ns);
	for (size_t i = 0; i < 30; i++) {
		int64_t stamp_ns;
		bool is_known;
		size_t n = tap_take(t.tap, &t.flow, all, read_ns, &stamp_ns, &is_known);

		assert_true(is_known);
		assert_int_equal(n, sent[i].n);
		if (stamp_ns < sent[i].before_ns || stamp_ns > sent[i].after_ns)
			fail_msg("segment %zu is stamped %lld ns after its send began, which took %lld", i,
				 (long long)(stamp_ns - sent[i].before_ns),
				 (long long)(sent[i].after_ns - sent[i].before_ns));
		all -= n;
	}
	assert_int_equal(all, 0);
	assert_true(tap_stats(t.tap).segments >= 30); /* more where TCP probed for an answer */
	assert_int_equal(tap_stats(t.tap).dropped, 0);
	talk_close(&t);
}

static void test_late_read(void **state) { (void)state; check_late_read("127.0.0.1"); }
static void test_late_read_ipv6(void **state) { (void)state; check_late_read("::1"); }

/* The packet socket of this process. */
static int find_packet_socket(void)
{
	for (int fd = 3; fd < 1024; fd++) {
		socklen_t n = sizeof(int);
		int domain = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_PACKET)
			return fd;
	}
	fail_msg("no packet socket is open");
	return -1;
}

/* A tap that sees nothing any more: the bytes keep the stamp of their read, and none is lost. */
static void test_stops_working(void **state)
{
	struct sock_filter nothing = { BPF_RET | BPF_K, 0, 0, 0 };
	struct sock_fprog filter = { 1, &nothing };
	struct sent sent[2];
	struct talk t;
	int64_t read_ns, stamp_ns;
	bool is_known;

	(void)state;
	if (!talk_open(&t, "127.0.0.1"))
		skip();
	send_bytes(&t, 10, &sent[0]);
	assert_int_equal(setsockopt(find_packet_socket(), SOL_SOCKET, SO_ATTACH_FILTER, &filter,
				    sizeof(filter)), 0);
	send_bytes(&t, 20, &sent[1]);
	read_ns = read_all(&t, 30);
	assert_int_equal(tap_take(t.tap, &t.flow, 30, read_ns, &stamp_ns, &is_known), 10);
	assert_true(is_known && stamp_ns <= sent[0].after_ns);
	assert_int_equal(tap_take(t.tap, &t.flow, 20, read_ns, &stamp_ns, &is_known), 20);
	assert_false(is_known);
	assert_int_equal(stamp_ns, read_ns);
	talk_close(&t);
}

/* The tap's ring is mapped here; the first of its frames that is to be looked at. */
static struct tpacket2_hdr *first_frame(size_t frame_bytes)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], *ring = NULL;

	assert_non_null(maps);
	while (!ring && fgets(line, sizeof(line), maps)) {
		char *at = strstr(line, " socket:["), *end;
		uintptr_t from = strtoul(line, &end, 16), to = strtoul(end + 1, NULL, 16);

		if (at && to - from == TAP_FRAMES_MAX * frame_bytes)
			ring = (char *)from;
	}
	fclose(maps);
	for (size_t i = 0; ring && i < TAP_FRAMES_MAX; i++) {
		struct tpacket2_hdr *h = (void *)(ring + i * frame_bytes);

		if (h->tp_status & TP_STATUS_USER)
			return h;
	}
	fail_msg("no frame to look at");
	return NULL;
}

/*
 * A frame that the kernel goes on writing while the next one is complete: it is waited for, but not
 * for long. Its bytes and those after it keep the stamp of their read.
 */
static void test_unfinished(void **state)
{
	struct tpacket2_hdr *frame;
	struct sent sent[3];
	struct talk t;
	int64_t read_ns, stamp_ns;
	uint32_t status;
	bool is_known;

	(void)state;
	if (!talk_open(&t, "127.0.0.1"))
		skip();
	send_bytes(&t, 10, &sent[0]);
	send_bytes(&t, 20, &sent[1]);
	read_ns = read_all(&t, 30);
	frame = first_frame(192);
	status = frame->tp_status;
	frame->tp_status = TP_STATUS_KERNEL;
	assert_int_equal(tap_take(t.tap, &t.flow, 30, read_ns, &stamp_ns, &is_known), 30);
	assert_false(is_known);
	assert_int_equal(stamp_ns, read_ns);
	frame->tp_status = status;
	send_bytes(&t, 40, &sent[2]);
	read_ns = read_all(&t, 40);
	assert_int_equal(tap_take(t.tap, &t.flow, 40, read_ns, &stamp_ns, &is_known), 40);
	assert_true(is_known && stamp_ns >= sent[2].before_ns && stamp_ns <= sent[2].after_ns);
	talk_close(&t);
}

/* More frames than the ring holds: the rest is counted and unknown; what comes later is known. */
static void test_overflow(void **state)
{
	struct sent sent;
	struct talk t;
	size_t left = 0, known = 0;
	int64_t stamp_ns;
	bool is_known;

	(void)state;
	if (!talk_open(&t, "127.0.0.1"))
		skip();
	for (int i = 0; i < TAP_FRAMES_MAX + 100; i++) {
		send_bytes(&t, 1, &sent);
		read_all(&t, 1);
		left++;
	}
	while (left) {
		size_t n = tap_take(t.tap, &t.flow, left, 1, &stamp_ns, &is_known);

		known += is_known ? n : 0;
		left -= n;
	}
	assert_int_equal(known, TAP_FRAMES_MAX);
	assert_int_equal(tap_stats(t.tap).dropped, 100);
	send_bytes(&t, 7, &sent);
	read_all(&t, 7);
	assert_int_equal(tap_take(t.tap, &t.flow, 7, 1, &stamp_ns, &is_known), 7);
	assert_true(is_known && stamp_ns >= sent.before_ns && stamp_ns <= sent.after_ns);
	talk_close(&t);
}

static void pass(int from, int to, const struct sock_addr *addr, socklen_t n)
{
	char byte;

	assert_int_equal(sendto(from, "x", 1, 0, addr ? &addr->any : NULL, n), 1);
	assert_int_equal(poll(&(struct pollfd){ .fd = to, .events = POLLIN }, 1, 2000), 1);
	assert_int_equal(recv(to, &byte, 1, 0), 1);
}

/* Packets that passed the filter since the last call. */
static unsigned passed(int packet_socket)
{
	struct tpacket_stats stats;
	socklen_t n = sizeof(stats);

	assert_int_equal(getsockopt(packet_socket, SOL_PACKET, PACKET_STATISTICS, &stats, &n), 0);
	return stats.tp_packets;
}

/* Only the server's packets with data take frames of the ring: no other does, of whatever kind. */
static void check_unwanted(const char *host)
{
	struct sock_addr addr[SOCK_ADDRS_MAX] = { 0 }, other;
	int udp, packets, listener, client, server;
	unsigned seen = 0;
	struct talk t;
	struct err e;

	if (!talk_open(&t, host))
		skip();
	packets = find_packet_socket();
	addr[0].len = sizeof(addr[0].storage);
	assert_int_equal(getsockname(t.listener, &addr[0].any, &addr[0].len), 0);
	/* The same port of UDP and, where a machine has several addresses, of another one. */
	udp = socket(addr[0].any.sa_family, SOCK_DGRAM, 0);
	assert_int_equal(bind(udp, &addr[0].any, addr[0].len), 0);
	other = addr[0];
	if (other.any.sa_family == AF_INET)
		((struct sockaddr_in *)(void *)&other.storage)->sin_addr.s_addr = htonl(0x7f000002);
	else
		((struct sockaddr_in6 *)(void *)&other.storage)->sin6_port = 0;
	listener = sock_listen(&other, 8, &e);
	client = sock_connect(&other, false, &e);
	assert_true(listener >= 0 && client >= 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 2000), 1);
	server = sock_accept(listener, false);
	/* As on a Linux before 4.20, whose packet sockets also see what is sent. */
	(void)setsockopt(packets, SOL_PACKET, PACKET_IGNORE_OUTGOING, &(int){ 0 }, sizeof(int));
	passed(packets);
	for (int i = 0; i < 10; i++) {
		pass(udp, udp, &addr[0], addr[0].len);
		pass(server, client, NULL, 0);
		assert_int_equal(
			setsockopt(t.server, IPPROTO_TCP, TCP_QUICKACK, &(int){ 1 }, sizeof(int)),
			0);
		pass(t.client, t.server, NULL, 0); /* which acknowledges it */
	}
	assert_int_equal(passed(packets), 0);
	/* Its own take one each, unless TCP sends one again. */
	for (int tries = 0; tries < 5 && seen != 1; tries++) {
		pass(t.server, t.client, NULL, 0);
		seen = passed(packets);
	}
	assert_int_equal(seen, 1);
	talk_close(&t);
	sock_close(client);
	sock_close(server);
	sock_close(listener);
	close(udp);
}

static void test_unwanted(void **state) { (void)state; check_unwanted("127.0.0.1"); }
static void test_unwanted_ipv6(void **state) { (void)state; check_unwanted("::1"); }

/* Bytes without wanted stamps, such as a TLS handshake, do not shift the others. */
static void test_skip(void **state)
{
	struct sent sent[3];
	struct talk t;
	int64_t stamp_ns;
	bool is_known;

	(void)state;
	if (!talk_open(&t, "127.0.0.1"))
		skip();
	for (size_t i = 0; i < 3; i++)
		send_bytes(&t, 100, &sent[i]);
	read_all(&t, 300);
	tap_skip(t.tap, &t.flow, 150);
	assert_int_equal(tap_take(t.tap, &t.flow, 150, 1, &stamp_ns, &is_known), 50);
	assert_true(is_known && stamp_ns >= sent[1].before_ns && stamp_ns <= sent[1].after_ns);
	assert_int_equal(tap_take(t.tap, &t.flow, 100, 1, &stamp_ns, &is_known), 100);
	assert_true(is_known && stamp_ns >= sent[2].before_ns && stamp_ns <= sent[2].after_ns);
	talk_close(&t);
}

/* Without the capability: NULL, and the sentence says what to do. */
static void test_not_allowed(void **state)
{
	pid_t pid = fork();
	int status = 0;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		struct err e = { 0 };
		bool is_dropped = geteuid() != 0 || setresuid(NOBODY, NOBODY, NOBODY) == 0;
		struct tap *t = is_dropped ? tap_open(&e) : NULL;

		_exit(!t && is_dropped && strstr(e.text, "sudo setcap cap_net_raw+ep") ? 0 : t ? 2 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip(); /* allowed to any user here */
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_read),
		cmocka_unit_test(test_late_read_ipv6),
		cmocka_unit_test(test_stops_working),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_unwanted),
		cmocka_unit_test(test_unwanted_ipv6),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_not_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
