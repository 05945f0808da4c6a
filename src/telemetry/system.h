/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry/system.h - what the machine does while load runs: GPUs, host, the server's processes.
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

#include "record/record.h"
#include "record/system_series.h"

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
