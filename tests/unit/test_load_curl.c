/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_load_curl.c - the transport by libcurl against a server that answers by a table: every kind
 * of answer and of failure, redirects, proxies, kept connections, what is sent and what is counted.
 *
 * threads: yes
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/load/transport.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "scratch.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define ANSWERS_MAX 4
#define EXCHANGES_MAX 4
#define REQUEST "POST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nX-Empty:\r\nX-Two:  a b \r\nContent-Length: 4\r\n\r\n{=1}"

/* ---- the server ---- */

/* Requests are answered in turn; NULL: silence; "": the connection ends. */
struct server {
	int listener;
	const char *answer[ANSWERS_MAX];
	size_t answered;
	bool closes;        /* after each answer */
	unsigned connections;
	struct buf asked;
	atomic_bool is_over;
	pthread_t thread;
};

/* False: the connection is over. */
static bool serve_one(struct server *s, int fd)
{
	char head[8192];
	size_t n = 0;
	ssize_t got;
	const char *answer, *end;

	do {
		got = read(fd, head + n, sizeof(head) - 1 - n);
		if (got <= 0)
			return false;
		head[n += (size_t)got] = '\0';
		end = strstr(head, "\r\n\r\n");
	} while (!end || (strstr(head, "Content-Length: 4") && !strstr(end, "{=1}")));
	buf_add(&s->asked, head, n);
	answer = s->answered < ANSWERS_MAX ? s->answer[s->answered++] : "";
	if (!answer) {
		while (!atomic_load(&s->is_over))
			usleep(1000);
		return false;
	}
	/* In two pieces, so that heads and bodies arrive apart. */
	for (size_t at = 0, whole = strlen(answer), part; at < whole; at += part) {
		part = at ? whole - at : (whole + 1) / 2;
		if (send(fd, answer + at, part, MSG_NOSIGNAL) < 0)
			return false;
	}
	return *answer && !s->closes;
}

static void *serve(void *self)
{
	struct server *s = self;
	int fd;

	while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
		s->connections++;
		while (serve_one(s, fd))
			;
		close(fd);
	}
	return NULL;
}

static void server_start(struct server *s, const char *const *answer, bool closes, char url[64])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);

	*s = (struct server){ .closes = closes, .listener = socket(AF_INET, SOCK_STREAM, 0) };
	memcpy(s->answer, answer, sizeof(s->answer));
	assert_int_equal(bind(s->listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(s->listener, 16), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &n), 0);
	snprintf(url, 64, "http://127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
	atomic_store(&s->is_over, true);
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listener);
	buf_release(&s->asked);
}

/* ---- the client ---- */

struct client {
	struct exchange x; /* first: the sink gets back to us from it */
	struct buf body;
	unsigned status, heads, sends, sents, ends;
	bool is_event_stream, is_cancelled_soon;
	void *transport;
	enum fail_category fail;
	char text[256];
};

static void on_send(struct exchange *x, int64_t now_ns)
{
	assert_true(now_ns > 0);
	((struct client *)x)->sends++;
}

static void on_sent(struct exchange *x, int64_t now_ns)
{
	struct client *c = (struct client *)x;

	assert_true(now_ns > 0 && c->sends > c->sents);
	c->sents++;
}

static void on_head(struct exchange *x, unsigned status, bool is_event_stream, struct str head,
		    int64_t kernel_ns, int64_t user_ns)
{
	struct client *c = (struct client *)x;

	assert_true(str_starts(head, STR("HTTP/1.1 ")) && user_ns > 0 && kernel_ns == 0);
	/* A request that is sent again may have been sent once as a whole, or twice. */
	assert_true(c->sents >= 1 && c->sents <= c->sends);
	c->status = status;
	c->is_event_stream = is_event_stream;
	c->heads++;
}

static void on_body(struct exchange *x, struct str piece, int64_t kernel_ns, int64_t user_ns)
{
	struct client *c = (struct client *)x;

	assert_true(kernel_ns == 0 && user_ns > 0 && c->heads == 1 && c->ends == 0);
	buf_add_str(&c->body, piece);
	if (c->is_cancelled_soon)
		transport_curl.cancel(c->transport, x);
}

static void on_end(struct exchange *x, enum fail_category fail, const char *text, int64_t now_ns)
{
	struct client *c = (struct client *)x;

	assert_true(now_ns > 0);
	c->ends++;
	c->fail = fail;
	snprintf(c->text, sizeof(c->text), "%s", text);
}

static const struct exchange_sink sink = {
	.on_send = on_send, .on_sent = on_sent, .on_head = on_head, .on_body = on_body,
	.on_end = on_end,
};

static struct transport_opts options(const char *const *url, const char *const *proxy)
{
	return (struct transport_opts){ .base_url = url, .n_endpoints = 1, .proxy = proxy,
					.connect_timeout_ns = 30000000000,
					.request_timeout_ns = 30000000000 };
}

static void *open_it(const struct transport_opts *o)
{
	struct err e = { 0 };
	void *t = transport_curl.open(o, &e);

	if (!t)
		fail_msg("%s", e.text);
	return t;
}

static void begin(void *t, struct client *c)
{
	buf_release(&c->body);
	*c = (struct client){ .transport = t, .is_cancelled_soon = c->is_cancelled_soon };
	c->x.sink = &sink;
	c->x.request = STR(REQUEST);
	c->x.bytes_in = 1000; /* of an earlier use */
	c->x.attempts = 7;
	transport_curl.start(t, &c->x);
}

static struct transport_stats until_over(void *t, const struct client *c, size_t n)
{
	int64_t until_ns = clock_mono_ns() + 60000000000;
	struct transport_stats stats = { 0 };

	for (size_t i = 0; i < n; i++)
		while (!c[i].ends) {
			assert_true(clock_mono_ns() < until_ns);
			transport_curl.poll(t, clock_mono_ns() + 10000000, false, &stats);
		}
	return stats;
}

/* ---- answers ---- */

#define HEAD "HTTP/1.1 200 OK\r\n"
static const struct {
	const char *title, *answer[ANSWERS_MAX];
	unsigned status;
	enum fail_category fail;
	const char *body, *text; /* text NULL: libcurl's own words */
	bool closes, is_event_stream, is_redirected;
} answers[] = {
	{ "a length", { HEAD "Content-Length: 5\r\n\r\nhello" }, 200, FAIL_NONE, "hello", "",
	  .closes = false },
	{ "nothing", { HEAD "Content-Length: 0\r\n\r\n" }, 200, FAIL_NONE, "", "",
	  .closes = false },
	{ "until the end", { HEAD "\r\nhello" }, 200, FAIL_NONE, "hello", "", .closes = true },
	{ "no content", { "HTTP/1.1 204 No Content\r\n\r\n" }, 204, FAIL_NONE, "", "",
	  .closes = false },
	{ "a status", { "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy" }, 503, FAIL_NONE, "busy", "",
	  .closes = false },
	{ "chunks", { HEAD "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n" }, 200,
	  FAIL_NONE, "abcde", "",
	  .closes = false },
	{ "events", { HEAD "Content-Type: text/event-stream; x=y\r\nContent-Length: 9\r\n\r\ndata: 1\n\n" },
	  200, FAIL_NONE, "data: 1\n\n", "", .is_event_stream = true },
	{ "early hints", { "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" HEAD
			   "Content-Length: 2\r\n\r\nok" }, 200, FAIL_NONE, "ok", "",
	  .closes = false },
	{ "cut in its body", { HEAD "Content-Length: 9\r\n\r\nhello" }, 200, FAIL_TRUNCATED, "hello",
	  "the server closed the connection before the answer was complete", .closes = true },
	{ "cut in a chunk", { HEAD "Transfer-Encoding: chunked\r\n\r\n9\r\nabc" }, 200, FAIL_TRUNCATED, "abc",
	  NULL, .closes = true },
	{ "a bad chunk", { HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc" }, 200, FAIL_PROTOCOL, "",
	  NULL, .closes = true },
	{ "cut in its head", { HEAD "Content-Le" }, 0, FAIL_TRUNCATED, "",
	  "the server closed the connection before the answer was complete", .closes = true },
	{ "no answer", { "" }, 0, FAIL_RESET, "", "the server closed the connection without an answer",
	  .closes = false },
	{ "no HTTP", { "SSH-2.0-x\r\n\r\n" }, 0, FAIL_PROTOCOL, "", NULL, .closes = true },
	{ "compressed", { HEAD "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx" }, 0, FAIL_PROTOCOL, "",
	  "the answer is compressed (Content-Encoding: gzip) though identity was asked for",
	  .closes = false },
	{ "a redirect that is not followed", { "HTTP/1.1 307 Go\r\nLocation: /z\r\nContent-Length: 2\r\n\r\nno" },
	  307, FAIL_NONE, "no", "",
	  .closes = false },
	{ "a redirect", { "HTTP/1.1 307 Go\r\nLocation: /z\r\nContent-Length: 2\r\n\r\nno", HEAD
			  "Content-Length: 3\r\n\r\nyes" }, 200, FAIL_NONE, "yes", "", .is_redirected = true },
	{ "a redirect to nowhere", { "HTTP/1.1 307 Go\r\nContent-Length: 2\r\n\r\nno" }, 307, FAIL_NONE, "no",
	  "", .is_redirected = true },
	{ "a redirect to another protocol", { "HTTP/1.1 302 Go\r\nLocation: ftp://x/\r\nContent-Length: 0\r\n\r\n" },
	  0, FAIL_PROTOCOL, "", NULL, .is_redirected = true },
};

static void every_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		char url[64];
		const char *urls[] = { url };
		struct transport_opts o = options(urls, NULL);
		struct client c = { 0 };
		struct transport_stats stats;
		struct server s;
		void *t;

		print_message("# %s\n", answers[i].title);
		server_start(&s, answers[i].answer, answers[i].closes, url);
		o.is_redirected = answers[i].is_redirected;
		t = open_it(&o);
		begin(t, &c);
		stats = until_over(t, &c, 1);
		assert_int_equal(c.fail, answers[i].fail);
		assert_int_equal(c.status, answers[i].status);
		assert_string_equal(c.body.data ? c.body.data : "", answers[i].body);
		if (answers[i].text)
			assert_string_equal(c.text, answers[i].text);
		else
			assert_true(*c.text && !strstr(c.text, "connection lost"));
		assert_int_equal(c.is_event_stream, answers[i].is_event_stream);
		assert_int_equal(c.sends, 1);
		assert_int_equal(c.sents, 1);
		assert_int_equal(c.ends, 1);
		assert_int_equal(c.x.attempts, 1);
		assert_true(c.x.connect_ns > 0 && c.x.connected_ns >= c.x.connect_ns);
		assert_int_equal(stats.connects, 1);
		assert_int_equal(stats.connect_failures, 0);
		assert_int_equal(stats.retries, 0);
		assert_int_equal(stats.http2, 0);
		assert_int_equal(stats.reads, stats.reads_without_stamp);
		/* Framing of chunks is not counted. */
		if (answers[i].fail == FAIL_NONE && !answers[i].is_redirected &&
		    !strstr(answers[i].answer[0], "chunked"))
			assert_int_equal(c.x.bytes_in, strlen(answers[i].answer[0]));
		transport_curl.close(t, &stats);
		server_stop(&s);
		buf_release(&c.body);
	}
}

/* What is sent: libcurl's own lines are not, empty headers are. */
static void requests(void **state)
{
	static const char *const answer[ANSWERS_MAX] = { HEAD "Content-Length: 1\r\n\r\na", HEAD
							 "Content-Length: 1\r\n\r\nb", HEAD
							 "Content-Length: 1\r\n\r\nc" };
	char url[64];
	const char *urls[] = { url };
	struct transport_opts o = options(urls, NULL);
	struct client c = { 0 };
	struct transport_stats stats;
	struct server s;
	void *t;

	(void)state;
	server_start(&s, answer, false, url);
	t = open_it(&o);
	for (int i = 0; i < 3; i++) {
		begin(t, &c);
		stats = until_over(t, &c, 1);
		assert_int_equal(c.fail, FAIL_NONE);
		assert_string_equal(c.body.data, i == 0 ? "a" : i == 1 ? "b" : "c");
		/* The first one connects. */
		assert_int_equal(c.x.connect_ns > 0, i == 0);
		assert_int_equal(c.x.connected_ns > 0, i == 0);
	}
	assert_int_equal(stats.connects, 1);
	assert_int_equal(s.connections, 1);
	for (const char *at = s.asked.data, *end; *at; at = end) {
		end = strstr(at, "{=1}") + 4;
		assert_true(strncmp(at, "POST /v1/x?y=1 HTTP/1.1\r\n", 25) == 0);
		assert_non_null(strstr(at, "\r\nHost: h\r\n"));
		assert_non_null(strstr(at, "\r\nX-Empty:\r\n"));
		assert_non_null(strstr(at, "\r\nX-Two: a b\r\n"));
		assert_non_null(strstr(at, "\r\nContent-Length: 4\r\n"));
		assert_null(strcasestr(at, "expect"));
		assert_null(strcasestr(at, "user-agent"));
	}
	transport_curl.close(t, &stats);
	server_stop(&s);
	buf_release(&c.body);
}

/* A kept connection that the server has closed: the request is sent again. */
static void closed_while_kept(void **state)
{
	static const char *const answer[ANSWERS_MAX] = { HEAD "Content-Length: 1\r\n\r\na", "", HEAD
							 "Content-Length: 1\r\n\r\nb" };
	char url[64];
	const char *urls[] = { url };
	struct transport_opts o = options(urls, NULL);
	struct client c = { 0 };
	struct transport_stats stats;
	struct server s;
	void *t;

	(void)state;
	server_start(&s, answer, false, url);
	t = open_it(&o);
	begin(t, &c);
	until_over(t, &c, 1);
	begin(t, &c);
	stats = until_over(t, &c, 1);
	assert_int_equal(c.fail, FAIL_NONE);
	assert_string_equal(c.body.data, "b");
	assert_int_equal(c.x.attempts, 2);
	assert_int_equal(c.sends, 2);
	assert_int_equal(stats.retries, 1);
	assert_int_equal(s.connections, 2);
	transport_curl.close(t, &stats);
	server_stop(&s);
	buf_release(&c.body);
}

/* Several at once; one of them is given up in its own callback, one before its answer. */
static void cancelled(void **state)
{
	static const char *const answer[ANSWERS_MAX] = { HEAD "Content-Length: 9\r\n\r\nab" };
	static const char *const none[ANSWERS_MAX] = { NULL };
	char url[64];
	const char *urls[] = { url };
	struct transport_opts o = options(urls, NULL);
	struct client c[2] = { { .is_cancelled_soon = true } };
	struct transport_stats stats;
	struct server s;
	void *t;

	(void)state;
	server_start(&s, answer, false, url);
	t = open_it(&o);
	begin(t, &c[0]);
	until_over(t, c, 1);
	assert_int_equal(c[0].fail, FAIL_CANCELLED);
	assert_string_equal(c[0].text, "cancelled");
	assert_int_equal(c[0].status, 200);
	transport_curl.close(t, &stats);
	server_stop(&s);
	server_start(&s, none, false, url);
	t = open_it(&o);
	begin(t, &c[0]);
	begin(t, &c[1]);
	transport_curl.cancel(t, &c[1].x);
	assert_int_equal(c[1].ends, 1);
	assert_int_equal(c[1].fail, FAIL_CANCELLED);
	transport_curl.poll(t, clock_mono_ns() + 1000000, false, &stats);
	transport_curl.cancel(t, &c[0].x);
	assert_int_equal(c[0].ends, 1);
	transport_curl.close(t, &stats);
	server_stop(&s);
	buf_release(&c[0].body);
	buf_release(&c[1].body);
}

static void too_late(void **state)
{
	static const char *const none[ANSWERS_MAX] = { NULL };
	char url[64];
	const char *urls[] = { url };
	struct transport_opts o = options(urls, NULL);
	struct client c = { 0 };
	struct transport_stats stats;
	struct server s;
	void *t;

	(void)state;
	server_start(&s, none, false, url);
	o.request_timeout_ns = 50000000;
	t = open_it(&o);
	begin(t, &c);
	until_over(t, &c, 1);
	assert_int_equal(c.fail, FAIL_TIMEOUT);
	assert_string_equal(c.text, "no complete answer within 0.05 s");
	transport_curl.close(t, &stats);
	server_stop(&s);
}

/* Wakes a poll that would wait for long. */
static void *wake_soon(void *t)
{
	usleep(20000);
	transport_curl.wake(t);
	return NULL;
}

static void woken(void **state)
{
	const char *urls[] = { "http://127.0.0.1:1" };
	struct transport_opts o = options(urls, NULL);
	struct transport_stats stats;
	int64_t began_ns = clock_mono_ns();
	pthread_t thread;
	void *t = open_it(&o);

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wake_soon, t), 0);
	transport_curl.poll(t, began_ns + 50000000000, false, &stats);
	assert_true(clock_mono_ns() - began_ns < 40000000000);
	pthread_join(thread, NULL);
	transport_curl.close(t, &stats);
}

static enum fail_category fails(const char *url, const char *proxy, bool is_http2, struct client *c)
{
	const char *urls[] = { url }, *proxies[] = { proxy };
	struct transport_opts o = options(urls, proxies);
	struct transport_stats stats;
	void *t;

	o.is_http2 = is_http2;
	t = open_it(&o);
	begin(t, c);
	stats = until_over(t, c, 1);
	assert_int_equal(stats.connect_failures, c->fail == FAIL_CONNECT || c->fail == FAIL_TLS);
	transport_curl.close(t, &stats);
	return c->fail;
}

/* By a proxy, without a server, without a proxy, and with a server that does not speak HTTP/2. */
static void ways(void **state)
{
	static const char *const text[ANSWERS_MAX] = { "this is not HTTP/2\r\n\r\n" };
	static const char *const ok[ANSWERS_MAX] = { HEAD "Content-Length: 1\r\n\r\na" };
	static const char *const bad_urls[] = { "ftp://x", "http://name.invalid:8000" };
	struct client c = { 0 };
	struct server s;
	struct err e = { 0 };
	char url[64];

	(void)state;
	server_start(&s, ok, false, url);
	/* Names are the proxy's matter. */
	assert_int_equal(fails("http://name.invalid:8000", url, false, &c), FAIL_NONE);
	assert_non_null(strstr(s.asked.data, "POST http://name.invalid:8000/v1/x?y=1 HTTP/1.1\r\n"));
	assert_string_equal(c.body.data, "a");
	server_stop(&s);
	assert_int_equal(fails(url, NULL, false, &c), FAIL_CONNECT);
	assert_int_equal(c.sends, 0);
	assert_true(c.x.connect_ns > 0 && c.x.connected_ns == 0);
	assert_int_equal(fails("http://127.0.0.1:1", url, false, &c), FAIL_CONNECT);
	server_start(&s, text, true, url);
	/* Versions of libcurl differ in what they call it. */
	assert_int_not_equal(fails(url, NULL, true, &c), FAIL_NONE);
	server_stop(&s);
	for (size_t i = 0; i < COUNT(bad_urls); i++) {
		const char *urls[] = { bad_urls[i] };
		struct transport_opts o = options(urls, NULL);

		assert_null(transport_curl.open(&o, &e));
		assert_true(*e.text);
	}
	buf_release(&c.body);
}

static void by_socket(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct server s = { .listener = socket(AF_UNIX, SOCK_STREAM, 0),
			    .answer = { HEAD "Content-Length: 1\r\n\r\nu" } };
	struct client c = { 0 };
	char url[160];

	(void)state;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", dir);
	snprintf(url, sizeof(url), "unix:%s", at.sun_path);
	assert_int_equal(bind(s.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s.listener, 4), 0);
	assert_int_equal(pthread_create(&s.thread, NULL, serve, &s), 0);
	/* A proxy is not for sockets. */
	assert_int_equal(fails(url, "http://127.0.0.1:1", false, &c), FAIL_NONE);
	assert_string_equal(c.body.data, "u");
	server_stop(&s);
	buf_release(&c.body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_answer), cmocka_unit_test(requests),
		cmocka_unit_test(closed_while_kept), cmocka_unit_test(cancelled),
		cmocka_unit_test(too_late), cmocka_unit_test(woken), cmocka_unit_test(ways),
		cmocka_unit_test(by_socket),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
