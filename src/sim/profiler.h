/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiler.h - what stands in for an engine's torch profiler: between POST /start_profile and
 * /stop_profile steps and requests are noted, and then written as a Chrome trace, the
 * format that every viewer of torch's traces reads.
 *
 * The trace may grow slowly (write_ns), as those of real engines do after they have answered.
 * A profiler without a folder notes nothing: it is one that nobody configured.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/loop.h"

/* A zeroed struct is one without a folder. */
struct profiler {
	const char *dir;     /* borrowed; made when there is something to write */
	int64_t write_ns;    /* how long writing takes; 0: at once */
	bool is_on;
	struct buf events;   /* JSON objects, a line each */
	uint64_t dropped;    /* beyond what a trace may have */
	unsigned windows;    /* so far */
	/* While it is written: */
	struct loop *loop;
	struct timer timer;
	int fd;
	size_t written;
	int64_t from_ns;     /* monotonic */
	struct buf text;
};

void profiler_start(struct profiler *p);
/* Something that lasted; monotonic times. tid: a lane, or 0 for requests. */
void profiler_span(struct profiler *p, const char *name, unsigned tid, int64_t begin_ns,
		   int64_t end_ns, uint64_t tokens);
/* Begins to write; the loop does the rest. -1: the file cannot be made. */
int profiler_stop(struct profiler *p, struct loop *l, struct err *e);
/* Writes what is left at once; to be released at the end. */
void profiler_release(struct profiler *p);
