/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_sse.c - server-sent events: rows of streams and the events they
 * hold, each fed whole, byte by byte and cut at random places.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "client/http/sse.h"
#include "core/base/limits.h"

/* Events are written "[name|data]"; an unterminated last one "(name|data)". */
struct row { const char *what; struct str in; const char *events; };

#define ROW(what, in, events) { what, { in, sizeof(in) - 1 }, events }

static const struct row rows[] = {
	ROW("nothing", "", ""),
	ROW("one", "data: a\n\n", "[|a]"),
	ROW("two", "data: a\n\ndata: b\n\n", "[|a][|b]"),
	ROW("CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "[|a][|b]"),
	ROW("CR", "data: a\r\rdata: b\r\r", "[|a][|b]"),
	ROW("mixed ends", "data: a\n\r\ndata: b\r\n\ndata: c\r\n\rdata: d\n\r", "[|a][|b][|c][|d]"),
	ROW("CR then LF are one end", "data: a\r\ndata: b\r\n\r\n", "[|a\nb]"),
	ROW("CR inside LF lines", "data: a\rdata: b\n\n", "[|a\nb]"),
	ROW("blank line is CRLF of a CR line", "data: a\r\r\ndata: b\n\n", "[|a][|b]"),
	ROW("no blank after the colon", "data:a\n\n", "[|a]"),
	ROW("only one blank goes", "data:  a\n\n", "[| a]"),
	ROW("tab is data", "data:\ta\n\n", "[|\ta]"),
	ROW("comment", ": ping\n\ndata: a\n\n", "[|a]"),
	ROW("comment inside", "data: a\n: no\ndata: b\n\n", "[|a\nb]"),
	ROW("lone colon", ":\n\n:\ndata: a\n\n", "[|a]"),
	ROW("event name", "event: error\ndata: a\n\n", "[error|a]"),
	ROW("event name after", "data: a\nevent:x\n\n", "[x|a]"),
	ROW("name lasts one event", "event: x\ndata: a\n\ndata: b\n\n", "[x|a][|b]"),
	ROW("llama.cpp's error field", "error: {\"code\":1}\n\ndata: b\n\n", "[error|{\"code\":1}][|b]"),
	ROW("error field before data", "error: x\ndata: a\ndata: b\n\n", "[error|a\nb]"),
	ROW("error field after data", "data: a\nerror: x\n\n", "[|a]"),
	ROW("name without data", "event: x\n\ndata: b\n\n", "[|b]"),
	ROW("last name wins", "event: x\nevent: yy\ndata: b\n\n", "[yy|b]"),
	ROW("several data lines", "data: a\ndata:b\ndata:  c\n\n", "[|a\nb\n c]"),
	ROW("several with a name between", "data: a\nevent: name\ndata: longer than that\n\n",
	    "[name|a\nlonger than that]"),
	ROW("data without colon", "data\n\ndata\ndata\n\n", "[|\n]"),
	ROW("empty data", "data:\n\ndata: \n\ndata: a\n\n", "[|a]"),
	ROW("other fields", "id: 7\nretry: 10\nfoo: bar\ndata: a\nid\n\n", "[|a]"),
	ROW("NUL in id", "id: a\0b\ndata: a\n\n", "[|a]"),
	ROW("longer names are others", "datax: a\ndat: a\n data: a\ndata: b\n\n", "[|b]"),
	ROW("field name case counts", "Data: a\ndata: b\n\n", "[|b]"),
	ROW("colon in data", "data: a: b\n\n", "[|a: b]"),
	ROW("BOM", "\xef\xbb\xbf" "data: a\n\n", "[|a]"),
	ROW("BOM and several lines", "\xef\xbb\xbf" "data: a\ndata: b\n\n", "[|a\nb]"),
	ROW("BOM only once", "\xef\xbb\xbf\xef\xbb\xbf" "data: a\n\ndata: b\n\n", "[|b]"),
	ROW("BOM later is a field", "data: a\n\n\xef\xbb\xbf" "data: b\n\n", "[|a]"),
	ROW("BOM then blank line", "\xef\xbb\xbf\ndata: b\n\n", "[|b]"),
	ROW("blank line then BOM", "\n\xef\xbb\xbf" "data: b\n\n", ""),
	ROW("UTF-8", "data: \xe6\x97\xa5\xf0\x9f\x8d\xa3\n\n", "[|\xe6\x97\xa5\xf0\x9f\x8d\xa3]"),
	ROW("leading blank lines", "\n\r\n\r\rdata: a\n\n", "[|a]"),
	ROW("unterminated", "data: a\n\ndata: b\n", "[|a](|b)"),
	ROW("unterminated line", "data: a\n\ndata: b", "[|a](|b)"),
	ROW("unterminated several", "event: e\ndata: b\ndata: c", "(e|b\nc)"),
	ROW("unterminated CR", "data: b\r", "(|b)"),
	ROW("unterminated without data", "data: a\n\nevent: b", "[|a]"),
	ROW("JSON", "data: {\"choices\":[{\"text\":\"hi\"}]}\n\ndata: [DONE]\n\n",
	    "[|{\"choices\":[{\"text\":\"hi\"}]}][|[DONE]]"),
};

static void event_note(struct buf *log, const struct sse_event *ev, char open, char close)
{
	buf_add_char(log, open);
	buf_add_str(log, ev->name);
	buf_add_char(log, '|');
	buf_add_str(log, ev->data);
	buf_add_char(log, close);
}

/* Each piece is in memory of its own, so that reading outside it is seen. */
static void feed(struct sse *s, struct str piece, struct buf *log)
{
	char *copy = malloc(piece.n ? piece.n : 1);
	struct str in = { copy, piece.n };
	struct sse_event ev;
	int rc;

	memcpy(copy, piece.p, piece.n);
	while ((rc = sse_next(s, &in, &ev)) == 1)
		event_note(log, &ev, '[', ']');
	assert_int_equal(rc, 0);
	assert_int_equal(in.n, 0);
	free(copy);
}

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 16;
}

/* step 0: whole; 1: byte by byte; 2: random pieces. */
static void run(struct sse *s, const struct row *row, int step, uint32_t *seed)
{
	struct buf log = { 0 };
	struct sse_event ev;

	for (size_t at = 0; at < row->in.n;) {
		size_t n = step == 0 ? row->in.n : step == 1 ? 1 : random_next(seed) % 9;

		if (n > row->in.n - at)
			n = row->in.n - at;
		feed(s, (struct str){ row->in.p + at, n }, &log);
		at += n;
	}
	if (sse_finish(s, &ev))
		event_note(&log, &ev, '(', ')');
	buf_add(&log, "", 0);
	if (strcmp(log.data, row->events) != 0)
		fail_msg("%s (step %d): got %s, expected %s", row->what, step, log.data,
			 row->events);
	buf_release(&log);
	sse_reset(s);
}

static void test_rows(void **state)
{
	struct sse s = { 0 };
	uint32_t seed = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		run(&s, &rows[i], 0, &seed);
		run(&s, &rows[i], 1, &seed);
		for (int k = 0; k < 50; k++)
			run(&s, &rows[i], 2, &seed);
	}
	sse_release(&s);
	sse_release(&s);
}

/* A whole event with one data line is handed out where it lies. */
static void test_in_place(void **state)
{
	char text[] = "data: abc\n\nevent: e\r\ndata: def\r\n\r\n";
	struct str in = { text, sizeof(text) - 1 };
	struct sse_event ev;
	struct sse s = { 0 };

	(void)state;
	assert_int_equal(sse_next(&s, &in, &ev), 1);
	assert_ptr_equal(ev.data.p, text + 6);
	assert_int_equal(sse_next(&s, &in, &ev), 1);
	assert_ptr_equal(ev.data.p, text + 27);
	assert_null(s.carry.data);
	sse_release(&s);
}

static void test_limit(void **state)
{
	size_t n = SSE_EVENT_BYTES_MAX / 4;
	char *x = malloc(n);
	struct sse_event ev;
	struct sse s = { 0 };
	struct str in;

	(void)state;
	memset(x, 'x', n);
	for (int i = 0; i < 4; i++) {
		in = (struct str){ x, n };
		assert_int_equal(sse_next(&s, &in, &ev), 0);
	}
	in = (struct str){ x, 1 };
	assert_int_equal(sse_next(&s, &in, &ev), -1);
	sse_reset(&s);
	in = STR("data: a\n\n");
	assert_int_equal(sse_next(&s, &in, &ev), 1);
	sse_release(&s);
	free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
