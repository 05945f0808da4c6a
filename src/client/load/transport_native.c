/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport_native.c - the native epoll transport: sites, the pool of kept connections, timeouts.
 * The life of one connection is in connection.c.
 */
#include <assert.h>
#include <errno.h>

#include "client/http/url.h"
#include "client/load/native.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

#define CONNECTIONS_MAX (1u << 20) /* above any descriptor limit */

static int site_resolve(struct site *s, const char *base_url, const char *proxy, struct err *e)
{
	struct url url, via;
	int n;

	if (url_parse(str_of(base_url), &url, e) < 0)
		return -1;
	s->host = mem_text(url.host);
	s->port = url.port;
	s->is_tls = url.is_tls;
	if (url.is_unix) {
		n = sock_addr_unix(url.socket, &s->addr[0], e) < 0 ? -1 : 1;
	} else if (proxy) {
		if (url_parse_proxy(str_of(proxy), &via, e) < 0)
			return -1;
		s->is_tunnel = s->is_tls;
		n = sock_resolve(via.host, via.port, s->addr, e);
	} else {
		n = sock_resolve(s->host, s->port, s->addr, e);
	}
	if (n < 0)
		return -1;
	s->n_addr = (unsigned)n;
	return 0;
}

/* Leaves the addresses of a server that one of ours has the family of. */
static int site_match(struct site *s, const struct transport_opts *o, struct err *e)
{
	unsigned n = 0;

	if (!o->n_own || s->addr[0].any.sa_family == AF_UNIX)
		return 0;
	for (unsigned i = 0; i < s->n_addr; i++) {
		bool is_met = false;

		for (unsigned k = 0; k < o->n_own; k++)
			is_met |= o->own[k].any.sa_family == s->addr[i].any.sa_family;
		if (is_met)
			s->addr[n++] = s->addr[i];
	}
	if (!n)
		return err_set(e, ERR_USAGE, "--source-addresses has no %s address, which %s needs",
			       s->addr[0].any.sa_family == AF_INET6 ? "IPv6" : "IPv4", s->host);
	s->n_addr = n;
	return 0;
}

/* Its packets are seen from now on; a server that the tap does not know is stamped by read. */
static void site_tap(const struct site *s, struct tap *tap)
{
	struct err ignored;

	for (unsigned i = 0; tap && i < s->n_addr; i++)
		(void)tap_add_server(tap, &s->addr[i], &ignored);
}

static void native_close(void *self, struct transport_stats *stats)
{
	struct native *n = self;

	if (!n)
		return;
	for (size_t i = 0; i < n->connections.count; i++) {
		struct connection *c = slab_at(&n->connections, i);

		c->x = NULL;
		if (c->state != CONNECTION_CLOSED)
			connection_close(c);
	}
	if (stats) /* with what has happened since the last poll */
		*stats = n->stats;
	for (unsigned i = 0; n->site && i < n->opts.n_endpoints; i++)
		free(n->site[i].host);
	free(n->site);
	slab_release(&n->connections);
	tls_config_free(n->tls);
	loop_free(n->loop);
	sock_close(n->stamp_fd);
	buf_release(&n->plain);
	free(n);
}

static bool is_late(const struct connection_list *l, int64_t now_ns)
{
	return l->first && l->first->deadline_ns <= now_ns;
}

static void connect_late(struct connection *c)
{
	struct native *n = c->net;
	struct err e;

	if (c->state == CONNECTION_CONNECTING && c->addr_at + 1u < n->site[c->site].n_addr) {
		connection_try_next(c, ETIMEDOUT);
		return;
	}
	err_set(&e, ERR_NET, "no connection within %.3g s",
		(double)n->opts.connect_timeout_ns / 1e9);
	connection_fail(c, FAIL_CONNECT, e.text);
}

static void expire(struct native *n)
{
	int64_t now = loop_now_ns(n->loop);
	struct err e;

	for (unsigned i = 0; i < n->opts.n_endpoints; i++)
		while (is_late(&n->site[i].connecting, now))
			connect_late(n->site[i].connecting.first);
	while (is_late(&n->active, now)) {
		err_set(&e, ERR_NET, "no complete answer within %.6g s",
			(double)n->opts.request_timeout_ns / 1e9);
		connection_fail(n->active.first, FAIL_TIMEOUT, e.text);
	}
}

/* The first instant at which expire() has something to do, or INT64_MAX. */
static int64_t next_deadline(const struct native *n)
{
	int64_t at = n->active.first ? n->active.first->deadline_ns : INT64_MAX;

	for (unsigned i = 0; i < n->opts.n_endpoints; i++) {
		const struct connection *c = n->site[i].connecting.first;

		if (c && c->deadline_ns < at)
			at = c->deadline_ns;
	}
	return at;
}

static void recycle(struct native *n)
{
	struct connection *c;

	while ((c = n->dead)) {
		n->dead = c->next;
		c->next = n->free;
		n->free = c;
	}
}

static void native_poll(void *self, int64_t until_mono_ns, bool is_exact,
			struct transport_stats *stats)
{
	struct native *n = self;
	int64_t deadline = next_deadline(n);

	assert(!n->is_receiving);
	n->turn++;
	if (deadline < until_mono_ns)
		loop_poll(n->loop, deadline, false);
	else
		loop_poll(n->loop, until_mono_ns, is_exact);
	n->turn++;
	expire(n);
	recycle(n);
	n->stats.spun_ns = loop_spun_ns(n->loop);
	*stats = n->stats;
}

static void native_start(void *self, struct exchange *x)
{
	struct native *n = self;
	struct connection *c;

	assert(x->endpoint < n->opts.n_endpoints);
	x->attempts = 0;
	x->bytes_in = 0;
	x->connect_ns = x->connected_ns = 0;
	while ((c = n->site[x->endpoint].idle.last) && !connection_is_quiet(c)) {
		n->stats.stale_closed++;
		connection_close(c);
	}
	if (!c) {
		connection_open(n, x->endpoint, x);
		return;
	}
	c->is_reused = true;
	connection_send(c, x);
}

static void native_cancel(void *self, struct exchange *x)
{
	struct connection *c = x->connection;

	(void)self;
	assert(c && c->x == x);
	connection_fail(c, FAIL_CANCELLED, "cancelled");
}

static int warm(struct native *n, unsigned count, struct err *e)
{
	struct transport_stats stats;

	n->warm_error.code = ERR_NONE;
	for (unsigned i = 0; i < n->opts.n_endpoints; i++)
		for (unsigned k = 0; k < count; k++)
			connection_open(n, (uint16_t)i, NULL);
	while (n->n_warming)
		native_poll(n, clock_mono_ns() + 100000000, false, &stats);
	if (n->warm_error.code == ERR_NONE)
		return 0;
	*e = n->warm_error;
	return err_wrap(e, "opening connections ahead of the run");
}

static void native_wake(void *self)
{
	loop_wake(((struct native *)self)->loop);
}

static void *native_open(const struct transport_opts *o, struct err *e)
{
	struct native *n = mem_alloc(sizeof(*n));
	bool needs_tls = false;

	n->opts = *o;
	n->stamp_fd = -1;
	n->site = mem_array(o->n_endpoints, sizeof(*n->site));
	if (slab_init(&n->connections, sizeof(struct connection), CONNECTIONS_MAX, e) < 0)
		goto failed;
	n->loop = loop_new(e);
	if (!n->loop)
		goto failed;
	for (unsigned i = 0; i < o->n_endpoints; i++) {
		int64_t began_ns = clock_mono_ns(), took_ns;

		if (site_resolve(&n->site[i], o->base_url[i], o->proxy ? o->proxy[i] : NULL,
				 e) < 0 || site_match(&n->site[i], o, e) < 0)
			goto failed;
		took_ns = clock_mono_ns() - began_ns;
		n->stats.resolve_ns = took_ns > n->stats.resolve_ns ? took_ns
								     : n->stats.resolve_ns;
		site_tap(&n->site[i], o->tap);
		needs_tls |= n->site[i].is_tls;
	}
	if (needs_tls) {
		struct tls_opts tls = { .is_insecure = o->is_insecure, .ca_file = o->ca_file,
					.cert_file = o->cert_file, .key_file = o->key_file };

		n->tls = tls_config_new(&tls, e);
		if (!n->tls)
			goto failed;
	}
	if (o->is_stamped) {
		struct err ignored;

		/* Without stamps every read falls back to user time and is counted. */
		n->stamp_fd = sock_stamps_on(&ignored);
	}
	if (o->warm_connections && warm(n, o->warm_connections, e) < 0)
		goto failed;
	return n;
failed:
	native_close(n, NULL);
	return NULL;
}

const struct transport transport_native = {
	.name = "native", .open = native_open, .start = native_start, .cancel = native_cancel,
	.poll = native_poll, .wake = native_wake, .close = native_close,
};
