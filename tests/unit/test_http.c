/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http.c - the response reader: rows of byte streams and what they hold,
 * each fed whole, byte by byte and cut at random places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/http/response.h"
#include "core/base/limits.h"
#include "core/base/str.h"

/*
 * A log reads: "200k" head (k: may be kept, c: chunked, u: until close, s: event
 * stream), "[body]" after it, "." end, "!" refused, "+" legal and "-" illegal
 * end of the stream where it happens. error is a part of the sentence.
 */
struct row { const char *what; struct str in; const char *log; const char *error; };

#define ROW(what, in, log, error) { what, { in, sizeof(in) - 1 }, log, error }
#define OK11 "HTTP/1.1 200 OK\r\n"

static const struct row rows[] = {
	ROW("length", OK11 "Content-Length: 3\r\n\r\nabc", "200k[abc].-", NULL),
	ROW("two answers", OK11 "Content-Length: 3\r\n\r\nabc" OK11 "Content-Length: 0\r\n\r\n",
	    "200k[abc].200k[].-", NULL),
	ROW("bare LF", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", "200k[a].-", NULL),
	ROW("empty lines before", "\r\n\n" OK11 "Content-Length: 1\r\n\r\na", "200k[a].-", NULL),
	ROW("no reason", "HTTP/1.1 404\r\ncontent-length:2\r\n\r\nno", "404k[no].-", NULL),
	ROW("1xx skipped", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n"
	    "\r\n" OK11 "Content-Length: 1\r\n\r\na", "200k[a].-", NULL),
	ROW("204", "HTTP/1.1 204 No Content\r\n\r\n" OK11 "Content-Length: 1\r\n\r\na",
	    "204k[].200k[a].-", NULL),
	ROW("304 with a length", "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", "304k[].-", NULL),
	ROW("close", OK11 "Connection: close\r\nContent-Length: 1\r\n\r\na", "200[a].-", NULL),
	ROW("close in a list", OK11 "Connection: x , Close\r\nContent-Length: 1\r\n\r\na",
	    "200[a].-", NULL),
	ROW("1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", "200[a].-", NULL),
	ROW("1.0 kept", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na",
	    "200k[a].-", NULL),
	ROW("until close", OK11 "Content-Type: text/html\r\n\r\nabc", "200u[abc+", NULL),
	ROW("until close, empty", OK11 "\r\n", "200u[+", NULL),
	ROW("chunked", OK11 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
	    "200kc[abcde].-", NULL),
	ROW("chunked twice", OK11 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	    OK11 "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", "200kc[abc].200kc[].-", NULL),
	ROW("chunk sizes", OK11 "Transfer-Encoding: chunked\r\n\r\n00A\r\n0123456789\r\n"
	    "a \t\r\n0123456789\r\n0\r\n\r\n", "200kc[01234567890123456789].-", NULL),
	ROW("extensions and trailers", OK11 "Transfer-Encoding: chunked\r\n\r\n"
	    "3;a=b\r\nabc\r\n1 ; x=\"y\"\r\nd\r\n0;last\r\nX-T: 1\r\nY: 2\r\n\r\n",
	    "200kc[abcd].-", NULL),
	ROW("chunked, bare LF", OK11 "Transfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n",
	    "200kc[abc].-", NULL),
	ROW("chunk data like line ends", OK11 "Transfer-Encoding: chunked\r\n\r\n"
	    "4\r\n\r\n0\r\r\n0\r\n\r\n", "200kc[\r\n0\r].-", NULL),
	ROW("event stream", OK11 "Content-Type: text/event-stream; charset=utf-8\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200kcs[].-", NULL),
	ROW("not quite event stream", OK11 "Content-Type: text/event-streams\r\n"
	    "Content-Length: 0\r\n\r\n", "200k[].-", NULL),
	ROW("same length twice", OK11 "Content-Length: 1\r\nContent-Length: 1, 1\r\n\r\na",
	    "200k[a].-", NULL),
	ROW("identity coding", OK11 "Content-Encoding: identity\r\nContent-Length: 1\r\n\r\na",
	    "200k[a].-", NULL),
	ROW("latin-1 in a value", OK11 "X: \xe9\r\nContent-Length: 0\r\n\r\n", "200k[].-", NULL),

	ROW("cut in the head", "HTTP/1.1 200 OK\r\nConte", "-", "without an answer"),
	ROW("cut in the body", OK11 "Content-Length: 5\r\n\r\nabc", "200k[abc-", "2 bytes before"),
	ROW("cut in a chunk", OK11 "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", "200kc[abc-",
	    "before the last chunk"),
	ROW("cut before the last chunk", OK11 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
	    "200kc[abc-", "before the last chunk"),
	ROW("cut in the trailer", OK11 "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y", "200kc[-",
	    "before the last chunk"),

	ROW("both framings", OK11 "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "!",
	    "both Content-Length and Transfer-Encoding"),
	ROW("two lengths", OK11 "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", "!",
	    "two different Content-Length values, 3 and 4"),
	ROW("two lengths in a list", OK11 "Content-Length: 3, 4\r\n\r\n", "!", "two different"),
	ROW("signed length", OK11 "Content-Length: +3\r\n\r\n", "!", "bad Content-Length '+3'"),
	ROW("huge length", OK11 "Content-Length: 99999999999999999999\r\n\r\n", "!", "bad Content"),
	ROW("empty length", OK11 "Content-Length:\r\n\r\n", "!", "bad Content-Length ''"),
	ROW("gzip chunked", OK11 "Transfer-Encoding: gzip, chunked\r\n\r\n", "!",
	    "Transfer-Encoding 'gzip, chunked' is not supported"),
	ROW("chunked twice in one", OK11 "Transfer-Encoding: chunked\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n", "!", "is not supported"),
	ROW("compressed", OK11 "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n", "!",
	    "Content-Encoding: gzip"),
	ROW("folded", OK11 "X: a\r\n b\r\n\r\n", "!", "folded"),
	ROW("blank before the colon", OK11 "X : a\r\n\r\n", "!", "a name and a colon"),
	ROW("no colon", OK11 "Xa\r\n\r\n", "!", "a name and a colon"),
	ROW("lone CR", OK11 "X: a\rb\r\n\r\n", "!", "lone CR"),
	ROW("NUL", OK11 "X: a\0b\r\n\r\n", "!", "NUL"),
	ROW("switch", "HTTP/1.1 101 x\r\n\r\n", "!", "switched protocols"),
	ROW("HTTP/2", "HTTP/2 200\r\n\r\n", "!", "HTTP/2, expected HTTP/1.1"),
	ROW("HTTP/2 frame", "\0\0\x12\4\0", "!", "HTTP/2 or another binary"),
	ROW("TLS", "\x15\3\1\0\2", "!", "use https://"),
	ROW("SSH", "SSH-2.0-OpenSSH\r\n", "!", "does not begin with HTTP/1"),
	ROW("lone CR first", "\rHTTP/1.1 200 OK\r\n\r\n", "!", "does not begin"),
	ROW("status of two digits", "HTTP/1.1 20 OK\r\n\r\n", "!", "malformed HTTP status line"),
	ROW("status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "!", "malformed HTTP status line"),
	ROW("no chunk size", OK11 "Transfer-Encoding: chunked\r\n\r\n\r\n", "200kc[!",
	    "malformed chunk size ''"),
	ROW("bad chunk size", OK11 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nxyz\r\n",
	    "200kc[abc!", "malformed chunk size 'xyz'"),
	ROW("chunk size 0x", OK11 "Transfer-Encoding: chunked\r\n\r\n0x3\r\n", "200kc[!",
	    "malformed chunk size '0x3'"),
	ROW("huge chunk", OK11 "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "200kc[!",
	    "HTTP_CHUNK_BYTES_MAX"),
	ROW("chunk too long", OK11 "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", "200kc[abc!",
	    "longer than its size line"),
	ROW("chunk then CR", OK11 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\rd", "200kc[abc!",
	    "longer than its size line"),
};

struct feed { struct http_response r; struct buf kept, log; struct err e; bool is_broken; };

/* What is left unread stays in front of the next piece, each time in memory of its own. */
static void feed(struct feed *f, struct str piece)
{
	struct str in, part = { NULL, 0 };
	char *copy;

	if (f->is_broken)
		return;
	buf_add_str(&f->kept, piece);
	copy = malloc(f->kept.len + 1);
	memcpy(copy, f->kept.data, f->kept.len);
	in = (struct str){ copy, f->kept.len };
	for (;;) {
		switch (http_response_next(&f->r, &in, &part, &f->e)) {
		case HTTP_HEAD:
			assert_true(part.n > 0);
			buf_printf(&f->log, "%d%s%s%s%s[", f->r.status,
				   f->r.is_keep_alive ? "k" : "", f->r.is_chunked ? "c" : "",
				   f->r.is_until_close ? "u" : "", f->r.is_event_stream ? "s" : "");
			continue;
		case HTTP_BODY:
			assert_true(part.n > 0);
			buf_add_str(&f->log, part);
			continue;
		case HTTP_END:
			buf_add_text(&f->log, "].");
			continue;
		case HTTP_BAD:
			buf_add_char(&f->log, '!');
			f->is_broken = true;
			break;
		case HTTP_NEED:
			break;
		}
		break;
	}
	buf_cut(&f->kept, f->kept.len - in.n);
	free(copy);
}

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 16;
}

/* step 0: whole; 1: byte by byte; 2: random pieces. */
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
	if (f.is_broken) {
		struct str in = STR("x"), part;
		struct err e;

		assert_int_equal(http_response_next(&f.r, &in, &part, &e), HTTP_BAD);
	} else {
		buf_add_char(&f.log, http_response_eof(&f.r, &f.e) == 0 ? '+' : '-');
	}
	if (strcmp(f.log.data, row->log) != 0)
		fail_msg("%s (step %d): got %s, expected %s (%s)", row->what, step, f.log.data,
			 row->log, f.e.text);
	if (row->error && !strstr(f.e.text, row->error))
		fail_msg("%s (step %d): '%s' lacks '%s'", row->what, step, f.e.text, row->error);
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

static void test_head_and_connect_requests(void **state)
{
	static const char text[] = OK11 "Content-Length: 5\r\n\r\n" OK11 "\r\nx";
	struct str in = { text, sizeof(text) - 1 }, part;
	struct http_response r = { .is_head_request = true };
	struct err e;

	(void)state;
	assert_int_equal(http_response_next(&r, &in, &part, &e), HTTP_HEAD);
	assert_int_equal(http_response_next(&r, &in, &part, &e), HTTP_END);
	assert_true(r.is_keep_alive);
	r.is_head_request = false;
	r.is_connect_request = true;
	assert_int_equal(http_response_next(&r, &in, &part, &e), HTTP_HEAD);
	assert_true(r.is_keep_alive);
	assert_int_equal(http_response_next(&r, &in, &part, &e), HTTP_END);
	assert_int_equal(in.n, 1); /* the tunnel's first byte is not ours */
}

static void test_head_values(void **state)
{
	static const char text[] = "HTTP/1.1 503 Slow down\r\nA: 1\r\nretry-AFTER:\t 7 \r\n"
				   "Retry-After: 8\r\nEmpty:\r\n\r\n";
	struct str head = { text, sizeof(text) - 1 };

	(void)state;
	assert_true(str_is(http_head_value(head, "Retry-After"), "7"));
	assert_true(str_is(http_head_value(head, "a"), "1"));
	assert_non_null(http_head_value(head, "Empty").p);
	assert_int_equal(http_head_value(head, "Empty").n, 0);
	assert_null(http_head_value(head, "Retry").p);
	assert_null(http_head_value(head, "HTTP/1.1 503 Slow down").p);
	assert_true(str_is(http_head_reason(head), "Slow down"));
	assert_true(str_is(http_head_reason(STR("HTTP/1.1 200\r\n\r\n")), ""));
}

static void test_limits(void **state)
{
	struct buf text = { 0 };
	struct http_response r = { 0 };
	struct str in, part;
	struct err e = { 0 };

	(void)state;
	buf_add_text(&text, OK11);
	for (int i = 0; i < HTTP_HEADERS_MAX; i++)
		buf_printf(&text, "X-%d: y\r\n", i);
	buf_add_text(&text, "\r\n");
	in = buf_str(&text);
	assert_int_equal(http_response_next(&r, &in, &part, &e), HTTP_HEAD);
	buf_cut(&text, text.len);
	buf_add_text(&text, OK11);
	for (int i = 0; i <= HTTP_HEADERS_MAX; i++)
		buf_printf(&text, "X-%d: y\r\n", i);
	buf_add_text(&text, "\r\n");
	in = buf_str(&text);
	r = (struct http_response){ 0 };
	assert_int_equal(http_response_next(&r, &in, &part, &e), HTTP_BAD);
	assert_int_equal(e.code, ERR_LIMIT);
	buf_cut(&text, text.len);
	buf_add_text(&text, OK11 "X: ");
	while (text.len < HTTP_HEAD_BYTES_MAX - 1)
		buf_add_char(&text, 'y');
	in = buf_str(&text);
	r = (struct http_response){ 0 };
	assert_int_equal(http_response_next(&r, &in, &part, &e), HTTP_NEED);
	buf_add_char(&text, 'y');
	in = buf_str(&text);
	assert_int_equal(http_response_next(&r, &in, &part, &e), HTTP_BAD);
	assert_non_null(strstr(e.text, "HTTP_HEAD_BYTES_MAX"));
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_head_and_connect_requests),
		cmocka_unit_test(test_head_values),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
