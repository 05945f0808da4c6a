/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native transport against a server that a script drives step by step: what a
 * real server does only now and then happens here at a chosen moment. Every script
 * runs over a Unix socket and over TCP.
 *
 * threads: yes
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/load/native.h"
#include "core/base/clock.h"
#include "core/base/mem.h"

#define EXCHANGES 4
#define SERVER_SIDES 8
#define STEPS 24
#define LARGE_BYTES (16u << 20) /* more than any socket buffer takes */

/* ---- the rig: exchanges, their results, the server's sockets ---- */

struct client {
	struct exchange x; /* first: the sink gets back to us from it */
	struct rig *rig;
	struct buf body;
	unsigned status, heads, sends, ends;
	enum fail_category fail;
	unsigned send_order, end_order; /* among all such calls of the program */
	char text[256];
};

enum reaction_kind { NOTHING, STARTS, CANCELS };
struct reaction { enum reaction_kind kind; int to; }; /* at the first body piece of exchange 0 */

struct rig {
	void *transport;
	int listener, side[SERVER_SIDES];
	unsigned n_sides;
	struct client client[EXCHANGES];
	struct reaction reaction;
	struct transport_stats stats;
	char url[128], dir[64], path[80];
	char *large;
};

static const struct transport *const native = &transport_native;

static unsigned calls;

static struct client *of(struct exchange *x)
{
	return (struct client *)x;
}

static void on_send(struct exchange *x, int64_t now_ns)
{
	(void)now_ns;
	of(x)->sends++;
	of(x)->send_order = ++calls;
}

static void on_sent(struct exchange *x, int64_t now_ns)
{
	(void)x;
	(void)now_ns;
}

static void on_head(struct exchange *x, unsigned status, bool is_event_stream, struct str head,
		    int64_t kernel_ns, int64_t user_ns)
{
	(void)is_event_stream;
	(void)head;
	(void)kernel_ns;
	(void)user_ns;
	of(x)->status = status;
	of(x)->heads++;
}

static void on_body(struct exchange *x, struct str piece, int64_t kernel_ns, int64_t user_ns)
{
	struct client *c = of(x);
	struct rig *r = c->rig;
	struct reaction now = r->reaction;

	(void)kernel_ns;
	(void)user_ns;
	assert_int_equal(c->ends, 0);
	buf_add_str(&c->body, piece);
	if (c != &r->client[0] || now.kind == NOTHING)
		return;
	r->reaction.kind = NOTHING;
	if (now.kind == STARTS)
		native->start(r->transport, &r->client[now.to].x);
	else
		native->cancel(r->transport, &r->client[now.to].x);
}

static void on_end(struct exchange *x, enum fail_category fail, const char *text, int64_t now_ns)
{
	struct client *c = of(x);

	(void)now_ns;
	c->ends++;
	c->end_order = ++calls;
	c->fail = fail;
	snprintf(c->text, sizeof(c->text), "%s", text);
}

static const struct exchange_sink sink = {
	.on_send = on_send, .on_sent = on_sent, .on_head = on_head, .on_body = on_body,
	.on_end = on_end,
};

static void rig_open(struct rig *r, bool is_unix, unsigned warm_connections)
{
	const char *url[] = { r->url };
	struct transport_opts o = { .base_url = url, .n_endpoints = 1,
				    .connect_timeout_ns = 5000000000,
				    .request_timeout_ns = 20000000000,
				    .warm_connections = warm_connections };
	struct sock_addr addr[SOCK_ADDRS_MAX];
	char text[96];
	struct err e;

	*r = (struct rig){ .listener = -1 };
	snprintf(r->dir, sizeof(r->dir), "/tmp/profllm-native-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->path, sizeof(r->path), "%s/s", r->dir);
	if (is_unix)
		assert_int_equal(sock_addr_unix(r->path, &addr[0], &e), 0);
	else
		assert_true(sock_resolve("127.0.0.1", 0, addr, &e) >= 1);
	r->listener = sock_listen(&addr[0], 16, &e);
	assert_true(r->listener >= 0);
	sock_addr_text(&addr[0], text, sizeof(text));
	snprintf(r->url, sizeof(r->url), is_unix ? "%s" : "http://%s", text);
	r->transport = native->open(&o, &e);
	assert_non_null(r->transport);
	r->large = mem_alloc(LARGE_BYTES);
	memset(r->large, 'x', LARGE_BYTES);
	memcpy(r->large, "POST / HTTP/1.1\r\n\r\n", 19);
	for (int i = 0; i < EXCHANGES; i++) {
		r->client[i].rig = r;
		r->client[i].x.sink = &sink;
		r->client[i].x.request = STR("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
	}
}

static void rig_close(struct rig *r)
{
	native->close(r->transport, NULL);
	for (unsigned i = 0; i < r->n_sides; i++)
		sock_close(r->side[i]);
	sock_close(r->listener);
	unlink(r->path);
	assert_int_equal(rmdir(r->dir), 0);
	for (int i = 0; i < EXCHANGES; i++)
		buf_release(&r->client[i].body);
	free(r->large);
}

/* One turn of the client's loop, which waits for ms at most. */
static void turn(struct rig *r, int ms)
{
	native->poll(r->transport, clock_mono_ns() + ms * 1000000, false, &r->stats);
}

/* Everything that is on its way arrives. */
static void pump(struct rig *r)
{
	for (int i = 0; i < 3; i++)
		turn(r, 3);
}

static void accept_side(struct rig *r)
{
	int fd = -1;

	for (int tries = 0; fd < 0 && tries < 200; tries++) {
		fd = sock_accept(r->listener, false);
		if (fd < 0)
			turn(r, 5);
	}
	assert_true(fd >= 0);
	assert_true(r->n_sides < SERVER_SIDES);
	r->side[r->n_sides++] = fd;
}

/* The whole of a (small) request is read at the server's side. */
static void read_request(struct rig *r, int side)
{
	char text[4096];
	size_t n = 0;

	for (int tries = 0; tries < 200; tries++) {
		ssize_t got = recv(r->side[side], text + n, sizeof(text) - n, MSG_DONTWAIT);

		assert_true(got != 0);
		if (got > 0)
			n += (size_t)got;
		if (n >= 2 && memcmp(text + n - 2, "{}", 2) == 0)
			return;
		turn(r, 5);
	}
	fail_msg("no request on side %d", side);
}

static void send_text(struct rig *r, int side, struct str text)
{
	while (text.n) {
		ssize_t n = send(r->side[side], text.p, text.n, MSG_NOSIGNAL | MSG_DONTWAIT);

		assert_true(n > 0 || errno == EAGAIN);
		if (n < 0)
			turn(r, 1);
		else
			text = (struct str){ text.p + n, text.n - (size_t)n };
	}
}

/* ---- scripts ---- */

enum step_kind {
	STEP_NONE, STEP_START, STEP_LARGE, STEP_CANCEL, STEP_ACCEPT, STEP_TAKE, STEP_REQUEST,
	STEP_SEND, STEP_CLOSE, STEP_RESET, STEP_POLL,
};
struct step { enum step_kind kind; int at; const char *text; };

#define START(i) { STEP_START, i, NULL }     /* exchange i */
#define LARGE(i) { STEP_LARGE, i, NULL }     /* with a request that no socket buffer takes */
#define CANCEL(i) { STEP_CANCEL, i, NULL }
#define ACCEPT { STEP_ACCEPT, 0, NULL }      /* the next side of the server; reads the request */
#define TAKE { STEP_TAKE, 0, NULL }          /* the next side of the server; reads nothing */
#define REQUEST(s) { STEP_REQUEST, s, NULL } /* side s reads another request */
#define SEND(s, text) { STEP_SEND, s, text }
#define CLOSE(s) { STEP_CLOSE, s, NULL }
#define RESET(s) { STEP_RESET, s, NULL }
#define POLL { STEP_POLL, 0, NULL }          /* the client handles what has arrived */

/* How an exchange ended; not at all where ends is 0. */
struct outcome {
	unsigned ends, sends, status;
	enum fail_category fail;
	const char *text, *body;
};

static void run_step(struct rig *r, const struct step *s)
{
	switch (s->kind) {
	case STEP_LARGE:
		r->client[s->at].x.request = (struct str){ r->large, LARGE_BYTES };
		/* fallthrough */
	case STEP_START:
		native->start(r->transport, &r->client[s->at].x);
		break;
	case STEP_CANCEL:
		native->cancel(r->transport, &r->client[s->at].x);
		break;
	case STEP_ACCEPT:
		accept_side(r);
		read_request(r, (int)r->n_sides - 1);
		break;
	case STEP_TAKE:
		accept_side(r);
		break;
	case STEP_REQUEST:
		read_request(r, s->at);
		break;
	case STEP_SEND:
		send_text(r, s->at, str_of(s->text));
		break;
	case STEP_CLOSE:
		sock_close(r->side[s->at]);
		r->side[s->at] = -1;
		break;
	case STEP_RESET:
		sock_reset(r->side[s->at]);
		r->side[s->at] = -1;
		break;
	case STEP_POLL:
	case STEP_NONE:
		pump(r);
		break;
	}
}

static void check_outcome(const char *name, int i, const struct client *c,
			  const struct outcome *want)
{
	const char *body = c->body.data ? c->body.data : "", *wanted = want->body ? want->body : "";

	if (c->ends != want->ends || c->sends != want->sends || c->fail != want->fail ||
	    c->status != want->status || strcmp(body, wanted) != 0 ||
	    !strstr(c->text, want->text ? want->text : ""))
		fail_msg("%s: exchange %d: %u ends (%s \"%s\"), %u sends, status %u, body \"%s\"; "
			 "expected %u ends (%s), %u sends, status %u, body \"%s\"", name, i, c->ends,
			 fail_name(c->fail), c->text, c->sends, c->status, body, want->ends,
			 fail_name(want->fail), want->sends, want->status, wanted);
}

/* Whether every exchange has ended as often as it should. */
static bool is_over(const struct rig *r, const struct outcome *want)
{
	for (int i = 0; i < EXCHANGES; i++)
		if (r->client[i].ends < want[i].ends)
			return false;
	return true;
}

#define OK_A "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
#define OK_B "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb"
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define TIMED_OUT "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define A { 1, 1, 200, FAIL_NONE, NULL, "a" }
#define B { 1, 1, 200, FAIL_NONE, NULL, "b" }

static const struct script {
	const char *name;
	struct step step[STEPS];
	struct reaction reaction;
	struct outcome want[EXCHANGES];
	unsigned retries, stale_closed, connects;
} scripts[] = {
	{ "a kept connection serves again, with a length",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, START(1), REQUEST(0),
	    SEND(0, OK_B) },
	  .want = { A, B }, .connects = 1 },
	{ "a kept connection serves again, in chunks",
	  { START(0), ACCEPT, SEND(0, CHUNKED "1\r\na\r\n0\r\n\r\n"), POLL,
	    START(1), REQUEST(0), SEND(0, CHUNKED "1\r\nb\r\n0\r\n\r\n") },
	  .want = { A, B }, .connects = 1 },
	{ "two at once have a connection each",
	  { START(0), ACCEPT, START(1), ACCEPT, SEND(1, OK_B), SEND(0, OK_A) },
	  .want = { A, B }, .connects = 2 },
	{ "closed while idle, noticed by the loop",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, CLOSE(0), POLL,
	    START(1), ACCEPT, SEND(1, OK_B) },
	  .want = { A, B }, .stale_closed = 1, .connects = 2 },
	{ "closed while idle, not noticed before the next start",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, CLOSE(0), START(1),
	    ACCEPT, SEND(1, OK_B) },
	  .want = { A, B }, .stale_closed = 1, .connects = 2 },
	{ "reset while idle",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, RESET(0), START(1),
	    ACCEPT, SEND(1, OK_B) },
	  .want = { A, B }, .stale_closed = 1, .connects = 2 },
	{ "408 and closed while idle: it answers nothing that was asked",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, SEND(0, TIMED_OUT),
	    CLOSE(0), START(1), ACCEPT, SEND(1, OK_B) },
	  .want = { A, B }, .stale_closed = 1, .connects = 2 },
	{ "bytes on an idle connection that stays open are no answer either",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, SEND(0, OK_A), START(1),
	    ACCEPT, SEND(1, OK_B) },
	  .want = { A, B }, .stale_closed = 1, .connects = 2 },
	{ "several idle ones died at once",
	  { START(0), ACCEPT, START(1), ACCEPT, SEND(0, OK_A), SEND(1, OK_B),
	    POLL, CLOSE(0), CLOSE(1), START(2), ACCEPT, SEND(2, OK_A) },
	  .want = { A, B, A }, .stale_closed = 2, .connects = 3 },
	{ "408 that crosses with the request on a kept connection: sent again",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, START(1),
	    SEND(0, TIMED_OUT), CLOSE(0), ACCEPT, SEND(1, OK_B) },
	  .want = { A, { 1, 2, 200, FAIL_NONE, NULL, "b" } }, .retries = 1, .connects = 2 },
	{ "408 on a new connection is the answer",
	  { START(0), ACCEPT, SEND(0, TIMED_OUT), CLOSE(0) },
	  .want = { { 1, 1, 408, FAIL_NONE, NULL, NULL } }, .connects = 1 },
	{ "408 that keeps its connection is the answer",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, START(1), REQUEST(0),
	    SEND(0, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n") },
	  .want = { A, { 1, 1, 408, FAIL_NONE, NULL, NULL } }, .connects = 1 },
	{ "a close that crosses with the request on a kept connection: sent again",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, START(1), CLOSE(0),
	    ACCEPT, SEND(1, OK_B) },
	  .want = { A, { 1, 2, 200, FAIL_NONE, NULL, "b" } }, .retries = 1, .connects = 2 },
	{ "a new connection closed without an answer fails its request",
	  { START(0), ACCEPT, CLOSE(0) },
	  .want = { { 1, 1, 0, FAIL_RESET, "closed the connection without an answer", NULL } },
	  .connects = 1 },
	{ "two chunks in one read while a request starts on an idle connection that got a 408",
	  { START(0), ACCEPT, START(1), ACCEPT, SEND(1, OK_B), POLL,
	    SEND(0, CHUNKED), POLL,
	    SEND(0, "14\r\ndata: {\"text\":\"a\"}\n\n\r\n14\r\ndata: {\"text\":\"b\"}\n\n\r\n0\r\n\r\n"),
	    SEND(1, TIMED_OUT), CLOSE(1), ACCEPT, SEND(2, OK_B) },
	  .reaction = { STARTS, 2 },
	  .want = { { 1, 1, 200, FAIL_NONE, NULL,
		      "data: {\"text\":\"a\"}\n\ndata: {\"text\":\"b\"}\n\n" }, B, B },
	  .stale_closed = 1, .connects = 3 },
	{ "two chunks in one read while a request starts on an idle connection that is healthy",
	  { START(0), ACCEPT, START(1), ACCEPT, SEND(1, OK_B), POLL,
	    SEND(0, CHUNKED "2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"), REQUEST(1),
	    SEND(1, OK_A) },
	  .reaction = { STARTS, 2 },
	  .want = { { 1, 1, 200, FAIL_NONE, NULL, "abcd" }, B, A }, .connects = 2 },
	{ "two chunks in one read while a request starts on a new connection",
	  { START(0), ACCEPT, SEND(0, CHUNKED "2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"),
	    ACCEPT, SEND(1, OK_B) },
	  .reaction = { STARTS, 1 },
	  .want = { { 1, 1, 200, FAIL_NONE, NULL, "abcd" }, B }, .connects = 2 },
	{ "a request cancels itself in its first piece of two",
	  { START(0), ACCEPT, SEND(0, CHUNKED "1\r\na\r\n1\r\nb\r\n0\r\n\r\n") },
	  .reaction = { CANCELS, 0 },
	  .want = { { 1, 1, 200, FAIL_CANCELLED, "cancelled", "a" } }, .connects = 1 },
	{ "a request cancels another one whose answer is in the same round",
	  { START(0), ACCEPT, START(1), ACCEPT, SEND(0, OK_A),
	    SEND(1, CHUNKED "1\r\nb\r\n0\r\n\r\n") },
	  .reaction = { CANCELS, 1 },
	  .want = { A, { 1, 1, 0, FAIL_CANCELLED, "cancelled", NULL } }, .connects = 2 },
	{ "cancelled while the answer is awaited: its connection is not used again",
	  { START(0), ACCEPT, CANCEL(0), START(1), ACCEPT, SEND(1, OK_B) },
	  .want = { { 1, 1, 0, FAIL_CANCELLED, "cancelled", NULL }, B }, .connects = 2 },
	{ "the end of the stream within a chunk",
	  { START(0), ACCEPT, SEND(0, CHUNKED "5\r\nab"), CLOSE(0) },
	  .want = { { 1, 1, 200, FAIL_TRUNCATED, "before the answer was complete", "ab" } },
	  .connects = 1 },
	{ "the end of the stream within a body of known length",
	  { START(0), ACCEPT,
	    SEND(0, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"), CLOSE(0) },
	  .want = { { 1, 1, 200, FAIL_TRUNCATED, "before the answer was complete", "ab" } },
	  .connects = 1 },
	{ "the end of the stream is the end of a body without length",
	  { START(0), ACCEPT, SEND(0, "HTTP/1.1 200 OK\r\n\r\nab"), CLOSE(0) },
	  .want = { { 1, 1, 200, FAIL_NONE, NULL, "ab" } }, .connects = 1 },
	{ "bytes after the answer, in the same read: the connection is not kept",
	  { START(0), ACCEPT, SEND(0, OK_A "junk"), POLL, START(1), ACCEPT,
	    SEND(1, OK_B) },
	  .want = { A, B }, .connects = 2 },
	{ "bytes after the answer, in a later read: the connection is not kept",
	  { START(0), ACCEPT, SEND(0, OK_A), POLL, SEND(0, "junk"), POLL,
	    START(1), ACCEPT, SEND(1, OK_B) },
	  .want = { A, B }, .stale_closed = 1, .connects = 2 },
	{ "Connection: close",
	  { START(0), ACCEPT, SEND(0, "HTTP/1.1 200 OK\r\nConnection: close\r\n"
		"Content-Length: 1\r\n\r\na"), POLL, START(1), ACCEPT, SEND(1, OK_B) },
	  .want = { A, B }, .connects = 2 },
	{ "an early answer while the body is still being sent, then closed",
	  { LARGE(0), TAKE, POLL, SEND(0, "HTTP/1.1 413 Content Too Large\r\n"
		"Connection: close\r\nContent-Length: 3\r\n\r\nbig"), CLOSE(0) },
	  .want = { { 1, 1, 413, FAIL_NONE, NULL, "big" } }, .connects = 1 },
	{ "an early answer that claims to keep the connection: it is not used again",
	  { LARGE(0), TAKE, POLL, SEND(0, "HTTP/1.1 413 Content Too Large\r\n"
		"Content-Length: 3\r\n\r\nbig"), POLL, START(1), ACCEPT,
	    SEND(1, OK_B) },
	  .want = { { 1, 1, 413, FAIL_NONE, NULL, "big" }, B }, .connects = 2 },
	{ "closed while the body is still being sent, without an answer",
	  { LARGE(0), TAKE, POLL, CLOSE(0) },
	  .want = { { 1, 1, 0, FAIL_RESET, NULL, NULL } }, .connects = 1 },
	{ "what is no HTTP",
	  { START(0), ACCEPT, SEND(0, "SSH-2.0-x\r\n") },
	  .want = { { 1, 1, 0, FAIL_PROTOCOL, "does not begin with HTTP/1", NULL } }, .connects = 1 },
};

static void run_script(const struct script *s, bool is_unix)
{
	struct rig r;
	char name[200];

	snprintf(name, sizeof(name), "%s (%s)", s->name, is_unix ? "unix" : "tcp");
	rig_open(&r, is_unix, 0);
	r.reaction = s->reaction;
	for (int i = 0; i < STEPS && s->step[i].kind != STEP_NONE; i++)
		run_step(&r, &s->step[i]);
	for (int tries = 0; tries < 1000 && !is_over(&r, s->want); tries++)
		turn(&r, 5);
	pump(&r);
	for (int i = 0; i < EXCHANGES; i++)
		check_outcome(name, i, &r.client[i], &s->want[i]);
	if (r.stats.retries != s->retries || r.stats.stale_closed != s->stale_closed ||
	    r.stats.connects != s->connects)
		fail_msg("%s: %llu retries, %llu stale, %llu connects; expected %u, %u, %u", name,
			 (unsigned long long)r.stats.retries,
			 (unsigned long long)r.stats.stale_closed,
			 (unsigned long long)r.stats.connects, s->retries, s->stale_closed,
			 s->connects);
	rig_close(&r);
}

static void scripts_end_as_they_should(void **state)
{
	const char *only = getenv("TEST_SCRIPT"); /* part of a name: run that one alone */
	int ran = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
		if (only && !strstr(scripts[i].name, only))
			continue;
		run_script(&scripts[i], true);
		run_script(&scripts[i], false);
		ran++;
	}
	assert_true(ran > 0);
}

/* Requests use the connections that were opened ahead of them. */
static void warm_connections_are_used(void **state)
{
	(void)state;
	for (int is_unix = 0; is_unix < 2; is_unix++) {
		struct rig r;

		rig_open(&r, is_unix, 2);
		for (int i = 0; i < 2; i++) {
			accept_side(&r);
			native->start(r.transport, &r.client[i].x);
			turn(&r, 5);
		}
		for (int tries = 0; tries < 1000 && !(r.client[0].sends && r.client[1].sends);
		     tries++)
			turn(&r, 5);
		assert_int_equal(r.stats.connects, 2);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(r.client[i].sends, 1);
			assert_int_equal(r.client[i].x.connected_ns, 0);
		}
		rig_close(&r);
	}
}

/* Where no server listens they fail, all at once, and the message says what they were for. */
static void warm_connections_may_be_refused(void **state)
{
	struct transport_opts o = { .n_endpoints = 1, .connect_timeout_ns = 5000000000,
				    .request_timeout_ns = 20000000000 };

	(void)state;
	for (unsigned count = 1; count <= 3; count += 2) {
		struct sockaddr_in in4 = { .sin_family = AF_INET,
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		const char *url[1];
		char text[64];
		socklen_t n = sizeof(in4);
		/* The port is taken and nobody listens there. */
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		struct err e = { 0 };

		assert_int_equal(bind(fd, (const void *)&in4, sizeof(in4)), 0);
		assert_int_equal(getsockname(fd, (void *)&in4, &n), 0);
		snprintf(text, sizeof(text), "http://127.0.0.1:%u", ntohs(in4.sin_port));
		url[0] = text;
		o.base_url = url;
		o.warm_connections = count;
		assert_null(native->open(&o, &e));
		assert_int_equal(e.code, ERR_NET);
		assert_non_null(strstr(e.text, "opening connections ahead of the run: "));
		assert_non_null(strstr(e.text, "refused"));
		close(fd);
	}
}

/* Wherever an answer is cut into two reads, or into single bytes, the body is the same. */
static void an_answer_may_be_cut_anywhere(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd",
		"HTTP/1.1 100 Continue\r\n\r\n" CHUNKED "1\r\na\r\n3;x=y\r\nbcd\r\n0\r\nt: v\r\n\r\n",
	};

	(void)state;
	for (size_t k = 0; k < sizeof(answers) / sizeof(*answers); k++) {
		struct str all = str_of(answers[k]);
		struct rig r;
		struct client *c = &r.client[0];

		rig_open(&r, true, 0);
		for (size_t cut = 0; cut <= all.n; cut++) { /* cut = 0: byte by byte */
			size_t step = cut ? cut : 1;

			c->ends = 0;
			buf_reset(&c->body);
			native->start(r.transport, &c->x);
			if (cut == 0)
				accept_side(&r);
			read_request(&r, 0);
			for (size_t at = 0; at < all.n; at += step) {
				size_t n = all.n - at < step ? all.n - at : step;

				if (cut && at)
					n = all.n - at;
				send_text(&r, 0, (struct str){ all.p + at, n });
				turn(&r, 1);
				if (cut && at)
					break;
			}
			for (int tries = 0; tries < 1000 && c->ends == 0; tries++)
				turn(&r, 5);
			pump(&r);
			assert_int_equal(c->ends, 1);
			assert_int_equal(c->fail, FAIL_NONE);
			assert_int_equal(c->body.len, 4);
			assert_memory_equal(c->body.data, "abcd", 4);
		}
		assert_int_equal(r.stats.connects, 1);
		rig_close(&r);
	}
}

/* ---- a server that never stops ---- */

#define FLOOD_BYTES_MAX (1u << 30)

struct flood {
	int fd;
	const char *unit; /* sent again and again */
	atomic_bool is_over;
	pthread_t thread;
};

static void *flood_main(void *self)
{
	struct flood *f = self;
	struct buf many = { 0 };
	size_t sent = 0;

	while (many.len < 200000)
		buf_add_text(&many, f->unit);
	while (!atomic_load(&f->is_over) && sent < FLOOD_BYTES_MAX) {
		struct pollfd room = { .fd = f->fd, .events = POLLOUT };
		ssize_t n = send(f->fd, many.data + sent % many.len, many.len - sent % many.len,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			sent += (size_t)n;
		else if (errno == EAGAIN)
			poll(&room, 1, 10);
		else
			break;
	}
	buf_release(&many);
	return NULL;
}

static unsigned pieces;

/* A reader that is slower than the sender, whose socket is then never empty. */
static void on_flood(struct exchange *x, struct str piece, int64_t kernel_ns, int64_t user_ns)
{
	(void)x, (void)piece, (void)kernel_ns, (void)user_ns;
	if (++pieces % 64 == 0)
		usleep(500);
}

static const struct exchange_sink flood_sink = {
	.on_send = on_send, .on_sent = on_sent, .on_head = on_head, .on_body = on_flood,
	.on_end = on_end,
};

/*
 * Whatever an answer consists of that has no end: a turn of the loop is over soon, the other
 * connection gets its answer, and the request ends by its time limit.
 */
static void an_endless_answer_keeps_nobody_waiting(void **state)
{
	static const struct {
		const char *name, *head, *unit;
		enum fail_category fail;
	} cases[] = {
		{ "chunks", CHUNKED, "20\r\n0123456789abcdef0123456789abcdef\r\n", FAIL_TIMEOUT },
		{ "one-byte chunks", CHUNKED, "1\r\nx\r\n", FAIL_TIMEOUT },
		{ "a chunk extension", CHUNKED "1", ";x", FAIL_PROTOCOL }, /* a line has its limit */
		{ "trailers", CHUNKED "1\r\nx\r\n0\r\n", "X-T: 1\r\n", FAIL_TIMEOUT },
		{ "interim answers", "", "HTTP/1.1 102 Processing\r\n\r\n", FAIL_TIMEOUT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct flood f = { 0 };
		int64_t began_ns, longest_ns = 0;
		struct rig r;

		rig_open(&r, false, 0);
		((struct native *)r.transport)->opts.request_timeout_ns = 1500000000;
		f.unit = cases[i].unit;
		r.client[0].x.sink = &flood_sink;
		native->start(r.transport, &r.client[0].x);
		accept_side(&r);
		read_request(&r, 0);
		send_text(&r, 0, str_of(cases[i].head));
		f.fd = r.side[0];
		assert_int_equal(pthread_create(&f.thread, NULL, flood_main, &f), 0);
		native->start(r.transport, &r.client[1].x);
		accept_side(&r);
		read_request(&r, 1);
		send_text(&r, 1, STR(OK_B));
		began_ns = clock_mono_ns();
		while (!(r.client[0].ends && r.client[1].ends) &&
		       clock_mono_ns() - began_ns < 20000000000) {
			uint64_t before = r.client[0].x.bytes_in;
			int64_t from_ns = clock_mono_ns();

			turn(&r, 5);
			assert_true(r.client[0].x.bytes_in - before <= TURN_READS_MAX * READ_BYTES);
			from_ns = clock_mono_ns() - from_ns;
			longest_ns = from_ns > longest_ns ? from_ns : longest_ns;
		}
		print_message("%s: the longest turn %.1f ms, the end after %.2f s\n", cases[i].name,
			      (double)longest_ns / 1e6, (double)(clock_mono_ns() - began_ns) / 1e9);
		assert_int_equal(r.client[0].ends, 1);
		assert_int_equal(r.client[1].ends, 1);
		assert_int_equal(r.client[1].fail, FAIL_NONE);
		if (r.client[0].fail == FAIL_TIMEOUT)
			assert_true(r.client[1].end_order < r.client[0].end_order);
		/* A fast machine gets to the limit of bytes before the time is over. */
		if (r.client[0].fail != FAIL_LIMIT || !strstr(r.client[0].text, "1024 MiB"))
			assert_int_equal(r.client[0].fail, cases[i].fail);
		atomic_store(&f.is_over, true);
		pthread_join(f.thread, NULL);
		rig_close(&r);
	}
}

/* A port whose queue of connections is full: the next one to it never comes about. */
static int listen_in_vain(struct sock_addr *addr, int filler[], int n)
{
	struct err e;
	int fd = sock_listen(addr, 0, &e);

	assert_true(fd >= 0);
	for (int i = 0; i < n; i++)
		filler[i] = sock_connect(addr, false, &e);
	return fd;
}

/*
 * A site with two addresses gives its first one half the time to connect; a site with one
 * address, whose connection began earlier, must not delay that.
 */
static void connect_timeouts_follow_their_deadlines(void **state)
{
	enum { FILLERS = 4 };
	const char *url[2] = { "http://127.0.0.1:1", "http://127.0.0.1:1" };
	struct transport_opts o = { .base_url = url, .n_endpoints = 2,
				    .connect_timeout_ns = 600000000,
				    .request_timeout_ns = 20000000000 };
	struct client two = { .x = { .sink = &sink, .request = STR("GET / HTTP/1.1\r\n\r\n") } };
	struct client one = two;
	struct sock_addr vain[SOCK_ADDRS_MAX], good[SOCK_ADDRS_MAX];
	struct transport_stats stats;
	int filler[FILLERS], dead, listener;
	struct native *n;
	struct err e;

	(void)state;
	assert_true(sock_resolve("127.0.0.1", 0, vain, &e) >= 1);
	good[0] = vain[0];
	dead = listen_in_vain(&vain[0], filler, FILLERS);
	listener = sock_listen(&good[0], 4, &e);
	assert_true(listener >= 0);
	n = native->open(&o, &e);
	assert_non_null(n);
	n->site[0].addr[0] = vain[0];
	n->site[0].addr[1] = good[0];
	n->site[0].n_addr = 2;
	n->site[1].addr[0] = vain[0];
	one.x.endpoint = 1;
	native->start(n, &one.x);
	native->start(n, &two.x);
	assert_int_equal(one.sends + two.sends + one.ends + two.ends, 0);
	while (!two.sends || !one.ends)
		native->poll(n, clock_mono_ns() + 100000000, false, &stats);
	assert_true(two.send_order < one.end_order);
	assert_int_equal(one.fail, FAIL_CONNECT);
	assert_string_equal(one.text, "no connection within 0.6 s");
	assert_int_equal(two.ends, 0);
	native->close(n, NULL);
	for (int i = 0; i < FILLERS; i++)
		sock_close(filler[i]);
	sock_close(dead);
	sock_close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scripts_end_as_they_should),
		cmocka_unit_test(warm_connections_are_used),
		cmocka_unit_test(warm_connections_may_be_refused),
		cmocka_unit_test(an_answer_may_be_cut_anywhere),
		cmocka_unit_test(an_endless_answer_keeps_nobody_waiting),
		cmocka_unit_test(connect_timeouts_follow_their_deadlines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
