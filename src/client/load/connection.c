/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.c - the life of one connection of the native transport; see native.h for the states.
 *
 * A server may close a kept connection at any moment. What it sent before the request was written
 * cannot be the request's answer, so an idle connection is checked before it is used again, and
 * closed if anything is waiting there. If the close crosses with the request (no byte of an answer
 * came, or 408 with Connection: close, which servers send to idle connections), the request is
 * written once more on a new connection and counted as a retry; in every other case the loss of a
 * connection is the request's failure.
 *
 * Re-entrancy: the sink may start and cancel exchanges, including its own, from inside its
 * callbacks. Such a call only writes, closes and opens; it never reads an answer, because the read
 * buffer and the decrypted bytes belong to the one receive() in progress (asserted). After each
 * callback the caller checks whether the connection still has its exchange; a closed connection
 * stays allocated until the round ends.
 */
#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>

#include "client/load/native.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#define ATTEMPTS_MAX 8
#define HTTP_REQUEST_TIMEOUT 408
#define IDLE_READ_BYTES 4096 /* of a kept connection: TLS session tickets, rarely anything else */
#define IDLE_READS_MAX 16    /* reads in a row; beyond that the server is not quiet */

static void list_add(struct connection_list *l, struct connection *c)
{
	assert(!c->list);
	assert(!l->last || l->last->deadline_ns <= c->deadline_ns); /* only heads can be late */
	c->list = l;
	c->prev = l->last;
	c->next = NULL;
	if (l->last)
		l->last->next = c;
	else
		l->first = c;
	l->last = c;
	l->n++;
}

static void list_drop(struct connection *c)
{
	struct connection_list *l = c->list;

	if (!l)
		return;
	if (c->prev)
		c->prev->next = c->next;
	else
		l->first = c->next;
	if (c->next)
		c->next->prev = c->prev;
	else
		l->last = c->prev;
	l->n--;
	c->list = NULL;
}

static void move_to(struct connection *c, struct connection_list *l, int64_t timeout_ns)
{
	list_drop(c);
	c->deadline_ns = timeout_ns ? loop_now_ns(c->net->loop) + timeout_ns : INT64_MAX;
	list_add(l, c);
}

static void want(struct connection *c, uint32_t events)
{
	if (c->watch.events != events)
		loop_rewatch(c->net->loop, &c->watch, events);
}

void connection_close(struct connection *c)
{
	assert(!c->x && c->state != CONNECTION_CLOSED);
	list_drop(c);
	c->net->n_open--;
	tap_forget(c->net->opts.tap, &c->arrivals);
	if (c->watch.fd >= 0) {
		struct sock_path path = sock_path(c->watch.fd);

		c->net->stats.resent += path.resent;
		c->net->stats.out_of_order += path.out_of_order;
		c->net->stats.round_trips += path.round_trip_ns > 0;
		c->net->stats.round_trip_ns += path.round_trip_ns;
		loop_unwatch(c->net->loop, &c->watch);
		sock_close(c->watch.fd);
	}
	if (c->secure) {
		tls_free(c->secure->tls);
		buf_release(&c->secure->out);
		free(c->secure);
	}
	buf_release(&c->carry);
	c->secure = NULL;
	c->state = CONNECTION_CLOSED;
	c->next = c->net->dead; /* its callers may still look at it in this round */
	c->net->dead = c;
}

void connection_fail(struct connection *c, enum fail_category category, const char *text)
{
	struct native *n = c->net;
	struct exchange *x = c->x;
	bool is_stale = c->is_reused && !c->has_answer &&
			(category == FAIL_RESET || category == FAIL_TRUNCATED);
	bool was_warming = !x && c->state < CONNECTION_IDLE;
	uint16_t site = c->site;

	TRACE(net, "fd %d: %s (%s)\n", c->watch.fd, text, fail_name(category));
	c->x = NULL;
	if (was_warming) {
		n->n_warming--;
		err_set(&n->warm_error, ERR_NET, "%s", text);
	}
	connection_close(c);
	if (!x)
		return;
	if (is_stale && x->attempts < ATTEMPTS_MAX) {
		n->stats.retries++;
		x->bytes_in = 0;
		connection_open(n, site, x);
		return;
	}
	if (category == FAIL_CONNECT || category == FAIL_TLS)
		n->stats.connect_failures++;
	x->connection = NULL;
	x->sink->on_end(x, category, text, clock_real_ns());
}

static void fail_errno(struct connection *c, enum fail_category category, const char *what,
		       int error)
{
	const struct site *s = &c->net->site[c->site];
	struct err e;
	char addr[128];

	sock_addr_text(&s->addr[c->addr_at < s->n_addr ? c->addr_at : 0], addr, sizeof(addr));
	err_set(&e, ERR_NET, "%s %s: %s", what, addr, strerror(error));
	connection_fail(c, category, e.text);
}

/* ---- sending ---- */

/* 1: everything is with the kernel, 0: the socket is full, -1: failed, with errno. */
static int send_rest(struct connection *c, struct str all, size_t *sent)
{
	while (*sent < all.n) {
		ssize_t n = sock_send(c->watch.fd, (struct str){ all.p + *sent, all.n - *sent });

		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		*sent += (size_t)n;
	}
	return 1;
}

static int send_secure(struct connection *c)
{
	struct secure *s = c->secure;
	int done = send_rest(c, buf_str(&s->out), &s->out_at);

	if (done > 0) {
		buf_reset(&s->out);
		s->out_at = 0;
	}
	return done;
}

/* The same, but a socket failure ends the connection. */
static int flush_secure(struct connection *c)
{
	int done = send_secure(c);

	if (done < 0)
		fail_errno(c, FAIL_RESET, "connection lost while sending to", errno);
	return done;
}

static void continue_sending(struct connection *c)
{
	int done = c->secure ? send_secure(c) : send_rest(c, c->x->request, &c->sent);

	assert(c->state == CONNECTION_SENDING);
	if (done == 0) {
		want(c, EPOLLIN | EPOLLOUT);
		return;
	}
	if (done < 0 && errno != EPIPE && errno != ECONNRESET) {
		fail_errno(c, FAIL_RESET, "connection lost while sending to", errno);
		return;
	}
	c->state = CONNECTION_READING;
	want(c, EPOLLIN);
	/* A server that refuses early may have sent the reason before it closed. */
	c->is_cut_short = done < 0;
	if (!c->is_cut_short)
		c->x->sink->on_sent(c->x, clock_real_ns());
}

void connection_send(struct connection *c, struct exchange *x)
{
	struct native *n = c->net;
	struct err e;

	assert(!c->x && c->state != CONNECTION_SENDING && c->state != CONNECTION_READING &&
	       c->state != CONNECTION_CLOSED);
	c->x = x;
	c->state = CONNECTION_SENDING;
	c->sent = 0;
	c->has_answer = c->is_cut_short = false;
	c->response = (struct http_response){ 0 };
	x->connection = c;
	x->attempts++;
	move_to(c, &n->active, n->opts.request_timeout_ns);
	x->sink->on_send(x, clock_real_ns());
	if (c->x != x)
		return; /* cancelled */
	if (c->secure && tls_write(c->secure->tls, x->request, &c->secure->out, &e) < 0) {
		connection_fail(c, FAIL_TLS, e.text);
		return;
	}
	continue_sending(c);
}

/* ---- becoming usable ---- */

static void idle(struct connection *c)
{
	c->state = CONNECTION_IDLE;
	want(c, EPOLLIN);
	move_to(c, &c->net->site[c->site].idle, 0);
}

static void usable(struct connection *c)
{
	struct exchange *x = c->x;

	TRACE(net, "fd %d: usable\n", c->watch.fd);
	if (!x) {
		c->net->n_warming--;
		idle(c);
		return;
	}
	x->connected_ns = clock_real_ns();
	c->x = NULL;
	connection_send(c, x);
}

static void handshake(struct connection *c, struct str in)
{
	struct err e;
	int done = tls_handshake(c->secure->tls, in, &c->secure->out, &e);

	if (done < 0) {
		(void)sock_send(c->watch.fd, buf_str(&c->secure->out)); /* the alert */
		connection_fail(c, FAIL_TLS, e.text);
		return;
	}
	if (flush_secure(c) < 0)
		return;
	want(c, c->secure->out.len ? EPOLLIN | EPOLLOUT : EPOLLIN);
	if (done)
		usable(c);
}

static void start_tls(struct connection *c)
{
	struct native *n = c->net;
	struct err e;

	if (!c->secure)
		c->secure = mem_alloc(sizeof(*c->secure));
	c->secure->tls = tls_new(n->tls, n->site[c->site].host, &e);
	if (!c->secure->tls) {
		connection_fail(c, FAIL_TLS, e.text);
		return;
	}
	c->state = CONNECTION_HANDSHAKE;
	handshake(c, (struct str){ 0 });
}

static void ask_proxy(struct connection *c)
{
	const struct site *s = &c->net->site[c->site];
	const char *open = strchr(s->host, ':') ? "[" : "", *close = *open ? "]" : "";

	c->secure = mem_alloc(sizeof(*c->secure));
	buf_printf(&c->secure->out, "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n\r\n", open,
		   s->host, close, s->port, open, s->host, close, s->port);
	c->state = CONNECTION_PROXY;
	c->response = (struct http_response){ .is_connect_request = true };
	if (flush_secure(c) >= 0)
		want(c, c->secure->out.len ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void read_proxy(struct connection *c, struct str in)
{
	enum http_found found;
	struct str part;
	struct err e;

	buf_add_str(&c->carry, in);
	in = buf_str(&c->carry);
	found = http_response_next(&c->response, &in, &part, &e);
	if (found == HTTP_BAD) {
		connection_fail(c, FAIL_CONNECT, "the proxy's answer to CONNECT is not HTTP");
		return;
	}
	if (found != HTTP_HEAD) {
		buf_cut(&c->carry, c->carry.len - in.n);
		return;
	}
	if (c->response.status / 100 != 2) {
		err_set(&e, ERR_NET, "the proxy refused CONNECT with status %u",
			c->response.status);
		connection_fail(c, FAIL_CONNECT, e.text);
		return;
	}
	buf_reset(&c->carry);
	start_tls(c);
}

static void connected(struct connection *c)
{
	const struct site *s = &c->net->site[c->site];

	if (c->net->opts.tap)
		tap_follow(c->net->opts.tap, &c->arrivals, c->watch.fd);
	if (s->is_tunnel)
		ask_proxy(c);
	else if (s->is_tls)
		start_tls(c);
	else
		usable(c);
}

/* ---- receiving ---- */

/* The answer is complete. The connection is kept when both sides allow it. */
static void finish(struct connection *c, bool has_more, int64_t end_ns)
{
	struct native *n = c->net;
	struct exchange *x = c->x;
	unsigned keep = n->opts.connections_max;

	TRACE(net, "fd %d: answer complete, %llu bytes\n", c->watch.fd,
	      (unsigned long long)x->bytes_in);
	c->x = NULL;
	if (c->response.is_keep_alive && !has_more && !n->unfed && c->state == CONNECTION_READING &&
	    !c->is_cut_short && (!keep || n->site[c->site].idle.n < keep))
		idle(c);
	else
		connection_close(c);
	x->connection = NULL;
	x->sink->on_end(x, FAIL_NONE, "", end_ns);
}

/* A message to a connection that was idle too long, not to the request that crossed it. */
static bool is_idle_timeout(const struct connection *c)
{
	return c->is_reused && c->response.status == HTTP_REQUEST_TIMEOUT &&
	       !c->response.is_keep_alive;
}

/* Decodes bytes of the answer. False when the connection has no exchange any more. */
static bool feed(struct connection *c, struct str in, int64_t kernel_ns, int64_t user_ns)
{
	struct exchange *x = c->x;
	bool is_carried = c->carry.len > 0;
	struct str part;
	struct err e;

	x->bytes_in += in.n;
	c->has_answer = true;
	if (x->bytes_in > ANSWER_WIRE_BYTES_MAX) { /* no sink sees framing */
		err_set(&e, ERR_LIMIT, "the answer exceeds the limit of %llu MiB",
			ANSWER_WIRE_BYTES_MAX >> 20);
		connection_fail(c, FAIL_LIMIT, e.text);
		return false;
	}
	if (is_carried) {
		buf_add_str(&c->carry, in);
		in = buf_str(&c->carry);
	}
	while (c->x == x) {
		switch (http_response_next(&c->response, &in, &part, &e)) {
		case HTTP_HEAD:
			if (is_idle_timeout(c)) {
				c->has_answer = false;
				connection_fail(c, FAIL_RESET, "the server closed an idle connection");
				return false;
			}
			x->sink->on_head(x, c->response.status, c->response.is_event_stream, part,
					 kernel_ns, user_ns);
			break;
		case HTTP_BODY:
			x->sink->on_body(x, part, kernel_ns, user_ns);
			break;
		case HTTP_END:
			if (is_carried)
				buf_reset(&c->carry);
			finish(c, in.n > 0, user_ns);
			return false;
		case HTTP_BAD:
			connection_fail(c, FAIL_PROTOCOL, e.text);
			return false;
		case HTTP_NEED:
			if (is_carried)
				buf_cut(&c->carry, c->carry.len - in.n);
			else if (in.n)
				buf_add_str(&c->carry, in);
			return true;
		}
	}
	return false;
}

static bool decrypt(struct connection *c, struct str in, int64_t kernel_ns, int64_t user_ns)
{
	struct native *n = c->net;
	struct secure *s = c->secure;
	struct err e;
	int open;

	buf_reset(&n->plain);
	open = tls_read(s->tls, in, &n->plain, &s->out, &e);
	if (open < 0) {
		connection_fail(c, FAIL_TLS, e.text);
		return false;
	}
	if (s->out.len && !c->is_cut_short && flush_secure(c) < 0)
		return false;
	if (n->plain.len && !feed(c, buf_str(&n->plain), kernel_ns, user_ns))
		return false;
	return true;
}

static void at_eof(struct connection *c, int error)
{
	struct err e;

	if (c->state < CONNECTION_IDLE) {
		connection_fail(c, c->state == CONNECTION_HANDSHAKE ? FAIL_TLS : FAIL_CONNECT,
				c->state == CONNECTION_HANDSHAKE
				? "the server closed the connection during the TLS handshake"
				: "the connection was closed before it could be used");
	} else if (c->has_answer && !error && http_response_eof(&c->response, &e) == 0) {
		c->response.is_keep_alive = false;
		finish(c, false, clock_real_ns());
	} else if (error) {
		fail_errno(c, FAIL_RESET, "connection lost while reading from", error);
	} else {
		connection_fail(c, c->has_answer ? FAIL_TRUNCATED : FAIL_RESET, c->has_answer
				? "the server closed the connection before the answer was complete"
				: "the server closed the connection without an answer");
	}
}

/* One read's bytes. False when the connection is gone or idle. */
static bool take(struct connection *c, struct str in, int64_t kernel_ns, int64_t user_ns)
{
	switch (c->state) {
	case CONNECTION_PROXY:
		read_proxy(c, in);
		return c->state == CONNECTION_PROXY;
	case CONNECTION_HANDSHAKE:
		handshake(c, in);
		return c->state == CONNECTION_HANDSHAKE || c->state == CONNECTION_READING;
	default:
		return c->secure ? decrypt(c, in, kernel_ns, user_ns)
				 : feed(c, in, kernel_ns, user_ns);
	}
}

/*
 * Hands one read on, cut where the segments end that brought it, each part with its own stamp. What
 * comes before there is a request to answer is handed on in one piece: its stamps do not matter.
 */
static bool take_read(struct connection *c, struct str in, int64_t kernel_ns, int64_t user_ns)
{
	struct native *n = c->net;
	bool is_open = true;

	while (is_open && in.n) {
		struct str part = in;
		int64_t part_ns = kernel_ns;
		bool is_known = false;

		if (c->arrivals.is_followed && c->state > CONNECTION_IDLE)
			part.n = tap_take(n->opts.tap, &c->arrivals, in.n, kernel_ns, &part_ns,
					  &is_known);
		else
			tap_skip(n->opts.tap, &c->arrivals, in.n);
		if (c->x)
			c->x->is_segment_stamp = is_known;
		in.p += part.n;
		in.n -= part.n;
		n->unfed = in.n;
		is_open = take(c, part, part_ns, user_ns);
	}
	n->unfed = 0;
	return is_open;
}

/*
 * Reads a bounded amount: a server that sends faster than its answer is read must not delay timers,
 * deadlines and other connections. The loop returns for the rest.
 */
static void receive(struct connection *c)
{
	struct native *n = c->net;

	assert(!n->is_receiving);
	n->is_receiving = true;
	for (int reads = 0; reads < TURN_READS_MAX; reads++) {
		int64_t kernel_ns, user_ns;
		ssize_t got = sock_recv_last(c->watch.fd, n->read, sizeof(n->read), &kernel_ns,
					     &c->is_drained);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (got <= 0) {
			at_eof(c, got < 0 ? errno : 0);
			break;
		}
		user_ns = clock_real_ns();
		c->read_turn = n->turn;
		n->stats.reads++;
		if (kernel_ns == 0)
			n->stats.reads_without_stamp++;
		if (!take_read(c, (struct str){ n->read, (size_t)got }, kernel_ns, user_ns))
			break;
		if ((size_t)got < sizeof(n->read))
			break;
	}
	n->is_receiving = false;
}

bool connection_is_quiet(struct connection *c)
{
	struct buf plain = { 0 }; /* may be called while the client's own is being decoded */
	struct err ignored;
	char bytes[IDLE_READ_BYTES];
	int64_t stamp_ns;
	bool is_quiet = true;

	assert(c->state == CONNECTION_IDLE && !c->x);
	if (c->is_drained && c->net->turn - c->read_turn <= 1)
		return true; /* at most one other connection was processed since */
	for (int reads = 0; is_quiet; reads++) {
		ssize_t got = sock_recv(c->watch.fd, bytes, sizeof(bytes), &stamp_ns);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (got > 0)
			tap_skip(c->net->opts.tap, &c->arrivals, (size_t)got);
		is_quiet = got > 0 && reads < IDLE_READS_MAX && c->secure &&
			   tls_read(c->secure->tls, (struct str){ bytes, (size_t)got }, &plain,
				    &c->secure->out, &ignored) == 1 &&
			   plain.len == 0 && c->secure->out.len == 0;
	}
	buf_release(&plain);
	return is_quiet;
}

/* ---- readiness ---- */

/* The next of our own addresses that can reach a peer; NULL: any. */
static const struct sock_addr *next_own(struct native *n, const struct sock_addr *peer)
{
	for (unsigned i = 0; i < n->opts.n_own; i++) {
		const struct sock_addr *own = &n->opts.own[n->next_own++ % n->opts.n_own];

		if (own->any.sa_family == peer->any.sa_family)
			return own;
	}
	return NULL;
}

/* Connects to the address at addr_at and watches the socket; false with e when it cannot. */
static bool try_address(struct connection *c, struct err *e)
{
	struct native *n = c->net;
	const struct sock_addr *peer = &n->site[c->site].addr[c->addr_at];
	unsigned left = n->opts.n_own; /* addresses of ours that may have a port */

	do
		c->watch.fd = sock_connect_from(next_own(n, peer), peer, n->opts.is_stamped, e);
	while (c->watch.fd < 0 && errno == EADDRNOTAVAIL && left-- > 1);
	if (c->watch.fd < 0)
		return false;
	c->is_up = sock_is_connected(c->watch.fd);
	c->watch.events = c->is_up ? EPOLLIN : EPOLLIN | EPOLLOUT;
	if (loop_watch(n->loop, &c->watch, e) == 0)
		return true;
	sock_close(c->watch.fd);
	c->watch.fd = -1;
	return false;
}

void connection_try_next(struct connection *c, int error)
{
	struct native *n = c->net;
	struct site *s = &n->site[c->site];
	struct err e;

	loop_unwatch(n->loop, &c->watch);
	sock_close(c->watch.fd);
	c->watch.fd = -1;
	move_to(c, &s->connecting, n->opts.connect_timeout_ns / s->n_addr);
	for (c->addr_at++; c->addr_at < s->n_addr; c->addr_at++) {
		if (!try_address(c, &e))
			continue;
		if (c->is_up)
			connected(c);
		return;
	}
	c->addr_at = (uint8_t)(s->n_addr - 1);
	fail_errno(c, FAIL_CONNECT, "cannot connect to", error);
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct connection *c = (struct connection *)w;

	c->net->turn++;
	if (c->state == CONNECTION_CONNECTING) {
		int error = sock_connect_result(w->fd);

		if (error)
			connection_try_next(c, error);
		else if (events & EPOLLOUT)
			connected(c);
		return;
	}
	if (c->state == CONNECTION_IDLE) {
		c->is_drained = false;
		if (!connection_is_quiet(c)) {
			c->net->stats.stale_closed++;
			connection_close(c);
		}
		return;
	}
	if (events & EPOLLOUT) {
		if (c->state == CONNECTION_SENDING)
			continue_sending(c);
		else if (c->secure && flush_secure(c) == 1)
			want(c, EPOLLIN);
		if (c->state == CONNECTION_CLOSED)
			return;
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(c);
}

static struct connection *new_connection(struct native *n)
{
	struct connection *c = n->free;

	if (c)
		n->free = c->next;
	else
		c = slab_take(&n->connections, 1);
	return c;
}

void connection_open(struct native *n, uint16_t site, struct exchange *x)
{
	struct site *s = &n->site[site];
	struct connection *c = new_connection(n);
	struct err e = { 0 };

	assert(c); /* the slab reserves more than there can be descriptors */
	*c = (struct connection){ .net = n, .x = x, .site = site,
				  .watch = { -1, EPOLLIN | EPOLLOUT, on_ready },
				  .state = CONNECTION_CONNECTING };
	if (x) {
		x->connection = c;
		x->connect_ns = clock_real_ns();
		x->connected_ns = 0;
	} else {
		n->n_warming++;
	}
	move_to(c, &s->connecting, n->opts.connect_timeout_ns / s->n_addr);
	n->stats.connects++;
	if (++n->n_open > n->stats.connections_most)
		n->stats.connections_most = n->n_open;
	while (!try_address(c, &e)) {
		int error = errno;

		if (++c->addr_at < s->n_addr)
			continue;
		n->stats.no_ports += error == EADDRNOTAVAIL;
		n->stats.no_descriptors += error == EMFILE || error == ENFILE;
		if (error == EADDRNOTAVAIL)
			err_set(&e, ERR_NET, "no local port is left for %s:%u: about 28,000 "
				"connections fit one server address "
				"(net.ipv4.ip_local_port_range); lower --max-concurrency, or name "
				"more addresses of this machine with --source-addresses", s->host,
				s->port);
		connection_fail(c, FAIL_CONNECT, e.text);
		return;
	}
	if (c->is_up)
		connected(c);
}
