/* SPDX-License-Identifier: Apache-2.0 */
/* profiler.c - see profiler.h. */
#include "sim/profiler.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define PIECES 16               /* a slowly growing file comes in so many */
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

	/* Of a full disk the trace tells by being cut, as real ones do. */
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
