/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - see call.h. */
#include "sim/call.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/limits.h"
#include "http/url.h"

int peer_parse(struct peer *p, const char *option, const char *url, struct err *e)
{
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct str text = str_of(url);
	struct buf whole = { 0 };
	struct url u;
	int rc = -1;

	if (str_starts(text, STR("lm://")))
		buf_printf(&whole, "http://%s", url + 5);
	else
		buf_add_str(&whole, text);
	if (url_parse(buf_str(&whole), &u, e) < 0) {
		err_wrap(e, "%s", option);
	} else if (u.is_tls || u.is_unix || (u.path.n && !str_is(u.path, "/"))) {
		err_set(e, ERR_USAGE, "%s: expected http://HOST:PORT, got %.200s", option, url);
	} else if (sock_resolve(u.host, u.port, addr, e) < 0) {
		err_wrap(e, "%s", option);
	} else {
		p->addr = addr[0];
		snprintf(p->authority, sizeof(p->authority), strchr(u.host, ':') ? "[%s]:%u" : "%s:%u",
			 u.host, u.port);
		rc = 0;
	}
	buf_release(&whole);
	return rc;
}

void call_write_head(struct buf *out, struct str method, struct str target, const struct peer *to,
		     size_t body_bytes, const char *more)
{
	buf_printf(out, "%.*s %.*s HTTP/1.1\r\nHost: %s\r\n", (int)method.n, method.p,
		   (int)target.n, target.p, to->authority);
	if (body_bytes || !str_is(method, "GET"))
		buf_printf(out, "Content-Length: %zu\r\n", body_bytes);
	buf_printf(out, "%sConnection: close\r\n\r\n", more);
}

static void shut(struct call *c)
{
	if (!c->is_active)
		return;
	c->is_active = false;
	loop_timer_cancel(c->loop, &c->deadline);
	if (c->watch.fd >= 0) {
		loop_unwatch(c->loop, &c->watch);
		sock_close(c->watch.fd);
	}
	buf_release(&c->in);
	buf_release(&c->out);
}

void call_cancel(struct call *c)
{
	shut(c);
}

static void end(struct call *c, const char *failure)
{
	shut(c);
	c->done(c, failure);
}

/* False: it has ended. */
static bool take(struct call *c, struct str *in)
{
	struct str part;
	struct err e = { 0 };

	for (;;) {
		switch (http_response_next(&c->response, in, &part, &e)) {
		case HTTP_NEED:
			return true;
		case HTTP_HEAD:
			c->status = c->response.status;
			if (c->head)
				c->head(c, part);
			break;
		case HTTP_BODY:
			if (c->body)
				c->body(c, part);
			break;
		case HTTP_END:
			end(c, NULL);
			return false;
		case HTTP_BAD:
			end(c, e.text);
			return false;
		}
		if (!c->is_active) /* cancelled by a hook */
			return false;
	}
}

static void on_input(struct call *c)
{
	char bytes[READ_BYTES];
	int64_t stamp = 0;
	ssize_t n = sock_recv(c->watch.fd, bytes, sizeof(bytes), &stamp);
	struct str in;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		bool is_whole = n == 0 && c->status && http_response_eof(&c->response, NULL) == 0;

		end(c, is_whole ? NULL : "the connection ended early");
		return;
	}
	c->stamp_ns = stamp ? stamp : clock_real_ns();
	buf_add(&c->in, bytes, (size_t)n);
	in = buf_str(&c->in);
	if (take(c, &in))
		buf_cut(&c->in, c->in.len - in.n);
}

/* Gives the kernel what it takes. False: it has ended. */
static bool on_output(struct call *c)
{
	ssize_t n;

	if (!c->is_connected) {
		int error = sock_connect_result(c->watch.fd);

		if (error) {
			end(c, strerror(error));
			return false;
		}
		c->is_connected = true;
	}
	if (!c->sent_ns)
		c->sent_ns = clock_real_ns();
	n = sock_send(c->watch.fd, buf_str(&c->out));
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		end(c, strerror(errno));
		return false;
	}
	if (n > 0)
		buf_cut(&c->out, (size_t)n);
	if (c->out.len == 0)
		loop_rewatch(c->loop, &c->watch, EPOLLIN);
	return true;
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct call *c = (struct call *)((char *)w - offsetof(struct call, watch));

	if (events & (EPOLLOUT | EPOLLERR) && c->out.len && !on_output(c))
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		on_input(c);
}

static void on_deadline(struct timer *t)
{
	struct call *c = (struct call *)((char *)t - offsetof(struct call, deadline));

	end(c, c->failure[0] ? c->failure : "no answer in time");
}

void call_begin(struct call *c, struct loop *l, const struct peer *to, struct str request,
		int64_t timeout_ns)
{
	struct err e = { 0 };

	c->loop = l;
	c->response = (struct http_response){ 0 };
	c->sent_ns = c->stamp_ns = 0;
	c->status = 0;
	c->is_active = true;
	c->is_connected = false;
	c->in = c->out = (struct buf){ 0 };
	c->deadline = (struct timer){ .on_time = on_deadline };
	c->watch = (struct watch){ .events = EPOLLIN | EPOLLOUT, .on_ready = on_ready };
	c->watch.fd = sock_connect(&to->addr, true, &e);
	if (c->watch.fd >= 0 && loop_watch(l, &c->watch, &e) < 0) {
		sock_close(c->watch.fd);
		c->watch.fd = -1;
	}
	/* Told from the loop like any other end. */
	snprintf(c->failure, sizeof(c->failure), "%.120s", c->watch.fd < 0 ? e.text : "");
	buf_add_str(&c->out, request);
	loop_timer_set(l, &c->deadline, clock_mono_ns() + (c->watch.fd < 0 ? 0 : timeout_ns));
}
