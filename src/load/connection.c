/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.c - the life of one connection of the native transport; see
 * native.h for the states.
 *
 * A server may close a kept connection at any moment. When that crosses with a
 * request and not one byte of an answer came, the request is written once more
 * on another connection and counted as a retry; in every other case the loss of
 * a connection is the request's failure.
 */
#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/trace.h"
#include "load/native.h"

#define ATTEMPTS_MAX 8

static void list_add(struct connection_list *l, struct connection *c)
{
	assert(!c->list);
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

void connection_list_drop(struct connection *c)
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
	connection_list_drop(c);
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
	assert(!c->x);
	connection_list_drop(c);
	if (c->watch.fd >= 0) {
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

static void receive(struct connection *c);

/* 1: all gone, 0: the socket is full, -1: failed (the connection is gone). */
static int flush_secure(struct connection *c)
{
	struct secure *s = c->secure;

	while (s->out_at < s->out.len) {
		ssize_t n = sock_send(c->watch.fd, (struct str){ s->out.data + s->out_at,
								 s->out.len - s->out_at });

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0) {
			fail_errno(c, FAIL_RESET, "connection lost while sending to", errno);
			return -1;
		}
		s->out_at += (size_t)n;
	}
	buf_reset(&s->out);
	s->out_at = 0;
	return 1;
}

static int flush_plain(struct connection *c)
{
	struct exchange *x = c->x;

	while (c->sent < x->request.n) {
		struct str left = { x->request.p + c->sent, x->request.n - c->sent };
		ssize_t n = sock_send(c->watch.fd, left);

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0) {
			/* A server that refuses early may have said why before it closed. */
			c->state = CONNECTION_READING;
			receive(c);
			if (c->x == x && c->state == CONNECTION_READING)
				fail_errno(c, FAIL_RESET, "connection lost while sending to",
					   EPIPE);
			return -1;
		}
		c->sent += (size_t)n;
	}
	return 1;
}

static void continue_sending(struct connection *c)
{
	int done = c->secure ? flush_secure(c) : flush_plain(c);

	if (done < 0)
		return;
	if (done == 0) {
		want(c, EPOLLIN | EPOLLOUT);
		return;
	}
	c->state = CONNECTION_READING;
	want(c, EPOLLIN);
	c->x->sink->on_sent(c->x, clock_real_ns());
}

void connection_send(struct connection *c, struct exchange *x)
{
	struct native *n = c->net;
	struct err e;

	c->x = x;
	c->state = CONNECTION_SENDING;
	c->sent = 0;
	c->has_answer = false;
	c->response = (struct http_response){ 0 };
	x->connection = c;
	x->attempts++;
	move_to(c, &n->active, n->opts.request_timeout_ns);
	x->sink->on_send(x, clock_real_ns());
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
	connection_list_drop(c);
	list_add(&c->net->site[c->site].idle, c);
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
	if (found != HTTP_HEAD)
		return;
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

	TRACE(net, "fd %d: answer complete, %u bytes\n", c->watch.fd, x->bytes_in);
	c->x = NULL;
	if (c->response.is_keep_alive && !has_more && c->state == CONNECTION_READING &&
	    (!keep || n->site[c->site].idle.n < keep))
		idle(c);
	else
		connection_close(c);
	x->connection = NULL;
	x->sink->on_end(x, FAIL_NONE, "", end_ns);
}

/* Decodes bytes of the answer. False when the connection was finished or failed. */
static bool feed(struct connection *c, struct str in, int64_t kernel_ns, int64_t user_ns)
{
	const struct exchange_sink *sink = c->x->sink;
	bool is_carried = c->carry.len > 0;
	struct str part;
	struct err e;

	c->x->bytes_in += (uint32_t)in.n;
	c->has_answer = true;
	if (is_carried) {
		buf_add_str(&c->carry, in);
		in = buf_str(&c->carry);
	}
	for (;;) {
		switch (http_response_next(&c->response, &in, &part, &e)) {
		case HTTP_HEAD:
			sink->on_head(c->x, c->response.status, c->response.is_event_stream, part,
				      kernel_ns, user_ns);
			break;
		case HTTP_BODY:
			sink->on_body(c->x, part, kernel_ns, user_ns);
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
	if (s->out.len && flush_secure(c) < 0)
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

static void receive(struct connection *c)
{
	struct native *n = c->net;

	for (;;) {
		int64_t kernel_ns, user_ns;
		ssize_t got = sock_recv(c->watch.fd, n->read, sizeof(n->read), &kernel_ns);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			at_eof(c, got < 0 ? errno : 0);
			return;
		}
		user_ns = clock_real_ns();
		n->stats.reads++;
		if (kernel_ns == 0)
			n->stats.reads_without_stamp++;
		if (!take(c, (struct str){ n->read, (size_t)got }, kernel_ns, user_ns))
			return;
		if ((size_t)got < sizeof(n->read))
			return;
	}
}

/*
 * Nobody asked anything, yet there is something to read. TLS may send session
 * tickets; everything else is the server closing, or talking out of turn.
 */
static bool is_housekeeping(struct connection *c)
{
	struct native *n = c->net;
	struct err ignored;
	int64_t stamp_ns;
	ssize_t got = sock_recv(c->watch.fd, n->read, sizeof(n->read), &stamp_ns);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (got <= 0 || !c->secure)
		return false;
	buf_reset(&n->plain);
	return tls_read(c->secure->tls, (struct str){ n->read, (size_t)got }, &n->plain,
			&c->secure->out, &ignored) == 1 && n->plain.len == 0 &&
	       c->secure->out.len == 0;
}

/* ---- readiness ---- */

/* Connects to the address at addr_at and watches the socket; false with e when it cannot. */
static bool try_address(struct connection *c, struct err *e)
{
	struct native *n = c->net;

	c->watch.fd = sock_connect(&n->site[c->site].addr[c->addr_at], n->opts.is_stamped, e);
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
	const struct site *s = &n->site[c->site];
	struct err e;

	loop_unwatch(n->loop, &c->watch);
	sock_close(c->watch.fd);
	c->watch.fd = -1;
	move_to(c, &n->connecting, n->opts.connect_timeout_ns / s->n_addr);
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

	if (c->state == CONNECTION_CONNECTING) {
		int error = sock_connect_result(w->fd);

		if (error)
			connection_try_next(c, error);
		else if (events & EPOLLOUT)
			connected(c);
		return;
	}
	if (c->state == CONNECTION_IDLE) {
		if (!is_housekeeping(c)) {
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
	const struct site *s = &n->site[site];
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
	move_to(c, &n->connecting, n->opts.connect_timeout_ns / s->n_addr);
	n->stats.connects++;
	while (!try_address(c, &e)) {
		int error = errno;

		if (++c->addr_at < s->n_addr)
			continue;
		if (error == EADDRNOTAVAIL)
			err_set(&e, ERR_NET, "no local port is left for %s:%u: about 28,000 "
				"connections fit one server address "
				"(net.ipv4.ip_local_port_range); lower --max-concurrency", s->host,
				s->port);
		connection_fail(c, FAIL_CONNECT, e.text);
		return;
	}
	if (c->is_up)
		connected(c);
}
