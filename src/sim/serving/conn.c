/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.c - connections: bytes in to complete requests, bytes out without ever blocking, TLS in
 * between, and closing at a safe place.
 *
 * Reading continues while an answer is being sent, because that is how a client that leaves is
 * noticed; what arrives meanwhile waits in c->in.
 */
#include "sim/serving/serving.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

/* Larger buffers are freed once empty. */
#define KEEP_BYTES 16384
/* What a client may send ahead while its answer is in progress. */
#define AHEAD_BYTES_MAX (1u << 20)

/* New connections taken before others get their turn. */
#define ACCEPTS_MAX 64
/* How long accepting pauses when there are no descriptors left. */
#define ACCEPT_PAUSE_NS 50000000

/* ---- out ---- */

/* Passes plain or cipher bytes to the kernel; the rest is kept. */
static bool push(struct conn *c, struct str bytes)
{
	if (c->out.len == 0) {
		ssize_t n = sock_send(c->watch.fd, bytes);

		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			c->is_broken = true;
			return false;
		}
		if (n > 0)
			bytes = (struct str){ bytes.p + n, bytes.n - (size_t)n };
		if (bytes.n == 0)
			return true;
		loop_rewatch(c->sim->loop, &c->watch, EPOLLIN | EPOLLOUT);
	}
	buf_add_str(&c->out, bytes);
	c->is_broken |= c->out.is_over;
	return !c->is_broken;
}

bool conn_write(struct conn *c, struct str bytes)
{
	struct buf cipher = { 0 };
	bool is_well;

	if (c->is_broken)
		return false;
	if (!c->tls)
		return push(c, bytes);
	is_well = tls_write(c->tls, bytes, &cipher, NULL) == 0 && push(c, buf_str(&cipher));
	buf_release(&cipher);
	c->is_broken |= !is_well;
	return is_well;
}

static void conn_drain(struct conn *c)
{
	ssize_t n = sock_send(c->watch.fd, buf_str(&c->out));

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		c->is_broken = true;
		return;
	}
	if (n > 0)
		buf_cut(&c->out, (size_t)n);
	if (c->out.len == 0) {
		buf_release(&c->out);
		loop_rewatch(c->sim->loop, &c->watch, EPOLLIN);
	}
}

void conn_reset(struct conn *c)
{
	c->is_broken = c->is_reset = true;
}

void conn_drop(struct conn *c)
{
	/* The peer gets what was sent so far, then the end of the stream. */
	c->is_broken = true;
}

/* Whether an answer is in progress. */
static bool is_busy(const struct conn *c)
{
	return c->stream.is_active || c->forward;
}

void conn_abort(struct conn *c)
{
	stream_abort(c);
	proxy_abort(c);
}

/* ---- requests ---- */

static void conn_refuse(struct conn *c, unsigned status, const char *message)
{
	c->is_last = true;
	buf_reset(&c->in);
	route_error(c, status, NULL, message);
}

static void request_begin(struct conn *c, struct str head)
{
	buf_reset(&c->head);
	buf_reset(&c->body);
	buf_add_str(&c->head, head);
	c->has_head = true;
	c->request.method.p = c->head.data + (c->request.method.p - head.p);
	c->request.target.p = c->head.data + (c->request.target.p - head.p);
	if (c->request.is_continue_wanted)
		conn_write(c, STR(HTTP_CONTINUE));
}

static void request_end(struct conn *c)
{
	c->has_head = false;
	c->is_last = !c->request.is_keep_alive;
	route_serve(c, buf_str(&c->body));
	if (c->body.cap > KEEP_BYTES)
		buf_release(&c->body);
}

/* Takes requests from the front of *in, as long as none is being answered. */
static void requests_take(struct conn *c, struct str *in)
{
	struct str part;
	struct err e = { 0 };

	while (!is_busy(c) && !c->is_last && !c->is_broken) {
		switch (http_request_next(&c->request, in, &part, &e)) {
		case HTTP_NEED:
			return;
		case HTTP_HEAD:
			request_begin(c, part);
			break;
		case HTTP_BODY:
			buf_add_str(&c->body, part);
			if (c->body.len > HTTP_BODY_BYTES_MAX) {
				conn_refuse(c, 413, "the request body is too large");
				return;
			}
			break;
		case HTTP_END:
			request_end(c);
			break;
		case HTTP_BAD:
			conn_refuse(c, c->request.bad_status, e.text);
			return;
		}
	}
}

/* Plain bytes arrived, or an answer ended while some were waiting. */
static void conn_input(struct conn *c, struct str bytes)
{
	struct str in = bytes;

	if (c->in.len) {
		buf_add_str(&c->in, bytes);
		in = buf_str(&c->in);
	}
	requests_take(c, &in);
	if (c->in.len) {
		buf_cut(&c->in, c->in.len - in.n);
		if (c->in.len == 0 && c->in.cap > KEEP_BYTES)
			buf_release(&c->in);
	} else {
		buf_add_str(&c->in, in);
	}
	if (c->in.len > AHEAD_BYTES_MAX)
		c->is_broken = true;
}

static void tls_input(struct conn *c, struct str bytes)
{
	struct sim *s = c->sim;
	struct buf cipher = { 0 };
	bool is_open = true;

	buf_reset(&s->plain);
	if (!c->is_shaken) {
		int state = tls_handshake(c->tls, bytes, &cipher, NULL);

		c->is_shaken = state == 1;
		is_open = state >= 0;
		bytes = (struct str){ 0 };
	}
	if (c->is_shaken)
		is_open = tls_read(c->tls, bytes, &s->plain, &cipher, NULL) == 1;
	if (cipher.len)
		push(c, buf_str(&cipher));
	buf_release(&cipher);
	if (s->plain.len)
		conn_input(c, buf_str(&s->plain));
	c->is_broken |= !is_open;
}

/* ---- entries from the loop ---- */

static void conn_read(struct conn *c)
{
	struct sim *s = c->sim;
	int64_t stamp = 0;
	ssize_t n = sock_recv(c->watch.fd, s->read, READ_BYTES, &stamp);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		c->is_broken = true;
		return;
	}
	c->recv_ns = stamp ? stamp : clock_real_ns();
	if (c->tls)
		tls_input(c, (struct str){ s->read, (size_t)n });
	else
		conn_input(c, (struct str){ s->read, (size_t)n });
}

static void conn_on_ready(struct watch *w, uint32_t events)
{
	struct conn *c = (struct conn *)((char *)w - offsetof(struct conn, watch));

	if (events & EPOLLOUT)
		conn_drain(c);
	if (!c->is_broken && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		conn_read(c);
	conn_settle(c);
}

static void conn_on_idle(struct timer *t)
{
	struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, idle));

	c->is_broken = true;
	conn_settle(c);
}

static void idle_arm(struct conn *c)
{
	struct sim *s = c->sim;

	if (s->opts->keep_alive_ms == 0)
		return;
	if (is_busy(c) || c->has_head || c->in.len)
		loop_timer_cancel(s->loop, &c->idle);
	else
		loop_timer_set(s->loop, &c->idle,
			       clock_mono_ns() + s->opts->keep_alive_ms * 1000000);
}

void conn_settle(struct conn *c)
{
	if (!is_busy(c) && c->in.len && !c->is_broken && !c->is_last)
		conn_input(c, (struct str){ 0 });
	if (c->is_last && !is_busy(c) && c->out.len == 0)
		c->is_broken = true;
	if (c->is_broken) {
		conn_abort(c);
		conn_free(c);
		return;
	}
	idle_arm(c);
}

static void conn_open(struct sim *s, int fd)
{
	struct conn *c = mem_alloc(sizeof(*c));

	*c = (struct conn){ .sim = s, .next = s->conns, .idle.on_time = conn_on_idle,
			    .watch = { .fd = fd, .events = EPOLLIN, .on_ready = conn_on_ready } };
	if (s->conns)
		s->conns->prev = c;
	s->conns = c;
	s->conn_count++;
	if (s->tls)
		c->tls = tls_new(s->tls, NULL, NULL);
	if ((s->tls && !c->tls) || loop_watch(s->loop, &c->watch, NULL) < 0) {
		c->watch.events = 0; /* not watched */
		conn_free(c);
		return;
	}
	idle_arm(c);
}

void conn_accept(struct watch *listener, uint32_t events)
{
	struct sim *s = (struct sim *)((char *)listener - offsetof(struct sim, listener));

	(void)events;
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = sock_accept(listener->fd, true);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
			/* Without this the waiting connection would wake us for ever. */
			loop_rewatch(s->loop, listener, 0);
			loop_timer_set(s->loop, &s->accept_again,
				       clock_mono_ns() + ACCEPT_PAUSE_NS);
		}
		if (fd < 0)
			return;
		conn_open(s, fd);
	}
}

void conn_accept_again(struct timer *t)
{
	struct sim *s = (struct sim *)((char *)t - offsetof(struct sim, accept_again));

	loop_rewatch(s->loop, &s->listener, EPOLLIN);
}

void conn_free(struct conn *c)
{
	struct sim *s = c->sim;

	assert(!is_busy(c));
	loop_timer_cancel(s->loop, &c->idle);
	if (c->watch.events)
		loop_unwatch(s->loop, &c->watch);
	if (c->is_reset)
		sock_reset(c->watch.fd);
	else
		sock_close(c->watch.fd);
	if (c->prev)
		c->prev->next = c->next;
	else
		s->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	s->conn_count--;
	tls_free(c->tls);
	stream_release(&c->stream);
	buf_release(&c->in);
	buf_release(&c->out);
	buf_release(&c->head);
	buf_release(&c->body);
	free(c);
}
