/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.h - what the machine does while load runs: GPUs, host, the server's processes.
 *
 *   system_begin   on the caller's thread: finds what there is, samples once; then a thread
 *   system_end     ends that thread; samples once more; moves all to the record
 *
 * As with telemetry.h the thread touches nothing of the record and nothing of the loops, and
 * nothing here is ever an error of the run: what cannot be watched becomes a note of kind
 * NOTE_SYSTEM. Names and units of the series: record/system_series.h. Times are the record's
 * clock (CLOCK_REALTIME), of each source just after it was read.
 *
 * Cost. A sample is one pread per file (descriptors stay open) and a few calls per GPU; nothing
 * is allocated but the points themselves. Which processes there are is looked up again only
 * as often as a small share of a core allows, because that reads all of /proc. What the
 * thread costs is a series of its own (SYSTEM_SAMPLER_CPU).
 *
 * A series that reaches TELEMETRY_POINTS_MAX points loses every second one, as all others, and
 * the interval doubles. A beat that comes too late is left out and counted, never made up for.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/record/record.h"
#include "client/record/system_series.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "host/proc/tree.h"

/* A process whose tree is watched, itself included. */
struct system_process { pid_t pid; const char *name; };

/* Borrowed until system_begin returns. */
struct system_opts {
	bool gpu, host, process;
	int64_t interval_ns;             /* 0: only before and after */
	const char *const *gpus;         /* indices or UUIDs; n_gpus 0: all that may be used */
	size_t n_gpus;
	const struct system_process *processes;
	size_t n_processes;
};

struct system_watch;

/* Never NULL, never fails. */
struct system_watch *system_begin(const struct system_opts *opts);

/* What was sampled last; NAN: not told. From any thread. */
struct system_now {
	double gpus;                     /* how many are watched; 0: none */
	double gpu_utilization;          /* %, mean over GPUs */
	double gpu_memory, gpu_memory_total; /* bytes, summed */
	double gpu_power;                /* W, summed */
	double host_cpus_busy, host_cpus; /* CPUs, between the last two samples; that may be used */
	double host_memory, host_memory_total;
	double process_cpus_busy, process_rss; /* all trees together */
};
void system_now(const struct system_watch *w, struct system_now *out);

/* Frees w; accepts NULL. */
void system_end(struct system_watch *w, struct record *into);

/*
 * Processors, memory and network of this machine, from /proc.
 *
 * Parsers are pure and take what a file says; those of limits take the files of control groups
 * as well. A value that is not told stays as it was.
 */
/* One moment; NAN: not told. Counters are since the machine started. */
struct host_values {
	double cpu_s;                  /* busy: neither idle, waiting for a disk, nor stolen */
	double memory, memory_total;   /* bytes: total less available; in all */
	double received, sent;         /* bytes, over struct host_nets */
};

/*
 * The interfaces whose bytes are added up: those with a device of their own. Bonds, bridges, VLANs
 * and the host's ends of containers carry the same bytes again. Where none has one, as inside
 * a container, n is 0 and all count but loopback, bridges and bonds.
 */
struct host_nets {
	char name[HOST_NETS_MAX][16], left_out[HOST_NETS_MAX][16];
	size_t n, n_left_out;
};
/* sysfs: "/sys". */
void host_find_nets(const char *sysfs, struct host_nets *out);

/* "cpu  ..." of /proc/stat: ticks of all processors. false: not of its form. */
bool host_parse_stat(struct str text, double ticks_per_s, double *cpu_s);
bool host_parse_meminfo(struct str text, double *used, double *total);
bool host_parse_net(struct str text, const struct host_nets *nets, double *received, double *sent);

/* ---- this machine ---- */

enum { HOST_STAT, HOST_MEMINFO, HOST_NET, HOST_FILES };

/* Files stay open from open to close. */
struct system_host {
	int fd[HOST_FILES];            /* -1: cannot be read */
	double ticks_per_s;
	struct host_nets nets;         /* as they were when it was opened */
};

/* Processors of the machine, or as many as the group of this process may use; likewise bytes. */
double host_cpus(void);
double host_memory_limit(double total);
/*
 * What the control groups of this process allow, those above its own included: processors, bytes.
 * INFINITY: no limit. root is put before /proc and /sys ("" the machine itself).
 */
double host_group_cpus(const char *root, struct buf *where); /* where: as a folder; may be NULL */
/* How long a quota has stopped our groups so far, the one that was for longest. NAN: not told. */
double host_group_stopped_s(const char *root);
double host_group_memory(const char *root);

/* "max 100000" or "150000 100000" of cpu.max: processors; INFINITY: no limit; NAN: no such form. */
double host_parse_cpu_max(struct str text);
/* "max" or a number of bytes; INFINITY, NAN likewise. */
double host_parse_memory_max(struct str text);

/*
 * What a process and all that descends from it take of the machine.
 *
 * tree_watch_find looks up who belongs to it, which reads all of /proc; tree_watch_read reads those
 * that are known, one pread each. Processor time of a process that ended stays in the sum, so
 * the sum only grows. A process is known by number and start time.
 */
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
