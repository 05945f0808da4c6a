/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sse.c - server-sent events, fed whole and cut into pieces, against each
 * other and against a slow reader written straight from the standard. The first
 * byte says how the rest is cut.
 */
#include <assert.h>

#include "client/http/sse.h"
#include "core/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void log_event(struct buf *log, struct str name, struct str data)
{
	buf_printf(log, "[%zu,%zu|", name.n, data.n);
	buf_add_str(log, name);
	buf_add_str(log, data);
}

static void feed(struct sse *s, struct buf *log, const uint8_t *data, size_t n)
{
	char *copy = malloc(n + 1);
	struct str in = { copy, n };
	struct sse_event ev;
	int rc;

	assert(copy);
	memcpy(copy, data, n);
	while ((rc = sse_next(s, &in, &ev)) == 1)
		log_event(log, ev.name, ev.data);
	assert(rc == 0 && in.n == 0);
	free(copy);
}

static void finish(struct sse *s, struct buf *log)
{
	struct sse_event ev;

	buf_add_text(log, "finish");
	if (sse_finish(s, &ev))
		log_event(log, ev.name, ev.data);
	sse_release(s);
}

/* ---- the standard and llama.cpp's field error:, a line at a time ---- */

struct slow { struct buf data, name, error; };

static void slow_dispatch(struct slow *s, struct buf *log)
{
	if (s->data.len > 1)
		log_event(log, buf_str(&s->name), (struct str){ s->data.data, s->data.len - 1 });
	else if (s->data.len == 0 && s->error.len)
		log_event(log, buf_str(&s->name), buf_str(&s->error));
	buf_cut(&s->error, s->error.len);
	buf_cut(&s->data, s->data.len);
	buf_cut(&s->name, s->name.len);
}

static void slow_line(struct slow *s, struct str line)
{
	struct str field = str_cut(&line, ':');

	if (line.n && line.p[0] == ' ')
		line.p++, line.n--;
	if (str_is(field, "data")) {
		buf_add_str(&s->data, line);
		buf_add_char(&s->data, '\n');
	} else if (str_is(field, "event")) {
		buf_cut(&s->name, s->name.len);
		buf_add_str(&s->name, line);
	} else if (str_is(field, "error") && s->data.len == 0) {
		buf_cut(&s->name, s->name.len);
		buf_add_text(&s->name, "error");
		buf_cut(&s->error, s->error.len);
		buf_add_str(&s->error, line);
	}
}

static void slow_read(struct str in, struct buf *log)
{
	struct slow s = { 0 };

	if (str_starts(in, STR("\xef\xbb\xbf")))
		in.p += 3, in.n -= 3;
	while (in.n) {
		size_t n = 0, skip;

		while (n < in.n && in.p[n] != '\n' && in.p[n] != '\r')
			n++;
		if (n == in.n) { /* an unfinished line counts only at the end */
			buf_add_text(log, "finish");
			slow_line(&s, in);
			slow_dispatch(&s, log);
			goto done;
		}
		skip = in.p[n] == '\r' && n + 1 < in.n && in.p[n + 1] == '\n' ? 2 : 1;
		if (n == 0)
			slow_dispatch(&s, log);
		else
			slow_line(&s, (struct str){ in.p, n });
		in.p += n + skip;
		in.n -= n + skip;
	}
	buf_add_text(log, "finish");
	slow_dispatch(&s, log);
done:
	buf_release(&s.data);
	buf_release(&s.name);
	buf_release(&s.error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole_log = { 0 }, cut_log = { 0 }, slow_log = { 0 };
	struct sse whole = { 0 }, cut = { 0 };
	uint32_t seed;

	if (size < 1)
		return 0;
	seed = data[0];
	data++, size--;
	feed(&whole, &whole_log, data, size);
	finish(&whole, &whole_log);
	for (size_t at = 0; at < size;) {
		size_t n = 1;

		if (seed & 8) {
			seed = (seed * 1664525u + 1013904223u) | 8;
			n = 1 + (seed >> 24) % 24;
		}
		if (n > size - at)
			n = size - at;
		feed(&cut, &cut_log, data + at, n);
		at += n;
	}
	finish(&cut, &cut_log);
	slow_read((struct str){ (const char *)data, size }, &slow_log);
	assert(str_eq(buf_str(&whole_log), buf_str(&cut_log)));
	assert(str_eq(buf_str(&whole_log), buf_str(&slow_log)));
	buf_release(&whole_log);
	buf_release(&cut_log);
	buf_release(&slow_log);
	return 0;
}
