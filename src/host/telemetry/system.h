/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.h - monitors the machine while load runs: GPUs, host, the server's processes.
 *
 *   system_begin   on the caller's thread: finds the sources, samples once; then a thread
 *   system_end     ends that thread; samples once more; moves all to the record
 *
 * As with telemetry.h the thread does not touch the record or the loops, and nothing here is ever
 * an error of the run: what cannot be monitored becomes a note of kind NOTE_SYSTEM. Names and units
 * of the series: record/system_series.h. Times are the record's clock (CLOCK_REALTIME), of each
 * source just after it was read.
 *
 * Cost. A sample is one pread per file (descriptors stay open) and a few calls per GPU; only the
 * points themselves are allocated. The list of processes is refreshed only as often as a small
 * share of a core allows, because that reads all of /proc. The cost of the thread is a series of
 * its own (SYSTEM_SAMPLER_CPU).
 *
 * A series that reaches TELEMETRY_POINTS_MAX points loses every second one, as do all others, and
 * the interval doubles. A late sample is skipped and counted, never made up for.
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

/* A process that is monitored with all its descendants. */
struct system_process { pid_t pid; const char *name; };

/* Borrowed until system_begin returns. */
struct system_opts {
	bool gpu, host, process;
	int64_t interval_ns;             /* 0: only before and after the load */
	const char *const *gpus;         /* indices or UUIDs; n_gpus 0: all that may be used */
	size_t n_gpus;
	const struct system_process *processes;
	size_t n_processes;
};

struct system_watch;

/* Never NULL, never fails. */
struct system_watch *system_begin(const struct system_opts *opts);

/* The latest sample; NAN: not reported. From any thread. */
struct system_now {
	double gpus;                     /* number of monitored GPUs; 0: none */
	double gpu_utilization;          /* %, mean over GPUs */
	double gpu_memory, gpu_memory_total; /* bytes, summed */
	double gpu_power;                /* W, summed */
	double host_cpus_busy, host_cpus; /* busy CPUs between the last two samples; usable CPUs */
	double host_memory, host_memory_total;
	double process_cpus_busy, process_rss; /* all trees together */
};
void system_now(const struct system_watch *w, struct system_now *out);

/* Frees w; accepts NULL. */
void system_end(struct system_watch *w, struct record *into);

/*
 * Processors, memory and network of this machine, from /proc.
 *
 * Parsers are pure and take a file's text; those of limits also take the files of control groups.
 * Values that are not in the text are left unchanged.
 */
/* Values at one moment; NAN: unknown. Counters are since the machine started. */
struct host_values {
	double cpu_s;                  /* busy: neither idle, waiting for a disk, nor stolen */
	double memory, memory_total;   /* bytes: total minus available; total */
	double received, sent;         /* bytes, over struct host_nets */
};

/*
 * The interfaces whose bytes are summed: those with a device of their own. Bonds, bridges, VLANs
 * and the host's ends of containers carry the same bytes again. If none has one, as inside a
 * container, n is 0 and all count but loopback, bridges and bonds.
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

/* Processors of the machine, or as many as our control group may use; bytes in the same way. */
double host_cpus(void);
double host_memory_limit(double total);
/*
 * What the control groups of this process allow, including those above it: processors, bytes.
 * INFINITY: no limit. root is put before /proc and /sys ("" the machine itself).
 */
double host_group_cpus(const char *root, struct buf *where); /* where: its folder; may be NULL */
/* Time for which a quota has stopped our groups so far: the largest of them. NAN: unknown. */
double host_group_stopped_s(const char *root);
double host_group_memory(const char *root);

/* Processors by cpu.max: "max 100000", "150000 100000"; INFINITY: no limit; NAN: malformed. */
double host_parse_cpu_max(struct str text);
/* Bytes by "max" or a number; INFINITY: no limit; NAN: malformed. */
double host_parse_memory_max(struct str text);

/*
 * Resources that a process and its descendants use.
 *
 * tree_watch_find determines the members, which reads all of /proc; tree_watch_read reads the known
 * members, one pread each. Processor time of a process that ended stays in the sum, so the sum only
 * grows. A process is identified by number and start time.
 */
struct watched_process;

/* Valid when zeroed except for root: no members yet. */
struct tree_watch {
	pid_t root;
	uint64_t root_start;           /* 0: not seen yet */
	struct watched_process *process;
	size_t n, room;
	uint64_t ended_ticks;          /* of those that ended */
};

/* Over all current members. */
struct tree_values {
	double cpu_s;                  /* counter */
	double rss;                    /* bytes, summed */
	double threads, processes;
};

/* Finds the members in the snapshot t (tree_read). false: root is gone, or never existed. */
bool tree_watch_find(struct tree_watch *w, struct tree *t);
/* Reads the members. false: none is left. */
bool tree_watch_read(struct tree_watch *w, struct tree_values *out);
void tree_watch_release(struct tree_watch *w);

/* From /proc/PID/stat; false: not of its form. */
struct process_usage { uint64_t start, ticks, threads, rss_pages; };
bool tree_parse_usage(struct str text, struct process_usage *out);
