/* SPDX-License-Identifier: Apache-2.0 */
/* traffic.h - packets of a made-up client and server, both sides with their data. */
#pragma once
#include <stdint.h>
#include <string.h>

#include "core/base/str.h"

#define TRAFFIC_SERVER_PORT 8000
#define TRAFFIC_CLIENT_PORT 40000
#define TRAFFIC_CLIENT_ISN 0xffffff00u /* sequence numbers wrap on the way */
#define TRAFFIC_SERVER_ISN 5000u
#define T_FIN 0x01
#define T_SYN 0x02
#define T_RST 0x04
#define T_ACK 0x10
#define TRAFFIC_BYTES 4096

struct traffic {
	char from;           /* 'c' or 's' */
	int32_t seq, ack;    /* from each side's first byte of data */
	const char *data;    /* NULL: none */
	uint8_t flags;       /* besides ACK */
	uint16_t client_port; /* 0: TRAFFIC_CLIENT_PORT */
	bool is_ipv6;
	uint32_t lost_bytes; /* of its end, which the capture did not keep */
};

static inline void traffic_put(char *at, uint32_t value, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, value >>= 8)
		at[i] = (char)(value & 0xff);
}

/* From the network header on; returns the bytes captured. */
static inline size_t traffic_write(const struct traffic *t, char out[TRAFFIC_BYTES], size_t *wire)
{
	bool is_client = t->from == 'c', is_first = t->flags & T_SYN && is_client;
	uint32_t own = is_client ? TRAFFIC_CLIENT_ISN : TRAFFIC_SERVER_ISN;
	uint32_t other = is_client ? TRAFFIC_SERVER_ISN : TRAFFIC_CLIENT_ISN;
	uint16_t client = t->client_port ? t->client_port : TRAFFIC_CLIENT_PORT;
	size_t ip = t->is_ipv6 ? 40 : 20, n = t->data ? strlen(t->data) : 0;
	char *tcp = out + ip;

	memset(out, 0, ip + 20);
	*wire = ip + 20 + n;
	if (t->is_ipv6) {
		out[0] = 0x60;
		traffic_put(out + 4, (uint32_t)(20 + n), 2);
		out[6] = 6;
		out[8] = out[24] = (char)0xfd;
		out[23] = is_client ? 2 : 1;
		out[39] = is_client ? 1 : 2;
	} else {
		out[0] = 0x45;
		traffic_put(out + 2, (uint32_t)*wire, 2);
		out[9] = 6;
		traffic_put(out + 12, 0x0a000001u + is_client, 4);
		traffic_put(out + 16, 0x0a000002u - is_client, 4);
	}
	traffic_put(tcp, is_client ? client : TRAFFIC_SERVER_PORT, 2);
	traffic_put(tcp + 2, is_client ? TRAFFIC_SERVER_PORT : client, 2);
	traffic_put(tcp + 4, own + !(t->flags & T_SYN) + (uint32_t)t->seq, 4);
	traffic_put(tcp + 8, is_first ? 0 : other + 1 + (uint32_t)t->ack, 4);
	tcp[12] = 5 << 4;
	tcp[13] = (char)(t->flags | (is_first ? 0 : T_ACK));
	if (n)
		memcpy(tcp + 20, t->data, n);
	return *wire - t->lost_bytes;
}
