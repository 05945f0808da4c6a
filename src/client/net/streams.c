/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.c - see streams.h.
 *
 *   (unknown) --SYN--> NEW --SYN-ACK--> OPEN --hole, unreadable--> SEEKING --request line--> OPEN
 *       \------------------ request line -----^
 *
 * A flow leaves the table when the server has closed it, when either side has reset it, or when the
 * table is full and the flow was idle for IDLE_NS.
 */
#include "client/net/streams.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>

#include "core/base/mem.h"

#define BUCKETS 65536
#define WINDOW_MAX (1 << 30) /* bytes ahead that a packet may be; beyond, it is of another time */
#define IDLE_NS 60000000000ll
#define SWEEP_NS 1000000000ll
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define TCP_BYTES 20
#define FLAG_FIN 0x01
#define FLAG_SYN 0x02
#define FLAG_RST 0x04
#define FLAG_ACK 0x10

/* Bytes that came before an earlier one. */
struct piece { struct piece *next; uint32_t seq, bytes; char data[]; };

struct half {
	struct piece *first; /* in order of seq; they may overlap */
	size_t held_bytes;
	uint32_t next, fin;  /* sequence number of the next byte, and of the end */
	bool has_fin, has_begun; /* bytes were handed on */
};

enum flow_state { FLOW_NEW, FLOW_OPEN, FLOW_SEEKING };

struct flow {
	struct flow *next;   /* in the same bucket */
	struct stream_peer peer[2]; /* by enum stream_side */
	struct half half[2]; /* sent by that side */
	enum flow_state state;
	bool was_open, is_client_gone, is_over;
	int64_t connect_ns, seen_ns;
	void *connection;    /* the hooks' */
};

struct streams {
	struct stream_filter filter;
	struct stream_hooks hooks;
	struct stream_stats stats;
	struct flow *bucket[BUCKETS];
	size_t n_flows;
	int64_t swept_ns;
};

struct segment {
	struct stream_peer from, to;
	uint32_t seq, ack;
	unsigned flags;
	struct str data;     /* as much as was captured */
	size_t missing;      /* bytes after it that were not */
	int64_t stamp_ns;
};

char *stream_peer_text(char out[STREAM_PEER_BYTES], const struct stream_peer *p)
{
	char addr[INET6_ADDRSTRLEN] = "?";

	inet_ntop(p->is_ipv6 ? AF_INET6 : AF_INET, p->addr, addr, sizeof(addr));
	snprintf(out, STREAM_PEER_BYTES, p->is_ipv6 ? "[%s]:%u" : "%s:%u", addr, p->port);
	return out;
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

/* How far b is after a in the stream; below zero: before it. */
static int32_t after(uint32_t a, uint32_t b)
{
	return (int32_t)(b - a);
}

/*
 * Where TCP begins in an IP packet, and the length that its header states (0: it does not fit in
 * there); 0 for any other packet. Of IPv6 only packets without extension headers: TCP has none.
 */
static size_t read_ip(struct str p, struct segment *s, size_t *bytes)
{
	size_t at;

	if (p.n < IPV4_BYTES)
		return 0;
	if ((uint8_t)p.p[0] >> 4 == 4) {
		at = ((uint8_t)p.p[0] & 15u) * 4;
		if (at < IPV4_BYTES || p.p[9] != IPPROTO_TCP || be16(p.p + 6) & 0x3fff)
			return 0; /* a fragment: its bytes will be missing */
		memcpy(s->from.addr, p.p + 12, 4);
		memcpy(s->to.addr, p.p + 16, 4);
		*bytes = be16(p.p + 2);
	} else if ((uint8_t)p.p[0] >> 4 == 6 && p.n >= IPV6_BYTES && p.p[6] == IPPROTO_TCP) {
		at = IPV6_BYTES;
		s->from.is_ipv6 = s->to.is_ipv6 = true;
		memcpy(s->from.addr, p.p + 8, 16);
		memcpy(s->to.addr, p.p + 24, 16);
		*bytes = be16(p.p + 4) ? be16(p.p + 4) + IPV6_BYTES : 0;
	} else {
		return 0;
	}
	return p.n >= at + TCP_BYTES ? at : 0;
}

static bool read_segment(struct str packet, size_t wire_bytes, int64_t stamp_ns,
			 struct segment *s)
{
	size_t bytes = 0, at, head;
	const char *tcp;

	*s = (struct segment){ .stamp_ns = stamp_ns };
	at = read_ip(packet, s, &bytes);
	if (!at)
		return false;
	tcp = packet.p + at;
	s->from.port = (uint16_t)be16(tcp);
	s->to.port = (uint16_t)be16(tcp + 2);
	s->seq = be32(tcp + 4);
	s->ack = be32(tcp + 8);
	s->flags = (uint8_t)tcp[13];
	/* A frame may be padded at its end; a length that 16 bits do not hold is the frame's. */
	bytes = bytes && bytes < wire_bytes ? bytes : wire_bytes;
	head = at + ((uint8_t)tcp[12] >> 4) * 4u;
	if (head < at + TCP_BYTES || bytes < head || bytes - head > WINDOW_MAX)
		return false;
	if (packet.n > bytes)
		packet.n = bytes;
	if (packet.n > head)
		s->data = (struct str){ packet.p + head, packet.n - head };
	s->missing = bytes - head - s->data.n;
	return true;
}

/* ---- the table ---- */

static size_t bucket_of(const struct stream_peer *client, const struct stream_peer *server)
{
	struct str a = { (const char *)client->addr, 16 }, b = { (const char *)server->addr, 16 };

	return (size_t)((map_hash(a) * 31 + map_hash(b)) * 31 + client->port * 0x9e3779b1u +
			server->port) % BUCKETS;
}

static bool is_peer(const struct stream_peer *a, const struct stream_peer *b)
{
	return a->port == b->port && a->is_ipv6 == b->is_ipv6 &&
	       memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

static struct flow *find(const struct streams *s, const struct stream_peer *client,
			 const struct stream_peer *server)
{
	struct flow *f = s->bucket[bucket_of(client, server)];

	while (f && !(is_peer(&f->peer[SIDE_CLIENT], client) &&
		      is_peer(&f->peer[SIDE_SERVER], server)))
		f = f->next;
	return f;
}

static void drop_pieces(struct half *h)
{
	while (h->first) {
		struct piece *p = h->first;

		h->first = p->next;
		free(p);
	}
	h->held_bytes = 0;
}

static void end_flow(struct streams *s, struct flow *f, enum stream_end why, int64_t stamp_ns)
{
	if (f->state == FLOW_OPEN)
		s->hooks.ended(s->hooks.self, f->connection, why, stamp_ns);
	f->connection = NULL;
	f->state = FLOW_SEEKING;
	drop_pieces(&f->half[SIDE_CLIENT]);
	drop_pieces(&f->half[SIDE_SERVER]);
}

static void forget(struct streams *s, struct flow *f)
{
	struct flow **at = &s->bucket[bucket_of(&f->peer[SIDE_CLIENT], &f->peer[SIDE_SERVER])];

	while (*at != f) {
		assert(*at);
		at = &(*at)->next;
	}
	*at = f->next;
	drop_pieces(&f->half[SIDE_CLIENT]);
	drop_pieces(&f->half[SIDE_SERVER]);
	s->n_flows--;
	free(f);
}

/* Makes room: connections whose end was not seen, or that never began. */
static void sweep(struct streams *s, int64_t now_ns)
{
	if (s->swept_ns && now_ns - s->swept_ns < SWEEP_NS)
		return;
	s->swept_ns = now_ns;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct flow *f = s->bucket[i], *next; f; f = next) {
			next = f->next;
			if (now_ns - f->seen_ns < IDLE_NS)
				continue;
			end_flow(s, f, STREAM_LOST, now_ns);
			forget(s, f);
		}
	}
}

static struct flow *add_flow(struct streams *s, const struct stream_peer *client,
			     const struct stream_peer *server, int64_t now_ns)
{
	struct flow **at, *f;

	if (s->n_flows >= STREAM_CONNECTIONS_MAX)
		sweep(s, now_ns);
	if (s->n_flows >= STREAM_CONNECTIONS_MAX) {
		s->stats.refused++;
		return NULL;
	}
	at = &s->bucket[bucket_of(client, server)];
	f = mem_alloc(sizeof(*f));
	f->peer[SIDE_CLIENT] = *client;
	f->peer[SIDE_SERVER] = *server;
	f->next = *at;
	*at = f;
	s->n_flows++;
	return f;
}

static void open_flow(struct streams *s, struct flow *f, uint32_t client_next,
		      uint32_t server_next, int64_t connected_ns)
{
	assert(f->state != FLOW_OPEN && !f->half[0].first && !f->half[1].first);
	f->half[SIDE_CLIENT] = (struct half){ .next = client_next };
	f->half[SIDE_SERVER] = (struct half){ .next = server_next };
	f->state = FLOW_OPEN;
	f->was_open = true;
	f->is_client_gone = false;
	f->connection = s->hooks.opened(s->hooks.self, &f->peer[SIDE_SERVER],
					connected_ns ? f->connect_ns : 0, connected_ns);
}

/* ---- bytes ---- */

/* Whether data begins with a complete HTTP/1 request line. */
static bool begins_request(struct str data)
{
	static const char *const method[] = { "POST ", "GET ", "PUT ", "DELETE ", "PATCH ", "HEAD ",
					      "OPTIONS " };
	const char *end = data.n ? memchr(data.p, '\n', data.n) : NULL;
	struct str line;

	if (!end)
		return false;
	line = str_trim((struct str){ data.p, (size_t)(end - data.p) });
	if (!str_ends(line, STR(" HTTP/1.1")) && !str_ends(line, STR(" HTTP/1.0")))
		return false;
	for (size_t i = 0; i < sizeof(method) / sizeof(*method); i++)
		if (str_starts(line, str_of(method[i])))
			return true;
	return false;
}

static void note_protocol(struct streams *s, struct str data)
{
	if (data.n >= 3 && (uint8_t)data.p[0] >= 0x14 && (uint8_t)data.p[0] <= 0x17 &&
	    data.p[1] == 3 && (uint8_t)data.p[2] <= 4)
		s->stats.tls++;
	else if (str_starts(data, STR("PRI * HTTP/2")))
		s->stats.http2++;
}

static void lose(struct streams *s, struct flow *f, int64_t stamp_ns)
{
	s->stats.holes++;
	end_flow(s, f, STREAM_LOST, stamp_ns);
}

/* Bytes that are next in their stream. */
static void hand_on(struct streams *s, struct flow *f, enum stream_side side, struct str bytes,
		    int64_t stamp_ns)
{
	struct half *h = &f->half[side];

	h->next += (uint32_t)bytes.n;
	if (!h->has_begun && side == SIDE_CLIENT)
		note_protocol(s, bytes);
	h->has_begun = true;
	if (!s->hooks.bytes(s->hooks.self, f->connection, side, bytes, stamp_ns))
		end_flow(s, f, STREAM_LOST, stamp_ns);
}

/* Delivers waiting pieces that are now in order. */
static void hand_on_pieces(struct streams *s, struct flow *f, enum stream_side side,
			   int64_t stamp_ns)
{
	struct half *h = &f->half[side];

	while (f->state == FLOW_OPEN && h->first && after(h->next, h->first->seq) <= 0) {
		struct piece *p = h->first;
		uint32_t known = (uint32_t)-after(h->next, p->seq);

		h->first = p->next;
		h->held_bytes -= p->bytes;
		if (known < p->bytes)
			hand_on(s, f, side, (struct str){ p->data + known, p->bytes - known },
				stamp_ns);
		free(p);
	}
}

static void hold(struct streams *s, struct flow *f, enum stream_side side,
		 const struct segment *g)
{
	struct half *h = &f->half[side];
	struct piece **at = &h->first, *p;

	s->stats.out_of_order++;
	if (g->data.n > STREAM_HELD_BYTES_MAX - h->held_bytes) {
		lose(s, f, g->stamp_ns);
		return;
	}
	while (*at && after((*at)->seq, g->seq) >= 0)
		at = &(*at)->next;
	p = mem_alloc(sizeof(*p) + g->data.n);
	p->seq = g->seq;
	p->bytes = (uint32_t)g->data.n;
	memcpy(p->data, g->data.p, g->data.n);
	p->next = *at;
	*at = p;
	h->held_bytes += g->data.n;
}

static void take_data(struct streams *s, struct flow *f, enum stream_side side,
		      const struct segment *g)
{
	struct half *h = &f->half[side];
	int32_t ahead = after(h->next, g->seq);
	struct str data = g->data;

	if (!data.n)
		return;
	if (ahead > WINDOW_MAX || ahead < -WINDOW_MAX)
		return; /* of an older connection: the ports were reused */
	if (ahead > 0) {
		hold(s, f, side, g);
		return;
	}
	if ((size_t)-ahead >= data.n) {
		s->stats.resent++;
		return;
	}
	data.p += -ahead;
	data.n -= (size_t)-ahead;
	hand_on(s, f, side, data, g->stamp_ns);
	hand_on_pieces(s, f, side, g->stamp_ns);
}

/* Either side's end, once all bytes before it have been delivered. */
static void take_ends(struct streams *s, struct flow *f, int64_t stamp_ns)
{
	struct half *client = &f->half[SIDE_CLIENT], *server = &f->half[SIDE_SERVER];

	if (client->has_fin && client->next == client->fin && !server->has_fin)
		f->is_client_gone = true;
	if (f->state == FLOW_OPEN && server->has_fin && server->next == server->fin) {
		end_flow(s, f, f->is_client_gone ? STREAM_ABANDONED : STREAM_CLOSED, stamp_ns);
		f->is_over = true;
	}
}

/* Acknowledged bytes were received: those that were not seen are missing. */
static bool is_hole(const struct flow *f, enum stream_side from, const struct segment *g)
{
	const struct half *h = &f->half[!from];
	uint32_t end = h->has_fin && h->next == h->fin ? h->next + 1 : h->next;

	return g->flags & FLAG_ACK && after(end, g->ack) > 0 && after(end, g->ack) < WINDOW_MAX;
}

static void take_open(struct streams *s, struct flow *f, enum stream_side side,
		      const struct segment *g)
{
	struct half *h = &f->half[side];

	if (g->flags & FLAG_FIN && !h->has_fin) {
		h->has_fin = true;
		h->fin = g->seq + (uint32_t)(g->data.n + g->missing);
	}
	if (is_hole(f, side, g)) {
		lose(s, f, g->stamp_ns);
		return;
	}
	take_data(s, f, side, g);
	if (f->state == FLOW_OPEN)
		take_ends(s, f, g->stamp_ns);
}

/* The next request after a hole, or of a connection that was open before. */
static void join(struct streams *s, struct flow *f, const struct segment *g)
{
	if (f->was_open && after(f->half[SIDE_CLIENT].next, g->seq) < 0)
		return; /* sent again: its answer has begun elsewhere */
	s->stats.joined++;
	open_flow(s, f, g->seq, g->ack, 0);
}

/* ---- connections ---- */

static bool is_port(const struct streams *s, uint16_t port)
{
	for (unsigned i = 0; i < s->filter.n_ports; i++)
		if (s->filter.port[i] == port)
			return true;
	return false;
}

static bool is_server(const struct streams *s, const struct stream_peer *p)
{
	const struct stream_peer *host = &s->filter.host;

	return is_port(s, p->port) &&
	       (!s->filter.has_host || (p->is_ipv6 == host->is_ipv6 &&
					memcmp(p->addr, host->addr, sizeof(p->addr)) == 0));
}

/* Who sends. False: no connection to a server that is watched. */
static bool find_side(const struct streams *s, const struct segment *g, enum stream_side *side)
{
	bool is_to = is_server(s, &g->to), is_from = is_server(s, &g->from);

	*side = is_to ? SIDE_CLIENT : SIDE_SERVER;
	if (is_to && is_from && /* two servers that talk to each other */
	    (find(s, &g->to, &g->from) || (g->flags & (FLAG_SYN | FLAG_ACK)) ==
	     (FLAG_SYN | FLAG_ACK)))
		*side = SIDE_SERVER;
	return is_to || is_from;
}

static void take_syn(struct streams *s, struct flow *f, enum stream_side side,
		     const struct segment *g)
{
	const struct stream_peer *client = side == SIDE_CLIENT ? &g->from : &g->to;
	const struct stream_peer *server = side == SIDE_CLIENT ? &g->to : &g->from;

	if (side == SIDE_SERVER) {
		if (!(g->flags & FLAG_ACK) || (f && f->state != FLOW_NEW))
			return;
		f = f ? f : add_flow(s, client, server, g->stamp_ns);
		if (!f)
			return;
		s->stats.connections++;
		f->seen_ns = g->stamp_ns;
		open_flow(s, f, g->ack, g->seq + 1, g->stamp_ns);
		return;
	}
	if (f && f->state == FLOW_NEW)
		return; /* sent again: connecting began with the first */
	if (f) { /* its ports are used again */
		if (f->state == FLOW_OPEN && f->half[SIDE_CLIENT].next == g->seq + 1)
			return;
		end_flow(s, f, STREAM_LOST, g->stamp_ns);
		forget(s, f);
	}
	f = add_flow(s, client, server, g->stamp_ns);
	if (!f)
		return;
	f->connect_ns = f->seen_ns = g->stamp_ns;
}

static void take_reset(struct streams *s, struct flow *f, enum stream_side side, int64_t stamp_ns)
{
	end_flow(s, f, side == SIDE_CLIENT || f->is_client_gone ? STREAM_ABANDONED : STREAM_RESET,
		 stamp_ns);
	forget(s, f);
}

void streams_packet(struct streams *s, struct str packet, size_t wire_bytes, int64_t stamp_ns)
{
	enum stream_side side;
	struct segment g;
	struct flow *f;

	if (!read_segment(packet, wire_bytes, stamp_ns, &g) || !find_side(s, &g, &side))
		return;
	s->stats.packets++;
	s->stats.cut_packets += g.missing > 0;
	f = side == SIDE_CLIENT ? find(s, &g.from, &g.to) : find(s, &g.to, &g.from);
	if (f && stamp_ns < f->seen_ns) /* from another queue of the card */
		stamp_ns = g.stamp_ns = f->seen_ns;
	if (g.flags & FLAG_SYN) {
		take_syn(s, f, side, &g);
		return;
	}
	if (f && g.flags & FLAG_RST) {
		take_reset(s, f, side, stamp_ns);
		return;
	}
	if (f)
		f->seen_ns = stamp_ns;
	if (f && f->state == FLOW_OPEN)
		take_open(s, f, side, &g);
	/* Also the packet that shows a hole may be the next request. */
	if ((!f || f->state != FLOW_OPEN) && side == SIDE_CLIENT && g.data.n) {
		if (!begins_request(g.data)) {
			note_protocol(s, g.data);
			return;
		}
		f = f ? f : add_flow(s, &g.from, &g.to, stamp_ns);
		if (!f)
			return;
		f->seen_ns = stamp_ns;
		join(s, f, &g);
		if (f->state == FLOW_OPEN)
			take_open(s, f, side, &g);
	}
	if (f && f->is_over)
		forget(s, f);
}

/* ---- the whole ---- */

struct streams *streams_new(const struct stream_filter *filter, const struct stream_hooks *hooks)
{
	struct streams *s = mem_alloc(sizeof(*s));

	assert(filter->n_ports > 0 && filter->n_ports <= TAP_PORTS_MAX);
	s->filter = *filter;
	s->hooks = *hooks;
	return s;
}

void streams_finish(struct streams *s)
{
	for (size_t i = 0; i < BUCKETS; i++)
		while (s->bucket[i]) {
			end_flow(s, s->bucket[i], STREAM_CUT, s->bucket[i]->seen_ns);
			forget(s, s->bucket[i]);
		}
}

void streams_free(struct streams *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (s->bucket[i])
			forget(s, s->bucket[i]);
	free(s);
}

const struct stream_stats *streams_stats(const struct streams *s)
{
	return &s->stats;
}
