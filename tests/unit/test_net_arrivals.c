/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_arrivals.c - when bytes of a stream arrived, from made-up packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "client/net/arrivals.h"
#include "core/base/limits.h"
#include "packets.h"

#define PORT 40000
#define NONE (-1)

/* Packets that are shown before anything is read. Their seq counts from the first byte of data. */
struct shown { uint32_t seq, bytes; int64_t stamp_ns; };
/* What is taken then: so many bytes at most, and what must come. stamp NONE: unknown. */
struct taken { size_t most, bytes; int64_t stamp_ns; };

static const struct {
	const char *name;
	struct shown shown[6];
	struct taken taken[7];
} cases[] = {
	{ "one segment, one read", { { 0, 100, 5 } }, { { 100, 100, 5 } } },
	{ "one segment, two reads", { { 0, 100, 5 } }, { { 60, 60, 5 }, { 40, 40, 5 } } },
	{ "a read is cut where segments end",
	  { { 0, 10, 1 }, { 10, 20, 2 }, { 30, 5, 3 } },
	  { { 35, 10, 1 }, { 25, 20, 2 }, { 5, 5, 3 } } },
	{ "what is sent again does not count",
	  { { 0, 10, 1 }, { 10, 10, 2 }, { 0, 10, 8 }, { 10, 10, 9 } },
	  { { 20, 10, 1 }, { 10, 10, 2 } } },
	{ "sent again with more after it",
	  { { 0, 10, 1 }, { 0, 30, 7 } }, { { 30, 10, 1 }, { 20, 20, 7 } } },
	{ "sent again in other pieces, around what is there",
	  { { 10, 10, 1 }, { 30, 10, 2 }, { 0, 50, 9 } },
	  { { 50, 10, 9 }, { 40, 10, 9 }, { 30, 10, 9 }, { 20, 10, 9 }, { 10, 10, 9 } } },
	{ "a byte has arrived when all before it have",
	  { { 10, 10, 1 }, { 20, 10, 2 }, { 0, 10, 9 }, { 30, 10, 12 } },
	  { { 40, 10, 9 }, { 30, 10, 9 }, { 20, 10, 9 }, { 10, 10, 12 } } },
	{ "part of a hole",
	  { { 10, 10, 1 }, { 0, 5, 2 }, { 5, 5, 3 } },
	  { { 20, 5, 2 }, { 15, 5, 3 }, { 10, 10, 3 } } },
	{ "a packet that was missed: its bytes are unknown",
	  { { 0, 10, 1 }, { 20, 10, 3 } },
	  { { 30, 10, 1 }, { 20, 10, NONE }, { 10, 10, 100 } } },
	{ "the end was missed", { { 0, 10, 1 } }, { { 30, 10, 1 }, { 20, 20, NONE } } },
	{ "nothing was seen", { { 0, 0, 0 } }, { { 30, 30, NONE } } },
};

static struct arrivals *followed(struct arrival_flow *f, uint32_t isn)
{
	struct arrivals *a = arrivals_new();
	struct sock_addr server = packet_server(false, 1);

	assert_int_equal(arrivals_server(a, &server), 0);
	packet_show(a, (struct packet){ .host = 1, .to = PORT, .seq = isn, .flags = FLAG_SYN_ACK },
		    0);
	*f = (struct arrival_flow){ 0 };
	assert_true(arrivals_follow(a, f, PORT, 0));
	return a;
}

static void check_case(size_t i, uint32_t isn)
{
	struct arrival_flow f;
	struct arrivals *a = followed(&f, isn);

	for (const struct shown *s = cases[i].shown; s->bytes; s++)
		packet_show(a, (struct packet){ .host = 1, .to = PORT, .seq = isn + 1 + s->seq,
						.bytes = s->bytes }, s->stamp_ns);
	for (const struct taken *t = cases[i].taken; t->most; t++) {
		int64_t stamp_ns = 0;
		bool is_known = true;
		size_t n = arrivals_take(a, &f, t->most, 100, &stamp_ns, &is_known);

		if (n != t->bytes || stamp_ns != (t->stamp_ns == NONE ? 100 : t->stamp_ns) ||
		    is_known != (t->stamp_ns != NONE))
			fail_msg("%s, isn %u, most %zu: %zu bytes at %lld%s", cases[i].name, isn,
				 t->most, n, (long long)stamp_ns, is_known ? "" : ", unknown");
	}
	assert_int_equal(arrivals_lost(a), 0);
	arrivals_forget(a, &f);
	arrivals_free(a);
}

/* Wherever in 32 bits the sequence numbers begin. */
static void test_stream(void **state)
{
	static const uint32_t isn[] = { 0, 1000, 0x7ffffff0, 0xffffffff, 0xffffffe0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (size_t k = 0; k < sizeof(isn) / sizeof(*isn); k++)
			check_case(i, isn[k]);
}

/* A long stream: sequence numbers go round, and ranges are used again. */
static void test_long(void **state)
{
	struct arrival_flow f;
	struct arrivals *a = followed(&f, 0xfffffff0);
	uint32_t seq = 0xfffffff1;

	(void)state;
	for (int64_t i = 1; i < 3 * TAP_SEGMENTS_MAX; i++, seq += 60000) {
		int64_t stamp_ns;
		bool is_known;

		packet_show(a, (struct packet){ .host = 1, .to = PORT, .seq = seq,
						.bytes = 60000 }, i);
		assert_int_equal(arrivals_take(a, &f, 1 << 20, 0, &stamp_ns, &is_known), 60000);
		assert_int_equal(stamp_ns, i);
		assert_true(is_known);
	}
	arrivals_forget(a, &f);
	arrivals_free(a);
}

/* More than there is room for is counted, its bytes are unknown, and the next are known again. */
static void test_full(void **state)
{
	struct arrival_flow f;
	struct arrivals *a = followed(&f, 0);
	int64_t stamp_ns;
	bool is_known;

	(void)state;
	for (uint32_t i = 0; i < TAP_SEGMENTS_MAX + 5; i++)
		packet_show(a, (struct packet){ .host = 1, .to = PORT, .seq = 1 + i, .bytes = 1 },
			    i + 1);
	assert_int_equal(arrivals_lost(a), 5);
	arrivals_skip(a, &f, TAP_SEGMENTS_MAX);
	assert_int_equal(arrivals_take(a, &f, 5, 99, &stamp_ns, &is_known), 5);
	assert_false(is_known);
	packet_show(a, (struct packet){ .host = 1, .to = PORT, .seq = TAP_SEGMENTS_MAX + 6,
					.bytes = 1 }, 1 << 20);
	assert_int_equal(arrivals_take(a, &f, 5, 99, &stamp_ns, &is_known), 1);
	assert_true(is_known);
	assert_int_equal(stamp_ns, 1 << 20);
	arrivals_forget(a, &f);
	arrivals_free(a);
}

/* What belongs to another connection, or is no data, is not noted. */
static void test_not_ours(void **state)
{
	static const struct { const char *name; struct packet p; } others[] = {
		{ "another local port", { .host = 1, .to = PORT + 1, .seq = 1, .bytes = 9 } },
		{ "another server", { .host = 1, .from = 81, .to = PORT, .seq = 1, .bytes = 9 } },
		{ "another host", { .host = 2, .to = PORT, .seq = 1, .bytes = 9 } },
		{ "another family", { .is_ipv6 = true, .host = 1, .to = PORT, .seq = 1, .bytes = 9 } },
		{ "no data", { .host = 1, .to = PORT, .seq = 1, .flags = 0x10 } },
		{ "no data in a padded frame", { .host = 1, .to = PORT, .seq = 1, .padding = 6 } },
		{ "bytes that were read", { .host = 1, .to = PORT, .seq = 0, .bytes = 1 } },
		{ "another stream", { .host = 1, .to = PORT, .seq = 0x60000000, .bytes = 9 } },
		{ "long read", { .host = 1, .to = PORT, .seq = 0xffffff00, .bytes = 9 } },
	};
	struct arrival_flow f;
	struct arrivals *a = followed(&f, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (packet_show(a, others[i].p, 1) != 0 || arrivals_knows(a, &f))
			fail_msg("%s was noted", others[i].name);
	assert_int_equal(packet_show(a, (struct packet){ .host = 1, .to = PORT, .seq = 1,
							 .bytes = 9 }, 1), 9);
	arrivals_forget(a, &f);
	assert_int_equal(packet_show(a, (struct packet){ .host = 1, .to = PORT, .seq = 10,
							 .bytes = 9 }, 1), 0);
	arrivals_free(a);
}

/* Lengths: options of TCP, IPv6, padding, packets that are longer than their field. */
static void test_lengths(void **state)
{
	static const struct { struct packet p; size_t bytes; } rows[] = {
		{ { .bytes = 1000, .options = 12 }, 1000 },
		{ { .bytes = 3, .padding = 3 }, 3 },
		{ { .bytes = 200000, .is_jumbo = true }, 200000 },
		{ { .is_ipv6 = true, .bytes = 1000, .options = 12 }, 1000 },
		{ { .is_ipv6 = true, .bytes = 200000, .is_jumbo = true }, 200000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arrivals *a = arrivals_new();
		struct packet p = rows[i].p, hello = { .is_ipv6 = p.is_ipv6, .host = 7, .to = PORT,
						       .flags = FLAG_SYN_ACK, .seq = 41 };
		struct sock_addr server = packet_server(p.is_ipv6, 7);
		struct arrival_flow f = { 0 };

		arrivals_server(a, &server);
		packet_show(a, hello, 0);
		assert_true(arrivals_follow(a, &f, PORT, 0));
		p.host = 7;
		p.to = PORT;
		p.seq = 42;
		assert_int_equal(packet_show(a, p, 1), rows[i].bytes);
		arrivals_forget(a, &f);
		arrivals_free(a);
	}
}

/* Every cut of a packet is refused or understood; none is read beyond its end (sanitizers). */
static void test_cut(void **state)
{
	struct arrival_flow f;
	struct arrivals *a = followed(&f, 0);
	struct packet p = { .host = 1, .to = PORT, .seq = 1, .bytes = 9 };
	char bytes[PACKET_BYTES];
	size_t wire, n = packet_write(&p, bytes, &wire);

	(void)state;
	for (size_t k = 0; k < n; k++) {
		char *copy = malloc(k + 1);

		assert_non_null(copy);
		memcpy(copy, bytes, k);
		assert_int_equal(arrivals_packet(a, (struct str){ copy, k }, wire, 1), 0);
		free(copy);
	}
	assert_int_equal(arrivals_packet(a, (struct str){ bytes, n }, wire, 1), 9);
	bytes[6] = 1; /* a later fragment */
	assert_int_equal(arrivals_packet(a, (struct str){ bytes, n }, wire, 1), 0);
	arrivals_forget(a, &f);
	arrivals_free(a);
}

/* One local port with two servers; a connection after another one from the same port. */
static void test_ports(void **state)
{
	struct arrivals *a = arrivals_new();
	struct sock_addr server[2] = { packet_server(false, 1), packet_server(true, 1) };
	struct arrival_flow f[2] = { 0 };
	struct packet hello = { .host = 1, .to = PORT, .seq = 10, .flags = FLAG_SYN_ACK };

	(void)state;
	assert_int_equal(arrivals_server(a, &server[0]), 0);
	assert_int_equal(arrivals_server(a, &server[1]), 1);
	assert_int_equal(arrivals_server(a, &server[0]), 0);
	assert_false(arrivals_follow(a, &f[0], PORT, 0)); /* nothing was seen of it */
	for (int i = 0; i < 2; i++) {
		hello.is_ipv6 = i;
		packet_show(a, hello, 0);
		assert_false(arrivals_follow(a, &f[i], PORT, !i));
		assert_true(arrivals_follow(a, &f[i], PORT, i));
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(packet_show(a, (struct packet){ .is_ipv6 = i, .host = 1,
			.to = PORT, .seq = 11, .bytes = (uint32_t)i + 5 }, 1), (size_t)i + 5);
	arrivals_forget(a, &f[0]);
	assert_true(arrivals_knows(a, &f[1]));
	assert_false(arrivals_follow(a, &f[0], PORT, 0)); /* that SYN-ACK was of the first one */
	hello.is_ipv6 = false;
	hello.seq = 5000;
	packet_show(a, hello, 0);
	assert_true(arrivals_follow(a, &f[0], PORT, 0));
	assert_int_equal(packet_show(a, (struct packet){ .host = 1, .to = PORT, .seq = 5001,
							 .bytes = 3 }, 1), 3);
	for (int i = 0; i < 2; i++)
		arrivals_forget(a, &f[i]);
	assert_false(arrivals_follow(a, &f[0], PORT, 0)); /* its SYN-ACK was of the one before */
	arrivals_free(a);
}

static void test_servers(void **state)
{
	struct arrivals *a = arrivals_new();
	struct sock_addr addr = packet_server(false, 9), local = { .len = sizeof(local.local) };
	struct sock_addr mapped = { .len = sizeof(struct sockaddr_in6) };
	struct sockaddr_in6 *in6 = (void *)&mapped.storage;
	struct err e;

	(void)state;
	assert_int_equal(arrivals_server(a, &addr), 0);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(SERVER_PORT);
	memcpy(in6->sin6_addr.s6_addr + 10, "\xff\xff\x0a\x00\x00\x09", 6);
	assert_int_equal(arrivals_server(a, &mapped), 0);
	assert_int_equal(sock_addr_unix("/tmp/x", &local, &e), 0);
	assert_int_equal(arrivals_server(a, &local), -1);
	for (int i = 1; i < TAP_SERVERS_MAX; i++) {
		addr = packet_server(true, (uint8_t)i);
		assert_int_equal(arrivals_server(a, &addr), i);
	}
	addr = packet_server(true, 200);
	assert_int_equal(arrivals_server(a, &addr), -1);
	arrivals_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_not_ours),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
