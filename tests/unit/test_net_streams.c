/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_net_streams.c - both sides of connections from made-up packets. Stamps are 1, 2, 3... in
 * the order of the packets. What comes out is written as text: O for a connection that begins
 * (O+ where its SYN was seen), c or s with the bytes and their stamp, E with the reason of the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "client/net/streams.h"
#include "answers.h"
#include "traffic.h"

#define GET "GET /a HTTP/1.1\r\n\r\n" /* 19 bytes */
#define P(side, at, acked, ...) \
	{ .from = (side), .seq = (at), .ack = (acked), ##__VA_ARGS__ }
#define SYN P('c', 0, 0, .flags = T_SYN)
#define SYN_ACK P('s', 0, 0, .flags = T_SYN)

static const struct {
	const char *name;
	struct traffic packet[10];
	const char *expected;
	struct stream_stats stats;
} cases[] = {
	{ "a connection from its beginning to its end",
	  { SYN, SYN_ACK, P('c', 0, 0, .data = "abc"), P('s', 0, 3, .data = "xy"),
	    P('s', 2, 3, .data = "z", .flags = T_FIN) },
	  "O+ cabc@3 sxy@4 sz@5 E0@5 ", { .packets = 5, .connections = 1 } },
	{ "out of order: a byte has passed when all before it have",
	  { SYN, SYN_ACK, P('s', 2, 0, .data = "cd"), P('s', 4, 0, .data = "ef"), P('s', 0, 0, .data = "ab") },
	  "O+ sab@5 scd@5 sef@5 E4@5 ",
	  { .packets = 5, .connections = 1, .out_of_order = 2 } },
	{ "sent again, whole and with more after it",
	  { SYN, SYN_ACK, P('s', 0, 0, .data = "abc"), P('s', 0, 0, .data = "abc"), P('s', 1, 0, .data = "bcde") },
	  "O+ sabc@3 sde@5 E4@5 ", { .packets = 5, .connections = 1, .resent = 1 } },
	{ "pieces that overlap while they wait",
	  { SYN, SYN_ACK, P('s', 3, 0, .data = "def"), P('s', 1, 0, .data = "bcd"), P('s', 0, 0, .data = "ab") },
	  "O+ sab@5 scd@5 sef@5 E4@5 ",
	  { .packets = 5, .connections = 1, .out_of_order = 2 } },
	{ "what is acknowledged and was not seen is a hole",
	  { SYN, SYN_ACK, P('s', 0, 0, .data = "ab"), P('s', 4, 0, .data = "ef"), P('c', 0, 6) },
	  "O+ sab@3 E3@5 ", { .packets = 5, .connections = 1, .out_of_order = 1, .holes = 1 } },
	{ "after a hole the next request begins anew, and its answer where the client had read to",
	  { SYN, SYN_ACK, P('c', 0, 0, .data = GET), P('s', 0, 19, .data = "ab"), P('s', 4, 19, .data = "ef"),
	    P('c', 19, 6, .data = GET), P('s', 6, 38, .data = "gh") },
	  "O+ c" GET "@3 sab@4 E3@6 O c" GET "@6 sgh@7 E4@7 ",
	  { .packets = 7, .connections = 1, .joined = 1, .out_of_order = 1, .holes = 1 } },
	{ "a packet of the client that was missed",
	  { SYN, SYN_ACK, P('s', 0, 3, .data = "xyz") }, "O+ E3@3 ",
	  { .packets = 3, .connections = 1, .holes = 1 } },
	{ "the capture begins in the middle of an answer",
	  { P('s', 100, 19, .data = "ab"), P('c', 19, 102), P('c', 19, 102, .data = GET),
	    P('s', 102, 38, .data = "cd") },
	  "O c" GET "@3 scd@4 E4@4 ", { .packets = 4, .joined = 1 } },
	{ "a request that is sent again after a hole is not the next one",
	  { P('c', 0, 0, .data = GET), P('s', 4, 19, .data = "ef"), P('c', 19, 6), P('c', 0, 0, .data = GET) },
	  "O c" GET "@1 E3@3 ", { .packets = 4, .joined = 1, .out_of_order = 1, .holes = 1 } },
	{ "the first packets come again, late",
	  { SYN, SYN, SYN_ACK, SYN_ACK, SYN, P('c', 0, 0, .data = "abc"), P('s', 0, 3, .data = "xy") },
	  "O+ cabc@6 sxy@7 E4@7 ", { .packets = 7, .connections = 1 } },
	{ "another connection from the same port",
	  { SYN, SYN_ACK, P('c', 0, 0, .data = "abc"), P('c', 99, 0, .flags = T_SYN),
	    P('s', 0, 100, .flags = T_SYN) },
	  "O+ cabc@3 E3@4 O+ E4@5 ", { .packets = 5, .connections = 2 } },
	{ "IPv6",
	  { P('c', 0, 0, .flags = T_SYN, .is_ipv6 = true),
	    P('s', 0, 0, .flags = T_SYN, .is_ipv6 = true),
	    P('c', 0, 0, .data = "abc", .is_ipv6 = true), P('s', 0, 3, .data = "xy", .is_ipv6 = true) },
	  "O+ cabc@3 sxy@4 E4@4 ", { .packets = 4, .connections = 1 } },
	{ "the server resets", { SYN, SYN_ACK, P('c', 0, 0, .data = "abc"), P('s', 0, 3, .flags = T_RST) },
	  "O+ cabc@3 E1@4 ", { .packets = 4, .connections = 1 } },
	{ "the client goes first",
	  { SYN, SYN_ACK, P('c', 0, 0, .data = "abc"), P('c', 3, 0, .flags = T_FIN),
	    P('s', 0, 4, .data = "xy", .flags = T_FIN) },
	  "O+ cabc@3 sxy@5 E2@5 ", { .packets = 5, .connections = 1 } },
	{ "a packet of which the capture kept the beginning",
	  { SYN, SYN_ACK, P('s', 0, 0, .data = "abcd", .lost_bytes = 2), P('c', 0, 4) },
	  "O+ sab@3 E3@4 ", { .packets = 4, .connections = 1, .holes = 1, .cut_packets = 1 } },
	{ "TLS that was open before", { P('c', 0, 0, .data = "\x17\x03\x03 secret") }, "",
	  { .packets = 1, .tls = 1 } },
	{ "a keep-alive probe is no data",
	  { SYN, SYN_ACK, P('c', 0, 0, .data = "abc"), P('c', 2, 0, .data = "?"), P('c', 3, 0, .data = "d") },
	  "O+ cabc@3 cd@5 E4@5 ", { .packets = 5, .connections = 1, .resent = 1 } },
};

static void *opened(void *self, const struct stream_peer *server, int64_t connect_ns,
		    int64_t connected_ns)
{
	assert_int_equal(server->port, TRAFFIC_SERVER_PORT);
	assert_int_equal(connect_ns != 0, connected_ns != 0);
	buf_add_text(self, connect_ns ? "O+ " : "O ");
	return self;
}

static bool bytes(void *self, void *connection, enum stream_side from, struct str in,
		  int64_t stamp_ns)
{
	assert_ptr_equal(self, connection);
	buf_printf(self, "%c%.*s@%d ", from == SIDE_CLIENT ? 'c' : 's', (int)in.n, in.p,
		   (int)stamp_ns);
	return true;
}

static void ended(void *self, void *connection, enum stream_end why, int64_t stamp_ns)
{
	assert_ptr_equal(self, connection);
	buf_printf(self, "E%d@%d ", (int)why, (int)stamp_ns);
}

static void show(struct streams *s, const struct traffic *t, int64_t stamp_ns)
{
	char packet[TRAFFIC_BYTES];
	size_t wire, n = traffic_write(t, packet, &wire);

	streams_packet(s, (struct str){ packet, n }, wire, stamp_ns);
}

static void each_case(void **state)
{
	const struct stream_filter filter = { .port = { TRAFFIC_SERVER_PORT }, .n_ports = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf out = { 0 };
		const struct stream_hooks hooks = { &out, opened, bytes, ended };
		struct streams *s = streams_new(&filter, &hooks);

		print_message("%s\n", cases[i].name);
		for (int k = 0; cases[i].packet[k].from; k++)
			show(s, &cases[i].packet[k], k + 1);
		streams_finish(s);
		buf_add_char(&out, '\0');
		assert_string_equal(out.data, cases[i].expected);
		assert_memory_equal(streams_stats(s), &cases[i].stats, sizeof(cases[i].stats));
		streams_free(s);
		answers_release(&out);
	}
}

/* What waits has a limit; a connection that passes it is a hole, and memory does not grow. */
static void too_much_waits(void **state)
{
	const struct stream_filter filter = { .port = { TRAFFIC_SERVER_PORT }, .n_ports = 1 };
	struct buf out = { 0 };
	const struct stream_hooks hooks = { &out, opened, bytes, ended };
	struct streams *s = streams_new(&filter, &hooks);
	char data[2049];

	(void)state;
	memset(data, 'x', sizeof(data));
	data[2048] = '\0';
	show(s, &(struct traffic)SYN, 1);
	show(s, &(struct traffic)SYN_ACK, 2);
	for (int i = 1; i <= (int)(STREAM_HELD_BYTES_MAX / 2048) + 1; i++)
		show(s, &(struct traffic)P('s', i * 2048, 0, .data = data), 3);
	buf_add_char(&out, '\0');
	assert_string_equal(out.data, "O+ E3@3 ");
	assert_int_equal(streams_stats(s)->holes, 1);
	streams_free(s);
	answers_release(&out);
}

/* Only the server that is asked for. */
static void filters(void **state)
{
	struct stream_filter filter = { .port = { TRAFFIC_SERVER_PORT }, .n_ports = 1,
					.host = { .addr = { 10, 0, 0, 9 } }, .has_host = true };
	struct buf out = { 0 };
	const struct stream_hooks hooks = { &out, opened, bytes, ended };
	struct streams *s = streams_new(&filter, &hooks);

	(void)state;
	show(s, &(struct traffic)P('c', 0, 0, .data = GET), 1);
	assert_int_equal(streams_stats(s)->packets, 0);
	streams_free(s);
	filter.host.addr[3] = 1;
	s = streams_new(&filter, &hooks);
	show(s, &(struct traffic)P('c', 0, 0, .data = GET), 1);
	assert_int_equal(streams_stats(s)->packets, 1);
	streams_free(s);
	answers_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_case), cmocka_unit_test(too_much_waits),
		cmocka_unit_test(filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
