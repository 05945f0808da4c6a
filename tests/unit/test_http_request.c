/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_request.c - the request reader, each row fed whole, byte by byte and
 * cut at random places, and the writers, read back by the response reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/http/request.h"
#include "client/http/response.h"
#include "core/base/limits.h"
#include "core/base/str.h"

/* A log reads: "METHOD target k[body]." (k: may be kept, c: chunked, e: expects 100), "!400". */
struct row { const char *what; struct str in; const char *log; const char *error; };

#define ROW(what, in, log, error) { what, { in, sizeof(in) - 1 }, log, error }

static const struct row rows[] = {
	ROW("get", "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a?b k[].", NULL),
	ROW("post", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab",
	    "POST / k[ab].", NULL),
	ROW("pipelined", "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n"
	    "Connection: close\r\n\r\n", "GET /1 k[].GET /2 [].", NULL),
	ROW("chunked", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "3\r\nabc\r\n1;x\r\nd\r\n0\r\nT: 1\r\n\r\n", "POST / kc[abcd].", NULL),
	ROW("expect", "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n"
	    "\r\na", "POST / ke[a].", NULL),
	ROW("1.0", "GET / HTTP/1.0\r\n\r\n", "GET / [].", NULL),
	ROW("1.0 kept", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / k[].", NULL),
	ROW("bare LF", "GET / HTTP/1.1\nHost: x\n\n", "GET / k[].", NULL),
	ROW("empty line first", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / k[].", NULL),
	ROW("whole URL", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://x/ k[].", NULL),
	ROW("incomplete", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab",
	    "POST / k[ab", NULL),
	ROW("both framings", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n", "!400", "both Content-Length"),
	ROW("two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
	    "Content-Length: 2\r\n\r\n", "!400", "two different"),
	ROW("no host", "GET / HTTP/1.1\r\n\r\n", "!400", "no Host header"),
	ROW("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!505", "HTTP/2"),
	ROW("no version", "GET /\r\n\r\n", "!400", "malformed HTTP request line"),
	ROW("two blanks", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "!400", "malformed HTTP request"),
	ROW("blank in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "!400", "malformed"),
	ROW("bad method", "G(T / HTTP/1.1\r\nHost: x\r\n\r\n", "!400", "malformed HTTP request"),
	ROW("control in the target", "GET /\1 HTTP/1.1\r\nHost: x\r\n\r\n", "!400", "malformed"),
	ROW("TLS", "\x16\3\1\2\0", "!400", "uses TLS"),
	ROW("binary", "\0\1", "!400", "not HTTP"),
	ROW("bad chunk", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
	    "POST / kc[!400", "malformed chunk size"),
};

struct feed { struct http_request r; struct buf kept, log; struct err e; bool is_broken; };

static void feed(struct feed *f, struct str piece)
{
	struct str in, part;
	enum http_found found = HTTP_NEED;
	char *copy;

	if (f->is_broken)
		return;
	buf_add_str(&f->kept, piece);
	copy = malloc(f->kept.len + 1);
	memcpy(copy, f->kept.data, f->kept.len);
	in = (struct str){ copy, f->kept.len };
	while ((found = http_request_next(&f->r, &in, &part, &f->e)) != HTTP_NEED) {
		if (found == HTTP_HEAD)
			buf_printf(&f->log, "%.*s %.*s %s%s%s[", (int)f->r.method.n,
				   f->r.method.p, (int)f->r.target.n, f->r.target.p,
				   f->r.is_keep_alive ? "k" : "", f->r.is_chunked ? "c" : "",
				   f->r.is_continue_wanted ? "e" : "");
		else if (found == HTTP_BODY)
			buf_add_str(&f->log, part);
		else if (found == HTTP_END)
			buf_add_text(&f->log, "].");
		if (found == HTTP_BAD) {
			buf_printf(&f->log, "!%d", f->r.bad_status);
			f->is_broken = true;
			break;
		}
	}
	buf_cut(&f->kept, f->kept.len - in.n);
	free(copy);
}

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 16;
}

static void run(const struct row *row, int step, uint32_t *seed)
{
	struct feed f = { 0 };

	for (size_t at = 0; at < row->in.n;) {
		size_t n = step == 0 ? row->in.n : step == 1 ? 1 : random_next(seed) % 9;

		if (n > row->in.n - at)
			n = row->in.n - at;
		feed(&f, (struct str){ row->in.p + at, n });
		at += n;
	}
	if (strcmp(f.log.data, row->log) != 0)
		fail_msg("%s (step %d): got %s, expected %s (%s)", row->what, step, f.log.data,
			 row->log, f.e.text);
	if (row->error && !strstr(f.e.text, row->error))
		fail_msg("%s (step %d): '%s' lacks '%s'", row->what, step, f.e.text, row->error);
	if (!f.is_broken)
		assert_int_equal(http_request_is_between(&f.r), f.log.data[f.log.len - 1] == '.');
	buf_release(&f.kept);
	buf_release(&f.log);
}

static void test_rows(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		run(&rows[i], 0, &seed);
		run(&rows[i], 1, &seed);
		for (int k = 0; k < 30; k++)
			run(&rows[i], 2, &seed);
	}
}

static void test_long_head(void **state)
{
	struct http_request r = { 0 };
	struct buf text = { 0 };
	struct str in, part;
	struct err e;

	(void)state;
	buf_add_text(&text, "GET /");
	while (text.len < HTTP_HEAD_BYTES_MAX)
		buf_add_char(&text, 'a');
	in = buf_str(&text);
	assert_int_equal(http_request_next(&r, &in, &part, &e), HTTP_BAD);
	assert_int_equal(r.bad_status, 431);
	buf_release(&text);
}

/* What the writers write, the response reader reads. */
static void test_writers(void **state)
{
	struct http_response r = { 0 };
	struct buf out = { 0 }, body = { 0 }, large = { 0 };
	struct str in, part;
	struct err e = { 0 };
	enum http_found found;
	int ends = 0;

	(void)state;
	for (int i = 0; i < 70000; i++)
		buf_add_char(&large, (char)i);
	http_write_head(&out, 404, "application/json", 2, "X-Id: 7\r\nConnection: close\r\n");
	assert_string_equal(out.data, "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
			    "Content-Length: 2\r\nX-Id: 7\r\nConnection: close\r\n\r\n");
	buf_add_text(&out, "no");
	http_write_head(&out, 204, NULL, HTTP_LENGTH_NONE, NULL);
	http_write_head(&out, 200, "text/event-stream; charset=utf-8", HTTP_LENGTH_CHUNKED, NULL);
	http_write_chunk(&out, STR("x"));
	http_write_chunk(&out, STR(""));
	http_write_chunk(&out, STR("0123456789abcdef"));
	http_write_chunk(&out, buf_str(&large));
	http_write_last_chunk(&out);
	in = buf_str(&out);
	while ((found = http_response_next(&r, &in, &part, &e)) != HTTP_NEED) {
		assert_int_not_equal(found, HTTP_BAD);
		if (found == HTTP_BODY)
			buf_add_str(&body, part);
		if (found == HTTP_END && ++ends == 3)
			assert_true(r.is_event_stream && r.is_chunked);
	}
	assert_int_equal(ends, 3);
	assert_int_equal(body.len, 2 + 1 + 16 + large.len);
	assert_memory_equal(body.data, "nox0123456789abcdef", 19);
	assert_memory_equal(body.data + 19, large.data, large.len);
	assert_string_equal(http_status_reason(499), "Client Closed Request");
	assert_string_equal(http_status_reason(299), "Unknown");
	buf_release(&out);
	buf_release(&body);
	buf_release(&large);
}

static void test_header_is_plain(void **state)
{
	(void)state;
	assert_true(http_header_is_plain(STR("X-Key"), STR("a b\xe9")));
	assert_false(http_header_is_plain(STR("X Key"), STR("a")));
	assert_false(http_header_is_plain(STR(""), STR("a")));
	assert_false(http_header_is_plain(STR("X"), STR("a\r\nY: b")));
	assert_false(http_header_is_plain(STR("X"), STR("a\0")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_long_head),
		cmocka_unit_test(test_writers),
		cmocka_unit_test(test_header_is_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
