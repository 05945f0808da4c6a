/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - records of requests and steps: lines of --requests, Chrome traces. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/http/form.h"
#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "sim/serving/serving.h"

#define PIECES 16               /* number of pieces of a slowly growing file */
#define EVENTS_BYTES_MAX (8u << 20)

void profiler_start(struct profiler *p)
{
	p->is_on = true;
	p->dropped = 0;
	buf_reset(&p->events);
}

void profiler_span(struct profiler *p, const char *name, unsigned tid, int64_t begin_ns,
		   int64_t end_ns, uint64_t tokens)
{
	if (!p->is_on || !p->dir)
		return;
	if (p->events.len > EVENTS_BYTES_MAX) {
		p->dropped++;
		return;
	}
	buf_printf(&p->events, "%s\n{\"ph\": \"X\", \"cat\": \"sim\", \"name\": \"%s\", \"pid\": %d, "
		   "\"tid\": %u, \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"tokens\": %" PRIu64 "}}",
		   p->events.len ? "," : "", name, (int)getpid(), tid, (double)begin_ns * 1e-3,
		   (double)(end_ns - begin_ns) * 1e-3, tokens);
}

/* Everything up to the given part of the text. */
static void write_to(struct profiler *p, size_t end)
{
	struct str part = { p->text.data + p->written, end - p->written };

	/* On a full disk the trace is simply cut off, as real ones are. */
	if (part.n && file_write_all(p->fd, part) == 0)
		p->written = end;
}

static void finish(struct profiler *p)
{
	if (!p->loop)
		return;
	write_to(p, p->text.len);
	close(p->fd);
	loop_timer_cancel(p->loop, &p->timer);
	p->loop = NULL;
	buf_release(&p->text);
}

static void on_time(struct timer *t)
{
	struct profiler *p = (struct profiler *)((char *)t - offsetof(struct profiler, timer));
	int64_t now = clock_mono_ns(), gone = now - p->from_ns;

	if (gone >= p->write_ns) {
		finish(p);
		return;
	}
	write_to(p, (size_t)((double)p->text.len * (double)gone / (double)p->write_ns));
	loop_timer_set(p->loop, t, now + p->write_ns / PIECES);
}

static int open_file(struct profiler *p, struct err *e)
{
	char name[96], *path;

	snprintf(name, sizeof(name), "sim_%d_%u.%" PRId64 ".pt.trace.json", (int)getpid(),
		 ++p->windows, clock_real_ns());
	path = file_join(p->dir, name);
	p->fd = file_mkdirs(p->dir, e);
	if (p->fd == 0) {
		p->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (p->fd < 0)
			err_set(e, ERR_IO, "cannot write the trace %s: %s", path, strerror(errno));
	}
	free(path);
	return p->fd < 0 ? -1 : 0;
}

int profiler_stop(struct profiler *p, struct loop *l, struct err *e)
{
	p->is_on = false;
	if (!p->dir)
		return 0;
	finish(p);
	if (open_file(p, e) < 0)
		return -1;
	p->loop = l;
	buf_printf(&p->text, "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"dropped\": %" PRIu64
		   ", \"traceEvents\": [", p->dropped);
	buf_add_str(&p->text, buf_str(&p->events));
	buf_add_text(&p->text, "\n]}\n");
	buf_release(&p->events);
	p->written = 0;
	p->from_ns = clock_mono_ns();
	p->timer.on_time = on_time;
	on_time(&p->timer);
	return 0;
}

void profiler_release(struct profiler *p)
{
	finish(p);
	buf_release(&p->events);
	*p = (struct profiler){ 0 };
}

/*
 * One line of --requests: the request as received. Bodies that are not UTF-8 are written in base64;
 * forms are split into their parts.
 */

/* "key": bytes as text, or "key": null, "key_base64": "..". */
static void bytes_write(struct buf *out, const char *key, struct str bytes)
{
	buf_printf(out, "\"%s\": ", key);
	if (utf8_is_valid(bytes)) {
		json_quote(out, bytes, false);
		return;
	}
	buf_printf(out, "null, \"%s_base64\": \"", key);
	base64_encode(bytes, out);
	buf_add_char(out, '"');
}

static void name_write(struct buf *out, struct str name)
{
	struct buf lower = { 0 };

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		buf_add_char(&lower, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
	}
	json_quote(out, buf_str(&lower), false);
	buf_release(&lower);
}

/* Header lines as an object in their order; for a repeated one all values are listed. */
static void headers_write(struct buf *out, struct str head)
{
	struct str line;
	bool is_first = true;

	buf_add_text(out, ", \"headers\": {");
	http_head_line(&head, &line);
	while (http_head_line(&head, &line)) {
		struct str name = str_cut(&line, ':');

		if (!is_first)
			buf_add_text(out, ", ");
		is_first = false;
		name_write(out, name);
		buf_add_text(out, ": ");
		json_quote(out, str_trim(line), false);
	}
	buf_add_char(out, '}');
}

static void quoted_or_null(struct buf *out, const char *key, struct str text)
{
	buf_printf(out, "\"%s\": ", key);
	if (text.p)
		json_quote(out, text, false);
	else
		buf_add_text(out, "null");
	buf_add_text(out, ", ");
}

static void parts_write(struct buf *out, struct str type, struct str body)
{
	struct form form;
	struct form_part part;
	bool is_first = true;

	if (!form_open(&form, type, body))
		return;
	buf_add_text(out, ", \"parts\": [");
	while (form_next(&form, &part, NULL) > 0) {
		buf_add_text(out, is_first ? "{" : ", {");
		is_first = false;
		quoted_or_null(out, "name", part.name);
		quoted_or_null(out, "filename", part.filename);
		quoted_or_null(out, "content_type", part.type);
		bytes_write(out, "body", part.body);
		buf_add_char(out, '}');
	}
	buf_add_char(out, ']');
}

void log_request(struct conn *c, struct str path, struct str body)
{
	struct buf *out = &c->sim->requests.lines;
	struct str head = buf_str(&c->head);
	struct str id = http_head_value(head, "x-request-id");

	if (!c->sim->requests.path)
		return;
	buf_printf(out, "{\"recv_ns\": %" PRId64 ", \"method\": ", c->recv_ns);
	json_quote(out, c->request.method, false);
	buf_add_text(out, ", \"path\": ");
	json_quote(out, path, false);
	buf_add_text(out, ", ");
	quoted_or_null(out, "request_id", id);
	buf_printf(out, "\"authorization\": %s",
		   http_head_value(head, "authorization").p ? "true" : "false");
	headers_write(out, head);
	buf_add_text(out, ", ");
	bytes_write(out, "body", body);
	parts_write(out, http_head_value(head, "content-type"), body);
	buf_add_text(out, "}\n");
	sim_flush_soon(c->sim);
}
