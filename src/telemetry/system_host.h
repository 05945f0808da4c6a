/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry/system_host.h - processors, memory and network of this machine, from /proc.
 *
 * Parsers are pure and take what a file says; those of limits take the files of control groups
 * as well. A value that is not told stays as it was.
 */
#pragma once
#include <stdbool.h>

#include "base/limits.h"
#include "base/str.h"

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
struct host {
	int fd[HOST_FILES];            /* -1: cannot be read */
	double ticks_per_s;
	struct host_nets nets;         /* as they were when it was opened */
};

void host_open(struct host *h);
void host_read(const struct host *h, struct host_values *out);
void host_close(struct host *h);

/* Processors of the machine, or as many as the group of this process may use; likewise bytes. */
double host_cpus(void);
double host_memory_limit(double total);

/* "max 100000" or "150000 100000" of cpu.max: processors; INFINITY: no limit; NAN: no such form. */
double host_parse_cpu_max(struct str text);
/* "max" or a number of bytes; INFINITY, NAN likewise. */
double host_parse_memory_max(struct str text);
