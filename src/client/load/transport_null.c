/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport_null.c - a transport without a server: every request is answered at the next poll, in
 * memory, with four token events, their usage and [DONE].
 *
 * It tests the transport interface and measures what the driver itself costs. The events satisfy
 * both the completions and the chat decoder.
 */
#include "client/load/transport.h"
#include "client/net/loop.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

struct null_client {
	struct exchange **queue;
	size_t n, cap;
	struct loop *loop; /* waits and is woken as the native transport's; watches nothing */
};

static const char answer[] =
	"data: {\"choices\":[{\"text\":\" one\",\"delta\":{\"content\":\" one\"}}]}\n\n"
	"data: {\"choices\":[{\"text\":\" two\",\"delta\":{\"content\":\" two\"}}]}\n\n"
	"data: {\"choices\":[{\"text\":\" six\",\"delta\":{\"content\":\" six\"}}]}\n\n"
	"data: {\"choices\":[{\"text\":\" ten\",\"delta\":{\"content\":\" ten\"}}]}\n\n"
	"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":4}}\n\n"
	"data: [DONE]\n\n";

static void *null_open(const struct transport_opts *o, struct err *e)
{
	struct null_client *c = mem_alloc(sizeof(*c));

	(void)o;
	c->loop = loop_new(e);
	if (!c->loop) {
		free(c);
		return NULL;
	}
	return c;
}

static void null_wake(void *self)
{
	loop_wake(((struct null_client *)self)->loop);
}

static void null_start(void *self, struct exchange *x)
{
	struct null_client *c = self;
	int64_t now = clock_real_ns();

	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 256;
		c->queue = mem_grow(c->queue, c->cap, sizeof(struct exchange *));
	}
	c->queue[c->n++] = x;
	x->attempts = 1;
	x->bytes_in = 0;
	x->connect_ns = x->connected_ns = 0;
	x->sink->on_send(x, now);
	x->sink->on_sent(x, now);
}

static void null_cancel(void *self, struct exchange *x)
{
	struct null_client *c = self;

	for (size_t i = 0; i < c->n; i++) {
		if (c->queue[i] != x)
			continue;
		c->queue[i] = c->queue[--c->n];
		x->sink->on_end(x, FAIL_CANCELLED, "cancelled", clock_real_ns());
		return;
	}
}

/* One event per read, as a server that sends each token by itself. */
static void respond(struct exchange *x)
{
	struct str rest = { answer, sizeof(answer) - 1 };
	int64_t now = clock_real_ns();

	x->bytes_in = sizeof(answer) - 1;
	x->sink->on_head(x, 200, true, STR("HTTP/1.1 200 OK\r\n\r\n"), now, now);
	while (rest.n) {
		const char *end = memmem(rest.p, rest.n, "\n\n", 2);
		struct str event = { rest.p, (size_t)(end - rest.p) + 2 };

		now++;
		x->sink->on_body(x, event, now, now);
		rest.p += event.n;
		rest.n -= event.n;
	}
	x->sink->on_end(x, FAIL_NONE, "", now);
}

static void null_poll(void *self, int64_t until_mono_ns, bool is_exact,
		      struct transport_stats *stats)
{
	struct null_client *c = self;
	size_t n = c->n;

	for (size_t i = 0; i < n; i++)
		respond(c->queue[i]);
	/* Answers may have queued more exchanges after the ones just served. */
	c->n -= n;
	if (n)
		memmove(c->queue, c->queue + n, c->n * sizeof(struct exchange *));
	stats->reads += n;
	if (n == 0 && c->n == 0)
		loop_poll(c->loop, until_mono_ns, is_exact);
	stats->spun_ns = loop_spun_ns(c->loop);
}

static void null_close(void *self, struct transport_stats *stats)
{
	struct null_client *c = self;

	(void)stats;
	loop_free(c->loop);
	free(c->queue);
	free(c);
}

const struct transport transport_null = {
	.name = "null", .open = null_open, .start = null_start, .cancel = null_cancel,
	.poll = null_poll, .wake = null_wake, .close = null_close,
};
