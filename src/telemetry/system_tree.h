/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry/system_tree.h - what a process and all that descends from it take of the machine.
 *
 * tree_watch_find looks up who belongs to it, which reads all of /proc; tree_watch_read reads those
 * that are known, one pread each. Processor time of a process that ended stays in the sum, so
 * the sum only grows. A process is known by number and start time.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "proc/tree.h"

struct watched_process;

/* Zeroed but for root: a valid one that knows nobody. */
struct tree_watch {
	pid_t root;
	uint64_t root_start;           /* 0: not seen yet */
	struct watched_process *process;
	size_t n, room;
	uint64_t ended_ticks;          /* of those that ended */
};

/* Over all processes that are there. */
struct tree_values {
	double cpu_s;                  /* counter */
	double rss;                    /* bytes, summed */
	double threads, processes;
};

/* Who is in the tree by the picture t (tree_read). false: its root is gone, or was never there. */
bool tree_watch_find(struct tree_watch *w, struct tree *t);
/* false: nobody is left. */
bool tree_watch_read(struct tree_watch *w, struct tree_values *out);
void tree_watch_release(struct tree_watch *w);

/* Of /proc/PID/stat; false: not of its form. */
struct process_usage { uint64_t start, ticks, threads, rss_pages; };
bool tree_parse_usage(struct str text, struct process_usage *out);
