/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fetch.c - fetch_get against a server of canned answers: headers, redirects and who
 * sees the token, parts of files, tries, limits, silence, cancelling.
 *
 * threads: yes
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "fetch_server.h"
#include "input/fetch/fetch.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

#define OK "HTTP/1.1 200 OK\r\nConnection: close\r\n"
#define PART "HTTP/1.1 206 OK\r\nConnection: close\r\nContent-Range: bytes "

/* ---- files ---- */

struct row {
	const char *name, *before;   /* what the file holds already */
	const char *answer[5];
	long status;                 /* 0: an error */
	const char *file;            /* what it holds afterwards */
	const char *want;            /* in the error, or in what was asked */
};

static const struct row FILES[] = {
	{ "whole", "", { OK "Content-Length: 3\r\n\r\nabc" }, 200, "abc", "identity" },
	{ "to the end of the connection", "", { OK "\r\nabc" }, 200, "abc", "GET /f" },
	{ "continued", "ab", { PART "2-3/4\r\nContent-Length: 2\r\n\r\ncd" }, 206, "abcd",
		"Range: bytes=2-\r\n" },
	{ "ranges ignored", "xy", { OK "Content-Length: 4\r\n\r\nabcd" }, 200, "abcd", "bytes=2-" },
	{ "ranges ignored, empty", "xy", { OK "Content-Length: 0\r\n\r\n" }, 200, "", "bytes=2-" },
	{ "another range", "ab", { PART "0-3/4\r\nContent-Length: 4\r\n\r\nabcd" }, 0, "ab",
		"another part of the file than the one from byte 2" },
	{ "a range that begins likewise", "ab", { PART "20-21/30\r\nContent-Length: 2\r\n\r\ncd" }, 0,
		"ab", "another part" },
	{ "a range not asked for", "", { PART "0-1/4\r\nContent-Length: 2\r\n\r\nab" }, 0, "",
		"another part" },
	{ "nothing behind it", "abcd", { "HTTP/1.1 416 X\r\nConnection: close\r\n"
		"Content-Length: 0\r\n\r\n", OK "Content-Length: 3\r\n\r\nxyz" }, 200, "xyz", "bytes=4-" },
	{ "cut, then the rest", "", { OK "Content-Length: 4\r\n\r\nab",
		PART "2-3/4\r\nContent-Length: 2\r\n\r\ncd" }, 206, "abcd", "bytes=2-" },
	{ "cut in chunks", "", { OK "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
		PART "2-3/4\r\nContent-Length: 2\r\n\r\ncd" }, 206, "abcd", "bytes=2-" },
	{ "cut every time", "", { OK "Content-Length: 9\r\n\r\na",
		PART "1-8/9\r\nContent-Length: 8\r\n\r\nb", PART "2-8/9\r\nContent-Length: 7\r\n\r\nc" },
		0, "abc", "/f: transfer closed with" },
	{ "an error's body is no file", "", { "HTTP/1.1 404 X\r\nConnection: close\r\n"
		"Content-Length: 4\r\n\r\nnone" }, 404, "", "GET /f" },
	{ "too large", "", { OK "\r\n0123456789abcdefX" }, 0, NULL, "larger than 16 bytes" },
	{ "headers without end", "", { OK "A: x\r\nB", OK "A: x\r\n", OK }, 0, "",
		"/f: Server returned nothing" },
};

static void test_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(FILES); i++) {
		const struct row *r = &FILES[i];
		char path[] = "/tmp/fetch-XXXXXX", url[64], got[64] = "";
		struct fetch_opts opts = { 0 };
		struct fetch_get get = { .url = url, .file_bytes_max = 16, .silence_ms = 3000,
			.tries = 3, .opts = &opts };
		struct fetch_reply reply;
		struct server s;
		struct err e = { 0 };
		int rc;

		server_start(&s, r->answer);
		snprintf(url, sizeof(url), "http://127.0.0.1:%d/f", s.port);
		get.fd = mkstemp(path);
		assert_int_equal(write(get.fd, r->before, strlen(r->before)), strlen(r->before));
		rc = fetch_get(&get, &reply, &e);
		if (rc != (r->status ? 0 : -1))
			fail_msg("%s: %d, %s", r->name, rc, e.text);
		if (pread(get.fd, got, sizeof(got) - 1, 0) < 0 || (r->file && strcmp(got, r->file)))
			fail_msg("%s: the file has \"%s\"", r->name, got);
		if (rc == 0 && reply.status != r->status)
			fail_msg("%s: status %ld", r->name, reply.status);
		if (!strstr(rc ? e.text : s.asked.data, r->want))
			fail_msg("%s: %s", r->name, rc ? e.text : s.asked.data);
		if (rc == 0)
			fetch_reply_release(&reply);
		close(get.fd);
		unlink(path);
		server_stop(&s);
	}
}

/* ---- redirects ---- */

static void test_redirects(void **state)
{
	static const struct {
		const char *location;   /* %d: the other server's port */
		bool is_head, is_marked;
		long status;
		size_t tokens[2];       /* how often each server saw the token */
	} row[] = {
		{ "/there", false, true, 200, { 2, 0 } },
		{ "/there", true, true, 200, { 2, 0 } },
		{ "http://127.0.0.1:%d/x", false, false, 200, { 1, 0 } },
		{ "http://127.0.0.1:%d/x", true, true, 302, { 1, 0 } },
		{ "http://127.0.0.1:%d/x", true, false, 200, { 1, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		char url[64], to[128], answer[256];
		struct fetch_opts opts = { 0 };
		struct fetch_get get = { .url = url, .authorization = "Bearer secret",
			.mark = row[i].is_marked ? "X-Here" : "X-Elsewhere",
			.is_head = row[i].is_head, .fd = -1, .silence_ms = 3000, .opts = &opts };
		struct fetch_reply reply;
		struct server hub, other;
		struct err e = { 0 };

		server_start(&other, (const char *[]){ OK "Content-Length: 0\r\n\r\n", NULL });
		snprintf(to, sizeof(to), row[i].location, other.port);
		snprintf(answer, sizeof(answer), "HTTP/1.1 302 X\r\nConnection: close\r\nx-here:  1 \r\n"
			"Location: %s\r\nContent-Length: 0\r\n\r\n", to);
		server_start(&hub, (const char *[]){ answer, OK "Content-Length: 0\r\n\r\n", NULL });
		snprintf(url, sizeof(url), "http://127.0.0.1:%d/f", hub.port);
		if (fetch_get(&get, &reply, &e))
			fail_msg("row %zu: %s", i, e.text);
		assert_int_equal(reply.status, row[i].status);
		if (reply.status == 302)
			assert_true(str_is(fetch_header(&reply, "X-HERE"), "1"));
		assert_int_equal(fetch_header(&reply, "X-Her").n, 0);
		assert_int_equal(occurrences(&hub.asked, "Authorization: Bearer secret\r\n"),
			row[i].tokens[0]);
		assert_int_equal(occurrences(&other.asked, "secret"), row[i].tokens[1]);
		fetch_reply_release(&reply);
		server_stop(&hub);
		server_stop(&other);
	}
}

/* ---- tries ---- */

static void test_tries(void **state)
{
	static const char busy[] = "HTTP/1.1 503 X\r\nConnection: close\r\nRetry-After: 0\r\n"
		"Content-Length: 0\r\n\r\n";
	static const char later[] = "HTTP/1.1 429 X\r\nConnection: close\r\nRetry-After: 61\r\n"
		"Content-Length: 0\r\n\r\n";
	static const char no[] = "HTTP/1.1 501 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
	static const char good[] = OK "Content-Length: 0\r\n\r\n";
	static const struct {
		const char *answer[4];
		unsigned tries;
		long status;
		size_t asked;
	} row[] = {
		{ { busy, good }, 0, 503, 1 },
		{ { busy, busy, good }, 3, 200, 3 },
		{ { busy, busy, busy }, 2, 503, 2 },
		{ { later, good }, 3, 429, 1 },
		{ { no, good }, 3, 501, 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		char url[64];
		struct fetch_opts opts = { 0 };
		struct fetch_get get = { .url = url, .fd = -1, .silence_ms = 3000,
			.tries = row[i].tries, .opts = &opts };
		struct fetch_reply reply;
		struct server s;
		struct err e = { 0 };

		server_start(&s, row[i].answer);
		snprintf(url, sizeof(url), "http://127.0.0.1:%d/", s.port);
		assert_int_equal(fetch_get(&get, &reply, &e), 0);
		assert_int_equal(reply.status, row[i].status);
		assert_int_equal(occurrences(&s.asked, "GET /"), row[i].asked);
		fetch_reply_release(&reply);
		server_stop(&s);
	}
}

/* ---- ends ---- */

static void *set_after_a_while(void *flag)
{
	usleep(200000);
	atomic_store((atomic_bool *)flag, true);
	return NULL;
}

static void test_ends(void **state)
{
	static const char answer_part[] = OK "Content-Length: 9\r\n\r\nabc";
	static const struct {
		const char *answer;
		int64_t silence_ms;
		unsigned tries;
		bool is_cancelled;
		enum err_code code;
		const char *want;
	} row[] = {
		{ "", 1000, 3, false, ERR_NET, "/: no data arrived for 1 s" },
		{ "", 60000, 1, true, ERR_CANCELLED, "interrupted while waiting for http://127" },
		{ answer_part, 60000, 9, true, ERR_CANCELLED, "interrupted" }, /* in a pause */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		atomic_bool flag = false;
		char url[64];
		struct fetch_opts opts = { .cancel = &flag };
		struct fetch_get get = { .url = url, .fd = -1, .silence_ms = row[i].silence_ms,
			.tries = row[i].tries, .opts = &opts };
		int64_t began_ns = clock_mono_ns();
		struct fetch_reply reply;
		pthread_t thread;
		struct server s;
		struct err e = { 0 };

		server_start(&s, (const char *[]){ row[i].answer, NULL });
		snprintf(url, sizeof(url), "http://127.0.0.1:%d/?Signature=s", s.port);
		if (row[i].is_cancelled)
			pthread_create(&thread, NULL, set_after_a_while, &flag);
		assert_int_equal(fetch_get(&get, &reply, &e), -1);
		if (row[i].is_cancelled)
			pthread_join(thread, NULL);
		if (e.code != row[i].code || !strstr(e.text, row[i].want))
			fail_msg("row %zu: %s", i, e.text);
		assert_true(clock_mono_ns() - began_ns < 5000000000);
		server_stop(&s);
	}
}

static void test_head_limit(void **state)
{
	struct buf answer = { 0 };
	struct fetch_opts opts = { 0 };
	struct fetch_get get = { .fd = -1, .silence_ms = 3000, .opts = &opts };
	struct fetch_reply reply;
	struct server s;
	struct err e = { 0 };
	char url[64];

	(void)state;
	buf_add_text(&answer, OK);
	for (int i = 0; i < 1000; i++)
		buf_printf(&answer, "X-%d: %080d\r\n", i, i);
	buf_add_text(&answer, "\r\n");
	server_start(&s, (const char *[]){ answer.data, NULL });
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/?secret", s.port);
	get.url = url;
	assert_int_equal(fetch_get(&get, &reply, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_non_null(strstr(e.text, "the headers of the answer exceed the limit of 65536 bytes"));
	assert_null(strstr(e.text, "secret"));
	server_stop(&s);
	buf_release(&answer);
}

/* Interim answers and trailers are headers too, and those of one answer have a limit together. */
static void test_heads_limit(void **state)
{
	static const char *const begin[] = {
		"HTTP/1.1 100 Continue\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
	};
	static const char *const unit[] = { "X: y\r\n\r\nHTTP/1.1 102 Processing\r\n", "X: yyyyyyyy\r\n" };

	(void)state;
	for (size_t i = 0; i < 2 * COUNT(begin); i++) {
		bool is_get = i % 2;
		struct fetch_opts opts = { 0 };
		struct fetch_get get = { .fd = -1, .silence_ms = 3000, .opts = &opts };
		struct fetch_reply reply;
		struct buf answer = { 0 };
		struct err e = { 0 };
		struct server s;
		char url[64];

		buf_add_text(&answer, begin[i / 2]);
		while (answer.len < 2 * HTTP_HEADS_BYTES_MAX)
			buf_add_text(&answer, unit[i / 2]);
		server_start(&s, (const char *[]){ answer.data, NULL });
		snprintf(url, sizeof(url), "http://127.0.0.1:%d/", s.port);
		get.url = url;
		assert_int_equal(is_get ? fetch_get(&get, &reply, &e) :
				 fetch(url, NULL, &opts, &reply, &e), -1);
		if (e.code != ERR_LIMIT || !strstr(e.text, url) || !strstr(e.text, "exceed the limit"))
			fail_msg("case %zu: %s", i, e.text);
		server_stop(&s);
		buf_release(&answer);
	}
}

static struct str small_body(void *self, size_t i)
{
	(void)self, (void)i;
	return STR("{}");
}

static void count_answers(void *self, size_t i, const struct fetch_reply *reply)
{
	size_t *n = self;

	(void)i;
	n[reply != NULL]++;
}

/* Of many at once, the answer to a small question may be a mebibyte; memory is for all of them. */
static void test_many_limit(void **state)
{
	size_t n[2] = { 0 };
	struct fetch_many many = { .n = 2, .parallel = 1, .body = small_body, .done = count_answers,
		.self = n };
	struct fetch_opts opts = { 0 };
	struct buf fits = { 0 }, over = { 0 };
	struct err e = { 0 };
	struct server s;
	char url[64];

	(void)state;
	buf_add_text(&fits, OK "Connection: close\r\n\r\n");
	while (fits.len < FETCH_MANY_BODY_BYTES_MIN)
		buf_add_char(&fits, ' ');
	buf_add_str(&over, buf_str(&fits));
	for (int i = 0; i < 1000; i++)
		buf_add_char(&over, ' ');
	server_start(&s, (const char *[]){ over.data, fits.data, NULL });
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", s.port);
	assert_int_equal(fetch_many(url, &many, &opts, &e), 0);
	assert_int_equal(n[0], 1);
	assert_int_equal(n[1], 1);
	server_stop(&s);
	buf_release(&fits);
	buf_release(&over);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files), cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_tries), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_head_limit), cmocka_unit_test(test_heads_limit),
		cmocka_unit_test(test_many_limit),
	};

	without_proxies();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
