/* SPDX-License-Identifier: Apache-2.0 */
/* packets.h - TCP packets of a made-up server, as a packet socket shows them: no Ethernet head. */
#pragma once
#include <arpa/inet.h>
#include <string.h>

#include "client/net/arrivals.h"

#define PACKET_BYTES 80      /* at most: IPv6, TCP, options */
#define SERVER_PORT 8000
#define FLAG_SYN_ACK 0x12
#define FLAG_DATA 0x18

struct packet {
	bool is_ipv6;
	uint8_t host;            /* last byte of the server's address */
	uint16_t from, to;       /* ports; from 0: SERVER_PORT */
	uint32_t seq, bytes;     /* of data */
	uint8_t flags;           /* 0: FLAG_DATA */
	uint8_t options;         /* bytes of TCP options, a multiple of 4 */
	uint8_t padding;         /* bytes that the frame has after the packet */
	bool is_jumbo;           /* no length in the IP head */
};

/* 10.0.0.host or fd00::host, SERVER_PORT. */
static inline struct sock_addr packet_server(bool is_ipv6, uint8_t host)
{
	struct sock_addr addr = { .len = sizeof(struct sockaddr_in6) };
	struct sockaddr_in *in4 = (void *)&addr.storage;
	struct sockaddr_in6 *in6 = (void *)&addr.storage;

	if (is_ipv6) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(SERVER_PORT);
		in6->sin6_addr.s6_addr[0] = 0xfd;
		in6->sin6_addr.s6_addr[15] = host;
	} else {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(SERVER_PORT);
		in4->sin_addr.s_addr = htonl(0x0a000000u + host);
	}
	return addr;
}

static inline void put_be(char *at, uint32_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, value >>= 8)
		at[i] = (char)(value & 0xff);
}

/* The heads into out; returns their length. The whole packet has *wire_bytes. */
static inline size_t packet_write(const struct packet *p, char out[PACKET_BYTES],
				  size_t *wire_bytes)
{
	size_t ip = p->is_ipv6 ? 40 : 20, heads = ip + 20 + p->options;
	char *tcp = out + ip;

	memset(out, 0, PACKET_BYTES);
	if (p->is_ipv6) {
		out[0] = 0x60;
		put_be(out + 4, p->is_jumbo ? 0 : (uint32_t)(heads - ip) + p->bytes, 2);
		out[6] = 6;
		out[8] = (char)0xfd;
		out[23] = (char)p->host;
	} else {
		out[0] = 0x45;
		put_be(out + 2, p->is_jumbo ? 0 : (uint32_t)heads + p->bytes, 2);
		out[9] = 6;
		put_be(out + 12, 0x0a000000u + p->host, 4);
	}
	put_be(tcp, p->from ? p->from : SERVER_PORT, 2);
	put_be(tcp + 2, p->to, 2);
	put_be(tcp + 4, p->seq, 4);
	tcp[12] = (char)((20 + p->options) / 4 << 4);
	tcp[13] = (char)(p->flags ? p->flags : FLAG_DATA);
	*wire_bytes = heads + p->bytes + p->padding;
	return heads;
}

/* Shows it to the arrivals; returns what they return. */
static inline size_t packet_show(struct arrivals *a, struct packet p, int64_t stamp_ns)
{
	char bytes[PACKET_BYTES];
	size_t wire, n = packet_write(&p, bytes, &wire);

	return arrivals_packet(a, (struct str){ bytes, n }, wire, stamp_ns);
}
