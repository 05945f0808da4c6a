/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_console_reporter.c - what a run says to a dashboard that takes it, that has no time, that
 * does not know it or refuses: which requests are sent, and what the user reads.
 *
 * threads: yes
 */
#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "cmd/console/reporter.h"
#include "core/base/mem.h"

#define ANSWERS_MAX 8

/* Answers one request after the other, each on a connection of its own. */
static struct {
	int fd;
	char url[64];
	const char *const *answer;   /* "201 {...}"; after the last one "200 {}" */
	size_t n;                    /* requests */
	bool shows_samples;
	struct buf asked;            /* of each path what follows /api, of the end its body */
	pthread_mutex_t lock;
	pthread_cond_t changed;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* A request's head and body; its length. */
static size_t read_request(int fd, char *text, size_t room)
{
	size_t n = 0, want = 0;

	while (n + 1 < room && (!want || n < want)) {
		ssize_t got = read(fd, text + n, room - n - 1);
		const char *body, *length;

		if (got <= 0)
			break;
		text[n += (size_t)got] = 0;
		body = strstr(text, "\r\n\r\n");
		length = strcasestr(text, "content-length:");
		if (body && !want)
			want = (size_t)(body + 4 - text) +
			       (length ? strtoul(length + 15, NULL, 10) : 0);
	}
	return n;
}

static void *serve(void *unused)
{
	static char text[65536];

	(void)unused;
	for (;;) {
		int fd = accept(server.fd, NULL, NULL);
		const char *answer = "200 {}", *end;
		char reply[512];

		if (fd < 0)
			return NULL;
		if (!read_request(fd, text, sizeof(text))) {
			close(fd);
			continue;
		}
		pthread_mutex_lock(&server.lock);
		if (server.answer[server.n])
			answer = server.answer[server.n];
		end = strstr(text, "\r\n\r\n") + 4;
		buf_printf(&server.asked, "%s%.*s", server.n ? " " : "", (int)strcspn(text + 9, " "), text + 9);
		if (strstr(text, "/end ") || server.shows_samples)
			buf_printf(&server.asked, " %s", end);
		snprintf(reply, sizeof(reply), "HTTP/1.1 %.3s X\r\nConnection: close\r\nContent-Length: %zu\r\n"
			 "\r\n%s", answer, strlen(answer + 4), answer + 4);
		if (write(fd, reply, strlen(reply)) < 0)
			buf_add_text(&server.asked, " (gone)");
		server.n += server.answer[server.n] != NULL;
		pthread_cond_signal(&server.changed);
		pthread_mutex_unlock(&server.lock);
		close(fd);
	}
}

static void add(void *self, const char *text)
{
	buf_printf(self, "%s\n", text);
}

static void check(const char *const *answer, size_t first, const char *asked, const char *said)
{
	struct buf told = { 0 }, want = { 0 };
	struct reporter_opts o = { .url = server.url, .kind = "test", .self = &told, .line = add, .warn = add };
	struct reporter *r;
	struct err e = { 0 };
	const char *at;

	pthread_mutex_lock(&server.lock);
	server.answer = answer;
	server.n = 0;
	buf_reset(&server.asked);
	pthread_mutex_unlock(&server.lock);
	assert_int_equal(reporter_new(&o, &r, &e), 0);
	reporter_begin(r, "mine");
	pthread_mutex_lock(&server.lock);
	while (server.n < first)
		pthread_cond_wait(&server.changed, &server.lock);
	pthread_mutex_unlock(&server.lock);
	reporter_end(r, STR("{\"a\": 1}"), NULL);
	reporter_free(r);
	assert_string_equal(server.asked.data, asked);
	at = strstr(said, "URL");
	if (at)
		buf_printf(&want, "%.*s%s%s\n", (int)(at - said), said, server.url, at + 3);
	assert_string_equal(told.data ? told.data : "", want.data ? want.data : said);
	buf_release(&told);
	buf_release(&want);
}

#define TAKEN "201 {\"id\": \"x\"}"
#define WHOLE "/live /live/x/samples /live/x/samples /live/x/end {\"result\": {\"a\": 1}}"
#define NOT_SHOWN "--dashboard: URL does not show this run ("
#define GOES_ON "); the run goes on without it"

static void dashboards(void **state)
{
	static const struct {
		const char *answer[ANSWERS_MAX];
		size_t first;    /* requests before the run ends */
		const char *asked, *said;
	} row[] = {
		{ { TAKEN, "200 {}", "200 {}", "200 {\"run\": 7}" }, 2, WHOLE, "Dashboard: URL/runs/7" },
		{ { TAKEN, "200 {}", "200 {}", "200 {}" }, 2, WHOLE, "" },
		/* no time now: asked once more at the end */
		{ { "503 {}", TAKEN }, 1, "/live /live /live/x/samples /live/x/end {\"result\": {\"a\": 1}}",
		  NOT_SHOWN "it answered 503" GOES_ON },
		{ { "429 {}", TAKEN }, 1, "/live /live /live/x/samples /live/x/end {\"result\": {\"a\": 1}}",
		  NOT_SHOWN "it answered 429" GOES_ON },
		{ { "408 {}", TAKEN }, 1, "/live /live /live/x/samples /live/x/end {\"result\": {\"a\": 1}}",
		  NOT_SHOWN "it answered 408" GOES_ON },
		{ { "500 {}", "500 {}" }, 1, "/live /live", NOT_SHOWN "it answered 500" GOES_ON },
		/* refused: not asked again */
		{ { "403 {\"detail\": \"no\"}" }, 1, "/live", NOT_SHOWN "it answered 403: no"
		  GOES_ON },
		{ { "499 {}" }, 1, "/live", NOT_SHOWN "it answered 499" GOES_ON },
		{ { "300 {}" }, 1, "/live", NOT_SHOWN "it answered 300" GOES_ON },
		{ { "404 {}" }, 1, "/live", NOT_SHOWN "it is not a dashboard, or its version does not accept live "
		  "reports" GOES_ON },
		{ { "200 {}" }, 1, "/live", NOT_SHOWN "it is not a dashboard, or its version does not accept live "
		  "reports" GOES_ON },
		{ { "200 no JSON" }, 1, "/live", NOT_SHOWN "it is not a dashboard, or its version does not accept "
		  "live reports" GOES_ON },
		/* started again in between: the run is begun again */
		{ { TAKEN, "404 {}", "201 {\"id\": \"y\"}", "200 {}" }, 2, "/live /live/x/samples /live "
		  "/live/y/samples /live/y/samples /live/y/end {\"result\": {\"a\": 1}}", "" },
		{ { TAKEN, "200 {}", "200 {}", "507 {}" }, 2, WHOLE, "--dashboard: URL did not take the "
		  "result of this run (it answered 507), so it is not stored there" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		check(row[i].answer, row[i].first, row[i].asked, row[i].said);
}

/* What is at the server is what was sent and has not ended. */
static void samples(void **state)
{
	static const char *const answer[ANSWERS_MAX] = { TAKEN, "200 {}" };
	struct reporter_opts o = { .url = server.url, .kind = "test", .warn = add };
	struct record record = { 0 };
	struct run_sample now = {
		.record = &record, .n_rows = 4,
		.load = { .admitted = 6, .done = 4, .failed = 1, .tokens = 8 },
		.server = { .running = NAN, .waiting = 3, .kv_usage = 0.25 },
		.system = { .gpu_utilization = NAN, .gpu_power = 70 },
	};
	struct reporter *r;
	struct err e = { 0 };

	(void)state;
	pthread_mutex_lock(&server.lock);
	server.answer = answer;
	server.n = 0;
	pthread_mutex_unlock(&server.lock);
	assert_int_equal(reporter_new(&o, &r, &e), 0);
	reporter_begin(r, "mine");
	pthread_mutex_lock(&server.lock);
	while (server.n < 2)
		pthread_cond_wait(&server.changed, &server.lock);
	buf_reset(&server.asked);
	server.shows_samples = true;
	pthread_mutex_unlock(&server.lock);
	reporter_sample(r, &now);
	reporter_end(r, STR(""), "cut");
	reporter_free(r);
	assert_non_null(strstr(server.asked.data, "\"done\": 4, \"failed\": 1, \"total\": 4, "
			       "\"stage\": \"Benchmark\""));
	assert_non_null(strstr(server.asked.data, "\"running\": 2.0, \"waiting\": 3.0, \"kv_cache_percent\": 25.0"));
	assert_non_null(strstr(server.asked.data, "\"gpu_power_w\": 70.0"));
	assert_null(strstr(server.asked.data, "gpu_util_percent"));
	assert_non_null(strstr(server.asked.data, "/live/x/end {\"failure\": \"cut\"}"));
	server.shows_samples = false;
}

static pthread_t thread;

static int setup(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);

	(void)state;
	setenv("PROFLLM_DASHBOARD_TOKEN", "t", 1);
	server.fd = socket(AF_INET, SOCK_STREAM, 0);
	if (server.fd < 0 || bind(server.fd, (struct sockaddr *)&a, n) < 0 ||
	    listen(server.fd, 8) < 0 || getsockname(server.fd, (struct sockaddr *)&a, &n) < 0)
		return -1;
	snprintf(server.url, sizeof(server.url), "http://127.0.0.1:%u", ntohs(a.sin_port));
	return pthread_create(&thread, NULL, serve, NULL);
}

static int teardown(void **state)
{
	(void)state;
	shutdown(server.fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(server.fd);
	buf_release(&server.asked);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dashboards), cmocka_unit_test(samples),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
