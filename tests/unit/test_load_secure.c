/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_load_secure.c - the native transport with TLS and through a proxy's tunnel, against a server
 * of our own: what is asked of the proxy, kept connections, and every way in which it fails.
 *
 * threads: yes
 */
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/load/transport.h"
#include "client/net/sock.h"
#include "client/net/tls.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "scratch.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define REQUEST "POST /v1 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n{=1}"
#define HEAD "HTTP/1.1 200 OK\r\n"
#define TUNNEL HEAD "\r\n"

static char cert[128], key[128];

/* ---- the server ---- */

enum end { KEPT, CLOSED, CUT }; /* after an answer; closed: TLS says so */

struct row {
	const char *title;
	const char *tunnel;  /* the proxy's answer to CONNECT; NULL: no proxy */
	const char *noise;   /* in place of TLS; NULL: TLS; "": the connection ends */
	const char *answer;
	enum end end;
	bool is_verified;
	enum fail_category fail;
	const char *body, *text; /* text NULL: some sentence */
};

struct server {
	const struct row *row;
	int listener;
	struct tls_config *config;
	struct buf asked;    /* of the proxy, and requests */
	unsigned connections;
	pthread_t thread;
};

static void send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, p, n < 7 ? n : n / 2, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		p += sent;
		n -= (size_t)sent;
	}
}

static void flush_out(int fd, struct buf *out)
{
	if (out->len)
		send_all(fd, out->data, out->len);
	buf_reset(out);
}

/* Reads until the text has come; false: the end. */
static bool read_until(struct server *s, int fd, const char *what)
{
	char c;
	size_t from = s->asked.len;

	while (read(fd, &c, 1) == 1) {
		buf_add_char(&s->asked, c);
		if (strstr(s->asked.data + from, what))
			return true;
	}
	return false;
}

static void serve_tls(struct server *s, int fd)
{
	struct err e = { 0 };
	struct tls *tls = tls_new(s->config, NULL, &e);
	struct buf out = { 0 }, plain = { 0 };
	struct str in = { 0 };
	char bytes[4096];
	int shaken = 0;
	ssize_t n = 0;

	while (shaken == 0) {
		shaken = tls_handshake(tls, in, &out, &e);
		flush_out(fd, &out);
		if (shaken == 0 && (n = read(fd, bytes, sizeof(bytes))) <= 0)
			break;
		in = (struct str){ bytes, (size_t)n };
	}
	in = (struct str){ 0 };
	while (shaken == 1 && tls_read(tls, in, &plain, &out, &e) == 1) {
		flush_out(fd, &out);
		if (plain.len && strstr(plain.data, "{=1}")) {
			buf_add_str(&s->asked, buf_str(&plain));
			buf_reset(&plain);
			tls_write(tls, str_of(s->row->answer), &out, &e);
			if (s->row->end == CLOSED)
				tls_close(tls, &out);
			flush_out(fd, &out);
			if (s->row->end != KEPT)
				break;
		}
		n = read(fd, bytes, sizeof(bytes));
		if (n <= 0)
			break;
		in = (struct str){ bytes, (size_t)n };
		buf_add_text(&plain, ""); /* ends with a zero */
	}
	tls_free(tls);
	buf_release(&out);
	buf_release(&plain);
}

static void *serve(void *self)
{
	struct server *s = self;
	int fd;

	while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
		bool goes_on = true;

		s->connections++;
		if (s->row->tunnel) {
			goes_on = read_until(s, fd, "\r\n\r\n") && *s->row->tunnel;
			send_all(fd, s->row->tunnel, strlen(s->row->tunnel));
			goes_on = goes_on && strcmp(s->row->tunnel, TUNNEL) == 0;
		}
		if (goes_on && s->row->noise)
			send_all(fd, s->row->noise, strlen(s->row->noise));
		else if (goes_on)
			serve_tls(s, fd);
		shutdown(fd, SHUT_WR);
		while (read(fd, (char[256]){ 0 }, 256) > 0)
			;
		close(fd);
	}
	return NULL;
}

static unsigned server_start(struct server *s, const struct row *row)
{
	struct tls_opts o = { .cert_file = cert, .key_file = key, .is_server = true };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(at);
	struct err e = { 0 };

	*s = (struct server){ .row = row, .listener = socket(AF_INET, SOCK_STREAM, 0) };
	s->config = tls_config_new(&o, &e);
	if (!s->config)
		fail_msg("%s", e.text);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(s->listener, 16), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &n), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	return ntohs(at.sin_port);
}

static void server_stop(struct server *s)
{
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listener);
	tls_config_free(s->config);
}

/* ---- the client ---- */

struct client {
	struct exchange x; /* first: the sink gets back to us from it */
	struct buf body;
	unsigned status, sends, sents, ends;
	enum fail_category fail;
	char text[256];
};

static void on_send(struct exchange *x, int64_t now_ns)
{
	(void)now_ns;
	((struct client *)x)->sends++;
}

static void on_sent(struct exchange *x, int64_t now_ns)
{
	(void)now_ns;
	((struct client *)x)->sents++;
}

static void on_head(struct exchange *x, unsigned status, bool is_event_stream, struct str head,
		    int64_t kernel_ns, int64_t user_ns)
{
	(void)is_event_stream, (void)head, (void)kernel_ns, (void)user_ns;
	((struct client *)x)->status = status;
}

static void on_body(struct exchange *x, struct str piece, int64_t kernel_ns, int64_t user_ns)
{
	(void)kernel_ns, (void)user_ns;
	buf_add_str(&((struct client *)x)->body, piece);
}

static void on_end(struct exchange *x, enum fail_category fail, const char *text, int64_t now_ns)
{
	struct client *c = (struct client *)x;

	(void)now_ns;
	c->ends++;
	c->fail = fail;
	snprintf(c->text, sizeof(c->text), "%s", text);
}

static const struct exchange_sink sink = {
	.on_send = on_send, .on_sent = on_sent, .on_head = on_head, .on_body = on_body,
	.on_end = on_end,
};

static struct transport_stats ask(void *t, struct client *c)
{
	int64_t until_ns = clock_mono_ns() + 60000000000;
	struct transport_stats stats = { 0 };

	buf_release(&c->body);
	*c = (struct client){ .x = { .sink = &sink, .request = STR(REQUEST) } };
	transport_native.start(t, &c->x);
	while (!c->ends) {
		assert_true(clock_mono_ns() < until_ns);
		transport_native.poll(t, clock_mono_ns() + 10000000, false, &stats);
	}
	return stats;
}

#define LENGTH HEAD "Content-Length: 5\r\n\r\nhello"
static const struct row rows[] = {
	{ "TLS", NULL, NULL, LENGTH, KEPT, false, FAIL_NONE, "hello", "" },
	{ "until the end", NULL, NULL, HEAD "\r\nhello", CLOSED, false, FAIL_NONE, "hello", "" },
	{ "cut in its body", NULL, NULL, HEAD "Content-Length: 9\r\n\r\nhello", CLOSED, false, FAIL_TRUNCATED,
	  "hello", "the server closed the connection before the answer was complete" },
	{ "cut without a word", NULL, NULL, HEAD "Content-Length: 9\r\n\r\nhello", CUT, false, FAIL_TRUNCATED,
	  "hello", "the server closed the connection before the answer was complete" },
	{ "a certificate that is not trusted", NULL, NULL, LENGTH, KEPT, true, FAIL_TLS, "", NULL },
	{ "no TLS", NULL, "this is not TLS\r\n", LENGTH, KEPT, false, FAIL_TLS, "",
	  "TLS: 127.0.0.1 does not speak TLS on this port; use http://" },
	{ "the end in place of TLS", NULL, "", LENGTH, KEPT, false, FAIL_TLS, "",
	  "the server closed the connection during the TLS handshake" },
	{ "a tunnel", TUNNEL, NULL, LENGTH, KEPT, false, FAIL_NONE, "hello", "" },
	{ "a tunnel that is refused", "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", NULL, LENGTH, KEPT, false,
	  FAIL_CONNECT, "", "the proxy refused CONNECT with status 403" },
	{ "a proxy that does not speak HTTP", "SSH-2.0-x\r\n\r\n", NULL, LENGTH, KEPT, false, FAIL_CONNECT, "",
	  "the proxy's answer to CONNECT is not HTTP" },
	{ "a proxy that closes", "", NULL, LENGTH, KEPT, false, FAIL_CONNECT, "",
	  "the connection was closed before it could be used" },
	{ "a tunnel to no TLS", TUNNEL, "this is not TLS\r\n", LENGTH, KEPT, false, FAIL_TLS, "", NULL },
};

static void every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char url[64], proxy[64], want[160];
		const char *urls[] = { url }, *proxies[] = { rows[i].tunnel ? proxy : NULL };
		struct transport_opts o = { .base_url = urls, .n_endpoints = 1, .proxy = proxies,
					    .is_insecure = !rows[i].is_verified, .ca_file = NULL,
					    .connect_timeout_ns = 30000000000,
					    .request_timeout_ns = 30000000000 };
		struct transport_stats stats;
		struct client c = { 0 };
		struct err e = { 0 };
		struct server s;
		unsigned port = server_start(&s, &rows[i]);
		void *t;

		print_message("# %s\n", rows[i].title);
		/* In a tunnel the proxy is asked for a server that need not exist. */
		snprintf(url, sizeof(url), "https://127.0.0.1:%u", rows[i].tunnel ? 9 : port);
		snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%u", port);
		o.ca_file = rows[i].is_verified ? cert : NULL;
		t = transport_native.open(&o, &e);
		if (!t)
			fail_msg("%s", e.text);
		stats = ask(t, &c);
		print_message("#   %d: %s\n", (int)c.fail, c.text);
		assert_int_equal(c.fail, rows[i].fail);
		assert_string_equal(c.body.data ? c.body.data : "", rows[i].body);
		if (rows[i].text)
			assert_string_equal(c.text, rows[i].text);
		else
			assert_true(*c.text);
		assert_int_equal(c.sends, *rows[i].body ? 1 : 0);
		assert_int_equal(c.sents, c.sends);
		assert_int_equal(stats.connects, 1);
		if (rows[i].end == KEPT && rows[i].fail == FAIL_NONE) {
			stats = ask(t, &c);
			assert_int_equal(c.fail, FAIL_NONE);
			assert_string_equal(c.body.data, "hello");
			assert_int_equal(stats.connects, 1);
			assert_int_equal(c.x.connect_ns, 0);
		}
		transport_native.close(t, &stats);
		snprintf(want, sizeof(want), "CONNECT 127.0.0.1:9 HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\r\n%s",
			 *rows[i].body ? REQUEST REQUEST : "");
		server_stop(&s);
		if (rows[i].tunnel)
			assert_string_equal(s.asked.data, want);
		assert_int_equal(s.connections, 1);
		buf_release(&s.asked);
		buf_release(&c.body);
	}
}

/* The server's part of the handshake arrives, and the connection is gone before the client's. */
static void reset_within_the_handshake(void **state)
{
	struct tls_opts server_opts = { .cert_file = cert, .key_file = key, .is_server = true };
	char url[64], bytes[8192], want[128];
	const char *urls[] = { url };
	struct transport_opts o = { .base_url = urls,
				    .n_endpoints = 1,
				    .is_insecure = true,
				    .connect_timeout_ns = 30000000000,
				    .request_timeout_ns = 30000000000 };
	struct client c = { .x = { .sink = &sink, .request = STR(REQUEST) } };
	struct sock_addr addr[SOCK_ADDRS_MAX];
	struct transport_stats stats = { 0 };
	struct buf out = { 0 };
	struct err e = { 0 };
	struct tls_config *config = tls_config_new(&server_opts, &e);
	struct tls *tls = tls_new(config, NULL, &e);
	int listener, side;
	ssize_t n;
	void *t;

	(void)state;
	assert_true(sock_resolve("127.0.0.1", 0, addr, &e) >= 1);
	listener = sock_listen(&addr[0], 4, &e);
	assert_true(listener >= 0);
	sock_addr_text(&addr[0], bytes, sizeof(bytes));
	snprintf(url, sizeof(url), "https://%.50s", bytes);
	snprintf(want, sizeof(want), "connection lost while sending to %.50s: ", bytes);
	t = transport_native.open(&o, &e);
	assert_non_null(t);
	transport_native.start(t, &c.x);
	for (side = -1; side < 0; side = sock_accept(listener, false))
		transport_native.poll(t, clock_mono_ns() + 1000000, false, &stats);
	while ((n = recv(side, bytes, sizeof(bytes), MSG_DONTWAIT)) < 0)
		transport_native.poll(t, clock_mono_ns() + 1000000, false, &stats);
	assert_int_equal(tls_handshake(tls, (struct str){ bytes, (size_t)n }, &out, &e), 0);
	assert_true(out.len > 0);
	send_all(side, out.data, out.len);
	setsockopt(side, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
	close(side);
	for (int i = 0; i < 1000 && !c.ends; i++)
		transport_native.poll(t, clock_mono_ns() + 5000000, false, &stats);
	assert_int_equal(c.ends, 1);
	assert_int_equal(c.fail, FAIL_RESET);
	assert_memory_equal(c.text, want, strlen(want));
	assert_int_equal(c.sends, 0);
	transport_native.close(t, NULL);
	sock_close(listener);
	tls_free(tls);
	tls_config_free(config);
	buf_release(&out);
}

static int make_all(void **state)
{
	struct err e = { 0 };

	if (make_dir(state) < 0)
		return -1;
	snprintf(cert, sizeof(cert), "%s/cert.pem", dir);
	snprintf(key, sizeof(key), "%s/key.pem", dir);
	return tls_make_certificate(cert, key, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row), cmocka_unit_test(reset_within_the_handshake),
	};

	return cmocka_run_group_tests(tests, make_all, remove_dir);
}
