/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_doctor_visit.c - what is found out about a server before load is sent to it: by name, by
 * socket, through a proxy, with TLS, with answers of every kind, and without any.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <sys/un.h>

#include "host/doctor/doctor.h"
#include "answers.h"
#undef ANSWERS_MAX /* fetch_server.h has its own */
#include "fetch_server.h"
#include "scratch.h"

#define OK(body) "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" body
#define MODELS "{\"object\": \"list\", \"data\": [{\"id\": \"a\"}, {\"id\": 7}, {\"no\": 1}, {\"id\": \"b\"}, " \
	       "{\"id\": \"c\"}, {\"id\": \"d\"}]}"
#define METRICS "# HELP x y\n# TYPE x counter\nx 1\ny{a=\"b\"} 2.5\n\nz NaN\nodd line {\n"

static void put_stage(struct buf *b, const char *name, const struct doctor_stage *s)
{
	static const char *const is[] = { "not tried", "done", "failed" };

	buf_printf(b, "%s: %s%s, %s\n", name, is[s->is], s->ms > 0 && s->ms < 60000 ? ", timed" : "",
		   s->text);
}

/* All that is no time; the port is hidden. */
static void check(const char *title, const struct doctor_visit *v, unsigned port)
{
	struct doctor_server s;
	struct buf out = { 0 };
	struct err e = { 0 };
	char text[16];
	int rc = doctor_visit(v, &s, &e);

	buf_printf(&out, "%s: %d %s\n", title, rc, e.text);
	if (rc == 0) {
		buf_printf(&out, "unix %d, TLS %d %s, proxy %d, host %s, authority %s, route %s\n",
			   s.is_unix, s.is_tls, s.tls_version, s.has_proxy, s.host, s.authority,
			   s.route.name);
		put_stage(&out, "name", &s.name);
		put_stage(&out, "connect", &s.connect);
		put_stage(&out, "tls", &s.tls);
		put_stage(&out, "models", &s.models);
		put_stage(&out, "metrics", &s.metrics);
		buf_printf(&out, "addresses %zu, slowest %s, models %ld, metrics %ld, series %llu\n",
			   s.n_addresses, s.connect_max_ms >= s.connect.ms ? "not less" : "less",
			   s.models_status, s.metrics_status, (unsigned long long)s.n_series);
	}
	snprintf(text, sizeof(text), ":%u", port);
	if (port)
		answers_mask(&out, text, ":PORT");
	answers_release(&out);
}

static const struct { const char *title, *answer[3]; } server[] = {
	{ "all is there", { OK(MODELS), OK(METRICS) } },
	{ "no models, no metrics", { "HTTP/1.1 404 Not Found\r\n\r\n", "HTTP/1.1 401 No\r\n\r\nx 1\n" } },
	{ "not JSON", { OK("hello"), OK("") } },
	{ "no list", { OK("{\"data\": 3}"), OK("x 1") } },
	{ "no HTTP", { "SSH-2.0-x\r\n", OK("x 1") } },
};

static void answers(void **state)
{
	(void)state;
	without_proxies();
	for (size_t i = 0; i < sizeof(server) / sizeof(*server); i++) {
		struct server s;
		char url[64];
		const struct doctor_visit v = { .url = url, .api_key = i ? NULL : "key-of-16-characters" };

		server_start(&s, server[i].answer);
		snprintf(url, sizeof(url), "http://127.0.0.1:%u/base", s.port);
		check(server[i].title, &v, s.port);
		server_stop(&s);
	}
}

/* What the server was asked, and with which key. */
static void asked(void **state)
{
	static const char *const answer[] = { OK(MODELS), OK(METRICS), NULL };
	char url[64];
	struct doctor_visit v = { .url = url, .api_key = "key-of-16-characters" };
	struct doctor_server out;
	struct server s;
	struct err e = { 0 };

	(void)state;
	server_start(&s, answer);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/base", s.port);
	assert_int_equal(doctor_visit(&v, &out, &e), 0);
	assert_int_equal(occurrences(&s.asked, "GET /base/v1/models HTTP/1.1\r\n"), 1);
	assert_int_equal(occurrences(&s.asked, "GET /base/metrics HTTP/1.1\r\n"), 1);
	assert_int_equal(occurrences(&s.asked, "Authorization: Bearer key-of-16-characters\r\n"), 2);
	server_stop(&s);
	/* A proxy is asked also for a server that this machine cannot reach. */
	server_start(&s, answer);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", s.port);
	v = (struct doctor_visit){ .url = "http://server.invalid:8000/v", .proxy = url };
	assert_int_equal(doctor_visit(&v, &out, &e), 0);
	assert_int_equal(out.name.is, DOCTOR_FAILED);
	assert_int_equal(out.connect.is, DOCTOR_NOT_TRIED);
	assert_int_equal(out.models_status, 200);
	assert_int_equal(out.n_series, 3);
	assert_true(out.has_proxy);
	assert_int_equal(occurrences(&s.asked, "GET http://server.invalid:8000/v/v1/models HTTP/1.1\r\n"),
			 1);
	assert_int_equal(occurrences(&s.asked, "Authorization"), 0);
	server_stop(&s);
}

/* Answers the first bytes of each connection that sends some, whatever they are. */
struct blunt {
	int listener;
	size_t n;
	const char *answer[2];
};

static void *serve_bluntly(void *self)
{
	const struct blunt *b = self;
	char head[4096];

	for (size_t k = 0; k < b->n;) {
		int c = accept(b->listener, NULL, NULL);

		if (c < 0)
			break;
		if (read(c, head, sizeof(head)) > 0)
			send(c, b->answer[k], strlen(b->answer[k]), MSG_NOSIGNAL), k++;
		close(c);
	}
	return NULL;
}

static void nobody_there(void **state)
{
	static const char *const url[] = {
		"ftp://x", "", "http://", "unix:/nonexistent/socket", "http://name.invalid",
	};
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct blunt b = { socket(AF_INET, SOCK_STREAM, 0), 1, { "not a TLS server\r\n" } };
	socklen_t n = sizeof(in);
	struct doctor_visit v = { 0 };
	pthread_t thread;
	unsigned port;
	char at[64];

	(void)state;
	for (size_t i = 0; i < sizeof(url) / sizeof(*url); i++) {
		v.url = url[i];
		/* What a resolver says of a name differs between machines. */
		if (i + 1 < sizeof(url) / sizeof(*url))
			check(url[i], &v, 0);
	}
	assert_int_equal(bind(b.listener, (struct sockaddr *)&in, n), 0);
	assert_int_equal(listen(b.listener, 16), 0);
	assert_int_equal(getsockname(b.listener, (struct sockaddr *)&in, &n), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve_bluntly, &b), 0);
	port = ntohs(in.sin_port);
	snprintf(at, sizeof(at), "https://127.0.0.1:%u", port);
	v = (struct doctor_visit){ .url = at };
	{
		struct doctor_server out;
		struct err e = { 0 };

		assert_int_equal(doctor_visit(&v, &out, &e), 0);
		assert_true(out.is_tls && out.connect.is == DOCTOR_DONE);
		assert_int_equal(out.tls.is, DOCTOR_FAILED);
		assert_true(*out.tls.text && out.n_addresses >= 1 && !*out.tls_version);
		assert_int_equal(out.models.is, DOCTOR_NOT_TRIED);
	}
	v = (struct doctor_visit){ .url = at, .ca_file = "/nonexistent/ca.pem" };
	{
		struct doctor_server out;
		struct err e = { 0 };

		assert_int_equal(doctor_visit(&v, &out, &e), 0);
		assert_int_equal(out.tls.is, DOCTOR_FAILED);
		assert_non_null(strstr(out.tls.text, "/nonexistent/ca.pem"));
	}
	shutdown(b.listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(b.listener);
	snprintf(at, sizeof(at), "http://127.0.0.1:%u", port);
	v = (struct doctor_visit){ .url = at };
	check("nothing listens", &v, port);
}

static void by_socket(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct blunt b = { socket(AF_UNIX, SOCK_STREAM, 0), 2, { OK(MODELS), OK(METRICS) } };
	char url[160];
	const struct doctor_visit v = { .url = url };
	pthread_t thread;

	(void)state;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", dir);
	snprintf(url, sizeof(url), "unix:%s", at.sun_path);
	assert_int_equal(bind(b.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(b.listener, 16), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve_bluntly, &b), 0);
	check("a socket", &v, 0);
	shutdown(b.listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(b.listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers), cmocka_unit_test(asked), cmocka_unit_test(nobody_there),
		cmocka_unit_test(by_socket),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
