/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_net_capture.c - files of packets: both formats, both byte orders, every link that is read,
 * units of stamps, dropped packets, and files that are cut or damaged. And live packets of the
 * loopback device, where this process may read them.
 *
 * A file is written in words: N:HEX is a number of N bytes, x:HEX are bytes, < and > begin little
 * and big endian, [N is a block of pcapng of that kind, ] its end with its length, ![N:LEN one of
 * a wrong length.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "client/net/capture.h"
#include "client/net/sock.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#define ANSWERS_MAX 200
#include "answers.h"
#include "scratch.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static void put_number(struct buf *b, uint64_t v, int n, bool is_big)
{
	for (int i = 0; i < n; i++)
		buf_add_char(b, (char)(v >> 8 * (is_big ? n - 1 - i : i)));
}

static void write_file(const char *path, const char *text)
{
	struct buf b = { 0 };
	struct str rest = str_of(text);
	bool is_big = false;
	size_t block = 0;
	struct err e = { 0 };

	while (rest.n) {
		struct str word = str_cut(&rest, ' ');
		char *end;

		if (!word.n)
			continue;
		if (*word.p == '<' || *word.p == '>') {
			is_big = *word.p == '>';
		} else if (*word.p == '[' || *word.p == '!') {
			bool is_wrong = *word.p == '!';

			block = b.len;
			put_number(&b, strtoull(word.p + 1 + is_wrong, &end, 16), 4, is_big);
			put_number(&b, is_wrong ? strtoull(end + 1, NULL, 16) : 0, 4, is_big);
		} else if (*word.p == ']') {
			struct buf length = { 0 };

			while (b.len % 4)
				buf_add_char(&b, 0);
			put_number(&length, b.len + 4 - block, 4, is_big);
			memcpy(b.data + block + 4, length.data, 4);
			buf_add_str(&b, buf_str(&length));
			buf_release(&length);
		} else if (*word.p == 'x') {
			for (size_t i = 2; i + 1 < word.n; i += 2) {
				char pair[3] = { word.p[i], word.p[i + 1], 0 };

				buf_add_char(&b, (char)strtoul(pair, NULL, 16));
			}
		} else {
			put_number(&b, strtoull(word.p + 2, NULL, 16), *word.p - '0', is_big);
		}
	}
	if (file_write_atomic(path, buf_str(&b), &e) < 0)
		fail_msg("%s", e.text);
	buf_release(&b);
}

/* A pcap file's head; its link follows. */
#define PCAP(magic) "4:" magic " 2:2 2:4 4:0 4:0 4:ffff "
/* Seconds and their parts, the bytes kept and those on the wire. */
#define AT(s, part, kept, wire) "4:" s " 4:" part " 4:" kept " 4:" wire " "
#define SECTION "[0a0d0d0a 4:1a2b3c4d 2:1 2:0 8:ffffffffffffffff ] "
#define ETHERNET "x:0102030405060708090a0b0c0800"
#define IP "450000a1"
#define INTERFACE(link, options) "[1 2:" link " 2:0 4:ffff " options "] "
#define PACKET(which, high, low, kept, wire, bytes) "[6 4:" which " 4:" high " 4:" low " 4:" kept " 4:" wire \
	" " bytes " ] "
#define RESOLUTION(hex) "2:9 2:1 x:" hex "000000 "

static const struct { const char *name, *text; } file[] = {
	{ "microseconds, Ethernet", "< " PCAP("a1b2c3d4") "4:1 " AT("1", "7a120", "12", "40") ETHERNET IP " "
	  AT("2", "1", "12", "12") ETHERNET "45000002" },
	{ "nanoseconds", "< " PCAP("a1b23c4d") "4:1 " AT("1", "7a120", "12", "40") ETHERNET IP },
	{ "the other order", "> " PCAP("a1b2c3d4") "4:1 " AT("1", "7a120", "12", "40") ETHERNET IP },
	{ "the other order, nanoseconds", "> " PCAP("a1b23c4d") "4:65 " AT("3", "5", "4", "4") "x:" IP },
	{ "VLANs", "< " PCAP("a1b2c3d4") "4:1 " AT("1", "0", "16", "40")
	  "x:0102030405060708090a0b0c810000010800" IP " " AT("1", "0", "1a", "40")
	  "x:0102030405060708090a0b0c88a80001810000020800" IP },
	{ "loopback", "< " PCAP("a1b2c3d4") "4:0 " AT("1", "0", "8", "8") "x:02000000" IP },
	{ "OpenBSD's loopback", "< " PCAP("a1b2c3d4") "4:6c " AT("1", "0", "8", "8") "x:00000002" IP },
	{ "raw", "< " PCAP("a1b2c3d4") "4:c " AT("1", "0", "4", "9") "x:" IP },
	{ "raw, OpenBSD", "< " PCAP("a1b2c3d4") "4:e " AT("1", "0", "4", "4") "x:" IP },
	{ "IPv4", "< " PCAP("a1b2c3d4") "4:e4 " AT("1", "0", "4", "4") "x:" IP },
	{ "IPv6", "< " PCAP("a1b2c3d4") "4:e5 " AT("1", "0", "4", "4") "x:60000000" },
	{ "cooked", "< " PCAP("a1b2c3d4") "4:71 " AT("1", "0", "14", "14")
	  "x:000102030405060708090a0b0c0d0e0f" IP },
	{ "cooked, version 2", "< " PCAP("a1b2c3d4") "4:114 " AT("1", "0", "18", "18")
	  "x:000102030405060708090a0b0c0d0e0f00010203" IP },
	{ "a link with flags", "< " PCAP("a1b2c3d4") "4:f0000065 " AT("1", "0", "4", "4") "x:" IP },
	{ "a link that is not read", "< " PCAP("a1b2c3d4") "4:93 " AT("1", "0", "4", "4") "x:" IP },
	{ "less than a head was kept", "< " PCAP("a1b2c3d4") "4:1 " AT("1", "0", "3", "40") "x:010203 "
	  AT("1", "0", "0", "40") },
	{ "less on the wire than kept", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "4", "2") "x:" IP " "
	  AT("1", "0", "4", "0") "x:" IP },
	{ "cut in a head", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "4", "4") "x:" IP " 4:1 4:0" },
	{ "cut in a packet", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "4", "4") "x:4500" },
	{ "cut before a packet", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "4", "4") },
	{ "too long", "< " PCAP("a1b2c3d4") "4:65 " AT("1", "0", "7fffffff", "4") "x:" IP },
	{ "no packets", "< " PCAP("a1b2c3d4") "4:65" }, { "cut in its beginning", "< 4:a1b2c3d4 2:2 2:4" },
	{ "two bytes", "x:d4c3" }, { "empty", "" }, { "text", "x:7b226122207d0a" },

	{ "blocks", "< " SECTION INTERFACE("65", "") PACKET("0", "0", "f4240", "4", "9", "x:" IP)
	  "[b 4:0 ] " PACKET("0", "1", "0", "3", "3", "x:450000") },
	{ "blocks of the other order", "> " SECTION INTERFACE("1", "")
	  PACKET("0", "0", "f4240", "12", "40", ETHERNET IP) },
	{ "units", "< " SECTION INTERFACE("65", RESOLUTION("09")) INTERFACE("65", RESOLUTION("8a"))
	  INTERFACE("65", RESOLUTION("00")) INTERFACE("65", RESOLUTION("9e"))
	  PACKET("0", "1", "2", "4", "4", "x:" IP) PACKET("1", "0", "600", "4", "4", "x:" IP)
	  PACKET("2", "0", "7", "4", "4", "x:" IP) PACKET("3", "0", "60000000", "4", "4", "x:" IP) },
	{ "units that are too fine", "< " SECTION INTERFACE("65", RESOLUTION("0a")) },
	{ "units that are too fine, of two", "< " SECTION INTERFACE("65", RESOLUTION("9f")) },
	{ "an offset", "< " SECTION INTERFACE("65", "2:e 2:8 8:64 2:2 2:3 x:65746800 2:0 2:0 ")
	  PACKET("0", "0", "f4240", "4", "4", "x:" IP) },
	{ "an offset before 1970", "< " SECTION INTERFACE("65", "2:e 2:8 8:ffffffffffffff00 ")
	  PACKET("0", "0", "f4240", "4", "4", "x:" IP) },
	{ "a stamp beyond all years", "< " SECTION INTERFACE("65", RESOLUTION("00"))
	  PACKET("0", "ffffffff", "0", "4", "4", "x:" IP) },
	{ "options that are cut", "< " SECTION INTERFACE("65", "2:e 2:20 8:64 ")
	  PACKET("0", "0", "f4240", "4", "4", "x:" IP) },
	{ "options that are too short", "< " SECTION INTERFACE("65", "2:e 2:4 4:64 2:9 2:0 ")
	  PACKET("0", "0", "f4240", "4", "4", "x:" IP) },
	{ "dropped", "< " SECTION INTERFACE("65", "") INTERFACE("65", "")
	  "[5 4:0 8:0 2:4 2:8 8:9 2:5 2:8 8:3 ] [5 4:1 8:0 2:5 2:8 8:4 ] [5 4:1 8:0 2:5 2:8 8:5 ] "
	  "[5 4:7 8:0 2:5 2:8 8:99 ] [5 4:0 8:0 2:5 2:4 4:99 ] " PACKET("1", "0", "1", "4", "4", "x:" IP) },
	{ "dropped in two sections of both orders", "< " SECTION INTERFACE("65", "")
	  "[5 4:0 8:0 2:5 2:8 8:3 ] > " SECTION INTERFACE("65", "") "[5 4:0 8:0 2:5 2:8 8:4 ] "
	  PACKET("0", "0", "1", "4", "4", "x:" IP) },
	{ "an interface of an earlier section", "< " SECTION INTERFACE("65", "") SECTION
	  PACKET("0", "0", "1", "4", "4", "x:" IP) },
	{ "longer than its block", "< " SECTION INTERFACE("65", "") PACKET("0", "0", "1", "5", "5", "x:" IP) },
	{ "exactly its block", "< " SECTION INTERFACE("65", "") PACKET("0", "0", "1", "4", "5", "x:" IP) },
	{ "without stamps", "< " SECTION INTERFACE("65", "") "[3 4:4 x:" IP " ]" },
	{ "a link that is not read, in a block", "< " SECTION INTERFACE("93", "") },
	{ "a length that is no multiple of 4", "< " SECTION "![b:e 4:0 2:0" },
	{ "a length that is too small", "< " SECTION "![b:8 4:0" },
	{ "an interface that is too small", "< " SECTION "![1:10 4:65 4:10" },
	{ "a packet that is too small", "< " SECTION INTERFACE("65", "") "![6:1c 8:0 4:0 4:1c" },
	{ "statistics that are too small", "< " SECTION INTERFACE("65", "") "![5:14 8:0 4:14" },
	{ "a length that is too large", "< " SECTION "![b:7ffffff0 4:0" },
	{ "a first block that is too small", "< 4:0a0d0d0a 4:c 4:1a2b3c4d" },
	{ "a first block of an odd length", "< 4:0a0d0d0a 4:1d 4:1a2b3c4d 8:0 8:0 4:0" },
	{ "no byte order", "< 4:0a0d0d0a 4:1c 4:11111111" },
	{ "a section without a byte order", "< " SECTION "[0a0d0d0a 4:0 4:0 ]" },
	{ "cut in its first block", "< 4:0a0d0d0a 4:1c" }, { "cut after its kind", "< 4:0a0d0d0a" },
	{ "cut in a block", "< " SECTION "![b:20 4:0" }, { "cut in a block's head", "< " SECTION "4:b" },
	{ "only a section", "< " SECTION },
};

static void files(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/f.pcap", dir);
	for (size_t i = 0; i < COUNT(file); i++) {
		struct capture_packet p;
		struct buf out = { 0 };
		struct capture *c;
		struct err e = { 0 };
		int rc;

		write_file(path, file[i].text);
		buf_printf(&out, "%s\n", file[i].name);
		c = capture_open_file(path, &e);
		while (c && (rc = capture_next(c, 0, &p, &e)) > 0) {
			buf_printf(&out, "%lld: %zu of %zu:", (long long)p.stamp_ns, p.bytes.n, p.wire_bytes);
			for (size_t k = 0; k < p.bytes.n; k++)
				buf_printf(&out, " %02x", (unsigned char)p.bytes.p[k]);
			buf_add_char(&out, '\n');
		}
		if (c)
			buf_printf(&out, "dropped %llu, %d\n", (unsigned long long)capture_dropped(c), rc);
		buf_printf(&out, "%d: %s\n", (int)e.code, e.text);
		capture_close(c);
		answers_release(&out);
	}
}

static void many_interfaces(void **state)
{
	struct buf text = { 0 };
	struct capture_packet p;
	struct capture *c;
	struct err e = { 0 };
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/many.pcap", dir);
	for (int extra = 0; extra < 2; extra++) {
		buf_reset(&text);
		buf_add_text(&text, "< " SECTION);
		for (int i = 0; i < 256 + extra; i++)
			buf_add_text(&text, INTERFACE("65", ""));
		buf_add_text(&text, PACKET("ff", "0", "1", "4", "4", "x:" IP));
		write_file(path, text.data);
		c = capture_open_file(path, &e);
		assert_non_null(c);
		assert_int_equal(capture_next(c, 0, &p, &e), extra ? -1 : 1);
		capture_close(c);
	}
	answers_check(e.text, strlen(e.text));
	buf_release(&text);
}

static void no_files(void **state)
{
	struct err missing = { 0 }, folder = { 0 };

	(void)state;
	assert_null(capture_open_file("/nonexistent/x.pcap", &missing));
	assert_int_equal(missing.code, ERR_IO);
	answers_check(missing.text, strlen(missing.text));
	assert_null(capture_open_file(dir, &folder));
	assert_int_equal(folder.code, ERR_IO);
	answers_check(folder.text, strlen(folder.text));
	capture_close(NULL);
}

/* ---- live ---- */

#define NOBODY 65534

/* Skips the test where packets may not be read. */
static struct capture *open_live(const char *interface, const uint16_t *port, unsigned n)
{
	struct err e = { 0 };
	struct capture *c = capture_open_live(interface, port, n, &e);

	if (!c && (strstr(e.text, "CAP_NET_RAW") || strstr(e.text, "cannot be opened"))) {
		print_message("%s\n", e.text);
		skip();
	}
	if (!c)
		fail_msg("%s", e.text);
	return c;
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A connection; its server's port. */
struct talk { int client, server; uint16_t port; };

/* Port 0 of the server's address: a new listener with a free port. */
static struct talk talk_open(struct sock_addr *addr, int *listener)
{
	struct talk t;
	struct err e;

	if (*listener < 0)
		*listener = sock_listen(addr, 8, &e);
	assert_true(*listener >= 0);
	t.port = ntohs(((const struct sockaddr_in *)(const void *)&addr->storage)->sin_port);
	t.client = sock_connect(addr, false, &e);
	assert_true(t.client >= 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = *listener, .events = POLLIN }, 1, 5000), 1);
	t.server = sock_accept(*listener, false);
	assert_true(t.server >= 0);
	return t;
}

static void talk_close(struct talk *t)
{
	sock_close(t->client);
	sock_close(t->server);
}

/* Sends n bytes and takes them out at the other end. */
static void pass(int from, int to, size_t n)
{
	static char bytes[1 << 16];
	size_t got = 0;

	assert_true(n <= sizeof(bytes));
	assert_int_equal(sock_send(from, (struct str){ bytes, n }), n);
	while (got < n) {
		int64_t ignored;
		ssize_t one;

		assert_int_equal(poll(&(struct pollfd){ .fd = to, .events = POLLIN }, 1, 5000), 1);
		one = sock_recv(to, bytes, sizeof(bytes), &ignored);
		assert_true(one > 0);
		got += (size_t)one;
	}
}

/* What was seen of a port's connections, without the packets' heads; lengths of the IP head. */
struct seen {
	size_t packets, opened, to_server, to_client, ip_min, ip_max;
	size_t stamped; /* of data, when it came; the kernel may lack one of the first packets' */
	uint32_t next[2]; /* the number after the last byte to the server, to the client */
	bool has_next[2];
};

/* Whether the bytes come for the first time: TCP may send some again, at any time. */
static bool is_new(struct seen *s, const uint8_t *tcp, bool is_to_client, size_t data)
{
	uint32_t seq = (uint32_t)tcp[4] << 24 | (uint32_t)tcp[5] << 16 | (uint32_t)tcp[6] << 8 |
		       tcp[7];

	if (!data || (s->has_next[is_to_client] && (int32_t)(seq - s->next[is_to_client]) < 0))
		return false;
	s->has_next[is_to_client] = true;
	s->next[is_to_client] = seq + (uint32_t)data;
	return true;
}

/* Every packet that is there; they came from the first to the last of these instants. */
static void see(struct capture *c, uint16_t port, int64_t first_ns, int64_t last_ns, struct seen *s)
{
	struct capture_packet p;
	struct err e;

	*s = (struct seen){ .ip_min = 60 };
	while (capture_next(c, 0, &p, &e) == 1) {
		const uint8_t *ip = (const void *)p.bytes.p;
		size_t head = ip[0] >> 4 == 6 ? 40 : (size_t)(ip[0] & 15) * 4;
		const uint8_t *tcp = ip + head;
		size_t data = p.bytes.n - head - (size_t)(tcp[12] >> 4) * 4;
		uint16_t from = (uint16_t)(tcp[0] << 8 | tcp[1]),
			 to = (uint16_t)(tcp[2] << 8 | tcp[3]);

		assert_int_equal(ip[head == 40 ? 6 : 9], IPPROTO_TCP);
		assert_int_equal(p.wire_bytes, p.bytes.n);
		assert_true(from == port || to == port);
		s->packets++;
		s->opened += (tcp[13] & (TH_SYN | TH_ACK)) == TH_SYN;
		if (is_new(s, tcp, to != port, data)) {
			assert_true(p.stamp_ns >= first_ns);
			s->stamped += p.stamp_ns <= last_ns;
			*(to == port ? &s->to_server : &s->to_client) += data;
		}
		s->ip_min = head < s->ip_min ? head : s->ip_min;
		s->ip_max = head > s->ip_max ? head : s->ip_max;
	}
}

/* A later fragment whose bytes look like a head of TCP with that port, straight to the device. */
static void send_fragment(uint16_t port)
{
	const uint8_t high = (uint8_t)(port >> 8), low = (uint8_t)port;
	uint8_t packet[60] = { 0x45, 0, 0, sizeof(packet), 0, 7, 0, 1, 64, IPPROTO_TCP, 0, 0,
			       127, 0, 0, 1, 127, 0, 0, 1, high, low, high, low };
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
				  .sll_ifindex = (int)if_nametoindex("lo"), .sll_halen = 6 };
	int fd = socket(AF_PACKET, SOCK_DGRAM, 0);

	packet[32] = 5 << 4;
	assert_true(fd >= 0);
	assert_int_equal(
		sendto(fd, packet, sizeof(packet), 0, (const struct sockaddr *)&to, sizeof(to)),
		sizeof(packet));
	close(fd);
}

/* Packets of a port, wherever it is in the list: all of its connection and none of others. */
static void live_packets(void **state)
{
	static const struct { const char *host, *interface; unsigned n, place; } row[] = {
		{ "127.0.0.1", NULL, 1, 0 }, { "127.0.0.1", "lo", 16, 0 }, { "127.0.0.1", "lo", 16, 15 },
		{ "::1", NULL, 3, 1 }, { "::1", "lo", 1, 0 },
	};
	size_t stamped = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		bool is_ipv6 = strchr(row[i].host, ':');
		uint16_t port[TAP_PORTS_MAX] = { 1, 2,  3,  4,  5,  6,  7,  8,
						 9, 10, 11, 12, 13, 14, 15, 16 };
		struct sock_addr addr[SOCK_ADDRS_MAX], other;
		int listener = -1, others = -1, udp, n_open = open_descriptors();
		struct err e = { 0 };
		struct capture *c;
		struct talk t, strange;
		struct seen s;
		int64_t began_ns, sent_ns;

		assert_true(sock_resolve(row[i].host, 0, addr, &e) >= 1);
		other = addr[0];
		listener = sock_listen(&addr[0], 8, &e);
		if (listener < 0 && is_ipv6)
			continue; /* a machine without IPv6 */
		port[row[i].place] = ntohs(
			((const struct sockaddr_in *)(const void *)&addr[0].storage)->sin_port);
		c = open_live(row[i].interface, port, row[i].n);
		began_ns = clock_real_ns();
		t = talk_open(&addr[0], &listener);
		assert_int_equal(t.port, port[row[i].place]);
		strange = talk_open(&other, &others);
		pass(strange.client, strange.server, 100);
		pass(t.client, t.server, 1000);
		pass(t.server, t.client, 20000);
		udp = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
		assert_int_equal(sendto(udp, "x", 1, 0, &addr[0].any, addr[0].len), 1);
		sock_close(udp);
		if (!is_ipv6) {
			send_fragment(t.port);
			/* Options make the head longer. */
			assert_int_equal(setsockopt(t.client, IPPROTO_IP, IP_OPTIONS, "\1\1\1\0", 4), 0);
		}
		pass(t.client, t.server, 30);
		sent_ns = clock_real_ns();
		poll(NULL, 0, 1); /* a stamp made when it is read is later */
		see(c, t.port, began_ns, sent_ns, &s);
		stamped += s.stamped;
		assert_int_equal(s.opened, 1);
		assert_int_equal(s.to_server, 1030);
		assert_int_equal(s.to_client, 20000);
		assert_int_equal(s.ip_min, is_ipv6 ? 40 : 20);
		assert_int_equal(s.ip_max, is_ipv6 ? 40 : 24);
		assert_int_equal(capture_dropped(c), 0);
		capture_close(c);
		talk_close(&t);
		talk_close(&strange);
		sock_close(listener);
		sock_close(others);
		assert_int_equal(open_descriptors(), n_open);
	}
	assert_true(stamped > 0);
}

/* The packet socket keeps CAPTURE_BUFFER_BYTES, of which Linux counts the double. */
static void check_buffer(void)
{
	int packets = -1, bytes = CAPTURE_BUFFER_BYTES, kept = 0, domain, plain;
	socklen_t n = sizeof(int);

	for (int fd = 3; fd < 256 && packets < 0; fd++)
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_PACKET)
			packets = fd;
	assert_true(packets >= 0);
	plain = socket(AF_INET, SOCK_DGRAM, 0);
	if (setsockopt(plain, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		assert_int_equal(setsockopt(plain, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)),
				 0);
	assert_int_equal(getsockopt(plain, SOL_SOCKET, SO_RCVBUF, &bytes, &n), 0);
	assert_int_equal(getsockopt(packets, SOL_SOCKET, SO_RCVBUF, &kept, &n), 0);
	assert_int_equal(kept, bytes);
	close(plain);
}

/* More than the kernel keeps: what was dropped is counted once, and reading goes on. */
static void live_packets_are_dropped(void **state)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct capture_packet p;
	struct err e = { 0 };
	struct capture *c;
	struct talk t;
	struct seen s;
	int listener = -1;
	uint64_t dropped = 0;
	int64_t began_ns;

	(void)state;
	assert_true(sock_resolve("127.0.0.1", 0, addr, &e) >= 1);
	t = talk_open(&addr[0], &listener);
	c = open_live("lo", &t.port, 1);
	for (int wait_ms = 1; wait_ms <= 10; wait_ms += 9) {
		began_ns = clock_mono_ns();
		assert_int_equal(capture_next(c, wait_ms, &p, &e), 0);
		assert_true(clock_mono_ns() - began_ns >= wait_ms * 1000000 - 100000);
	}
	began_ns = clock_real_ns();
	assert_int_equal(capture_dropped(c), 0);
	check_buffer();
	for (int i = 0; i < 16 << 10 && !dropped; i++) { /* 1 GiB at most */
		pass(t.server, t.client, 1 << 16);
		dropped = i % 64 == 63 ? capture_dropped(c) : 0;
	}
	assert_in_range(dropped, 1, 1 << 20);
	see(c, t.port, began_ns, clock_real_ns(), &s);
	assert_true(s.to_client > 1 << 16);
	assert_true(capture_dropped(c) >= dropped); /* some more before there was room */
	dropped = capture_dropped(c);
	pass(t.client, t.server, 10);
	assert_int_equal(capture_next(c, 1000, &p, &e), 1);
	assert_int_equal(capture_dropped(c), dropped);
	capture_close(c);
	talk_close(&t);
	sock_close(listener);
}

static void live_is_refused(void **state)
{
	const uint16_t port = 1;
	struct err e = { 0 };
	int status = 0;
	pid_t pid;

	(void)state;
	if (geteuid() == 0 && !capture_open_live("nowhere0", &port, 1, &e) && e.code == ERR_NET &&
	    !strstr(e.text, "CAP_NET_RAW"))
		assert_string_equal(e.text, "--interface: this machine has no interface 'nowhere0'; `ip link` "
				    "lists them");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool is_dropped = geteuid() != 0 || setresuid(NOBODY, NOBODY, NOBODY) == 0;
		struct capture *c = is_dropped ? capture_open_live(NULL, &port, 1, &e) : NULL;

		_exit(!c && is_dropped && e.code == ERR_NET &&
		      strstr(e.text, "sudo setcap cap_net_raw+ep") ? 0 : c ? 2 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip(); /* allowed to any user here */
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files), cmocka_unit_test(many_interfaces),
		cmocka_unit_test(no_files), cmocka_unit_test(live_packets),
		cmocka_unit_test(live_packets_are_dropped), cmocka_unit_test(live_is_refused),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
