/* SPDX-License-Identifier: Apache-2.0 */
/* arrivals.c - see arrivals.h. */
#include "client/net/arrivals.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "core/base/limits.h"
#include "core/base/mem.h"

#define PORTS 65536
#define AHEAD_MAX (1 << 30) /* bytes after the next one that can be in a receive buffer */
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define TCP_BYTES 20
#define FLAG_SYN 0x02
#define FLAG_ACK 0x10

/* A peer: IPv4 in the first four bytes, the others zero. */
struct server { uint8_t addr[16]; uint16_t port; bool is_ipv6; };

/* [seq, end) of the stream came at stamp_ns. */
struct range { int64_t stamp_ns; uint32_t seq, end, next; };

/* The last SYN-ACK to a local port. */
struct greeting { uint32_t seq; uint16_t server; bool is_new; };

struct arrivals {
	struct server server[TAP_SERVERS_MAX];
	unsigned n_servers;
	struct arrival_flow *flow[PORTS];
	struct greeting greeting[PORTS];
	struct range range[TAP_SEGMENTS_MAX];
	uint32_t free;     /* index + 1 of the first, 0: none */
	uint64_t lost;
};

struct arrivals *arrivals_new(void)
{
	struct arrivals *a = mem_alloc(sizeof(*a));

	/* Also touches its pages before the clock starts. */
	for (uint32_t i = 0; i < TAP_SEGMENTS_MAX; i++)
		a->range[i].next = i + 1 < TAP_SEGMENTS_MAX ? i + 2 : 0;
	for (uint32_t i = 0; i < PORTS; i++) {
		((struct arrival_flow *volatile *)a->flow)[i] = NULL;
		((volatile struct greeting *)a->greeting)[i].is_new = false;
	}
	a->free = 1;
	return a;
}

void arrivals_free(struct arrivals *a)
{
	free(a);
}

uint64_t arrivals_lost(const struct arrivals *a)
{
	return a->lost;
}

/* ---- servers ---- */

static int find_server(const struct arrivals *a, const struct server *s)
{
	for (unsigned i = 0; i < a->n_servers; i++) {
		const struct server *one = &a->server[i];

		if (one->port == s->port && one->is_ipv6 == s->is_ipv6 &&
		    memcmp(one->addr, s->addr, sizeof(s->addr)) == 0)
			return (int)i;
	}
	return -1;
}

int arrivals_server(struct arrivals *a, const struct sock_addr *addr)
{
	const struct sockaddr_in *in4 = (const void *)&addr->storage;
	const struct sockaddr_in6 *in6 = (const void *)&addr->storage;
	struct server s = { 0 };
	int i;

	if (addr->any.sa_family == AF_INET) {
		memcpy(s.addr, &in4->sin_addr, 4);
		s.port = ntohs(in4->sin_port);
	} else if (addr->any.sa_family == AF_INET6) {
		s.is_ipv6 = !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
		memcpy(s.addr, in6->sin6_addr.s6_addr + (s.is_ipv6 ? 0 : 12), s.is_ipv6 ? 16 : 4);
		s.port = ntohs(in6->sin6_port);
	} else {
		return -1;
	}
	i = find_server(a, &s);
	if (i >= 0 || a->n_servers == TAP_SERVERS_MAX)
		return i;
	a->server[a->n_servers] = s;
	return (int)a->n_servers++;
}

/* ---- ranges of a flow ---- */

/* How far b is after a in the stream; below zero: before it. */
static int32_t after(uint32_t a, uint32_t b)
{
	return (int32_t)(b - a);
}

static struct range *range_at(struct arrivals *a, uint32_t i)
{
	assert(i > 0 && i <= TAP_SEGMENTS_MAX);
	return &a->range[i - 1];
}

/* Puts a new range between two neighbours (0: none). Returns it, or 0 without room. */
static uint32_t put_between(struct arrivals *a, struct arrival_flow *f, uint32_t before,
			    uint32_t behind, struct range r)
{
	uint32_t i = a->free;

	if (!i) {
		a->lost++;
		return 0;
	}
	a->free = range_at(a, i)->next;
	r.next = behind;
	*range_at(a, i) = r;
	if (before)
		range_at(a, before)->next = i;
	else
		f->first = i;
	if (!behind)
		f->last = i;
	return i;
}

static void drop_first(struct arrivals *a, struct arrival_flow *f)
{
	uint32_t i = f->first;

	f->first = range_at(a, i)->next;
	if (!f->first)
		f->last = 0;
	range_at(a, i)->next = a->free;
	a->free = i;
}

/* Only bytes that are new count: the first arrival of a byte is its arrival. */
static void note(struct arrivals *a, struct arrival_flow *f, struct range r)
{
	uint32_t before = 0, at = f->first;

	if (f->last && after(range_at(a, f->last)->end, r.seq) >= 0) { /* as good as always */
		put_between(a, f, f->last, 0, r);
		return;
	}
	while (after(r.seq, r.end) > 0) {
		const struct range *one = at ? range_at(a, at) : NULL;
		struct range hole = r;

		if (one && after(one->end, r.seq) >= 0) {
			before = at;
			at = one->next;
			continue;
		}
		if (one && after(one->seq, r.end) > 0)
			hole.end = one->seq;
		if (after(hole.seq, hole.end) > 0) {
			before = put_between(a, f, before, at, hole);
			if (!before)
				return;
		}
		if (!one)
			return;
		r.seq = one->end;
		before = at;
		at = one->next;
	}
}

/* ---- packets ---- */

static uint32_t be16(const char *p)
{
	return (uint32_t)(uint8_t)p[0] << 8 | (uint8_t)p[1];
}

static uint32_t be32(const char *p)
{
	return be16(p) << 16 | be16(p + 2);
}

/*
 * The peer of an IP packet with TCP, and where TCP begins in it; 0 for any other packet. bytes: the
 * length that its header states, 0 when it does not fit in there. Of IPv6 only packets without
 * extension headers: TCP has none.
 */
static size_t find_tcp(struct str p, struct server *from, size_t *bytes)
{
	size_t at;

	if (p.n < IPV4_BYTES)
		return 0;
	if ((uint8_t)p.p[0] >> 4 == 4) {
		at = ((uint8_t)p.p[0] & 15u) * 4;
		if (at < IPV4_BYTES || p.p[9] != IPPROTO_TCP || be16(p.p + 6) & 0x1fff)
			return 0;
		memcpy(from->addr, p.p + 12, 4);
		*bytes = be16(p.p + 2);
	} else if ((uint8_t)p.p[0] >> 4 == 6 && p.n >= IPV6_BYTES && p.p[6] == IPPROTO_TCP) {
		at = IPV6_BYTES;
		from->is_ipv6 = true;
		memcpy(from->addr, p.p + 8, 16);
		*bytes = be16(p.p + 4) ? be16(p.p + 4) + IPV6_BYTES : 0;
	} else {
		return 0;
	}
	return p.n >= at + TCP_BYTES ? at : 0;
}

static struct arrival_flow *find_flow(const struct arrivals *a, uint32_t port, int server)
{
	struct arrival_flow *f = a->flow[port];

	while (f && f->server != server)
		f = f->next;
	return f;
}

size_t arrivals_packet(struct arrivals *a, struct str packet, size_t wire_bytes, int64_t stamp_ns)
{
	struct server from = { 0 };
	struct arrival_flow *f;
	size_t bytes = 0, at = find_tcp(packet, &from, &bytes), head;
	struct range r = { .stamp_ns = stamp_ns };
	const char *tcp = packet.p + at;
	uint32_t port;
	int server;

	if (!at)
		return 0;
	from.port = (uint16_t)be16(tcp);
	port = be16(tcp + 2);
	server = find_server(a, &from);
	if (server < 0)
		return 0;
	r.seq = be32(tcp + 4);
	if (tcp[13] & FLAG_SYN) {
		if (tcp[13] & FLAG_ACK)
			a->greeting[port] = (struct greeting){ r.seq, (uint16_t)server, true };
		return 0;
	}
	/* A frame may be padded at its end; a length that 16 bits do not hold is the frame's. */
	bytes = bytes && bytes < wire_bytes ? bytes : wire_bytes;
	head = at + ((uint8_t)tcp[12] >> 4) * 4u;
	f = find_flow(a, port, server);
	if (!f || bytes <= head || bytes - head > AHEAD_MAX)
		return 0;
	r.end = r.seq + (uint32_t)(bytes - head);
	if (after(f->next_seq, r.end) <= 0 || after(f->next_seq, r.end) > AHEAD_MAX)
		return 0;
	if (after(f->next_seq, r.seq) < 0)
		r.seq = f->next_seq;
	note(a, f, r);
	return (size_t)after(r.seq, r.end);
}

/* ---- what the owner of a flow does ---- */

bool arrivals_follow(struct arrivals *a, struct arrival_flow *f, uint16_t port, int server)
{
	struct greeting *g = &a->greeting[port];

	assert(!f->is_followed && server >= 0 && (unsigned)server < a->n_servers);
	if (!g->is_new || g->server != server || find_flow(a, port, server))
		return false;
	g->is_new = false;
	*f = (struct arrival_flow){ .next = a->flow[port], .next_seq = g->seq + 1, .port = port,
				    .server = (uint16_t)server, .is_followed = true };
	a->flow[port] = f;
	return true;
}

void arrivals_forget(struct arrivals *a, struct arrival_flow *f)
{
	struct arrival_flow **at = &a->flow[f->port];

	if (!f->is_followed)
		return;
	while (f->first)
		drop_first(a, f);
	while (*at != f) {
		assert(*at);
		at = &(*at)->next;
	}
	*at = f->next;
	*f = (struct arrival_flow){ 0 };
}

bool arrivals_knows(const struct arrivals *a, const struct arrival_flow *f)
{
	return f->first && after(f->next_seq, a->range[f->first - 1].seq) <= 0;
}

size_t arrivals_take(struct arrivals *a, struct arrival_flow *f, size_t most_bytes,
		     int64_t otherwise_ns, int64_t *stamp_ns, bool *is_known)
{
	const struct range *r = f->first ? range_at(a, f->first) : NULL;
	size_t n = most_bytes;

	assert(f->is_followed && most_bytes > 0 && most_bytes <= AHEAD_MAX);
	*is_known = arrivals_knows(a, f);
	if (*is_known) {
		if ((size_t)after(f->next_seq, r->end) < n)
			n = (size_t)after(f->next_seq, r->end);
		f->latest_ns = r->stamp_ns > f->latest_ns ? r->stamp_ns : f->latest_ns;
		*stamp_ns = f->latest_ns;
	} else {
		if (r && (size_t)after(f->next_seq, r->seq) < n)
			n = (size_t)after(f->next_seq, r->seq);
		f->latest_ns = otherwise_ns > f->latest_ns ? otherwise_ns : f->latest_ns;
		*stamp_ns = otherwise_ns;
	}
	arrivals_skip(a, f, n);
	return n;
}

void arrivals_skip(struct arrivals *a, struct arrival_flow *f, size_t bytes)
{
	f->next_seq += (uint32_t)bytes;
	while (f->first && after(f->next_seq, range_at(a, f->first)->end) <= 0)
		drop_first(a, f);
}
